"""Choosing how ``requestState`` is sealed: AES-256-GCM where `cryptography` is installed, HMAC-SHA256 elsewhere."""

import base64
import hashlib
import hmac
import os
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, Final

from mcpcore.exceptions import DefinitionError
from mcpcore.protocol.request_state import HMACCodec, RequestStateCodec

__all__ = ["SECRET_VARIABLE", "AESCodec", "state_codec"]

SECRET_VARIABLE: Final = "MCPCORE_SECRET"
"""The environment variable with the secret of servers that are given none."""


def state_codec(secret: str | bytes | Sequence[str | bytes] | None = None) -> RequestStateCodec:
    """Return the codec for a server.

    Args:
        secret: One secret or several; the first seals, all open. None takes ``MCPCORE_SECRET`` from the environment,
            and without that a random one, good for this process only.

    Raises:
        DefinitionError: A secret is empty, or there is none in the list.
    """
    if secret is None:
        secret = os.environ.get(SECRET_VARIABLE) or os.urandom(32)
    secrets: list[Any] = list(secret) if isinstance(secret, list | tuple) else [secret]
    if not secrets or not all(isinstance(each, str | bytes) and each for each in secrets):
        raise DefinitionError("secret=…: give a text or bytes that are not empty, or a list of them")
    keys = [_derive(each.encode() if isinstance(each, str) else each) for each in secrets]
    if find_spec("cryptography") is None:
        return HMACCodec(keys)
    return AESCodec(keys)


def _derive(secret: bytes) -> bytes:
    """HKDF-SHA256 (RFC 5869) with one block of output, so that any secret gives a key for this purpose only."""
    extracted = hmac.digest(b"\0" * 32, secret, "sha256")
    return hmac.digest(extracted, b"mcpcore requestState\x01", "sha256")


class AESCodec:
    """Sealed with AES-256-GCM: the client can neither change nor read it.

    Args:
        keys: 32 bytes each; the first seals, all open.
    """

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._keys = tuple(keys)
        self._ciphers: dict[bytes, Any] = {}

    def seal(self, data: bytes) -> str:
        key, nonce = self._keys[0], os.urandom(12)
        sealed = self._cipher(key).encrypt(nonce, data, b"a1")
        return "a1." + base64.urlsafe_b64encode(self._name(key) + nonce + sealed).decode()

    def open(self, state: str) -> bytes:
        from cryptography.exceptions import InvalidTag

        kind, _, text = state.partition(".")
        if kind != "a1":
            raise ValueError("not a sealed state")
        try:
            data = base64.b64decode(text.encode("ascii"), altchars=b"-_", validate=True)
        except UnicodeEncodeError:
            raise ValueError("not base64") from None
        if base64.urlsafe_b64encode(data).decode() != text:
            raise ValueError("not canonical base64")
        name, nonce, sealed = data[:4], data[4:16], data[16:]
        for key in self._keys:
            if self._name(key) == name:
                try:
                    plain: bytes = self._cipher(key).decrypt(nonce, sealed, b"a1")
                except InvalidTag:
                    continue
                return plain
        raise ValueError("sealed with another key, or changed")

    @staticmethod
    def _name(key: bytes) -> bytes:
        return hashlib.sha256(b"name" + key).digest()[:4]

    def _cipher(self, key: bytes) -> Any:
        if key not in self._ciphers:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM

            self._ciphers[key] = AESGCM(key)
        return self._ciphers[key]
