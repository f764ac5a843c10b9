"""URI templates: RFC 6570 as far as resources need it, matched in time linear in the URI.

A template is text with ``{name}``, which stands for one path segment or a part of one; at most one ``{+path}``, which
may hold slashes; and at the end at most one ``{?a,b}``, whose parameters may be absent and come in any order.

Matching finds each piece of text at its first possible place and never goes back. That loses nothing: variables before
``{+path}`` hold no slash, so a later place would only make an earlier variable longer; variables after it are found
from the end, in the same way; and ``{+path}`` takes what is between.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote, unquote_to_bytes

from mcpcore.exceptions import DefinitionError

__all__ = ["URITemplate"]

_RESERVED: Final = ":/?#[]@!$&'()*+,;="
_EXPRESSION: Final = re.compile(r"\{([^{}]*)\}")
_NAME: Final = re.compile(r"[^\W\d]\w*")
_TRIPLET: Final = re.compile(r"%([0-9A-Fa-f]{2})")
_STRAY: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_UNRESERVED: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class URITemplate:
    """A compiled template.

    Args:
        template: As published.

    Attributes:
        template: As given.
        variables: Names in order.
        optional: Those of ``{?…}``, which a URI may leave out.

    Raises:
        DefinitionError: It uses an operator or a combination that is not offered.
    """

    def __init__(self, template: str) -> None:
        self.template = template
        texts, expressions = _split(template)
        query: tuple[str, ...] = ()
        if expressions and expressions[-1].startswith("?"):
            if texts.pop() != "":
                raise DefinitionError(f"{template!r}: {{?…}} belongs at the end")
            query = tuple(expressions.pop()[1:].split(","))
        names = [each.removeprefix("+") for each in expressions]
        self._query = query
        self._texts = [_canonical(each) for each in texts]
        self._multi = next((i for i, each in enumerate(expressions) if each.startswith("+")), None)
        self.variables = (*names, *query)
        self.optional = frozenset(query)
        self._names = names
        self._check(expressions)

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the variables of ``uri``, percent-decoded once; None if it does not match.

        Text matches however its letters are spelled, ``é`` or ``%C3%A9``. A value that would lead out of the place
        where it stands does not match: ``..`` as a segment, an encoded slash or backslash, NUL.
        """
        canonical = _canonical(uri)
        queried: dict[str, str] = {}
        if self._query:
            canonical, _, text = canonical.partition("?")
            for pair in filter(None, text.split("&")):
                name, _, value = pair.partition("=")
                if name not in self._query or name in queried:
                    return None
                queried[name] = value
        values = self._cut(canonical)
        if values is None:
            return None
        found: dict[str, str] = {}
        for index, (name, raw) in enumerate(zip(self._names, values, strict=True)):
            decoded = _decode(raw)
            if decoded is None or not _stays_put(decoded, multi=index == self._multi):
                return None
            found[name] = decoded
        for name, raw in queried.items():
            if (decoded := _decode(raw)) is None:
                return None
            found[name] = decoded
        return found

    def expand(self, values: Mapping[str, object]) -> str:
        """Return the URI for ``values``. Variables of ``{?…}`` that are absent or None are left out.

        Raises:
            KeyError: Another variable is missing.
        """
        parts = [quote(text, safe=_RESERVED + "%") for text in _split(self.template)[0]]
        uri = parts[0]
        for index, name in enumerate(self._names):
            uri += quote(str(values[name]), safe=_RESERVED if index == self._multi else "") + parts[index + 1]
        pairs = [(name, values[name]) for name in self._query if values.get(name) is not None]
        return uri + "".join(
            f"{'&' if number else '?'}{name}={quote(str(value), safe='')}" for number, (name, value) in enumerate(pairs)
        )

    def _check(self, expressions: Sequence[str]) -> None:
        for name in self.variables:
            if not _NAME.fullmatch(name):
                raise DefinitionError(
                    f"{self.template!r}: {{{name}}} is not offered. Use {{name}} for one segment, {{+path}} for several, "
                    "and {?a,b} at the end for a query"
                )
        if len(set(self.variables)) < len(self.variables):
            raise DefinitionError(f"{self.template!r}: a variable occurs twice")
        if sum(each.startswith("+") for each in expressions) > 1:
            raise DefinitionError(f"{self.template!r}: only one {{+…}} can be told from the text around it")
        if "" in self._texts[1:-1]:
            raise DefinitionError(f"{self.template!r}: two variables need text between them")

    def _cut(self, uri: str) -> list[str] | None:
        """Return the raw text of each variable."""
        first, *between = self._texts
        if not between:
            return [] if uri == first else None
        last = between.pop()
        if len(uri) < len(first) + len(last) or not (uri.startswith(first) and uri.endswith(last)):
            return None
        rest = uri[len(first) : len(uri) - len(last)]
        multi = len(between) if self._multi is None else self._multi
        values: list[str] = []
        for text in between[:multi]:
            value, found, rest = rest.partition(text)
            if not found:
                return None
            values.append(value)
        behind: list[str] = []
        for text in reversed(between[multi:]):
            rest, found, value = rest.rpartition(text)
            if not found:
                return None
            behind.append(value)
        values += [rest, *reversed(behind)]
        for index, value in enumerate(values):
            if not value or (index != self._multi and any(mark in value for mark in "/?#")):
                return None
        return values


def _split(template: str) -> tuple[list[str], list[str]]:
    """Return the texts and, between them, the expressions of ``template``."""
    pieces = _EXPRESSION.split(template)
    texts = pieces[::2]
    if any("{" in text or "}" in text for text in texts):
        raise DefinitionError(f"{template!r}: a brace is not closed, or not opened")
    return texts, pieces[1::2]


def _canonical(text: str) -> str:
    """Return ``text`` in the one spelling that all spellings of the same URI share."""
    text = _STRAY.sub("%25", text)
    text = _TRIPLET.sub(_respell, text)
    # Half a surrogate pair, which is no URI, becomes octets that no variable can be decoded from.
    return quote(text, safe=_RESERVED + "%~", errors="surrogatepass")


def _respell(triplet: re.Match[str]) -> str:
    octet = int(triplet[1], 16)
    return chr(octet) if octet in _UNRESERVED else triplet[0].upper()


def _decode(raw: str) -> str | None:
    try:
        return unquote_to_bytes(raw).decode()
    except UnicodeDecodeError:
        return None


def _stays_put(value: str, *, multi: bool) -> bool:
    """Return whether joining ``value`` to a folder stays inside it, as far as its text can tell."""
    if "\0" in value:
        return False
    segments = value.replace("\\", "/").split("/")
    return ".." not in segments if multi else len(segments) == 1 and value not in (".", "..")
