"""The method table: who may send what, in which revision, with which parameters and which result.

This is the only place that knows it. The core reads it to judge messages, the runtime to find types, and the tests
to compare every row with the published schemas.
"""

from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Any, Final

from msgspec import Struct

from mcpcore.types._base import Object
from mcpcore.types.completion import CompleteParams, CompleteResult
from mcpcore.types.elicitation import ElicitationCompleteParams, ElicitParams, ElicitResult
from mcpcore.types.lifecycle import DiscoverResult, EmptyResult, InitializeParams, InitializeResult
from mcpcore.types.logging import LogMessageParams, SetLevelParams
from mcpcore.types.prompts import GetPromptParams, GetPromptResult, ListPromptsResult
from mcpcore.types.resources import (
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceParams,
    ReadResourceResult,
    ResourceUpdatedParams,
    SubscribeParams,
)
from mcpcore.types.roots import ListRootsParams, ListRootsResult
from mcpcore.types.sampling import CreateMessageParams, CreateMessageResult
from mcpcore.types.subscriptions import AcknowledgedParams, ListenParams
from mcpcore.types.tools import CallToolParams, CallToolResult, ListToolsResult
from mcpcore.types.utilities import CancelledParams, EmptyParams, NotificationParams, PaginatedParams, ProgressParams
from mcpcore.versions import LEGACY_VERSIONS, MODERN_VERSIONS, VERSIONS

__all__ = ["METHODS", "Direction", "Method", "declared", "methods_of"]


class Direction(Enum):
    """Who sends it."""

    TO_SERVER = "to_server"
    TO_CLIENT = "to_client"


class Method(Struct, frozen=True):
    """One row: a method in one direction.

    Args:
        name: As on the wire.
        direction: Who sends it.
        params: Type of ``params``; it has every member of every revision. That of a request has ``meta``, raw.
        result: Type of the result; None for a notification.
        versions: The revisions that have it.
        capability: Path of the capability that the receiver must have declared, such as ``tools`` or
            ``resources.subscribe``; None where every peer has it.
        input_required: May be answered `InputRequiredResult` (2026-07-28, basic/patterns/mrtr, "Supported Requests").
        cacheable: The result carries ``ttlMs`` and ``cacheScope`` (2026-07-28, server/utilities/caching).
        named_by: The member of ``params`` that HTTP mirrors as ``Mcp-Name``.
        items: The member of the result that holds a list whose members are judged one by one.
    """

    name: str
    direction: Direction
    params: type[Object]
    result: type[Object] | None
    versions: tuple[str, ...] = VERSIONS
    capability: str | None = None
    input_required: bool = False
    cacheable: bool = False
    named_by: str | None = None
    items: str | None = None


_S, _C = Direction.TO_SERVER, Direction.TO_CLIENT
_FORMS = ("2025-06-18", "2025-11-25")


def _list(name: str, capability: str, result: type[Object], items: str) -> Method:
    return Method(name, _S, PaginatedParams, result, capability=capability, cacheable=True, items=items)


METHODS: Final = (
    # opening, identity, liveness
    Method("initialize", _S, InitializeParams, InitializeResult, LEGACY_VERSIONS),
    Method("notifications/initialized", _S, NotificationParams, None, LEGACY_VERSIONS),
    Method("server/discover", _S, EmptyParams, DiscoverResult, MODERN_VERSIONS, cacheable=True),
    Method("ping", _S, EmptyParams, EmptyResult, LEGACY_VERSIONS),
    Method("ping", _C, EmptyParams, EmptyResult, LEGACY_VERSIONS),
    # any request
    Method("notifications/cancelled", _S, CancelledParams, None),
    Method("notifications/cancelled", _C, CancelledParams, None),
    Method("notifications/progress", _S, ProgressParams, None, LEGACY_VERSIONS),
    Method("notifications/progress", _C, ProgressParams, None),
    # tools
    _list("tools/list", "tools", ListToolsResult, "tools"),
    Method(
        "tools/call",
        _S,
        CallToolParams,
        CallToolResult,
        capability="tools",
        input_required=True,
        named_by="name",
        items="content",
    ),
    Method("notifications/tools/list_changed", _C, NotificationParams, None),
    # resources
    _list("resources/list", "resources", ListResourcesResult, "resources"),
    _list("resources/templates/list", "resources", ListResourceTemplatesResult, "resource_templates"),
    Method(
        "resources/read",
        _S,
        ReadResourceParams,
        ReadResourceResult,
        capability="resources",
        input_required=True,
        cacheable=True,
        named_by="uri",
        items="contents",
    ),
    Method("resources/subscribe", _S, SubscribeParams, EmptyResult, LEGACY_VERSIONS, "resources.subscribe"),
    Method("resources/unsubscribe", _S, SubscribeParams, EmptyResult, LEGACY_VERSIONS, "resources.subscribe"),
    Method("notifications/resources/updated", _C, ResourceUpdatedParams, None),
    Method("notifications/resources/list_changed", _C, NotificationParams, None),
    # prompts and completion
    _list("prompts/list", "prompts", ListPromptsResult, "prompts"),
    Method(
        "prompts/get",
        _S,
        GetPromptParams,
        GetPromptResult,
        capability="prompts",
        input_required=True,
        named_by="name",
        items="messages",
    ),
    Method("notifications/prompts/list_changed", _C, NotificationParams, None),
    Method("completion/complete", _S, CompleteParams, CompleteResult, capability="completions"),
    # logging
    Method("logging/setLevel", _S, SetLevelParams, EmptyResult, LEGACY_VERSIONS, "logging"),
    Method("notifications/message", _C, LogMessageParams, None),
    # subscriptions
    Method("subscriptions/listen", _S, ListenParams, EmptyResult, MODERN_VERSIONS),
    Method("notifications/subscriptions/acknowledged", _C, AcknowledgedParams, None, MODERN_VERSIONS),
    # asking the client; in modern revisions these travel inside InputRequiredResult and not as requests
    Method("sampling/createMessage", _C, CreateMessageParams, CreateMessageResult, LEGACY_VERSIONS, "sampling"),
    Method("roots/list", _C, ListRootsParams, ListRootsResult, LEGACY_VERSIONS, "roots", items="roots"),
    Method("notifications/roots/list_changed", _S, NotificationParams, None, LEGACY_VERSIONS),
    Method("elicitation/create", _C, ElicitParams, ElicitResult, _FORMS, "elicitation"),
    Method("notifications/elicitation/complete", _C, ElicitationCompleteParams, None, ("2025-11-25",)),
)


@cache
def methods_of(direction: Direction, version: str, extensions: tuple[Method, ...] = ()) -> Mapping[str, Method]:
    """Return the rows that may be sent in ``direction`` in ``version``, by name."""
    return {row.name: row for row in METHODS + extensions if row.direction is direction and version in row.versions}


def declared(capabilities: Object, path: str | None) -> bool:
    """Tell whether ``capabilities`` holds what ``path`` names: absent, null and false all mean no."""
    value: Any = capabilities
    for name in path.split(".") if path else ():
        value = getattr(value, name, None)
        if value is None or value is False:
            return False
    return True
