"""Bearer tokens at the door of the endpoint: who calls, the metadata that tells how to get a token, and challenges.

Judged before anything else about a request, so that a request without a token learns nothing but how to get one.
"""

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from mcpcore.auth.resource import ResourceServer, challenge
from mcpcore.auth.tokens import Principal
from mcpcore.transports.http.headers import Headers
from mcpcore.transports.http.requests import Refusal, Scope, below_mount

__all__ = ["Bearer"]

_WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"


class Bearer:
    """Protects the endpoint at ``path``.

    Args:
        resource: What is protected, and by what.
        path: Of the endpoint, below the place where the application is mounted.
    """

    def __init__(self, resource: ResourceServer, path: str) -> None:
        self._resource = resource
        self._path = path

    def serves(self, scope: Scope) -> bool:
        """Tell whether a request asks for the metadata, by any form of its path (RFC 9728, section 3.1)."""
        root, below = below_mount(scope)
        full = f"{root}{below}"
        forms = (_WELL_KNOWN, _WELL_KNOWN + self._path, f"{_WELL_KNOWN}{root}{self._path}", self._path + _WELL_KNOWN)
        return below in forms or full in forms

    @property
    def metadata(self) -> bytes:
        """The document."""
        return self._resource.metadata

    async def __call__(self, headers: Headers, scope: Scope) -> Principal:
        """Return who calls. Only the header counts: a token in a URL ends up in logs.

        Raises:
            Refusal: 401 without a valid token, 403 when it lacks a scope that every request needs.
        """
        scheme, _, token = (headers.get("authorization") or "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise self._refusal(401, scope, "a bearer token is needed", None, self._resource.scopes)
        principal = await self._resource.verifier.verify(token.strip())
        if principal is None:
            raise self._refusal(401, scope, "the token is not valid here", "invalid_token", self._resource.scopes)
        missing = [name for name in self._resource.scopes if name not in principal.scopes]
        if missing:
            text = f"the token lacks {' '.join(missing)}"
            raise self._refusal(403, scope, text, "insufficient_scope", self._resource.scopes)
        return principal

    def step_up(self, scope: Scope, scopes: Sequence[str]) -> tuple[bytes, bytes]:
        """Return the challenge for a request that needs more than its token grants."""
        wanted = tuple(dict.fromkeys((*self._resource.scopes, *scopes)))
        return _field(challenge(self._metadata_url(scope), error="insufficient_scope", scopes=wanted))

    def _refusal(self, status: int, scope: Scope, text: str, error: str | None, scopes: Sequence[str]) -> Refusal:
        value = challenge(self._metadata_url(scope), error=error, description=text if error else None, scopes=scopes)
        return Refusal(status, text, headers=[_field(value)])

    def _metadata_url(self, scope: Scope) -> str:
        """Where the metadata can be had: below the mount, which is where requests reach this application."""
        root, _ = below_mount(scope)
        scheme, _, rest = self._resource.resource.partition("://")
        origin = f"{scheme}://{rest.partition('/')[0]}"
        return f"{origin}{quote(root)}{_WELL_KNOWN}{self._path}"


def _field(value: str) -> tuple[bytes, bytes]:
    return b"www-authenticate", value.encode("latin-1")
