"""``roots/list``: which folders the client lets the server work in."""

from typing import Any

from msgspec import UNSET, Raw, UnsetType, field

from mcpcore.types._base import Object

__all__ = ["ListRootsParams", "ListRootsResult", "Root"]


class Root(Object):
    """``uri`` starts with ``file://``."""

    uri: str
    name: str | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class ListRootsParams(Object):
    meta: Raw | UnsetType = field(name="_meta", default=UNSET)


class ListRootsResult(Object):
    roots: list[Root]
    meta: dict[str, Any] | None = field(name="_meta", default=None)
