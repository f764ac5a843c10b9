"""The shapes of rows that every transport has: a rate, and the growth of the time for large payloads."""

import statistics
from collections.abc import Callable
from typing import Final

from benchmarks.table import Contestant, Effort, Goal, Measurement, Row
from mcpcore.bench.driver import Driver
from mcpcore.bench.traffic import Traffic

__all__ = ["LINEAR", "SMOKE_CALLS", "STARTS", "Start", "first_reply", "growth", "rate"]

SMOKE_CALLS: Final = 200
STARTS: Final = 5
"""Processes of which a figure about starting is the median."""

LARGE: Final = (1_000_000, 4_000_000, 16_000_000, 64_000_000)
LINEAR: Final = Goal(1.5, detail="linearity")

Start = Callable[[Contestant, int], Driver]
"""Starts a contestant's server: with the benchmark's tools, or, if the number is not 0, with so many that all add."""


def rate(
    name: str,
    title: str,
    asked: Traffic,
    *,
    program: str,
    start: Start,
    group: str,
    unit: str = "calls/s",
    window: int = 1,
    era: str = "legacy",
    tools: int = 0,
    smoke_calls: int = SMOKE_CALLS,
    goals: tuple[Goal, ...] = (),
) -> Row:
    """A row that counts how many requests per second are answered while ``window`` of them are in flight."""
    per_request = asked.notifications or 1

    def measure(contestant: Contestant, effort: Effort) -> Measurement:
        with start(contestant, tools) as server:
            server.open(era)
            if effort.smoke:
                run = server.run(asked, smoke_calls, window)
            else:
                run = server.run_for(asked, effort.seconds, window)
            details = {**run.details(), **server.details()}
        return Measurement(run.rate * per_request, details)

    return Row(name, title, group, unit, "higher", program, measure, goals)


def growth(
    name: str,
    title: str,
    asking: Callable[[int], Traffic],
    *,
    program: str,
    start: Start,
    group: str,
    era: str = "legacy",
    goals: tuple[Goal, ...] = (),
) -> Row:
    """A row that times one large request after growing ones, and compares the costs of a byte."""

    def measure(contestant: Contestant, effort: Effort) -> Measurement:
        sizes = LARGE[:2] if effort.smoke else LARGE
        seconds: dict[int, float] = {}
        with start(contestant, 0) as server:
            server.open(era)
            for size in sizes:
                # All sizes move the same number of bytes, so that the comparison does not rest on one short request.
                repeats = 1 if effort.smoke else LARGE[-1] // size
                seconds[size] = statistics.median(server.run(asking(size), repeats).latencies)
            _, peak = server.memory()
        # Compared with the next smaller size: small ones still fit the processor's caches, which makes a byte cheaper.
        linearity = (seconds[sizes[-1]] / sizes[-1]) / (seconds[sizes[-2]] / sizes[-2])
        details = {f"{size // 1_000_000} MB s": value for size, value in seconds.items()}
        return Measurement(seconds[sizes[-1]], {**details, "linearity": linearity, "peak RSS MiB": peak})

    return Row(name, title, group, "s", "lower", program, measure, goals)


def first_reply(
    name: str, title: str, *, program: str, start: Start, group: str, era: str, goals: tuple[Goal, ...] = ()
) -> Row:
    """A row that times spawning a server until its first reply is read."""

    def measure(contestant: Contestant, effort: Effort) -> Measurement:
        opened: list[float] = []
        cpu: list[float] = []
        for _ in range(1 if effort.smoke else STARTS):
            with start(contestant, 0) as server:
                server.open(era)
                opened.append(server.opened_after * 1000)
                cpu.append(server.cpu() * 1000)
        return Measurement(statistics.median(opened), {"server CPU ms": statistics.median(cpu)})

    return Row(name, title, group, "ms", "lower", program, measure, goals)
