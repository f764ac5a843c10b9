"""The published schemas, and validators for single definitions of them."""

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

import jsonschema_rs

__all__ = ["EXAMPLES", "definitions", "errors", "method_names", "strict_errors"]

_FOLDER: Final = Path(__file__).parents[1] / "schemas"
EXAMPLES: Final = _FOLDER / "examples"


@cache
def _schema(version: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((_FOLDER / f"{version}.json").read_text(encoding="utf-8"))
    return schema


def definitions(version: str) -> dict[str, Any]:
    """Return the definitions of a revision by name."""
    schema = _schema(version)
    found: dict[str, Any] = schema.get("$defs") or schema["definitions"]
    return found


def method_names(version: str, union: str) -> set[str]:
    """Return the methods in a union such as ``ClientRequest``; none where the revision has no such union."""
    definition = definitions(version).get(union)
    if definition is None:
        return set()
    members = [each["$ref"].rsplit("/", 1)[1] for each in definition.get("anyOf", [])] or [union]
    known = definitions(version)
    return {known[member]["properties"]["method"]["const"] for member in members}


def errors(version: str, name: str, value: Any) -> list[str]:
    """Return what a definition of a revision has against ``value``."""
    return [f"{error.instance_path}: {error.message}" for error in _validator(version, name).iter_errors(value)]


def strict_errors(version: str, name: str, value: Any) -> list[str]:
    """Like `errors`, and against members that the definition does not name, where it does not ask for others."""
    return [f"{error.instance_path}: {error.message}" for error in _validator(version, name, True).iter_errors(value)]


@cache
def _validator(version: str, name: str, strict: bool = False) -> jsonschema_rs.Validator:
    schema = _schema(version)
    key = "$defs" if "$defs" in schema else "definitions"
    known = {each: _closed(body, each) for each, body in schema[key].items()} if strict else schema[key]
    whole = {"$schema": schema["$schema"], key: known, "$ref": f"#/{key}/{name}"}
    return jsonschema_rs.validator_for(whole)


def _closed(schema: Any, name: str) -> Any:
    """Forbid unnamed members wherever members are named and nothing is said about others. ``_meta`` stays open."""
    if isinstance(schema, list):
        return [_closed(each, name) for each in schema]
    if not isinstance(schema, dict) or name == "_meta" or name.endswith("MetaObject"):
        return schema
    closed = {key: _closed(value, key) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        closed.setdefault("additionalProperties", False)
        if name == "params":
            closed["properties"].setdefault("_meta", {})
    return closed
