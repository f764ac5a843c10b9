"""The benchmark's server on FastMCP: ``TOOLS [{stateless|sessions} {json|default} WORKERS PORT]``."""

# mypy: disable-error-code="import-not-found"
# The peer lives in an environment of its own.

import sys
from dataclasses import dataclass

from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError

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


async def fail() -> str:
    raise ToolError("no")


if int(TOOLS):
    for index in range(int(TOOLS)):
        server.tool(add, name=f"add_{index}", output_schema=None)
else:
    for handler in (add, add_sync, echo, fill, count, fail):
        server.tool(handler, output_schema=None)
    server.tool(locate)

if HTTP:
    state, replies, workers, port = HTTP
    app = server.http_app(stateless_http=state == "stateless", json_response=replies == "json")

if __name__ == "__main__":
    if HTTP:
        import uvicorn

        # Workers import the application by its name.
        uvicorn.run(
            app if workers == "1" else "fastmcp_server:app",
            port=int(port),
            workers=int(workers),
            loop="uvloop",
            http="httptools",
            access_log=False,
            log_level="warning",
        )
    else:
        server.run(show_banner=False, log_level="WARNING")
