"""Parameters shared by many methods: paging, progress, cancellation, multi-round input."""

from typing import Any, Literal

from msgspec import UNSET, Raw, UnsetType, field

from mcpcore.types._base import Object
from mcpcore.types.jsonrpc import RequestId
from mcpcore.types.meta import ProgressToken

__all__ = [
    "CancelledParams",
    "EmptyParams",
    "InputRequest",
    "InputRequiredResult",
    "NotificationParams",
    "PaginatedParams",
    "ProgressParams",
]


class EmptyParams(Object):
    """A request that takes no parameters of its own."""

    meta: Raw | UnsetType = field(name="_meta", default=UNSET)


class PaginatedParams(Object):
    """A list request. The empty string is a cursor (2026-07-28, server/utilities/pagination)."""

    cursor: str | None = None
    meta: Raw | UnsetType = field(name="_meta", default=UNSET)


class NotificationParams(Object):
    """A notification that carries nothing of its own."""

    meta: dict[str, Any] | None = field(name="_meta", default=None)


class ProgressParams(Object):
    progress_token: ProgressToken
    progress: float
    total: float | None = None
    message: str | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class CancelledParams(Object):
    """``request_id`` may be absent in 2025-11-25, where it can name a task instead."""

    request_id: RequestId | None = None
    reason: str | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class InputRequest(Object):
    """One thing that the server asks for inside an `InputRequiredResult`."""

    method: Literal["elicitation/create", "sampling/createMessage", "roots/list"]
    params: Raw | UnsetType = UNSET


class InputRequiredResult(Object):
    """An interim answer: gather these inputs, then ask again (2026-07-28, basic/patterns/mrtr)."""

    input_requests: dict[str, InputRequest] | None = None
    request_state: str | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)
