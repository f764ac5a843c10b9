"""The specification's own examples: each is understood, and what we make of it says the same."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import mcpcore.types
from mcpcore.protocol.client import ClientConfig, ClientConnection
from mcpcore.protocol.events import (
    ErrorReceived,
    NotificationReceived,
    ProgressReceived,
    RequestCancelled,
    RequestReceived,
    ResultReceived,
    SubscriptionAcknowledged,
    SubscriptionEnded,
    SubscriptionNotified,
)
from mcpcore.protocol.messages import Incoming
from mcpcore.protocol.server import ServerConfig, ServerConnection
from mcpcore.types import (
    CallToolParams,
    ElicitParams,
    ErrorData,
    Implementation,
    InputRequest,
    LogMessageParams,
    ResourceContents,
    ServerCapabilities,
    SubscriptionFilter,
)
from mcpcore.types.lifecycle import ListChangedCapability, ResourcesCapability
from mcpcore.types.methods import METHODS
from mcpcore.versions import MODERN_VERSIONS
from tests.support.schemas import EXAMPLES

OFFERED = ServerCapabilities(
    prompts=ListChangedCapability(True),
    resources=ResourcesCapability(True, True),
    tools=ListChangedCapability(True),
    completions={},
    logging={},
)


def examples(*, messages: bool) -> list[Any]:
    paths = sorted(EXAMPLES.glob("*/*.json"))
    return [
        pytest.param(path, id=f"{path.parent.name}/{path.stem}")
        for path in paths
        if ("jsonrpc" in json.loads(path.read_bytes())) is messages
    ]


OTHER_NAMES: dict[str, Any] = {
    "BlobResourceContents": ResourceContents,
    "TextResourceContents": ResourceContents,
    "CreateMessageRequest": InputRequest,
    "ElicitRequest": InputRequest,
    "ListRootsRequest": InputRequest,
    "ElicitRequestFormParams": ElicitParams,
    "ElicitRequestURLParams": ElicitParams,
    "InputRequests": dict[str, InputRequest],
    "InputResponses": dict[str, msgspec.Raw],
    "InternalError": ErrorData,
    "InvalidParamsError": ErrorData,
    "MethodNotFoundError": ErrorData,
    "ParseError": ErrorData,
    "LoggingMessageNotificationParams": LogMessageParams,
    "SubscriptionsListenResult": mcpcore.types.EmptyResult,
}


def kind_of(name: str) -> Any:
    ours = name.replace("RequestParams", "Params").replace("NotificationParams", "Params")
    return OTHER_NAMES.get(name) or getattr(mcpcore.types, ours)


@pytest.mark.parametrize("path", examples(messages=False))
def test_an_object_is_read_and_written_without_a_loss(path: Path) -> None:
    told = json.loads(path.read_bytes())
    told.pop("resultType", None)  # the core's business
    if "method" in told:
        told.pop("id", None)  # a request inside of an answer has none
    assert (
        json.loads(msgspec.json.encode(msgspec.json.decode(path.read_bytes(), type=kind_of(path.parent.name)))) == told
    )


@pytest.mark.parametrize("path", examples(messages=True))
def test_a_message_is_understood(path: Path) -> None:
    data, name = path.read_bytes(), path.parent.name
    if name == "CancelledNotification":
        understands_cancellation(data)
    elif name.endswith("Request"):
        understands_request(data)
    elif name.endswith("Notification"):
        understands_notification(data)
    else:
        understands_answer(data, name)


def server() -> ServerConnection:
    return ServerConnection(ServerConfig(Implementation("s", "1"), OFFERED, versions=MODERN_VERSIONS))


def client(first_id: int | str) -> ClientConnection:
    """A connected client whose next request has this id."""
    connection = ClientConnection(ClientConfig(Implementation("c", "1"), versions=MODERN_VERSIONS))
    connection.negotiate()
    discovery = {"supportedVersions": MODERN_VERSIONS, "capabilities": OFFERED}
    connection.receive(Incoming(msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "result": discovery})))
    connection._take_id = lambda: first_id  # type: ignore[method-assign]  # examples have ids of their own
    assert connection.server is not None
    return connection


def understands_request(data: bytes) -> None:
    connection = server()
    events = connection.receive(Incoming(data))
    message = json.loads(data)
    if message["method"] == "server/discover":
        answer = json.loads(connection.messages_to_send()[0].data)
        assert events == [] and answer["id"] == message["id"] and "result" in answer
        return
    (event,) = events
    assert isinstance(event, RequestReceived)
    assert (event.id, event.method.name) == (message["id"], message["method"])
    assert json.loads(msgspec.json.encode(event.params)) == message["params"]


def understands_cancellation(data: bytes) -> None:
    id = json.loads(data)["params"]["requestId"]
    connection = server()
    meta = {"protocolVersion": "2026-07-28", "clientCapabilities": {}}
    reserved = {f"io.modelcontextprotocol/{key}": value for key, value in meta.items()}
    request = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "t", "_meta": reserved}}
    connection.receive(Incoming(msgspec.json.encode(request)))
    (event,) = connection.receive(Incoming(data))
    assert isinstance(event, RequestCancelled) and event.id == id


def understands_notification(data: bytes) -> None:
    params = json.loads(data).get("params", {})
    id = params.get("_meta", {}).get("io.modelcontextprotocol/subscriptionId", params.get("progressToken", 2))
    connection = client(id)
    if "progressToken" in params:
        connection.send_request("tools/call", CallToolParams("t"), progress=True)
    else:
        connection.listen(SubscriptionFilter())
    (event,) = connection.receive(Incoming(data))
    wanted = (NotificationReceived, ProgressReceived, SubscriptionAcknowledged, SubscriptionNotified)
    assert isinstance(event, wanted), event


def understands_answer(data: bytes, name: str) -> None:
    told = json.loads(data)
    connection = client(told["id"])
    method = {
        row.name: row
        for row in METHODS
        if row.result is not None and row.result.__name__ == name.removesuffix("Response")
    }
    if name == "SubscriptionsListenResultResponse":
        connection.listen(SubscriptionFilter())
    elif name.endswith("Error"):
        connection.send_request("tools/list")
    else:
        (row,) = method.values()
        connection._send(row, b"{}", b"", {}, False)
    (event,) = connection.receive(Incoming(data))
    assert isinstance(event, ResultReceived | ErrorReceived | SubscriptionEnded), event
    if isinstance(event, ResultReceived):
        told["result"].pop("resultType")
        assert json.loads(msgspec.json.encode(event.result)) == told["result"]
    elif isinstance(event, ErrorReceived):
        assert json.loads(msgspec.json.encode(event.error)) == told["error"]
