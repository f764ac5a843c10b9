"""The client that the official conformance suite drives: one process for each scenario, told by its environment.

conformance client --command 'python tests/conformance/client.py' --requirements 2026-07-28
"""

import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from mcpcore import Client
from mcpcore.types import ElicitParams, Tool

Scenario = Callable[[Client], Awaitable[None]]

SCENARIOS: dict[str, Scenario] = {}


def scenario(name: str) -> Callable[[Scenario], Scenario]:
    """Register what to do in the scenario called ``name``."""

    def register(function: Scenario) -> Scenario:
        SCENARIOS[name] = function
        return function

    return register


def context() -> dict[str, Any]:
    """What the suite tells beside the scenario's name."""
    told: dict[str, Any] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    return told


def answer_form(params: ElicitParams) -> dict[str, Any]:
    """Fill a form in: with its defaults, and yes to what has none."""
    properties: dict[str, Any] = (params.requested_schema or {}).get("properties", {})
    return {name: field.get("default", _stub(field)) for name, field in properties.items()}


def _stub(schema: dict[str, Any]) -> Any:
    kind = schema.get("type")
    kind = next((each for each in kind if each != "null"), "null") if isinstance(kind, list) else kind
    return {"string": "text", "integer": 1, "number": 1, "boolean": True, "array": [], "null": None}.get(kind or "", {})


def stub_arguments(tool: Tool) -> dict[str, Any]:
    """Arguments that a tool accepts."""
    properties: dict[str, Any] = tool.input_schema.get("properties", {})
    return {name: _stub(properties.get(name, {})) for name in tool.input_schema.get("required", ())}


@scenario("initialize")
@scenario("json-schema-ref-no-deref")
async def list_only(client: Client) -> None:
    if client.server_capabilities.tools is not None:
        await client.list_tools()


@scenario("request-metadata")
async def ask_something(client: Client) -> None:
    await client.ping()


@scenario("tools_call")
async def add_numbers(client: Client) -> None:
    await client.list_tools()
    print((await client.call_tool("add_numbers", {"a": 5, "b": 3})).text)


@scenario("elicitation-sep1034-client-defaults")
async def elicit_defaults(client: Client) -> None:
    await client.list_tools()
    print((await client.call_tool("test_client_elicitation_defaults", {})).text)


@scenario("sse-retry")
async def reconnect(client: Client) -> None:
    await client.list_tools()
    print((await client.call_tool("test_reconnection", {})).text)


@scenario("json-schema-2020-12-preservation")
async def echo_schema(client: Client) -> None:
    tools = {tool.name: tool for tool in await client.list_tools()}
    await client.call_tool("json_schema_echo", {"schema": tools["json_schema_2020_12_tool"].input_schema})


@scenario("http-standard-headers")
async def use_everything(client: Client) -> None:
    for tool in await client.list_tools():
        await client.call_tool(tool.name, stub_arguments(tool))
    for resource in await client.list_resources():
        await client.read_resource(resource.uri)
    for prompt in await client.list_prompts():
        await client.get_prompt(prompt.name)


@scenario("http-custom-headers")
async def replay_calls(client: Client) -> None:
    await client.list_tools()
    for call in context()["toolCalls"]:
        await client.call_tool(call["name"], call["arguments"])


@scenario("http-invalid-tool-headers")
async def call_listed_tools(client: Client) -> None:
    for tool in await client.list_tools():
        await client.call_tool(tool.name, stub_arguments(tool))


@scenario("sep-2322-client-request-state")
async def answer_rounds(client: Client) -> None:
    await client.list_tools()
    for name in ("echo_state", "unrelated", "no_state", "no_result_type"):
        await client.call_tool(f"test_mrtr_{name}", {})


async def main(url: str, name: str) -> int:
    """Play the scenario called ``name`` against ``url``."""
    play = SCENARIOS.get(name)
    if play is None:
        print(f"nothing to do for scenario {name!r}", file=sys.stderr)
        return 0
    client = Client(
        url,
        name="mcpcore-conformance-client",
        timeout=20,
        elicitation=answer_form,
        sampling=lambda params: "text",
        roots=["file:///workspace"],
    )
    async with client:
        await play(client)
    return 0


if __name__ == "__main__":
    sys.exit(anyio.run(main, sys.argv[-1], os.environ.get("MCP_CONFORMANCE_SCENARIO", "")))
