"""What every HTTP binding does with a request before it looks at the message: refuse it, or read its body."""

from collections.abc import MutableMapping, Sequence
from typing import Any
from urllib.parse import unquote

import msgspec

from mcpcore.transports.http.headers import Headers, is_json
from mcpcore.transports.http.response import Receive, Send, respond
from mcpcore.types.jsonrpc import INVALID_REQUEST, ErrorData

__all__ = ["Refusal", "Scope", "below_mount", "peer", "read_body", "refuse"]

Scope = MutableMapping[str, Any]  # as Starlette types it, so that an application can be mounted there


class Refusal(Exception):
    """A request that does not reach the protocol.

    Args:
        status: The HTTP status.
        text: Why, and what would work.
        headers: Further header fields.
    """

    def __init__(self, status: int, text: str, *, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        super().__init__(text)
        self.status = status
        self.headers = tuple(headers)


async def refuse(send: Send, refusal: Refusal, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
    """Answer with a refusal: a JSON-RPC error that has no id, because nothing has been read yet."""
    error = ErrorData(INVALID_REQUEST, f"Invalid Request: {refusal}")
    body = msgspec.json.encode({"jsonrpc": "2.0", "error": error})
    await respond(send, refusal.status, body, [*refusal.headers, *headers], json=True)


async def read_body(headers: Headers, receive: Receive, limit: int) -> bytes:
    """Read the body, and no more of it than ``limit`` bytes.

    Raises:
        Refusal: It is no JSON by its type (415), too large (413), or ends early (400).
    """
    if not is_json(headers.get("content-type")):
        raise Refusal(415, "send a JSON-RPC message as Content-Type: application/json")
    announced = headers.get("content-length")
    if announced is not None and announced.isdecimal() and int(announced) > limit:
        raise _too_large(limit)
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refusal(400, "the body ended early")
        chunk: bytes = message.get("body", b"")
        chunks.append(chunk)
        size += len(chunk)
        if size > limit:
            raise _too_large(limit)
        if not message.get("more_body", False):
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _too_large(limit: int) -> Refusal:
    return Refusal(413, f"a message has at most {limit} bytes")


def below_mount(scope: Scope) -> tuple[str, str]:
    """Return where the application is mounted, and the path below that without a slash at its end.

    ``root_path`` says where. Some frameworks take the mount off ``path`` and leave ``root_path`` alone; what they leave of the
    path that the client sent says it, too.
    """
    root: str = scope.get("root_path", "")
    path: str = scope["path"]
    if root and path.startswith(root):
        return root, path[len(root) :].rstrip("/")
    below = path.rstrip("/")
    sent: bytes | None = scope.get("raw_path")
    if sent is not None and len(sent) - len(below) > 1:  # more than a slash
        whole = unquote(sent.decode("latin-1")).rstrip("/")
        if whole.endswith(below):
            root = whole.removesuffix(below)
    return root, below


def peer(scope: Scope) -> str | None:
    """Return the address of the client, for logs."""
    client = scope.get("client")
    return f"{client[0]}:{client[1]}" if client else None
