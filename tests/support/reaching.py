"""One server, reached by clients in each way that needs no process of its own."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

from mcpcore import Server
from tests.support.sockets import serving
from tests.support.wires import Lines

__all__ = ["WAYS", "reached"]

WAYS: Final = ("memory", "lines", "http")


@asynccontextmanager
async def reached(server: Server, over: str) -> AsyncGenerator[Any]:
    """Yield what a client connects to: the server, lines on a pair of sockets as over stdio, or the URL of a real port."""
    if over == "http":
        async with serving(server) as port:
            yield f"http://127.0.0.1:{port}/mcp"
    else:
        yield Lines(server) if over == "lines" else server
