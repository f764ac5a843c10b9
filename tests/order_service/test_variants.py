"""The variants of the acceptance scenario: optional fields, lists, enumerations, raw requests, failures, flags.

Each in the three forms of the data, in memory, over lines, over HTTP, and over stdio of a process of its own.
"""

from types import ModuleType
from typing import Any

import anyio
import msgspec
import pytest

from mcpcore import Client, PeerError
from mcpcore.versions import VERSIONS
from tests.support.order_variants import ELICITATIONS, Service
from tests.support.wires import MODERN

pytestmark = pytest.mark.anyio

LEGACY = "2025-11-25"
FAILURE = "Tool ({}) {} validation failed: Validation failed: JSON schema validation errors: [{}]"
STATUSES = ["PENDING", "PROCESSING", "SHIPPED", "DELIVERED", "CANCELLED"]


async def tool_of(client: Client, name: str) -> Any:
    """The definition of one tool."""
    return next(tool for tool in await client.list_tools() if tool.name == name)


@pytest.mark.parametrize(
    ("variant", "required", "nullable", "sent"),
    [
        ("V1", True, False, "an error"),
        ("V2", False, False, "an error"),
        ("V3", False, False, "nothing"),
        ("V4, null", False, True, "null"),
        ("V4, left out", False, True, "nothing"),
    ],
)
async def test_optional_and_nullable_are_two_things(
    service: Service, example: ModuleType, variant: str, required: bool, nullable: bool, sent: str
) -> None:
    orders = list(example.Orders())
    async with service.client({"variant": variant}, protocol_version=LEGACY) as client:
        schema = (await tool_of(client, "get_order")).output_schema
        results = [await client.call_tool("get_order", {"orderId": order.order_id}) for order in orders]
    assert ("shipment" in schema["required"]) is required
    assert ("anyOf" in schema["properties"]["shipment"]) is nullable
    unshipped = 0
    for order, result in zip(orders, results, strict=True):
        if order.shipment is not msgspec.UNSET:
            assert result.structured["shipment"]["trackingNumber"] == f"TRK-{order.order_id[4:]}"
            continue
        unshipped += 1
        if sent == "an error":
            assert result.is_error and result.structured is None
            assert result.text == FAILURE.format("get_order", "output", "/shipment: null found, object expected")
        else:
            assert not result.is_error and result.structured["orderId"] == order.order_id
            assert result.structured.get("shipment", "nothing") == (None if sent == "null" else "nothing")
            assert msgspec.json.decode(result.text) == result.structured
    assert unshipped == 63


async def test_a_null_deep_inside_is_found_by_its_path(service: Service) -> None:  # V5
    async with service.client({"variant": "V5"}) as client:
        result = await client.call_tool("get_order", {"orderId": "ORD-10001"})
    assert result.text == FAILURE.format("get_order", "output", "/items/0/unitPrice: null found, number expected")


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_list_is_published_where_the_revision_can_carry_it(service: Service, version: str) -> None:  # V6
    async with service.client({"variant": "V6"}, protocol_version=version) as client:
        tool = await tool_of(client, "get_customer_orders")
        result = await client.call_tool("get_customer_orders", {"customerId": "CUST-42"})
    assert (tool.annotations is not None) is (version >= "2025-03-26")
    if version == MODERN:
        assert tool.output_schema["type"] == "array"
        assert isinstance(result.structured, list) and len(result.structured) == 4
    else:
        assert tool.output_schema is None and result.structured is None
    assert result.text.startswith('[{"orderId":"ORD-10164"')
    logged = [record for record in service.log.records("mcpcore.registry") if "output schema" in record.text]
    assert [record.level for record in logged] == ["INFO"]


async def test_a_wrapped_list_is_an_object_for_revisions_that_want_one(service: Service) -> None:  # V7
    async with service.client({"variant": "V7"}, protocol_version=LEGACY) as client:
        assert (await tool_of(client, "get_customer_orders")).output_schema["required"] == ["result"]
        result = await client.call_tool("get_customer_orders", {"customerId": "CUST-42"})
    assert list(result.structured) == ["result"] and len(result.structured["result"]) == 4


async def test_an_enumeration_is_published_and_checked_before_the_handler(service: Service) -> None:  # V8
    async with service.client({"variant": "V8"}) as client:
        tool = await tool_of(client, "get_orders_by_status")
        refused = await client.call_tool("get_orders_by_status", {"status": "IN_TRANSIT"})
        noted = msgspec.json.decode((await client.call_tool("noted")).text)
        await client.call_tool("get_orders_by_status", {"status": "PENDING"})
        noted_then = msgspec.json.decode((await client.call_tool("noted")).text)
    assert tool.input_schema["properties"]["status"] == {"type": "string", "enum": STATUSES}
    what = f'/status: value "IN_TRANSIT" must be one of [{", ".join(STATUSES)}]'
    assert refused.text == FAILURE.format("get_orders_by_status", "input", what)
    assert (noted, noted_then) == ([], ["PENDING"])


async def test_a_raw_request_takes_any_arguments(service: Service) -> None:  # V9
    async with service.client({"variant": "V9"}) as client:
        tool = await tool_of(client, "search_orders")
        await client.call_tool("search_orders", {"any": 1, "thing": [2]})
        await client.call_tool("search_orders")
        noted = msgspec.json.decode((await client.call_tool("noted")).text)
    assert tool.input_schema == {"type": "object", "properties": {}, "required": []}
    assert noted == [{"any": 1, "thing": [2]}, {}]


async def test_what_tools_raise_is_told_masked_or_answered(service: Service) -> None:  # V10
    references = {}
    async with service.client({"variant": "V10"}, protocol_version=LEGACY) as client:
        for name in ("os_error", "assertion", "exits"):
            result = await client.call_tool(name)
            assert result.is_error and result.text.startswith(f"Error invoking method: {name}\nInternal error (ref ")
            references[name] = result.text.rpartition(" ")[2].rstrip(")")
        with pytest.raises(PeerError) as caught:
            await client.call_tool("payment")
        assert (caught.value.code, caught.value.message, caught.value.data) == (-32603, "Internal error", None)
        for name in ("url_now", "url_later", "url_yielded"):
            with pytest.raises(PeerError) as caught:
                await client.call_tool(name)
            assert (caught.value.code, caught.value.message, caught.value.data) == (-32042, "URL needed", ELICITATIONS)
        assert (await client.call_tool("chained")).text == "Error invoking method: chained\nouter"
    for name, reference in references.items():
        (record,) = (record for record in service.log.records("mcpcore.handlers") if reference in record.text)
        assert record.level == "ERROR" and f"in {name}" in record.traceback and "hunter2" in record.traceback
    outcomes = {record.tool: record.outcome for record in service.log.records("mcpcore.audit")}
    told = dict.fromkeys(("os_error", "assertion", "exits", "chained"), "tool_error")
    assert outcomes == told | dict.fromkeys(("payment", "url_now", "url_later", "url_yielded"), "hard_error")


async def test_the_flag_has_no_effect_on_what_has_no_schema_and_says_so(service: Service) -> None:  # V11
    names = ("integer", "text", "nothing", "colour", "whole")
    async with service.client({"variant": "V11"}, protocol_version=LEGACY) as client:
        for name in names:
            assert (await tool_of(client, name)).output_schema is None
            assert (await client.call_tool(name)).structured is None
    warnings = [each.text for each in service.log.records("mcpcore.registry") if each.level == "WARNING"]
    assert [name for text in warnings for name in names if f"'{name}'" in text] == [
        "integer",
        "text",
        "nothing",
        "colour",
    ]


async def test_four_hints_are_published_when_none_were_given(service: Service) -> None:  # V12
    async with service.client({"variant": "V12"}) as client:
        tools = await client.list_tools()
    assert len(tools) == 6
    for tool in tools:
        hints: Any = tool.annotations
        given = (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint)
        assert given == (False, True, False, True)
        assert tool.output_schema is None


async def test_a_fast_tool_answers_one_client_while_a_slow_def_runs_for_another(service: Service) -> None:  # V13
    said: list[str] = []

    async def call(client: Client, name: str) -> None:
        said.append((await client.call_tool(name)).text)

    async with service.target(variant="V13") as target, Client(target, name="ada", timeout=30) as ada:
        # a process has one client, which asks both
        two = Client(target, name="bob", timeout=30) if service.over != "stdio" else None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, ada, "slow")
            if two is None:
                await call(ada, "fast")
                await ada.call_tool("release")
            else:
                async with two as bob:
                    await call(bob, "fast")
                    await bob.call_tool("release")
    assert said == [f"{'ada' if two is None else 'bob'} fast", "ada slow"]
