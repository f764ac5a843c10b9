"""Who calls: principals, token verifiers, and the words of the bearer scheme. No I/O of its own."""

from typing import TYPE_CHECKING

from mcpcore._lazy import lazy

if TYPE_CHECKING:
    from mcpcore.auth.jwt import JWTVerifier as JWTVerifier
    from mcpcore.auth.resource import ResourceServer as ResourceServer
    from mcpcore.auth.tokens import Principal as Principal
    from mcpcore.auth.tokens import StaticTokenVerifier as StaticTokenVerifier
    from mcpcore.auth.tokens import TokenVerifier as TokenVerifier

_HOMES = {
    "JWTVerifier": "mcpcore.auth.jwt",
    "Principal": "mcpcore.auth.tokens",
    "ResourceServer": "mcpcore.auth.resource",
    "StaticTokenVerifier": "mcpcore.auth.tokens",
    "TokenVerifier": "mcpcore.auth.tokens",
}

__all__ = ["JWTVerifier", "Principal", "ResourceServer", "StaticTokenVerifier", "TokenVerifier"]

__getattr__, __dir__ = lazy(__name__, _HOMES)
