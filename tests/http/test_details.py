"""Small things of the binding that clients, proxies and browsers stumble over, where an implementation forgets one of them."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from mcpcore import Limits, Server
from mcpcore.transports.http.eventlog import SQLiteEventLogs
from mcpcore.types.meta import CLIENT_CAPABILITIES, PROTOCOL_VERSION
from tests.support.asgi import LEGACY, MODERN, Caller, encoded, initialize, modern, request
from tests.support.world import World

pytestmark = pytest.mark.anyio

SSE = {"accept": "text/event-stream"}
JSON = {"content-type": "application/json"}


def caller(**options: Any) -> tuple[World, Caller]:
    world = World()
    return world, Caller(world.server.http_app(**options))


# -- eras ----------------------------------------------------------------------------------------------------------


async def test_methods_that_an_era_does_not_have_are_not_found_in_it() -> None:
    _, call = caller()
    session = await call.initialize()
    for method in ("ping", "logging/setLevel", "initialize", "resources/subscribe", "notifications/initialized"):
        params = {"level": "info"} if method == "logging/setLevel" else {"uri": "a:b"} if "subscribe" in method else {}
        response = await call.post(*modern(method, params))
        code = -32600 if method.startswith("notifications/") else -32601
        assert response.json()["error"]["code"] == code, method
        assert response.status == (404 if code == -32601 else 400)
    for method in ("server/discover", "subscriptions/listen"):
        response = await call.post(request(method, {"notifications": {}}), session)
        assert response.json()["error"]["code"] == -32601, method


async def test_each_request_belongs_to_its_own_era_and_leaves_nothing_for_the_next() -> None:
    _, call = caller()
    session = await call.initialize()
    message, fields = modern("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
    for _ in range(2):
        assert (await call.post(message, fields)).json()["result"]["resultType"] == "complete"
        assert (await call.post(message, {**fields, "mcp-session-id": session["mcp-session-id"]})).status == 200
        legacy = (await call.post(request("tools/list"), session)).json()["result"]
        assert "resultType" not in legacy and "ttlMs" not in legacy
    lacking = {**message, "params": {"name": "add"}}
    assert (await call.post(lacking, fields)).json()["error"]["code"] == -32602


async def test_a_version_to_come_is_refused_with_those_that_are_spoken() -> None:
    _, call = caller()
    message, fields = modern("server/discover")
    message["params"]["_meta"] = {PROTOCOL_VERSION: "2031-01-01", CLIENT_CAPABILITIES: {}}
    response = await call.post(message, {**fields, "mcp-protocol-version": "2031-01-01"})
    error = response.json()["error"]
    assert (response.status, error["code"]) == (400, -32022)
    assert error["data"] == {"supported": [MODERN], "requested": "2031-01-01"}


# -- content -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "latin-1"])
async def test_a_body_that_is_not_utf8_is_refused_whatever_its_charset_says(encoding: str) -> None:
    _, call = caller()
    body = msgspec.json.encode(request("ping", {"x": "é"})).decode().encode(encoding)
    response = await call.post(body, {"content-type": f"application/json; charset={encoding}"})
    assert response.status == 400 and "error" in response.json()
    app = Server("old").sse_app()
    sse = Caller(app)
    async with sse.open("GET", "/sse", headers=SSE) as stream:
        await stream.wait_for(lambda each: each.events)
        endpoint = stream.events[0].data.decode()
        headers = {"content-type": f"application/json; charset={encoding}"}
        assert (await sse.call("POST", endpoint, headers=headers, body=body)).status == 400


# -- sessions --------------------------------------------------------------------------------------------------------


async def test_whatever_names_a_session_that_is_not_there_is_told_so_with_404() -> None:
    async def all_of(headers: dict[str, str]) -> set[int]:
        notification = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        answer = {"jsonrpc": "2.0", "id": 1, "result": {}}
        statuses = {(await call.post(body, headers)).status for body in (request("ping"), notification, answer)}
        return statuses | {(await call.call(method, headers={**SSE, **headers})).status for method in ("GET", "DELETE")}

    world, call = caller()
    assert await all_of({"mcp-session-id": "unknown", "mcp-protocol-version": LEGACY}) == {404}
    assert await all_of({"mcp-protocol-version": LEGACY}) == {400}
    session = await call.initialize()
    assert (await call.call("DELETE", headers=session)).status == 200
    assert await all_of(session) == {404}
    session = await call.initialize()
    call = Caller(world.server.http_app())  # as after a restart
    assert await all_of(session) == {404}


# -- streams ---------------------------------------------------------------------------------------------------------


async def test_every_stream_asks_proxies_to_pass_it_on_as_it_comes() -> None:
    world, call = caller()
    world.release.set()
    session = await call.initialize()
    steps = request("tools/call", {"name": "steps", "_meta": {"progressToken": 1}})
    posted = await call.post(steps, session)
    replayed = await call.call("GET", headers={**SSE, **session, "last-event-id": posted.events[0].id})
    single = await call.post(*modern("tools/call", {"name": "steps"}, progressToken=1))
    responses = [posted, replayed, single]
    async with call.open("GET", headers={**SSE, **session}) as standalone:
        await standalone.wait_for(lambda each: each.status)
        responses.append(standalone)
    async with Caller(world.server.sse_app()).open("GET", "/sse", headers=SSE) as old:
        await old.wait_for(lambda each: each.status)
        responses.append(old)
    for response in responses:
        assert response.headers["content-type"] == "text/event-stream"
        assert response.headers["x-accel-buffering"] == "no"
        assert response.headers["cache-control"] == "no-cache, no-transform"
        assert "content-encoding" not in response.headers and "content-length" not in response.headers


@pytest.mark.parametrize("event_log", ["memory", None])
@pytest.mark.parametrize(
    ("version", "primed"), [("2025-03-26", False), ("2025-06-18", False), ("2025-11-25", True), (MODERN, False)]
)
async def test_streams_are_primed_in_the_revision_that_has_it(version: str, primed: bool, event_log: Any) -> None:
    world, call = caller(event_log=event_log)
    world.release.set()
    if version == MODERN:
        message, fields = modern("tools/call", {"name": "steps"}, progressToken=1)
        fields["last-event-id"] = "p1-1"  # which that revision does not know
    else:
        fields = await call.initialize(version)
        message = request("tools/call", {"name": "steps", "_meta": {"progressToken": 1}})
    response = await call.post(message, fields)
    assert len(response.messages) == 2
    assert [event.data for event in response.events].count(b"") == int(primed and event_log is not None)
    assert all(bool(event.id) == (version != MODERN and event_log is not None) for event in response.events)
    assert (response.events[0].data == b"") == (primed and event_log is not None)


async def test_events_may_be_kept_in_a_file_for_as_long_as_their_session_lasts(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    with closing(SQLiteEventLogs(path)) as logs, closing(sqlite3.connect(path)) as database:
        world, call = caller(event_log=logs)
        world.release.set()
        session = await call.initialize()
        message = request("tools/call", {"name": "steps", "_meta": {"progressToken": 1}})
        posted = await call.post(message, session)
        resumed = await call.call("GET", headers={**SSE, **session, "last-event-id": posted.events[0].id})
        assert resumed.messages == posted.messages and len(resumed.messages) == 2
        assert [event.id for event in resumed.events] == [event.id for event in posted.events[1:]]
        count = "SELECT count(*) FROM events"
        assert database.execute(count).fetchone() == (3,)
        assert (await call.call("DELETE", headers=session)).status == 200
        assert database.execute(count).fetchone() == (0,)


# -- HTTP+SSE ----------------------------------------------------------------------------------------------------------


def old_server(**options: Any) -> Server:
    server = Server("old", **options)

    @server.tool
    async def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    return server


def messages(response: Any) -> list[Any]:
    return [msgspec.json.decode(event.data) for event in response.events if event.event == "message"]


async def test_two_streams_of_old_clients_are_apart_and_take_what_comes() -> None:
    call = Caller(old_server().sse_app())
    async with call.open("GET", "/sse", headers=SSE) as one, call.open("GET", "/sse", headers=SSE) as other:
        endpoints: list[str] = []
        for stream in (one, other):
            await stream.wait_for(lambda each: each.events)
            endpoints.append(stream.events[0].data.decode())
        assert endpoints[0] != endpoints[1]

        async def post(which: int, message: Any) -> int:
            body = encoded(message)
            return (await call.call("POST", endpoints[which], headers=JSON, body=body)).status

        assert await post(0, request("tools/list")) == 202  # before initialize
        assert await post(0, [request("ping"), request("ping", id=2)]) == 202  # a batch, which it does not have yet
        assert await post(0, initialize("2024-11-05")) == 202
        assert await post(1, initialize("2024-11-05")) == 202
        await one.wait_for(lambda each: any("result" in message for message in messages(each)))
        await other.wait_for(messages)
        assert [message["error"]["code"] for message in messages(one) if "error" in message] == [-32600, -32600]
        [opened] = messages(other)
        assert opened["result"]["protocolVersion"] == "2024-11-05"

        other.disconnect.set()
        call_add = request("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}, 9)
        assert await post(0, call_add) == 202
        await one.wait_for(lambda each: messages(each)[-1]["id"] == 9)


@pytest.mark.parametrize(
    "query", ["", "?", "?session_id=", "?session_id=%00", "?session_id=..%2f", "?other=1", "?a&b=&="]
)
async def test_no_query_makes_the_message_endpoint_fail(query: str) -> None:
    call = Caller(old_server().sse_app())
    response = await call.call("POST", f"/messages/{query}", headers=JSON, body=encoded(request("ping")))
    assert response.status in (400, 404) and response.json()["error"]["message"]


# -- lifespan --------------------------------------------------------------------------------------------------------


class Life:
    """A lifespan that counts, and may fail to be left."""

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails
        self.steps: list[str] = []

    async def __aenter__(self) -> str:
        self.steps.append("in")
        return "value"

    async def __aexit__(self, *exc_info: object) -> None:
        self.steps.append("out")
        if self.fails:
            raise RuntimeError("the database is gone")


async def test_sessions_calls_and_streams_share_one_lifespan() -> None:
    life = Life()
    server = old_server(lifespan=lambda _: life)
    http, sse = server.http_app(), server.sse_app()
    call, old = Caller(http), Caller(sse)
    for _ in range(20):
        await call.initialize()
        assert (await call.post(*modern("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}))).status == 200
        async with old.open("GET", "/sse", headers=SSE) as stream:
            await stream.wait_for(lambda each: each.events)
    assert life.steps == ["in"]
    await http.aclose()
    assert life.steps == ["in"]  # the other application still uses it
    await sse.aclose()
    assert life.steps == ["in", "out"]


async def test_a_lifespan_that_cannot_be_left_is_told_to_the_host() -> None:
    life = Life(fails=True)
    app = old_server(lifespan=lambda _: life).http_app()
    to_app = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])
    sent: list[Any] = []

    async def receive() -> Any:
        return next(to_app)

    async def send(message: Any) -> None:
        sent.append(message)

    await app({"type": "lifespan"}, receive, send)
    assert [message["type"] for message in sent] == ["lifespan.startup.complete", "lifespan.shutdown.failed"]
    assert sent[1]["message"] == "the database is gone"
    assert life.steps == ["in", "out"]


async def test_a_lifespan_that_cannot_be_left_is_the_error_of_the_server_that_ends() -> None:
    life = Life(fails=True)
    server = old_server(lifespan=lambda _: life)

    async def serve(*, task_status: Any) -> None:
        with pytest.raises(RuntimeError, match="the database is gone"):
            await server.serve("http", port=0, task_status=task_status)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            await tasks.start(serve)
            server.stop()
    assert life.steps == ["in", "out"]


# -- limits ----------------------------------------------------------------------------------------------------------


async def test_the_limit_of_a_message_is_one_for_both_transports() -> None:
    world = World(limits=Limits(message_size=400))
    small, large = encoded(request("ping")), encoded(request("ping", {"x": "x" * 400}))
    call = Caller(world.server.http_app())
    assert (await call.post(large)).status == 413
    sse = Caller(world.server.sse_app())
    async with sse.open("GET", "/sse", headers=SSE) as stream:
        await stream.wait_for(lambda each: each.events)
        endpoint = stream.events[0].data.decode()
        assert (await sse.call("POST", endpoint, headers=JSON, body=small)).status == 202
        assert (await sse.call("POST", endpoint, headers=JSON, body=large)).status == 413
        assert (await sse.call("POST", endpoint, headers={**JSON, "content-length": "401"}, body=small)).status == 413
