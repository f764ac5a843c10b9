"""Every row of the method table, in every revision that has it, against the schema that the revision published.

What is compared is what the cores send, with all that they add, for instances that show each form of each member.
"""

import json
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import pytest
from msgspec import UNSET, Raw

from mcpcore.protocol import codec
from mcpcore.protocol.events import InputRequired, RequestReceived
from mcpcore.protocol.fitting import encode_fitted
from mcpcore.protocol.messages import Incoming, Outgoing
from mcpcore.types import (
    LOG_LEVELS,
    CallToolParams,
    CancelledParams,
    CreateMessageParams,
    CreateMessageResult,
    ElicitParams,
    ElicitResult,
    InputRequest,
    InputRequiredResult,
    ListRootsResult,
    ResourceUpdatedParams,
    Root,
    SubscriptionFilter,
    TextContent,
)
from mcpcore.types._base import Object
from mcpcore.types.methods import METHODS, Direction, Method
from mcpcore.versions import LEGACY_VERSIONS, MODERN_VERSIONS, VERSIONS
from tests.support.connected import connected, unconnected
from tests.support.instances import full, minimal
from tests.support.schemas import definitions, errors, method_names, strict_errors


def rows(direction: Direction, *, requests: bool) -> list[Any]:
    return [
        pytest.param(row, version, id=f"{row.name}-{version}")
        for row in METHODS
        for version in row.versions
        if row.direction is direction and (row.result is not None) is requests
    ]


def definition(version: str, method: str) -> str:
    """The name of the definition of a method's messages."""
    for name, body in definitions(version).items():
        if body.get("properties", {}).get("method", {}).get("const") == method:
            return name
    raise LookupError(method)


def result_definition(row: Method, version: str) -> str:
    name = definition(version, row.name).replace("Request", "Result")
    return name if name in definitions(version) else "Result"


def sent(outgoing: list[Outgoing]) -> Any:
    """The one message that was sent."""
    assert len(outgoing) == 1
    return json.loads(outgoing[0].data)


def assert_valid(version: str, name: str, value: Any) -> None:
    """Valid, and without members that the revision does not know, one case left out.

    ``extensions`` among the capabilities is newer than the legacy revisions, but their peers negotiate by it.
    """
    assert errors(version, name, value) == []
    known = "('extensions' was unexpected)" if version in LEGACY_VERSIONS else "nothing"
    assert [error for error in strict_errors(version, name, value) if known not in error] == []
    assert_no_null(value)


PAYLOADS: Final = {
    "_meta",
    "arguments",
    "structuredContent",
    "data",
    "input",
    "inputSchema",
    "outputSchema",
    "metadata",
}
CAPABILITIES: Final = {"experimental", "extensions", "logging", "completions", "tools", "context", "form", "url"}


def assert_no_null(value: Any, path: str = "$") -> None:
    """Absent members are absent and not null, except in what belongs to users."""
    assert value is not None, path
    if isinstance(value, dict):
        for name, member in value.items():
            if name not in PAYLOADS and not (name in CAPABILITIES and isinstance(member, dict)):
                assert_no_null(member, f"{path}.{name}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            assert_no_null(item, f"{path}[{index}]")


def message_parts(version: str, message: dict[str, Any]) -> dict[str, Any]:
    """What the definitions of a revision describe: up to 2025-06-18 they leave the envelope out."""
    return message if version >= "2025-11-25" else {key: message[key] for key in ("method", "params") if key in message}


# -- the set of methods --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("union", "direction", "requests"),
    [
        ("ClientRequest", Direction.TO_SERVER, True),
        ("ClientNotification", Direction.TO_SERVER, False),
        ("ServerRequest", Direction.TO_CLIENT, True),
        ("ServerNotification", Direction.TO_CLIENT, False),
    ],
)
def test_the_methods_of_a_revision_are_those_of_its_schema(
    version: str, union: str, direction: Direction, requests: bool
) -> None:
    published = {name for name in method_names(version, union) if "tasks/" not in name}
    ours = {
        row.name
        for row in METHODS
        if row.direction is direction and version in row.versions and (row.result is not None) is requests
    }
    assert ours == published


def test_no_row_is_there_twice() -> None:
    keys = [(row.name, row.direction, version) for row in METHODS for version in row.versions]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("row", METHODS, ids=lambda row: f"{row.name}-{row.direction.value}")
def test_the_members_that_a_row_names_exist(row: Method) -> None:
    assert row.named_by is None or row.named_by in row.params.__struct_fields__
    assert row.items is None or (row.result is not None and row.items in row.result.__struct_fields__)
    assert row.result is None or "meta" in row.params.__struct_fields__
    if row.cacheable:
        assert row.result is not None and {"ttl_ms", "cache_scope"} <= set(row.result.__struct_fields__)


@pytest.mark.parametrize(
    "row", [row for row in METHODS if row.direction is Direction.TO_SERVER], ids=lambda row: row.name
)
def test_the_flags_of_modern_rows_are_those_of_the_schema(row: Method) -> None:
    if "2026-07-28" not in row.versions or row.result is None:
        assert not row.input_required
        return
    name = definition("2026-07-28", row.name)
    result = definitions("2026-07-28")[result_definition(row, "2026-07-28")]
    assert row.cacheable == ("ttlMs" in result["required"])
    response = json.dumps(definitions("2026-07-28")[name.replace("Request", "ResultResponse")])
    assert row.input_required == ("InputRequiredResult" in response)


# -- what the client sends -----------------------------------------------------------------------------------------

BY_THE_CORE: Final = ("initialize", "server/discover")


@pytest.mark.parametrize(("row", "version"), rows(Direction.TO_SERVER, requests=True))
def test_requests_of_the_client(row: Method, version: str) -> None:
    pair = connected(version)
    for params in [minimal(row.params), *full(row.params)]:
        if row.name == "initialize":
            continue
        for extra in ({}, {"progress": True, "log_level": "info", "meta": {"com.example/x": None}}):
            pair.client.send_request(row.name, params, **extra)  # type: ignore[arg-type]
            message = sent(pair.client.messages_to_send())
            assert_valid(version, definition(version, row.name), message_parts(version, message))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_request_that_opens(version: str) -> None:
    pair = unconnected(version)
    pair.client.negotiate()
    message = sent(pair.client.messages_to_send())
    assert_valid(version, definition(version, message["method"]), message_parts(version, message))


@pytest.mark.parametrize(("row", "version"), rows(Direction.TO_SERVER, requests=False))
def test_notifications_of_the_client(row: Method, version: str) -> None:
    for params in [minimal(row.params), *full(row.params)]:
        if row.params is CancelledParams and params.request_id is None:
            continue  # the cores always name the request
        message = json.loads(codec.encode_notification(row.name, encode_fitted(params, version)))
        assert_valid(version, definition(version, row.name), message_parts(version, message))


@pytest.mark.parametrize(("row", "version"), rows(Direction.TO_CLIENT, requests=True))
def test_results_of_the_client(row: Method, version: str) -> None:
    assert row.result is not None
    for result in [minimal(row.result), *full(row.result)]:
        if version == "2025-06-18" and isinstance(result, ElicitResult) and result.content:
            result = ElicitResult(result.action, {"name": "x"})  # its forms have no lists
        pair = connected(version)
        if row.name == "ping":
            continue  # answered by the core
        pair.server.send_request(row.name, minimal(row.params))
        events = [event for event in pair.shuttle().client if isinstance(event, RequestReceived)]
        pair.client.send_result(events[0].id, result)
        message = sent(pair.client.messages_to_send())
        assert_valid(version, result_definition(row, version), message["result"])


# -- what the server sends -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("row", "version"), rows(Direction.TO_SERVER, requests=True))
def test_results_of_the_server(row: Method, version: str) -> None:
    assert row.result is not None
    for result in [minimal(row.result), *full(row.result)]:
        pair = connected(version)
        if row.name != "initialize":
            id = pair.client.send_request(row.name, minimal(row.params))
            events = pair.shuttle()
            if not any(isinstance(event, RequestReceived) for event in events.server):
                continue  # answered by the core; see below
            if row.name == "subscriptions/listen":
                pair.server.acknowledge(id, SubscriptionFilter())
                pair.server.messages_to_send()
                pair.server.end_subscription(id)
                message = json.loads(pair.server.messages_to_send()[-1].data)
            else:
                pair.server.send_result(id, result)
                message = sent(pair.server.messages_to_send())
            assert_valid(version, result_definition(row, version), message["result"])


@pytest.mark.parametrize("version", VERSIONS)
def test_what_the_server_answers_by_itself(version: str) -> None:
    pair = unconnected(version)
    pair.client.negotiate()
    pair.pick_up()
    pair.deliver("to_server")
    message = sent(pair.server.messages_to_send())
    name = "DiscoverResult" if version in MODERN_VERSIONS else "InitializeResult"
    assert_valid(version, name, message["result"])


@pytest.mark.parametrize(("row", "version"), rows(Direction.TO_CLIENT, requests=True))
def test_requests_of_the_server(row: Method, version: str) -> None:
    pair = connected(version)
    for params in [minimal(row.params), *full(row.params)]:
        if isinstance(params, ElicitParams) and params.url is not None and version < "2025-11-25":
            continue  # the capability is never declared
        for progress in (False, True):
            pair.server.send_request(row.name, params, progress=progress)
            message = sent(pair.server.messages_to_send())
            assert_valid(version, definition(version, row.name), message_parts(version, message))


@pytest.mark.parametrize(("row", "version"), rows(Direction.TO_CLIENT, requests=False))
def test_notifications_of_the_server(row: Method, version: str) -> None:
    for params in [minimal(row.params), *full(row.params)]:
        if row.params is CancelledParams and params.request_id is None:
            continue
        message = json.loads(codec.encode_notification(row.name, encode_fitted(params, version)))
        assert_valid(version, definition(version, row.name), message_parts(version, message))


def test_notifications_of_a_subscription() -> None:
    version = "2026-07-28"
    pair = connected(version)
    wanted = full(SubscriptionFilter)[0]
    id = pair.client.listen(wanted)
    pair.shuttle()
    pair.server.acknowledge(id, wanted)
    for method in ("tools", "prompts", "resources"):
        pair.server.publish(f"notifications/{method}/list_changed", Object())
    pair.server.publish("notifications/resources/updated", ResourceUpdatedParams(wanted.resource_subscriptions[0]))
    pair.server.end_subscription(id)
    *notifications, _ = [json.loads(message.data) for message in pair.server.messages_to_send()]
    assert [message["params"]["_meta"] for message in notifications] == [
        {"io.modelcontextprotocol/subscriptionId": id}
    ] * 6
    for message in notifications:
        assert_valid(version, definition(version, message["method"]), message)


# -- multi-round input -----------------------------------------------------------------------------------------------


def questions() -> Iterator[tuple[InputRequest, Object]]:
    version = "2026-07-28"
    for params in [minimal(CreateMessageParams), *full(CreateMessageParams)]:
        raw = Raw(encode_fitted(params, version))
        for result in full(CreateMessageResult):
            yield InputRequest("sampling/createMessage", raw), result
    for params in full(ElicitParams):
        for result in full(ElicitResult):
            yield InputRequest("elicitation/create", Raw(encode_fitted(params, version))), result
    yield InputRequest("roots/list", UNSET), ListRootsResult([])
    yield InputRequest("roots/list", Raw(b"{}")), ListRootsResult(full(Root), {"com.example/x": 1})


def test_input_that_is_required_and_the_retry_that_brings_it() -> None:
    version = "2026-07-28"
    pair = connected(version)
    asked = {f"question {number}": each for number, each in enumerate(questions())}
    id = pair.client.send_request("tools/call", CallToolParams("t", Raw(b'{"a":null}')))
    pair.shuttle()
    required = InputRequiredResult({key: question for key, (question, _) in asked.items()}, "opaque", {"x": 1})
    pair.server.send_input_required(id, required)
    pair.pick_up()
    message = json.loads(pair.to_client[0].data)
    assert_valid(version, "InputRequiredResult", message["result"])
    (event,) = pair.deliver("to_client")
    assert isinstance(event, InputRequired)
    retried = pair.client.retry(event, {key: answer for key, (_, answer) in asked.items()})
    message = sent(pair.client.messages_to_send())
    assert retried != id
    assert_valid(version, "CallToolRequest", message)
    assert message["params"]["requestState"] == "opaque"


# -- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "meta", "method"),
    [
        ("UnsupportedProtocolVersionError", {"protocolVersion": "2031-01-01", "clientCapabilities": {}}, "tools/list"),
        (
            "MissingRequiredClientCapabilityError",
            {"protocolVersion": "2026-07-28", "clientCapabilities": {}},
            "tools/call",
        ),
    ],
)
def test_errors_with_data(name: str, meta: dict[str, Any], method: str) -> None:
    pair = connected("2026-07-28")
    reserved = {f"io.modelcontextprotocol/{key}": value for key, value in meta.items()}
    params = {"name": "t", "_meta": reserved}
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    for event in pair.server.receive(Incoming(msgspec.json.encode(message))):
        if isinstance(event, RequestReceived):
            question = InputRequest(
                "sampling/createMessage", Raw(encode_fitted(full(CreateMessageParams)[0], "2026-07-28"))
            )
            pair.server.send_input_required(1, InputRequiredResult({"q": question}))
    message = sent(pair.server.messages_to_send())
    assert errors("2026-07-28", name, message) == []
    assert_no_null(message)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_error_that_answers_a_request(version: str) -> None:
    pair = connected(version)
    pair.client.send_request("tools/list")
    pair.pick_up()
    bad = pair.to_server[0].data.replace(b"tools/list", b"tools/lost")
    pair.server.receive(Incoming(bad))
    name = "JSONRPCErrorResponse" if version >= "2025-11-25" else "JSONRPCError"
    assert_valid(version, name, sent(pair.server.messages_to_send()))


def test_log_levels_are_those_of_the_schema() -> None:
    for version in VERSIONS:
        assert list(LOG_LEVELS) == sorted(definitions(version)["LoggingLevel"]["enum"], key=LOG_LEVELS.index)


def test_text_content_is_written_as_the_specification_writes_it() -> None:
    assert msgspec.json.encode(TextContent("x")) == b'{"type":"text","text":"x"}'
