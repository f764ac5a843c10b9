"""``mcpcore bench`` as a person types it: what it prints where, and with which status it ends."""

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mcpcore.bench import Report
from mcpcore.cli import main
from tests.support.serving import Service, free_port

LIMIT = 30
SERVER = '''
import sys

from mcpcore import Server, ToolError

server = Server("bench-me", version="1.0")


@server.tool
async def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


@server.tool
async def fail(code: str) -> str:
    """Fail."""
    raise ToolError(f"failed with {code}", prefix=False)


@server.tool
async def leave() -> str:
    """Exit."""
    import os
    print("a last word", file=sys.stderr, flush=True)
    os._exit(7)
'''
FAST = ("--count", "30", "--warm-up", "0", "--ceiling", "0")

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run ``mcpcore bench`` with arguments, in a folder that has ``server.py`` and nothing else."""
    (tmp_path / "server.py").write_text(SERVER)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        try:
            status = main(("bench", *arguments))
        except SystemExit as exit:
            status = int(str(exit.code))
        printed = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, status, printed.out, printed.err)

    return run


def report_of(text: str) -> Report:
    return msgspec.json.decode(text, type=Report)


def test_a_tool_is_measured_and_the_figures_are_printed(run: Run) -> None:
    done = run("server.py", "add", "a=1", "b=2", *FAST)
    assert (done.returncode, done.stderr) == (0, "")
    first, *rest = done.stdout.splitlines()
    assert first.startswith("add of bench-me 1.0, stdio, protocol 2026-07-28, closed loop, 10 in flight, ")
    assert [line.split()[0] for line in rest if line] == ["calls/s", "latency", "bytes", "server", "driver"]
    assert "(30 of 30 calls; none failed)" in done.stdout


def test_options_may_stand_anywhere(run: Run) -> None:
    for arguments in (
        (*FAST, "server.py", "add", "a=1"),
        ("server.py", *FAST, "add", "a=1"),
        ("server.py", "add", *FAST, "a=1"),
        ("--json", "server.py", "add", "a=1", *FAST),
        ("server.py", "--json", "add", *FAST, "--arguments", '{"a": 1}'),
    ):
        done = run(*arguments)
        assert done.returncode == 0, done


def test_arguments_are_read_as_call_reads_them(run: Run) -> None:
    done = run("server.py", "add", "--arguments", '{"a": 7}', "b=3", "--expect", "10", "--json", *FAST)
    assert done.returncode == 0
    assert report_of(done.stdout).arguments == {"a": 7, "b": 3}


def test_without_a_tool_those_that_there_are_are_listed_and_it_is_said_what_to_type(run: Run) -> None:
    done = run("server.py")
    assert done.returncode == 0
    assert "add(a: integer, b: integer = 1)" in done.stdout
    assert done.stdout.rstrip().endswith("mcpcore bench server.py add NAME=VALUE …")


def test_a_command_is_ended_by_a_second_double_dash(run: Run) -> None:
    command = ("--", sys.executable, "-m", "mcpcore", "run", "server.py")
    done = run("--concurrency", "3", *command, "--", "add", "a=1", "--json", *FAST)
    assert done.returncode == 0
    assert report_of(done.stdout).concurrency == 3
    listed = run(*command)
    assert listed.returncode == 0
    assert listed.stdout.rstrip().endswith(f"bench -- {' '.join(command[1:])} -- add NAME=VALUE …")


def test_a_url_is_measured_over_http_in_both_eras(run: Run, tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "mcpcore", "run", str(tmp_path / "server.py"), "--transport", "http"]
    with Service([*command, "--port", str(port)], port) as service:
        for version in ("2026-07-28", "2025-11-25", "2024-11-05"):
            target = f"{service.origin}/mcp"
            done = run(target, "add", "a=1", "--json", "--protocol-version", version, "--header", "X-Test: 1", *FAST)
            assert done.returncode == 0, done
            found = report_of(done.stdout)
            assert (found.transport, found.protocol_version, found.calls) == ("http", version, 30)
            assert found.server_use is not None and found.server_use.processes == 1


def test_a_report_can_go_into_files(run: Run, tmp_path: Path) -> None:
    done = run("server.py", "add", "a=1", "--json", "out.json", "--html", "out.html", *FAST)
    assert done.returncode == 0
    assert done.stdout.startswith("add of bench-me"), "the text is printed as well"
    assert done.stderr.splitlines() == ["written to out.json", "written to out.html"]
    assert report_of((tmp_path / "out.json").read_text()).calls == 30
    assert "<svg" in (tmp_path / "out.html").read_text()


def test_json_on_standard_output_is_all_that_is_there(run: Run) -> None:
    for form in (("--json",), ("--json", "-"), ("--json=-",)):
        found: Any = json.loads(run("server.py", "add", "a=1", *FAST, *form).stdout)
        assert found["calls"] == 30


def test_errors_of_the_tool_are_counted_and_quoted(run: Run) -> None:
    done = run("server.py", "fail", "code=5", *FAST)
    assert done.returncode == 1
    assert "30 times: tool error\n      failed with 5" in done.stdout


def test_another_result_than_the_expected_one_is_wrong(run: Run) -> None:
    done = run("server.py", "add", "a=1", "--expect", "3", *FAST)
    assert done.returncode == 1
    assert "30 times: unexpected result\n      not what was expected: '2'" in done.stdout


def test_a_fixed_rate_is_kept(run: Run) -> None:
    done = run(
        "server.py", "add", "a=1", "--rate", "200", "--duration", "0.5", "--warm-up", "0", "--ceiling", "0", "--json"
    )
    found = report_of(done.stdout)
    assert (done.returncode, found.sent, found.rate) == (0, 100, 200.0)
    assert 0.49 <= found.seconds < 5


def test_the_driver_is_measured_by_itself(run: Run) -> None:
    done = run("--self", "--ceiling", "0.1", "--concurrency", "4")
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()[2:]] == ["stdio", "http"]
    assert "4 in flight" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ((), 2, "give a TARGET, or --self"),
        (("--self", "server.py"), 2, "--self measures without a TARGET"),
        (("server.py", "sub"), 2, "unknown tool 'sub'; there are: add, fail, leave"),
        (("server.py", "add", "a"), 2, "write arguments as NAME=VALUE"),
        (("server.py", "add", "--concurrency", "0"), 2, "concurrency must be 1 or more"),
        (("server.py", "add", "--rate", "0"), 2, "rate must be more than 0"),
        (("server.py", "add", "--duration", "nan"), 2, "seconds must be more than 0"),
        (("server.py", "add", "--html", "nowhere/out.html"), 2, "nowhere/out.html: there is no such folder"),
        (("server.py", "add", "--header", "a: b"), 2, "headers are for URLs"),
        (("http://127.0.0.1:1/mcp", "add", "--header", "a"), 2, "write header fields as 'NAME: VALUE'"),
        (("http://:1/mcp", "add"), 2, "is no URL of a server"),
        (("server.py", "add", "--wrong"), 2, "unrecognized arguments: --wrong"),
        (("--",), 2, "give a command after --"),
        (("other.py", "add"), 3, "other.py: there is no such file"),
        (("server.py:nothing", "add"), 3, "server.py:nothing: there is no 'nothing'; servers there: server"),
        (("http://127.0.0.1:1/mcp", "add"), 3, "http://127.0.0.1:1/mcp cannot be reached"),
        (("--", "no-such-command"), 3, "cannot start 'no-such-command'"),
        (("server.py", "leave", *FAST), 3, "status 7"),
    ],
)
def test_what_cannot_be_measured_is_said_in_a_line(
    run: Run, arguments: tuple[str, ...], status: int, said: str
) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (status, "")
    assert said in done.stderr and "Traceback" not in done.stderr


def test_what_a_server_writes_to_its_standard_error_is_shown_if_asked_for(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER + "\nprint('a word', file=sys.stderr)\n")
    command = [sys.executable, "-m", "mcpcore", "bench", "server.py"]
    for more, is_shown in ([], False), (["--log"], True):
        done = subprocess.run(
            [*command, *more], cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT, check=True
        )
        assert ("a word" in done.stderr) is is_shown


def test_how_far_it_is_is_shown_on_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "mcpcore", "bench", "server.py", "add", "a=1"]
    more = ["--duration", "0.3", "--warm-up", "0.1", "--ceiling", "0.1"]
    try:
        done = subprocess.run(
            [*command, *more], cwd=tmp_path, stdout=subprocess.PIPE, stderr=theirs, timeout=LIMIT, check=True
        )
        shown = os.read(ours, 100_000).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.stdout.startswith(b"add of bench-me")
    assert "warm-up  [" in shown and "load     [" in shown and "0 failed" in shown
    assert shown.endswith("\r\x1b[K"), "what was shown is wiped in the end"


def test_an_interruption_ends_the_load_and_what_was_measured_is_reported(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "mcpcore", "bench", "server.py", "add", "a=1", "--json"]
    more = ["--duration", "50", "--warm-up", "0", "--ceiling", "0"]
    shown = b""
    with subprocess.Popen([*command, *more], cwd=tmp_path, stdout=subprocess.PIPE, stderr=theirs) as process:
        os.close(theirs)
        while b"calls/s" not in shown.rpartition(b"load ")[2] or shown.count(b"load ") < 2:
            shown += os.read(ours, 1000)
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=LIMIT)
    os.close(ours)
    found = report_of(printed.decode())
    assert process.returncode == 1
    assert found.ended_by == "it was interrupted"
    assert found.calls > 0 and found.failed == 0
