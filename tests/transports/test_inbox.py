"""What a channel with several sources receives from."""

import anyio
import pytest

from mcpcore.exceptions import ConnectionLost
from mcpcore.protocol.messages import Incoming
from mcpcore.transports._inbox import Inbox

pytestmark = pytest.mark.anyio


def messages(*names: str) -> list[Incoming]:
    return [Incoming(name.encode()) for name in names]


async def test_all_that_is_there_is_received_at_once_and_in_order() -> None:
    inbox = Inbox()
    for message in messages("a", "b", "c"):
        await inbox.put(message)
    assert await inbox.receive() == messages("a", "b", "c")
    inbox.close()


async def test_whoever_puts_waits_while_the_receiver_is_far_behind() -> None:
    inbox = Inbox()
    done = anyio.Event()

    async def put() -> None:
        for number in range(2000):
            await inbox.put(Incoming(b"%d" % number))
        done.set()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(put)
            await anyio.wait_all_tasks_blocked()
            assert not done.is_set()
            received = 0
            while received < 2000:
                received += len(await inbox.receive())
    inbox.close()


async def test_what_came_before_a_failure_is_received_before_it_is_told() -> None:
    inbox = Inbox()
    await inbox.put(Incoming(b"a"))
    failure = ConnectionLost("gone")
    inbox.fail(failure)
    inbox.fail(ConnectionLost("later"))
    assert inbox.failure is failure
    assert await inbox.receive() == messages("a")
    with pytest.raises(anyio.BrokenResourceError) as caught:
        await inbox.receive()
    assert caught.value.__cause__ is failure
    await inbox.put(Incoming(b"b"))  # nobody will read it
    inbox.close()


@pytest.mark.parametrize("end", ["close", "fail"])
async def test_the_end_wakes_a_receiver_that_waits(end: str) -> None:
    inbox = Inbox()
    raised: list[BaseException] = []

    async def receive() -> None:
        try:
            await inbox.receive()
        except (anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            raised.append(error)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(receive)
            await anyio.wait_all_tasks_blocked()
            if end == "close":
                inbox.close()
            else:
                inbox.fail(ConnectionLost("gone"))
    assert [type(error) for error in raised] == [
        anyio.ClosedResourceError if end == "close" else anyio.BrokenResourceError
    ]
    inbox.close()


async def test_a_closed_inbox_has_nothing_and_takes_nothing() -> None:
    inbox = Inbox()
    await inbox.put(Incoming(b"a"))
    inbox.close()
    inbox.close()
    await inbox.put(Incoming(b"b"))
    with pytest.raises(anyio.ClosedResourceError):
        await inbox.receive()
