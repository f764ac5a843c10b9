"""The client's role beyond what the transcripts show: what it puts into a request, and what ends one."""

import json
from typing import Any

import msgspec
import pytest
from msgspec import UNSET, Raw

from mcpcore.exceptions import ConnectionLost, LocalProtocolError
from mcpcore.protocol.client import ClientConfig, ClientConnection
from mcpcore.protocol.events import (
    ConnectionClosed,
    ErrorReceived,
    Event,
    InputRequired,
    MessageIgnored,
    MessageRejected,
    NegotiationFailed,
    NotificationReceived,
    RequestLost,
    ResultReceived,
    SubscriptionAcknowledged,
    SubscriptionEnded,
    SubscriptionNotified,
)
from mcpcore.protocol.messages import Incoming, Unanswered
from mcpcore.types import (
    CallToolParams,
    CompleteParams,
    CompletionArgument,
    ElicitResult,
    ErrorData,
    GetPromptParams,
    Implementation,
    NotificationParams,
    PromptReference,
    SubscriptionFilter,
)
from mcpcore.types.methods import Direction, Method
from mcpcore.versions import LATEST_MODERN, LEGACY_VERSIONS, VERSIONS
from tests.support.connected import INFO, connected, unconnected

KEY = "io.modelcontextprotocol/"
SUBSCRIPTION = f"{KEY}subscriptionId"


def client(version: str = LATEST_MODERN) -> ClientConnection:
    pair = connected(version)
    pair.client.messages_to_send()
    return pair.client


def receive(connection: ClientConnection, **message: Any) -> list[Event]:
    return connection.receive(Incoming(msgspec.json.encode({"jsonrpc": "2.0", **message})))


def params(connection: ClientConnection) -> dict[str, Any]:
    """Parameters of the one message that was sent, provided that no member is there twice."""
    (message,) = connection.messages_to_send()

    def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(dict(pairs)) == len(pairs), pairs
        return dict(pairs)

    told: dict[str, Any] = json.loads(message.data, object_pairs_hook=distinct).get("params", {})
    return told


# -- configuration -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("versions", [(), ("1.0",), ("2026-07-28", "2099-01-01")])
def test_a_client_speaks_some_revision_that_exists(versions: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="give some of"):
        ClientConfig(Implementation("c", "1"), versions=versions)


# -- what goes into a request ------------------------------------------------------------------------------------------


def test_a_modern_request_says_who_asks_in_which_version() -> None:
    connection = client()
    connection.send_request("tools/list")
    meta = params(connection)["_meta"]
    assert set(meta) == {f"{KEY}protocolVersion", f"{KEY}clientInfo", f"{KEY}clientCapabilities"}
    assert meta[f"{KEY}protocolVersion"] == LATEST_MODERN
    assert msgspec.convert(meta[f"{KEY}clientInfo"], Implementation) == INFO


@pytest.mark.parametrize("version", LEGACY_VERSIONS)
def test_a_legacy_request_says_nothing_of_that(version: str) -> None:
    connection = client(version)
    connection.send_request("tools/list", log_level="debug")
    assert params(connection) == {}


@pytest.mark.parametrize("version", VERSIONS)
def test_progress_is_asked_for_under_the_id_of_the_request(version: str) -> None:
    connection = client(version)
    id = connection.send_request("tools/list", progress=True)
    assert params(connection)["_meta"]["progressToken"] == id


def test_a_log_level_is_asked_for_with_the_request() -> None:
    connection = client()
    connection.send_request("tools/list", log_level="notice")
    assert params(connection)["_meta"][f"{KEY}logLevel"] == "notice"


@pytest.mark.parametrize("version", VERSIONS)
def test_meta_of_the_caller_is_sent_and_what_belongs_to_the_core_is_not(version: str) -> None:
    reserved = ("protocolVersion", "clientInfo", "clientCapabilities", "logLevel")
    forged = {**{KEY + name: "forged" for name in reserved}, "progressToken": "forged", "a": None}
    connection = client(version)
    given = CallToolParams("t", meta=Raw(msgspec.json.encode({**forged, "b": 1, "c": 2})))
    connection.send_request("tools/call", given, meta={**forged, "c": 3})
    meta = params(connection)["_meta"]
    assert (meta["a"], meta["b"], meta["c"]) == (None, 1, 3)
    assert "forged" not in meta.values()
    assert "progressToken" not in meta


def test_params_may_be_left_out_where_none_are_needed() -> None:
    connection = client("2025-11-25")
    connection.send_request("ping")
    assert json.loads(connection.messages_to_send()[0].data) == {"jsonrpc": "2.0", "id": 2, "method": "ping"}


def test_answers_of_an_earlier_round_can_be_sent_by_hand_and_are_not_repeated() -> None:
    connection = client()
    given = CallToolParams("t", input_responses={"q": Raw(b'{"action":"decline"}')}, request_state="s")
    id = connection.send_request("tools/call", given)
    told = params(connection)
    assert (told["inputResponses"], told["requestState"]) == ({"q": {"action": "decline"}}, "s")
    (event,) = receive(connection, id=id, result={"resultType": "input_required", "requestState": "s2"})
    assert isinstance(event, InputRequired)
    connection.retry(event, {})
    told = params(connection)
    assert told["requestState"] == "s2" and "inputResponses" not in told and told["name"] == "t"


@pytest.mark.parametrize("version", LEGACY_VERSIONS)
def test_answers_of_an_earlier_round_are_not_for_the_legacy_era(version: str) -> None:
    connection = client(version)
    connection.send_request("prompts/get", GetPromptParams("p", request_state="s"))
    assert params(connection) == {"name": "p"}


def test_a_retry_is_another_request_with_the_same_params_meta_and_state() -> None:
    connection = client()
    call = CallToolParams("t", Raw(b'{"a":1}'))
    id = connection.send_request("tools/call", call, meta={"traceparent": "x"}, log_level="info", progress=True)
    first = params(connection)
    state = 'é\u0000"\\ opaque'
    asked = {"who": {"method": "elicitation/create", "params": {"message": "Who?"}}}
    answer = {"resultType": "input_required", "inputRequests": asked, "requestState": state}
    (event,) = receive(connection, id=id, result=answer)
    assert isinstance(event, InputRequired) and (event.id, event.request_state) == (id, state)
    again = connection.retry(event, {"who": ElicitResult("accept", {"name": "x"})}, progress=True)
    assert again != id
    second = params(connection)
    assert second.pop("inputResponses") == {"who": {"action": "accept", "content": {"name": "x"}}}
    assert second.pop("requestState") == state
    assert second["_meta"].pop("progressToken") == again and first["_meta"].pop("progressToken") == id
    assert second == first


def test_a_parallel_request_does_not_carry_the_state_of_another() -> None:
    connection = client()
    id = connection.send_request("tools/call", CallToolParams("t"))
    connection.messages_to_send()
    receive(connection, id=id, result={"resultType": "input_required", "requestState": "s"})
    connection.send_request("tools/call", CallToolParams("t"))
    assert "requestState" not in params(connection)


# -- what may be sent --------------------------------------------------------------------------------------------------


def test_what_the_server_did_not_declare_is_not_asked_for() -> None:
    connection = ClientConnection(ClientConfig(Implementation("c", "1")))
    connection.negotiate()
    receive(connection, id=1, result={"supportedVersions": VERSIONS, "capabilities": {"resources": {}}})
    connection.messages_to_send()
    for method in ("tools/list", "prompts/list", "completion/complete"):
        with pytest.raises(LocalProtocolError, match="the server did not declare"):
            connection.send_request(method)
    connection.send_request("resources/list")
    assert len(connection.messages_to_send()) == 1


def test_completion_needed_no_capability_in_the_first_revision() -> None:
    for version, fine in [("2024-11-05", True), ("2025-03-26", False)]:
        connection = ClientConnection(ClientConfig(Implementation("c", "1"), versions=(version,)))
        connection.negotiate()
        server = {"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        receive(connection, id=1, result=server)
        wanted = CompleteParams(PromptReference("p"), CompletionArgument("a", ""))
        if fine:
            connection.send_request("completion/complete", wanted)
        else:
            with pytest.raises(LocalProtocolError, match="completions"):
                connection.send_request("completion/complete", wanted)


@pytest.mark.parametrize("method", ["initialize", "notifications/cancelled", "notifications/progress"])
def test_what_the_core_sends_by_itself_is_not_sent_by_hand(method: str) -> None:
    connection = client("2025-11-25")
    for attempt in (connection.send_request, connection.send_notification):
        with pytest.raises(LocalProtocolError, match="sent by the core itself"):
            attempt(method)
    assert not connection.has_messages


def test_a_modern_server_gets_no_notifications() -> None:
    connection = client()
    with pytest.raises(LocalProtocolError, match="has no notification notifications/roots/list_changed"):
        connection.send_notification("notifications/roots/list_changed", NotificationParams())


def test_methods_of_extensions_can_be_sent() -> None:
    extension = Method("com.example/greet", Direction.TO_SERVER, CallToolParams, None)
    config = ClientConfig(Implementation("c", "1"), extensions=(extension,))
    connection = ClientConnection(config)
    connection.negotiate()
    receive(connection, id=1, result={"supportedVersions": VERSIONS, "capabilities": {}})
    connection.messages_to_send()
    connection.send_notification("com.example/greet", CallToolParams("x"))
    assert params(connection) == {"name": "x"}


# -- opening -----------------------------------------------------------------------------------------------------------


def test_the_probe_is_over_when_it_is_answered_or_given_up() -> None:
    for end in ("answer", "time", "cancel"):
        pair = unconnected(LATEST_MODERN)
        assert not pair.client.is_probing
        pair.client.negotiate()
        assert pair.client.is_probing
        if end == "answer":
            pair.shuttle()
        elif end == "time":
            assert isinstance(pair.client.probe_timed_out()[0], NegotiationFailed)
        else:
            pair.client.cancel(1)
        assert not pair.client.is_probing
        assert pair.client.probe_timed_out() == []


def test_what_opens_is_withdrawn_without_a_word() -> None:
    for version in ("2025-11-25", LATEST_MODERN):
        pair = unconnected(version)
        pair.client.negotiate()
        pair.drop("to_server")
        pair.client.cancel(1)
        assert not pair.client.has_messages
        assert isinstance(receive(pair.client, id=1, result={})[0], MessageIgnored)


def test_an_identity_that_cannot_be_read_is_no_reason_to_refuse_a_server() -> None:
    unreadable: list[Any] = [{f"{KEY}serverInfo": 5}, {f"{KEY}serverInfo": {"name": "s"}}, None, {}]
    for meta in unreadable:
        connection = ClientConnection(ClientConfig(Implementation("c", "1")))
        connection.negotiate()
        result = {"supportedVersions": VERSIONS, "capabilities": {}, "_meta": meta}
        receive(connection, id=1, result=result)
        assert connection.server is not None and connection.server.info is None


def test_the_end_of_the_input_while_opening_is_told() -> None:
    pair = unconnected(LATEST_MODERN)
    pair.client.negotiate()
    assert pair.client.receive_eof() == [ConnectionClosed((1,))]
    assert not pair.client.is_probing and pair.client.probe_timed_out() == []


def test_an_error_without_an_id_belongs_to_the_opening_only() -> None:
    connection = client()
    id = connection.send_request("tools/list")
    (event,) = receive(connection, error={"code": -32700, "message": "Parse error"})
    assert isinstance(event, MessageIgnored) and "Parse error" in event.reason
    (event,) = receive(connection, id=id, result={"tools": []})
    assert isinstance(event, ResultReceived)


# -- a request that gets no answer -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["tools/list", "subscriptions/listen"])
def test_a_request_of_which_the_binding_knows_that_it_gets_no_answer_is_lost(method: str) -> None:
    connection = client()
    listening = method == "subscriptions/listen"
    id = connection.listen(SubscriptionFilter()) if listening else connection.send_request(method)
    lost = Unanswered(id, ConnectionLost("the stream broke"))
    events = connection.receive(Incoming(b"", problem=lost))
    assert events[0] == RequestLost(id, lost.error)
    assert isinstance(connection.receive(Incoming(b"", problem=lost))[0], MessageIgnored)


@pytest.mark.parametrize("understood", [True, False])
def test_a_lost_opening_falls_back_where_the_server_did_not_understand(understood: bool) -> None:
    connection = ClientConnection(ClientConfig(Implementation("c", "1")))
    connection.negotiate()
    connection.messages_to_send()
    lost = Unanswered(1, ConnectionLost("404"), not_understood=not understood)
    events = connection.receive(Incoming(b"", problem=lost))
    if understood:
        assert isinstance(events[0], NegotiationFailed) and events[0].cause is lost.error
    else:
        assert json.loads(connection.messages_to_send()[0].data)["method"] == "initialize"
        lost = Unanswered(2, ConnectionLost("404"), not_understood=True)
        (event,) = connection.receive(Incoming(b"", problem=lost))[-1:]
        assert isinstance(event, NegotiationFailed)


# -- subscriptions -----------------------------------------------------------------------------------------------------


def listening() -> tuple[ClientConnection, int | str]:
    connection = client()
    id = connection.listen(SubscriptionFilter(tools_list_changed=True))
    connection.messages_to_send()
    return connection, id


def notify(connection: ClientConnection, method: str, meta: Any, **more: Any) -> Event:
    (event,) = receive(connection, method=f"notifications/{method}", params={"_meta": meta, **more})
    return event


def test_a_subscription_is_acknowledged_once() -> None:
    connection, id = listening()
    granted = {"notifications": {"toolsListChanged": True}}
    event = notify(connection, "subscriptions/acknowledged", {SUBSCRIPTION: id}, **granted)
    assert event == SubscriptionAcknowledged(id, SubscriptionFilter(tools_list_changed=True))
    event = notify(connection, "subscriptions/acknowledged", {SUBSCRIPTION: id}, **granted)
    assert isinstance(event, MessageIgnored) and "twice" in event.reason


@pytest.mark.parametrize("other", ["2", 99, True, 2.0, [2], {"a": 2}, [], {}])
def test_a_notification_of_no_subscription_of_ours_is_void(other: Any) -> None:
    connection, id = listening()
    assert id == 2
    assert isinstance(notify(connection, "tools/list_changed", {SUBSCRIPTION: other}), MessageIgnored)
    ordinary = connection.send_request("tools/list")
    assert isinstance(notify(connection, "tools/list_changed", {SUBSCRIPTION: ordinary}), MessageIgnored)


def test_notifications_of_several_subscriptions_are_told_apart() -> None:
    connection, first = listening()
    second = connection.listen(SubscriptionFilter(tools_list_changed=True))
    for id in (second, first):
        event = notify(connection, "tools/list_changed", {SUBSCRIPTION: id, "x": 1})
        assert isinstance(event, SubscriptionNotified) and event.id == id


@pytest.mark.parametrize("meta", [None, {}, {"x": 1}, {SUBSCRIPTION: None}])
def test_a_notification_without_a_subscription_is_an_ordinary_one(meta: Any) -> None:
    connection, _ = listening()
    assert isinstance(notify(connection, "tools/list_changed", meta), NotificationReceived)


def test_a_subscription_that_ends_by_an_error_is_told_with_it() -> None:
    connection, id = listening()
    error = {"code": -32601, "message": "Method not found"}
    (event,) = receive(connection, id=id, error=error)
    assert isinstance(event, SubscriptionEnded)
    assert (event.error, event.graceful) == (ErrorData(-32601, "Method not found"), False)


@pytest.mark.parametrize("answer", [{"error": "no"}, {"result": {"x": "\ud800"}}])
def test_a_subscription_that_ends_by_a_broken_answer_is_told(answer: dict[str, Any]) -> None:
    connection, id = listening()
    data = json.dumps({"jsonrpc": "2.0", "id": id, **answer}).encode()
    rejected, ended = connection.receive(Incoming(data))
    assert isinstance(rejected, MessageRejected) and rejected.id == id and not rejected.answered
    assert isinstance(ended, SubscriptionEnded) and not ended.graceful


def test_a_server_cancels_nothing_but_subscriptions() -> None:
    connection, id = listening()
    ordinary = connection.send_request("tools/list")
    event = notify(connection, "cancelled", None, requestId=ordinary)
    assert isinstance(event, MessageIgnored)
    assert notify(connection, "cancelled", None, requestId=id) == SubscriptionEnded(id)
    (event,) = receive(connection, id=ordinary, result={"tools": []})
    assert isinstance(event, ResultReceived)


# -- answers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_an_error_of_the_server_ends_the_request(version: str) -> None:
    connection = client(version)
    id = connection.send_request("tools/list")
    data = {"a": None}
    (event,) = receive(connection, id=id, error={"code": -5, "message": "no", "data": data})
    assert event == ErrorReceived(id, ErrorData(-5, "no", data))
    id = connection.send_request("tools/list")
    (event,) = receive(connection, id=id, error={"code": -5, "message": "no"})
    assert isinstance(event, ErrorReceived) and event.error.data is UNSET


@pytest.mark.parametrize("depth", [300, 100_000])
@pytest.mark.parametrize("member", ["result", "error"])
def test_an_answer_that_is_too_deep_ends_its_request_and_is_not_answered(depth: int, member: str) -> None:
    connection = client("2025-11-25")
    id = connection.send_request("tools/list")
    connection.messages_to_send()
    deep = "[" * depth + "]" * depth
    (event,) = connection.receive(Incoming(f'{{"jsonrpc":"2.0","id":{id},"{member}":{{"x":{deep}}}}}'.encode()))
    assert isinstance(event, MessageRejected) and event.id == id and "nested deeper" in event.error.message
    assert not connection.has_messages


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("depth", [130, 1_000, 100_000])
def test_an_item_that_is_too_deep_is_left_out_of_its_list(version: str, depth: int) -> None:
    connection = client(version)
    id = connection.send_request("tools/list")
    connection.messages_to_send()
    deep = '{"allOf":[' * depth + "{}" + "]}" * depth
    tools = [
        '{"name":"first","inputSchema":{"type":"object","description":"[[{\\"\\\\"}}',
        f'{{"name":"deep","inputSchema":{deep}}}',
        '{"name":"last","inputSchema":{"type":"object"}}',
    ]
    listed = f'"tools":[{", ".join(tools)}]'
    answer = f'{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","x":[{{"a":[]}}],{listed}}}}}'
    rejected, event = connection.receive(Incoming(answer.encode()))
    assert isinstance(rejected, MessageRejected) and rejected.id is None and "nested deeper" in rejected.error.message
    assert isinstance(event, ResultReceived)
    assert [tool.name for tool in event.result.tools] == ["first", "last"]
    assert event.result.tools[0].input_schema["description"] == '[[{"\\'
    assert len(event.skipped) == 1


@pytest.mark.parametrize("member", ["_meta", "cursors", "nextCursor"])
def test_what_is_too_deep_beside_the_items_of_a_list_is_of_no_use(member: str) -> None:
    connection = client("2025-11-25")
    id = connection.send_request("tools/list")
    deep = '{"a":[' * 200 + "]}" * 200
    answer = f'{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[],"{member}":[{deep}]}}}}'
    (event,) = connection.receive(Incoming(answer.encode()))
    assert isinstance(event, MessageRejected) and event.id == id


def test_no_content_of_a_call_is_left_out_for_its_depth() -> None:
    connection = client("2025-11-25")
    id = connection.send_request("tools/call", CallToolParams("t"))
    deep = '{"a":[' * 200 + "]}" * 200
    answer = f'{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"t","_meta":{deep}}}]}}}}'
    (event,) = connection.receive(Incoming(answer.encode()))
    assert isinstance(event, MessageRejected) and event.id == id


def test_a_strict_match_of_ids_leaves_a_request_waiting() -> None:
    connection = client()
    id = connection.send_request("tools/list")
    for other in (str(id), float(id), 99, "", None):
        assert not any(
            isinstance(event, ResultReceived) for event in receive(connection, id=other, result={"tools": []})
        )
    assert isinstance(receive(connection, id=id, result={"tools": []})[0], ResultReceived)


# -- header fields that mirror a request -------------------------------------------------------------------------------


def test_requests_carry_header_fields_only_where_a_binding_wants_them() -> None:
    connection = client()
    connection.send_request("tools/list")
    assert connection.messages_to_send()[0].headers is None
    connection.header_maps = {}
    connection.send_request("tools/list")
    assert connection.messages_to_send()[0].headers == {
        "MCP-Protocol-Version": LATEST_MODERN,
        "Mcp-Method": "tools/list",
    }


def test_header_fields_mirror_name_and_arguments() -> None:
    connection = client()
    connection.header_maps = {"t": {("where", "region"): "mcp-param-region"}}
    connection.send_request("tools/call", CallToolParams("t", Raw(b'{"where":{"region":"\\u00e9"}}')))
    headers = connection.messages_to_send()[0].headers
    assert headers["Mcp-Name"] == "t" and headers["Mcp-Param-region"] == "=?base64?w6k=?="
    connection.send_request("tools/call", CallToolParams("other", Raw(b'{"where":{"region":"x"}}')))
    assert "Mcp-Param-region" not in connection.messages_to_send()[0].headers


def test_a_request_that_cannot_be_mirrored_is_not_sent() -> None:
    connection = client()
    connection.header_maps = {"t": {("n",): "mcp-param-n"}}
    with pytest.raises(ValueError, match="beyond the integers"):
        connection.send_request("tools/call", CallToolParams("t", Raw(b'{"n":9007199254740993}')))
    assert not connection.has_messages
    assert connection.receive_eof() == [ConnectionClosed(())]


def test_the_opening_of_a_modern_connection_is_mirrored_and_that_of_a_legacy_one_is_not() -> None:
    for version, headers in [
        (LATEST_MODERN, {"MCP-Protocol-Version": LATEST_MODERN, "Mcp-Method": "server/discover"}),
        ("2025-11-25", None),
    ]:
        pair = unconnected(version)
        pair.client.header_maps = {}
        pair.client.negotiate()
        assert pair.client.messages_to_send()[0].headers == headers


def test_legacy_requests_are_not_mirrored() -> None:
    connection = client("2025-11-25")
    connection.header_maps = {}
    connection.send_request("tools/list")
    assert connection.messages_to_send()[0].headers is None


def test_an_initialize_of_the_wrong_shape_says_what_is_wrong() -> None:
    pair = unconnected("2025-11-25")
    pair.client.negotiate()
    pair.drop("to_server")
    rejected, failed = receive(pair.client, id=1, result={"capabilities": {}})
    assert isinstance(rejected, MessageRejected) and isinstance(failed, NegotiationFailed)
    assert "protocolVersion" in rejected.error.message
