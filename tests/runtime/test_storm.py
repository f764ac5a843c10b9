"""Many calls at once, some of them cancelled, some timed out, some asking: each ends as it should and nothing is left."""

import random
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from mcpcore import Client, Context, PeerError, Progress, RequestTimeout, Server, SyncContext, ToolError
from mcpcore.limits import Limits
from tests.support.wires import Lines

pytestmark = pytest.mark.anyio


class Stormy:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.running = 0
        self.server = server = Server("stormy", limits=Limits(in_flight=20, queued=500, threads=4))

        @server.tool
        async def echo(n: int) -> int:
            return n

        @server.tool
        async def wait(n: int, ctx: Context) -> int:
            self.running += 1
            try:
                for step in range(self.random.randrange(5)):
                    await anyio.lowlevel.checkpoint()
                    await ctx.progress(step + 1)
                return n
            finally:
                self.running -= 1

        @server.tool
        async def forever(n: int) -> int:
            self.running += 1
            try:
                await anyio.sleep_forever()
            finally:
                self.running -= 1
            return n

        @server.tool
        def threaded(n: int, ctx: SyncContext) -> int:
            ctx.progress(1)
            return n

        @server.tool
        async def streamed(n: int) -> Any:
            yield Progress(1)
            await anyio.lowlevel.checkpoint()
            yield n

        @server.tool
        async def ask(n: int, ctx: Context) -> str:
            reply = await ctx.elicit(str(n), {"type": "object", "properties": {"n": {"type": "string"}}})
            return reply.value["n"] if reply.value else reply.action

        @server.tool
        async def fail(n: int) -> int:
            raise ToolError(str(n), prefix=False)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("over", ["memory", "lines"])
async def test_every_call_ends_as_it_should_and_nothing_is_left(seed: int, era: Any, over: str) -> None:
    storm = Stormy(seed)
    target: Any = Lines(storm.server) if over == "lines" else storm.server
    ended: dict[int, str] = {}

    async def elicitation(params: Any) -> Any:
        await anyio.lowlevel.checkpoint()
        return {"n": params.message}

    async def one(client: Client, n: int, tool: str, fate: str) -> None:
        seen: list[float] = []
        try:
            with anyio.CancelScope() as scope:
                if fate == "cancel":
                    tasks.start_soon(cancel_after, scope, storm.random.randrange(30))
                timeout = 0.001 if fate == "time out" else None
                result = await client.call_tool(
                    tool, {"n": n}, timeout=timeout, on_progress=lambda value, *_: seen.append(value)
                )
                assert result.text == str(n) and result.is_error is (tool == "fail")
                ended[n] = "answered"
            if scope.cancelled_caught:
                ended[n] = "cancelled"
        except RequestTimeout:
            ended[n] = "timed out"
        assert seen == sorted(seen)

    async def cancel_after(scope: anyio.CancelScope, steps: int) -> None:
        for _ in range(steps):
            await anyio.lowlevel.checkpoint()
        scope.cancel()

    with anyio.fail_after(30):
        async with Client(target, eras=(era,), elicitation=elicitation, limits=Limits(in_flight=500)) as client:
            async with anyio.create_task_group() as tasks:
                for n in range(200):
                    tool = storm.random.choice(["echo", "wait", "forever", "threaded", "streamed", "ask", "fail"])
                    fates = ["cancel", "time out"] if tool == "forever" else ["", "", "cancel", "time out"]
                    tasks.start_soon(one, client, n, tool, storm.random.choice(fates))
            assert sorted(ended) == list(range(200))
            assert (await client.call_tool("echo", {"n": -1})).text == "-1"
            with pytest.raises(PeerError):
                await client.call_tool("nothing")
            assert storm.running == 0
            (session,) = storm.server._sessions
            assert session.connection.open_requests == 0
    assert storm.server._sessions == set()
