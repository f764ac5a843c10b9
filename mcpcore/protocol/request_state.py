"""What a server puts into ``requestState``, and what it checks before it believes any of it again.

The client carries the state and may be hostile, so the state is sealed, and bound to what it was made for: method, target,
arguments, principal and an expiry (2026-07-28, basic/patterns/mrtr, "Server Requirements" 4 and 5). It holds the answers
of earlier rounds, which is what lets any worker take the retry.

Pure: the time is an argument, and a codec that needs chance lives elsewhere and fits `RequestStateCodec`.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence
from typing import Any, Final, Protocol

import msgspec
from msgspec import Raw, Struct, UnsetType

from mcpcore.exceptions import RemoteProtocolError
from mcpcore.types.jsonrpc import INVALID_PARAMS

__all__ = ["Claims", "HMACCodec", "RequestStateCodec", "digest", "open_state", "seal_state"]

_REFUSAL: Final = "Invalid params: requestState cannot be used; make the request again without it"


class Claims(
    Struct, frozen=True, rename={"answers": "a", "digest": "d", "expires": "e", "method": "m", "principal": "p"}
):
    """The content of a state.

    Args:
        method: And ``target``, ``digest``: the request it belongs to, its name or URI and its arguments.
        principal: Who asked; None for anonymous.
        expires: Seconds on the clock of whoever checks.
        answers: Results that earlier rounds brought, by key.
    """

    method: str
    target: str
    digest: str
    principal: str | None
    expires: float
    answers: dict[str, Raw]


class RequestStateCodec(Protocol):
    """Seals bytes so that a client can carry them and not change them."""

    def seal(self, data: bytes) -> str: ...

    def open(self, state: str) -> bytes:
        """Raises `ValueError` for anything that `seal` did not make, to the letter."""
        ...


def digest(arguments: Raw | UnsetType | dict[str, str] | None) -> str:
    """Return a digest of a request's arguments that does not depend on spacing or the order of members."""
    value: Any = msgspec.json.decode(arguments) if isinstance(arguments, Raw) else arguments
    canonical = b"" if not value or value is msgspec.UNSET else msgspec.json.encode(value, order="sorted")
    return base64.urlsafe_b64encode(hashlib.sha256(canonical).digest()[:18]).decode()


def seal_state(codec: RequestStateCodec, claims: Claims) -> str:
    """Make a ``requestState``."""
    return codec.seal(msgspec.json.encode(claims))


def open_state(
    codec: RequestStateCodec, state: str, *, method: str, target: str, digest: str, principal: str | None, now: float
) -> dict[str, Raw]:
    """Return the answers in a state.

    Raises:
        RemoteProtocolError: -32602, with one text whatever is wrong: it is not ours, was changed, has expired, or
            belongs to another request or another principal.
    """
    try:
        claims = msgspec.json.decode(codec.open(state), type=Claims)
    except (ValueError, msgspec.DecodeError):
        raise RemoteProtocolError(_REFUSAL, code=INVALID_PARAMS) from None
    expected = (method, target, digest, principal)
    if (claims.method, claims.target, claims.digest, claims.principal) != expected or claims.expires <= now:
        raise RemoteProtocolError(_REFUSAL, code=INVALID_PARAMS)
    return claims.answers


class HMACCodec:
    """Signed with HMAC-SHA256 and readable by the client. Needs nothing but the standard library.

    Args:
        keys: The first signs, all are accepted, so that keys can be changed while states are under way.
    """

    def __init__(self, keys: Sequence[bytes]) -> None:
        if not keys or any(len(key) < 16 for key in keys):
            raise ValueError("give at least one key of at least 16 bytes")
        self._keys = tuple(keys)

    def seal(self, data: bytes) -> str:
        return f"h1.{_text(data)}.{_text(self._sign(self._keys[0], data))}"

    def open(self, state: str) -> bytes:
        kind, _, rest = state.partition(".")
        payload, _, signature = rest.partition(".")
        if kind != "h1":
            raise ValueError("not a signed state")
        data, given = _bytes(payload), _bytes(signature)
        if not any(hmac.compare_digest(given, self._sign(key, data)) for key in self._keys):
            raise ValueError("the signature does not match")
        return data

    @staticmethod
    def _sign(key: bytes, data: bytes) -> bytes:
        return hmac.digest(key, b"mcpcore requestState h1\0" + data, "sha256")


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    """Decode base64 strictly: lenient decoders skip what does not fit, and then two texts would be one state."""
    try:
        data = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error):
        raise ValueError("not base64") from None
    if _text(data) != text:
        raise ValueError("not canonical base64")
    return data
