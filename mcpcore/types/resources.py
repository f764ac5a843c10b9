"""``resources/*``: lists, templates, reading, and the subscriptions of the legacy era."""

from typing import Any, Literal

from msgspec import UNSET, Raw, UnsetType, field

from mcpcore.types._base import Object
from mcpcore.types.content import Annotations, ResourceContents
from mcpcore.types.lifecycle import Icon

__all__ = [
    "ListResourceTemplatesResult",
    "ListResourcesResult",
    "ReadResourceParams",
    "ReadResourceResult",
    "Resource",
    "ResourceTemplate",
    "ResourceUpdatedParams",
    "SubscribeParams",
]


class Resource(Object):
    """``uri`` is an opaque string: stored, listed, compared and echoed byte for byte."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    annotations: Annotations | None = None
    size: int | None = None
    icons: list[Icon] | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class ResourceTemplate(Object):
    uri_template: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    annotations: Annotations | None = None
    icons: list[Icon] | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class ListResourcesResult(Object):
    resources: list[Resource]
    next_cursor: str | None = None
    ttl_ms: int | None = None
    cache_scope: Literal["public", "private"] | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class ListResourceTemplatesResult(Object):
    resource_templates: list[ResourceTemplate]
    next_cursor: str | None = None
    ttl_ms: int | None = None
    cache_scope: Literal["public", "private"] | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class ReadResourceParams(Object):
    uri: str
    input_responses: dict[str, Raw] | None = None
    request_state: str | None = None
    meta: Raw | UnsetType = field(name="_meta", default=UNSET)


class ReadResourceResult(Object):
    contents: list[ResourceContents]
    ttl_ms: int | None = None
    cache_scope: Literal["public", "private"] | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class SubscribeParams(Object):
    """``resources/subscribe`` and ``resources/unsubscribe`` (legacy)."""

    uri: str
    meta: Raw | UnsetType = field(name="_meta", default=UNSET)


class ResourceUpdatedParams(Object):
    uri: str
    meta: dict[str, Any] | None = field(name="_meta", default=None)
