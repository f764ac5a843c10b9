"""Two cores with a wire between them: messages are carried, lost and brought out of order by hand."""

import pytest

from mcpcore.protocol.client import ClientConfig
from mcpcore.protocol.events import ProgressReceived, RequestReceived, ResultReceived, VersionNegotiated
from mcpcore.protocol.messages import Kind
from mcpcore.protocol.server import ServerConfig
from mcpcore.testing.pair import Pair
from mcpcore.types import CallToolParams, CallToolResult, Implementation, ServerCapabilities
from mcpcore.types.lifecycle import ListChangedCapability
from mcpcore.versions import LEGACY_VERSIONS, VERSIONS, Era

SERVER = ServerConfig(Implementation("server", "2"), ServerCapabilities(tools=ListChangedCapability()))


@pytest.mark.parametrize("version", VERSIONS)
def test_connect_negotiates_and_tells_what_the_client_learned(version: str) -> None:
    pair = Pair(ClientConfig(Implementation("client", "1"), versions=(version,)), SERVER)
    facts = pair.connect()
    assert (facts.version, facts.info) == (version, SERVER.info)
    assert (pair.server.session is not None) is (facts.era is Era.LEGACY)


def test_connect_fails_where_there_is_no_revision_in_common() -> None:
    legacy = ServerConfig(SERVER.info, SERVER.capabilities, versions=LEGACY_VERSIONS)
    pair = Pair(ClientConfig(Implementation("client", "1"), versions=("2026-07-28",)), legacy)
    with pytest.raises(AssertionError, match="negotiation failed"):
        pair.connect()


def test_shuttle_carries_until_both_are_silent_and_returns_what_it_meant() -> None:
    pair = Pair()
    pair.client.negotiate()
    events = pair.shuttle()
    assert events.server == []
    assert [type(event) for event in events.client] == [VersionNegotiated]
    assert not pair.pick_up()


def call(pair: Pair) -> int | str:
    pair.connect()
    id = pair.client.send_request("tools/call", CallToolParams("t"), progress=True)
    assert [type(event) for event in pair.shuttle().server] == [RequestReceived]
    return id


def test_drop_loses_what_is_chosen_and_keeps_the_rest() -> None:
    pair = Pair(server=SERVER)
    id = call(pair)
    pair.server.send_progress(id, 1)
    pair.server.send_result(id, CallToolResult())
    dropped = pair.drop("to_client", lambda message: message.kind is Kind.NOTIFICATION)
    assert [message.method for message in dropped] == ["notifications/progress"]
    assert [type(event) for event in pair.shuttle().client] == [ResultReceived]


def test_drop_loses_everything_by_default() -> None:
    pair = Pair(server=SERVER)
    id = call(pair)
    pair.server.send_result(id, CallToolResult())
    assert len(pair.drop("to_client")) == 1
    assert pair.shuttle().client == []
    pair.client.send_request("tools/call", CallToolParams("t"))
    assert len(pair.drop("to_server")) == 1
    assert pair.shuttle().server == []


def test_reorder_changes_the_order_on_the_wire() -> None:
    pair = Pair(server=SERVER)
    id = call(pair)
    for step in (1, 2, 3):
        pair.server.send_progress(id, step)
    pair.reorder("to_client", [2, 0, 1])
    assert [event.progress for event in pair.shuttle().client if isinstance(event, ProgressReceived)] == [3, 1, 2]


@pytest.mark.parametrize("order", [[], [0], [0, 0], [0, 2], [0, 1, 2]])
def test_reorder_wants_each_position_once(order: list[int]) -> None:
    pair = Pair(server=SERVER)
    id = call(pair)
    pair.server.send_progress(id, 1)
    pair.server.send_progress(id, 2)
    with pytest.raises(ValueError, match="name each position below 2 once"):
        pair.reorder("to_client", order)


def test_the_end_of_a_stream_is_no_message_on_this_wire() -> None:
    pair = Pair(server=SERVER)
    id = call(pair)
    pair.server.send_result(id, CallToolResult())
    pair.pick_up()
    pair.to_client[0] = type(pair.to_client[0])(b"", Kind.END, request_id=id)
    assert pair.shuttle().client == []
