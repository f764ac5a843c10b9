"""Tokens that are signed JSON (RFC 9068), checked against keys that their issuer publishes (RFC 7517)."""

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio
import msgspec

from mcpcore.auth.tokens import Principal

__all__ = ["JWTVerifier"]

logger = logging.getLogger("mcpcore.auth")

_LEEWAY = 30  # seconds that clocks may differ
_SHORTEST_REFRESH = 30.0  # seconds between two fetches of the keys, however many unknown key ids come


class JWTVerifier:
    """Verifies signed JWTs. Needs the extra ``auth``.

    Args:
        issuer: Whose tokens: compared with ``iss`` character by character.
        audience: For whom: one of ``aud`` must be this. Usually the URL of the endpoint.
        fetch_keys: Returns the JSON Web Key Set; called when a token names a key that is not known.
        keys: A key set that is known beforehand; then nothing is fetched.
        algorithms: The signatures to accept. Never take this from the token.
        lifetime: Seconds after which fetched keys are fetched again.
        clock: Seconds since 1970.
    """

    def __init__(
        self,
        *,
        issuer: str,
        audience: str,
        fetch_keys: Callable[[], Awaitable[bytes]] | None = None,
        keys: dict[str, Any] | None = None,
        algorithms: Sequence[str] = ("RS256", "ES256"),
        lifetime: float = 3600.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if (fetch_keys is None) == (keys is None):
            raise ValueError("give fetch_keys= or keys=, one of them")
        if not algorithms or any(name.lower() == "none" or name.startswith("HS") for name in algorithms):
            raise ValueError("algorithms= takes asymmetric signatures, such as RS256 or ES256")
        self._issuer = issuer
        self._audience = audience
        self._fetch_keys = fetch_keys
        self._algorithms = list(algorithms)
        self._lifetime = lifetime
        self._clock = clock
        self._lock = anyio.Lock()
        self._fetched_at = float("-inf")
        self._keys: Any = None if keys is None else _key_set(keys)

    async def verify(self, token: str) -> Principal | None:
        """See `TokenVerifier`: signature, issuer, audience, and time."""
        from joserfc import jwt
        from joserfc.errors import JoseError

        keys = await self._keys_for(token)
        if keys is None:
            return None
        try:
            claims: dict[str, Any] = jwt.decode(token, keys, algorithms=self._algorithms).claims
        except (JoseError, ValueError, KeyError, TypeError):
            return None
        return self._principal(claims)

    def _principal(self, claims: dict[str, Any]) -> Principal | None:
        now = self._clock()
        audience: Any = claims.get("aud")
        subject, expires, not_before = claims.get("sub"), claims.get("exp"), claims.get("nbf", 0)
        if (
            claims.get("iss") != self._issuer
            or self._audience not in _as_list(audience)
            or not isinstance(subject, str)
            or not isinstance(expires, int | float)
            or not isinstance(not_before, int | float)
            or expires + _LEEWAY <= now
            or not_before - _LEEWAY > now
        ):
            return None
        scope: Any = claims.get("scope", claims.get("scp", ""))
        scopes = scope.split() if isinstance(scope, str) else _as_list(scope)
        client = claims.get("client_id", claims.get("azp"))
        return Principal(
            subject, self._issuer, client if isinstance(client, str) else None, frozenset(map(str, scopes)), claims
        )

    async def _keys_for(self, token: str) -> Any:
        """Return the key set, fetched anew when it is old or lacks the key that the token names."""
        if self._fetch_keys is None:
            return self._keys
        name = _key_id(token)
        async with self._lock:
            age = self._clock() - self._fetched_at
            unknown = self._keys is None or (name is not None and not _has(self._keys, name))
            if age > self._lifetime or (unknown and age > _SHORTEST_REFRESH):
                try:
                    self._keys = _key_set(msgspec.json.decode(await self._fetch_keys(), type=dict[str, Any]))
                except Exception as error:  # noqa: BLE001 - whatever fetching raises, old keys are better than none
                    logger.warning("the keys of %s cannot be fetched: %s", self._issuer, error)
                self._fetched_at = self._clock()
            return self._keys


def _as_list(claim: Any) -> list[Any]:
    """RFC 7519 §4.1.3 lets one audience stand without an array around it."""
    match claim:
        case [*many]:
            return many
        case one:
            return [one]


def _key_set(keys: dict[str, Any]) -> Any:
    from joserfc.jwk import KeySet

    return KeySet.import_key_set(keys)  # type: ignore[arg-type]  # a mapping that has just been decoded


def _has(keys: Any, name: str) -> bool:
    return any(key.kid == name for key in keys.keys)


def _key_id(token: str) -> str | None:
    import base64

    head = token.partition(".")[0]
    try:
        header = msgspec.json.decode(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)), type=dict[str, Any])
    except (ValueError, msgspec.DecodeError):
        return None
    name = header.get("kid")
    return name if isinstance(name, str) else None
