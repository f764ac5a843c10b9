"""Elicitation forms: schemas that a client can draw as one form, and the replies to them.

A form is flat: texts, numbers, yes or no, a choice of texts and, since 2025-11-25, several choices
(client/elicitation, "Requested Schema"). A client leaves a field out to say nothing, so a field that may be None is
published as one that may be absent.
"""

from functools import lru_cache
from typing import Any, Final

from mcpcore.exceptions import DefinitionError
from mcpcore.providers.definitions import Schema
from mcpcore.providers.schema import InvalidValue, ValueCodec, value_codec
from mcpcore.providers.validation import Validator
from mcpcore.versions import LATEST_MODERN

__all__ = ["form_schema", "form_value"]

_NOTES: Final = ("title", "description", "default")
_KEYWORDS: Final[dict[str, tuple[str, ...]]] = {
    "string": (*_NOTES, "minLength", "maxLength", "format", "enum", "oneOf"),
    "integer": (*_NOTES, "minimum", "maximum"),
    "number": (*_NOTES, "minimum", "maximum"),
    "boolean": _NOTES,
    "array": (*_NOTES, "minItems", "maxItems", "items"),
}
_FORMATS: Final = ("email", "uri", "date", "date-time")
_FIRST_VERSION: Final = "2025-06-18"  # knows no defaults but those of booleans, and no several choices
_FLAT: Final = "use str, int, float, bool, a date, an Enum or Literal of texts, or a list of those choices"


def form_schema(tp: Any, *, version: str = LATEST_MODERN) -> dict[str, Any]:
    """Return ``requestedSchema`` for a record type.

    Args:
        tp: A Struct, dataclass, TypedDict, NamedTuple, attrs class or pydantic model of flat fields.
        version: The client's revision.

    Raises:
        DefinitionError: It is no record, or a field is not flat; the message names the field.
    """
    return _form(tp, version).published


def form_value(tp: Any, content: dict[str, Any] | None) -> Any:
    """Return an instance of ``tp`` from the ``content`` of an accepted form.

    Raises:
        InvalidValue: It does not fit the form.
    """
    return _form(tp, LATEST_MODERN).read(content or {})


class _Form:
    """One record type as a form, with what the form leaves unsaid still enforced."""

    def __init__(self, tp: Any, version: str) -> None:
        self._codec: ValueCodec = value_codec(tp, mode="input")
        schema = self._codec.schema
        if schema.get("type") != "object" or "properties" not in schema:
            raise DefinitionError(f"{tp!r} is no form; give a Struct, dataclass or other record of flat fields")
        definitions: dict[str, Schema] = schema.get("$defs", {})
        required = set(schema.get("required", ()))
        self._nullable: set[str] = set()
        strict: dict[str, Schema] = {}
        published: dict[str, Schema] = {}
        for name, each in schema["properties"].items():
            field, nullable = _without_null(each, definitions)
            if nullable:
                self._nullable.add(name)
            strict[name] = field
            published[name] = _flat(name, field, version)
        self._absent = self._nullable & required  # the constructor wants them, the form may leave them out
        named = [name for name in strict if name in required - self._nullable]
        self.published: Schema = {"type": "object", "properties": published}
        if named:
            self.published["required"] = named
        whole = {"type": "object", "properties": strict, "required": named, "additionalProperties": False}
        self._strict = whole | ({"$defs": definitions} if definitions else {})
        self._validator: Validator | None = None

    def read(self, content: dict[str, Any]) -> Any:
        # Some clients send null for a field that was left empty.
        given = {name: value for name, value in content.items() if value is not None or name not in self._nullable}
        if self._validator is None:
            self._validator = Validator(self._strict, formats=True)
        if errors := self._validator.errors(given, show_values=True):
            raise InvalidValue(errors)
        return self._codec.decode(given | dict.fromkeys(self._absent - given.keys()))


@lru_cache(maxsize=256)
def _form(tp: Any, version: str) -> _Form:
    return _Form(tp, version)


def _without_null(schema: Schema, definitions: dict[str, Schema]) -> tuple[Schema, bool]:
    """Return a field's schema with references followed and null taken out, and whether null was in it."""
    while "$ref" in schema:
        named = definitions[schema["$ref"].rpartition("/")[2]]
        schema = {**named, **{key: value for key, value in schema.items() if key != "$ref"}}
    if isinstance(schema.get("type"), list) and "null" in schema["type"]:
        types = [name for name in schema["type"] if name != "null"]
        return {**schema, "type": types[0] if len(types) == 1 else types}, True
    branches = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if len(branches) == 1:
        rest = {key: value for key, value in schema.items() if key != "anyOf"}
        return {**_without_null(branches[0], definitions)[0], **rest}, True
    return schema, False


def _flat(name: str, schema: Schema, version: str) -> Schema:
    """Return the part of a field's schema that forms have."""
    kind = schema.get("type")
    keywords = _KEYWORDS.get(kind) if isinstance(kind, str) else None
    if keywords is None:
        raise DefinitionError(f"field {name!r} is not flat; {_FLAT}")
    options: list[Any] = schema.get("enum", [])
    if kind == "array":
        items: Schema = schema.get("items", {})
        options = items.get("enum", [])
        if not options or version <= _FIRST_VERSION:
            raise DefinitionError(f"field {name!r} is a list, and not one of choices that {version} knows; {_FLAT}")
        schema = {**schema, "items": {"type": "string", "enum": options}}
    if not all(isinstance(option, str) for option in options):
        raise DefinitionError(f"field {name!r} is a choice of other things than texts; {_FLAT}")
    field = {"type": kind, **{key: value for key, value in schema.items() if key in keywords}}
    if field.get("format", "date") not in _FORMATS:
        del field["format"]
    if version <= _FIRST_VERSION and kind != "boolean":
        field.pop("default", None)
    return field
