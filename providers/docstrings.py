"""What a docstring says: its first paragraph, and one text per parameter.

Three styles are read, mixed ones too: Google (``Args:``), NumPy (``Parameters`` underlined) and Sphinx (``:param x:``).
"""

import re
from inspect import cleandoc

from msgspec import Struct

__all__ = ["Docstring", "parse_docstring"]

_GOOGLE = re.compile(r"(Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments|Other Parameters):\s*$")
_NUMPY = re.compile(r"(Parameters|Other Parameters)\s*$")
_UNDERLINE = re.compile(r"-{3,}\s*$")
_SPHINX = re.compile(r":(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)$")
_SPHINX_OTHER = re.compile(r":\w+(?:\s[^:]*)?:")
_GOOGLE_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*(?:\([^)]*\)[^)]*)*\))?\s*:\s*(.*)$")
_NUMPY_ENTRY = re.compile(r"\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*\s*(?::.*)?$")
_SECTION = re.compile(r"[A-Z]\w*(?: \w+)?:\s*$")


class Docstring(Struct, frozen=True):
    """The parts of a docstring that are published.

    Args:
        summary: The first paragraph, dedented, lines as written; None where there is none.
        parameters: Text by parameter name, each on one line.
    """

    summary: str | None = None
    parameters: dict[str, str] = {}


def parse_docstring(text: str | None) -> Docstring:
    """Read ``text``, the raw ``__doc__`` of a function. Never raises: prose that only looks like a section is prose."""
    if not text or not text.strip():
        return Docstring()
    lines = cleandoc(text).expandtabs().splitlines()
    if _GOOGLE.match(lines[0]) and lines[1:] and _indent(lines[1]) == 0:
        # Beside the quotes a title does not tell how deep it stands, and its entries were taken for the margin.
        lines[1:] = [f"    {line}" if line else "" for line in lines[1:]]
    parameters: dict[str, str] = {}
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if _GOOGLE.match(line):
            parameters |= _google(lines[number + 1 :])
        elif _NUMPY.match(line) and _UNDERLINE.match(following):
            parameters |= _numpy(lines[number + 2 :])
        elif found := _SPHINX.match(line):
            parameters[found[1]] = _joined([found[2], *_indented(lines[number + 1 :])])
    return Docstring(_summary(lines), {name: text for name, text in parameters.items() if text})


def _summary(lines: list[str]) -> str | None:
    paragraph: list[str] = []
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if not line.strip() or _SPHINX_OTHER.match(line) or _UNDERLINE.match(following):
            break
        if _SECTION.match(line) and following.startswith(" "):
            break
        paragraph.append(line.rstrip())
    return "\n".join(paragraph) or None


def _google(lines: list[str]) -> dict[str, str]:
    """Read ``name (type): text`` entries, each followed by deeper lines."""
    entries: dict[str, str] = {}
    block = _indented(lines, blank=True)
    step = min((_indent(line) for line in block if line.strip()), default=0)
    for number, line in enumerate(block):
        if _indent(line) == step and (found := _GOOGLE_ENTRY.match(line.strip())):
            entries[found[1]] = _joined([found[2], *_indented(block[number + 1 :], deeper_than=step, blank=True)])
    return entries


def _numpy(lines: list[str]) -> dict[str, str]:
    """Read ``name : type`` entries, each followed by its text on deeper lines; ``x, y : int`` shares one text."""
    entries: dict[str, str] = {}
    for number, line in enumerate(lines):
        if _UNDERLINE.match(lines[number + 1] if number + 1 < len(lines) else ""):
            break
        if line.strip() and _indent(line) == 0:
            if not _NUMPY_ENTRY.match(line):
                break
            text = _joined(_indented(lines[number + 1 :], blank=True))
            for name in line.partition(":")[0].split(","):
                entries[name.strip().lstrip("*")] = text
    return entries


def _indented(lines: list[str], *, deeper_than: int = 0, blank: bool = False) -> list[str]:
    """Return the leading lines that are indented deeper; ``blank`` says whether empty lines belong to them."""
    block: list[str] = []
    for line in lines:
        if (_indent(line) <= deeper_than) if line.strip() else not blank:
            break
        block.append(line)
    return block


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _joined(lines: list[str]) -> str:
    return " ".join(part for line in lines if (part := line.strip()))
