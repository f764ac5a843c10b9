"""The client's end of stdio: starting a server, talking to it, and ending it with all that it has started."""

import asyncio
import io
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import pytest

from mcpcore.abc import Channel
from mcpcore.exceptions import ServerExited, TransportError
from mcpcore.protocol.messages import Incoming, Kind, Outgoing
from mcpcore.testing.transports import check_transport
from mcpcore.transports import stdio_client
from mcpcore.transports._stderr import StderrDrain
from mcpcore.transports.lines import LineChannel
from mcpcore.transports.stdio_client import INHERITED, StdioClientTransport, stdio

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform == "win32", reason="processes of POSIX")]

PROGRAM = str(Path(__file__).with_name("program.py"))
RELAY = str(Path(__file__).with_name("relay.py"))
LIMIT = 20  # seconds for anything a process does; more than any of it takes


def program(**options: Any) -> StdioClientTransport:
    return stdio(sys.executable, PROGRAM, "asyncio", **options)


def python(code: str, **options: Any) -> StdioClientTransport:
    return stdio(sys.executable, "-c", code, **options)


def note(data: bytes) -> Outgoing:
    return Outgoing(data, Kind.NOTIFICATION)


async def receive(channel: Channel) -> Any:
    """The next message, decoded. There is one at a time in these tests."""
    (message,) = await channel.receive()
    return json.loads(message.data)


async def execute(channel: Channel, code: str) -> Any:
    """Make the program execute ``code``; returns the value of its variable ``result``."""
    await channel.send([note(json.dumps({"exec": code}).encode())])
    return (await receive(channel))["result"]


async def failure_of(channel: Channel) -> ServerExited:
    """Receive until the channel breaks; returns why."""
    with pytest.raises(anyio.BrokenResourceError) as caught:
        while True:
            await channel.receive()
    failure = channel.failure  # type: ignore[attr-defined]  # of this transport's channels
    assert isinstance(failure, ServerExited)
    assert caught.value.__cause__ is failure
    return failure


async def wait_until_gone(pid: int) -> None:
    """Wait until there is no such process. One that its parent has not reaped counts as gone."""
    with anyio.fail_after(LIMIT):
        while is_running(pid):  # noqa: ASYNC110 - it is nobody's child any more: there is nothing to wait for
            await anyio.sleep(0.01)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


# -- the channel -------------------------------------------------------------------------------------------------


@asynccontextmanager
async def relayed_pair() -> AsyncGenerator[tuple[Channel, Channel]]:
    """A client's channel, and the other end of it beyond a server process."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with listener, stdio(sys.executable, RELAY, str(port)).open() as client:
        connected: list[anyio.abc.SocketStream] = []

        async def accept(stream: anyio.abc.SocketStream) -> None:
            connected.append(stream)
            tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            await listener.serve(accept, tasks)
        async with connected[0] as stream:
            yield client, LineChannel(stream)


async def test_it_keeps_the_promises_of_a_transport() -> None:
    await check_transport(relayed_pair)


async def test_a_message_of_64_000_000_bytes_passes_both_ways() -> None:
    message = b'"' + b"x" * 63_999_998 + b'"'
    with anyio.fail_after(LIMIT):
        async with program().open() as channel:
            received: list[bytes] = []
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(channel.send, [note(message)])
                received.extend(each.data for each in await channel.receive())
    assert received == [message]


async def test_the_channel_is_called_stdio() -> None:
    with anyio.fail_after(LIMIT):
        async with program().open() as channel:
            assert channel.info.transport == "stdio"


async def test_lines_that_are_no_messages_do_not_end_the_channel() -> None:
    code = r"import os; os.write(1, b'welcome!\n\"\xff\"\n' + b'x' * 200 + b'\n{}\n')"
    with anyio.fail_after(LIMIT):
        async with python(code, max_message_size=100).open() as channel:
            messages: list[Incoming] = []
            while len(messages) < 4:
                messages += await channel.receive()
    assert [message.data for message in messages] == [b"welcome!", b"", b"", b"{}"]
    assert [getattr(message.problem, "code", None) for message in messages] == [None, -32700, -32600, None]


# -- starting ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("transport", "text"),
    [
        (stdio("no-such-command-at-all"), "cannot start 'no-such-command-at-all': there is no such command"),
        (stdio("python server.py"), "one by one"),
        (stdio(sys.executable, cwd="/no/such/directory"), "no directory '/no/such/directory'"),
        (stdio("/"), "cannot start '/': "),
        (stdio("a\0b"), "null byte"),
        (stdio("true", env={"A": 1}), "cannot start 'true'"),  # type: ignore[dict-item]  # a mistake
    ],
)
async def test_a_command_that_cannot_be_started_fails_at_once_and_says_why(
    transport: StdioClientTransport, text: str
) -> None:
    with pytest.raises(TransportError, match="cannot start") as caught, anyio.fail_after(LIMIT):
        async with transport.open():
            pass
    assert text in str(caught.value)


async def test_the_server_starts_in_the_directory_given(tmp_path: Path) -> None:
    with anyio.fail_after(LIMIT):
        async with program(cwd=tmp_path).open() as channel:
            assert await execute(channel, "result = os.getcwd()") == str(tmp_path)


async def environment(**options: Any) -> dict[str, str]:
    with anyio.fail_after(LIMIT):
        async with program(**options).open() as channel:
            result: dict[str, str] = await execute(channel, "result = dict(os.environ)")
            return result


@pytest.fixture
def our_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "xyzzy")
    monkeypatch.setenv("SHELL", "() { :; }")
    monkeypatch.setenv("LC_MESSAGES", "C")


@pytest.mark.parametrize("env", [None, {}, {"TOKEN": "1"}])
async def test_the_environment_given_is_added_to_what_programs_need(
    our_environment: None, env: dict[str, str] | None
) -> None:
    found = await environment(env=env)
    assert found["PATH"] == os.environ["PATH"]
    assert found["HOME"] == os.environ["HOME"]
    assert found["LC_MESSAGES"] == "C"
    assert "SECRET" not in found
    assert "SHELL" not in found  # a shell function
    assert found.get("TOKEN") == (env or {}).get("TOKEN")
    assert {name for name in found if not name.startswith("LC_")} <= INHERITED | {"TOKEN"}


async def test_the_environment_given_is_stronger_than_ours() -> None:
    assert (await environment(env={"HOME": "/elsewhere"}))["HOME"] == "/elsewhere"


async def test_the_whole_environment_is_inherited_only_when_asked(our_environment: None) -> None:
    found = await environment(inherit_env=True, env={"HOME": "/elsewhere"})
    assert found["SECRET"] == "xyzzy"
    assert found["HOME"] == "/elsewhere"


async def test_the_command_is_looked_up_in_the_path_that_the_server_gets(tmp_path: Path) -> None:
    script = tmp_path / "my-server"
    script.write_text("#!/bin/sh\necho '{}'\n")
    script.chmod(0o700)
    with anyio.fail_after(LIMIT):
        async with stdio("my-server", env={"PATH": f"{tmp_path}:/bin:/usr/bin"}).open() as channel:
            assert await receive(channel) == {}


async def test_the_server_is_in_a_session_of_its_own() -> None:
    with anyio.fail_after(LIMIT):
        async with program().open() as channel:
            pid, group, session = await execute(channel, "result = [os.getpid(), os.getpgrp(), os.getsid(0)]")
    assert pid == group == session


# -- a server that ends by itself --------------------------------------------------------------------------------


@pytest.mark.parametrize(("code", "status"), [("sys.exit(3)", 3), ("sys.exit()", 0), ("os.kill(os.getpid(), 9)", -9)])
async def test_a_server_that_exits_is_reported_with_command_status_and_the_end_of_its_standard_error(
    code: str, status: int
) -> None:
    with anyio.fail_after(LIMIT):
        async with python(f"import os, sys; print('oh no!', file=sys.stderr, flush=True); {code}").open() as channel:
            failure = await failure_of(channel)
    assert failure.returncode == status
    assert failure.stderr_tail == "oh no!"
    assert sys.executable in failure.command


async def test_the_report_waits_for_nobody_to_have_read_the_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def read_nothing(self: StderrDrain) -> None:
        await anyio.sleep_forever()

    monkeypatch.setattr(StderrDrain, "run", read_nothing)  # as if it were always late
    assert (await exited(python("raise SystemExit('oh no!')"))).stderr_tail == "oh no!"


async def test_what_a_server_wrote_before_it_exited_is_received_first() -> None:
    with anyio.fail_after(LIMIT):
        async with python("print('{}', flush=True); 1 / 0").open() as channel:
            assert await receive(channel) == {}
            assert "ZeroDivisionError" in (await failure_of(channel)).stderr_tail


async def test_sending_to_a_server_that_has_exited_says_the_same() -> None:
    with anyio.fail_after(LIMIT):
        async with python("raise SystemExit(3)").open() as channel:
            with pytest.raises(anyio.BrokenResourceError):
                while True:
                    await channel.send([note(b"x" * 100_000)])
            assert (await failure_of(channel)).returncode == 3


async def test_what_a_server_leaves_behind_ends_when_it_exits() -> None:
    code = """
import os, time
child = os.fork()
if not child:
    os.close(1)
    time.sleep(60)
print(child, flush=True)
os._exit(3)
"""
    with anyio.fail_after(LIMIT):
        async with python(code).open() as channel:
            child = await receive(channel)
            assert (await failure_of(channel)).returncode == 3
            await wait_until_gone(child)


async def test_nobody_is_signalled_once_the_group_of_a_server_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    def kill(group: int, number: int) -> None:
        attempts.append(number)  # somebody else can have the number by now

    attempts: list[int] = []
    with anyio.fail_after(LIMIT):
        async with python("raise SystemExit(3)").open() as channel:
            await failure_of(channel)
            monkeypatch.setattr(os, "killpg", kill)
    assert attempts == []


async def test_the_exit_of_a_server_is_noticed_although_its_child_holds_the_pipes() -> None:
    code = """
import os, signal, sys, time
child = os.fork()
if not child:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(60)
    os._exit(0)
print(child, flush=True)
sys.exit(3)
"""
    with anyio.fail_after(LIMIT):
        async with python(code, kill_after=0.1).open() as channel:
            child = await receive(channel)
            assert (await failure_of(channel)).returncode == 3
            os.kill(child, 0)
    await wait_until_gone(child)


async def test_the_exit_is_noticed_where_the_system_has_no_descriptor_for_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(pid: int) -> int:
        raise OSError

    monkeypatch.setattr(os, "pidfd_open", refuse, raising=False)
    assert (await exited(python("raise SystemExit(3)"))).returncode == 3


async def test_a_server_that_only_closes_its_output_has_ended_the_stream_and_has_not_failed() -> None:
    with anyio.fail_after(LIMIT):
        async with python("import os, sys; os.close(1); sys.stdin.read()").open() as channel:
            with pytest.raises(anyio.EndOfStream):
                await channel.receive()
            assert channel.failure is None  # type: ignore[attr-defined]  # of this transport's channels


async def test_a_server_that_only_closes_its_input_breaks_the_channel_and_has_not_failed() -> None:
    with anyio.fail_after(LIMIT):
        code = "import os, time; os.close(0); print(1, flush=True); time.sleep(60)"
        async with python(code, terminate_after=0.1).open() as channel:
            assert await receive(channel) == 1
            with pytest.raises(anyio.BrokenResourceError):
                await channel.send([note(b"{}")])
            assert channel.failure is None  # type: ignore[attr-defined]  # of this transport's channels


async def test_closing_while_a_server_is_given_a_moment_to_exit_ends_receive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio_client, "_EXIT_GRACE", LIMIT)
    output_is_closed = anyio.Event()
    code = "import os, sys; os.close(1); print(file=sys.stderr, flush=True); sys.stdin.read()"

    async def receive_nothing(channel: Channel) -> None:
        with pytest.raises(anyio.ClosedResourceError):
            await channel.receive()

    with anyio.fail_after(LIMIT):
        server = python(code, stderr=lambda line: output_is_closed.set())
        async with server.open() as channel, anyio.create_task_group() as tasks:
            tasks.start_soon(receive_nothing, channel)
            await output_is_closed.wait()
            await anyio.wait_all_tasks_blocked()
            await channel.aclose()


async def test_an_unterminated_last_message_is_received_when_a_server_exits() -> None:
    with anyio.fail_after(LIMIT):
        async with python("import os; os.write(1, b'{}')").open() as channel:
            assert await receive(channel) == {}


# -- closing -----------------------------------------------------------------------------------------------------


async def test_closing_ends_the_input_and_the_server_exits_by_itself(tmp_path: Path) -> None:
    code = f"import sys; sys.stdin.read(); open({str(tmp_path / 'done')!r}, 'w').write('by itself')"
    with anyio.fail_after(LIMIT):
        async with python(code).open() as channel:
            process = channel._process  # type: ignore[attr-defined]  # to see that it was reaped
        assert process.returncode == 0
    assert (tmp_path / "done").read_text() == "by itself"


async def test_a_server_that_ignores_the_end_of_its_input_is_terminated() -> None:
    code = "import time; print(1, flush=True); time.sleep(60)"
    with anyio.fail_after(LIMIT):
        async with python(code, terminate_after=0.1).open() as channel:
            assert await receive(channel) == 1
            process = channel._process  # type: ignore[attr-defined]  # to see how it ended
        assert process.returncode == -signal.SIGTERM


async def test_a_server_that_ignores_being_terminated_is_killed() -> None:
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(60)"
    with anyio.fail_after(LIMIT):
        async with python(code, terminate_after=0.1, kill_after=0.1).open() as channel:
            assert await receive(channel) == 1
            process = channel._process  # type: ignore[attr-defined]  # to see how it ended
        assert process.returncode == -signal.SIGKILL


async def test_a_process_that_cannot_be_ended_is_left_behind_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    kill_group = os.killpg
    attempts: list[int] = []

    def refuse(group: int, number: int) -> None:
        attempts.append(number)
        raise PermissionError

    monkeypatch.setattr(os, "killpg", refuse)  # as if it had become another user
    monkeypatch.setattr(stdio_client, "_REAP", 0.1)
    with anyio.fail_after(LIMIT):
        async with python("import time; time.sleep(60)", terminate_after=0.1, kill_after=0.1).open() as channel:
            process = channel._process  # type: ignore[attr-defined]  # to end it after all
    kill_group(process.pid, signal.SIGKILL)
    process.wait()
    assert attempts[-1] == signal.SIGKILL  # being refused does not mean that there is nobody
    assert [record.message for record in caplog.records] == [
        f"{channel._command} does not end; it is left behind as process {process.pid}"  # type: ignore[attr-defined]
    ]


@pytest.mark.parametrize("stubborn", [False, True])
async def test_the_processes_that_a_server_has_started_end_with_it(stubborn: bool) -> None:
    code = f"""
child = os.fork()
if not child:
    if {stubborn}:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.write(writer, b"ready")
    time.sleep(60)
    os._exit(0)
os.read(reader, 5)
result = child
"""
    with anyio.fail_after(LIMIT):
        async with program(kill_after=0.1).open() as channel:
            child = await execute(channel, "reader, writer = os.pipe()" + code)
            os.kill(child, 0)
    await wait_until_gone(child)


async def test_closing_does_not_wait_for_output_that_nobody_has_read() -> None:
    code = "import os, sys\nfor _ in range(100): os.write(1, b'{}' * 50_000 + b'\\n')\nsys.exit(7)"
    with anyio.fail_after(LIMIT):
        async with python(code, terminate_after=LIMIT).open() as channel:
            process = channel._process  # type: ignore[attr-defined]  # to see how it ended
        assert process.returncode == 7  # it was not killed while it was stuck in a write


async def test_leaving_at_once_is_clean() -> None:
    with anyio.fail_after(LIMIT):
        async with program().open():
            pass


async def test_what_the_body_raises_is_not_wrapped() -> None:
    with anyio.fail_after(LIMIT), pytest.raises(ZeroDivisionError):
        async with program().open():
            raise ZeroDivisionError


async def test_cancelling_the_body_ends_the_server() -> None:
    with anyio.fail_after(LIMIT):
        with anyio.CancelScope() as scope:
            async with program().open() as channel:
                pid = await execute(channel, "result = os.getpid()")
                scope.cancel()
                await channel.receive()
        assert scope.cancelled_caught
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_opening_when_cancelled_already_leaves_no_process_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []

    class Popen(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Popen)
    with anyio.fail_after(LIMIT), anyio.CancelScope() as scope:
        scope.cancel()
        async with program().open() as channel:
            await channel.receive()
    assert scope.cancelled_caught
    assert [process.returncode for process in started] == [0]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # trio has no such thing
async def test_cancelling_a_task_of_asyncio_again_and_again_leaves_no_process_behind() -> None:
    code = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    pids: list[int] = []

    async def use() -> None:
        async with python(code, terminate_after=0.2, kill_after=0.2).open() as channel:
            pids.append(await receive(channel))
            await channel.receive()

    task = asyncio.create_task(use())
    with anyio.fail_after(LIMIT):
        while not task.done():
            await anyio.sleep(0.05)
            if pids:
                task.cancel()
    assert task.cancelled()
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


async def test_the_channel_can_be_closed_by_another_task_and_by_several_at_once() -> None:
    with anyio.fail_after(LIMIT):
        async with program().open() as channel, anyio.create_task_group() as tasks:
            pid = await execute(channel, "result = os.getpid()")
            for _ in range(3):
                tasks.start_soon(channel.aclose)
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def test_nobody_is_told_that_a_server_exited_when_we_have_ended_it() -> None:
    with anyio.fail_after(LIMIT):
        async with program().open() as channel:
            await channel.aclose()
            assert channel.failure is None  # type: ignore[attr-defined]  # of this transport's channels
            with pytest.raises(anyio.ClosedResourceError):
                await channel.receive()


# -- standard error ----------------------------------------------------------------------------------------------

NOISE = "import sys; sys.stderr.write('one\\ntwo ž\\r\\n\\nthree'); sys.stderr.flush()"


async def exited(transport: StdioClientTransport) -> ServerExited:
    with anyio.fail_after(LIMIT):
        async with transport.open() as channel:
            return await failure_of(channel)


async def test_a_server_never_waits_for_a_reader_of_its_standard_error() -> None:
    code = "import sys; sys.stderr.write('x' * 5_000_000); sys.stderr.flush(); print(1, flush=True); sys.stdin.read()"
    with anyio.fail_after(LIMIT):
        async with python(code, stderr=io.StringIO()).open() as channel:
            assert await receive(channel) == 1


async def test_by_default_it_goes_to_our_standard_error_even_if_that_is_no_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours = io.StringIO()  # as in a notebook
    monkeypatch.setattr(sys, "stderr", ours)
    await exited(python(NOISE))
    assert ours.getvalue() == "one\ntwo ž\r\n\nthree"


@pytest.mark.parametrize("broken", [None, "closed"])
async def test_without_a_usable_standard_error_it_is_kept_all_the_same(
    monkeypatch: pytest.MonkeyPatch, broken: str | None
) -> None:
    ours = None
    if broken:
        ours = io.StringIO()
        ours.close()
    monkeypatch.setattr(sys, "stderr", ours)
    assert (await exited(python(NOISE))).stderr_tail.startswith("one")


async def test_a_function_gets_each_line() -> None:
    lines: list[str] = []
    await exited(python(NOISE, stderr=lines.append))
    assert lines == ["one", "two ž", "", "three"]


async def test_a_function_gets_a_line_that_never_ends_in_pieces() -> None:
    lines: list[str] = []
    await exited(python("import sys; sys.stderr.write('x' * 200_000)", stderr=lines.append))
    assert "".join(lines) == "x" * 200_000
    assert len(lines) > 1


async def test_a_function_that_raises_is_reported_once_and_the_server_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    def fail(line: str) -> None:
        raise ZeroDivisionError

    with caplog.at_level(logging.ERROR):
        failure = await exited(python(NOISE, stderr=fail))
    assert failure.stderr_tail.endswith("three")
    assert [record.message for record in caplog.records] == ["the standard error of a server is no longer passed on"]


async def test_a_file_of_text_or_of_bytes_gets_everything(tmp_path: Path) -> None:
    binary = io.BytesIO()
    await exited(python(NOISE, stderr=binary))
    assert binary.getvalue().decode() == "one\ntwo ž\r\n\nthree"
    with (tmp_path / "log").open("w", encoding="utf-8", newline="") as text:
        await exited(python(NOISE, stderr=text))
    assert (tmp_path / "log").read_bytes() == binary.getvalue()


async def test_the_last_4_kib_are_kept_from_the_start_of_a_line() -> None:
    code = "import sys\nfor n in range(10_000): print('line', n, file=sys.stderr)"
    lines = (await exited(python(code, stderr=io.StringIO()))).stderr_tail.splitlines()
    assert lines[-1] == "line 9999"
    assert lines == [f"line {n}" for n in range(10_000 - len(lines), 10_000)]
    assert 4000 < sum(len(line) + 1 for line in lines) <= 4096
