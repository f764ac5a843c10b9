"""What a host sees of a server that it starts on pipes."""

import statistics
import subprocess
from functools import partial
from typing import Final

from benchmarks import traffic
from benchmarks.rows import shapes
from benchmarks.rows.shapes import LINEAR, SMOKE_CALLS, STARTS
from benchmarks.table import BenchmarkError, Contestant, Effort, Goal, Measurement, Row
from mcpcore.bench.driver import environment
from mcpcore.bench.stdio_driver import StdioServer

__all__ = ["ROWS"]

MEMORY_CALLS: Final = 1000
STEPS: Final = 500

ONE_AT_A_TIME: Final = (Goal(6, "mcp"), Goal(1.6, "typescript"))
IN_FLIGHT: Final = (Goal(30, "mcp"), Goal(2.8, "typescript"))
START: Final = (Goal(0.25, "mcp"), Goal(1, "typescript"))


def server(contestant: Contestant, tools: int = 0) -> StdioServer:
    return StdioServer((*contestant.programs["stdio"], str(tools)))


rate = partial(shapes.rate, program="stdio", start=server)
start = partial(shapes.first_reply, program="stdio", start=server, group="start", goals=START)
growth = partial(shapes.growth, program="stdio", start=server, group="large payloads")


def measure_import(contestant: Contestant, effort: Effort) -> Measurement:
    taken: list[float] = []
    for _ in range(1 if effort.smoke else STARTS):
        done = subprocess.run(
            contestant.programs["import"], capture_output=True, text=True, check=False, timeout=60, env=environment()
        )
        if done.returncode:
            raise BenchmarkError(f"the import failed:\n{done.stderr[-2000:]}")
        taken.append(float(done.stdout) * 1000)
    return Measurement(statistics.median(taken))


def measure_memory(contestant: Contestant, effort: Effort) -> Measurement:
    with server(contestant, 1) as process:
        process.open("legacy")
        opened, _ = process.memory()
        process.run(traffic.add("add_0"), SMOKE_CALLS if effort.smoke else MEMORY_CALLS)
        called, _ = process.memory()
    return Measurement(called, {"RSS MiB after the handshake": opened})


ROWS: Final = (
    rate("call-1", "tools/call, one at a time", traffic.add(), group="calls", goals=ONE_AT_A_TIME),
    rate("call-32", "tools/call, 32 in flight", traffic.add(), group="calls", window=32, goals=IN_FLIGHT),
    rate("call-256", "tools/call, 256 in flight", traffic.add(), group="calls", window=256),
    rate(
        "call-1-modern",
        "tools/call of 2026-07-28, one at a time",
        traffic.add(),
        group="modern calls",
        era="modern",
        goals=ONE_AT_A_TIME,
    ),
    rate(
        "call-32-modern",
        "tools/call of 2026-07-28, 32 in flight",
        traffic.add(),
        group="modern calls",
        era="modern",
        window=32,
        goals=IN_FLIGHT,
    ),
    rate(
        "call-256-modern",
        "tools/call of 2026-07-28, 256 in flight",
        traffic.add(),
        group="modern calls",
        era="modern",
        window=256,
    ),
    rate("sync-1", "a handler without async, one at a time", traffic.add("add_sync"), group="kinds of calls"),
    rate(
        "sync-32", "a handler without async, 32 in flight", traffic.add("add_sync"), group="kinds of calls", window=32
    ),
    rate("structured-32", "a structured result, 32 in flight", traffic.locate(), group="kinds of calls", window=32),
    rate("unknown-32", "an unknown tool, 32 in flight", traffic.unknown_tool(), group="kinds of calls", window=32),
    rate(
        "invalid-32",
        "arguments that do not fit, 32 in flight",
        traffic.unfit_arguments(),
        group="kinds of calls",
        window=32,
    ),
    rate(
        "fail-32", "a handler that raises a tool error, 32 in flight", traffic.fail(), group="kinds of calls", window=32
    ),
    rate(
        "progress",
        f"progress notifications, {STEPS} per call",
        traffic.count(STEPS),
        group="kinds of calls",
        unit="notifications/s",
        smoke_calls=2,
    ),
    rate("echo-100", "100 bytes there and back", traffic.echo(100), group="payloads"),
    rate("echo-10k", "10 000 bytes there and back", traffic.echo(10_000), group="payloads"),
    rate("echo-1m", "1 000 000 bytes there and back", traffic.echo(1_000_000), group="payloads", smoke_calls=5),
    growth("echo-64m", "64 000 000 bytes there and back", traffic.echo, goals=(LINEAR,)),
    growth("result-64m", "a result of 64 000 000 bytes", traffic.fill, goals=(Goal(1.5), LINEAR)),
    rate("list-1", "tools/list with 1 tool", traffic.listing(1), group="lists", unit="lists/s", tools=1),
    rate(
        "list-100",
        "tools/list with 100 tools",
        traffic.listing(100),
        group="lists",
        unit="lists/s",
        tools=100,
        smoke_calls=5,
    ),
    rate(
        "list-1000",
        "tools/list with 1 000 tools",
        traffic.listing(1000),
        group="lists",
        unit="lists/s",
        tools=1000,
        smoke_calls=2,
        goals=(Goal(50, "fastmcp"),),
    ),
    start("start", "spawn to the reply to initialize", era="legacy"),
    start("start-modern", "spawn to the reply to server/discover", era="modern"),
    Row("import", "importing the server's class", "start", "ms", "lower", "import", measure_import),
    Row(
        "memory",
        f"resident memory with one tool, after {MEMORY_CALLS} calls",
        "memory",
        "MiB",
        "lower",
        "stdio",
        measure_memory,
        (Goal(34),),
    ),
)
