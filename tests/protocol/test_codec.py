"""Bytes to envelopes and back: what is refused, under which id, and that everything written is JSON."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from mcpcore.protocol import codec
from mcpcore.protocol.codec import Unreadable
from mcpcore.types import ErrorData

IDS = st.one_of(st.integers(), st.integers(-(10**40), 10**40), st.text())
TREES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(alphabet='[]{}"\\a\u2028é')),
    lambda children: st.one_of(
        st.lists(children, max_size=3), st.dictionaries(st.text(alphabet='[]{}"\\a', max_size=3), children, max_size=3)
    ),
    max_leaves=20,
)


def depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0


def refused(data: bytes, max_depth: int = 256) -> Unreadable:
    with pytest.raises(Unreadable) as caught:
        codec.decode(data, max_depth)
    return caught.value


# -- depth -----------------------------------------------------------------------------------------------------------


@given(TREES, st.booleans(), st.integers(1, 6))
def test_depth_is_measured_whatever_strings_hold(value: Any, escaped: bool, limit: int) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "m", "params": value}
    data = json.dumps(message, ensure_ascii=escaped).encode()
    if depth(message) > limit:
        unreadable = refused(data, limit)
        assert (unreadable.error.code, unreadable.id) == (-32600, 1)
        assert unreadable.error.message == f"Invalid Request: nested deeper than {limit} levels"
    else:
        assert codec.decode(data, limit).id == 1


@pytest.mark.parametrize("levels", [256, 300, 5000, 100_000])
@pytest.mark.parametrize("brackets", [(b"[", b"]"), (b'{"a":', b"}"), (b'[{"[":', b"}]")])
def test_a_message_that_is_too_deep_is_refused_under_its_id(levels: int, brackets: tuple[bytes, bytes]) -> None:
    opening, closing = brackets
    deep = opening * levels + b"1" + closing * levels
    unreadable = refused(b' {"jsonrpc":"2.0","id":"[{\\"7","method":"m]","params":' + deep + b"}")
    assert (unreadable.error.code, unreadable.id, unreadable.is_answer) == (-32600, '[{"7', False)


def test_an_id_behind_the_depth_is_read_where_that_can_be_done() -> None:
    deep = b"[" * 300 + b"]" * 300
    assert refused(b'{"jsonrpc":"2.0","method":"m","params":' + deep + b',"id":7}').id == 7
    deeper = b"[" * 100_000 + b"]" * 100_000
    assert refused(b'{"jsonrpc":"2.0","method":"m","params":' + deeper + b',"id":7}').id is UNSET


@pytest.mark.parametrize("levels", [300, 100_000])
@pytest.mark.parametrize("member", [b"result", b"error"])
def test_an_answer_that_is_too_deep_is_known_for_an_answer(levels: int, member: bytes) -> None:
    deep = b"[" * levels + b"]" * levels
    unreadable = refused(b'{"jsonrpc":"2.0","id":7,"' + member + b'":{"a":' + deep + b"}}")
    assert (unreadable.id, unreadable.is_answer) == (7, True)


def test_what_only_looks_deep_is_not() -> None:
    text = "[" * 1000 + '"\\' * 1000 + "{" * 1000
    message = {"jsonrpc": "2.0", "id": 1, "method": "m", "params": {text: [text]}}
    assert codec.decode(json.dumps(message).encode(), 3).id == 1


@pytest.mark.parametrize("end", [b"", b'"', b"\\", b"}", b"]" * 1000])
def test_depth_of_what_is_no_json_is_refused_one_way_or_the_other(end: bytes) -> None:
    for start in (b"[" * 1000, b'{"a":"' + b'\\"' * 50_000 + b"[]" * 1000, b"\\" * 50_000 + b"[" * 999, b'"' * 50_001):
        assert refused(b'{"jsonrpc":"2.0","id":1,"x":' + start + end).error.code in (-32600, -32700)


def test_a_limit_beyond_what_the_parser_can_follow_is_met_by_a_refusal() -> None:
    deep = b"[" * 50_000 + b"]" * 50_000
    unreadable = refused(b'{"jsonrpc":"2.0","id":1,"method":"m","params":' + deep + b"}", 10**6)
    assert (unreadable.error.code, unreadable.id) == (-32600, 1)


def test_a_batch_beyond_what_the_parser_can_follow_is_refused() -> None:
    with pytest.raises(Unreadable) as caught:
        codec.split_batch(b"[" * 50_000 + b"]" * 50_000)
    assert caught.value.error.code == -32600


# -- what is wrong, and under which id -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "code", "id"),
    [
        (b"", -32700, UNSET),
        (b"  ", -32700, UNSET),
        (b"nonsense", -32700, UNSET),
        (b"\xef\xbb\xbf{}", -32700, UNSET),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\xff"}}', -32700, UNSET),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\xed\xa0\x80"}}', -32700, UNSET),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\\ud800"}}', -32700, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\\udc00\\ud800"}}', -32700, 1),
        (b'{"jsonrpc":"2.0","id":"\\ud800","method":"m"}', -32700, UNSET),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":NaN}}', -32700, UNSET),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":-Infinity}}', -32700, UNSET),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":01}}', -32700, UNSET),
        (b'{"jsonrpc":"2.0","id":1,"method":"m"}x', -32700, UNSET),
        (b"[]", -32600, UNSET),
        (b'{"id":1,"method":"m"}', -32600, 1),
        (b'{"jsonrpc":"2.1","id":"a","method":"m"}', -32600, "a"),
        (b'{"jsonrpc":"2.0","id":1,"method":["m"]}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":true,"method":"m"}', -32600, UNSET),
        (b'{"jsonrpc":"2.0","id":1.0,"method":"m"}', -32600, UNSET),
        (b'{"jsonrpc":"2.0","id":1e400,"method":"m"}', -32600, UNSET),
        (b'{"jsonrpc":"2.0","id":' + b"1" * 5000 + b',"method":"m"}', -32600, UNSET),
        (b'{"jsonrpc":"2.0","id":1,"method":7,"params":' + b"1" * 5000 + b"}", -32600, 1),
    ],
)
def test_refusals(data: bytes, code: int, id: Any) -> None:
    unreadable = refused(data)
    assert (unreadable.error.code, unreadable.id, unreadable.is_answer) == (code, id, False)
    assert str(unreadable) == unreadable.error.message


def test_a_number_that_is_too_long_to_read_is_no_id() -> None:
    text = refused(b'{"jsonrpc":"2.0","id":' + b"1" * 5000 + b',"method":"m"}').error.message
    assert text == "Invalid Request: id is a string or an integer, not a number"


@pytest.mark.parametrize("member", ["result", "error"])
@pytest.mark.parametrize("flaw", ['"x":"\\ud800"', '"jsonrpc":"1.0"', '"method":null,"jsonrpc":1'])
def test_a_malformed_answer_is_known_for_an_answer(member: str, flaw: str) -> None:
    unreadable = refused(f'{{"jsonrpc":"2.0","id":7,"{member}":{{}},{flaw}}}'.encode())
    assert (unreadable.id, unreadable.is_answer) == (7, True)


@pytest.mark.parametrize("data", [b"[1", b"[1]x", b'["\xff"]', b"[,]", b"[1,]"])
def test_a_batch_that_is_no_json_is_one_parse_error(data: bytes) -> None:
    with pytest.raises(Unreadable) as caught:
        codec.split_batch(data)
    assert (caught.value.error.code, caught.value.id) == (-32700, UNSET)


@pytest.mark.parametrize(
    ("data", "batch"), [(b"[", True), (b" \n\t[", True), (b"{[", False), (b"", False), (b'"["', False)]
)
def test_a_batch_is_known_by_its_first_character(data: bytes, batch: bool) -> None:
    assert codec.is_batch(data) is batch


@pytest.mark.parametrize(
    ("raw", "absent"),
    [(UNSET, True), (Raw(b"null"), True), (Raw(b"nul"), False), (Raw(b"0"), False), (Raw(b'"null"'), False)],
)
def test_null_counts_as_absent(raw: Any, absent: bool) -> None:
    assert codec.absent(raw) is absent


# -- writing ---------------------------------------------------------------------------------------------------------

OBJECTS = st.dictionaries(st.text(max_size=5), st.one_of(st.integers(), st.text(max_size=5)), max_size=3)


@given(IDS, st.text(), OBJECTS)
def test_requests_and_notifications(id: int | str, method: str, params: dict[str, Any]) -> None:
    body = codec.encode(params)
    told = {"jsonrpc": "2.0", "method": method} | ({"params": params} if params else {})
    assert json.loads(codec.encode_request(id, method, body)) == {**told, "id": id}
    assert json.loads(codec.encode_notification(method, body)) == told
    envelope = codec.decode(codec.encode_request(id, method, body), 256)
    assert (envelope.id, type(envelope.id), envelope.method) == (id, type(id), method)


@given(IDS, OBJECTS, OBJECTS)
def test_results_with_what_is_stamped_on_them(id: int | str, result: dict[str, Any], added: dict[str, Any]) -> None:
    stamp = codec.encode(added)[1:-1] + b"," if added else b""
    written = codec.encode_result(id, codec.encode(result), stamp)
    pairs = json.loads(written, object_pairs_hook=list)
    assert dict(pairs)["id"] == id
    assert dict(pairs)["result"] == [*added.items(), *result.items()]


@given(st.one_of(IDS, st.none(), st.just(UNSET)), st.integers(-(2**31), 2**31), st.text())
def test_errors(id: Any, code: int, message: str) -> None:
    written = json.loads(codec.encode_error(id, ErrorData(code, message)))
    expected = {"jsonrpc": "2.0", "error": {"code": code, "message": message}}
    assert written == (expected if id is UNSET else {**expected, "id": id})


@given(OBJECTS, st.lists(OBJECTS, max_size=3))
def test_splicing_puts_members_in_front(body: dict[str, Any], added: list[dict[str, Any]]) -> None:
    members = [codec.encode(each)[1:-1] for each in added if each]
    pairs = json.loads(codec.splice(codec.encode(body), *members), object_pairs_hook=list)
    assert pairs == [item for each in [*added, body] for item in each.items()]
