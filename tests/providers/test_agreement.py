"""Schema, decoding and encoding agree, for every kind of type and for values near the border of it."""

import collections
import dataclasses
import datetime
import decimal
import enum
import pathlib
import uuid
from collections import abc
from collections.abc import Callable, Iterator
from types import GenericAlias
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    LiteralString,
    NamedTuple,
    NewType,
    NotRequired,
    TypedDict,
    TypeVar,
    Union,
)

import annotated_types
import attrs
import msgspec
import pydantic
import pydantic.dataclasses
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET, Meta, Struct, UnsetType
from typing_extensions import TypeAliasType

from mcpcore.exceptions import McpError
from mcpcore.providers import type_reader
from mcpcore.providers.class_fields import _attrs, _dataclass, _named_tuple, _struct, _typed_dict
from mcpcore.providers.encoding import EncodeError, dump, dump_plain
from mcpcore.providers.leaf_nodes import ScalarNode, TextNode
from mcpcore.providers.nodes import Node
from mcpcore.providers.schema import Field, InvalidArguments, InvalidValue, arguments_codec, value_codec
from mcpcore.providers.validation import Validator, check_schema

Json = Any


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 3


class Mixed(enum.Enum):
    WORD = "w"
    HALF = 0.5
    YES = True
    NOTHING = None


class Lenient(enum.Enum):
    A = "a"

    @classmethod
    def _missing_(cls, value: object) -> "Lenient":
        return cls.A


class Access(enum.IntFlag):
    READ = 1
    WRITE = 2


class Open(Struct, rename="camel", omit_defaults=True):
    a_number: int
    note: str | UnsetType = UNSET
    ratio: Annotated[float, Meta(ge=0, lt=1)] = 0.5
    tags: list[str] = msgspec.field(default_factory=list)


class Closed(Struct, forbid_unknown_fields=True):
    colour: Colour
    when: datetime.date | None = None


class Cat(Struct, tag="cat", forbid_unknown_fields=True):
    lives: int


class Dog(Struct, tag="dog", forbid_unknown_fields=True):
    name: str


class Tree(Struct, forbid_unknown_fields=True):
    value: int
    children: list["Tree"] = []


class Foreign(Struct, forbid_unknown_fields=True):
    age: Annotated[int, annotated_types.Ge(18)]


class Even(Struct, forbid_unknown_fields=True):
    number: int

    def __post_init__(self) -> None:
        if self.number % 2:
            raise ValueError("must be even")


@dataclasses.dataclass
class Point:
    x: float
    y: float = 0.0
    _seen: bool = False


@attrs.define
class Box:
    width: int = attrs.field(validator=attrs.validators.ge(0))
    _hidden: str = "h"


class Movie(TypedDict):
    name: str
    year: NotRequired[int]


class Pair(NamedTuple):
    left: int
    right: str | None = None


class Model(pydantic.BaseModel):
    size: int = pydantic.Field(ge=0, alias="theSize")
    child: "Model | None" = None


T = TypeVar("T")
Bound = TypeVar("Bound", bound=int)
Key = NewType("Key", str)
Words = TypeAliasType("Words", list[str])
Nested = TypeAliasType("Nested", "dict[str, Nested] | list[int]")


class Word(enum.StrEnum):
    YES = "yes"
    NO = "no"


class Bits(enum.Flag):
    LOW = 1
    HIGH = 4


class One(Struct, tag=1, tag_field="kind", frozen=True):
    at: datetime.datetime


class Two(Struct, tag=2, tag_field="kind", frozen=True):
    at: datetime.time
    note: str | None


class Boxed(Struct, Generic[T]):
    held: T
    spare: T | None = None


@dataclasses.dataclass
class Row(Generic[T]):
    cells: list[T]
    below: "Row[T] | None" = None
    needed: decimal.Decimal | None = dataclasses.field(kw_only=True)
    width: int = dataclasses.field(init=False, default=0)


@attrs.frozen
class Label:
    text: str
    _hidden: bytes = b""
    until: datetime.date | None = None


class Options(TypedDict, total=False):
    deep: dict[str, "Options"]
    since: datetime.datetime | None


class Triple(NamedTuple):
    colour: Colour
    pairs: tuple[Pair, ...] = ()
    word: Word | None = None


class Person(pydantic.BaseModel):
    nick_name: str | None = pydantic.Field(serialization_alias="nickName")
    born: datetime.date | None = None
    friends: list["Person"] = []
    by_key: dict[str, "Person | None"] = {}


@pydantic.dataclasses.dataclass
class Place:
    name: str | None
    area: float | None = None


class Places(pydantic.RootModel[dict[str, Place]]): ...


class Always(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(json_schema_serialization_defaults_required=True)
    note: str | None = None


UNLIMITED: list[Any] = [
    int,
    float,
    str,
    bool,
    None,
    Any,
    bytes,
    datetime.datetime,
    datetime.date,
    datetime.time,
    datetime.timedelta,
    uuid.UUID,
    decimal.Decimal,
    pathlib.PurePosixPath,
    Colour,
    Size,
    Mixed,
    Lenient,
    Access,
    Literal["a", 1, True] | None,
    Literal["x", "y"],
    Literal[Colour.RED, 7],
    object,
    LiteralString,
    bytearray,
    Word,
    Bits,
    Key,
    Bound,
    Words,
    Nested,
    list,
    dict,
    tuple,
    tuple[()],
    abc.Sequence[int],
    abc.MutableSequence[int],
    abc.Collection[str],
    abc.Iterable[int],
    abc.Iterator[datetime.date],
    abc.Generator[int, None, None],
    abc.Set[int],
    abc.MutableSet[str],
    collections.deque[float],
    abc.Mapping[str, int],
    abc.MutableMapping[str, bytes],
    collections.OrderedDict[str, bool],
    dict[int, str],
    dict[uuid.UUID, int],
    dict[datetime.date, tuple[int, int]],
    dict[Colour, int],
    dict[Size, None],
    Annotated[str, "a description"],
    Annotated[datetime.datetime, Meta(tz=True)],
    Annotated[datetime.datetime, Meta(tz=False)],
    Cat | Dog,
    One | Two,
    Cat,
    Tree,
    Closed,
    Boxed[int],
    Boxed[Pair],
    Row[datetime.timedelta],
    Point,
    Label,
    Movie,
    Options,
    Pair,
    Triple,
    Person,
    Place,
    Places,
    Always,
    int | float,
    str | datetime.date,
    Point | Closed,
]
LIMITED: list[Any] = [
    Annotated[int, Meta(ge=2, le=9)],
    Annotated[int, Meta(multiple_of=3)],
    Annotated[int, annotated_types.Gt(0)],
    Annotated[int, pydantic.Field(lt=100, description="small")],
    Annotated[float, Meta(gt=0.5)],
    Annotated[str, Meta(min_length=1, max_length=3)],
    Annotated[str, Meta(pattern="^[a-c]+$")],
    Annotated[str, Meta(extra_json_schema={"minLength": 2})],
    Annotated[list[int], Meta(max_length=2)],
    Annotated[set[int], Meta(max_length=2)],
    Annotated[dict[str, int], Meta(max_length=1)],
    Annotated[decimal.Decimal, Meta(ge=0)],
    Annotated[int, pydantic.AfterValidator(abs)],
    pydantic.HttpUrl,
    Open,
    Foreign,
    Even,
    Box,
    Model,
]
LEAVES = UNLIMITED + LIMITED
HASHABLE: list[Any] = [int, str, bool, Colour, uuid.UUID, datetime.date, tuple[int, str]]


def wrap(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        inner.map(lambda tp: GenericAlias(list, (tp,))),
        inner.map(lambda tp: GenericAlias(dict, (str, tp))),
        inner.map(lambda tp: GenericAlias(tuple, (tp, ...))),
        inner.map(lambda tp: tp | None if tp is not None else None),
        st.tuples(inner, inner).map(lambda pair: GenericAlias(tuple, pair)),
        st.tuples(inner, inner).map(lambda pair: Union[pair]),  # noqa: UP007  # made of a tuple
        st.sampled_from(HASHABLE).map(lambda tp: GenericAlias(set, (tp,))),
        st.sampled_from(HASHABLE).map(lambda tp: GenericAlias(frozenset, (tp,))),
    )


types = st.recursive(st.sampled_from(LEAVES), wrap, max_leaves=4)

TEXTS = {
    "date-time": ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00", "2026-01-01T25:00:00Z"],
    "date": ["2026-02-28", "2026-02-30"],
    "time": ["10:00:00", "10:00:00Z", "25:00"],
    "duration": ["PT1.5S", "P1Y", "x"],
    "uuid": ["12345678-1234-5678-1234-567812345678", "x"],
    "decimal": ["1.50", "-3", "NaN", "1_0", "Infinity"],
}
numbers = st.one_of(
    st.integers(-5, 12), st.integers(-5, 12).map(float), st.floats(-5, 12), st.integers(-(10**30), 10**30)
)
scalars = st.one_of(st.none(), st.booleans(), numbers, st.text("abx1 é", max_size=4))
anything: st.SearchStrategy[Json] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=2),
    max_leaves=4,
)


def near(schema: dict[str, Any], root: dict[str, Any], depth: int = 0) -> st.SearchStrategy[Json]:
    """Values that mostly fit ``schema``."""
    return st.integers(0, 11).flatmap(lambda dice: anything if dice == 0 or depth > 6 else fitting(schema, root, depth))


def fitting(schema: dict[str, Any], root: dict[str, Any], depth: int) -> st.SearchStrategy[Json]:
    if "$ref" in schema:
        return near(root["$defs"][schema["$ref"].rpartition("/")[2]], root, depth + 1)
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return st.one_of([near(each, root, depth) for each in schema[several]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kind = schema.get("type")
    if isinstance(kind, list):
        return st.one_of([fitting({**schema, "type": each}, root, depth) for each in kind])
    match kind:
        case "null":
            return st.none()
        case "boolean":
            return st.booleans()
        case "integer" | "number":
            return numbers
        case "string" if schema.get("format") in TEXTS:
            return st.sampled_from(TEXTS[schema["format"]])
        case "string" if "contentEncoding" in schema:
            return st.sampled_from(["AAE=", "", "AAE", "-_8="])
        case "string":
            return st.text("abx1 é", max_size=4)
        case "array" if "prefixItems" in schema:
            return st.tuples(*(near(each, root, depth) for each in schema["prefixItems"])).map(list)
        case "array":
            return st.lists(near(schema.get("items", {}), root, depth + 1), max_size=3)
        case "object" if "properties" in schema:
            members = {name: near(each, root, depth + 1) for name, each in schema["properties"].items()}
            needed = {name: each for name, each in members.items() if name in schema.get("required", ())}
            rest = {name: each for name, each in members.items() if name not in needed}
            extra = st.dictionaries(st.sampled_from(["zz", "a"]), anything, max_size=1)
            known = st.fixed_dictionaries(needed, optional=rest)
            return st.tuples(known, st.just({}) | extra).map(lambda pair: {**pair[1], **pair[0]})
        case "object":
            names = st.sampled_from(["a", "b", "1", "-7", "01", "red", "1.0"])
            return st.dictionaries(names, near(schema.get("additionalProperties", {}), root, depth + 1), max_size=2)
        case _:
            return anything


def in_order(value: Any) -> Any:
    """Return ``value`` with the members of dicts sorted: msgspec keeps the order in which they came."""
    if isinstance(value, dict):
        return {key: in_order(value[key]) for key in sorted(value, key=repr)}
    return [in_order(each) for each in value] if isinstance(value, list) else value


def outcome(decode: Callable[..., Any], raw: bytes) -> str:
    try:
        return f"value {in_order(decode(raw, tool='t'))!r}"
    except InvalidArguments as exc:
        return f"errors {exc.errors}"
    except McpError as exc:
        return f"protocol error {exc}"


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_the_fast_way_and_the_published_schema_accept_the_same_and_make_the_same(data: st.DataObject) -> None:
    tp = data.draw(types)
    extra: Any = data.draw(st.sampled_from(["forbid", "ignore"]))
    fields = [Field(name="p", type=tp), Field(name="q", type=int, required=False, default=4)]
    codec = arguments_codec(fields, extra=extra)
    check_schema(codec.schema)
    # A literal schema is always enforced by the validator, so this codec knows only the long way.
    judge = arguments_codec(fields, extra=extra, literal_schema=codec.schema)
    value = data.draw(near(codec.schema, codec.schema))
    raw = msgspec.json.encode(value)
    assert outcome(codec.decode, raw) == outcome(judge.decode, raw)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_what_a_type_decodes_it_encodes_to_something_its_schema_accepts(data: st.DataObject) -> None:
    tp = data.draw(types)
    reader = value_codec(tp, mode="input")
    raw = data.draw(near(reader.schema, reader.schema))
    try:
        value = reader.decode(raw)
    except InvalidValue:
        return
    writer = value_codec(tp)
    builtins, data_ = writer.dump(value)
    assert writer.errors(builtins, data_) == []
    assert Validator(writer.schema).is_valid(builtins)
    assert msgspec.json.decode(data_) == builtins
    if f"{__name__}.Person" not in repr(tp):  # it is read by one name and written by another
        again = reader.decode(builtins)
        assert repr(again) == repr(value) or again == value


small = st.integers(-9, 9)
numbered: st.SearchStrategy[Any] = st.builds(
    Row, st.lists(st.timedeltas(), max_size=2), needed=st.none() | st.decimals()
)
MADE: dict[Any, st.SearchStrategy[Any]] = {
    # what hypothesis cannot make by itself, or makes of a class that a type admits only by the way, such as bytes
    None: st.none(),
    Any: anything,
    object: anything,
    pathlib.PurePosixPath: st.text("a/.", min_size=1).map(pathlib.PurePosixPath),
    Nested: st.recursive(st.lists(small), lambda inner: st.dictionaries(st.text(), inner, max_size=2)),
    abc.Sequence[int]: st.lists(small) | st.lists(small).map(tuple) | st.integers(0, 3).map(range),
    abc.Collection[str]: st.lists(st.text()) | st.sets(st.text()) | st.dictionaries(st.text(), small).map(dict.keys),
    abc.Iterable[int]: st.lists(small) | st.lists(small).map(iter),
    abc.Generator[int, None, None]: st.lists(small).map(lambda items: (each for each in items)),
    Boxed[int]: st.builds(Boxed, small, st.none() | small),
    Boxed[Pair]: st.builds(Boxed, st.from_type(Pair)),
    Row[datetime.timedelta]: numbered | st.builds(Row, st.just([]), numbered, needed=st.none()),
    Places: st.dictionaries(st.text(), st.builds(Place, st.none() | st.text())).map(Places),
}


def wrap_made(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Pairs of a type and a strategy for its values, from such pairs."""
    return st.one_of(
        inner.map(lambda pair: (GenericAlias(list, (pair[0],)), st.lists(pair[1], max_size=2))),
        inner.map(lambda pair: (GenericAlias(dict, (str, pair[0])), st.dictionaries(st.text(), pair[1], max_size=2))),
        inner.map(lambda pair: (GenericAlias(tuple, (int, pair[0])), st.tuples(small, pair[1]))),
        inner.map(lambda pair: (Union[pair[0], None], st.none() | pair[1])),  # noqa: UP007  # not every type has |
        inner.map(lambda pair: (GenericAlias(Boxed, (pair[0],)), st.builds(Boxed, pair[1]))),
    )


made = st.recursive(
    st.sampled_from(UNLIMITED).map(lambda tp: (tp, MADE[tp] if tp in MADE else st.from_type(tp))),
    wrap_made,
    max_leaves=3,
)


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_what_a_handler_may_return_is_written_as_its_published_schema_says_or_refused(data: st.DataObject) -> None:
    tp, values = data.draw(made)
    codec = value_codec(tp, omit_none=data.draw(st.booleans()))
    check_schema(codec.schema)
    value = data.draw(values)
    try:
        builtins, data_ = codec.dump(value)
    except EncodeError as exc:
        assert "is not a number that JSON has" in str(exc)
        return
    assert codec.errors(builtins, data_) == []
    assert Validator(codec.schema).is_valid(builtins)
    assert msgspec.json.encode(builtins) == data_


def every_node(tp: Any) -> Iterator[Node]:
    seen: list[Node] = []
    waiting: list[Node] = [type_reader.TypeReader(mode="output", closed=False).read(tp)]
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.append(node)
            waiting += node.children()
            yield node


def concrete(kind: Any) -> set[Any]:
    below: set[Any] = set().union(*(concrete(each) for each in kind.__subclasses__()))
    return below if kind.__abstractmethods__ else below | {kind}


def test_every_kind_of_type_that_can_be_read_is_among_the_types_that_are_drawn() -> None:
    nodes = [node for tp in [*LEAVES, *(GenericAlias(set, (tp,)) for tp in HASHABLE)] for node in every_node(tp)]
    drawn = {type(node) for node in nodes}
    assert {kind for kind in concrete(Node) if kind.__module__.startswith("mcpcore.")} == drawn
    assert {node.cls for node in nodes if isinstance(node, TextNode)} >= type_reader._TEXTS.keys()
    assert {node.cls for node in nodes if isinstance(node, ScalarNode)} == set(type_reader._SCALARS)
    origins = {getattr(tp, "__origin__", tp) for tp in UNLIMITED}
    assert origins | {set, frozenset} >= type_reader._ARRAYS.keys() | type_reader._MAPS.keys()
    classes = [each for each in origins if isinstance(each, type)]
    for recognise in (_struct, _dataclass, _attrs, _typed_dict, _named_tuple):
        assert any(recognise(cls) for cls in classes)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_what_a_result_is_said_to_break_is_what_its_published_schema_says(data: st.DataObject) -> None:
    codec = value_codec(data.draw(types))
    value = data.draw(near(codec.schema, codec.schema))
    assert (codec.errors(value, msgspec.json.encode(value)) == []) is Validator(codec.schema).is_valid(value)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_msgspec_writes_plain_types_like_the_writer_that_knows_every_type(data: st.DataObject) -> None:
    tp = data.draw(types)
    reader = value_codec(tp, mode="input")
    try:
        value = reader.decode(data.draw(near(reader.schema, reader.schema)))
    except InvalidValue:
        return
    codec = value_codec(tp)
    try:
        expected = dump(value)
    except EncodeError:
        with pytest.raises(EncodeError):
            codec.dump(value)
        return
    assert codec.dump(value)[1] == expected[1]


def test_dump_plain_finds_what_msgspec_would_write_as_null() -> None:
    with pytest.raises(EncodeError, match="nan is not a number"):
        dump_plain(Point(float("nan")), decimals=False)
    with pytest.raises(EncodeError, match="NaN is not a number"):
        dump_plain([decimal.Decimal("NaN")], decimals=True)
    assert dump_plain([None, 1.5], decimals=True)[1] == b"[null,1.5]"
    assert dump_plain(["NaN"], decimals=True)[1] == b'["NaN"]'
