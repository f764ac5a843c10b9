"""The limit: pipes under asyncio, or uvicorn, and msgspec, with no framework between and no check that is not needed.

It answers what the benchmark asks and nothing else. What a framework costs is its distance from this program.
Arguments: ``TOOLS [{stateless|sessions} {json|default} WORKERS PORT]``.
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from typing import Any

from msgspec import Raw, Struct, ValidationError
from msgspec.json import Decoder, Encoder

NOTHING = Raw(b"")


class Call(Struct, frozen=True, rename={"meta": "_meta"}):
    name: str = ""
    arguments: Raw = Raw(b"{}")
    meta: dict[str, Any] = {}


class Request(Struct):
    method: str
    id: Raw = NOTHING
    params: Call = Call()


class Pair(Struct):
    a: int
    b: int


class Text(Struct):
    text: str


class Size(Struct):
    size: int


class Steps(Struct):
    steps: int


class Point(Struct):
    x: int
    y: int


decode_request = Decoder(Request).decode
decode_requests = Decoder(Request).decode_lines
decode_pair = Decoder(Pair).decode
decode_text = Decoder(Text).decode
decode_size = Decoder(Size).decode
decode_steps = Decoder(Steps).decode
decode_point = Decoder(Point).decode
encode = Encoder().encode

TOOLS, *HTTP = sys.argv[1:]
TOOL_NAMES = [f"add_{index}" for index in range(int(TOOLS))] or ["add"]
PAIR_SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}
MEMBERS_OF_ALL_RESULTS = b'"resultType":"complete"'
FRESHNESS = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
HEAD = b'{"jsonrpc":"2.0","id":%b,'
ERROR = HEAD + b'"error":{"code":%d,"message":%b}}\n'
RESULT = HEAD + b'"result":%b}\n'
TOOL_ERROR = (
    HEAD + b'"result":{"content":[{"type":"text","text":%b}],"isError":true,' + MEMBERS_OF_ALL_RESULTS + b"}}\n"
)
TEXT_RESULT = (
    HEAD + b'"result":{"content":[{"type":"text","text":%b}],"isError":false,' + MEMBERS_OF_ALL_RESULTS + b"}}\n"
)
PROGRESS = (
    b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%b,"progress":%d,"total":%d}}\n'
)


def call(request_id: Raw, params: Call) -> Iterator[bytes]:
    name = params.name
    if name.startswith("add"):
        try:
            pair = decode_pair(params.arguments)
        except ValidationError as error:
            yield TOOL_ERROR % (request_id, encode(str(error)))
            return
        yield TEXT_RESULT % (request_id, b'"%d"' % (pair.a + pair.b))
    elif name == "echo":
        yield TEXT_RESULT % (request_id, encode(decode_text(params.arguments).text))
    elif name == "fill":
        yield TEXT_RESULT % (request_id, encode("x" * decode_size(params.arguments).size))
    elif name == "locate":
        point = decode_point(params.arguments)
        block = {"type": "text", "text": encode(point).decode()}
        result = {"content": [block], "structuredContent": point, "isError": False, "resultType": "complete"}
        yield RESULT % (request_id, encode(result))
    elif name == "count":
        steps = decode_steps(params.arguments).steps
        token = encode(params.meta["progressToken"])
        for step in range(1, steps + 1):
            yield PROGRESS % (token, step, steps)
        yield TEXT_RESULT % (request_id, b'"done"')
    elif name == "fail":
        yield TOOL_ERROR % (request_id, b'"no"')
    elif name == "announce":
        yield TEXT_RESULT % (request_id, b'"done"')
    else:
        yield ERROR % (request_id, -32602, encode(f"Unknown tool: {name}"))


def answer(request: Request) -> Iterator[bytes]:
    if request.id is NOTHING:
        return
    if request.method == "tools/call":
        yield from call(request.id, request.params)
    elif request.method == "tools/list":
        tools = [{"name": name, "inputSchema": PAIR_SCHEMA} for name in TOOL_NAMES]
        yield RESULT % (request.id, encode({"tools": tools, **FRESHNESS}))
    elif request.method == "initialize":
        result: dict[str, object] = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "bare", "version": "0"},
        }
        yield RESULT % (request.id, encode(result))
    elif request.method == "server/discover":
        discovered: dict[str, object] = {
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}},
            **FRESHNESS,
        }
        yield RESULT % (request.id, encode(discovered))
    else:
        yield ERROR % (request.id, -32601, b'"Method not found"')


class Lines(asyncio.Protocol):
    """Cuts standard input into lines; a line that arrives in many pieces is joined once."""

    def __init__(self, output: asyncio.WriteTransport, ended: asyncio.Event) -> None:
        self.output = output
        self.ended = ended
        self.pieces: list[bytes] = []

    def data_received(self, data: bytes) -> None:
        end = data.rfind(b"\n") + 1
        if not end:
            self.pieces.append(data)
            return
        self.pieces.append(data[:end])
        lines = b"".join(self.pieces)
        self.pieces = [data[end:]]
        self.output.write(b"".join([line for request in decode_requests(lines) for line in answer(request)]))

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set()


async def on_pipes() -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    output, _ = await loop.connect_write_pipe(asyncio.Protocol, os.fdopen(1, "wb", buffering=0))
    await loop.connect_read_pipe(lambda: Lines(output, ended), os.fdopen(0, "rb", buffering=0))
    await ended.wait()


ASGI = dict[str, Any]
session_numbers = count(1)
sessions: set[bytes] = set()


Receive = Callable[[], Awaitable[ASGI]]
Send = Callable[[ASGI], Awaitable[None]]
EVENT = (
    b'data: {"jsonrpc":"2.0","method":"notifications/%b",'
    b'"params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%b}%b}}\n\n'
)
listeners: dict[bytes, Send] = {}


async def listen(request_id: bytes, receive: Receive, send: Send) -> None:
    """Hold the stream of a subscription until its client goes."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
    first = EVENT % (b"subscriptions/acknowledged", request_id, b',"notifications":{"toolsListChanged":true}')
    await send({"type": "http.response.body", "body": first, "more_body": True})
    listeners[request_id] = send
    await receive()
    del listeners[request_id]


async def announce() -> None:
    for request_id, send in list(listeners.items()):
        event = EVENT % (b"tools/list_changed", request_id, b"")
        await send({"type": "http.response.body", "body": event, "more_body": True})


async def stream(messages: Iterator[bytes], send: Send) -> None:
    """Sends each message as an event when it is there."""
    headers = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for message in messages:
        await send({"type": "http.response.body", "body": b"data: %b\n" % message, "more_body": True})
    await send({"type": "http.response.body"})


async def app(scope: ASGI, receive: Receive, send: Send) -> None:
    """Answers each POST with JSON, in sessions if it is told to."""
    message = await receive()
    body = message["body"]
    while message["more_body"]:
        message = await receive()
        body += message["body"]
    request = decode_request(body)
    if request.method == "subscriptions/listen":
        await listen(bytes(request.id), receive, send)
        return
    if request.params.name == "count":
        await stream(answer(request), send)
        return
    if request.params.name == "announce":
        await announce()
    reply = b"".join(answer(request))
    status = 200 if reply else 202
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(reply))]
    if "sessions" in HTTP:
        if request.method == "initialize":
            session = b"%d" % next(session_numbers)
            sessions.add(session)
            headers.append((b"mcp-session-id", session))
        elif dict(scope["headers"]).get(b"mcp-session-id") not in sessions:
            status = 404
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": reply})


if __name__ == "__main__":
    if HTTP:
        import uvicorn

        _, _, workers, port = HTTP
        options: Any = {"lifespan": "off", "access_log": False, "log_level": "warning"}
        # Workers import the application by its name.
        served: Any = app if workers == "1" else "bare_server:app"
        uvicorn.run(served, port=int(port), workers=int(workers), loop="uvloop", http="httptools", **options)
    else:
        asyncio.run(on_pipes())
