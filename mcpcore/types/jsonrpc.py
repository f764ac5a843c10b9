"""JSON-RPC 2.0 as MCP uses it: the envelope around every message, and error codes."""

from typing import Any, Final, Literal

from msgspec import UNSET, Raw, Struct, UnsetType

from mcpcore.types._base import Object

__all__ = [
    "HEADER_MISMATCH",
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "MISSING_REQUIRED_CLIENT_CAPABILITY",
    "PARSE_ERROR",
    "RESOURCE_NOT_FOUND",
    "UNSUPPORTED_PROTOCOL_VERSION",
    "URL_ELICITATION_REQUIRED",
    "Envelope",
    "ErrorData",
    "RequestId",
]

RequestId = int | str
"""A request's id. It keeps its JSON type and its value: 1 and "1" are two ids, 0 and "" are ids."""

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
HEADER_MISMATCH: Final = -32020
MISSING_REQUIRED_CLIENT_CAPABILITY: Final = -32021
UNSUPPORTED_PROTOCOL_VERSION: Final = -32022
RESOURCE_NOT_FOUND: Final = -32002
"""Up to 2025-11-25; -32602 from 2026-07-28."""
URL_ELICITATION_REQUIRED: Final = -32042
"""2025-11-25 only."""


class Envelope(Struct, gc=False):
    """Any message as it arrives: what is not ours to read yet stays raw. Only for ``id`` is null not the same as absent."""

    jsonrpc: Literal["2.0"]
    id: int | str | UnsetType | None = UNSET
    method: str | None = None
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class ErrorData(Object):
    """The ``error`` member of an error response."""

    code: int
    message: str
    data: Any = UNSET
