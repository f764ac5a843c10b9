"""What every duplex transport has to do, as one function that checks it."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Final

import anyio
import anyio.lowlevel

from mcpcore.abc import Channel
from mcpcore.protocol.messages import Kind, Outgoing

__all__ = ["MakePair", "check_transport"]

MakePair = Callable[[], AbstractAsyncContextManager[tuple[Channel, Channel]]]
"""Opens a connection and yields its client's channel and its server's channel."""

_SIZES: Final = (2, 3, 100, 4095, 4096, 4097, 65_535, 65_536, 65_537, 1_000_000, 5_000_000)


async def check_transport(make_pair: MakePair, *, timeout: float = 30.0) -> None:
    """Check that the two ends of a transport keep the promises of `mcpcore.abc.Channel`.

    Each check opens a connection of its own. Run it on every event loop that the transport supports.

    Args:
        make_pair: Called for each check. The context it returns cleans up whatever the channels need.
        timeout: Seconds that one check may take.

    Raises:
        AssertionError: A promise is broken; a note says which one.
        TimeoutError: The same: something waits that should not.
    """
    for check in _CHECKS:
        try:
            with anyio.fail_after(timeout):
                async with make_pair() as (client, server):
                    await check(client, server)
        except (Exception, BaseExceptionGroup) as error:
            error.add_note(f"check_transport: {check.__doc__}")
            raise


async def _order(client: Channel, server: Channel) -> None:
    """Messages arrive whole, once, and in the order in which they were sent."""
    for sender, receiver in ((client, server), (server, client)):
        sent = [b'{"n":%d}' % number for number in range(2000)]
        received = await _transfer(sender, receiver, sent)
        assert received == sent


async def _sizes(client: Channel, server: Channel) -> None:
    """Messages of any size arrive unchanged, whatever characters they hold."""
    for sender, receiver in ((client, server), (server, client)):
        sent = [_text(size) for size in _SIZES]
        received = await _transfer(sender, receiver, sent)
        assert [len(message) for message in received] == list(_SIZES)
        assert received == sent


async def _both_ways(client: Channel, server: Channel) -> None:
    """Both sides can send a lot at the same time, each while it receives."""
    sent = [_text(size) for size in (100, 70_000)] * 50
    received: dict[str, list[bytes]] = {}

    async def receive(name: str, channel: Channel) -> None:
        received[name] = await _receive(channel, len(sent))

    async with anyio.create_task_group() as tasks:
        for name, channel in (("client", client), ("server", server)):
            tasks.start_soon(receive, name, channel)
            tasks.start_soon(_send_in_batches, channel, sent)
    assert received == {"client": sent, "server": sent}


async def _echo(client: Channel, server: Channel) -> None:
    """A message is delivered without another one having to follow it."""
    for number in range(100):
        message = b'{"n":%d}' % number
        await _send(client, message)
        assert await _receive(server, 1) == [message]
        await _send(server, message)
        assert await _receive(client, 1) == [message]


async def _send_while_receiving(client: Channel, server: Channel) -> None:
    """A side that waits in `receive` can send."""
    for one, other in ((client, server), (server, client)):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_receive, one, 1)
            await anyio.wait_all_tasks_blocked()
            await _send(one, b"[1]")
            assert await _receive(other, 1) == [b"[1]"]
            await _send(other, b"[2]")


async def _no_message(client: Channel, server: Channel) -> None:
    """The end of a request that was cancelled is no message on a duplex transport."""
    for sender, receiver in ((client, server), (server, client)):
        await sender.send([Outgoing(b"", Kind.END), Outgoing(b"{}", Kind.NOTIFICATION), Outgoing(b"", Kind.END)])
        await sender.send([Outgoing(b"", Kind.END)])
        await _send(sender, b"[]")
        assert await _receive(receiver, 2) == [b"{}", b"[]"]


async def _cancelled_receive(client: Channel, server: Channel) -> None:
    """Cancelling `receive` at any moment loses no message."""
    for sender, receiver in ((client, server), (server, client)):
        sent = [b'{"n":%d}' % number for number in range(200)]
        received: list[bytes] = []
        for number, message in enumerate(sent):
            async with anyio.create_task_group() as tasks:
                with anyio.CancelScope() as scope:
                    tasks.start_soon(_send_and_cancel, sender, message, number % 10, scope)
                    while True:
                        received += await _receive(receiver, 1)
        received += await _receive(receiver, len(sent) - len(received))
        assert received == sent


async def _send_and_cancel(sender: Channel, message: bytes, delay: int, scope: anyio.CancelScope) -> None:
    await _send(sender, message)
    for _ in range(delay):
        await anyio.lowlevel.checkpoint()
    scope.cancel()


async def _client_closes(client: Channel, server: Channel) -> None:
    """What the client sent before it closed arrives; then the server learns that nothing more will come."""
    await _half_close(client, server)


async def _server_closes(client: Channel, server: Channel) -> None:
    """What the server sent before it closed arrives; then the client learns that nothing more will come."""
    await _half_close(server, client)


async def _half_close(closing: Channel, other: Channel) -> None:
    sent = [b'{"n":%d}' % number for number in range(100)]
    await _send_in_batches(closing, sent)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(closing.aclose)  # may wait for what we do
        assert await _receive(other, len(sent)) == sent
        for _ in range(2):
            await _expect((anyio.EndOfStream, anyio.BrokenResourceError), other.receive)


async def _client_gone(client: Channel, server: Channel) -> None:
    """Sending to a client that has gone fails, and does not wait for ever."""
    await _breakage(client, server)


async def _server_gone(client: Channel, server: Channel) -> None:
    """Sending to a server that has gone fails, and does not wait for ever."""
    await _breakage(server, client)


async def _breakage(closing: Channel, other: Channel) -> None:
    async def send_for_ever() -> None:
        while True:  # a network needs some messages to notice
            await _send(other, _text(100_000))
            await anyio.lowlevel.checkpoint()

    await closing.aclose()
    await _expect(anyio.BrokenResourceError, send_for_ever)


async def _closed(client: Channel, server: Channel) -> None:
    """A channel that was closed on this side says so; closing it again, also at the same time, does nothing."""
    for channel in (client, server):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(channel.aclose)
            tasks.start_soon(channel.aclose)
        await channel.aclose()
        await _expect(anyio.ClosedResourceError, channel.receive)
        await _expect(anyio.ClosedResourceError, partial(_send, channel, b"{}"))


async def _client_closes_while_receiving(client: Channel, server: Channel) -> None:
    """Closing the client's channel ends its `receive` that waits."""
    await _close_while_receiving(client)


async def _server_closes_while_receiving(client: Channel, server: Channel) -> None:
    """Closing the server's channel ends its `receive` that waits."""
    await _close_while_receiving(server)


async def _close_while_receiving(channel: Channel) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_expect, anyio.ClosedResourceError, channel.receive)
        await anyio.wait_all_tasks_blocked()
        await channel.aclose()


_CHECKS: Final = (
    _order,
    _sizes,
    _both_ways,
    _echo,
    _send_while_receiving,
    _no_message,
    _cancelled_receive,
    _client_closes,
    _server_closes,
    _client_gone,
    _server_gone,
    _closed,
    _client_closes_while_receiving,
    _server_closes_while_receiving,
)


async def _send(channel: Channel, *messages: bytes) -> None:
    await channel.send([Outgoing(message, Kind.NOTIFICATION) for message in messages])


async def _send_in_batches(channel: Channel, messages: list[bytes]) -> None:
    for start in range(0, len(messages), 7):
        await _send(channel, *messages[start : start + 7])


async def _transfer(sender: Channel, receiver: Channel, messages: list[bytes]) -> list[bytes]:
    """Send and receive at the same time: a transport need not hold all of it."""
    received: list[bytes] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_send_in_batches, sender, messages)
        received += await _receive(receiver, len(messages))
    return received


async def _receive(channel: Channel, count: int) -> list[bytes]:
    received: list[bytes] = []
    while len(received) < count:
        messages = await channel.receive()
        assert messages, "receive() returned an empty list"
        for message in messages:
            assert message.problem is None, f"receive() reported {message.problem!r}"
            received.append(message.data)
    return received


async def _expect(
    expected: type[Exception] | tuple[type[Exception], ...], call: Callable[[], Awaitable[object]]
) -> None:
    try:
        outcome = await call()
    except expected:
        return
    raise AssertionError(f"expected {expected}, got {outcome!r}")


def _text(size: int) -> bytes:
    """A JSON string of so many bytes, with characters that careless framing cuts at."""
    inside = size - 2
    unit = "aé\u2028\u2029\x85".encode()
    return b'"' + unit * (inside // len(unit)) + b"x" * (inside % len(unit)) + b'"'
