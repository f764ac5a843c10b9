"""Whatever a server's own code does: its standard output carries messages and nothing else."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import Program, call, initialize

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="descriptors of POSIX")

SERVER = str(Path(__file__).with_name("server.py"))
EXAMPLE = Path(__file__).parents[2] / "examples" / "order_service" / "server.py"


@pytest.fixture(params=["asyncio", "trio"])
def backend(request: pytest.FixtureRequest) -> str:
    """The event loop of the server."""
    return str(request.param)


def start(backend: str, code: str = "", **options: Any) -> Program:
    return Program([sys.executable, "-W", "error", SERVER, backend, code], **options)


def finish(program: Program) -> None:
    """End the program and check that it wrote lines of JSON-RPC only."""
    program.close_input()
    assert program.wait() == 0, program.stderr
    assert program.raw
    for line in program.raw:
        assert line.endswith(b"\n")
        assert json.loads(line)["jsonrpc"] == "2.0"


@pytest.mark.parametrize("how", ["print", "buffer", "descriptor", "shell", "child", "c"])
def test_what_a_tool_writes_to_standard_output_goes_to_standard_error_and_its_input_is_empty(
    backend: str, how: str
) -> None:
    with start(backend) as program:
        program.open()
        assert program.result(call(1, "make_noise", {"how": how}))["content"] == [{"type": "text", "text": ""}]
        assert program.result(call(2, "echo", {"text": "still here"}))["content"][0]["text"] == "still here"
        finish(program)
        assert "noise" in program.stderr


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_tool_may_share_its_work_between_processes(backend: str, method: str) -> None:
    with start(backend) as program:
        program.open()
        result = program.result(call(1, "pool", {"method": method}))
        assert result["content"][0]["text"] == "[0,1,4,9,16,25,36,49,64,81]"
        finish(program)
        assert program.stderr.count("noise of a worker") == 10


def test_logging_on_standard_output_at_every_level_goes_to_standard_error(backend: str) -> None:
    code = "logging.basicConfig(stream=sys.stdout, level=logging.DEBUG)"
    with start(backend, code) as program:
        program.open()
        program.result(call(1, "log"))
        program.result(call(2, "fail", {"how": "crash"}))
        assert program.ask({"jsonrpc": "2.0", "id": 3, "method": "no/such"})["error"]["code"] == -32601
        assert program.ask(b"{nonsense}\n")["error"]["code"] == -32700
        finish(program)
        for level in ("DEBUG", "INFO", "WARNING", "ERROR"):
            assert f"{level}:__main__:logged" in program.stderr


@pytest.mark.parametrize("code", ["print('Starting...')", "print('Starting...', flush=True)"])
def test_what_is_printed_before_serving_is_flushed_to_where_it_was_meant_or_kept_off_the_channel(
    backend: str, code: str
) -> None:
    """Once written, nothing can be taken back: only what is still in Python's buffer is saved."""
    with start(backend, code) as program:
        program.send(initialize())
        if "flush" in code:
            assert program.receive_line() == b"Starting...\n"
        assert program.receive()["id"] == 0
        program.close_input()
        assert program.wait() == 0
        assert ("Starting..." in program.stderr) == ("flush" not in code)


def test_the_example_speaks_the_protocol_and_nothing_else() -> None:
    with Program([sys.executable, "-W", "error", str(EXAMPLE)]) as program:
        program.open()
        assert len(program.result({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})["tools"]) == 6
        order = program.result(call(2, "get_order", {"orderId": "ORD-10002"}))["structuredContent"]
        assert order["orderId"] == "ORD-10002" and "shipment" not in order
        assert program.result(call(3, "get_order", {"orderId": "ORD-99999"}))["isError"] is True
        finish(program)


def test_a_framework_that_nobody_configured_is_silent_about_what_is_normal(backend: str) -> None:
    with start(backend) as program:
        program.open()
        program.result(call(1, "echo", {"text": "x"}))
        program.result(call(2, "fail", {"how": "tool"}))
        finish(program)
        assert program.stderr == ""


def test_a_tool_that_exits_or_crashes_fails_alone(backend: str) -> None:
    with start(backend) as program:
        program.open()
        for how in ("exit", "crash"):
            assert program.result(call(how, "fail", {"how": how}))["isError"] is True
        assert program.result(call(1, "echo", {"text": "x"}))["isError"] is False
        finish(program)
