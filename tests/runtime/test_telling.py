"""Progress and log messages: what was asked for, in order, before the answer, and never anything else."""

import json
import math
from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace
from typing import Any, cast

import anyio
import anyio.lowlevel
import pytest

from mcpcore import Client, Context, Log, Progress, Server, SyncContext
from mcpcore.runtime import context
from mcpcore.types.logging import LOG_LEVELS
from tests.support.reaching import WAYS, reached
from tests.support.wires import MODERN, connected

pytestmark = pytest.mark.anyio

ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])

LEVEL = "io.modelcontextprotocol/logLevel"


def make_server() -> Server:
    server = Server("telling")

    @server.tool
    async def count(n: int, ctx: Context) -> str:
        for number in range(1, n + 1):
            await ctx.progress(number, total=n, message=f"step {number}")
        return "counted"

    @server.tool
    def count_in_thread(n: int, ctx: SyncContext) -> str:
        for number in range(1, n + 1):
            if ctx.cancelled:
                break
            ctx.progress(number, total=n)
        return "counted"

    @server.tool
    async def yielded(n: int) -> AsyncIterator[Progress | str]:
        for number in range(1, n + 1):
            yield Progress(number, n)
        yield "counted"

    @server.tool
    def yielded_in_thread(n: int) -> Iterator[Progress | str]:
        for number in range(1, n + 1):
            yield Progress(number, n)
        yield "counted"

    @server.tool
    async def odd(ctx: Context) -> str:
        for value in (1, 1, 0.5, 2.25, -1, 3):
            await ctx.progress(value)
        return "done"

    @server.tool
    async def endless(ctx: Context) -> str:
        await ctx.progress(math.inf)
        return "done"

    @server.tool
    async def percent(value: float, ctx: Context) -> str:
        await ctx.percent(value)
        return f"{ctx.wants_progress} {ctx.progress_token!r}"

    @server.tool
    async def say(ctx: Context) -> str:
        for level in LOG_LEVELS:
            await ctx.log(level, {"level": level}, logger="here")
        return "said"

    @server.tool
    def say_in_thread(ctx: SyncContext) -> str:
        ctx.debug("d")
        ctx.info("i")
        ctx.notice("n")
        ctx.warning("w")
        ctx.error("e")
        ctx.critical("c")
        return "said"

    @server.tool
    async def say_by_name(ctx: Context) -> AsyncIterator[Any]:
        await ctx.debug("d")
        await ctx.info("i")
        await ctx.notice("n")
        await ctx.warning("w")
        await ctx.error("e")
        await ctx.critical("c")
        yield Log("y", "warning", "there")

    return server


# -- progress --------------------------------------------------------------------------------------------------------


@ERAS
@pytest.mark.parametrize("tool", ["count", "count_in_thread", "yielded", "yielded_in_thread"])
async def test_progress_is_told_in_order_and_before_the_call_returns(era: Any, tool: str) -> None:
    told: list[tuple[float, float | None]] = []
    with anyio.fail_after(5):
        async with Client(make_server(), eras=(era,)) as client:

            async def note(progress: float, total: float | None, message: str | None) -> None:
                await anyio.lowlevel.checkpoint()
                told.append((progress, total))

            assert (await client.call_tool(tool, {"n": 20}, on_progress=note)).text == "counted"
            assert told == [(number, 20) for number in range(1, 21)]


@ERAS
async def test_the_clients_own_on_progress_hears_of_every_call_that_has_none(era: Any) -> None:
    told: list[Any] = []
    with anyio.fail_after(5):
        client = Client(make_server(), eras=(era,), on_progress=lambda *progress: told.append(progress))
        async with client:
            await client.call_tool("count", {"n": 2})
            await client.call_tool("count", {"n": 1}, on_progress=lambda *progress: None)
    assert told == [(1, 2, "step 1"), (2, 2, "step 2")]


@ERAS
@pytest.mark.parametrize("token", ["p1", 0, "", 7])
async def test_progress_carries_the_token_of_the_request(era: str, token: Any) -> None:
    version = MODERN if era == "modern" else "2025-11-25"
    with anyio.fail_after(5):
        async with connected(make_server()) as peer:
            if era == "legacy":
                await peer.initialize()
            answer = await peer.call("count", {"n": 3}, era=version, progressToken=token)
            assert answer["result"]["isError"] is False
            notices = [message["params"] for message in peer.seen if message.get("method") == "notifications/progress"]
            assert [(each["progressToken"], each["progress"], each["total"]) for each in notices] == [
                (token, number, 3) for number in (1, 2, 3)
            ]
            assert peer.seen[-1] == answer


@ERAS
@pytest.mark.parametrize("tool", ["count", "count_in_thread", "yielded", "yielded_in_thread"])
async def test_nobody_is_told_who_did_not_ask(era: str, tool: str) -> None:
    version = MODERN if era == "modern" else "2025-11-25"
    with anyio.fail_after(5):
        async with connected(make_server()) as peer:
            if era == "legacy":
                await peer.initialize()
            before = len(peer.seen)
            await peer.call(tool, {"n": 3}, era=version)
            assert len(peer.seen) == before + 1


async def test_progress_that_does_not_increase_is_dropped_and_fractions_are_kept() -> None:
    told: list[float] = []
    with anyio.fail_after(5):
        async with Client(make_server()) as client:
            await client.call_tool("odd", on_progress=lambda progress, *_: told.append(progress))
    assert told == [1, 2.25, 3]


async def test_infinite_progress_is_the_tools_failure_and_never_on_the_wire() -> None:
    told: list[float] = []
    with anyio.fail_after(5):
        async with Client(make_server()) as client:
            result = await client.call_tool("endless", on_progress=lambda progress, *_: told.append(progress))
    assert result.is_error and told == []


async def test_percent_is_of_a_hundred_and_nothing_else() -> None:
    told: list[Any] = []
    with anyio.fail_after(5):
        async with Client(make_server()) as client:
            result = await client.call_tool("percent", {"value": 50}, on_progress=lambda *each: told.append(each))
            assert result.text.startswith("True ") and told == [(50, 100, None)]
            assert (await client.call_tool("percent", {"value": 50})).text == "False None"
            for value in (-1, 100.5):
                result = await client.call_tool("percent", {"value": value})
                assert result.is_error and "give 0 to 100" in result.text


async def test_a_callback_that_fails_does_not_fail_the_call(caplog: pytest.LogCaptureFixture) -> None:
    def fail(*_: Any) -> None:
        raise LookupError("no bar")

    with anyio.fail_after(5):
        async with Client(make_server()) as client:
            assert (await client.call_tool("count", {"n": 3}, on_progress=fail)).text == "counted"
    assert "on_progress failed" in caplog.text


@pytest.mark.parametrize("tool", ["count", "count_in_thread"])
async def test_a_flood_of_progress_delays_neither_the_answer_nor_a_cancellation(tool: str) -> None:
    server = make_server()
    with anyio.fail_after(30):
        async with Client(server, timeout=None) as client:
            told: list[float] = []
            await client.call_tool(tool, {"n": 10_000}, on_progress=lambda progress, *_: told.append(progress))
            assert len(told) == 10_000
            with anyio.move_on_after(0.05) as patience:
                await client.call_tool(tool, {"n": 10**9}, on_progress=lambda *_: None)
            assert patience.cancelled_caught
            await client.ping()


@ERAS
@pytest.mark.parametrize("over", WAYS)
async def test_what_was_reported_in_a_row_arrives_while_the_handler_waits_for_something_else(
    era: Any, over: str
) -> None:
    server, release = Server("telling"), anyio.Event()

    @server.tool
    async def work(ctx: Context) -> str:
        for number in (1, 2, 3):
            await ctx.progress(number)
        await release.wait()
        return "worked"

    def release_after_three(progress: float, *_: Any) -> None:
        if progress == 3:
            release.set()

    with anyio.fail_after(20):
        async with reached(server, over) as target, Client(target, eras=(era,)) as client:
            assert (await client.call_tool("work", on_progress=release_after_three)).text == "worked"


async def test_reports_in_a_row_share_one_turn_of_the_event_loop_for_a_millisecond(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server, now, turns = Server("telling"), [5.0], [0]
    monkeypatch.setattr(context, "time", SimpleNamespace(monotonic=lambda: now[0]))

    async def take_turns() -> None:
        while True:
            turns[0] += 1
            await anyio.lowlevel.checkpoint()

    @server.tool
    async def work(ctx: Context) -> list[bool]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(take_turns)
            given, progress = [], 0
            for later in (0.00101, 0.00001):  # seconds between two reports
                await ctx.progress(progress := progress + 1)
                before = turns[0]
                for _ in range(40):
                    now[0] += later
                    await ctx.progress(progress := progress + 1)
                given.append(turns[0] > before)
            tasks.cancel_scope.cancel()
        return given

    told: list[float] = []
    with anyio.fail_after(5):
        async with Client(server) as client:
            result = await client.call_tool("work", on_progress=lambda progress, *_: told.append(progress))
    assert (result.text, told) == ("[true,false]", list(range(1, 83)))


async def test_reports_in_a_row_wake_one_task_to_write_them(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server("telling")
    monkeypatch.setattr(context, "time", SimpleNamespace(monotonic=lambda: 5.0))

    @server.tool
    async def work(ctx: Context) -> int:
        await ctx.progress(1)
        before = len(anyio.get_running_tasks())
        for number in range(2, 40):
            await ctx.progress(number)
        return len(anyio.get_running_tasks()) - before

    with anyio.fail_after(5):
        async with Client(server) as client:
            assert (await client.call_tool("work", on_progress=lambda *_: None)).text == "1"


# -- log messages ----------------------------------------------------------------------------------------------------


@ERAS
@pytest.mark.parametrize("level", LOG_LEVELS)
async def test_messages_at_and_above_the_level_are_sent(era: Any, level: Any) -> None:
    told: list[Any] = []
    with anyio.fail_after(5):
        async with Client(make_server(), eras=(era,), on_log=told.append) as client:
            await client.set_log_level(level)
            await client.call_tool("say")
    wanted = LOG_LEVELS[LOG_LEVELS.index(level) :]
    assert [(each.level, each.data, each.logger) for each in told] == [
        (level, {"level": level}, "here") for level in wanted
    ]


async def test_without_a_level_legacy_sessions_hear_info_and_above_and_modern_requests_nothing() -> None:
    told: list[Any] = []
    with anyio.fail_after(5):
        async with Client(make_server(), eras=("legacy",), on_log=told.append) as client:
            await client.call_tool("say")
        assert [each.level for each in told] == list(LOG_LEVELS[LOG_LEVELS.index("info") :])
        told.clear()
        async with Client(make_server(), eras=("modern",), on_log=told.append) as client:
            await client.call_tool("say")
        assert told == []


@ERAS
@pytest.mark.parametrize("tool", ["say_in_thread", "say_by_name"])
async def test_every_level_has_a_method_of_its_name(era: Any, tool: str) -> None:
    told: list[Any] = []
    with anyio.fail_after(5):
        async with Client(make_server(), eras=(era,), on_log=told.append) as client:
            await client.set_log_level("debug")
            await client.call_tool(tool)
    said = [f"{each.level} {each.data}" for each in told]
    assert said[:6] == ["debug d", "info i", "notice n", "warning w", "error e", "critical c"]
    assert said[6:] == (["warning y"] if tool == "say_by_name" else [])


async def test_two_sessions_have_two_levels() -> None:
    told: dict[str, list[Any]] = {"one": [], "other": []}
    server = make_server()
    with anyio.fail_after(5):
        async with (
            Client(server, eras=("legacy",), on_log=told["one"].append) as one,
            Client(server, eras=("legacy",), on_log=told["other"].append) as other,
        ):
            await one.set_log_level("emergency")
            await other.set_log_level("alert")
            await one.call_tool("say")
            await other.call_tool("say")
    assert [each.level for each in told["one"]] == ["emergency"]
    assert [each.level for each in told["other"]] == ["alert", "emergency"]


async def test_a_modern_request_says_its_level_itself() -> None:
    with anyio.fail_after(5):
        async with connected(make_server()) as peer:
            await peer.call("say", {}, **{LEVEL: "alert"})
            await peer.call("say")
            levels = [message["params"]["level"] for message in peer.seen if "params" in message]
            assert levels == ["alert", "emergency"]


@pytest.mark.parametrize("level", ["loud", 3, None, ""])
async def test_a_level_that_does_not_exist_is_refused(level: Any) -> None:
    with anyio.fail_after(5):
        async with connected(make_server()) as peer:
            await peer.initialize()
            params = {} if level is None else {"level": level}
            answer = await peer.request("logging/setLevel", params, era="2025-11-25")
            assert answer["error"]["code"] == -32602


async def test_log_messages_keep_their_order_with_a_slow_callback_and_are_told_before_the_end() -> None:
    told: list[Any] = []

    async def slow(message: Any) -> None:
        for _ in range(50):
            await anyio.lowlevel.checkpoint()
        told.append(message.level)

    with anyio.fail_after(5):
        async with Client(make_server(), eras=("legacy",), on_log=slow) as client:
            await client.set_log_level("debug")
            await client.call_tool("say")
    assert told == list(LOG_LEVELS)


async def test_a_log_callback_that_fails_disturbs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def fail(message: Any) -> None:
        raise LookupError(message.level)

    with anyio.fail_after(5):
        async with Client(make_server(), eras=("legacy",), on_log=fail) as client:
            assert (await client.call_tool("say")).text == "said"
    assert caplog.text.count("a callback of the client failed") == len(LOG_LEVELS) - 1


def talkative() -> Server:
    server = Server("talkative")
    levels: Any = LOG_LEVELS

    @server.tool
    async def say(messages: list[Any], ctx: Context, level: str = levels[0]) -> list[str]:
        said: list[str] = []
        for message in messages:
            try:
                await ctx.log(cast(Any, level), message)
            except ValueError as error:
                said.append(str(error))
        return said

    @server.tool
    def say_in_thread(messages: list[Any], ctx: SyncContext, level: str = levels[0]) -> list[str]:
        said: list[str] = []
        for message in messages:
            try:
                ctx.log(cast(Any, level), message)
            except ValueError as error:
                said.append(str(error))
        return said

    @server.tool
    async def yields(message: Any, level: str = levels[0]) -> AsyncIterator[Log | str]:
        yield Log(message, cast(Any, level))
        yield "said"

    @server.tool
    async def with_meta(ctx: Context) -> AsyncIterator[Any]:
        await ctx.log("warning", "one", logger="here", meta={"example.com/n": 1})
        yield Log("two", "warning", meta={"example.com/n": 2})
        await ctx.progress(1, meta={"example.com/n": 3})
        yield Progress(2, meta={"example.com/n": 4})

    @server.tool
    def with_meta_in_thread(ctx: SyncContext) -> Iterator[Any]:
        ctx.log("warning", "one", logger="here", meta={"example.com/n": 1})
        yield Log("two", "warning", meta={"example.com/n": 2})
        ctx.progress(1, meta={"example.com/n": 3})
        yield Progress(2, meta={"example.com/n": 4})

    return server


EMPTY: list[Any] = [None, "", "  ", "\n"]


@ERAS
@pytest.mark.parametrize("heard", [True, False])
async def test_an_empty_message_or_a_level_that_does_not_exist_is_the_authors_mistake_whoever_listens(
    era: Any, heard: bool
) -> None:
    told: list[Any] = []
    with anyio.fail_after(5):
        async with Client(talkative(), eras=(era,), on_log=told.append) as client:
            await client.set_log_level("debug" if heard else "emergency")
            for tool in ("say", "say_in_thread"):
                said = json.loads((await client.call_tool(tool, {"messages": EMPTY})).text)
                assert len(said) == len(EMPTY) and all("an empty log message says nothing" in each for each in said)
                result = await client.call_tool(tool, {"messages": ["hello"], "level": "loud"})
                assert json.loads(result.text) == [f"there is no log level 'loud': use {', '.join(LOG_LEVELS)}"]
                said = json.loads((await client.call_tool(tool, {"messages": [0, False, [], {}, "x"]})).text)
                assert said == []
            result = await client.call_tool("yields", {"message": ""})
            assert result.is_error and "an empty log message says nothing" in result.text
            result = await client.call_tool("yields", {"message": "hello", "level": "loud"})
            assert result.is_error and "there is no log level 'loud'" in result.text
    assert [each.data for each in told] == ([0, False, [], {}, "x"] * 2 if heard else [])


@ERAS
@pytest.mark.parametrize("tool", ["with_meta", "with_meta_in_thread"])
async def test_notifications_may_carry_metadata_of_the_author(era: str, tool: str) -> None:
    version = MODERN if era == "modern" else "2025-11-25"
    with anyio.fail_after(5):
        async with connected(talkative()) as peer:
            if era == "legacy":
                await peer.initialize(version)
            await peer.call(tool, {}, era=version, progressToken="t", **{LEVEL: "debug"})
            params = [message["params"] for message in peer.seen if "params" in message]
    assert [(each["_meta"]["example.com/n"], each.get("data"), each.get("progress")) for each in params] == [
        (1, "one", None),
        (2, "two", None),
        (3, None, 1.0),
        (4, None, 2.0),
    ]
