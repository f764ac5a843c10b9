"""The statistics of the benchmark."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.spread import Spread, percentile, ratios, spread

finite = st.floats(-1e9, 1e9)


def test_a_spread_has_least_median_and_most() -> None:
    assert spread([5.0, 1.0, 3.0]) == Spread(1.0, 3.0, 5.0)
    assert spread([1.0, 2.0]) == Spread(1.0, 1.5, 2.0)


def test_a_spread_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one value"):
        spread([])


@pytest.mark.parametrize(("percent", "expected"), [(50, 50), (99, 99), (99.5, 100), (100, 100), (1, 1), (0.1, 1)])
def test_a_percentile_is_the_value_at_the_nearest_rank(percent: float, expected: float) -> None:
    assert percentile([float(value) for value in range(1, 101)], percent) == expected


@given(st.lists(finite, min_size=1).map(sorted), st.integers(1, 100))
def test_at_least_that_share_of_the_values_does_not_exceed_the_percentile(ordered: list[float], percent: int) -> None:
    found = percentile(ordered, percent)
    assert found in ordered
    assert sum(value <= found for value in ordered) * 100 >= percent * len(ordered)
    assert sum(value < found for value in ordered) * 100 < percent * len(ordered)


@pytest.mark.parametrize("percent", [0, -1, 100.1])
def test_a_percentile_outside_of_its_range_is_refused(percent: float) -> None:
    with pytest.raises(ValueError, match="above 0 and at most 100"):
        percentile([1.0], percent)


def test_ratios_are_taken_within_a_round() -> None:
    assert ratios({1: 10.0, 2: 40.0}, {1: 5.0, 2: 10.0}) == Spread(2.0, 3.0, 4.0)


def test_rounds_that_only_one_side_has_are_left_out() -> None:
    assert ratios({1: 10.0, 2: 40.0}, {2: 10.0, 3: 1.0}) == Spread(4.0, 4.0, 4.0)


def test_there_is_no_ratio_without_a_shared_round() -> None:
    assert ratios({1: 10.0}, {2: 10.0}) is None
    assert ratios({1: 10.0}, {}) is None
