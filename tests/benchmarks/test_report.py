"""The report in words."""

import msgspec
import pytest

from benchmarks.report import markdown, number
from benchmarks.results import Figure, Results, RowResults
from benchmarks.rows import ROWS
from benchmarks.table import CONTESTANTS


def results(**rows: RowResults) -> Results:
    return Results({"CPU": "a chip"}, 2, 1.5, {"mcpcore": "1", "mcp": "2.3.0"}, {}, rows)


def figures(*values: float) -> list[Figure]:
    return [Figure(number, value, {"p50 µs": value / 2}, 0.0) for number, value in enumerate(values, 1)]


def report() -> str:
    entry = RowResults(
        "calls", "calls", "calls/s", "higher", {"mcpcore": figures(3000, 5000), "mcp": figures(100, 200)}
    )
    return markdown(results(**{"call-32": entry}), ROWS)


def test_figures_come_with_their_spread() -> None:
    assert "| call-32: calls | calls/s | higher | 4 000 (3 000 to 5 000) | 150 (100 to 200) |" in report().replace(
        "\N{NARROW NO-BREAK SPACE}", " "
    )


def test_multiples_of_the_baseline_are_taken_round_by_round() -> None:
    assert "| call-32 | higher | 27.5 (25 to 30) | 1 (1 to 1) |" in report()


def test_goals_are_judged_and_say_what_was_not_measured() -> None:
    assert "| call-32 | ≥ 30 times mcp | 27.5 (25 to 30) | **missed** |" in report()
    assert "| call-32 | ≥ 2.8 times typescript | — | not measured |" in report()


def test_details_are_medians_per_contestant() -> None:
    assert "| call-32 | mcp | 75 |" in report()


def test_a_failure_is_named_where_the_figure_would_be_and_explained_below() -> None:
    entry = RowResults("calls", "calls", "calls/s", "higher", {}, {"mcp": "wrong\nand more"})
    text = markdown(results(**{"call-32": entry}), ROWS)
    assert "| call-32: calls | calls/s | higher | — | failed |" in text
    assert text.endswith("## Failures\n\n- call-32, mcp: wrong\n")


def test_results_survive_being_written_as_json() -> None:
    entry = RowResults("calls", "calls", "calls/s", "higher", {"mcp": figures(1.0)}, {"mcpcore": "wrong"})
    before = results(**{"call-32": entry})
    assert msgspec.json.decode(msgspec.json.encode(before), type=Results) == before


@pytest.mark.parametrize(
    ("value", "expected"), [(0.01234, "0.0123"), (1.0, "1"), (27.46, "27.5"), (100.4, "100"), (205123.7, "205 124")]
)
def test_numbers_have_three_significant_digits_or_all_of_the_integral_part(value: float, expected: str) -> None:
    assert number(value).replace("\N{NARROW NO-BREAK SPACE}", " ") == expected


def test_goals_refer_to_contestants_that_exist() -> None:
    assert all(goal.against in (None, *CONTESTANTS) for row in ROWS.values() for goal in row.goals)
