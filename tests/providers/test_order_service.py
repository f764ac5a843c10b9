"""The order service through its registry alone: the data, the listing, the calls, in three ways to write the data down."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import anyio
import anyio.to_thread
import msgspec
import pytest
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpcore.providers.markers import Injection, Log, Progress
from mcpcore.providers.registry import Registry
from mcpcore.types import CallToolParams
from tests.support.order_service import (
    CALLS,
    EXPECTED,
    FORMS,
    assert_same,
    example_module,
    expected,
    tools_of,
    without_optional_members,
)

pytestmark = pytest.mark.anyio

LEGACY = "2025-11-25"
MODERN = "2026-07-28"
A_AND_B = [name for name in CALLS if name[0] in "AB"]


@pytest.fixture(scope="module")
def example() -> Iterator[ModuleType]:
    """The module ``server`` of the example."""
    with example_module() as module:
        yield module


@dataclass
class Shop:
    registry: Registry
    orders: Any


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def shop(example: ModuleType, form: str) -> Shop:
    tools: Any = tools_of(example, form)
    orders = example.Orders()
    registry = Registry(omit_none=form == "dataclass")
    registry.include(tools(orders, example.StubCarrier(), lambda: example.NOW), rename="camel")
    return Shop(registry, orders)


class Client:
    """The source of one request: a context with a prepared answer."""

    def __init__(self, answer: Any = None, *, can_elicit: bool = True) -> None:
        self.answer = answer
        self.can_elicit = can_elicit
        self.asked: list[tuple[str, Any]] = []
        self.told: list[tuple[float, float | None]] = []

    def provide(self, injection: Injection, /) -> Any:
        assert injection.kind == "context"
        return self

    async def ask(self, questions: Mapping[str, Any], /) -> Mapping[str, Any]:
        raise AssertionError("the tools ask through their context")

    def notify(self, item: Progress | Log, /) -> None:
        raise AssertionError("nothing is yielded here")

    notify_from_thread = notify
    is_open = True

    async def shielded(self, close: Callable[[], Any], /) -> None:
        raise AssertionError("there is no generator here")

    async def progress(self, progress: float, *, total: float | None = None) -> None:
        self.told.append((progress, total))

    async def elicit(self, message: str, form: Any) -> Any:
        self.asked.append((message, form))
        return self.answer(form)


class Reply(Struct):
    action: str
    value: Any = None


async def call(shop: Shop, name: str, arguments: Any, client: Client | None = None, version: str = LEGACY) -> Any:
    handler = shop.registry.find_tool(name)
    assert handler is not None
    params = CallToolParams(name, Raw(msgspec.json.encode(arguments)))
    with anyio.fail_after(5):
        result = await handler.invoke_async(params, client or Client(), version, anyio.to_thread.run_sync)
    return json.loads(msgspec.json.encode(result))


# -- the data ------------------------------------------------------------------------------------------------------


def test_the_orders_are_those_of_the_rule(example: ModuleType) -> None:
    orders = list(example.Orders())
    written = [json.loads(msgspec.json.encode(order)) for order in orders]
    assert [each["orderId"] for each in written] == [f"ORD-{number}" for number in range(10200, 10000, -1)]
    assert Counter(each["status"] for each in written) == {
        "SHIPPED": 57,
        "PENDING": 25,
        "DELIVERED": 80,
        "PROCESSING": 20,
        "CANCELLED": 18,
    }
    assert Counter(each["status"] for each in written if "shipment" not in each) == {
        "PENDING": 25,
        "PROCESSING": 20,
        "CANCELLED": 18,
    }
    assert "null" not in json.dumps(written)
    assert sum(each["totalAmount"] for each in written) == 29985.0
    mine = [each["orderId"] for each in written if each["customer"]["customerId"] == "CUST-42"]
    assert mine == ["ORD-10164", "ORD-10114", "ORD-10064", "ORD-10014"]
    pending = [each["orderId"] for each in written if each["status"] == "PENDING"]
    assert (pending[0], pending[-1]) == ("ORD-10195", "ORD-10002")


# -- the listing ---------------------------------------------------------------------------------------------------


def test_the_listing_is_the_expected_one(shop: Shop, form: str) -> None:
    listed = shop.registry.snapshot(LEGACY)["tools"]
    if form == "dataclass":
        assert without_optional_members(listed) == without_optional_members(EXPECTED["tools"])
        shipment = listed[0]["outputSchema"]["properties"]["shipment"]
        assert {"type": "null"} in shipment["anyOf"]
    else:
        assert listed == EXPECTED["tools"]


def test_the_example_serves_that_listing(example: ModuleType) -> None:
    registry: Registry = example.server.registry
    assert registry.snapshot(LEGACY)["tools"] == EXPECTED["tools"]
    assert registry.skipped == []


def test_older_revisions_see_no_output_schemas(shop: Shop) -> None:
    assert all(each.output_schema is None for each in shop.registry.list("tool", "2025-03-26"))


# -- the calls -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [LEGACY, MODERN])
@pytest.mark.parametrize("name", A_AND_B)
async def test_each_call_gives_the_expected_result(shop: Shop, name: str, version: str) -> None:
    if name == "B2":
        await call(shop, **{key: CALLS["B1"][key] for key in ("name", "arguments")})
    result = await call(shop, CALLS[name]["name"], CALLS[name]["arguments"], version=version)
    assert_same(result, expected(name))


async def test_refused_arguments_do_not_enter_the_handler(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    entered: list[str] = []
    monkeypatch.setattr(shop.orders, "get", entered.append)
    for name in ("A4", "A5", "A6"):
        assert (await call(shop, CALLS[name]["name"], CALLS[name]["arguments"]))["isError"]
    assert entered == []


async def test_an_update_is_idempotent_and_keeps_the_previous_status(shop: Shop) -> None:
    first = await call(shop, CALLS["B1"]["name"], CALLS["B1"]["arguments"])
    second = await call(shop, CALLS["B2"]["name"], CALLS["B2"]["arguments"])
    assert first == second
    assert "structuredContent" not in first
    assert [status for status, _ in shop.orders.history["ORD-10002"]] == ["PENDING"]


async def test_rechecking_marks_what_was_delivered_and_reports_progress(shop: Shop) -> None:
    for name in ("C1", "C2", "C3"):
        client = Client()
        assert_same(await call(shop, CALLS[name]["name"], CALLS[name]["arguments"], client), expected(name))
        checked = expected(name)["structuredContent"]["checked"]
        assert client.told == [(number, checked) for number in range(1, checked + 1)]


async def test_cancelling_asks_the_user_and_happens_once(shop: Shop) -> None:
    client = Client(lambda form: Reply("accept", form(confirm=True)))
    assert_same(await call(shop, CALLS["D1"]["name"], CALLS["D1"]["arguments"], client), expected("D1"))
    ((message, form),) = client.asked
    assert message == "Cancel order ORD-10004? This cannot be undone."
    assert msgspec.json.schema(form)["$defs"]["Confirm"]["properties"] == {
        "confirm": {"type": "boolean", "description": "Cancel this order for good"}
    }
    again = Client(lambda form: Reply("accept", form(confirm=True)))
    assert_same(await call(shop, CALLS["D2"]["name"], CALLS["D2"]["arguments"], again), expected("D2"))
    assert again.asked == []


@pytest.mark.parametrize(
    "answer",
    [
        lambda form: Reply("decline"),
        lambda form: Reply("cancel"),
        lambda form: Reply("accept", form(confirm=False)),
    ],
)
async def test_nothing_is_cancelled_without_a_yes(shop: Shop, answer: Callable[[Any], Reply]) -> None:
    assert_same(await call(shop, CALLS["D3"]["name"], CALLS["D3"]["arguments"], Client(answer)), expected("D3"))
    assert shop.orders.get("ORD-10011").status == "PROCESSING"


async def test_what_cannot_be_cancelled_or_asked_is_an_error_without_a_question(shop: Shop) -> None:
    client = Client()
    assert_same(await call(shop, CALLS["D4"]["name"], CALLS["D4"]["arguments"], client), expected("D4"))
    mute = Client(can_elicit=False)
    assert_same(await call(shop, CALLS["D5"]["name"], CALLS["D5"]["arguments"], mute), expected("D5"))
    assert client.asked == mute.asked == []


# -- variants of the output ----------------------------------------------------------------------------------------


class Sent(Struct, rename="camel"):
    tracking_number: str


class Required(Struct):
    shipment: Sent


class MayBeAbsent(Struct):
    shipment: Sent | UnsetType = UNSET


class MayBeNull(Struct):
    shipment: Sent | None = None


@pytest.mark.parametrize(
    ("kind", "absent", "failing"),
    [(Required, None, 63), (MayBeAbsent, None, 63), (MayBeAbsent, UNSET, 0), (MayBeNull, None, 0)],
)
def test_a_null_shipment_fails_where_the_type_does_not_admit_it(
    example: ModuleType, kind: Any, absent: Any, failing: int
) -> None:
    registry = Registry()
    orders = example.Orders()

    @registry.tool(output_schema=True)
    def get_order(order_id: str) -> kind:
        shipment = orders.get(order_id).shipment
        return kind(absent if shipment is UNSET else Sent(shipment.tracking_number))

    handler = registry.find_tool("get_order")
    assert handler is not None
    results = [
        handler.invoke(CallToolParams("get_order", Raw(f'{{"order_id":"{order.order_id}"}}'.encode())), None, LEGACY)
        for order in orders
    ]
    failed = [result for result in results if result.is_error]
    assert len(failed) == failing
    for result in failed:
        assert result.structured_content is UNSET
        assert result.content[0].text == (
            "Tool (get_order) output validation failed: Validation failed: JSON schema validation errors: "
            "[/shipment: null found, object expected]"
        )


def test_a_status_typed_as_the_enumeration_is_checked_before_the_handler(example: ModuleType) -> None:
    registry = Registry()
    status: Any = type(example.Orders().get("ORD-10001").status)

    @registry.tool
    def get_orders_by_status(status: status) -> None:
        raise AssertionError

    handler = registry.find_tool("get_orders_by_status")
    assert handler is not None
    assert handler.describe(LEGACY).input_schema["properties"]["status"] == {
        "type": "string",
        "enum": ["PENDING", "PROCESSING", "SHIPPED", "DELIVERED", "CANCELLED"],
    }
    result = handler.invoke(CallToolParams("f", Raw(b'{"status":"IN_TRANSIT"}')), None, LEGACY)
    assert result.content[0].text == (
        "Tool (get_orders_by_status) input validation failed: Validation failed: JSON schema validation errors: "
        '[/status: value "IN_TRANSIT" must be one of [PENDING, PROCESSING, SHIPPED, DELIVERED, CANCELLED]]'
    )
