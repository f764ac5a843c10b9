"""A response by itself: who writes, who waits, and what becomes of what cannot be written."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from mcpcore.protocol.messages import Kind, Outgoing
from mcpcore.transports.http.response import Response

pytestmark = pytest.mark.anyio


class Network:
    """What an ASGI server gives an application for one request whose client stays."""

    def __init__(self, send: Callable[[bytes], Any] | None = None) -> None:
        self.received = 0
        self.sent: list[bytes] = []
        self.left = anyio.Event()
        self._send = send

    async def receive(self) -> dict[str, Any]:
        self.received += 1
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        await anyio.lowlevel.checkpoint()
        body: bytes = message.get("body", b"")
        if self._send is not None:
            self._send(body)
        self.sent.append(body)


def event(data: bytes) -> Outgoing:
    return Outgoing(data, Kind.NOTIFICATION)


@asynccontextmanager
async def watched(network: Network) -> AsyncGenerator[Response]:
    """A response whose client is waited for; it must be over in time."""
    response = Response(network.send, modern=True)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(response.watch, network.receive, 60)
            await anyio.wait_all_tasks_blocked()
            yield response


async def test_a_stream_is_written_to_while_its_client_is_waited_for_undisturbed() -> None:
    network = Network()
    async with watched(network) as response:
        for number in range(3):
            response.put(event(b"%d" % number))
            response.wake()
            await anyio.wait_all_tasks_blocked()
        assert network.received == 1
        response.put(Outgoing(b"last", Kind.RESPONSE))
        response.wake()
    assert b"".join(network.sent) == b"data: 0\n\ndata: 1\n\ndata: 2\n\ndata: last\n\n"


async def test_what_is_put_in_at_once_is_written_at_once_by_one_task() -> None:
    network = Network()
    async with watched(network) as response:
        tasks = len(anyio.get_running_tasks())
        for number in range(100):
            response.put(event(b"%d" % number))
            response.wake()
        assert len(anyio.get_running_tasks()) == tasks + 1
        await anyio.wait_all_tasks_blocked()
        assert len(network.sent) == 2  # the head, and all of them
        network.left.set()
    assert response.is_lost


async def test_a_stream_that_cannot_be_written_is_given_up_and_said_so(caplog: pytest.LogCaptureFixture) -> None:
    def fail(body: bytes) -> None:
        if body:
            raise RuntimeError("a middleware of the host failed")

    network = Network(fail)
    async with watched(network) as response:
        response.put(event(b"1"))
        response.wake()
    assert response.is_lost
    assert "could not be written" in caplog.text and "a middleware of the host failed" in caplog.text
