"""The channel on two descriptors, and every kind of descriptor that it may be given."""

import asyncio
import fcntl
import os
import pty
import socket
import sys
import tty
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import anyio
import anyio.lowlevel
import pytest

from mcpcore.abc import Channel
from mcpcore.protocol.messages import Kind, Outgoing
from mcpcore.testing.transports import MakePair, check_transport
from mcpcore.transports import _descriptors
from mcpcore.transports._descriptors import Input, Output
from mcpcore.transports.stdio import StdioChannel

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform == "win32", reason="descriptors of POSIX")]

MAX_SIZE = 8_000_000


class OwningChannel(StdioChannel):
    """Closes the descriptors that it was given, as a process does at its end."""

    def __init__(self, fd_in: int, fd_out: int) -> None:
        super().__init__(Input(fd_in), Output(fd_out), max_message_size=MAX_SIZE)
        self._fds = {fd_in, fd_out}

    async def aclose(self) -> None:
        await super().aclose()
        while self._fds:
            os.close(self._fds.pop())


@asynccontextmanager
async def channel_on(fd_in: int, fd_out: int) -> AsyncGenerator[StdioChannel]:
    channel = OwningChannel(fd_in, fd_out)
    try:
        yield channel
    finally:
        await channel.aclose()


@asynccontextmanager
async def pipes() -> AsyncGenerator[tuple[StdioChannel, StdioChannel]]:
    (read_1, write_1), (read_2, write_2) = os.pipe(), os.pipe()
    async with channel_on(read_1, write_2) as client, channel_on(read_2, write_1) as server:
        yield client, server


@asynccontextmanager
async def sockets() -> AsyncGenerator[tuple[StdioChannel, StdioChannel]]:
    """As Node starts a child: a pair of sockets for each direction."""
    ends = [end.detach() for pair in (socket.socketpair(), socket.socketpair()) for end in pair]
    async with channel_on(ends[0], ends[2]) as client, channel_on(ends[3], ends[1]) as server:
        yield client, server


@asynccontextmanager
async def one_socket() -> AsyncGenerator[tuple[StdioChannel, StdioChannel]]:
    """As a super-server starts a child: one socket for both directions."""
    one, other = (end.detach() for end in socket.socketpair())
    async with channel_on(one, one) as client, channel_on(other, other) as server:
        yield client, server


@asynccontextmanager
async def blocking_pipes() -> AsyncGenerator[tuple[StdioChannel, StdioChannel]]:
    """Pipes that cannot be opened once more."""
    with without_proc():
        async with pipes() as pair:
            yield pair


@asynccontextmanager
async def threads() -> AsyncGenerator[tuple[StdioChannel, StdioChannel]]:
    """Pipes that cannot be waited for, as on Windows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_descriptors, "CAN_WAIT", False)
        async with pipes() as pair:
            yield pair


@contextmanager
def without_proc() -> Generator[None]:
    """Let nothing be opened through /proc, as on other systems than Linux."""
    open_any = os.open

    def open_others(path: Any, *args: Any) -> int:
        if str(path).startswith("/proc/self/fd/"):
            raise FileNotFoundError(path)
        return open_any(path, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", open_others)
        yield


@pytest.mark.parametrize("make_pair", [pipes, sockets, one_socket, blocking_pipes, threads])
async def test_it_keeps_the_promises_of_a_transport(make_pair: MakePair) -> None:
    await check_transport(make_pair)


def note(data: bytes) -> Outgoing:
    return Outgoing(data, Kind.NOTIFICATION)


async def receive_all(channel: Channel) -> list[bytes]:
    found: list[bytes] = []
    with anyio.fail_after(5):
        while True:
            try:
                found += [message.data for message in await channel.receive()]
            except anyio.EndOfStream:
                return found


def null(flags: int = os.O_WRONLY) -> int:
    return os.open(os.devnull, flags)


# -- descriptors of every kind -----------------------------------------------------------------------------------


async def test_a_regular_file_is_read_to_its_end_and_written(tmp_path: Path) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    lines = [b'{"n":%d}' % number for number in range(50_000)]
    source.write_bytes(b"\n".join(lines))
    async with channel_on(os.open(source, os.O_RDONLY), os.open(target, os.O_CREAT | os.O_WRONLY)) as channel:
        assert await receive_all(channel) == lines
        await channel.send([note(b"1"), note(b"2")])
    assert target.read_bytes() == b"1\n2\n"


async def test_reading_a_regular_file_lets_other_tasks_run(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.write_bytes(b"1\n" * 200_000)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    async with channel_on(os.open(source, os.O_RDONLY), null()) as channel, anyio.create_task_group() as tasks:
        tasks.start_soon(count)
        await receive_all(channel)
        tasks.cancel_scope.cancel()
    assert turns > 2


async def test_the_null_device_is_at_its_end_and_swallows_messages() -> None:
    async with channel_on(null(os.O_RDONLY), null()) as channel:
        await channel.send([note(b"x" * 1_000_000)])
        assert await receive_all(channel) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
async def test_a_disk_that_is_full_breaks_the_channel() -> None:
    async with channel_on(null(os.O_RDONLY), os.open("/dev/full", os.O_WRONLY)) as channel:
        with pytest.raises(anyio.BrokenResourceError):
            await channel.send([note(b"1")])


async def test_a_named_pipe_is_read_by_readiness(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(fd, True)
    writer = os.open(path, os.O_WRONLY)
    received: list[bytes] = []
    async with channel_on(fd, null()) as channel:

        async def receive() -> None:
            received.extend(await receive_all(channel))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(receive)
            await anyio.wait_all_tasks_blocked()
            os.write(writer, b"1\n2")
            os.close(writer)
    assert received == [b"1", b"2"]


@pytest.mark.parametrize("reopened", [True, False])
async def test_a_terminal_is_read_and_written_by_readiness(reopened: bool) -> None:
    master, slave = pty.openpty()
    tty.setraw(slave)
    received: list[bytes] = []
    with nullcontext() if reopened else without_proc(), anyio.fail_after(5):
        async with channel_on(slave, os.dup(slave)) as channel:

            async def receive() -> None:
                received.extend(message.data for message in await channel.receive())

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(receive)
                await anyio.wait_all_tasks_blocked()
                os.write(master, b'{"a":1}\n')
            await channel.send([note(b'{"b":2}')])
            assert os.read(master, 100) == b'{"b":2}\n'
            os.close(master)
            with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                await channel.receive()
    assert received == [b'{"a":1}']


@pytest.mark.parametrize("kind", ["pipe", "socket", "terminal"])
async def test_descriptions_that_others_share_stay_blocking(kind: str) -> None:
    if kind == "pipe":
        fds = [fd for pair in (os.pipe(), os.pipe()) for fd in pair]
    elif kind == "socket":
        fds = [end.detach() for pair in (socket.socketpair(), socket.socketpair()) for end in pair]
    else:
        fds = [fd for pair in (pty.openpty(), pty.openpty()) for fd in pair]
    fd_in, other_in, other_out, fd_out = fds
    shared = os.dup(fd_in), os.dup(fd_out)
    socket.setdefaulttimeout(5.0)  # a program may do that, and sockets that it makes are non-blocking then
    try:
        async with channel_on(fd_in, fd_out) as channel:
            with anyio.fail_after(5):
                await channel.send([note(b"1")])
            assert [os.get_blocking(fd) for fd in shared] == [True, True]
    finally:
        socket.setdefaulttimeout(None)
        for fd in (*shared, other_in, other_out):
            os.close(fd)


async def test_a_peer_that_goes_without_having_read_breaks_the_channel() -> None:
    ours, its = socket.socketpair()
    ours.send(b"unread")
    its.close()
    async with channel_on(ours.detach(), null()) as channel:
        for _ in range(2):
            with pytest.raises(anyio.BrokenResourceError), anyio.fail_after(5):
                await channel.receive()


async def test_a_pipe_without_reader_breaks_the_channel() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    async with channel_on(null(os.O_RDONLY), writer) as channel:
        with pytest.raises(anyio.BrokenResourceError), anyio.fail_after(5):
            await channel.send([note(b"1")])


# -- waiting -----------------------------------------------------------------------------------------------------


async def test_reading_ahead_stops_when_nobody_takes_the_messages_and_goes_on_when_somebody_does() -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    line = b"x" * 999 + b"\n"
    async with channel_on(reader, null()) as channel:
        written = os.write(writer, line)
        with anyio.fail_after(5):
            assert len(await channel.receive()) == 1  # from here on the descriptor is watched
            while True:
                try:
                    written += os.write(writer, line)
                except BlockingIOError:
                    break
                await anyio.lowlevel.checkpoint()
                assert written < 4_000_000
            os.close(writer)
            messages = await receive_all(channel)
    assert len(messages) == written // len(line) - 1


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # elsewhere it is waited for anew
async def test_on_asyncio_the_descriptor_is_watched_once_while_somebody_takes_the_messages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop = asyncio.get_running_loop()
    watch = Mock(wraps=loop.add_reader)
    async with pipes() as (client, server):
        monkeypatch.setattr(loop, "add_reader", watch, raising=False)
        with anyio.fail_after(5):
            for _ in range(100):
                await client.send([note(b"x" * 50_000)])
                assert len(await server.receive()) == 1
        monkeypatch.undo()
    assert watch.call_count == 1


@pytest.mark.parametrize("make_pair", [pipes, sockets, blocking_pipes])
async def test_closing_ends_a_send_that_waits(make_pair: Any) -> None:
    async with make_pair() as (client, _):

        async def send() -> None:
            with pytest.raises(anyio.ClosedResourceError):
                await client.send([note(b"x" * 5_000_000)])

        with anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(send)
                await anyio.wait_all_tasks_blocked()
                await client.aclose()


async def test_a_loop_that_cannot_watch_descriptors_waits_for_each_read(
    anyio_backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def add_reader(*args: Any) -> None:
        raise NotImplementedError  # as the proactor loop of Windows says

    if anyio_backend == "asyncio":
        monkeypatch.setattr(asyncio.get_running_loop(), "add_reader", add_reader, raising=False)
    async with sockets() as (client, server):
        for data in (b"1", b"2"):
            await client.send([note(data)])
            with anyio.fail_after(5):
                assert [message.data for message in await server.receive()] == [data]


async def test_finish_takes_what_is_there_for_all_that_will_come() -> None:
    async with pipes() as (client, server):
        for data in (b"1", b"2"):
            await client.send([note(data)])
        server.finish()
        assert await receive_all(server) == [b"1", b"2"]


async def test_finish_ends_a_receive_that_waits() -> None:
    async with pipes() as (_, server):
        with anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(receive_all, server)
                await anyio.wait_all_tasks_blocked()
                server.finish()


async def test_a_line_without_end_is_delivered_by_finish() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"1\n2")
    async with channel_on(reader, null()) as channel:
        channel.finish()
        assert await receive_all(channel) == [b"1", b"2"]
    channel.finish()
    os.close(writer)


async def test_a_message_that_is_larger_than_all_buffers_arrives() -> None:
    message = b"x" * (MAX_SIZE - 1)
    async with pipes() as (client, server):
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.send, [note(message)])
                assert [incoming.data for incoming in await server.receive()] == [message]


@pytest.mark.skipif(not hasattr(fcntl, "F_GETPIPE_SZ"), reason="only Linux tells")
async def test_pipes_hold_a_long_message_in_one_piece_where_the_system_allows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with pipes() as (client, server):
        assert [fcntl.fcntl(fd, fcntl.F_GETPIPE_SZ) for fd in (client._input.fd, server._input.fd)] == [1024 * 1024] * 2
    monkeypatch.setattr(fcntl, "fcntl", Mock(side_effect=PermissionError))
    async with pipes() as (client, server):
        await client.send([Outgoing(b"{}", Kind.REQUEST)])
        assert [message.data for message in await server.receive()] == [b"{}"]


async def test_a_bad_line_arrives_as_the_problem_to_answer_and_the_next_ones_are_read() -> None:
    reader, writer = os.pipe()
    os.write(writer, b'1\n"\xff"\n2\n')
    os.close(writer)
    async with channel_on(reader, null()) as channel, anyio.create_task_group():
        messages = await channel.receive()
    assert [message.data for message in messages] == [b"1", b"", b"2"]
    assert [getattr(message.problem, "code", None) for message in messages] == [None, -32700, None]
