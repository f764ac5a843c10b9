"""The variants of the acceptance scenario: optional fields, lists, enumerations, raw requests, failures, flags."""

import contextvars
import logging
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from types import ModuleType
from typing import Any, NotRequired, TypedDict

import anyio
import anyio.lowlevel
import anyio.to_thread
import msgspec
import pytest
from msgspec import UNSET, Struct, UnsetType

from mcpcore import CallToolResult, Client, Context, McpError, PeerError, Registry, Server
from mcpcore.providers.markers import CallToolRequest
from mcpcore.versions import VERSIONS
from tests.support.order_service import example_module
from tests.support.reaching import WAYS, reached
from tests.support.wires import MODERN

pytestmark = pytest.mark.anyio

LEGACY = "2025-11-25"

FAILURE = "Tool ({}) {} validation failed: Validation failed: JSON schema validation errors: [{}]"


@pytest.fixture(scope="module")
def example() -> Any:
    with example_module() as module:
        yield module


@pytest.fixture(params=WAYS)
def over(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@asynccontextmanager
async def serves(server: Server, over: str, version: str | None = None) -> AsyncGenerator[Client]:
    """A client of that server, reached that way."""
    with anyio.fail_after(30):
        async with reached(server, over) as target, Client(target, protocol_version=version, timeout=20) as client:
            yield client


class Shipment(Struct, rename="camel"):
    tracking_number: str


class Item(Struct, rename="camel"):
    sku: str
    unit_price: float


class Required(Struct, rename="camel"):
    order_id: str
    shipment: Shipment


class Optional(Struct, rename="camel"):
    order_id: str
    shipment: Shipment | UnsetType = UNSET


class Nullable(Struct, rename="camel"):
    order_id: str
    shipment: Shipment | None = None


class RequiredDict(TypedDict):
    orderId: str
    shipment: Shipment


class NotRequiredDict(TypedDict):
    orderId: str
    shipment: NotRequired[Shipment]


class NullableDict(TypedDict):
    orderId: str
    shipment: NotRequired[Shipment | None]


@dataclass
class RequiredData:
    orderId: str
    shipment: Shipment


@dataclass
class OptionalData:
    orderId: str
    shipment: Shipment | UnsetType = UNSET


@dataclass
class NullableData:
    orderId: str
    shipment: Shipment | None = None


class WithItems(Struct, rename="camel"):
    items: list[Item]


class ItemDict(TypedDict):
    sku: str
    unitPrice: float


class WithItemsDict(TypedDict):
    items: list[ItemDict]


@dataclass
class ItemData:
    sku: str
    unitPrice: float


@dataclass
class WithItemsData:
    items: list[ItemData]


def written(returns: Any, order_id: str, shipment: Any) -> Any:
    """An order of that type."""
    if not issubclass(returns, dict):
        return returns(order_id, shipment)
    return {"orderId": order_id} if shipment is UNSET else {"orderId": order_id, "shipment": shipment}


@pytest.mark.parametrize(
    ("returns", "absent", "omits", "sent"),
    [
        # what an order without a shipment is stored with, whether None is left out, what of it is sent
        (Required, None, False, "an error"),  # V1
        (RequiredDict, None, False, "an error"),
        (RequiredData, None, False, "an error"),
        (Optional, None, False, "an error"),  # V2
        (NotRequiredDict, None, False, "an error"),
        (OptionalData, None, False, "an error"),
        (Optional, UNSET, False, "nothing"),  # V3
        (NotRequiredDict, UNSET, False, "nothing"),
        (OptionalData, UNSET, False, "nothing"),
        (Nullable, None, False, "null"),  # V4
        (NullableDict, None, False, "null"),
        (NullableData, None, False, "null"),
        (Nullable, None, True, "nothing"),
        (NullableDict, UNSET, False, "nothing"),
        (NullableData, None, True, "nothing"),
    ],
)
async def test_optional_and_nullable_are_two_things(
    example: ModuleType, returns: Any, absent: Any, omits: bool, sent: str, over: str
) -> None:
    orders = example.Orders()
    server = Server("variant", registry=Registry(rename="camel", output_schema=True, omit_none=omits))

    def get_order(order_id: str) -> Any:
        order = orders.get(order_id)
        shipment = absent if order.shipment is UNSET else Shipment(order.shipment.tracking_number)
        return written(returns, order_id, shipment)

    get_order.__annotations__["return"] = returns
    server.add_tool(get_order, thread=False)
    asked = list(orders)[: None if over == "memory" else 20]
    unshipped = [order.order_id for order in asked if order.shipment is UNSET]
    async with serves(server, over, LEGACY) as client:
        (tool,) = await client.list_tools()
        results = {each.order_id: await client.call_tool("get_order", {"orderId": each.order_id}) for each in asked}
    schema: Any = tool.output_schema
    assert ("shipment" in schema["required"]) is (returns in (Required, RequiredDict, RequiredData))
    assert ("anyOf" in schema["properties"]["shipment"]) is (returns in (Nullable, NullableDict, NullableData))
    assert len(unshipped) == 63 or over != "memory"
    for order_id, result in results.items():
        if order_id not in unshipped:
            assert result.structured["shipment"]["trackingNumber"] == f"TRK-{order_id[4:]}"
        elif sent == "an error":
            assert result.is_error and result.structured is None
            assert result.text == FAILURE.format("get_order", "output", "/shipment: null found, object expected")
        else:
            assert result.structured == {"orderId": order_id} | ({"shipment": None} if sent == "null" else {})
            assert msgspec.json.decode(result.text) == result.structured


@pytest.mark.parametrize(
    ("returns", "value"),
    [
        (WithItems, WithItems([Item("SKU-001", None)])),  # type: ignore[arg-type]  # on purpose
        (WithItemsDict, {"items": [{"sku": "SKU-001", "unitPrice": None}]}),
        (WithItemsData, WithItemsData([ItemData("SKU-001", None)])),  # type: ignore[arg-type]  # on purpose
    ],
)
async def test_a_null_deep_inside_is_found_by_its_path(returns: Any, value: Any, over: str) -> None:  # V5
    server = Server("variant", output_schema=True)

    async def get_order() -> Any:
        return value

    get_order.__annotations__["return"] = returns
    server.add_tool(get_order)
    async with serves(server, over) as client:
        result = await client.call_tool("get_order")
    assert result.text == FAILURE.format("get_order", "output", "/items/0/unitPrice: null found, number expected")


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_list_is_published_where_the_revision_can_carry_it(  # V6
    example: ModuleType, version: str, over: str, caplog: pytest.LogCaptureFixture
) -> None:
    orders = example.Orders()
    server = Server("variant", rename="camel")
    with caplog.at_level(logging.INFO, "mcpcore.registry"):

        @server.tool(output_schema=True)
        async def get_customer_orders(customer_id: str) -> list[example.Order]:  # type: ignore[name-defined]  # loaded at run time
            return list(orders.of_customer(customer_id))

    assert sum("output schema" in record.getMessage() for record in caplog.records) == 1
    async with serves(server, over, version) as client:
        (tool,) = await client.list_tools()
        result = await client.call_tool("get_customer_orders", {"customerId": "CUST-42"})
    assert (tool.annotations is not None) is (version >= "2025-03-26")
    if version == MODERN:
        assert tool.output_schema is not None and tool.output_schema["type"] == "array"
        assert isinstance(result.structured, list) and len(result.structured) == 4
    else:
        assert tool.output_schema is None and result.structured is None
    assert result.text.startswith('[{"orderId":"ORD-10164"')


async def test_a_wrapped_list_is_an_object_for_revisions_that_want_one(  # V7
    example: ModuleType, over: str
) -> None:
    orders = example.Orders()
    server = Server("variant", rename="camel")

    @server.tool(output_schema="wrap")
    async def get_customer_orders(customer_id: str) -> list[example.Order]:  # type: ignore[name-defined]  # loaded at run time
        return list(orders.of_customer(customer_id))

    async with serves(server, over, LEGACY) as client:
        await client.list_tools()
        result = await client.call_tool("get_customer_orders", {"customerId": "CUST-42"})
    assert list(result.structured) == ["result"] and len(result.structured["result"]) == 4


async def test_an_enumeration_is_published_and_checked_before_the_handler(  # V8
    example: ModuleType, over: str
) -> None:
    server, entered, statuses = Server("variant"), list[str](), sys.modules["orders"].Status

    @server.tool
    async def get_orders_by_status(status: statuses) -> str:  # type: ignore[valid-type]  # loaded at run time
        entered.append(status)
        return str(status)

    async with serves(server, over) as client:
        (tool,) = await client.list_tools()
        names = ["PENDING", "PROCESSING", "SHIPPED", "DELIVERED", "CANCELLED"]
        assert tool.input_schema["properties"]["status"] == {"type": "string", "enum": names}
        result = await client.call_tool("get_orders_by_status", {"status": "IN_TRANSIT"})
    what = '/status: value "IN_TRANSIT" must be one of [PENDING, PROCESSING, SHIPPED, DELIVERED, CANCELLED]'
    assert result.text == FAILURE.format("get_orders_by_status", "input", what) and entered == []


async def test_a_raw_request_takes_any_arguments(over: str) -> None:  # V9
    server, seen = Server("variant"), list[Any]()

    @server.tool
    async def search_orders(request: CallToolRequest) -> str:
        seen.append(request.arguments)
        return request.name

    async with serves(server, over) as client:
        (tool,) = await client.list_tools()
        assert tool.input_schema == {"type": "object", "properties": {}, "required": []}
        await client.call_tool("search_orders", {"any": 1, "thing": [2]})
        await client.call_tool("search_orders")
    assert seen == [{"any": 1, "thing": [2]}, {}]


class PaymentDown(Exception):
    pass


async def test_what_tools_raise_is_told_masked_or_answered(  # V10
    over: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server("variant")

    @server.tool
    def os_error() -> str:
        raise OSError("db host 10.0.0.5 password=hunter2")

    @server.tool
    def assertion() -> str:
        raise AssertionError("hunter2")

    @server.tool
    def exits() -> str:
        raise SystemExit("hunter2")

    @server.tool(raises=(PaymentDown,))
    async def payment() -> str:
        raise PaymentDown("hunter2")

    data = {"elicitations": [{"mode": "url", "elicitationId": "e", "url": "https://example.com", "message": "m"}]}

    @server.tool
    def url_now() -> str:
        raise McpError(-32042, "URL needed", data)

    @server.tool
    async def url_later() -> str:
        await anyio.lowlevel.checkpoint()
        raise McpError(-32042, "URL needed", data)

    @server.tool
    async def url_yielded() -> AsyncIterator[str]:
        yield "discarded"
        raise McpError(-32042, "URL needed", data)

    @server.tool
    def chained() -> str:
        try:
            raise OSError("hunter2")
        except OSError as error:
            raise ValueError("outer") from error

    async with serves(server, over, LEGACY) as client:
        caplog.set_level(logging.INFO, "mcpcore.audit")
        for name in ("os_error", "assertion", "exits"):
            result = await client.call_tool(name)
            assert result.is_error and result.text.startswith(f"Error invoking method: {name}\nInternal error (ref ")
            reference = result.text.rpartition(" ")[2].rstrip(")")
            assert reference in caplog.text
        with pytest.raises(PeerError) as caught:
            await client.call_tool("payment")
        assert (caught.value.code, caught.value.message, caught.value.data) == (-32603, "Internal error", None)
        for name in ("url_now", "url_later", "url_yielded"):
            with pytest.raises(PeerError) as caught:
                await client.call_tool(name)
            assert (caught.value.code, caught.value.message, caught.value.data) == (-32042, "URL needed", data)
        assert (await client.call_tool("chained")).text == "Error invoking method: chained\nouter"
    assert "Traceback" in caplog.text
    outcomes = {record.tool: record.outcome for record in caplog.records if record.name == "mcpcore.audit"}  # type: ignore[attr-defined]  # facts of the record
    told = dict.fromkeys(("os_error", "assertion", "exits", "chained"), "tool_error")
    assert outcomes == told | dict.fromkeys(("payment", "url_now", "url_later", "url_yielded"), "hard_error")


class Colour(StrEnum):
    RED = "red"


async def test_the_flag_has_no_effect_on_what_has_no_schema_and_says_so(  # V11
    over: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server("variant")

    async def integer() -> int:
        return 1

    async def text() -> str:
        return "x"

    async def nothing() -> None:
        return None

    async def colour() -> Colour:
        return Colour.RED

    async def whole() -> CallToolResult:
        return CallToolResult.text("x")

    with caplog.at_level(logging.WARNING, "mcpcore.registry"):
        for function in (integer, text, nothing, colour, whole):
            server.add_tool(function, output_schema=True)
    warned = [name for name in ("integer", "text", "nothing", "colour", "whole") if f"'{name}'" in caplog.text]
    assert warned == ["integer", "text", "nothing", "colour"]
    async with serves(server, over, LEGACY) as client:
        for tool in await client.list_tools():
            assert tool.output_schema is None
            assert (await client.call_tool(tool.name)).structured is None


async def test_four_hints_are_published_when_none_were_given(over: str) -> None:  # V12
    server = Server("variant")
    server.tool(lambda: "x", name="plain")
    async with serves(server, over) as client:
        (tool,) = await client.list_tools()
    hints = tool.annotations
    assert hints is not None
    given = (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint)
    assert given == (False, True, False, True)


async def test_a_context_is_never_an_argument(over: str) -> None:
    server = Server("variant")

    @server.tool
    async def inject(ctx: Context, value: int = 1) -> str:
        return f"{type(ctx).__name__} {value}"

    async with serves(server, over) as client:
        (tool,) = await client.list_tools()
        assert list(tool.input_schema["properties"]) == ["value"]
        assert (await client.call_tool("inject")).text == "Context 1"
        refused = await client.call_tool("inject", {"ctx": {}})
    assert refused.text == FAILURE.format("inject", "input", "/ctx: unexpected property")


caller: contextvars.ContextVar[str] = contextvars.ContextVar("caller", default="nobody")


async def test_a_fast_tool_answers_one_client_while_a_slow_def_runs_for_another(over: str) -> None:  # V13
    async def name_caller(message: Any, call_next: Any) -> Any:
        if message.method == "tools/call":
            caller.set(str(message.caller.info.name))
        return await call_next(message)

    server = Server("variant", middleware=[name_caller])
    begun, release = threading.Event(), threading.Event()

    @server.tool
    def slow() -> str:
        begun.set()
        assert release.wait(20)
        return f"slow for {caller.get()}"

    @server.tool
    async def fast() -> str:
        await anyio.lowlevel.checkpoint()
        return f"fast for {caller.get()}"

    said: list[str] = []

    async def call_slow(client: Client) -> None:
        said.append((await client.call_tool("slow")).text)

    with anyio.fail_after(30):
        async with (
            reached(server, over) as target,
            Client(target, name="ada") as ada,
            Client(target, name="bob") as bob,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(call_slow, ada)
            try:
                assert await anyio.to_thread.run_sync(begun.wait, 20)
                said.append((await bob.call_tool("fast")).text)
            finally:
                release.set()
    assert said == ["fast for bob", "slow for ada"]
