"""Writes any Python value as JSON, by what it is and not by what was declared.

msgspec writes most values itself; `to_json` is its hook for the rest. It cannot be asked about four things:
named tuples (it writes arrays), sets (it writes them in no order), NaN and infinity (it writes null), and members
that are None and should be left out. For values that may hold one of those there is `to_json`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from io import IOBase
from math import isfinite
from operator import index
from pathlib import PurePath
from typing import Any, Final
from uuid import UUID
from weakref import WeakKeyDictionary

import msgspec
from msgspec import UNSET

from mcpcore.exceptions import MCPCoreError
from mcpcore.providers import pydantic_adapter
from mcpcore.providers.class_fields import ClassShape, class_shape

__all__ = ["EncodeError", "check_finite", "dump", "dump_plain", "to_json"]


_encode: Final = msgspec.json.Encoder().encode


class EncodeError(MCPCoreError):
    """A value has no JSON form: NaN or infinity, an object of no known kind, a structure that holds itself."""


def dump(value: Any, *, omit_none: bool = False) -> tuple[Any, bytes]:
    """Return ``value`` as JSON-shaped builtins and as compact JSON.

    Args:
        omit_none: Leave out members of records that are None and not required.

    Raises:
        EncodeError: There is no JSON form.
    """
    try:
        builtins = to_json(value, omit_none=omit_none)
        return builtins, _encode(builtins)
    except (RecursionError, UnicodeEncodeError) as exc:
        raise _refusal(exc) from None


def dump_plain(value: Any, *, decimals: bool) -> tuple[Any, bytes]:
    """Do as `dump`, faster, for values of a type of which `mcpcore.providers.nodes.is_plain` holds.

    Args:
        decimals: There may be a `Decimal` in it.
    """
    try:
        builtins = msgspec.to_builtins(value, str_keys=True, enc_hook=to_json)
        data = _encode(builtins)
    except (RecursionError, UnicodeEncodeError, TypeError) as exc:  # the last for keys that are no strings
        raise _refusal(exc) from exc
    # msgspec writes NaN as null and says nothing, so only a null can hide one; a Decimal is spelled out.
    if b"null" in data:
        check_finite(builtins)
    if decimals and (b'NaN"' in data or b'Infinity"' in data):
        to_json(value)
    return builtins, data


def check_finite(value: Any) -> None:
    """Raise `EncodeError` if JSON-shaped ``value`` holds NaN or infinity."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if type(each) is float:
            _finite(each)
        elif isinstance(each, dict):
            waiting += each.values()
        elif isinstance(each, list | tuple):
            waiting += each


def to_json(value: Any, *, omit_none: bool = False) -> Any:
    """Return ``value`` as JSON-shaped builtins. Raises `EncodeError`, or RecursionError where it holds itself."""
    return _Writer(omit_none).write(value)


_type: Final[Callable[[Any], type[Any]]] = type  # for type checkers, whose own type of it says less


class _Writer:
    def __init__(self, omit_none: bool) -> None:
        self.omit_none = omit_none

    def write(self, value: Any) -> Any:
        kind = _type(value)
        if kind is str or kind is int or kind is bool or value is None:
            return value
        if kind is float:
            return _finite(value)
        if kind is dict:
            write = self.write
            return {key if type(key) is str else _key(key): write(each) for key, each in value.items()}
        if kind is list or kind is tuple:
            return [self.write(each) for each in value]
        how = _WAYS.get(kind)
        if how is None:
            how = _WAYS[kind] = _way(kind)
        return how(self, value)


_Way = Callable[[_Writer, Any], Any]
_WAYS: Final[WeakKeyDictionary[type, _Way]] = WeakKeyDictionary()

_NATIVE: Final = (date, time, timedelta, UUID, bytes, bytearray, memoryview)
_SPELLED: Final = (str, UUID, date, time, timedelta, bytes, Decimal, PurePath)  # written as texts, and so can be keys
_BASES: Final[dict[type, Callable[[Any], Any]]] = {str: str.__str__, int: int.__int__, float: float.__float__}
_COLLECTIONS: Final = (Sequence, ValuesView, Iterator)


_ADVICE: Final = {
    "__aiter__": "; a function that returns one is annotated '-> AsyncIterator[…]'",
    "__await__": "; await it first",
    "to_content": "; it stands alone or in a list, not inside of data",
}


def _way(kind: type[Any]) -> _Way:
    """Return how instances of ``kind`` are written."""
    whole = hasattr(kind, "__index__")  # the whole numbers of numpy
    opened = issubclass(kind, IOBase)  # an open file is an iterator as well, and no answer
    if issubclass(kind, Enum):
        return lambda writer, value: writer.write(value.value)
    if kind in (*_NATIVE, datetime):
        return lambda writer, value: msgspec.to_builtins(value)
    if issubclass(kind, date | time):
        return lambda writer, value: value.isoformat()
    if issubclass(kind, Decimal):
        return lambda writer, value: _decimal(value)
    if pydantic_adapter.claims(kind):
        return _write_pydantic
    if (shape := class_shape(kind)) is not None:
        return lambda writer, value: _members(writer, value, shape)
    for base, plain in _BASES.items():
        if issubclass(kind, base):
            return lambda writer, value: writer.write(plain(value))
    if issubclass(kind, Mapping):
        return lambda writer, value: writer.write(dict(value))
    if issubclass(kind, AbstractSet):
        return lambda writer, value: _sorted([writer.write(each) for each in value])
    if issubclass(kind, _COLLECTIONS) and not opened:
        return lambda writer, value: [writer.write(each) for each in value]
    if issubclass(kind, PurePath):
        return lambda writer, value: str(value)
    if whole:
        return lambda writer, value: index(value)
    advice = next((words for method, words in _ADVICE.items() if hasattr(kind, method)), "")
    raise EncodeError(f"a value of type {kind.__name__} has no form in JSON{advice}")


def _members(writer: _Writer, value: Any, shape: ClassShape) -> dict[str, Any]:
    members: dict[str, Any] = {} if shape.tag is None else {shape.tag[0]: shape.tag[1]}
    for field in shape.fields:
        each = getattr(value, field.attribute, UNSET)
        if each is UNSET or (field.omitted is not None and field.omitted(each)):
            continue
        if each is None and writer.omit_none and not field.required:
            continue
        members[field.alias] = writer.write(each)
    return members


def _write_pydantic(writer: _Writer, value: Any) -> Any:
    try:
        return writer.write(pydantic_adapter.serialise(value, omit_none=writer.omit_none))
    except ValueError as exc:
        raise EncodeError(f"pydantic cannot write it: {exc}") from exc


def _refusal(exc: Exception) -> EncodeError:
    if isinstance(exc, RecursionError):
        return EncodeError("it is nested too deeply, or holds itself")
    if isinstance(exc, UnicodeEncodeError):
        return EncodeError("a text holds half of a surrogate pair")
    return EncodeError(str(exc))


def _finite(value: float) -> float:
    if not isfinite(value):
        raise EncodeError(f"{value} is not a number that JSON has")
    return value


def _decimal(value: Decimal) -> str:
    if not value.is_finite():
        raise EncodeError(f"{value} is not a number that JSON has")
    return str(value)


def _key(key: Any) -> str:
    if isinstance(key, Enum):
        return _key(key.value)
    if isinstance(key, _SPELLED):
        text: str = to_json(key)
        return text
    if isinstance(key, int) and not isinstance(key, bool):
        return str(int(key))
    raise EncodeError(f"a key of type {type(key).__name__} cannot be the name of a JSON member")


def _sorted(items: list[Any]) -> list[Any]:
    try:
        return sorted(items)
    except TypeError:  # of several kinds, or objects
        return items
