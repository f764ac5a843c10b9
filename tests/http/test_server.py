"""The MCP endpoint: its checks and their order, both eras, sessions, streams, resumption."""

import base64
from typing import Any

import anyio
import msgspec
import pytest

from mcpcore import Limits, Server
from mcpcore.types.meta import CLIENT_CAPABILITIES, PROTOCOL_VERSION
from tests.support.asgi import LEGACY, MODERN, POST, Caller, encoded, initialize, modern, request
from tests.support.world import World

pytestmark = pytest.mark.anyio


def caller(**options: Any) -> tuple[World, Caller]:
    world = World()
    return world, Caller(world.server.http_app(**options))


# -- before the protocol -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "localhost:8000"}, 200),
        ({"host": "127.0.0.1"}, 200),
        ({"host": "[::1]:8000"}, 200),
        ({"host": "evil.example.com"}, 403),
        ({"host": "localhost:1.evil.example.com"}, 403),
        ({"host": "localhost.evil.example.com"}, 403),
        ({"host": "user@localhost"}, 403),
        ({"origin": "http://localhost:3000"}, 200),
        ({"origin": "http://evil.example.com"}, 403),
        ({"origin": "null"}, 403),
        ({"content-type": "application/json; charset=utf-8"}, 200),
        ({"content-type": "Application/JSON"}, 200),
        ({"content-type": "application/jsonfoo"}, 415),
        ({"content-type": "text/plain"}, 415),
        ({"accept": "*/*"}, 200),
        ({"accept": "application/*, text/*"}, 200),
        ({"accept": "application/json"}, 200),
        ({"accept": "text/event-stream"}, 200),
        ({"accept": "APPLICATION/JSON;q=0.5 , text/event-stream; q=0.1"}, 200),
        ({"accept": "text/html"}, 406),
        ({"accept": "*/*;q=0"}, 406),
    ],
)
async def test_headers_are_judged_before_the_message(headers: dict[str, str], status: int) -> None:
    _, call = caller()
    message, fields = modern("tools/list")
    response = await call.post(message, {**fields, **headers})
    assert response.status == status
    if status != 200:
        assert "id" not in response.json() and response.json()["error"]["message"]


async def test_a_client_that_takes_events_only_gets_events() -> None:
    _, call = caller()
    message, fields = modern("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
    response = await call.post(message, {**fields, "accept": "text/event-stream"})
    assert response.is_stream and response.messages[0]["result"]["content"][0]["text"] == "3"


@pytest.mark.parametrize("announced", [True, False])
async def test_a_message_that_is_too_large_is_refused_before_it_is_read_and_while_it_is_read(announced: bool) -> None:
    world = World(limits=Limits(message_size=100))
    call = Caller(world.server.http_app())
    headers = {**POST, **({"content-length": "101"} if announced else {})}
    response = await call.call("POST", headers=headers, body=b"x" * 101)
    assert response.status == 413 and "100 bytes" in response.json()["error"]["message"]


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
@pytest.mark.parametrize("root", ["", "/api"])
async def test_the_endpoint_is_served_at_any_mount_point_with_and_without_a_slash(path: str, root: str) -> None:
    world = World()
    call = Caller(world.server.http_app(), root=root)
    message, fields = modern("tools/list")
    assert (await call.post(message, fields, path)).status == 200


async def test_the_mount_point_itself_is_the_endpoint() -> None:
    call = Caller(World().server.http_app(), root="/mcp")
    message, fields = modern("tools/list")
    assert (await call.post(message, fields, "")).status == 200
    assert (await call.post(message, fields, "/other")).status == 404


async def test_pages_of_allowed_origins_can_call_when_cors_is_on() -> None:
    _, call = caller(cors=True, allowed_origins=["https://app.example.com"])
    preflight = await call.call(
        "OPTIONS",
        headers={"origin": "https://app.example.com", "access-control-request-headers": "mcp-method, authorization"},
    )
    assert preflight.status == 204
    assert preflight.headers["access-control-allow-origin"] == "https://app.example.com"
    assert preflight.headers["access-control-allow-headers"] == "mcp-method, authorization"
    message, fields = modern("tools/list")
    response = await call.post(message, {**fields, "origin": "https://app.example.com"})
    assert "Mcp-Session-Id" in response.headers["access-control-expose-headers"]
    assert (await call.call("OPTIONS", headers={"origin": "https://evil.example.com"})).status == 403


async def test_other_methods_are_refused_with_those_that_are_allowed() -> None:
    _, call = caller()
    response = await call.call("PUT", headers=POST)
    assert (response.status, response.headers["allow"]) == (405, "GET, POST, DELETE")


# -- modern ------------------------------------------------------------------------------------------------------


async def test_a_handler_that_is_done_at_once_is_answered_in_json() -> None:
    _, call = caller()
    message, fields = modern("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}, id="x")
    response = await call.post(message, fields)
    assert response.status == 200 and response.headers["content-type"] == "application/json"
    assert response.json()["id"] == "x" and response.json()["result"]["content"][0]["text"] == "3"


async def test_a_handler_that_sends_something_first_makes_the_response_a_stream() -> None:
    world, call = caller()
    message, fields = modern("tools/call", {"name": "steps"}, progressToken=0)
    async with call.open("POST", headers={**POST, **fields}, body=encoded(message)) as response:
        await response.wait_for(lambda each: each.messages)
        assert response.is_stream and response.headers["x-accel-buffering"] == "no"
        assert response.messages[0]["params"] == {"progressToken": 0, "progress": 1, "total": 2}
        assert not response.is_complete
        world.release.set()
        await response.wait_for(lambda each: each.is_complete)
    assert response.messages[1]["result"]["content"][0]["text"] == "done"


async def test_a_silent_request_is_kept_alive_by_comments() -> None:
    world = World(limits=Limits(stream_after=0.01))
    call = Caller(world.server.http_app())
    message, fields = modern("tools/call", {"name": "hold"})
    async with call.open("POST", headers={**POST, **fields}, body=encoded(message)) as response:
        await response.wait_for(lambda each: each.body.count(b":") >= 2)
        world.release.set()
        await response.wait_for(lambda each: each.is_complete)
    assert response.messages[-1]["result"]["content"][0]["text"] == "released"


@pytest.mark.parametrize("accept", ["application/json", "application/json, text/event-stream"])
async def test_a_client_that_goes_cancels_its_request(accept: str) -> None:
    world, call = caller()
    message, fields = modern("tools/call", {"name": "hold"})
    headers = {**POST, **fields, "accept": accept}
    async with call.open("POST", headers=headers, body=encoded(message)) as response:
        with anyio.fail_after(5):
            await world.started.wait()
            response.disconnect.set()
            await world.cancelled.wait()
    assert response.status == 0


def _changed(message: dict[str, Any], **meta: Any) -> dict[str, Any]:
    kept = {key: value for key, value in {**message["params"]["_meta"], **meta}.items() if value is not None}
    return {**message, "params": {**message["params"], "_meta": kept}}


async def test_modern_requests_are_judged_in_the_order_of_the_binding() -> None:
    _, call = caller()
    message, fields = modern("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
    unknown, unknown_fields = modern("unknown/method")
    cases: list[tuple[Any, dict[str, str], int, int]] = [
        (_changed(message, **{CLIENT_CAPABILITIES: None}), fields, 400, -32602),
        ({**message, "params": {"name": "add"}}, fields, 400, -32602),
        (_changed(message, **{PROTOCOL_VERSION: "v999.0.0"}), fields, 400, -32020),
        (message, {**fields, "mcp-protocol-version": LEGACY}, 400, -32020),
        (
            _changed(message, **{PROTOCOL_VERSION: "v999.0.0"}),
            {**fields, "mcp-protocol-version": "v999.0.0"},
            400,
            -32022,
        ),
        (message, {**fields, "mcp-method": "TOOLS/CALL"}, 400, -32020),
        (message, {**fields, "mcp-name": "other"}, 400, -32020),
        (unknown, unknown_fields, 404, -32601),
        (b"{", fields, 400, -32700),
        (b"[]", fields, 400, -32600),
    ]
    for body, headers, status, code in cases:
        response = await call.post(body, headers)
        assert (response.status, response.json()["error"]["code"]) == (status, code), body


async def test_a_name_that_no_header_can_hold_travels_as_base64() -> None:
    server = Server("test")

    @server.resource("test://größe")
    async def size() -> str:
        """A size."""
        return "1"

    call = Caller(server.http_app())
    message, fields = modern("resources/read", {"uri": "test://größe"})
    value = base64.b64encode("test://größe".encode()).decode()
    assert (await call.post(message, {**fields, "mcp-name": f"=?base64?{value}?="})).status == 200
    assert (await call.post(message, {**fields, "mcp-name": f"=?base64?{value[:-1]}?="})).status == 400


async def test_a_notification_is_accepted_with_202_and_nothing_else() -> None:
    _, call = caller()
    message, fields = modern("notifications/cancelled", {"requestId": 1})
    del message["id"]
    response = await call.post(message, fields)
    assert (response.status, response.body) == (202, b"")


async def test_get_and_delete_are_not_modern() -> None:
    _, call = caller()
    for method in ("GET", "DELETE"):
        response = await call.call(method, headers={**POST, "mcp-protocol-version": MODERN})
        assert (response.status, response.headers["allow"]) == (405, "POST")


async def test_a_subscription_is_acknowledged_first_and_gets_what_it_asked_for() -> None:
    world, call = caller()
    message, fields = modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id="sub")
    async with call.open("POST", headers={**POST, **fields}, body=encoded(message)) as response:
        await response.wait_for(lambda each: each.messages)
        assert response.messages[0]["method"] == "notifications/subscriptions/acknowledged"
        world.server.notify_prompts_changed()
        world.server.notify_tools_changed()
        await response.wait_for(lambda each: len(each.messages) == 2)
        changed = response.messages[1]
        assert changed["method"] == "notifications/tools/list_changed"
        assert changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "sub"
        world.server.stop()
        await response.wait_for(lambda each: each.is_complete)
    assert response.messages[-1]["id"] == "sub" and response.messages[-1]["result"]["resultType"] == "complete"


async def test_input_required_works_without_any_session() -> None:
    _, call = caller()
    capabilities: dict[str, Any] = {"elicitation": {"form": {}}}
    message, fields = modern("tools/call", {"name": "ask"}, **{CLIENT_CAPABILITIES: capabilities})
    first = (await call.post(message, fields)).json()["result"]
    assert first["resultType"] == "input_required"
    [key] = first["inputRequests"]
    answers = {key: {"action": "accept", "content": {"name": "Alice"}}}
    retry = {"name": "ask", "inputResponses": answers, "requestState": first["requestState"]}
    message, fields = modern("tools/call", retry, id=2, **{CLIENT_CAPABILITIES: capabilities})
    assert "Alice" in (await call.post(message, fields)).json()["result"]["content"][0]["text"]
    message["params"]["requestState"] += "A"
    tampered = await call.post(message, fields)
    assert (tampered.status, tampered.json()["error"]["code"]) == (400, -32602)


async def test_a_capability_that_the_client_lacks_is_a_400_before_any_stream() -> None:
    _, call = caller()
    message, fields = modern("tools/call", {"name": "ask"})
    response = await call.post(message, fields)
    error = response.json()["error"]
    assert (response.status, error["code"]) == (400, -32021)
    assert error["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}


# -- legacy ------------------------------------------------------------------------------------------------------


async def test_a_session_lives_from_initialize_to_delete() -> None:
    _, call = caller()
    session = await call.initialize()
    assert all(0x21 <= ord(character) <= 0x7E for character in session["mcp-session-id"])
    response = await call.post(request("tools/call", {"name": "add", "arguments": {"a": 2, "b": 2}}), session)
    assert response.json()["result"]["content"][0]["text"] == "4"
    assert (await call.call("DELETE", headers=session)).status == 200
    assert (await call.post(request("tools/list"), session)).status == 404


async def test_requests_without_a_session_or_with_an_unknown_one_are_told_apart() -> None:
    _, call = caller()
    assert (await call.post(request("tools/list"))).status == 400
    unknown = {"mcp-session-id": "unknown"}
    for method in ("GET", "DELETE"):
        assert (await call.call(method, headers={**POST, **unknown})).status == 404
    assert (await call.post(request("tools/list"), unknown)).status == 404
    assert (await call.post(initialize(), unknown)).status == 404


async def test_refused_requests_leave_no_session_behind() -> None:
    world = World()
    app = world.server.http_app()
    call = Caller(app)
    for body in (b"{", b"[]", request("tools/list"), {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}):
        response = await call.post(body)
        assert response.status >= 400 or "error" in response.json()
        assert "mcp-session-id" not in response.headers
    assert len(app.sessions) == 0


async def test_a_second_initialize_in_a_session_is_refused() -> None:
    _, call = caller()
    session = await call.initialize()
    response = await call.post(initialize(), session)
    assert (response.status, response.json()["error"]["code"]) == (400, -32600)


async def test_an_unsupported_version_in_initialize_is_negotiated_and_in_a_session_refused() -> None:
    _, call = caller()
    opened = await call.post(initialize("2024-01-01"), {"mcp-protocol-version": LEGACY, "mcp-method": "initialize"})
    assert opened.json()["result"]["protocolVersion"] == LEGACY
    session = {"mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": "2023-01-01"}
    assert (await call.post(request("ping"), session)).status == 400


async def test_the_server_asks_on_the_stream_of_the_call() -> None:
    _, call = caller()
    opened = await call.post(initialize(capabilities={"elicitation": {}}))
    session = {"mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": LEGACY}
    body = encoded(request("tools/call", {"name": "ask"}))
    async with call.open("POST", headers={**POST, **session}, body=body) as response:
        await response.wait_for(lambda each: each.messages)
        asked = response.messages[0]
        assert asked["method"] == "elicitation/create"
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}}
        assert (await call.post(answer, session)).status == 202
        await response.wait_for(lambda each: each.is_complete)
    assert response.messages[1]["result"]["content"][0]["text"] == "decline None"


async def test_a_session_has_one_stream_of_its_own() -> None:
    world, call = caller()
    session = await call.initialize()
    headers = {"accept": "text/event-stream", **session}
    async with call.open("GET", headers=headers) as response:
        await response.wait_for(lambda each: each.status)
        assert (await call.call("GET", headers=headers)).status == 409
        world.server.notify_tools_changed()
        await response.wait_for(lambda each: each.messages)
        assert response.messages[0]["method"] == "notifications/tools/list_changed"


async def test_cancelling_ends_the_stream_without_an_answer() -> None:
    world, call = caller()
    session = await call.initialize()
    body = encoded(request("tools/call", {"name": "hold"}, 7))
    async with call.open("POST", headers={**POST, **session}, body=body) as response:
        with anyio.fail_after(5):
            await world.started.wait()
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
        assert (await call.post(cancelled, session)).status == 202
        await response.wait_for(lambda each: each.is_complete)
    assert response.messages == [] and world.cancelled.is_set()


async def test_a_client_that_goes_does_not_cancel_a_legacy_request_and_can_come_back_for_the_answer() -> None:
    world, call = caller()
    session = await call.initialize()
    body = encoded(request("tools/call", {"name": "steps", "_meta": {"progressToken": 1}}, 3))
    async with call.open("POST", headers={**POST, **session}, body=body) as response:
        await response.wait_for(lambda each: each.messages)
        last = response.events[-1].id
        response.disconnect.set()
        world.release.set()
    resumed = await call.call("GET", headers={"accept": "text/event-stream", "last-event-id": last, **session})
    assert [message["id"] for message in resumed.messages] == [3]


async def test_a_stream_that_the_server_ends_goes_on_where_the_client_comes_back() -> None:
    world = World()
    call = Caller(world.server.http_app(retry_ms=250))
    session = await call.initialize()
    response = None
    body = encoded(request("tools/call", {"name": "detach"}, 4))
    async with call.open("POST", headers={**POST, **session}, body=body) as first:
        await first.wait_for(lambda each: each.is_complete)
        [primer] = first.events
        assert (primer.data, primer.retry) == (b"", 250) and primer.id
        headers = {"accept": "text/event-stream", "last-event-id": primer.id, **session}
        async with call.open("GET", headers=headers) as response:
            await response.wait_for(lambda each: each.status)
            world.release.set()
            await response.wait_for(lambda each: each.is_complete)
    assert response.messages[0]["result"]["content"][0]["text"] == "late"


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18"])
async def test_older_revisions_get_no_priming_event(version: str) -> None:
    world, call = caller()
    session = await call.initialize(version)
    world.release.set()
    body = request("tools/call", {"name": "steps", "_meta": {"progressToken": 1}})
    response = await call.post(body, session)
    assert response.is_stream and all(event.data for event in response.events)


async def test_events_of_another_session_cannot_be_had() -> None:
    world, call = caller()
    world.release.set()
    mine, theirs = await call.initialize(), await call.initialize()
    response = await call.post(request("tools/call", {"name": "steps", "_meta": {"progressToken": 1}}), mine)
    last = response.events[0].id
    stolen = await call.call("GET", headers={"accept": "text/event-stream", "last-event-id": last, **theirs})
    assert stolen.status == 404


async def test_idle_sessions_end_and_busy_ones_do_not() -> None:
    now = 0.0
    world = World(limits=Limits(session_idle=60))
    app = world.server.http_app(clock=lambda: now)
    call = Caller(app)
    idle, busy = await call.initialize(), await call.initialize()
    body = encoded(request("tools/call", {"name": "hold"}))
    async with call.open("POST", headers={**POST, **busy}, body=body) as response:
        with anyio.fail_after(5):
            await world.started.wait()
        now = 61.0
        assert (await call.post(request("ping"), idle)).status == 404
        assert len(app.sessions) == 1
        world.release.set()
        await response.wait_for(lambda each: each.is_complete)
    assert (await call.post(request("ping"), busy)).status == 200


async def test_sessions_beyond_the_limit_are_told_to_come_later() -> None:
    world = World(limits=Limits(sessions=1))
    call = Caller(world.server.http_app())
    await call.initialize()
    response = await call.post(initialize())
    assert response.status == 503 and response.headers["retry-after"]


async def test_batches_of_2025_03_26_are_answered_as_an_array() -> None:
    _, call = caller()
    session = await call.initialize("2025-03-26")
    batch = [request("ping", id=1), request("tools/call", {"name": "add", "arguments": {"a": 1, "b": 1}}, id=2)]
    response = await call.post(msgspec.json.encode(batch), session)
    assert sorted(each["id"] for each in response.json()) == [1, 2]


async def test_a_stateless_server_answers_legacy_requests_without_sessions() -> None:
    server = Server("test", state="stateless")

    @server.tool
    async def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    call = Caller(server.http_app())
    opened = await call.post(initialize())
    assert opened.status == 200 and "mcp-session-id" not in opened.headers
    response = await call.post(request("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}))
    assert response.json()["result"]["content"][0]["text"] == "3"
    assert (await call.call("GET", headers=POST)).status == 405
    assert (await call.call("DELETE", headers=POST)).status == 405
