"""The check of transports finds what it is there to find."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from mcpcore.abc import Channel
from mcpcore.protocol.messages import Incoming, Kind, Outgoing
from mcpcore.testing.transports import Promises, Way, check_transport
from mcpcore.transports.memory import memory_pair

pytestmark = pytest.mark.anyio


class Faulty:
    """A channel that works. Subclasses break one promise each."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.info = channel.info

    async def receive(self) -> list[Incoming]:
        return await self.channel.receive()

    async def send(self, messages: list[Outgoing]) -> None:
        await self.channel.send(messages)

    async def aclose(self) -> None:
        await self.channel.aclose()


class Drops(Faulty):
    async def send(self, messages: list[Outgoing]) -> None:
        await super().send([message for message in messages if message.data != b'{"n":77}'])


class Duplicates(Faulty):
    async def send(self, messages: list[Outgoing]) -> None:
        await super().send(messages + [message for message in messages if message.data == b'{"n":77}'])


class Reorders(Faulty):
    async def send(self, messages: list[Outgoing]) -> None:
        await super().send(messages[::-1])


class Truncates(Faulty):
    async def send(self, messages: list[Outgoing]) -> None:
        await super().send([Outgoing(message.data[:65536], message.kind) for message in messages])


class CutsAtSeparators(Faulty):
    async def receive(self) -> list[Incoming]:
        messages = await super().receive()
        return [Incoming(line.encode()) for message in messages for line in message.data.decode().splitlines()]


class HoldsTheLastMessage(Faulty):
    held: list[Outgoing] = []  # noqa: RUF012 - replaced, never changed

    async def send(self, messages: list[Outgoing]) -> None:
        *now, last = [*self.held, *messages]
        self.held = [last]
        await super().send(now)


class HalfDuplex(Faulty):
    """One cannot send while one waits to receive."""

    lock: Any = None

    async def receive(self) -> list[Incoming]:
        self.lock = self.lock or anyio.Lock()
        async with self.lock:
            return await super().receive()

    async def send(self, messages: list[Outgoing]) -> None:
        self.lock = self.lock or anyio.Lock()
        async with self.lock:
            await super().send(messages)


class SendsEnds(Faulty):
    async def send(self, messages: list[Outgoing]) -> None:
        await super().send([Outgoing(message.data or b"{}", Kind.NOTIFICATION) for message in messages])


class ReturnsNothing(Faulty):
    calls = 0

    async def receive(self) -> list[Incoming]:
        self.calls += 1
        return await super().receive() if self.calls % 2 else []


class LosesWhenCancelled(Faulty):
    async def receive(self) -> list[Incoming]:
        messages = await super().receive()
        await anyio.lowlevel.checkpoint()
        return messages


class DropsAtTheEnd(Faulty):
    closing: Any = None

    async def send(self, messages: list[Outgoing]) -> None:
        if messages[0].data == b'{"n":98}':
            self.closing = messages
        else:
            await super().send(messages)


class HidesTheEnd(Faulty):
    async def receive(self) -> list[Incoming]:
        try:
            return await super().receive()
        except anyio.EndOfStream:
            await anyio.sleep_forever()
            raise


class HidesBreakage(Faulty):
    async def send(self, messages: list[Outgoing]) -> None:
        try:
            await super().send(messages)
        except anyio.BrokenResourceError:
            pass


class ClosesOnce(Faulty):
    closed = False

    async def aclose(self) -> None:
        if self.closed:
            raise anyio.ClosedResourceError
        self.closed = True
        await super().aclose()


class LooksBroken(Faulty):
    async def send(self, messages: list[Outgoing]) -> None:
        try:
            await super().send(messages)
        except anyio.ClosedResourceError:
            raise anyio.BrokenResourceError from None


class LooksEnded(Faulty):
    async def receive(self) -> list[Incoming]:
        try:
            return await super().receive()
        except anyio.ClosedResourceError:
            raise anyio.EndOfStream from None


@pytest.mark.parametrize("faulty", Faulty.__subclasses__())
@pytest.mark.parametrize("side", ["client", "server"])
async def test_a_broken_promise_is_found(faulty: type[Faulty], side: str) -> None:
    @asynccontextmanager
    async def make_pair() -> AsyncGenerator[tuple[Channel, Channel]]:
        client, server = memory_pair()
        yield (faulty(client), server) if side == "client" else (client, faulty(server))

    with pytest.raises((Exception, BaseExceptionGroup)) as caught:
        await check_transport(make_pair, timeout=0.5)
    assert any(note.startswith("check_transport: ") for note in caught.value.__notes__)


async def test_a_channel_that_keeps_all_promises_passes() -> None:
    @asynccontextmanager
    async def make_pair() -> AsyncGenerator[tuple[Channel, Channel]]:
        client, server = memory_pair()
        yield Faulty(client), Faulty(server)

    await check_transport(make_pair)


class Respells(Faulty):
    async def send(self, messages: list[Outgoing]) -> None:
        await super().send([Outgoing(message.data.replace(b":", b": "), message.kind) for message in messages])


Broken = tuple[type[Faulty], Way]

NOT_PROMISED: list[Broken] = [
    (Reorders, Way(ordered=False)),
    (Respells, Way(verbatim=False)),
    (HidesTheEnd, Way(ends=False)),
    (HidesBreakage, Way(breaks=False)),
]


@pytest.mark.parametrize(("faulty", "way"), NOT_PROMISED)
async def test_what_is_not_promised_is_not_asked_and_named(faulty: type[Faulty], way: Way) -> None:
    @asynccontextmanager
    async def make_pair() -> AsyncGenerator[tuple[Channel, Channel]]:
        client, server = memory_pair()
        yield faulty(client), faulty(server)

    left_out = await check_transport(make_pair, Promises(way, way))
    expected = [f"{direction}: " for direction in ("to_server", "to_client")] if not (way.ends and way.breaks) else []
    assert [each[: each.index(":") + 2] for each in left_out] == expected
    with pytest.raises((Exception, BaseExceptionGroup)):
        await check_transport(make_pair, Promises(way, Way()), timeout=0.5)


@pytest.mark.parametrize("faulty", [Drops, Duplicates, Truncates])
async def test_without_an_order_messages_still_arrive_whole_and_once(faulty: type[Faulty]) -> None:
    @asynccontextmanager
    async def make_pair() -> AsyncGenerator[tuple[Channel, Channel]]:
        client, server = memory_pair()
        yield faulty(client), server

    anything = Way(ordered=False, verbatim=False, ends=False, breaks=False)
    with pytest.raises((Exception, BaseExceptionGroup)) as caught:
        await check_transport(make_pair, Promises(anything, anything), timeout=0.5)
    assert any(note.startswith("check_transport: ") for note in caught.value.__notes__)
