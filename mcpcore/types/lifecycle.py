"""Identity, capabilities, and the two ways to open: ``initialize`` and ``server/discover``."""

from typing import Any, Literal

from msgspec import UNSET, Raw, UnsetType, field

from mcpcore.types._base import Object

__all__ = [
    "ClientCapabilities",
    "DiscoverResult",
    "ElicitationCapability",
    "EmptyResult",
    "Icon",
    "Implementation",
    "InitializeParams",
    "InitializeResult",
    "ListChangedCapability",
    "ResourcesCapability",
    "RootsCapability",
    "SamplingCapability",
    "ServerCapabilities",
]


class Icon(Object):
    """An image for user interfaces. ``src`` is an http(s) or data URI; untrusted when it comes from a server."""

    src: str
    mime_type: str | None = None
    sizes: list[str] | None = None
    theme: Literal["light", "dark"] | None = None


class Implementation(Object):
    """A piece of software, as it describes itself. For display and logs, never for decisions."""

    name: str
    version: str
    title: str | None = None
    description: str | None = None
    website_url: str | None = None
    icons: list[Icon] | None = None


class RootsCapability(Object):
    list_changed: bool | None = None


class SamplingCapability(Object):
    context: dict[str, Any] | None = None
    tools: dict[str, Any] | None = None


class ElicitationCapability(Object):
    """Modes of elicitation. An empty object means form mode (2025-11-25, client/elicitation, "Capabilities")."""

    form: dict[str, Any] | None = None
    url: dict[str, Any] | None = None


class ClientCapabilities(Object):
    experimental: dict[str, Any] | None = None
    roots: RootsCapability | None = None
    sampling: SamplingCapability | None = None
    elicitation: ElicitationCapability | None = None
    extensions: dict[str, Any] | None = None


class ListChangedCapability(Object):
    list_changed: bool | None = None


class ResourcesCapability(Object):
    subscribe: bool | None = None
    list_changed: bool | None = None


class ServerCapabilities(Object):
    experimental: dict[str, Any] | None = None
    logging: dict[str, Any] | None = None
    completions: dict[str, Any] | None = None
    prompts: ListChangedCapability | None = None
    resources: ResourcesCapability | None = None
    tools: ListChangedCapability | None = None
    extensions: dict[str, Any] | None = None


class InitializeParams(Object):
    """``initialize`` (legacy): the client opens the session."""

    protocol_version: str
    capabilities: ClientCapabilities
    client_info: Implementation
    meta: Raw | UnsetType = field(name="_meta", default=UNSET)


class InitializeResult(Object):
    protocol_version: str
    capabilities: ServerCapabilities
    server_info: Implementation
    instructions: str | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class DiscoverResult(Object):
    """``server/discover`` (modern). Identity is in ``_meta``, put there by the core as on every result."""

    supported_versions: list[str]
    capabilities: ServerCapabilities
    instructions: str | None = None
    ttl_ms: int | None = None
    cache_scope: Literal["public", "private"] | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class EmptyResult(Object):
    """A result that carries no data."""

    meta: dict[str, Any] | None = field(name="_meta", default=None)
