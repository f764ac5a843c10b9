"""pydantic's models and types, by pydantic's own schema, validation and serialisation.

pydantic is never imported here on its own account: a type of pydantic's can only come from code that imported it.
"""

import sys
from collections.abc import Iterable, Iterator
from functools import cache
from math import isfinite
from typing import Any, Final, Literal, get_args
from weakref import WeakKeyDictionary

import msgspec
from msgspec import UNSET

from mcpcore.exceptions import DefinitionError
from mcpcore.providers.class_fields import class_shape
from mcpcore.providers.definitions import Definitions, Schema, change_schemas
from mcpcore.providers.leaf_nodes import AnyNode
from mcpcore.providers.markers import Param, is_secret
from mcpcore.providers.nodes import Mismatch, Node, Path

__all__ = ["PydanticNode", "claims", "claims_metadata", "secrets", "serialise"]

_HOOKS = ("__get_pydantic_core_schema__", "__pydantic_validator__")


def claims(tp: Any) -> bool:
    """Return whether ``tp`` is a class that pydantic knows how to read and others do not."""
    return "pydantic" in sys.modules and isinstance(tp, type) and any(hasattr(tp, hook) for hook in _HOOKS)


def claims_metadata(metadata: Iterable[Any]) -> bool:
    """Return whether an `Annotated` holds validators or serialisers of pydantic's."""
    return "pydantic" in sys.modules and any(hasattr(each, _HOOKS[0]) for each in metadata)


def secrets(tp: Any) -> set[str]:
    """Return the names in JSON of the fields of a model, and of models inside it, that are marked as secret."""
    found: set[str] = set()
    seen: list[Any] = []
    waiting: list[Any] = [tp]
    while waiting:
        tp = waiting.pop()
        if any(tp is each for each in seen):
            continue
        seen.append(tp)
        waiting += get_args(tp)
        for name, field in getattr(tp, "__pydantic_fields__", {}).items():
            own = any(isinstance(mark, Param) and mark.secret for mark in field.metadata)
            if own or is_secret(field.annotation):
                found.add(field.alias or name)
            waiting.append(field.annotation)
    return found


def serialise(value: Any, *, omit_none: bool) -> Any:
    """Return an instance of a class that `claims` is true of as builtins. Raises ValueError."""
    # Values that do not fit their fields are found when the result is validated; a warning would help nobody.
    written = _adapter(value.__class__).dump_python(value, mode="json", by_alias=True, warnings=False)
    return _without_none(value, written) if omit_none else written


def _without_none(value: Any, written: Any) -> Any:
    """Return ``written`` without members of records that are None and not required. pydantic's own ``exclude_none`` drops
    what the schema requires, too."""
    outer, inner = value.__class__, written.__class__
    if inner is list and outer in (list, tuple):
        return [_without_none(*pair) for pair in zip(value, written, strict=False)]
    if inner is not dict:
        return written
    if outer is dict:
        return {name: _without_none(each, written[name]) for name, each in zip(written, value.values(), strict=False)}
    if getattr(value, "__pydantic_root_model__", False):
        return _without_none(value.root, written)
    for attribute, key, required in _members(value):
        if key not in written:
            continue
        if written[key] is None and not required:
            del written[key]
        else:
            written[key] = _without_none(getattr(value, attribute), written[key])
    return written


def _members(value: Any) -> Iterator[tuple[str, str, bool]]:
    """Yield attribute, name in JSON, and whether it is always there, of the fields of a model or a dataclass."""
    fields = getattr(value, "__pydantic_fields__", None)
    if fields is None:
        shape = class_shape(value.__class__)
        yield from ((each.attribute, each.alias, each.required) for each in (shape.fields if shape else ()))
        return
    config: Any = getattr(value, "model_config", None) or getattr(value, "__pydantic_config__", None) or {}
    always = config.get("json_schema_serialization_defaults_required", False)
    for name, field in fields.items():
        yield name, field.serialization_alias or name, always or field.is_required()


class PydanticNode(Node):
    """A type that pydantic reads."""

    exact = False
    plain = False

    def __init__(self, tp: Any, mode: Literal["input", "output"], *, closed: bool) -> None:
        super().__init__()
        import pydantic

        self._error = pydantic.ValidationError
        self._adapter = pydantic.TypeAdapter(tp)
        try:
            schema: Schema = self._adapter.json_schema(
                mode="validation" if mode == "input" else "serialization", schema_generator=_generator()
            )
        except (pydantic.PydanticUserError, ValueError) as exc:
            raise DefinitionError(f"pydantic has no JSON Schema for {tp!r}: {exc}") from None
        definitions = schema.pop("$defs", {})
        if isinstance(tp, type) and "properties" in schema:
            # Under its name, so that a model met alone and the same model met inside another become one definition.
            definitions[tp.__name__] = schema
            schema = {"$ref": f"#/$defs/{tp.__name__}"}
        whole = {**schema, "$defs": definitions}
        self._schema = change_schemas(whole, lambda each: _tidied(each, closed))
        named = definitions.get(schema.get("$ref", "").rpartition("/")[2], schema)
        self.types = frozenset([named["type"]] if isinstance(named.get("type"), str) else AnyNode.types)

    def schema(self, definitions: Definitions) -> Schema:
        return definitions.adopt(self._schema)

    def decode(self, value: Any, path: Path) -> Any:
        try:
            return self._adapter.validate_json(msgspec.json.encode(value))
        except self._error as exc:
            first = exc.errors(include_url=False, include_context=False, include_input=False)[0]
            raise Mismatch((*path, *first["loc"]), first["msg"], value) from None


@cache
def _generator() -> Any:
    from pydantic.json_schema import GenerateJsonSchema

    class Generator(GenerateJsonSchema):
        """Leaves out a default that JSON has not, as is done for other records, and does not warn about it."""

        ignored_warning_kinds = {*GenerateJsonSchema.ignored_warning_kinds, "non-serializable-default"}  # noqa: RUF012

    return Generator


def _tidied(schema: Schema, closed: bool) -> Schema:
    """Return ``schema`` without what the other kinds of records do not publish either: made-up titles, a default that is
    null or that JSON has not, keywords that JSON Schema does not have."""
    tidied = {key: value for key, value in schema.items() if key not in ("title", "discriminator")}
    default = tidied.get("default", UNSET)
    if default is None or (isinstance(default, float) and not isfinite(default)):
        del tidied["default"]
    if closed and "properties" in tidied:
        tidied.setdefault("additionalProperties", False)
    return tidied


_ADAPTERS: Final[WeakKeyDictionary[type, Any]] = WeakKeyDictionary()


def _adapter(cls: type) -> Any:
    adapter = _ADAPTERS.get(cls)
    if adapter is None:
        import pydantic

        adapter = _ADAPTERS[cls] = pydantic.TypeAdapter(cls)
    return adapter
