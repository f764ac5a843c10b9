"""What uvicorn writes, seen by a transport that takes note of it."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from mcpcore.runtime.joined_writes import join_writes

REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
LAST = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


class Noting(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.closed = False

    def write(self, data: Any) -> None:
        assert not self.closed
        self.writes.append(bytes(data))

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def pause_reading(self) -> None:
        """There is nothing to pause."""

    def resume_reading(self) -> None:
        """There is nothing to resume."""


def whole(size: int) -> Callable[..., Any]:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % size)]})
        await send({"type": "http.response.body", "body": b"x" * size})

    return app


@pytest.fixture(params=["h11", "httptools"])
def implementation(request: pytest.FixtureRequest) -> Iterator[str]:
    yield request.param


def serve(implementation: str, app: Any, *requests: bytes, turns: int = 1) -> Noting:
    """Return the transport after all requests have been answered, each with so many turns of the loop after it."""

    async def main() -> Noting:
        config = uvicorn.Config(app, http=implementation, lifespan="off", log_config=None)
        join_writes(config)
        transport, state = Noting(), ServerState()
        make_protocol: Any = config.http_protocol_class
        protocol = make_protocol(config, state, {})
        protocol.connection_made(transport)
        for request in requests:
            protocol.data_received(request)
            (task,) = state.tasks
            await task
            for _ in range(turns):
                await asyncio.sleep(0)
        if protocol.timeout_keep_alive_task is not None:
            protocol.timeout_keep_alive_task.cancel()
        return transport

    return asyncio.run(main())


def test_head_and_body_are_one_write(implementation: str) -> None:
    transport = serve(implementation, whole(5), REQUEST, REQUEST)
    assert len(transport.writes) == 2
    for write in transport.writes:
        assert write.startswith(b"HTTP/1.1 200") and write.endswith(b"\r\n\r\nxxxxx")


def test_what_is_large_is_not_held_back(implementation: str) -> None:
    (write,) = serve(implementation, whole(100_000), REQUEST, turns=0).writes
    assert write.endswith(b"\r\n\r\n" + b"x" * 100_000)


def test_each_part_of_a_stream_is_written_as_it_comes_and_the_head_with_the_first(implementation: str) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for chunk in (b"one", b"two", b"three"):  # without giving the event loop a turn
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body"})

    writes = serve(implementation, app, REQUEST, turns=0).writes
    assert [word for word in (b"one", b"two", b"three") for write in writes if word in write] == [
        b"one",
        b"two",
        b"three",
    ]
    assert len(writes) == 4 and b"".join(writes).endswith(b"0\r\n\r\n")


def test_nothing_is_lost_when_the_connection_is_closed_after_the_response(implementation: str) -> None:
    transport = serve(implementation, whole(5), LAST)
    assert transport.closed and b"".join(transport.writes).endswith(b"xxxxx")


def test_a_response_without_body_is_written_before_the_connection_is_closed(implementation: str) -> None:
    transport = serve(implementation, whole(5), LAST.replace(b"GET", b"HEAD"))
    assert transport.closed and b"".join(transport.writes).endswith(b"\r\n\r\n")
