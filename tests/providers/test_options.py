"""Options that cannot be what they were given, found where they are given and not by the first handler or call."""

import inspect
from typing import Any

import msgspec
import pytest

from mcpcore.exceptions import DefinitionError
from mcpcore.providers.declarations import (
    CompletionDeclaration,
    PromptDeclaration,
    ResourceDeclaration,
    ResourceHints,
    ToolDeclaration,
    ToolHints,
    complete,
    prompt,
    resource,
    tool,
)
from mcpcore.providers.markers import Param
from mcpcore.providers.registry import Registry
from mcpcore.providers.selection import Provider
from mcpcore.types.lifecycle import Icon

COMMON: dict[str, tuple[list[Any], list[Any]]] = {
    # keyword: (what it takes, what it does not)
    "title": (["T", "", None], [5]),
    "description": (["D", "", None], [5]),
    "icons": ([[Icon("https://example.com/i.png")], (), []], [["https://example.com/i.png"], Icon("x"), None]),
    "tags": ([["a"], ("a",), ()], ["a", [1], None]),
    "meta": ([{"a": 1}, dict, None], [5, "a"]),
    "scopes": ([["orders:read"], ()], ["orders:read", [1], None]),
    "visible": ([bool, None], [True, "ada"]),
    "timeout": ([1, 0.5, None], [0, -1, "5", True, float("nan")]),
    "thread": ([True, False, None], ["no", 1]),
}
FLAG: tuple[list[Any], list[Any]] = ([True, False], ["yes", 1, None])
TOOL: dict[str, tuple[list[Any], list[Any]]] = {
    **COMMON,
    "name": (["n", "", None], [5]),
    **dict.fromkeys(("read_only", "destructive", "idempotent", "open_world", "return_direct"), FLAG),
    "hints": ([ToolHints(), None], [{"read_only": True}, ResourceHints()]),
    "input_schema": ([{"type": "object"}, None], [True, "object", []]),
    "extra": (["forbid", "ignore"], ["allow", None, True]),
    "omit_none": ([True, False, None], ["yes"]),
    "raises": ([(ValueError,), ()], [ValueError, ("ValueError",), [ValueError], None]),
}
RESOURCE: dict[str, tuple[list[Any], list[Any]]] = {
    **COMMON,
    "name": TOOL["name"],
    "mime_type": (["text/plain", "", None], [5]),
    "hints": ([ResourceHints(), None], [{"priority": 1}, ToolHints()]),
    "size": ([0, 5, None], [-1, 1.5, "5", True]),
}
COMPLETION: dict[str, tuple[list[Any], list[Any]]] = {**COMMON, "argument": (["a", None], [5])}

KINDS: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any], dict[str, tuple[list[Any], list[Any]]]]] = {
    # decorator: (itself, what else it needs, keywords)
    "tool": (tool, (), {}, TOOL),
    "resource": (resource, ("config://app",), {}, RESOURCE),
    "prompt": (prompt, (), {}, {**COMMON, "name": TOOL["name"]}),
    "complete": (complete, (), {"prompt": "p"}, COMPLETION),
}
CASES = [
    pytest.param(kind, keyword, value, taken, id=f"{kind}-{keyword}-{value!r}")
    for kind, (_, _, _, keywords) in KINDS.items()
    for keyword, (good, bad) in keywords.items()
    for taken, values in ((True, good), (False, bad))
    for value in values
]


@pytest.mark.parametrize(("kind", "keyword", "value", "taken"), CASES)
def test_a_keyword_is_taken_or_refused_with_what_it_may_be(kind: str, keyword: str, value: Any, taken: bool) -> None:
    decorator, args, needed, _ = KINDS[kind]
    if taken:
        decorator(*args, **needed, **{keyword: value})
        return
    with pytest.raises(DefinitionError) as caught:
        decorator(*args, **needed, **{keyword: value})
    assert str(caught.value).startswith(f"@{kind}: {keyword}={value!r}: give ")


def test_registering_at_run_time_refuses_the_same() -> None:
    with pytest.raises(DefinitionError, match="timeout='5': give a number of seconds above 0"):
        Registry().add_tool(lambda: 1, "t", timeout="5")  # type: ignore[arg-type]  # that is the mistake


@pytest.mark.parametrize(
    ("kind", "elsewhere"),
    [
        (ToolDeclaration, {"output_schema"}),
        (ResourceDeclaration, {"uri"}),
        (PromptDeclaration, set[str]()),
        (CompletionDeclaration, {"prompt", "uri", "name"}),
    ],
)
def test_every_keyword_has_a_row(kind: type[msgspec.Struct], elsewhere: set[str]) -> None:
    rows = {
        ToolDeclaration: TOOL,
        ResourceDeclaration: RESOURCE,
        PromptDeclaration: KINDS["prompt"][3],
        CompletionDeclaration: COMPLETION,
    }
    assert set(kind.__struct_fields__) - set(rows[kind]) == elsewhere


REGISTRY: dict[str, tuple[list[Any], list[Any]]] = {
    "type": (["auto", "sync", "async"], ["both", None, ["sync"], 5]),
    "state": (["stateful", "stateless"], ["none", None, {}, True]),
    "scan": ([True, False], ["no", None, 1]),
    "on_skip": (["warn", "error", "ignore"], ["raise", None, ["warn"]]),
    "output_schema": ([True, False, "any", "wrap"], ["yes", "", None, 1, dict, {"type": "object"}, ["any"]]),
    "rename": (["camel", None], ["snake", "", ["camel"], True]),
    "omit_none": ([True, False], ["yes", None]),
    "mask_unexpected": ([True, False], ["yes", None]),
    "format_error": ([max, None], ["text", True]),
    "on_error": ([max, None], ["text", True]),
    "strict_names": ([True, False], ["no", None]),
}
PARAM: dict[str, tuple[list[Any], list[Any]]] = {
    "description": (["D", "", None], [5, ["D"]]),
    "alias": (["orderId", None], [5, "", True]),
    "required": ([True, False, None], ["yes", 1]),
    "header": (["Region", None], [5, True]),
    "secret": ([True, False], ["yes", None]),
    "examples": ([(1,), [1], ()], ["abc", 5, None, {1}]),
}


@pytest.mark.parametrize(
    ("make", "option", "value", "taken"),
    [
        pytest.param(make, option, value, taken, id=f"{make.__name__}-{option}-{value!r}")
        for make, rows in ((Registry, REGISTRY), (Param, PARAM))
        for option, (good, bad) in rows.items()
        for taken, values in ((True, good), (False, bad))
        for value in values
    ],
)
def test_an_option_of_a_registry_or_a_parameter_is_taken_or_refused_where_it_is_given(
    make: Any, option: str, value: Any, taken: bool
) -> None:
    if taken:
        make(**{option: value})
        return
    with pytest.raises(DefinitionError) as caught:
        make(**{option: value})
    assert f"{option}={value!r}: give " in str(caught.value)


def test_every_option_of_a_registry_and_a_parameter_has_a_row() -> None:
    options = set(inspect.signature(Registry).parameters)
    assert options == set(REGISTRY)
    assert set(Param.__struct_fields__) == set(PARAM)


@pytest.mark.parametrize("scan", [True, False])
@pytest.mark.parametrize("rename", REGISTRY["rename"][1])
def test_include_refuses_an_unknown_renaming_before_it_looks_for_handlers(rename: Any, scan: bool) -> None:
    with pytest.raises(DefinitionError, match="give 'camel' or None"):
        Registry(scan=scan).include(object(), rename=rename)


@pytest.mark.parametrize("option", ["type", "state"])
def test_a_provider_refuses_the_same_as_a_registry(option: str) -> None:
    for value in REGISTRY[option][1]:
        with pytest.raises(DefinitionError, match=f"{option}=.*: give "):
            Provider(**{option: value})


@pytest.mark.parametrize("keyword", ["read_only", "destructive", "idempotent", "open_world"])
def test_each_hint_is_true_or_false(keyword: str) -> None:
    with pytest.raises(DefinitionError, match=f"{keyword}='yes': give True or False"):
        ToolHints(**{keyword: "yes"})  # type: ignore[arg-type]  # that is the mistake


@pytest.mark.parametrize(
    ("hint", "wanted"),
    [
        ({"priority": 1.5}, "a number from 0.0 to 1.0"),
        ({"priority": float("nan")}, "a number from 0.0 to 1.0"),
        ({"priority": True}, "a number from 0.0 to 1.0"),
        ({"audience": "user"}, "'user', 'assistant' or both, in a tuple"),
        ({"last_modified": "yesterday"}, "ISO 8601"),
        ({"last_modified": "2026-01-31T12:00:00"}, "ISO 8601"),
        ({"last_modified": ""}, "ISO 8601"),
    ],
)
def test_a_hint_of_a_resource_is_what_the_protocol_takes(hint: dict[str, Any], wanted: str) -> None:
    with pytest.raises(DefinitionError, match=f"give {wanted}"):
        ResourceHints(**hint)


@pytest.mark.parametrize("uri", ["", " ", "\t\n"])
def test_a_resource_has_a_uri(uri: str) -> None:
    with pytest.raises(DefinitionError, match="needs a URI"):
        resource(uri)
    with pytest.raises(DefinitionError, match="needs a URI"):
        Registry().resource(lambda: "", uri=uri, name="r")


def test_an_empty_title_is_none() -> None:
    registry = Registry()
    registry.tool(lambda: 1, name="t", title="", hints=ToolHints(title=""))
    registry.resource(lambda: "", uri="a://b", title="", name="r")
    published = msgspec.json.encode([registry.list("tool", "2026-07-28"), registry.list("resource", "2026-07-28")])
    assert b'"title"' not in published
