"""``elicitation/create``: asking the user, by form (since 2025-06-18) or by URL (since 2025-11-25)."""

from typing import Any, Literal

from msgspec import UNSET, Raw, UnsetType, field

from mcpcore.types._base import Object

__all__ = ["ElicitParams", "ElicitResult", "ElicitationCompleteParams"]


class ElicitParams(Object):
    """Form mode has ``requested_schema``; URL mode has ``url``, and in 2025-11-25 ``elicitation_id``."""

    message: str
    mode: Literal["form", "url"] | None = None
    requested_schema: dict[str, Any] | None = None
    url: str | None = None
    elicitation_id: str | None = None
    meta: Raw | UnsetType = field(name="_meta", default=UNSET)


class ElicitResult(Object):
    """``content`` only with ``accept`` in form mode."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class ElicitationCompleteParams(Object):
    """``notifications/elicitation/complete``, 2025-11-25 only."""

    elicitation_id: str
    meta: dict[str, Any] | None = field(name="_meta", default=None)
