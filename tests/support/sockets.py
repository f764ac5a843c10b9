"""A server on a real port, on either event loop, and HTTP by hand: byte by byte, read or not read, closed at any moment."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import h11
import msgspec
from anyio.abc import SocketStream

from mcpcore import Server
from mcpcore.protocol.framing import SSEDecoder

__all__ = ["LIMIT", "HTTPSocket", "connected", "head", "serving"]

LIMIT: Final = 10.0
"""Seconds for anything that a server does here."""


@asynccontextmanager
async def serving(server: Server, transport: Any = "http", **options: Any) -> AsyncGenerator[int]:
    """Serve on a free port, and yield the port. Ends in good order."""
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:

            async def serve(*, task_status: Any) -> None:
                await server.serve(transport, port=0, task_status=task_status, **options)

            yield await tasks.start(serve)
            tasks.cancel_scope.cancel()


def head(method: str, path: str, headers: Mapping[str, str], length: int | None = None) -> bytes:
    """The head of a request."""
    fields = {"host": "127.0.0.1", **headers}
    if length is not None:
        fields["content-length"] = str(length)
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1")


class HTTPSocket:
    """One connection of a client."""

    def __init__(self, stream: SocketStream) -> None:
        self.stream = stream
        self._parser = h11.Connection(h11.CLIENT)
        self._events = SSEDecoder()
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = bytearray()
        self.messages: list[Any] = []
        """The messages of the response that have come, whichever form it has."""
        self.ids: list[str] = []
        """The ids of its events."""
        self.is_complete = False

    async def send(self, data: bytes) -> None:
        """Send bytes."""
        with anyio.fail_after(LIMIT):
            await self.stream.send(data)

    async def request(self, method: str, headers: Mapping[str, str], message: Any = None, path: str = "/mcp") -> None:
        """Send a request, and get ready for the response."""
        body = b"" if message is None else message if isinstance(message, bytes) else msgspec.json.encode(message)
        await self.send(head(method, path, headers, len(body)) + body)
        self.expect(method)

    def expect(self, method: str = "POST") -> None:
        """Get ready for the response to a request that was sent by hand."""
        if self._parser.our_state is h11.DONE:
            self._parser.start_next_cycle()
        self._parser.send(h11.Request(method=method, target="/", headers=[("host", "x")]))
        self._parser.send(h11.EndOfMessage())
        self._events = SSEDecoder()
        self.status, self.headers, self.body, self.messages, self.ids = 0, {}, bytearray(), [], []
        self.is_complete = False

    async def wait_for(self, condition: Any) -> None:
        """Read until ``condition`` of this holds.

        Raises:
            EOFError: The server has closed the connection before.
        """
        with anyio.fail_after(LIMIT):
            while not condition(self):
                await self._read()

    async def finish(self) -> None:
        """Read the whole response."""
        await self.wait_for(lambda each: each.is_complete)

    async def _read(self) -> None:
        event = self._parser.next_event()
        if event is h11.NEED_DATA:
            try:
                self._parser.receive_data(await self.stream.receive(65536))
            except anyio.EndOfStream:
                self._parser.receive_data(b"")
        elif isinstance(event, h11.Response):
            self.status = event.status_code
            self.headers = {name.decode(): value.decode() for name, value in event.headers}
        elif isinstance(event, h11.Data):
            self._take(bytes(event.data))
        elif isinstance(event, h11.EndOfMessage):
            self.is_complete = True
            if self.headers.get("content-type") == "application/json":
                self.messages.append(msgspec.json.decode(bytes(self.body)))
        elif isinstance(event, h11.ConnectionClosed):
            raise EOFError("the server has closed the connection")

    @property
    def _is_stream(self) -> bool:
        return self.headers.get("content-type") == "text/event-stream"

    def _take(self, data: bytes) -> None:
        self.body += data
        if self._is_stream:
            for event in self._events.receive(data):
                assert not isinstance(event, Exception)
                if event.id:
                    self.ids.append(event.id)
                if event.data and event.event in ("", "message"):
                    self.messages.append(msgspec.json.decode(event.data))

    async def close(self) -> None:
        """Go away."""
        await self.stream.aclose()


@asynccontextmanager
async def connected(port: int) -> AsyncGenerator[HTTPSocket]:
    """Open a connection."""
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        yield HTTPSocket(stream)
