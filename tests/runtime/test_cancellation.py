"""Cancelling: the handler stops, nothing more is sent for it, nothing of it is left, and the other side is told."""

import logging
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Annotated, Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
import pytest

from mcpcore import Client, ConnectionLost, Context, Depends, Progress, RequestTimeout, Server, SyncContext
from mcpcore.limits import Limits
from tests.support.wires import MODERN, Peer, Scripted, connected

pytestmark = pytest.mark.anyio

ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])
LOUD = {"io.modelcontextprotocol/logLevel": "debug"}


class Watched:
    """A server whose tools wait, and note how they came and went."""

    def __init__(self) -> None:
        self.server = Server("watched")
        self.log: list[str] = []
        self.running = 0
        self.started = anyio.Event()
        self.release = threading.Event()
        self.seen = threading.Event()
        server = self.server

        @asynccontextmanager
        async def resource() -> AsyncIterator[str]:
            self.log.append("open")
            try:
                yield "resource"
            finally:
                with anyio.CancelScope(shield=True):
                    await anyio.lowlevel.checkpoint()
                self.log.append("close")

        @contextmanager
        def blocking() -> Iterator[str]:
            self.log.append("open blocking")
            try:
                yield "blocking"
            finally:
                self.log.append("close blocking")

        @server.tool
        async def wait() -> str:
            self._enter()
            try:
                await anyio.sleep_forever()
            finally:
                self._leave("left")
            return "never"

        @server.tool
        async def wait_with_resources(
            one: Annotated[str, Depends(resource)], other: Annotated[str, Depends(blocking)]
        ) -> str:
            self._enter()
            try:
                await anyio.sleep_forever()
            finally:
                self._leave(f"left with {one} and {other}")
            return "never"

        @server.tool
        async def fail_with_resources(one: Annotated[str, Depends(resource)]) -> str:
            raise ValueError("broken")

        @server.tool
        async def stream() -> AsyncIterator[Any]:
            self._enter()
            try:
                yield Progress(1)
                await anyio.sleep_forever()
            finally:
                self._leave("left")
            yield "never"

        class Lines:
            """An iterator that is no generator: what it has open is closed by `aclose` only."""

            def __aiter__(self) -> "Lines":
                return self

            async def __anext__(inner) -> str:  # self is the one outside
                self._enter()
                await anyio.sleep_forever()
                return "never"

            async def aclose(inner) -> None:
                await anyio.lowlevel.checkpoint()
                self._leave("left")

        @server.tool
        async def iterate() -> AsyncIterator[str]:
            return Lines()

        @server.tool
        def stream_in_thread() -> Iterator[str]:
            try:
                yield "first"
                self._enter_from_thread()
                while True:
                    self.release.wait(0.01)
                    yield "another"
            finally:
                self.log.append("left")
                self.seen.set()

        @server.tool
        async def stubborn() -> str:
            self._enter()
            try:
                await anyio.sleep_forever()
            except anyio.get_cancelled_exc_class():
                self._leave("left")
                with anyio.CancelScope(shield=True):
                    await anyio.lowlevel.checkpoint()
                raise ValueError("something else") from None
            return "never"

        @server.tool
        def block() -> str:
            self._enter_from_thread()
            self.release.wait(10)
            self.log.append("thread ended")
            return "late"

        @server.tool
        def block_politely(ctx: SyncContext) -> str:
            self._enter_from_thread()
            while not ctx.cancelled:
                self.release.wait(0.01)
            ctx.progress(1)
            ctx.info("gone")
            self.seen.set()
            return "late"

        @server.tool
        def block_and_report(ctx: SyncContext) -> str:
            self._enter_from_thread()
            self.release.wait(10)
            ctx.progress(1)
            ctx.info("late")
            try:
                ctx.elicit("Late?", {"type": "object", "properties": {}})
            except ConnectionLost:
                self.seen.set()
            return "late"

        @server.tool
        async def ask(ctx: Context) -> str:
            self._enter()
            try:
                await ctx.elicit("Well?", {"type": "object", "properties": {}})
            finally:
                self._leave("left")
            self.log.append("changed something")
            return "never"

        @server.tool
        def ask_in_thread(ctx: SyncContext) -> str:
            self._enter_from_thread()
            try:
                ctx.elicit("Well?", {"type": "object", "properties": {}})
            finally:
                self.log.append("left")
                self.release.set()
            self.log.append("changed something")
            return "never"

        @server.tool
        async def quick() -> str:
            return "quick"

    def _enter(self) -> None:
        self.running += 1
        self.started.set()

    def _enter_from_thread(self) -> None:
        anyio.from_thread.run_sync(self.started.set)

    def _leave(self, what: str) -> None:
        self.running -= 1
        self.log.append(what)


async def start(peer: Peer, watched: Watched, era: str, tool: str, **meta: Any) -> int:
    """Start a call and wait until its handler runs."""
    if era == "legacy":
        await peer.initialize(elicitation={})
        await peer.request("ping", era="legacy")
    version = MODERN if era == "modern" else "2025-11-25"
    id = await peer.start("tools/call", {"name": tool}, era=version, **meta)
    with anyio.fail_after(5):
        await watched.started.wait()
    return id


async def cancel(peer: Peer, id: int) -> None:
    await peer.notify("notifications/cancelled", {"requestId": id, "reason": "changed my mind"})


async def still_works(peer: Peer, era: str) -> None:
    answer = await peer.call("quick", era=MODERN if era == "modern" else "2025-11-25")
    assert answer["result"]["content"][0]["text"] == "quick"


# -- on the wire -------------------------------------------------------------------------------------------------------


@ERAS
@pytest.mark.parametrize("tool", ["wait", "stream", "iterate", "stubborn"])
async def test_a_cancelled_handler_stops_and_nothing_is_sent_for_it(era: str, tool: str) -> None:
    watched = Watched()
    async with connected(watched.server) as peer:
        id = await start(peer, watched, era, tool)
        await cancel(peer, id)
        assert await peer.is_quiet()
        assert watched.log == ["left"] and watched.running == 0
        await still_works(peer, era)


@ERAS
async def test_what_a_handler_opened_is_closed_when_it_is_cancelled(era: str) -> None:
    watched = Watched()
    async with connected(watched.server) as peer:
        id = await start(peer, watched, era, "wait_with_resources")
        await cancel(peer, id)
        assert await peer.is_quiet()
        assert watched.log == ["open", "open blocking", "left with resource and blocking", "close blocking", "close"]


async def test_what_a_handler_opened_is_closed_before_its_failure_is_answered() -> None:
    watched = Watched()
    with anyio.fail_after(5):
        async with Client(watched.server) as client:
            result = await client.call_tool("fail_with_resources")
            assert result.is_error and watched.log == ["open", "close"]


@ERAS
async def test_a_thread_is_abandoned_and_its_result_dropped(era: str, caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched()
    async with connected(watched.server) as peer:
        id = await start(peer, watched, era, "block")
        await cancel(peer, id)
        assert await peer.is_quiet()
        assert watched.log == []
        assert "abandoned a worker thread" in caplog.text
        watched.release.set()
        await still_works(peer, era)
        assert await peer.is_quiet()


@ERAS
async def test_a_thread_can_see_that_nobody_waits_and_can_send_nothing_more(era: str) -> None:
    watched = Watched()
    async with connected(watched.server) as peer:
        id = await start(peer, watched, era, "block_politely", progressToken=1)
        await cancel(peer, id)
        with anyio.fail_after(5):
            await anyio.to_thread.run_sync(watched.seen.wait)
        assert await peer.is_quiet()


@ERAS
async def test_a_generator_in_a_thread_is_closed_at_the_next_item_when_nobody_waits(era: str) -> None:
    watched = Watched()
    async with connected(watched.server) as peer:
        id = await start(peer, watched, era, "stream_in_thread")
        await cancel(peer, id)
        with anyio.fail_after(5):
            assert await anyio.to_thread.run_sync(watched.seen.wait, 5)
        assert watched.log == ["left"] and await peer.is_quiet()
        await still_works(peer, era)


@ERAS
async def test_an_abandoned_thread_cannot_speak_for_a_later_request_with_its_id(era: str) -> None:
    watched = Watched()
    async with connected(watched.server) as peer:
        id = await start(peer, watched, era, "block_and_report", progressToken=1, **LOUD)
        await cancel(peer, id)
        assert await peer.is_quiet()
        watched.started = anyio.Event()
        version = MODERN if era == "modern" else "2025-11-25"
        await peer.start("tools/call", {"name": "wait"}, era=version, id=id, progressToken=2, **LOUD)
        with anyio.fail_after(5):
            await watched.started.wait()
            watched.release.set()
            assert await anyio.to_thread.run_sync(watched.seen.wait, 5)
        assert await peer.is_quiet()
        await cancel(peer, id)


async def test_a_question_to_a_legacy_client_is_withdrawn_with_the_call_that_asked_it() -> None:
    watched = Watched()
    async with connected(watched.server) as peer:
        id = await start(peer, watched, "legacy", "ask")
        asked = await peer.receive()
        assert asked["method"] == "elicitation/create"
        await cancel(peer, id)
        withdrawn = await peer.receive()
        assert (withdrawn["method"], withdrawn["params"]["requestId"]) == ("notifications/cancelled", asked["id"])
        await peer.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": {}}})
        assert await peer.is_quiet()
        assert watched.log == ["left"]
        await still_works(peer, "legacy")


async def test_a_thread_that_waits_for_the_client_is_woken_when_its_call_is_cancelled() -> None:
    watched = Watched()
    async with connected(watched.server) as peer:
        id = await start(peer, watched, "legacy", "ask_in_thread")
        asked = await peer.receive()
        await cancel(peer, id)
        withdrawn = await peer.receive()
        assert (withdrawn["method"], withdrawn["params"]["requestId"]) == ("notifications/cancelled", asked["id"])
        with anyio.fail_after(5):
            await anyio.to_thread.run_sync(watched.release.wait)
        assert watched.log == ["left"]
        await still_works(peer, "legacy")


async def test_cancelling_what_is_answered_or_unknown_does_nothing() -> None:
    async with connected(Watched().server) as peer:
        await still_works(peer, "modern")
        await cancel(peer, 1)
        await cancel(peer, 77)
        await peer.notify("notifications/cancelled", {"requestId": "no"})
        await peer.notify("notifications/cancelled", {})
        assert await peer.is_quiet()
        await still_works(peer, "modern")


async def test_one_of_many_calls_is_cancelled_and_the_others_are_not() -> None:
    server = Server("many")
    gate = anyio.Event()

    @server.tool
    async def wait(n: int) -> int:
        await gate.wait()
        return n

    async with connected(server) as peer:
        ids = [await peer.start("tools/call", {"name": "wait", "arguments": {"n": n}}) for n in range(20)]
        await anyio.wait_all_tasks_blocked()
        for id in ids[::2]:
            await cancel(peer, id)
        await anyio.wait_all_tasks_blocked()
        gate.set()
        answers = [await peer.receive() for _ in ids[1::2]]
        assert sorted(answer["id"] for answer in answers) == ids[1::2]
        assert await peer.is_quiet()


# -- on the client's side ----------------------------------------------------------------------------------------------


@ERAS
async def test_cancelling_a_call_stops_the_handler(era: Any) -> None:
    watched = Watched()
    with anyio.fail_after(5):
        async with Client(watched.server, eras=(era,)) as client:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "wait")
                await watched.started.wait()
                tasks.cancel_scope.cancel()
            assert (await client.call_tool("quick")).text == "quick"
            assert watched.log == ["left"]


@ERAS
async def test_fifty_timeouts_leave_no_handler_and_no_request(era: Any) -> None:
    watched = Watched()
    with anyio.fail_after(20):
        async with Client(watched.server, eras=(era,)) as client:
            for _ in range(50):
                with pytest.raises(RequestTimeout, match=r"tools/call was not answered within 0\.001 seconds"):
                    await client.call_tool("wait", timeout=0.001)
            await client.call_tool("quick")
            assert watched.running == 0


async def test_the_clients_own_timeout_holds_where_the_call_says_nothing() -> None:
    watched = Watched()
    with anyio.fail_after(5):
        async with Client(watched.server, timeout=0.2) as client:
            with pytest.raises(TimeoutError):
                await client.call_tool("wait")
            async with anyio.create_task_group() as tasks:
                with anyio.move_on_after(0.05) as patience:
                    await client.call_tool("wait", timeout=None)
                assert patience.cancelled_caught
                tasks.cancel_scope.cancel()


async def test_an_answer_that_comes_after_the_timeout_is_ignored() -> None:
    heard: list[dict[str, Any]] = []

    async def play(peer: Peer) -> None:
        while True:
            message = await peer.receive()
            heard.append(message)
            if message["method"] == "server/discover":
                await _answer(peer, message["id"], {"supportedVersions": [MODERN], "capabilities": {"tools": {}}})
            elif message["method"] == "notifications/cancelled":
                await _answer(peer, message["params"]["requestId"], {"content": []})
            elif message["params"]["name"] == "second":
                await _answer(peer, message["id"], {"content": [{"type": "text", "text": "second"}]})

    with anyio.fail_after(5):
        async with Client(Scripted(play)) as client:
            with pytest.raises(RequestTimeout):
                await client.call_tool("first", timeout=0.01)
            assert (await client.call_tool("second")).text == "second"
    assert [message["method"] for message in heard[1:]] == ["tools/call", "notifications/cancelled", "tools/call"]


async def _answer(peer: Peer, id: Any, result: dict[str, Any]) -> None:
    await peer.send({"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete"} | result})


async def test_a_legacy_server_can_cancel_what_it_asks() -> None:
    left = anyio.Event()
    started = anyio.Event()

    async def elicitation(params: Any) -> Any:
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            left.set()

    async def play(peer: Peer) -> None:
        opening = await peer.receive()
        info = {"name": "old", "version": "1"}
        result: Any = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": info}
        await peer.send({"jsonrpc": "2.0", "id": opening["id"], "result": result})
        params = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
        await peer.send({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params})
        await started.wait()
        await peer.notify("notifications/cancelled", {"requestId": "q"})
        await peer.receive()

    with anyio.fail_after(5):
        async with Client(Scripted(play), eras=("legacy",), elicitation=elicitation):
            await left.wait()


# -- timeouts of tools -------------------------------------------------------------------------------------------------


@ERAS
async def test_a_tool_that_takes_too_long_is_stopped_and_says_so(era: Any) -> None:
    server = Server("slow")
    left: list[str] = []

    @server.tool(timeout=0.01)
    async def slow() -> str:
        try:
            await anyio.sleep_forever()
        finally:
            left.append("slow")
        return "never"

    release = threading.Event()

    @server.tool(timeout=0.01)
    def slow_thread() -> str:
        release.wait(10)
        return "never"

    @server.resource("slow://it", timeout=0.01)
    async def slow_resource() -> str:
        await anyio.sleep_forever()
        return "never"

    with anyio.fail_after(5):
        async with Client(server, eras=(era,)) as client:
            result = await client.call_tool("slow")
            assert result.is_error and left == ["slow"]
            assert result.text == "Error invoking method: slow\nTimed out after 0.01 seconds."
            assert (await client.call_tool("slow_thread")).is_error
            with pytest.raises(Exception, match=r"Timed out after 0\.01 seconds"):
                await client.read_resource("slow://it")
            release.set()


async def test_a_thread_that_was_never_started_is_not_said_to_be_abandoned(caplog: pytest.LogCaptureFixture) -> None:
    server = Server("one thread", limits=Limits(threads=1))
    release = threading.Event()

    @server.tool
    def block() -> str:
        release.wait(10)
        return "done"

    with caplog.at_level(logging.WARNING), anyio.fail_after(5):
        async with connected(server) as peer:
            first = await peer.start("tools/call", {"name": "block"})
            second = await peer.start("tools/call", {"name": "block"})
            await anyio.wait_all_tasks_blocked()
            await cancel(peer, second)
            await anyio.wait_all_tasks_blocked()
            release.set()
            assert (await peer.answer_to(first))["result"]["content"][0]["text"] == "done"
    assert "abandoned" not in caplog.text
