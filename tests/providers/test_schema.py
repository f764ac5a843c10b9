"""Argument and value codecs: what is published, what is accepted, what the handler receives."""

import collections
import dataclasses
import datetime
import enum
import inspect
import pathlib
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable
from decimal import Decimal
from types import GenericAlias
from typing import Annotated, Any, Literal, NamedTuple, NewType, NotRequired, TypedDict, get_args

import attrs
import msgspec
import pydantic
import pytest
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from mcpcore.exceptions import DefinitionError, McpError
from mcpcore.providers.markers import Param
from mcpcore.providers.schema import (
    ArgumentsCodec,
    EncodeError,
    Field,
    InvalidArguments,
    InvalidValue,
    arguments_codec,
    value_codec,
)
from mcpcore.types.header_map import header_map


class Status(enum.Enum):
    """Defined in an order that is not the alphabet's."""

    PENDING = "PENDING"
    SHIPPED = "SHIPPED"
    CANCELLED = "CANCELLED"


class Customer(Struct, rename="camel"):
    """A docstring, which is for developers."""

    customer_id: str
    email: str


class Order(Struct, rename="camel", omit_defaults=True):
    order_id: str
    status: Status
    customer: Customer
    total: float
    placed: datetime.datetime
    note: str | UnsetType = UNSET


class Node(Struct):
    value: int
    children: list["Node"] = []


Age = NewType("Age", int)


def decoder(tp: Any, **options: Any) -> Callable[[bytes], Any]:
    """Return the decoding of one parameter ``p``."""
    codec = arguments_codec([Field(name="p", type=tp, **options)])

    def decode(raw: bytes) -> Any:
        return codec.decode(b'{"p":' + raw + b"}", tool="t")["p"]

    return decode


def errors(codec: ArgumentsCodec, raw: bytes | None) -> list[str]:
    with pytest.raises(InvalidArguments) as caught:
        codec.decode(raw, tool="t")
    return caught.value.errors


def schema(tp: Any) -> dict[str, Any]:
    return value_codec(tp).schema


# -- what is published -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tp", "published"),
    [
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (str, {"type": "string"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (Any, {}),
        (object, {}),
        (inspect.Parameter.empty, {}),
        (Age, {"type": "integer"}),
        (int | None, {"type": ["integer", "null"]}),
        (int | float | str, {"type": ["integer", "number", "string"]}),
        (int | Any, {}),
        (Status, {"type": "string", "enum": ["PENDING", "SHIPPED", "CANCELLED"]}),
        (Literal["b", "a"], {"type": "string", "enum": ["b", "a"]}),
        (Literal["b", 1, True], {"type": ["string", "integer", "boolean"], "enum": ["b", 1, True]}),
        (Status | None, {"anyOf": [{"type": "string", "enum": ["PENDING", "SHIPPED", "CANCELLED"]}, {"type": "null"}]}),
        (list, {"type": "array"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (collections.abc.Sequence[int], {"type": "array", "items": {"type": "integer"}}),
        (set[str], {"type": "array", "items": {"type": "string"}}),
        (frozenset[int], {"type": "array", "items": {"type": "integer"}}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (
            tuple[int, str],
            {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2},
        ),
        (tuple[()], {"type": "array", "minItems": 0, "maxItems": 0}),
        (dict, {"type": "object"}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (collections.abc.Mapping[str, Any], {"type": "object"}),
        (
            dict[Status, int],
            {
                "type": "object",
                "propertyNames": {"enum": ["PENDING", "SHIPPED", "CANCELLED"]},
                "additionalProperties": {"type": "integer"},
            },
        ),
        (datetime.datetime, {"type": "string", "format": "date-time"}),
        (datetime.date | None, {"type": ["string", "null"], "format": "date"}),
        (datetime.time, {"type": "string", "format": "time"}),
        (datetime.timedelta, {"type": "string", "format": "duration"}),
        (uuid.UUID, {"type": "string", "format": "uuid"}),
        (Decimal, {"type": "string", "format": "decimal"}),
        (bytes, {"type": "string", "contentEncoding": "base64"}),
        (pathlib.Path, {"type": "string"}),
        (Annotated[int, Meta(ge=1, lt=9, multiple_of=2)], {"type": "integer", "minimum": 1, "exclusiveMaximum": 9, "multipleOf": 2}),
        (Annotated[str, Meta(min_length=1, max_length=3, pattern="^a")], {"type": "string", "minLength": 1, "maxLength": 3, "pattern": "^a"}),
        (Annotated[list[int], Meta(min_length=1)], {"type": "array", "items": {"type": "integer"}, "minItems": 1}),
        (Annotated[dict[str, int], Meta(max_length=2)], {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 2}),
        (Annotated[int | None, Meta(ge=1)], {"type": ["integer", "null"], "minimum": 1}),
        (Annotated[int, "text"], {"type": "integer", "description": "text"}),
        (Annotated[int, Meta(description="meta"), "bare", Param("param")], {"type": "integer", "description": "param"}),
        (Annotated[int, Meta(examples=[1], title="T", extra_json_schema={"x-unit": "m"})], {"type": "integer", "examples": [1], "title": "T", "x-unit": "m"}),
        (list[Annotated[str, "an item"]], {"type": "array", "items": {"type": "string", "description": "an item"}}),
    ],
)  # fmt: skip
def test_a_type_is_published_as(tp: Any, published: dict[str, Any]) -> None:
    assert schema(tp) == published


def test_a_record_is_an_object_at_the_root_with_its_single_parts_in_place_and_without_titles() -> None:
    assert schema(Order) == {
        "type": "object",
        "properties": {
            "orderId": {"type": "string"},
            "status": {"type": "string", "enum": ["PENDING", "SHIPPED", "CANCELLED"]},
            "customer": {
                "type": "object",
                "properties": {"customerId": {"type": "string"}, "email": {"type": "string"}},
                "required": ["customerId", "email"],
            },
            "total": {"type": "number"},
            "placed": {"type": "string", "format": "date-time"},
            "note": {"type": "string"},
        },
        "required": ["orderId", "status", "customer", "total", "placed"],
    }


def test_a_recursive_record_is_an_object_at_the_root_and_a_definition_below() -> None:
    published = schema(Node)
    assert published["type"] == "object"
    assert published["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}
    assert list(published["$defs"]) == ["Node"]


def test_a_shared_record_is_one_definition() -> None:
    published = arguments_codec([Field(name="a", type=Customer), Field(name="b", type=list[Customer])]).schema
    assert published["properties"]["a"] == {"$ref": "#/$defs/Customer"}
    assert published["properties"]["b"] == {"type": "array", "items": {"$ref": "#/$defs/Customer"}}
    assert list(published["$defs"]) == ["Customer"]


def test_different_records_of_one_name_are_told_apart() -> None:
    other = msgspec.defstruct("Customer", [("x", int)])
    published = arguments_codec([Field(name="a", type=list[Customer | None]), Field(name="b", type=Customer), Field(name="c", type=other), Field(name="d", type=other)]).schema  # fmt: skip
    assert list(published["$defs"]) == ["Customer", "Customer_2"]
    assert published["properties"]["d"] == {"$ref": "#/$defs/Customer_2"}


def test_arguments_are_a_closed_object_in_order_with_required_always_there() -> None:
    fields = [
        Field(name="b", type=int, description="given", examples=(1, 2)),
        Field(name="a", type=Annotated[str, "written"], alias="anA", required=False, default="x", header="Region"),
    ]
    published = arguments_codec(fields).schema
    assert list(published["properties"]) == ["b", "anA"]
    assert published == {
        "type": "object",
        "properties": {
            "b": {"type": "integer", "description": "given", "examples": [1, 2]},
            "anA": {"type": "string", "description": "written", "default": "x", "x-mcp-header": "Region"},
        },
        "required": ["b"],
        "additionalProperties": False,
    }


def test_no_parameters_are_an_empty_closed_object() -> None:
    empty = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    assert arguments_codec([]).schema == empty


def test_an_open_schema_says_nothing_about_other_members() -> None:
    assert arguments_codec([], extra="ignore").schema == {"type": "object", "properties": {}, "required": []}


@pytest.mark.parametrize("header", ["", "a b", "a:b", "a\r\nb", "é"])
def test_a_header_that_clients_would_refuse_is_refused_first(header: str) -> None:
    with pytest.raises(DefinitionError, match="x-mcp-header of a is no header name"):
        arguments_codec([Field(name="a", type=str, header=header)])


@pytest.mark.parametrize(
    "tp", [str, int, bool, Literal["a", "b"], str | None, Literal["a", "b"] | None, Status | None, uuid.UUID | None]
)
def test_what_has_one_primitive_type_can_be_a_header(tp: Any) -> None:
    codec = arguments_codec([Field(name="a", type=tp, header="A")])
    assert header_map(codec.schema) == {("a",): "mcp-param-a"}
    assert ("null" in codec.schema["properties"]["a"]["type"]) == (type(None) in get_args(tp))
    if type(None) in get_args(tp):
        assert codec.decode(b'{"a":null}', tool="t") == {"a": None}


@pytest.mark.parametrize("tp", [float, str | int, int | bool | None, Literal["a", 1], list[str], Any])
def test_what_has_no_single_primitive_type_cannot_be_a_header(tp: Any) -> None:
    with pytest.raises(DefinitionError, match="x-mcp-header of a: only strings, integers and booleans"):
        arguments_codec([Field(name="a", type=tp, header="A")])


def test_headers_are_unique_whatever_their_case() -> None:
    with pytest.raises(DefinitionError, match="two parameters have the same x-mcp-header"):
        arguments_codec([Field(name="a", type=str, header="A"), Field(name="b", type=bool | None, header="a")])


def test_a_type_without_json_form_is_refused_with_the_way_to_it() -> None:
    class Holder(Struct):
        lock: dict[str, complex]

    with pytest.raises(DefinitionError, match=r"parameter 'p': Holder\.lock: complex has no form in JSON"):
        arguments_codec([Field(name="p", type=list[Holder])])


# -- defaults ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tp", "default", "shown"),
    [
        (int, 3, 3),
        (int | None, None, UNSET),
        (Status, Status.SHIPPED, "SHIPPED"),
        (list[int], [1, 2], [1, 2]),
        (bytes, b"\x00", "AA=="),
        (datetime.date, datetime.date(2026, 1, 2), "2026-01-02"),
        (Customer, Customer("c", "e"), {"customerId": "c", "email": "e"}),
        (Any, object(), UNSET),
        (int, None, UNSET),
        (int, "5", UNSET),
        (int, True, UNSET),
        (float, float("nan"), UNSET),
        (Any, datetime.datetime, UNSET),
        (Any, datetime.datetime.now, UNSET),
        (str, "\ud800", UNSET),
        (dict[str, Any], {"a": ["\udfff"]}, UNSET),
        (dict[str, Any], {"a": object()}, UNSET),
        (set[int], {2, 1}, [1, 2]),
        (int, 10**30, 10**30),
        (Literal["a", "b"], "z", UNSET),
        (Literal["a", "b"], "b", "b"),
        (Annotated[int, Meta(ge=5)], 1, UNSET),
        (Annotated[int, Meta(ge=5)], 5, 5),
        (Annotated[str, pydantic.Field(max_length=2)], "abc", UNSET),
        (list[Literal[1]], [2], UNSET),
        (datetime.timedelta, datetime.timedelta(minutes=1), "PT60S"),
        (pathlib.Path, pathlib.Path("a/b"), "a/b"),
        (Decimal, Decimal("1.50"), "1.50"),
        (Decimal, Decimal("NaN"), UNSET),
        (tuple[int, str], (1, "a"), [1, "a"]),
        (dict[int, str], {1: "a"}, {"1": "a"}),
        (int | str | list[int], [1], [1]),
        (int, ..., UNSET),
        (str, UNSET, UNSET),
    ],
)
def test_a_default_is_published_where_it_is_json_of_its_type(tp: Any, default: Any, shown: Any) -> None:
    codec = arguments_codec([Field(name="p", type=tp, required=False, default=default)])
    assert codec.schema["required"] == []
    assert codec.schema["properties"]["p"].get("default", UNSET) == shown
    msgspec.json.encode(codec.schema)


@pytest.mark.parametrize("tp", [list[int], Decimal], ids=["fast", "slow"])
def test_a_default_arrives_as_it_is(tp: Any) -> None:
    sentinel = object()
    codec = arguments_codec([Field(name="p", type=tp, required=False, default=sentinel)])
    assert codec.decode(None, tool="t")["p"] is sentinel


@pytest.mark.parametrize("extra", [int, Decimal], ids=["fast", "slow"])
def test_mutable_defaults_and_factories_are_fresh_for_every_call(extra: Any) -> None:
    made: list[dict[str, Any]] = []

    def make() -> dict[str, Any]:
        made.append({})
        return made[-1]

    inner = [1]
    codec = arguments_codec(
        [
            Field(name="literal", type=list[list[int]], required=False, default=[inner]),
            Field(name="factory", type=dict[str, int], required=False, default_factory=make),
            Field(name="extra", type=extra, required=False),
        ]
    )
    first, second = codec.decode(None, tool="t"), codec.decode(None, tool="t")
    first["literal"][0].append(2)
    assert second["literal"] == [[1]]
    assert first["factory"] is made[0] and second["factory"] is made[1]
    assert inner == [1]
    assert "default" not in codec.schema["properties"]["factory"]


@dataclasses.dataclass
class Basket:
    items: list[int]


class Tray(Struct):
    items: list[int]


class Shelf(pydantic.BaseModel):
    items: list[int]


class Drawer(NamedTuple):
    items: list[int]


@attrs.define
class Crate:
    items: list[int]


@pytest.mark.parametrize("tp", [Basket, Tray, Shelf, Drawer, Crate])
def test_a_record_as_default_is_fresh_for_every_call(tp: Any) -> None:
    given = tp(items=[1])
    for annotation in (tp, tp | None, Any):
        codec = arguments_codec([Field(name="p", type=annotation, required=False, default=given)])
        assert codec.schema["properties"]["p"]["default"] == {"items": [1]}
        for _ in range(2):
            arrived = codec.decode(None, tool="t")["p"]
            assert arrived == tp(items=[1]) and type(arrived) is tp
            arrived.items.append(2)
    assert given.items == [1]


@pytest.mark.parametrize(
    ("tp", "default"), [(tuple[list[int], ...], ([1],)), (collections.deque[list[int]], collections.deque([[1]]))]
)
def test_what_is_mutable_inside_a_default_is_fresh_for_every_call(tp: Any, default: Any) -> None:
    codec = arguments_codec([Field(name="p", type=tp, required=False, default=default)])
    for _ in range(2):
        arrived = codec.decode(None, tool="t")["p"]
        assert arrived[0] == [1]
        arrived[0].append(2)


def test_a_default_that_cannot_be_copied_arrives_as_it_is() -> None:
    for default in ([threading.Lock()], {"lock": threading.Lock()}):
        codec = arguments_codec([Field(name="p", type=Any, required=False, default=default)])
        assert codec.decode(None, tool="t")["p"] is default


def test_an_optional_parameter_without_default_receives_none_or_unset() -> None:
    codec = arguments_codec(
        [Field(name="a", type=int, required=False), Field(name="b", type=int | UnsetType, required=False)]
    )
    assert codec.decode(b"{}", tool="t") == {"a": None, "b": UNSET}


def test_null_and_absence_can_be_told_apart() -> None:
    codec = arguments_codec([Field(name="p", type=str | None | UnsetType, required=False, default=UNSET)])
    assert codec.schema["properties"]["p"] == {"type": ["string", "null"]}
    assert codec.decode(b"{}", tool="t") == {"p": UNSET}
    assert codec.decode(b'{"p":null}', tool="t") == {"p": None}


def test_a_parameter_that_may_be_absent_does_not_become_nullable() -> None:
    codec = arguments_codec([Field(name="p", type=str | UnsetType, required=False, default=UNSET)])
    assert errors(codec, b'{"p":null}') == ["/p: null found, string expected"]
    plain = arguments_codec([Field(name="p", type=int, required=False, default=None)])
    assert plain.decode(b"{}", tool="t") == {"p": None}
    assert errors(plain, b'{"p":null}') == ["/p: null found, integer expected"]


# -- decoding ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("raw", [None, b"null", b"{}", b" { } ", Raw(b"{}")])
def test_absent_null_and_empty_arguments_are_the_same(raw: Any) -> None:
    assert arguments_codec([]).decode(raw, tool="t") == {}
    assert arguments_codec([Field(name="a", type=int, required=False, default=1)]).decode(raw, tool="t") == {"a": 1}
    assert errors(arguments_codec([Field(name="a", type=int)]), raw) == ["/a: required property not found"]


@pytest.mark.parametrize(
    ("raw", "kind"), [(b'"{}"', "string"), (b"5", "integer"), (b"[]", "array"), (b"true", "boolean")]
)
def test_arguments_that_are_no_object_are_a_protocol_error(raw: bytes, kind: str) -> None:
    with pytest.raises(McpError, match=f"arguments must be an object, not {kind}") as caught:
        arguments_codec([Field(name="a", type=int, required=False)]).decode(raw, tool="t")
    assert caught.value.code == -32602


def test_half_a_surrogate_pair_is_a_parse_error() -> None:
    with pytest.raises(McpError) as caught:
        arguments_codec([Field(name="a", type=str)]).decode(b'{"a":"\\ud800"}', tool="t")
    assert caught.value.code == -32700


@pytest.mark.parametrize("raw", [b"1e400", b"9" * 5000])
def test_numbers_beyond_python_are_an_error_of_the_arguments(raw: bytes) -> None:
    with pytest.raises(InvalidArguments, match="number out of range"):
        decoder(float)(raw)


def test_integers_keep_all_their_digits() -> None:
    assert decoder(int)(b"12345678901234567890123") == 12345678901234567890123
    with pytest.raises(InvalidArguments, match="number out of range"):
        decoder(float)(b"1" + b"0" * 400)


def test_nesting_without_end_is_an_error_of_the_arguments() -> None:
    with pytest.raises(InvalidArguments, match="nested too deeply"):
        decoder(Any)(b"[" * 100_000 + b"]" * 100_000)


class TextStruct(Struct):
    text: str


@dataclasses.dataclass
class TextData:
    text: str


class TextModel(pydantic.BaseModel):
    text: str


class TextDict(TypedDict):
    text: str


Word = NewType("Word", str)

TEXTS = [
    *(
        "123",
        "007",
        "null",
        "true",
        "True",
        "None",
        '{"a":1}',
        "[1,2]",
        '"quoted"',
        "12345678901234567890",
        "1.0",
        "1e5",
    ),
    *("NaN", "-0", "", " 5 ", "2026-01-01", "[", "{", '{"text":"a"}'),
]


@pytest.mark.parametrize("text", TEXTS)
def test_strings_are_never_read_as_json(text: str) -> None:
    for tp in (
        *(str, str | None, Any, object, Word, inspect.Parameter.empty),
        *(Annotated[str, Meta(max_length=99)], Annotated[str, Meta(pattern="(?s).*")], Annotated[str, Param("text")]),
        *(Annotated[str, pydantic.Field(max_length=99)], Annotated[str, pydantic.AfterValidator(str)]),
        # Whatever else a union admits: a string is a string.
        *(int | str, str | float | None, bool | str, str | list[int], dict[str, int] | str, TextStruct | str),
        *(TextModel | str, TextDict | str),
    ):
        assert decoder(tp)(msgspec.json.encode(text)) == text


@pytest.mark.parametrize("text", TEXTS)
def test_strings_inside_structure_are_never_read_as_json(text: str) -> None:
    several: list[Any] = [list[str], tuple[str, ...], list[str | int], list[Any], list]
    for tp in several:
        assert list(decoder(tp)(msgspec.json.encode([text]))) == [text]
    named: list[Any] = [dict[str, str], dict[str, Any], dict]
    for tp in named:
        assert decoder(tp)(msgspec.json.encode({text: text})) == {text: text}
    records: list[Any] = [TextStruct, TextData, TextModel]
    for tp in records:
        assert decoder(tp)(msgspec.json.encode({"text": text})).text == text
        assert decoder(GenericAlias(list, (tp,)))(msgspec.json.encode([{"text": text}]))[0].text == text
    assert decoder(TextDict)(msgspec.json.encode({"text": text})) == {"text": text}


@pytest.mark.parametrize("text", ["[1]", '["a"]', '{"text":"a"}', "{}", "1", "1.0", "true", "null", "{bad", ""])
@pytest.mark.parametrize(
    "tp",
    [
        *(dict, dict[str, int], dict[str, Any], list, list[int], list[str], set[int], tuple[int, ...]),
        *(Customer, TextStruct, TextData, TextModel, TextDict, list[TextModel], Customer | None, list[int] | None),
        *(int, float, bool, int | None, int | list[int]),
    ],
)
def test_text_in_place_of_anything_else_is_an_error_that_names_it(tp: Any, text: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        decoder(tp)(msgspec.json.encode(text))
    (error,) = caught.value.errors
    assert error.startswith("/p: string found, ") and error.endswith(" expected")


def test_text_in_place_of_structure_is_named_at_any_depth() -> None:
    for tp, raw, place in (
        (list[TextStruct], b'["{}"]', "/p/0"),
        (dict[str, list[int]], b'{"a":"[1]"}', "/p/a"),
        (list[list[int]], b'[[1],"[2]"]', "/p/1"),
    ):
        with pytest.raises(InvalidArguments, match=f"{place}: string found, (array|object) expected"):
            decoder(tp)(raw)


# One of each kind of parameter: what it publishes, what fits with what arrives, what does not fit.
KINDS: list[tuple[Any, dict[str, Any], list[tuple[bytes, Any]], list[bytes]]] = [
    (int, {"type": "integer"}, [(b"1", 1), (b"1.0", 1), (b"-0.0", 0)], [b"1.5", b"true", b'"1"', b"[1]"]),
    (float, {"type": "number"}, [(b"1", 1.0), (b"1.5", 1.5)], [b'"NaN"', b'"1.5"', b"true"]),
    (bool, {"type": "boolean"}, [(b"true", True), (b"false", False)], [b"0", b"1", b'"true"', b'""']),
    (str, {"type": "string"}, [(b'"1"', "1")], [b"1", b"true", b"[]", b"{}"]),
    (Literal[1, "1"], {"type": ["integer", "string"], "enum": [1, "1"]}, [(b"1", 1), (b'"1"', "1"), (b"1.0", 1)], [b"true", b"2", b'"2"']),
    (Status, {"type": "string", "enum": ["PENDING", "SHIPPED", "CANCELLED"]}, [(b'"SHIPPED"', Status.SHIPPED)], [b'"shipped"', b'"Status.SHIPPED"', b"1"]),
    (datetime.datetime, {"type": "string", "format": "date-time"}, [(b'"2026-01-01T00:00:00Z"', datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)), (b'"2026-01-01T00:00:00+00:00"', datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)), (b'"2026-01-01T00:00:00"', datetime.datetime(2026, 1, 1))], [b'"yesterday"', b"0"]),
    (datetime.date, {"type": "string", "format": "date"}, [(b'"2026-01-02"', datetime.date(2026, 1, 2))], [b'"2026-13-01"', b"0"]),
    (datetime.time, {"type": "string", "format": "time"}, [(b'"10:00:00"', datetime.time(10))], [b'"25:00:00"', b"10"]),
    (datetime.timedelta, {"type": "string", "format": "duration"}, [(b'"PT1M"', datetime.timedelta(minutes=1))], [b'"1 minute"', b"60"]),
    (uuid.UUID, {"type": "string", "format": "uuid"}, [(b'"00000000-0000-0000-0000-000000000001"', uuid.UUID(int=1))], [b'"1"', b"1"]),
    (Decimal, {"type": "string", "format": "decimal"}, [(b'"1.50"', Decimal("1.50"))], [b"1.5", b"1", b'"NaN"', b'"one"']),
    (bytes, {"type": "string", "contentEncoding": "base64"}, [(b'"AAE="', b"\0\x01"), (b'""', b"")], [b'"AAE"', b'"-_8="', b"[0]"]),
    (pathlib.Path, {"type": "string"}, [(b'"a/b"', pathlib.Path("a/b"))], [b"1", b'["a"]']),
    (set[int], {"type": "array", "items": {"type": "integer"}}, [(b"[1,1,2]", {1, 2}), (b"[]", set())], [b'["1"]', b"1"]),
    (frozenset[str], {"type": "array", "items": {"type": "string"}}, [(b'["a","a"]', frozenset("a"))], [b"[1]", b'"a"']),
    (tuple[int, str], {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2}, [(b'[1,"a"]', (1, "a"))], [b"[1]", b'["a",1]', b'[1,"a",2]']),
    (list, {"type": "array"}, [(b'[1,"a"]', [1, "a"])], [b"{}", b'"[]"']),
    (dict, {"type": "object"}, [(b'{"a":1}', {"a": 1})], [b"[]", b'"{}"']),
]  # fmt: skip


@pytest.mark.parametrize(("tp", "published", "fit", "unfit"), KINDS, ids=[str(each[0]) for each in KINDS])
def test_each_kind_of_parameter_takes_what_it_publishes_and_null_only_where_it_may_be(
    tp: Any, published: dict[str, Any], fit: list[tuple[bytes, Any]], unfit: list[bytes]
) -> None:
    required = arguments_codec([Field(name="p", type=tp)])
    nullable = arguments_codec([Field(name="p", type=tp | None)])
    optional = arguments_codec([Field(name="p", type=tp, required=False, default=fit[0][1])])
    both = arguments_codec([Field(name="p", type=tp | None, required=False, default=None)])
    assert required.schema["properties"]["p"] == published
    for codec in (required, nullable, optional, both):
        for raw, value in fit:
            arrived = codec.decode(b'{"p":' + raw + b"}", tool="t")["p"]
            assert (type(arrived), repr(arrived)) == (type(value), repr(value))
        for raw in unfit:
            (error,) = errors(codec, b'{"p":' + raw + b"}")[:1]
            assert error.startswith("/p")
    for codec in (nullable, both):
        assert codec.decode(b'{"p":null}', tool="t") == {"p": None}
    for codec in (required, optional):
        assert errors(codec, b'{"p":null}')[0].startswith("/p: null found, ")
    for codec in (required, nullable):
        assert errors(codec, b"{}") == ["/p: required property not found"]
    assert optional.decode(b"{}", tool="t") == {"p": fit[0][1]}
    assert both.decode(b"{}", tool="t") == {"p": None}


@pytest.mark.parametrize("tp", [Any, object, inspect.Parameter.empty])
def test_a_parameter_that_takes_anything_takes_null_too_and_may_still_be_required(tp: Any) -> None:
    codec = arguments_codec([Field(name="p", type=tp)])
    for raw, value in (
        (b"null", None),
        (b"1", 1),
        (b"1.0", 1.0),
        (b'"1"', "1"),
        (b"[1]", [1]),
        (b'{"a":null}', {"a": None}),
    ):
        arrived = codec.decode(b'{"p":' + raw + b"}", tool="t")["p"]
        assert (type(arrived), arrived) == (type(value), value)
    assert errors(codec, b"{}") == ["/p: required property not found"]


@pytest.mark.parametrize(
    ("tp", "raw", "value"),
    [
        (int, b"5.0", 5),
        (int, b"5e2", 500),
        (float, b"5", 5.0),
        (int | float, b"5", 5),
        (int | float, b"5.0", 5.0),
        (int | str, b"5.0", 5),
        (list[int], b"[1.0]", [1]),
        (dict[str, int], b'{"a":1.0}', {"a": 1}),
        (Node, b'{"value":1.0,"children":[{"value":2}]}', Node(1, [Node(2)])),
        (Literal[1, 2], b"1.0", 1),
        (set[int], b"[1,1]", {1}),
        (tuple[int, str], b'[1,"a"]', (1, "a")),
        (collections.deque[int], b"[1]", collections.deque([1])),
        (Status, b'"SHIPPED"', Status.SHIPPED),
        (Decimal, b'"1.50"', Decimal("1.50")),
        (pathlib.PurePosixPath, b'"a/b"', pathlib.PurePosixPath("a/b")),
        (bytes, b'"+/8="', b"\xfb\xff"),
        (uuid.UUID, b'"12345678-1234-5678-1234-567812345678"', uuid.UUID("12345678-1234-5678-1234-567812345678")),
        (datetime.datetime, b'"2026-01-01T00:00:00Z"', datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)),
        (dict[int, int], b'{"7":1}', {7: 1}),
        (Any, b'{"a":[5.0]}', {"a": [5.0]}),
    ],
)  # fmt: skip
def test_a_value_arrives_as_its_type(tp: Any, raw: bytes, value: Any) -> None:
    arrived = decoder(tp)(raw)
    assert (type(arrived), repr(arrived)) == (type(value), repr(value))


@pytest.mark.parametrize(
    ("tp", "raw", "error"),
    [
        (int, b"true", "/p: boolean found, integer expected"),
        (int, b'"1"', "/p: string found, integer expected"),
        (int, b"1.5", "/p: number found, integer expected"),
        (int, b"null", "/p: null found, integer expected"),
        (float, b'"nan"', "/p: string found, number expected"),
        (float, b"true", "/p: boolean found, number expected"),
        (bool, b"1", "/p: integer found, boolean expected"),
        (int | None, b'"x"', "/p: string found, integer or null expected"),
        (Decimal, b"1.5", "/p: number found, string expected"),
        (Decimal, b'"NaN"', '/p: value "NaN" is not a valid decimal number'),
        (datetime.date, b'"2026-02-30"', '/p: value "2026-02-30" is not a valid date'),
        (Annotated[datetime.datetime, Meta(tz=True)], b'"2026-01-01T00:00:00"', '/p: value "2026-01-01T00:00:00" is not a valid date-time'),
        (uuid.UUID, b'"x"', '/p: value "x" is not a valid UUID'),
        (bytes, b'"-_8="', '/p: value "-_8=" is not a valid base64 text'),
        (Annotated[bytes, Meta(min_length=3)], b'"AAE="', '/p: value "AAE=" must have a length of at least 3'),
        (Annotated[Decimal, Meta(ge=0)], b'"-1"', '/p: value "-1" must be at least 0'),
        (set, b"[[1]]", "/p: items of a set must be scalars"),
        (Status, b'"IN_TRANSIT"', '/p: value "IN_TRANSIT" must be one of [PENDING, SHIPPED, CANCELLED]'),
        (Literal["a", 1, True], b"false", "/p: value false must be one of [a, 1, true]"),
        (Status | None, b'"X"', '/p: value "X" must be one of [PENDING, SHIPPED, CANCELLED]'),
        (list[int], b'[1,"x"]', "/p/1: string found, integer expected"),
        (tuple[int, str], b"[1]", "/p: array must have at least 2 items"),
        (Annotated[int, Meta(ge=1)], b"0", "/p: value 0 must be at least 1"),
    ],
)  # fmt: skip
def test_a_value_of_the_wrong_form_is_named(tp: Any, raw: bytes, error: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        decoder(tp)(raw)
    assert caught.value.errors == [error]


def test_the_text_for_the_model_names_the_tool_the_missing_and_the_unexpected() -> None:
    codec = arguments_codec([Field(name="order_id", alias="orderId", type=str)])
    with pytest.raises(InvalidArguments) as caught:
        codec.decode(b'{"order_id":"ORD-1"}', tool="get_order")
    assert str(caught.value) == (
        "Tool (get_order) input validation failed: Validation failed: JSON schema validation errors: "
        "[/orderId: required property not found, /order_id: unexpected property]"
    )


def test_nested_records_of_a_closed_tool_refuse_what_they_do_not_know() -> None:
    raw = b'{"p":{"customerId":"c","email":"e","phone":1}}'
    assert errors(arguments_codec([Field(name="p", type=Customer)]), raw) == ["/p/phone: unexpected property"]
    opened = arguments_codec([Field(name="p", type=Customer)], extra="ignore")
    assert opened.decode(raw, tool="t") == {"p": Customer("c", "e")}


def test_unknown_names_of_an_open_tool_are_dropped() -> None:
    codec = arguments_codec([Field(name="a", type=int)], extra="ignore")
    assert codec.decode(b'{"a":1,"ctx":2}', tool="t") == {"a": 1}


def test_secret_values_are_not_quoted() -> None:
    codec = arguments_codec(
        [
            Field(name="pin", type=Annotated[str, Meta(max_length=4)], secret=True),
            Field(name="key", type=uuid.UUID, secret=True),
            Field(name="open", type=Literal["a"]),
        ]
    )
    assert errors(codec, b'{"pin":"12345","key":"k","open":"b"}') == [
        '/open: value "b" must be one of [a]',
        "/pin: value must have at most 4 characters",
    ]
    assert errors(codec, b'{"pin":"1234","key":"secret","open":"a"}') == ["/key: value is not valid"]


Pin = Annotated[str, Param(secret=True), Meta(max_length=4)]


class StructLogin(Struct):
    pin: Pin
    key: Annotated[uuid.UUID, Param(secret=True)] | None = None


@dataclasses.dataclass
class DataLogin:
    pin: Pin
    key: Annotated[uuid.UUID | None, Param(secret=True)] = None


class DictLogin(TypedDict):
    pin: Pin
    key: NotRequired[Annotated[uuid.UUID, Param(secret=True)]]


class TupleLogin(NamedTuple):
    pin: Pin
    key: Annotated[uuid.UUID, Param(secret=True)] | None = None


@pytest.mark.parametrize("login", [StructLogin, DataLogin, DictLogin, TupleLogin])
def test_secret_fields_of_records_are_not_quoted_at_any_depth(login: Any) -> None:
    codec = arguments_codec([Field(name="logins", type=list[login])])
    assert codec.secrets == {"pin", "key"}
    assert errors(codec, b'{"logins":[{"pin":"12345"}]}') == ["/logins/0/pin: value must have at most 4 characters"]
    (refused,) = errors(codec, b'{"logins":[{"pin":"1234","key":"hunter2"}]}')
    assert refused.startswith("/logins/0/key: ") and "hunter2" not in refused


class Pins(Struct):
    pins: list[Annotated[str, Param(secret=True)]]
    more: dict[str, Annotated[uuid.UUID, Param(secret=True)]] = {}


class ModelPins(pydantic.BaseModel):
    pins: list[Annotated[str, Param(secret=True)]]
    more: dict[str, Annotated[uuid.UUID, Param(secret=True)]] = {}


@pytest.mark.parametrize("pins", [Pins, ModelPins])
def test_a_field_is_secret_if_any_part_of_it_is(pins: Any) -> None:
    codec = arguments_codec([Field(name="x", type=pins)])
    assert codec.secrets == {"pins", "more"}
    (refused,) = errors(codec, b'{"x":{"pins":[],"more":{"a":"hunter2"}}}')
    assert "hunter2" not in refused


@dataclasses.dataclass
class OutspokenLogin:
    pin: Annotated[str, Param(secret=True)]

    def __post_init__(self) -> None:
        raise ValueError(f"bad pin {self.pin}")


@attrs.define
class AttrsLogin:
    pin: Annotated[str, Param(secret=True)] = attrs.field(validator=attrs.validators.in_(["0000"]))


class Account(Struct):
    login: StructLogin

    def __post_init__(self) -> None:
        raise ValueError(f"bad {self}")


class ModelLogin(pydantic.BaseModel):
    pin: Annotated[str, Param(secret=True)]

    @pydantic.model_validator(mode="after")
    def refuse(self) -> "ModelLogin":
        raise ValueError(f"bad pin {self.pin}")


@pytest.mark.parametrize("login", [OutspokenLogin, AttrsLogin, Account, ModelLogin])
def test_a_class_that_quotes_what_is_secret_in_its_own_words_is_not_quoted(login: Any) -> None:
    codec = arguments_codec([Field(name="logins", type=list[login])])
    login_value = b'{"login":{"pin":"4711"}}' if login is Account else b'{"pin":"4711"}'
    assert errors(codec, b'{"logins":[' + login_value + b"]}") == ["/logins/0: value is not valid"]
    with pytest.raises(InvalidValue, match=r"^value is not valid$"):
        value_codec(login, mode="input").decode(msgspec.json.decode(login_value))


def test_a_secret_in_a_single_value_is_not_quoted_either() -> None:
    for value in ({"pin": "12345"}, {"pin": "1234", "key": "hunter2"}):
        with pytest.raises(InvalidValue) as caught:
            value_codec(StructLogin, mode="input").decode(value)
        assert "12345" not in str(caught.value) and "hunter2" not in str(caught.value)


NAMES = [
    "json",
    "dict",
    "copy",
    "schema",
    "model_config",
    "validate",
    "self_",
    "class_",
    "_private",
    "__dunder",
    "type",
]


@pytest.mark.parametrize("tp", [int, Annotated[int, Meta(multiple_of=1)]], ids=["fast", "slow"])
def test_parameters_may_be_called_anything(tp: Any) -> None:
    names = [*NAMES, "id", "fields", "naïve", "名前", 'a"b', "a\\b", "$ref", "title"]
    codec = arguments_codec([Field(name=name, type=tp) for name in names])
    assert list(codec.schema["properties"]) == names
    arguments = {name: number for number, name in enumerate(names)}
    assert codec.decode(msgspec.json.encode(arguments), tool="t") == arguments


def test_an_enumeration_that_accepts_more_than_its_members_is_held_to_them() -> None:
    class Lenient(enum.Enum):
        A = "a"

        @classmethod
        def _missing_(cls, value: object) -> "Lenient":
            return cls.A

    with pytest.raises(InvalidArguments, match=r"must be one of \[a\]"):
        decoder(Lenient)(b'"b"')


def test_a_literal_schema_is_published_and_enforced_as_it_is() -> None:
    literal = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"n": {"type": "integer", "maximum": 3}},
    }
    codec = arguments_codec([], extra="ignore", literal_schema=literal)
    assert codec.schema == literal
    assert codec.decode(b'{"n":1,"other":2}', tool="t") == {}
    assert errors(codec, b'{"n":4}') == ["/n: value 4 must be at most 3"]


def test_a_literal_schema_is_the_one_that_was_given_whatever_becomes_of_it() -> None:
    literal: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}}
    codec = arguments_codec([], literal_schema=literal)
    literal["properties"]["n"]["type"] = "string"
    assert codec.schema == {"type": "object", "properties": {"n": {"type": "integer"}}}
    assert errors(codec, b'{"n":"x"}') == ["/n: string found, integer expected"]


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (b"{}", "/n: required property not found"),
        (b'{"n":"5"}', "/n: string found, integer expected"),
        (b'{"n":5.5}', "/n: number found, integer expected"),
        (b'{"n":true}', "/n: boolean found, integer expected"),
        (b'{"n":1,"where":"z"}', '/where: value "z" must be one of [x, y]'),
        (b'{"n":1,"pair":[1]}', "/pair: array must have at least 2 items"),
        (b'{"n":1,"pair":null}', "/pair: null found, array expected"),
        (b'{"n":1,"order":{"id":"a"}}', "/order/quantity: required property not found"),
        (b'{"n":1,"when":"soon"}', '/when: value "soon" is not a valid date'),
    ],
)
def test_what_a_literal_schema_leaves_open_is_held_to_the_annotations(raw: bytes, error: str) -> None:
    class Ordered(Struct):
        id: str
        quantity: int

    codec = arguments_codec(
        [
            Field(name="n", type=int),
            Field(name="where", type=Literal["x", "y"], required=False),
            Field(name="pair", type=tuple[int, int], required=False),
            Field(name="order", type=Ordered, required=False),
            Field(name="when", type=datetime.date, required=False),
        ],
        literal_schema={"type": "object"},
    )
    assert errors(codec, raw) == [error]
    fitting = b'{"n":5.0,"where":"x","pair":[1,2],"order":{"id":"a","quantity":1,"more":1},"more":1}'
    assert codec.decode(fitting, tool="t") == {
        "n": 5,
        "where": "x",
        "pair": (1, 2),
        "order": Ordered("a", 1),
        "when": None,
    }


def test_a_literal_schema_without_room_for_a_required_parameter_is_refused() -> None:
    closed = {"type": "object", "properties": {"orderId": {"type": "string"}}, "additionalProperties": False}
    with pytest.raises(
        DefinitionError, match="'order_id' is required, and the input schema allows no property 'order_id'"
    ):
        arguments_codec([Field(name="order_id", type=str)], literal_schema=closed)
    for field in (Field(name="order_id", alias="orderId", type=str), Field(name="more", type=str, required=False)):
        arguments_codec([field], literal_schema=closed)
    arguments_codec([Field(name="order_id", type=str)], literal_schema={**closed, "patternProperties": {"^o": {}}})


@pytest.mark.parametrize(
    "literal",
    [
        {"type": "array"},
        {},
        {"type": "object", "properties": {"a": {"type": "text"}}},
        {"type": "object", "properties": {"a": {"type": "number", "x-mcp-header": "A"}}},
    ],
)
def test_a_literal_schema_that_is_invalid_or_no_object_is_refused(literal: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError):
        arguments_codec([], literal_schema=literal)


def test_valid_calls_do_not_import_the_validator_or_pydantic() -> None:
    program = """
import sys
from mcpcore.providers.results import output_codec, tool_result
from mcpcore.providers.schema import Field, arguments_codec
codec = arguments_codec([Field(name="a", type=int), Field(name="b", type=list[str] | None, required=False)])
assert codec.decode(b'{"a":1,"b":["x"]}', tool="t") == {"a": 1, "b": ["x"]}
output = output_codec(dict[str, int], output_schema=True)
tool_result({"a": 1}, tool="t", codec=output, version="2025-11-25")
print([name for name in ("jsonschema_rs", "pydantic", "anyio", "asyncio") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.strip() == "[]"


# -- values ------------------------------------------------------------------------------------------------------


class Key(TypedDict):
    id: int
    label: NotRequired[str]


class Span(NamedTuple):
    start: int
    stop: int = 9


def test_a_value_codec_decodes_checked_json() -> None:
    assert value_codec(Key).decode({"id": 1.0}) == {"id": 1}
    assert value_codec(Span).decode({"start": 1}) == Span(1, 9)
    with pytest.raises(InvalidValue) as caught:
        value_codec(Key).decode({"label": 5})
    assert caught.value.errors == ["/id: required property not found", "/label: integer found, string expected"]


def test_a_class_that_refuses_a_value_says_so_in_its_own_words() -> None:
    class Even(Struct):
        number: int

        def __post_init__(self) -> None:
            if self.number % 2:
                raise ValueError("must be even")

    with pytest.raises(InvalidArguments) as caught:
        decoder(list[Even])(b'[{"number":2},{"number":3}]')
    assert caught.value.errors == ["/p/1: must be even"]


@pytest.mark.parametrize(
    ("tp", "text", "value"),
    [
        (str, "5", "5"),
        (str | int, "5", "5"),
        (int, "5", 5),
        (int, "5.0", 5),
        (float, "2", 2.0),
        (bool, "true", True),
        (bool, "False", False),
        (list[str], '["a"]', ["a"]),
        (int | None, "", None),
        (int | None, "null", None),
        (Status, "SHIPPED", Status.SHIPPED),
        (datetime.date, "2026-01-01", datetime.date(2026, 1, 1)),
        (Literal[1, 2], "2", 2),
    ],
)
def test_text_stands_for_a_value(tp: Any, text: str, value: Any) -> None:
    arrived = value_codec(tp).decode_text(text)
    assert arrived == value and type(arrived) is type(value)


@pytest.mark.parametrize(
    ("tp", "text", "error"),
    [
        (int, "2.5", ": number found, integer expected"),
        (int, "x", ': value "x" is not an integer'),
        (int | None, "yes", ': value "yes" is not an integer or null'),
        (bool, "1", ': value "1" is not a boolean'),
        (int, '"5"', ': value "\\"5\\"" is not an integer'),
        (Status, "x", ': value "x" must be one of [PENDING, SHIPPED, CANCELLED]'),
    ],
)
def test_text_that_stands_for_nothing_is_named(tp: Any, text: str, error: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        value_codec(tp).decode_text(text)
    assert caught.value.errors == [error]


def test_a_number_beyond_python_stands_for_nothing() -> None:
    for text in ("1e400", "9" * 5000, "[" * 5000):
        with pytest.raises(InvalidValue, match="is not a number"):
            value_codec(float).decode_text(text)


def test_encoding_gives_builtins_and_compact_json_of_the_same() -> None:
    order = Order("o", Status.PENDING, Customer("c", "e"), 5.0, datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC))
    codec = value_codec(Order)
    assert codec.encode_json(order) == msgspec.json.encode(codec.encode(order))
    assert codec.encode(order) == {
        "orderId": "o",
        "status": "PENDING",
        "customer": {"customerId": "c", "email": "e"},
        "total": 5.0,
        "placed": "2026-01-01T00:00:00Z",
    }
    with pytest.raises(EncodeError):
        codec.encode(Order("o", Status.PENDING, Customer("c", "e"), float("nan"), order.placed))
