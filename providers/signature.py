"""Inspects a handler once, so that nothing has to be inspected when it is called.

Two things decide where a handler may run: its *colour*, which is a property of the callable and not of its return
annotation, and its most demanding parameter. `inspect.iscoroutinefunction` alone does not find the colour: it is False
for `functools.wraps` wrappers, for objects whose ``__call__`` is async and for ``def f() -> Awaitable[str]``.
"""

import inspect
import os
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Mapping
from enum import Enum
from types import GenericAlias, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from msgspec import Struct, structs

from mcpcore.exceptions import DefinitionError
from mcpcore.providers.annotations import describe, innermost, layers, peel, resolve, split_annotated
from mcpcore.providers.docstrings import Docstring, parse_docstring
from mcpcore.providers.fields import Rename, read_field
from mcpcore.providers.markers import (
    CallToolRequest,
    CompleteRequest,
    Demand,
    Depends,
    Elicit,
    GetPromptRequest,
    Injected,
    Injection,
    Log,
    Param,
    Progress,
    ReadResourceRequest,
)
from mcpcore.providers.schema import Field
from mcpcore.types.completion import CompletionArgument, CompletionContext
from mcpcore.types.tools import CallToolResult

__all__ = ["Colour", "Kind", "InjectedParameter", "Rename", "Signature", "inspect_callable"]

Kind = Literal["tool", "resource", "template", "prompt", "completion"]

_EMPTY: Final = inspect.Parameter.empty
_GENERATOR: Final = "def generator"

_REQUESTS: Final[dict[Kind, type]] = {
    "tool": CallToolRequest,
    "resource": ReadResourceRequest,
    "template": ReadResourceRequest,
    "prompt": GetPromptRequest,
    "completion": CompleteRequest,
}

_DEMANDS: Final = {
    # of the kinds that `Injected` may name; kinds of others' making are data that came with the request
    "context": Demand.FULL,
    "sync_context": Demand.FULL,
    "session": Demand.SESSION,
    "transport_context": Demand.TRANSPORT,
}


class Colour(Enum):
    """How a call is driven."""

    IMPERATIVE = "imperative"
    """It runs to its end; ``def`` generators too."""
    AWAITABLE = "awaitable"
    """It gives something to await."""
    STREAM = "stream"
    """It gives something to iterate with ``async for``."""


class InjectedParameter(Struct, frozen=True):
    """A parameter that is passed by type.

    Args:
        optional: It admits None, so the handler copes without.
        text: ``ctx: Context``, as the author wrote it.
    """

    name: str
    injection: Injection
    optional: bool
    text: str


class Signature(Struct, frozen=True, kw_only=True):
    """Everything that is known about a callable.

    Args:
        function: What is called.
        name: ``__name__``, for error texts and as the default of the published name.
        qualname: With the module, for log records.
        location: ``file:line``.
        colour: How a call is driven.
        form: The colour in the author's words: ``async def``, ``def``, ``returns Awaitable[str]``.
        streams: It yields: what it gives is collected, and progress and log items are notifications.
        fields: The published parameters, in order.
        injected: Parameters passed by type.
        questions: Parameters that the user is asked for; ``type`` of each is set.
        dependencies: Parameters made by functions.
        optional: Those of ``questions`` that admit None.
        positional: Names that must be passed by position, in order.
        returns: The payload: awaited, and ``list[item]`` where it streams; `inspect.Signature.empty` if not annotated.
        docstring: Its parts.
    """

    function: Callable[..., Any]
    name: str
    qualname: str
    location: str
    colour: Colour
    form: str
    streams: bool
    fields: tuple[Field, ...]
    injected: tuple[InjectedParameter, ...]
    questions: Mapping[str, Elicit]
    dependencies: Mapping[str, Depends]
    optional: frozenset[str]
    positional: tuple[str, ...]
    returns: Any
    docstring: Docstring

    @property
    def where(self) -> str:
        """Name and place, for messages."""
        return f"{self.qualname} ({self.location})"


def inspect_callable(
    function: Any, *, kind: Kind, names: Mapping[str, Any] | None = None, rename: Rename = None
) -> Signature:
    """Read the signature of ``function``.

    Args:
        kind: What it is registered as; decides which request object it may take.
        names: What `enclosing_names` kept for its string annotations.
        rename: "camel" publishes ``order_id`` as ``orderId``, unless `Param` gives an alias.

    Raises:
        DefinitionError: It cannot be a handler as it is written; the message says what would work.
    """
    if isinstance(function, staticmethod):
        function = function.__func__
    if isinstance(function, type | classmethod) or not callable(function):
        raise DefinitionError(f"{function!r} is no handler: give a function, a bound method or an object with __call__")
    inner = innermost(function)
    qualname, location = _place(function, inner)
    where = f"{qualname} ({location})"
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError, NameError) as exc:
        raise DefinitionError(f"{where} has no signature that can be read ({exc}); wrap it in a def") from exc
    _check_parameters(function, signature, kind, where)
    written = {name: p.annotation for name, p in signature.parameters.items() if p.annotation is not _EMPTY}
    if signature.return_annotation is not _EMPTY:
        written["return"] = signature.return_annotation
    try:
        annotations = resolve(function, written, names or {})
    except DefinitionError as exc:
        raise DefinitionError(f"{where}: {exc}") from exc
    returns = annotations.pop("return", _EMPTY)
    docstring = parse_docstring(_doc(function))

    fields: list[Field] = []
    injected: list[InjectedParameter] = []
    questions: dict[str, Elicit] = {}
    optional: set[str] = set()
    dependencies: dict[str, Depends] = {}
    for name, parameter in signature.parameters.items():
        annotation = annotations.get(name, Any)
        tp, metadata, admits_none = peel(annotation)
        text = f"{name}: {describe(written.get(name, Any))}"
        if isinstance(parameter.default, Param | Depends | Elicit | Injected):
            marker = type(parameter.default).__name__
            raise DefinitionError(
                f"{where}: parameter {name!r} has {marker}(…) as its default; "
                f"write {name}: Annotated[{describe(written.get(name, 'type'))}, {marker}(…)]"
            )
        if (injection := _injection(tp, metadata, kind, where, text)) is not None:
            injected.append(InjectedParameter(name, injection, admits_none or parameter.default is None, text))
        elif depends := _last(metadata, Depends):
            dependencies[name] = depends
        elif question := _last(metadata, Elicit):
            questions[name] = structs.replace(question, type=_without(Elicit, tp, metadata))
            if admits_none or parameter.default is None:
                optional.add(name)
            elif parameter.default is not _EMPTY:
                raise DefinitionError(
                    f"{where}: parameter {name!r} is asked for, and its default would never be used. Leave it out, or "
                    "admit None, which is passed when the user does not answer."
                )
        else:
            try:
                fields.append(read_field(parameter, annotation, metadata, docstring.parameters.get(name), rename))
            except DefinitionError as exc:
                raise DefinitionError(f"{where}: {exc}") from None

    colour, form, payload = _colour(function, returns)
    streams = colour is Colour.STREAM or form == _GENERATOR
    result = Signature(
        function=function,
        name=_name(function, inner),
        qualname=qualname,
        location=location,
        colour=colour,
        form=form,
        streams=streams,
        fields=tuple(fields),
        injected=tuple(injected),
        questions=questions,
        dependencies=dependencies,
        optional=frozenset(optional),
        positional=tuple(n for n, p in signature.parameters.items() if p.kind is p.POSITIONAL_ONLY),
        returns=_collected(payload) if streams else payload,
        docstring=docstring,
    )
    _check_injected(result)
    _check_wire_names(result)
    return result


# -- checks ------------------------------------------------------------------------------------------------------


def _check_parameters(function: Any, signature: inspect.Signature, kind: Kind, where: str) -> None:
    if hasattr(function, "dispatch") and hasattr(function, "registry"):
        raise DefinitionError(
            f"{where}: functools.singledispatch chooses by position, and arguments come by name; wrap it in a def"
        )
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
            raise DefinitionError(
                f"{where}: {stars}{parameter.name} has no names that could be published. List the parameters, take the "
                f"raw request ({_REQUESTS[kind].__name__}), or use functools.wraps if this is a wrapper."
            )
    first = next(iter(signature.parameters.values()), None)
    if first is None or first.name not in ("self", "cls") or first.annotation is not _EMPTY:
        return
    owner = getattr(function, "__qualname__", "").rpartition(".")[0]
    if inspect.isfunction(function) and owner and not owner.endswith("<locals>"):
        raise DefinitionError(
            f"{where} is a method without its object. Mark it with the decorator from mcpcore and include an instance: "
            f"registry.include({owner.rpartition('.')[2]}(…))"
        )


def _check_injected(signature: Signature) -> None:
    seen: dict[str, str] = {}
    for parameter in signature.injected:
        kind = parameter.injection.kind
        if kind in seen:
            raise DefinitionError(
                f"{signature.where}: {seen[kind]!r} and {parameter.text!r} are the same thing; take one"
            )
        seen[kind] = parameter.text
        imperative = signature.colour is Colour.IMPERATIVE
        if kind == "context" and imperative:
            raise DefinitionError(
                f"{signature.where}: parameter {parameter.text!r} is for async handlers, and this is a plain def. "
                "Take SyncContext, or make it async def."
            )
        if kind == "sync_context" and not imperative:
            raise DefinitionError(
                f"{signature.where}: parameter {parameter.text!r} is for plain def handlers, and this one is async "
                f"({signature.form}). Take Context."
            )


def _check_wire_names(signature: Signature) -> None:
    seen: dict[str, str] = {}
    for each in signature.fields:
        wire = each.alias or each.name
        if wire in seen:
            raise DefinitionError(
                f"{signature.where}: parameters {seen[wire]!r} and {each.name!r} are both called {wire!r} on the wire"
            )
        seen[wire] = each.name


# -- parameters --------------------------------------------------------------------------------------------------


def _last(metadata: tuple[Any, ...], marker: type) -> Any:
    return next((each for each in reversed(metadata) if isinstance(each, marker)), None)


def _without(marker: type, tp: Any, metadata: tuple[Any, ...]) -> Any:
    rest = tuple(each for each in metadata if not isinstance(each, marker))
    return Annotated[(tp, *rest)] if rest else tp


def _injection(tp: Any, metadata: tuple[Any, ...], kind: Kind, where: str, text: str) -> Injection | None:
    """Return how a parameter is injected; None for an ordinary one."""
    if (marked := _last(metadata, Injected)) is not None:
        return Injection(marked.kind, _DEMANDS.get(marked.kind, Demand.RAW))
    found = _injection_of(tp, kind)
    if get_origin(tp) in (Union, UnionType) and any(_injection_of(member, kind) for member in get_args(tp)):
        raise DefinitionError(
            f"{where}: parameter {text!r} mixes an injected type with others; only '| None' is possible"
        )
    if found is not None and found.kind == "request" and tp is not _REQUESTS[kind]:
        raise DefinitionError(f"{where}: a {kind} takes {_REQUESTS[kind].__name__}, not {text!r}")
    return found


def _injection_of(tp: Any, kind: Kind) -> Injection | None:
    if kind == "completion" and tp in (CompletionArgument, CompletionContext):
        return Injection("argument" if tp is CompletionArgument else "chosen")
    owner = get_origin(tp) or tp
    found = getattr(owner, "__mcpcore_injection__", None) if isinstance(owner, type) else None
    if not isinstance(found, Injection) or "__mcpcore_injection__" in vars(owner):
        return found if isinstance(found, Injection) else None
    return structs.replace(found, subclass=owner)


# -- the callable ------------------------------------------------------------------------------------------------


def _colour(function: Any, returns: Any) -> tuple[Colour, str, Any]:
    """Return colour, form and payload type. The outermost layer that says anything decides."""
    wraps = ""
    for layer in layers(function):
        if inspect.isasyncgenfunction(layer):
            return Colour.STREAM, f"{wraps}async generator", _item(returns)
        # The attribute is how libraries marked coroutine functions before inspect.markcoroutinefunction (3.12).
        if inspect.iscoroutinefunction(layer) or getattr(layer, "_is_coroutine", None) is not None:
            if _is_subclass(returns, AsyncIterable):
                return Colour.STREAM, f"returns {describe(returns)}", _item(returns)
            return Colour.AWAITABLE, f"{wraps}async def", returns
        if inspect.isgeneratorfunction(layer):
            return Colour.IMPERATIVE, _GENERATOR, _item(returns)
        wraps = "wraps an " if hasattr(layer, "__wrapped__") else wraps
    if _is_subclass(returns, AsyncIterable):
        return Colour.STREAM, f"returns {describe(returns)}", _item(returns)
    if _is_subclass(returns, Awaitable):
        return Colour.AWAITABLE, f"returns {describe(returns)}", next(reversed(get_args(returns)), _EMPTY)
    return Colour.IMPERATIVE, "def", returns


def _is_subclass(tp: Any, of: type) -> bool:
    owner = get_origin(tp) or tp
    return owner is not _EMPTY and isinstance(owner, type) and issubclass(owner, of)


def _item(returns: Any) -> Any:
    """Return what a generator's annotation says that it yields."""
    if _is_subclass(returns, AsyncIterable) or _is_subclass(returns, Iterable):
        return next(iter(get_args(returns)), _EMPTY)
    return _EMPTY


def _collected(item: Any) -> Any:
    """Return the type of what a generator's items become: a list of those that are no notifications."""
    tp, _ = split_annotated(item)
    members = get_args(tp) if get_origin(tp) in (Union, UnionType) else (tp,)
    rest = tuple(member for member in members if member not in (Progress, Log, _EMPTY, Any))
    if not rest:
        return _EMPTY
    rest = tuple(member for member in rest if member is not CallToolResult)  # which would be no item, but the result
    if not rest:
        return CallToolResult
    return GenericAlias(list, (Union[rest],))  # noqa: UP007 - built from a tuple


def _name(function: Any, inner: Any) -> str:
    owner = function
    for layer in layers(function):
        if isinstance(name := getattr(layer, "__name__", None), str):
            return type(getattr(layer, "__self__", owner)).__name__ if name == "__call__" else name
        owner = layer
    return str(getattr(inner, "__name__", type(function).__name__))


def _place(function: Any, inner: Any) -> tuple[str, str]:
    """Return the qualified name, and ``file:line`` relative to the working directory where that is shorter."""
    named: Any = inner if hasattr(inner, "__qualname__") else function.__class__
    qualname = f"{getattr(named, '__module__', None) or '?'}.{named.__qualname__}"
    code = getattr(inner, "__code__", None)
    if code is None:
        return qualname, "built in"
    path = code.co_filename
    here = os.getcwd() + os.sep
    return qualname, f"{path.removeprefix(here)}:{code.co_firstlineno}"


def _doc(function: Any) -> str | None:
    """Return the docstring of the outermost layer that has its own, else an inherited one."""
    for layer in layers(function):
        if inspect.isroutine(layer) and layer.__doc__:
            return str(layer.__doc__)
    if inspect.ismethod(function):
        return inspect.getdoc(function)
    return type(function).__doc__ if hasattr(type(function).__call__, "__code__") else None
