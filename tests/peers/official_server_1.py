"""Runs where the official SDK 1 is installed: a server made with it, for our client. The tools are those of SDK 2."""
# mypy: ignore-errors
# pyright: basic

from typing import Any

import anyio
from mcp.server.fastmcp import Context, FastMCP
from mcp.types import Completion, SamplingMessage, TextContent
from pydantic import BaseModel

app = FastMCP("theirs", instructions="Call the tools.")
running = 0


class Booking(BaseModel):
    seats: int
    window: bool = False


class Point(BaseModel):
    x: float
    y: float


@app.tool()
async def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@app.tool()
async def locate(x: float, y: float) -> Point:
    """Return structured content."""
    return Point(x=x, y=y)


@app.tool()
async def fail() -> str:
    """Fail."""
    raise ValueError("it did not work")


@app.tool()
async def steps(count: int, ctx: Context) -> str:
    """Report progress and log."""
    for step in range(1, count + 1):
        await ctx.report_progress(step, count, f"step {step}")
        await ctx.info(f"at step {step}")
    return "done"


@app.tool()
async def sleep(seconds: float) -> str:
    """Take that long."""
    global running
    running += 1
    try:
        await anyio.sleep(seconds)
    finally:
        running -= 1
    return "slept"


@app.tool()
async def count_running() -> int:
    """Tell how many calls of ``sleep`` have not ended."""
    return running


@app.tool()
async def book(ctx: Context) -> str:
    """Ask the user by a form."""
    reply = await ctx.elicit("How many seats?", Booking)
    return f"{reply.data.seats} seats, window: {reply.data.window}" if reply.action == "accept" else reply.action


@app.tool()
async def think(topic: str, ctx: Context) -> str:
    """Ask the client's model."""
    content = TextContent(type="text", text=f"Say something about {topic}.")
    answer = await ctx.session.create_message([SamplingMessage(role="user", content=content)], max_tokens=50)
    return f"{answer.model}: {answer.content.text}"


@app.tool()
async def folders(ctx: Context) -> str:
    """Ask for the client's folders."""
    return ", ".join(str(root.uri) for root in (await ctx.session.list_roots()).roots)


@app.tool()
async def change(ctx: Context) -> str:
    """Change the list of tools."""
    app.add_tool(sleep, name="sleep_more")
    await ctx.session.send_tool_list_changed()
    return "changed"


@app.resource("theirs://note", mime_type="text/plain")
def note() -> str:
    """A text."""
    return "noted"


@app.resource("theirs://user/{name}")
def user(name: str) -> str:
    """A template."""
    return f"user {name}"


@app.prompt()
def review(code: str) -> str:
    """Ask for a review."""
    return f"Review {code}"


@app.completion()
async def complete(ref: Any, argument: Any, context: Any) -> Any:
    return Completion(values=[word for word in ("python", "pascal", "rust") if word.startswith(argument.value)])


if __name__ == "__main__":
    app.run()
