"""What an HTTP server has to know about a message before it makes anything for it: its era, and what it opens."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpcore.types.meta import PROTOCOL_VERSION
from mcpcore.versions import LEGACY_VERSIONS, Era

__all__ = ["Inbound", "classify"]


class Inbound(Struct, frozen=True):
    """What a POST is.

    Args:
        era: By the rules of `ServerConnection`.
        initializes: It is ``initialize`` and opens a legacy session.
    """

    era: Era
    initializes: bool = False


class _Meta(Struct):
    version: Any = msgspec.field(name=PROTOCOL_VERSION, default=None)


class _Params(Struct):
    meta: _Meta | None = msgspec.field(name="_meta", default=None)


class _Peek(Struct):
    method: Any = None
    id: Raw | UnsetType = UNSET
    params: _Params | None = None


_peek = msgspec.json.Decoder(_Peek).decode


def classify(data: bytes, headers: Mapping[str, str]) -> Inbound:
    """Tell what a POST is. What cannot be read goes by its headers; the core will refuse it.

    Args:
        data: The body.
        headers: Header fields, names in lower case.
    """
    named = headers.get("mcp-protocol-version")
    era = Era.MODERN if named is not None and named.strip(" \t") not in LEGACY_VERSIONS else Era.LEGACY
    try:
        message = _peek(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return Inbound(era)
    params = message.params
    if params is not None and params.meta is not None and params.meta.version is not None:
        return Inbound(Era.MODERN)
    if message.method == "initialize":
        return Inbound(Era.LEGACY, initializes=message.id is not UNSET)
    return Inbound(era)
