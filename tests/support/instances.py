"""Instances of wire types that nobody chose: with nothing optional, and with everything in every form."""

import itertools
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw
from msgspec import inspect as shape

from mcpcore.types import (
    CreateMessageResult,
    ElicitParams,
    ElicitResult,
    EmbeddedResource,
    ListRootsResult,
    ResourceContents,
    Root,
    TextContent,
)
from mcpcore.types._base import Object

__all__ = ["full", "minimal"]

_TEXTS: Final = {
    # by the name on the wire
    "uri": "file:///folder/a%20file.txt",
    "uriTemplate": "file:///{path}",
    "url": "https://example.com/visit",
    "websiteUrl": "https://example.com/",
    "src": "https://example.com/icon.png",
    "mimeType": "text/plain",
    "data": "AAECAw==",
    "lastModified": "2025-01-12T15:00:58Z",
    "protocolVersion": "2025-06-18",
}
_OBJECTS: Final[dict[str, dict[str, Any]]] = {
    "inputSchema": {"type": "object", "properties": {"a": {"type": "integer", "default": None}}},
    "outputSchema": {"type": "object", "properties": {"b": {"type": "string"}}},
    "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
    "structuredContent": {"null is": None, "list": [None, 1.5]},
    "content": {"name": "x", "age": 7, "tags": ["a"]},
}
_ANSWERS: Final = {
    "asked": ElicitResult("accept", {"name": "x"}),
    "sampled": CreateMessageResult("assistant", TextContent("Hello"), "model"),
    "roots": ListRootsResult([Root("file:///a")]),
}

# Types whose members depend on each other in ways that their annotations do not tell.
_CHOSEN: Final[dict[type, list[Any]]] = {
    ResourceContents: [
        ResourceContents("file:///a", "text/plain", text="text", meta={"k": None}),
        ResourceContents("file:///a", "image/png", blob="AAECAw==", meta={"k": None}),
    ],
    ElicitParams: [
        ElicitParams("Who?", mode="form", requested_schema=_OBJECTS["requestedSchema"]),
        ElicitParams("Go there", mode="url", url="https://example.com/visit", elicitation_id="e-1"),
    ],
    ElicitResult: [ElicitResult("accept", _OBJECTS["content"], meta={"k": None}), ElicitResult("decline")],
    EmbeddedResource: [EmbeddedResource(ResourceContents("file:///a", text=""), meta={"k": None})],
}


def minimal(kind: type[Any]) -> Any:
    """Return an instance of ``kind`` with what it cannot do without."""
    if kind is ResourceContents:
        return ResourceContents("file:///a", text="")
    if kind is ElicitParams:
        return ElicitParams("Who?", requested_schema=_OBJECTS["requestedSchema"])
    required = (field for field in _fields(kind) if field.required)
    return kind(**{field.name: _samples(field.type, field.encode_name, minimal_parts=True)[0] for field in required})


def full(kind: type[Any]) -> list[Any]:
    """Return instances of ``kind`` with every member, as many as it takes to show each form of each member once."""
    if kind in _CHOSEN:
        return _CHOSEN[kind]
    members = {field.name: _samples(field.type, field.encode_name) for field in _fields(kind)}
    if not members:
        return [kind()]
    count = max(len(forms) for forms in members.values())
    cycles = {name: itertools.cycle(forms) for name, forms in members.items()}
    return [kind(**{name: next(forms) for name, forms in cycles.items()}) for _ in range(count)]


def _fields(kind: type[Object]) -> tuple[shape.Field, ...]:
    info = shape.type_info(kind)
    assert isinstance(info, shape.StructType)
    return info.fields


def _samples(info: shape.Type, name: str, *, minimal_parts: bool = False) -> list[Any]:
    """Return one value for each form of a type."""
    match info:
        case shape.StructType(cls=cls):
            return [minimal(cls)] if minimal_parts else full(cls)
        case shape.UnionType(types=types):
            forms = [form for each in types for form in _samples(each, name, minimal_parts=minimal_parts)]
            return [form for form in forms if form is not None and form is not UNSET] or [None]
        case shape.ListType(item_type=item):
            return [[]] if minimal_parts else [_samples(item, name)]
        case shape.DictType(value_type=value):
            if name == "inputResponses":
                return [{key: Raw(msgspec.json.encode(answer)) for key, answer in _ANSWERS.items()}]
            return [{}] if minimal_parts and name not in _OBJECTS else [_OBJECTS.get(name) or _some(value)]
        case shape.StrType():
            return [_TEXTS.get(name, f"some {name}")]
        case shape.LiteralType(values=values):
            return list(values)
        case shape.IntType():
            return [7]
        case shape.FloatType():
            return [0.5]
        case shape.BoolType():
            return [True, False]
        case shape.RawType():
            return [Raw(b'{"com.example/x":{"y":null}}')]
        case shape.AnyType():
            return [_OBJECTS.get(name, {"any": [None, 1]})]
        case shape.NoneType() | shape.CustomType():
            return [None]
        case _:
            raise NotImplementedError(f"{info} of {name}")


def _some(value: shape.Type) -> dict[str, Any]:
    return {"key": "text"} if isinstance(value, shape.StrType) else {"com.example/key": {"inner": [1, "x"]}}
