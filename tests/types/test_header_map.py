"""Which arguments of a tool are mirrored in headers, and what is no way to say so."""

from typing import Any

import pytest

from mcpcore.types.header_map import header_map


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def test_annotated_properties_are_found_at_every_depth_of_properties() -> None:
    inner = schema(zone={"type": "integer", "x-mcp-header": "Zone"})
    found = header_map(schema(region={"type": ["string", "null"], "x-mcp-header": "Region"}, place=inner, other={}))
    assert found == {("region",): "mcp-param-region", ("place", "zone"): "mcp-param-zone"}
    assert header_map({}) == header_map({"properties": None}) == header_map(schema(a=True)) == {}


@pytest.mark.parametrize("name", ["", "a b", "a\r\nb", "é", "a:b", 5, None, ["x"]])
def test_a_name_that_is_no_header_name_is_refused(name: Any) -> None:
    with pytest.raises(ValueError, match="no header name"):
        header_map(schema(a={"type": "string", "x-mcp-header": name}))


@pytest.mark.parametrize("kind", ["number", "object", "array", "null", None, [], ["string", "integer"], ["null"], {}])
def test_only_one_primitive_type_is_mirrored(kind: Any) -> None:
    with pytest.raises(ValueError, match="only strings, integers and booleans"):
        header_map(schema(a={"type": kind, "x-mcp-header": "A"}))


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"items": {"type": "string", "x-mcp-header": "A"}},
        {"anyOf": [{"properties": {"b": {"type": "string", "x-mcp-header": "A"}}}]},
        {"$defs": {"x": {"type": "string", "x-mcp-header": "A"}}},
        {"x-mcp-header": "A"},
    ],
)
def test_an_annotation_that_no_chain_of_properties_leads_to_is_refused(elsewhere: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="no chain of properties"):
        header_map({**schema(), **elsewhere})


def test_two_headers_of_one_name_are_refused_whatever_their_case() -> None:
    with pytest.raises(ValueError, match="the same x-mcp-header"):
        header_map(schema(a={"type": "string", "x-mcp-header": "A"}, b={"type": "string", "x-mcp-header": "a"}))


def test_data_in_a_schema_is_not_taken_for_annotations() -> None:
    example = {"x-mcp-header": "A"}
    assert (
        header_map({**schema(a={"type": "object", "default": example, "enum": [example]}), "examples": [example]}) == {}
    )
