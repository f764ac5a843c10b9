"""What a server is, and what follows from it for every request."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from mcpcore.limits import Limits
from mcpcore.protocol.answers import Stamps
from mcpcore.protocol.connection import check_versions
from mcpcore.protocol.fitting import decoder_of
from mcpcore.protocol.request_meta import RequestMetaReader
from mcpcore.types.header_map import HeaderMap
from mcpcore.types.lifecycle import Implementation, ServerCapabilities
from mcpcore.types.methods import Direction, Method, declared, methods_of
from mcpcore.versions import LEGACY_VERSIONS, MODERN_VERSIONS, VERSIONS

__all__ = ["ServerConfig"]


@dataclass(frozen=True)
class ServerConfig:
    """What a server is, shared by all its connections.

    Args:
        info: Name, version and so on.
        capabilities: What it offers. A method whose capability is missing does not exist: -32601.
        instructions: For the model; optional.
        versions: The revisions to speak.
        extensions: Further methods, one row each.
        ttl_ms: How long results of cacheable methods stay fresh, in milliseconds, where a result does not say.
        cache_scope: Who may cache them: ``public`` or ``private``.
        limits: See `Limits`.
        is_hidden: Tells of a URI and a principal whether changes of that resource are kept from them.
        header_map: Tells of a tool's name and a principal which arguments HTTP mirrors; None where the principal knows no
            such tool.

    Raises:
        ValueError: No revisions, or one that mcpcore does not speak, or caching hints that do not exist.
    """

    info: Implementation
    capabilities: ServerCapabilities
    instructions: str | None = None
    versions: tuple[str, ...] = VERSIONS
    extensions: tuple[Method, ...] = ()
    ttl_ms: int = 0
    cache_scope: str = "private"
    limits: Limits = field(default_factory=Limits)
    header_map: Callable[[str, Any], HeaderMap | None] | None = None
    is_hidden: Callable[[str, Any], bool] = lambda uri, principal: False
    legacy_versions: tuple[str, ...] = field(init=False, repr=False, compare=False)
    modern_versions: tuple[str, ...] = field(init=False, repr=False, compare=False)
    legacy: dict[str, dict[str, Method]] = field(init=False, repr=False, compare=False)
    modern: dict[str, dict[str, Method]] = field(init=False, repr=False, compare=False)
    requests: dict[str, tuple[Method, Callable[[Any], Any]]] = field(init=False, repr=False, compare=False)
    notifications: dict[str, Method] = field(init=False, repr=False, compare=False)
    stamps: Stamps = field(init=False, repr=False, compare=False)
    meta: RequestMetaReader = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_versions(self.versions)
        derive: Callable[[str, Any], None] = partial(object.__setattr__, self)  # it is frozen from now on
        for era, known in (("legacy", LEGACY_VERSIONS), ("modern", MODERN_VERSIONS)):
            spoken = tuple(version for version in known if version in self.versions)
            derive(f"{era}_versions", spoken)
            derive(era, {version: self._served(version) for version in spoken})
        rows = {name: row for version in VERSIONS for name, row in self._rows(version).items()}
        requests = {name: (row, decoder_of(row.params)) for name, row in rows.items() if row.result is not None}
        derive("requests", requests)
        derive("notifications", {name: row for name, row in rows.items() if row.result is None})
        derive("stamps", Stamps(self.info, self.ttl_ms, self.cache_scope))
        derive("meta", RequestMetaReader())

    def _served(self, version: str) -> dict[str, Method]:
        """The requests that are answered in ``version``."""
        rows = self._rows(version).items()
        capabilities = self.capabilities
        return {name: row for name, row in rows if row.result is not None and declared(capabilities, row.capability)}

    def _rows(self, version: str) -> Mapping[str, Method]:
        return methods_of(Direction.TO_SERVER, version, self.extensions)
