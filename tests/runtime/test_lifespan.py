"""The lifespan of a server: once, whoever uses it, in whatever order they come and go."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from typing import Any

import anyio
import pytest

from mcpcore import Client, Context, Server, SyncContext
from mcpcore.runtime.lifespan import Lifespan
from tests.support.asgi import Caller, modern
from tests.support.world import World

pytestmark = pytest.mark.anyio

variable: ContextVar[str] = ContextVar("variable", default="nobody's")


def recording(log: list[str], value: Any = None) -> Callable[[], AbstractAsyncContextManager[Any]]:
    @asynccontextmanager
    async def make() -> AsyncIterator[Any]:
        log.append("enter")
        try:
            yield value
        finally:
            log.append("leave")

    return make


async def test_it_is_entered_once_for_any_number_of_users_and_left_after_the_last() -> None:
    log: list[str] = []
    lifespan = Lifespan(recording(log, "value"))
    with anyio.fail_after(5):
        async with lifespan():
            async with lifespan(), lifespan():
                assert lifespan.value == "value"
            assert log == ["enter"]
        assert log == ["enter", "leave"] and lifespan.value is None
        async with lifespan():
            assert log == ["enter", "leave", "enter"]


async def test_the_first_user_may_leave_before_the_others() -> None:
    log: list[str] = []
    lifespan = Lifespan(recording(log))
    first_left, second_came = anyio.Event(), anyio.Event()

    async def first() -> None:
        async with lifespan():
            await second_came.wait()
        first_left.set()

    async def second() -> None:
        async with lifespan():
            second_came.set()
            await first_left.wait()
            assert log == ["enter"]

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(first)
            tasks.start_soon(second)
    assert log == ["enter", "leave"]


async def test_who_comes_while_it_is_left_waits_and_enters_anew() -> None:
    log: list[str] = []
    leaving, go_on = anyio.Event(), anyio.Event()

    @asynccontextmanager
    async def make() -> AsyncIterator[None]:
        log.append("enter")
        yield
        leaving.set()
        await go_on.wait()
        log.append("leave")

    lifespan = Lifespan(make)

    async def late() -> None:
        await leaving.wait()
        async with lifespan():
            assert log == ["enter", "leave", "enter"]

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(late)
        with anyio.fail_after(5):
            async with lifespan():
                tasks.start_soon(_set_when_blocked, go_on)
    assert log == ["enter", "leave", "enter", "leave"]


async def _set_when_blocked(event: anyio.Event) -> None:
    await anyio.wait_all_tasks_blocked()
    event.set()


async def test_a_failure_to_enter_is_raised_by_every_user_and_not_remembered() -> None:
    attempts: list[str] = []

    @asynccontextmanager
    async def make() -> AsyncIterator[None]:
        attempts.append("enter")
        await anyio.lowlevel.checkpoint()
        if len(attempts) == 1:
            raise LookupError("no database")
        yield

    lifespan = Lifespan(make)
    failures: list[str] = []

    async def use() -> None:
        try:
            async with lifespan():
                pytest.fail("must not be entered")
        except LookupError as error:
            failures.append(str(error))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(use)
            tasks.start_soon(use)
        assert failures == ["no database"] * 2 and attempts == ["enter"]
        async with lifespan():
            assert attempts == ["enter", "enter"]


async def test_a_failure_to_leave_is_raised_by_the_last_user() -> None:
    @asynccontextmanager
    async def make() -> AsyncIterator[None]:
        yield
        raise LookupError("cannot commit")

    with anyio.fail_after(5), pytest.raises(LookupError, match="cannot commit"):
        async with Lifespan(make)():
            pass


async def test_cancelling_the_first_user_while_it_enters_cancels_the_entering() -> None:
    log: list[str] = []

    @asynccontextmanager
    async def make() -> AsyncIterator[None]:
        try:
            await anyio.sleep_forever()
        finally:
            log.append("cancelled")
        yield

    lifespan = Lifespan(make)
    with anyio.fail_after(5):
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_cancel_when_blocked, scope)
                async with lifespan():
                    pytest.fail("must not be entered")
    assert log == ["cancelled"]


async def _cancel_when_blocked(scope: anyio.CancelScope) -> None:
    await anyio.wait_all_tasks_blocked()
    scope.cancel()


async def test_a_task_group_may_span_the_lifespan() -> None:
    @asynccontextmanager
    async def make() -> AsyncIterator[Any]:
        async with anyio.create_task_group() as tasks:
            yield tasks
            tasks.cancel_scope.cancel()

    lifespan = Lifespan(make)
    ran = anyio.Event()

    async def work() -> None:
        ran.set()

    async def use() -> None:
        async with lifespan():
            lifespan.value.start_soon(work)
            await ran.wait()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(use)


# -- on a server ---------------------------------------------------------------------------------------------------


def serving(log: list[str]) -> Server:
    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[dict[str, str]]:
        log.append(f"enter {server.info.name}")
        variable.set("the lifespan's")
        yield {"database": "open"}
        log.append("leave")

    server = Server("app", lifespan=lifespan)

    @server.tool
    async def awaited(ctx: Context) -> str:
        return f"{ctx.lifespan['database']} {variable.get()}"

    @server.tool
    def threaded(ctx: SyncContext) -> str:
        return f"{ctx.lifespan['database']} {variable.get()}"

    @server.resource("data://it")
    def resource(ctx: SyncContext) -> str:
        return f"{ctx.lifespan['database']} {variable.get()}"

    @server.prompt
    async def prompt(ctx: Context) -> str:
        return f"{ctx.lifespan['database']} {variable.get()}"

    @server.complete(prompt="prompt")
    async def completion(ctx: Context) -> list[str]:
        return [ctx.lifespan["database"], variable.get()]

    return server


async def test_all_clients_of_a_server_share_its_lifespan() -> None:
    log: list[str] = []
    server = serving(log)
    with anyio.fail_after(5):
        async with Client(server) as one, Client(server) as other:
            await one.list_tools()
            await other.list_tools()
            assert log == ["enter app"]
    assert log == ["enter app", "leave"]


@pytest.mark.parametrize("name", ["awaited", "threaded"])
async def test_tools_find_its_value_and_its_context_variables(name: str) -> None:
    with anyio.fail_after(5):
        async with Client(serving([])) as client:
            assert (await client.call_tool(name)).text == "open the lifespan's"


async def test_all_kinds_find_its_value_and_its_context_variables() -> None:
    from mcpcore.types.completion import PromptReference

    with anyio.fail_after(5):
        async with Client(serving([])) as client:
            assert (await client.read_resource("data://it")).contents[0].text == "open the lifespan's"
            message = (await client.get_prompt("prompt")).messages[0]
            assert getattr(message.content, "text", None) == "open the lifespan's"
            found = await client.complete(PromptReference("prompt"), "any", "")
            assert found.values == ["open", "the lifespan's"]


async def test_a_failure_to_enter_is_what_the_client_raises() -> None:
    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[None]:
        raise LookupError("no database")
        yield

    with anyio.fail_after(5), pytest.raises(LookupError, match="no database"):
        async with Client(Server("app", lifespan=lifespan)):
            pytest.fail("must not connect")


@pytest.mark.parametrize("transport", ["stdio", "http", "sse"])
async def test_a_server_that_is_stopped_while_it_starts_does_not_wait_for_the_start(transport: Any) -> None:
    """Else a database that does not answer would make the process deaf to signals."""
    entering, log = anyio.Event(), list[str]()

    @asynccontextmanager
    async def life(_: Server) -> AsyncIterator[None]:
        entering.set()
        try:
            await anyio.sleep_forever()
            yield
        finally:
            log.append("given up")

    server = Server("slow", lifespan=life)
    options = {} if transport == "stdio" else {"port": 0}
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:

            async def serve() -> None:
                await server.serve(transport, **options)

            tasks.start_soon(serve)
            await entering.wait()
            server.stop()
    assert log == ["given up"]


def test_applications_that_their_host_never_closes_end_quietly_with_the_event_loop(
    caplog: pytest.LogCaptureFixture,
) -> None:
    calls = [Caller(World().server.http_app()) for _ in range(20)]  # what is left is ended in no certain order
    Caller.opened.clear()

    async def main() -> None:
        for call in calls:
            response = await call.post(*modern("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}))
            assert response.json()["result"]["content"][0]["text"] == "3"

    asyncio.run(main())
    assert caplog.records == []
