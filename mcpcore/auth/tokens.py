"""What a token says, and who can tell."""

import hmac
from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct

__all__ = ["Principal", "StaticTokenVerifier", "TokenVerifier"]


class Principal(Struct, frozen=True):
    """Who calls. Two principals are the same when subject, issuer and client are: a refreshed token changes nothing.

    Args:
        subject: The user or the service.
        issuer: Who vouches for it.
        client_id: The application that acts for it.
        scopes: What the token grants.
        claims: All that the token said.
    """

    subject: str
    issuer: str | None = None
    client_id: str | None = None
    scopes: frozenset[str] = frozenset()
    claims: Mapping[str, Any] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Principal) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def __str__(self) -> str:
        return self.subject

    @property
    def _identity(self) -> tuple[str, str | None, str | None]:
        return self.subject, self.issuer, self.client_id


class TokenVerifier(Protocol):
    """Tells who a bearer token belongs to."""

    async def verify(self, token: str) -> Principal | None:
        """Return the principal; None for a token that is unknown, expired, or meant for somebody else."""
        ...


class StaticTokenVerifier:
    """Knows a few tokens by heart; for tests, and for services with one shared secret.

    Args:
        tokens: The principal of each token, or just its subject.
    """

    def __init__(self, tokens: Mapping[str, Principal | str]) -> None:
        self._principals = [
            (token.encode(), principal if isinstance(principal, Principal) else Principal(principal))
            for token, principal in tokens.items()
        ]

    async def verify(self, token: str) -> Principal | None:
        """See `TokenVerifier`. Takes the same time whatever the token is."""
        given = token.encode()
        found: Principal | None = None
        for known, principal in self._principals:
            if hmac.compare_digest(known, given):
                found = principal
        return found
