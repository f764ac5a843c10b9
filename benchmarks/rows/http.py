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
SETTLING: Final = 200  # sessions before the first look at memory, so that what comes once is not counted
SESSIONS: Final = 2000
SMOKE_SESSIONS: Final = 10


def server(
    contestant: Contestant,
    tools: int = 0,
    *,
    state: Literal["stateless", "sessions"] = "stateless",
    replies: Literal["json", "default"] = "json",
) -> HTTPServer:
    """Start the contestant's server. Modern clients are served alike in both states."""
    return HTTPServer((*contestant.programs["http"], str(tools), state, replies), sessions=state == "sessions")


rate = partial(shapes.rate, program="http", start=server)
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
    return Measurement((after - before) * 1024 / count, {"RSS MiB before": before, "RSS MiB after": after})


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
