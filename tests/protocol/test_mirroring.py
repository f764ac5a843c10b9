"""Body fields in headers: what a client mirrors is what a server expects, and nothing else passes."""

import json
import string
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from mcpcore.protocol.mirroring import (
    decode_value,
    encode_value,
    method_mismatch,
    mirror,
    mismatch,
    version_mismatch,
)
from mcpcore.types import CallToolParams, GetPromptParams, PaginatedParams, ReadResourceParams
from mcpcore.types.methods import Direction, methods_of
from mcpcore.versions import LATEST_MODERN

ROWS = methods_of(Direction.TO_SERVER, LATEST_MODERN)
CALL = ROWS["tools/call"]
SENTINEL = st.sampled_from(["=?base64?", "?=", "=?base64?YQ==?=", " ", "\t", "é", "\n", "\x7f", "a"])
TEXTS = st.one_of(st.text(), st.lists(SENTINEL, max_size=4).map("".join))


# -- values ------------------------------------------------------------------------------------------------------------


@given(TEXTS)
def test_a_value_comes_back_as_it_went_and_is_safe_on_its_way(text: str) -> None:
    value = encode_value(text)
    assert value.isascii() and value.isprintable() and value == value.strip(" ")
    assert decode_value(value) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("us-west1", "us-west1"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("=?base64?", "=?base64?"),
        ("", ""),
    ],
)
def test_values_are_encoded_as_the_specification_shows(text: str, value: str) -> None:
    assert encode_value(text) == value and decode_value(value) == text


@pytest.mark.parametrize(
    "value",
    ["=?base64?YQ?=", "=?base64?YQ=?=", "=?base64?YR==?=", "=?base64?é?=", "=?base64?/w==?=", "é", "a\nb", "\x00"],
)
def test_what_cannot_be_read_without_a_guess_is_not_read(value: str) -> None:
    with pytest.raises(ValueError, match=r"base64|characters|utf-8"):
        decode_value(value)


# -- what is mirrored, and what passes ---------------------------------------------------------------------------------

MAP = {("a",): "mcp-param-a", ("b", "c"): "mcp-param-c"}
SCALARS = st.one_of(st.text(), st.integers(1 - 2**53, 2**53 - 1), st.booleans(), st.none())


def received(fields: dict[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in fields.items()}


def passes(fields: dict[str, str], params: CallToolParams, headers: Any = MAP) -> bool:
    return (
        version_mismatch(fields, LATEST_MODERN) is None
        and method_mismatch(fields, "tools/call") is None
        and mismatch(fields, CALL, params, headers) is None
    )


@given(st.text(), SCALARS, SCALARS)
def test_what_a_client_mirrors_passes_and_any_other_value_does_not(name: str, first: Any, second: Any) -> None:
    arguments = {"a": first, "b": {"c": second}}
    params = CallToolParams(name, Raw(msgspec.json.encode(arguments)))
    fields = received(mirror(CALL, LATEST_MODERN, params, MAP))
    assert passes(fields, params)
    for field, value in fields.items():
        assert not passes({key: other for key, other in fields.items() if key != field}, params)
        assert not passes({**fields, field: value + "x"}, params)
    for field in MAP.values():
        if field not in fields:
            assert not passes({**fields, field: ""}, params)


@given(SCALARS, SCALARS)
def test_another_argument_does_not_pass_with_the_same_header(first: Any, second: Any) -> None:
    assume(first != second or type(first) is not type(second))
    assume({first, second} != {0} and {first, second} != {1})
    params = CallToolParams("t", Raw(msgspec.json.encode({"a": first})))
    other = CallToolParams("t", Raw(msgspec.json.encode({"a": second})))
    fields = received(mirror(CALL, LATEST_MODERN, params, MAP))
    if str(first) != str(second):
        assert not passes(fields, other)


@pytest.mark.parametrize(
    ("row", "params", "name"),
    [
        ("tools/call", CallToolParams("é"), "=?base64?w6k=?="),
        ("resources/read", ReadResourceParams("file:///a%20b?id=1"), "file:///a%20b?id=1"),
        ("prompts/get", GetPromptParams("p"), "p"),
        ("tools/list", PaginatedParams(), None),
    ],
)
def test_a_request_is_named_by_its_name_or_uri(row: str, params: Any, name: str | None) -> None:
    fields = mirror(ROWS[row], LATEST_MODERN, params, None)
    expected = {"MCP-Protocol-Version": LATEST_MODERN, "Mcp-Method": row}
    assert fields == (expected if name is None else {**expected, "Mcp-Name": name})
    assert mismatch(received(fields), ROWS[row], params) is None


@pytest.mark.parametrize("given_value", ["42", "42.0", "4.2e1", "=?base64?NDI=?="])
def test_integers_are_compared_as_numbers(given_value: str) -> None:
    params = CallToolParams("t", Raw(b'{"a":42}'))
    assert mismatch({"mcp-name": "t", "mcp-param-a": given_value}, CALL, params, MAP) is None


@pytest.mark.parametrize("body", ["42", '{"x":1}', "[42]", "1e308"])
@pytest.mark.parametrize("given_value", ["43", "x", "", "nan", "inf", "0x2a"])
def test_what_is_not_equal_is_a_header_mismatch(body: str, given_value: str) -> None:
    params = CallToolParams("t", Raw(f'{{"a":{body}}}'.encode()))
    problem = mismatch({"mcp-name": "t", "mcp-param-a": given_value}, CALL, params, MAP)
    assert problem is not None and problem.code == -32020 and problem.message.startswith("Header mismatch: ")


@pytest.mark.parametrize("number", [2**53, -(2**53), 10**400])
def test_integers_that_headers_cannot_carry_are_not_sent(number: int) -> None:
    params = CallToolParams("t", Raw(b'{"a":%d}' % number))
    with pytest.raises(ValueError, match=r"argument a: .* is beyond the integers that headers can carry"):
        mirror(CALL, LATEST_MODERN, params, MAP)


def test_without_arguments_nothing_is_mirrored() -> None:
    for raw in (UNSET, Raw(b"{}"), Raw(b'{"b":5}'), Raw(b'{"a":null,"b":{}}')):
        assert set(mirror(CALL, LATEST_MODERN, CallToolParams("t", raw), MAP)) == {
            "MCP-Protocol-Version",
            "Mcp-Method",
            "Mcp-Name",
        }


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({}, "MCP-Protocol-Version is missing"),
        ({"mcp-protocol-version": "2025-11-25"}, "does not match body value '2026-07-28'"),
        ({"mcp-protocol-version": " 2026-07-28\t"}, None),
    ],
)
def test_the_version_is_compared_without_the_space_around_it(fields: dict[str, str], problem: str | None) -> None:
    found = version_mismatch(fields, LATEST_MODERN)
    assert (found is None) if problem is None else (found is not None and problem in found.message)


def test_long_values_are_cut_in_the_message() -> None:
    problem = method_mismatch({"mcp-method": "x" * 10_000}, "tools/call")
    assert problem is not None and len(problem.message) < 300
    assert json.dumps(problem.message).isascii() or set(problem.message) <= set(string.printable)


@pytest.mark.parametrize("value", ["=?base64?dG9vbHMvY2FsbA?=", "tools/cäll"])
def test_a_method_that_cannot_be_read_is_a_header_mismatch(value: str) -> None:
    problem = method_mismatch({"mcp-method": value}, "tools/call")
    assert problem is not None and "cannot be read" in problem.message
