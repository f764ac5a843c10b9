"""The endpoints mounted in web frameworks below a path, with nothing wired to their lifespans, and with it."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from mcpcore import Client
from mcpcore.transports.http.client import SSEClientTransport
from tests.support.asgi import LEGACY, POST, initialize, modern, request
from tests.support.installs import frameworks
from tests.support.serving import Service, free_port
from tests.support.sockets import connected

pytestmark = pytest.mark.anyio

PROGRAM: Final = Path(__file__).with_name("frameworks.py")


@pytest.fixture(
    params=["starlette", "fastapi", *(pytest.param(name, marks=pytest.mark.peers) for name in ("litestar", "django"))]
)
def framework(request: pytest.FixtureRequest) -> str:
    """The framework. Those that the package has nothing to do with are installed elsewhere."""
    return str(request.param)


@pytest.fixture
def anyio_backend() -> str:
    """uvicorn runs on asyncio only."""
    return "asyncio"


@contextmanager
def mounted(framework: str) -> Generator[Service]:
    libraries = [frameworks()] if framework.partition("+")[0] in ("litestar", "django") else []
    port = free_port()
    with Service([sys.executable, "-u", str(PROGRAM), framework, str(port), *libraries], port) as service:
        yield service


async def post(port: int, path: str, message: Any, headers: dict[str, str]) -> tuple[int, list[Any], dict[str, str]]:
    async with connected(port) as client:
        await client.request("POST", {**POST, **headers}, message, path)
        await client.finish()
        return client.status, client.messages, client.headers


async def test_every_spelling_of_the_path_is_served_as_it_is_and_the_hosts_own_routes_stay(framework: str) -> None:
    with mounted(framework) as service:
        for path in ("/shop/mcp", "/shop/mcp/"):
            message, fields = modern("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
            status, [answer], _ = await post(service.port, path, message, fields)
            assert (status, answer["result"]["content"][0]["text"]) == (200, "3")

            status, [_], headers = await post(service.port, path, initialize(), {})
            session = {"mcp-session-id": headers["mcp-session-id"], "mcp-protocol-version": LEGACY}
            call = request("tools/call", {"name": "count", "_meta": {"progressToken": 1}})
            status, [progress, answer], headers = await post(service.port, path, call, session)
            assert (status, headers["content-type"]) == (200, "text/event-stream")
            assert progress["method"] == "notifications/progress"
            assert answer["result"]["content"][0]["text"] == "counted"
        for path, status in (("/own", 200), ("/shop/readyz", 200), ("/shop/elsewhere", 404)):
            async with connected(service.port) as client:
                await client.request("GET", {}, path=path)
                await client.finish()
                assert client.status == status


async def test_clients_use_both_transports_below_a_mount(framework: str) -> None:
    with mounted(framework) as service, anyio.fail_after(20):
        for target in (
            f"{service.origin}/shop/mcp",
            f"{service.origin}/shop/mcp/",
            SSEClientTransport(f"{service.origin}/old/sse"),
            f"{service.origin}/old/sse",  # recognised for what it is
        ):
            async with Client(target) as client:
                assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"


def steps(service: Service) -> list[str]:
    """What the server's lifespan printed, between whatever the framework has configured to be logged."""
    return [line for line in service.said.splitlines() if line in ("in", "out")]


async def test_without_a_lifespan_the_server_starts_with_the_first_request(framework: str) -> None:
    with mounted(framework) as service:
        for _ in range(3):
            await post(service.port, "/shop/mcp", *modern("server/discover"))
        service.stop()
    assert steps(service) == ["in"]


async def test_a_lifespan_of_the_host_starts_and_ends_the_server_once(framework: str) -> None:
    with mounted(f"{framework}+lifespan") as service:
        for _ in range(3):
            status, _, _ = await post(service.port, "/shop/mcp", *modern("server/discover"))
            assert status == 200
        service.stop()
    assert steps(service) == ["in", "out"]
