"""The benchmark's client on mcpcore: ``{memory|stdio|http} {legacy|modern} WINDOW SECONDS [SERVER…|URL]``."""

# mypy: disable-error-code="import-not-found"
# The loop is found beside this file when it runs as a program.

import asyncio
import sys
from typing import Any

from calls import measure

from mcpcore import Client, Server, stdio

server = Server("bench")


@server.tool
async def add(a: int, b: int) -> int:
    return a + b


async def main(target: str, era: str, window: str, seconds: str, *command: str) -> None:
    transport: Any = server if target == "memory" else command[0]  # a URL
    if target == "stdio":
        transport = stdio(*command)
    async with Client(transport, eras=["legacy" if era == "legacy" else "modern"]) as client:

        async def call(number: int) -> str:
            result = await client.call_tool("add", {"a": number, "b": 7})
            return result.text if not result.is_error else f"error: {result.text}"

        await measure(call, int(window), float(seconds))


asyncio.run(main(*sys.argv[1:]))
