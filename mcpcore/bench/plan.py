"""How to measure, and how far a measurement is."""

import math
from dataclasses import dataclass
from typing import Literal

__all__ = ["Phase", "Plan"]


@dataclass(frozen=True)
class Plan:
    """How to measure.

    Attributes:
        concurrency: Calls in flight: requests on stdio, connections over HTTP.
        seconds: No call is sent after this time; None for no limit, if there is a ``count``.
        count: Calls; None for as many as the time allows.
        warm_up: Seconds of the same load before the clock runs.
        rate: Calls per second of an open loop, in which the latency of a call counts from when it was due; None for a
            closed loop, which sends the next call when one has been answered.
        expect: What every reply has to say: the text of its blocks, one to a line, or its structured content as JSON. None
            for anything but an error.
        ceiling: Seconds for which the driver itself is measured; 0 leaves that out.

    Raises:
        ValueError: A number is out of its range.
    """

    concurrency: int = 10
    seconds: float | None = 5.0
    count: int | None = None
    warm_up: float = 1.0
    rate: float | None = None
    expect: str | None = None
    ceiling: float = 1.0

    def __post_init__(self) -> None:
        if self.concurrency < 1:
            raise ValueError("concurrency must be 1 or more")
        if self.count is not None and self.count < 1:
            raise ValueError("count must be 1 or more")
        if self.seconds is None and self.count is None:
            raise ValueError("give seconds or a count, or it would never end")
        for name, value in (("seconds", self.seconds), ("rate", self.rate)):
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"{name} must be more than 0")
        for name, value in (("warm_up", self.warm_up), ("ceiling", self.ceiling)):
            if not 0 <= value < math.inf:
                raise ValueError(f"{name} must be 0 or more")

    @property
    def requests(self) -> int | None:
        """How many calls there are to send at most."""
        limits = [self.count] if self.count is not None else []
        if self.rate is not None and self.seconds is not None:
            limits.append(max(1, int(self.rate * self.seconds)))
        return min(limits, default=None)


@dataclass(frozen=True)
class Phase:
    """How far a measurement is, for who wants to show it.

    Attributes:
        name: ``warm-up``, ``load`` or ``ceiling``.
        elapsed: Seconds of this phase.
        share: How much of it is done, from 0 to 1.
        calls: That were answered rightly in it.
        failed: That were not.
    """

    name: Literal["warm-up", "load", "ceiling"]
    elapsed: float
    share: float
    calls: int
    failed: int
