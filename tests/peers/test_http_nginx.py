"""nginx in front of the endpoint, with little more in its configuration than where the endpoint is: it buffers responses."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcpcore import Limits
from tests.support.asgi import LEGACY, POST, initialize, modern, request
from tests.support.installs import nginx
from tests.support.serving import Service, free_port
from tests.support.sockets import connected, serving
from tests.support.world import World

pytestmark = [pytest.mark.peers, pytest.mark.anyio]

CONFIGURATION = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    proxy_read_timeout 1s;
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://127.0.0.1:{upstream};
            proxy_http_version {version};
        }}
        location /api/ {{
            proxy_pass http://127.0.0.1:{upstream}/;
        }}
    }}
}}
"""


@pytest.fixture(params=["1.0", "1.1"])
def version(request: pytest.FixtureRequest) -> str:
    """The version of HTTP that nginx speaks to the server."""
    return str(request.param)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where nginx puts its files."""
    return tmp_path


@contextmanager
def proxied(upstream: int, folder: Path, version: str = "1.1") -> Generator[int]:
    """Run nginx and yield its port."""
    port = free_port()
    configuration = folder / "nginx.conf"
    configuration.write_text(
        CONFIGURATION.format(folder=folder, port=port, upstream=upstream, version=version), encoding="utf-8"
    )
    with Service([nginx(), "-p", str(folder), "-c", str(configuration)], port):
        yield port


def call(name: str, **meta: Any) -> tuple[dict[str, str], dict[str, Any]]:
    """The headers of a modern ``tools/call``, and the message."""
    message, headers = modern("tools/call", {"name": name, "arguments": {}}, **meta)
    return {**POST, **headers}, message


async def test_events_pass_as_they_are_sent(folder: Path, version: str) -> None:
    world = World()
    async with serving(world.server) as upstream:
        with proxied(upstream, folder, version) as port:
            async with connected(port) as socket:
                await socket.request("POST", *call("steps", progressToken=1))
                await socket.wait_for(lambda each: each.messages)
                assert not socket.is_complete and socket.headers["cache-control"] == "no-cache, no-transform"
                world.release.set()
                await socket.finish()
                assert "result" in socket.messages[-1]


async def test_changes_pass_as_they_happen_in_both_eras(folder: Path, version: str) -> None:
    world = World()
    async with serving(world.server) as upstream:
        with proxied(upstream, folder, version) as port:
            async with connected(port) as one, connected(port) as other:
                message, headers = modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
                await one.request("POST", {**POST, **headers}, message)
                await one.wait_for(lambda each: each.messages)
                await other.request("POST", POST, initialize(LEGACY))
                await other.finish()
                session = {"mcp-session-id": other.headers["mcp-session-id"], **POST}
                await other.request("POST", session, {"jsonrpc": "2.0", "method": "notifications/initialized"})
                await other.finish()
                await other.request("GET", session)
                await other.wait_for(lambda each: each.status)
                world.server.notify_tools_changed()
                for socket in (one, other):
                    await socket.wait_for(
                        lambda each: (
                            each.messages[-1:] and each.messages[-1]["method"] == "notifications/tools/list_changed"
                        )
                    )


async def test_a_call_may_be_silent_for_longer_than_nginx_waits(folder: Path, version: str) -> None:
    world = World(limits=Limits(stream_after=0.3))
    async with serving(world.server) as upstream:
        with proxied(upstream, folder, version) as port:
            async with connected(port) as socket:
                await socket.request("POST", *call("hold"))
                await socket.wait_for(lambda each: each.body.count(b":") >= 6)
                world.release.set()
                await socket.finish()
                assert socket.messages[0]["result"]["content"][0]["text"] == "released"


async def test_a_client_that_goes_cancels_its_call_through_nginx(folder: Path, version: str) -> None:
    world = World()
    async with serving(world.server) as upstream:
        with proxied(upstream, folder, version) as port:
            async with connected(port) as socket:
                await socket.request("POST", *call("steps", progressToken=1))
                await socket.wait_for(lambda each: each.messages)
            with anyio.fail_after(10):
                await world.cancelled.wait()


@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/api/mcp", "/api/mcp/"])
async def test_no_spelling_of_the_path_is_redirected(folder: Path, path: str) -> None:
    async with serving(World().server) as upstream:
        with proxied(upstream, folder) as port:
            async with connected(port) as socket:
                message, headers = modern("server/discover")
                await socket.request("POST", {**POST, **headers}, message, path)
                await socket.finish()
                assert socket.status == 200


async def test_a_result_of_many_megabytes_passes_whole(folder: Path, version: str) -> None:
    message, headers = modern("tools/call", {"name": "text", "arguments": {"size": 20_000_000}})
    async with serving(World().server) as upstream:
        with proxied(upstream, folder, version) as port:
            async with connected(port) as socket:
                await socket.request("POST", {**POST, **headers}, message)
                await socket.finish()
                assert len(socket.messages[0]["result"]["content"][0]["text"]) == 20_000_000


async def test_the_older_transport_passes_as_well(folder: Path, version: str) -> None:
    async with serving(World().server, "sse") as upstream:
        with proxied(upstream, folder, version) as port:
            async with connected(port) as stream, connected(port) as socket:
                await stream.request("GET", {"accept": "text/event-stream"}, path="/sse")
                await stream.wait_for(lambda each: each.body.endswith(b"\n\n"))
                endpoint = bytes(stream.body).split(b"data: ")[1].split()[0].decode()
                await socket.request("POST", POST, initialize("2024-11-05"), endpoint)
                await socket.finish()
                assert socket.status == 202
                await stream.wait_for(lambda each: each.messages)
                await socket.request("POST", POST, request("tools/list"), endpoint)
                await socket.finish()
                await stream.wait_for(lambda each: len(each.messages) == 2)
                assert stream.messages[1]["result"]["tools"]
