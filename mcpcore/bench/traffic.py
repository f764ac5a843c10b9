"""What is sent, and what has to come back.

Requests are numbered and the number is the JSON-RPC id. Requests are written before the clock runs; replies are decoded
into typed structs, which is what makes it affordable to check every one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from msgspec import Raw, Struct, field
from msgspec.json import Encoder

from mcpcore.exceptions import BenchmarkError

__all__ = [
    "ERAS",
    "Message",
    "Progress",
    "Reply",
    "Result",
    "Traffic",
    "WrongReply",
    "encode",
    "opening",
    "succeeded",
    "text_of",
]

ERAS: Final = {"legacy": "2025-11-25", "modern": "2026-07-28"}
"""The revision that stands for each era."""

CLIENT: Final = {"name": "benchmark", "version": "1"}
MODERN_META: Final[dict[str, Any]] = {
    "io.modelcontextprotocol/protocolVersion": ERAS["modern"],
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}


class WrongReply(BenchmarkError):
    """A server wrote something, but not what it should have written.

    Args:
        message: What is wrong.
        kind: Under which name such replies are counted.
    """

    def __init__(self, message: str, kind: str = "wrong reply") -> None:
        super().__init__(message)
        self.kind = kind


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
    message: str = ""


class Progress(Struct, frozen=True, rename="camel"):
    """The parameters of a notification or request of the server's, as far as they matter: those of progress."""

    progress_token: Any = None
    progress: Any = None


class Reply(Struct, kw_only=True):
    """What a server wrote, whatever it is: a reply, a notification, or a request. What results are is for heirs to say."""

    jsonrpc: str
    id: int | str | None = None
    error: Error | None = None
    method: str | None = None
    params: Progress = Progress()


class Message(Reply, kw_only=True):
    """The same with the results that the benchmark looks at."""

    result: Result | None = None


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
