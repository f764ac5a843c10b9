"""The order service: what is expected of it, its module, and its data written down in other forms."""

import importlib
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Final, Literal, NamedTuple, NotRequired, TypedDict

import msgspec

from mcpcore import Context, Param, Registry, Server

__all__ = [
    "CALLS",
    "EXAMPLE",
    "EXPECTED",
    "FORMS",
    "ROOT",
    "Data",
    "Moment",
    "OrderId",
    "Shop",
    "as_written",
    "assert_same",
    "data_of",
    "example_module",
    "expected",
    "rewritten",
    "tools_of",
    "without_optional_members",
]

ROOT: Final = Path(__file__).parents[2]
EXAMPLE: Final = ROOT / "examples/order_service/server.py"
EXPECTED: Final[dict[str, Any]] = json.loads((ROOT / "tests/order_service/expected.json").read_text("utf-8"))
CALLS: Final = {each["id"].split()[0]: each for each in EXPECTED["calls"]}


@contextmanager
def example_module() -> Iterator[ModuleType]:
    """The module ``server`` of the example."""
    sys.path.insert(0, str(EXAMPLE.parent))
    try:
        yield importlib.import_module("server")
    finally:
        sys.path.remove(str(EXAMPLE.parent))
        del sys.modules["server"], sys.modules["orders"]


# -- the data written down in other forms --------------------------------------------------------------------------

OrderId = Annotated[str, Param("The order ID, for example ORD-10001")]
Moment = Annotated[str, msgspec.Meta(extra_json_schema={"format": "date-time"})]
Statuses = Literal["PENDING", "PROCESSING", "SHIPPED", "DELIVERED", "CANCELLED"]


class CustomerDict(TypedDict):
    customerId: str
    name: str
    email: str


class ItemDict(TypedDict):
    sku: str
    quantity: int
    unitPrice: float


class ShipmentDict(TypedDict):
    trackingNumber: str
    carrier: str
    shippedAt: Moment
    deliveredAt: NotRequired[Moment]


class OrderDict(TypedDict):
    orderId: str
    status: Statuses
    customer: CustomerDict
    items: list[ItemDict]
    totalAmount: float
    createdAt: Moment
    lastUpdated: Moment
    shipment: NotRequired[ShipmentDict]


class RecheckedDict(TypedDict):
    checked: int
    delivered: list[str]


class CancelledDict(TypedDict):
    cancelled: bool
    note: str
    order: OrderDict


@dataclass
class CustomerData:
    customerId: str
    name: str
    email: str


@dataclass
class ItemData:
    sku: str
    quantity: int
    unitPrice: float


@dataclass
class ShipmentData:
    trackingNumber: str
    carrier: str
    shippedAt: Moment
    deliveredAt: Moment | None = None


@dataclass
class OrderData:
    orderId: str
    status: Statuses
    customer: CustomerData
    items: list[ItemData]
    totalAmount: float
    createdAt: Moment
    lastUpdated: Moment
    shipment: ShipmentData | None = None


@dataclass
class RecheckedData:
    checked: int
    delivered: list[str]


@dataclass
class CancelledData:
    cancelled: bool
    note: str
    order: OrderData


class Data(NamedTuple):
    """The types of what the tools return, in one form."""

    order: Any
    rechecked: Any
    cancelled: Any


FORMS: Final = {
    "struct": None,  # that of the example
    "typed dict": Data(OrderDict, RecheckedDict, CancelledDict),
    "dataclass": Data(OrderData, RecheckedData, CancelledData),
}


def data_of(example: ModuleType, form: str) -> Data:
    """The types of a form."""
    return FORMS[form] or Data(example.Order, example.Rechecked, example.Cancelled)


def as_written(value: Any, tp: Any) -> Any:
    """The same value as another type."""
    return msgspec.convert(msgspec.to_builtins(value), tp)


def rewritten(example: ModuleType, data: Data) -> type:
    """The tools of the example with other types in their annotations, and their values converted."""
    base: Any = example.OrderTools
    order_type: Any = data.order
    rechecked_type: Any = data.rechecked
    cancelled_type: Any = data.cancelled

    class OrderTools(base):  # type: ignore[misc]  # loaded at run time
        def get_order(self, order_id: OrderId) -> order_type:
            return as_written(super().get_order(order_id), order_type)

        def get_customer_orders(
            self, customer_id: Annotated[str, Param("The customer ID, for example CUST-42")]
        ) -> list[order_type]:
            return as_written(super().get_customer_orders(customer_id), list[order_type])  # type: ignore[no-any-return]  # of the variant

        def get_orders_by_status(
            self, status: Annotated[str, Param("One of PENDING, PROCESSING, SHIPPED, DELIVERED, CANCELLED")]
        ) -> list[order_type]:
            return as_written(super().get_orders_by_status(status), list[order_type])  # type: ignore[no-any-return]  # of the variant

        def update_order_status(
            self, order_id: OrderId, new_status: Annotated[str, Param("The new status")]
        ) -> order_type:
            return as_written(super().update_order_status(order_id, new_status), order_type)

        async def recheck_shipments(
            self,
            ctx: Context,
            customer_id: Annotated[str | None, Param("Only this customer's orders, for example CUST-42")] = None,
        ) -> rechecked_type:
            return as_written(await super().recheck_shipments(ctx, customer_id), rechecked_type)

        async def cancel_order(
            self,
            ctx: Context,
            order_id: OrderId,
            reason: Annotated[str | None, Param("Why, in the customer's words")] = None,
        ) -> cancelled_type:
            return as_written(await super().cancel_order(ctx, order_id, reason), cancelled_type)

    return OrderTools


def tools_of(example: ModuleType, form: str) -> type:
    """The tools of the example with the types of a form."""
    data = FORMS[form]
    tools: type = example.OrderTools if data is None else rewritten(example, data)
    return tools


class Shop:
    """A server with two hundred fresh orders.

    Args:
        form: How the data is written down.
        tools: The class of its tools; by default those of the example in that form.
        middleware: Of the server.
        options: For the registry.
    """

    def __init__(
        self,
        example: ModuleType,
        form: str = "struct",
        tools: Any = None,
        middleware: Sequence[Any] = (),
        **options: Any,
    ) -> None:
        self.orders = example.Orders()
        registry = Registry(**{"omit_none": form == "dataclass", **options})
        self.server = Server("order-service", version="1.0.0", registry=registry, middleware=middleware)
        tools = tools or tools_of(example, form)
        self.server.include(tools(self.orders, example.StubCarrier(), lambda: example.NOW), rename="camel")


def assert_same(result: Any, expected: Any) -> None:
    """Objects are compared as objects; a text that is JSON by what it says, any other text as it is."""
    texts = [[block.pop("text") for block in each["content"]] for each in (result, expected)]
    assert result == expected
    for got, wanted in zip(*texts, strict=True):
        assert got == wanted or json.loads(got) == json.loads(wanted)


def without_optional_members(listed: Any) -> Any:
    """A listing in which nothing is said about the two members that may be absent."""
    if isinstance(listed, list):
        return [without_optional_members(each) for each in listed]
    if not isinstance(listed, dict):
        return listed
    return {
        key: None if key in ("shipment", "deliveredAt") else without_optional_members(value)
        for key, value in listed.items()
    }


def expected(name: str) -> Any:
    return json.loads(json.dumps(CALLS[name]["result"]))
