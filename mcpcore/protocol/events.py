"""What the core tells its driver: facts about the peer, in the past tense.

S and C say which role gets an event, L and M in which era.
"""

from typing import Any

from msgspec import Raw, Struct

from mcpcore.exceptions import MCPCoreError
from mcpcore.protocol.messages import RequestScope
from mcpcore.types._base import Object
from mcpcore.types.jsonrpc import ErrorData, RequestId
from mcpcore.types.lifecycle import ClientCapabilities, Implementation, ServerCapabilities
from mcpcore.types.meta import LogLevel, ProgressToken
from mcpcore.types.methods import Method
from mcpcore.types.subscriptions import SubscriptionFilter
from mcpcore.types.utilities import InputRequest
from mcpcore.versions import Era

__all__ = [
    "Caller",
    "ConnectionClosed",
    "ErrorReceived",
    "Event",
    "InputRequired",
    "MessageIgnored",
    "MessageRejected",
    "NegotiationFailed",
    "NotificationReceived",
    "ProgressReceived",
    "RequestCancelled",
    "RequestLost",
    "RequestReceived",
    "ResultReceived",
    "ServerFacts",
    "SessionReady",
    "SubscriptionAcknowledged",
    "SubscriptionEnded",
    "SubscriptionNotified",
    "VersionNegotiated",
]


class Caller(Struct, frozen=True):
    """Who asks, as the peer describes itself: per session (legacy) or per request (modern). Not verified."""

    info: Implementation | None
    capabilities: ClientCapabilities
    version: str
    era: Era


class ServerFacts(Struct, frozen=True):
    """What the client learned when it connected."""

    info: Implementation | None
    capabilities: ServerCapabilities
    instructions: str | None
    version: str
    era: Era


class Event(Struct, frozen=True):
    """Base of all events."""


class RequestReceived(Event, frozen=True, gc=False):
    """S LM, C L: a request that is legal here and now. Answer it with ``send_result`` or ``send_error``.

    ``caller`` is the client on a server; on a client, where the server asks, it is None.
    """

    id: RequestId
    method: Method
    params: Any
    caller: Caller | None
    progress_token: ProgressToken | None
    log_level: LogLevel | None
    scope: RequestScope | None


class RequestCancelled(Event, frozen=True):
    """S LM, C L: the peer withdrew its request. What was queued for it is gone; it must not be answered."""

    id: RequestId
    reason: str | None


class NotificationReceived(Event, frozen=True):
    """SC LM: a notification that the core does not consume itself."""

    method: Method
    params: Any
    scope: RequestScope | None = None


class ResultReceived(Event, frozen=True, gc=False):
    """C LM, S L: the final answer to a request of ours. ``raw`` is its JSON, with every member.

    ``skipped`` names the items of a list that could not be understood and were left out.
    """

    id: RequestId
    result: Any
    raw: Raw
    skipped: tuple[str, ...] = ()


class ErrorReceived(Event, frozen=True):
    """C LM, S L: the peer answered a request of ours with an error."""

    id: RequestId
    error: ErrorData


class RequestLost(Event, frozen=True):
    """C LM: a request of ours gets no answer, and the connection goes on."""

    id: RequestId
    error: MCPCoreError


class InputRequired(Event, frozen=True):
    """C M: an interim answer. Hand it to ``retry`` with the inputs; it carries what that needs."""

    id: RequestId
    input_requests: dict[str, InputRequest]
    request_state: str | None
    method: str
    params: bytes
    meta: dict[str, Any]


class ProgressReceived(Event, frozen=True):
    """C LM, S L: progress on a request of ours."""

    id: RequestId
    progress: float
    total: float | None
    message: str | None


class VersionNegotiated(Event, frozen=True):
    """C LM: the server's revision is known; requests may be sent."""

    server: ServerFacts


class NegotiationFailed(Event, frozen=True):
    """C LM: there is no revision in common, or the server refused. The connection cannot be used.

    ``cause`` is what became of the last request, where that is why.
    """

    reason: str
    error: ErrorData | None = None
    cause: MCPCoreError | None = None


class SessionReady(Event, frozen=True):
    """S L: ``notifications/initialized`` arrived."""

    caller: Caller


class SubscriptionAcknowledged(Event, frozen=True):
    """C M: the server told what it grants."""

    id: RequestId
    granted: SubscriptionFilter


class SubscriptionNotified(Event, frozen=True):
    """C M: a notification of one subscription."""

    id: RequestId
    method: Method
    params: Object


class SubscriptionEnded(Event, frozen=True):
    """C M: the server ended a subscription, or refused it with ``error``."""

    id: RequestId
    error: ErrorData | None = None

    @property
    def graceful(self) -> bool:
        """The server ended what it had granted, and said so."""
        return self.error is None


class MessageRejected(Event, frozen=True):
    """SC LM: the peer broke a rule. ``answered`` tells whether an error was queued for it.

    ``id`` is the request of ours that ends by it, when what was broken is its answer.
    """

    error: ErrorData
    answered: bool
    id: RequestId | None = None


class MessageIgnored(Event, frozen=True):
    """SC LM: legal but void, such as a late answer or an unknown notification."""

    reason: str


class ConnectionClosed(Event, frozen=True):
    """SC LM: no more input will come. ``unanswered`` are requests of ours that will get no answer."""

    unanswered: tuple[RequestId, ...]
