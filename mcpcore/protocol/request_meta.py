"""What a request says about itself: the members of its ``_meta`` that the protocol reads."""

from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct

from mcpcore.protocol import codec
from mcpcore.protocol.events import Caller
from mcpcore.protocol.fitting import decoder_of
from mcpcore.types.lifecycle import ClientCapabilities
from mcpcore.types.meta import CLIENT_CAPABILITIES, PROTOCOL_VERSION, RequestMetaObject
from mcpcore.versions import LATEST_MODERN, Era

__all__ = ["NO_CAPABILITIES", "RequestMetaReader"]

NO_CAPABILITIES: Final = ClientCapabilities()
_NO_META: Final = RequestMetaObject()
_REMEMBERED: Final = 4096  # bytes of a ``_meta`` that are worth keeping for comparison with the next

_decode: Final = decoder_of(RequestMetaObject)


class _Signs(Struct):
    """What tells the era of a request."""

    version: Any = msgspec.field(name=PROTOCOL_VERSION, default=None)
    capabilities: Any = msgspec.field(name=CLIENT_CAPABILITIES, default=None)


class _Signed(Struct):
    meta: _Signs | None = msgspec.field(name="_meta", default=None)


_NO_SIGNS: Final = _Signs()
_decode_signs: Final = decoder_of(_Signed)


class RequestMetaReader:
    """Reads ``_meta``. A modern client sends the same bytes each time, so the last ones are remembered.

    Nothing is inferred from an earlier request by that: equal bytes have equal meaning, whoever sends them. Connections
    share it, also those of several threads.
    """

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: tuple[bytes, RequestMetaObject, Caller | None] = (b"", _NO_META, None)

    def read(self, raw: Any) -> RequestMetaObject:
        """Decode the reserved members.

        Args:
            raw: A `Raw`, or UNSET.

        Raises:
            msgspec.ValidationError: They are malformed.
        """
        if raw is UNSET:
            return _NO_META
        data, last = bytes(raw), self._last
        if data == last[0]:
            return last[1]
        if data == b"null":
            return _NO_META
        meta: RequestMetaObject = _decode(data)
        if len(data) <= _REMEMBERED:
            self._last = (data, meta, None)
        return meta

    def read_signs(self, params: Any) -> RequestMetaObject:
        """Read what tells the era, of parameters that do not decode. Values of the wrong type count as good ones here."""
        try:
            meta = _decode_signs(params).meta or _NO_SIGNS
        except codec.UNDECODABLE:
            return _NO_META
        version = meta.version if meta.version is None or isinstance(meta.version, str) else LATEST_MODERN
        capabilities = None if meta.capabilities is None else NO_CAPABILITIES
        return RequestMetaObject(protocol_version=version, client_capabilities=capabilities)

    def caller_of(self, meta: RequestMetaObject) -> Caller:
        """Return who asks, by what was read last."""
        data, known, caller = self._last
        if known is meta and caller is not None:
            return caller
        capabilities = meta.client_capabilities or NO_CAPABILITIES
        caller = Caller(meta.client_info, capabilities, meta.protocol_version or "", Era.MODERN)
        if known is meta:
            self._last = (data, meta, caller)
        return caller
