"""What a measurement found, as data: what is printed, written as JSON and drawn comes from here."""

from array import array
from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from mcpcore.bench.latency import percentile
from mcpcore.bench.load import Failure, Tally

__all__ = ["DriverUse", "Interval", "Latency", "Report", "ServerUse", "distribution", "timeline", "warnings_of"]

PERCENTS: Final = tuple(100 - 100 / 2 ** (step / 2) for step in range(1, 48))
"""Where the distribution is looked at: ever closer to 100, as in a plot on a logarithmic scale."""

INTERVALS: Final = 60
SHORTEST: Final = 0.05  # seconds of an interval: with fewer replies in it a percentile says little
BUSY: Final = 0.9  # share of a core from which on the driver is what limits the figure
NEAR: Final = 0.8  # share of its ceiling from which on the same is true
KEPT_UP: Final = 0.98  # share of its rate that an open loop has to reach


class Latency(Struct, frozen=True):
    """Seconds from sending a call, or in an open loop from when it was due, to its reply."""

    min: float
    mean: float
    p50: float
    p90: float
    p99: float
    p99_9: float
    max: float

    @classmethod
    def of(cls, ordered: Sequence[float]) -> "Latency":
        """Sum up latencies in ascending order, at least one."""
        p50, p90, p99, p99_9 = (percentile(ordered, percent) for percent in (50, 90, 99, 99.9))
        return cls(ordered[0], sum(ordered) / len(ordered), p50, p90, p99, p99_9, ordered[-1])


class Interval(Struct, frozen=True):
    """A piece of the time.

    Attributes:
        start: Seconds since the load began.
        calls_per_second: Right replies that came in it, per second.
        p50, p99: Of their latencies, in seconds; None where none came.
    """

    start: float
    calls_per_second: float
    p50: float | None
    p99: float | None


class ServerUse(Struct, frozen=True):
    """What the server used, all of its processes together.

    Attributes:
        cpu_per_call: Seconds of processor time for each call that was answered, rightly or not.
        cpu: Cores that it kept busy on average.
        memory: Resident bytes after the load; pages that processes share are counted for each.
        peak_memory: The sum of the most that each process has had since it started.
        processes: How many there are.
    """

    cpu_per_call: float
    cpu: float
    memory: int
    peak_memory: int
    processes: int


class DriverUse(Struct, frozen=True):
    """What the measurement itself used.

    Attributes:
        busy: The share of the time in which the driver, which is one thread, was at work.
        ceiling: Calls per second that it reaches with the same messages, as many in flight, and a server that does nothing;
            None if that was not measured.
        late: Calls of an open loop that the driver held up for more than a millisecond.
        latest: The longest of these delays, in seconds.
    """

    busy: float
    ceiling: float | None
    late: int
    latest: float


class Report(Struct, frozen=True, kw_only=True):
    """What a measurement found.

    Attributes:
        target: What was measured, as it was given.
        tool, arguments: What was called.
        server: What the server calls itself.
        transport: ``stdio`` or ``http``.
        protocol_version: The revision that was spoken.
        concurrency: How many calls were in flight at most.
        rate: Calls per second that were to be sent; None for a closed loop.
        warm_up: Seconds before the clock ran.
        seconds: From the first call to the last reply.
        sent: Calls.
        calls: Those of them that were answered rightly. All other figures are about these.
        calls_per_second: `calls` by `seconds`.
        failed: Wrong, missing and superfluous replies.
        failures: The same by kind, with the first texts.
        latency: None where no call was answered rightly.
        percentiles: The distribution: pairs of per cent and seconds.
        timeline: The course of it.
        notifications, server_requests: What else the server sent.
        bytes_sent, bytes_received: With the framing.
        streamed: HTTP replies that were streams of events.
        reconnections: HTTP connections that had to be opened again.
        unsent: Calls of an open loop that were due in its time, and for which there was no room.
        server_use: None where it cannot be known.
        driver: The measurement itself.
        warnings: What makes the figures less than they seem.
        ended_by: Why it ended before its time; None if it did not.
        date: When it was.
        machine: Where it was: facts by name.
    """

    target: str
    tool: str
    arguments: dict[str, Any]
    server: str
    transport: str
    protocol_version: str
    concurrency: int
    rate: float | None
    warm_up: float
    seconds: float
    sent: int
    calls: int
    calls_per_second: float
    failed: int
    failures: dict[str, Failure]
    latency: Latency | None
    percentiles: list[tuple[float, float]]
    timeline: list[Interval]
    notifications: int
    server_requests: int
    bytes_sent: int
    bytes_received: int
    streamed: int
    reconnections: int
    unsent: int
    server_use: ServerUse | None
    driver: DriverUse
    warnings: list[str]
    ended_by: str | None
    date: str
    machine: dict[str, str]

    @property
    def is_right(self) -> bool:
        """Every call was answered rightly, and there was at least one."""
        return self.calls > 0 and not self.failed and self.ended_by is None


def distribution(ordered: Sequence[float]) -> list[tuple[float, float]]:
    """Return pairs of per cent and latency, as far up as there are enough latencies to tell them apart."""
    if not ordered:
        return []
    found: list[tuple[float, float]] = [(0.0, ordered[0])]
    for percent in PERCENTS:
        if (1 - percent / 100) * len(ordered) < 1:
            break
        found.append((percent, percentile(ordered, percent)))
    return [*found, (100.0, ordered[-1])]


def timeline(tally: Tally) -> list[Interval]:
    """Cut the time into pieces of equal length. Replies after the last whole piece belong to it."""
    if not tally.ended or tally.seconds <= 0:
        return []
    count = max(1, min(INTERVALS, int(tally.seconds / SHORTEST)))
    length = tally.seconds / count
    pieces = [array("d") for _ in range(count)]
    for ended, latency in zip(tally.ended, tally.latencies, strict=True):
        pieces[min(int(ended / length), count - 1)].append(latency)
    return [_interval(index * length, length, sorted(piece)) for index, piece in enumerate(pieces)]


def _interval(start: float, length: float, ordered: list[float]) -> Interval:
    if not ordered:
        return Interval(start, 0.0, None, None)
    return Interval(start, len(ordered) / length, percentile(ordered, 50), percentile(ordered, 99))


def warnings_of(
    *, calls_per_second: float, driver: DriverUse, rate: float | None, concurrency: int, tally: Tally
) -> list[str]:
    """Say what makes the figures less than they seem."""
    found: list[str] = []
    if driver.busy >= BUSY:
        found.append(f"the driver was busy {driver.busy:.0%} of the time: calls/s is a lower bound")
    elif rate is None and driver.ceiling and calls_per_second >= NEAR * driver.ceiling:
        found.append(
            f"calls/s is {calls_per_second / driver.ceiling:.0%} of what the driver reaches at all: it is a lower bound"
        )
    if rate is not None and tally.seconds and tally.sent / tally.seconds < KEPT_UP * rate and tally.unsent:
        found.append(
            f"{tally.sent / tally.seconds:,.0f} of {rate:g} calls/s could be sent with {concurrency} in flight, and "
            f"{tally.unsent:,} were due and never sent: the latencies are those of a growing queue, and depend on how "
            "long it grew"
        )
    if driver.late:
        found.append(
            f"{driver.late:,} of {tally.sent:,} calls were sent more than 1 ms late by the driver itself, the worst "
            f"{driver.latest * 1000:.1f} ms; their latencies include that"
        )
    return found
