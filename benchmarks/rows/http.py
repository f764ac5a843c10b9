"""What clients see of a server that listens: HTTP/1.1 on the loopback interface, one process, one event loop.

Every Python contestant is run by the same uvicorn, with uvloop and httptools. Servers reply with JSON where they can be
told to, which is the faster form everywhere; the rows named ``…-default`` leave it to them.
"""

from functools import partial
from typing import Final, Literal

from benchmarks import traffic
from benchmarks.rows import shapes
from benchmarks.rows.shapes import LINEAR, SMOKE_CALLS
from benchmarks.table import Contestant, Effort, Goal, Measurement, Row
from mcpcore.bench.http_driver import HTTPServer

__all__ = ["ROWS"]

CALLS: Final = 1000
STEPS: Final = 500
SETTLING: Final = 200  # sessions before the first look at memory, so that what comes once is not counted
SESSIONS: Final = 9700  # with those before, below the limit of 10 000 that mcpcore has
SMOKE_SESSIONS: Final = 10


def server(
    contestant: Contestant,
    tools: int = 0,
    *,
    state: Literal["stateless", "sessions"] = "stateless",
    replies: Literal["json", "default"] = "json",
) -> HTTPServer:
    """Start the contestant's server. Modern clients are served alike in both states."""
    argv = (*contestant.programs["http"], str(tools), state, replies, "1")
    return HTTPServer(argv, sessions=state == "sessions")


rate = partial(shapes.rate, program="http", start=server)
payload = partial(rate, group="payloads over HTTP", era="modern")
sessions = partial(server, state="sessions")


def measure_memory(contestant: Contestant, effort: Effort) -> Measurement:
    with server(contestant, 1) as process:
        process.open("modern")
        opened, _ = process.memory()
        process.run(traffic.add("add_0"), SMOKE_CALLS if effort.smoke else CALLS)
        called, _ = process.memory()
    return Measurement(called, {"RSS MiB after the first reply": opened})


def measure_session(contestant: Contestant, effort: Effort) -> Measurement:
    settling, count = (SMOKE_SESSIONS, SMOKE_SESSIONS) if effort.smoke else (SETTLING, SESSIONS)
    with sessions(contestant) as process:
        process.open("legacy")
        process.open_sessions(settling, traffic.add())
        before, _ = process.memory()
        process.open_sessions(count, traffic.add())
        after, _ = process.memory()
        # One of those that were opened first is used again, beside all the others.
        beside = process.run(traffic.add(), SMOKE_CALLS if effort.smoke else CALLS)
    details = {"RSS MiB before": before, "RSS MiB after": after, "calls/s beside them": beside.rate}
    return Measurement((after - before) * 1024 / count, details)


ROWS: Final = (
    rate("http-1", "HTTP, one connection", traffic.add(), group="HTTP calls", era="modern"),
    rate(
        "http-16",
        "HTTP, 16 connections",
        traffic.add(),
        group="HTTP calls",
        era="modern",
        window=16,
        goals=(Goal(5, "mcp"), Goal(0.5, "bare")),
    ),
    rate(
        "http-16-default",
        "HTTP, 16 connections, replies as the server likes",
        traffic.add(),
        group="HTTP calls",
        era="modern",
        window=16,
        start=partial(server, replies="default"),
    ),
    rate(
        "http-stateless-16",
        "legacy HTTP without sessions, 16 connections",
        traffic.add(),
        group="legacy HTTP calls",
        window=16,
        goals=(Goal(15, "mcp"),),
    ),
    rate(
        "http-sessions-16",
        "legacy HTTP, 16 connections with a session each",
        traffic.add(),
        group="legacy HTTP calls",
        window=16,
        start=sessions,
        goals=(Goal(4, "mcp"),),
    ),
    rate(
        "http-sessions-16-default",
        "legacy HTTP, 16 connections with a session each, replies as the server likes",
        traffic.add(),
        group="legacy HTTP calls",
        window=16,
        start=partial(sessions, replies="default"),
    ),
    rate(
        "http-sync-16",
        "HTTP, a handler without async, 16 connections",
        traffic.add("add_sync"),
        group="kinds of HTTP calls",
        era="modern",
        window=16,
    ),
    rate(
        "http-unknown-16",
        "HTTP, an unknown tool, 16 connections",
        traffic.unknown_tool(),
        group="kinds of HTTP calls",
        era="modern",
        window=16,
    ),
    rate(
        "http-progress",
        f"HTTP, progress notifications, {STEPS} per call, as events",
        traffic.count(STEPS),
        group="kinds of HTTP calls",
        unit="notifications/s",
        era="modern",
        smoke_calls=2,
        start=partial(server, replies="default"),
    ),
    payload("http-echo-100", "100 bytes there and back over HTTP", traffic.echo(100)),
    payload("http-echo-10k", "10 000 bytes there and back over HTTP", traffic.echo(10_000)),
    payload("http-echo-1m", "1 000 000 bytes there and back over HTTP", traffic.echo(1_000_000), smoke_calls=5),
    rate(
        "http-list-1000",
        "tools/list with 1 000 tools over HTTP",
        traffic.listing(1000),
        group="HTTP lists",
        unit="lists/s",
        era="modern",
        tools=1000,
        smoke_calls=2,
        goals=(Goal(50, "fastmcp"),),
    ),
    shapes.growth(
        "http-result-64m",
        "a result of 64 000 000 bytes over HTTP",
        traffic.fill,
        program="http",
        start=server,
        group="large payloads over HTTP",
        era="modern",
        goals=(Goal(1.5), LINEAR),
    ),
    shapes.first_reply(
        "http-start",
        "spawn to the first reply over HTTP",
        program="http",
        start=server,
        group="start",
        era="modern",
    ),
    Row(
        "http-memory",
        f"resident memory of an HTTP server with one tool, after {CALLS} calls",
        "HTTP memory",
        "MiB",
        "lower",
        "http",
        measure_memory,
    ),
    Row(
        "http-session",
        "memory of a legacy HTTP session that is idle after one call",
        "HTTP memory",
        "KiB",
        "lower",
        "http",
        measure_session,
        (Goal(4),),
    ),
)
