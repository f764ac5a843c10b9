"""Bounds: requests in flight, sessions and their idleness; and that what has ended leaves nothing behind."""

import gc
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import msgspec
import pytest

from mcpcore import Limits, Server
from mcpcore.protocol.server import ServerConnection
from mcpcore.runtime.exchange import Exchange
from mcpcore.transports.http.response import Response as ServerResponse
from mcpcore.transports.http.sessions import HTTPSession
from tests.support.asgi import POST, Caller, Response, encoded, initialize, modern, request
from tests.support.world import World

pytestmark = pytest.mark.anyio

ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])


class Client:
    """Calls tools in one session, or by requests that stand for themselves."""

    def __init__(self, call: Caller, session: dict[str, str] | None) -> None:
        self._call = call
        self._session = session

    @asynccontextmanager
    async def calling(self, name: str, id: Any, **arguments: Any) -> AsyncGenerator[Response]:
        """Call a tool."""
        params = {"name": name, "arguments": arguments}
        message, headers = modern("tools/call", params, id)
        if self._session is not None:
            message, headers = request("tools/call", params, id), self._session
        async with self._call.open("POST", headers={**POST, **headers}, body=encoded(message)) as response:
            yield response

    async def cancel(self, id: Any, response: Response) -> None:
        """Cancel a call."""
        if self._session is None:
            response.disconnect.set()
        else:
            cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}
            assert (await self._call.post(cancelled, self._session)).status == 202


async def client_of(era: str, call: Caller) -> Client:
    return Client(call, await call.initialize() if era == "legacy" else None)


# -- requests in flight ------------------------------------------------------------------------------------------


class Gate:
    """A server with a tool that counts how many of its calls run."""

    def __init__(self, **limits: int) -> None:
        self.server = Server("gate", limits=Limits(**limits))
        self.running = 0
        self.most = 0
        self.order: list[int] = []
        self.release = anyio.Event()

        @self.server.tool
        async def hold(number: int) -> str:
            """Wait until released."""
            self.order.append(number)
            self.running += 1
            self.most = max(self.most, self.running)
            try:
                await self.release.wait()
            finally:
                self.running -= 1
            return "released"

        @self.server.tool
        async def instant() -> str:
            """Return at once."""
            return "instant"


@ERAS
@pytest.mark.parametrize("places", [1, 3])
async def test_requests_beyond_those_in_flight_wait_and_then_run_in_their_order(era: str, places: int) -> None:
    gate = Gate(in_flight=places, queued=10)
    client = await client_of(era, Caller(gate.server.http_app()))
    async with AsyncExitStack() as stack:
        calls: list[Response] = []
        for number in range(8):
            calls.append(await stack.enter_async_context(client.calling("hold", number, number=number)))
            await anyio.wait_all_tasks_blocked()
        assert gate.running == places
        gate.release.set()
        for response in calls:
            await response.wait_for(lambda each: each.is_complete)
    assert [response.status for response in calls] == [200] * 8
    assert gate.most == places and sorted(gate.order) == list(range(8))
    assert places > 1 or gate.order == list(range(8))  # trio runs those that can run in any order


@ERAS
async def test_requests_beyond_those_that_may_wait_are_told_to_come_later(era: str) -> None:
    gate = Gate(in_flight=1, queued=1)
    client = await client_of(era, Caller(gate.server.http_app()))
    async with client.calling("hold", 1, number=1) as first:
        await anyio.wait_all_tasks_blocked()
        async with client.calling("hold", 2, number=2) as second:
            await anyio.wait_all_tasks_blocked()
            async with client.calling("hold", 3, number=3) as third:
                await third.wait_for(lambda each: each.is_complete)
            assert (third.status, third.headers["retry-after"]) == (503, "1")
            error = third.json()["error"]
            assert (third.json()["id"], error["code"]) == (3, -32603) and error["message"].startswith("Server busy")
            gate.release.set()
            await second.wait_for(lambda each: each.is_complete)
        await first.wait_for(lambda each: each.is_complete)
    async with client.calling("hold", 4, number=4) as fourth:
        await fourth.wait_for(lambda each: each.is_complete)
    assert (fourth.status, gate.order) == (200, [1, 2, 4])


@ERAS
async def test_a_request_that_is_cancelled_while_it_waits_gives_its_place_to_the_next(era: str) -> None:
    gate = Gate(in_flight=1, queued=5)
    client = await client_of(era, Caller(gate.server.http_app()))
    async with client.calling("hold", 1, number=1) as first:
        await anyio.wait_all_tasks_blocked()
        async with client.calling("hold", 2, number=2) as second:
            await anyio.wait_all_tasks_blocked()
            async with client.calling("hold", 3, number=3) as third:
                await anyio.wait_all_tasks_blocked()
                await client.cancel(2, second)
                await anyio.wait_all_tasks_blocked()
                await client.cancel(1, first)
                await anyio.wait_all_tasks_blocked()
                assert gate.order == [1, 3] and gate.running == 1
                gate.release.set()
                await third.wait_for(lambda each: each.is_complete)
    assert third.messages[0]["result"]["content"][0]["text"] == "released"


async def test_each_session_has_places_of_its_own() -> None:
    gate = Gate(in_flight=1, queued=0)
    call = Caller(gate.server.http_app())
    one, other = await client_of("legacy", call), await client_of("legacy", call)
    async with one.calling("hold", 1, number=1) as first, other.calling("hold", 1, number=2) as second:
        await anyio.wait_all_tasks_blocked()
        assert gate.running == 2
        gate.release.set()
        for response in (first, second):
            await response.wait_for(lambda each: each.is_complete)


async def test_subscriptions_take_no_place() -> None:
    gate = Gate(in_flight=1, queued=0)
    call = Caller(gate.server.http_app())
    message, headers = modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    async with AsyncExitStack() as stack:
        for _ in range(3):
            opened = call.open("POST", headers={**POST, **headers}, body=encoded(message))
            response = await stack.enter_async_context(opened)
            await response.wait_for(lambda each: each.messages)
        client = await client_of("modern", call)
        gate.release.set()
        async with client.calling("hold", 1, number=1) as called:
            await called.wait_for(lambda each: each.is_complete)
    assert called.status == 200


# -- sessions ----------------------------------------------------------------------------------------------------


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_a_session_is_idle_only_from_the_moment_that_its_client_was_last_there() -> None:
    clock = Clock()
    world = World(limits=Limits(session_idle=60))
    app = world.server.http_app(clock=clock)
    call = Caller(app)
    session = await call.initialize()
    stream = {"accept": "text/event-stream", **session}
    async with call.open("GET", headers=stream) as response:
        await response.wait_for(lambda each: each.status)
        clock.now = 1000.0
        assert (await call.call("GET", headers=POST)).status == 400  # any request looks for idle sessions
        assert len(app.sessions) == 1
        clock.now = 1059.0
    clock.now = 1118.0
    assert (await call.call("GET", headers=POST)).status == 400
    assert len(app.sessions) == 1
    clock.now = 1120.0
    assert (await call.call("GET", headers=POST)).status == 400
    assert len(app.sessions) == 0


async def test_a_handler_whose_client_never_comes_back_does_not_keep_its_session() -> None:
    clock = Clock()
    world = World(limits=Limits(session_idle=60))
    app = world.server.http_app(clock=clock)
    call = Caller(app)
    session = await call.initialize()
    body = encoded(request("tools/call", {"name": "never"}))
    async with call.open("POST", headers={**POST, **session}, body=body) as response:
        await anyio.wait_all_tasks_blocked()
        clock.now = 50.0
        response.disconnect.set()
        await anyio.wait_all_tasks_blocked()
        clock.now = 109.0
        await call.call("GET", headers=POST)
        assert len(app.sessions) == 1 and not world.cancelled.is_set()
        clock.now = 111.0
        await call.call("GET", headers=POST)
        assert len(app.sessions) == 0
        with anyio.fail_after(5):
            await world.cancelled.wait()


async def test_many_idle_sessions_are_ended_by_and_by() -> None:
    clock = Clock()
    app = World(limits=Limits(session_idle=60, sessions=200)).server.http_app(clock=clock)
    call = Caller(app)
    for _ in range(200):
        assert (await call.post(initialize())).status == 200
    assert (await call.post(initialize())).status == 503
    clock.now = 61.0
    assert (await call.post(initialize())).status == 200  # the first request already makes room
    assert 100 < len(app.sessions) < 200
    for _ in range(4):
        await call.call("GET", headers=POST)
    assert len(app.sessions) == 1


@pytest.mark.parametrize("how", ["DELETE", "refused GET", "refused POST", "failed initialize", "too many"])
async def test_what_has_ended_or_never_began_leaves_nothing_behind(how: str) -> None:
    app = World(limits=Limits(sessions=1 if how == "too many" else 1000)).server.http_app()
    call = Caller(app)
    if how == "too many":
        await call.initialize()
    for _ in range(300):
        if how == "DELETE":
            session = await call.initialize()
            assert (await call.call("DELETE", headers=session)).status == 200
        elif how == "refused GET":
            assert (await call.call("GET", headers=POST)).status == 400
        elif how == "refused POST":
            assert (await call.post(b"{")).status == 400
        elif how == "failed initialize":
            assert "error" in (await call.post(request("initialize", {"protocolVersion": 1}))).json()
        else:
            assert (await call.post(initialize())).status == 503
    kept = 1 if how == "too many" else 0
    assert len(app.sessions) == kept
    gc.collect()
    assert [len([each for each in gc.get_objects() if type(each) is kind]) for kind in KEPT] == [kept] * 3 + [0]


KEPT = (HTTPSession, Exchange, ServerConnection, ServerResponse)


# -- requests without a session ----------------------------------------------------------------------------------


@ERAS
async def test_ten_thousand_calls_without_a_session_leave_no_task_no_object_and_no_word(
    era: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server("stateless", state="stateless")

    @server.tool
    async def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    app = server.http_app()
    Caller.opened.append(app)
    params = {"name": "add", "arguments": {"a": 1, "b": 2}}
    message, headers = (request("tools/call", params), {}) if era == "legacy" else modern("tools/call", params)
    fields = {"host": "localhost", **POST, **headers}
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in fields.items()],
        "client": ("127.0.0.1", 1),
    }
    body = msgspec.json.encode(message)
    answers = 0

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(sent: Any) -> None:
        nonlocal answers
        if sent["type"] == "http.response.body":
            assert b'"text":"3"' in sent["body"]
            answers += 1

    await app(scope, receive, send)
    caplog.clear()
    async with anyio.create_task_group():
        tasks = len(anyio.get_running_tasks())
        for _ in range(10_000):
            await app(scope, receive, send)
        assert len(anyio.get_running_tasks()) == tasks
    gc.collect()
    kinds = (Exchange, ServerConnection, ServerResponse)
    assert [each for each in gc.get_objects() if type(each) in kinds] == []
    assert (answers, caplog.records) == (10_001, [])
