"""The variants of the acceptance scenario: optional fields, lists, enumerations, raw requests, failures, flags."""

import logging
import sys
from collections.abc import AsyncIterator
from enum import StrEnum
from types import ModuleType
from typing import Any, NotRequired, TypedDict

import anyio
import anyio.lowlevel
import pytest
from msgspec import UNSET, Struct, UnsetType

from mcpcore import CallToolResult, Client, Context, McpError, PeerError, Server
from mcpcore.providers.markers import CallToolRequest
from mcpcore.versions import VERSIONS
from tests.support.order_service import example_module
from tests.support.wires import MODERN

pytestmark = pytest.mark.anyio

LEGACY = "2025-11-25"

FAILURE = "Tool ({}) {} validation failed: Validation failed: JSON schema validation errors: [{}]"


@pytest.fixture(scope="module")
def example() -> Any:
    with example_module() as module:
        yield module


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


class NotRequiredDict(TypedDict):
    orderId: str
    shipment: NotRequired[Shipment]


class WithItems(Struct, rename="camel"):
    items: list[Item]


async def outcomes(example: ModuleType, returns: Any, absent: Any) -> tuple[Any, list[Any]]:
    """Serve ``get_order`` with that return type and ``absent`` for what has not shipped; the schema and all results."""
    orders = example.Orders()
    server = Server("variant", rename="camel", output_schema=True)

    async def get_order(order_id: str) -> Any:
        order = orders.get(order_id)
        shipment = absent if order.shipment is UNSET else Shipment(order.shipment.tracking_number)
        if returns is NotRequiredDict:
            return {"orderId": order_id} if shipment is UNSET else {"orderId": order_id, "shipment": shipment}
        return returns(order_id, shipment)

    get_order.__annotations__["return"] = returns
    server.add_tool(get_order)
    with anyio.fail_after(30):
        async with Client(server, protocol_version=LEGACY) as client:
            (tool,) = await client.list_tools()
            results = [await client.call_tool("get_order", {"orderId": order.order_id}) for order in orders]
    return tool.output_schema, results


@pytest.mark.parametrize(
    ("returns", "absent", "required", "failing"),
    [
        (Required, None, True, 63),  # V1
        (Optional, None, False, 63),  # V2
        (Optional, UNSET, False, 0),  # V3
        (Nullable, None, False, 0),  # V4
        (NotRequiredDict, None, False, 63),
        (NotRequiredDict, UNSET, False, 0),
    ],
)
async def test_optional_and_nullable_are_two_things(
    example: ModuleType, returns: Any, absent: Any, required: bool, failing: int
) -> None:
    schema, results = await outcomes(example, returns, absent)
    assert ("shipment" in schema["required"]) is required
    assert ("anyOf" in schema["properties"]["shipment"]) is (returns is Nullable)
    failed = [result for result in results if result.is_error]
    assert (len(results), len(failed)) == (200, failing)
    assert {result.text for result in failed} <= {
        FAILURE.format("get_order", "output", "/shipment: null found, object expected")
    }
    assert all(result.structured is None for result in failed)


async def test_a_null_deep_inside_is_found_by_its_path() -> None:  # V5
    server = Server("variant", output_schema=True)

    @server.tool
    async def get_order() -> WithItems:
        return WithItems([Item("SKU-001", None)])  # type: ignore[arg-type]  # on purpose

    with anyio.fail_after(5):
        async with Client(server) as client:
            result = await client.call_tool("get_order")
    assert result.text == FAILURE.format("get_order", "output", "/items/0/unitPrice: null found, number expected")


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_list_is_published_where_the_revision_can_carry_it(  # V6
    example: ModuleType, version: str, caplog: pytest.LogCaptureFixture
) -> None:
    orders = example.Orders()
    server = Server("variant", rename="camel")
    with caplog.at_level(logging.INFO, "mcpcore.registry"):

        @server.tool(output_schema=True)
        async def get_customer_orders(customer_id: str) -> list[example.Order]:  # type: ignore[name-defined]  # loaded at run time
            return list(orders.of_customer(customer_id))

    assert sum("output schema" in record.getMessage() for record in caplog.records) == 1
    with anyio.fail_after(5):
        async with Client(server, protocol_version=version) as client:
            (tool,) = await client.list_tools()
            result = await client.call_tool("get_customer_orders", {"customerId": "CUST-42"})
    assert (tool.annotations is not None) is (version >= "2025-03-26")
    if version == MODERN:
        assert tool.output_schema is not None and tool.output_schema["type"] == "array"
        assert isinstance(result.structured, list) and len(result.structured) == 4
    else:
        assert tool.output_schema is None and result.structured is None
    assert result.text.startswith('[{"orderId":"ORD-10164"')


async def test_a_wrapped_list_is_an_object_for_revisions_that_want_one(example: ModuleType) -> None:  # V7
    orders = example.Orders()
    server = Server("variant", rename="camel")

    @server.tool(output_schema="wrap")
    async def get_customer_orders(customer_id: str) -> list[example.Order]:  # type: ignore[name-defined]  # loaded at run time
        return list(orders.of_customer(customer_id))

    with anyio.fail_after(5):
        async with Client(server, protocol_version=LEGACY) as client:
            await client.list_tools()
            result = await client.call_tool("get_customer_orders", {"customerId": "CUST-42"})
    assert list(result.structured) == ["result"] and len(result.structured["result"]) == 4


async def test_an_enumeration_is_published_and_checked_before_the_handler(example: ModuleType) -> None:  # V8
    server, entered, statuses = Server("variant"), list[str](), sys.modules["orders"].Status

    @server.tool
    async def get_orders_by_status(status: statuses) -> str:  # type: ignore[valid-type]  # loaded at run time
        entered.append(status)
        return str(status)

    with anyio.fail_after(5):
        async with Client(server) as client:
            (tool,) = await client.list_tools()
            names = ["PENDING", "PROCESSING", "SHIPPED", "DELIVERED", "CANCELLED"]
            assert tool.input_schema["properties"]["status"] == {"type": "string", "enum": names}
            result = await client.call_tool("get_orders_by_status", {"status": "IN_TRANSIT"})
    what = '/status: value "IN_TRANSIT" must be one of [PENDING, PROCESSING, SHIPPED, DELIVERED, CANCELLED]'
    assert result.text == FAILURE.format("get_orders_by_status", "input", what) and entered == []


async def test_a_raw_request_takes_any_arguments() -> None:  # V9
    server, seen = Server("variant"), list[Any]()

    @server.tool
    async def search_orders(request: CallToolRequest) -> str:
        seen.append(request.arguments)
        return request.name

    with anyio.fail_after(5):
        async with Client(server) as client:
            (tool,) = await client.list_tools()
            assert tool.input_schema == {"type": "object", "properties": {}, "required": []}
            await client.call_tool("search_orders", {"any": 1, "thing": [2]})
            await client.call_tool("search_orders")
    assert seen == [{"any": 1, "thing": [2]}, {}]


class PaymentDown(Exception):
    pass


async def test_what_tools_raise_is_told_masked_or_answered(caplog: pytest.LogCaptureFixture) -> None:  # V10
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

    with anyio.fail_after(5):
        async with Client(server, protocol_version=LEGACY) as client:
            for name in ("os_error", "assertion", "exits"):
                result = await client.call_tool(name)
                assert result.is_error and result.text.startswith(
                    f"Error invoking method: {name}\nInternal error (ref "
                )
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


class Colour(StrEnum):
    RED = "red"


async def test_the_flag_has_no_effect_on_what_has_no_schema_and_says_so(  # V11
    caplog: pytest.LogCaptureFixture,
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
    with anyio.fail_after(5):
        async with Client(server, protocol_version=LEGACY) as client:
            for tool in await client.list_tools():
                assert tool.output_schema is None
                assert (await client.call_tool(tool.name)).structured is None


async def test_four_hints_are_published_when_none_were_given() -> None:  # V12
    server = Server("variant")
    server.tool(lambda: "x", name="plain")
    with anyio.fail_after(5):
        async with Client(server) as client:
            (tool,) = await client.list_tools()
    hints = tool.annotations
    assert hints is not None
    given = (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint)
    assert given == (False, True, False, True)


async def test_a_context_is_never_an_argument() -> None:
    server = Server("variant")

    @server.tool
    async def inject(ctx: Context, value: int = 1) -> str:
        return f"{type(ctx).__name__} {value}"

    with anyio.fail_after(5):
        async with Client(server) as client:
            (tool,) = await client.list_tools()
            assert list(tool.input_schema["properties"]) == ["value"]
            assert (await client.call_tool("inject")).text == "Context 1"
            refused = await client.call_tool("inject", {"ctx": {}})
    assert refused.text == FAILURE.format("inject", "input", "/ctx: unexpected property")
