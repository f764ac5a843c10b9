"""How a server's process ends: in bounded time, with a conventional status, after it has answered what it accepted."""

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import Program, call, initialize

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

SERVER = str(Path(__file__).with_name("server.py"))
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
DRAIN = "0.5"  # seconds for calls that are open at the end; the tests would last longer with the 2 that are usual
STUCK = 600  # seconds: for ever, as far as a test is concerned


@pytest.fixture(params=["asyncio", "trio"])
def backend(request: pytest.FixtureRequest) -> str:
    """The event loop of the server."""
    return str(request.param)


def start(backend: str, code: str = "", **options: Any) -> Program:
    return Program([sys.executable, "-W", "error", SERVER, backend, code], env={"PROOF_DRAIN": DRAIN}, **options)


# -- end of input ------------------------------------------------------------------------------------------------


def test_an_input_that_is_empty_ends_it(backend: str) -> None:
    with start(backend) as program:
        program.close_input()
        assert program.wait() == 0
        assert program.rest() == []
        assert program.stderr == ""


def test_the_end_of_input_after_the_handshake_ends_it(backend: str) -> None:
    with start(backend) as program:
        program.open()
        program.close_input()
        assert program.wait() == 0
        assert program.stderr == ""


@pytest.mark.parametrize("tool", ["block", "sleep"])
def test_a_tool_that_does_not_end_cannot_keep_it(backend: str, tool: str) -> None:
    with start(backend) as program:
        program.open()
        program.send(call(1, tool, {"seconds": STUCK}))
        program.result(call(2, "nothing"))
        program.close_input()
        assert program.wait() == 0
        assert program.rest() == []
        assert "Traceback" not in program.stderr


@pytest.mark.parametrize(
    "code",
    ["tick_for_ever()", "threading.Timer(600, print).start()"],
)
def test_threads_of_its_own_cannot_keep_it(backend: str, code: str) -> None:
    with start(backend, code) as program:
        program.open()
        program.close_input()
        assert program.wait() == 0
        assert program.stderr == ""


def test_workers_that_have_nothing_to_do_end_with_it_and_it_is_not_cut_off(backend: str) -> None:
    with start(backend, "import atexit; atexit.register(print, 'in good order', file=sys.stderr)") as program:
        program.open()
        for id in range(1, 9):
            program.send(call(id, "block", {"seconds": 0.01}))
        for _ in range(8):
            assert "result" in program.receive()
        program.close_input()
        assert program.wait() == 0
        assert program.stderr == "in good order\n"


def test_a_thread_of_the_event_loop_s_own_pool_cannot_keep_it() -> None:
    with start("asyncio") as program:
        program.open()
        program.send(call(1, "sleep_in_loop_thread", {"seconds": STUCK}))
        program.result(call(2, "nothing"))
        program.close_input()
        assert program.wait() == 0


def test_code_after_run_and_exit_callbacks_are_executed(backend: str) -> None:
    code = "import atexit; atexit.register(print, 'at exit', file=sys.stderr)"
    with start(backend, code) as program:
        program.open()
        program.close_input()
        assert program.wait() == 0
        assert program.stderr == "at exit\n"


def test_calls_that_were_accepted_are_answered_before_it_ends(backend: str, tmp_path: Path) -> None:
    session = [initialize(0), INITIALIZED, call(1, "sleep", {"seconds": 0.2}), call(2, "block", {"seconds": 0.2})]
    transcript = tmp_path / "input"
    transcript.write_text("".join(json.dumps(message) + "\n" for message in session))
    with transcript.open("rb") as stdin, start(backend, stdin=stdin) as program:
        assert program.wait() == 0
        answers = {answer["id"]: answer for answer in program.rest()}
        assert answers.keys() == {0, 1, 2}
        assert answers[1]["result"]["content"][0]["text"] == "slept"
        assert answers[2]["result"]["content"][0]["text"] == "blocked"
        assert program.stderr == ""


def test_the_same_through_a_pipe_with_a_last_line_that_is_not_ended(backend: str) -> None:
    with start(backend) as program:
        program.send(initialize(0), INITIALIZED, call(1, "sleep", {"seconds": 0.2}))
        program.send(json.dumps(call(2, "nothing")).encode())
        program.close_input()
        assert program.wait() == 0
        assert {answer["id"] for answer in program.rest()} == {0, 1, 2}


def test_a_client_that_stops_reading_does_not_keep_it(backend: str) -> None:
    with start(backend) as program:
        program.open()
        program.send(call(1, "fill", {"size": 10_000_000}))
        program.close_input()
        assert program.wait() == 0


# -- signals -----------------------------------------------------------------------------------------------------


SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.mark.parametrize(
    ("number", "doing"),
    [*((number, "nothing") for number in SIGNALS), (signal.SIGINT, "sleep"), (signal.SIGTERM, "block")],
)
def test_a_signal_ends_it_with_the_status_that_shells_give_it(backend: str, number: signal.Signals, doing: str) -> None:
    with start(backend) as program:
        program.open()
        if doing != "nothing":
            program.send(call(1, doing, {"seconds": STUCK}))
        program.result(call(2, "nothing"))
        program.process.send_signal(number)
        assert program.wait() == 128 + number
        assert program.rest() == []
        assert "Traceback" not in program.stderr


def test_a_signal_before_the_handshake_ends_it_too(backend: str) -> None:
    with start(backend) as program:
        assert program.ask({"jsonrpc": "2.0", "id": 1, "method": "ping"})["result"] == {}
        program.process.send_signal(signal.SIGTERM)
        assert program.wait() == 128 + signal.SIGTERM
        assert program.stderr == ""


@pytest.mark.parametrize("doing", ["sleep", "block"])
def test_signals_again_and_again_end_it_without_a_traceback(backend: str, doing: str) -> None:
    with start(backend) as program:
        program.open()
        program.send(call(1, doing, {"seconds": STUCK}))
        program.result(call(2, "nothing"))
        while program.process.poll() is None:  # at every moment of its end
            program.process.send_signal(signal.SIGINT)
            program.pause(0.05)
        # In its last moment Python itself has gone back to the system's way, which shells show as the same status.
        assert program.wait() in (128 + signal.SIGINT, -signal.SIGINT)
        assert "Traceback" not in program.stderr


def test_signals_end_it_even_when_a_tool_blocks_the_event_loop(backend: str) -> None:
    with start(backend) as program:
        program.open()
        program.send(call(1, "block_loop", {"seconds": STUCK}))
        while program.process.poll() is None:
            program.process.send_signal(signal.SIGTERM)
            program.pause(0.2)
        assert program.wait() == 128 + signal.SIGTERM
        assert program.stderr == ""


def test_signals_end_it_when_the_event_loop_is_blocked_after_it_has_noticed_the_first(backend: str) -> None:
    with start(backend) as program:
        program.open()
        program.send(call(1, "sleep", {"seconds": STUCK}))
        program.result(call(2, "nothing"))
        program.process.send_signal(signal.SIGTERM)
        program.pause(0.1)  # it is draining now, and still takes requests
        program.send(call(3, "block_loop", {"seconds": STUCK}))
        while program.process.poll() is None:
            program.process.send_signal(signal.SIGTERM)
            program.pause(0.2)
        assert program.wait() == 128 + signal.SIGTERM


def test_a_signal_lets_calls_that_are_nearly_done_finish(backend: str) -> None:
    with start(backend) as program:
        program.open()
        program.send(call(1, "sleep", {"seconds": 0.2}))
        program.result(call(2, "nothing"))
        program.process.send_signal(signal.SIGTERM)
        assert program.wait() == 128 + signal.SIGTERM
        assert [answer["id"] for answer in program.rest()] == [1]


def test_a_child_that_is_ended_by_a_signal_does_not_take_the_server_along(backend: str) -> None:
    """A child made by fork shares the descriptor through which signals wake the event loop."""
    with start(backend) as program:
        program.open()
        assert program.result(call(1, "fork_and_signal"))["content"][0]["text"] == str(-signal.SIGTERM)
        assert program.result(call(2, "nothing"))["isError"] is False
        program.close_input()
        assert program.wait() == 0


@pytest.mark.parametrize(
    "tool",
    [
        "@server.tool\nasync def stop(): raise KeyboardInterrupt",
        "@server.tool\ndef stop(): raise KeyboardInterrupt",
        "@server.tool(thread=False)\ndef stop(): raise KeyboardInterrupt",
    ],
    ids=["async def", "in a thread", "on the loop"],
)
def test_a_tool_that_raises_an_interrupt_ends_it_and_tells_the_model_nothing(backend: str, tool: str) -> None:
    with start(backend, tool) as program:
        program.open()
        program.send(call(2, "stop"))
        assert program.wait() not in (0, None)
        assert program.rest() == []
        assert "KeyboardInterrupt" in program.stderr
