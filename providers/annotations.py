"""Reading annotations: strings resolved with the names that were in scope, wrappers taken off one at a time."""

import inspect
import re
from collections.abc import Iterator, Mapping
from functools import partial
from types import MethodType, NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, Final, Union, cast, get_args, get_origin, get_type_hints

from mcpcore.exceptions import DefinitionError

__all__ = [
    "all_metadata",
    "describe",
    "enclosing_names",
    "innermost",
    "layers",
    "peel",
    "resolve",
    "split_annotated",
    "split_optional",
]

_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_INSIDE: Final = (
    # what wraps: where it keeps what it wraps
    (partial, "func"),
    (MethodType, "__func__"),
    (staticmethod, "__func__"),
    (classmethod, "__func__"),
)
_CO_OPTIMIZED = 0x0001  # set for function bodies, clear for class and module bodies


def layers(fn: Any) -> Iterator[Any]:
    """Yield ``fn`` and everything it wraps, outermost first.

    Partials, bound methods, static and class methods and `functools.wraps` wrappers are taken off one by one; an object
    with ``__call__`` is followed by that method.
    """
    yield fn
    inside = _inside(fn)
    if inside is not None:
        yield from layers(inside)
        return
    own_call, wrapped = _own_call(fn), getattr(fn, "__wrapped__", None)
    if own_call is not None:
        yield from layers(own_call) if wrapped is None else (own_call,)
    if wrapped is not None:
        yield from layers(wrapped)


def _inside(fn: Any) -> Any:
    """Return what a partial or a method is made of; None for anything else."""
    return next((getattr(fn, name) for kind, name in _INSIDE if isinstance(cast("object", fn), kind)), None)


def _own_call(fn: Any) -> Any:
    """Return ``__call__`` as the class of an object defines it; None for functions, and for classes themselves."""
    if hasattr(fn, "__code__") or inspect.isclass(fn) or not callable(fn):
        return None
    call: Any = type(fn).__call__
    return call if hasattr(call, "__code__") else None


def innermost(fn: Any) -> Any:
    """Return the last of `layers`: the function that the author wrote."""
    *_, function = layers(fn)
    return function


def enclosing_names(fn: Any) -> dict[str, Any]:
    """Return what the string annotations of ``fn`` need of the functions and classes around its definition.

    To be called while they run, which is when a decorator is applied: the names are gone afterwards. Only what the
    annotations mention is kept, so that nothing else of the caller stays alive.
    """
    annotations: Mapping[str, Any] = getattr(innermost(fn), "__annotations__", {})
    wanted = {name for text in annotations.values() if isinstance(text, str) for name in _IDENTIFIER.findall(text)}
    found: dict[str, Any] = {}
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == "mcpcore":
        frame = frame.f_back
    while wanted and frame is not None and frame.f_locals is not frame.f_globals:
        names = frame.f_locals
        found = {name: names[name] for name in wanted if name in names} | found
        if frame.f_code.co_flags & _CO_OPTIMIZED:
            break  # what called this function is not what encloses it; a class body is called where it stands
        frame = frame.f_back
    return found


def resolve(fn: Any, annotations: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``annotations`` of ``fn`` with strings replaced by what they name, `Annotated` metadata kept.

    Raises:
        DefinitionError: A name is not known, neither in the module of ``fn`` nor around it, or a string is no type.
    """
    function = innermost(fn)
    module = getattr(function, "__globals__", {})
    local = {**_closure(function), **names}
    resolved: dict[str, Any] = {}
    for parameter, annotation in annotations.items():
        holder = SimpleNamespace(__annotations__={parameter: annotation})
        try:
            resolved[parameter] = get_type_hints(holder, module, local, include_extras=True)[parameter]
        except NameError as exc:
            raise DefinitionError(
                f"{_annotated(parameter, annotation)}, and {exc}. Import the name at run time (not only under "
                "TYPE_CHECKING) or define it before the function."
            ) from exc
        except Exception as exc:  # a text is a program, and can fail in any way
            raise DefinitionError(
                f"{_annotated(parameter, annotation)}, which is no type ({exc}). Write a type, or Annotated[type, …]."
            ) from exc
    return resolved


def _annotated(parameter: str, annotation: Any) -> str:
    what = "its return value" if parameter == "return" else f"parameter {parameter!r}"
    return f"{what} is annotated {annotation!r}"


def _closure(function: Any) -> dict[str, Any]:
    """Return the enclosing functions' variables that ``function`` uses itself."""
    names: tuple[str, ...] = getattr(getattr(function, "__code__", None), "co_freevars", ())
    found: dict[str, Any] = {}
    for name, cell in zip(names, getattr(function, "__closure__", None) or (), strict=False):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return found


def split_annotated(tp: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the type inside `Annotated` and ``type X = …`` aliases, and all metadata, outermost first."""
    metadata: tuple[Any, ...] = ()
    while True:
        if get_origin(tp) is Annotated:
            tp, *more = get_args(tp)
            metadata += tuple(more)
        elif hasattr(tp, "__value__") and type(tp).__name__ == "TypeAliasType":
            tp = tp.__value__
        else:
            return tp, metadata


def split_optional(tp: Any) -> tuple[Any, bool]:
    """Return ``tp`` without None, and whether None was a member."""
    if get_origin(tp) not in (Union, UnionType):
        return tp, False
    members = get_args(tp)
    rest = tuple(member for member in members if member is not NoneType)
    if len(rest) == len(members) or not rest:
        return tp, False
    return Union[rest], True  # noqa: UP007 - built from a tuple


def peel(annotation: Any) -> tuple[Any, tuple[Any, ...], bool]:
    """Return the type, all metadata around and inside an optional, and whether None is admitted."""
    tp, outer = split_annotated(annotation)
    tp, admits_none = split_optional(tp)
    tp, inner = split_annotated(tp)
    return tp, inner + outer, admits_none


def all_metadata(annotation: Any) -> Iterator[Any]:
    """Yield the metadata of a type and of every type inside its brackets."""
    seen: list[Any] = []
    waiting = [annotation]
    while waiting:
        tp, metadata = split_annotated(waiting.pop())
        yield from metadata
        if not any(tp is each for each in seen):  # an alias may contain itself
            seen.append(tp)
            waiting += get_args(tp)


def describe(annotation: Any) -> str:
    """Return ``annotation`` as an author would write it, for messages."""
    if isinstance(annotation, str):
        return annotation
    if isinstance(annotation, type) and not get_args(annotation):
        return annotation.__name__
    return re.sub(r"\b(?:[A-Za-z_]\w*\.)+(?=[A-Za-z_])", "", str(annotation).replace("typing.", ""))
