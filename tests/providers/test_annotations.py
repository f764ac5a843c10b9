"""Reading annotations."""

import functools
from types import GenericAlias
from typing import Annotated, Any, Optional

import pytest
from typing_extensions import TypeAliasType

from mcpcore.exceptions import DefinitionError
from mcpcore.providers.annotations import (
    all_metadata,
    describe,
    enclosing_names,
    innermost,
    layers,
    resolve,
    split_annotated,
    split_optional,
)
from mcpcore.providers.markers import Param


def test_layers_take_wrappers_off_one_at_a_time() -> None:
    class Tools:
        def method(self, x: int, y: int) -> int:
            return x + y

    bound = Tools().method

    @functools.wraps(bound)
    def wrapper(*args: int) -> int:
        return bound(*args)

    outer = functools.partial(wrapper, 1)
    assert list(layers(outer)) == [outer, wrapper, bound, Tools.method]
    assert innermost(outer) is Tools.method


def test_an_object_with_call_is_followed_by_its_method() -> None:
    class Adder:
        def __call__(self, x: int) -> int:
            return x

    adder = Adder()
    assert list(layers(adder)) == [adder, Adder.__call__]


def test_a_wrapping_object_shows_its_own_call_before_what_it_wraps() -> None:
    class Cached:
        def __init__(self, fn: Any) -> None:
            functools.update_wrapper(self, fn)

        def __call__(self) -> None: ...

    def function() -> None: ...

    cached = Cached(function)
    assert list(layers(cached)) == [cached, Cached.__call__, function]


def test_names_of_the_enclosing_class_and_function_are_found_together() -> None:
    Outer = int

    class Tools:
        Inner = str

        def method(self, a: "Outer", b: "Inner") -> None: ...  # type: ignore[valid-type]  # resolved at run time

        names = enclosing_names(method)

    assert Tools.names == {"Outer": int, "Inner": str}


def test_names_of_whoever_calls_the_enclosing_function_are_not_its_names() -> None:
    def enclosing() -> dict[str, Any]:
        def function(x: "Elsewhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821

        return enclosing_names(function)

    def caller() -> dict[str, Any]:
        Elsewhere: Any = int
        assert Elsewhere
        return enclosing()

    assert caller() == {}


def test_names_captured_by_the_function_itself_are_found() -> None:
    Captured = int

    def function(x: "Captured") -> type:  # type: ignore[valid-type]  # resolved at run time
        return Captured

    assert resolve(function, {"x": "Captured | None"}, {}) == {"x": int | None}


def test_a_captured_variable_without_a_value_is_unknown() -> None:
    def function(x: "Later") -> type:  # type: ignore[valid-type]  # resolved at run time
        return Later

    with pytest.raises(DefinitionError, match="'Later'"):
        resolve(function, {"x": "Later"}, {})
    Later = int
    assert resolve(function, {"x": "Later"}, {}) == {"x": int}


def test_a_type_alias_is_what_it_stands_for() -> None:
    alias = TypeAliasType("alias", Annotated[int, "a"])
    assert split_annotated(Annotated[alias, "b"]) == (int, ("b", "a"))


def test_an_unknown_name_is_refused_with_the_parameter_that_has_it() -> None:
    def function() -> None: ...

    with pytest.raises(DefinitionError, match=r"parameter 'x' is annotated 'Missing'.*at run time"):
        resolve(function, {"x": "Missing"}, {})
    with pytest.raises(DefinitionError, match="its return value is annotated 'Missing', and"):
        resolve(function, {"return": "Missing"}, {})


@pytest.mark.parametrize(
    "text", ["what the user wants", "list[int", "int[str]", "str.nowhere", "1 / 0", "Param(alias=5)"]
)
def test_an_annotation_that_is_no_type_is_refused(text: str) -> None:
    with pytest.raises(DefinitionError, match=r"parameter 'x' is annotated '.*', which is no type.*Annotated"):
        resolve(lambda: None, {"x": text}, {"Param": Param})
    with pytest.raises(DefinitionError, match=r"its return value is annotated '.*', which is no type"):
        resolve(lambda: None, {"return": text}, {"Param": Param})


def test_annotated_and_optional_come_apart() -> None:
    assert split_annotated(Annotated[Annotated[int, "a"], "b"]) == (int, ("a", "b"))
    assert split_optional(Optional[int]) == (int, True)  # noqa: UP045
    assert split_optional(int | str) == (int | str, False)
    assert split_optional(type(None)) == (type(None), False)


def test_metadata_is_found_at_any_depth_of_brackets_even_where_they_have_no_end() -> None:
    nested = Annotated[dict[Annotated[str, "key"], list[Annotated[str, "item"]] | Annotated[int, "number"]], "whole"]
    assert sorted(all_metadata(nested)) == ["item", "key", "number", "whole"]
    endless = type(
        "TypeAliasType", (), {}
    )()  # as Python 3.12 has them: type Endless = list[Annotated[Endless, "tree"]]
    endless.__value__ = Annotated[GenericAlias(list, endless), "tree"]
    assert set(all_metadata(endless)) == {"tree"}


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        ("Context | None", "Context | None"),
        (int, "int"),
        (list[int], "list[int]"),
        (Optional[DefinitionError], "Optional[DefinitionError]"),  # noqa: UP045
        (Any, "Any"),
    ],
)
def test_annotations_are_shown_as_written(annotation: Any, text: str) -> None:
    assert describe(annotation) in (text, text.replace("Optional[DefinitionError]", "DefinitionError | None"))
