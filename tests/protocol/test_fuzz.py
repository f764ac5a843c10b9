"""No input makes `receive` raise, everything that is sent is a JSON-RPC message, and the connection goes on.

Inputs are the lines of the transcripts, bent: bytes are changed, lost and repeated, members exchanged, tokens put where
they do not belong. Each goes to both roles in every state in which they can be. The same bytes come through the line
framing once whole and once byte by byte, which must make no difference.
"""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpcore.exceptions import RemoteProtocolError
from mcpcore.protocol.client import ClientConfig, ClientConnection
from mcpcore.protocol.connection import Connection
from mcpcore.protocol.events import Event, RequestReceived
from mcpcore.protocol.framing import LineDecoder
from mcpcore.protocol.messages import Incoming, Kind
from mcpcore.protocol.server import ServerConfig, ServerConnection
from mcpcore.types import CallToolParams, EmptyParams, Implementation, ServerCapabilities, SubscriptionFilter
from mcpcore.types.lifecycle import ListChangedCapability
from mcpcore.versions import LATEST_MODERN, LEGACY_VERSIONS
from tests.support.connected import connected, unconnected

CORPUS: Final = sorted(
    {
        line[1:].strip().encode()
        for path in (Path(__file__).parent / "transcripts").glob("*.txt")
        for line in path.read_text(encoding="utf-8").split("\n")
        if line[:1] in (">", "<")
    }
)
TOKENS: Final = [
    *(
        b"null",
        b"true",
        b"0",
        b"-1",
        b"1.0",
        b"1e400",
        b"9" * 30,
        b"9" * 5000,
        b'""',
        b'"\\ud800"',
        b"[]",
        b"{}",
        b"NaN",
    ),
    *(
        b"[" * 300 + b"]" * 300,
        b"[" * 5000,
        b'{"a":' * 300 + b"1" + b"}" * 300,
        b"\xff",
        b"\x00",
        b"\n",
        b"\r",
        b"\\",
        b'"',
    ),
    *(
        b'"_meta":',
        b'"id":',
        b'"jsonrpc":"2.0",',
        b'"method":',
        b'"params":',
        b'"result":',
        b'"error":',
        b",",
        b":",
        b"}",
    ),
    *(
        b'"progressToken":',
        b'"io.modelcontextprotocol/subscriptionId":',
        b'"requestId":',
        b'"resultType":"input_required",',
    ),
]


# -- states ------------------------------------------------------------------------------------------------------------


def fresh_server() -> Connection:
    return unconnected(LATEST_MODERN).server


def fresh_dual_server() -> Connection:
    capabilities = ServerCapabilities(tools=ListChangedCapability(True), logging={})
    return ServerConnection(ServerConfig(Implementation("s", "1"), capabilities))


def server_at_work(version: str) -> Connection:
    """With open requests in both directions, and a subscription where there are some."""
    pair = connected(version)
    for _ in range(3):
        pair.client.send_request("tools/call", CallToolParams("t"), progress=True)
    if version == LATEST_MODERN:
        id = pair.client.listen(SubscriptionFilter(tools_list_changed=True))
        pair.shuttle()
        pair.server.acknowledge(id, SubscriptionFilter(tools_list_changed=True))
    pair.shuttle()
    if version != LATEST_MODERN:
        pair.server.send_request("roots/list", EmptyParams(), progress=True)
        pair.server.messages_to_send()
    return pair.server


def probing_client() -> Connection:
    connection = ClientConnection(ClientConfig(Implementation("c", "1")))
    connection.negotiate()
    connection.messages_to_send()
    return connection


def initializing_client() -> Connection:
    pair = unconnected("2025-11-25")
    pair.client.negotiate()
    pair.client.messages_to_send()
    return pair.client


def client_at_work(version: str) -> Connection:
    pair = connected(version)
    for method in ("tools/list", "tools/call", "prompts/get", "resources/read"):
        pair.client.send_request(method, CallToolParams("t") if method == "tools/call" else None, progress=True)
    if version == LATEST_MODERN:
        pair.client.listen(SubscriptionFilter(tools_list_changed=True))
    else:
        pair.server.send_request("roots/list", EmptyParams())
        pair.shuttle()
    pair.client.messages_to_send()
    return pair.client


STATES: Final[dict[str, Callable[[], Connection]]] = {
    "fresh server": fresh_server,
    "fresh dual server": fresh_dual_server,
    **{f"server at work, {each}": partial(server_at_work, each) for each in (*LEGACY_VERSIONS, LATEST_MODERN)},
    "probing client": probing_client,
    "initializing client": initializing_client,
    **{f"client at work, {each}": partial(client_at_work, each) for each in (*LEGACY_VERSIONS, LATEST_MODERN)},
}


# -- inputs ------------------------------------------------------------------------------------------------------------


@st.composite
def bent(draw: st.DrawFn) -> bytes:
    """A message of the corpus, with up to four things done to its bytes."""
    data = draw(st.sampled_from(CORPUS))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 12)))
        insert = draw(st.one_of(st.sampled_from(TOKENS), st.binary(max_size=3), st.just(b"")))
        data = data[:start] + insert + data[end:]
    return data


@st.composite
def rebuilt(draw: st.DrawFn) -> bytes:
    """A message of the corpus, with values exchanged for others of the wrong type."""
    try:
        value = json.loads(draw(st.sampled_from(CORPUS)))
    except ValueError:
        return b"[]"
    return json.dumps(_rebuilt(draw, value)).encode()


def _rebuilt(draw: st.DrawFn, value: Any) -> Any:
    if draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from([None, True, 0, -1, 1.5, "", "x", [], {}, [None], {"a": None}, 2**70, "\ud800"]))
    if isinstance(value, dict):
        return {key: _rebuilt(draw, member) for key, member in value.items() if draw(st.integers(0, 19))}
    return [_rebuilt(draw, item) for item in value] if isinstance(value, list) else value


INPUTS: Final = st.one_of(bent(), rebuilt(), st.binary(max_size=40))


# -- what must hold ----------------------------------------------------------------------------------------------------


def feed(connection: Connection, data: bytes, **routing: Any) -> tuple[list[Event], list[bytes]]:
    events = connection.receive(Incoming(data, **routing))
    assert all(isinstance(event, Event) for event in events)
    for event in events:
        repr(event)
    said = []
    for message in connection.messages_to_send():
        if message.kind is Kind.END:
            assert message.data == b""
            continue
        assert b"\n" not in message.data
        told = json.loads(message.data)
        for each in told if isinstance(told, list) else [told]:
            assert each["jsonrpc"] == "2.0"
        said.append(message.data)
    return events, said


def goes_on(connection: Connection) -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": LATEST_MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
    params = {"name": "t", "_meta": meta}
    probe = {"jsonrpc": "2.0", "id": "still there?", "method": "tools/call", "params": params}
    events, said = feed(connection, msgspec.json.encode(probe))
    assert any(isinstance(event, RequestReceived) for event in events) or said or "Client" in type(connection).__name__


@pytest.mark.parametrize("state", STATES)
def test_every_line_of_the_transcripts_is_survived_in_every_state(state: str) -> None:
    for data in CORPUS:
        connection = STATES[state]()
        feed(connection, data)
        goes_on(connection)


@pytest.mark.parametrize("state", STATES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_nothing_that_comes_makes_receive_raise(state: str, data: st.DataObject) -> None:
    connection = STATES[state]()
    for message in data.draw(st.lists(INPUTS, min_size=1, max_size=8)):
        tag = data.draw(st.sampled_from([None, None, "a"]))
        headers = data.draw(st.sampled_from([None, {}, {"mcp-protocol-version": "2026-07-28"}, {"mcp-method": "x"}]))
        feed(connection, message, tag=tag, headers=headers)
    connection.receive_eof()
    assert not connection.has_messages


@settings(max_examples=150, deadline=None)
@given(st.lists(INPUTS, max_size=6), st.sampled_from(sorted(STATES)))
def test_the_same_bytes_mean_the_same_whole_and_byte_by_byte(messages: list[bytes], state: str) -> None:
    stream = b"".join(message + b"\n" for message in messages)

    def outcome(chunks: list[bytes]) -> list[Any]:
        connection, decoder = STATES[state](), LineDecoder()
        lines = [line for chunk in chunks for line in decoder.receive(chunk)] + decoder.receive_eof()
        told: list[Any] = []
        for line in lines:
            problem = line if isinstance(line, RemoteProtocolError) else None
            data = line if isinstance(line, bytes) else b""
            events = connection.receive(Incoming(data, problem=problem))
            said = [message.data for message in connection.messages_to_send()]
            told.append(([type(event).__name__ for event in events], said))
        return told

    assert outcome([stream]) == outcome([stream[at : at + 1] for at in range(len(stream))])
