"""The few figures that the README quotes: made from ``results.json``, between two marks, and held there by a test."""

import re
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.report import number, table
from benchmarks.results import Results
from benchmarks.table import BASELINE, SUBJECT

__all__ = ["README", "quote", "quoted", "read"]

README: Final = Path(__file__).parents[1] / "README.md"

SHOWN: Final = (
    "call-1",
    "call-32",
    "list-1000",
    "start",
    "memory",
    "http-16",
    "http-sessions-16",
    "http-session",
    "in-memory-modern",
)
COLUMNS: Final = (SUBJECT, BASELINE, "fastmcp", "typescript")
BLOCK: Final = re.compile(r"(?<=<!-- figures of benchmarks/results -->\n).*?(?=<!-- end of figures -->)", re.DOTALL)


def read(data: Path) -> Results:
    """Read ``results.json``."""
    return msgspec.json.decode(data.read_bytes(), type=Results)


def quoted(results: Results) -> str:
    """Return the table of the README."""
    names = [name for name in COLUMNS if name in results.versions]
    lines: list[list[str]] = []
    for row in SHOWN:
        entry = results.rows[row]
        spreads = [entry.spread(name) for name in names]
        multiple = entry.ratios(SUBJECT, BASELINE)
        cells = ["—" if found is None else number(found.median) for found in spreads]
        lines.append([entry.title, entry.unit, *cells, "—" if multiple is None else number(multiple.median)])
    head = ["", "", *(f"{name} {results.versions[name]}" for name in names), f"{SUBJECT} ÷ {BASELINE}"]
    return table(head, iter(lines)) + "\n"


def quote(results: Results, readme: Path = README) -> None:
    """Write the table into the README.

    Raises:
        ValueError: It has no place for it.
    """
    text = readme.read_text("utf-8")
    if not BLOCK.search(text):
        raise ValueError(f"{readme} has no marks for the figures")
    table_text = quoted(results)
    readme.write_text(BLOCK.sub(lambda _: table_text, text), "utf-8")
