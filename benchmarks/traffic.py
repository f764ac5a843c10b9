"""What the benchmark sends, and what has to come back.

Requests are numbered and the number is the JSON-RPC id. What a request asks for depends on its number wherever it can,
so that a reply is right for one request only. Requests are written before the clock runs; replies are decoded into
typed structs, which is what makes it affordable to check every one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from msgspec import Raw, Struct, field
from msgspec.json import Decoder, Encoder

from benchmarks.table import BenchmarkError

__all__ = [
    "ERAS",
    "Message",
    "Traffic",
    "WrongReply",
    "add",
    "count",
    "decode",
    "decode_lines",
    "echo",
    "encode",
    "fill",
    "listing",
    "locate",
    "opening",
    "unknown_tool",
]

ERAS: Final = {"legacy": "2025-11-25", "modern": "2026-07-28"}
"""The revision that stands for each era."""

CLIENT: Final = {"name": "benchmark", "version": "1"}
MODERN_META: Final[dict[str, Any]] = {
    "io.modelcontextprotocol/protocolVersion": ERAS["modern"],
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}
FILLER: Final = "The quick brown fox jumps over the lazy dog. "  # needs no escapes: a byte is a byte on the wire
INVALID_PARAMS: Final = -32602


class WrongReply(BenchmarkError):
    """A server wrote something, but not what it should have written."""


class Block(Struct):
    type: str
    text: str = ""


class Tool(Struct):
    name: str
    input_schema: Raw = field(name="inputSchema")


class Result(Struct, rename="camel"):
    """The members of all results that the benchmark looks at."""

    content: list[Block] = []
    is_error: bool = False
    structured_content: Any = None
    tools: list[Tool] = []
    next_cursor: str | None = None
    protocol_version: str | None = None
    supported_versions: list[str] = []


class Error(Struct):
    code: int
    message: str


class Progress(Struct, frozen=True, rename="camel"):
    progress_token: int | None = None
    progress: float | None = None


class Message(Struct):
    """What a server wrote: a reply or a notification."""

    jsonrpc: str
    id: int | None = None
    result: Result | None = None
    error: Error | None = None
    method: str | None = None
    params: Progress = Progress()


decoder: Final = Decoder(Message)
decode, decode_lines = decoder.decode, decoder.decode_lines
encode = Encoder().encode


@dataclass(frozen=True)
class Traffic:
    """One kind of request.

    Attributes:
        method: The method.
        params: What the request with a number asks for; a fresh dictionary.
        check: Judges the reply to the request with a number; raises `WrongReply`.
        notifications: Progress notifications that have to come before each reply.
    """

    method: str
    params: Callable[[int], dict[str, Any]]
    check: Callable[[int, Message], None]
    notifications: int = 0

    def request(self, number: int, era: str) -> dict[str, Any]:
        """Return the request with a number, for ``era``."""
        params = self.params(number)
        meta = {**MODERN_META} if era == "modern" else {}
        if self.notifications:
            meta["progressToken"] = number
        if meta:
            params["_meta"] = meta
        return {"jsonrpc": "2.0", "id": number, "method": self.method, "params": params}


def succeeded(message: Message) -> Result:
    if message.error is not None:
        raise WrongReply(f"request {message.id} was answered with error {message.error.code}: {message.error.message}")
    if message.result is None:
        raise WrongReply(f"the reply to request {message.id} has neither result nor error")
    return message.result


def text_of(message: Message) -> str:
    result = succeeded(message)
    if result.is_error or len(result.content) != 1 or result.content[0].type != "text":
        raise WrongReply(f"request {message.id} wants one block of text, but got {str(result)[:500]}")
    return result.content[0].text


def calls(tool: str, arguments: Callable[[int], dict[str, Any]], expected: Callable[[int], str]) -> Traffic:
    def check(number: int, message: Message) -> None:
        if (text := text_of(message)) != (wanted := expected(number)):
            raise WrongReply(f"request {number} wants {wanted[:60]!r}, but got {text[:60]!r} ({len(text)} characters)")

    return Traffic("tools/call", lambda number: {"name": tool, "arguments": arguments(number)}, check)


def add(tool: str = "add") -> Traffic:
    """Add the request's number to 7, with one of the adding tools."""
    return calls(tool, lambda number: {"a": number, "b": 7}, lambda number: str(number + 7))


def echo(size: int) -> Traffic:
    """Send ``size`` bytes of text and want them back. The first eight differ from request to request."""
    body = (FILLER * (size // len(FILLER) + 1))[: size - 8]

    def check(number: int, message: Message) -> None:
        text = text_of(message)
        # Not compared as a whole: building the wanted text would cost the driver a copy of it per reply.
        if len(text) != size or not text.startswith(f"{number:08d}") or not text.endswith(body):
            raise WrongReply(f"request {number} wants its {size} bytes back, but got {len(text)}: {text[:60]!r}")

    return Traffic("tools/call", lambda number: {"name": "echo", "arguments": {"text": f"{number:08d}{body}"}}, check)


def fill(size: int) -> Traffic:
    """Ask for a text of ``size`` bytes."""
    wanted = "x" * size
    return calls("fill", lambda number: {"size": size}, lambda number: wanted)


def locate() -> Traffic:
    """Ask for a structured result."""

    def check(number: int, message: Message) -> None:
        result = succeeded(message)
        if result.is_error or result.structured_content != {"x": number, "y": 7}:
            raise WrongReply(f"request {number} wants a point as structured content, but got {str(result)[:500]}")

    return Traffic("tools/call", lambda number: {"name": "locate", "arguments": {"x": number, "y": 7}}, check)


def count(steps: int) -> Traffic:
    """Ask for ``steps`` progress notifications before the reply. That they came is checked by the driver."""
    done = calls("count", lambda number: {"steps": steps}, lambda number: "done")
    return Traffic(done.method, done.params, done.check, notifications=steps)


def unknown_tool() -> Traffic:
    """Call a tool that does not exist.

    The specification wants error -32602; a tool error is accepted too, because some contestants answer so and the row
    is about speed.
    """

    def check(number: int, message: Message) -> None:
        refused = message.error is not None and message.error.code == INVALID_PARAMS
        if not refused and not (message.result is not None and message.result.is_error):
            raise WrongReply(f"request {number} names an unknown tool, but got {str(message)[:500]}")

    return Traffic("tools/call", lambda number: {"name": f"unknown_{number}", "arguments": {}}, check)


def listing(tools: int) -> Traffic:
    """List the tools of a server that was started with ``tools`` of them. All have to be on one page."""
    wanted = sorted(f"add_{index}" for index in range(tools))

    def check(number: int, message: Message) -> None:
        result = succeeded(message)
        if sorted([tool.name for tool in result.tools]) != wanted or result.next_cursor is not None:
            raise WrongReply(f"request {number} wants {tools} tools on one page, but got {len(result.tools)}")

    return Traffic("tools/list", lambda number: {}, check)


def opening(era: str) -> Traffic:
    """The request that a client opens with: ``initialize``, or ``server/discover`` in the modern era."""
    version = ERAS[era]

    def check(number: int, message: Message) -> None:
        result = succeeded(message)
        if version not in (result.protocol_version, *result.supported_versions):
            raise WrongReply(f"the server does not agree to {version}: {str(message)[:500]}")

    if era == "modern":
        return Traffic("server/discover", lambda number: {}, check)
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT}
    return Traffic("initialize", lambda number: dict(params), check)
