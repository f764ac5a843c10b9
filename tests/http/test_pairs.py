"""The two ends of HTTP+SSE as a pair of channels, on real sockets.

`check_transport` is not for it: each message of the client is a request of its own, and nothing keeps requests in order. What
it checks beside the order of those is checked here.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import anyio
import pytest

from mcpcore.abc import Channel
from mcpcore.protocol.messages import Kind, Outgoing
from mcpcore.runtime.http import serve_http
from mcpcore.transports.http.client import SSEClientTransport
from mcpcore.transports.http.sse import SSEApp

pytestmark = pytest.mark.anyio

SIZES: Final = (2, 100, 4096, 65_535, 65_536, 65_537, 1_000_000, 5_000_000)


class Stopping:
    """All that `serve_http` wants of a server."""

    def on_stop(self, callback: Callable[[], Any]) -> None:
        """Nobody stops it."""


@asynccontextmanager
async def pair() -> AsyncGenerator[tuple[Channel, Channel]]:
    """Open a connection and yield its client's channel and its server's channel."""
    server: list[Channel] = []
    opened, done = anyio.Event(), anyio.Event()

    async def handler(channel: Channel) -> None:
        server.append(channel)
        opened.set()
        await done.wait()

    def make_app(host: str) -> SSEApp:
        return SSEApp(handler, _running)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            server_to_stop: Any = Stopping()
            serve: Any = partial(serve_http, server_to_stop, make_app, port=0)
            port = await tasks.start(serve)
            try:
                async with SSEClientTransport(f"http://127.0.0.1:{port}/sse").open() as client:
                    await opened.wait()
                    yield client, server[0]
            finally:
                done.set()
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def _running() -> AsyncGenerator[None]:
    yield


def text(size: int) -> bytes:
    """A JSON string of so many bytes, with characters that careless framing cuts at."""
    unit = "aé\u2028\u2029\x85".encode()
    return b'"' + unit * ((size - 2) // len(unit)) + b"x" * ((size - 2) % len(unit)) + b'"'


async def send(channel: Channel, messages: list[bytes]) -> None:
    for start in range(0, len(messages), 7):
        await channel.send([Outgoing(message, Kind.NOTIFICATION) for message in messages[start : start + 7]])


async def receive(channel: Channel, count: int) -> list[bytes]:
    received: list[bytes] = []
    while len(received) < count:
        received += [message.data for message in await channel.receive()]
    return received


async def test_messages_arrive_whole_and_once_in_both_directions_at_the_same_time() -> None:
    sent = [b'{"n":%d}' % number for number in range(300)] + [text(size) for size in SIZES]
    got: dict[str, list[bytes]] = {}

    async def take(name: str, channel: Channel) -> None:
        got[name] = await receive(channel, len(sent))

    async with pair() as (client, server), anyio.create_task_group() as tasks:
        for name, channel in (("client", client), ("server", server)):
            tasks.start_soon(take, name, channel)
            tasks.start_soon(send, channel, sent)
    # The characters that some readers take for line ends come escaped: the same JSON.
    assert [len(message) for message in got["client"][:300]] == [len(message) for message in sent[:300]]
    assert got["client"][:300] == sent[:300]
    assert Counter(got["server"]) == Counter(sent)


async def test_what_was_sent_before_the_server_closes_arrives_and_then_the_client_learns_of_it() -> None:
    sent = [b'{"n":%d}' % number for number in range(100)]
    async with pair() as (client, server), anyio.create_task_group() as tasks:
        await send(server, sent)
        tasks.start_soon(server.aclose)
        assert await receive(client, len(sent)) == sent
        for _ in range(2):
            with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                await client.receive()


async def test_a_client_that_has_closed_is_noticed_by_who_receives_and_by_who_sends() -> None:
    async with pair() as (client, server):
        await client.aclose()
        with pytest.raises(anyio.BrokenResourceError):
            await server.receive()
        with pytest.raises(anyio.BrokenResourceError):
            await send(server, [b"{}"])
        for channel in (client, server):
            await channel.aclose()
            await channel.aclose()
            with pytest.raises(anyio.ClosedResourceError):
                await channel.receive()
            with pytest.raises(anyio.ClosedResourceError):
                await send(channel, [b"{}"])


@pytest.mark.parametrize("end", [0, 1], ids=["client", "server"])
async def test_closing_ends_a_receive_that_waits(end: int) -> None:
    async def wait(channel: Channel) -> None:
        with pytest.raises(anyio.ClosedResourceError):
            await channel.receive()

    async with pair() as channels, anyio.create_task_group() as tasks:
        tasks.start_soon(wait, channels[end])
        await anyio.wait_all_tasks_blocked()
        await channels[end].aclose()
