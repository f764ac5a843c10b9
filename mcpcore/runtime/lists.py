"""The four lists: paged, and encoded once until something changes."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Raw

from mcpcore.exceptions import McpError
from mcpcore.protocol.fitting import encode_fitted
from mcpcore.providers.registry import Registry
from mcpcore.providers.signature import Kind
from mcpcore.runtime.request import Request
from mcpcore.types._base import Object
from mcpcore.types.jsonrpc import INVALID_PARAMS
from mcpcore.types.prompts import ListPromptsResult
from mcpcore.types.resources import ListResourcesResult, ListResourceTemplatesResult
from mcpcore.types.tools import ListToolsResult

__all__ = ["LISTS", "Lists"]

LISTS: Final[dict[str, tuple[Kind, Callable[..., Object]]]] = {
    # method: (kind in the registry, result type)
    "tools/list": ("tool", ListToolsResult),
    "resources/list": ("resource", ListResourcesResult),
    "resources/templates/list": ("template", ListResourceTemplatesResult),
    "prompts/list": ("prompt", ListPromptsResult),
}


class Lists:
    """Answers list requests from a registry.

    Args:
        registry: What is listed, in the order of registration.
        page_size: Items per page; None for one page.
    """

    def __init__(self, registry: Registry, page_size: int | None) -> None:
        if page_size is not None and (type(page_size) is not int or page_size < 1):
            raise ValueError(f"page_size={page_size!r}: give at least 1, or None for one page")
        self._registry = registry
        self._page_size = page_size
        self._encoded: dict[tuple[str, str, str | None], Raw] = {}
        self._generation = -1

    async def answer(self, request: Request) -> Object | Raw:
        """Return one page.

        Raises:
            McpError: -32602, the cursor is none that this server gave.
        """
        method, version, cursor = request.method, request.caller.version, request.params.cursor
        if self._registry.has_visibility:
            return self._page(method, version, cursor, request.principal, cache_scope="private")
        if self._generation != self._registry.generation:
            self._encoded.clear()
            self._generation = self._registry.generation
        key = method, version, cursor
        page = self._encoded.get(key)
        if page is None:
            fresh = self._page(method, version, cursor, None)
            page = self._encoded[key] = Raw(encode_fitted(fresh, version))
        return page

    def _page(self, method: str, version: str, cursor: str | None, principal: Any, **members: Any) -> Object:
        kind, result = LISTS[method]
        items: Sequence[Any] = self._registry.list(kind, version, principal)
        start = 0 if cursor is None else self._position(cursor, len(items))
        end = len(items) if self._page_size is None else start + self._page_size
        return result(items[start:end], next_cursor=str(end) if end < len(items) else None, **members)

    def _position(self, cursor: str, total: int) -> int:
        """Return where the page of ``cursor`` starts: at one of the places where a page has ended."""
        known = cursor.isascii() and cursor.isdigit() and len(cursor) < 10 and cursor[0] != "0"
        if not known or not self._page_size or int(cursor) % self._page_size or not 0 < int(cursor) < total:
            raise McpError(INVALID_PARAMS, f"Invalid params: unknown cursor {cursor[:64]!r}")
        return int(cursor)
