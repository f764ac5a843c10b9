"""Folding: where a definition is put, and that references keep leading to it."""

from typing import Any

from mcpcore.providers.definitions import Definitions, change_schemas, fold


def ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def test_a_definition_used_once_is_put_in_place_and_keeps_what_stands_beside_it() -> None:
    folded = fold(
        {"properties": {"a": {**ref("A"), "description": "x"}}}, {"A": {"type": "object", "description": "y"}}
    )
    assert folded == {"properties": {"a": {"type": "object", "description": "x"}}}


def test_a_definition_used_twice_stays_and_an_unused_one_goes() -> None:
    folded = fold({"anyOf": [ref("A"), {"items": ref("A")}]}, {"A": {"type": "null"}, "B": {"type": "string"}})
    assert folded == {"anyOf": [ref("A"), {"items": ref("A")}], "$defs": {"A": {"type": "null"}}}


def test_a_reference_at_the_root_is_replaced() -> None:
    assert fold(ref("A"), {"A": ref("B"), "B": {"type": "object"}}) == {"type": "object"}


def test_records_that_contain_each_other_keep_one_definition() -> None:
    definitions = {"A": {"properties": {"b": ref("B")}}, "B": {"properties": {"a": ref("A")}}}
    folded = fold({"items": ref("A")}, definitions)
    assert folded == {
        "items": ref("A"),
        "$defs": {"A": {"properties": {"b": {"properties": {"a": ref("A")}}}}},
    }


def test_data_that_looks_like_a_schema_is_left_alone() -> None:
    data = {"$ref": "#/$defs/A", "title": "t"}
    schema = {"properties": {"$ref": {"type": "string"}, "title": {"type": "null"}}, "default": data, "enum": [data]}
    assert fold(schema, {"A": {}}) == schema
    assert change_schemas(schema, lambda each: {k: v for k, v in each.items() if k != "title"}) == schema


def test_every_place_of_a_schema_is_found() -> None:
    schema: dict[str, Any] = {
        "prefixItems": [{"title": 1}],
        "items": {"title": 1},
        "properties": {"p": {"title": 1}},
        "additionalProperties": {"not": {"title": 1}},
        "dependentSchemas": {"d": {"if": {"title": 1}, "then": True}},
        "$defs": {"A": {"oneOf": [{"title": 1}, False]}},
    }
    changed = change_schemas(schema, lambda each: {k: v for k, v in each.items() if k != "title"})
    assert "title" not in str(changed)
    assert changed["dependentSchemas"]["d"]["then"] is True and changed["$defs"]["A"]["oneOf"][1] is False


def test_owners_of_one_name_get_names_of_their_own() -> None:
    definitions = Definitions()
    one, two = object(), object()
    assert definitions.reference(one, "X", lambda: {"type": "null"}) == ref("X")
    assert definitions.reference(two, "X", lambda: {"type": "string"}) == ref("X_2")
    assert definitions.reference(one, "X", dict) == ref("X")


def test_adopted_definitions_are_shared_when_equal_and_renamed_when_not() -> None:
    definitions = Definitions()
    definitions.reference(object(), "X", lambda: {"type": "null"})
    first = {"items": ref("X"), "$defs": {"X": {"type": "string"}}}
    assert definitions.adopt(first) == {"items": ref("X_2")}
    assert definitions.adopt(first) == {"items": ref("X_2")}
    assert definitions.adopt({**ref("X"), "$defs": {"X": {"items": ref("X")}}}) == ref("X_3")
    assert definitions.schemas["X_3"] == {"items": ref("X_3")}
