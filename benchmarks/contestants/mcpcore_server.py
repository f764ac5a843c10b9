"""The benchmark's server on mcpcore."""

import sys
from dataclasses import dataclass

from mcpcore import Context, Server

server = Server("bench")


@dataclass
class Point:
    x: int
    y: int


async def add(a: int, b: int) -> int:
    return a + b


def add_sync(a: int, b: int) -> int:
    return a + b


async def echo(text: str) -> str:
    return text


async def fill(size: int) -> str:
    return "x" * size


async def locate(x: int, y: int) -> Point:
    return Point(x, y)


async def count(steps: int, ctx: Context) -> str:
    for step in range(1, steps + 1):
        await ctx.progress(step, total=steps)
    return "done"


if len(sys.argv) > 1:
    for index in range(int(sys.argv[1])):
        server.tool(name=f"add_{index}")(add)
else:
    for handler in (add, add_sync, echo, fill, count):
        server.tool(handler)
    server.tool(output_schema=True)(locate)

server.run()
