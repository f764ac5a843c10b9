"""What a server offers to connections that open now: its identity, capabilities, revisions and limits."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from msgspec import Struct

from mcpcore.limits import Limits
from mcpcore.protocol.server import ServerConfig
from mcpcore.providers.options import check_options, one_of
from mcpcore.providers.registry import Registry
from mcpcore.types.header_map import HeaderMap, header_map
from mcpcore.types.lifecycle import Implementation, ListChangedCapability, ResourcesCapability, ServerCapabilities
from mcpcore.versions import LEGACY_VERSIONS, MODERN_VERSIONS

__all__ = ["CacheHint", "Offer", "versions_of"]


class CacheHint(Struct, frozen=True):
    """How long, and by whom, results may be cached (2026-07-28, server/utilities/caching).

    Args:
        ttl_ms: Milliseconds.
        scope: ``private``: for the caller only; ``public``: for everybody.
    """

    ttl_ms: int = 0
    scope: Literal["public", "private"] = "private"

    def __post_init__(self) -> None:
        check_options(
            self,
            ttl_ms=("a whole number of milliseconds, at least 0", lambda value: type(value) is int and value >= 0),
            scope=one_of("private", "public"),
        )


class Offer:
    """Makes the core's configuration from a registry, anew when the registry has changed.

    Args:
        registry: Whose handlers decide about the capabilities.
        info: Who the server is.
        instructions: For the model.
        versions: The revisions to speak.
        cache: Hints for results that bring none.
        limits: See `Limits`.
    """

    def __init__(
        self,
        registry: Registry,
        info: Implementation,
        instructions: str | None,
        versions: tuple[str, ...],
        cache: CacheHint,
        limits: Limits,
    ) -> None:
        self._registry = registry
        self._info = info
        self._instructions = instructions
        self.versions = versions
        self._cache = cache
        self._limits = limits
        self._config: ServerConfig
        self._generation = -1
        self._header_maps: dict[str, tuple[object, HeaderMap]] = {}

    def config(self, *, handshake_only: bool = False) -> ServerConfig:
        """Return what is offered now. Connections keep what they were told when they opened.

        Args:
            handshake_only: Legacy revisions only.

        Raises:
            ValueError: There are none.
        """
        if self._generation != self._registry.generation:
            self._config, self._generation = self._make(), self._registry.generation
        if not handshake_only:
            return self._config
        if not self._config.legacy_versions:
            raise ValueError("this binding is for legacy revisions, and the server's eras= leave them out")
        return replace(self._config, versions=self._config.legacy_versions)

    def _make(self) -> ServerConfig:
        has = self._registry.has
        return ServerConfig(
            self._info,
            ServerCapabilities(
                logging={},
                completions={} if has("completion") else None,
                prompts=ListChangedCapability(True) if has("prompt") else None,
                resources=ResourcesCapability(True, True) if has("resource") or has("template") else None,
                tools=ListChangedCapability(True) if has("tool") else None,
            ),
            self._instructions,
            self.versions,
            ttl_ms=self._cache.ttl_ms,
            cache_scope=self._cache.scope,
            limits=self._limits,
            header_map=self._header_map,
            is_hidden=self._registry.is_hidden,
        )

    def _header_map(self, tool: str, principal: Any) -> HeaderMap | None:
        """Which arguments of a tool HTTP mirrors in headers; found once for each tool."""
        handler = self._registry.find_tool(tool, principal)
        if handler is None:
            return None
        known = self._header_maps.get(tool)
        if known is None or known[0] is not handler:
            known = self._header_maps[tool] = (handler, header_map(handler.input_schema))
        return known[1]


def versions_of(eras: Sequence[str]) -> tuple[str, ...]:
    """Return the revisions of ``eras``, oldest first. Raises ValueError for eras that do not exist, and for none."""
    known = {"legacy": LEGACY_VERSIONS, "modern": MODERN_VERSIONS}
    if not eras or any(era not in known for era in eras):
        raise ValueError(f"eras={tuple(eras)!r}: give 'legacy', 'modern' or both")
    return tuple(version for era in known if era in eras for version in known[era])
