"""A server whose handlers tests can watch and hold."""

from typing import Any

import anyio

from mcpcore import ConnectionLost, Context, Server, ToolError

__all__ = ["World"]


class World:
    """The server, and what its handlers wait for.

    Attributes:
        started: A handler runs.
        release: Lets handlers go on.
        cancelled: A handler was cancelled.
        failed: The connection ended before a question was answered.
    """

    def __init__(self, **options: Any) -> None:
        self.server = server = Server("test", version="1.0.0", **options)
        self.started = anyio.Event()
        self.release = anyio.Event()
        self.cancelled = anyio.Event()
        self.failed = anyio.Event()

        @server.tool
        async def add(a: int, b: int) -> int:
            """Add."""
            return a + b

        @server.tool
        async def hold() -> str:
            """Wait until released."""
            self.started.set()
            try:
                await self.release.wait()
            except anyio.get_cancelled_exc_class():
                self.cancelled.set()
                raise
            return "released"

        @server.tool
        async def steps(ctx: Context) -> str:
            """Report progress, then wait until released."""
            await ctx.progress(1, total=2)
            self.started.set()
            try:
                await self.release.wait()
            except anyio.get_cancelled_exc_class():
                self.cancelled.set()
                raise
            return "done"

        @server.tool
        async def never(ctx: Context) -> str:
            """Report progress, then wait until cancelled."""
            await ctx.progress(1)
            try:
                await anyio.sleep_forever()
            except anyio.get_cancelled_exc_class():
                self.cancelled.set()
                raise
            return "never"

        @server.tool
        async def stubborn() -> str:
            """Go on although cancelled, until released."""
            self.started.set()
            with anyio.CancelScope(shield=True):
                await self.release.wait()
            return "finished"

        @server.tool
        async def announce(times: int) -> str:
            """Tell clients about changes."""
            for _ in range(times):
                server.notify_tools_changed()
            return "announced"

        @server.tool
        async def ask(ctx: Context) -> str:
            """Ask the user."""
            self.started.set()
            try:
                answer = await ctx.elicit("Name?", {"type": "object", "properties": {"name": {"type": "string"}}})
            except ConnectionLost:
                self.failed.set()
                return "lost"
            except anyio.get_cancelled_exc_class():
                self.cancelled.set()
                raise
            return f"{answer.action} {answer.value}"

        @server.tool
        async def detach(ctx: Context) -> str:
            """End the stream and answer later."""
            await ctx.close_stream()
            self.started.set()
            await self.release.wait()
            return "late"

        @server.tool
        async def report(times: int, ctx: Context, size: int = 0) -> str:
            """Report progress at once, again and again."""
            for number in range(times):
                await ctx.progress(number, message="x" * size)
            return "reported"

        @server.tool
        async def text(size: int) -> str:
            """Return so many characters."""
            return "x" * size

        @server.tool
        async def stumble(ctx: Context) -> str:
            """Report progress, then fail."""
            await ctx.progress(1)
            raise ToolError("stumbled")

        @server.tool
        async def crash(ctx: Context) -> str:
            """Report progress, then fail unexpectedly."""
            await ctx.progress(1)
            raise RuntimeError("unexpected")

        @server.prompt
        async def greeting() -> str:
            """A greeting."""
            return "Hello."

        @server.resource("test://text")
        async def text_resource() -> str:
            """A text."""
            return "text"
