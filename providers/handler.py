"""A handler is a function that was inspected and compiled: what all kinds have in common.

Everything that can be found out beforehand is found out when the handler is made; a call looks nothing up.
"""

import copy
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from inspect import CO_COROUTINE
from opcode import opmap
from types import CodeType
from typing import Any, ClassVar, Final, Literal, cast

import msgspec
from msgspec import UNSET, Struct

from mcpcore.exceptions import DefinitionError, InsufficientScope, McpError, ResourceNotFound
from mcpcore.providers.declarations import Declaration
from mcpcore.providers.dependencies import Provide, wire
from mcpcore.providers.encoding import EncodeError, check_finite
from mcpcore.providers.failures import outstanding, request_failure
from mcpcore.providers.fields import Rename
from mcpcore.providers.invocation import Invoke, InvokeAsync, Steps, make_invoke, make_invoke_async
from mcpcore.providers.markers import Demand, Injection, RequestMeta, ToolContext
from mcpcore.providers.options import check_options, one_of
from mcpcore.providers.schema import InvalidArguments
from mcpcore.providers.selection import Candidate, ServerType
from mcpcore.providers.signature import Colour, InjectedParameter, Kind, inspect_callable
from mcpcore.providers.source import Source
from mcpcore.types.completion import CompletionContext
from mcpcore.types.jsonrpc import INTERNAL_ERROR
from mcpcore.types.meta import PROGRESS_TOKEN
from mcpcore.versions import VERSIONS, Era, era_of

__all__ = ["Handler", "Needs", "Settings", "meta_of"]

_logger = logging.getLogger("mcpcore.handlers")


class Settings(Struct, frozen=True, kw_only=True):
    """What a registry tells its handlers; `Registry` documents the members, and `Handler` those of a mounted one."""

    type: ServerType = "auto"
    output_schema: bool | Literal["any", "wrap"] = False
    rename: Rename = None
    omit_none: bool = False
    mask_unexpected: bool = False
    format_error: Callable[[str, BaseException], str] | None = None
    on_error: Callable[["Handler", BaseException], None] | None = None
    strict_names: bool = True
    homes: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        check_options(self, output_schema=one_of(False, True, "any", "wrap"))


class Needs(Struct, frozen=True):
    """What a handler wants besides its arguments.

    Args:
        injections: Of its own parameters and of those of its dependencies.
        questions: Keys of the `Elicit` parameters, all asked in one round.
        dependencies: It has `Depends` parameters.
    """

    injections: tuple[Injection, ...] = ()
    questions: tuple[str, ...] = ()
    dependencies: bool = False

    @property
    def resolution(self) -> bool:
        """Something has to be awaited before the body."""
        return self.dependencies or bool(self.questions)


class Handler:
    """A function that is registered.

    Attributes:
        kind: What it is.
        key: Unique among the handlers of its kind in one registry.
        name: As published.
        title: For people; None where none was given.
        description: Given, else the docstring's first paragraph, else the name.
        meta: To be published as ``_meta``.
        is_async: It is awaited; otherwise it runs to its end.
        thread: It is a ``def`` that may block and belongs into a worker thread.
        direct: `invoke` may be used on an event loop: nothing to resolve before, nothing that blocks.
        never_waits: What `invoke` gives is done in one step: an ``async def`` in which nothing is awaited.
        needs: What it wants besides its arguments.
        candidate: What selection looks at.
        notices: Level and text of what registering it has to say.
        secrets: Names of the members of the arguments, at any depth, that audit records must not show.
        homes: The servers that it was mounted from, outermost first; nothing to the registry, which keeps it for them.
        timeout: Seconds after which the caller should cancel an invocation and answer with `timed_out`; None for never.

    Cancelling an invocation cancels the function where it waits; nothing is converted into a result then.
    """

    kind: ClassVar[Kind]
    key: Any
    name: str

    def __init__(
        self, function: Any, declaration: Declaration, settings: Settings, names: Mapping[str, Any] | None = None
    ) -> None:
        self.function = function
        self.declaration = declaration
        self.settings = settings
        self.names = names
        self.notices: list[tuple[int, str]] = []
        signature = inspect_callable(function, kind=self.kind, names=names, rename=settings.rename)
        self.signature = signature
        self.is_async = signature.colour is not Colour.IMPERATIVE
        if self.is_async and declaration.thread is not None:
            raise DefinitionError(f"{signature.where}: thread= is for def handlers, and this one is {signature.form}")
        self.thread = not self.is_async and declaration.thread is not False
        if declaration.name == "":
            raise DefinitionError(f"{signature.where}: name='': give at least one character, or leave it out")
        self.name = declaration.name or signature.name
        self.title = declaration.title or None
        self.timeout = declaration.timeout
        self.homes = settings.homes
        self.documented = declaration.description or signature.docstring.summary
        self.description = self.documented or self.name
        self.meta = self._meta(declaration)
        self.secrets = frozenset(field.alias or field.name for field in signature.fields if field.secret)
        mirrored = next((field for field in signature.fields if field.header), None)
        if mirrored is not None and self.kind != "tool":
            raise DefinitionError(
                f"{signature.where}: parameter {mirrored.name!r}: header={mirrored.header!r} is for arguments of tools"
            )
        self.key = self.name

        try:
            self._parts = self._steps()
            self._plan = plan = wire(signature, self.kind, self._provide)
        except DefinitionError as exc:
            if signature.where in str(exc):
                raise
            raise DefinitionError(f"{signature.where}: {exc}") from exc
        self._check_published()
        injected = signature.injected + (plan.injected if plan else ())
        self.needs = Needs(
            tuple(parameter.injection for parameter in injected),
            tuple(plan.questions) if plan else (),
            bool(plan and plan.steps),
        )
        self.direct = not self.thread and not self.needs.resolution
        self.never_waits = (
            self.direct and self.timeout is None and signature.form == "async def" and not _awaits(signature.function)
        )
        most = max(injected, key=_demand, default=None)
        self.candidate = Candidate(
            kind=self.kind,
            name=self.name,
            qualname=signature.qualname,
            location=signature.location,
            colour=signature.colour,
            form=signature.form,
            demand=_demand(most) if most else Demand.NONE,
            parameter=most.text if most else "",
        )
        if self.candidate.demand is Demand.SESSION:
            text = f"{self.kind} {self.name!r} is not offered to peers of 2026-07-28 and later, who have no sessions"
            self.notices.append((logging.INFO, text))

    @cached_property
    def invoke(self) -> Invoke:
        """Call as ``invoke(params, source, version)``; see `make_invoke`.

        With something to resolve it gives an awaitable, and everything runs where it is awaited.
        """
        return self._invoke_in_place if self._plan else make_invoke(self.signature, self._parts)

    @cached_property
    def invoke_async(self) -> InvokeAsync:
        """Call as ``await invoke_async(params, source, version, run_sync)``; see `make_invoke_async`.

        Serves every handler.
        """
        return make_invoke_async(self.signature, self._parts, self._plan, thread=self.thread)

    def describe(self, version: str) -> Any:
        """Return what lists publish about it to a peer of revision ``version``; None for a completion."""
        return None

    def is_offered(self, version: str) -> bool:
        """Tell whether peers of revision ``version`` can use it at all: modern ones have no sessions."""
        return self.candidate.demand is not Demand.SESSION or era_of(version) is Era.LEGACY

    def is_visible(self, principal: Any) -> bool:
        """Tell whether ``principal`` may know of it. A predicate that fails hides it."""
        predicate = self.declaration.visible
        if predicate is None:
            return True
        try:
            return bool(predicate(principal))
        except Exception:
            _logger.exception("visible= of %s %r failed; it is hidden", self.kind, self.name)
            return False

    def timed_out(self, seconds: float) -> Any:
        """Return the result of an invocation that was cancelled after ``seconds``, or raise the error that answers it."""
        _logger.warning("%s %r (%s) timed out after %g s", self.kind, self.name, self.signature.where, seconds)
        raise McpError(INTERNAL_ERROR, f"Timed out after {seconds:g} seconds")

    def crashed(self, exc: BaseException, version: str) -> Any:
        """Return the result, or raise the error, for what came out of an invocation and is neither an `Exception` nor the
        caller's: a cancellation of something else, a panic of an extension module. What it says is only logged."""
        failure = SystemError(f"{type(exc).__name__} came out of {self.kind} {self.name!r}")
        failure.__cause__ = exc
        return self._fail(failure, None, version)

    # -- what the kinds say ------------------------------------------------------------------------------------------

    def _steps(self) -> Steps:
        raise NotImplementedError

    def _request(self, params: Any) -> Any:
        """Return the raw request object that a parameter may ask for."""
        raise NotImplementedError

    # -- binding -----------------------------------------------------------------------------------------------------

    def _binder(self, decode: Callable[[Any, Source | None], dict[str, Any]]) -> Callable[..., dict[str, Any]]:
        """Return ``bind(params, source)``: decoded arguments, then the injected ones, which no caller can set."""
        provides = [(parameter.name, self._provide(parameter)) for parameter in self.signature.injected]
        if not provides:
            return decode

        def bind(params: Any, source: Source | None) -> dict[str, Any]:
            values = decode(params, source)
            for name, provide in provides:
                values[name] = provide(params, source)
            return values

        return bind

    def _provide(self, parameter: InjectedParameter) -> Provide:
        injection = parameter.injection
        if injection.kind == "request":
            return lambda params, source: self._request(params)
        if injection.kind in _FROM_PARAMS:
            read, subclass = _FROM_PARAMS[injection.kind], injection.subclass
            if subclass is not None:
                return lambda params, source: subclass(read(params))
            return lambda params, source: read(params)

        def provide(params: Any, source: Source | None) -> Any:
            if source is not None:
                return source.provide(injection)
            if parameter.optional:
                return None
            if injection.kind == "tool_context":
                return ToolContext()
            raise RuntimeError(f"parameter {parameter.text!r} is provided by a server, and there is none")

        return provide

    async def _invoke_in_place(self, params: Any, source: Source | None, version: str) -> Any:
        return await self.invoke_async(params, source, version, _run_here)

    def _admit(self, late: Any) -> Awaitable[Any]:
        """Take what a ``def`` gave to be awaited, unless the server promised that nothing is."""
        if self.settings.type != "sync":
            awaitable: Awaitable[Any] = late
            return awaitable
        if hasattr(late, "close"):
            late.close()
        _logger.error(
            "%s %r (%s) returned something to await; this server is type='sync'. Use type='auto', or return a value.",
            self.kind,
            self.name,
            self.signature.where,
        )
        raise McpError(INTERNAL_ERROR, "Internal error")

    # -- failing -----------------------------------------------------------------------------------------------------

    def _fail(self, exc: BaseException, params: Any, version: str) -> Any:
        """Return the result for ``exc``, or raise what answers it or is no failure."""
        if self.settings.on_error is not None:
            self._report(self.settings.on_error, outstanding(exc))
        return self._answer(exc, version)

    def _answer(self, exc: BaseException, version: str) -> Any:
        request_failure(exc, handler=f"{self.kind} {self.name!r} ({self.signature.where})", version=version)

    def _report(self, on_error: Callable[["Handler", BaseException], None], exc: BaseException) -> None:
        if not isinstance(exc, Exception | SystemExit) or isinstance(exc, _ANSWERS):
            return
        try:
            on_error(self, exc)
        except Exception:
            _logger.exception("on_error failed for %s %r", self.kind, self.name)

    def _check_published(self) -> None:
        """Raise `DefinitionError` where the handler would spoil the list that it is in."""
        published = self.describe(VERSIONS[-1])
        try:
            # msgspec writes NaN and infinity as null.
            if b"null" in msgspec.json.encode(published):
                check_finite(msgspec.to_builtins(published))
        except (TypeError, ValueError, EncodeError) as exc:
            raise DefinitionError(f"{self.signature.where} cannot be published: {exc}") from exc

    def _meta(self, declaration: Declaration) -> dict[str, Any] | None:
        meta = declaration.meta() if callable(declaration.meta) else declaration.meta
        if meta is None:
            return None
        if not isinstance(cast(object, meta), Mapping):
            raise DefinitionError(f"{self.signature.where}: meta= is no JSON object: {meta!r}")
        own = dict(meta)
        try:
            msgspec.json.encode(own)
            return copy.deepcopy(own)  # what the author does with the mapping later is not published
        except (TypeError, ValueError, msgspec.MsgspecError) as exc:
            raise DefinitionError(f"{self.signature.where}: meta= is no JSON object: {exc}") from exc


_SEND: Final = opmap.get("SEND")  # what every ``await``, ``async for`` and ``async with`` is compiled to


def _awaits(function: Any) -> bool:
    """Tell whether a coroutine function may wait; where its code cannot be seen, it may."""
    code: CodeType | None = getattr(function, "__code__", None)
    if code is None or not code.co_flags & CO_COROUTINE or _SEND is None:
        return True
    return _SEND in code.co_code[::2]


_ANSWERS: Final = (McpError, ResourceNotFound, InsufficientScope, InvalidArguments)


def meta_of(params: Any) -> RequestMeta:
    return RequestMeta(None if params.meta is UNSET else msgspec.json.decode(params.meta))


_FROM_PARAMS: Final[dict[str, Callable[[Any], Any]]] = {
    "meta": meta_of,
    "progress_token": lambda params: meta_of(params).get(PROGRESS_TOKEN),
    "argument": lambda params: params.argument,
    "chosen": lambda params: params.context or CompletionContext(),
}


def _demand(parameter: InjectedParameter) -> Demand:
    return Demand.NONE if parameter.optional else parameter.injection.demand


async def _run_here(work: Callable[[], Any]) -> Any:
    return work()
