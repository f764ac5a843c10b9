"""Elicitation forms: schemas that a client can draw as one form, and the replies to them.

A form is flat: texts, numbers, yes or no, a choice of texts and, since 2025-11-25, several choices
(client/elicitation, "Requested Schema"). It comes from a record type, or is a JSON Schema that somebody wrote. What a
form cannot say, such as a pattern, is not published and enforced all the same.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, cast

from mcpcore.exceptions import DefinitionError
from mcpcore.providers.definitions import Schema
from mcpcore.providers.schema import InvalidValue, ValueCodec, value_codec
from mcpcore.providers.validation import Validator
from mcpcore.versions import LATEST_MODERN

__all__ = ["form_schema", "form_value"]

_NOTES: Final = ("title", "description", "default")
_KEYWORDS: Final[dict[str, tuple[str, ...]]] = {
    "string": (*_NOTES, "minLength", "maxLength", "format", "enum", "enumNames", "oneOf"),
    "integer": (*_NOTES, "minimum", "maximum"),
    "number": (*_NOTES, "minimum", "maximum"),
    "boolean": _NOTES,
    "array": (*_NOTES, "minItems", "maxItems", "items"),
}
_FORMATS: Final = ("email", "uri", "date", "date-time")
_FIRST_VERSION: Final = "2025-06-18"  # knows no defaults but those of booleans, no several choices, other titled ones
_FLAT: Final = "use str, int, float, bool, a date, an Enum or Literal of texts, or a list of those choices"


def form_schema(tp: Any, *, version: str = LATEST_MODERN) -> dict[str, Any]:
    """Return ``requestedSchema`` for a record type, or for a JSON Schema.

    Args:
        tp: A Struct, dataclass, TypedDict, NamedTuple, attrs class or pydantic model of flat fields; or a schema of an
            object of such fields.
        version: The client's revision.

    Raises:
        DefinitionError: It is neither, or a field is not flat; the message names the field.
    """
    return _form(tp, version).published


def form_value(tp: Any, content: dict[str, Any] | None) -> Any:
    """Return an instance of ``tp`` from the ``content`` of an accepted form; for a JSON Schema, the content.

    Raises:
        InvalidValue: It does not fit the form.
    """
    return _form(tp, LATEST_MODERN).read(content or {})


def _form(tp: Any, version: str) -> "_SchemaForm | _RecordForm":
    return _SchemaForm(cast(Mapping[str, Any], tp), version) if isinstance(tp, Mapping) else _record_form(tp, version)


class _SchemaForm:
    """A JSON Schema as a form."""

    def __init__(self, schema: Mapping[str, Any], version: str) -> None:
        self._validator = Validator(dict(schema), formats=True)
        if schema.get("type") != "object" or "properties" not in schema:
            raise DefinitionError("a form is a JSON Schema of type object with properties")
        fields: dict[str, Any] = schema["properties"]
        self.published: Schema = {
            "type": "object",
            "properties": {name: _flat(name, field, version) for name, field in fields.items()},
        }
        if required := schema.get("required"):
            for name in required:
                if name not in fields:
                    raise DefinitionError(f"field {name!r} is required and not among the properties of the form")
            self.published["required"] = required

    def read(self, content: dict[str, Any]) -> dict[str, Any]:
        if errors := self._validator.errors(content, show_values=True):
            raise InvalidValue(errors)
        return content


class _RecordForm:
    """A record type as a form. Clients leave a field out to say nothing, so one that may be None may be absent."""

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
def _record_form(tp: Any, version: str) -> _RecordForm:
    return _RecordForm(tp, version)


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


def _members(schema: Any) -> Schema:
    """Return the keywords of a schema. JSON Schema has schemas without any: true and false."""
    return cast(Schema, schema) if isinstance(schema, dict) else {}


def _flat(name: str, schema: Any, version: str) -> Schema:
    """Return the part of a field's schema that forms have."""
    schema = _members(schema)
    kind = schema.get("type")
    keywords = _KEYWORDS.get(kind) if isinstance(kind, str) else None
    if keywords is None:
        raise DefinitionError(f"field {name!r} is not flat; {_FLAT}")
    field: Schema = {"type": kind, **{key: value for key, value in schema.items() if key in keywords}}
    if kind == "array":
        choices = _choices(name, schema.get("items", {}), "anyOf")
        if not choices or version <= _FIRST_VERSION:
            raise DefinitionError(f"field {name!r} is a list, and not one of choices that {version} knows; {_FLAT}")
        field["items"] = choices if "anyOf" in choices else {"type": "string", **choices}
    else:
        field |= _choices(name, schema, "oneOf")
    if field.get("format", "date") not in _FORMATS:
        del field["format"]
    if version <= _FIRST_VERSION:
        if kind != "boolean":
            field.pop("default", None)
        if titled := field.pop("oneOf", None):
            field |= {"enum": [each["const"] for each in titled], "enumNames": [each["title"] for each in titled]}
    return field


def _choices(name: str, schema: Any, titled: str) -> Schema:
    """Return the keyword that offers choices of texts, plain ones or ones with titles; nothing where there are none."""
    schema = _members(schema)
    plain: list[Any] = schema.get("enum", [])
    with_titles = [
        {"const": each.get("const"), "title": each.get("title")} for each in map(_members, schema.get(titled, []))
    ]
    texts = [text for each in with_titles for text in each.values()]
    if not all(isinstance(text, str) for text in plain + texts):
        raise DefinitionError(f"field {name!r} is a choice of other things than texts; {_FLAT}")
    return {"enum": plain} if plain else {titled: with_titles} if with_titles else {}
