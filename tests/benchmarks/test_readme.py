"""The README quotes what was measured, to the digit."""

from pathlib import Path

import pytest

from benchmarks.__main__ import RESULTS
from benchmarks.readme import BLOCK, README, quote, quoted, read
from benchmarks.results import Figure, RowResults


def test_the_figures_in_the_readme_are_those_of_the_committed_run() -> None:
    block = BLOCK.search(README.read_text("utf-8"))
    assert block is not None
    # `python -m benchmarks` writes both. Where only the layout has changed, `quote(read(...))` does.
    assert block[0] == quoted(read(RESULTS / "results.json"))


def test_quoting_changes_the_table_and_nothing_else(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("before\n<!-- figures of benchmarks/results -->\nold\n<!-- end of figures -->\nafter\n")
    results = read(RESULTS / "results.json")
    results.rows["call-1"] = RowResults(
        "one call",
        "calls",
        "calls/s",
        "higher",
        {"mcpcore": [Figure(1, 3000.0, {}, 0.0)], "mcp": [Figure(1, 2000, {}, 0)]},
    )
    quote(results, readme)
    before, _, rest = readme.read_text("utf-8").partition("-->\n")
    assert before == "before\n<!-- figures of benchmarks/results "
    assert rest.endswith("<!-- end of figures -->\nafter\n")
    assert (
        "| one call | calls/s | 3\N{NARROW NO-BREAK SPACE}000 | 2\N{NARROW NO-BREAK SPACE}000 | — | — | 1.5 |\n" in rest
    )


def test_a_readme_without_a_place_is_refused(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("nothing\n")
    with pytest.raises(ValueError, match="no marks"):
        quote(read(RESULTS / "results.json"), readme)
