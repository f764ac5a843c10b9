"""What both roles share: the outbox, tags, cancellation, the end of the input, and calls out of turn."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from mcpcore.exceptions import LocalProtocolError, RemoteProtocolError
from mcpcore.limits import Limits
from mcpcore.protocol.connection import Connection, check_versions, unknown_method
from mcpcore.protocol.events import ConnectionClosed, MessageRejected, RequestCancelled, RequestReceived
from mcpcore.protocol.fitting import take_meta, without
from mcpcore.protocol.messages import Incoming, Kind, Outgoing
from mcpcore.protocol.server import ServerConfig, ServerConnection
from mcpcore.types import (
    CallToolParams,
    CallToolResult,
    EmptyResult,
    ErrorData,
    Implementation,
    LogMessageParams,
    ServerCapabilities,
    TextContent,
)
from mcpcore.types.lifecycle import ListChangedCapability
from mcpcore.versions import VERSIONS
from tests.support.connected import connected

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/logLevel": "debug",
    "progressToken": "t",
}


def server(**options: Any) -> ServerConnection:
    capabilities = ServerCapabilities(tools=ListChangedCapability(True), logging={})
    return ServerConnection(ServerConfig(Implementation("s", "1"), capabilities), **options)


def call(id: int | str = 1, *, tag: Any = None, **params: Any) -> Incoming:
    message = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "t", "_meta": META, **params}}
    return Incoming(msgspec.json.encode(message), tag=tag)


def cancelled(id: int | str) -> Incoming:
    params = {"requestId": id}
    return Incoming(msgspec.json.encode({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))


# -- the outbox --------------------------------------------------------------------------------------------------------


def test_messages_are_handed_out_once_and_in_order() -> None:
    connection = server()
    connection.receive(call())
    assert not connection.has_messages and connection.queued_bytes == 0
    connection.send_progress(1, 1)
    connection.send_log(1, "info", "x")
    connection.send_result(1, CallToolResult())
    assert connection.has_messages
    messages = connection.messages_to_send()
    assert [message.method for message in messages] == ["notifications/progress", "notifications/message", None]
    assert not connection.has_messages and connection.messages_to_send() == []


def test_queued_bytes_are_those_of_the_queued_messages() -> None:
    connection = server()
    connection.receive(call(1))
    connection.receive(call(2))
    for step in range(5):
        connection.send_progress(1, step)
        connection.send_progress(2, step, message="x" * step)
    connection.receive(cancelled(1))
    size = connection.queued_bytes
    assert size == sum(len(message.data) for message in connection.messages_to_send()) > 0
    assert connection.queued_bytes == 0


def test_no_message_has_a_line_break_in_it() -> None:
    connection = server()
    connection.receive(call())
    connection.send_result(1, Raw(b'{\r\n  "content": [\n],\n  "text": "a\\nb"\r\n}'))
    (message,) = connection.messages_to_send()
    assert b"\n" not in message.data and b"\r" not in message.data
    assert json.loads(message.data)["result"]["text"] == "a\nb"


def test_arguments_that_somebody_laid_out_are_one_line() -> None:
    pair = connected("2026-07-28")
    pair.client.send_request("tools/call", CallToolParams("t", Raw(b'{\n  "a": "\\n"\n}')))
    (message,) = pair.client.messages_to_send()
    assert b"\n" not in message.data
    assert json.loads(message.data)["params"]["arguments"] == {"a": "\n"}


# -- routing -----------------------------------------------------------------------------------------------------------


def test_everything_that_a_message_causes_carries_its_tag() -> None:
    connection = server()
    connection.receive(call(1, tag="a"))
    connection.receive(call(2, tag="b"))
    connection.send_progress(2, 1)
    connection.send_log(1, "info", "x")
    connection.send_error(1, ErrorData(-32000, "x"), challenge=("read",), retry_after=7)
    connection.send_result(2, CallToolResult())
    connection.receive(Incoming(b"nonsense", tag="c"))
    told = [
        (message.tag, message.kind, message.request_id, message.related_to, message.error_code, message.challenge)
        for message in connection.messages_to_send()
    ]
    assert told == [
        ("b", Kind.NOTIFICATION, None, 2, None, None),
        ("a", Kind.NOTIFICATION, None, 1, None, None),
        ("a", Kind.ERROR, 1, None, -32000, ("read",)),
        ("b", Kind.RESPONSE, 2, None, None, None),
        ("c", Kind.ERROR, None, None, -32700, None),
    ]


def test_cancelling_takes_back_what_is_queued_for_the_request_and_nothing_else() -> None:
    connection = server()
    connection.receive(call(1))
    connection.receive(call(2))
    connection.send_progress(1, 1)
    connection.send_progress(2, 1)
    connection.send_log(1, "info", "x")
    (event,) = connection.receive(cancelled(1))
    assert event == RequestCancelled(1, None)
    assert [message.related_to for message in connection.messages_to_send()] == [2]


def test_the_stream_of_a_cancelled_request_ends_without_a_message() -> None:
    connection = server()
    connection.receive(call(1, tag="a"))
    connection.receive(cancelled(1))
    assert connection.messages_to_send() == [Outgoing(b"", Kind.END, "a", 1)]


def test_cancelling_a_request_of_ours_names_it_for_bindings_that_close_a_stream_instead() -> None:
    pair = connected("2026-07-28")
    id = pair.client.send_request("tools/list")
    pair.drop("to_server")
    pair.client.cancel(id)
    (message,) = pair.client.messages_to_send()
    assert (message.method, message.cancels) == ("notifications/cancelled", id)


def test_a_request_that_never_left_is_taken_back_without_a_word() -> None:
    pair = connected("2026-07-28")
    first, second = pair.client.send_request("tools/list"), pair.client.send_request("tools/list")
    pair.client.cancel(first)
    assert [message.request_id for message in pair.client.messages_to_send()] == [second]
    pair.client.cancel(first)
    assert not pair.client.has_messages


# -- what framing could not read -------------------------------------------------------------------------------------


def test_a_problem_of_the_binding_is_answered_as_it_says() -> None:
    connection = server()
    problem = RemoteProtocolError("Header mismatch", code=-32020, id="7", data={"header": "mcp-name"})
    (event,) = connection.receive(Incoming(b"", tag="a", problem=problem))
    assert event == MessageRejected(ErrorData(-32020, "Header mismatch", {"header": "mcp-name"}), answered=True)
    (message,) = connection.messages_to_send()
    assert (message.tag, message.request_id, message.error_code) == ("a", "7", -32020)
    assert json.loads(message.data) == {
        "jsonrpc": "2.0",
        "id": "7",
        "error": {"code": -32020, "message": "Header mismatch", "data": {"header": "mcp-name"}},
    }


def test_a_problem_without_an_id_has_none_in_its_answer() -> None:
    connection = server()
    connection.receive(Incoming(b"", problem=RemoteProtocolError("too long")))
    told = json.loads(connection.messages_to_send()[0].data)
    assert told == {"jsonrpc": "2.0", "error": {"code": -32600, "message": "too long"}}


# -- the end -----------------------------------------------------------------------------------------------------------


def test_open_requests_can_be_answered_after_the_end_of_the_input() -> None:
    connection = server()
    connection.receive(call())
    assert connection.open_requests == 1 and not connection.is_closed
    assert connection.receive_eof() == [ConnectionClosed(())]
    assert connection.receive_eof() == []
    connection.send_result(1, CallToolResult())
    assert connection.open_requests == 0 and not connection.is_closed
    connection.messages_to_send()
    assert connection.is_closed


def test_a_client_is_closed_when_the_server_has_ended_and_all_is_said() -> None:
    pair = connected("2025-11-25")
    pair.client.send_request("ping")
    assert not pair.client.is_closed
    pair.client.receive_eof()
    assert not pair.client.is_closed
    pair.client.messages_to_send()
    assert pair.client.is_closed


def test_the_end_tells_which_requests_of_ours_get_no_answer() -> None:
    pair = connected("2025-11-25")
    ids = (pair.client.send_request("tools/list"), pair.client.send_request("ping"))
    assert pair.client.receive_eof() == [ConnectionClosed(ids)]
    with pytest.raises(LocalProtocolError, match="ended its input"):
        pair.client.send_request("ping")
    pair.client.cancel(ids[0])
    assert [message.request_id for message in pair.client.messages_to_send()] == list(ids)


# -- out of turn -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("id", [1, "1", 2])
def test_what_is_not_open_cannot_be_answered(id: int | str) -> None:
    connection = server()
    connection.receive(call(1))
    connection.send_result(1, CallToolResult())
    connection.messages_to_send()
    calls: list[Callable[[], Any]] = [
        lambda: connection.send_result(id, CallToolResult()),
        lambda: connection.send_error(id, ErrorData(1, "x")),
        lambda: connection.send_progress(id, 1),
    ]
    for attempt in calls:
        with pytest.raises(LocalProtocolError, match=f"request {id!r} is not open"):
            attempt()
    assert not connection.send_log(id, "emergency", "x")
    assert not connection.has_messages


@pytest.mark.parametrize("result", [EmptyResult(), {"content": []}, None, "text", CallToolParams("t")])
def test_a_result_of_another_method_is_refused(result: Any) -> None:
    connection = server()
    connection.receive(call())
    with pytest.raises(LocalProtocolError, match=f"tools/call is not answered by {type(result).__name__}"):
        connection.send_result(1, result)
    assert connection.is_open(1) and not connection.has_messages


@pytest.mark.parametrize(
    "value", [object(), {1: {2: object()}}, "\ud800", 10**5000], ids=["object", "deep", "text", "number"]
)
def test_what_has_no_json_form_leaves_the_request_open(value: Any) -> None:
    connection = server()
    connection.receive(call())
    attempts: list[Callable[[], Any]] = [
        lambda: connection.send_result(1, CallToolResult(structured_content=value)),
        lambda: connection.send_error(1, ErrorData(1, "x", value)),
        lambda: connection.send_log(1, "info", value),
        lambda: connection.send_progress(1, 1, message=value),
    ]
    for attempt in attempts:
        with pytest.raises((TypeError, ValueError, UnicodeEncodeError)):
            attempt()
        assert connection.is_open(1) and not connection.has_messages
    assert connection.send_progress(1, 1)
    connection.send_result(1, CallToolResult([TextContent("ok")]))
    assert len(connection.messages_to_send()) == 2


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_progress_is_finite(value: float) -> None:
    connection = server()
    connection.receive(call())
    with pytest.raises(LocalProtocolError, match="finite"):
        connection.send_progress(1, value)
    with pytest.raises(LocalProtocolError, match="finite"):
        connection.send_progress(1, 1, value)
    assert not connection.has_messages and connection.send_progress(1, 1)


def test_a_connection_without_a_role_can_do_nothing() -> None:
    connection = Connection(Limits())
    for message in (b'{"jsonrpc":"2.0","id":1,"method":"m"}', b'{"jsonrpc":"2.0","method":"m"}', b"[1]", b"x"):
        with pytest.raises(NotImplementedError):
            connection.receive(Incoming(message))
    with pytest.raises(NotImplementedError):
        connection._spoken_version()


# -- small things ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("versions", [(), ("2099-01-01",), ("2025-11-25", "x")])
def test_versions_that_nobody_speaks_are_refused_with_those_that_exist(versions: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=f"give some of {', '.join(VERSIONS)}"):
        check_versions(versions)


def test_meta_is_taken_off_whatever_holds_it() -> None:
    assert take_meta(EmptyResult()) == (EmptyResult(), {})
    assert take_meta(EmptyResult(meta={"a": 1})) == (EmptyResult(), {"a": 1})
    assert take_meta(LogMessageParams("info", 1, meta={})) == (LogMessageParams("info", 1), {})
    assert take_meta(CallToolParams("t")) == (CallToolParams("t"), {})
    assert take_meta(CallToolParams("t", meta=Raw(b'{"a":1}'))) == (CallToolParams("t"), {"a": 1})
    assert take_meta(CallToolParams("t", meta=Raw(b"null"))) == (CallToolParams("t"), {})
    with pytest.raises(msgspec.ValidationError):
        take_meta(CallToolParams("t", meta=Raw(b"[]")))


def test_members_are_taken_off_only_where_they_are() -> None:
    params = CallToolParams("t", request_state="s")
    assert without(params, "request_state", "input_responses") == CallToolParams("t")
    assert without(params, "input_responses", "no_such_member") is params


def test_a_request_named_like_a_notification_is_an_invalid_request() -> None:
    assert unknown_method("notifications/x").code == -32600
    assert unknown_method("x").code == -32601


def test_depth_is_limited_as_the_limits_say() -> None:
    config = ServerConfig(Implementation("s", "1"), ServerCapabilities(), limits=Limits(json_depth=3))
    connection = ServerConnection(config)
    assert connection.receive(Incoming(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":[]}}')) == []
    (event,) = connection.receive(Incoming(b'{"jsonrpc":"2.0","id":2,"method":"ping","params":{"a":[[]]}}'))
    assert isinstance(event, MessageRejected) and event.error.code == -32600
    assert [message.request_id for message in connection.messages_to_send()] == [1, 2]


def test_a_message_with_method_and_result_is_a_request() -> None:
    connection = server()
    (event,) = connection.receive(
        Incoming(msgspec.json.encode({**json.loads(call().data), "result": {}, "error": {"code": 1, "message": "x"}}))
    )
    assert isinstance(event, RequestReceived)
