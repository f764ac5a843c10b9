"""Many clients of one machine: connections, processes, and streams that wait for changes."""

import resource
import statistics
from functools import partial
from typing import Final

from benchmarks import traffic
from benchmarks.crowd import Audience, Workers
from benchmarks.rows import http, shapes
from benchmarks.table import BenchmarkError, Contestant, Effort, Measurement, Row
from mcpcore.bench.latency import percentile

__all__ = ["ROWS"]

STREAMS: Final = 10_000
SMOKE_STREAMS: Final = 20
SPARE: Final = 200  # open files beside those of the streams
ANNOUNCEMENTS: Final = 5


def workers(contestant: Contestant, tools: int, *, count: int) -> Workers:
    return Workers((*contestant.programs["workers"], str(tools), "stateless", "json", str(count)))


def measure_subscriptions(contestant: Contestant, effort: Effort) -> Measurement:
    count = SMOKE_STREAMS if effort.smoke else STREAMS
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit < count + SPARE:
        raise BenchmarkError(f"{count} streams need {count + SPARE} open files, and the limit is {limit} (ulimit -Hn)")
    with Audience((*contestant.programs["listen"], "0", "stateless", "json", "1")) as server:
        server.open("modern")
        before, _ = server.memory()
        opened = server.listen(count)
        after, _ = server.memory()
        announced = [server.announce(traffic.announce()) for _ in range(1 if effort.smoke else ANNOUNCEMENTS)]
        server.leave()
    details = {
        "first ms": statistics.median(each[0] for each in announced) * 1000,
        "p50 ms": statistics.median(percentile(each, 50) for each in announced) * 1000,
        "p99 ms": statistics.median(percentile(each, 99) for each in announced) * 1000,
        "streams opened/s": count / opened,
        "KiB per stream": (after - before) * 1024 / count,
    }
    return Measurement(statistics.median(each[-1] for each in announced) * 1000, details)


connections = partial(
    shapes.rate, program="http", start=http.server, group="connections", era="modern", asked=traffic.add()
)
processes = partial(shapes.rate, program="workers", group="processes", era="modern", window=64, asked=traffic.add())

ROWS: Final = (
    connections("http-256", "HTTP, 256 connections", window=256, smoke_calls=256),
    connections("http-1000", "HTTP, 1 000 connections", window=1000, smoke_calls=1000),
    processes("http-workers-1", "HTTP, 64 connections, one process", start=partial(workers, count=1)),
    processes("http-workers-2", "HTTP, 64 connections, two processes", start=partial(workers, count=2)),
    Row(
        "subscriptions",
        f"from an announcement until the last of {STREAMS} streams of subscriptions/listen has it",
        "subscriptions",
        "ms",
        "lower",
        "listen",
        measure_subscriptions,
    ),
)
