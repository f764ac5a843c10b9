"""What the commands do."""

import argparse
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import anyio
import msgspec

from mcpcore.cli.arguments import read_arguments
from mcpcore.cli.loading import LoadError, UsageError, client_target, load_server
from mcpcore.cli.printing import print_json, print_offers, print_result
from mcpcore.exceptions import MCPCoreError, PeerError, ServerExited
from mcpcore.runtime.client import Client
from mcpcore.types.tools import CallToolResult

__all__ = ["CANNOT_LOAD", "call_tool", "lint_server", "list_offers", "run_server"]

CANNOT_LOAD = 3
"""The exit status when a server cannot be loaded, reached or understood."""


def run_server(options: argparse.Namespace) -> int:
    """``mcpcore run``: serve on stdio until the input ends, or over HTTP until a signal says stop."""
    if options.workers < 1:
        raise UsageError(f"--workers {options.workers}: give 1 or more")
    if options.workers > 1 and options.transport != "http":
        raise UsageError("--workers is for --transport http")
    server = load_server(options.target)
    if options.transport == "stdio":
        server.run()
        return 0
    path = "/mcp" if options.transport == "http" else "/sse"
    from mcpcore.runtime.workers import check_workers, is_worker  # with what HTTP needs

    try:
        if options.workers > 1:
            check_workers(server, options.transport, options.workers)
        if not is_worker():  # who started the workers has said it
            place = f"http://{options.host}:{options.port}{path}"
            crew = f" with {options.workers} workers" if options.workers > 1 else ""
            print(f"Serving {server.info.name} at {place}{crew}", file=sys.stderr)
        server.run(options.transport, host=options.host, port=options.port, workers=options.workers)
    except MCPCoreError as error:
        raise LoadError(str(error)) from None
    return 0


def list_offers(options: argparse.Namespace) -> int:
    """``mcpcore list``: what the server offers."""
    return _with_client(options, partial(_list, options))


def call_tool(options: argparse.Namespace) -> int:
    """``mcpcore call``: call a tool; 1 when it answers with an error."""
    return _with_client(options, partial(_call, options))


def lint_server(options: argparse.Namespace) -> int:
    """``mcpcore lint``: what could be said better about the handlers, one finding a line."""
    findings = load_server(options.target).registry.lint()
    if options.json:
        print_json(findings)
    else:
        for finding in findings:
            print(finding)
    return 0


def _with_client(options: argparse.Namespace, use: Callable[[Client], Awaitable[int]]) -> int:
    log = _ServerLog(is_shown=options.log)

    async def connect() -> int:
        target = client_target(options.target, log.take)
        async with Client(target, timeout=options.timeout, protocol_version=options.protocol_version) as client:
            return await use(client)

    try:
        return anyio.run(connect)
    except ServerExited as error:
        _, said, why = f"\n{error.stderr_tail}".rpartition("\nmcpcore: ")
        if error.returncode == CANNOT_LOAD and said:  # it was `mcpcore run`
            raise LoadError(why) from None
        raise LoadError(str(error)) from None
    except (MCPCoreError, ImportError) as error:  # HTTP needs a package that need not be installed
        raise LoadError(f"{error}{log.hint}") from None
    except KeyboardInterrupt:
        return 130


class _ServerLog:
    """What a server writes to its standard error. It is in the way of the result, unless somebody wants to see it."""

    def __init__(self, *, is_shown: bool) -> None:
        self._is_shown = is_shown
        self._lines = 0

    def take(self, line: str) -> None:
        self._lines += 1
        if self._is_shown:
            print(line, file=sys.stderr)

    @property
    def hint(self) -> str:
        return "\nThe server wrote to its standard error; --log shows it." if self._lines and not self._is_shown else ""


async def _list(options: argparse.Namespace, client: Client) -> int:
    has = client.server_capabilities
    found: dict[str, Any] = {}
    if has.tools is not None:
        found["tools"] = await client.list_tools()
    if has.resources is not None:
        found["resources"] = await client.list_resources()
        found["resourceTemplates"] = await client.list_resource_templates()
    if has.prompts is not None:
        found["prompts"] = await client.list_prompts()
    if options.json:
        print_json(found)
    else:
        print_offers(client, found)
    return 0


async def _call(options: argparse.Namespace, client: Client) -> int:
    tools = {tool.name: tool for tool in await client.list_tools()}
    tool = tools.get(options.tool)
    if tool is None:
        raise UsageError(f"unknown tool {options.tool!r}; there are: {', '.join(tools) or 'none'}")
    arguments = read_arguments(tool, options.arguments, options.object)
    try:
        result = await client.call_tool(tool.name, arguments)
    except PeerError as error:
        print(f"{error.message} ({error.code})", file=sys.stderr)
        return 1
    if options.json:
        structured = msgspec.UNSET if result.structured is None else result.structured
        print_json(CallToolResult(result.content, structured, result.is_error))
    else:
        print_result(result)
    return 1 if result.is_error else 0
