"""The run: turns, failures, and judging goals."""

import itertools

import pytest

from benchmarks.results import Figure, Results, RowResults, run, verdict
from benchmarks.spread import Spread
from benchmarks.table import BenchmarkError, Better, Contestant, Effort, Goal, Measurement, Row


def contestant(name: str, program: str = "stdio") -> Contestant:
    return Contestant(name, "1", {program: ("true",)})


def row_results(better: Better = "higher", **values: list[float]) -> RowResults:
    figures = {
        name: [Figure(number, value, {"linearity": value / 10}, 0.0) for number, value in enumerate(found, 1)]
        for name, found in values.items()
    }
    return RowResults("a row", "group", "calls/s", better, figures)


def measured(row: Row, *contestants: Contestant, rounds: int = 1, said: list[str] | None = None) -> Results:
    taking_part = {one.name: one for one in contestants}
    return run([row], taking_part, rounds, Effort(), (said if said is not None else []).append)


def test_contestants_take_turns_within_each_round() -> None:
    turns: list[str] = []

    def measure(one: Contestant, effort: Effort) -> Measurement:
        turns.append(one.name)
        return Measurement(float(len(turns)))

    row = Row("r", "a row", "group", "calls/s", "higher", "stdio", measure)
    results = measured(row, contestant("a"), contestant("b"), rounds=3)
    assert turns == ["a", "b", "a", "b", "a", "b"]
    assert results.rows["r"].values("a") == {1: 1, 2: 3, 3: 5}
    assert results.rows["r"].values("b") == {1: 2, 2: 4, 3: 6}


def test_a_contestant_without_the_row_s_program_is_left_out() -> None:
    row = Row("r", "a row", "group", "calls/s", "higher", "stdio", lambda one, effort: Measurement(1.0))
    results = measured(row, contestant("a"), contestant("b", program="import"))
    assert list(results.rows["r"].figures) == ["a"]
    assert not results.rows["r"].failures


def test_a_failure_is_recorded_and_ends_the_contestant_s_part_in_the_row() -> None:
    attempts = itertools.count(1)
    said: list[str] = []

    def measure(one: Contestant, effort: Effort) -> Measurement:
        if one.name == "a" and next(attempts):
            raise BenchmarkError("wrong")
        return Measurement(1.0)

    row = Row("r", "a row", "group", "calls/s", "higher", "stdio", measure)
    results = measured(row, contestant("a"), contestant("b"), rounds=2, said=said)
    assert results.rows["r"].failures == {"a": "wrong"}
    assert next(attempts) == 2
    assert list(results.rows["r"].values("b")) == [1, 2]
    assert said[0] == "round 1 of 2, r, a: FAILED: wrong"
    assert said[1] == "round 1 of 2, r, b: 1.000 calls/s"


def test_what_is_no_benchmark_error_is_a_bug_of_the_harness_and_passes() -> None:
    def measure(one: Contestant, effort: Effort) -> Measurement:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        measured(Row("r", "a row", "group", "calls/s", "higher", "stdio", measure), contestant("a"))


@pytest.mark.parametrize(
    ("better", "bound", "met"),
    [("higher", 3.0, True), ("higher", 3.1, False), ("lower", 3.0, True), ("lower", 2.9, False)],
)
def test_a_goal_against_a_contestant_is_judged_by_the_median_of_the_rounds(
    better: Better, bound: float, met: bool
) -> None:
    row = row_results(better, mcpcore=[20, 30, 90], mcp=[10, 10, 10])
    judged = verdict(row, "mcpcore", Goal(bound, "mcp"))
    assert judged is not None
    assert judged.reached == Spread(2, 3, 9)
    assert judged.met is met


@pytest.mark.parametrize(("better", "bound", "met"), [("lower", 30, True), ("lower", 29, False), ("higher", 30, True)])
def test_an_absolute_goal_is_judged_by_the_row_s_own_figure(better: Better, bound: float, met: bool) -> None:
    judged = verdict(row_results(better, mcpcore=[20, 30, 90]), "mcpcore", Goal(bound))
    assert judged is not None
    assert judged.met is met


def test_a_bound_on_a_detail_is_an_upper_bound() -> None:
    row = row_results("higher", mcpcore=[20, 30, 90])
    for bound, met in ((3.0, True), (2.9, False)):
        judged = verdict(row, "mcpcore", Goal(bound, detail="linearity"))
        assert judged is not None
        assert judged.met is met


def test_a_goal_is_not_judged_without_figures() -> None:
    assert verdict(row_results(mcp=[1.0]), "mcpcore", Goal(1)) is None
    assert verdict(row_results(mcpcore=[1.0]), "mcpcore", Goal(1, "mcp")) is None
