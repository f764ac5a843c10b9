"""An HTTP server on a real socket that does what a test says, byte by byte if need be. Runs beside the test."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import cached_property
from typing import Any, Final

import anyio
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

__all__ = ["DISCOVERED", "Peer", "Reply", "Request", "Script", "answer", "error", "legacy", "modern", "serve"]

LIMIT: Final = 20.0
"""Seconds that one test with a peer may take."""

VERSION: Final = "2025-11-25"

DISCOVERED: Final[dict[str, Any]] = {
    "resultType": "complete",
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
    "serverInfo": {"name": "peer", "version": "1"},
    "ttlMs": 0,
    "cacheScope": "private",
}


class Request:
    """What a client sent."""

    def __init__(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> None:
        self.method = method
        self.path = path
        self.headers = headers
        self.body = body

    @cached_property
    def message(self) -> Any:
        """The JSON in the body."""
        return json.loads(self.body)

    @property
    def name(self) -> str:
        """The method of the message, ``answer`` where it has none; the HTTP method where there is no message."""
        return str(self.message.get("method", "answer")) if self.body else self.method

    @property
    def id(self) -> Any:
        """The id of the message."""
        return self.message["id"]

    def __repr__(self) -> str:
        return f"<{self.method} {self.path} {self.body!r}>"


class Reply:
    """Writes the response to one request."""

    def __init__(self, stream: SocketStream, source: BufferedByteReceiveStream) -> None:
        self._stream = stream
        self._source = source
        self.keeps_connection = True

    async def raw(self, data: bytes) -> None:
        """Write bytes as they are."""
        await self._stream.send(data)

    async def head(self, status: int = 200, *, content_type: str | None = None, **headers: str) -> None:
        """Write the head of a response; underscores in the names of header fields stand for hyphens."""
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        if content_type is not None:
            fields["content-type"] = content_type
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        await self.raw(f"HTTP/1.1 {status} Text\r\n{lines}\r\n".encode("latin-1"))

    async def body(self, data: bytes, status: int = 200, content_type: str | None = None, **headers: str) -> None:
        """Write a whole response."""
        await self.head(status, content_type=content_type, content_length=str(len(data)), **headers)
        await self.raw(data)

    async def empty(self, status: int, **headers: str) -> None:
        """Write a response without a body."""
        await self.body(b"", status, **headers)

    async def json(self, value: Any, status: int = 200, **headers: str) -> None:
        """Write a whole response of JSON."""
        await self.body(json.dumps(value).encode(), status, "application/json", **headers)

    async def events(self, **headers: str) -> None:
        """Begin a stream of events."""
        await self.head(200, content_type="text/event-stream", transfer_encoding="chunked", **headers)

    async def chunk(self, data: bytes) -> None:
        """Write bytes of the stream."""
        await self.raw(b"%x\r\n%b\r\n" % (len(data), data))

    async def event(self, value: Any = None, **fields: Any) -> None:
        """Write an event: ``value`` as JSON, and other fields of the event before it."""
        lines = "".join(f"{name}: {field}\n" for name, field in fields.items())
        await self.chunk(f"{lines}data: {'' if value is None else json.dumps(value)}\n\n".encode())

    async def end(self) -> None:
        """End the stream in good order."""
        await self.raw(b"0\r\n\r\n")

    async def abort(self) -> None:
        """Close the connection."""
        self.keeps_connection = False
        await self._stream.aclose()

    async def gone(self) -> None:
        """Wait until the client has closed the connection."""
        self.keeps_connection = False
        try:
            while True:
                await self._source.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return


Script = Callable[[Request, Reply], Awaitable[None]]


class Peer:
    """The server: where it is, and what it was sent, in order."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/mcp"
        self.port = port
        self.requests: list[Request] = []
        self._arrival = anyio.Event()

    def note(self, request: Request) -> None:
        """Take note of a request."""
        self.requests.append(request)
        self._arrival.set()
        self._arrival = anyio.Event()

    def of(self, name: str) -> list[Request]:
        """Return the requests of this name: see `Request.name`."""
        return [request for request in self.requests if request.name == name]

    async def wait_for(self, name: str, count: int = 1) -> Request:
        """Wait for a request of this name and return the last one."""
        while len(self.of(name)) < count:
            await self._arrival.wait()
        return self.of(name)[-1]


@asynccontextmanager
async def serve(script: Script) -> AsyncIterator[Peer]:
    """Serve until the context ends, which it does in bounded time. What ``script`` raises fails the test."""

    async def accept(stream: SocketStream) -> None:
        async with stream:
            source = BufferedByteReceiveStream(stream)
            try:
                while True:
                    request = await _read(source)
                    peer.note(request)
                    reply = Reply(stream, source)
                    await script(request, reply)
                    if not reply.keeps_connection:
                        return
            except (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError, anyio.ClosedResourceError):
                return  # the client has gone

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    peer = Peer(listener.extra(SocketAttribute.local_port))
    with anyio.fail_after(LIMIT):
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, accept)
            yield peer
            tasks.cancel_scope.cancel()


async def _read(source: BufferedByteReceiveStream) -> Request:
    head = (await source.receive_until(b"\r\n\r\n", 65536)).decode("latin-1")
    first, *lines = head.split("\r\n")
    method, path, _ = first.split(" ")
    fields = (line.partition(":") for line in lines)
    headers = {name.lower(): value.strip(" ") for name, _, value in fields}
    body = await source.receive_exactly(int(headers.get("content-length", "0")))
    return Request(method, path, headers, body)


# -- what ordinary servers do ------------------------------------------------------------------------------------


def answer(request: Request, result: Any) -> dict[str, Any]:
    """The answer to a request."""
    return {"jsonrpc": "2.0", "id": request.id, "result": result}


def error(id: Any, code: int, message: str = "no", **members: Any) -> dict[str, Any]:
    """An error under ``id``."""
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message, **members}}


_RESULTS: Final[dict[str, Any]] = {
    "tools/list": {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "text", "text": "done"}]},
    "resources/list": {"resources": []},
    "prompts/list": {"prompts": []},
    "prompts/get": {"messages": []},
    "resources/read": {"contents": []},
}
_STAMP: Final = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def modern(scripts: Mapping[str, Script] | None = None) -> Script:
    """A modern server that answers with JSON; ``scripts`` takes over the methods that it names."""

    async def script(request: Request, reply: Reply) -> None:
        if scripts is not None and request.name in scripts:
            await scripts[request.name](request, reply)
        elif request.name == "server/discover":
            await reply.json(answer(request, DISCOVERED))
        elif request.name in _RESULTS:
            await reply.json(answer(request, {**_RESULTS[request.name], **_STAMP}))
        else:
            await reply.empty(405)

    return script


def legacy(
    scripts: Mapping[str, Script] | None = None, *, session: str | None = "s1", version: str = VERSION
) -> Script:
    """A legacy server with a session and without a stream; ``scripts`` takes over as for `modern`."""

    async def script(request: Request, reply: Reply) -> None:
        name = request.name
        if scripts is not None and name in scripts:
            await scripts[name](request, reply)
        elif name == "initialize":
            result = {
                "protocolVersion": version,
                "capabilities": {"tools": {}, "resources": {"subscribe": True}, "prompts": {}, "logging": {}},
                "serverInfo": {"name": "peer", "version": "1"},
            }
            headers: dict[str, Any] = {} if session is None else {"mcp_session_id": session}
            await reply.json(answer(request, result), **headers)
        elif name in ("GET", "server/discover"):
            await reply.empty(405 if name == "GET" else 400)
        elif name == "DELETE":
            await reply.empty(200)
        elif "id" not in request.message or name == "answer":
            await reply.empty(202)
        else:
            await reply.json(answer(request, _RESULTS.get(name, {})))

    return script
