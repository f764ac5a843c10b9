"""Decorators: five call forms, marks that survive wrapping, hints."""

import functools
from collections.abc import Callable
from typing import Any, get_type_hints

import pytest

from mcpcore.exceptions import DefinitionError
from mcpcore.providers import declarations
from mcpcore.providers.declarations import (
    CompletionDeclaration,
    Declaration,
    PromptDeclaration,
    ResourceDeclaration,
    ResourceHints,
    ToolDeclaration,
    ToolHints,
    complete,
    declarations_of,
    prompt,
    resource,
    tool,
)


def declared(fn: Any) -> Declaration:
    (only,) = declarations_of(fn)
    return only.declaration


def body(x: int) -> int:
    return x + 1


def fresh() -> Callable[[int], int]:
    def function(x: int) -> int:
        return body(x)

    return function


@pytest.mark.parametrize(
    ("decorate", "name"),
    [
        (lambda fn: tool(fn), None),
        (lambda fn: tool()(fn), None),
        (lambda fn: tool("named")(fn), "named"),
        (lambda fn: tool(name="named")(fn), "named"),
        (lambda fn: tool(fn, name="named"), "named"),
        (lambda fn: prompt(fn), None),
        (lambda fn: prompt()(fn), None),
        (lambda fn: prompt("named")(fn), "named"),
        (lambda fn: prompt(name="named")(fn), "named"),
        (lambda fn: prompt(fn, name="named"), "named"),
    ],
)
def test_every_call_form_marks_the_function_and_returns_it(decorate: Callable[[Any], Any], name: str | None) -> None:
    function = fresh()
    assert decorate(function) is function
    assert function(1) == 2
    assert declared(function).name == name


@pytest.mark.parametrize(
    "decorate",
    [
        lambda fn: resource("a://b", title="T")(fn),
        lambda fn: resource(uri="a://b", title="T")(fn),
        lambda fn: resource(fn, uri="a://b", title="T"),
    ],
)
def test_every_call_form_of_resource_takes_the_uri(decorate: Callable[[Any], Any]) -> None:
    assert declared(decorate(fresh())) == ResourceDeclaration(uri="a://b", title="T")


@pytest.mark.parametrize("decorate", [lambda fn: complete(prompt="p")(fn), lambda fn: complete(fn, prompt="p")])
def test_complete_works_as_a_decorator_and_as_a_call(decorate: Callable[[Any], Any]) -> None:
    assert declared(decorate(fresh())) == CompletionDeclaration(prompt="p")


def test_one_function_can_be_a_tool_and_a_prompt() -> None:
    @prompt("ask")
    @tool("act")
    def function() -> str:
        return ""

    assert [type(each.declaration) for each in declarations_of(function)] == [ToolDeclaration, PromptDeclaration]


def test_a_mark_survives_functools_wraps_without_marking_the_wrapped_again() -> None:
    @tool("inner")
    def function() -> None: ...

    @functools.wraps(function)
    def wrapper() -> None: ...

    tool("outer")(wrapper)
    assert [each.declaration.name for each in declarations_of(wrapper)] == ["inner", "outer"]
    assert [each.declaration.name for each in declarations_of(function)] == ["inner"]


def test_marks_reach_static_and_class_methods_in_either_order() -> None:
    class Tools:
        @tool("a")
        @staticmethod
        def inside() -> None: ...

        @staticmethod
        @tool("b")
        def outside() -> None: ...

        @tool("c")
        @classmethod
        def on_class(cls) -> None: ...

    assert [declared(fn).name for fn in (Tools.inside, Tools.outside, Tools.on_class)] == ["a", "b", "c"]


def test_a_decorator_that_is_kept_marks_each_function_with_its_own_scope() -> None:
    read_only = tool(read_only=True)

    def scope(kind: type) -> Any:
        Local = kind

        @read_only
        def function(x: "Local") -> None: ...  # type: ignore[valid-type]  # a local name

        return declarations_of(function)[0].names

    assert scope(int) == {"Local": int}
    assert scope(str) == {"Local": str}


def test_only_what_annotations_mention_is_kept_of_a_scope() -> None:
    Wanted, unwanted = int, "kept alive for nothing"

    @tool
    def function(x: "Wanted") -> None: ...  # type: ignore[valid-type]  # resolved at run time

    assert unwanted
    assert declarations_of(function)[0].names == {"Wanted": int}


@pytest.mark.parametrize(
    ("attempt", "says"),
    [
        (lambda: resource(fresh()), "needs a URI"),  # type: ignore[call-overload]
        (lambda: resource(), "needs a URI"),  # type: ignore[call-overload]
        (lambda: resource(""), "needs a URI"),
        (lambda: complete(fresh()), "one of prompt"),
        (lambda: complete(prompt="a", uri="b://{c}"), "one of prompt"),
        (lambda: complete("a"), "cannot be applied to 'a'"),  # type: ignore[call-overload]
        (lambda: tool("a", "b"), "one positional argument"),  # type: ignore[call-overload]
        (lambda: tool("a", name="b"), "given twice"),  # type: ignore[call-overload]
        (lambda: tool(5), "cannot be applied to 5"),  # type: ignore[call-overload]
        (lambda: tool(readonly=True), "read_only"),  # type: ignore[call-overload]
        (lambda: tool(hints=ToolHints(), read_only=True), "not both"),
        (lambda: tool(int), "mark a function"),
        (lambda: tool(len), "register it directly"),
        (lambda: ResourceHints(priority=1.5), "0.0 to 1.0"),
        (lambda: ResourceHints(audience=("everyone",)), "'everyone'"),  # type: ignore[arg-type]
        (lambda: ResourceHints(last_modified="yesterday"), "ISO 8601"),
        (lambda: ResourceHints(last_modified="2026-01-31T12:00:00"), "ISO 8601"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_would(attempt: Callable[[], object], says: str) -> None:
    with pytest.raises(DefinitionError, match=says):
        attempt()


@pytest.mark.parametrize("moment", ["2026-01-31", "2026-01-31T12:00:00Z", "2026-01-31T12:00:00+02:00", None])
def test_resource_hints_take_dates_and_moments(moment: str | None) -> None:
    assert ResourceHints(last_modified=moment).last_modified == moment


def test_hints_are_pessimistic_by_default_and_shorthands_are_the_same_thing() -> None:
    assert ToolDeclaration().all_hints == ToolHints(
        read_only=False, destructive=True, idempotent=False, open_world=True
    )
    short = ToolDeclaration(read_only=True, destructive=False, idempotent=True, open_world=False)
    long = ToolHints(read_only=True, destructive=False, idempotent=True, open_world=False)
    assert short.all_hints == ToolDeclaration(hints=long).all_hints == long


@pytest.mark.parametrize(
    ("options", "declaration", "positional"),
    [
        (declarations.ToolOptions, ToolDeclaration, {"name"}),
        (declarations.PromptOptions, PromptDeclaration, {"name"}),
        (declarations.ResourceOptions, ResourceDeclaration, {"uri"}),
    ],
)
def test_the_typed_keywords_are_those_of_the_declaration(options: Any, declaration: Any, positional: set[str]) -> None:
    assert set(get_type_hints(options)) | positional == set(declaration.__struct_fields__)
