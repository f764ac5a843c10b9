"""Named parts of a schema: every record is written once under a name, then folded to the form that clients read best.

While a schema is made each record becomes ``{"$ref": "#/$defs/Name"}``. `fold` then puts a definition where it is
used, unless several places share it or it contains itself: those stay in ``$defs``. The root is never a reference,
because the protocol wants to see ``"type": "object"`` there.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["Definitions", "Schema", "change_schemas", "fold"]

Schema = dict[str, Any]

# Where JSON Schema 2020-12 keeps schemas; everything else (`default`, `enum`, `examples`, …) is data and not touched.
_ONE = (
    *("items", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else"),
    *("unevaluatedItems", "unevaluatedProperties"),
)
_LIST = ("prefixItems", "anyOf", "oneOf", "allOf")
_MAP = ("properties", "patternProperties", "dependentSchemas")
_PREFIX = "#/$defs/"


class Definitions:
    """The definitions of one schema. Different types of one name become ``Name``, ``Name_2``, …; equal ones are one."""

    def __init__(self) -> None:
        self.schemas: dict[str, Schema] = {}
        self._names: dict[int, str] = {}
        self._adopted: dict[str, list[tuple[Schema, str]]] = {}

    def reference(self, owner: object, name: str, build: Callable[[], Schema]) -> Schema:
        """Return a reference to the definition of ``owner``, which ``build`` makes at its first use."""
        if id(owner) not in self._names:
            taken = self._names[id(owner)] = self._free(name)
            self.schemas[taken] = {}  # holds the name while `build` meets the owner again
            self.schemas[taken] = build()
        return {"$ref": _PREFIX + self._names[id(owner)]}

    def adopt(self, schema: Schema) -> Schema:
        """Take over the ``$defs`` of a schema made elsewhere; return it with its references turned to ours."""
        foreign: dict[str, Schema] = schema.get("$defs", {})
        names: dict[str, str] = {}
        for name, body in foreign.items():
            known = self._adopted.setdefault(name, [])
            shared = next((ours for theirs, ours in known if theirs == body), None)
            if shared is None:
                shared = self._free(name)
                self.schemas[shared] = {}
                known.append((body, shared))
            names[name] = shared
        turned = {_PREFIX + name: _PREFIX + ours for name, ours in names.items()}
        for name, body in foreign.items():
            self.schemas[names[name]] = _turn(body, turned)
        return _turn({key: value for key, value in schema.items() if key != "$defs"}, turned)

    def _free(self, name: str) -> str:
        number, free = 1, name
        while free in self.schemas:
            number += 1
            free = f"{name}_{number}"
        return free


def fold(schema: Schema, definitions: dict[str, Schema]) -> Schema:
    """Return ``schema`` as one document with only those ``definitions`` in ``$defs`` that are shared or recursive."""
    while "$ref" in schema:
        schema = {**definitions[_target(schema)], **{key: value for key, value in schema.items() if key != "$ref"}}
    uses: Counter[str] = Counter()
    recursive: set[str] = set()
    _count(schema, definitions, uses, recursive, ())
    kept = {name for name, count in uses.items() if count > 1} | recursive
    root = _inline(schema, definitions, kept)
    if kept:
        root["$defs"] = {name: _inline(definitions[name], definitions, kept) for name in definitions if name in kept}
    return root


def change_schemas(schema: Schema, change: Callable[[Schema], Schema]) -> Schema:
    """Return ``schema`` with ``change`` applied to it and to every schema inside it, ``$defs`` too."""
    changed = change(_map(schema, lambda each: change_schemas(each, change)))
    if "$defs" in changed:
        changed["$defs"] = {name: change_schemas(body, change) for name, body in changed["$defs"].items()}
    return changed


def _target(schema: Schema) -> str:
    return str(schema["$ref"]).removeprefix(_PREFIX)


def _children(schema: Schema) -> Iterator[Schema]:
    for key in _ONE:
        if isinstance(schema.get(key), dict):
            yield schema[key]
    for key in _LIST:
        yield from (each for each in schema.get(key, ()) if isinstance(each, dict))
    for key in _MAP:
        yield from (each for each in schema.get(key, {}).values() if isinstance(each, dict))


def _map(schema: Schema, change: Callable[[Schema], Schema]) -> Schema:
    """Return a copy of ``schema`` whose direct subschemas went through ``change``."""

    def one(each: Schema | bool) -> Schema | bool:
        return each if isinstance(each, bool) else change(each)

    changed = dict(schema)
    for key, value in schema.items():
        if key in _ONE:
            changed[key] = one(value)
        elif key in _LIST:
            changed[key] = [one(each) for each in value]
        elif key in _MAP:
            changed[key] = {name: one(each) for name, each in value.items()}
    return changed


def _turn(schema: Schema, names: dict[str, str]) -> Schema:
    return change_schemas(
        schema, lambda each: {**each, "$ref": names.get(each["$ref"], each["$ref"])} if "$ref" in each else each
    )


def _count(
    schema: Schema,
    definitions: dict[str, Schema],
    uses: Counter[str],
    recursive: set[str],
    inside: tuple[str, ...],
) -> None:
    if "$ref" in schema:
        name = _target(schema)
        uses[name] += 1
        if name in inside:
            recursive.add(name)
        if uses[name] == 1:
            _count(definitions[name], definitions, uses, recursive, (*inside, name))
    for child in _children(schema):
        _count(child, definitions, uses, recursive, inside)


def _inline(schema: Schema, definitions: dict[str, Schema], kept: set[str]) -> Schema:
    inlined = _map(schema, lambda each: _inline(each, definitions, kept))
    if "$ref" in inlined and (name := _target(inlined)) not in kept:
        del inlined["$ref"]
        return {**_inline(definitions[name], definitions, kept), **inlined}
    return inlined
