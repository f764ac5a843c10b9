"""The guard: what it lets pass, what it reports, and that it watches what it should."""

import pytest

from benchmarks import __main__ as command
from benchmarks import guard
from benchmarks.__main__ import main
from benchmarks.results import Figure, RowResults
from benchmarks.rows import ROWS
from benchmarks.table import BASELINE, SUBJECT, Better, Contestant, Effort, Goal, Measurement, Row


def entry(better: Better, ours: list[float], theirs: list[float]) -> RowResults:
    figures = {
        name: [Figure(number, value, {}, 0.0) for number, value in enumerate(values)]
        for name, values in ((SUBJECT, ours), (BASELINE, theirs))
    }
    return RowResults("a row", "group", "unit", better, figures)


@pytest.mark.parametrize(
    ("better", "ours", "bound", "says"),
    [
        ("higher", [20, 2, 2], 15, []),  # two rounds were disturbed
        ("higher", [14, 2, 2], 15, ["r: 14.00 times mcp in its best round, and it has to be ≥ 15 times"]),
        ("lower", [0.9, 0.9, 0.4], 0.5, []),
        ("lower", [0.9, 0.6, 0.8], 0.5, ["r: 0.60 times mcp in its best round, and it has to be ≤ 0.5 times"]),
        ("higher", [15], 15, []),
        ("lower", [0.5], 0.5, []),
    ],
)
def test_a_bound_is_broken_when_no_round_reaches_it(
    better: Better, ours: list[float], bound: float, says: list[str]
) -> None:
    found = guard.broken("r", entry(better, ours, [1.0] * len(ours)), Goal(bound, BASELINE))
    assert list(found) == says


def test_a_contestant_that_fails_breaks_it() -> None:
    failed = entry("higher", [], [1])
    failed.failures[SUBJECT] = "wrong reply"
    assert list(guard.broken("r", failed, Goal(3, BASELINE))) == ["r: mcpcore failed: wrong reply"]


def test_every_guarded_row_exists_for_both_and_is_compared_with_the_other() -> None:
    assert set(guard.GUARDED) <= set(ROWS)
    for name, bound in guard.GUARDED.items():
        assert bound.against == BASELINE and bound.detail is None
        assert (bound.bound > 1) is (ROWS[name].better == "higher"), name


@pytest.mark.parametrize(("ours", "status"), [(16.0, 0), (14.0, 1)])
def test_the_exit_status_and_the_words_tell_whether_all_hold(
    ours: float, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measure(one: Contestant, effort: Effort) -> Measurement:
        return Measurement(ours if one.name == SUBJECT else 1.0)

    row = Row("r", "a row", "group", "unit", "higher", "stdio", measure)
    monkeypatch.setitem(ROWS, "r", row)
    for module in (guard, command):
        monkeypatch.setattr(module, "GUARDED", {"r": Goal(15, BASELINE)})
    monkeypatch.setattr(
        command, "prepare", lambda names: {name: Contestant(name, "1", {"stdio": ("true",)}) for name in names}
    )
    assert main(["--guard"]) == status
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2 * guard.ROUNDS + 1
    assert said[-1].startswith("broken: r: 14.00 times mcp" if status else "all 1 guarded rows hold")


@pytest.mark.parametrize("more", [["--smoke"], ["--rows", "start"], ["--rounds", "5"]])
def test_it_takes_no_other_option(more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--guard", *more])
    assert "--guard takes no other option" in capsys.readouterr().err
