"""The statistics of the benchmark."""

import pytest

from benchmarks.spread import Spread, ratios, spread


def test_a_spread_has_least_median_and_most() -> None:
    assert spread([5.0, 1.0, 3.0]) == Spread(1.0, 3.0, 5.0)
    assert spread([1.0, 2.0]) == Spread(1.0, 1.5, 2.0)


def test_a_spread_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one value"):
        spread([])


def test_ratios_are_taken_within_a_round() -> None:
    assert ratios({1: 10.0, 2: 40.0}, {1: 5.0, 2: 10.0}) == Spread(2.0, 3.0, 4.0)


def test_rounds_that_only_one_side_has_are_left_out() -> None:
    assert ratios({1: 10.0, 2: 40.0}, {2: 10.0, 3: 1.0}) == Spread(4.0, 4.0, 4.0)


def test_there_is_no_ratio_without_a_shared_round() -> None:
    assert ratios({1: 10.0}, {2: 10.0}) is None
    assert ratios({1: 10.0}, {}) is None
