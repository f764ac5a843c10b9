"""What a tool's schema says about its arguments: how people see them, and what ``NAME=VALUE`` means."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from mcpcore.cli.loading import UsageError
from mcpcore.types.tools import Tool

__all__ = ["read_arguments", "signature"]


def signature(tool: Tool) -> str:
    """Write a tool as one would call it: ``add(a: integer, b: integer = 1)``."""
    required: Any = tool.input_schema.get("required") or ()
    parts: list[str] = []
    for name, schema in _members(tool.input_schema.get("properties")).items():
        default = _members(schema).get("default")
        if default is not None:
            parts.append(f"{name}: {_type(schema)} = {_compact(default)}")
        else:
            parts.append(f"{name}{'' if name in required else '?'}: {_type(schema)}")
    return f"{tool.name}({', '.join(parts)})"


def read_arguments(tool: Tool, pairs: list[str], whole: str | None) -> dict[str, Any]:
    """Put arguments together.

    Args:
        tool: What a value means depends on its schema.
        pairs: ``NAME=VALUE``.
        whole: A JSON object; the pairs are stronger.

    Raises:
        UsageError: They are not written like that.
    """
    arguments: dict[str, Any] = {}
    if whole is not None:
        try:
            arguments = msgspec.json.decode(whole, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise UsageError(f"--arguments: not a JSON object: {error}") from None
    properties = _members(tool.input_schema.get("properties"))
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator:
            raise UsageError(f"{pair!r}: write arguments as NAME=VALUE")
        arguments[name] = _value(value, properties.get(name))
    return arguments


def _value(text: str, schema: Any) -> Any:
    """Read a VALUE: as text where the schema takes text, else as JSON, else (the server will say so) as text."""
    takes = _json_types(schema)
    if "string" in takes and not (text == "null" and "null" in takes):
        return text
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _json_types(schema: Any) -> set[str]:
    """Return the JSON types that a schema names, in all its alternatives, as far as `_value` cares."""
    found = {name for name in ("string", "null") if name in _kinds(schema)}
    for value in _constants(schema):
        found |= {"string"} if isinstance(value, str) else {"null"} if value is None else set()
    return found.union(*map(_json_types, _choices(schema)))


def _type(schema: Any) -> str:
    """Say in a word or two what a schema takes. Null goes without saying: the argument can be left out."""
    if constants := _constants(schema):
        return "|".join(_compact(value) for value in constants if value is not None)
    names = [_items(schema) if kind == "array" else kind for kind in _kinds(schema) if kind != "null"]
    names += [name for name in map(_type, _choices(schema)) if name]
    return "|".join(names) or ("" if _kinds(schema) else "any")


def _items(schema: Any) -> str:
    items = _type(_members(schema).get("items"))
    return "array" if items == "any" else f"({items})[]" if "|" in items else f"{items}[]"


def _kinds(schema: Any) -> list[str]:
    kinds: Any = _members(schema).get("type", ())
    return [kinds] if isinstance(kinds, str) else list(kinds)


def _constants(schema: Any) -> list[Any]:
    members = _members(schema)
    return list(members["enum"]) if "enum" in members else [members["const"]] if "const" in members else []


def _choices(schema: Any) -> list[Any]:
    members = _members(schema)
    return [*members.get("anyOf", ()), *members.get("oneOf", ())]


def _members(schema: Any) -> Mapping[str, Any]:
    """The members of an object; a schema may also be true or false, and servers send anything."""
    return cast("Mapping[str, Any]", schema) if isinstance(schema, Mapping) else {}


def _compact(value: Any) -> str:
    return msgspec.json.encode(value).decode()
