"""The driver measured by itself: the same load on a server that does nothing. No figure above that can be believed."""

import dataclasses
import sys
import tempfile
from pathlib import Path
from typing import Final

from msgspec import Struct

from mcpcore.bench import bare
from mcpcore.bench.driver import Driver
from mcpcore.bench.http_driver import HTTPServer
from mcpcore.bench.load import Load, Repeated, Tally
from mcpcore.bench.stdio_driver import StdioServer

__all__ = ["Ceiling", "measure_ceiling", "split_at_id"]

DIGITS: Final = 10
MARK: Final = b'"id":'
HTTP_REPLY: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
WARM_UP: Final = 0.1


class Ceiling(Struct, frozen=True):
    """What the driver reaches when the server costs next to nothing.

    Attributes:
        calls_per_second: In a closed loop with as many in flight.
        driver_cpu: Seconds of processor time that the driver spends on one call.
        seconds: How long that was measured.
    """

    calls_per_second: float
    driver_cpu: float
    seconds: float


def split_at_id(framed: bytes, number: int) -> tuple[bytes, bytes]:
    """Return what stands before and behind the id of a framed message."""
    mark = b"%b%d" % (MARK, number)
    at = framed.index(mark) + len(MARK)
    return framed[:at], framed[at + len(str(number)) :]


def measure_ceiling(transport: str, before: bytes, after: bytes, result: bytes, load: Load, seconds: float) -> Ceiling:
    """Put a load on a server that does nothing, in a closed loop.

    Args:
        transport: ``stdio`` or ``http``.
        before: What stands before the id in a framed request.
        after: What stands behind it.
        result: The result to reply with, as JSON.
        load: Which check, and how many in flight.
        seconds: How long.

    Raises:
        BenchmarkError: The server could not be started.
    """
    with (
        tempfile.TemporaryDirectory(prefix="mcpcore-bench-") as folder,
        _server(transport, after, result, Path(folder)) as server,
    ):
        if isinstance(server, HTTPServer):
            server.await_listening()
        requests = Repeated(before, after, load.first)
        alone = dataclasses.replace(
            load, requests=requests, rate=None, watch=None, refuse=None, withdraw=None, timeout=server.silence
        )
        server.work(dataclasses.replace(alone, seconds=min(WARM_UP, seconds)), Tally(strict=False))
        run = server.work(dataclasses.replace(alone, seconds=seconds), Tally(strict=False))
    return Ceiling(run.rate, run.driver_cpu / max(run.requests, 1), run.seconds)


def _server(transport: str, after: bytes, result: bytes, folder: Path) -> Driver:
    head, tail = b'{"jsonrpc":"2.0","id":', b',"result":%b}' % result
    program = [sys.executable, "-I", "-S", bare.__file__]
    texts = [str(folder / "before"), str(folder / "after")]
    if transport == "stdio":
        (folder / "before").write_bytes(head)
        (folder / "after").write_bytes(tail + b"\n")
        return StdioServer([*program, "stdio", str(len(after)), *texts])
    (folder / "before").write_bytes(HTTP_REPLY % (len(head) + DIGITS + len(tail)) + head)
    (folder / "after").write_bytes(tail)
    return HTTPServer([*program, "http", str(len(after)), *texts])
