"""The registry: include, names, lists per revision, modes, mounts, changes, reports."""

import functools
import json
import logging
import sys
import textwrap
import unittest.mock
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import pydantic
import pytest
from msgspec import Meta, Raw, Struct

from mcpcore.exceptions import DefinitionError, DuplicateName, McpError, SkippedHandlers
from mcpcore.providers.declarations import ResourceHints, ToolHints, complete, prompt, resource, tool
from mcpcore.providers.markers import CallToolRequest, Demand, Depends, Injection, Param, RequestMeta
from mcpcore.providers.registry import Registry
from mcpcore.providers.signature import Kind
from mcpcore.types import (
    CallToolParams,
    CallToolResult,
    GetPromptParams,
    Icon,
    PromptReference,
    ReadResourceParams,
    ResourceTemplateReference,
)
from mcpcore.versions import VERSIONS
from tests.support.coroutines import drive

LEGACY = "2025-11-25"
MODERN = "2026-07-28"


class Context:
    __mcpcore_injection__: ClassVar = Injection("context", Demand.FULL)


def names(registry: Registry, kind: Kind = "tool") -> list[str]:
    return [each.name for each in registry.list(kind, LEGACY)]


# -- include -------------------------------------------------------------------------------------------------------


class Base:
    greeting = "hello"

    @tool
    def inherited(self) -> str:
        return self.greeting

    @tool("overridden")
    def replaced(self) -> str:
        return "base"

    @tool
    def withdrawn(self) -> str:
        return ""


class Tools(Base):
    def replaced(self) -> str:
        return f"{self.greeting} from below"

    withdrawn = None  # type: ignore[assignment]  # takes the tool away

    @tool
    @staticmethod
    def static() -> str:
        return "static"

    @classmethod
    @tool
    def on_class(cls) -> str:
        return cls.greeting

    @prompt
    def ask(self) -> str:
        return "?"

    @resource("notes://all")
    def notes(self) -> str:
        return "fixed"

    @resource("notes://{key}")
    def note(self, key: str) -> str:
        return key

    @complete(uri="notes://{key}")
    def keys(self, prefix: str) -> list[str]:
        return [prefix]


def call(registry: Registry, name: str, arguments: bytes = b"{}") -> Any:
    found = registry.find_tool(name)
    assert found is not None
    return found.invoke(CallToolParams(name, Raw(arguments)), None, LEGACY)


def test_include_finds_inherited_overridden_static_and_class_methods_and_binds_them() -> None:
    registry = Registry()
    registry.include(Tools())
    assert names(registry) == ["inherited", "overridden", "static", "on_class"]
    assert [call(registry, name).content[0].text for name in names(registry)] == [
        "hello",
        "hello from below",
        "static",
        "hello",
    ]
    for kind in ("resource", "template", "prompt", "completion"):
        assert registry.has(kind)


def test_include_sees_through_a_proxy() -> None:
    class Proxy:
        def __init__(self, target: Any) -> None:
            self.__dict__["_target"] = target

        @property  # type: ignore[misc]  # what proxies do
        def __class__(self) -> type:
            return type(self._target)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._target, name)

    registry = Registry()
    registry.include(Proxy(Tools()))
    assert names(registry) == ["inherited", "overridden", "static", "on_class"]


def test_include_takes_what_an_object_holds_itself() -> None:
    class Holder:
        def __init__(self) -> None:
            self.function = tool(lambda: "x", name="held")

    registry = Registry()
    registry.include(Holder())
    assert names(registry) == ["held"]


def test_a_decorator_above_the_mark_keeps_it() -> None:
    class Decorated:
        def traced(fn: Callable[..., Any]) -> Callable[..., Any]:  # type: ignore[misc]  # a decorator
            @functools.wraps(fn)
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                return f"traced {fn(*args, **kwargs)}"

            return wrapper

        @traced
        @tool
        def work(self, x: int) -> str:
            return str(x)

    registry = Registry()
    registry.include(Decorated())
    assert call(registry, "work", b'{"x":1}').content[0].text == "traced 1"


def test_a_class_gives_its_static_and_class_methods_and_refuses_the_others() -> None:
    class Static:
        @tool
        @staticmethod
        def one() -> str:
            return ""

        @tool
        @classmethod
        def two(cls) -> str:
            return ""

    registry = Registry()
    registry.include(Static)
    assert names(registry) == ["one", "two"]
    with pytest.raises(DefinitionError, match=r"Base.inherited is a method.*include\(Base\(…\)\)"):
        registry.include(Base)


def test_a_module_gives_what_is_defined_there_and_a_package_what_is_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "shop_for_include"
    package.mkdir()
    source = "from mcpcore.providers.declarations import tool\nimport functools\n"
    (package / "__init__.py").write_text(
        source + "from shop_for_include.orders import orders\n@tool\ndef here(): ...\n", "utf-8"
    )
    (package / "orders.py").write_text(source + "@tool\ndef orders(): ...\n", "utf-8")
    (package / "other.py").write_text(
        source
        + "from shop_for_include.orders import orders\n@tool\ndef other(): ...\n"
        + "bound = tool(functools.partial(other), name='bound')\n",
        "utf-8",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import importlib

    whole, part = Registry(), Registry()
    whole.include(importlib.import_module("shop_for_include"))
    part.include(importlib.import_module("shop_for_include.other"))
    assert names(whole) == ["orders", "here"]
    assert names(part) == ["other", "bound"]
    for module in [name for name in sys.modules if name.startswith("shop_for_include")]:
        del sys.modules[module]


def test_a_module_may_hold_what_answers_every_question_or_none() -> None:
    class Absent:
        """Stands for something that is not there yet, as the request of a web framework does between requests."""

        def __getattr__(self, name: str) -> Any:
            raise RuntimeError("there is no request")

        def __call__(self) -> None: ...

    @tool
    def own() -> None: ...

    module = ModuleType(__name__)
    vars(module).update(absent=Absent(), call=unittest.mock.call, mock=unittest.mock.MagicMock(), own=own)
    registry = Registry()
    registry.include(module)
    assert names(registry) == ["own"]


def test_a_marked_function_can_be_included_itself() -> None:
    @tool("alone")
    def function() -> None: ...

    registry = Registry()
    registry.include(function)
    assert names(registry) == ["alone"]


def test_scan_false_ignores_marks_and_keeps_what_is_registered_directly() -> None:
    registry = Registry(scan=False)
    registry.include(Tools())
    registry.tool(lambda: "", name="direct")
    assert names(registry) == ["direct"]


def test_include_of_something_unmarked_says_so(caplog: pytest.LogCaptureFixture) -> None:
    Registry().include(object())
    assert "Nothing to register" in caplog.text


def test_include_registers_everything_or_nothing() -> None:
    class Mixed:
        @tool
        def good(self) -> str:
            return ""

        @tool
        def bad(self, *args: int) -> str:
            return ""

    class Taken:
        @tool
        def first(self) -> str:
            return ""

        @tool
        def inherited(self) -> str:
            return ""

    registry = Registry()
    registry.include(Base())
    before = names(registry)
    with pytest.raises(DefinitionError):
        registry.include(Mixed())
    with pytest.raises(DuplicateName):
        registry.include(Taken())
    assert names(registry) == before


def test_rename_can_be_given_for_one_include() -> None:
    class Shop:
        @tool
        def find(self, order_id: str) -> str:
            return order_id

    registry = Registry()
    registry.include(Shop(), rename="camel")
    assert list(registry.list("tool", LEGACY)[0].input_schema["properties"]) == ["orderId"]


def test_one_line_per_kind_tells_what_was_registered(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "mcpcore.registry"):
        Registry().include(Tools())
    assert [record.getMessage() for record in caplog.records] == [
        "Registered tools: 4",
        "Registered resources: 1",
        "Registered resource templates: 1",
        "Registered prompts: 1",
        "Registered completions: 1",
    ]


def test_what_was_registered_one_by_one_is_counted_once_when_it_is_served(caplog: pytest.LogCaptureFixture) -> None:
    registry = Registry("sync")

    async def waits() -> str:
        return ""

    with caplog.at_level(logging.INFO, "mcpcore.registry"):
        for name in ("a", "b", "c"):
            registry.tool(nothing, name=name)
        registry.prompt(waits)
        registry.tool(waits)
        registry.include(Base())
        caplog.clear()
        registry.serve()
        registry.tool(nothing, name="late")
        registry.serve()
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "Registered tools: 3 (1 skipped)"),
        ("WARNING", "No prompts registered: all 1 were skipped"),
    ]


# -- modes ---------------------------------------------------------------------------------------------------------

R1, R2, R3 = "awaitable-return", "imperative-return", "bidirectional-parameter"


class Six:
    """The shape of the order service: four plain tools and two that need the client."""

    @tool
    def one(self) -> str:
        return ""

    @tool
    def two(self) -> str:
        return ""

    @tool
    def three(self) -> str:
        return ""

    @tool
    def four(self) -> str:
        return ""

    @tool
    async def five(self, ctx: Context) -> str:
        return ""

    @tool
    async def six(self, ctx: Context) -> str:
        return ""


class Coping(Six):
    async def five(self, ctx: Context | None) -> str:
        return ""

    async def six(self, ctx: Context | None) -> str:
        return ""


FIRST, LAST = ["one", "two", "three", "four"], ["five", "six"]


@pytest.mark.parametrize(
    ("target", "mode", "registered", "reasons", "summary"),
    [
        (Six(), ("auto", "stateful"), FIRST + LAST, [], "Registered tools: 6"),
        (Six(), ("sync", "stateful"), FIRST, [(R1,)] * 2, "Registered tools: 4 (2 skipped)"),
        (Six(), ("async", "stateful"), LAST, [(R2,)] * 4, "Registered tools: 2 (4 skipped)"),
        (Six(), ("sync", "stateless"), FIRST, [(R1, R3)] * 2, "Registered tools: 4 (2 skipped)"),
        (Six(), ("async", "stateless"), [], [(R2,)] * 4 + [(R3,)] * 2, "No tools registered: all 6 were skipped"),
        (Six(), ("auto", "stateless"), FIRST, [(R3,)] * 2, "Registered tools: 4 (2 skipped)"),
        (Coping(), ("auto", "stateless"), FIRST + LAST, [], "Registered tools: 6"),
    ],
)
def test_the_modes_of_the_order_service(
    target: Any,
    mode: tuple[Any, Any],
    registered: list[str],
    reasons: list[tuple[str, ...]],
    summary: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    registry = Registry(*mode)
    with caplog.at_level(logging.INFO, "mcpcore.registry"):
        registry.include(target)
    assert names(registry) == registered
    assert [skipped.reasons for skipped in registry.skipped] == reasons
    *warnings, last = caplog.records
    assert last.getMessage() == summary
    assert last.levelname == ("INFO" if registered else "WARNING")
    assert [record.getMessage() for record in warnings] == [skipped.message for skipped in registry.skipped]
    for skipped in registry.skipped:
        assert f"Six.{skipped.name}" in skipped.message
        assert registry.find_tool(skipped.name) is None


def test_skipping_can_be_an_error_that_lists_everything_and_registers_nothing() -> None:
    registry = Registry("sync", on_skip="error")
    with pytest.raises(SkippedHandlers) as raised:
        registry.include(Six())
    assert [skipped.name for skipped in raised.value.skipped] == LAST
    assert "Six.five" in str(raised.value)
    assert "Six.six" in str(raised.value)
    assert names(registry) == []


def test_skipping_can_be_silent_and_is_still_recorded(caplog: pytest.LogCaptureFixture) -> None:
    registry = Registry("async", on_skip="ignore")
    registry.include(Base())
    assert not caplog.records
    assert len(registry.skipped) == 3


# -- names ---------------------------------------------------------------------------------------------------------


def nothing() -> None: ...


@pytest.mark.parametrize(
    "name", ["a b", "a/b", "☃", "x" * 129, "größe", "a,b"], ids=["space", "slash", "emoji", "long", "umlaut", "comma"]
)
def test_names_that_clients_refuse_are_refused_or_warned_about(name: str, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(DefinitionError, match="1 to 128"):
        Registry().tool(nothing, name=name)
    lenient = Registry(strict_names=False)
    lenient.tool(nothing, name=name)
    assert names(lenient) == [name]
    assert "some clients will not accept it" in caplog.text


@pytest.mark.parametrize("name", ["a.b", "a-b_c", "1st", "A", "x" * 128])
def test_names_that_clients_take_are_taken(name: str) -> None:
    registry = Registry()
    registry.tool(nothing, name=name)
    assert names(registry) == [name]


@pytest.mark.parametrize("name", ["a\n", " a", "a\u200b", "\N{GRINNING FACE}", "a:b", "a\x00", "\uff41"])
def test_names_with_what_cannot_be_seen_are_refused(name: str) -> None:
    with pytest.raises(DefinitionError, match="1 to 128"):
        Registry().tool(nothing, name=name)


@pytest.mark.parametrize("strict", [True, False])
def test_an_empty_name_is_refused_and_not_taken_for_none(strict: bool) -> None:
    registry = Registry(strict_names=strict)
    for register in (
        lambda: registry.tool(nothing, name=""),
        lambda: registry.prompt(nothing, name=""),
        lambda: registry.resource(nothing, uri="a://b", name=""),
    ):
        with pytest.raises(DefinitionError, match="name='': give at least one character"):
            register()  # type: ignore[no-untyped-call]  # lambdas
    assert not list(registry.handlers())


def test_a_namespace_that_makes_a_name_too_long_is_refused_and_nothing_is_mounted() -> None:
    inner, outer = Registry(), Registry()
    inner.tool(nothing, name="short")
    inner.tool(nothing, name="x" * 120)
    with pytest.raises(DefinitionError, match="1 to 128"):
        outer.mount(inner, namespace="ten-letters")
    assert names(outer) == []


def test_a_handler_goes_on_after_its_name_is_removed_and_given_to_another() -> None:
    registry = Registry()
    registry.tool(lambda: "first", name="f")
    registry.tool(nothing, name="g")
    first = registry.find_tool("f")
    assert first is not None
    registry.remove("tool", "f")
    assert registry.find_tool("f") is None
    registry.tool(lambda: "second", name="f")
    assert call(registry, "f").content[0].text == "second"
    assert first.invoke(CallToolParams("f"), None, LEGACY).content[0].text == "first"
    assert names(registry) == ["g", "f"] == names(registry)


@pytest.mark.parametrize(
    "annotation",
    [
        Annotated[Any, Param(examples=(object(),))],
        Annotated[Any, Param(examples=("\ud800",))],
        Annotated[float, Param(examples=(float("nan"),))],
        Annotated[int, Param("\ud800")],
        Annotated[int, Meta(extra_json_schema={"x": object()})],
        Annotated[int, pydantic.Field(json_schema_extra={"x": object()})],  # type: ignore[dict-item]  # the mistake
        Annotated[int, pydantic.Field(examples=[object()])],
        Annotated[float, pydantic.Field(le=float("inf"))],
        Literal["\ud800"],
    ],
)
def test_what_would_spoil_the_whole_list_is_refused_where_it_is_registered(annotation: Any) -> None:
    def function(x: Any) -> None: ...

    function.__annotations__["x"] = annotation
    registry = Registry()
    registry.tool(nothing)
    with pytest.raises(DefinitionError, match=r"function \(.*cannot be published"):
        registry.tool(function)
    assert names(registry) == ["nothing"]
    msgspec.json.encode(registry.list("tool", LEGACY))


@pytest.mark.parametrize("member", ["title", "description"])
def test_texts_that_no_peer_could_read_are_refused_for_every_kind(member: str) -> None:
    options: Any = {member: "half \ud800"}
    registry = Registry()
    for register in (
        lambda: registry.tool(nothing, **options),
        lambda: registry.prompt(nothing, **options),
        lambda: registry.resource(nothing, uri="a://b", **options),
        lambda: registry.resource(lambda v: "", uri="a://{v}", name="t", **options),
    ):
        with pytest.raises(DefinitionError, match="cannot be published"):
            register()


def test_a_lambda_needs_a_name() -> None:
    with pytest.raises(DefinitionError, match="name="):
        Registry().tool(lambda: "")


def test_names_differ_by_case_and_between_kinds() -> None:
    registry = Registry()
    registry.tool(nothing, name="same")
    registry.tool(nothing, name="Same")
    registry.prompt(nothing, name="same")
    registry.resource(nothing, uri="a://same", name="same")
    assert names(registry) == ["same", "Same"]


@pytest.mark.parametrize(
    ("kind", "register_once"),
    [
        ("tool", lambda registry: registry.tool(nothing, name="f")),
        ("prompt", lambda registry: registry.prompt(nothing, name="f")),
        ("resource", lambda registry: registry.resource(nothing, uri="a://b")),
        ("template", lambda registry: registry.resource(lambda v: "", uri="a://{v}", name="t")),
        ("completion", lambda registry: registry.complete(nothing, prompt="p", argument="a")),
    ],
)
def test_a_name_is_registered_once_and_replaced_with_a_warning_while_serving(
    kind: Kind, register_once: Callable[[Registry], Any], caplog: pytest.LogCaptureFixture
) -> None:
    registry = Registry()
    register_once(registry)
    with pytest.raises(DuplicateName, match="is defined twice"):
        register_once(registry)
    registry.serve()
    register_once(registry)
    assert len(registry.handlers()) == 1
    assert f"Replaced {kind}" in caplog.text


def test_replacing_keeps_the_place_in_the_list() -> None:
    registry = Registry()
    for name in ("a", "b", "c"):
        registry.tool(nothing, name=name)
    registry.serve()
    registry.tool(nothing, name="a", description="new")
    assert names(registry) == ["a", "b", "c"]
    assert registry.list("tool", LEGACY)[0].description == "new"


@pytest.mark.parametrize("order", ["sync first", "async first"])
def test_of_twins_the_async_one_is_kept(order: str, caplog: pytest.LogCaptureFixture) -> None:
    async def anothing() -> None: ...

    twins = [nothing, anothing] if order == "sync first" else [anothing, nothing]
    registry = Registry()
    with caplog.at_level(logging.INFO, "mcpcore.registry"):
        for twin in twins:
            registry.tool(twin, name="f")
    (handler,) = registry.handlers()
    assert handler.is_async
    assert "Tool 'f' is defined twice: the async" in caplog.text


def test_twins_that_come_together_are_twins_on_a_registry_that_is_served(caplog: pytest.LogCaptureFixture) -> None:
    class Twins:
        @tool("f")
        async def asynchronous(self) -> None: ...

        @tool("f")
        def blocking(self) -> None: ...

    registry = Registry()
    registry.tool(nothing, name="f")
    registry.serve()
    with caplog.at_level(logging.INFO, "mcpcore.registry"):
        registry.include(Twins())
    (handler,) = registry.handlers()
    assert handler.is_async
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO", "INFO"]
    assert "Replaced tool 'f'" in caplog.text and "Tool 'f' is defined twice" in caplog.text


@pytest.mark.parametrize("kind", ["resource", "template", "prompt", "completion"])
def test_only_arguments_of_tools_are_mirrored_in_headers(kind: Kind) -> None:
    def f(v: Annotated[str, Param(header="Region")]) -> list[str]:
        return [v]

    registry = Registry()
    with pytest.raises(DefinitionError, match="parameter 'v': header='Region' is for arguments of tools"):
        match kind:
            case "prompt":
                registry.prompt(f)
            case "completion":
                registry.complete(f, prompt="p")
            case _:
                registry.resource(f, uri="a://{v}" if kind == "template" else "a://b")


# -- what is published ---------------------------------------------------------------------------------------------


def wire(registry: Registry, kind: Kind, version: str = LEGACY) -> list[dict[str, Any]]:
    return [json.loads(msgspec.json.encode(each)) for each in registry.list(kind, version)]


def test_every_attribute_of_a_tool_is_in_the_list() -> None:
    registry = Registry()

    @registry.tool(
        "f",
        title="T",
        description="D",
        hints=ToolHints(read_only=True, destructive=False, idempotent=True, open_world=False, title="HT"),
        icons=[Icon("https://x.example/i.png")],
        meta={"k": 1},
        output_schema=True,
    )
    def function() -> dict[str, int]:
        return {}

    assert wire(registry, "tool") == [
        {
            "name": "f",
            "title": "T",
            "description": "D",
            "inputSchema": {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
            "outputSchema": {"type": "object", "additionalProperties": {"type": "integer"}},
            "annotations": {
                "title": "HT",
                "readOnlyHint": True,
                "destructiveHint": False,
                "idempotentHint": True,
                "openWorldHint": False,
            },
            "icons": [{"src": "https://x.example/i.png"}],
            "_meta": {"k": 1},
        }
    ]


@pytest.mark.parametrize(
    "options", [{}, {"name": "given"}, {"description": "", "title": "", "hints": ToolHints(title="")}]
)
def test_nothing_is_made_up_for_a_tool_but_the_hints_and_a_description(options: dict[str, Any]) -> None:
    registry = Registry()
    registry.tool(nothing, **options)
    (found,) = wire(registry, "tool")
    assert found.keys() == {"name", "description", "inputSchema", "annotations"}
    assert found["description"] == found["name"] == options.get("name", "nothing")
    assert found["annotations"] == {
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": False,
        "openWorldHint": True,
    }


def test_every_attribute_of_a_resource_is_in_the_list() -> None:
    registry = Registry()
    options: Any = {
        "name": "n",
        "title": "T",
        "description": "D",
        "mime_type": "text/markdown",
        "hints": ResourceHints(last_modified="2026-01-31"),
        "icons": [Icon("https://x.example/i.png")],
        "meta": {"k": 1},
    }
    registry.resource(nothing, uri="a://b", size=5, **options)
    registry.resource(lambda v: "", uri="a://{v}", **options)
    expected = {
        "name": "n",
        "title": "T",
        "description": "D",
        "mimeType": "text/markdown",
        "annotations": {"audience": ["user"], "priority": 0.5, "lastModified": "2026-01-31"},
        "icons": [{"src": "https://x.example/i.png"}],
        "_meta": {"k": 1},
    }
    assert wire(registry, "resource") == [{"uri": "a://b", "size": 5, **expected}]
    assert wire(registry, "template") == [{"uriTemplate": "a://{v}", **expected}]


def test_a_resource_publishes_text_or_binary_by_its_annotation_and_no_hints_of_its_own() -> None:
    registry = Registry()

    def binary() -> bytes:
        return b""

    registry.resource(nothing, uri="a://text")
    registry.resource(binary, uri="a://binary")
    text, blob = wire(registry, "resource")
    assert text == {"uri": "a://text", "name": "nothing", "description": "nothing", "mimeType": "text/plain"}
    assert blob["mimeType"] == "application/octet-stream"


def test_hints_of_a_resource_are_published_field_by_field() -> None:
    registry = Registry()
    registry.resource(nothing, uri="a://b", hints=ResourceHints(audience=None, priority=1.0))
    registry.resource(nothing, uri="a://c", hints=ResourceHints(audience=(), priority=0.0))
    registry.resource(nothing, uri="a://d", hints=ResourceHints(audience=None, priority=None))
    assert [each.get("annotations") for each in wire(registry, "resource")] == [
        {"priority": 1.0},
        {"priority": 0.0},
        None,
    ]


def test_every_attribute_of_a_prompt_is_in_the_list() -> None:
    registry = Registry(rename="camel")

    @registry.prompt("f", title="T", icons=[Icon("https://x.example/i.png")], meta={"k": 1})
    def function(first_name: Annotated[str, Param("Who")], age: int | None = None) -> str:
        """Greets."""
        return ""

    assert wire(registry, "prompt") == [
        {
            "name": "f",
            "title": "T",
            "description": "Greets.",
            "arguments": [
                {"name": "firstName", "description": "Who", "required": True},
                {"name": "age", "required": False},
            ],
            "icons": [{"src": "https://x.example/i.png"}],
            "_meta": {"k": 1},
        }
    ]


def test_meta_is_asked_for_once_and_may_be_nothing() -> None:
    asked: list[int] = []

    def provider() -> dict[str, Any] | None:
        asked.append(1)
        return None

    registry = Registry()
    registry.tool(nothing, meta=provider)
    assert "_meta" not in wire(registry, "tool")[0]
    assert "_meta" not in wire(registry, "tool", MODERN)[0]
    Registry().mount(registry)
    assert asked == [1]
    outer = Registry()
    registry.prompt(nothing, meta=lambda: {"k": len(asked)})
    outer.mount(registry, namespace="in")
    assert wire(outer, "prompt")[0]["_meta"] == {"k": 1}


def test_what_becomes_of_a_mapping_later_is_not_published() -> None:
    meta: dict[str, Any] = {"owner": {"team": "a"}}
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}}
    registry = Registry()
    registry.tool(nothing, meta=MappingProxyType(meta), input_schema=schema, output_schema=schema)
    before = wire(registry, "tool")[0]
    assert (before["_meta"], before["inputSchema"], before["outputSchema"]) == (meta, schema, schema)
    before = json.loads(json.dumps(before))
    meta["owner"]["team"] = schema["properties"]["a"]["type"] = "string"
    meta["more"] = schema["more"] = 1
    registry.tool(nothing, name="more")  # lists are made anew
    assert wire(registry, "tool")[0] == before


def test_two_different_titles_are_pointed_out(caplog: pytest.LogCaptureFixture) -> None:
    registry = Registry()
    registry.tool(nothing, name="same", title="T", hints=ToolHints(title="T"))
    assert not caplog.records
    registry.tool(nothing, title="T", hints=ToolHints(title="U"))
    assert "two titles" in caplog.text


class Order(Struct):
    id: str


class Colour(Enum):
    RED = "red"


def returning(annotation: Any) -> Callable[[], Any]:
    def f() -> Any: ...

    f.__annotations__["return"] = annotation
    return f


@pytest.mark.parametrize(
    ("annotation", "option", "published"),
    [
        # published in 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28
        (Order, True, [None, None, "object", "object", "object"]),
        (list[Order], True, [None, None, None, None, "array"]),
        (list[Order], "wrap", [None, None, "object", "object", "array"]),
        (int, True, [None, None, None, None, None]),
        (int, "any", [None, None, None, None, "integer"]),
        (Order, False, [None, None, None, None, None]),
        (CallToolResult, Order, [None, None, "object", "object", "object"]),
    ],
)
def test_output_schemas_are_published_to_the_revisions_that_can_carry_them(
    annotation: Any, option: Any, published: list[str | None]
) -> None:
    registry = Registry()
    registry.tool(returning(annotation), output_schema=option)
    found = [registry.list("tool", version)[0].output_schema for version in VERSIONS]
    assert [schema and schema["type"] for schema in found] == published


@pytest.mark.parametrize("annotation", [int, str, None, Colour])
def test_an_output_schema_without_effect_is_pointed_out_once(annotation: Any, caplog: pytest.LogCaptureFixture) -> None:
    Registry().tool(returning(annotation), output_schema=True)
    (record,) = caplog.records
    assert (record.levelname, "output_schema has no effect" in record.getMessage()) == ("WARNING", True)


def test_an_output_schema_of_a_ready_result_has_no_effect_and_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    registry = Registry()
    registry.tool(returning(CallToolResult), output_schema=True)
    assert not caplog.records
    assert registry.list("tool", MODERN)[0].output_schema is None


def test_a_schema_that_some_revisions_cannot_carry_is_mentioned_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "mcpcore.registry"):
        Registry().tool(returning(list[Order]), output_schema=True)
    (record,) = caplog.records
    assert record.levelname == "INFO"
    assert "2025-06-18, 2025-11-25" in record.getMessage()


def test_the_registry_s_output_schema_holds_for_tools_that_do_not_say(caplog: pytest.LogCaptureFixture) -> None:
    registry = Registry(output_schema=True)
    registry.tool(returning(Order), name="published")
    registry.tool(returning(Order), name="not", output_schema=False)
    registry.tool(returning(int), name="scalar")
    assert [bool(each.output_schema) for each in registry.list("tool", LEGACY)] == [True, False, False]
    assert not caplog.records


# -- looking up ----------------------------------------------------------------------------------------------------


def test_a_list_is_the_same_object_until_something_changes() -> None:
    registry = Registry()
    registry.tool(nothing, name="a")
    first = registry.list("tool", LEGACY)
    assert registry.list("tool", LEGACY) is first
    registry.tool(nothing, name="b")
    assert len(registry.list("tool", LEGACY)) == 2


def test_there_is_no_list_of_completions_and_none_for_revisions_that_do_not_exist() -> None:
    with pytest.raises(ValueError, match="tool, resource, template, prompt"):
        Registry().list("completion", LEGACY)
    for ask in (Registry().snapshot, Registry().cost, functools.partial(Registry().list, "tool")):
        with pytest.raises(ValueError, match=f"no revision '2025-6-18'; there are {', '.join(VERSIONS)}"):
            ask("2025-6-18")


def test_fixed_resources_come_before_templates_and_templates_in_order() -> None:
    registry = Registry()
    registry.resource(lambda path: "", uri="a://{+path}", name="all")
    registry.resource(lambda v: "", uri="a://{v}", name="one")
    registry.resource(nothing, uri="a://fixed")
    assert registry.match_resource("b://x") is None
    for uri, name in (("a://fixed", "nothing"), ("a://other", "all"), ("a://x/y", "all")):
        found = registry.match_resource(uri)
        assert found is not None
        assert found.name == name


@pytest.mark.parametrize(
    ("registered", "asked"),
    [
        ("a://x y", "a://x%20y"),
        ("a://x%20y", "a://x y"),
        ("a://ä", "a://%C3%A4"),
        ("a://%C3%A4", "a://ä"),
        ("urn:isbn:1", "urn:isbn:1"),
        ("users/me", "users/me"),
        ("HTTP://Host/Path", "HTTP://Host/Path"),
    ],
)
def test_a_resource_is_found_in_either_spelling(registered: str, asked: str) -> None:
    registry = Registry()
    registry.resource(nothing, uri=registered)
    assert registry.match_resource(asked) is not None


@pytest.mark.parametrize(
    ("registered", "asked"),
    [("a://x/y", "a://x%2Fy"), ("a://Host", "a://host"), ("a://h", "a://h/"), ("http://h:80", "http://h")],
)
def test_uris_are_opaque_otherwise(registered: str, asked: str) -> None:
    registry = Registry()
    registry.resource(nothing, uri=registered)
    assert registry.match_resource(asked) is None


def test_a_completion_for_the_argument_wins_over_one_for_all() -> None:
    registry = Registry()
    registry.complete(lambda prefix: ["all"], prompt="p")
    registry.complete(lambda prefix: ["city"], prompt="p", argument="city")
    registry.complete(lambda prefix: ["key"], uri="a://{key}", argument="key")
    by_name = {name: registry.find_completion(PromptReference("p"), name) for name in ("city", "country")}
    assert {name: found and found.key[2] for name, found in by_name.items()} == {"city": "city", "country": None}
    assert registry.find_completion(ResourceTemplateReference("a://{key}"), "key") is not None
    assert registry.find_completion(ResourceTemplateReference("a://{key}"), "other") is None
    assert registry.find_completion(PromptReference("q"), "city") is None
    registry.complete(lambda prefix: ["all"], prompt="q", argument="")
    assert registry.find_completion(PromptReference("q"), "city") is not None, "'' says no argument"


def test_what_is_hidden_is_neither_listed_nor_found() -> None:
    registry = Registry()

    def for_admins(who: Any) -> bool:
        return bool(who == "admin")

    registry.tool(nothing, name="open")
    registry.tool(nothing, name="hidden", visible=for_admins)
    registry.prompt(nothing, name="hidden", visible=for_admins)
    registry.resource(nothing, uri="a://fixed", visible=for_admins)
    registry.resource(lambda v: "", uri="b://{v}", name="t", visible=for_admins)
    registry.complete(lambda prefix: [], prompt="hidden")

    def seen(who: Any) -> tuple[Any, ...]:
        return (
            [each.name for each in registry.list("tool", LEGACY, who)],
            registry.find_tool("hidden", who) is not None,
            registry.find_prompt("hidden", who) is not None,
            registry.match_resource("a://fixed", who) is not None,
            registry.match_resource("b://x", who) is not None,
            registry.find_completion(PromptReference("hidden"), "x", who) is not None,
        )

    assert registry.has_visibility
    assert seen(None) == (["open"], False, False, False, False, False)
    assert seen("admin") == (["open", "hidden"], True, True, True, True, True)


# -- changing ------------------------------------------------------------------------------------------------------


def test_handlers_are_added_and_removed_at_run_time_and_subscribers_are_told_the_kind() -> None:
    registry = Registry()
    heard: list[str] = []
    unsubscribe = registry.subscribe(heard.append)
    generation = registry.generation

    assert registry.add_tool(nothing, "f", description="D") is registry.find_tool("f")
    registry.prompt(nothing)
    registry.resource(nothing, uri="a://b")
    registry.resource(lambda v: "", uri="a://{v}", name="t")
    assert heard == ["tool", "prompt", "resource", "template"]
    assert registry.generation > generation

    running = registry.find_tool("f")
    registry.remove("tool", "f")
    registry.remove("resource", "a://b")
    registry.remove("template", "t")
    assert heard[4:] == ["tool", "resource", "template"]
    assert registry.find_tool("f") is None
    assert running is not None
    assert running.invoke(CallToolParams("f"), None, LEGACY).is_error is False, "a call that runs is not disturbed"

    unsubscribe()
    registry.add_tool(nothing, "f")
    assert len(heard) == 7


def test_an_include_is_one_change_per_kind() -> None:
    registry = Registry()
    heard: list[str] = []
    registry.subscribe(heard.append)
    registry.include(Tools())
    assert sorted(heard) == ["completion", "prompt", "resource", "template", "tool"]


def test_add_tool_honours_what_was_declared_unless_told_otherwise() -> None:
    @tool("declared", description="D")
    def function() -> None: ...

    registry = Registry()
    registry.add_tool(function)
    registry.add_tool(function, "other")
    assert [(each.name, each.description) for each in registry.list("tool", LEGACY)] == [
        ("declared", "D"),
        ("other", "other"),
    ]


def test_registering_a_marked_function_directly_keeps_what_its_mark_says() -> None:
    @tool("declared", read_only=True)
    @prompt("asked", title="Asked")
    def function() -> str:
        return ""

    registry = Registry()
    registry.tool(function)
    registry.tool()(functools.partial(function))
    registry.tool(function, name="other")
    registry.prompt(function)
    assert [(each["name"], each["annotations"]["readOnlyHint"]) for each in wire(registry, "tool")] == [
        ("declared", True),
        ("function", False),
        ("other", False),
    ]
    assert [(each["name"], each["title"]) for each in wire(registry, "prompt")] == [("asked", "Asked")]


def test_string_annotations_of_a_marked_function_mean_what_they_meant_where_it_was_marked() -> None:
    def make() -> Callable[..., None]:
        Status = Literal["open", "closed"]  # the annotation mentions it

        @tool
        def function(status: "Status") -> None: ...

        return function

    registry = Registry()
    registry.tool(make())
    assert wire(registry, "tool")[0]["inputSchema"]["properties"]["status"]["enum"] == ["open", "closed"]


def test_a_call_that_is_marked_is_named_after_its_class() -> None:
    class Search:
        @tool
        def __call__(self, word: str) -> str:
            return word

    registry = Registry()
    registry.include(Search())
    assert names(registry) == ["Search"]


def test_add_tool_gives_nothing_for_a_tool_that_is_not_taken() -> None:
    assert Registry("async").add_tool(nothing) is None


def test_removing_what_is_not_there_names_what_is() -> None:
    registry = Registry()
    registry.tool(nothing, name="here")
    with pytest.raises(KeyError, match="there are: here"):
        registry.remove("tool", "gone")
    with pytest.raises(ValueError, match="there are tool, resource, template, prompt, completion"):
        registry.remove("tools", "here")  # type: ignore[arg-type]  # that is the mistake
    assert names(registry) == ["here"]


# -- mounting ------------------------------------------------------------------------------------------------------


def test_a_mounted_registry_lives_under_its_namespace() -> None:
    notes = Registry(rename="camel", output_schema=True)
    notes.include(Tools())

    @notes.tool
    def find(note_id: str) -> Order:
        return Order(note_id)

    @notes.prompt
    def summarise(text: str) -> str:
        return text

    notes.complete(lambda prefix: [prefix], prompt="summarise", argument="text")
    root = Registry()
    root.tool(nothing, name="find")
    root.mount(notes, namespace="notes")
    assert names(root)[:2] == ["find", "notes_inherited"]
    assert names(root, "prompt") == ["notes_ask", "notes_summarise"]
    assert [each.uri for each in root.list("resource", LEGACY)] == ["notes://notes/all"]
    assert [each.uri_template for each in root.list("template", LEGACY)] == ["notes://notes/{key}"]
    assert root.find_completion(PromptReference("notes_summarise"), "text") is not None
    assert root.find_completion(ResourceTemplateReference("notes://notes/{key}"), "key") is not None
    result = call(root, "notes_find", b'{"noteId":"n"}')
    assert result.structured_content == {"id": "n"}, "settings of the mounted registry hold"
    assert call(root, "notes_find").content[0].text.startswith("Tool (notes_find) input validation failed")
    template = root.match_resource("notes://notes/k")
    assert template is not None
    (contents,) = template.invoke(ReadResourceParams("notes://notes/k"), None, LEGACY).contents
    assert (contents.uri, contents.text) == ("notes://notes/k", "k")


@pytest.mark.parametrize(
    ("uri", "below"),
    [
        ("notes://all", "notes://ns/all"),
        ("config:a/b", "config:ns/a/b"),
        ("users/me", "ns/users/me"),
        ("x://{v}", "x://ns/{v}"),
    ],
)
def test_namespaces_are_the_first_segment_of_uris(uri: str, below: str) -> None:
    inner, root = Registry(), Registry()
    inner.resource((lambda v: "") if "{" in uri else nothing, uri=uri, name="r")
    root.mount(inner, namespace="ns")
    (handler,) = root.handlers()
    assert handler.key == below


def test_mounting_without_a_namespace_merges_and_refuses_duplicates() -> None:
    inner, root = Registry(), Registry()
    inner.tool(nothing, name="a")
    root.tool(nothing, name="b")
    root.mount(inner)
    assert names(root) == ["b", "a"]
    with pytest.raises(DuplicateName):
        root.mount(inner)


def test_mounted_handlers_are_selected_by_the_registry_that_takes_them() -> None:
    inner, root = Registry(), Registry("async")
    inner.tool(nothing)
    root.mount(inner, namespace="ns")
    assert names(root) == []
    assert [skipped.name for skipped in root.skipped] == ["ns_nothing"]


@pytest.mark.parametrize("namespace", ["", "a b", "a/b", ".", "..", 5, ["a"]])
def test_a_namespace_is_part_of_a_name(namespace: Any) -> None:
    with pytest.raises(DefinitionError, match=r"namespace=.*: give a text of A-Z"):
        Registry().mount(Registry(), namespace=namespace)


def test_what_is_mounted_is_a_registry() -> None:
    with pytest.raises(DefinitionError, match=r"other=5: give Registry\(…\)"):
        Registry().mount(5)  # type: ignore[arg-type]  # that is the mistake


def test_a_registry_is_mounted_and_not_included() -> None:
    with pytest.raises(DefinitionError, match="mount"):
        Registry().include(Registry())


# -- reports -------------------------------------------------------------------------------------------------------


def test_a_snapshot_is_json_of_everything_published() -> None:
    registry = Registry()
    registry.include(Tools())
    snapshot = registry.snapshot()
    assert json.loads(json.dumps(snapshot)) == snapshot
    assert snapshot["tools"][0] == wire(registry, "tool", MODERN)[0]
    assert {name: len(items) for name, items in snapshot.items()} == {
        "tools": 4,
        "resources": 1,
        "resourceTemplates": 1,
        "prompts": 1,
    }


def test_cost_is_the_size_of_what_the_model_is_sent() -> None:
    registry = Registry()
    registry.tool(nothing, name="short")
    registry.tool(nothing, name="long", description="x" * 100)
    assert registry.cost() == {each.name: len(msgspec.json.encode(each)) for each in registry.list("tool", MODERN)}
    assert registry.cost()["long"] > registry.cost()["short"] + 90


def test_a_report_names_what_is_there_and_what_is_not() -> None:
    registry = Registry("sync")
    registry.include(Six())
    report = registry.report().splitlines()
    assert report[0] == "tools: 4"
    assert report[1:] == [skipped.message for skipped in registry.skipped]


def lint_rules(function: Any, **options: Any) -> list[str]:
    registry = Registry()
    registry.tool(function, **options)
    return [finding.rule for finding in registry.lint()]


GOOD: dict[str, Any] = {"description": "Returns one order.", "read_only": True}


def test_lint_points_out_what_a_model_has_to_guess() -> None:
    def described(x: Annotated[str, Param("The order ID")]) -> str:
        return x

    def undescribed(x: str) -> str:
        return x

    def listed(x: Annotated[str, Param("One of PENDING, SHIPPED")]) -> str:
        return x

    def literal(x: Annotated[Literal["PENDING", "SHIPPED"], Param("One of PENDING, SHIPPED")]) -> str:
        return x

    def orders() -> list[str]:
        return []

    assert lint_rules(described, **GOOD) == []
    assert lint_rules(described, read_only=True) == ["no-description"]
    assert lint_rules(described, name="get_order", description="Get order", read_only=True) == ["description-is-name"]
    assert lint_rules(undescribed, **GOOD) == ["parameter-without-description"]
    assert lint_rules(listed, **GOOD) == ["listed-values"]
    assert lint_rules(literal, **GOOD) == []
    assert lint_rules(orders, **GOOD) == ["empty-list"]
    assert lint_rules(orders, description="All orders. An empty list means none.", read_only=True) == []
    assert lint_rules(described, description="Returns one order.") == ["no-hints"]
    assert lint_rules(described, description="Returns one order.", hints=ToolHints()) == []


def test_lint_finds_completions_of_nothing() -> None:
    registry = Registry()

    @registry.prompt
    def greet(name: Annotated[str, Param("Who")]) -> str:
        """Greets."""
        return name

    @registry.resource("a://{key}")
    def at(key: Annotated[str, Param("Where")]) -> str:
        """What is there."""
        return key

    registry.complete(lambda prefix: [], prompt="greet")
    registry.complete(lambda prefix: [], prompt="gone")
    registry.complete(lambda prefix: [], prompt="greet", argument="name")
    registry.complete(lambda prefix: [], prompt="greet", argument="nmae")
    registry.complete(lambda prefix: [], uri="a://{key}", argument="key")
    registry.complete(lambda prefix: [], uri="a://{key}", argument="value")
    registry.complete(lambda prefix: [], uri="greet")
    assert [str(finding) for finding in registry.lint()] == [
        f"completion {name}: {message} [nothing-to-complete]"
        for name, message in (
            ("'gone'", "there is no prompt 'gone'"),
            ("'greet#nmae'", "'greet' has no 'nmae', but name"),
            ("'a://{key}#value'", "'a://{key}' has no 'value', but key"),
            ("'greet'", "there is no resource template 'greet'"),
        )
    ]


# -- shape of a call ------------------------------------------------------------------------------------------------


def test_string_annotations_of_a_local_class_are_resolved_where_it_is_decorated() -> None:
    source = textwrap.dedent(
        """
        from __future__ import annotations
        from msgspec import Struct
        from mcpcore.providers.declarations import tool
        from mcpcore.providers.registry import Registry

        def build(registry: Registry) -> None:
            class Item(Struct):
                n: int

            class Tools:
                @tool
                def marked(self, item: Item) -> Item:
                    return item

            @registry.tool
            def direct(item: Item) -> Item:
                return item

            registry.include(Tools())
        """
    )
    module = ModuleType("local_annotations")
    exec(compile(source, "local_annotations.py", "exec"), module.__dict__)  # noqa: S102 - our own text
    registry = Registry()
    module.build(registry)
    for name in ("direct", "marked"):
        assert call(registry, name, b'{"item":{"n":1}}').content[0].text == '{"n":1}'


def test_partials_are_called_with_what_they_bound() -> None:
    def both(x: int, y: str = "d") -> str:
        return f"{x} {y}"

    registry = Registry()
    registry.tool(functools.partial(both, 1), name="positional")
    registry.tool(functools.partial(both, x=2), name="keyword")
    assert list(registry.list("tool", LEGACY)[0].input_schema["properties"]) == ["y"]
    assert registry.list("tool", LEGACY)[1].input_schema["required"] == []
    assert call(registry, "positional", b'{"y":"a"}').content[0].text == "1 a"
    assert call(registry, "keyword").content[0].text == "2 d"
    assert call(registry, "keyword", b'{"x":3}').content[0].text == "3 d"


PARAMETERS = [
    *("json", "dict", "copy", "schema", "model_config", "model_dump", "fields", "validate", "self", "self_", "cls", "class_"),
    *("_private", "__dunder", "__dunder__", "_", "type", "id", "list", "print", "name", "title", "ctx", "context", "größe"),
    # what the machinery around a call calls its own things
    *("params", "source", "version", "values", "args", "kwargs", "function", "call", "tool", "request", "meta", "arguments"),
]  # fmt: skip

FORMS = {
    "def": "def f({0}: str): return {0}",
    "async def": "async def f({0}: str): return {0}",
    "keyword-only": "def f(*, {0}: str): return {0}",
    "positional-only": "def f({0}: str, /): return {0}",
    "optional": "def f({0}: str = 'd', /): return {0}",
    "checked": "def f({0}: Annotated[str, Meta(pattern='v')]): return {0}",
    "beside an injected one": "def f(given: RequestMeta, {0}: str): return {0}",
    "beside a dependency": "async def f(made: Annotated[str, Depends(lambda: '')], {0}: str): return {0}",
    "generator": "def f({0}: str): yield {0}",
}


@pytest.mark.parametrize("form", FORMS)
def test_a_parameter_is_called_on_the_wire_what_it_is_called_in_python(form: str) -> None:
    for name in PARAMETERS:
        names: dict[str, Any] = {"Annotated": Annotated, "Depends": Depends, "Meta": Meta, "RequestMeta": RequestMeta}
        exec(FORMS[form].format(name), names)  # noqa: S102 - our own text
        registry = Registry()
        registry.tool(names["f"])
        (published,) = registry.list("tool", LEGACY)
        assert list(published.input_schema["properties"]) == [name]
        result = call(registry, "f", msgspec.json.encode({name: "v"}))
        assert (drive(result) if hasattr(result, "send") else result).content[0].text == "v"


def test_a_variable_and_an_argument_of_a_prompt_are_called_what_they_are_called_in_python() -> None:
    for name in PARAMETERS:
        names: dict[str, Any] = {}
        exec(FORMS["def"].format(name), names)  # noqa: S102 - our own text
        registry = Registry()
        registry.prompt(names["f"])
        registry.resource(names["f"], uri=f"a://{{{name}}}")
        prompt_, template = registry.find_prompt("f"), registry.match_resource("a://v")
        assert prompt_ is not None and template is not None
        assert prompt_.invoke(GetPromptParams("f", {name: "v"}), None, LEGACY).messages[0].content.text == "v"
        assert template.invoke(ReadResourceParams("a://v"), None, LEGACY).contents[0].text == "v"


class Bound:
    def method(self, x: int, y: "str") -> str:
        return f"{x} {y}"

    async def amethod(self, x: int, y: "str") -> str:
        return f"{x} {y}"

    def __call__(self, x: int, y: "str") -> str:
        return f"{x} {y}"

    first = functools.partialmethod(method, 1)
    afirst = functools.partialmethod(amethod, 1)


def documented(x: int, y: "str") -> str:
    """Join.

    Args:
        x: the number
        y: the text
    """
    return f"{x} {y}"


async def adocumented(x: int, y: "str") -> str:
    return f"{x} {y}"


def positional_only(x: int, y: "str", /) -> str:
    return f"{x} {y}"


def with_meta(x: int, meta: RequestMeta, y: "str") -> str:
    return f"{x} {y}"


def yielding(x: int, y: "str") -> Iterator[str]:
    yield f"{x} {y}"


@pytest.mark.parametrize("explicit", ["given", None])
@pytest.mark.parametrize(
    ("function", "is_async", "name"),
    [
        (documented, False, "documented"),
        (adocumented, True, "adocumented"),
        (positional_only, False, "positional_only"),
        (with_meta, False, "with_meta"),
        (yielding, False, "yielding"),
        (Bound().method, False, "method"),
        (Bound().amethod, True, "amethod"),
        (Bound(), False, "Bound"),
        (functools.partial(documented), False, "documented"),
    ],
)
def test_what_is_bound_by_position_is_gone_and_what_is_bound_by_name_is_a_default(
    function: Any, is_async: bool, name: str, explicit: str | None
) -> None:
    ways: list[tuple[Any, dict[str, Any], list[str], bytes, str]] = [
        (functools.partial(function, 1), {"y": {"type": "string"}}, ["y"], b'{"y":"a"}', "1 a"),
        (functools.partial(function, 1, y="b"), {"y": {"type": "string", "default": "b"}}, [], b"{}", "1 b"),
        (functools.partial(functools.partial(function, 1), y="b"), {"y": {"type": "string", "default": "b"}}, [], b'{"y":"c"}', "1 c"),
        (functools.partial(function, x=1), {"x": {"type": "integer", "default": 1}, "y": {"type": "string"}}, ["y"], b'{"y":"a"}', "1 a"),
        (functools.partial(functools.partial(function, x=1), x=2), {"x": {"type": "integer", "default": 2}, "y": {"type": "string"}}, ["y"], b'{"x":3,"y":"a"}', "3 a"),
    ]  # fmt: skip
    if function is positional_only:
        ways = ways[:1]  # Python binds no more of it by name
    for partial, properties, required, arguments, text in ways:
        registry = Registry()
        registry.tool(partial, name=explicit)
        (published,) = registry.list("tool", LEGACY)
        assert published.name == (explicit or name)
        found = registry.find_tool(published.name)
        assert found is not None and found.is_async is is_async
        for each in published.input_schema["properties"].values():
            each.pop("description", None)
        assert (published.input_schema["properties"], published.input_schema["required"]) == (properties, required)
        result = call(registry, published.name, arguments)
        assert (drive(result) if is_async else result).content[0].text == text


def test_a_partial_keeps_what_the_docstring_says() -> None:
    registry = Registry()
    registry.tool(functools.partial(documented, x=1))
    (published,) = registry.list("tool", LEGACY)
    assert published.description == "Join."
    assert [each["description"] for each in published.input_schema["properties"].values()] == ["the number", "the text"]


def test_a_partial_method_is_a_method_of_its_object() -> None:
    registry = Registry()
    registry.tool(Bound().first, name="first")
    registry.tool(Bound().afirst, name="afirst")
    assert call(registry, "first", b'{"y":"a"}').content[0].text == "1 a"
    assert drive(call(registry, "afirst", b'{"y":"a"}')).content[0].text == "1 a"


def test_what_a_partial_binds_by_name_is_not_shared_between_calls() -> None:
    def count(seen: dict[str, int]) -> int:
        seen["n"] = seen.get("n", 0) + 1
        return seen["n"]

    registry = Registry()
    registry.tool(functools.partial(count, seen={}))
    assert [call(registry, "count").content[0].text for _ in range(2)] == ["1", "1"]


def test_a_partial_that_cannot_be_called_is_refused() -> None:
    function: Any = documented
    for partial in (functools.partial(function, z=1), functools.partial(function, 1, "a", 2)):
        with pytest.raises(DefinitionError, match="incorrect arguments"):
            Registry().tool(partial)


def test_a_thousand_tools_register_and_list_in_linear_time() -> None:
    registry = Registry()
    for number in range(1000):
        registry.tool(nothing, name=f"tool-{number}")
    assert len(registry.list("tool", LEGACY)) == 1000


def test_prompts_and_tools_share_a_function() -> None:
    @prompt("as-prompt")
    @tool("as-tool")
    def both(x: str, request: RequestMeta) -> str:
        return x

    registry = Registry()
    registry.include(both)
    assert (names(registry), names(registry, "prompt")) == (["as-tool"], ["as-prompt"])
    found = registry.find_prompt("as-prompt")
    assert found is not None
    assert found.invoke(GetPromptParams("as-prompt", {"x": "y"}), None, LEGACY).messages[0].content.text == "y"


def test_a_tool_that_takes_the_wrong_request_is_refused_where_it_is_registered() -> None:
    def f(request: CallToolRequest) -> str:
        return ""

    with pytest.raises(DefinitionError, match="GetPromptRequest"):
        Registry().prompt(f)


def test_an_unknown_name_is_for_the_caller_to_answer() -> None:
    registry = Registry()
    assert registry.find_tool("x") is None
    assert registry.find_prompt("x") is None
    assert not isinstance(registry.match_resource("x://y"), McpError)
