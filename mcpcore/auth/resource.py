"""The endpoint as a protected resource: its metadata (RFC 9728) and its challenges (RFC 6750, RFC 9110).

2026-07-28, basic/authorization, "Authorization Server Discovery" and "Scope Challenge Handling".
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from mcpcore.auth.tokens import TokenVerifier

__all__ = ["ResourceServer", "challenge"]


class ResourceServer:
    """What protects an endpoint.

    Args:
        verifier: Tells who a token belongs to.
        resource: The URL of the endpoint as clients know it; compared and published as it is.
        authorization_servers: The issuers whose tokens are accepted.
        scopes: What every request needs.
        scopes_supported: What may be asked for; ``scopes`` when None.
        name: Of the resource, for people.
        documentation: URL for developers.
    """

    def __init__(
        self,
        verifier: TokenVerifier,
        *,
        resource: str,
        authorization_servers: Sequence[str],
        scopes: Sequence[str] = (),
        scopes_supported: Sequence[str] | None = None,
        name: str | None = None,
        documentation: str | None = None,
    ) -> None:
        self.verifier = verifier
        self.resource = resource
        self.scopes = tuple(scopes)
        document: dict[str, Any] = {
            "resource": resource,
            "authorization_servers": list(authorization_servers),
            "scopes_supported": list(self.scopes if scopes_supported is None else scopes_supported),
            "bearer_methods_supported": ["header"],
            "resource_name": name,
            "resource_documentation": documentation,
        }
        self.metadata = msgspec.json.encode({key: value for key, value in document.items() if value})
        """The protected-resource metadata, as JSON."""


def challenge(
    metadata_url: str, *, error: str | None = None, description: str | None = None, scopes: Sequence[str] = ()
) -> str:
    """Return a value for ``WWW-Authenticate``.

    Args:
        metadata_url: Where the metadata is.
        error: ``invalid_token`` or ``insufficient_scope``; None when the request had no token at all.
        description: For developers.
        scopes: What a token should grant.
    """
    parameters = {
        "error": error,
        "error_description": description,
        "scope": " ".join(scopes) or None,
        "resource_metadata": metadata_url,
    }
    quoted = ", ".join(f'{name}="{_quoted(value)}"' for name, value in parameters.items() if value is not None)
    return f"Bearer {quoted}"


def _quoted(text: str) -> str:
    return "".join(character for character in text if " " <= character <= "~").replace("\\", "\\\\").replace('"', '\\"')
