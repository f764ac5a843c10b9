"""What goes wrong between a client and the endpoint, on real sockets: uvicorn on asyncio, hypercorn on trio."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec
import pytest

from mcpcore import Limits
from tests.support.asgi import LEGACY, POST, encoded, initialize, modern, request
from tests.support.sockets import LIMIT, HTTPSocket, connected, head, serving
from tests.support.world import World

pytestmark = pytest.mark.anyio

JSON = {"content-type": "application/json"}


def call(name: str, id: Any = 1, token: Any = None, **arguments: Any) -> dict[str, Any]:
    """A ``tools/call`` of a legacy session."""
    meta = {} if token is None else {"_meta": {"progressToken": token}}
    return request("tools/call", {"name": name, "arguments": arguments, **meta}, id)


def modern_call(name: str, token: Any = None, **arguments: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """A modern ``tools/call`` and its headers."""
    meta = {} if token is None else {"progressToken": token}
    message, headers = modern("tools/call", {"name": name, "arguments": arguments}, **meta)
    return message, {**POST, **headers}


@asynccontextmanager
async def opened(port: int, **capabilities: Any) -> AsyncGenerator[tuple[HTTPSocket, dict[str, str]]]:
    """Open a connection and a legacy session on it; yield them and the headers of later requests."""
    async with connected(port) as socket:
        await socket.request("POST", POST, initialize(LEGACY, capabilities))
        await socket.finish()
        session = {"mcp-session-id": socket.headers["mcp-session-id"], "mcp-protocol-version": LEGACY, **POST}
        await socket.request("POST", session, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        await socket.finish()
        assert socket.status == 202
        yield socket, session


async def text_of(socket: HTTPSocket) -> str:
    """Read the whole response and return the text of its result."""
    await socket.finish()
    return str(socket.messages[-1]["result"]["content"][0]["text"])


async def assert_serves(port: int) -> None:
    message, headers = modern_call("add", a=1, b=2)
    async with connected(port) as socket:
        await socket.request("POST", headers, message)
        assert await text_of(socket) == "3"


@pytest.fixture(autouse=True)
def nothing_is_logged_as_an_error(caplog: pytest.LogCaptureFixture) -> Any:
    """No fault of a client is an error of the server."""
    yield
    errors = [record.getMessage() for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")]
    assert errors == []


# -- clients that go ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sent", ["nothing", "half a head", "head", "half a body"])
async def test_a_client_that_goes_before_its_request_is_complete_leaves_nothing(sent: str) -> None:
    world = World()
    message, headers = modern_call("hold")
    body = encoded(message)
    whole = head("POST", "/mcp", headers, len(body))
    parts = {"nothing": b"", "half a head": whole[:40], "head": whole, "half a body": whole + body[:20]}
    async with serving(world.server) as port:
        async with connected(port) as socket:
            await socket.send(parts[sent])
        await assert_serves(port)
    assert not world.started.is_set()


async def test_a_client_that_goes_after_its_modern_request_cancels_it() -> None:
    world = World()
    message, headers = modern_call("hold")
    async with serving(world.server) as port:
        async with connected(port) as socket:
            await socket.request("POST", headers, message)
            await world.started.wait()
        await world.cancelled.wait()
        await assert_serves(port)


async def test_a_client_that_goes_in_mid_stream_cancels_its_modern_request() -> None:
    world = World()
    message, headers = modern_call("steps", token=1)
    async with serving(world.server) as port:
        async with connected(port) as socket:
            await socket.request("POST", headers, message)
            await socket.wait_for(lambda each: each.messages)
        await world.cancelled.wait()
        await assert_serves(port)


async def test_a_client_that_goes_in_mid_stream_gets_the_rest_of_its_legacy_answer_later() -> None:
    world = World()
    async with serving(world.server) as port:
        async with opened(port) as (socket, session):
            await socket.request("POST", session, call("steps", 7, token=1))
            await socket.wait_for(lambda each: each.messages)
            last = socket.ids[-1]
        async with connected(port) as socket:
            await socket.request("GET", {**session, "last-event-id": last})
            await socket.wait_for(lambda each: each.status)
            world.release.set()
            assert await text_of(socket) == "done"
            assert [each["id"] for each in socket.messages] == [7]
    assert not world.cancelled.is_set()


async def test_a_question_whose_client_has_gone_can_be_answered_when_it_comes_back() -> None:
    world = World()
    async with serving(world.server) as port:
        async with opened(port, elicitation={}) as (socket, session):
            await socket.request("POST", session, call("ask"))
            await socket.wait_for(lambda each: each.messages)
            asked, primer = socket.messages[0], socket.ids[0]
        async with connected(port) as stream, connected(port) as socket:
            await stream.request("GET", {**session, "last-event-id": primer})
            await stream.wait_for(lambda each: each.messages)
            assert stream.messages == [asked]
            answer = {"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "cancel"}}
            await socket.request("POST", session, answer)
            assert await text_of(stream) == "cancel None"


async def test_a_handler_whose_session_has_ended_is_cancelled_wherever_it_waits() -> None:
    world = World()
    async with serving(world.server) as port, opened(port, elicitation={}) as (socket, session):
        await socket.request("POST", session, call("ask"))
        await socket.wait_for(lambda each: each.messages)
        async with connected(port) as another:
            await another.request("DELETE", session)
            await another.finish()
            assert another.status == 200
        await world.cancelled.wait()
        await socket.finish()
        assert len(socket.messages) == 1
        await assert_serves(port)


async def test_a_question_that_is_open_when_the_server_stops_fails_at_once() -> None:
    world = World()
    async with serving(world.server) as port, opened(port, elicitation={}) as (socket, session):
        await socket.request("POST", session, call("ask"))
        await socket.wait_for(lambda each: each.messages)
        world.server.stop()
        await world.failed.wait()
        assert await text_of(socket) == "lost"


# -- clients that do not read ------------------------------------------------------------------------------------

NOTICE = 70  # bytes of one notification, at least


async def test_a_standalone_stream_that_is_not_read_delays_nothing_and_holds_little() -> None:
    world = World(limits=Limits(outbox=100_000, events=10))
    async with serving(world.server) as port, opened(port) as (socket, session), connected(port) as stream:
        await stream.request("GET", session)
        await stream.wait_for(lambda each: each.status)
        assert not stream.is_complete
        sent = 0
        while sent < 20_000_000:  # far more than the buffers of all sockets between them
            with anyio.fail_after(2):
                await socket.request("POST", session, call("announce", times=1000))
                assert await text_of(socket) == "announced"
            sent += 1000 * NOTICE
        async with connected(port) as another:  # the one that is not read has been given up
            await another.request("GET", session)
            await another.wait_for(lambda each: each.status)
            assert another.status == 200
        await stream.finish()
        assert len(stream.messages) * NOTICE < sent / 2
        await stream.request("GET", {**session, "last-event-id": stream.ids[-1]})
        await stream.finish()
        assert stream.status == 404  # what followed is forgotten: `events` is 10


async def test_an_answer_that_is_not_read_delays_no_other_of_its_session() -> None:
    world = World()
    async with serving(world.server) as port, opened(port) as (socket, session), connected(port) as unread:
        await unread.request("POST", session, call("report", "unread", token=1, times=100, size=500_000))
        await unread.wait_for(lambda each: each.status)
        for id in range(20):
            with anyio.fail_after(2):
                await socket.request("POST", session, call("report", id, token=2, times=3))
                assert await text_of(socket) == "reported"
        assert await text_of(unread) == "reported"
        assert len(unread.messages) == 101


async def test_cancelling_a_request_whose_answer_is_not_read_delays_nothing() -> None:
    world = World()
    async with serving(world.server) as port, opened(port) as (socket, session), connected(port) as unread:
        await unread.request("POST", session, call("report", "unread", token=1, times=100, size=500_000))
        await unread.wait_for(lambda each: each.status)
        with anyio.fail_after(2):
            cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "unread"}}
            await socket.request("POST", session, cancelled)
            await socket.finish()
            assert socket.status == 202
            await socket.request("POST", session, call("add", 2, a=1, b=2))
            assert await text_of(socket) == "3"
        await unread.finish()
        assert unread.messages and not any("result" in message for message in unread.messages)


async def test_a_silent_answer_is_kept_alive_by_comments_over_a_network_that_drops_idle_connections() -> None:
    world = World(limits=Limits(stream_after=0.05))
    message, headers = modern_call("hold")
    async with serving(world.server) as port, connected(port) as socket:
        await socket.request("POST", headers, message)
        for count in range(1, 6):
            with anyio.fail_after(2):  # the idle limit of whatever is between
                await socket.wait_for(lambda each, count=count: each.body.count(b":") >= count)
        world.release.set()
        assert await text_of(socket) == "released"


# -- many at once, and in what order -----------------------------------------------------------------------------


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_two_hundred_answers_at_once_are_all_whole(era: str) -> None:
    world = World()
    answers: dict[int, int] = {}

    async def ask(number: int, port: int, session: dict[str, str]) -> None:
        size = 5000 + 25 * number
        if era == "modern":
            message, headers = modern_call("text", size=size)
            message["id"] = number
        else:
            message, headers = call("text", number, size=size), session
        async with connected(port) as socket:
            await socket.request("POST", headers, message)
            answer = await text_of(socket)
            assert socket.messages[-1]["id"] == number
            answers[number] = len(answer)

    async with serving(world.server) as port, opened(port) as (_, session), anyio.create_task_group() as tasks:
        for number in range(200):
            tasks.start_soon(ask, number, port, session)
    assert answers == {number: 5000 + 25 * number for number in range(200)}


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_what_a_handler_reports_just_before_it_answers_arrives_before_the_answer(era: str) -> None:
    world = World()
    async with serving(world.server) as port, opened(port) as (socket, session):
        for _ in range(50):
            message, headers = modern_call("report", token=1, times=3)
            if era == "legacy":
                message, headers = call("report", token=1, times=3), session
            await socket.request("POST", headers, message)
            await socket.finish()
            kinds = [each.get("method", "answer") for each in socket.messages]
            assert kinds == ["notifications/progress"] * 3 + ["answer"]


async def test_refused_requests_between_good_ones_disturb_nothing() -> None:
    world = World()

    async def ask(good: bool, port: int, session: dict[str, str]) -> None:
        async with connected(port) as socket:
            for number in range(10):
                headers = session if good else {**session, "accept": "text/html"}
                await socket.request("POST", headers, call("text", f"{id(socket)}-{number}", size=5000))
                await socket.finish()
                assert socket.status == (200 if good else 406)

    async with serving(world.server) as port, opened(port) as (_, session), anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(ask, number % 2 == 0, port, session)


async def test_a_change_right_after_the_standalone_stream_has_opened_arrives() -> None:
    world = World()
    async with serving(world.server) as port, opened(port) as (_, session):
        for _ in range(20):
            async with connected(port) as stream:
                await stream.request("GET", session)
                await stream.wait_for(lambda each: each.status)
                if stream.status == 409:  # the end of the one before has not been noticed yet
                    continue
                world.server.notify_tools_changed()
                await stream.wait_for(lambda each: each.messages)
                assert stream.messages[0]["method"] == "notifications/tools/list_changed"


# -- handlers that fail ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_handler_that_fails_after_the_stream_began_is_answered_on_it(era: str) -> None:
    world = World()
    message, headers = modern_call("stumble", token=1)
    async with serving(world.server) as port, opened(port) as (socket, session):
        if era == "legacy":
            message, headers = call("stumble", token=1), session
        await socket.request("POST", headers, message)
        await socket.finish()
        assert socket.status == 200 and len(socket.messages) == 2
        assert socket.messages[1]["result"]["isError"] and "stumbled" in msgspec.json.encode(socket.messages).decode()


# -- ids ---------------------------------------------------------------------------------------------------------


async def test_an_id_that_is_in_use_is_refused_with_400_and_the_first_request_is_undisturbed() -> None:
    world = World()
    async with serving(world.server) as port, opened(port) as (first, session), connected(port) as second:
        await first.request("POST", session, call("hold", 7))
        await world.started.wait()
        await second.request("POST", session, call("add", 7, a=1, b=2))
        await second.finish()
        assert (second.status, second.messages[0]["id"], second.messages[0]["error"]["code"]) == (400, 7, -32600)
        await second.request("POST", session, call("add", "7", a=1, b=2))
        assert await text_of(second) == "3" and second.messages[0]["id"] == "7"
        world.release.set()
        assert await text_of(first) == "released"
        await second.request("POST", session, call("add", 7, a=2, b=2))
        assert await text_of(second) == "4"  # it is free again


# -- the end -----------------------------------------------------------------------------------------------------


async def test_stopping_ends_all_streams_in_good_order_and_answers_what_can_be_answered() -> None:
    world = World(limits=Limits(drain=1.0))
    listen, listen_headers = modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id="sub")
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:

            async def serve(*, task_status: Any) -> None:
                await world.server.serve("http", port=0, task_status=task_status)

            port = await tasks.start(serve)
            async with (
                opened(port) as (standalone, session),
                connected(port) as subscription,
                connected(port) as slow,
                connected(port) as stuck,
                connected(port) as streaming,
            ):
                await standalone.request("GET", session)
                await standalone.wait_for(lambda each: each.status)
                await subscription.request("POST", {**POST, **listen_headers}, listen)
                await subscription.wait_for(lambda each: each.messages)
                await slow.request("POST", session, call("hold", "slow"))
                await world.started.wait()
                await stuck.request("POST", *reversed(modern_call("never")))
                await streaming.request("POST", *reversed(modern_call("never", token=1)))
                await streaming.wait_for(lambda each: each.messages)
                began = anyio.current_time()
                world.server.stop()
                await standalone.finish()
                await subscription.finish()
                assert subscription.messages[-1]["id"] == "sub" and "result" in subscription.messages[-1]
                world.release.set()
                assert await text_of(slow) == "released"
                await stuck.finish()
                assert (stuck.status, "retry-after" in stuck.headers) == (503, True)
                assert "stopping" in stuck.messages[0]["error"]["message"]
                await streaming.finish()
                assert not any("result" in message for message in streaming.messages)
        assert anyio.current_time() - began < 5
    assert world.cancelled.is_set()


async def test_cancelling_the_server_ends_it_as_well() -> None:
    world = World(limits=Limits(drain=0.1))
    async with anyio.create_task_group() as tasks:

        async def serve(*, task_status: Any) -> None:
            await world.server.serve("http", port=0, task_status=task_status)

        port = await tasks.start(serve)
        async with connected(port) as socket:
            await socket.request("POST", *reversed(modern_call("hold")))
            await world.started.wait()
            with anyio.fail_after(LIMIT):
                tasks.cancel_scope.cancel()
                with anyio.CancelScope(shield=True):
                    await socket.finish()
            assert socket.status == 503
    assert world.cancelled.is_set()
