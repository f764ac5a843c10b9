"""The server's role beyond what the transcripts show: configuration, headers, limits, extensions, stateless connections."""

import json
import sys
from typing import Any

import msgspec
import pytest
from msgspec import UNSET, Raw, UnsetType, field

from mcpcore.exceptions import LocalProtocolError
from mcpcore.limits import Limits
from mcpcore.protocol.events import (
    Caller,
    Event,
    MessageIgnored,
    MessageRejected,
    NotificationReceived,
    RequestCancelled,
    RequestReceived,
)
from mcpcore.protocol.messages import Incoming, RequestScope
from mcpcore.protocol.server import ServerConfig, ServerConnection
from mcpcore.types import (
    CallToolResult,
    ClientCapabilities,
    ElicitationCompleteParams,
    EmptyParams,
    EmptyResult,
    Implementation,
    InputRequiredResult,
    ListToolsResult,
    NotificationParams,
    ResourceUpdatedParams,
    ServerCapabilities,
    SubscriptionFilter,
)
from mcpcore.types._base import Object
from mcpcore.types.jsonrpc import ErrorData
from mcpcore.types.lifecycle import ListChangedCapability, ResourcesCapability
from mcpcore.types.methods import Direction, Method
from mcpcore.versions import LEGACY_VERSIONS, MODERN_VERSIONS, VERSIONS, Era

INFO = Implementation("s", "1")
CAPABILITIES = ServerCapabilities(
    tools=ListChangedCapability(True), resources=ResourcesCapability(True, True), logging={}
)
VERSION = "io.modelcontextprotocol/protocolVersion"
CLIENT = "io.modelcontextprotocol/clientCapabilities"
META: dict[str, Any] = {VERSION: "2026-07-28", CLIENT: {}}


def server(**options: Any) -> ServerConnection:
    of_connection = {key: options.pop(key) for key in ("one_shot", "session_version") if key in options}
    return ServerConnection(ServerConfig(INFO, CAPABILITIES, **options), **of_connection)


def request(method: str, id: int | str = 1, *, meta: Any = META, headers: Any = None, **params: Any) -> Incoming:
    if meta is not None:
        params["_meta"] = meta
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    return Incoming(msgspec.json.encode(message), headers=headers, scope=RequestScope("test"))


def initialize(version: str, id: int | str = "i", **capabilities: Any) -> Incoming:
    client = {"name": "c", "version": "1"}
    return request("initialize", id, meta=None, protocolVersion=version, capabilities=capabilities, clientInfo=client)


def session(version: str, **options: Any) -> ServerConnection:
    connection = server(**options)
    connection.receive(initialize(version))
    connection.receive(Incoming(b'{"jsonrpc":"2.0","method":"notifications/initialized"}'))
    connection.messages_to_send()
    return connection


def answers(connection: ServerConnection) -> list[Any]:
    return [json.loads(message.data) for message in connection.messages_to_send()]


def code(connection: ServerConnection) -> int:
    (answer,) = answers(connection)
    error: int = answer["error"]["code"]
    return error


# -- configuration -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("versions", [(), ("1.0",), ("2026-07-28", "2099-01-01")])
def test_a_server_speaks_some_revision_that_exists(versions: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="give some of"):
        ServerConfig(INFO, CAPABILITIES, versions=versions)


def test_caching_hints_are_checked_when_the_server_is_configured() -> None:
    with pytest.raises(ValueError, match="give 0 or more"):
        ServerConfig(INFO, CAPABILITIES, ttl_ms=-1)
    with pytest.raises(ValueError, match="'public' or 'private'"):
        ServerConfig(INFO, CAPABILITIES, cache_scope="everyone")


def test_versions_are_told_apart_by_era_and_kept_in_order() -> None:
    config = ServerConfig(INFO, CAPABILITIES, versions=tuple(reversed(VERSIONS)))
    assert (config.legacy_versions, config.modern_versions) == (LEGACY_VERSIONS, MODERN_VERSIONS)


# -- the era of a request ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("named", ["2026-07-28", "2031-01-01", "nonsense", ""])
def test_a_header_that_is_not_legacy_wants_a_modern_request(named: str) -> None:
    connection = session("2025-06-18")
    connection.receive(request("tools/list", meta=None, headers={"mcp-protocol-version": named}))
    assert code(connection) == -32602


@pytest.mark.parametrize("headers", [None, {}, {"mcp-protocol-version": "2025-06-18"}, {"accept": "x"}])
def test_other_headers_leave_a_request_to_its_session(headers: Any) -> None:
    connection = session("2025-06-18")
    (event,) = connection.receive(request("tools/list", meta=None, headers=headers))
    assert isinstance(event, RequestReceived) and event.caller is not None and event.caller.era is Era.LEGACY


def test_initialize_ignores_the_header() -> None:
    connection = server()
    message = initialize("2025-06-18")
    assert connection.receive(Incoming(message.data, headers={"mcp-protocol-version": "2099-01-01"})) == []
    assert answers(connection)[0]["result"]["protocolVersion"] == "2025-06-18"


def test_a_legacy_only_server_does_not_look_at_the_header() -> None:
    connection = session("2025-06-18", versions=LEGACY_VERSIONS)
    (event,) = connection.receive(request("tools/list", meta=None, headers={"mcp-protocol-version": "2026-07-28"}))
    assert isinstance(event, RequestReceived)


def test_a_modern_request_tells_who_asks_and_nothing_is_remembered() -> None:
    connection = server()
    info = "io.modelcontextprotocol/clientInfo"
    first = {**META, info: {"name": "a", "version": "1"}, CLIENT: {"roots": {}}}
    callers = []
    for number, meta in enumerate([first, first, META, {**META, info: {"name": "b", "version": "2"}}]):
        (event,) = connection.receive(request("tools/list", number, meta=meta))
        assert isinstance(event, RequestReceived) and event.caller is not None
        callers.append(event.caller)
        assert event.scope == RequestScope("test")
    assert [caller.info.name if caller.info else None for caller in callers] == ["a", "a", None, "b"]
    assert [caller.capabilities.roots is not None for caller in callers] == [True, True, False, False]
    assert connection.session is None


def test_a_large_meta_is_read_and_not_kept() -> None:
    connection = server()
    large = {**META, "com.example/blob": "x" * 100_000}
    for number in range(2):
        (event,) = connection.receive(request("tools/list", number, meta=large))
        assert isinstance(event, RequestReceived) and event.caller is not None
        assert event.caller == Caller(None, ClientCapabilities(), "2026-07-28", Era.MODERN)
    assert len(connection.config.meta._last[0]) < 5000


def test_meta_is_handed_on_raw_with_every_member() -> None:
    connection = server()
    meta = {**META, "traceparent": "00-ab-cd-01", "com.example/x": {"deep": [None]}}
    (event,) = connection.receive(request("tools/call", meta=meta, name="t"))
    assert isinstance(event, RequestReceived)
    assert msgspec.json.decode(event.params.meta) == meta


# -- sessions ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", LEGACY_VERSIONS)
def test_a_session_knows_its_client(version: str) -> None:
    connection = server()
    assert connection.session is None
    connection.receive(initialize(version, roots={"listChanged": True}))
    caller = connection.session
    assert caller is not None
    assert (caller.info, caller.version, caller.era) == (Implementation("c", "1"), version, Era.LEGACY)
    assert caller.capabilities.roots is not None


@pytest.mark.parametrize("version", LEGACY_VERSIONS)
def test_a_stateless_connection_serves_its_revision_without_a_session(version: str) -> None:
    connection = server(session_version=version)
    assert connection.session is None
    (event,) = connection.receive(request("tools/list", meta=None))
    assert isinstance(event, RequestReceived) and event.caller is not None
    assert (event.caller.version, event.caller.info) == (version, None)
    connection.send_result(1, ListToolsResult([]))
    assert answers(connection) == [{"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}]
    assert connection.publish("notifications/tools/list_changed", NotificationParams()) == 0
    assert not connection.send_log(None, "emergency", "nobody is there")


def test_a_stateless_connection_logs_for_a_request() -> None:
    connection = server(session_version="2025-11-25")
    connection.receive(request("tools/list", meta=None))
    assert connection.send_log(1, "info", "x")


@pytest.mark.parametrize("version", ["2025-03-26", "2024-11-05"])
def test_before_initialize_a_request_belongs_to_no_newer_revision_than_the_server_speaks(version: str) -> None:
    connection = server(versions=(version,))
    connection.receive(request("ping", meta=None))
    assert answers(connection) == [{"jsonrpc": "2.0", "id": 1, "result": {}}]


# -- one message and its answer ----------------------------------------------------------------------------------------


def test_a_one_shot_connection_is_closed_when_its_answer_has_been_handed_out() -> None:
    connection = server(one_shot=True)
    assert not connection.is_closed
    connection.receive(request("tools/call", name="t"))
    assert not connection.is_closed
    connection.send_result(1, CallToolResult())
    assert not connection.is_closed
    connection.messages_to_send()
    assert connection.is_closed


@pytest.mark.parametrize("message", [Incoming(b"nonsense"), request("nope"), request("server/discover")])
def test_a_one_shot_connection_is_closed_by_an_answer_of_the_core(message: Incoming) -> None:
    connection = server(one_shot=True)
    connection.receive(message)
    assert not connection.is_closed
    connection.messages_to_send()
    assert connection.is_closed


def test_another_connection_goes_on_after_an_answer() -> None:
    connection = server()
    connection.receive(Incoming(b"nonsense"))
    connection.messages_to_send()
    assert not connection.is_closed


# -- limits ------------------------------------------------------------------------------------------------------------


def test_subscriptions_are_limited_and_free_again_when_they_end() -> None:
    connection = server(limits=Limits(subscriptions=2))

    def listen(id: int) -> list[Event]:
        return connection.receive(request("subscriptions/listen", id, notifications={}))

    for id in (1, 2):
        listen(id)
        connection.acknowledge(id, SubscriptionFilter())
    connection.messages_to_send()
    (event,) = listen(3)
    assert isinstance(event, MessageRejected)
    (answer,) = answers(connection)
    assert answer["error"] == {"code": -32603, "message": "Too many subscriptions: at most 2"}
    connection.end_subscription(1)
    assert connection.subscriptions == (2,)
    (event,) = listen(4)
    assert isinstance(event, RequestReceived)


def test_subscribed_resources_are_limited() -> None:
    connection = session("2025-11-25", limits=Limits(subscriptions=1))
    for id, uri, fine in [(1, "a", True), (2, "b", False), (3, "a", True)]:
        connection.receive(request("resources/subscribe", id, meta=None, uri=uri))
        (answer,) = answers(connection)
        assert ("result" in answer) is fine
    connection.receive(request("resources/unsubscribe", 4, meta=None, uri="a"))
    connection.receive(request("resources/subscribe", 5, meta=None, uri="b"))
    assert all("result" in answer for answer in answers(connection))
    assert connection.publish("notifications/resources/updated", ResourceUpdatedParams("b")) == 1


# -- changes -----------------------------------------------------------------------------------------------------------


def test_changes_go_to_every_subscription_and_to_the_session() -> None:
    connection = session("2025-06-18")
    connection.receive(request("resources/subscribe", 1, meta=None, uri="file:///a"))
    for id in (2, "3"):
        wanted = {"toolsListChanged": True, "resourceSubscriptions": ["file:///a"]}
        connection.receive(request("subscriptions/listen", id, notifications=wanted))
        connection.acknowledge(id, SubscriptionFilter(tools_list_changed=True, resource_subscriptions=["file:///a"]))
    connection.messages_to_send()
    assert connection.publish("notifications/tools/list_changed", NotificationParams()) == 3
    assert connection.publish("notifications/resources/updated", ResourceUpdatedParams("file:///a")) == 3
    assert connection.publish("notifications/resources/updated", ResourceUpdatedParams("file:///b")) == 0
    tags = [answer.get("params", {}).get("_meta") for answer in answers(connection)]
    subscription = "io.modelcontextprotocol/subscriptionId"
    assert tags == [{subscription: 2}, {subscription: "3"}, None] * 2


# -- extensions --------------------------------------------------------------------------------------------------------


class GreetParams(Object):
    name: str
    meta: Raw | UnsetType = field(name="_meta", default=UNSET)


class GreetResult(Object):
    greeting: str
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class Waved(Object):
    hand: str


EXTENSIONS = (
    Method("com.example/greet", Direction.TO_SERVER, GreetParams, GreetResult),
    Method("com.example/ask", Direction.TO_CLIENT, EmptyParams, EmptyResult, LEGACY_VERSIONS),
    Method("notifications/com.example/waved", Direction.TO_SERVER, Waved, None),
    Method("com.example/modern", Direction.TO_SERVER, EmptyParams, EmptyResult, MODERN_VERSIONS, input_required=True),
    Method("com.example/offered", Direction.TO_SERVER, EmptyParams, EmptyResult, capability="prompts"),
)


def test_methods_of_extensions_are_like_any_other() -> None:
    connection = session("2025-11-25", extensions=EXTENSIONS)
    for id, meta in [(1, META), (2, None)]:
        (event,) = connection.receive(request("com.example/greet", id, meta=meta, name="x"))
        assert isinstance(event, RequestReceived) and event.params.name == "x"
        connection.send_result(id, GreetResult("hello"))
    modern, legacy = answers(connection)
    assert modern["result"]["resultType"] == "complete" and modern["result"]["greeting"] == "hello"
    assert legacy["result"] == {"greeting": "hello"}
    connection.receive(request("com.example/greet", 3, meta=None))
    assert code(connection) == -32602


def test_notifications_of_extensions_are_received() -> None:
    connection = server(extensions=EXTENSIONS)
    wave = b'{"jsonrpc":"2.0","method":"notifications/com.example/waved","params":{"hand":"left"}}'
    assert connection.receive(Incoming(wave)) == [NotificationReceived(EXTENSIONS[2], Waved("left"))]


def test_methods_of_extensions_exist_where_they_say() -> None:
    connection = session("2025-11-25", extensions=EXTENSIONS)
    for method, meta, there in [
        ("com.example/modern", META, True),
        ("com.example/modern", None, False),
        ("com.example/ask", None, False),
        ("com.example/offered", None, False),
    ]:
        events = connection.receive(request(method, method + str(meta), meta=meta))
        assert isinstance(events[0], RequestReceived) is there
    connection.send_request("com.example/ask", EmptyParams())
    connection.send_input_required("com.example/modern" + str(META), InputRequiredResult(request_state="s"))


def test_requests_of_extensions_are_sent_to_clients() -> None:
    connection = session("2025-11-25", extensions=EXTENSIONS)
    connection.send_request("com.example/ask", EmptyParams(meta=Raw(b'{"a":1}')), progress=True)
    (message,) = answers(connection)
    assert message["params"] == {"_meta": {"a": 1, "progressToken": message["id"]}}


# -- requests of the server --------------------------------------------------------------------------------------------


def test_a_request_on_behalf_of_another_goes_on_its_stream() -> None:
    connection = session("2025-11-25")
    call = request("tools/call", 7, meta=None, name="t")
    connection.receive(Incoming(call.data, tag="stream"))
    connection.send_request("ping", EmptyParams(), related_to=7)
    (message,) = connection.messages_to_send()
    assert (message.tag, message.related_to) == ("stream", 7)


def test_nothing_is_asked_on_behalf_of_a_request_that_is_over() -> None:
    connection = session("2025-11-25")
    with pytest.raises(LocalProtocolError, match="request 7 is not open"):
        connection.send_request("ping", EmptyParams(), related_to=7)
    assert not connection.has_messages


def test_nothing_is_asked_on_behalf_of_a_modern_request() -> None:
    connection = session("2025-11-25")
    connection.receive(request("tools/call", 7, name="t"))
    with pytest.raises(LocalProtocolError, match="modern servers never send requests"):
        connection.send_request("ping", EmptyParams(), related_to=7)


def test_initialized_twice_is_void() -> None:
    connection = session("2025-11-25")
    (event,) = connection.receive(Incoming(b'{"jsonrpc":"2.0","method":"notifications/initialized"}'))
    assert isinstance(event, MessageIgnored)


def test_params_deeper_than_the_parser_can_follow_are_refused() -> None:
    connection = server(limits=Limits(json_depth=10**6))
    for depth in (900, 3000):
        deep = b"[" * depth + b"]" * depth
        meta = b'"_meta":{"%b":"2026-07-28","%b":{}}' % (VERSION.encode(), CLIENT.encode())
        data = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%b,%b}}' % (depth, deep, meta)
        connection.receive(Incoming(data))
        (answer,) = answers(connection)
        assert answer["id"] == depth and answer["error"]["code"] in (-32600, -32602)


@pytest.mark.parametrize("place", ["arguments", "_meta"])
def test_no_depth_makes_receive_raise(place: str) -> None:
    """The parser gives up at a depth that depends on how much of the stack is used, so each step has one of its own."""
    maps = {"t": {("a",): "mcp-param-a"}}
    connection = server(limits=Limits(json_depth=10**6), header_map=maps.get)
    headers = {**HEADERS, "mcp-param-a": "1"}
    outcomes: set[str] = set()
    for depth in range(1, sys.getrecursionlimit() + 10):
        deep = Raw(b"[" * depth + b"]" * depth)
        params: dict[str, Any] = {"name": "t", "arguments": {"a": "1"}, "_meta": dict(META)}
        params[place]["deep"] = deep
        message = {"jsonrpc": "2.0", "id": depth, "method": "tools/call", "params": params}
        events = connection.receive(Incoming(msgspec.json.encode(message), headers))
        for answer in answers(connection):
            assert answer["id"] == depth and answer["error"]["code"] in (-32600, -32602)
            outcomes.add(answer["error"]["message"].partition(":")[0])
        if events and isinstance(events[0], RequestReceived):
            outcomes.add("received")
            connection.send_error(depth, ErrorData(-32603, "done"))
            connection.messages_to_send()
    assert outcomes >= {"received", "Invalid Request"}


# -- header fields that mirror the body --------------------------------------------------------------------------------

HEADERS = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "t"}


def mirrored() -> ServerConnection:
    maps = {"t": {("a",): "mcp-param-a"}}
    return server(header_map=maps.get)


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({}, None),
        ({"mcp-protocol-version": None}, -32020),
        ({"mcp-protocol-version": "2025-11-25"}, -32020),
        ({"mcp-method": "tools/list"}, -32020),
        ({"mcp-method": None}, -32020),
        ({"mcp-name": "T"}, -32020),
        ({"mcp-name": None}, -32020),
        ({"mcp-param-a": "2"}, -32020),
        ({"mcp-param-a": "1.0"}, None),
        ({"mcp-param-a": "=?base64?MQ==?="}, None),
        ({"mcp-param-a": "=?base64?M?="}, -32020),
        ({"mcp-param-b": "whatever"}, None),
    ],
)
def test_headers_that_do_not_match_the_body_are_refused(changed: dict[str, str | None], problem: int | None) -> None:
    connection = mirrored()
    headers = {key: value for key, value in {**HEADERS, "mcp-param-a": "1", **changed}.items() if value is not None}
    (event,) = connection.receive(request("tools/call", headers=headers, name="t", arguments={"a": 1}))
    assert isinstance(event, RequestReceived) is (problem is None)
    if problem is not None:
        assert code(connection) == problem


def test_an_unsupported_version_is_told_when_the_header_names_it_too() -> None:
    connection = mirrored()
    meta = {VERSION: "2031-01-01", CLIENT: {}}
    connection.receive(request("tools/call", meta=meta, headers={"mcp-protocol-version": "2031-01-01"}, name="t"))
    assert code(connection) == -32022


@pytest.mark.parametrize("value", ["1e400", "1" * 400, "-1e-400", "[" * 200 + "]" * 200, '"\\u00e9"', "null", "true"])
def test_no_argument_that_has_to_be_mirrored_makes_receive_raise(value: str) -> None:
    for given in ("1", "nan", "inf", "", "1e400", "=?base64?/w==?=", "1" * 400):
        connection = mirrored()
        data = request("tools/call", name="t", arguments={"a": "VALUE"}).data.replace(b'"VALUE"', value.encode())
        connection.receive(Incoming(data, headers={**HEADERS, "mcp-param-a": given}))


def test_without_a_map_nothing_is_mirrored() -> None:
    connection = server()
    (event,) = connection.receive(request("tools/call", headers=HEADERS, name="t", arguments={"a": 1}))
    assert isinstance(event, RequestReceived)


# -- streams that close ------------------------------------------------------------------------------------------------


def test_a_request_is_withdrawn_by_closing_its_stream() -> None:
    connection = server()
    connection.receive(Incoming(request("tools/call", 7, name="t").data, tag="a"))
    assert connection.withdraw(7) == [RequestCancelled(7, None)]
    assert not connection.is_open(7)
    assert isinstance(connection.withdraw(7)[0], MessageIgnored)


# -- notifications of the server's own ---------------------------------------------------------------------------------


def test_a_notification_goes_to_a_session_that_is_ready_in_a_revision_that_has_it() -> None:
    done = ElicitationCompleteParams("e")
    method = "notifications/elicitation/complete"
    for version in LEGACY_VERSIONS:
        connection = session(version)
        assert connection.send_notification(method, done) is (version == "2025-11-25")
    assert not server(session_version="2025-11-25").send_notification(method, done)
    early = server()
    early.receive(initialize("2025-11-25"))
    early.messages_to_send()
    assert not early.send_notification(method, done) and not early.has_messages
    ready = session("2025-11-25")
    assert not ready.send_notification("ping", EmptyParams()) and not ready.send_notification("nope", done)
    ready.send_notification(method, done)
    assert answers(ready) == [{"jsonrpc": "2.0", "method": method, "params": {"elicitationId": "e"}}]
