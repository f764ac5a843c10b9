"""Running the endpoint: where it listens, how it starts and fails to start, and processes that end when told to."""

import signal
import socket
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcpcore import Client, Server, TransportError
from mcpcore.runtime.http import listen
from tests.support.asgi import POST, Caller, modern
from tests.support.serving import Service, free_port
from tests.support.sockets import HTTPSocket, connected, serving
from tests.support.world import World

pytestmark = pytest.mark.anyio


async def test_it_listens_on_all_addresses_of_a_name_at_one_port() -> None:
    async with serving(World().server, host="localhost") as port:
        message, headers = modern("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
        for _, _, _, _, address in socket.getaddrinfo("localhost", port, type=socket.SOCK_STREAM):
            async with await anyio.connect_tcp(str(address[0]), port) as stream:
                client = HTTPSocket(stream)
                await client.request("POST", {**POST, **headers}, message)
                await client.finish()
                assert client.status == 200


async def test_events_are_not_held_back_until_the_one_before_is_acknowledged() -> None:
    """asyncio goes by the protocol's number when it turns that off. It cannot be seen from outside but by its slowness."""
    for each in await listen("localhost", 0):
        with each:
            assert each.proto == socket.IPPROTO_TCP


async def test_a_port_that_is_taken_is_an_error_with_the_address_in_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(TransportError, match=f"cannot listen on 127.0.0.1, port {port}: .*in use"):
            await World().server.serve("http", port=port)


async def test_an_address_that_is_not_ours_is_an_error() -> None:
    with pytest.raises(TransportError, match=r"cannot listen on 192\.0\.2\.1, port 0"):
        await World().server.serve("http", host="192.0.2.1", port=0)


class Life:
    """A lifespan that counts, and fails as often as it is told to."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.steps: list[str] = []

    async def __aenter__(self) -> str:
        await anyio.lowlevel.checkpoint()
        if self.failures:
            self.failures -= 1
            self.steps.append("failed")
            raise RuntimeError("no database")
        self.steps.append("in")
        return "value"

    async def __aexit__(self, *exc_info: object) -> None:
        self.steps.append("out")


async def test_a_lifespan_that_cannot_be_entered_keeps_it_from_starting() -> None:
    life = Life(failures=1)
    with pytest.raises(RuntimeError, match="no database"):
        await Server("failing", lifespan=lambda _: life).serve("http", port=0)
    assert life.steps == ["failed"]


async def test_the_lifespan_is_entered_once_and_left_once() -> None:
    life = Life()
    async with serving(Server("living", lifespan=lambda _: life)) as port:
        assert life.steps == ["in"]
        for _ in range(20):
            async with connected(port) as client:
                message, headers = modern("server/discover")
                await client.request("POST", {**POST, **headers}, message)
                await client.finish()
                assert client.status == 200
        assert life.steps == ["in"]
    assert life.steps == ["in", "out"]


async def test_requests_at_the_same_time_share_the_first_start_that_succeeds() -> None:
    life = Life(failures=2)
    call = Caller(Server("failing", lifespan=lambda _: life).http_app())
    outcomes: list[Any] = []

    async def ask() -> None:
        try:
            response = await call.post(*modern("server/discover"))
        except* RuntimeError:
            outcomes.append("failed")
        else:
            outcomes.append(response.status)

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(ask)
    assert sorted(map(str, outcomes)) == ["200"] * 3 + ["failed"] * 2
    assert life.steps == ["failed", "failed", "in"]


# -- processes ---------------------------------------------------------------------------------------------------

OWN = """
import sys, anyio
from mcpcore import Context, Server
server = Server("own")

@server.tool
async def hold(ctx: Context) -> str:
    "Wait."
    await ctx.progress(1)
    await anyio.sleep_forever()
    return ""

server.run(sys.argv[2], port=int(sys.argv[1]), backend=sys.argv[3])
"""


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_process_with_open_streams_ends_soon_after_a_signal(
    transport: str, tmp_path: Path, anyio_backend: str
) -> None:
    program = tmp_path / "server.py"
    program.write_text(OWN)
    port = free_port()
    command = [sys.executable, str(program), str(port), transport, anyio_backend]
    with Service(command, port) as service:
        async with connected(port) as one, connected(port) as other:
            if transport == "http":
                call, headers = modern("tools/call", {"name": "hold"}, progressToken=1)
                await one.request("POST", {**POST, **headers}, call)
                await one.wait_for(lambda each: each.messages)
                message, headers = modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
                await other.request("POST", {**POST, **headers}, message)
                await other.wait_for(lambda each: each.messages)
            else:
                for client in (one, other):
                    await client.request("GET", {"accept": "text/event-stream"}, path="/sse")
                    await client.wait_for(lambda each: each.body)
            with anyio.fail_after(5):
                status = await anyio.to_thread.run_sync(service.stop)
            await one.finish()
            await other.finish()
    assert status == 128 + signal.SIGTERM
    assert service.said == ""


LOOP = """
import sys, asyncio
from mcpcore import Server
server = Server("loop")

@server.tool
async def loop() -> str:
    "Which event loop this runs on."
    return type(asyncio.get_running_loop()).__module__

server.run("http", port=int(sys.argv[1]))
"""


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_process_runs_on_uvloop_where_it_is_installed(tmp_path: Path) -> None:
    program = tmp_path / "server.py"
    program.write_text(LOOP)
    port = free_port()
    with Service([sys.executable, str(program), str(port)], port) as service:
        async with Client(f"http://127.0.0.1:{port}/mcp") as client:
            assert (await client.call_tool("loop")).text == "uvloop"
        await anyio.to_thread.run_sync(service.stop)
    assert service.said == ""


# As docs/http.md has it.
EMBEDDED = """
import sys, uvicorn
from mcpcore import Server

server = Server("embedded")

@server.tool
async def add(a: int, b: int) -> int:
    "Add."
    return a + b

endpoint = server.http_app()

class WebServer(uvicorn.Server):
    async def shutdown(self, sockets=None):
        await endpoint.drain()
        await super().shutdown(sockets)

WebServer(uvicorn.Config(endpoint, port=int(sys.argv[1]), log_level="warning")).run()
"""


async def test_a_web_server_that_closes_the_endpoint_first_ends_soon_after_a_signal(tmp_path: Path) -> None:
    program = tmp_path / "server.py"
    program.write_text(EMBEDDED)
    port = free_port()
    with Service([sys.executable, str(program), str(port)], port) as service:
        async with connected(port) as one:
            message, headers = modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
            await one.request("POST", {**POST, **headers}, message)
            await one.wait_for(lambda each: each.messages)
            with anyio.fail_after(5):
                await anyio.to_thread.run_sync(service.stop)
            await one.finish()
            assert "result" in one.messages[-1]
    assert service.said == ""
