"""The pair of channels in one process."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest

from mcpcore.abc import Channel
from mcpcore.protocol.messages import Kind, Outgoing
from mcpcore.testing.transports import check_transport
from mcpcore.transports.memory import memory_pair

pytestmark = pytest.mark.anyio


def note(data: bytes) -> Outgoing:
    return Outgoing(data, Kind.NOTIFICATION)


@asynccontextmanager
async def make_pair() -> AsyncGenerator[tuple[Channel, Channel]]:
    yield memory_pair()


async def test_it_keeps_the_promises_of_a_transport() -> None:
    await check_transport(make_pair)


async def test_what_was_sent_before_closing_is_received_before_the_end() -> None:
    one, other = memory_pair()
    await one.send([note(b"1"), note(b"2")])
    await one.aclose()
    assert [message.data for message in await other.receive()] == [b"1", b"2"]
    with pytest.raises(anyio.EndOfStream):
        await other.receive()
    with pytest.raises(anyio.BrokenResourceError):
        await other.send([note(b"3")])


async def test_all_that_waits_is_received_at_once() -> None:
    one, other = memory_pair()
    await one.send([note(b"1")])
    await one.send([note(b"2"), note(b"3")])
    assert [message.data for message in await other.receive()] == [b"1", b"2", b"3"]


@pytest.mark.parametrize("messages", [[note(b"x")] * 1025, [note(b"x" * 5_000_000)]], ids=["many", "large"])
async def test_sending_waits_while_the_other_side_is_far_behind(messages: list[Outgoing]) -> None:
    one, other = memory_pair()
    sent = anyio.Event()

    async def send() -> None:
        await one.send(messages)
        sent.set()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send)
            await anyio.wait_all_tasks_blocked()
            assert not sent.is_set()
            assert len(await other.receive()) == len(messages)
            await sent.wait()


@pytest.mark.parametrize(("closed", "error"), [(0, anyio.ClosedResourceError), (1, anyio.BrokenResourceError)])
async def test_closing_either_end_ends_a_send_that_waits(closed: int, error: type[Exception]) -> None:
    ends = memory_pair()

    async def send() -> None:
        with pytest.raises(error):
            await ends[0].send([note(b"x" * 5_000_000)])

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send)
            await anyio.wait_all_tasks_blocked()
            await ends[closed].aclose()


async def test_messages_say_that_they_came_through_memory() -> None:
    one, other = memory_pair()
    await one.send([note(b"1")])
    (message,) = await other.receive()
    assert message.scope is not None
    assert message.scope.transport == other.info.transport == "memory"


def test_a_pair_can_be_made_before_an_event_loop_runs(anyio_backend: str) -> None:
    one, other = memory_pair()

    async def talk() -> None:
        with anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(one.send, [note(b"1")])
                assert [message.data for message in await other.receive()] == [b"1"]

    anyio.run(talk, backend=anyio_backend)
