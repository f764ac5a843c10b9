"""What the commands do."""

import argparse
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import anyio
import msgspec

from mcpcore.cli.loading import LoadError, client_target, load_server
from mcpcore.exceptions import MCPCoreError
from mcpcore.runtime.client import Client, ToolResult
from mcpcore.types.content import TextContent
from mcpcore.types.tools import CallToolResult, Tool

__all__ = ["call_tool", "list_offers", "run_server"]


def run_server(options: argparse.Namespace) -> int:
    """``mcpcore run``: serve on stdio until the input ends."""
    load_server(options.target).run()
    return 0


def list_offers(options: argparse.Namespace) -> int:
    """``mcpcore list``: what the server offers."""
    return _with_client(options, _list)


def call_tool(options: argparse.Namespace) -> int:
    """``mcpcore call``: call a tool; 1 when it answers with an error."""
    return _with_client(options, partial(_call, options))


def _with_client(options: argparse.Namespace, use: Callable[[Client, bool], Awaitable[int]]) -> int:
    async def connect() -> int:
        client = Client(
            client_target(options.target),
            timeout=options.timeout,
            protocol_version=options.protocol_version,
        )
        async with client:
            return await use(client, options.json)

    try:
        return anyio.run(connect)
    except (MCPCoreError, ValueError) as error:
        raise LoadError(str(error)) from None
    except KeyboardInterrupt:
        return 130


async def _list(client: Client, as_json: bool) -> int:
    has = client.server_capabilities
    found: dict[str, Any] = {}
    if has.tools is not None:
        found["tools"] = await client.list_tools()
    if has.resources is not None:
        found["resources"] = await client.list_resources()
        found["resourceTemplates"] = await client.list_resource_templates()
    if has.prompts is not None:
        found["prompts"] = await client.list_prompts()
    if as_json:
        _print_json(found)
        return 0
    info = client.server_info
    name = f"{info.name} {info.version}" if info else "unnamed server"
    print(f"{name}, protocol {client.protocol_version}")
    for tool in found.get("tools", ()):
        _entry("tool", f"{tool.name}({_signature(tool)})", tool.description)
    for resource in found.get("resources", ()):
        _entry("resource", resource.uri, resource.description)
    for template in found.get("resourceTemplates", ()):
        _entry("template", template.uri_template, template.description)
    for prompt in found.get("prompts", ()):
        arguments = ", ".join(argument.name for argument in prompt.arguments or ())
        _entry("prompt", f"{prompt.name}({arguments})", prompt.description)
    return 0


def _entry(kind: str, name: str, description: str | None) -> None:
    first = (description or "").strip().partition("\n")[0]
    print(f"{kind:<9} {name}" + (f"\n          {first}" if first else ""))


def _signature(tool: Tool) -> str:
    required: Any = tool.input_schema.get("required") or []
    properties: Mapping[str, Any] = tool.input_schema.get("properties") or {}
    return ", ".join(name if name in required else f"{name}?" for name in properties)


async def _call(options: argparse.Namespace, client: Client, as_json: bool) -> int:
    tools = {tool.name: tool for tool in await client.list_tools()}
    tool = tools.get(options.tool)
    if tool is None:
        raise LoadError(f"unknown tool {options.tool!r}; there are: {', '.join(tools) or 'none'}")
    result = await client.call_tool(tool.name, _arguments(tool, options.arguments, options.object))
    if as_json:
        structured = msgspec.UNSET if result.structured is None else result.structured
        _print_json(CallToolResult(result.content, structured, result.is_error))
    else:
        _print_result(result)
    return 1 if result.is_error else 0


def _arguments(tool: Tool, pairs: list[str], whole: str | None) -> dict[str, Any]:
    """Put the arguments together; what a VALUE means depends on the tool's schema."""
    arguments: dict[str, Any] = {}
    if whole is not None:
        try:
            arguments = msgspec.json.decode(whole, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise LoadError(f"--arguments: not a JSON object: {error}") from None
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator:
            raise LoadError(f"{pair!r}: write arguments as NAME=VALUE")
        properties: Mapping[str, Any] = tool.input_schema.get("properties") or {}
        arguments[name] = _value(value, properties.get(name))
    return arguments


def _value(text: str, schema: Any) -> Any:
    kinds: Any = schema.get("type") if isinstance(schema, dict) else None
    if kinds == "string":
        return text
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    if isinstance(kinds, Sequence) and "string" in kinds:  # text unless it says null
        return value if value is None and "null" in kinds else text
    return value


def _print_result(result: ToolResult) -> None:
    stream = sys.stderr if result.is_error else sys.stdout
    if result.structured is not None and not result.is_error:
        _print_json(result.structured)
        return
    for block in result.content:
        text = block.text if isinstance(block, TextContent) else msgspec.json.encode(block).decode()
        print(text, file=stream)


def _print_json(value: Any) -> None:
    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
