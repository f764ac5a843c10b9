"""Where handlers run, what they see there, and what happens when there are too many of them."""

import contextvars
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Annotated, Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from anyio.abc import SocketStream

from mcpcore import Client, Context, Depends, RequestTimeout, Server, SyncContext
from mcpcore.limits import Limits
from mcpcore.protocol.messages import Incoming, Outgoing, RequestScope
from mcpcore.runtime.request import Message
from mcpcore.transports.lines import LineChannel
from mcpcore.types.completion import PromptReference
from tests.support.reaching import WAYS, reached
from tests.support.wires import MODERN, Lines, Peer, connected, socket_pair

pytestmark = pytest.mark.anyio

ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])

who: ContextVar[str] = ContextVar("who", default="nobody")


# -- threads -----------------------------------------------------------------------------------------------------------


def blocking_server(release: threading.Event, **options: Any) -> Server:
    server = Server("blocking", **options)

    @server.tool
    def block() -> str:
        assert release.wait(10)
        return "blocked"

    @server.resource("block://it")
    def resource() -> str:
        assert release.wait(10)
        return "blocked"

    @server.prompt
    def prompt() -> str:
        assert release.wait(10)
        return "blocked"

    @server.complete(prompt="prompt")
    def completion(prefix: str) -> list[str]:
        assert release.wait(10)
        return ["blocked"]

    @server.tool
    async def quick() -> str:
        return "quick"

    return server


@ERAS
@pytest.mark.parametrize("over", WAYS)
async def test_handlers_that_block_delay_nothing_else(era: Any, over: str) -> None:
    release = threading.Event()
    server = blocking_server(release)
    done: list[str] = []
    with anyio.fail_after(10):
        async with reached(server, over) as target, Client(target, eras=(era,)) as client:

            async def run(name: str, call: Any) -> None:
                await call
                done.append(name)

            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(run, "tool", client.call_tool("block"))
                tasks.start_soon(run, "resource", client.read_resource("block://it"))
                tasks.start_soon(run, "prompt", client.get_prompt("prompt"))
                tasks.start_soon(run, "completion", client.complete(PromptReference("prompt"), "x", ""))
                await anyio.lowlevel.checkpoint()
                await client.ping()
                assert (await client.call_tool("quick")).text == "quick"
                assert done == []
                release.set()
    assert sorted(done) == ["completion", "prompt", "resource", "tool", "tool", "tool"]


async def test_a_slow_thread_of_one_client_does_not_delay_another_client() -> None:
    release = threading.Event()
    server = blocking_server(release)
    with anyio.fail_after(5):
        async with Client(server) as one, Client(server) as other, anyio.create_task_group() as tasks:
            tasks.start_soon(one.call_tool, "block")
            await anyio.lowlevel.checkpoint()
            assert (await other.call_tool("quick")).text == "quick"
            release.set()


async def test_threads_are_the_servers_own_and_limited() -> None:
    running, most, lock = 0, 0, threading.Lock()
    release = threading.Event()
    server = Server("limited", limits=Limits(threads=2))

    @server.tool
    def work() -> str:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        release.wait(0.02)
        with lock:
            running -= 1
        return "done"

    # Somebody else's threads are all taken: the server does not need them.
    default = anyio.to_thread.current_default_thread_limiter()
    with anyio.fail_after(5):
        for number in range(int(default.total_tokens)):
            await default.acquire_on_behalf_of(number)
        try:
            async with Client(server) as client, anyio.create_task_group() as tasks:
                for _ in range(6):
                    tasks.start_soon(client.call_tool, "work")
        finally:
            for number in range(int(default.total_tokens)):
                default.release_on_behalf_of(number)
    assert most == 2


async def test_threads_that_wait_for_the_client_leave_the_loop_free_and_the_pool_usable() -> None:
    server = Server("asking", limits=Limits(threads=2))

    @server.tool
    def ask(ctx: SyncContext) -> str:
        return ctx.elicit("?", {"type": "object", "properties": {}}).action

    async def elicitation(params: Any) -> Any:
        await anyio.wait_all_tasks_blocked()
        return {}

    with anyio.fail_after(5):
        client = Client(Lines(server), eras=("legacy",), elicitation=elicitation)
        async with client, anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(client.call_tool, "ask")


async def test_a_def_that_runs_on_the_loop_runs_on_its_thread_and_may_not_wait_for_it() -> None:
    server = Server("direct")

    @server.tool(thread=False)
    def where(ctx: SyncContext) -> str:
        ctx.state["seen"] = True
        return str(threading.get_ident())

    @server.tool(thread=False)
    def waits(ctx: SyncContext) -> str:
        ctx.info("never")
        return "never"

    with anyio.fail_after(5):
        async with Client(server) as client:
            assert (await client.call_tool("where")).text == str(threading.get_ident())
            result = await client.call_tool("waits")
            assert result.is_error and "thread=False" in result.text


async def test_a_def_on_the_loop_may_return_something_to_await() -> None:
    server = Server("direct")

    async def later() -> str:
        await anyio.lowlevel.checkpoint()
        return "later"

    server.add_tool(lambda: later(), name="later", thread=False)
    with anyio.fail_after(5):
        async with Client(server) as client:
            assert (await client.call_tool("later")).text == "later"


def test_one_server_serves_one_event_loop_after_the_other() -> None:
    release = threading.Event()
    release.set()
    server = blocking_server(release)

    async def use() -> str:
        with anyio.fail_after(5):
            async with Client(server) as client:
                return (await client.call_tool("block")).text

    for backend in ("asyncio", "trio", "asyncio"):
        assert anyio.run(use, backend=backend) == "blocked"


# -- context variables -------------------------------------------------------------------------------------------------


def naming_server() -> Server:
    """A server whose middleware puts the request's id into a context variable."""

    async def name_caller(message: Message, call_next: Any) -> Any:
        who.set(str(getattr(message, "id", None)))
        return await call_next(message)

    server = Server("naming", middleware=[name_caller])

    @server.tool
    async def awaited() -> str:
        await anyio.lowlevel.checkpoint()
        return who.get()

    @server.tool
    def threaded() -> str:
        return who.get()

    @server.tool
    def yielded() -> Iterator[str]:
        yield who.get()

    def dependency() -> str:
        return who.get()

    @server.tool
    async def depending(value: Annotated[str, Depends(dependency)]) -> str:
        return value

    @server.resource("who://it")
    def resource() -> str:
        return who.get()

    @server.prompt
    def prompt() -> str:
        return who.get()

    return server


@ERAS
@pytest.mark.parametrize("tool", ["awaited", "threaded", "yielded", "depending"])
async def test_every_handler_sees_the_context_variables_of_its_own_request(era: str, tool: str) -> None:
    version = MODERN if era == "modern" else "2025-11-25"
    async with connected(naming_server()) as peer:
        if era == "legacy":
            await peer.initialize()
        ids = [await peer.start("tools/call", {"name": tool}, era=version) for _ in range(10)]
        seen: dict[int, str] = {}
        while len(seen) < 10:
            message = await peer.receive()
            if message.get("id") in ids:
                seen[message["id"]] = message["result"]["content"][0]["text"]
        assert seen == {id: str(id) for id in ids}
        assert who.get() == "nobody"


async def test_resources_and_prompts_see_them_too() -> None:
    async with connected(naming_server()) as peer:
        id = await peer.start("resources/read", {"uri": "who://it"})
        assert (await peer.answer_to(id))["result"]["contents"][0]["text"] == str(id)
        id = await peer.start("prompts/get", {"name": "prompt"})
        assert (await peer.answer_to(id))["result"]["messages"][0]["content"]["text"] == str(id)


async def test_a_request_runs_in_the_context_that_its_transport_gives_it() -> None:
    server = Server("scoped")

    @server.tool
    def threaded() -> str:
        return who.get()

    @server.tool
    async def awaited() -> str:
        return who.get()

    contexts = {name: contextvars.copy_context() for name in ("ada", "bob")}
    for name, context in contexts.items():
        context.run(who.set, name)

    async with connected(server) as peer:
        inner = peer.channel._peer  # type: ignore[attr-defined]  # the server's end
        receive = inner.receive

        async def scoped_receive() -> list[Incoming]:
            messages = await receive()
            return [
                Incoming(each.data, scope=RequestScope("memory", context=contexts[_caller_in(each)]))
                for each in messages
            ]

        inner.receive = scoped_receive
        for tool in ("threaded", "awaited"):
            for name in ("ada", "bob"):
                answer = await peer.call(tool, {}, caller=name)
                assert answer["result"]["content"][0]["text"] == name


def _caller_in(message: Incoming) -> str:
    return "bob" if b'"bob"' in message.data else "ada"


# -- too many ----------------------------------------------------------------------------------------------------------


async def test_requests_beyond_the_limit_wait_and_beyond_the_queue_are_refused_while_pings_pass() -> None:
    server = Server("busy", limits=Limits(in_flight=2, queued=3))
    gate = anyio.Event()
    running: list[int] = []

    @server.tool
    async def wait(n: int) -> int:
        running.append(n)
        await gate.wait()
        return n

    async with connected(server) as peer:
        await peer.initialize()
        ids = [
            await peer.start("tools/call", {"name": "wait", "arguments": {"n": n}}, era="2025-11-25") for n in range(7)
        ]
        refused = [await peer.receive(), await peer.receive()]
        assert [(each["id"], each["error"]["code"]) for each in refused] == [(ids[5], -32603), (ids[6], -32603)]
        assert all(each["error"]["message"].startswith("Server busy") for each in refused)
        assert running == [0, 1]
        assert "result" in await peer.request("ping", era="2025-11-25")
        gate.set()
        answered = [(await peer.receive())["id"] for _ in range(5)]
        assert sorted(answered) == ids[:5] and sorted(running) == [0, 1, 2, 3, 4]


async def test_a_request_that_waits_can_be_cancelled_and_never_runs() -> None:
    server = Server("busy", limits=Limits(in_flight=1, queued=3))
    gate = anyio.Event()
    running: list[int] = []

    @server.tool
    async def wait(n: int) -> int:
        running.append(n)
        await gate.wait()
        return n

    async with connected(server) as peer:
        ids = [await peer.start("tools/call", {"name": "wait", "arguments": {"n": n}}) for n in range(3)]
        await peer.notify("notifications/cancelled", {"requestId": ids[1]})
        await anyio.wait_all_tasks_blocked()
        gate.set()
        assert [(await peer.receive())["id"] for _ in range(2)] == [ids[0], ids[2]]
        assert running == [0, 2]


async def test_requests_that_wait_run_also_when_all_that_ran_were_cancelled() -> None:
    server = Server("busy", limits=Limits(in_flight=2, queued=10))

    @server.tool
    async def wait() -> str:
        await anyio.sleep_forever()
        return "never"

    @server.tool
    async def quick() -> str:
        return "quick"

    async with connected(server) as peer:
        blocking = [await peer.start("tools/call", {"name": "wait"}) for _ in range(2)]
        queued = [await peer.start("tools/call", {"name": "quick"}) for _ in range(5)]
        await anyio.wait_all_tasks_blocked()
        for id in blocking:
            await peer.notify("notifications/cancelled", {"requestId": id})
        assert sorted([(await peer.receive())["id"] for _ in queued]) == queued
        assert (await peer.call("quick"))["result"]["isError"] is False


async def test_requests_that_waited_run_in_contexts_of_their_own() -> None:
    server = Server("busy", limits=Limits(in_flight=1, queued=10))
    gate = anyio.Event()

    @server.tool
    async def mark(name: str) -> str:
        before = who.get()
        who.set(name)
        await gate.wait()
        return before

    async with connected(server) as peer:
        ids = [await peer.start("tools/call", {"name": "mark", "arguments": {"name": str(n)}}) for n in range(5)]
        await anyio.wait_all_tasks_blocked()
        gate.set()
        answers = [await peer.answer_to(id) for id in ids]
        assert [answer["result"]["content"][0]["text"] for answer in answers] == ["nobody"] * 5
        assert (await peer.call("mark", {"name": "last"}))["result"]["content"][0]["text"] == "nobody"


async def test_handlers_that_wait_for_the_client_at_the_limit_get_their_answers() -> None:
    server = Server("busy", limits=Limits(in_flight=2, queued=10))

    @server.tool
    async def ask(ctx: Context) -> str:
        return (await ctx.elicit("?", {"type": "object", "properties": {}})).action

    with anyio.fail_after(5):
        client = Client(Lines(server), eras=("legacy",), elicitation=lambda params: {})
        async with client, anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(client.call_tool, "ask")


# -- a peer that does not read -----------------------------------------------------------------------------------------


class Noticing(LineChannel):
    """A channel that tells when it has begun to write, and when its input has ended."""

    def __init__(self, stream: SocketStream) -> None:
        super().__init__(stream)
        self.writes, self.ended = anyio.Event(), anyio.Event()

    async def receive(self) -> list[Incoming]:
        try:
            return await super().receive()
        except anyio.EndOfStream:
            self.ended.set()
            raise

    async def send(self, messages: list[Outgoing]) -> None:
        self.writes.set()
        await super().send(messages)


async def test_handlers_that_send_wait_for_a_client_that_does_not_read() -> None:
    server = Server("loud", limits=Limits(outbox=100_000, drain=0.1))
    sent, started = 0, anyio.Event()

    @server.tool
    async def shout(ctx: Context) -> str:
        nonlocal sent
        started.set()
        for _ in range(10_000):
            await ctx.info("x" * 10_000)
            sent += 1
        return "done"

    near, far = await socket_pair()
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve_channel, LineChannel(far))
            peer = Peer(LineChannel(near))
            await peer.initialize()
            for _ in range(3):
                await peer.start("tools/call", {"name": "shout"}, era="2025-11-25")
            await started.wait()
            await anyio.wait_all_tasks_blocked()
            assert 0 < sent < 1000
            await near.aclose()
            tasks.cancel_scope.cancel()


@pytest.mark.parametrize("how", ["stop", "end of input", "cancel"])
async def test_a_server_ends_in_bounded_time_although_the_client_does_not_read(how: str) -> None:
    server = Server("large", limits=Limits(drain=0.1))

    @server.tool
    async def large() -> str:
        return "x" * 5_000_000

    near, far = await socket_pair()
    ended, channel = anyio.Event(), Noticing(far)

    async def serve() -> None:
        try:
            await server.serve_channel(channel)
        finally:
            ended.set()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve)
            peer = Peer(LineChannel(near))
            await peer.start("tools/call", {"name": "large"})
            await channel.writes.wait()
            await anyio.wait_all_tasks_blocked()
            if how == "stop":
                server.stop()
            elif how == "end of input":
                await near.send_eof()
            else:
                tasks.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await ended.wait()
    await near.aclose()


class On:
    """A client's transport that is one channel."""

    def __init__(self, channel: LineChannel) -> None:
        self._channel = channel

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[LineChannel]:
        yield self._channel


async def test_a_call_times_out_although_the_server_does_not_read() -> None:
    near, far = await socket_pair()

    async def greet_and_be_deaf() -> None:
        peer = Peer(LineChannel(far))
        message = await peer.receive()
        result: Any = {"resultType": "complete", "supportedVersions": [MODERN], "capabilities": {"tools": {}}}
        await peer.send({"jsonrpc": "2.0", "id": message["id"], "result": result})

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(greet_and_be_deaf)
            async with Client(On(LineChannel(near)), limits=Limits(drain=0.1)) as client:
                for size in (10, 5_000_000, 10):
                    with pytest.raises(RequestTimeout):
                        await client.call_tool("x", {"text": "x" * size}, timeout=0.05)
    await far.aclose()


async def test_however_many_small_calls_a_server_does_not_read_each_times_out() -> None:
    near, far = await socket_pair()

    async def greet_and_be_deaf() -> None:
        peer = Peer(LineChannel(far))
        message = await peer.receive()
        result: Any = {"resultType": "complete", "supportedVersions": [MODERN], "capabilities": {"tools": {}}}
        await peer.send({"jsonrpc": "2.0", "id": message["id"], "result": result})

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(greet_and_be_deaf)
            async with Client(On(LineChannel(near)), limits=Limits(drain=0.1)) as client:
                for _ in range(500):
                    with pytest.raises(RequestTimeout):
                        await client.call_tool("x", {"text": "x" * 1000}, timeout=0)
    await far.aclose()


# -- the end of input --------------------------------------------------------------------------------------------------


async def test_open_requests_finish_after_the_end_of_input_and_their_answers_are_written() -> None:
    server = Server("draining")
    gate = anyio.Event()

    @server.tool
    async def wait(n: int) -> int:
        await gate.wait()
        return n

    near, far = await socket_pair()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            channel = Noticing(far)
            tasks.start_soon(server.serve_channel, channel)
            peer = Peer(LineChannel(near))
            ids = [await peer.start("tools/call", {"name": "wait", "arguments": {"n": n}}) for n in range(3)]
            await near.send_eof()
            await channel.ended.wait()
            await anyio.wait_all_tasks_blocked()
            gate.set()
            assert sorted([(await peer.receive())["id"] for _ in range(3)]) == ids
            with pytest.raises(anyio.EndOfStream):
                await peer.receive()
    await near.aclose()


async def test_a_large_answer_that_is_being_written_at_the_end_of_input_arrives_whole() -> None:
    server = Server("draining")

    @server.tool
    async def large() -> str:
        return "x" * 5_000_000

    near, far = await socket_pair()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            channel = Noticing(far)
            tasks.start_soon(server.serve_channel, channel)
            peer = Peer(LineChannel(near))
            ids = [await peer.start("tools/call", {"name": "large"}) for _ in range(2)]
            await near.send_eof()
            await channel.ended.wait()
            await anyio.wait_all_tasks_blocked()
            for id in ids:
                answer = await peer.receive()
                assert answer["id"] == id and len(answer["result"]["content"][0]["text"]) == 5_000_000
    await near.aclose()


async def test_a_handler_that_does_not_finish_in_time_is_cancelled_at_the_end_of_input() -> None:
    server = Server("draining", limits=Limits(drain=0.05))
    left: list[str] = []

    @server.tool
    async def wait() -> str:
        try:
            await anyio.sleep_forever()
        finally:
            left.append("cancelled")
        return "never"

    near, far = await socket_pair()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve_channel, LineChannel(far))
            peer = Peer(LineChannel(near))
            await peer.start("tools/call", {"name": "wait"})
            await near.send_eof()
            with pytest.raises(anyio.EndOfStream):
                await peer.receive()
    assert left == ["cancelled"]
    await near.aclose()


async def test_a_client_that_is_gone_ends_its_connection_at_once() -> None:
    server = Server("abandoned", limits=Limits(drain=60))
    left: list[str] = []
    started = anyio.Event()

    @server.tool
    async def wait(ctx: Context) -> str:
        ctx.on_disconnect(lambda: left.append("disconnected"))
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            left.append("cancelled")
        return "never"

    class Breaking(LineChannel):
        async def receive(self) -> list[Incoming]:
            if started.is_set():
                await anyio.wait_all_tasks_blocked()
                raise anyio.BrokenResourceError
            return await super().receive()

    near, far = await socket_pair()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve_channel, Breaking(far))
            await Peer(LineChannel(near)).start("tools/call", {"name": "wait"})
    assert left == ["cancelled", "disconnected"]
    await near.aclose()


async def test_on_disconnect_is_called_once_when_the_client_has_gone(caplog: pytest.LogCaptureFixture) -> None:
    server = Server("watching")
    log: list[str] = []

    def broken() -> None:
        raise LookupError("cannot clean up")

    @server.tool
    async def watch(ctx: Context) -> str:
        ctx.on_disconnect(lambda: log.append("first"))
        ctx.on_disconnect(broken)
        ctx.on_disconnect(lambda: log.append("last"))
        return "watching"

    @server.tool
    async def watch_async(ctx: Context) -> str:
        async def later() -> None: ...

        ctx.on_disconnect(later)
        return "never"

    with anyio.fail_after(5):
        async with Client(server) as client:
            await client.call_tool("watch")
            result = await client.call_tool("watch_async")
            assert result.is_error and "plain function" in result.text
            assert log == []
    assert log == ["first", "last"]
    assert "an on_disconnect callback failed" in caplog.text


async def test_session_state_is_for_one_legacy_session() -> None:
    server = Server("stateful")

    @server.tool
    async def count(ctx: Context) -> int:
        ctx.session_state["n"] = ctx.session_state.get("n", 0) + 1
        return int(ctx.session_state["n"])

    with anyio.fail_after(5):
        async with Client(server, eras=("legacy",)) as one, Client(server, eras=("legacy",)) as other:
            assert [(await one.call_tool("count")).text for _ in range(3)] == ["1", "2", "3"]
            assert (await other.call_tool("count")).text == "1"
        async with Client(server, eras=("modern",)) as modern:
            result = await modern.call_tool("count")
            assert result.is_error and "handle" in result.text
