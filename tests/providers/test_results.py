"""What handlers return becomes results: the order service to the letter, then every kind of value."""

import dataclasses
import datetime
import enum
import io
import json
import logging
import pathlib
import threading
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any, NamedTuple, NotRequired, TypedDict, Union

import msgspec
import pydantic
import pytest
from msgspec import UNSET, Struct, UnsetType

from mcpcore.exceptions import DefinitionError, ResourceNotFound
from mcpcore.providers.encoding import EncodeError
from mcpcore.providers.media import Audio, File, Image
from mcpcore.providers.results import (
    assistant,
    completion_result,
    content_blocks,
    mime_type_of,
    output_codec,
    prompt_result,
    resource_result,
    streamed_result,
    tool_result,
    user,
)
from mcpcore.types import (
    CallToolResult,
    CompleteResult,
    Completion,
    GetPromptResult,
    ImageContent,
    PromptMessage,
    ReadResourceResult,
    ResourceContents,
    ResourceLink,
    TextContent,
)
from mcpcore.types.content import UnknownContent
from mcpcore.types.utilities import InputRequiredResult

EXPECTED = json.loads(pathlib.Path(__file__).with_name("order_service.json").read_text())
SCHEMAS = {each["name"]: each for each in EXPECTED["tools"]}
LEGACY, MODERN = "2025-11-25", "2026-07-28"
PNG = b"\x89PNG\r\n\x1a\nrest"


# -- the order service -------------------------------------------------------------------------------------------


class Status(enum.Enum):
    PENDING = "PENDING"
    PROCESSING = "PROCESSING"
    SHIPPED = "SHIPPED"
    DELIVERED = "DELIVERED"
    CANCELLED = "CANCELLED"


class Customer(Struct, rename="camel"):
    customer_id: str
    name: str
    email: str


class Item(Struct, rename="camel"):
    sku: str
    quantity: int
    unit_price: float


class Shipment(Struct, rename="camel", omit_defaults=True):
    tracking_number: str
    carrier: str
    shipped_at: datetime.datetime
    delivered_at: datetime.datetime | UnsetType = UNSET


class OrderBase(Struct, rename="camel", omit_defaults=True):
    order_id: str
    status: Status
    customer: Customer
    items: list[Item]
    total_amount: float
    created_at: datetime.datetime
    last_updated: datetime.datetime


class Order(OrderBase):
    shipment: Shipment | UnsetType = UNSET


class Required(OrderBase):
    shipment: Shipment


class Nullable(OrderBase):
    shipment: Shipment | None = None


class CancelResult(Struct):
    cancelled: bool
    note: str
    order: Order


class Recheck(Struct):
    checked: int
    delivered: list[str]


START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
STATUSES = (
    [Status.SHIPPED] * 57
    + [Status.PENDING] * 25
    + [Status.DELIVERED] * 80
    + [Status.PROCESSING] * 20
    + [Status.CANCELLED] * 18
)


def members(k: int) -> dict[str, Any]:
    """The k-th order of the data set, without its shipment."""
    customer = 1 + (7 * k) % 50
    items = [
        Item(f"SKU-{1 + (3 * k + j) % 25:03d}", 1 + (k + j) % 4, 5.0 + 2.5 * ((k + j) % 20)) for j in range(1 + k % 3)
    ]
    created = START + datetime.timedelta(hours=k)
    return {
        "order_id": f"ORD-{10001 + k}",
        "status": STATUSES[(57 * k) % 200],
        "customer": Customer(f"CUST-{customer}", f"Customer {customer}", f"customer{customer}@example.com"),
        "items": items,
        "total_amount": sum(item.quantity * item.unit_price for item in items),
        "created_at": created,
        "last_updated": created + datetime.timedelta(minutes=30),
    }


def shipment(k: int) -> Shipment | None:
    status = STATUSES[(57 * k) % 200]
    if status not in (Status.SHIPPED, Status.DELIVERED):
        return None
    created = START + datetime.timedelta(hours=k)
    delivered = created + datetime.timedelta(hours=96) if status is Status.DELIVERED else UNSET
    carrier = "GLOBEX" if k % 2 else "ACME"
    return Shipment(f"TRK-{10001 + k}", carrier, created + datetime.timedelta(hours=24), delivered)


def order(k: int) -> Order:
    return Order(**members(k), shipment=shipment(k) or UNSET)


ORDERS = [order(k) for k in range(200)]


def on_the_wire(result: CallToolResult) -> Any:
    return json.loads(msgspec.json.encode(result))


def expected(call: str) -> Any:
    return next(each["result"] for each in EXPECTED["calls"] if each["id"].startswith(call + " "))


@pytest.mark.parametrize(
    ("call", "tool", "returns", "structured", "value"),
    [
        ("A1", "get_order", Order, True, ORDERS[0]),
        ("A2", "get_order", Order, True, ORDERS[1]),
        ("A7", "get_customer_orders", list[Order], False, [ORDERS[k] for k in (163, 113, 63, 13)]),
        ("A8", "get_customer_orders", list[Order], False, []),
        (
            "A9",
            "get_orders_by_status",
            list[Order],
            False,
            [each for each in reversed(ORDERS) if each.status is Status.PENDING],
        ),
        ("C1", "recheck_shipments", Recheck, True, Recheck(1, [])),
    ],
)
def test_a_call_of_the_order_service(call: str, tool: str, returns: Any, structured: bool, value: Any) -> None:
    codec = output_codec(returns, output_schema=structured)
    result = on_the_wire(tool_result(value, tool=tool, codec=codec, version=LEGACY))
    assert result == expected(call)


@pytest.mark.parametrize(
    ("tool", "returns"), [("get_order", Order), ("cancel_order", CancelResult), ("recheck_shipments", Recheck)]
)
def test_the_output_schemas_of_the_order_service(tool: str, returns: Any) -> None:
    codec = output_codec(returns, output_schema=True)
    assert codec.schema(LEGACY) == codec.schema(MODERN) == codec.schema("2025-06-18") == SCHEMAS[tool]["outputSchema"]
    assert codec.schema("2025-03-26") is codec.schema("2024-11-05") is None
    assert codec.ignored is None and codec.withheld == ()


class ItemDict(TypedDict):
    sku: str
    quantity: int
    unitPrice: float


class CustomerDict(TypedDict):
    customerId: str
    name: str
    email: str


class ShipmentDict(TypedDict):
    trackingNumber: str
    carrier: str
    shippedAt: datetime.datetime
    deliveredAt: NotRequired[datetime.datetime]


class OrderDict(TypedDict):
    orderId: str
    status: Status
    customer: CustomerDict
    items: list[ItemDict]
    totalAmount: float
    createdAt: datetime.datetime
    lastUpdated: datetime.datetime
    shipment: NotRequired[ShipmentDict]


def test_typed_dicts_publish_and_send_the_same_as_structs() -> None:
    codec = output_codec(OrderDict, output_schema=True)
    assert codec.schema(LEGACY) == SCHEMAS["get_order"]["outputSchema"]
    value = msgspec.json.decode(msgspec.json.encode(ORDERS[0]))
    value["status"] = Status(value["status"])
    value["createdAt"] = datetime.datetime.fromisoformat(value["createdAt"])
    assert on_the_wire(tool_result(value, tool="get_order", codec=codec, version=LEGACY)) == expected("A1")


@dataclasses.dataclass
class ShipmentClass:
    trackingNumber: str
    carrier: str
    shippedAt: datetime.datetime
    deliveredAt: datetime.datetime | None = None


@dataclasses.dataclass
class OrderClass:
    orderId: str
    status: Status
    customer: Customer
    items: list[Item]
    totalAmount: float
    createdAt: datetime.datetime
    lastUpdated: datetime.datetime
    shipment: ShipmentClass | None = None


@pytest.mark.parametrize(("k", "call"), [(0, "A1"), (1, "A2")])
def test_dataclasses_leave_out_none_and_publish_it_as_nullable(k: int, call: str) -> None:
    codec = output_codec(OrderClass, output_schema=True, omit_none=True)
    published = codec.schema(LEGACY)
    assert published is not None
    ours, theirs = published["properties"], SCHEMAS["get_order"]["outputSchema"]["properties"]
    assert {name for name in theirs if ours[name] != theirs[name]} == {"shipment"}
    assert ours["shipment"]["anyOf"][1] == {"type": "null"}
    sent = shipment(k)
    value = OrderClass(
        **{
            Order.__struct_encode_fields__[Order.__struct_fields__.index(name)]: each
            for name, each in members(k).items()
        },
        shipment=ShipmentClass(sent.tracking_number, sent.carrier, sent.shipped_at) if sent else None,
    )
    assert on_the_wire(tool_result(value, tool="get_order", codec=codec, version=LEGACY)) == expected(call)


NULL_SHIPMENT = (
    "Tool (get_order) output validation failed: Validation failed: JSON schema validation errors: "
    "[/shipment: null found, object expected]"
)


@pytest.mark.parametrize(
    ("returns", "required", "failing"), [(Required, True, 63), (Order, False, 63), (Nullable, False, 0)]
)
def test_a_missing_shipment_stored_as_none(
    returns: Any, required: bool, failing: int, caplog: pytest.LogCaptureFixture
) -> None:
    codec = output_codec(returns, output_schema=True)
    published = codec.schema(LEGACY)
    assert published is not None and ("shipment" in published["required"]) is required
    results = [
        tool_result(returns(**members(k), shipment=shipment(k)), tool="get_order", codec=codec, version=LEGACY)
        for k in range(200)
    ]
    failed = [each for each in results if each.is_error]
    assert len(failed) == failing
    for each in failed:
        assert on_the_wire(each) == {"content": [{"type": "text", "text": NULL_SHIPMENT}], "isError": True}
    assert len(caplog.records) == failing


def test_orders_without_shipment_left_unset_all_fit() -> None:
    codec = output_codec(Order, output_schema=True)
    results = [tool_result(each, tool="get_order", codec=codec, version=LEGACY) for each in ORDERS]
    assert not any(each.is_error for each in results)
    assert sum("shipment" not in each.structured_content for each in results) == 63
    assert sum(each.structured_content["totalAmount"] for each in results) == 29985.0


def test_a_wrong_nested_member_is_named_with_its_whole_path() -> None:
    broken = order(0)
    broken.items[0].unit_price = None  # type: ignore[assignment]  # what the test is about
    codec = output_codec(Order, output_schema=True)
    result = tool_result(broken, tool="get_order", codec=codec, version=LEGACY)
    assert "[/items/0/unitPrice: null found, number expected]" in text_of(result)
    assert result.structured_content is UNSET


# -- revisions ---------------------------------------------------------------------------------------------------


def call(value: Any, returns: Any, version: str = LEGACY, **options: Any) -> Any:
    codec = output_codec(returns, **options)
    result = on_the_wire(tool_result(value, tool="t", codec=codec, version=version))
    if "structuredContent" in result and not isinstance(value, CallToolResult):
        (block,) = result["content"]
        assert json.loads(block["text"]) == result["structuredContent"]
    return result


def text_of(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


def test_an_array_is_structured_from_2026_and_text_before() -> None:
    codec = output_codec(list[Order], output_schema=True)
    assert codec.withheld == ("2025-06-18", "2025-11-25") and codec.ignored is None
    assert [codec.schema(version) for version in ("2025-03-26", "2025-06-18", LEGACY)] == [None, None, None]
    assert (codec.schema(MODERN) or {})["type"] == "array"
    assert "structuredContent" not in call(ORDERS[:4], list[Order], output_schema=True)
    assert len(call(ORDERS[:4], list[Order], MODERN, output_schema=True)["structuredContent"]) == 4


def test_wrapping_gives_older_revisions_an_object() -> None:
    codec = output_codec(list[Order], output_schema="wrap")
    published = codec.schema(LEGACY) or {}
    assert published["type"] == "object" and published["required"] == ["result"] and codec.withheld == ()
    assert len(call(ORDERS[:4], list[Order], output_schema="wrap")["structuredContent"]["result"]) == 4
    assert len(call(ORDERS[:4], list[Order], MODERN, output_schema="wrap")["structuredContent"]) == 4
    assert "structuredContent" not in call(ORDERS[:4], list[Order], "2025-03-26", output_schema="wrap")
    assert call(5, int, output_schema="wrap")["structuredContent"] == {"result": 5}
    assert call(None, int | None, output_schema="wrap")["structuredContent"] == {"result": None}
    assert call(ORDERS[0], Order, output_schema="wrap")["structuredContent"]["orderId"] == "ORD-10001"


class Tree(Struct):
    value: int
    children: list["Tree"] = []


def test_definitions_of_a_wrapped_schema_stay_at_the_root() -> None:
    published = output_codec(list[Tree], output_schema="wrap").schema(LEGACY) or {}
    assert list(published["$defs"]) == ["Tree"]
    assert published["properties"]["result"] == {"type": "array", "items": {"$ref": "#/$defs/Tree"}}
    assert call([Tree(1, [Tree(2)])], list[Tree], output_schema="wrap")["isError"] is False


@pytest.mark.parametrize(
    ("returns", "value", "text"),
    [
        (int, 5, "5"),
        (str, "a", '"a"'),
        (bool, True, "true"),
        (None, None, "null"),
        (Status, Status.SHIPPED, '"SHIPPED"'),
    ],
)
def test_any_admits_scalars_from_2026(returns: Any, value: Any, text: str) -> None:
    assert output_codec(returns, output_schema="any").withheld == ("2025-06-18", "2025-11-25")
    result = call(value, returns, MODERN, output_schema="any")
    assert result["content"][0]["text"] == text and result["structuredContent"] == json.loads(text)
    assert "structuredContent" not in call(value, returns, output_schema="any")


def test_an_optional_record_is_published_from_2026_and_admits_none() -> None:
    assert call(None, Order | None, output_schema=True) == {"content": [], "isError": False}
    assert call(None, Order | None, MODERN, output_schema=True)["structuredContent"] is None
    assert call(ORDERS[0], Order | None, MODERN, output_schema=True)["structuredContent"]["orderId"] == "ORD-10001"


def test_a_union_of_records_is_an_object_for_every_revision() -> None:
    returns = Union[Recheck, CancelResult]  # noqa: UP007
    published = output_codec(returns, output_schema=True).schema(LEGACY) or {}
    assert published["type"] == "object" and len(published["anyOf"]) == 2
    assert call(Recheck(1, []), returns, output_schema=True)["structuredContent"] == {"checked": 1, "delivered": []}
    recursive = output_codec(Union[Tree, list[Tree]], output_schema=True)  # noqa: UP007
    assert recursive.withheld != ()


@pytest.mark.parametrize(
    "returns", [int, str, float, None, bytes, uuid.UUID, Decimal, Status, int | None, Any, ImageContent, list[Image]]
)
def test_a_schema_without_effect_says_why(returns: Any) -> None:
    codec = output_codec(returns, output_schema=True)
    assert codec.ignored
    assert all(codec.schema(version) is None for version in ("2025-03-26", LEGACY, MODERN))


def test_a_tool_that_builds_its_results_has_no_schema_and_no_warning() -> None:
    for returns in (CallToolResult, Annotated[CallToolResult, "built"]):
        codec = output_codec(returns, output_schema=True)
        assert codec.ignored is None and codec.schema(MODERN) is None


@pytest.mark.parametrize(
    "returns",
    [
        Recheck | CallToolResult,
        Recheck | InputRequiredResult,
        Annotated[CallToolResult | Recheck, "either"],
    ],
)
def test_whole_results_in_a_union_are_no_part_of_the_schema(returns: Any) -> None:
    alone = output_codec(Recheck, output_schema=True).schema(LEGACY)
    published = output_codec(returns, output_schema=True).schema(LEGACY)
    assert published is not None and {**published, "description": None} == {**(alone or {}), "description": None}
    assert call(Recheck(1, []), returns, output_schema=True)["structuredContent"] == {"checked": 1, "delivered": []}
    assert call(CallToolResult.error("no"), returns, output_schema=True)["isError"] is True
    assert call(CallToolResult.structured(Recheck(1, [])), returns, output_schema=True)["isError"] is False


@pytest.mark.parametrize(
    "returns", [InputRequiredResult, CallToolResult | None, CallToolResult | InputRequiredResult, list[CallToolResult]]
)
def test_a_tool_that_gives_nothing_but_whole_results_has_no_schema_and_no_warning(returns: Any) -> None:
    codec = output_codec(returns, output_schema=True)
    assert codec.ignored is None and codec.schema(MODERN) is None


def test_a_type_that_has_no_schema_is_refused_only_if_one_was_asked_for() -> None:
    with pytest.raises(DefinitionError, match="complex has no form in JSON"):
        output_codec(complex, output_schema=True)
    with pytest.raises(DefinitionError, match="'any', 'wrap'"):
        output_codec(int, output_schema="all")  # type: ignore[arg-type]  # what the test is about
    assert call("x", complex) == {"content": [{"type": "text", "text": "x"}], "isError": False}


# -- results that the tool built ---------------------------------------------------------------------------------


def test_a_result_is_passed_through_with_everything_in_it() -> None:
    given = CallToolResult([TextContent("a")], {"x": 1}, True, {"m": 1})
    assert call(given, CallToolResult) == {
        "content": [{"type": "text", "text": "a"}],
        "structuredContent": {"x": 1},
        "isError": True,
        "_meta": {"m": 1},
    }
    assert call(CallToolResult.text("a"), CallToolResult) == {
        "content": [{"type": "text", "text": "a"}],
        "isError": False,
    }
    assert call(CallToolResult(), CallToolResult) == {"content": [], "isError": False}


def test_a_built_result_keeps_a_schema_stated_beside_it() -> None:
    options: dict[str, Any] = {"output_schema": Recheck}
    result = call(CallToolResult(structured_content=Recheck(1, []), meta={"m": 1}), CallToolResult, **options)
    assert result["structuredContent"] == {"checked": 1, "delivered": []} and result["_meta"] == {"m": 1}
    wrong = call(CallToolResult.structured({"checked": "x"}), CallToolResult, **options)
    assert wrong["isError"] is True and "structuredContent" not in wrong
    assert "/checked: string found, integer expected" in wrong["content"][0]["text"]
    literal = {"type": "object", "required": ["a"]}
    assert "/a: required property not found" in str(call(CallToolResult.structured({}), Any, output_schema=literal))
    assert call({"a": 1}, Any, output_schema=literal)["structuredContent"] == {"a": 1}


def test_content_that_the_tool_gave_stands_beside_structured_content() -> None:
    codec = output_codec(CallToolResult, output_schema=Recheck)
    given = CallToolResult([TextContent("all done")], Recheck(1, []))
    result = tool_result(given, tool="t", codec=codec, version=LEGACY)
    assert text_of(result) == "all done" and result.structured_content == {"checked": 1, "delivered": []}


def test_structured_content_that_no_schema_describes_is_pointed_out_once(caplog: pytest.LogCaptureFixture) -> None:
    codec = output_codec(CallToolResult)
    for value in (CallToolResult.text("t"), CallToolResult.structured({"a": 1}), CallToolResult.structured({"a": 2})):
        assert not tool_result(value, tool="t", codec=codec, version=MODERN).is_error
    (record,) = caplog.records
    assert (record.levelno, record.getMessage()) == (
        logging.WARNING,
        "tool 't' gives structured content that no output_schema= describes",
    )
    described = output_codec(CallToolResult, output_schema={"type": "object"})
    tool_result(CallToolResult.structured({"a": 1}), tool="t", codec=described, version="2025-03-26")
    assert len(caplog.records) == 1


def test_an_error_is_not_held_to_the_schema() -> None:
    assert call(CallToolResult.error("no"), Recheck, output_schema=True) == {
        "content": [{"type": "text", "text": "no"}],
        "isError": True,
    }


@pytest.mark.parametrize(
    "options",
    [{"output_schema": True}, {"output_schema": "wrap"}, {"output_schema": {"type": "object", "required": ["x"]}}],
)
@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", LEGACY, MODERN])
def test_an_error_keeps_its_text_and_whatever_else_the_tool_gave_it(options: Any, version: str) -> None:
    plain = call(CallToolResult.error("what went wrong"), Recheck, version, **options)
    assert plain == {"content": [{"type": "text", "text": "what went wrong"}], "isError": True}
    given = CallToolResult([TextContent("what went wrong")], {"reason": "own"}, True)
    result = call(given, Recheck, version, **options)
    assert result["content"] == [{"type": "text", "text": "what went wrong"}] and result["isError"] is True
    assert result.get("structuredContent", {"reason": "own"}) == {"reason": "own"}
    streamed = streamed_result([given], tool="t", codec=output_codec(list[int], **options), version=version)
    assert streamed.is_error and text_of(streamed) == "what went wrong"


@pytest.mark.parametrize("value", [CallToolResult.text("a"), TextContent("a"), [Image(PNG)]])
def test_content_in_place_of_promised_data_is_an_error(value: Any) -> None:
    result = call(value, Recheck, output_schema=True)
    assert result["isError"] is True
    assert result["content"][0]["text"] == (
        "Response missing structured content which is expected when calling tool with non-empty outputSchema"
    )


def test_structured_content_that_an_older_peer_cannot_have_becomes_text() -> None:
    given = CallToolResult.structured([Recheck(1, [])])
    assert call(given, CallToolResult) == {
        "content": [{"type": "text", "text": '[{"checked":1,"delivered":[]}]'}],
        "isError": False,
    }
    modern = call(given, CallToolResult, MODERN)
    assert modern["structuredContent"] == [{"checked": 1, "delivered": []}]


def test_structured_content_is_never_without_text() -> None:
    result = call(CallToolResult.structured({"a": 1}), CallToolResult)
    assert result["content"] == [{"type": "text", "text": '{"a":1}'}] and result["structuredContent"] == {"a": 1}


# -- values ------------------------------------------------------------------------------------------------------


class Pair(NamedTuple):
    left: int
    right: str = "r"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain \"text\" with 'quotes'", "plain \"text\" with 'quotes'"),
        ("", ""),
        ('{"a":1}', '{"a":1}'),
        (8, "8"),
        (2.5, "2.5"),
        (2.0, "2.0"),
        (True, "true"),
        (10**30, str(10**30)),
        (Status.SHIPPED, "SHIPPED"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (datetime.date(2026, 1, 2), "2026-01-02"),
        (Decimal("1.50"), "1.50"),
        (b"\xfb\xff", "+/8="),
        (pathlib.PurePosixPath("a/b"), "a/b"),
        ([], "[]"),
        (["a", "b"], '["a","b"]'),
        ((1, 2), "[1,2]"),
        ({2, 1}, "[1,2]"),
        ({"type": "text", "text": "x"}, '{"type":"text","text":"x"}'),
        ({"content": []}, '{"content":[]}'),
        ({1: "a"}, '{"1":"a"}'),
        ({"at": datetime.date(2026, 1, 2)}, '{"at":"2026-01-02"}'),
        (Pair(1), '{"left":1,"right":"r"}'),
        (Recheck(1, ["a"]), '{"checked":1,"delivered":["a"]}'),
        ([Recheck(1, [])], '[{"checked":1,"delivered":[]}]'),
        (Tree(1, [Tree(2)]), '{"value":1,"children":[{"value":2,"children":[]}]}'),
    ],
)
@pytest.mark.parametrize("annotated", [True, False])
def test_a_value_is_one_text(value: Any, text: str, annotated: bool) -> None:
    result = call(value, type(value) if annotated else Any)
    assert result == {"content": [{"type": "text", "text": text}], "isError": False}


def test_none_is_no_content() -> None:
    assert call(None, Any) == call(None, None) == {"content": [], "isError": False}


def test_an_iterator_is_read_into_one_array() -> None:
    assert call((n for n in range(3)), list[int]) == call(iter([0, 1, 2]), Any)
    assert call((Recheck(n, []) for n in range(1)), list[Recheck], MODERN, output_schema=True)["structuredContent"] == [
        {"checked": 0, "delivered": []}
    ]


def test_what_an_iterator_raises_reaches_the_caller() -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        call(broken(), Any)


@pytest.mark.parametrize("structured", [True, False])
@pytest.mark.parametrize(
    "value",
    [float("nan"), [float("inf")], {"a": {"b": float("-inf")}}, object(), {"a": object()}, "\ud800", ["\udfff"]],
)
def test_a_value_that_cannot_be_sent_is_an_error(
    value: Any, structured: bool, caplog: pytest.LogCaptureFixture
) -> None:
    options: dict[str, Any] = {"output_schema": {"type": "object"}} if structured else {}
    result = call(value, Any, MODERN, **options)
    assert result["isError"] is True and "structuredContent" not in result
    assert result["content"][0]["text"].startswith("Tool (t) returned what cannot be sent: ")
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


@pytest.mark.parametrize("returns", [float, list[float | None], Order | None, Any])
def test_nan_is_an_error_under_every_annotation(returns: Any) -> None:
    for value in (float("nan"), [None, float("nan")]):
        assert call(value, returns, MODERN)["isError"] is True
    broken = Order(**members(0))
    broken.total_amount = float("nan")
    assert call(broken, Order, output_schema=True)["isError"] is True


def test_a_result_of_another_shape_than_promised_is_an_error() -> None:
    assert call({"checked": "x"}, Recheck, output_schema=True)["isError"] is True
    assert call(None, Recheck, output_schema=True)["isError"] is True
    assert call({"checked": 1, "delivered": [], "more": 1}, Recheck, output_schema=True)["isError"] is False
    assert call(Recheck(5.0, []), Recheck, output_schema=True)["isError"] is False  # type: ignore[arg-type]  # an integer in JSON


class Number(TypedDict):
    n: int


class Ratio(TypedDict):
    ratio: float


@dataclasses.dataclass
class Holding:
    n: int
    held: Any


class StructHolding(Struct):
    n: int
    held: Any


class ModelHolding(pydantic.BaseModel):
    n: int
    held: Any


class Opaque: ...


def holding_itself() -> dict[str, Any]:
    value: dict[str, Any] = {"n": 1}
    value["self"] = value
    return value


@pytest.mark.parametrize(
    "value",
    [
        *(
            {"n": "1"},
            {"n": True},
            {"n": 1.5},
            {"n": None},
            {"n": [1]},
            {"m": 1},
            {},
            [{"n": 1}],
            [],
            5,
            "n",
            "",
            None,
            True,
        ),
        *({"n": 1, "held": threading.Lock()}, {"n": 1, "held": io.StringIO("a")}, {"n": 1, "held": print}),
        *(Holding(1, threading.Lock()), StructHolding(1, threading.Lock()), ModelHolding(n=1, held=threading.Lock())),
        *(
            {"n": float("nan")},
            {"n": 1, "held": float("inf")},
            {"n": 1, "\ud800": 1},
            {"n": 1, (1, 2): 3},
            holding_itself(),
        ),
        *(
            Opaque(),
            Number,
            ValueError("n"),
            NotImplemented,
            ...,
            iter([1]),
            {"n": {1}},
            {"n": Decimal(1)},
            {"n": b"1"},
        ),
    ],
)
@pytest.mark.parametrize("version", ["2025-06-18", LEGACY, MODERN])
def test_success_is_never_without_what_the_schema_promises(value: Any, version: str) -> None:
    result = call(value, Number, version, output_schema=True)
    assert result["isError"] is True and "structuredContent" not in result
    assert result["content"][0]["text"]


@pytest.mark.parametrize("held", [float("nan"), float("inf"), float("-inf"), "1.5", None, True])
def test_a_float_of_a_result_is_a_number_that_json_has(held: Any) -> None:
    assert call({"ratio": held}, Ratio, output_schema=True)["isError"] is True
    assert call({"ratio": 1}, Ratio, output_schema=True)["structuredContent"] == {"ratio": 1}


class Guarded(TypedDict):
    status: Status
    code: Annotated[str, msgspec.Meta(pattern="^[0-9]*$", max_length=3)]
    count: Annotated[int, msgspec.Meta(le=5)]


@pytest.mark.parametrize("by_hand", [False, True])
@pytest.mark.parametrize(
    ("member", "value", "says"),
    [
        ("status", "s3cret", "/status: value must be one of [PENDING, PROCESSING, SHIPPED, DELIVERED, CANCELLED]"),
        ("status", {"s3cret": "s3cret"}, "/status: object found, string expected"),
        ("code", "s3cret", "/code: value must have at most 3 characters, /code: value must match the pattern ^[0-9]*$"),
        ("count", "s3cret", "/count: string found, integer expected"),
        ("count", 31337, "/count: value must be at most 5"),
    ],
)
def test_a_failed_validation_does_not_quote_the_result(member: str, value: Any, says: str, by_hand: bool) -> None:
    schema: Any = output_codec(Guarded, output_schema=True).schema(LEGACY) if by_hand else True
    given = {"status": "SHIPPED", "code": "1", "count": 1, member: value}
    result = call(given, Any if by_hand else Guarded, output_schema=schema)
    assert result["content"][0]["text"].endswith(f"[{says}]")
    assert "s3cret" not in json.dumps(result) and "31337" not in json.dumps(result)


# -- content -----------------------------------------------------------------------------------------------------


def test_blocks_are_kept_in_order_beside_data_and_media() -> None:
    link = ResourceLink("x://a", "a")
    result = call(["first", link, Image(PNG), {"n": 1}, None, [5, TextContent("t")]], Any)
    kinds = [(each["type"], each.get("text")) for each in result["content"]]
    assert kinds == [
        ("text", "first"),
        ("resource_link", None),
        ("image", None),
        ("text", '{"n":1}'),
        ("text", "5"),
        ("text", "t"),
    ]
    assert result["content"][2]["mimeType"] == "image/png"


def test_media_become_blocks() -> None:
    (image,) = content_blocks(Image(PNG))
    (audio,) = content_blocks(Audio(b"x", format="wav"))
    (file,) = content_blocks(File(b"a", name="a.txt"))
    assert [block.__struct_config__.tag for block in (image, audio, file)] == ["image", "audio", "resource"]


def test_media_and_unknown_blocks_stand_in_a_built_result() -> None:
    unknown = UnknownContent(type="hologram", data="x")
    content: list[Any] = [Image(PNG), TextContent("t"), unknown]
    assert call(CallToolResult(content), Any)["content"] == [
        {"type": "image", "data": "iVBORw0KGgpyZXN0", "mimeType": "image/png"},
        {"type": "text", "text": "t"},
        {"type": "hologram", "data": "x"},
    ]
    assert call([unknown, "beside"], Any)["content"][0] == {"type": "hologram", "data": "x"}


@pytest.mark.parametrize(
    "content", [["text"], "text", [None], [{"type": "text", "text": "x"}], [ResourceContents("a:b", text="x")]]
)
@pytest.mark.parametrize("options", [{}, {"output_schema": {"type": "object"}}])
def test_a_built_result_of_what_is_no_block_is_an_error_that_says_what_would_be(content: Any, options: Any) -> None:
    result = call(CallToolResult(content, {"a": 1}), CallToolResult, **options)
    assert result["isError"] is True and "structuredContent" not in result
    assert "use TextContent(…)" in result["content"][0]["text"]


def test_a_block_that_cannot_be_sent_is_an_error() -> None:
    for value in (TextContent("\ud800"), CallToolResult([TextContent("\ud800")]), ResourceLink("\ud800", "a")):
        assert call(value, Any)["isError"] is True
    assert call(CallToolResult(meta={"a": float("nan")}), Any)["isError"] is True


# -- generators --------------------------------------------------------------------------------------------------


def stream(items: list[Any], returns: Any = Any, version: str = LEGACY, **options: Any) -> Any:
    codec = output_codec(returns, **options)
    return on_the_wire(streamed_result(items, tool="t", codec=codec, version=version))


def test_yielded_items_are_a_block_each() -> None:
    assert stream(["a", 5, Image(PNG)])["content"][:2] == [{"type": "text", "text": "a"}, {"type": "text", "text": "5"}]
    assert stream([]) == {"content": [], "isError": False}


def test_yielded_items_are_one_array_where_the_peer_has_the_schema() -> None:
    items = [Recheck(1, []), Recheck(2, [])]
    modern = stream(items, list[Recheck], MODERN, output_schema=True)
    assert len(modern["structuredContent"]) == 2 and len(modern["content"]) == 1
    legacy = stream(items, list[Recheck], LEGACY, output_schema=True)
    assert "structuredContent" not in legacy and len(legacy["content"]) == 2


def test_a_yielded_result_is_the_result_if_it_is_the_last_item() -> None:
    assert stream(["dropped", CallToolResult.text("a")])["content"] == [{"type": "text", "text": "a"}]
    misplaced = stream([CallToolResult.text("a"), "b"])
    assert misplaced["isError"] is True and "must be the last item" in misplaced["content"][0]["text"]


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", LEGACY, MODERN])
def test_yielded_content_in_place_of_promised_data_is_an_error(version: str) -> None:
    result = stream([1, TextContent("x")], list[int], version, output_schema=True)
    assert result["isError"] is (version == MODERN)
    wrapped = stream([1, TextContent("x")], list[int], version, output_schema="wrap")
    assert wrapped["isError"] is (version != "2025-03-26")
    if version == MODERN:
        assert result["content"][0]["text"].startswith("Response missing structured content")


def test_a_yielded_item_that_cannot_be_sent_is_an_error() -> None:
    assert stream(["a", float("nan")])["isError"] is True


# -- resources ---------------------------------------------------------------------------------------------------

URI = "x://a"


@pytest.mark.parametrize(
    ("value", "declared", "contents"),
    [
        ("t", None, [{"uri": URI, "mimeType": "text/plain", "text": "t"}]),
        ("<svg/>", "image/svg+xml", [{"uri": URI, "mimeType": "image/svg+xml", "text": "<svg/>"}]),
        (b"\xfb\xff\xfe", None, [{"uri": URI, "mimeType": "application/octet-stream", "blob": "+//+"}]),
        (bytearray(b"a"), "image/png", [{"uri": URI, "mimeType": "image/png", "blob": "YQ=="}]),
        (memoryview(b""), None, [{"uri": URI, "mimeType": "application/octet-stream", "blob": ""}]),
        (["a", b"b"], None, [{"uri": URI, "mimeType": "text/plain", "text": "a"}, {"uri": URI, "mimeType": "application/octet-stream", "blob": "Yg=="}]),
        ([], None, []),
        ({"a": 1}, None, [{"uri": URI, "mimeType": "application/json", "text": '{"a":1}'}]),
        ([1, 2], None, [{"uri": URI, "mimeType": "application/json", "text": "[1,2]"}]),
        (Recheck(1, []), "text/x", [{"uri": URI, "mimeType": "text/x", "text": '{"checked":1,"delivered":[]}'}]),
        (ResourceContents("y://b", "text/x", text="b"), None, [{"uri": "y://b", "mimeType": "text/x", "text": "b"}]),
        (Image(PNG), None, [{"uri": URI, "mimeType": "image/png", "blob": "iVBORw0KGgpyZXN0"}]),
        (File(b"{}", name="a.json"), None, [{"uri": URI, "mimeType": "application/json", "text": "{}"}]),
        ((each for each in ["a"]), None, [{"uri": URI, "mimeType": "text/plain", "text": "a"}]),
    ],
)  # fmt: skip
def test_a_resource_has_contents(value: Any, declared: str | None, contents: Any) -> None:
    result = resource_result(value, uri=URI, mime_type=declared)
    assert json.loads(msgspec.json.encode(result)) == {"contents": contents}


class Place(NamedTuple):
    name: str
    city: str


class PlaceDict(TypedDict):
    name: str


@dataclasses.dataclass
class PlaceClass:
    name: str


class PlaceModel(pydantic.BaseModel):
    name: str


@pytest.mark.parametrize(
    ("annotation", "value", "mime_type", "text"),
    [
        (str, "a", "text/plain", "a"),
        (str | None, "a", "text/plain", "a"),
        (Annotated[str, "note"], "a", "text/plain", "a"),
        (list[str], ["a"], "text/plain", "a"),
        (Status, Status.SHIPPED, "text/plain", "SHIPPED"),
        (uuid.UUID, uuid.UUID(int=7), "text/plain", "00000000-0000-0000-0000-000000000007"),
        (datetime.date, datetime.date(2026, 1, 31), "text/plain", "2026-01-31"),
        (ReadResourceResult, "a", "text/plain", "a"),
        (bytes, b"a", "application/octet-stream", None),
        (bytes | None, b"a", "application/octet-stream", None),
        (list[bytes], [b"a"], "application/octet-stream", None),
        (dict[str, str], {"a": "b"}, "application/json", '{"a":"b"}'),
        (set[str], {"a"}, "application/json", '["a"]'),
        (int, 5, "application/json", "5"),
        (bool, True, "application/json", "true"),
        (list[int], [5], "application/json", "[5]"),
        (list[Recheck], [Recheck(1, [])], "application/json", '[{"checked":1,"delivered":[]}]'),
        (Recheck, Recheck(1, []), "application/json", '{"checked":1,"delivered":[]}'),
        (Recheck | None, Recheck(1, []), "application/json", '{"checked":1,"delivered":[]}'),
        (Place, Place("n", "c"), "application/json", '{"name":"n","city":"c"}'),
        (tuple[Place, ...], (Place("n", "c"),), "application/json", '[{"name":"n","city":"c"}]'),
        (PlaceDict, {"name": "n"}, "application/json", '{"name":"n"}'),
        (PlaceClass, PlaceClass("n"), "application/json", '{"name":"n"}'),
        (PlaceModel, PlaceModel(name="n"), "application/json", '{"name":"n"}'),
    ],
)
def test_a_resource_is_listed_with_the_media_type_that_its_contents_have(
    annotation: Any, value: Any, mime_type: str, text: str | None
) -> None:
    (contents,) = resource_result(value, uri=URI).contents
    assert (contents.mime_type, contents.text) == (mime_type, text)
    assert mime_type_of(annotation) == mime_type


def test_a_result_of_a_resource_is_passed_through() -> None:
    given = ReadResourceResult([])
    assert resource_result(given, uri=URI) is given


@pytest.mark.parametrize("contents", ["t", ["t"], [ResourceContents(URI, "text/plain", text="t")]])
def test_a_built_result_of_a_resource_never_has_contents_that_are_none(contents: Any) -> None:
    made = resource_result(ReadResourceResult(contents, ttl_ms=5), uri=URI)
    assert made == ReadResourceResult([ResourceContents(URI, "text/plain", text="t")], ttl_ms=5)


def test_the_meta_of_a_resource_is_on_the_contents_made_for_it() -> None:
    own = ResourceContents(URI, text="x", meta={"own": 1})
    result = resource_result(["a", own, ResourceContents(URI, text="y")], uri=URI, meta={"m": 1})
    assert [each.meta for each in result.contents] == [{"m": 1}, {"own": 1}, {"m": 1}]


def test_a_resource_that_is_none_is_not_found() -> None:
    with pytest.raises(ResourceNotFound) as caught:
        resource_result(None, uri=URI)
    assert caught.value.uri == URI


def test_a_resource_without_form_is_refused() -> None:
    with pytest.raises(EncodeError):
        resource_result(object(), uri=URI)
    with pytest.raises(EncodeError):
        resource_result("\ud800", uri=URI)


# -- prompts -----------------------------------------------------------------------------------------------------


def said(value: Any) -> Any:
    messages = json.loads(msgspec.json.encode(prompt_result(value)))["messages"]
    return [(each["role"], each["content"].get("text", each["content"]["type"])) for each in messages]


def test_a_prompt_has_messages() -> None:
    assert said("a") == [("user", "a")]
    assert said([]) == []
    assert said(assistant("a")) == [("assistant", "a")]
    assert said(["a", assistant("b"), Image(PNG), {"n": 1}]) == [
        ("user", "a"),
        ("assistant", "b"),
        ("user", "image"),
        ("user", '{"n":1}'),
    ]
    assert said(each for each in ["a"]) == [("user", "a")]
    assert said(Place("n", "c")) == [("user", '{"name":"n","city":"c"}')]
    assert said(TextContent("t")) == [("user", "t")]
    given = GetPromptResult([])
    assert prompt_result(given, description="x") is given
    assert prompt_result("a", description="x").description == "x"
    assert user("a") == PromptMessage("user", TextContent("a"))


@pytest.mark.parametrize(
    "given",
    [
        PromptMessage("user", "hi"),  # type: ignore[arg-type]  # what the test is about
        [PromptMessage("user", TextContent("hi"))],
        GetPromptResult("hi", "d"),  # type: ignore[arg-type]  # what the test is about
        GetPromptResult(["hi"], "d"),  # type: ignore[list-item]  # what the test is about
        GetPromptResult([PromptMessage("user", "hi")], "d"),  # type: ignore[arg-type]  # what the test is about
    ],
)
def test_a_message_of_a_prompt_always_holds_a_block(given: Any) -> None:
    assert prompt_result(given, description="d") == GetPromptResult([PromptMessage("user", TextContent("hi"))], "d")


@pytest.mark.parametrize("value", [None, [None], [["a", Image(PNG)]], object(), "\ud800"])
def test_a_prompt_that_says_nothing_sendable_is_refused(value: Any) -> None:
    with pytest.raises(EncodeError):
        prompt_result(value)


# -- completion --------------------------------------------------------------------------------------------------


def endless() -> Iterator[str]:
    while True:
        yield "x"


@pytest.mark.parametrize(
    ("value", "values", "total", "more"),
    [
        (None, [], 0, False),
        ("a", ["a"], 1, False),
        (["a", "b"], ["a", "b"], 2, False),
        ({"a": 1}, ["a"], 1, False),
        ([Status.SHIPPED, 5], ["SHIPPED", "5"], 2, False),
        ([str(n) for n in range(150)], [str(n) for n in range(100)], 150, True),
        ((str(n) for n in range(3)), ["0", "1", "2"], 3, False),
        (endless(), ["x"] * 100, None, True),
        (Completion(["a"], 7, True), ["a"], 7, True),
        (Completion(["x"] * 101), ["x"] * 100, 101, True),
        (CompleteResult(Completion(["a"])), ["a"], None, None),
        (Completion([1, Status.SHIPPED]), ["1", "SHIPPED"], None, None),  # type: ignore[list-item]
    ],
)
def test_a_completion_has_at_most_a_hundred_values(value: Any, values: Any, total: Any, more: Any) -> None:
    assert completion_result(value).completion == Completion(values, total, more)
