"""The benchmark's client on the official Python SDK: ``{memory|stdio|http} {legacy|modern} WINDOW SECONDS [SERVER…|URL]``."""

# mypy: disable-error-code="import-not-found"
# The peer lives in an environment of its own, and the loop is found beside this file when it runs as a program.

import asyncio
import sys

from calls import measure
from mcp import Client, StdioServerParameters
from mcp.server.mcpserver import MCPServer

server = MCPServer("bench", log_level="WARNING")


async def add(a: int, b: int) -> int:
    return a + b


server.add_tool(add, structured_output=False)


async def main(target: str, era: str, window: str, seconds: str, *command: str) -> None:
    transport = server if target == "memory" else command[0]  # a URL
    if target == "stdio":
        transport = StdioServerParameters(command=command[0], args=list(command[1:]))
    async with Client(transport, mode="legacy" if era == "legacy" else "2026-07-28") as client:

        async def call(number: int) -> str:
            result = await client.call_tool("add", {"a": number, "b": 7})
            return str(result.content[0].text) if not result.is_error else f"error: {result.content}"

        await measure(call, int(window), float(seconds))


asyncio.run(main(*sys.argv[1:]))
