"""The benchmark's server on FastMCP: ``TOOLS [{stateless|sessions} {json|default} PORT]``."""

# mypy: disable-error-code="import-not-found"
# The peer lives in an environment of its own.

import sys
from dataclasses import dataclass

from fastmcp import Context, FastMCP

TOOLS, *HTTP = sys.argv[1:]

server = FastMCP("bench")


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
        await ctx.report_progress(step, steps)
    return "done"


if int(TOOLS):
    for index in range(int(TOOLS)):
        server.tool(add, name=f"add_{index}", output_schema=None)
else:
    for handler in (add, add_sync, echo, fill, count):
        server.tool(handler, output_schema=None)
    server.tool(locate)

if HTTP:
    import uvicorn

    app = server.http_app(stateless_http="stateless" in HTTP, json_response="json" in HTTP)
    uvicorn.run(app, port=int(HTTP[-1]), loop="uvloop", http="httptools", access_log=False, log_level="warning")
else:
    server.run(show_banner=False, log_level="WARNING")
