"""Calling an ASGI application without a socket: requests as coroutines, responses as they come."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import anyio
import anyio.lowlevel
import msgspec

from mcpcore.protocol.framing import SSEDecoder
from mcpcore.types.meta import CLIENT_CAPABILITIES, PROTOCOL_VERSION

MODERN = "2026-07-28"
LEGACY = "2025-11-25"


class Response:
    """What an application has answered so far."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""
        self.is_complete = False
        self.disconnect = anyio.Event()
        self._changed = anyio.Event()

    async def send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            assert not self.status, "two heads"
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            assert self.status and not self.is_complete, "a body without a head, or after the end"
            self.body += message.get("body", b"")
            self.is_complete = not message.get("more_body", False)
        self._changed.set()
        self._changed = anyio.Event()
        await anyio.lowlevel.checkpoint()

    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    @property
    def is_stream(self) -> bool:
        return self.headers.get("content-type") == "text/event-stream"

    @property
    def events(self) -> list[Any]:
        return list(SSEDecoder().receive(self.body))

    @property
    def messages(self) -> list[Any]:
        """The messages of the response, whichever form it has."""
        if not self.is_stream:
            return [self.json()] if self.body else []
        return [msgspec.json.decode(event.data) for event in self.events if event.data]

    async def wait_for(self, condition: Any) -> None:
        with anyio.fail_after(5):
            while not condition(self):
                await self._changed.wait()


class Caller:
    """Calls one application."""

    opened: ClassVar[list[Any]] = []
    """Applications to close when a test ends."""

    def __init__(self, app: Any, *, root: str = "") -> None:
        self.opened.append(app)
        self.app = app
        self.root = root

    @asynccontextmanager
    async def open(
        self,
        method: str,
        path: str = "/mcp",
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        response: Response | None = None,
    ) -> AsyncIterator[Response]:
        """Start a request; it is disconnected when the context ends, which waits for the application to be done."""
        fields = {"host": "localhost:8000", **(headers or {})}
        path, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": self.root + path,
            "root_path": self.root,
            "query_string": query.encode(),
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in fields.items()],
            "client": ("127.0.0.1", 1234),
        }
        response = response or Response()
        chunks = [body]

        async def receive() -> dict[str, Any]:
            if chunks:
                return {"type": "http.request", "body": chunks.pop(), "more_body": False}
            await response.disconnect.wait()
            return {"type": "http.disconnect"}

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.app, scope, receive, response.send)
            yield response
            response.disconnect.set()

    async def call(self, method: str, path: str = "/mcp", **options: Any) -> Response:
        """Make a request and return the complete response."""
        async with self.open(method, path, **options) as response:
            await response.wait_for(lambda each: each.is_complete)
        return response

    async def post(self, message: Any, headers: Mapping[str, str] | None = None, path: str = "/mcp") -> Response:
        """POST a message."""
        return await self.call("POST", path, headers={**POST, **(headers or {})}, body=encoded(message))

    async def initialize(self, version: str = LEGACY, **headers: str) -> dict[str, str]:
        """Open a session and return the headers of its later requests."""
        response = await self.post(initialize(version), headers)
        assert response.status == 200, response.body
        session = {"mcp-session-id": response.headers["mcp-session-id"], "mcp-protocol-version": version, **headers}
        answer = await self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, session)
        assert (answer.status, answer.body) == (202, b"")
        return session


POST = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


def encoded(message: Any) -> bytes:
    return message if isinstance(message, bytes) else msgspec.json.encode(message)


def request(method: str, params: dict[str, Any] | None = None, id: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}


def initialize(version: str = LEGACY, capabilities: dict[str, Any] | None = None) -> dict[str, Any]:
    info = {"name": "test", "version": "1"}
    params = {"protocolVersion": version, "capabilities": capabilities or {}, "clientInfo": info}
    return request("initialize", params, "init")


def modern(
    method: str, params: dict[str, Any] | None = None, id: Any = 1, **meta: Any
) -> tuple[dict[str, Any], dict[str, str]]:
    """A modern request and its headers."""
    params = params or {}
    body = {**params, "_meta": {PROTOCOL_VERSION: MODERN, CLIENT_CAPABILITIES: {}, **meta}}
    headers = {"mcp-protocol-version": MODERN, "mcp-method": method}
    name = params.get("name") or params.get("uri")
    if name is not None:
        headers["mcp-name"] = name
    return request(method, body, id), headers
