"""The little statistics that the benchmark needs: the spread of a figure over rounds."""

import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

__all__ = ["Spread", "ratios", "spread"]


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


def ratios(values: Mapping[int, float], baseline: Mapping[int, float]) -> Spread | None:
    """Return the spread of ``values`` ÷ ``baseline``, each taken within one round, or None where no round has both.

    Contestants alternate within a round, so whatever else the machine was doing fell on both sides of the division.
    """
    shared = [values[number] / baseline[number] for number in sorted(values) if baseline.get(number)]
    return spread(shared) if shared else None
