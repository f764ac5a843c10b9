"""Handlers: injection, every colour and kind from request to result, and what failures become."""

import functools
import itertools
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from enum import Enum
from typing import Annotated, Any, ClassVar
from uuid import UUID

import anyio
import anyio.to_thread
import pytest
from msgspec import UNSET, Raw, UnsetType

from mcpcore.exceptions import (
    CapabilityError,
    DefinitionError,
    InsufficientScope,
    McpError,
    ResourceNotFound,
    ToolError,
)
from mcpcore.providers.handler import Handler
from mcpcore.providers.markers import (
    CallToolRequest,
    CompleteRequest,
    Demand,
    GetPromptRequest,
    Injected,
    Injection,
    Log,
    Param,
    Progress,
    ProgressToken,
    ReadResourceRequest,
    RequestMeta,
    ToolContext,
)
from mcpcore.providers.registry import Registry
from mcpcore.types import (
    CallToolParams,
    CallToolResult,
    CompleteParams,
    CompletionArgument,
    CompletionContext,
    GetPromptParams,
    InputRequiredResult,
    PromptReference,
    ReadResourceParams,
    TextContent,
)
from tests.support.coroutines import drive

VERSION = "2025-11-25"
MODERN = "2026-07-28"


class Context:
    __mcpcore_injection__: ClassVar = Injection("context", Demand.FULL)


class SyncContext:
    __mcpcore_injection__: ClassVar = Injection("sync_context", Demand.FULL)


class TransportContext:
    __mcpcore_injection__: ClassVar = Injection("transport_context", Demand.TRANSPORT)


class ServerSession:
    __mcpcore_injection__: ClassVar = Injection("session", Demand.FULL)


class Source:
    is_open = True

    def __init__(self, **values: Any) -> None:
        self.values = values
        self.notified: list[tuple[str, Progress | Log]] = []

    def provide(self, injection: Injection, /) -> Any:
        return self.values.get(injection.kind, f"the {injection.kind}")

    async def ask(self, questions: Mapping[str, Any], /) -> Mapping[str, Any]:
        raise AssertionError("nothing is asked here")

    def notify(self, item: Progress | Log, /) -> None:
        self.notified.append(("loop", item))

    def notify_from_thread(self, item: Progress | Log, /) -> None:
        self.notified.append(("thread", item))

    async def shielded(self, close: Callable[[], Awaitable[Any]], /) -> None:
        with anyio.CancelScope(shield=True):
            await close()


def only(registry: Registry) -> Handler:
    (handler,) = registry.handlers()
    return handler


META = Raw(b'{"progressToken":0,"x":[1]}')
PARAMS: dict[str, Callable[[Any], Any]] = {
    "tool": lambda arguments: CallToolParams("f", Raw(arguments or b"{}"), meta=META),
    "resource": lambda arguments: ReadResourceParams("a://fixed", meta=META),
    "template": lambda arguments: ReadResourceParams(f"a://{arguments or 'v'}", meta=META),
    "prompt": lambda arguments: GetPromptParams("f", arguments, meta=META),
    "completion": lambda arguments: CompleteParams(
        PromptReference("p"), CompletionArgument("city", "Ber"), CompletionContext({"country": "DE"}), meta=META
    ),
}

REGISTER: dict[str, Callable[[Registry, Any], Any]] = {
    "tool": lambda registry, fn: registry.tool(fn, name="f"),
    "resource": lambda registry, fn: registry.resource(fn, uri="a://fixed"),
    "template": lambda registry, fn: registry.resource(fn, uri="a://{v}"),
    "prompt": lambda registry, fn: registry.prompt(fn, name="f"),
    "completion": lambda registry, fn: registry.complete(fn, prompt="p", argument="city"),
}

KINDS = list(REGISTER)


def read(result: Any) -> Any:
    """The text of a result of any kind, or the values of a completion."""
    match result:
        case CallToolResult():
            return [block.text for block in result.content]  # type: ignore[union-attr]  # these tests give text
        case _ if hasattr(result, "contents"):
            return [contents.text for contents in result.contents]
        case _ if hasattr(result, "messages"):
            return [message.content.text for message in result.messages]
        case _:
            return result.completion.values


async def run(handler: Handler, params: Any, source: Any = None, version: str = VERSION) -> Any:
    with anyio.fail_after(5):
        return await handler.invoke_async(params, source, version, anyio.to_thread.run_sync)


# -- every kind and colour -----------------------------------------------------------------------------------------


def make(colour: str, kind: str) -> Callable[..., Any]:
    """A handler of that colour that returns or yields "a"; templates take their variable."""
    if kind == "template":

        def plain(v: str) -> str:
            return v and "a"

        def generator(v: str) -> Iterator[str]:
            yield v and "a"

        async def coroutine(v: str) -> str:
            return v and "a"

        async def stream(v: str) -> AsyncIterator[str]:
            yield v and "a"

        def promise(v: str) -> Awaitable[str]:
            return coroutine(v)

        return locals()[colour]  # type: ignore[no-any-return]  # one of these functions

    def plain0() -> str:
        return "a"

    def generator0() -> Iterator[str]:
        yield "a"

    async def coroutine0() -> str:
        return "a"

    async def stream0() -> AsyncIterator[str]:
        yield "a"

    def promise0() -> Awaitable[str]:
        return coroutine0()

    return locals()[f"{colour}0"]  # type: ignore[no-any-return]  # one of these functions


@pytest.mark.anyio
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("colour", ["plain", "generator", "coroutine", "stream", "promise"])
async def test_every_kind_runs_in_every_colour_on_a_loop(kind: str, colour: str) -> None:
    registry = Registry()
    REGISTER[kind](registry, make(colour, kind))
    assert read(await run(only(registry), PARAMS[kind](None))) == ["a"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("colour", ["plain", "generator", "coroutine", "stream", "promise"])
def test_every_kind_runs_in_every_colour_without_a_loop(kind: str, colour: str) -> None:
    registry = Registry()
    REGISTER[kind](registry, make(colour, kind))
    handler = only(registry)
    result = handler.invoke(PARAMS[kind](None), None, VERSION)
    assert read(drive(result) if handler.is_async else result) == ["a"]
    assert handler.is_async == (colour not in ("plain", "generator"))


def test_wrappers_that_drove_the_function_already_give_their_value() -> None:
    async def coroutine() -> str:
        return "a"

    async def stream() -> AsyncIterator[str]:
        yield "a"

    def generator() -> Iterator[str]:
        yield "a"

    for function in (coroutine, stream, generator):

        @functools.wraps(function)
        def driven() -> Any:
            return "b"

        registry = Registry()
        registry.tool(driven, name="f")
        result = only(registry).invoke(PARAMS["tool"](None), None, VERSION)
        assert read(drive(result) if only(registry).is_async else result) == ["b"]


@pytest.mark.anyio
async def test_a_def_belongs_into_a_thread_unless_it_says_that_it_does_not_block() -> None:
    here = threading.get_ident()
    registry = Registry()

    @registry.tool
    def blocks() -> bool:
        return threading.get_ident() != here

    @registry.tool(thread=False)
    def quick() -> bool:
        return threading.get_ident() == here

    blocking, inline = registry.handlers()
    assert (blocking.thread, blocking.direct, inline.thread, inline.direct) == (True, False, False, True)
    assert read(await run(blocking, PARAMS["tool"](None))) == ["true"]
    assert read(await run(inline, PARAMS["tool"](None))) == ["true"]


async def computes(a: int) -> int:
    return a + 1


async def awaits() -> None:
    await anyio.lowlevel.checkpoint()


async def iterates() -> list[int]:
    return [item async for item in given()]


async def enters() -> None:
    async with Busy():
        """Nothing."""


async def given() -> AsyncIterator[int]:
    yield 1


class Busy:
    async def __aenter__(self) -> None: ...

    async def __aexit__(self, *_: object) -> None: ...

    async def method(self) -> None: ...

    async def __call__(self) -> None: ...


@functools.wraps(computes)
async def wrapper(a: int) -> int:
    return await computes(a)


def defers() -> Awaitable[None]:
    return awaits()


@pytest.mark.parametrize(
    ("function", "options", "never_waits"),
    [
        (computes, {}, True),
        (computes, {"timeout": 1.0}, False),
        (Busy().method, {}, True),
        (Busy(), {"name": "busy"}, False),  # its code is not looked for
        (functools.partial(computes, 1), {"name": "partial"}, False),
        (awaits, {}, False),
        (iterates, {}, False),
        (enters, {}, False),
        (given, {}, False),
        (wrapper, {}, False),
        (defers, {}, False),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_an_async_def_in_which_nothing_is_awaited_never_waits(
    function: Any, options: dict[str, Any], never_waits: bool
) -> None:
    registry = Registry()
    handler = registry.add_tool(function, **options)
    assert handler is not None and handler.never_waits is never_waits


def test_thread_is_for_def() -> None:
    async def function() -> None: ...

    with pytest.raises(DefinitionError, match="thread= is for def"):
        Registry().tool(function, thread=False)


# -- a def that gives something to await ---------------------------------------------------------------------------


async def late() -> str:
    return "late"


@pytest.mark.anyio
async def test_what_a_def_gives_to_await_is_awaited_on_the_loop() -> None:
    registry = Registry()
    registry.tool(lambda: late(), name="f")
    handler = only(registry)
    assert not handler.is_async
    assert read(await run(handler, PARAMS["tool"](None))) == ["late"]
    assert read(await handler.invoke(PARAMS["tool"](None), None, VERSION)) == ["late"]


@pytest.mark.anyio
async def test_a_failure_of_what_a_def_gave_to_await_is_a_tool_error() -> None:
    async def fails() -> str:
        raise ValueError("no")

    registry = Registry()
    registry.tool(lambda: fails(), name="f")
    handler = only(registry)
    for result in (
        await run(handler, PARAMS["tool"](None)),
        await handler.invoke(PARAMS["tool"](None), None, VERSION),
    ):
        assert result.is_error


def test_a_sync_server_closes_what_a_def_gives_to_await_and_fails_hard(caplog: pytest.LogCaptureFixture) -> None:
    registry = Registry(type="sync")
    given: list[Any] = []

    def secretly() -> Any:
        given.append(late())
        return given[0]

    registry.tool(secretly)
    with pytest.raises(McpError) as raised:
        only(registry).invoke(PARAMS["tool"](None), None, VERSION)
    assert (raised.value.code, raised.value.message) == (-32603, "Internal error")
    assert given[0].cr_frame is None, "closed"
    assert "test_handlers.py" in caplog.text
    assert "type='sync'" in caplog.text


# -- injection -----------------------------------------------------------------------------------------------------


def shows(kind: str, annotation: Any, colour: str) -> Callable[..., Any]:
    if kind == "template":

        def plain(p: Any, v: str) -> str:
            return f"{p!r}"

        async def coroutine(v: str, *, p: Any) -> str:
            return f"{p!r}"

    else:

        def plain(p: Any) -> str:  # type: ignore[misc]  # the other branch's
            return f"{p!r}"

        async def coroutine(*, p: Any) -> str:  # type: ignore[misc]  # the other branch's
            return f"{p!r}"

    function = plain if colour == "plain" else coroutine
    function.__annotations__["p"] = annotation
    return function


@pytest.mark.anyio
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("annotation", "colour", "value"),
    [
        (Context, "coroutine", "'the context'"),
        (Context | None, "coroutine", "'the context'"),
        (SyncContext, "plain", "'the sync_context'"),
        (ServerSession, "coroutine", "'the session'"),
        (ServerSession, "plain", "'the session'"),
        (TransportContext, "coroutine", "'the transport_context'"),
        (TransportContext, "plain", "'the transport_context'"),
        (RequestMeta, "coroutine", "RequestMeta({'progressToken': 0, 'x': [1]})"),
        (RequestMeta, "plain", "RequestMeta({'progressToken': 0, 'x': [1]})"),
        (ProgressToken, "coroutine", "0"),
        (ToolContext, "plain", "'the tool_context'"),
        (Annotated[str, Injected("tenant")], "plain", "'the tenant'"),
    ],
)
async def test_every_kind_injects_everything(kind: str, annotation: Any, colour: str, value: str) -> None:
    registry = Registry()
    REGISTER[kind](registry, shows(kind, annotation, colour))
    assert read(await run(only(registry), PARAMS[kind](None), Source())) == [value]


@pytest.mark.parametrize(
    ("kind", "annotation", "value"),
    [
        ("tool", CallToolRequest, CallToolRequest("f", {"any": 1}, RequestMeta({"progressToken": 0, "x": [1]}))),
        ("resource", ReadResourceRequest, ReadResourceRequest("a://fixed", {}, RequestMeta())),
        ("template", ReadResourceRequest, ReadResourceRequest("a://v", {"v": "v"}, RequestMeta())),
        ("prompt", GetPromptRequest, GetPromptRequest("f", {"any": "1"}, RequestMeta())),
        (
            "completion",
            CompleteRequest,
            CompleteRequest(
                PromptReference("p"),
                CompletionArgument("city", "Ber"),
                CompletionContext({"country": "DE"}),
                RequestMeta(),
            ),
        ),
        ("completion", CompletionArgument, CompletionArgument("city", "Ber")),
        ("completion", CompletionContext, CompletionContext({"country": "DE"})),
    ],
)
def test_each_kind_gets_its_raw_request(kind: str, annotation: Any, value: Any) -> None:
    seen: list[Any] = []

    def function(request: Any) -> str:
        seen.append(request)
        return ""

    function.__annotations__["request"] = annotation
    registry = Registry()
    REGISTER[kind](registry, function)
    arguments = {"tool": b'{"any":1}', "prompt": {"any": "1"}}.get(kind)
    only(registry).invoke(PARAMS[kind](arguments), None, VERSION)
    (request,) = seen
    assert type(request) is type(value)
    assert all(getattr(request, name) == getattr(value, name) for name in value.__struct_fields__ if name != "meta")


def test_without_meta_there_is_no_token_and_the_meta_is_empty() -> None:
    registry = Registry()

    @registry.tool
    def f(token: ProgressToken, meta: RequestMeta) -> str:
        return f"{token} {len(meta)}"

    assert read(only(registry).invoke(CallToolParams("f"), None, VERSION)) == ["None 0"]


def test_no_argument_of_the_same_name_reaches_an_injected_parameter() -> None:
    registry = Registry()

    @registry.tool
    def f(request: CallToolRequest, tc: TransportContext, x: int = 1) -> str:
        return f"{tc} {request.arguments}"

    @registry.tool
    def g(tc: TransportContext) -> str:
        return "reached"

    open_, closed = registry.handlers()
    params = CallToolParams("f", Raw(b'{"tc":"forged"}'))
    assert read(open_.invoke(params, Source(), VERSION)) == ["the transport_context {'tc': 'forged'}"]
    refused = closed.invoke(params, Source(), VERSION)
    assert refused.is_error
    assert "/tc: unexpected property" in read(refused)[0]


def test_without_a_server_optional_contexts_are_none_and_others_a_clear_error() -> None:
    registry = Registry()

    @registry.tool
    async def copes(ctx: Context | None) -> str:
        return repr(ctx)

    @registry.tool
    async def insists(ctx: Context) -> str:
        raise AssertionError

    copes_, insists_ = registry.handlers()
    assert read(drive(copes_.invoke(CallToolParams("f"), None, VERSION))) == ["None"]
    assert (
        "'ctx: Context' is provided by a server" in read(drive(insists_.invoke(CallToolParams("f"), None, VERSION)))[0]
    )


def test_a_tool_context_is_empty_where_nobody_gives_one() -> None:
    registry = Registry()

    @registry.tool
    def f(tool_ctx: ToolContext) -> str:
        return repr(tool_ctx)

    assert read(only(registry).invoke(CallToolParams("f"), None, VERSION)) == ["ToolContext({})"]


def test_positional_only_parameters_are_passed_by_position() -> None:
    registry = Registry()

    @registry.tool
    def f(a: int, tc: TransportContext, /, b: int = 2, *, c: int = 3) -> str:
        return f"{a} {tc} {b} {c}"

    assert read(only(registry).invoke(CallToolParams("f", Raw(b'{"a":1,"c":5}')), Source(), VERSION)) == [
        "1 the transport_context 2 5"
    ]


# -- tools ---------------------------------------------------------------------------------------------------------


def test_a_raw_request_publishes_an_open_schema_and_nothing_else() -> None:
    registry = Registry()

    @registry.tool
    def search_orders(request: CallToolRequest) -> str:
        return str(request.arguments)

    @registry.tool
    def hybrid(limit: int, request: CallToolRequest) -> str:
        return f"{limit} {request.arguments}"

    raw, mixed = registry.list("tool", VERSION)
    assert raw.input_schema == {"type": "object", "properties": {}, "required": []}
    assert mixed.input_schema == {
        "type": "object",
        "properties": {"limit": {"type": "integer"}},
        "required": ["limit"],
    }
    first, second = registry.handlers()
    assert read(first.invoke(CallToolParams("f", Raw(b'{"any":1,"thing":[2]}')), None, VERSION)) == [
        "{'any': 1, 'thing': [2]}"
    ]
    assert read(first.invoke(CallToolParams("f"), None, VERSION)) == ["{}"]
    assert read(first.invoke(CallToolParams("f", Raw(b"null")), None, VERSION)) == ["{}"]
    assert read(second.invoke(CallToolParams("f", Raw(b'{"limit":1,"more":2}')), None, VERSION)) == [
        "1 {'limit': 1, 'more': 2}"
    ]


def test_extra_says_what_becomes_of_arguments_of_unknown_names() -> None:
    registry = Registry()

    def f(limit: int = 1) -> str:
        return str(limit)

    registry.tool(f, name="strict", extra="forbid")
    registry.tool(f, name="lenient", extra="ignore")
    strict, lenient = registry.list("tool", VERSION)
    assert strict.input_schema["additionalProperties"] is False
    assert "additionalProperties" not in lenient.input_schema
    refused, taken = (
        each.invoke(CallToolParams("f", Raw(b'{"limit":2,"more":3}')), None, VERSION) for each in registry.handlers()
    )
    assert refused.is_error and "/more: unexpected property" in read(refused)[0]
    assert read(taken) == ["2"]


@pytest.mark.parametrize("arguments", [UNSET, Raw(b"null"), Raw(b"{}")])
def test_a_tool_without_parameters_takes_no_arguments_in_any_spelling(arguments: Raw | UnsetType) -> None:
    registry = Registry()

    @registry.tool
    def ping() -> str:
        return "pong"

    (tool,) = registry.list("tool", VERSION)
    assert tool.input_schema == {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    assert read(only(registry).invoke(CallToolParams("ping", arguments), None, VERSION)) == ["pong"]


def test_an_input_schema_stated_by_hand_is_published_and_enforced() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "integer", "minimum": 3}}, "required": ["x"]}
    registry = Registry()

    @registry.tool(input_schema=schema)
    def f(request: CallToolRequest) -> str:
        return str(request.arguments)

    assert registry.list("tool", VERSION)[0].input_schema == schema
    assert read(only(registry).invoke(CallToolParams("f", Raw(b'{"x":5}')), None, VERSION)) == ["{'x': 5}"]
    assert only(registry).invoke(CallToolParams("f", Raw(b'{"x":1}')), None, VERSION).is_error


def test_mutable_defaults_and_factories_are_fresh_for_every_call() -> None:
    from dataclasses import field

    registry = Registry()

    @registry.tool
    def f(a: list[int] = [], b: list[int] = field(default_factory=list)) -> list[list[int]]:  # noqa: B006, B008
        a.append(1)
        b.append(1)
        return [a, b]

    for _ in range(2):
        assert read(only(registry).invoke(CallToolParams("f"), None, VERSION)) == ["[[1],[1]]"]


def test_a_parameter_that_is_not_required_and_has_no_default_is_none() -> None:
    registry = Registry()

    @registry.tool
    def f(x: Annotated[str, Param(required=False)]) -> str:
        return repr(x)

    assert registry.list("tool", VERSION)[0].input_schema["required"] == []
    assert read(only(registry).invoke(CallToolParams("f"), None, VERSION)) == ["None"]


def test_an_interim_answer_that_the_handler_builds_itself_is_passed_on() -> None:
    registry = Registry()

    def ask() -> InputRequiredResult:
        return InputRequiredResult(request_state="s")

    registry.tool(ask)
    assert only(registry).invoke(CallToolParams("f"), None, MODERN) == InputRequiredResult(request_state="s")


def test_other_kinds_pass_an_interim_answer_on_as_well() -> None:
    registry = Registry()

    def ask() -> InputRequiredResult:
        return InputRequiredResult(request_state="s")

    registry.resource(ask, uri="a://fixed")
    registry.prompt(ask)
    for handler in registry.handlers():
        assert handler.invoke(PARAMS[handler.kind](None), None, MODERN) == InputRequiredResult(request_state="s")


def test_secrets_are_known_by_their_wire_names() -> None:
    registry = Registry(rename="camel")

    @registry.tool
    def f(api_key: Annotated[str, Param(secret=True)], home_region: str) -> None: ...

    assert only(registry).secrets == {"apiKey"}


# -- generators ----------------------------------------------------------------------------------------------------


def mixed_items() -> list[Any]:
    return [Progress(1, total=2), "one", Log("half", level="debug"), TextContent("two"), {"n": 3}]


def from_thread() -> Iterator[Any]:
    yield from mixed_items()


async def on_loop() -> AsyncIterator[Any]:
    for item in mixed_items():
        yield item


@pytest.mark.anyio
@pytest.mark.parametrize(("function", "where"), [(from_thread, "thread"), (on_loop, "loop")])
async def test_yielded_notifications_are_sent_and_everything_else_is_content(
    function: Callable[[], Any], where: str
) -> None:
    registry = Registry()
    registry.tool(function, name="f")
    source = Source()
    result = await run(only(registry), PARAMS["tool"](None), source)
    assert (read(result), result.is_error) == (["one", "two", '{"n":3}'], False)
    assert source.notified == [(where, Progress(1, total=2)), (where, Log("half", level="debug"))]


@pytest.mark.parametrize("registered", [from_thread, on_loop])
def test_notifications_without_a_request_go_nowhere(registered: Callable[[], Any]) -> None:
    registry = Registry()
    registry.tool(registered, name="f")
    result = only(registry).invoke(PARAMS["tool"](None), None, VERSION)
    assert read(drive(result) if only(registry).is_async else result) == ["one", "two", '{"n":3}']


def test_nothing_yielded_is_an_empty_result() -> None:
    registry = Registry()

    @registry.tool
    async def f() -> AsyncIterator[str]:
        return
        yield

    result = drive(only(registry).invoke(CallToolParams("f"), None, VERSION))
    assert (result.content, result.is_error) == ([], False)


def test_a_stream_with_an_output_schema_is_a_list() -> None:
    registry = Registry()

    @registry.tool(output_schema=True)
    async def f() -> AsyncIterator[int | Progress]:
        yield 1
        yield Progress(1)
        yield 2

    assert registry.list("tool", MODERN)[0].output_schema == {"type": "array", "items": {"type": "integer"}}
    assert drive(only(registry).invoke(CallToolParams("f"), None, MODERN)).structured_content == [1, 2]


def test_a_failure_after_some_items_discards_them() -> None:
    registry = Registry()

    @registry.tool
    async def f() -> AsyncIterator[str]:
        yield "half"
        raise ValueError("no")

    result = drive(only(registry).invoke(CallToolParams("f"), None, VERSION))
    assert (read(result), result.is_error) == (["Error invoking method: f\nno"], True)


@pytest.mark.anyio
async def test_cancelling_closes_the_generator_and_gives_no_result() -> None:
    closed: list[str] = []
    started = anyio.Event()
    registry = Registry()

    @registry.tool
    async def f() -> AsyncIterator[str]:
        try:
            yield "one"
            started.set()
            await anyio.sleep_forever()
        finally:
            closed.append("closed")

    async def call() -> None:
        await only(registry).invoke(CallToolParams("f"), None, VERSION)
        raise AssertionError("a result")

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await started.wait()
            group.cancel_scope.cancel()
    assert closed == ["closed"]


def test_what_is_iterated_need_not_be_a_generator() -> None:
    class Once:
        def __init__(self) -> None:
            self.left = ["a"]

        def __aiter__(self) -> "Once":
            return self

        async def __anext__(self) -> str:
            if not self.left:
                raise StopAsyncIteration
            return self.left.pop()

    async def later() -> AsyncIterator[str]:
        return Once()

    def now() -> AsyncIterator[str]:
        return Once()

    for function in (later, now):
        registry = Registry()
        registry.tool(function, name="f")
        assert read(drive(only(registry).invoke(CallToolParams("f"), None, VERSION))) == ["a"]


@pytest.mark.anyio
@pytest.mark.parametrize("form", ["def", "async def"])
@pytest.mark.parametrize(
    ("most", "total", "has_more"), [(None, None, True), (150, None, True), (100, 100, False), (0, 0, False)]
)
async def test_a_completion_is_asked_for_no_more_items_than_can_be_sent(
    form: str, most: int | None, total: int | None, has_more: bool
) -> None:
    closed: list[str] = []

    def numbers() -> Iterator[str]:
        try:
            yield from map(str, itertools.count() if most is None else range(most))
        finally:
            closed.append("closed")

    async def later() -> AsyncIterator[str]:
        items = numbers()
        try:
            for item in items:
                yield item
        finally:
            items.close()  # type: ignore[attr-defined]  # it is a generator

    registry = Registry()
    REGISTER["completion"](registry, numbers if form == "def" else later)
    completion = (await run(only(registry), PARAMS["completion"](None))).completion
    assert completion.values == [str(number) for number in range(min(100, most if most is not None else 100))]
    assert (completion.total, completion.has_more, closed) == (total, has_more, ["closed"])


@pytest.mark.anyio
@pytest.mark.parametrize("form", ["def", "async def"])
async def test_a_generator_is_closed_where_its_notification_fails(form: str) -> None:
    closed: list[str] = []
    held: list[Any] = []  # so that nothing but closing closes it

    def now() -> Iterator[Any]:
        try:
            yield Progress(1)
        finally:
            closed.append("closed")

    async def later() -> AsyncIterator[Any]:
        try:
            yield Progress(1)
        finally:
            closed.append("closed")

    @functools.wraps(now if form == "def" else later)
    def f() -> Any:
        held.append(now() if form == "def" else later())
        return held[0]

    registry = Registry()
    registry.tool(f, name="f")

    class Broken(Source):
        def notify(self, item: Progress | Log, /) -> None:
            raise RuntimeError("nobody listens")

        notify_from_thread = notify

    assert (await run(only(registry), PARAMS["tool"](None), Broken())).is_error
    assert closed == ["closed"]


# -- failures ------------------------------------------------------------------------------------------------------


class PaymentDown(Exception): ...


def raising(error: BaseException) -> Callable[[], Any]:
    def f() -> str:
        raise error

    return f


def raising_later(error: BaseException) -> Callable[[], Any]:
    async def f() -> str:
        raise error

    return f


def raising_after_a_yield(error: BaseException) -> Callable[[], Any]:
    async def f() -> AsyncIterator[str]:
        yield "x"
        raise error

    return f


WAYS = [raising, raising_later, raising_after_a_yield]


@pytest.mark.anyio
@pytest.mark.parametrize("way", WAYS)
async def test_a_protocol_error_keeps_code_message_and_data_in_every_way(way: Any) -> None:
    for kind in KINDS:
        if kind == "template":
            continue
        registry = Registry()
        error = McpError(-32042, "Visit", {"url": "https://x.example"})
        REGISTER[kind](registry, way(ExceptionGroup("g", [ValueError("x"), error]) if way is raising else error))
        with pytest.raises(McpError) as raised:
            await run(only(registry), PARAMS[kind](None))
        assert raised.value is error


@pytest.mark.anyio
@pytest.mark.parametrize("way", WAYS)
async def test_what_a_tool_raises_is_told_to_the_model_under_the_function_s_name(way: Any) -> None:
    registry = Registry()
    registry.tool(way(ValueError("no such order")), name="published-name")
    result = await run(only(registry), PARAMS["tool"](None))
    assert (read(result), result.is_error) == (["Error invoking method: f\nno such order"], True)


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["resource", "prompt", "completion"])
@pytest.mark.parametrize("way", [raising, raising_later])
@pytest.mark.parametrize("error", [ValueError("secret"), ToolError("secret"), OSError("secret"), SystemExit("secret")])
async def test_other_kinds_answer_an_internal_error_that_says_nothing_and_log_the_traceback(
    kind: str, way: Any, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    registry = Registry()
    REGISTER[kind](registry, way(error))
    with pytest.raises(McpError) as raised:
        await run(only(registry), PARAMS[kind](None))
    assert (raised.value.code, raised.value.message, raised.value.data) == (-32603, "Internal error", None)
    assert any(record.exc_info and record.exc_info[1] is error for record in caplog.records)


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["resource", "prompt", "completion"])
async def test_other_kinds_name_a_missing_capability(kind: str) -> None:
    registry = Registry()
    REGISTER[kind](registry, raising(CapabilityError("client 'x 1' does not support elicitation")))
    with pytest.raises(McpError, match="does not support elicitation") as raised:
        await run(only(registry), PARAMS[kind](None))
    assert raised.value.code == -32603


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["tool", "resource", "prompt", "completion"])
async def test_missing_scopes_are_the_transport_s_business(kind: str) -> None:
    registry = Registry()
    REGISTER[kind](registry, raising(InsufficientScope("orders:write")))
    with pytest.raises(InsufficientScope):
        await run(only(registry), PARAMS[kind](None))


class Needed(BaseException): ...


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["tool", "resource", "prompt", "completion"])
@pytest.mark.parametrize("way", [raising, raising_later])
@pytest.mark.parametrize(
    "signal",
    [Needed(), KeyboardInterrupt(), BaseExceptionGroup("g", [ValueError("x"), BaseExceptionGroup("h", [Needed()])])],
)
async def test_signals_pass_through_untouched(kind: str, way: Any, signal: BaseException) -> None:
    registry = Registry()
    # On the loop: a KeyboardInterrupt does not happen in worker threads.
    {
        "tool": lambda: registry.tool(way(signal), thread=False if way is raising else None),
        "resource": lambda: registry.resource(way(signal), uri="a://fixed", thread=False if way is raising else None),
        "prompt": lambda: registry.prompt(way(signal), thread=False if way is raising else None),
        "completion": lambda: registry.complete(way(signal), prompt="p", thread=False if way is raising else None),
    }[kind]()
    with pytest.raises(type(signal)) as raised:
        await run(only(registry), PARAMS[kind](None))
    assert raised.value is signal


@pytest.mark.anyio
async def test_cancellation_is_never_converted() -> None:
    registry = Registry()
    entered = anyio.Event()

    @registry.tool
    async def f() -> None:
        entered.set()
        await anyio.sleep_forever()

    with anyio.move_on_after(5) as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(only(registry).invoke, CallToolParams("f"), None, VERSION)
            await entered.wait()
            group.cancel_scope.cancel()
    assert not scope.cancelled_caught


@pytest.mark.anyio
async def test_system_exit_in_a_tool_is_masked_and_the_server_goes_on() -> None:
    registry = Registry()
    registry.tool(raising(SystemExit("hunter2")))
    result = await run(only(registry), PARAMS["tool"](None))
    assert result.is_error
    assert read(result)[0].startswith("Error invoking method: f\nInternal error (ref ")
    assert "hunter2" not in read(result)[0]


@pytest.mark.anyio
async def test_declared_hard_exceptions_are_internal_errors() -> None:
    registry = Registry()
    registry.tool(raising(PaymentDown("card 4111")), raises=(PaymentDown,))
    with pytest.raises(McpError) as raised:
        await run(only(registry), PARAMS["tool"](None))
    assert (raised.value.code, raised.value.message) == (-32603, "Internal error")


def test_errors_can_be_worded_and_observed_by_the_application() -> None:
    seen: list[tuple[str, BaseException]] = []

    def observe(handler: Handler, exc: BaseException) -> None:
        seen.append((handler.name, exc))
        raise RuntimeError("a broken hook changes nothing")

    registry = Registry(format_error=lambda tool, exc: f"{tool}: {exc}", on_error=observe, mask_unexpected=True)
    error = ValueError("no")
    registry.tool(raising(error), name="t")
    registry.resource(raising(error), uri="a://fixed")
    tool, resource = registry.handlers()
    assert read(tool.invoke(PARAMS["tool"](None), None, VERSION)) == ["t: no"]
    with pytest.raises(McpError):
        resource.invoke(PARAMS["resource"](None), None, VERSION)
    assert seen == [("t", error), ("f", error)]


def test_refused_arguments_are_not_a_failure_of_the_handler() -> None:
    seen: list[BaseException] = []
    registry = Registry(on_error=lambda handler, exc: seen.append(exc))

    @registry.tool
    def f(x: int) -> int:
        raise AssertionError

    result = only(registry).invoke(CallToolParams("f", Raw(b"{}")), None, VERSION)
    (said,) = read(result)
    assert said == (
        "Tool (f) input validation failed: Validation failed: JSON schema validation errors: "
        "[/x: required property not found]"
    )
    assert not seen


def test_a_timeout_is_a_tool_error_and_an_internal_error_elsewhere() -> None:
    registry = Registry()
    registry.tool(raising(ValueError()), timeout=1.5)
    registry.prompt(raising(ValueError()), timeout=1.5)
    tool, prompt = registry.handlers()
    assert tool.timeout == 1.5
    result = tool.timed_out(1.5)
    assert (read(result), result.is_error) == (["Error invoking method: f\nTimed out after 1.5 seconds."], True)
    with pytest.raises(McpError, match=r"Timed out after 1.5 seconds"):
        prompt.timed_out(1.5)


# -- resources -----------------------------------------------------------------------------------------------------


class Size(Enum):
    SMALL = "small"


def test_variables_are_matched_by_name_and_converted() -> None:
    registry = Registry(rename="camel")

    @registry.resource("shop://{orderId}/{size}/{n}/{key}")
    def f(n: int, key: UUID, size: Size, order_id: str) -> str:
        return f"{order_id} {size} {n} {key.int}"

    handler = only(registry)
    ok = ReadResourceParams("shop://a%20b/small/5/00000000-0000-0000-0000-000000000007")
    assert read(handler.invoke(ok, None, VERSION)) == ["a b Size.SMALL 5 7"]
    with pytest.raises(McpError, match="'n'") as raised:
        handler.invoke(ReadResourceParams("shop://a/small/x/00000000-0000-0000-0000-000000000007"), None, VERSION)
    assert raised.value.code == -32602


def test_optional_variables_have_defaults() -> None:
    registry = Registry()

    @registry.resource("notes://all{?limit}")
    def f(limit: int = 5) -> str:
        return str(limit)

    assert read(only(registry).invoke(ReadResourceParams("notes://all?limit=7"), None, VERSION)) == ["7"]
    assert read(only(registry).invoke(ReadResourceParams("notes://all"), None, VERSION)) == ["5"]


def test_a_resource_that_gives_none_or_does_not_match_is_not_found() -> None:
    registry = Registry()

    @registry.resource("a://{v}")
    def f(v: str) -> None:
        return None

    for uri in ("a://x", "b://elsewhere"):
        with pytest.raises(ResourceNotFound) as raised:
            only(registry).invoke(ReadResourceParams(uri), None, VERSION)
        assert raised.value.uri == uri


def test_contents_have_the_requested_uri_the_declared_type_and_the_resource_s_meta() -> None:
    registry = Registry()

    @registry.resource("a://{v}", mime_type="image/png", meta=lambda: {"k": 1})
    def f(v: str) -> bytes:
        return b"\xfb\xff\xfe"

    (contents,) = only(registry).invoke(ReadResourceParams("a://x"), None, VERSION).contents
    assert (contents.uri, contents.mime_type, contents.blob, contents.meta) == (
        "a://x",
        "image/png",
        "+//+",
        {"k": 1},
    )


@pytest.mark.parametrize(
    ("uri", "function", "says"),
    [
        ("a://fixed", lambda x: x, "'x' is not in the URI"),
        ("a://{v}", lambda: "", "has 'v', and no parameter takes it"),
        ("a://{v}", lambda v, w: "", "'w' is no variable"),
        ("a://{v}", lambda v, w=1: "", "'w' is no variable"),
        ("a://b{?v}", lambda v: "", "give 'v' a default"),
    ],
)
def test_variables_and_parameters_that_do_not_meet_are_refused(uri: str, function: Any, says: str) -> None:
    with pytest.raises(DefinitionError, match=says):
        Registry().resource(function, uri=uri, name="f")


def test_a_raw_request_may_take_the_variables_itself() -> None:
    registry = Registry()

    @registry.resource("a://{v}/{w}")
    def f(v: int, request: ReadResourceRequest) -> str:
        return f"{v} {request.arguments}"

    assert read(only(registry).invoke(ReadResourceParams("a://1/2"), None, VERSION)) == ["1 {'v': '1', 'w': '2'}"]


# -- prompts and completions ---------------------------------------------------------------------------------------


def test_prompt_arguments_are_converted_from_text() -> None:
    registry = Registry()

    @registry.prompt
    def f(name: str, age: int | None = None, tags: list[str] = [], loud: bool = False) -> str:  # noqa: B006
        return f"{name!r} {age} {tags} {loud}"

    handler = only(registry)
    full = {"name": "007", "age": "5", "tags": '["a"]', "loud": "true"}
    assert read(handler.invoke(GetPromptParams("f", full), None, VERSION)) == ["'007' 5 ['a'] True"]
    assert read(handler.invoke(GetPromptParams("f", {"name": "null"}), None, VERSION)) == ["'null' None [] False"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (None, "Missing argument 'name' of prompt 'f'"),
        ({"name": "x", "age": "2.5"}, "Invalid argument 'age' of prompt 'f'"),
        ({"name": "x", "age": "five"}, "Invalid argument 'age' of prompt 'f'"),
        ({"name": "x", "height": "2"}, "Unexpected argument 'height' of prompt 'f'; it has: name, age, pin"),
        ({"name": "x", "pin": "hunter2"}, "Invalid argument 'pin' of prompt 'f': value is not valid"),
    ],
)
def test_bad_prompt_arguments_are_named_and_the_prompt_does_not_run(arguments: Any, says: str) -> None:
    registry = Registry()

    @registry.prompt
    def f(name: str, age: int = 1, pin: Annotated[int, Param(secret=True)] = 0) -> str:
        raise AssertionError

    with pytest.raises(McpError) as raised:
        only(registry).invoke(GetPromptParams("f", arguments), None, VERSION)
    assert raised.value.code == -32602
    assert raised.value.message.startswith(says)
    assert "hunter2" not in raised.value.message


def test_a_mapping_receives_all_prompt_arguments() -> None:
    registry = Registry()

    @registry.prompt
    def f(everything: dict[str, str], name: str = "nobody") -> str:
        return f"{everything} {name}"

    assert [argument.name for argument in registry.list("prompt", VERSION)[0].arguments] == ["name"]
    assert read(only(registry).invoke(GetPromptParams("f", {"name": "a", "b": "c"}), None, VERSION)) == [
        "{'name': 'a', 'b': 'c'} a"
    ]


def test_the_description_of_a_prompt_goes_with_its_messages() -> None:
    registry = Registry()

    @registry.prompt
    def f() -> str:
        """Says hello."""
        return "hello"

    assert only(registry).invoke(GetPromptParams("f"), None, VERSION).description == "Says hello."


def test_a_completion_gets_what_was_typed_and_what_was_chosen() -> None:
    registry = Registry()

    @registry.complete(prompt="p")
    def cities(typed: str, arg: CompletionArgument, chosen: CompletionContext) -> list[str]:
        return [typed, arg.name, (chosen.arguments or {}).get("country", "anywhere")]

    handler = only(registry)
    assert read(handler.invoke(PARAMS["completion"](None), None, VERSION)) == ["Ber", "city", "DE"]
    bare = CompleteParams(PromptReference("p"), CompletionArgument("city", ""))
    assert read(handler.invoke(bare, None, VERSION)) == ["", "city", "anywhere"]


@pytest.mark.parametrize("function", [lambda a, b: [], lambda **kw: []])
def test_completions_refuse_other_parameters(function: Any) -> None:
    with pytest.raises(DefinitionError):
        Registry().complete(function, prompt="p")


def test_completions_refuse_parameters_of_other_types() -> None:
    def cities(n: int) -> list[str]:
        return []

    with pytest.raises(DefinitionError, match="takes one str"):
        Registry().complete(cities, prompt="p")


def test_visibility_that_fails_hides(caplog: pytest.LogCaptureFixture) -> None:
    def broken(principal: Any) -> bool:
        raise KeyError("role")

    registry = Registry()
    registry.tool(raising(ValueError()), visible=broken)
    with caplog.at_level(logging.ERROR):
        assert registry.list("tool", VERSION) == []
    assert "visible= of tool 'f' failed" in caplog.text


@pytest.mark.parametrize("meta", [{"a": object()}, lambda: {"a": object()}, [1], lambda: [("a", 1)], lambda: "a"])
def test_meta_that_is_no_json_object_is_refused(meta: Any) -> None:
    with pytest.raises(DefinitionError, match="meta="):
        Registry().tool(raising(ValueError()), meta=meta)
