"""Our client and our server over real sockets: uvicorn on asyncio, hypercorn on trio."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import anyio
import pytest

from mcpcore import Client, Context, Server
from mcpcore.types import LogMessageParams
from tests.support.serving import free_port

pytestmark = pytest.mark.anyio

ERAS: pytest.MarkDecorator = pytest.mark.parametrize("era", ["modern", "legacy"])


@dataclass
class Name:
    name: str


class Watched:
    """A server, and what happened in it."""

    def __init__(self) -> None:
        self.server = server = Server("watched", version="1")
        self.waiting, self.cancelled = anyio.Event(), anyio.Event()

        @server.tool
        async def add(a: int, b: int) -> int:
            """Add."""
            return a + b

        @server.tool
        async def tell(ctx: Context, size: int) -> str:
            """Report and log, then return a text."""
            await ctx.progress(1, total=2)
            await ctx.info("half")
            await ctx.progress(2, total=2)
            return "ö" * size

        @server.tool
        async def ask(ctx: Context) -> str:
            """Ask the user, then the model."""
            reply = await ctx.elicit("Who?", Name)
            said = await ctx.sample("Greet", max_tokens=5)
            return f"{reply.value} {said.content}"

        @server.tool
        async def wait() -> None:
            """Wait until cancelled."""
            self.waiting.set()
            try:
                await anyio.sleep_forever()
            finally:
                self.cancelled.set()


@asynccontextmanager
async def serving(server: Server, transport: Literal["http", "sse"] = "http") -> AsyncIterator[str]:
    """Serve beside the test and yield the URL."""
    port = free_port()
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(server.serve, transport, port=port))
            while True:
                try:
                    await (await anyio.connect_tcp("127.0.0.1", port)).aclose()
                    break
                except OSError:
                    await anyio.sleep(0.02)  # it has not got as far as listening
            yield f"http://127.0.0.1:{port}/{'mcp' if transport == 'http' else 'sse'}"
            server.stop()


@ERAS
async def test_calls_report_log_and_answer(era: Any) -> None:
    logged: list[LogMessageParams] = []
    seen: list[float] = []
    watched = Watched()
    async with serving(watched.server) as url, Client(url, eras=[era], on_log=logged.append) as client:
        await client.set_log_level("info")
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
        told = await client.call_tool(
            "tell", {"size": 3}, on_progress=lambda progress, total, message: seen.append(progress)
        )
    assert (told.text, seen, [each.data for each in logged]) == ("ööö", [1, 2], ["half"])


@pytest.mark.parametrize("transport", ["http", "sse"])
@ERAS
async def test_questions_are_answered(era: Any, transport: Any) -> None:
    if (transport, era) == ("sse", "modern"):
        era = "legacy"  # the only one it has; what else is asked for is not spoken
    watched = Watched()
    async with serving(watched.server, transport) as url:
        client = Client(url, eras=[era], elicitation=lambda form: {"name": "Ann"}, sampling=lambda request: "Hi")
        async with client:
            said = (await client.call_tool("ask")).text
    assert said.startswith("Name(name='Ann') ") and "'Hi'" in said


@ERAS
async def test_cancelling_a_call_cancels_its_handler(era: Any) -> None:
    watched = Watched()
    async with serving(watched.server) as url, Client(url, eras=[era]) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "wait")
            await watched.waiting.wait()
            tasks.cancel_scope.cancel()
        await watched.cancelled.wait()
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"


@ERAS
async def test_a_long_text_arrives_whole(era: Any) -> None:
    watched = Watched()
    async with serving(watched.server) as url, Client(url, eras=[era]) as client:
        told = await client.call_tool("tell", {"size": 1_000_000}, on_progress=lambda *report: None)
        assert told.text == "ö" * 1_000_000


@ERAS
async def test_many_calls_at_once_lose_nothing(era: Any) -> None:
    seen: dict[int, list[float]] = {number: [] for number in range(100)}

    async def call(client: Client, number: int) -> None:
        told = await client.call_tool(
            "tell", {"size": number}, on_progress=lambda progress, total, message: seen[number].append(progress)
        )
        assert told.text == "ö" * number

    watched = Watched()
    served = serving(watched.server)
    async with served as url, Client(url, eras=[era]) as client, anyio.create_task_group() as tasks:
        for number in seen:
            tasks.start_soon(call, client, number)
    assert seen == {number: [1, 2] for number in seen}


async def test_a_subscription_hears_of_changes_and_ends_with_the_server() -> None:
    watched = Watched()

    async def more() -> None:
        """More."""

    async with serving(watched.server) as url, Client(url) as client, client.listen(tools=True) as changes:
        watched.server.add_tool(more)
        method, _ = await anext(changes)
        assert method == "notifications/tools/list_changed"
        watched.server.stop()
        with pytest.raises(StopAsyncIteration):
            await anext(changes)
