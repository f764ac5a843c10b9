"""The benchmark's server on the official Python SDK: ``TOOLS [{stateless|sessions} {json|default} WORKERS PORT]``."""

# mypy: disable-error-code="import-not-found"
# The peer lives in an environment of its own.

import sys
from dataclasses import dataclass

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp_types import SubscriptionsListenRequestParams

TOOLS, *HTTP = sys.argv[1:]

bus = InMemorySubscriptionBus()
server = MCPServer("bench", log_level="WARNING", subscriptions=bus)


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


async def announce(ctx: Context) -> str:
    await ctx.notify_tools_changed()
    return "done"


if int(TOOLS):
    for index in range(int(TOOLS)):
        server.add_tool(add, name=f"add_{index}", structured_output=False)
else:
    for handler in (add, add_sync, echo, fill, count, fail, announce):
        server.add_tool(handler, structured_output=False)
    server.add_tool(locate)

if HTTP:
    state, replies, workers, port = HTTP
    # Its limit is 1 024 subscriptions, and `MCPServer` has no argument for another one.
    listening = ListenHandler(bus, max_subscriptions=20_000)
    server._lowlevel_server.add_request_handler("subscriptions/listen", SubscriptionsListenRequestParams, listening)
    app = server.streamable_http_app(stateless_http=state == "stateless", json_response=replies == "json")

if __name__ == "__main__":
    if HTTP:
        import uvicorn

        # Workers import the application by its name.
        uvicorn.run(
            app if workers == "1" else "mcp_server:app",
            port=int(port),
            workers=int(workers),
            loop="uvloop",
            http="httptools",
            access_log=False,
            log_level="warning",
        )
    else:
        server.run()
