"""What crosses the border between the core and a transport: whole messages, with their routing."""

from enum import Enum
from typing import Any

from msgspec import Struct

from mcpcore.exceptions import MCPCoreError, RemoteProtocolError
from mcpcore.types.jsonrpc import RequestId

__all__ = ["Incoming", "Kind", "Outgoing", "RequestScope", "Unanswered"]


class RequestScope(Struct, frozen=True):
    """Facts about a message that only its transport knows. Opaque to the core, handed back on events.

    Args:
        transport: The name of the binding.
        headers: Header fields, names in lower case; None where the binding has none.
        peer: Address of the other end, for logs.
        principal: Who calls, as authenticated by the transport; None for anonymous. Never taken from the message.
        session_id: The legacy HTTP session.
        context: A `contextvars.Context` in which the handler runs; None for a copy of the driver's own.
        close_stream: An async function that ends the response and lets the client come back for the rest; None where
            nothing can be resumed.
    """

    transport: str = ""
    headers: Any = None
    peer: str | None = None
    principal: Any = None
    session_id: str | None = None
    context: Any = None
    close_stream: Any = None


class Unanswered(Struct, frozen=True):
    """The fate of one request of ours, on a binding where each has a reply of its own: there will be no answer.

    Args:
        request_id: The request. All others are untouched.
        error: What to raise to whoever waits for it.
        not_understood: The peer was there and answered with something else than MCP. It may be of an earlier revision.
    """

    request_id: RequestId
    error: MCPCoreError
    not_understood: bool = False


class Incoming(Struct, frozen=True, gc=False):
    """One whole message, as bytes of UTF-8 JSON.

    Args:
        data: The message. No framing.
        headers: Header fields that mirror the body, where the binding has them: names in lower case.
        tag: The binding's own; copied to every `Outgoing` that this message causes.
        scope: See `RequestScope`.
        problem: Set where framing could not produce a message: what to answer, or which request gets no answer.
            ``data`` is empty then.
    """

    data: bytes
    headers: Any = None
    tag: Any = None
    scope: RequestScope | None = None
    problem: RemoteProtocolError | Unanswered | None = None


class Kind(Enum):
    """What an `Outgoing` is, for bindings that route."""

    REQUEST = "request"
    NOTIFICATION = "notification"
    RESPONSE = "response"
    ERROR = "error"
    END = "end"
    """No message: the request that ``request_id`` names ends without an answer (it was cancelled)."""


class Outgoing(Struct, frozen=True, gc=False):
    """One whole message to send, with what a binding needs to route it. A duplex binding writes ``data`` only.

    Args:
        data: The message as bytes of UTF-8 JSON, with no line break in it. Empty for `Kind.END`.
        kind: Chooses between a plain and a streamed reply.
        tag: From the `Incoming` that caused this one.
        request_id: The request that this answers, or its own id for a request.
        related_to: The peer's request on whose stream this belongs.
        method: For requests and notifications.
        headers: Header fields that mirror the body, for the client's HTTP binding.
        error_code: For `Kind.ERROR`; chooses the HTTP status.
        challenge: Scopes to ask for, where an error is a refusal for missing scopes.
        retry_after: Seconds after which to try again, where an error is a refusal for lack of room.
        cancels: The request of ours that this message withdraws.
    """

    data: bytes
    kind: Kind
    tag: Any = None
    request_id: RequestId | None = None
    related_to: RequestId | None = None
    method: str | None = None
    headers: Any = None
    error_code: int | None = None
    challenge: tuple[str, ...] | None = None
    retry_after: int | None = None
    cancels: RequestId | None = None
