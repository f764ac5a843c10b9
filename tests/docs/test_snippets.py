"""The examples in the documentation: they are Python, and those of whole documents run and print what they say.

The blocks of a document share one namespace and one folder and run from top to bottom. A comment ``<!-- name.py -->``
before a block names the file that it is, for later blocks that start it. Comments behind ``print`` and ``ask``, and those on
lines of their own, are the output that is expected, in order; a block without any may print what it likes.
"""

import ast
import re
import sys
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final

import pytest
from msgspec import Struct

ROOT: Final = Path(__file__).parents[2]
DOCUMENTS: Final = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
WHOLE: Final = {"README.md", "bench.md", "client.md", "handlers.md", "sans-io.md"}

_BLOCK: Final = re.compile(
    r"(?:^<!-- (?P<file>\S+\.py) -->\n)?^```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)
_EXPECTED: Final = re.compile(r"^ *(?:(?:print|ask)\(.*\)  )?# (?P<text>.*)$", re.MULTILINE)


class Block(Struct, frozen=True):
    document: Path
    line: int
    code: str
    file: str | None

    @property
    def expected(self) -> list[str]:
        """The lines that it prints."""
        return [match["text"] for match in _EXPECTED.finditer(self.code)]

    def compiled(self) -> CodeType:
        padding = "\n" * self.line  # so that a traceback points into the document
        code: CodeType = compile(
            padding + self.code, str(self.document), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True
        )
        return code


def blocks_of(document: Path) -> list[Block]:
    text = document.read_text("utf-8")
    return [
        Block(document, text[: match.start("code")].count("\n"), match["code"], match["file"])
        for match in _BLOCK.finditer(text)
    ]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_every_example_is_python(document: Path) -> None:
    for block in blocks_of(document):
        block.compiled()


@pytest.mark.parametrize("name", sorted(WHOLE))
def test_the_examples_of_a_document_run_from_top_to_bottom(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (document,) = [each for each in DOCUMENTS if each.name == name]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    module = ModuleType("snippets")  # annotations are looked up in the module of a function
    monkeypatch.setitem(sys.modules, module.__name__, module)
    found = blocks_of(document)
    assert found
    for block in found:
        if block.file is not None:
            (tmp_path / block.file).write_text(block.code, "utf-8")
        exec(block.compiled(), module.__dict__)  # noqa: S102 - they are our own
        printed = capsys.readouterr().out.splitlines()
        assert not block.expected or printed == block.expected, f"{document.name}:{block.line}"


def test_the_documents_that_run_exist() -> None:
    assert {document.name for document in DOCUMENTS} >= WHOLE
