"""What stands beside a type in Annotated."""

from typing import Any

import annotated_types
import msgspec
import pydantic
import pytest
import typing_extensions
from msgspec import Meta

from mcpcore.providers.markers import Param
from mcpcore.providers.metadata import is_pydantic_field, read_metadata


@pytest.mark.parametrize(
    ("metadata", "limits", "native"),
    [
        ([], {}, True),
        ([Meta(ge=1, lt=5), Meta(tz=True)], {"ge": 1, "lt": 5, "tz": True}, True),
        ([annotated_types.Ge(1), annotated_types.Lt(5)], {"ge": 1, "lt": 5}, False),
        ([annotated_types.Interval(gt=1, le=5)], {"gt": 1, "le": 5}, False),
        ([annotated_types.Len(0, 3)], {"max_length": 3}, False),
        ([annotated_types.MultipleOf(2)], {"multiple_of": 2}, False),
        ([annotated_types.Timezone(None)], {}, True),
        ([pydantic.Field(ge=1, max_length=3, pattern="a")], {"ge": 1, "max_length": 3, "pattern": "a"}, False),
        ([Meta(ge=1), annotated_types.Le(3)], {"ge": 1, "le": 3}, False),
    ],
)
def test_limits_are_found_by_name(metadata: list[Any], limits: dict[str, Any], native: bool) -> None:
    found = read_metadata(metadata)
    assert (found.limits, found.native) == (limits, native)


def test_descriptions_have_an_order() -> None:
    sources = ["bare", pydantic.Field(description="field"), Meta(description="meta"), Param("param")]
    while sources:
        expected = {str: "bare", Meta: "meta", Param: "param"}.get(type(sources[-1]), "field")
        assert read_metadata(sources).notes == {"description": expected}
        assert read_metadata(reversed(sources)).notes == {"description": expected}
        sources.pop()
    assert read_metadata(["first", "second"]).notes == {"description": "first"}
    assert read_metadata([typing_extensions.Doc("doc")]).notes == {"description": "doc"}
    assert read_metadata([Param(), ""]).notes == {}


def test_notes_that_assert_are_told_from_those_that_do_not() -> None:
    plain = read_metadata([Meta(title="T", examples=[1], extra_json_schema={"format": "email", "deprecated": True})])
    assert plain.notes == {"title": "T", "examples": [1], "format": "email", "deprecated": True} and not plain.asserting
    assert read_metadata([Meta(extra_json_schema={"minLength": 2})]).asserting
    assert read_metadata([pydantic.Field(json_schema_extra={"minimum": 2})]).notes == {"minimum": 2}


def test_what_is_not_understood_is_kept_for_others() -> None:
    validator = pydantic.AfterValidator(int)
    found = read_metadata(["text", validator, Meta(ge=1), Param("x"), pydantic.Field(ge=1)])
    assert found.unknown == (validator,)


def test_only_what_field_returns_is_a_field_of_pydantic() -> None:
    assert is_pydantic_field(pydantic.Field())
    assert not any(is_pydantic_field(each) for each in (Meta(), msgspec.field(), "x", None, pydantic.BaseModel))
