"""Opening a session in any order that clients have been seen to use: right answers, and never a connection that is stuck."""

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import Program, call, initialize, modern

SERVER = str(Path(__file__).with_name("server.py"))
LEGACY = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
NEWEST = LEGACY[-1]
PING = {"jsonrpc": "2.0", "id": "ping", "method": "ping"}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
DISCOVER = {"jsonrpc": "2.0", "id": "discover", "method": "server/discover"}


def start() -> Program:
    return Program([sys.executable, "-W", "error", SERVER])


def check_still_served(program: Program) -> None:
    """The handshake works, and so do calls, whatever has been sent before."""
    assert program.open()["protocolVersion"] == NEWEST
    assert program.result(call("still", "nothing"))["content"][0]["text"] == "nothing"


@pytest.mark.parametrize("version", LEGACY)
def test_a_revision_that_is_known_is_agreed_on(version: str) -> None:
    with start() as program:
        result = program.open(version)
        assert result["protocolVersion"] == version
        assert result["serverInfo"]["name"] == "proof"
        assert result["instructions"] == "Prove it."
        assert program.result(call(1, "nothing"))["content"][0]["text"] == "nothing"


@pytest.mark.parametrize("version", ["2099-01-01", "1999-01-01", "", "2026-07-28"])
def test_for_a_revision_that_is_unknown_the_newest_with_a_handshake_is_offered(version: str) -> None:
    with start() as program:
        assert program.open(version)["protocolVersion"] == NEWEST
        assert program.result(call(1, "nothing"))["isError"] is False


def test_initialize_without_a_revision_is_refused_and_may_be_repeated() -> None:
    with start() as program:
        nameless = initialize(1)
        del nameless["params"]["protocolVersion"]
        bare = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
        wrong: list[Any] = [None, 20251125, ["2025-11-25"], {}]
        for request in (nameless, bare, *(initialize(1, version) for version in wrong)):
            assert program.ask(request)["error"]["code"] == -32602
        check_still_served(program)


def test_a_request_before_initialize_is_refused_and_the_handshake_works_afterwards() -> None:
    with start() as program:
        for method in ("tools/list", "tools/call", "prompts/list", "logging/setLevel", "no/such"):
            answer = program.ask({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"name": "nothing"}})
            assert answer["id"] == 1
            assert answer["error"]["code"] in (-32600, -32601, -32602)
        check_still_served(program)


def test_ping_comes_before_everything() -> None:
    with start() as program:
        assert program.result(PING) == {}
        check_still_served(program)
        assert program.result(PING) == {}


@pytest.mark.parametrize(
    "early", [b"{nonsense\n", b"[]\n", b"\n", INITIALIZED, {"jsonrpc": "2.0", "id": 5, "result": {}}]
)
def test_odd_messages_before_initialize_do_no_harm(early: Any) -> None:
    with start() as program:
        program.send(early, PING)
        while program.receive().get("id") != "ping":
            pass
        check_still_served(program)


def test_initialized_may_be_missing_late_or_repeated() -> None:
    with start() as program:
        program.result(initialize(0))
        assert program.result(call(1, "nothing"))["isError"] is False
        program.send(INITIALIZED, INITIALIZED)
        assert program.result(call(2, "nothing"))["isError"] is False


def test_requests_may_be_sent_right_behind_initialize_without_waiting_for_the_answer() -> None:
    with start() as program:
        program.send(initialize(0), INITIALIZED, call(1, "nothing"), {**PING, "id": 2}, call(3, "nothing"))
        found = {answer["id"]: answer for answer in (program.receive() for _ in range(4))}
        assert found.keys() == {0, 1, 2, 3}
        assert all("result" in answer for answer in found.values())


def test_initializing_again_is_refused_and_the_session_goes_on() -> None:
    with start() as program:
        program.open()
        assert program.ask(initialize(1, "2024-11-05"))["error"]["code"] == -32600
        assert program.result(call(2, "nothing"))["isError"] is False


def test_clients_of_any_kind_of_capabilities_are_welcome() -> None:
    kinds: list[dict[str, Any]] = [
        {"experimental": {"x": {}}, "roots": {"listChanged": True}, "sampling": {}, "elicitation": {}},
        {"vendor": [1], "tasks": {"list": {}}},
    ]
    for capabilities in kinds:
        with start() as program:
            assert program.open(NEWEST, **capabilities)["protocolVersion"] == NEWEST


# -- the modern era ----------------------------------------------------------------------------------------------


def test_discover_is_answered_first_and_always() -> None:
    with start() as program:
        first = program.result(modern(DISCOVER))
        assert first["supportedVersions"] == ["2026-07-28"]
        assert first["resultType"] == "complete"
        assert program.result(modern(DISCOVER)) == first


def test_a_modern_request_needs_no_handshake_and_leaves_no_state() -> None:
    with start() as program:
        assert program.result(modern(call(1, "nothing")))["content"][0]["text"] == "nothing"
        check_still_served(program)


def test_both_eras_share_a_connection() -> None:
    with start() as program:
        check_still_served(program)
        modern_result = program.result(modern(call(1, "nothing")))
        legacy_result = program.result(call(2, "nothing"))
        assert modern_result["resultType"] == "complete"
        assert "resultType" not in legacy_result


def test_a_revision_to_come_is_refused_with_those_that_are_spoken() -> None:
    with start() as program:
        answer = program.ask(modern(call(1, "nothing"), "2031-01-01"))
        assert answer["id"] == 1
        assert answer["error"]["code"] == -32022
        assert answer["error"]["data"] == {"supported": ["2026-07-28"], "requested": "2031-01-01"}
        check_still_served(program)


def test_a_modern_request_that_leaves_out_what_it_must_say_is_refused() -> None:
    with start() as program:
        for missing in ("clientCapabilities", "protocolVersion"):
            request = modern(DISCOVER)
            del request["params"]["_meta"][f"io.modelcontextprotocol/{missing}"]
            assert program.ask(request)["error"]["code"] == -32602
        assert program.ask(DISCOVER)["error"]["code"] == -32602
        check_still_served(program)


def test_methods_that_the_modern_era_does_not_have_are_not_found() -> None:
    with start() as program:
        for method in ("ping", "logging/setLevel", "initialize", "resources/subscribe", "no/such"):
            request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"level": "info", "uri": "proof://note"}}
            assert program.ask(modern(request))["error"]["code"] == -32601
        check_still_served(program)
