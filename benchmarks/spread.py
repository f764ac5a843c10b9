"""The little statistics that the benchmark needs: percentiles of latencies, and the spread of a figure over rounds."""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

__all__ = ["Spread", "percentile", "ratios", "spread"]


class Spread(NamedTuple):
    """A figure over several rounds. With the extremes beside it a reader sees what the median is worth."""

    least: float
    median: float
    most: float


def spread(values: Sequence[float]) -> Spread:
    """Return least, median and most of ``values``.

    Raises:
        ValueError: There is no value.
    """
    if not values:
        raise ValueError("a spread needs at least one value")
    return Spread(min(values), statistics.median(values), max(values))


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return the smallest of ``ordered`` that at least ``percent`` per cent of the values do not exceed (nearest rank).

    Args:
        ordered: Values in ascending order, at least one.
        percent: Above 0, at most 100.

    Raises:
        ValueError: There is no value, or ``percent`` is out of range.
    """
    if not ordered:
        raise ValueError("a percentile needs at least one value")
    if not 0 < percent <= 100:
        raise ValueError(f"percent must be above 0 and at most 100, not {percent}")
    return ordered[math.ceil(len(ordered) * percent / 100) - 1]


def ratios(values: Mapping[int, float], baseline: Mapping[int, float]) -> Spread | None:
    """Return the spread of ``values`` ÷ ``baseline``, each taken within one round, or None where no round has both.

    Contestants alternate within a round, so whatever else the machine was doing fell on both sides of the division.
    """
    shared = [values[number] / baseline[number] for number in sorted(values) if baseline.get(number)]
    return spread(shared) if shared else None
