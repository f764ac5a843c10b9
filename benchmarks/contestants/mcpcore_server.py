"""The benchmark's server on mcpcore: ``TOOLS [{stateless|sessions} {json|default} WORKERS PORT]``."""

import sys
from dataclasses import dataclass

from mcpcore import Context, Server, ToolError

TOOLS, *HTTP = sys.argv[1:]

server = Server("bench", state="stateless" if "stateless" in HTTP else "stateful")


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


async def count(steps: int, ctx: Context | None) -> str:  # None: a legacy client of a server without sessions
    for step in range(1, steps + 1):
        if ctx is not None:
            await ctx.progress(step, total=steps)
    return "done"


async def fail() -> str:
    raise ToolError("no")


async def announce() -> str:
    server.notify_tools_changed()
    return "done"


if int(TOOLS):
    for index in range(int(TOOLS)):
        server.tool(name=f"add_{index}")(add)
else:
    for handler in (add, add_sync, echo, fill, count, fail, announce):
        server.tool(handler)
    server.tool(output_schema=True)(locate)

if HTTP:
    # On uvicorn, uvloop and httptools. A reply is JSON unless something has to be sent before it: nothing to choose.
    _, _, workers, port = HTTP
    server.run("http", port=int(port), workers=int(workers))
else:
    server.run()
