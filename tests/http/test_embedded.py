"""The endpoint inside other applications."""

import json
import runpy
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from mcpcore import Server
from tests.support.asgi import Caller, initialize, modern, request

pytestmark = pytest.mark.anyio

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"


def calling(app: Any) -> Caller:
    """Call an application that has no ``aclose`` of its own."""
    caller = Caller(app)
    Caller.opened.remove(app)
    return caller


def server() -> Server:
    made = Server("embedded")

    @made.tool
    async def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    return made


async def test_the_example_serves_orders_beside_its_own_routes() -> None:
    app = runpy.run_path(str(EXAMPLES / "embedded" / "app.py"))["app"]
    call = calling(app)
    assert (await call.call("GET", "/health")).json() == {"status": "ok"}
    message, fields = modern("tools/call", {"name": "get_order", "arguments": {"orderId": "ORD-10001"}})
    response = await call.post(message, fields, "/shop/mcp")
    assert response.json()["result"]["structuredContent"]["orderId"] == "ORD-10001"


async def test_a_mounted_endpoint_needs_no_lifespan_of_its_host() -> None:
    endpoint = server().http_app(path="/mcp")
    Caller.opened.append(endpoint)
    call = calling(Starlette(routes=[Mount("/api", endpoint)]))
    opened = await call.post(initialize(), path="/api/mcp/")
    session = {"mcp-session-id": opened.headers["mcp-session-id"]}
    response = await call.post(
        request("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}), session, "/api/mcp"
    )
    assert response.json()["result"]["content"][0]["text"] == "3"


async def test_the_hosts_lifespan_starts_and_ends_the_endpoint_when_it_is_the_application() -> None:
    entered: list[str] = []

    class Life:
        async def __aenter__(self) -> str:
            entered.append("in")
            return "value"

        async def __aexit__(self, *exc_info: object) -> None:
            entered.append("out")

    made = Server("embedded", lifespan=lambda _: Life())
    app = made.http_app()
    to_app, from_app = anyio.create_memory_object_stream[Any](8), anyio.create_memory_object_stream[Any](8)
    async with to_app[0], to_app[1], from_app[0], from_app[1], anyio.create_task_group() as tasks:
        tasks.start_soon(app, {"type": "lifespan"}, to_app[1].receive, from_app[0].send)
        with anyio.fail_after(5):
            await to_app[0].send({"type": "lifespan.startup"})
            assert (await from_app[1].receive())["type"] == "lifespan.startup.complete"
            assert entered == ["in"]
            await to_app[0].send({"type": "lifespan.shutdown"})
            assert (await from_app[1].receive())["type"] == "lifespan.shutdown.complete"
    assert entered == ["in", "out"]


async def test_a_lifespan_that_fails_is_told_to_the_host() -> None:
    class Life:
        async def __aenter__(self) -> str:
            raise RuntimeError("no database")

        async def __aexit__(self, *exc_info: object) -> None:
            return

    app = Server("embedded", lifespan=lambda _: Life()).http_app()
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "lifespan.startup"}

    async def send(message: Any) -> None:
        sent.append(message)

    await app({"type": "lifespan"}, receive, send)
    assert sent == [{"type": "lifespan.startup.failed", "message": "no database"}]


caller: ContextVar[str] = ContextVar("caller", default="nobody")


def naming_callers(app: Any) -> Any:
    """ASGI middleware that puts a header field into a context variable."""

    async def wrapped(scope: Any, receive: Any, send: Any) -> None:
        caller.set(dict(scope["headers"]).get(b"x-caller", b"nobody").decode())
        await app(scope, receive, send)

    return wrapped


def knowing_callers() -> Server:
    made = Server("callers")

    @made.tool
    def threaded() -> str:
        return caller.get()

    @made.tool
    async def awaited() -> str:
        await anyio.lowlevel.checkpoint()
        return caller.get()

    @made.resource("who://calls")
    def resource() -> str:
        return caller.get()

    @made.prompt
    async def prompt() -> str:
        await anyio.lowlevel.checkpoint()
        return caller.get()

    return made


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_context_variables_of_the_hosts_middleware_are_those_of_each_request(era: str) -> None:
    endpoint = knowing_callers().http_app()
    Caller.opened.append(endpoint)
    call = calling(naming_callers(endpoint))
    requests: list[tuple[str, dict[str, Any]]] = [
        ("tools/call", {"name": "threaded", "arguments": {}}),
        ("tools/call", {"name": "awaited", "arguments": {}}),
        ("resources/read", {"uri": "who://calls"}),
        ("prompts/get", {"name": "prompt"}),
    ]
    said: list[tuple[str, bool]] = []

    async def ask(name: str) -> None:
        session = {} if era == "modern" else await call.initialize(**{"x-caller": "somebody else"})
        for method, params in requests * 3:
            message, fields = (request(method, params), session) if era == "legacy" else modern(method, params)
            response = await call.post(message, {**fields, "x-caller": name})
            (answer,) = [each for each in response.messages if "result" in each]
            said.append((name, f'"text":"{name}"' in json.dumps(answer, separators=(",", ":"))))

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            for name in ("ada", "bob"):
                tasks.start_soon(ask, name)
    assert len(said) == 2 * 3 * len(requests) and all(right for _, right in said)
    assert caller.get() == "nobody"
