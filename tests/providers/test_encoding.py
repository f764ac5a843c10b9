"""Writing: every kind of value has one JSON form or a clear refusal."""

import collections
import dataclasses
import datetime
import decimal
import enum
import io
import pathlib
import threading
import types
import uuid
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple

import attrs
import msgspec
import pydantic
import pytest
from msgspec import UNSET, Struct, UnsetType

from mcpcore.providers.encoding import EncodeError, check_finite, dump, dump_plain, to_json
from mcpcore.providers.media import Image


class Colour(enum.Enum):
    RED = "red"
    ONE = 1


class Text(enum.StrEnum):
    A = "a"


class Access(enum.Flag):
    READ = 1
    WRITE = 2


class Pair(NamedTuple):
    left: int
    right: Any = None


class Tagged(Struct, tag="t", rename="camel", omit_defaults=True):
    some_value: int = 3
    names: list[str] = msgspec.field(default_factory=list)
    absent: int | UnsetType = UNSET
    kept: int | None = msgspec.field(default_factory=lambda: None)


@dataclasses.dataclass
class Point:
    x: float
    label: str | None = None
    total: float = dataclasses.field(init=False, default=0.5)


@attrs.define
class Box:
    _width: int
    note: str | None = None


class Model(pydantic.BaseModel):
    the_size: int = pydantic.Field(alias="theSize")
    when: datetime.date | None = None


class Stamp(datetime.datetime):
    pass


class MyStr(str):
    def __str__(self) -> str:
        return "not this"


class MyInt(int):
    pass


class MyFloat(float):
    pass


class Whole:
    def __index__(self) -> int:
        return 7


class View(Mapping[str, int]):
    def __getitem__(self, key: str) -> int:
        return 1

    def __iter__(self) -> Any:
        return iter(["a"])

    def __len__(self) -> int:
        return 1


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, "null"),
        (True, "true"),
        (2.0, "2.0"),
        (2**70, str(2**70)),
        ("é", '"é"'),
        (Colour.RED, '"red"'),
        (Colour.ONE, "1"),
        (Text.A, '"a"'),
        (Access.READ | Access.WRITE, "3"),
        (datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC), '"2026-01-01T00:00:00Z"'),
        (Stamp(2026, 1, 1), '"2026-01-01T00:00:00"'),
        (datetime.date(2026, 1, 1), '"2026-01-01"'),
        (datetime.timedelta(seconds=1.5), '"PT1.5S"'),
        (uuid.UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        (decimal.Decimal("1.50"), '"1.50"'),
        (b"\xfb\xff\xfe", '"+//+"'),
        (bytearray(b"a"), '"YQ=="'),
        (memoryview(b"a"), '"YQ=="'),
        (pathlib.PurePosixPath("a/b"), '"a/b"'),
        ([1, (2, 3)], "[1,[2,3]]"),
        ({3, 1, 2}, "[1,2,3]"),
        (frozenset({"b", "a"}), '["a","b"]'),
        ({"a": 1}.keys(), '["a"]'),
        ({"a": 1}.values(), "[1]"),
        (range(3), "[0,1,2]"),
        (collections.deque([1]), "[1]"),
        ((x for x in [1, 2]), "[1,2]"),
        (map(str, [1]), '["1"]'),
        ({"b": 1, "a": 2}, '{"b":1,"a":2}'),
        (collections.OrderedDict(a=1), '{"a":1}'),
        (types.MappingProxyType({"a": 1}), '{"a":1}'),
        (View(), '{"a":1}'),
        ({1: 1, uuid.UUID(int=1): 2, Colour.RED: 3, Colour.ONE: 4}, None),
        ({datetime.date(2026, 1, 1): 1, datetime.timedelta(1): 2}, '{"2026-01-01":1,"P1D":2}'),
        ({decimal.Decimal("1.50"): 1, b"a": 2, pathlib.PurePosixPath("a/b"): 3}, '{"1.50":1,"YQ==":2,"a/b":3}'),
        ({MyStr("a"): 1, MyInt(3): 2}, '{"a":1,"3":2}'),
        (Pair(1), '{"left":1,"right":null}'),
        (Tagged(), '{"type":"t","kept":null}'),
        (Tagged(4, ["a"], 5, 6), '{"type":"t","someValue":4,"names":["a"],"absent":5,"kept":6}'),
        (Point(1.0), '{"x":1.0,"label":null,"total":0.5}'),
        (Box(1), '{"_width":1,"note":null}'),
        (Model(theSize=1), '{"theSize":1,"when":null}'),
        ([Model(theSize=1, when=datetime.date(2026, 1, 1))], '[{"theSize":1,"when":"2026-01-01"}]'),
        (pydantic.HttpUrl("http://a/b"), '"http://a/b"'),
        (MyStr("a"), '"a"'),
        (MyInt(3), "3"),
        (MyFloat(1.5), "1.5"),
        (Whole(), "7"),
    ],
)
def test_a_value_is_written_as(value: Any, written: str | None) -> None:
    builtins, data = dump(value)
    expected = written or '{"1":4,"00000000-0000-0000-0000-000000000001":2,"red":3}'
    assert data.decode() == expected
    assert msgspec.json.decode(data) == builtins


def test_members_that_are_none_are_left_out_of_records_where_they_are_not_required() -> None:
    @dataclasses.dataclass
    class Row:
        needed: int | None
        spare: int | None = None
        inner: Any = None

    assert to_json(Row(None, None, Row(1)), omit_none=True) == {"needed": None, "inner": {"needed": 1}}
    assert to_json({"plain": None}, omit_none=True) == {"plain": None}
    assert to_json(Model(theSize=1), omit_none=True) == {"theSize": 1}


class Hostile:
    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        [{"a": float("-inf")}],
        Point(float("inf")),
        MyFloat("nan"),
        decimal.Decimal("Infinity"),
        {"a": decimal.Decimal("sNaN")},
        object(),
        threading.Lock(),
        Point,
        len,
        1j,
        Hostile(),
        {(1, 2): 3},
        {1.5: 1},
        {True: 1},
        {None: 1},
        "\ud800",
        {"\udfff": 1},
        [Pair(1, object())],
        io.StringIO("a\nb"),
        ValueError("x"),
    ],
    ids=repr,
)
def test_a_value_without_json_form_is_refused(value: Any) -> None:
    with pytest.raises(EncodeError):
        dump(value)


async def forgotten() -> None: ...


async def numbers() -> AsyncIterator[int]:
    yield 1


def test_what_is_not_data_yet_is_refused_with_what_would_make_it_some() -> None:
    coroutine = forgotten()
    for value, words in (
        (numbers(), "-> AsyncIterator"),
        ({"a": coroutine}, "await it first"),
        ({"a": Image(b"GIF89a")}, "stands alone or in a list"),
    ):
        with pytest.raises(EncodeError, match=words):
            dump(value)
    coroutine.close()


def test_an_open_file_is_not_taken_for_its_lines(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "f"
    path.write_text("a\nb\n")
    with path.open() as file, pytest.raises(EncodeError, match="TextIOWrapper has no form in JSON"):
        dump(file)


def test_a_structure_that_holds_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(EncodeError, match="holds itself"):
        dump(loop)
    with pytest.raises(EncodeError, match="holds itself"):
        dump_plain(loop, decimals=True)


@pytest.mark.parametrize("value", [{(1,): 1}, "\ud800", [float("nan"), None], object()], ids=repr)
def test_the_fast_way_refuses_the_same(value: Any) -> None:
    with pytest.raises(EncodeError):
        dump_plain(value, decimals=True)


def test_the_fast_way_tells_texts_from_numbers_that_json_has_not() -> None:
    for text in ("NaN", "Infinity", "-Infinity"):
        assert dump_plain([text], decimals=True)[0] == [text]
        with pytest.raises(EncodeError, match="is not a number"):
            dump_plain([decimal.Decimal(text)], decimals=True)


def test_nan_is_found_at_any_depth() -> None:
    check_finite({"a": [1.5, None, {"b": (2.5,)}]})
    with pytest.raises(EncodeError):
        check_finite({"a": [1.5, {"b": (float("nan"),)}]})


def test_a_model_that_pydantic_cannot_write_is_refused() -> None:
    class Holder(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
        held: Hostile

    with pytest.raises(EncodeError, match="pydantic cannot write it"):
        dump(Holder(held=Hostile()))


def test_a_set_of_several_kinds_keeps_some_order() -> None:
    assert sorted(map(str, to_json({1, "a"}))) == ["1", "a"]


def test_what_an_iterator_raises_is_not_swallowed() -> None:
    def broken() -> Any:
        yield 1
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        dump({"a": broken()})
