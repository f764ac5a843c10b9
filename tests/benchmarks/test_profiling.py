"""The profile of a row."""

import sys
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.profiling import PROFILED, head, lines
from benchmarks.rows import ROWS
from benchmarks.sampler import name_of


def test_every_function_has_its_share_and_the_rest_is_summed_up() -> None:
    counts = Counter({f"function {number}": number for number in range(1, 13)})
    rows = list(lines(counts, 78.0))
    assert rows[0] == ["function 12", "15.4%", "12.00"]
    assert rows[-1] == ["all others", "3.8%", "3.00"]
    assert len(rows) == 11 and len(head(78.0)) == 3


def test_without_a_cost_there_are_only_shares() -> None:
    assert list(lines(Counter({"a": 1, "b": 3}), None)) == [["b", "75.0%"], ["a", "25.0%"], ["all others", "0.0%"]]
    assert head(None) == ["function", "share"]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/x/.venv/lib/python3.11/site-packages/anyio/lowlevel.py", "anyio/lowlevel.py"),
        ("/usr/lib/python3.11/asyncio/events.py", "asyncio/events.py"),
        ("/home/me/mcpcore/mcpcore/runtime/driver.py", "mcpcore/runtime/driver.py"),
        ("/home/me/server.py", "server.py"),
        ("<string>", "<string>"),
    ],
)
def test_files_are_named_from_their_package_on(path: str, name: str) -> None:
    assert name_of(path) == name


def test_the_profiled_rows_exist() -> None:
    assert set(PROFILED) <= set(ROWS)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("row", ["call-1", "http-16", "in-memory-modern"])
def test_a_profile_names_functions_of_the_program_and_writes_nothing(
    row: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.stat().st_mtime_ns for path in (Path(__file__).parents[2] / "benchmarks/results").iterdir()}
    assert main(["--profile", "--smoke", "--rows", row]) == 0
    told = capsys.readouterr().out
    assert f"## {row}: " in told and "| all others |" in told and "µs per call" in told
    assert before == {path: path.stat().st_mtime_ns for path in before}
