"""What a program sees that calls a server: in memory, where both ends are the contestant's, and over
pipes and HTTP to ``bare``.

The loop is in a program of the contestant's own (`benchmarks/contestants/calls.py`), because the call is measured as
its user writes it. It checks every result.
"""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from typing import Final, Literal

import msgspec

from benchmarks.peers import PROGRAMS
from benchmarks.table import BenchmarkError, Contestant, Effort, Goal, Measurement, Row
from mcpcore.bench.driver import environment
from mcpcore.bench.http_driver import HTTPServer

__all__ = ["ROWS"]

PATIENCE: Final = 60.0  # seconds beyond those of the measurement
BARE: Final = (sys.executable, str(PROGRAMS / "bare_server.py"), "0")


class Report(msgspec.Struct):
    """What a client program prints: how many calls succeeded in the measured seconds, and what they cost it."""

    calls: int
    seconds: float
    cpu: float


def calls(
    name: str,
    title: str,
    *,
    program: Literal["memory", "client", "http client"],
    group: str,
    era: str,
    window: int = 1,
    goals: tuple[Goal, ...] = (),
) -> Row:
    """A row that counts how many calls per second a client makes, with ``window`` of them at a time."""

    def measure(contestant: Contestant, effort: Effort) -> Measurement:
        seconds = 0.0 if effort.smoke else effort.seconds
        argv = (*contestant.programs[program], era, str(window), str(seconds))
        with other_side(program) as peer:
            report = run((*argv, *peer), seconds + PATIENCE)
        details = {"µs/call": report.seconds / report.calls * 1e6, "CPU µs/call": report.cpu / report.calls * 1e6}
        return Measurement(report.calls / report.seconds, details)

    return Row(name, title, group, "calls/s", "higher", program, measure, goals)


@contextmanager
def other_side(program: str) -> Generator[tuple[str, ...]]:
    """Have what a client program of a kind calls. Yields the arguments that tell it."""
    if program == "http client":
        with HTTPServer((*BARE, "stateless", "json", "1")) as server:
            server.open("modern")
            yield (f"http://127.0.0.1:{server.port}/mcp",)
    else:
        yield BARE if program == "client" else ()


def run(argv: tuple[str, ...], patience: float) -> Report:
    try:
        done = subprocess.run(argv, capture_output=True, check=False, timeout=patience, env=environment())
    except subprocess.TimeoutExpired:
        raise BenchmarkError(f"the client was not done after {patience:.0f} s") from None
    said = done.stderr[-2000:].decode(errors="replace").strip()
    if done.returncode:
        raise BenchmarkError(f"the client exited with status {done.returncode}; its standard error ends:\n{said}")
    try:
        return msgspec.json.decode(done.stdout, type=Report)
    except msgspec.DecodeError as error:
        raise BenchmarkError(f"the client printed no report ({error}): {done.stdout[:500]!r}") from error


in_memory = partial(calls, program="memory", group="in memory", goals=(Goal(4, "mcp"),))
over_pipes = partial(calls, program="client", group="clients")
over_http = partial(calls, program="http client", group="clients over HTTP", era="modern")

ROWS: Final = (
    in_memory("in-memory-modern", "calls of a server in the same process", era="modern"),
    in_memory("in-memory-legacy", "calls of a server in the same process, 2025-11-25", era="legacy"),
    over_pipes("client-1", "calls of the bare server, one at a time", era="legacy"),
    over_pipes("client-32", "calls of the bare server, 32 at a time", era="legacy", window=32),
    over_pipes("client-1-modern", "calls of 2026-07-28 of the bare server, one at a time", era="modern"),
    over_pipes("client-32-modern", "calls of 2026-07-28 of the bare server, 32 at a time", era="modern", window=32),
    over_http("client-http-1", "calls of the bare server over HTTP, one at a time"),
    over_http("client-http-16", "calls of the bare server over HTTP, 16 at a time", window=16),
)
