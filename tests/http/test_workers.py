"""Several processes at one address: they share the work and the secret, and end together, whatever becomes of any of them."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcpcore import Server, TransportError
from mcpcore.runtime.workers import run_workers
from tests.support.asgi import POST, modern
from tests.support.serving import Service, free_port
from tests.support.sockets import HTTPSocket, connected
from tests.support.world import World

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="looks at the processes of others through Linux's descriptors"),
]

SERVER = """
import os, sys, subprocess, time
from mcpcore import Context, Limits, Server

server = Server("shared", eras=("modern",), limits=Limits(drain=float(os.environ.get("DRAIN", "2"))))

@server.tool
async def pid() -> int:
    "Who answers."
    return os.getpid()

@server.tool
async def agree(ctx: Context) -> str:
    "Ask first."
    answer = await ctx.elicit("Sure?", {"type": "object", "properties": {}})
    return f"{answer.accepted} {os.getpid()}"

@server.tool
async def block(ctx: Context) -> str:
    "Never give the event loop back."
    await ctx.progress(1)
    while True:
        time.sleep(1)

@server.tool
async def child() -> str:
    "What a program finds that a worker starts."
    code = "import os; from mcpcore.runtime.workers import is_worker; print('MCPCORE_WORKER' in os.environ, is_worker())"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip()
"""
RUN = """
if __name__ == "__main__":
    server.run("http", port=int(sys.argv[1]), workers=2, backend=sys.argv[2])
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    found = tmp_path / "shared.py"
    found.write_text(SERVER + RUN)
    return found


@pytest.fixture
def service(program: Path, anyio_backend: str) -> Service:
    port = free_port()
    return Service([sys.executable, str(program), str(port), anyio_backend], port)


async def call(port: int, tool: str, **more: Any) -> Any:
    """Call over a connection of its own; returns the result."""
    async with connected(port) as client:
        return await call_over(client, tool, **more)


async def call_over(client: HTTPSocket, tool: str, **more: Any) -> Any:
    message, headers = modern("tools/call", {"name": tool, "arguments": {}, **more})
    message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = {"elicitation": {"form": {}}}
    await client.request("POST", {**POST, **headers}, message)
    await client.finish()
    return client.messages[-1]["result"]


async def text_of(port: int, tool: str, **more: Any) -> str:
    result = await call(port, tool, **more)
    return str(result["content"][0]["text"])


async def pids_of(port: int, count: int = 2) -> set[int]:
    """Call until so many processes have answered."""
    found: set[int] = set()
    with anyio.fail_after(30):
        while len(found) < count:
            found.add(int(await text_of(port, "pid")))
    return found


@asynccontextmanager
async def ending(pids: Sequence[int] | set[int]) -> AsyncGenerator[None]:
    """Wait, at the end, for the end of processes that are nobody's children here."""
    with ExitStack() as stack:
        descriptors = [os.pidfd_open(pid) for pid in pids]
        for each in descriptors:
            stack.callback(os.close, each)
        yield
        with anyio.fail_after(15):
            for each in descriptors:
                await anyio.wait_readable(each)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_two_processes_answer_and_a_signal_ends_both(service: Service, number: int) -> None:
    with service:
        pids = await pids_of(service.port)
        async with ending(pids):
            with anyio.fail_after(5):
                status = await anyio.to_thread.run_sync(partial(service.stop, number))
    assert status == 128 + number
    assert service.said == ""


async def test_the_command_line_serves_a_file_with_workers_and_says_so_once(program: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "mcpcore", "run", str(program), "--transport", "http", "--port", str(port)]
    with Service([*command, "--workers", "2"], port) as service:
        pids = await pids_of(port)
        async with ending(pids):
            assert await anyio.to_thread.run_sync(service.stop) == 128 + signal.SIGTERM
    assert service.said == f"Serving shared at http://127.0.0.1:{port}/mcp with 2 workers\n"


async def test_a_retry_is_accepted_by_a_worker_that_did_not_ask(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MCPCORE_SECRET", raising=False)
    with service:
        async with connected(service.port) as first:  # a connection stays with its worker
            asking = (await call_over(first, "pid"))["content"][0]["text"]
            asked = await call_over(first, "agree")
        (key,) = asked["inputRequests"]
        retry = {"requestState": asked["requestState"], "inputResponses": {key: {"action": "accept", "content": {}}}}
        answering = asking
        with anyio.fail_after(30):
            while answering == asking:
                accepted, answering = (await text_of(service.port, "agree", **retry)).split()
                assert accepted == "True"


async def test_streams_end_with_a_last_frame(service: Service) -> None:
    with service:
        async with connected(service.port) as client:
            message, headers = modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
            await client.request("POST", {**POST, **headers}, message)
            await client.wait_for(lambda each: each.messages)
            with anyio.fail_after(5):
                await anyio.to_thread.run_sync(service.stop)
            await client.finish()
            assert "result" in client.messages[-1]


async def test_another_takes_the_place_of_a_worker_that_died(service: Service) -> None:
    with service:
        first = await pids_of(service.port)
        victim = min(first)
        async with ending([victim]):
            os.kill(victim, signal.SIGKILL)
        later = await pids_of(service.port, 2)
        assert victim not in later and len(first & later) == 1
        assert await anyio.to_thread.run_sync(service.stop) == 128 + signal.SIGTERM
    assert f"worker {victim} ended with status -9; another takes its place" in service.said


async def test_workers_end_when_their_parent_is_killed(service: Service) -> None:
    with service:
        async with ending(await pids_of(service.port)):
            assert await anyio.to_thread.run_sync(partial(service.stop, signal.SIGKILL)) == -signal.SIGKILL
    with pytest.raises(OSError):
        await anyio.connect_tcp("127.0.0.1", service.port)


async def test_a_worker_that_does_not_end_is_killed(program: Path, anyio_backend: str) -> None:
    port = free_port()
    command = [sys.executable, str(program), str(port), anyio_backend]
    with Service(command, port, env={"DRAIN": "0"}) as service:
        pids = await pids_of(port)
        async with connected(port) as client:
            stuck = int((await call_over(client, "pid"))["content"][0]["text"])
            message, headers = modern("tools/call", {"name": "block", "arguments": {}}, progressToken=1)
            await client.request("POST", {**POST, **headers}, message)
            await client.wait_for(lambda each: each.messages)
            async with ending(pids):
                assert await anyio.to_thread.run_sync(service.stop) == 128 + signal.SIGTERM
    assert f"worker {stuck} did not end; it is killed" in service.said


async def test_what_a_worker_starts_is_no_worker(service: Service) -> None:
    with service:
        assert await text_of(service.port, "child") == "False False"


@pytest.mark.parametrize("variable", ["1 5 6", "0 0", ""])
def test_what_stands_in_the_environment_is_for_the_child_it_was_made_for(
    program: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """A program that a worker starts has the environment of the worker, but another parent."""
    monkeypatch.setenv("MCPCORE_WORKER", variable)
    code = "from mcpcore.runtime.workers import is_worker; print(is_worker())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "False\n"


# -- what is refused ---------------------------------------------------------------------------------------------


def test_sessions_are_refused_with_what_would_work() -> None:
    with pytest.raises(TransportError, match=r"share no sessions.*state='stateless'.*eras=\('modern',\)"):
        Server("with sessions").run("http", workers=2)


@pytest.mark.parametrize("transport", ["stdio", "sse"])
def test_other_transports_are_refused(transport: Any) -> None:
    with pytest.raises(ValueError, match="for the transport 'http'"):
        World().server.run(transport, workers=2)


def test_a_number_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="workers=0: give 1 or more"):
        Server("none", state="stateless").run("http", workers=0)


async def test_a_port_that_is_taken_is_an_error_with_the_address_in_it() -> None:
    """Also where the other one would share it."""
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(TransportError, match=f"cannot listen on 127.0.0.1, port {port}: .*in use"):
            late = Server("late", state="stateless")
            await anyio.to_thread.run_sync(partial(run_workers, late, "http", 2, backend="asyncio", port=port))


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["--transport", "http", "--workers", "0"], 2, "--workers 0: give 1 or more"),
        (["--workers", "2"], 2, "--workers is for --transport http"),
        (["--transport", "http", "--workers", "2"], 3, "workers share no sessions"),
    ],
)
def test_the_command_line_explains_what_it_refuses(
    tmp_path: Path, arguments: list[str], status: int, says: str
) -> None:
    target = tmp_path / "plain.py"
    target.write_text("from mcpcore import Server\nserver = Server('plain')\n")
    command = [sys.executable, "-m", "mcpcore", "run", str(target), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == status
    assert done.stderr.startswith("mcpcore: ") and says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_worker_that_cannot_start_ends_the_whole(tmp_path: Path) -> None:
    target = tmp_path / "broken.py"
    target.write_text(
        "import contextlib\n"
        "from mcpcore import Server\n"
        "@contextlib.asynccontextmanager\n"
        "async def life(server):\n"
        "    raise RuntimeError('no database')\n"
        "    yield\n"
        "server = Server('broken', state='stateless', lifespan=life)\n"
    )
    command = [sys.executable, "-m", "mcpcore", "run", str(target), "--transport", "http", "--port", str(free_port())]
    done = subprocess.run([*command, "--workers", "2"], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 3
    assert "RuntimeError: no database" in done.stderr
    assert done.stderr.splitlines()[-1] == "mcpcore: a worker ended with status 1 before it served"
