"""The filter matrix in full: every callable form with every injected parameter, for every kind, in every mode."""

import functools
import inspect
import logging
from asyncio import Future, Task
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Optional

import anyio
import pytest

from mcpcore import (
    Client,
    Context,
    Depends,
    Elicit,
    PeerError,
    Registry,
    Server,
    ServerSession,
    SyncContext,
    TransportContext,
    complete,
    prompt,
    resource,
    tool,
)
from mcpcore.exceptions import DefinitionError, LocalProtocolError, SkippedHandlers
from mcpcore.providers.markers import (
    CallToolRequest,
    CompleteRequest,
    GetPromptRequest,
    Injected,
    ProgressToken,
    ReadResourceRequest,
    RequestMeta,
    ToolContext,
)
from mcpcore.providers.selection import (
    AsyncProvider,
    AsyncStatelessProvider,
    Candidate,
    Provider,
    SyncProvider,
    SyncStatelessProvider,
)
from mcpcore.providers.signature import Kind
from mcpcore.types import CompletionArgument, CompletionContext, PromptReference

KINDS: tuple[Kind, ...] = ("tool", "resource", "template", "prompt", "completion")
R1, R2, R3 = "awaitable-return", "imperative-return", "bidirectional-parameter"
TAKEN: tuple[str, ...] = ()
ERROR: Final = "definition error"

PROVIDERS: tuple[Provider, ...] = (
    SyncProvider(),
    AsyncProvider(),
    SyncStatelessProvider(),
    AsyncStatelessProvider(),
    Provider("auto", "stateful"),
    Provider("auto", "stateless"),
)

I, A, S = "imperative", "awaitable", "stream"
NONE, RAW, TRANSPORT, FULL, COPES = "none", "raw", "transport", "full", "copes"

TABLE: dict[tuple[str, str], tuple[tuple[str, ...], ...]] = {
    # sync stateful, async stateful, sync stateless, async stateless, auto stateful, auto stateless
    (I, NONE): (TAKEN, (R2,), TAKEN, (R2,), TAKEN, TAKEN),
    (I, RAW): (TAKEN, (R2,), TAKEN, (R2,), TAKEN, TAKEN),
    (I, TRANSPORT): (TAKEN, (R2,), TAKEN, (R2,), TAKEN, TAKEN),
    (I, FULL): (TAKEN, (R2,), (R3,), (R2, R3), TAKEN, (R3,)),
    (I, COPES): (TAKEN, (R2,), TAKEN, (R2,), TAKEN, TAKEN),
    (A, NONE): ((R1,), TAKEN, (R1,), TAKEN, TAKEN, TAKEN),
    (A, RAW): ((R1,), TAKEN, (R1,), TAKEN, TAKEN, TAKEN),
    (A, TRANSPORT): ((R1,), TAKEN, (R1,), TAKEN, TAKEN, TAKEN),
    (A, FULL): ((R1,), TAKEN, (R1, R3), (R3,), TAKEN, (R3,)),
    (A, COPES): ((R1,), TAKEN, (R1,), TAKEN, TAKEN, TAKEN),
    (S, NONE): ((R1,), TAKEN, (R1,), TAKEN, TAKEN, TAKEN),
    (S, RAW): ((R1,), TAKEN, (R1,), TAKEN, TAKEN, TAKEN),
    (S, TRANSPORT): ((R1,), TAKEN, (R1,), TAKEN, TAKEN, TAKEN),
    (S, FULL): ((R1,), TAKEN, (R1, R3), (R3,), TAKEN, (R3,)),
    (S, COPES): ((R1,), TAKEN, (R1,), TAKEN, TAKEN, TAKEN),
}


# -- parameters ----------------------------------------------------------------------------------------------------

REQUESTS: dict[Kind, type] = {
    "tool": CallToolRequest,
    "resource": ReadResourceRequest,
    "template": ReadResourceRequest,
    "prompt": GetPromptRequest,
    "completion": CompleteRequest,
}


def needs_nothing(meta: RequestMeta) -> str:
    return ""


async def needs_context(ctx: Context) -> str:
    return ""


async def needs_deeply(below: Annotated[str, Depends(needs_context)], tc: TransportContext) -> str:
    return below


def needs_session(session: ServerSession) -> str:
    return ""


async def may_need(ctx: Context | None) -> str:
    return ""


PARAMETERS: dict[str, tuple[str, dict[str, Any]]] = {
    # what is taken: (its class, annotations by parameter)
    "nothing": (NONE, {}),
    "the request": (RAW, {"p": REQUESTS}),
    "meta": (RAW, {"p": RequestMeta}),
    "the progress token": (RAW, {"p": ProgressToken}),
    "a tool context": (RAW, {"p": ToolContext}),
    "a kind of one's own": (RAW, {"p": Annotated[str, Injected("tenant")]}),
    "the transport": (TRANSPORT, {"p": TransportContext}),
    "the transport, perhaps": (TRANSPORT, {"p": TransportContext | None}),
    "a context": (FULL, {"p": {I: SyncContext, A: Context, S: Context}}),
    "an annotated context": (FULL, {"p": {I: Annotated[SyncContext, "x"], A: Annotated[Context, "x"], S: Context}}),
    "a session": (FULL, {"p": ServerSession}),
    "the transport and a session": (FULL, {"p": TransportContext, "q": ServerSession}),
    "a context, perhaps, and a session": (FULL, {"p": ServerSession, "q": {I: SyncContext | None, A: Context | None}}),
    "a context, perhaps": (COPES, {"p": {I: SyncContext | None, A: Context | None, S: Context | None}}),
    "an optional context": (COPES, {"p": {I: Optional[SyncContext], A: Optional[Context], S: Optional[Context]}}),  # noqa: UP045 - that spelling
    "a context by default none": (COPES, {"p=None": {I: SyncContext, A: Context, S: Context}}),
    "a session, perhaps": (COPES, {"p": ServerSession | None}),
    "what needs nothing": (RAW, {"p": Annotated[str, Depends(needs_nothing)]}),
    "what needs a context": (FULL, {"p": Annotated[str, Depends(needs_context)]}),
    "what needs one deep down": (FULL, {"p": Annotated[str, Depends(needs_deeply)]}),
    "what needs a session": (FULL, {"p": Annotated[str, Depends(needs_session)]}),
    "what may need a context": (COPES, {"p": Annotated[str, Depends(may_need)]}),
    "an answer of the user": (NONE, {"p": Annotated[bool, Elicit("Sure?")]}),
    "the context of the other colour": (ERROR, {"p": {I: Context, A: SyncContext, S: SyncContext}}),
    "the other's context, perhaps": (ERROR, {"p": {I: Context | None, A: SyncContext | None, S: SyncContext | None}}),
}

COMPLETIONS_ONLY: dict[str, tuple[str, dict[str, Any]]] = {
    "the argument": (RAW, {"p": CompletionArgument}),
    "what was chosen": (RAW, {"p": CompletionContext}),
}


def parameters_of(kind: Kind) -> dict[str, tuple[str, dict[str, Any]]]:
    if kind != "completion":
        return PARAMETERS
    of_user = {"an answer of the user": (ERROR, PARAMETERS["an answer of the user"][1])}
    return PARAMETERS | COMPLETIONS_ONLY | of_user


# -- callables -----------------------------------------------------------------------------------------------------


class Shape:
    """Makes functions with the parameters in question."""

    def __init__(self, kind: Kind, colour: str, annotations: dict[str, Any]) -> None:
        self.kind = kind
        self.annotations = {
            name: each[kind] if each is REQUESTS else each.get(colour, each.get(A)) if isinstance(each, dict) else each
            for name, each in annotations.items()
        }

    def __call__(self, how: str, body: str, returns: Any = inspect.Signature.empty, first: str = "") -> Any:
        """A function ``how`` ("def", "async def", "lambda") with that body; ``first`` is the object of a method."""
        names = [*([first] if first else []), *(["v"] if self.kind == "template" else []), *self.annotations]
        text = f"f = lambda {', '.join(names)}: {body}" if how == "lambda" else f"{how} f({', '.join(names)}): {body}"
        namespace: dict[str, Any] = {"__name__": __name__, "Awaitable": Awaitable}
        exec(compile(text, __file__, "exec"), namespace)  # noqa: S102 - our own text
        function = namespace["f"]
        function.__annotations__ = {name.partition("=")[0]: each for name, each in self.annotations.items()}
        if self.kind == "template":
            function.__annotations__["v"] = str
        if returns is not inspect.Signature.empty:
            function.__annotations__["return"] = returns
        return function

    def plain(self, returns: Any = inspect.Signature.empty) -> Any:
        return self("def", "return ''", returns)

    def awaited(self) -> Any:
        return self("async def", "return ''")

    def stream(self) -> Any:
        return self("async def", "yield ''")

    def object(self, how: str, body: str) -> Any:
        """An object with that ``__call__``."""
        return type("Object", (), {"__call__": self(how, body, first="self")})()

    def method(self, how: str, body: str, wrap: Callable[[Any], Any] = lambda function: function) -> Any:
        """A bound method of that body; ``wrap`` makes it a static or class method."""
        first = "" if wrap is staticmethod else "self"
        return type("Object", (), {"f": wrap(self(how, body, first=first))})().f


def wrapped(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


def marked(function: Any) -> Any:
    if hasattr(inspect, "markcoroutinefunction"):
        return inspect.markcoroutinefunction(function)
    function._is_coroutine = object()  # how it was done before
    return function


RETURNS, YIELDS = "return ''", "yield ''"

FORMS: dict[str, tuple[str, str, Callable[[Shape], Any]]] = {
    # the form: (its colour, how warnings call it, how it is made)
    "def": (I, "def", lambda make: make.plain()),
    "def with a return type": (I, "def", lambda make: make.plain(str)),
    "def with the return type as text": (I, "def", lambda make: make.plain("str")),
    "def that returns an iterator": (I, "def", lambda make: make.plain(Iterator[str])),
    "def generator": (I, "def generator", lambda make: make("def", YIELDS)),
    "lambda": (I, "def", lambda make: make("lambda", "''")),
    "object": (I, "def", lambda make: make.object("def", RETURNS)),
    "object that yields": (I, "def generator", lambda make: make.object("def", YIELDS)),
    "method": (I, "def", lambda make: make.method("def", RETURNS)),
    "static method": (I, "def", lambda make: make.method("def", RETURNS, staticmethod)),
    "raw static method": (I, "def", lambda make: staticmethod(make.plain())),
    "class method": (I, "def", lambda make: make.method("def", RETURNS, classmethod)),
    "partial": (I, "def", lambda make: functools.partial(make.plain())),
    "partial of an object": (I, "def", lambda make: functools.partial(make.object("def", RETURNS))),
    "partial of a generator": (I, "def generator", lambda make: functools.partial(make("def", YIELDS))),
    "wrapper": (I, "def", lambda make: wrapped(make.plain())),
    "cached def": (I, "def", lambda make: functools.lru_cache(make.plain())),
    "async def": (A, "async def", lambda make: make.awaited()),
    "async object": (A, "async def", lambda make: make.object("async def", RETURNS)),
    "async method": (A, "async def", lambda make: make.method("async def", RETURNS)),
    "async static method": (A, "async def", lambda make: make.method("async def", RETURNS, staticmethod)),
    "raw async static method": (A, "async def", lambda make: staticmethod(make.awaited())),
    "async class method": (A, "async def", lambda make: make.method("async def", RETURNS, classmethod)),
    "partial of async def": (A, "async def", lambda make: functools.partial(make.awaited())),
    "partial of an async object": (A, "async def", lambda make: functools.partial(make.object("async def", RETURNS))),
    "wrapper of async def": (A, "wraps an async def", lambda make: wrapped(make.awaited())),
    "wrapper of a wrapper": (A, "wraps an async def", lambda make: wrapped(wrapped(make.awaited()))),
    "partial of a wrapper": (A, "wraps an async def", lambda make: functools.partial(wrapped(make.awaited()))),
    "marked def": (A, "async def", lambda make: marked(make.plain())),
    "def -> Awaitable": (A, "returns Awaitable[str]", lambda make: make.plain(Awaitable[str])),
    "def -> 'Awaitable'": (A, "returns Awaitable[str]", lambda make: make.plain("Awaitable[str]")),
    "def -> Coroutine": (A, "returns Coroutine[Any, Any, str]", lambda make: make.plain(Coroutine[Any, Any, str])),
    "def -> Future": (A, "returns Future[str]", lambda make: make.plain(Future[str])),
    "def -> Task": (A, "returns Task[str]", lambda make: make.plain(Task[str])),
    "async generator": (S, "async generator", lambda make: make.stream()),
    "async generator object": (S, "async generator", lambda make: make.object("async def", YIELDS)),
    "async generator method": (S, "async generator", lambda make: make.method("async def", YIELDS)),
    "partial of an async generator": (S, "async generator", lambda make: functools.partial(make.stream())),
    "wrapper of an async generator": (S, "wraps an async generator", lambda make: wrapped(make.stream())),
    "async def -> AsyncIterator": (
        S,
        "returns AsyncIterator[str]",
        lambda make: make("async def", RETURNS, AsyncIterator[str]),
    ),
    "def -> AsyncIterator": (S, "returns AsyncIterator[str]", lambda make: make.plain(AsyncIterator[str])),
    "def -> AsyncIterable": (S, "returns AsyncIterable[str]", lambda make: make.plain(AsyncIterable[str])),
    "def -> AsyncGenerator": (
        S,
        "returns AsyncGenerator[str, None]",
        lambda make: make.plain(AsyncGenerator[str, None]),
    ),
}

REGISTER: dict[Kind, Callable[[Registry, Any], Any]] = {
    "tool": lambda registry, function: registry.tool(function, name="f"),
    "resource": lambda registry, function: registry.resource(function, uri="a://fixed"),
    "template": lambda registry, function: registry.resource(function, uri="a://{v}"),
    "prompt": lambda registry, function: registry.prompt(function, name="f"),
    "completion": lambda registry, function: registry.complete(function, prompt="f"),
}


def registered(kind: Kind, function: Any, provider: Provider, **options: Any) -> Registry:
    registry = Registry(provider.type, provider.state, **options)
    REGISTER[kind](registry, function)
    return registry


def row_of(kind: Kind, form: str, annotations: dict[str, Any]) -> Any:
    """What becomes of a handler in each mode: why it is skipped, or that it is no handler at all."""
    colour, _, build = FORMS[form]
    row: list[Any] = []
    candidates: list[Candidate] = []
    for provider in PROVIDERS:
        try:
            registry = registered(kind, build(Shape(kind, colour, annotations)), provider, on_skip="ignore")
        except DefinitionError:
            row.append(ERROR)
            continue
        row.append(registry.skipped[0].reasons if registry.skipped else TAKEN)
        assert registry.has(kind) is not bool(registry.skipped)
        candidates.extend(handler.candidate for handler in registry.handlers())
    for candidate in candidates:  # the providers by their names say what the registry of that type and state says
        judged = [provider.judge(candidate) for provider in PROVIDERS]
        assert [skipped.reasons if skipped else TAKEN for skipped in judged] == row
    return tuple(row)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_taken_or_skipped_in_every_mode_with_whatever_it_takes(form: str, kind: Kind) -> None:
    colour = FORMS[form][0]
    parameters = parameters_of(kind)
    found = {taken: row_of(kind, form, annotations) for taken, (_, annotations) in parameters.items()}
    assert found == {
        taken: (ERROR,) * len(PROVIDERS) if demand == ERROR else TABLE[colour, demand]
        for taken, (demand, _) in parameters.items()
    }


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
def test_a_context_of_the_other_colour_is_refused_with_the_one_to_take(form: str, kind: Kind) -> None:
    colour, words, build = FORMS[form]
    taken, said = {
        I: ("Context", "is for async handlers, and this is a plain def. Take SyncContext, or make it async def."),
        A: ("SyncContext", f"is for plain def handlers, and this one is async ({words}). Take Context."),
        S: ("SyncContext", f"is for plain def handlers, and this one is async ({words}). Take Context."),
    }[colour]
    annotations = PARAMETERS["the context of the other colour"][1]
    for provider in PROVIDERS:
        with pytest.raises(DefinitionError) as caught:
            registered(kind, build(Shape(kind, colour, annotations)), provider, on_skip="ignore")
        assert str(caught.value).endswith(f": parameter 'p: {taken}' {said}")


# -- what is said --------------------------------------------------------------------------------------------------

WORDS: dict[Kind, tuple[str, str]] = {
    # kind: (what one is called, what several are called)
    "tool": ("tool", "tools"),
    "resource": ("resource", "resources"),
    "template": ("resource template", "resource templates"),
    "prompt": ("prompt", "prompts"),
    "completion": ("completion", "completions"),
}


def why(reason: str, provider: Provider, words: str, parameter: str) -> str:
    """The sentences of a warning for one reason."""
    return {
        R1: f"f is async ({words}); this server is type='sync'. Use a plain def, or type='auto'.",
        R2: f"f is a plain {words}; this server is type='async'. "
        "Make it async def, or use type='auto', which runs it in a worker thread.",
        R3: f"parameter 'p: {parameter}' needs a stateful server, this one is stateless. "
        f"Use TransportContext, annotate '{parameter} | None', or run stateful.",
    }[reason]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "form", ["def", "def generator", "async def", "wrapper of async def", "def -> Awaitable", "async generator"]
)
@pytest.mark.parametrize("taken", ["nothing", "a context", "a session"])
@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda each: f"{each.type}-{each.state}")
def test_one_line_says_what_is_skipped_where_why_and_what_to_change(
    provider: Provider, taken: str, form: str, kind: Kind, caplog: pytest.LogCaptureFixture
) -> None:
    colour, words, build = FORMS[form]
    demand, annotations = PARAMETERS[taken]
    reasons = TABLE[colour, demand][PROVIDERS.index(provider)]
    parameter = {"a session": "ServerSession"}.get(taken, "SyncContext" if colour == I else "Context")
    registered(kind, build(Shape(kind, colour, annotations)), provider)
    if not reasons:
        assert not caplog.records
        return
    (record,) = caplog.records
    place = f"{__name__}.f, {__file__.removeprefix(str(Path.cwd()) + '/')}:1"
    sentences = " Also, ".join(why(reason, provider, words, parameter) for reason in reasons)
    assert record.getMessage() == f"Skipped {WORDS[kind][0]} 'f' ({place}): {sentences} [{', '.join(reasons)}]"
    assert (record.name, record.levelname) == ("mcpcore.registry", "WARNING")
    facts = {"reasons": reasons, "kind": kind, "handler_name": "f", "type": provider.type, "state": provider.state}
    assert facts.items() <= vars(record).items()


# -- several at once -----------------------------------------------------------------------------------------------


class Both:
    """A plain one, an async one and one with a context, of each kind."""

    @tool
    def plain(self) -> str:
        return "x"

    @tool
    async def awaited(self) -> str:
        return "x"

    @tool
    async def needs(self, ctx: Context) -> str:
        return "x"

    @resource("a://plain")
    def resource_plain(self) -> str:
        return "x"

    @resource("a://awaited")
    async def resource_awaited(self) -> str:
        return "x"

    @resource("a://needs")
    async def resource_needs(self, ctx: Context) -> str:
        return "x"

    @resource("t://plain/{v}")
    def template_plain(self, v: str) -> str:
        return v

    @resource("t://awaited/{v}")
    async def template_awaited(self, v: str) -> str:
        return v

    @resource("t://needs/{v}")
    async def template_needs(self, v: str, ctx: Context) -> str:
        return v

    @prompt("plain")
    def prompt_plain(self) -> str:
        return "x"

    @prompt("awaited")
    async def prompt_awaited(self) -> str:
        return "x"

    @prompt("needs")
    async def prompt_needs(self, ctx: Context) -> str:
        return "x"

    @complete(prompt="plain")
    def complete_plain(self) -> list[str]:
        return []

    @complete(prompt="awaited")
    async def complete_awaited(self) -> list[str]:
        return []

    @complete(prompt="needs")
    async def complete_needs(self, ctx: Context) -> list[str]:
        return []


class Blocking:
    """Two that need their client, of each kind."""

    @tool
    def one(self, ctx: SyncContext) -> str:
        return "x"

    @tool
    def two(self, ctx: SyncContext) -> str:
        return "x"

    @resource("a://one")
    def resource_one(self, ctx: SyncContext) -> str:
        return "x"

    @resource("a://two")
    def resource_two(self, ctx: SyncContext) -> str:
        return "x"

    @resource("t://one/{v}")
    def template_one(self, v: str, ctx: SyncContext) -> str:
        return v

    @resource("t://two/{v}")
    def template_two(self, v: str, ctx: SyncContext) -> str:
        return v

    @prompt("one")
    def prompt_one(self, ctx: SyncContext) -> str:
        return "x"

    @prompt("two")
    def prompt_two(self, ctx: SyncContext) -> str:
        return "x"

    @complete(prompt="one")
    def complete_one(self, ctx: SyncContext) -> list[str]:
        return []

    @complete(prompt="two")
    def complete_two(self, ctx: SyncContext) -> list[str]:
        return []


COUNTS = {
    # of `Both`, in the order of PROVIDERS: how many are taken of three
    ("sync", "stateful"): 1,
    ("async", "stateful"): 2,
    ("sync", "stateless"): 1,
    ("async", "stateless"): 1,
    ("auto", "stateful"): 3,
    ("auto", "stateless"): 2,
}


@pytest.mark.parametrize(("type", "state"), COUNTS)
def test_the_log_counts_each_kind_and_what_was_skipped_of_it(
    type: Any, state: Any, caplog: pytest.LogCaptureFixture
) -> None:
    registry = Registry(type, state)
    with caplog.at_level(logging.INFO, "mcpcore.registry"):
        registry.include(Both())
    taken = COUNTS[type, state]
    tail = f" ({3 - taken} skipped)" if taken < 3 else ""
    summaries = caplog.records[-len(KINDS) :]
    assert [(each.levelname, each.getMessage()) for each in summaries] == [
        ("INFO", f"Registered {WORDS[kind][1]}: {taken}{tail}") for kind in KINDS
    ]
    warnings = caplog.records[: -len(KINDS)]
    assert [each.getMessage() for each in warnings] == [str(each) for each in registry.skipped]
    assert len(warnings) == (3 - taken) * len(KINDS)
    for kind in KINDS:
        assert f"{WORDS[kind][1]}: {taken}" in registry.report().splitlines()


def test_kinds_of_which_nothing_is_left_are_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "mcpcore.registry"):
        Registry("auto", "stateless").include(Blocking())
    summaries = caplog.records[-len(KINDS) :]
    assert [(each.levelname, each.getMessage()) for each in summaries] == [
        ("WARNING", f"No {WORDS[kind][1]} registered: all 2 were skipped") for kind in KINDS
    ]
    assert sum(each.getMessage().startswith("Skipped") for each in caplog.records) == 2 * len(KINDS)


def test_skipping_as_an_error_lists_all_of_all_kinds_and_takes_none(caplog: pytest.LogCaptureFixture) -> None:
    registry = Registry("auto", "stateless", on_skip="error")
    with pytest.raises(SkippedHandlers) as caught:
        registry.include(Both())
    assert [each.kind for each in caught.value.skipped] == ["tool", "resource", "template", "prompt", "completion"]
    assert all(str(each) in str(caught.value) for each in caught.value.skipped)
    assert registry.handlers() == () and not caplog.records


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("on_skip", "warnings"), [("warn", 1), ("ignore", 0), ("error", 0)])
def test_what_skipping_means_is_the_same_for_each_kind_and_for_what_is_registered_by_hand(
    kind: Kind, on_skip: Any, warnings: int, caplog: pytest.LogCaptureFixture
) -> None:
    registry = Registry("sync", on_skip=on_skip)
    function = Shape(kind, A, {}).awaited()
    if on_skip == "error":
        with pytest.raises(SkippedHandlers) as caught:
            REGISTER[kind](registry, function)
        assert [each.kind for each in caught.value.skipped] == [kind]
    else:
        REGISTER[kind](registry, function)
        assert [each.kind for each in registry.skipped] == [kind]
    assert not registry.has(kind) and len(caplog.records) == warnings


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda each: f"{each.type}-{each.state}")
@pytest.mark.parametrize("order", [("def", "async def"), ("async def", "def")], ids="-".join)
def test_of_twins_each_server_takes_its_own_and_one_that_takes_both_keeps_the_async_one(
    order: tuple[str, str], provider: Provider, kind: Kind, caplog: pytest.LogCaptureFixture
) -> None:
    registry = Registry(provider.type, provider.state, on_skip="ignore")
    with caplog.at_level(logging.INFO, "mcpcore.registry"):
        for how in order:
            REGISTER[kind](registry, Shape(kind, I, {})(how, RETURNS))
    (handler,) = registry.handlers()
    assert handler.is_async is (provider.type != "sync")
    assert len(registry.skipped) == (provider.type != "auto")
    assert [each.levelname for each in caplog.records] == ["INFO"] * (provider.type == "auto")


# -- what those that are taken are given ---------------------------------------------------------------------------


GIVEN: dict[tuple[str, str, Any], tuple[Any, Any, Any, Any]] = {
    # form and annotation: what comes of it, on a stateful server for clients of the legacy and of the modern era, and
    # on a stateless one for both; None where it is not there at all
    ("def", "", SyncContext | None): ("SyncContext", "SyncContext", "NoneType", "SyncContext"),
    ("def generator", "", SyncContext | None): ("SyncContext", "SyncContext", "NoneType", "SyncContext"),
    ("async def", "", Context | None): ("Context", "Context", "NoneType", "Context"),
    ("async generator", "", Context | None): ("Context", "Context", "NoneType", "Context"),
    ("def", "=None", SyncContext): ("SyncContext", "SyncContext", "NoneType", "SyncContext"),
    ("async def", "=None", Context): ("Context", "Context", "NoneType", "Context"),
    ("async def", "", Context): ("Context", "Context", None, None),
    ("def", "", SyncContext): ("SyncContext", "SyncContext", None, None),
    ("async def", "", ServerSession): ("ServerSession", None, None, None),
    ("def", "", ServerSession): ("ServerSession", None, None, None),
    ("async generator", "", ServerSession): ("ServerSession", None, None, None),
    ("async def", "", ServerSession | None): ("ServerSession", "NoneType", "NoneType", "NoneType"),
    ("def", "", ServerSession | None): ("ServerSession", "NoneType", "NoneType", "NoneType"),
    ("async def", "", Annotated[str, Depends(needs_session)]): ("str", None, None, None),
    ("def", "", Annotated[str, Depends(may_need)]): ("str",) * 4,
    ("async def", "", TransportContext): ("TransportContext",) * 4,
    ("def", "", TransportContext): ("TransportContext",) * 4,
    ("async def", "", RequestMeta): ("RequestMeta",) * 4,
    ("def", "", ToolContext): ("ToolContext",) * 4,
    ("async def", "", ProgressToken): ("int", "int", "int", "int"),
}

BESIDE: dict[Kind, Callable[[Registry], Any]] = {
    # what makes sure that there is something of the kind in any case
    "tool": lambda registry: registry.tool(lambda: "x", name="other"),
    "resource": lambda registry: registry.resource(lambda: "x", uri="b://fixed"),
    "template": lambda registry: registry.resource(lambda v: v, uri="b://{v}"),
    "prompt": lambda registry: registry.prompt(lambda: "x", name="other"),
    "completion": lambda registry: registry.prompt(lambda: "x", name="f"),
}

SAYS = {
    "def": ("def", "return [type(p).__name__]"),
    "def generator": ("def", "yield type(p).__name__"),
    "async def": ("async def", "return [type(p).__name__]"),
    "async generator": ("async def", "yield type(p).__name__"),
}


async def fetched(client: Client, kind: Kind) -> Any:
    """What the handler of that kind says."""
    match kind:
        case "tool":
            return (await client.call_tool("f")).text.strip('[]"')
        case "resource" | "template":
            uri = "a://fixed" if kind == "resource" else "a://v"
            (contents,) = (await client.read_resource(uri)).contents
            return str(contents.text).strip('[]"')
        case "prompt":
            (message,) = (await client.get_prompt("f")).messages
            return message.content.text  # type: ignore[union-attr]  # it is a text
        case "completion":
            values = (await client.complete(PromptReference("f"), "x", "")).values
            return values[0] if values else None


async def answer_of(client: Client, kind: Kind) -> Any:
    """The same; None where the client is told that there is none."""
    try:
        return await fetched(client, kind)
    except (PeerError, LocalProtocolError) as error:
        assert isinstance(error, LocalProtocolError) or error.code in (-32602, -32002)
        return None


async def listed(client: Client, kind: Kind) -> int:
    """How many of that kind the client sees."""
    lists: dict[Kind, Any] = {
        "tool": client.list_tools,
        "resource": client.list_resources,
        "template": client.list_resource_templates,
        "prompt": client.list_prompts,
    }
    return len(await lists[kind]())


@pytest.mark.anyio
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("form", "default", "annotation"), GIVEN)
async def test_what_is_taken_is_given_what_there_is_and_is_not_there_where_there_is_nothing_to_give(
    form: str, default: str, annotation: Any, kind: Kind
) -> None:
    expected = iter(GIVEN[form, default, annotation])
    make = Shape(kind, I, {f"p{default}": annotation})
    for state in ("stateful", "stateless"):
        server = Server("given", state=state, on_skip="ignore")
        REGISTER[kind](server.registry, make(*SAYS[form]))
        BESIDE[kind](server.registry)
        for era in ("legacy", "modern"):
            wanted = next(expected)
            with anyio.fail_after(10):
                async with Client(server, eras=(era,), on_progress=print) as client:
                    assert await answer_of(client, kind) == wanted, (state, era)
                    if kind != "completion":
                        assert await listed(client, kind) == (1 if wanted is None else 2), (state, era)


# -- a def that gives something to await ---------------------------------------------------------------------------


async def late() -> list[str]:
    return ["late"]


@pytest.mark.anyio
@pytest.mark.parametrize("kind", KINDS)
async def test_a_def_that_turns_out_to_give_something_to_await_is_awaited_or_fails_as_the_type_says(kind: Kind) -> None:
    given: list[Any] = []

    def function() -> Any:
        given.append(late())
        return given[-1]

    unannotated = Shape(kind, I, {})("lambda", "function()")
    unannotated.__globals__["function"] = function
    automatic, strict = Server("auto"), Server("sync", type="sync")
    for server in (automatic, strict):
        REGISTER[kind](server.registry, unannotated)
        if kind == "completion":
            BESIDE[kind](server.registry)
    with anyio.fail_after(10):
        async with Client(automatic) as client:
            assert await answer_of(client, kind) == "late"
        async with Client(strict) as client:
            with pytest.raises(PeerError) as caught:
                await fetched(client, kind)
            assert (caught.value.code, caught.value.message) == (-32603, "Internal error")
    assert given[-1].cr_frame is None, "closed"
    skipped = registered(kind, unannotated, AsyncProvider(), on_skip="ignore").skipped
    assert [each.reasons for each in skipped] == [(R2,)]
