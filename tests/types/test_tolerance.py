"""What peers send is read generously: unknown members, nulls for what may be absent, and what the revision left open."""

import json
from typing import Any

import msgspec
import pytest
from msgspec import UNSET, Raw

from mcpcore.protocol.events import RequestReceived, ResultReceived
from mcpcore.protocol.messages import Incoming
from mcpcore.types import CallToolResult, ElicitParams, ErrorData, TextContent, UnknownContent
from mcpcore.types._base import Object
from mcpcore.types.methods import METHODS, Direction, Method
from mcpcore.versions import LATEST_MODERN
from tests.support.connected import connected
from tests.support.instances import full, minimal

KINDS = sorted(
    {kind for row in METHODS for kind in (row.params, row.result) if kind is not None}, key=lambda kind: kind.__name__
)


def with_unknown(value: Any) -> Any:
    """The same JSON with a member that nobody knows in each object, maps of strings left out."""
    if isinstance(value, dict):
        members = {key: member if key == "arguments" else with_unknown(member) for key, member in value.items()}
        return {**members, "x-unknown": {"a": [None]}}
    return [with_unknown(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_unknown_members_are_ignored_at_every_depth(kind: type[Object]) -> None:
    for instance in [minimal(kind), *full(kind)]:
        strange = with_unknown(json.loads(msgspec.json.encode(instance)))
        read = msgspec.json.decode(msgspec.json.encode(strange), type=kind)
        assert with_unknown(json.loads(msgspec.json.encode(read))) == with_unknown(strange)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_null_counts_as_absent_for_every_optional_member(kind: type[Object]) -> None:
    plain = json.loads(msgspec.json.encode(minimal(kind)))
    optional = [field for field in msgspec.structs.fields(kind) if not field.required and field.name != "content"]
    nulls = {field.encode_name: None for field in optional}
    read = msgspec.json.decode(msgspec.json.encode({**nulls, **plain}), type=kind)
    for field in optional:
        if field.encode_name not in plain:
            value = getattr(read, field.name)
            raw = Raw(b"null")
            assert value is None or value is UNSET or (isinstance(value, Raw) and bytes(value) == bytes(raw)), (
                field.name
            )


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_what_is_absent_is_not_written(kind: type[Object]) -> None:
    required = {field.encode_name for field in msgspec.structs.fields(kind) if field.required}
    always = {CallToolResult: {"content"}, ElicitParams: {"requestedSchema"}}.get(kind, set())
    assert set(json.loads(msgspec.json.encode(minimal(kind)))) == required | always


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_reading_what_was_written_changes_nothing(kind: type[Object]) -> None:
    for instance in [minimal(kind), *full(kind)]:
        written = msgspec.json.encode(instance)
        assert msgspec.json.encode(msgspec.json.decode(written, type=kind)) == written


def requests() -> list[Any]:
    rows = [row for row in METHODS if row.direction is Direction.TO_SERVER and row.result is not None]
    return [pytest.param(row, row.versions[-1], id=row.name) for row in rows if row.name not in ("initialize", "ping")]


@pytest.mark.parametrize(("row", "version"), requests())
def test_the_core_takes_requests_with_unknown_members_and_nulls(row: Method, version: str) -> None:
    pair = connected(version)
    pair.client.send_request(row.name, minimal(row.params))
    message = json.loads(pair.client.messages_to_send()[0].data)
    optional = [field.encode_name for field in msgspec.structs.fields(row.params) if not field.required]
    params = message.setdefault("params", {})
    params.update({name: None for name in optional if name not in params})
    strange = {"jsonrpc": "2.0", "x-unknown": 1, **message, "params": {"x-unknown": 1, **params}, "result": None}
    del strange["result"]
    events = pair.server.receive(Incoming(msgspec.json.encode(strange)))
    answers = [json.loads(answer.data) for answer in pair.server.messages_to_send()]
    assert all(isinstance(event, RequestReceived) for event in events)
    assert all("error" not in answer for answer in answers)
    assert events or answers


# -- answers of servers that are nearly right ------------------------------------------------------------------------


def answered(method: str, result: bytes, *, version: str = LATEST_MODERN) -> ResultReceived:
    pair = connected(version)
    row = next(row for row in METHODS if row.name == method)
    id = pair.client.send_request(method, minimal(row.params))
    (event,) = pair.client.receive(Incoming(f'{{"jsonrpc":"2.0","id":{id},"result":{result.decode()}}}'.encode()))
    assert isinstance(event, ResultReceived), event
    return event


@pytest.mark.parametrize(
    ("method", "member"),
    [
        ("tools/list", "tools"),
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resource_templates"),
        ("resources/read", "contents"),
        ("prompts/get", "messages"),
        ("tools/call", "content"),
    ],
)
def test_a_list_that_is_null_or_missing_is_empty(method: str, member: str) -> None:
    name = "resourceTemplates" if member == "resource_templates" else member
    for result in (b'{"%b":null}' % name.encode(), b"{}", b'{"_meta":null}'):
        assert getattr(answered(method, result).result, member) == []


def test_broken_items_of_a_list_are_left_out_and_told() -> None:
    tools = (
        b'{"tools":[{"name":"a","inputSchema":{"type":"object"}},{"name":"b"},7,null],"nextCursor":"n","_meta":{"x":1}}'
    )
    event = answered("tools/list", tools)
    assert [tool.name for tool in event.result.tools] == ["a"]
    assert (event.result.next_cursor, event.result.meta) == ("n", {"x": 1})
    assert [text.split(":")[0] for text in event.skipped] == ["tools[1]", "tools[2]", "tools[3]"]
    assert bytes(event.raw) == tools


def test_content_of_an_unknown_type_is_kept_as_it_came() -> None:
    video = {"type": "video", "data": "AAAA", "length": None, "_meta": {"x": 1}}
    content = [{"type": "text", "text": "a"}, video, {"type": "image"}, {"type": 5}, [], {}]
    event = answered("tools/call", msgspec.json.encode({"content": content}))
    text, unknown = event.result.content
    assert text == TextContent("a")
    assert isinstance(unknown, UnknownContent) and unknown.type == "video"
    assert json.loads(msgspec.json.encode(unknown)) == video
    assert [told.split(":")[0] for told in event.skipped] == [f"content[{index}]" for index in (2, 3, 4, 5)]


@pytest.mark.parametrize("result", [b"7", b"[]", b'"x"', b'{"tools":7}', b'{"tools":[],"nextCursor":7}'])
def test_what_is_broken_elsewhere_is_refused(result: bytes) -> None:
    pair = connected(LATEST_MODERN)
    id = pair.client.send_request("tools/list")
    pair.drop("to_server")
    (event,) = pair.client.receive(Incoming(f'{{"jsonrpc":"2.0","id":{id},"result":{result.decode()}}}'.encode()))
    assert event.id == id  # type: ignore[attr-defined]  # a MessageRejected that ends the request
    assert not isinstance(event, ResultReceived)
    assert pair.client.messages_to_send() == []


def test_null_is_kept_where_it_is_a_value() -> None:
    event = answered("tools/call", b'{"content":[],"structuredContent":null}')
    assert event.result.structured_content is None
    assert answered("tools/call", b'{"content":[]}').result.structured_content is UNSET
    assert msgspec.json.encode(ErrorData(1, "x", None)) == b'{"code":1,"message":"x","data":null}'
    assert msgspec.json.encode(ErrorData(1, "x")) == b'{"code":1,"message":"x"}'


def test_integers_beyond_64_bits_and_floats_come_through_unchanged() -> None:
    for number in (b"9007199254740993", b"18446744073709551616", b"-123456789012345678901234567890", b"1.0", b"1e15"):
        result = b'{"content":[],"structuredContent":{"n":%b}}' % number
        value = answered("tools/call", result).result.structured_content["n"]
        assert value == json.loads(number)
        assert type(value) is type(json.loads(number))
