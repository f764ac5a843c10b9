"""The two ends of the HTTP transports as pairs of channels, on real sockets, and what they promise of what is asked.

Streamable HTTP has one channel for each message that a client sends. A legacy session with the stream that GET opens is what
comes nearest to a pair: what the client tells goes up in requests, what the server tells comes down that stream.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, Final

import anyio
import pytest

from mcpcore.abc import Channel, ChannelInfo, OneShotChannel
from mcpcore.protocol.messages import Incoming, Kind, Outgoing
from mcpcore.runtime.http import serve_http
from mcpcore.testing.transports import Promises, Way, check_transport
from mcpcore.transports.http import client as http_client
from mcpcore.transports.http.application import Application
from mcpcore.transports.http.client import HTTPClientTransport, SSEClientTransport
from mcpcore.transports.http.server import StreamableHTTPApp
from mcpcore.transports.http.sse import SSEApp
from tests.support.asgi import encoded, initialize

pytestmark = pytest.mark.anyio

LIMIT: Final = 30.0

UP: Final = Way(ordered=False)
"""Each message of the client is a request of its own, and nothing keeps requests in order."""

DOWN: Final = Way(verbatim=False)
"""Characters that some readers take for line ends come escaped."""


class Stopping:
    """All that `serve_http` wants of a server."""

    def on_stop(self, callback: Callable[[], Any]) -> None:
        """Nobody stops it."""


@asynccontextmanager
async def serving(app: Application) -> AsyncGenerator[int]:
    """Serve an application and yield the port."""

    def make_app(host: str) -> Application:
        return app

    server: Any = Stopping()
    serve: Any = partial(serve_http, server, make_app, port=0)
    with anyio.fail_after(LIMIT):
        async with anyio.create_task_group() as tasks:
            yield await tasks.start(serve)
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def lasting() -> AsyncGenerator[None]:
    yield


@asynccontextmanager
async def sse_pair() -> AsyncGenerator[tuple[Channel, Channel]]:
    """A client of HTTP+SSE and its server."""
    server: list[Channel] = []
    opened, done = anyio.Event(), anyio.Event()

    async def handler(channel: Channel) -> None:
        server.append(channel)
        opened.set()
        await done.wait()

    async with serving(SSEApp(handler, lasting)) as port:
        try:
            async with SSEClientTransport(f"http://127.0.0.1:{port}/sse").open() as client:
                await opened.wait()
                yield client, server[0]
        finally:
            done.set()


class SessionEnd:
    """A server's end of one session: what its exchanges bring comes in, what goes out goes down its standalone stream."""

    info = ChannelInfo("http")

    def __init__(self) -> None:
        self.session: Any = None
        self.app = StreamableHTTPApp(self.handle, lasting, on_session_end=self._ended)
        self._messages: list[Incoming] = []
        self._wake = anyio.Event()
        self._end: type[Exception] | None = None

    async def handle(self, channel: OneShotChannel) -> None:
        """Serve one exchange."""
        [message] = await channel.receive()
        if self.session is None:
            self.session = channel.info.session
            self.session.state = self
            result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
            answer = encoded({"jsonrpc": "2.0", "id": "init", "result": result})
            await channel.send([Outgoing(answer, Kind.RESPONSE, message.tag, "init")])
        elif b"notifications/initialized" not in message.data:
            self._messages.append(message)
            self._wake.set()

    def _ended(self, state: Any) -> None:
        self._end = self._end or anyio.BrokenResourceError
        self._wake.set()

    async def receive(self) -> list[Incoming]:
        while not self._messages or self._end is anyio.ClosedResourceError:
            if self._end is not None:
                raise self._end
            await self._wake.wait()
            self._wake = anyio.Event()
        messages, self._messages = self._messages, []
        return messages

    async def send(self, messages: list[Outgoing]) -> None:
        if self._end is not None:
            raise self._end
        await self.session.send(messages)

    async def aclose(self) -> None:
        self._end = anyio.ClosedResourceError
        self._wake.set()
        await self.app.sessions.end(self.session)


@asynccontextmanager
async def session_pair() -> AsyncGenerator[tuple[Channel, Channel]]:
    """A client of Streamable HTTP with an open session, and the server's end of that."""
    server = SessionEnd()
    async with serving(server.app) as port, HTTPClientTransport(f"http://127.0.0.1:{port}/mcp").open() as client:
        await client.send([Outgoing(encoded(initialize()), Kind.REQUEST, request_id="init", method="initialize")])
        await client.receive()
        initialized = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
        await client.send([Outgoing(initialized, Kind.NOTIFICATION, method="notifications/initialized")])
        await client.send([Outgoing(b"{}", Kind.NOTIFICATION)])  # waits for the stream to be open
        await server.receive()
        yield client, server


Pair = Callable[[], AbstractAsyncContextManager[tuple[Channel, Channel]]]

PAIRS: Final[dict[str, tuple[Pair, Promises, tuple[str, ...]]]] = {
    # how it is made, what it promises, and what is not asked of it for that reason
    "sse": (sse_pair, Promises(UP, DOWN), ()),
    "session": (
        session_pair,
        # Each request fails by itself, and a session that was lost may be opened again: the client's channel stays.
        Promises(Way(ordered=False, breaks=False), Way(verbatim=False, ends=False)),
        ("to_server: Sending to a receiver that has gone fails", "to_client: What was sent before the sender closed"),
    ),
}


@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", PAIRS)
async def test_the_ends_keep_what_is_promised(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "_LAST_WORDS", LIMIT)  # how long it is takes the machine as it is
    make_pair, promises, expected = PAIRS[name]
    left_out = await check_transport(make_pair, promises, timeout=LIMIT)
    assert len(left_out) == len(expected)
    assert all(each.startswith(start) for each, start in zip(left_out, expected, strict=True))
