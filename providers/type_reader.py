"""Reads Python types into nodes, down to the fields of their classes."""

import collections
import datetime
import enum
import inspect
import re
import sys
import typing
import uuid
from collections import abc
from collections.abc import Callable
from decimal import Decimal
from pathlib import PurePath
from types import NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, Final, Literal, TypeGuard, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, UnsetType

from mcpcore.exceptions import DefinitionError
from mcpcore.providers import pydantic_adapter
from mcpcore.providers.annotations import describe, peel
from mcpcore.providers.class_fields import ClassField, ClassShape, class_shape, field_types
from mcpcore.providers.composite_nodes import (
    AliasNode,
    ArrayNode,
    MapNode,
    NotedNode,
    RecordField,
    RecordNode,
    TupleNode,
    UnionNode,
)
from mcpcore.providers.encoding import dump
from mcpcore.providers.leaf_nodes import AnyNode, EnumNode, ScalarNode, TextNode
from mcpcore.providers.markers import Param, is_secret
from mcpcore.providers.metadata import read_metadata
from mcpcore.providers.nodes import Mismatch, Node, admits, is_exact
from mcpcore.providers.validation import json_type

__all__ = ["TypeReader", "admits_unset", "shown_default"]

_ANYTHING: Final = (Any, object, inspect.Parameter.empty)
_SCALARS: Final = (int, float, str, bool, NoneType)

_ARRAYS: Final[dict[Any, Callable[[list[Any]], Any]]] = {
    list: list,
    abc.Sequence: list,
    abc.MutableSequence: list,
    abc.Collection: list,
    abc.Iterable: list,
    abc.Iterator: list,
    abc.Generator: list,
    set: set,
    abc.Set: set,
    abc.MutableSet: set,
    frozenset: frozenset,
    collections.deque: collections.deque,
}
_MAPS: Final[dict[Any, Callable[[dict[Any, Any]], Any]]] = {
    dict: dict,
    abc.Mapping: dict,
    abc.MutableMapping: dict,
    collections.OrderedDict: collections.OrderedDict,
}


def _decimal(text: str) -> Decimal:
    value = Decimal(text)
    # Decimal reads digits of every script, underscores, NaN and Infinity; JSON numbers have none of them.
    if not re.fullmatch(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", text, re.ASCII):
        raise ValueError(text)
    return value


_TEXTS: Final[dict[type, Callable[[], TextNode]]] = {
    datetime.datetime: lambda: TextNode(datetime.datetime, {"format": "date-time"}, "date-time"),
    datetime.date: lambda: TextNode(datetime.date, {"format": "date"}, "date"),
    datetime.time: lambda: TextNode(datetime.time, {"format": "time"}, "time"),
    datetime.timedelta: lambda: TextNode(datetime.timedelta, {"format": "duration"}, "duration"),
    uuid.UUID: lambda: TextNode(uuid.UUID, {"format": "uuid"}, "UUID"),
    bytes: lambda: TextNode(bytes, {"contentEncoding": "base64"}, "base64 text"),
    bytearray: lambda: TextNode(bytearray, {"contentEncoding": "base64"}, "base64 text"),
    Decimal: lambda: TextNode(Decimal, {"format": "decimal"}, "decimal number", _decimal),
}


class TypeReader:
    """Reads types. Types that are read twice become one node, which is what makes recursion and sharing visible.

    Args:
        mode: Which side is meant where a type has two schemas (pydantic's aliases and computed fields).
        closed: Records refuse members that they do not know.

    Attributes:
        secrets: Names in JSON of the fields, of all records read so far, that are marked as secret.
    """

    def __init__(self, *, mode: Literal["input", "output"], closed: bool) -> None:
        self._mode: Final = mode
        self._closed = closed
        self._known: dict[Any, Node] = {}
        self.secrets: set[str] = set()

    def read(self, tp: Any) -> Node:
        """Return the node of ``tp``.

        Raises:
            DefinitionError: It has no form in JSON; the message names the type and, inside classes, the field.
        """
        if any(tp is each for each in _ANYTHING):
            return AnyNode()
        if tp is None or tp in _SCALARS:
            return ScalarNode(tp or NoneType)
        if isinstance(tp, type) and tp in _TEXTS:
            return _TEXTS[tp]()
        origin = get_origin(tp)
        if origin is Annotated:
            return self._annotated(tp)
        if origin in (Union, UnionType):
            return self._union(get_args(tp))
        if origin is Literal:
            return _literal(get_args(tp))
        if type(origin or tp).__name__ == "TypeAliasType":
            return self._alias(origin or tp, get_args(tp))
        if isinstance(tp, TypeVar):
            constraints = tp.__constraints__ or ((tp.__bound__,) if tp.__bound__ else (Any,))
            return self._union(constraints)
        if (supertype := getattr(tp, "__supertype__", None)) is not None:
            return self.read(supertype)
        if getattr(origin, "_name", None) in ("Final", "ClassVar", "Required", "NotRequired", "ReadOnly"):
            return self.read(get_args(tp)[0])
        if isinstance(tp, str | typing.ForwardRef):
            raise DefinitionError(f"the name {describe(getattr(tp, '__forward_arg__', tp))!r} is not known here")
        if tp is typing.LiteralString:
            return ScalarNode(str)
        if pydantic_adapter.claims(tp):
            self.secrets |= pydantic_adapter.secrets(tp)
            return self._kept(tp, lambda: pydantic_adapter.PydanticNode(tp, self._mode, closed=self._closed))
        return self._class(tp, origin or tp, get_args(tp))

    def read_field(self, tp: Any) -> tuple[Node, bool]:
        """Return the node of a field, and whether its type admits `UNSET`, which is how Python says "absent"."""
        absent = admits_unset(tp)
        return self.read(_without_unset(tp) if absent else tp), absent

    # -- forms ---------------------------------------------------------------------------------------------------

    def _annotated(self, tp: Any) -> Node:
        inner, *around = get_args(tp)
        metadata = read_metadata(around)
        if pydantic_adapter.claims_metadata(metadata.unknown):
            return pydantic_adapter.PydanticNode(tp, self._mode, closed=self._closed)
        node = self.read(inner)
        if metadata.limits:
            node.constrain(metadata.limits, native=metadata.native)
        if metadata.notes:
            return NotedNode(node, metadata.notes, asserting=metadata.asserting)
        return node

    def _union(self, members: tuple[Any, ...]) -> Node:
        branches: list[Node] = []
        for member in members:
            node = self.read(member)
            branches += node.branches if isinstance(node, UnionNode) else [node]
        return branches[0] if len(branches) == 1 else UnionNode(branches)

    def _alias(self, alias: Any, arguments: tuple[Any, ...]) -> Node:
        key = (alias, arguments)
        if isinstance(known := self._known.get(key), AliasNode):
            known.recursive = True  # it is met again while it is read
            return known
        node = self._known[key] = AliasNode(alias.__name__)
        value = _alias_value(alias)
        node.target = self.read(value[arguments] if arguments else value)
        if not node.recursive:
            del self._known[key]
            return node.target
        return node

    def _class(self, tp: Any, cls: Any, arguments: tuple[Any, ...]) -> Node:
        if not _is_class(cls):  # and perhaps not hashable either
            raise _formless(tp)
        if cls is tuple:
            return ArrayNode(AnyNode(), tuple) if tp in (tuple, typing.Tuple) else self._tuple(arguments)  # noqa: UP006
        if cls in _ARRAYS:
            item = self.read(arguments[0]) if arguments else AnyNode()
            if _ARRAYS[cls] in (set, frozenset) and not item.hashable:
                raise DefinitionError(f"{describe(tp)}: items of a set must be hashable; use list")
            return ArrayNode(item, _ARRAYS[cls])
        if cls in _MAPS:
            key, value = arguments or (str, Any)
            return MapNode(self.read(key), self.read(value), _MAPS[cls])
        if issubclass(cls, enum.Flag):
            return self._kept(cls, lambda: _flag(cls))
        if issubclass(cls, enum.Enum):
            return self._kept(cls, lambda: _enum(cls))
        if issubclass(cls, PurePath):
            return TextNode(cls, {}, "path", cls)
        if (known := self._known.get(cls) or self._known.get(tp)) is not None:
            return known
        if (shape := class_shape(cls)) is not None:
            return self._record(tp, cls, shape)
        raise _formless(tp)

    def _tuple(self, arguments: tuple[Any, ...]) -> Node:
        if len(arguments) == 2 and arguments[1] is ...:
            return ArrayNode(self.read(arguments[0]), tuple)
        return TupleNode([self.read(each) for each in arguments])

    def _record(self, tp: Any, cls: type, shape: ClassShape) -> Node:
        closed = shape.closed or self._closed
        arguments = "".join(f"_{re.sub(r'[^A-Za-z0-9.-]+', '_', describe(each)).strip('_')}" for each in get_args(tp))
        node = self._known[tp] = RecordNode(
            cls.__name__ + arguments,
            shape.construct,
            # Only a class that refuses unknown members by itself does so when msgspec reads it.
            native=tp if shape.native and shape.closed == closed else None,
            plain=shape.plain,
            closed=closed,
            hashable=cls.__hash__ is not None if shape.hashable is None else shape.hashable,
            tag=shape.tag,
        )
        types = field_types(tp)
        for each in shape.fields:
            if each.init:
                node.fields.append(self._record_field(cls, each, types.get(each.attribute, Any)))
        return node

    def _record_field(self, cls: type, each: ClassField, tp: Any) -> RecordField:
        try:
            node, _ = self.read_field(tp)
            marks = [mark for mark in peel(tp)[1] if isinstance(mark, Param)]
            if any(mark.alias or mark.header or mark.required is not None for mark in marks):
                raise DefinitionError(
                    "alias=, header= and required= of Param are for parameters; name the field as its class does, "
                    "and give it a default"
                )
        except DefinitionError as exc:
            raise DefinitionError(f"{cls.__name__}.{each.attribute}: {exc}") from None
        if is_secret(tp):
            self.secrets.add(each.alias)
        return RecordField(each.name, each.alias, node, each.required, shown_default(each.default, node))

    def _kept(self, key: Any, make: Callable[[], Node]) -> Node:
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]


def _alias_value(alias: Any) -> Any:
    """Return what an alias stands for. Before Python 3.12 it is a string where it mentions itself."""
    value = alias.__value__
    if not isinstance(value, str):
        return value
    holder = SimpleNamespace(__annotations__={"value": value})
    names = vars(sys.modules[alias.__module__])
    return get_type_hints(holder, names, {alias.__name__: alias}, include_extras=True)["value"]


def _formless(tp: Any) -> DefinitionError:
    return DefinitionError(
        f"{describe(tp)} has no form in JSON. Use a Struct, a dataclass, a TypedDict or a builtin type"
    )


def _is_class(tp: Any) -> TypeGuard[type[Any]]:
    return isinstance(tp, type)


# -- enumerations ------------------------------------------------------------------------------------------------


def _enum(cls: type[enum.Enum]) -> Node:
    options = [(member.value, member) for member in cls]
    for value, member in options:
        if not isinstance(value, str | int | float | NoneType):
            raise DefinitionError(
                f"{cls.__name__}.{member.name} has the value {value!r}; give members strings, numbers, booleans or None"
            )
    if not options:
        raise DefinitionError(f"{cls.__name__} has no members")
    uniform = all(type(value) is str for value, _ in options) or all(type(value) is int for value, _ in options)
    # A class that accepts more than its members would make msgspec accept more than the schema.
    ordinary = cls._missing_.__func__ is enum.Enum._missing_.__func__  # type: ignore[attr-defined]  # a classmethod
    values = [(_plain(value), member) for value, member in options]
    return EnumNode(values, native=cls if uniform and ordinary else None)


def _flag(cls: type[enum.Flag]) -> Node:
    """Return the node of a set of bits, written as their sum."""
    bits = 0
    for member in cls:
        bits |= member.value
    return _FlagNode(cls, bits)


class _FlagNode(ScalarNode):
    def __init__(self, cls: type[enum.Flag], bits: int) -> None:
        super().__init__(int)
        self.flag = cls
        self.limits = {"ge": 0, "le": bits}
        self.exact = False

    def decode(self, value: Any, path: tuple[str | int, ...]) -> Any:
        try:
            return self.flag(super().decode(value, path))
        except ValueError:
            raise Mismatch(path, f"value {value} is not a sum of {self.flag.__name__}") from None


def _literal(values: tuple[Any, ...]) -> Node:
    options: list[tuple[Any, Any]] = []
    for value in values:
        wire = value.value if isinstance(value, enum.Enum) else value
        if not isinstance(wire, str | int | NoneType):
            raise DefinitionError(f"Literal[{value!r}]: use strings, numbers, booleans or None")
        options.append((_plain(wire), value))
    native = all(type(value) in (str, int, NoneType) for value in values)
    return EnumNode(options, native=Literal[values] if native else None)


def _plain(value: Any) -> Any:
    """Return ``value`` without the class that a mixed-in enumeration gives it."""
    return next((base(value) for base in (bool, int, float, str) if isinstance(value, base)), value)


# -- absence and defaults ----------------------------------------------------------------------------------------


def admits_unset(tp: Any) -> bool:
    """Return whether `UNSET` is one of the values of ``tp``."""
    if get_origin(tp) is Annotated:
        return admits_unset(get_args(tp)[0])
    return get_origin(tp) in (Union, UnionType) and UnsetType in get_args(tp)


def _without_unset(tp: Any) -> Any:
    if get_origin(tp) is Annotated:
        inner, *metadata = get_args(tp)
        return Annotated[(_without_unset(inner), *metadata)]
    rest = tuple(member for member in get_args(tp) if member is not UnsetType)
    return Union[rest]  # noqa: UP007  # built from a tuple


def shown_default(default: Any, node: Node) -> Any:
    """Return ``default`` as JSON, or `UNSET` where it is None, has no JSON form or does not fit its own type."""
    if default is UNSET or default is None:
        return UNSET
    try:
        shown, _ = dump(default)
        # `decode` expects what the schema accepts; whatever it makes of something else, the default does not fit.
        fits = admits(node.types, json_type(shown)) and node.decode(shown, ()) is not UNSET and _is_within(shown, node)
    except Exception:  # noqa: BLE001  # what the schema would have refused can end in any error
        return UNSET
    return shown if fits else UNSET


def _is_within(shown: Any, node: Node) -> bool:
    """Return whether a value keeps the limits of its type, as far as msgspec can tell."""
    if not is_exact(node):
        return True
    try:
        msgspec.convert(shown, node.carrier())
    except msgspec.ValidationError:
        return False
    except (TypeError, ValueError):  # a union that msgspec does not do, a limit beyond 64 bits
        return True
    return True
