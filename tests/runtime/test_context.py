"""What contexts hand to handlers: themselves in every kind and place, what belongs to the request, what outlives it."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Annotated, Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from mcpcore import Client, Context, Depends, Server, SyncContext, TransportContext
from mcpcore.runtime.middleware import Next
from mcpcore.runtime.request import Message
from mcpcore.types.completion import PromptReference
from mcpcore.versions import VERSIONS
from tests.support.reaching import WAYS, reached

pytestmark = pytest.mark.anyio

ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])
EVERYWHERE = pytest.mark.parametrize("over", WAYS)


class Mine(Context):
    def greeting(self) -> str:
        return f"hello, {self.protocol_version}"


class MineInThread(SyncContext):
    def greeting(self) -> str:
        return f"hello, {self.protocol_version}"


class MyTransport(TransportContext):
    def greeting(self) -> str:
        return f"hello over {self.transport}"


def of_every_kind() -> Server:
    server = Server("kinds")

    @server.tool
    async def tool(ctx: Mine) -> str:
        return ctx.greeting()

    @server.tool
    def tool_in_thread(ctx: "MineInThread | None") -> str:
        return "nobody" if ctx is None else ctx.greeting()

    @server.tool
    async def over(where: MyTransport) -> str:
        return where.greeting()

    def greeting(ctx: MineInThread) -> str:
        return ctx.greeting()

    @server.tool
    async def through_dependency(text: Annotated[str, Depends(greeting)]) -> str:
        return text

    @server.resource("a://fixed")
    def fixed(ctx: MineInThread) -> str:
        return ctx.greeting()

    @server.resource("a://{name}/page")
    async def page(ctx: Annotated[Mine, "mine"], name: str) -> str:
        return f"{name}: {ctx.greeting()}"

    @server.prompt
    async def prompt(*, ctx: Mine) -> str:
        return ctx.greeting()

    @server.complete(prompt="prompt", argument="a")
    async def completion(value: str, ctx: Mine) -> list[str]:
        return [value + ctx.greeting()]

    return server


@pytest.mark.parametrize("version", VERSIONS)
async def test_every_kind_receives_the_class_that_it_asks_for(version: str) -> None:
    hello = f"hello, {version}"
    with anyio.fail_after(10):
        async with Client(of_every_kind(), protocol_version=version) as client:
            for tool in ("tool", "tool_in_thread", "through_dependency"):
                assert (await client.call_tool(tool)).text == hello
            assert (await client.call_tool("over")).text == "hello over memory"
            contents: list[Any] = [*(await client.read_resource("a://fixed")).contents]
            contents += (await client.read_resource("a://x/page")).contents
            assert [each.text for each in contents] == [hello, f"x: {hello}"]
            content: Any = (await client.get_prompt("prompt")).messages[0].content
            assert content.text == hello
            assert (await client.complete(PromptReference("prompt"), "a", "x")).values == [f"x{hello}"]


@ERAS
@EVERYWHERE
async def test_the_session_is_named_where_there_is_one(era: Any, over: str) -> None:
    server = Server("named")

    @server.tool
    async def named(ctx: Context, where: TransportContext) -> bool:
        assert ctx.session_id == where.session_id == where.get("session_id")
        assert ctx.request_id == where.request_id and "request_id" not in where
        return ctx.session_id is not None

    with anyio.fail_after(10):
        async with reached(server, over) as target, Client(target, eras=(era,)) as client:
            assert (await client.call_tool("named")).text == ("true" if (over, era) == ("http", "legacy") else "false")


@ERAS
@EVERYWHERE
async def test_on_disconnect_is_called_when_the_connection_or_the_session_ends(era: Any, over: str) -> None:
    server = Server("watching")
    log: list[str] = []
    is_over = anyio.Event()

    @server.tool
    async def watch(ctx: Context) -> str:
        ctx.on_disconnect(lambda: log.append("gone"))
        ctx.on_disconnect(is_over.set)
        return "watching"

    with anyio.fail_after(10):
        async with reached(server, over) as target:
            async with Client(target, eras=(era,)) as client:
                await client.call_tool("watch")
                await client.list_tools()
                assert log == (["gone"] if (over, era) == ("http", "modern") else [])
            await is_over.wait()
    assert log == ["gone"]


@ERAS
async def test_the_state_of_a_request_is_shared_from_middleware_to_the_handler_and_with_no_other_request(
    era: Any,
) -> None:
    async def count(message: Message, call_next: Next) -> Any:
        message.state["steps"] = ["middleware"]
        try:
            return await call_next(message)
        finally:
            done[message.method] = message.state["steps"]

    def step(ctx: SyncContext) -> int:
        ctx.state["steps"].append("dependency")
        return len(ctx.state["steps"])

    done: dict[str, Any] = {}
    server = Server("stately", middleware=[count])

    @server.tool
    async def awaited(steps: Annotated[int, Depends(step)], ctx: Context) -> int:
        ctx.state["steps"].append("handler")
        return steps

    @server.tool
    def threaded(steps: Annotated[int, Depends(step)], ctx: SyncContext) -> int:
        ctx.state["steps"].append("handler")
        return steps

    with anyio.fail_after(5):
        async with Client(server, eras=(era,)) as client:
            for tool in ("awaited", "threaded", "awaited"):
                done.clear()
                assert (await client.call_tool(tool)).text == "2"
                assert done["tools/call"] == ["middleware", "dependency", "handler"]


caller: ContextVar[str] = ContextVar("caller", default="nobody")


@ERAS
@EVERYWHERE
async def test_what_middleware_puts_into_context_variables_is_seen_by_that_request_only(era: Any, over: str) -> None:
    async def know(message: Message, call_next: Next) -> Any:
        if message.method == "tools/call":
            caller.set(message.event.params.name)
        return await call_next(message)

    started: list[str] = []
    all_started = anyio.Event()
    server = Server("ambient", middleware=[know])

    async def everybody() -> None:
        started.append(caller.get())
        if len(started) == len(names):
            all_started.set()
        await all_started.wait()

    def in_thread() -> Iterator[str]:
        before = caller.get()
        yield before
        assert caller.get() == before

    @asynccontextmanager
    async def entered() -> AsyncIterator[str]:
        yield caller.get()

    def make(name: str) -> None:
        if name.startswith("def"):

            def threaded(
                ready: Annotated[None, Depends(everybody)],
                first: Annotated[str, Depends(in_thread)],
                second: Annotated[str, Depends(entered)],
            ) -> str:
                return f"{caller.get()} {first} {second}"

            server.tool(threaded, name=name)
        else:

            async def awaited(
                ready: Annotated[None, Depends(everybody)],
                first: Annotated[str, Depends(in_thread)],
                second: Annotated[str, Depends(entered)],
            ) -> str:
                await anyio.lowlevel.checkpoint()
                seen: list[str] = []
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(anyio.to_thread.run_sync, lambda: seen.append(caller.get()))
                return f"{seen[0]} {first} {second}"

            server.tool(awaited, name=name)

    names = [f"{colour}-{number}" for number in range(4) for colour in ("def", "async")]
    for name in names:
        make(name)

    results: dict[str, str] = {}
    with anyio.fail_after(20):
        async with reached(server, over) as target, Client(target, eras=(era,)) as client:

            async def call(name: str) -> None:
                results[name] = (await client.call_tool(name)).text

            async with anyio.create_task_group() as tasks:
                for name in names:
                    tasks.start_soon(call, name)
    assert results == {name: f"{name} {name} {name}" for name in names}
    assert caller.get() == "nobody"
