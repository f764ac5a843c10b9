"""Percentiles."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpcore.bench.latency import percentile

finite = st.floats(-1e9, 1e9)


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
