"""Lines on streams of bytes: the channel, Unix sockets, TCP."""

import asyncio
import socket
import stat
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import pytest

from mcpcore.abc import Channel
from mcpcore.exceptions import TransportError
from mcpcore.protocol.messages import Kind, Outgoing
from mcpcore.testing.transports import MakePair, check_transport
from mcpcore.transports.lines import (
    LineChannel,
    TCPClientTransport,
    TCPServerTransport,
    UnixClientTransport,
    UnixServerTransport,
)

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def socketpair_pair() -> AsyncGenerator[tuple[Channel, Channel]]:
    one, other = socket.socketpair()
    async with (
        await anyio.abc.UNIXSocketStream.from_socket(one) as client,
        await anyio.abc.UNIXSocketStream.from_socket(other) as server,
    ):
        yield LineChannel(client), LineChannel(server)


@asynccontextmanager
async def serving(server: Any) -> AsyncGenerator[tuple[Any, Callable[[], Awaitable[Channel]]]]:
    """Run a server transport; yields what it reports when it has started, and a function that accepts a channel."""
    send, accept = anyio.create_memory_object_stream[Channel](10)

    async def handler(channel: Channel) -> None:
        await send.send(channel)
        await done.wait()

    done = anyio.Event()
    async with send, accept, anyio.create_task_group() as tasks:
        where = await tasks.start(server.serve, handler)
        yield where, accept.receive
        done.set()
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def unix_pair(folder: Path) -> AsyncGenerator[tuple[Channel, Channel]]:
    async with (
        serving(UnixServerTransport(folder / "socket")) as (path, accept),
        UnixClientTransport(path).open() as client,
    ):
        yield client, await accept()


@asynccontextmanager
async def tcp_pair() -> AsyncGenerator[tuple[Channel, Channel]]:
    async with (
        serving(TCPServerTransport()) as (port, accept),
        TCPClientTransport("127.0.0.1", port).open() as client,
    ):
        yield client, await accept()


@pytest.fixture(params=["socketpair", "unix", "tcp"])
def make_pair(request: pytest.FixtureRequest, tmp_path: Path) -> MakePair:
    pairs: dict[str, MakePair] = {
        "socketpair": socketpair_pair,
        "unix": partial(unix_pair, tmp_path),
        "tcp": tcp_pair,
    }
    return pairs[request.param]


@pytest.fixture
async def calm_loop(anyio_backend: str) -> None:
    """On asyncio, the Unix sockets of anyio 4.16 complain to the loop, and to nobody else, when bytes arrive at the very
    moment of a cancellation. Nothing is lost by it, which `check_transport` proves."""
    if anyio_backend == "asyncio":
        asyncio.get_running_loop().set_exception_handler(complain_unless_harmless)


def complain_unless_harmless(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    if not isinstance(context.get("exception"), asyncio.InvalidStateError):
        pytest.fail(str(context))


async def test_it_keeps_the_promises_of_a_transport(make_pair: MakePair, calm_loop: None) -> None:
    await check_transport(make_pair)


class ScriptedStream(anyio.abc.ByteStream):
    """Yields these chunks, then its end; keeps what is sent."""

    def __init__(self, *chunks: bytes) -> None:
        self.chunks = list(chunks)
        self.sent: list[bytes] = []

    async def receive(self, max_bytes: int = 65536) -> bytes:
        if not self.chunks:
            raise anyio.EndOfStream
        return self.chunks.pop(0)

    async def send(self, item: bytes) -> None:
        self.sent.append(item)

    async def send_eof(self) -> None:
        raise NotImplementedError

    async def aclose(self) -> None:
        self.chunks.clear()


async def test_one_read_yields_all_lines_in_it() -> None:
    channel = LineChannel(ScriptedStream(b"1\n2\n3", b"4\n"))
    assert [message.data for message in await channel.receive()] == [b"1", b"2"]
    assert [message.data for message in await channel.receive()] == [b"34"]


async def test_an_unterminated_last_line_is_delivered_before_the_end() -> None:
    channel = LineChannel(ScriptedStream(b"1\n2"))
    assert [message.data for message in await channel.receive()] == [b"1"]
    assert [message.data for message in await channel.receive()] == [b"2"]
    for _ in range(2):
        with pytest.raises(anyio.EndOfStream):
            await channel.receive()


async def test_one_call_of_send_writes_once() -> None:
    stream = ScriptedStream()
    channel = LineChannel(stream)
    await channel.send([Outgoing(b"1", Kind.NOTIFICATION), Outgoing(b"", Kind.END), Outgoing(b"2", Kind.NOTIFICATION)])
    await channel.send([Outgoing(b"", Kind.END)])
    assert stream.sent == [b"1\n2\n"]


async def test_a_bad_line_arrives_as_the_problem_to_answer_and_the_next_ones_are_read() -> None:
    channel = LineChannel(ScriptedStream(b'1\n"\xff"\n' + b"x" * 20 + b"\n2\n"), max_message_size=10)
    messages = await channel.receive()
    assert [message.data for message in messages] == [b"1", b"", b"", b"2"]
    assert [getattr(message.problem, "code", None) for message in messages] == [None, -32700, -32600, None]


async def test_messages_say_where_they_came_from() -> None:
    async with tcp_pair() as (client, server):
        await client.send([Outgoing(b"1", Kind.NOTIFICATION)])
        (message,) = await server.receive()
    assert message.scope is not None
    assert message.scope.transport == server.info.transport == "tcp"
    assert message.scope.peer is not None
    assert message.scope.peer.startswith("127.0.0.1:")


async def test_a_unix_socket_belongs_to_the_user_and_is_removed_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    async with serving(UnixServerTransport(path)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not path.exists()


async def test_a_file_in_the_place_of_a_unix_socket_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    path.write_text("precious")
    with pytest.raises((OSError, ExceptionGroup)):
        async with serving(UnixServerTransport(path)):
            pass
    assert path.read_text() == "precious"


async def test_connecting_to_nobody_names_the_address(tmp_path: Path) -> None:
    with pytest.raises(TransportError, match="absent"):
        async with UnixClientTransport(tmp_path / "absent").open():
            pass
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(TransportError, match=str(port)):
        async with TCPClientTransport("127.0.0.1", port).open():
            pass


async def test_an_error_in_the_body_of_a_client_is_not_wrapped() -> None:
    async with serving(TCPServerTransport()) as (port, _):
        with pytest.raises(ZeroDivisionError):
            async with TCPClientTransport("127.0.0.1", port).open():
                raise ZeroDivisionError
