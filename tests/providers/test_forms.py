"""Elicitation forms: flat schemas, and replies that are held to more than a form can say."""

import dataclasses
import datetime
import enum
import uuid
from decimal import Decimal
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pydantic
import pytest
from msgspec import Meta, Struct, defstruct

from mcpcore.exceptions import DefinitionError
from mcpcore.providers.forms import form_schema, form_value
from mcpcore.providers.schema import InvalidValue
from tests.support.schemas import strict_errors


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"


class Confirm(Struct):
    confirm: Annotated[bool, "Cancel this order for good"]


class Profile(Struct, rename="camel"):
    """Everything that a form can ask for."""

    full_name: Annotated[str, Meta(min_length=1, max_length=9, pattern="^[A-Z]")]
    mail: Annotated[str, Meta(extra_json_schema={"format": "email"})]
    age: Annotated[int, Meta(ge=0, lt=150)]
    colour: Colour
    several: list[Literal["a", "b"]]
    unique: set[Colour] = set()
    born: datetime.date | None = None
    note: str | None = None
    ratio: float = 0.5
    key: uuid.UUID | None = None
    price: Decimal = Decimal(1)
    wanted: bool = False


def test_a_form_is_what_its_type_says_and_nothing_else() -> None:
    assert form_schema(Confirm) == {
        "type": "object",
        "properties": {"confirm": {"type": "boolean", "description": "Cancel this order for good"}},
        "required": ["confirm"],
    }


def test_every_kind_of_field() -> None:
    choice = {"type": "string", "enum": ["red", "green"]}
    assert form_schema(Profile) == {
        "type": "object",
        "properties": {
            "fullName": {"type": "string", "minLength": 1, "maxLength": 9},
            "mail": {"type": "string", "format": "email"},
            "age": {"type": "integer", "minimum": 0},
            "colour": choice,
            "several": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
            "unique": {"type": "array", "items": choice},
            "born": {"type": "string", "format": "date"},
            "note": {"type": "string"},
            "ratio": {"type": "number", "default": 0.5},
            "key": {"type": "string"},
            "price": {"type": "string", "default": "1"},
            "wanted": {"type": "boolean", "default": False},
        },
        "required": ["fullName", "mail", "age", "colour", "several"],
    }


REPLY: dict[str, Any] = {"fullName": "Ann", "mail": "a@b.cd", "age": 5.0, "colour": "red", "several": ["a"]}


def test_a_reply_becomes_an_instance() -> None:
    assert form_value(Profile, {**REPLY, "unique": ["red"], "born": "2000-01-02", "price": "1.5"}) == Profile(
        "Ann", "a@b.cd", 5, Colour.RED, ["a"], {Colour.RED}, datetime.date(2000, 1, 2), price=Decimal("1.5")
    )
    assert form_value(Confirm, {"confirm": True}) == Confirm(True)


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"fullName": "ann"}, '/fullName: value "ann" must match the pattern ^[A-Z]'),
        ({"age": 150}, "/age: value 150 must be less than 150"),
        ({"age": None}, "/age: null found, integer expected"),
        ({"mail": "x"}, '/mail: value "x" is not a valid email'),
        ({"born": "2000-02-30"}, '/born: value "2000-02-30" is not a valid date'),
        ({"colour": "blue"}, '/colour: value "blue" must be one of [red, green]'),
        ({"several": ["c"]}, '/several/0: value "c" must be one of [a, b]'),
        ({"extra": 1}, "/extra: unexpected property"),
        ({"wanted": "yes"}, "/wanted: string found, boolean expected"),
        ({"key": "x"}, '/key: value "x" is not a valid uuid'),
    ],
)
def test_a_reply_that_does_not_fit_is_named(more: dict[str, Any], error: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        form_value(Profile, {**REPLY, **more})
    assert caught.value.errors == [error]


def test_an_empty_reply_lacks_what_is_required() -> None:
    nothing: dict[str, Any] = {}
    for content in (None, nothing):
        with pytest.raises(InvalidValue, match="/confirm: required property not found"):
            form_value(Confirm, content)


def test_a_field_that_may_be_none_may_be_absent_or_null() -> None:
    class Spare(Struct):
        needed: str | None
        other: int | None = 3

    assert form_schema(Spare) == {
        "type": "object",
        "properties": {"needed": {"type": "string"}, "other": {"type": "integer", "default": 3}},
    }
    assert form_value(Spare, {}) == Spare(None, 3)
    assert form_value(Spare, {"needed": None, "other": None}) == Spare(None, 3)


class Nested(Struct):
    inner: Confirm


class Tree(Struct):
    child: "Tree | None" = None


@pytest.mark.parametrize(
    ("tp", "field"),
    [
        (Nested, "inner"),
        (Tree, "child"),
        (defstruct("A", [("f", list[str])]), "f"),
        (defstruct("A", [("f", list[Confirm])]), "f"),
        (defstruct("A", [("f", dict[str, int])]), "f"),
        (defstruct("A", [("f", int | str)]), "f"),
        (defstruct("A", [("f", Literal[1, 2])]), "f"),
        (defstruct("A", [("f", list[Literal[1]])]), "f"),
        (defstruct("A", [("f", Literal["a", 1])]), "f"),
        (defstruct("A", [("f", Any)]), "f"),
        (defstruct("A", [("f", tuple[str, str])]), "f"),
    ],
)
def test_a_field_that_is_not_flat_is_named_before_anything_is_sent(tp: Any, field: str) -> None:
    with pytest.raises(DefinitionError, match=f"field '{field}'"):
        form_schema(tp)


@pytest.mark.parametrize("tp", [int, str, list[Confirm], dict[str, int], dict, None])
def test_only_a_record_is_a_form(tp: Any) -> None:
    with pytest.raises(DefinitionError, match="is no form"):
        form_schema(tp)


def test_the_first_revision_knows_less() -> None:
    schema = form_schema(defstruct("A", [("a", int, 3), ("b", bool, True)]), version="2025-06-18")
    assert schema["properties"] == {"a": {"type": "integer"}, "b": {"type": "boolean", "default": True}}
    with pytest.raises(DefinitionError, match="field 'several'"):
        form_schema(Profile, version="2025-06-18")


@dataclasses.dataclass
class Row:
    a: int
    b: str | None = None


class Key(TypedDict):
    a: int
    b: NotRequired[str]


class Model(pydantic.BaseModel):
    a: int = pydantic.Field(description="A", ge=1)
    colour: Colour = Colour.RED
    other: Colour | None = None
    mail: str | None = None


def test_every_kind_of_record_is_a_form() -> None:
    flat = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"]}
    assert form_schema(Row) == form_schema(Key) == flat
    assert form_value(Row, {"a": 1}) == Row(1) and form_value(Key, {"a": 1, "b": "x"}) == {"a": 1, "b": "x"}
    assert form_schema(Model)["properties"] == {
        "a": {"type": "integer", "description": "A", "minimum": 1},
        "colour": {"type": "string", "enum": ["red", "green"], "default": "red"},
        "other": {"type": "string", "enum": ["red", "green"]},
        "mail": {"type": "string"},
    }
    assert form_value(Model, {"a": 2, "other": "green"}) == Model(a=2, other=Colour.GREEN)
    with pytest.raises(InvalidValue, match="/a: value 0 must be at least 1"):
        form_value(Model, {"a": 0})


# -- forms that are written as JSON Schema -----------------------------------------------------------------------------


def written(field: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"f": field}, **more}


DRAFT = "https://json-schema.org/draft/2020-12/schema"
TITLED = [{"const": "a", "title": "First"}, {"const": "b", "title": "Second"}]
PLAIN = {"type": "string", "enum": ["a", "b"]}
SAME: Any = ...  # as it was written


@pytest.mark.parametrize(
    ("field", "published", "in_the_first_revision"),
    [
        ({"type": "string", "title": "F", "minLength": 1, "format": "email"}, SAME, SAME),
        (
            {"type": "string", "pattern": "^a", "format": "uuid", "$comment": "x"},
            {"type": "string"},
            {"type": "string"},
        ),
        ({"type": "integer", "default": 3, "maximum": 9}, SAME, {"type": "integer", "maximum": 9}),
        ({"type": "number", "exclusiveMinimum": 0}, {"type": "number"}, {"type": "number"}),
        ({"type": "boolean", "default": True}, SAME, SAME),
        ({"type": "string", "enum": ["a"], "enumNames": ["First"]}, SAME, SAME),
        (
            {"type": "string", "oneOf": TITLED, "default": "a"},
            SAME,
            {"type": "string", "enum": ["a", "b"], "enumNames": ["First", "Second"]},
        ),
        ({"type": "array", "items": PLAIN, "minItems": 1, "default": ["a"]}, SAME, None),
        ({"type": "array", "items": {"anyOf": TITLED}}, SAME, None),
        (
            {"type": "array", "items": {"enum": ["a"]}},
            {"type": "array", "items": {"type": "string", "enum": ["a"]}},
            None,
        ),
    ],
)
def test_a_schema_is_published_as_far_as_the_forms_of_a_revision_go(
    field: Any, published: Any, in_the_first_revision: Any
) -> None:
    schema = written(field, required=["f"], additionalProperties=False, **{"$schema": DRAFT})
    for version, expected in (
        ("2025-06-18", in_the_first_revision),
        ("2025-11-25", published),
        ("2026-07-28", published),
    ):
        if expected is None:
            with pytest.raises(DefinitionError, match=f"field 'f' is a list.*{version}"):
                form_schema(schema, version=version)
            continue
        form = form_schema(schema, version=version)
        assert form == written(field if expected is SAME else expected, required=["f"])
        assert strict_errors(version, "PrimitiveSchemaDefinition", form["properties"]["f"]) == []


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", "2026-07-28"])
@pytest.mark.parametrize(
    "field",
    [
        {},
        True,
        {"type": "object", "properties": {}},
        {"type": "array"},
        {"type": "array", "items": True},
        {"type": "array", "items": {"type": "integer"}},
        {"type": "array", "items": {"type": "array", "items": PLAIN}},
        {"type": "array", "items": {"enum": [1]}},
        {"type": "array", "items": {"anyOf": [{"type": "string"}]}},
        {"type": ["string", "null"]},
        {"type": "null"},
        {"type": "integer", "enum": [1, 2]},
        {"type": "string", "enum": ["a", None]},
        {"type": "string", "oneOf": [{"const": "a"}]},
        {"type": "string", "oneOf": [True]},
        {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        {"$ref": "#/$defs/A"},
    ],
)
def test_a_field_of_a_schema_that_is_not_flat_is_named_in_every_revision(field: Any, version: str) -> None:
    with pytest.raises(DefinitionError, match="field 'f' is "):
        form_schema(written(field, **{"$defs": {"A": {"type": "string"}}}), version=version)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({}, "of type object with properties"),
        ({"type": "object"}, "of type object with properties"),
        ({"type": "string", "properties": {}}, "of type object with properties"),
        (written({"type": "string"}, required=["f", "g"]), "field 'g' is required"),
        (written({"type": "string", "minLength": "a"}), "minLength"),
        (written(5), "/properties/f"),
    ],
)
def test_a_schema_that_is_no_form_is_refused(schema: Any, said: str) -> None:
    with pytest.raises(DefinitionError, match=said):
        form_schema(schema)


def test_all_of_a_schema_is_enforced_whatever_of_it_is_published() -> None:
    schema = written({"type": "string", "pattern": "^a", "format": "date"}, additionalProperties=False)
    for content, said in (
        ({"f": "2000-01-01"}, "must match the pattern"),
        ({"f": "a"}, '/f: value "a" is not a valid date'),
        ({"g": "a"}, "/g: unexpected property"),
    ):
        with pytest.raises(InvalidValue, match=said):
            form_value(schema, content)
    assert form_value(written({"type": "integer"}), {"f": 1}) == {"f": 1}
