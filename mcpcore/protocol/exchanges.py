"""One request with all that belongs to it, until it is answered or cancelled, in either direction."""

from typing import Any

from msgspec import Struct

from mcpcore.protocol._tables import Exchange
from mcpcore.protocol.codec import EMPTY
from mcpcore.protocol.events import Caller
from mcpcore.types.meta import LogLevel, ProgressToken
from mcpcore.types.methods import Method
from mcpcore.types.subscriptions import SubscriptionFilter

__all__ = ["Batch", "Inbound", "Outbound"]


class Batch:
    """Answers to one JSON-RPC batch, held until all of them are there (2025-03-26, basic, "Batching")."""

    def __init__(self, tag: Any) -> None:
        self.tag = tag
        self.open = 0
        self.answers: list[bytes] = []


class Inbound(Struct, gc=False):
    """A request of the peer that has not been answered.

    Args:
        method: Its row.
        version: The revision that it belongs to.
        tag: Of the message that brought it.
        batch: Of which it is a member.
        caller: Who asks (server).
        progress_token: Given where the peer wants to hear of progress.
        log_level: From which severity on the client wants log messages of this request (modern).
        progress: What was reported last.
        granted: What a subscription gets; None before it is acknowledged, and for every other request.
    """

    method: Method
    version: str
    tag: Any = None
    batch: Batch | None = None
    caller: Caller | None = None
    progress_token: ProgressToken | None = None
    log_level: LogLevel | None = None
    progress: float | None = None
    granted: SubscriptionFilter | None = None
    state: Exchange = Exchange.OPEN


class Outbound(Struct):
    """A request of ours that has not been answered.

    Args:
        method: Its row.
        params: As encoded, without what the core adds.
        meta: What the caller wanted in ``_meta``.
        progress: Progress has been asked for.
    """

    method: Method
    params: bytes = EMPTY
    meta: dict[str, Any] = {}
    progress: bool = False
    state: Exchange = Exchange.OPEN
