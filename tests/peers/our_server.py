"""A server of ours with a handler of every kind, for the clients of others: ``our_server.py [http|sse PORT]``."""

import sys
from dataclasses import dataclass
from typing import Annotated, Literal

import anyio

from mcpcore import Audio, Context, Elicit, Image, Param, Server, ToolError
from mcpcore.types import EmbeddedResource, ResourceContents, ResourceLink, TextContent

server = Server("ours", version="1.2.3", title="Ours", instructions="Call the tools.")
PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 20
running = 0


@dataclass
class Point:
    """A point."""

    x: float
    y: float
    label: str | None = None


@dataclass
class Booking:
    """What the user fills in."""

    seats: int
    window: bool = False


# -- tools of every kind of result -------------------------------------------------------------------------------


@server.tool(title="Add numbers", read_only=True)
async def add(a: Annotated[int, Param("First")], b: Annotated[int, Param("Second")] = 1) -> int:
    """Add two numbers."""
    return a + b


@server.tool
def greet(name: str, style: Literal["short", "long"] = "short") -> str:
    """Greet somebody, in a worker thread."""
    return f"Hi {name}" if style == "short" else f"Good afternoon, {name}"


@server.tool(output_schema=True)
async def locate(x: float, y: float) -> Point:
    """Return structured content with a schema."""
    return Point(x, y, "here")


@server.tool
async def picture() -> Image:
    """Return an image."""
    return Image(PNG, format="png")


@server.tool
async def sound() -> Audio:
    """Return a sound."""
    return Audio(b"RIFF\x00\x00\x00\x00WAVE", format="wav")


@server.tool
async def mixed() -> list[TextContent | EmbeddedResource | ResourceLink]:
    """Return several blocks."""
    return [
        TextContent("first"),
        EmbeddedResource(ResourceContents("ours://note", "text/plain", text="noted")),
        ResourceLink("ours://note", "note"),
    ]


@server.tool
async def fail(how: Literal["tool", "crash"]) -> str:
    """Fail."""
    raise ToolError("it did not work") if how == "tool" else RuntimeError("secret detail")


# -- tools that talk to the client -------------------------------------------------------------------------------


@server.tool
async def steps(count: int, ctx: Context) -> str:
    """Report progress and log."""
    for step in range(1, count + 1):
        await ctx.progress(step, total=count, message=f"step {step}")
        await ctx.info(f"at step {step}", logger="steps")
        await anyio.sleep(0.01)  # the TypeScript client forgets progress that comes together with the answer
    return "done"


@server.tool
async def sleep(seconds: float) -> str:
    """Take that long."""
    global running
    running += 1
    try:
        await anyio.sleep(seconds)
    finally:
        running -= 1
    return "slept"


@server.tool
async def count_running() -> int:
    """Tell how many calls of ``sleep`` have not ended."""
    return running


@server.tool
async def book(ctx: Context) -> str:
    """Ask the user by a form."""
    reply = await ctx.elicit("How many seats?", Booking)
    if reply.value is None:
        return reply.action
    return f"{reply.value.seats} seats, window: {reply.value.window}"


@server.tool
async def confirm(sure: Annotated[bool | None, Elicit("Are you sure?")]) -> str:
    """Ask the user before the body runs."""
    return f"sure: {sure}"


@server.tool
async def think(topic: str, ctx: Context) -> str:
    """Ask the client's model."""
    answer = await ctx.sample(f"Say something about {topic}.", max_tokens=50)
    block = answer.content if not isinstance(answer.content, list) else answer.content[0]
    return f"{answer.model}: {block.text if isinstance(block, TextContent) else block}"


@server.tool
async def folders(ctx: Context) -> list[str]:
    """Ask for the client's folders."""
    return [root.uri for root in await ctx.roots()]


@server.tool
async def change(ctx: Context) -> str:
    """Change the list of tools, and a resource."""
    server.add_tool(sleep, name="sleep_more")
    server.notify_resource_updated("ours://note")
    return "changed"


# -- the rest ----------------------------------------------------------------------------------------------------


@server.resource("ours://note", mime_type="text/plain")
async def note() -> str:
    """A text."""
    return "noted"


@server.resource("ours://bytes", mime_type="application/octet-stream")
async def some_bytes() -> bytes:
    """Bytes that are no text, and need both special characters of base64."""
    return b"\xfb\xff\x00\xfe"


@server.resource("ours://user/{name}", mime_type="application/json")
async def user(name: str) -> dict[str, str]:
    """A template."""
    return {"name": name}


@server.prompt(title="Review code")
async def review(code: str, strict: bool = False) -> str:
    """Ask for a review."""
    return f"Review {code}" + (", strictly" if strict else "")


@server.complete(prompt="review", argument="code")
async def complete_code(value: str) -> list[str]:
    """Complete the argument ``code``."""
    return [word for word in ("python", "pascal", "rust") if word.startswith(value)]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("http" if sys.argv[1] == "http" else "sse", port=int(sys.argv[2]))
    else:
        server.run()
