"""Values at the edge of JSON, and messages of any size, come through the pipe as they are."""

import json
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import Program, call

SERVER = str(Path(__file__).with_name("server.py"))


@pytest.fixture(scope="module")
def session() -> Generator[Program]:
    with Program([sys.executable, "-W", "error", SERVER]) as program:
        program.open()
        yield program


def given_back(session: Program, value: Any) -> Any:
    """Call the tool that returns its argument, and decode the text that it gives."""
    result = session.result(call(1, "give", {"value": value}))
    assert result["isError"] is False, result
    return json.loads(result["content"][0]["text"])


@pytest.mark.parametrize(
    "value",
    [2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 2**63, 2**64, 10**40, 10**15, 1.0, -0.5, 1e300, 5e-324, 0.1, -0.0],
)
def test_numbers_keep_type_and_value(session: Program, value: float) -> None:
    found = given_back(session, [value])[0]
    assert found == value
    assert type(found) is type(value)
    assert str(found) == str(value)  # -0.0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ordinary",
        "line\nfeed and\r\nreturn\ttab",
        "separators \u2028 \u2029 \u0085 \x0b \x0c \x1c \x1d \x1e",
        "\x00\x01\x1f\x7f",
        "ünïcödé 漢字 🎉 \u200b\ufeff",
        '"quoted" \\backslash\\ /slash/',
        "</script>&amp;",
    ],
)
def test_text_keeps_every_character_and_its_answer_is_one_line(session: Program, text: str) -> None:
    for ascii in (True, False):  # escaped, and raw where JSON allows it
        request = json.dumps(call(1, "echo", {"text": text}), ensure_ascii=ascii).encode() + b"\n"
        session.send(request)
        line = session.receive_line()
        assert json.loads(line)["result"]["content"] == [{"type": "text", "text": text}]
        assert line.count(b"\n") == 1 and b"\r" not in line
        line.decode()


@pytest.mark.parametrize("value", [{"a": None}, [None], {}, [], True, {"": {"": [[]]}}, {"a b": 1, "ü": 2}])
def test_what_the_user_passes_keeps_its_nulls_and_its_empty_things(session: Program, value: Any) -> None:
    assert given_back(session, value) == value


def test_depth_up_to_the_limit_is_fine_and_beyond_it_is_refused(session: Program) -> None:
    def nested(depth: int) -> Any:
        value: Any = 1
        for _ in range(depth):
            value = [value]
        return value

    assert given_back(session, nested(200)) == nested(200)
    answer = session.ask(call(1, "give", {"value": nested(300)}))
    assert (answer["id"], answer["error"]["code"]) == (1, -32600)


@pytest.mark.parametrize("literal", [b"NaN", b"Infinity", b"-Infinity", b"01", b"1.", b".5", b"+1", b"0x10", b"1_000"])
def test_what_is_no_json_number_is_a_parse_error(session: Program, literal: bytes) -> None:
    request = json.dumps(call(1, "give", {"value": "HERE"})).encode().replace(b'"HERE"', literal)
    assert session.ask(request + b"\n")["error"]["code"] == -32700
    assert given_back(session, 1) == 1


@pytest.mark.parametrize("how", ["nan", "infinity", "surrogate"])
def test_a_result_that_json_cannot_hold_is_an_error_of_the_tool(session: Program, how: str) -> None:
    for name in ("text", "structured"):
        result = session.result(call(1, f"give_odd_{name}", {"how": how}))
        assert result["isError"] is True, result
    assert given_back(session, 1) == 1


def test_an_argument_of_a_number_beyond_what_floats_hold_is_an_error_or_comes_back_as_it_was(session: Program) -> None:
    request = json.dumps(call(1, "give", {"value": "HERE"})).encode().replace(b'"HERE"', b"1e400")
    answer = session.ask(request + b"\n")
    assert answer["id"] == 1
    assert "error" in answer or answer["result"]["isError"] is True


def test_a_duplicate_member_is_not_a_crash(session: Program) -> None:
    assert session.ask(b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}\n')["id"] in (1, 2)


# -- size --------------------------------------------------------------------------------------------------------


def test_an_argument_of_a_mebibyte_arrives_whole_or_in_pieces(session: Program) -> None:
    text = "é" * (512 * 1024)
    request = json.dumps(call(1, "echo", {"text": text}), ensure_ascii=False).encode() + b"\n"
    session.send(request)
    assert session.receive()["result"]["content"][0]["text"] == text
    for start in range(0, len(request), 4095):  # also in the middle of characters
        session.send(request[start : start + 4095])
    assert session.receive()["result"]["content"][0]["text"] == text


def test_a_result_of_five_mebibytes_arrives(session: Program) -> None:
    size = 5 * 1024 * 1024
    assert session.result(call(1, "fill", {"size": size}))["content"][0]["text"] == "x" * size


def test_a_result_of_64_million_bytes_arrives(session: Program) -> None:
    size = 64_000_000
    assert session.result(call(1, "fill", {"size": size}))["content"][0]["text"] == "x" * size
    assert session.result(call(2, "nothing"))["isError"] is False


def test_a_message_beyond_the_limit_is_refused_once_and_the_next_one_is_served() -> None:
    code = "server.limits = Limits(message_size=1_000_000)"
    with Program([sys.executable, SERVER, "asyncio", code]) as program:
        program.open()
        program.send(json.dumps(call(1, "echo", {"text": "x" * 2_000_000})).encode() + b"\n")
        answer = program.receive()
        assert answer["error"]["code"] == -32600
        assert "1000000" in answer["error"]["message"].replace(",", "").replace("_", "")
        assert program.result(call(2, "nothing"))["isError"] is False


def test_many_requests_at_once_are_all_answered(session: Program) -> None:
    numbers = range(2000)
    session.send(*(call(number, "echo", {"text": str(number)}) for number in numbers))
    found = [session.receive() for _ in numbers]
    assert {answer["id"]: answer["result"]["content"][0]["text"] for answer in found} == {n: str(n) for n in numbers}


# -- absent members ----------------------------------------------------------------------------------------------


def test_members_that_are_absent_are_left_out_and_never_null(session: Program) -> None:
    for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list"):
        result = session.result({"jsonrpc": "2.0", "id": 1, "method": method})
        assert nulls_in(result, skip=("inputSchema",)) == []
    found = session.result(
        {"jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": {"name": "greet", "arguments": {"name": "Ada"}}}
    )
    assert nulls_in(found) == []
    assert (
        nulls_in(
            session.result({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "proof://note"}})
        )
        == []
    )
    assert nulls_in(session.ask(call(1, "no_such_tool"))) == []


def nulls_in(value: Any, skip: tuple[str, ...] = (), place: str = "") -> list[str]:
    if isinstance(value, dict):
        return [
            found
            for key, inner in value.items()
            if key not in skip
            for found in nulls_in(inner, skip, f"{place}/{key}")
        ]
    if isinstance(value, list):
        return [found for index, inner in enumerate(value) for found in nulls_in(inner, skip, f"{place}/{index}")]
    return [place] if value is None else []
