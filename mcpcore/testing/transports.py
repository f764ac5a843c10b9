"""What every transport that carries messages both ways has to do, as one function that checks it."""

from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Final

import anyio
import anyio.lowlevel
import msgspec
from msgspec import Struct

from mcpcore.abc import Channel
from mcpcore.protocol.messages import Kind, Outgoing

__all__ = ["MakePair", "Promises", "Way", "check_transport"]

MakePair = Callable[[], AbstractAsyncContextManager[tuple[Channel, Channel]]]
"""Opens a connection and yields its client's channel and its server's channel."""

_SIZES: Final = (2, 3, 100, 4095, 4096, 4097, 65_535, 65_536, 65_537, 1_000_000, 5_000_000)
_MANY: Final = 2000
_SEVERAL: Final = 200  # where each message may need a connection of its own


class Way(Struct, frozen=True):
    """What one direction promises. A stream of bytes promises all of it; other transports say what they do not.

    Args:
        ordered: Messages arrive in the order in which they were sent. Not where each travels by itself.
        verbatim: They arrive byte for byte. Otherwise as the same JSON.
        ends: What was sent before the sender closed arrives, and then the receiver learns that nothing more will come.
            Not where the receiver's channel outlives the sender.
        breaks: `Channel.send` fails once the receiver has gone. Not where that is told for each request by itself.
    """

    ordered: bool = True
    verbatim: bool = True
    ends: bool = True
    breaks: bool = True


class Promises(Struct, frozen=True):
    """What both directions of a transport promise.

    Args:
        to_server: From the client to the server.
        to_client: From the server to the client.
    """

    to_server: Way = Way()
    to_client: Way = Way()


class _Direction(Struct, frozen=True):
    """One direction of a connection that has been opened."""

    way: Way
    sender: Channel
    receiver: Channel


async def check_transport(
    make_pair: MakePair, promises: Promises | None = None, *, timeout: float = 30.0
) -> tuple[str, ...]:
    """Check that the two ends of a transport keep the promises of `mcpcore.abc.Channel`.

    Each check opens a connection of its own. Run it on every event loop that the transport supports.

    Args:
        make_pair: Called for each check. The context it returns cleans up whatever the channels need.
        promises: What the transport promises; everything when None.
        timeout: Seconds that one check may take.

    Returns:
        The checks that were left out because the transport does not promise that much, by direction and in words.

    Raises:
        AssertionError: A promise is broken; a note says which one.
        TimeoutError: The same: something waits that should not.
    """
    promises = promises or Promises()
    left_out: list[str] = []
    for check in _CHECKS:
        await _run(f"{check.__doc__}", make_pair, partial(_both, check, promises), timeout)
    for name, is_reversed in (("to_server", False), ("to_client", True)):
        way: Way = getattr(promises, name)
        for one_way, needs in _CHECKS_OF_A_WAY.items():
            what = f"{name}: {one_way.__doc__}"
            if needs is None or getattr(way, needs):
                await _run(what, make_pair, partial(_one, one_way, way, is_reversed), timeout)
            else:
                left_out.append(what)
    return tuple(left_out)


async def _run(
    what: str, make_pair: MakePair, check: Callable[[Channel, Channel], Awaitable[None]], timeout: float
) -> None:
    try:
        with anyio.fail_after(timeout):
            async with make_pair() as (client, server):
                await check(client, server)
    except (Exception, BaseExceptionGroup) as error:
        error.add_note(f"check_transport: {what}")
        raise


async def _both(check: "_Check", promises: Promises, client: Channel, server: Channel) -> None:
    await check(_Direction(promises.to_server, client, server), _Direction(promises.to_client, server, client))


async def _one(check: "_CheckOfAWay", way: Way, is_reversed: bool, client: Channel, server: Channel) -> None:
    await check(_Direction(way, server, client) if is_reversed else _Direction(way, client, server))


# -- of both directions at once ----------------------------------------------------------------------------------


async def _both_ways(up: _Direction, down: _Direction) -> None:
    """Both sides can send a lot at the same time, each while it receives."""
    sent = [_text(size) for size in (100, 70_000)] * 50
    received: dict[_Direction, list[bytes]] = {}

    async def receive(direction: _Direction) -> None:
        received[direction] = await _receive(direction.receiver, len(sent))

    async with anyio.create_task_group() as tasks:
        for direction in (up, down):
            tasks.start_soon(receive, direction)
            tasks.start_soon(_send_in_batches, direction.sender, sent)
    for direction in (up, down):
        _compare(direction, received[direction], sent)


async def _echo(up: _Direction, down: _Direction) -> None:
    """A message is delivered without another one having to follow it."""
    for number in range(100):
        message = b'{"n":%d}' % number
        for direction in (up, down):
            await _send(direction.sender, message)
            _compare(direction, await _receive(direction.receiver, 1), [message])


# -- of one direction ----------------------------------------------------------------------------------------------


async def _all_once(direction: _Direction) -> None:
    """Messages arrive whole, once, and in the order in which they were sent where that is promised."""
    sent = [b'{"n":%d}' % number for number in range(_MANY if direction.way.ordered else _SEVERAL)]
    _compare(direction, await _transfer(direction, sent), sent)


async def _sizes(direction: _Direction) -> None:
    """Messages of any size arrive unchanged, whatever characters they hold."""
    sent = [_text(size) for size in _SIZES]
    _compare(direction, await _transfer(direction, sent), sent)


async def _send_while_receiving(direction: _Direction) -> None:
    """A side that waits in `receive` can send."""
    one, other = direction.sender, direction.receiver
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_receive, one, 1)
        await anyio.wait_all_tasks_blocked()
        await _send(one, b"[1]")
        assert await _receive(other, 1) == [b"[1]"]
        await _send(other, b"[2]")


async def _no_message(direction: _Direction) -> None:
    """The end of a request that was cancelled is no message."""
    sender = direction.sender
    await sender.send([Outgoing(b"", Kind.END), Outgoing(b"{}", Kind.NOTIFICATION), Outgoing(b"", Kind.END)])
    await sender.send([Outgoing(b"", Kind.END)])
    await _send(sender, b"[]")
    _compare(direction, await _receive(direction.receiver, 2), [b"{}", b"[]"])


async def _cancelled_receive(direction: _Direction) -> None:
    """Cancelling `receive` at any moment loses no message."""
    sent = [b'{"n":%d}' % number for number in range(200)]
    received: list[bytes] = []
    for number, message in enumerate(sent):
        async with anyio.create_task_group() as tasks:
            with anyio.CancelScope() as scope:
                tasks.start_soon(_send_and_cancel, direction.sender, message, number % 10, scope)
                while True:
                    received += await _receive(direction.receiver, 1)
    received += await _receive(direction.receiver, len(sent) - len(received))
    _compare(direction, received, sent)


async def _send_and_cancel(sender: Channel, message: bytes, delay: int, scope: anyio.CancelScope) -> None:
    await _send(sender, message)
    for _ in range(delay):
        await anyio.lowlevel.checkpoint()
    scope.cancel()


async def _half_close(direction: _Direction) -> None:
    """What was sent before the sender closed arrives; then the receiver learns that nothing more will come."""
    sent = [b'{"n":%d}' % number for number in range(100)]
    await _send_in_batches(direction.sender, sent)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(direction.sender.aclose)  # may wait for what we do
        _compare(direction, await _receive(direction.receiver, len(sent)), sent)
        for _ in range(2):
            await _expect((anyio.EndOfStream, anyio.BrokenResourceError), direction.receiver.receive)


async def _breakage(direction: _Direction) -> None:
    """Sending to a receiver that has gone fails, and does not wait for ever."""

    async def send_for_ever() -> None:
        while True:  # a network needs some messages to notice
            await _send(direction.sender, _text(100_000))
            await anyio.lowlevel.checkpoint()

    await direction.receiver.aclose()
    await _expect(anyio.BrokenResourceError, send_for_ever)


async def _closed(direction: _Direction) -> None:
    """A channel that was closed on this side says so; closing it again, also at the same time, does nothing."""
    channel = direction.sender
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(channel.aclose)
        tasks.start_soon(channel.aclose)
    await channel.aclose()
    await _expect(anyio.ClosedResourceError, channel.receive)
    await _expect(anyio.ClosedResourceError, partial(_send, channel, b"{}"))


async def _close_while_receiving(direction: _Direction) -> None:
    """Closing a channel ends its own `receive` that waits."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_expect, anyio.ClosedResourceError, direction.sender.receive)
        await anyio.wait_all_tasks_blocked()
        await direction.sender.aclose()


_Check = Callable[[_Direction, _Direction], Awaitable[None]]
_CheckOfAWay = Callable[[_Direction], Awaitable[None]]

_CHECKS: Final[tuple[_Check, ...]] = (_both_ways, _echo)
_CHECKS_OF_A_WAY: Final[dict[_CheckOfAWay, str | None]] = {
    # check: the promise that it is about, where not every transport makes it
    _all_once: None,
    _sizes: None,
    _send_while_receiving: None,
    _no_message: None,
    _cancelled_receive: None,
    _half_close: "ends",
    _breakage: "breaks",
    _closed: None,
    _close_while_receiving: None,
}


def _compare(direction: _Direction, received: list[bytes], sent: list[bytes]) -> None:
    way = direction.way
    if not way.verbatim:
        received, sent = [_same(each) for each in received], [_same(each) for each in sent]
    if way.ordered:
        assert [len(message) for message in received] == [len(message) for message in sent]
        assert received == sent
    else:
        assert Counter(received) == Counter(sent)


def _same(message: bytes) -> bytes:
    """Return the JSON without the freedom that it leaves."""
    return msgspec.json.encode(msgspec.json.decode(message))


async def _send(channel: Channel, *messages: bytes) -> None:
    await channel.send([Outgoing(message, Kind.NOTIFICATION) for message in messages])


async def _send_in_batches(channel: Channel, messages: list[bytes]) -> None:
    for start in range(0, len(messages), 7):
        await _send(channel, *messages[start : start + 7])


async def _transfer(direction: _Direction, messages: list[bytes]) -> list[bytes]:
    """Send and receive at the same time: a transport need not hold all of it."""
    received: list[bytes] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_send_in_batches, direction.sender, messages)
        received += await _receive(direction.receiver, len(messages))
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
