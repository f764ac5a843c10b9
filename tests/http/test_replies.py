"""Telling the answer among the messages of a reply."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpcore.transports.http.replies import (
    Refusal,
    is_answer,
    media_type,
    negotiated_version,
    own_answer,
    read_refusal,
)

RESULT = b'{"jsonrpc":"2.0","id":1,"result":{}}'
ERROR = b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no","data":{"a":[1]}}}'


def encoded(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


@pytest.mark.parametrize("data", [RESULT, ERROR, b" \n[" + RESULT + b"]", encoded(id=1, result=None)])
def test_a_result_or_an_error_under_the_id_is_an_answer(data: bytes) -> None:
    assert is_answer(data, 1)


@pytest.mark.parametrize(
    "data",
    [
        encoded(id="1", result={}),
        encoded(id=2, result={}),
        encoded(id=True, result={}),
        encoded(id=None, result={}),
        encoded(result={}),
        encoded(id=1, method="ping"),
        encoded(id=1),
        b'{"id":1,"result":{}}',
        RESULT[:-1],
        b"[]",
        b"[1]",
        b"",
        b"null",
        b"[" * 10_000,
        b'{"jsonrpc":"2.0","id":1,"result":' + b"[" * 10_000,
    ],
)
def test_nothing_else_is_an_answer(data: bytes) -> None:
    assert not is_answer(data, 1)
    assert own_answer(data, 1) is None


def test_ids_keep_their_type() -> None:
    assert is_answer(encoded(id="a", result={}), "a")
    assert is_answer(encoded(id=0, result={}), 0)
    assert is_answer(encoded(id="", result={}), "")
    assert not is_answer(encoded(id=0, result={}), "")


@pytest.mark.parametrize("members", [{}, {"id": None}])
def test_an_error_that_lost_its_id_is_the_answer_of_its_reply(members: dict[str, Any]) -> None:
    answer = own_answer(encoded(error={"code": -1, "message": "no"}, **members), "a")
    assert answer is not None
    assert json.loads(answer) == {"jsonrpc": "2.0", "id": "a", "error": {"code": -1, "message": "no"}}


def test_an_error_of_somebody_else_is_not() -> None:
    assert own_answer(encoded(id=2, error={"code": -1, "message": "no"}), 1) is None


def test_the_revision_is_read_from_a_result_only() -> None:
    assert negotiated_version(encoded(id=1, result={"protocolVersion": "2025-06-18"})) == "2025-06-18"
    for data in (ERROR, RESULT, b"", encoded(id=1, result={"protocolVersion": 1})):
        assert negotiated_version(data) is None


def test_a_refusal_keeps_all_of_the_error_under_the_id_of_the_request() -> None:
    refusal = read_refusal(400, "application/json", ERROR, 7)
    assert refusal.answer is not None
    assert json.loads(refusal.answer) == {**json.loads(ERROR), "id": 7}
    assert (refusal.code, refusal.text, refusal.is_addressed) == (-1, "no", False)
    assert read_refusal(400, None, ERROR, 1).is_addressed


@pytest.mark.parametrize(
    ("content_type", "body", "text"),
    [
        ("text/plain", b"not\n  here", "not here"),
        ("text/html; charset=utf-8", b"<html>...", ""),
        (None, b"\xff", "\ufffd"),
        ("application/json", b'{"error":"x"}', '{"error":"x"}'),
        ("text/plain", b"x" * 1000, "x" * 200 + "…"),
        ("application/json", b'{"jsonrpc":"2.0","error":{"message":"x"}}', '{"jsonrpc":"2.0","error":{"message":"x"}}'),
    ],
)
def test_a_refusal_without_an_error_says_what_can_be_read(content_type: str | None, body: bytes, text: str) -> None:
    refusal = read_refusal(500, content_type, body, 1)
    assert (refusal.answer, refusal.text) == (None, text)


@pytest.mark.parametrize(
    ("refusal", "forgets", "older"),
    [
        (Refusal(404), True, True),
        (Refusal(404, code=-32001), True, True),
        (Refusal(404, code=-32601, is_addressed=True), False, False),
        (Refusal(404, code=-32601), True, False),
        (Refusal(400), False, True),
        (Refusal(400, "No valid session ID provided", code=-32000), True, True),
        (Refusal(400, "No valid session ID provided", code=-32600), False, True),
        (Refusal(400, "bad", code=-32000), False, True),
        (Refusal(405), False, True),
        (Refusal(400, code=-32022), False, False),
        (Refusal(400, code=-32020), False, False),
        (Refusal(400, code=-32021), False, False),
        (Refusal(401), False, False),
        (Refusal(500), False, False),
    ],
)
def test_what_a_refusal_means(refusal: Refusal, forgets: bool, older: bool) -> None:
    assert (refusal.forgets_session, refusal.may_be_older) == (forgets, older)


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [(None, ""), ("Application/JSON ; charset=x", "application/json"), ("text/event-stream;", "text/event-stream")],
)
def test_a_media_type_is_compared_without_case_and_parameters(content_type: str | None, expected: str) -> None:
    assert media_type(content_type) == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "error", "code"]), inner),
    max_leaves=5,
)


@given(
    st.binary(max_size=50)
    | st.fixed_dictionaries(
        {"jsonrpc": st.just("2.0")}, optional={"id": JSON, "error": JSON, "result": JSON, "method": JSON}
    ).map(lambda value: json.dumps(value).encode())
)
def test_nothing_that_a_server_sends_makes_it_raise(data: bytes) -> None:
    found = own_answer(data, 1)
    assert found is None or is_answer(found, 1)
    refusal = read_refusal(400, None, data, 1)
    assert refusal.answer is None or is_answer(refusal.answer, 1)
    negotiated_version(data)
