"""Percentiles."""

import math
from collections.abc import Sequence

__all__ = ["percentile"]


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
