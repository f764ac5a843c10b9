"""The server's end of stdio, in a process of its own, as a client sees it."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes of POSIX")

PROGRAM = Path(__file__).with_name("program.py")
ENVIRONMENT = {**os.environ, "PYTHONUNBUFFERED": ""}  # with what is usual, a buffer
LIMIT = 20  # seconds for anything a process does; more than any of it takes


@pytest.fixture(params=["asyncio", "trio"])
def backend(request: pytest.FixtureRequest) -> str:
    """The event loop of the program."""
    return str(request.param)


def command(backend: str, **code: str) -> list[str]:
    return [sys.executable, "-W", "error", str(PROGRAM), backend, *(part for pair in code.items() for part in pair)]


def execute(code: str) -> bytes:
    """A message that makes the program execute ``code``."""
    return json.dumps({"exec": code}).encode() + b"\n"


def run(backend: str, stdin: bytes, *, env: Mapping[str, str] | None = None, **code: str) -> tuple[list[Any], str]:
    """Run the program on ``stdin``; returns the messages that it wrote, decoded, and its standard error."""
    environ = {**ENVIRONMENT, **(env or {})}
    done = subprocess.run(
        command(backend, **code), input=stdin, capture_output=True, timeout=LIMIT, env=environ, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    assert not done.stdout or done.stdout.endswith(b"\n")
    return [json.loads(line) for line in done.stdout.split(b"\n")[:-1]], done.stderr.decode()


@contextmanager
def running(backend: str, *, code: Mapping[str, str] | None = None, **pipes: Any) -> Generator[subprocess.Popen[bytes]]:
    """The program, running; killed at the end, or when it takes too long."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, **pipes}
    process = subprocess.Popen(command(backend, **(code or {})), bufsize=0, env=ENVIRONMENT, **pipes)
    timer = threading.Timer(LIMIT, process.kill)
    timer.start()
    try:
        yield process
    finally:
        timer.cancel()
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


# -- nothing but messages ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        "print('noise')",
        "print('noise', flush=True)",
        "sys.stdout.buffer.write(b'noise'); sys.stdout.buffer.flush()",
        "sys.__stdout__.write('noise')",
        "os.write(1, b'noise')",
        "os.system('echo noise')",
        "subprocess.run(['echo', 'noise'], check=True)",
        "open('/dev/stdout', 'w').write('noise') if os.path.exists('/dev/stdout') else print('noise')",
    ],
)
def test_what_is_written_to_standard_output_goes_to_standard_error(backend: str, code: str) -> None:
    messages, stderr = run(backend, execute(code) + b"1\n")
    assert messages == [{"result": None}, 1]
    assert "noise" in stderr


def test_what_was_printed_before_serving_and_not_yet_written_goes_to_standard_error(backend: str) -> None:
    with running(backend, code={"before": "print('Starting...')"}, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        assert process.stderr.readline() == b"Starting...\n"  # at once
        process.stdin.write(b"1\n")
        process.stdin.close()
        assert process.stdout.read() == b"1\n"


@pytest.mark.parametrize(
    "code",
    [
        "result = sys.stdin.read()",
        "result = os.read(0, 100).decode()",
        "result = subprocess.run(['cat'], stdout=subprocess.PIPE, timeout=5).stdout.decode()",
    ],
)
def test_reading_standard_input_yields_its_end_and_takes_no_message(backend: str, code: str) -> None:
    with running(backend) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(execute(code))
        assert process.stdout.readline() == b'{"result": ""}\n'
        process.stdin.write(b"1\n")
        assert process.stdout.readline() == b"1\n"


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_pool_of_processes_works_and_disturbs_nothing(backend: str, method: str) -> None:
    code = f"""
with multiprocessing.get_context({method!r}).Pool(2) as pool:
    pool.map(functools.partial(print, flush=True), ["noise"] * 10)
    result = pool.map(abs, range(-10, 0))
"""
    messages, stderr = run(backend, execute(code) + b"1\n")
    assert messages == [{"result": list(range(10, 0, -1))}, 1]
    assert stderr.count("noise") == 10


def test_a_forked_child_that_outlives_the_server_does_not_hold_the_clients_pipes(backend: str) -> None:
    with running(backend) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(execute("result = os.fork()\nif not result: time.sleep(60); os._exit(0)"))
        child = json.loads(process.stdout.readline())["result"]
        try:
            process.stdin.close()
            assert process.stdout.read() == b""
            os.kill(child, 0)  # it is still there
        finally:
            os.kill(child, signal.SIGKILL)


def test_afterwards_standard_output_is_what_it_was(backend: str) -> None:
    messages, _ = run(backend, b"1\n", after="print('2', flush=True); os.write(1, b'3\\n')")
    assert messages == [1, 2, 3]


def test_afterwards_standard_input_is_what_it_was(backend: str, tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_bytes(b"1\n")
    with path.open("rb") as stdin:
        done = subprocess.run(
            command(backend, after="os.lseek(0, 0, 0); os.write(1, os.read(0, 100))"),
            stdin=stdin,
            capture_output=True,
            timeout=LIMIT,
            check=False,
        )
    assert (done.stdout, done.stderr) == (b"1\n1\n", b"")


def test_the_streams_can_be_claimed_before_serving_and_for_longer(backend: str) -> None:
    code = """
transport = StdioServerTransport()
with transport.claimed():
    print("noise", flush=True)
    for _ in range(2):
        anyio.run(transport.serve, handler, backend=backend)
        print("noise", flush=True)
        os.system("echo noise")
sys.exit()
"""
    messages, stderr = run(backend, b"1\n", before=code)
    assert messages == [1]
    assert stderr == "noise\n" * 5


# -- frames ------------------------------------------------------------------------------------------------------


def test_line_ends_blank_lines_a_byte_order_mark_and_a_missing_last_line_end_are_accepted(backend: str) -> None:
    messages, stderr = run(backend, b'\xef\xbb\xbf{"a":1}\r\n\n   \n{"a":2}\r\n{"a":3}')
    assert messages == [{"a": 1}, {"a": 2}, {"a": 3}]
    assert stderr == ""


def test_characters_that_other_readers_take_for_line_ends_come_back_unchanged(backend: str) -> None:
    text = "a\u2028b\u2029c\x85d\x0be"
    messages, _ = run(backend, json.dumps(text, ensure_ascii=False).encode() + b"\n")
    assert messages == [text]


@pytest.mark.parametrize("env", [{"LC_ALL": "C"}, {"PYTHONIOENCODING": "ascii"}, {"PYTHONUTF8": "0", "LANG": "C"}])
def test_text_is_utf8_whatever_the_locale(backend: str, env: dict[str, str]) -> None:
    messages, _ = run(backend, '"žluťoučký 🐎"\n'.encode(), env=env)
    assert messages == ["žluťoučký 🐎"]


def test_a_line_that_is_not_utf8_is_answered_once_and_the_next_ones_are_served(backend: str) -> None:
    messages, _ = run(backend, b'1\n"\xff\xfe"\n2\n')
    assert messages == [1, {"problem": -32700}, 2]


@pytest.mark.parametrize("size", [1024 * 1024, 5 * 1024 * 1024])
@pytest.mark.parametrize("fragment", [4096, 10_000_000])
def test_large_messages_pass_in_fragments_and_whole(backend: str, size: int, fragment: int) -> None:
    message = b'"' + b"x" * size + b'"\n'
    received: list[bytes] = []
    with running(backend) as process:
        stdin, stdout = process.stdin, process.stdout
        assert stdin is not None and stdout is not None
        reader = threading.Thread(target=lambda: received.append(stdout.read()))
        reader.start()
        for start in range(0, len(message), fragment):
            os.write(stdin.fileno(), message[start : start + fragment])
        stdin.close()
        reader.join(LIMIT)
    assert received == [message]


# -- life --------------------------------------------------------------------------------------------------------


def test_it_exits_when_the_input_is_at_its_end_from_the_start(backend: str) -> None:
    assert run(backend, b"") == ([], "")


def test_the_null_device_as_input_is_at_its_end(backend: str) -> None:
    done = subprocess.run(command(backend), stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_it_exits_when_the_input_ends(backend: str) -> None:
    with running(backend) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b"1\n")
        assert process.stdout.readline() == b"1\n"
        process.stdin.close()
        assert process.stdout.read() == b""
        assert process.wait(LIMIT) == 0


def test_regular_files_serve_as_input_and_output(backend: str, tmp_path: Path) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_bytes(b"1\n" * 10_000 + b"2")
    with source.open("rb") as stdin, target.open("wb") as stdout:
        done = subprocess.run(command(backend), stdin=stdin, stdout=stdout, timeout=LIMIT, check=False)
    assert done.returncode == 0
    assert target.read_bytes() == b"1\n" * 10_000 + b"2\n"


def test_sockets_serve_as_input_and_output(backend: str) -> None:
    """As Node starts its children."""
    ours_in, its_in = socket.socketpair()
    ours_out, its_out = socket.socketpair()
    with ours_in, ours_out, its_in, its_out, running(backend, stdin=its_in, stdout=its_out) as process:
        ours_in.sendall(b"1\n")
        assert ours_out.recv(100) == b"1\n"
        assert [os.get_blocking(its_in.fileno()), os.get_blocking(its_out.fileno())] == [True, True]
        ours_in.shutdown(socket.SHUT_WR)
        assert process.wait(LIMIT) == 0


def test_the_descriptions_shared_with_the_parent_stay_blocking(backend: str) -> None:
    (its_in, ours_in), (ours_out, its_out) = os.pipe(), os.pipe()
    with running(backend, stdin=its_in, stdout=its_out) as process:
        os.write(ours_in, b"1\n")
        assert os.read(ours_out, 100) == b"1\n"
        assert [os.get_blocking(its_in), os.get_blocking(its_out)] == [True, True]
        os.close(ours_in)
        assert process.wait(LIMIT) == 0
    for fd in (its_in, its_out, ours_out):
        os.close(fd)


def test_there_is_no_thread_beside_the_main_one(backend: str) -> None:
    messages, _ = run(backend, execute("result = [thread.name for thread in threading.enumerate()]"))
    assert messages == [{"result": ["MainThread"]}]


def test_a_client_that_stops_reading_for_good_breaks_the_channel_and_not_the_process(backend: str) -> None:
    with running(backend) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdout.close()
        process.stdin.write(execute("signal.alarm(20)"))
        assert process.wait(LIMIT) == 1  # the program does not catch BrokenResourceError


def run_without(backend: str, closed: str, stdin: bytes) -> subprocess.CompletedProcess[bytes]:
    """Run the program with a standard descriptor closed."""
    shell = ["sh", "-c", f'exec "$@" {closed}', "sh"]
    return subprocess.run([*shell, *command(backend)], input=stdin, capture_output=True, timeout=LIMIT, check=False)


@pytest.mark.parametrize("closed", ["0<&-", "1>&-"])
def test_a_process_without_standard_input_or_output_says_that_there_is_nobody_to_serve(
    backend: str, closed: str
) -> None:
    done = run_without(backend, closed, b"")
    assert done.returncode == 1
    assert b"nobody to serve" in done.stderr


def test_a_process_without_standard_error_serves_and_its_noise_is_lost(backend: str) -> None:
    done = run_without(backend, "2>&-", execute("print('noise', flush=True)") + b"1\n")
    assert (done.returncode, done.stdout) == (0, b'{"result": null}\n1\n')


def test_where_descriptors_cannot_be_moved_it_serves_in_place(backend: str) -> None:
    code = "import errno\ndef dup(fd): raise OSError(errno.EMFILE, 'Too many open files')\nos.dup = dup"
    assert run(backend, b"1\n2\n", before=code) == ([1, 2], "")


def test_a_second_server_at_the_same_time_is_refused_with_a_clear_error(backend: str) -> None:
    code = """
async def run():
    try:
        await StdioServerTransport().serve(handler)
    except Exception as error:
        return [type(error).__name__, str(error)]
"""
    messages, _ = run(backend, execute(code) + b"1\n")
    (name, text) = messages[0]["result"]
    assert name == "TransportError"
    assert "only one at a time" in text
    assert messages[1] == 1


def test_a_second_server_afterwards_is_welcome(backend: str) -> None:
    code = "anyio.run(StdioServerTransport().serve, handler, backend=backend)"
    assert run(backend, b"1\n", after=code) == ([1], "")
