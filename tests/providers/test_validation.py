"""The validator: its grammar of messages, and what it refuses to do for a schema."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpcore.exceptions import DefinitionError
from mcpcore.providers.validation import Validator, check_schema, pointer, scalar_text


def errors(schema: dict[str, Any], instance: Any, *, show: bool = True, **options: Any) -> list[str]:
    validator = Validator(schema, **options)
    found = validator.errors(instance, show_values=show)
    assert (found == []) is validator.is_valid(instance)
    return found


@pytest.mark.parametrize(
    ("schema", "instance", "shown", "hidden"),
    [
        ({"type": "object"}, None, ": null found, object expected", None),
        ({"type": ["integer", "null"]}, "x", ": string found, integer or null expected", None),
        ({"type": ["null", "integer", "array"]}, 1.5, ": number found, array or integer or null expected", None),
        ({"required": ["a"]}, {}, "/a: required property not found", None),
        ({"additionalProperties": False}, {"b": 1}, "/b: unexpected property", None),
        ({"properties": {}, "additionalProperties": False}, {"b": 1}, "/b: unexpected property", None),
        ({"unevaluatedProperties": False}, {"b": 1}, "/b: unexpected property", None),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, "/b: required property not found", None),
        ({"enum": ["A", "B C", 1, None]}, "x", ': value "x" must be one of [A, B C, 1, null]', ": value must be one of [A, B C, 1, null]"),
        ({"enum": ["A"]}, [1], ": value must be one of [A]", None),
        ({"const": 5}, 6, ": value 6 must be one of [5]", ": value must be one of [5]"),
        ({"minimum": 3}, 1, ": value 1 must be at least 3", ": value must be at least 3"),
        ({"exclusiveMinimum": 3}, 3, ": value 3 must be more than 3", ": value must be more than 3"),
        ({"maximum": 3}, 4, ": value 4 must be at most 3", ": value must be at most 3"),
        ({"exclusiveMaximum": 3}, 3, ": value 3 must be less than 3", ": value must be less than 3"),
        ({"multipleOf": 2}, 3, ": value 3 must be a multiple of 2", ": value must be a multiple of 2"),
        ({"minLength": 2}, "a", ': value "a" must have at least 2 characters', ": value must have at least 2 characters"),
        ({"maxLength": 1}, "ab", ': value "ab" must have at most 1 characters', ": value must have at most 1 characters"),
        ({"pattern": "^a{2}"}, "b", ': value "b" must match the pattern ^a{2}', ": value must match the pattern ^a{2}"),
        ({"minItems": 1}, [], ": array must have at least 1 items", None),
        ({"maxItems": 1}, [1, 2], ": array must have at most 1 items", None),
        ({"uniqueItems": True}, [1, 1], ": array must not repeat items", None),
        ({"contains": {"type": "integer"}}, ["a"], ": array lacks an item that it must contain", None),
        ({"minProperties": 1}, {}, ": object must have at least 1 properties", None),
        ({"maxProperties": 0}, {"a": 1}, ": object must have at most 0 properties", None),
        ({"propertyNames": {"pattern": "^[0-9]+$"}}, {"a": 1}, '/a: property name: value "a" must match the pattern ^[0-9]+$', "/a: property name: value must match the pattern ^[0-9]+$"),
        ({"prefixItems": [{}], "items": False}, [1, 2], "/1: no value is allowed here", None),
        ({"prefixItems": [{}], "unevaluatedItems": False}, [1, 2], ": array has items that are not allowed", None),
        ({"not": {"type": "integer"}}, 1, ": value 1 has a form that is not allowed", ": value has a form that is not allowed"),
        ({"oneOf": [{"type": "integer"}, {"minimum": 2}]}, 3, ": matches more than one of the forms of which it may match one", None),
        ({"properties": {"a/b~": {"type": "null"}}}, {"a/b~": 1}, "/a~1b~0: integer found, null expected", None),
    ],
)  # fmt: skip
def test_a_keyword_says(schema: dict[str, Any], instance: Any, shown: str, hidden: str | None) -> None:
    assert errors(schema, instance) == [shown]
    assert errors(schema, instance, show=False) == [hidden or shown]


def test_formats_are_annotations_unless_asked_for() -> None:
    schema = {"type": "string", "format": "email"}
    assert errors(schema, "x") == []
    assert errors(schema, "x", formats=True) == [': value "x" is not a valid email']


A = {"type": "object", "properties": {"type": {"const": "a"}, "x": {"type": "integer"}}, "required": ["type", "x"]}
B = {"type": "object", "properties": {"type": {"const": "b"}, "y": {"type": "string"}}, "required": ["type"]}


@pytest.mark.parametrize(
    ("branches", "instance", "error"),
    [
        ([{"type": "object"}, {"type": "null"}], 1, ": integer found, object or null expected"),
        ([{"type": "string", "enum": ["A"]}, {"type": "null"}], "X", ': value "X" must be one of [A]'),
        ([A, B], {"type": "a"}, "/x: required property not found"),
        ([A, B], {"type": "b", "y": 1}, "/y: integer found, string expected"),
        ([A, B], {"type": "c"}, '/type: value "c" must be one of [a, b]'),
        ([A, B], {}, "/type: required property not found"),
        ([A, B], 5, ": integer found, object expected"),
        ([{"type": "integer", "minimum": 5}, {"type": "integer", "maximum": 1}], 3, ": matches no allowed form"),
        ([{"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": "array"}], 5, ": integer found, string or null expected"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_a_union_is_explained_by_the_branch_that_was_meant(
    keyword: str, branches: list[Any], instance: Any, error: str
) -> None:
    assert errors({keyword: branches}, instance) == [error]


def test_a_wrong_type_is_not_said_to_be_outside_the_enumeration_as_well() -> None:
    assert errors({"type": "string", "enum": ["A"]}, 5) == [": integer found, string expected"]


def test_entries_are_sorted_and_cut_after_ten() -> None:
    schema = {"additionalProperties": False, "required": ["b", "a"]}
    found = errors(schema, {f"p{number:02}": 1 for number in range(12)})
    assert found[:3] == [
        "/a: required property not found",
        "/b: required property not found",
        "/p00: unexpected property",
    ]
    assert len(found) == 11
    assert found[-1] == "… and 4 more"


def test_a_long_value_is_cut_at_64_characters() -> None:
    (error,) = errors({"maxLength": 1}, "x" * 1000)
    assert error == f': value "{"x" * 63}… must have at most 1 characters'
    assert pointer(["n" * 100]) == "/" + "n" * 64 + "…"


def test_a_million_wrong_items_are_told_in_bounded_words() -> None:
    (*_, last) = Validator({"items": {"type": "string"}}).errors([1] * 100_000, show_values=True)
    assert last == "… and 990 more"


def test_hidden_members_are_never_quoted() -> None:
    schema = {"properties": {"pin": {"maxLength": 1, "properties": {"x": {"maximum": 1}}}}}
    found = Validator(schema).errors({"pin": "1234"}, show_values=True, hidden={"pin"})
    assert found == ["/pin: value must have at most 1 characters"]
    found = Validator(schema).errors({"pin": {"x": 5}}, show_values=True, hidden={"pin"})
    assert found == ["/pin/x: value must be at most 1"]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.just("s3cret-value"),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    )
)
def test_values_of_results_never_reach_a_message(instance: Any) -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"anyOf": [{"type": "integer", "minimum": 3}, {"enum": ["x"]}, {"type": "array", "items": {"pattern": "^y"}}]},
            "b": {"const": 1},
        },
        "propertyNames": {"maxLength": 0},
    }  # fmt: skip
    found = Validator(schema).errors(instance, show_values=False)
    assert "s3cret" not in json.dumps(found)


@pytest.mark.parametrize(
    "schema",
    [
        5,
        [],
        {"type": "text"},
        {"properties": {"a": {"minimum": "x"}}},
        {"$ref": "#/$defs/nowhere"},
        {"pattern": "("},
        {"$schema": "https://example.com/unknown"},
    ],
)
@pytest.mark.parametrize("trusted", [True, False])
def test_an_invalid_schema_is_refused(schema: Any, trusted: bool) -> None:
    with pytest.raises(DefinitionError, match="not a valid JSON Schema"):
        check_schema(schema, trusted=trusted)


@pytest.mark.parametrize(
    "uri", ["http://127.0.0.1:9/x.json", "https://example.com/x", "file:///etc/hostname", "x.json"]
)
@pytest.mark.parametrize("trusted", [True, False])
def test_nothing_outside_a_schema_is_fetched_or_opened(uri: str, trusted: bool) -> None:
    with pytest.raises(DefinitionError):
        Validator({"$ref": uri}, trusted=trusted)


def test_a_schema_nested_without_end_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(5000):
        schema = {"not": schema}
    with pytest.raises(DefinitionError, match=r"[Rr]ecursion"):
        check_schema(schema)


def test_an_object_without_members_is_found_at_any_depth() -> None:
    schema = {"items": {"additionalProperties": False}}
    assert errors(schema, [{}, {"b": 1, "a": 2}]) == ["/1/a: unexpected property", "/1/b: unexpected property"]


def test_older_dialects_and_references_into_the_schema_work() -> None:
    draft7 = {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"n": {"type": "integer"}}}
    assert errors({**draft7, "$ref": "#/definitions/n"}, "x") == [": string found, integer expected"]
    assert errors({**draft7, "items": [{"type": "null"}], "additionalItems": False}, [None, 1]) != []


def test_patterns_of_a_peer_take_bounded_time() -> None:
    assert errors({"pattern": "^(a+)+$"}, "a" * 40 + "b", trusted=False) != []
    look_around = Validator({"pattern": "^(?=(a+)+$)"}, trusted=False)
    assert look_around.errors("a" * 40 + "b", show_values=False) != []


@pytest.mark.parametrize("value", [None, True, 5, 1.5, "é", 10**30, math.pi])
def test_scalars_are_written_as_json(value: Any) -> None:
    assert json.loads(scalar_text(value)) == value
