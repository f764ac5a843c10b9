"""The example as it is run: the resource, the prompt and the completion beside its six tools."""

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from types import ModuleType
from typing import Any

import anyio
import pytest

from mcpcore import Client, PeerError, stdio
from mcpcore.types.completion import PromptReference, ResourceTemplateReference
from tests.support.order_service import EXAMPLE, EXPECTED, expected
from tests.support.reaching import reached

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def connected(example: ModuleType, over: str, era: Any) -> AsyncGenerator[Client]:
    """A client of the example's own server."""
    with anyio.fail_after(20):
        if over == "stdio":
            async with Client(stdio(sys.executable, str(EXAMPLE)), eras=(era,)) as client:
                yield client
        else:
            async with reached(example.server, over) as target, Client(target, eras=(era,)) as client:
                yield client


async def test_everything_that_the_example_offers_is_listed(example: ModuleType, over: str, era: str) -> None:
    async with connected(example, over, era) as client:
        assert [tool.name for tool in await client.list_tools()] == [tool["name"] for tool in EXPECTED["tools"]]
        assert await client.list_resources() == []
        (template,) = await client.list_resource_templates()
        assert (template.uri_template, template.name) == ("order://{order_id}", "order")
        assert (template.mime_type, template.description) == (
            "application/json",
            "One order with customer, items and shipment.",
        )
        (prompt,) = await client.list_prompts()
        assert (prompt.name, prompt.description) == (
            "explain_order",
            "Explain to a customer what happens with an order.",
        )
        assert [(each.name, each.required, each.description) for each in prompt.arguments or ()] == [
            ("orderId", True, "The order ID, for example ORD-10001")
        ]


async def test_an_order_is_read_as_the_tool_returns_it(example: ModuleType, over: str, era: str) -> None:
    async with connected(example, over, era) as client:
        (contents,) = (await client.read_resource("order://ORD-10002")).contents
        assert (contents.uri, contents.mime_type) == ("order://ORD-10002", "application/json")
        assert json.loads(contents.text or "") == expected("A2")["structuredContent"]
        with pytest.raises(PeerError) as caught:
            await client.read_resource("order://ORD-99999")
        assert caught.value.code == (-32602 if era == "modern" else -32002)
        assert caught.value.data == {"uri": "order://ORD-99999"}


async def test_the_prompt_is_about_one_order(example: ModuleType, over: str, era: str) -> None:
    async with connected(example, over, era) as client:
        prompt = await client.get_prompt("explain_order", {"orderId": "ORD-10002"})
        assert [(message.role, getattr(message.content, "text", None)) for message in prompt.messages] == [
            ("user", "Explain to Customer 8 why order ORD-10002 is PENDING, and what comes next.")
        ]
        with pytest.raises(PeerError, match="Missing argument 'orderId' of prompt 'explain_order'") as caught:
            await client.get_prompt("explain_order")
        assert caught.value.code == -32602


async def test_order_ids_are_completed_for_prompt_and_resource(example: ModuleType, over: str, era: str) -> None:
    async with connected(example, over, era) as client:
        for ref, argument in (
            (PromptReference("explain_order"), "orderId"),
            (ResourceTemplateReference("order://{order_id}"), "order_id"),
        ):
            found = await client.complete(ref, argument, "ORD-1020")
            assert (found.values, found.total, found.has_more) == (["ORD-10200"], 1, False)
            found = await client.complete(ref, argument, "ORD-")
            assert (len(found.values), found.total, found.has_more) == (100, 200, True)
            assert found.values[0] == "ORD-10200"
            assert (await client.complete(ref, argument, "X")).values == []
