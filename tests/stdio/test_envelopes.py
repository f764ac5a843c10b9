"""Every message that can be read gets exactly one answer with the right code and id, and the connection goes on."""

import json
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import Program, call, initialize, modern

SERVER = str(Path(__file__).with_name("server.py"))
ABSENT = object()
"""Stands for an answer without an id."""

NEWEST, BATCHES, OLDEST = "2025-11-25", "2025-03-26", "2024-11-05"
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@pytest.fixture(scope="module")
def session() -> Generator[Program]:
    """One session for all tests: whatever a test sends, the next one must still be served."""
    yield from opened(NEWEST)


@pytest.fixture(scope="module")
def with_batches() -> Generator[Program]:
    yield from opened(BATCHES)


@pytest.fixture(scope="module")
def oldest() -> Generator[Program]:
    yield from opened(OLDEST)


@pytest.fixture(scope="module")
def stateless() -> Generator[Program]:
    """No session: modern requests."""
    with Program([sys.executable, "-W", "error", SERVER]) as program:
        yield program


def opened(version: str) -> Generator[Program]:
    with Program([sys.executable, "-W", "error", SERVER]) as program:
        assert program.open(version)["protocolVersion"] == version
        yield program
        program.close_input()
        assert program.wait() == 0
        assert "Traceback" not in program.stderr


def answers(program: Program, message: Any, *, probe: Any = None) -> list[Any]:
    """Send a message and return all that comes before the answer to a request that follows it."""
    program.send(message, {**(probe or PING), "id": "probe"})
    found: list[Any] = []
    while True:
        answer = program.receive()
        if isinstance(answer, dict) and answer.get("id") == "probe":
            assert "result" in answer
            return found
        found.append(answer)


def check_error(found: list[Any], code: int, id: Any) -> None:
    assert len(found) == 1
    error = found[0]
    assert error["error"]["code"] == code
    assert error.get("id", ABSENT) == id and type(error.get("id", ABSENT)) is type(id)
    assert error["error"]["message"]
    assert error.keys() <= {"jsonrpc", "id", "error"}


# -- what is no request ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "code", "id"),
    [
        (b"{", -32700, ABSENT),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"', -32700, ABSENT),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}{}', -32700, ABSENT),
        (b"nonsense", -32700, ABSENT),
        (b"\x00", -32700, ABSENT),
        (b"\xff\xfe", -32700, ABSENT),
        (b"Content-Length: 20", -32700, ABSENT),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}', -32700, ABSENT),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\\ud800"}}', -32700, 1),
        (b"null", -32600, ABSENT),
        (b"true", -32600, ABSENT),
        (b"1", -32600, ABSENT),
        (b'"ping"', -32600, ABSENT),
        (b"{}", -32600, ABSENT),
        (b"[" * 100_000, -32600, ABSENT),
        (b"[" * 100_000 + b"]" * 100_000, -32600, ABSENT),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b'{"a":' * 300 + b"1" + b"}" * 300 + b"}", -32600, 1),
        (b'{"id":1,"method":"ping"}', -32600, 1),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600, 1),
        (b'{"jsonrpc":2.0,"id":1,"method":"ping"}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":1}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":null}', -32600, 1),
    ],
)
def test_what_is_no_request_is_refused_with_the_id_that_could_be_read(
    session: Program, line: bytes, code: int, id: Any
) -> None:
    check_error(answers(session, line + b"\n"), code, id)


@pytest.mark.parametrize("id", [None, True, False, 1.5, 1.0, [1], {}])
def test_an_id_that_is_neither_string_nor_integer_is_refused(session: Program, id: Any) -> None:
    check_error(answers(session, {"jsonrpc": "2.0", "id": id, "method": "tools/list"}), -32600, ABSENT)


def test_an_id_that_cannot_be_read_is_null_in_older_revisions(oldest: Program) -> None:
    check_error(answers(oldest, b"{nonsense\n"), -32700, None)


@pytest.mark.parametrize("line", [b"\n", b"\r\n", b"   \n", b"\t\n"])
def test_blank_lines_are_not_answered(session: Program, line: bytes) -> None:
    assert answers(session, line) == []


def test_a_carriage_return_before_the_line_feed_is_accepted(session: Program) -> None:
    assert answers(session, json.dumps(PING).encode() + b"\r\n") == [{"jsonrpc": "2.0", "id": 1, "result": {}}]


def test_a_byte_order_mark_spoils_one_line_at_most() -> None:
    with Program([sys.executable, SERVER]) as program:
        program.send(b"\xef\xbb\xbf" + json.dumps(initialize(1)).encode() + b"\n", initialize(2))
        found = [program.receive()]
        if "error" in found[0]:
            assert found[0]["error"]["code"] == -32700
            found.append(program.receive())
        assert found[-1]["result"]["protocolVersion"] == NEWEST


def test_messages_may_come_in_pieces_of_any_size(session: Program) -> None:
    for byte in json.dumps(PING).encode() + b"\n":
        session.send(bytes([byte]))
    assert session.receive() == {"jsonrpc": "2.0", "id": 1, "result": {}}


# -- ids ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("id", ["", "1", "007", "ü", 0, -1, 1, 2**53 + 1, 2**63 - 1, -(2**63), 2**64, 10**40])
def test_an_id_comes_back_with_its_type_and_value(session: Program, id: Any) -> None:
    (answer,) = answers(session, {**PING, "id": id})
    assert answer == {"jsonrpc": "2.0", "id": id, "result": {}}
    assert type(answer["id"]) is type(id)


def test_a_second_request_with_an_id_in_flight_is_refused_and_the_first_is_undisturbed(session: Program) -> None:
    session.send(call(7, "sleep", {"seconds": 60}))
    check_error(answers(session, call(7, "nothing")), -32600, ABSENT)
    check_error(answers(session, call(7, "nothing")), -32600, ABSENT)
    assert session.result(call("count", "count_running"))["content"][0]["text"] == "1"
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
    assert answers(session, cancelled) == []
    assert session.result(call(7, "nothing"))["content"][0]["text"] == "nothing"
    assert session.result(call("count", "count_running"))["content"][0]["text"] == "0"


def test_the_string_and_the_number_are_different_ids(session: Program) -> None:
    session.send(call(8, "sleep", {"seconds": 0.1}), call("8", "sleep", {"seconds": 0.1}))
    found = [session.receive()["id"], session.receive()["id"]]
    assert sorted(found, key=str) in ([8, "8"], ["8", 8])


# -- methods and parameters --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["foo/bar", "", "tools", "TOOLS/LIST", "rpc.discover", "server/discover "])
def test_a_method_that_does_not_exist_is_refused_as_such(session: Program, method: str) -> None:
    check_error(answers(session, {**PING, "method": method, "params": {"a": 1}}), -32601, 1)


def test_the_name_of_a_notification_is_no_method(session: Program) -> None:
    found = answers(session, {**PING, "method": "notifications/initialized"})
    assert [error["error"]["code"] in (-32600, -32601) for error in found] == [True]


@pytest.mark.parametrize("params", [[], [1], "x", 5, True])
def test_parameters_that_are_no_object_are_refused(session: Program, params: Any) -> None:
    for method in ("ping", "tools/list", "tools/call"):
        check_error(answers(session, {**PING, "method": method, "params": params}), -32602, 1)


@pytest.mark.parametrize("params", [{}, {"name": 5}, {"name": None}, {"arguments": {}}, None])
def test_a_call_without_a_name_is_refused(session: Program, params: Any) -> None:
    check_error(answers(session, {**PING, "method": "tools/call", "params": params}), -32602, 1)


@pytest.mark.parametrize("arguments", ["{}", "x", 5, [], [1], True])
def test_arguments_that_are_no_object_are_refused(session: Program, arguments: Any) -> None:
    for name in ("nothing", "echo"):
        message = {**PING, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        check_error(answers(session, message), -32602, 1)


@pytest.mark.parametrize("name", ["nothing", "optional"])
@pytest.mark.parametrize("params", [{}, {"arguments": {}}, {"arguments": None}])
def test_arguments_may_be_left_out_where_none_is_required(session: Program, name: str, params: dict[str, Any]) -> None:
    result = session.result({**PING, "method": "tools/call", "params": {"name": name, **params}})
    assert result["isError"] is False


def test_an_argument_that_is_missing_is_named(session: Program) -> None:
    result = session.result({**PING, "method": "tools/call", "params": {"name": "echo"}})
    assert result["isError"] is True
    assert "/text" in result["content"][0]["text"]


def test_an_unknown_tool_is_an_error_of_the_protocol(session: Program) -> None:
    (answer,) = answers(session, call(1, "no_such_tool"))
    assert answer["error"] == {"code": -32602, "message": "Unknown tool: no_such_tool"}


def test_unknown_members_are_ignored(session: Program) -> None:
    message = {**PING, "vendor": 1, "params": {"_meta": {"com.example/x": [1]}, "vendor": {}}}
    assert answers(session, message) == [{"jsonrpc": "2.0", "id": 1, "result": {}}]


# -- what is not answered ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    [
        {"method": "notifications/initialized"},
        {"method": "notifications/initialized", "params": 5},
        {"method": "notifications/vendor"},
        {"method": "notifications/cancelled"},
        {"method": "notifications/cancelled", "params": {"requestId": "unknown"}},
        {"method": "notifications/cancelled", "params": {"requestId": {}}},
        {"method": "notifications/cancelled", "params": []},
        {"method": "notifications/progress", "params": {"progressToken": 1, "progress": "much"}},
        {"method": "notifications/roots/list_changed"},
        {"method": "tools/list"},
        {"id": 99, "result": {}},
        {"id": 99, "error": {"code": 1, "message": "x"}},
        {"id": 99, "error": "text"},
        {"id": None, "error": {"code": -32700, "message": "x"}},
        {"id": 99, "result": {}, "error": {"code": 1, "message": "x"}},
    ],
)
def test_notifications_and_answers_are_never_answered(
    session: Program, stateless: Program, message: dict[str, Any]
) -> None:
    assert answers(session, {"jsonrpc": "2.0", **message}) == []
    discover = modern({"jsonrpc": "2.0", "id": "probe", "method": "server/discover"})
    assert answers(stateless, {"jsonrpc": "2.0", **message}, probe=discover) == []


# -- batches -----------------------------------------------------------------------------------------------------

BATCH = [
    PING,
    {"jsonrpc": "2.0", "method": "notifications/vendor"},
    call(2, "nothing"),
    {**PING, "id": 3, "method": "x"},
]


def test_a_batch_is_answered_in_the_revision_that_has_them(with_batches: Program) -> None:
    (found,) = answers(with_batches, BATCH)
    assert isinstance(found, list)
    by_id = {answer["id"]: answer for answer in found}
    assert len(found) == 3 and by_id.keys() == {1, 2, 3}
    assert by_id[1]["result"] == {}
    assert by_id[2]["result"]["content"][0]["text"] == "nothing"
    assert by_id[3]["error"]["code"] == -32601


def test_a_batch_of_notifications_is_not_answered(with_batches: Program) -> None:
    assert answers(with_batches, [{"jsonrpc": "2.0", "method": "notifications/vendor"}]) == []


def test_what_is_wrong_in_a_batch_is_answered_one_by_one(with_batches: Program) -> None:
    (found,) = answers(with_batches, [1, PING, {"jsonrpc": "2.0", "id": None, "method": "ping"}])
    assert sorted(answer.get("error", {}).get("code", 0) for answer in found) == [-32600, -32600, 0]


@pytest.mark.parametrize("batch", [[], [initialize(5)], [PING, initialize(5)]])
def test_an_empty_batch_and_one_with_initialize_are_refused(with_batches: Program, batch: Any) -> None:
    found = answers(with_batches, batch)
    flat = found[0] if found and isinstance(found[0], list) else found
    assert -32600 in [answer.get("error", {}).get("code") for answer in flat]


@pytest.mark.parametrize("batch", [BATCH, [], [1], [[]], [initialize(5)], [{"jsonrpc": "2.0", "method": "x"}]])
def test_where_there_are_no_batches_each_is_refused_once(session: Program, batch: Any) -> None:
    check_error(answers(session, batch), -32600, ABSENT)
