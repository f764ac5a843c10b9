"""Typed objects to JSON in the shape of a revision, and back, as far as it can be understood."""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from mcpcore.protocol import codec
from mcpcore.types._base import Object
from mcpcore.types.content import UnknownContent
from mcpcore.types.methods import Method
from mcpcore.types.revisions import fitter

__all__ = ["decode_leniently", "decoder_of", "encode_fitted", "fitted", "list_field", "take_meta", "without"]

_decoder_of: dict[type, Callable[[Any], Any]] = {}


def decoder_of(kind: type) -> Callable[[Any], Any]:
    """Return the function that decodes JSON into ``kind``, built once."""
    decoder = _decoder_of.get(kind)
    if decoder is None:
        decoder = _decoder_of[kind] = msgspec.json.Decoder(kind).decode
    return decoder


def encode_fitted(value: Object | Raw, version: str) -> bytes:
    """Encode ``value`` in the shape of ``version``."""
    if type(value) is Raw:
        return bytes(value)
    fit = fitter(type(value), version)
    return codec.encode(value if fit is None else fit(value))


def fitted(result: Object | Raw, version: str) -> bytes | memoryview:
    """Encode ``result`` in the shape of ``version``. What is encoded already is not copied for it."""
    return memoryview(result) if type(result) is Raw else encode_fitted(result, version)


def take_meta(value: Object) -> tuple[Object, dict[str, Any]]:
    """Return ``value`` without its ``_meta``, and the members of that."""
    meta: Any = getattr(value, "meta", None)
    if meta is None or meta is UNSET:
        return value, {}
    if isinstance(meta, Raw):
        members = msgspec.json.decode(meta, type=dict[str, Any] | None)
        return msgspec.structs.replace(value, meta=UNSET), members or {}
    return msgspec.structs.replace(value, meta=None), meta


def without(value: Object, *members: str) -> Object:
    """Return ``value`` with these members absent, where it has them."""
    changes = {name: None for name in members if getattr(value, name, None) is not None}
    return msgspec.structs.replace(value, **changes) if changes else value


def list_field(method: Method) -> msgspec.structs.FieldInfo:
    """Return the member of a method's result that holds its list."""
    assert method.result is not None
    return next(field for field in msgspec.structs.fields(method.result) if field.name == method.items)


def decode_leniently(method: Method, raw: Raw) -> tuple[Any, tuple[str, ...]]:
    """Decode a result of which parts may be broken: keep the good items of its list and tell about the rest.

    Content of a type that is not known is kept as it came. Members that are null count as absent, and the list is
    empty when it is absent: some languages write an empty list as null.

    Raises:
        msgspec.DecodeError: It is broken elsewhere.
    """
    kind = method.result
    assert kind is not None
    given: dict[str, Raw] = msgspec.json.decode(raw, type=dict[str, Raw])
    members = {name: value for name, value in given.items() if not codec.absent(value)}
    if method.items is None:
        return decoder_of(kind)(codec.encode(members)), ()
    field = list_field(method)
    items: list[Raw] = msgspec.json.decode(members.pop(field.encode_name, b"[]"), type=list[Raw])
    item_decoder = msgspec.json.Decoder(field.type).decode
    kept: list[Any] = []
    skipped: list[str] = []
    for index, item in enumerate(items):
        try:
            kept += item_decoder(b"".join((b"[", item, b"]")))
        except codec.UNDECODABLE as error:
            unknown = UnknownContent.found(item) if field.encode_name == "content" else None
            if unknown is not None:
                kept.append(unknown)
            else:
                skipped.append(f"{field.encode_name}[{index}]: {error}")
    rest = codec.encode({**members, field.encode_name: []})
    result = decoder_of(kind)(rest)
    setattr(result, method.items, kept)
    return result, tuple(skipped)
