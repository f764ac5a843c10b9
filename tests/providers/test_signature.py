"""Inspection: colour, parameters and payload of every shape that a handler can have."""

import asyncio
import functools
import inspect
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterator,
)
from contextlib import asynccontextmanager, contextmanager
from dataclasses import field as dataclass_field
from typing import Annotated, Any, ClassVar, Generic, TypeVar

import attrs
import msgspec
import pydantic
import pytest
from msgspec import UNSET, UnsetType

from mcpcore.exceptions import DefinitionError
from mcpcore.providers.markers import (
    CallToolRequest,
    CompleteRequest,
    Demand,
    Depends,
    Elicit,
    GetPromptRequest,
    Injection,
    Log,
    Param,
    Progress,
    ProgressToken,
    ReadResourceRequest,
    RequestMeta,
    ToolContext,
)
from mcpcore.providers.signature import Colour, Kind, Signature, inspect_callable
from mcpcore.types import CallToolResult, CompletionArgument, CompletionContext

T = TypeVar("T")


class Context(Generic[T]):
    __mcpcore_injection__: ClassVar = Injection("context", Demand.FULL)


class SyncContext:
    __mcpcore_injection__: ClassVar = Injection("sync_context", Demand.FULL)


class TransportContext:
    __mcpcore_injection__: ClassVar = Injection("transport_context", Demand.TRANSPORT)


class Special(Context[int]): ...


def read(function: Any, kind: Kind = "tool", **options: Any) -> Signature:
    return inspect_callable(function, kind=kind, **options)


# -- colour ------------------------------------------------------------------------------------------------------


def plain(x: int = 0) -> int:
    """Adds.

    Args:
        x: the number
    """
    return x


def generator(x: int) -> Iterator[int]:
    yield x


async def coroutine(x: int, y: str = "") -> int:
    """Awaits."""
    return x


async def stream(x: int) -> AsyncIterator[int]:
    yield x


def promise(x: int) -> Awaitable[int]:
    return coroutine(x)


def future(x: int) -> "asyncio.Future[int]":
    raise NotImplementedError


def source(x: int) -> AsyncIterable[int]:
    return stream(x)


def wrapped(fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return wrapper


def awaited(fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fn)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return wrapper


class Tools:
    def method(self, x: int) -> int:
        """Of the object."""
        return x

    async def amethod(self, x: int) -> int:
        return x

    @staticmethod
    async def static(x: int) -> int:
        return x

    @classmethod
    async def on_class(cls, x: int) -> int:
        return x


class Derived(Tools):
    def method(self, x: int) -> int:
        return x


class Callable_:
    """A class's text."""

    def __call__(self, x: int) -> int:
        return x


class AsyncCallable:
    async def __call__(self, x: int) -> int:
        """The method's text."""
        return x


def marked(x: int) -> Any: ...


if hasattr(inspect, "markcoroutinefunction"):
    inspect.markcoroutinefunction(marked)
else:
    marked._is_coroutine = object()  # type: ignore[attr-defined]  # how it was done before


@pytest.mark.parametrize(
    ("function", "colour", "form"),
    [
        (plain, Colour.IMPERATIVE, "def"),
        (generator, Colour.IMPERATIVE, "def generator"),
        (lambda x: x, Colour.IMPERATIVE, "def"),
        (functools.partial(plain, 1), Colour.IMPERATIVE, "def"),
        (Callable_(), Colour.IMPERATIVE, "def"),
        (Tools().method, Colour.IMPERATIVE, "def"),
        (wrapped(plain), Colour.IMPERATIVE, "def"),
        (functools.lru_cache(plain), Colour.IMPERATIVE, "def"),
        (coroutine, Colour.AWAITABLE, "async def"),
        (functools.partial(coroutine, 1), Colour.AWAITABLE, "async def"),
        (functools.partial(coroutine, y="a"), Colour.AWAITABLE, "async def"),
        (Tools().amethod, Colour.AWAITABLE, "async def"),
        (Tools.static, Colour.AWAITABLE, "async def"),
        (Tools.__dict__["static"], Colour.AWAITABLE, "async def"),
        (Tools.on_class, Colour.AWAITABLE, "async def"),
        (AsyncCallable(), Colour.AWAITABLE, "async def"),
        (functools.partial(AsyncCallable(), 1), Colour.AWAITABLE, "async def"),
        (wrapped(coroutine), Colour.AWAITABLE, "wraps an async def"),
        (wrapped(wrapped(coroutine)), Colour.AWAITABLE, "wraps an async def"),
        (awaited(plain), Colour.AWAITABLE, "async def"),
        (promise, Colour.AWAITABLE, "returns Awaitable[int]"),
        (future, Colour.AWAITABLE, "returns Future[int]"),
        (marked, Colour.AWAITABLE, "async def"),
        (stream, Colour.STREAM, "async generator"),
        (wrapped(stream), Colour.STREAM, "wraps an async generator"),
        (source, Colour.STREAM, "returns AsyncIterable[int]"),
        (functools.partial(stream, 1), Colour.STREAM, "async generator"),
    ],
)
def test_colour_is_a_property_of_the_callable(function: Any, colour: Colour, form: str) -> None:
    found = read(function)
    assert (found.colour, found.form) == (colour, form)


@pytest.mark.parametrize(
    ("annotation", "colour", "payload"),
    [
        (int, Colour.IMPERATIVE, int),
        (Awaitable[int], Colour.AWAITABLE, int),
        (Coroutine[Any, Any, list[int]], Colour.AWAITABLE, list[int]),
        (Awaitable, Colour.AWAITABLE, inspect.Signature.empty),
        (AsyncIterator[int], Colour.STREAM, list[int]),
        (AsyncGenerator[int, None], Colour.STREAM, list[int]),
        (AsyncIterator[int | Progress | Log], Colour.STREAM, list[int]),
        (AsyncIterator[Progress | CallToolResult], Colour.STREAM, CallToolResult),
        (AsyncIterator[Any], Colour.STREAM, inspect.Signature.empty),
        (Iterator[int], Colour.IMPERATIVE, Iterator[int]),
    ],
)
def test_the_annotation_of_a_def_gives_colour_and_payload(annotation: Any, colour: Colour, payload: Any) -> None:
    def function() -> Any: ...

    function.__annotations__["return"] = annotation
    found = read(function)
    assert (found.colour, found.returns) == (colour, payload)


def test_a_generator_gives_a_list_of_what_it_yields() -> None:
    def items() -> Generator[int | Progress, None, str]:
        yield 1
        return "unused"

    assert read(items).returns == list[int]
    assert read(items).streams


def test_a_coroutine_that_gives_an_async_iterator_streams() -> None:
    async def late() -> AsyncIterator[int]:
        return stream(1)

    assert (read(late).colour, read(late).returns) == (Colour.STREAM, list[int])


# -- names and places ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "name", "doc"),
    [
        (plain, "plain", "Adds."),
        (wrapped(plain), "plain", "Adds."),
        (functools.partial(coroutine, 1), "coroutine", "Awaits."),
        (functools.lru_cache(plain), "plain", "Adds."),
        (Tools().method, "method", "Of the object."),
        (Derived().method, "method", "Of the object."),
        (Callable_(), "Callable_", "A class's text."),
        (AsyncCallable(), "AsyncCallable", "The method's text."),
        (stream, "stream", None),
        (functools.partial(stream, 1), "stream", None),
    ],
)
def test_names_and_docstrings_are_those_of_the_function_inside(function: Any, name: str, doc: str | None) -> None:
    found = read(function)
    assert (found.name, found.docstring.summary) == (name, doc)


def test_the_place_of_a_function_is_its_file_and_line() -> None:
    found = read(Tools().method)
    assert found.qualname == f"{__name__}.Tools.method"
    assert found.location.endswith(f"test_signature.py:{Tools.method.__code__.co_firstlineno}")


# -- arguments -----------------------------------------------------------------------------------------------------


def fields_of(function: Any, **options: Any) -> list[tuple[Any, ...]]:
    return [(f.name, f.type, f.required) for f in read(function, **options).fields]


def test_partials_lose_bound_positionals_and_make_bound_keywords_optional() -> None:
    def both(x: int, y: "str", z: float) -> None: ...

    assert fields_of(functools.partial(both, 1)) == [("y", str, True), ("z", float, True)]
    by_keyword = read(functools.partial(both, y="a"))
    assert [(f.name, f.type, f.required) for f in by_keyword.fields] == [
        ("x", int, True),
        ("y", str, False),
        ("z", float, True),
    ]
    assert by_keyword.fields[1].default == "a"
    assert fields_of(functools.partial(functools.partial(coroutine, 1), y="a")) == [("y", str, False)]


@pytest.mark.parametrize(
    "name",
    [
        *("json", "dict", "copy", "schema", "model_config", "model_dump", "self_", "validate", "class_", "_private"),
        *("__dunder", "ctx", "type", "id", "größe", "self", "cls"),
    ],
)
def test_any_parameter_name_is_the_name_on_the_wire(name: str) -> None:
    namespace: dict[str, Any] = {}
    exec(f"def f({name}: str, *, other_{name}: int = 1): ...", namespace)  # noqa: S102 - our own text
    found = read(namespace["f"])
    assert [(f.name, f.alias) for f in found.fields] == [(name, None), (f"other_{name}", None)]


def test_positional_only_and_keyword_only_parameters_are_published_alike() -> None:
    def function(a: int, b: int = 2, /, c: int = 3, *, d: int) -> None: ...

    found = read(function)
    assert [f.name for f in found.fields] == ["a", "b", "c", "d"]
    assert found.positional == ("a", "b")


def test_a_parameter_without_annotation_takes_anything() -> None:
    assert fields_of(lambda x, y=1: None) == [("x", Any, True), ("y", Any, False)]


def test_string_annotations_mean_what_they_name_where_the_function_was_defined() -> None:
    Local = int

    def function(x: "list[Local]", y: "str | None" = None) -> "Local":  # type: ignore[valid-type]  # at run time
        return Local()

    found = read(function)
    assert [f.type for f in found.fields] == [list[int], str | None]
    assert found.returns is int
    assert fields_of(wrapped(function))[0] == ("x", list[int], True)


def test_a_wrapper_is_read_like_what_it_wraps() -> None:
    assert fields_of(wrapped(coroutine)) == [("x", int, True), ("y", str, False)]


sentinel = object()
shared: list[int] = []


@pytest.mark.parametrize(
    ("default", "annotation", "required", "value", "factory"),
    [
        (1, int, False, 1, None),
        (None, int, False, None, None),
        (sentinel, str, False, sentinel, None),
        (shared, list[int], False, shared, None),
        (UNSET, str | UnsetType, False, UNSET, None),
        (dataclass_field(default=2), int, False, 2, None),
        (dataclass_field(default_factory=list), list[int], False, UNSET, list),
        (dataclass_field(), list[int], True, UNSET, None),
        (msgspec.field(default=2), int, False, 2, None),
        (msgspec.field(default_factory=list), list[int], False, UNSET, list),
        (pydantic.Field(default=2), int, False, 2, None),
        (pydantic.Field(default_factory=list), list[int], False, UNSET, list),
        (pydantic.Field(...), int, True, UNSET, None),
        (pydantic.Field(), int, True, UNSET, None),
        (attrs.field(default=2), int, False, 2, None),
        (attrs.field(factory=list), list[int], False, UNSET, list),
        (attrs.field(), int, True, UNSET, None),
        (attrs.Factory(list), list[int], False, UNSET, list),
    ],
)
def test_defaults_are_found_wherever_they_stand(
    default: Any, annotation: Any, required: bool, value: Any, factory: Any
) -> None:
    def function(x: Any = default) -> None: ...

    function.__annotations__["x"] = annotation
    (field,) = read(function).fields
    assert (field.required, field.default, field.default_factory) == (required, value, factory)


def test_a_pydantic_field_in_annotated_may_hold_the_default() -> None:
    def function(x: Annotated[list[int], pydantic.Field(default_factory=list)]) -> None: ...

    (field,) = read(function).fields
    assert (field.required, field.default_factory) == (False, list)


@pytest.mark.parametrize(
    "default",
    [
        pydantic.Field(default_factory=lambda data: data),
        dataclass_field(default_factory=lambda needed: needed),  # type: ignore[misc, arg-type]  # the mistake
        attrs.Factory(lambda self: self, takes_self=True),
    ],
)
def test_a_factory_that_needs_arguments_is_refused(default: Any) -> None:
    def function(x: list[int] = default) -> None: ...

    with pytest.raises(DefinitionError, match=r"function \(.*parameter 'x'.*takes no arguments"):
        read(function)


def test_param_says_required_alias_header_secret_and_examples() -> None:
    def function(
        a: Annotated[str, Param(required=False, alias="A", header="Region", secret=True, examples=("x",))],
        b: Annotated[str, Param(required=True)] = "",
        c: Annotated[str, Param("inside")] | None = None,
    ) -> None: ...

    a, b, c = read(function).fields
    assert (a.required, a.alias, a.header, a.secret, a.examples) == (False, "A", "Region", True, ("x",))
    assert b.required
    assert (c.required, c.description) == (False, "inside")


@pytest.mark.parametrize(
    "annotation",
    [
        Annotated[str, Param(secret=True)],
        Annotated[str, Param(secret=True)] | None,
        Annotated[str, Param(secret=True)] | int,
        list[Annotated[str, Param(secret=True)]],
        dict[str, Annotated[str, Param(secret=True)] | None],
        Annotated[list[Annotated[str, Param(secret=True)]], Param("All of them")],
    ],
)
def test_a_parameter_is_secret_if_any_part_of_it_is(annotation: Any) -> None:
    def function(x: Any, y: str) -> None: ...

    function.__annotations__["x"] = annotation
    assert [field.secret for field in read(function).fields] == [True, False]


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (Annotated[int, "bare", pydantic.Field(description="f"), msgspec.Meta(description="m"), Param("p")], "p"),
        (Annotated[int, "bare", pydantic.Field(description="f"), msgspec.Meta(description="m")], "m"),
        (Annotated[int, "bare", pydantic.Field(description="f")], "f"),
        (Annotated[int, "bare"], "bare"),
        (Annotated[int, Param()], "documented"),
        (int, "documented"),
    ],
)
def test_descriptions_have_an_order_of_precedence(annotation: Any, text: str) -> None:
    def function(x: Any) -> None:
        """Do.

        Args:
            x: documented
        """

    function.__annotations__["x"] = annotation
    assert read(function).fields[0].description == text


@pytest.mark.parametrize(
    ("name", "wire"),
    [
        ("order_id", "orderId"),
        ("order", "order"),
        ("_private_part", "_privatePart"),
        ("class_", "class"),
        ("a__b", "aB"),
        ("x_1", "x1"),
        ("_", "_"),
    ],
)
def test_camel_renaming_spells_words_together(name: str, wire: str) -> None:
    namespace: dict[str, Any] = {}
    exec(f"def f({name}): ...", namespace)  # noqa: S102 - our own text
    assert read(namespace["f"], rename="camel").fields[0].alias == wire


@pytest.mark.parametrize(
    ("annotation", "default"),
    [
        (int, pydantic.Field(1, alias="ORDER")),
        (int, pydantic.Field(1, validation_alias="ORDER")),
        (Annotated[int, pydantic.Field(alias="ORDER")], 1),
        (int, msgspec.field(default=1, name="ORDER")),
        (int, attrs.field(default=1, alias="ORDER")),
        (Annotated[int, Param(alias="ORDER"), pydantic.Field(alias="other")], msgspec.field(default=1, name="other")),
    ],
)
def test_names_are_found_wherever_they_stand(annotation: Any, default: Any) -> None:
    def function(order_id: Any = default) -> None: ...

    function.__annotations__["order_id"] = annotation
    (field,) = read(function, rename="camel").fields
    assert (field.alias, field.default, field.required) == ("ORDER", 1, False)


@pytest.mark.parametrize("default", [dataclass_field(default=1), msgspec.field(default=1), pydantic.Field(1)])
def test_a_field_without_a_name_leaves_it_to_renaming(default: Any) -> None:
    def function(order_id: int = default) -> None: ...

    assert read(function, rename="camel").fields[0].alias == "orderId"


def test_an_alias_wins_over_renaming() -> None:
    def function(order_id: Annotated[str, Param(alias="ORDER")]) -> None: ...

    assert read(function, rename="camel").fields[0].alias == "ORDER"


# -- injection -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotation", "kind", "demand", "optional"),
    [
        (Context, "context", Demand.FULL, False),
        ("Context", "context", Demand.FULL, False),
        (Context[int], "context", Demand.FULL, False),
        (Annotated[Context, "the context"], "context", Demand.FULL, False),
        (Context | None, "context", Demand.FULL, True),
        ("None | Context[int]", "context", Demand.FULL, True),
        (Annotated[Context | None, "the context"], "context", Demand.FULL, True),
        (TransportContext, "transport_context", Demand.TRANSPORT, False),
        (CallToolRequest, "request", Demand.RAW, False),
        (RequestMeta, "meta", Demand.RAW, False),
        (ToolContext, "tool_context", Demand.RAW, False),
        (ProgressToken, "progress_token", Demand.RAW, True),
    ],
)
@pytest.mark.parametrize("position", ["first", "last", "keyword"])
def test_injected_parameters_are_known_by_type_at_any_position(
    annotation: Any, kind: str, demand: Demand, optional: bool, position: str
) -> None:
    async def first(p: Any, x: int) -> None: ...
    async def last(x: int, p: Any) -> None: ...
    async def keyword(x: int, *, p: Any) -> None: ...

    function = {"first": first, "last": last, "keyword": keyword}[position]
    function.__annotations__["p"] = annotation
    found = read(function)
    assert [f.name for f in found.fields] == ["x"]
    (injected,) = found.injected
    assert (injected.name, injected.injection, injected.optional) == ("p", Injection(kind, demand), optional)


@pytest.mark.parametrize("annotation", [Special, "Special", Special | None, Annotated[Special, "mine"]])
def test_a_subclass_is_injected_as_what_it_is(annotation: Any) -> None:
    async def function(p: Any) -> None: ...

    function.__annotations__["p"] = annotation
    (injected,) = read(function).injected
    assert injected.injection == Injection("context", Demand.FULL, Special)


def test_a_default_of_none_makes_an_injected_parameter_optional() -> None:
    async def function(ctx: Context[int] = None) -> None: ...  # type: ignore[assignment]  # how many people write it

    assert read(function).injected[0].optional


def test_completions_also_inject_the_argument_and_what_was_chosen() -> None:
    def function(arg: CompletionArgument, chosen: CompletionContext, request: CompleteRequest) -> None: ...

    found = read(function, "completion")
    assert [each.injection.kind for each in found.injected] == ["argument", "chosen", "request"]
    assert not found.fields


def test_elsewhere_the_type_of_a_completion_argument_is_an_ordinary_one() -> None:
    def function(arg: CompletionArgument) -> None: ...

    assert read(function).fields[0].type is CompletionArgument


def test_questions_and_dependencies_are_not_published() -> None:
    def make() -> str:
        return ""

    def function(
        x: int,
        sure: Annotated[bool, Elicit("Sure?")],
        why: Annotated[str | None, Elicit("Why?"), msgspec.Meta(max_length=5)],
        db: Annotated[str, Depends(make)],
    ) -> None: ...

    found = read(function)
    assert [f.name for f in found.fields] == ["x"]
    assert found.questions["sure"] == Elicit("Sure?", bool)
    assert found.questions["why"].type == Annotated[str, msgspec.Meta(max_length=5)]
    assert found.optional == {"why"}
    assert found.dependencies == {"db": Depends(make)}


# -- refusals ------------------------------------------------------------------------------------------------------


def variadic(*args: int) -> None: ...
def keywords(**options: int) -> None: ...
def sync_with_context(ctx: Context[Any]) -> None: ...
async def async_with_sync_context(ctx: SyncContext) -> None: ...
async def stream_with_sync_context(ctx: SyncContext) -> AsyncIterator[int]:
    yield 1


def mixed(ctx: TransportContext | str) -> None: ...
def two_of_a_kind(a: TransportContext, b: TransportContext) -> None: ...
def wrong_request(request: GetPromptRequest) -> None: ...
def default_param(x: str = Param("text")) -> None: ...  # type: ignore[assignment]  # that is the mistake
def default_depends(x: str = Depends(plain)) -> None: ...  # type: ignore[assignment]  # that is the mistake
def default_for_question(x: Annotated[bool, Elicit("Sure?")] = False) -> None: ...
def unknown(x: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821
def clash(a: Annotated[int, Param(alias="b")], b: int) -> None: ...


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (variadic, r"\*args has no names.*functools.wraps"),
        (keywords, r"\*\*options has no names.*CallToolRequest"),
        (sync_with_context, "SyncContext, or make it async def"),
        (async_with_sync_context, "Take Context"),
        (stream_with_sync_context, "Take Context"),
        (mixed, "only '| None' is possible"),
        (two_of_a_kind, "take one"),
        (wrong_request, "a tool takes CallToolRequest"),
        (default_param, r"Annotated\[str, Param\(…\)\]"),
        (default_depends, r"Annotated\[str, Depends\(…\)\]"),
        (default_for_question, "'x' is asked for, and its default would never be used. Leave it out, or admit None"),
        (unknown, r"unknown \(.*test_signature.py:\d+\): parameter 'x' is annotated 'Nowhere'"),
        (clash, "both called 'b'"),
        (Tools.method, r"registry.include\(Tools\(…\)\)"),
        (Tools, "is no handler"),
        (Tools.__dict__["on_class"], "is no handler"),
        (5, "is no handler"),
        (iter, "no signature"),
        (functools.singledispatch(lambda text: text), "wrap it in a def"),
    ],
)
def test_what_cannot_be_a_handler_is_refused_with_what_would_work(function: Any, says: str) -> None:
    with pytest.raises(DefinitionError, match=says):
        read(function)


@pytest.mark.parametrize("kind", ["tool", "resource", "template", "prompt", "completion"])
def test_a_context_of_the_wrong_colour_is_refused_for_every_kind(kind: Kind) -> None:
    with pytest.raises(DefinitionError, match=f"{__name__}.sync_with_context.*'ctx: Context"):
        read(sync_with_context, kind)


@pytest.mark.parametrize(
    ("kind", "request_type"),
    [
        ("tool", CallToolRequest),
        ("resource", ReadResourceRequest),
        ("template", ReadResourceRequest),
        ("prompt", GetPromptRequest),
        ("completion", CompleteRequest),
    ],
)
def test_each_kind_takes_its_own_request(kind: Kind, request_type: type) -> None:
    def function(request: Any) -> None: ...

    function.__annotations__["request"] = request_type
    assert read(function, kind).injected[0].injection == Injection("request")
    with pytest.raises(DefinitionError, match=rf"take the raw request \({request_type.__name__}\)"):
        read(keywords, kind)


def test_context_managers_have_the_colour_of_their_generators() -> None:
    @contextmanager
    def manage() -> Iterator[int]:
        yield 1

    @asynccontextmanager
    async def amanage() -> AsyncIterator[int]:
        yield 1

    assert read(manage).colour is Colour.IMPERATIVE
    assert read(amanage).colour is Colour.STREAM
