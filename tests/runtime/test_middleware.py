"""Middleware: around every request and notification, in order, and the ones that come with the package."""

import logging
from typing import Annotated, Any

import anyio
import anyio.lowlevel
import pytest
from msgspec import Struct

from mcpcore import Client, Context, InsufficientScope, McpError, Param, PeerError, Server, ToolError
from mcpcore.runtime.audit import AuditLog
from mcpcore.runtime.middleware import ConcurrencyLimit, Next, RateLimit, ResponseLimit, Timing
from mcpcore.runtime.request import Message, Notification, Request
from mcpcore.types.completion import PromptReference
from mcpcore.types.tools import CallToolResult
from tests.support.wires import MODERN, connected

pytestmark = pytest.mark.anyio

ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])


class Account(Struct):
    user: str
    password: Annotated[str, Param(secret=True)]


class Panic(BaseException):
    """What extension modules raise when they panic."""


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def make_server(*middleware: Any) -> Server:
    server = Server("wrapped", middleware=middleware)

    @server.tool
    async def echo(text: str, ctx: Context) -> str:
        return f"{text}{ctx.state.get('added', '')}"

    @server.tool
    async def login(user: str, password: Annotated[str, Param("The password", secret=True)]) -> str:
        return user

    @server.tool
    async def log_in_all(accounts: list[Account]) -> str:
        return f"{len(accounts)} in"

    @server.tool
    async def fail(how: str) -> str:
        if how == "hard":
            raise McpError(-31000, "hard")
        if how == "denied":
            raise InsufficientScope("admin")
        raise ToolError("soft")

    @server.tool
    async def wait() -> str:
        await anyio.sleep_forever()
        return "never"

    @server.tool
    async def confirm(ctx: Context) -> str:
        return (await ctx.elicit("Sure?", {"type": "object", "properties": {}})).action

    @server.resource("a://it")
    async def resource() -> str:
        return "r"

    @server.prompt
    async def prompt(x: str) -> str:
        return "p"

    @server.complete(prompt="prompt")
    async def completion(prefix: str) -> list[str]:
        return [prefix]

    return server


# -- the chain ---------------------------------------------------------------------------------------------------------


@ERAS
async def test_the_first_is_outermost_and_all_see_every_request_that_reaches_a_handler(era: Any) -> None:
    log: list[str] = []

    def noting(name: str) -> Any:
        async def note(message: Message, call_next: Next) -> Any:
            if not isinstance(message, Request):
                return await call_next(message)
            log.append(f"{name} {message.method}")
            try:
                return await call_next(message)
            finally:
                log.append(f"{name} done")

        return note

    with anyio.fail_after(5):
        async with Client(make_server(noting("outer"), noting("inner")), eras=(era,)) as client:
            await client.call_tool("echo", {"text": "x"})
            assert log == ["outer tools/call", "inner tools/call", "inner done", "outer done"]
            log.clear()
            await client.list_tools()
            await client.list_resources()
            await client.list_resource_templates()
            await client.list_prompts()
            await client.read_resource("a://it")
            await client.get_prompt("prompt", {"x": "1"})
            await client.complete(PromptReference("prompt"), "x", "")
    assert [entry.removeprefix("outer ") for entry in log if entry.startswith("outer ") and "done" not in entry] == [
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "prompts/list",
        "resources/read",
        "prompts/get",
        "completion/complete",
    ]


@ERAS
async def test_middleware_may_answer_change_and_refuse(era: Any) -> None:
    async def meddle(message: Message, call_next: Next) -> Any:
        if message.method != "tools/call":
            return await call_next(message)
        text = message.params.arguments and bytes(message.params.arguments).decode()
        if "answer" in text:
            return CallToolResult.text("from the middleware")
        if "refuse" in text:
            raise McpError(-31001, "Not today")
        if "crash" in text:
            raise LookupError("hunter2")
        message.state["added"] = "!"
        result = await call_next(message)
        return CallToolResult.text(result.content[0].text.upper())

    with anyio.fail_after(5):
        async with Client(make_server(meddle), eras=(era,)) as client:
            assert (await client.call_tool("echo", {"text": "answer"})).text == "from the middleware"
            assert (await client.call_tool("echo", {"text": "hello"})).text == "HELLO!"
            for text, code in (("refuse", -31001), ("crash", -32603)):
                with pytest.raises(PeerError) as caught:
                    await client.call_tool("echo", {"text": text})
                assert caught.value.code == code and "hunter2" not in caught.value.message


async def test_notifications_pass_through_the_same_chain(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Any] = []
    everything = anyio.Event()

    async def note(message: Message, call_next: Next) -> Any:
        if isinstance(message, Notification):
            assert message.caller is not None and message.caller.version == "2025-11-25"
            assert await call_next(message) is None
            seen.append((message.method, getattr(message.params, "request_id", None)))
            if len(seen) == 3:
                everything.set()
            if message.method == "notifications/roots/list_changed":
                raise LookupError("cannot cope")
            return None
        return await call_next(message)

    async with connected(make_server(note)) as peer:
        await peer.initialize()
        id = await peer.start("tools/call", {"name": "wait"}, era="2025-11-25")
        await peer.notify("notifications/roots/list_changed")
        await peer.notify("notifications/cancelled", {"requestId": id})
        with anyio.fail_after(5):
            await everything.wait()
        assert "result" in await peer.request("ping", era="2025-11-25")
    assert sorted(seen, key=str) == [
        ("notifications/cancelled", id),
        ("notifications/initialized", None),
        ("notifications/roots/list_changed", None),
    ]
    assert "middleware failed at notifications/roots/list_changed" in caplog.text


@pytest.mark.parametrize(
    ("era", "method"),
    [
        *((era, method) for era in ("legacy", "modern") for method in ("tools/call", "tools/list", "resources/read")),
        ("modern", "subscriptions/listen"),
    ],
)
async def test_middleware_that_forgets_to_return_the_result_is_told_so_and_the_client_is_answered(
    era: str, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def forgetful(message: Message, call_next: Next) -> Any:
        if message.method == method and method != "subscriptions/listen":
            await call_next(message)
        elif message.method != method:
            return await call_next(message)
        return None

    params: dict[str, Any] = {
        "tools/call": {"name": "echo", "arguments": {"text": "x"}},
        "resources/read": {"uri": "a://it"},
        "subscriptions/listen": {"notifications": {"toolsListChanged": True}},
    }
    async with connected(make_server(forgetful)) as peer:
        if era == "legacy":
            await peer.initialize()
        with anyio.fail_after(5):
            version = MODERN if era == "modern" else "2025-11-25"
            answer = await peer.request(method, params.get(method), era=version)
    assert (answer["error"]["code"], answer["error"]["message"]) == (-32603, "Internal error")
    assert "return what call_next gives" in caplog.text


async def test_a_subscription_is_open_although_its_middleware_returns_nothing() -> None:
    async def passing(message: Message, call_next: Next) -> Any:
        return await call_next(message)

    server = make_server(passing)
    with anyio.fail_after(5):
        async with Client(server) as client, client.listen(tools=True) as changes:
            server.add_tool(lambda: "late", name="late")
            async for method, _ in changes:
                assert method == "notifications/tools/list_changed"
                break


@pytest.mark.parametrize("error", [LookupError("at a notification"), Panic("at a notification")])
async def test_middleware_that_fails_at_a_notification_disturbs_nothing_else(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    async def failing(message: Message, call_next: Next) -> Any:
        if isinstance(message, Notification):
            raise error
        return await call_next(message)

    async with connected(make_server(failing)) as peer:
        await peer.initialize()
        await peer.notify("notifications/roots/list_changed")
        with anyio.fail_after(5):
            answer = await peer.call("echo", {"text": "x"}, era="2025-11-25")
    assert answer["result"]["isError"] is False
    assert "middleware failed at notifications/roots/list_changed" in caplog.text


async def test_middleware_sees_who_calls_and_what_the_handler_sees() -> None:
    seen: list[Any] = []

    async def note(message: Message, call_next: Next) -> Any:
        if isinstance(message, Request):
            seen.append((message.id, message.caller.version, message.principal, message.scope.transport, message.meta))
        return await call_next(message)

    async with connected(make_server(note)) as peer:
        id = await peer.start("tools/call", {"name": "echo", "arguments": {"text": "x"}}, trace="t")
        await peer.answer_to(id)
    ((seen_id, version, principal, transport, meta),) = seen
    assert (seen_id, version, principal, transport, meta["trace"]) == (id, MODERN, None, "memory", "t")


# -- audit -------------------------------------------------------------------------------------------------------------


def records(caplog: pytest.LogCaptureFixture) -> list[Any]:
    return [record for record in caplog.records if record.name == "mcpcore.audit"]


@ERAS
@pytest.mark.parametrize(
    ("tool", "arguments", "outcome"),
    [
        ("echo", {"text": "x"}, "ok"),
        ("echo", {"wrong": 1}, "tool_error"),
        ("fail", {"how": "soft"}, "tool_error"),
        ("fail", {"how": "hard"}, "hard_error"),
        ("fail", {"how": "denied"}, "denied"),
        ("no_such_tool", {}, "hard_error"),
        ("confirm", {}, "ok"),
    ],
)
async def test_every_call_of_a_tool_leaves_one_record(
    era: Any, tool: str, arguments: Any, outcome: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "mcpcore.audit"), anyio.fail_after(5):
        client = Client(make_server(), eras=(era,), name="host", version="2.0", elicitation=lambda params: {})
        async with client:
            await client.list_tools()
            try:
                await client.call_tool(tool, arguments)
            except PeerError:
                pass
    (record,) = records(caplog)
    assert (record.tool, record.arguments, record.outcome) == (tool, arguments, outcome)
    assert (record.caller, record.session, record.client) == ("anonymous", None, "host/2.0")
    assert isinstance(record.request_id, int) and record.duration_ms >= 0


async def test_a_round_that_asks_is_a_record_for_debugging_only(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "mcpcore.audit"), anyio.fail_after(5):
        async with Client(make_server(), elicitation=lambda params: {}) as client:
            await client.call_tool("confirm")
    assert [(each.levelname, each.outcome) for each in records(caplog)] == [("DEBUG", "input_required"), ("INFO", "ok")]


async def test_a_cancelled_call_is_recorded_as_such(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "mcpcore.audit"), anyio.fail_after(5):
        async with Client(make_server()) as client:
            with pytest.raises(TimeoutError):
                await client.call_tool("wait", timeout=0.01)
            await client.ping()
    assert [each.outcome for each in records(caplog)] == ["cancelled"]


async def test_a_call_that_was_cancelled_is_recorded_as_such_even_if_it_could_not_be_stopped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = make_server()
    started, gate = anyio.Event(), anyio.Event()

    @server.tool
    async def stubborn() -> str:
        started.set()
        with anyio.CancelScope(shield=True):
            await gate.wait()
        return "done all the same"

    with caplog.at_level(logging.INFO, "mcpcore.audit"):
        async with connected(server) as peer:
            id = await peer.start("tools/call", {"name": "stubborn"})
            with anyio.fail_after(5):
                await started.wait()
            await peer.notify("notifications/cancelled", {"requestId": id})
            await anyio.wait_all_tasks_blocked()
            gate.set()
            assert await peer.is_quiet()
    assert [each.outcome for each in records(caplog)] == ["cancelled"]


async def test_secrets_are_masked_and_long_arguments_cut(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "mcpcore.audit"), anyio.fail_after(5):
        async with Client(make_server()) as client:
            await client.call_tool("login", {"user": "ada", "password": "hunter2"})
            await client.call_tool("echo", {"text": "x" * 10_000})
            await client.call_tool("log_in_all", {"accounts": [{"user": "ada", "password": "hunter2"}]})
    login, echo, several = records(caplog)
    assert login.arguments == {"user": "ada", "password": "***"}
    assert several.arguments == {"accounts": [{"user": "ada", "password": "***"}]}
    assert echo.arguments.startswith('{"text":"xxx') and echo.arguments.endswith("… (10011 characters)")
    assert len(echo.arguments) < 4200
    assert "hunter2" not in caplog.text


async def test_what_is_recorded_can_be_chosen(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()

    def redact(tool: str, arguments: dict[str, Any]) -> Any:
        clock.now += 0.25
        if "crash" in arguments.get("text", ""):
            raise LookupError("x")
        return sorted(arguments)

    audit = AuditLog(redact=redact, clock=clock)
    with caplog.at_level(logging.INFO, "mcpcore.audit"), anyio.fail_after(5):
        async with Client(make_server(audit)) as client:
            await client.call_tool("login", {"user": "ada", "password": "hunter2"})
            await client.call_tool("echo", {"text": "crash hunter2"})
    login, echo = [record for record in records(caplog) if hasattr(record, "tool")]
    assert (login.arguments, login.duration_ms) == (["password", "user"], 0.0)
    assert echo.arguments == "***" and "the redactor failed" in caplog.text


def endless(tool: str, arguments: Any) -> Any:
    several: list[Any] = []
    several.append(several)
    return several


class Unshowable:
    def __repr__(self) -> str:
        raise LookupError("no repr")


@ERAS
@pytest.mark.parametrize("redact", [endless, lambda tool, arguments: Unshowable()])
async def test_what_a_redactor_returns_cannot_fail_the_call(
    era: Any, redact: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "mcpcore.audit"), anyio.fail_after(5):
        async with Client(make_server(AuditLog(redact=redact)), eras=(era,)) as client:
            assert (await client.call_tool("echo", {"text": "hunter2"})).text == "hunter2"
    (record,) = [record for record in records(caplog) if hasattr(record, "tool")]
    assert (record.arguments, record.outcome) == ("***", "ok")
    assert "the redactor failed" in caplog.text and "hunter2" not in caplog.text


async def test_secrets_are_masked_for_callers_who_may_not_see_the_tool_and_after_it_has_gone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = Server("hiding")

    async def unlock(password: Annotated[str, Param(secret=True)]) -> str:
        server.remove_tool("unlock")
        return "unlocked"

    server.tool(unlock, visible=lambda principal: False, name="hidden")
    server.tool(unlock)
    with caplog.at_level(logging.INFO, "mcpcore.audit"), anyio.fail_after(5):
        async with Client(server) as client:
            with pytest.raises(PeerError, match="Unknown tool"):
                await client.call_tool("hidden", {"password": "hunter2"})
            await client.call_tool("unlock", {"password": "hunter2"})
    shown = [(each.tool, each.arguments, each.outcome) for each in records(caplog)]
    masked = {"password": "***"}
    assert shown == [("hidden", masked, "hard_error"), ("unlock", masked, "ok")]


async def test_the_name_of_a_tool_cannot_pass_for_a_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "mcpcore.audit"), anyio.fail_after(5):
        async with Client(make_server()) as client:
            with pytest.raises(PeerError):
                await client.call_tool("x: ok after 1.0 ms\nada called pay")
    (record,) = records(caplog)
    assert "\n" not in record.getMessage() and record.tool == "x: ok after 1.0 ms\nada called pay"


async def test_without_a_listener_nothing_is_recorded(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "mcpcore.audit"), anyio.fail_after(5):
        async with Client(make_server()) as client:
            await client.call_tool("echo", {"text": "x"})
    assert records(caplog) == []


# -- the others --------------------------------------------------------------------------------------------------------


async def test_timing_reports_how_long_each_message_took_also_when_it_failed() -> None:
    clock, seen = Clock(), list[tuple[str, float]]()

    async def slow(message: Message, call_next: Next) -> Any:
        clock.now += 0.5
        return await call_next(message)

    timing = Timing(lambda message, seconds: seen.append((message.method, seconds)), clock=clock)
    with anyio.fail_after(5):
        async with Client(make_server(timing, slow)) as client:
            await client.call_tool("echo", {"text": "x"})
            with pytest.raises(PeerError):
                await client.call_tool("nothing")
    assert seen == [("tools/call", 0.5), ("tools/call", 0.5)]


async def test_timing_goes_to_the_log_where_nobody_else_wants_it(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "mcpcore.timing"), anyio.fail_after(5):
        async with Client(make_server(Timing())) as client:
            await client.call_tool("echo", {"text": "x"})
    assert "tools/call took" in caplog.text


async def test_a_rate_is_kept_after_a_burst_and_says_when_to_come_again() -> None:
    clock = Clock()
    with anyio.fail_after(5):
        async with Client(make_server(RateLimit(2, burst=3, clock=clock))) as client:
            for _ in range(3):
                await client.call_tool("echo", {"text": "x"})
            with pytest.raises(PeerError, match=r"try again in 0\.5 seconds") as caught:
                await client.call_tool("echo", {"text": "x"})
            assert caught.value.data == {"retryAfter": 0.5}
            clock.now += 0.5
            await client.call_tool("echo", {"text": "x"})
            with pytest.raises(PeerError, match="Rate limit exceeded"):
                await client.list_tools()
            clock.now += 1000
            for _ in range(3):
                await client.call_tool("echo", {"text": "x"})
            with pytest.raises(PeerError):
                await client.call_tool("echo", {"text": "x"})


async def test_rates_are_counted_by_what_the_key_says() -> None:
    limit = RateLimit(0.001, burst=1, key=lambda message: message.params.name, clock=Clock())
    with anyio.fail_after(5):
        async with Client(make_server(limit)) as client:
            await client.call_tool("echo", {"text": "x"})
            await client.call_tool("login", {"user": "x", "password": "y"})
            with pytest.raises(PeerError):
                await client.call_tool("echo", {"text": "x"})


async def test_a_caller_may_run_so_many_requests_at_once_and_then_again() -> None:
    with anyio.fail_after(5):
        limit = ConcurrencyLimit(2)
        async with Client(make_server(limit)) as client:
            async with anyio.create_task_group() as tasks:
                for _ in range(2):
                    tasks.start_soon(client.call_tool, "wait")
                await anyio.wait_all_tasks_blocked()
                with pytest.raises(PeerError, match="Server busy"):
                    await client.call_tool("echo", {"text": "x"})
                async with client.listen(tools=True):
                    pass
                tasks.cancel_scope.cancel()
            await client.ping()
            assert (await client.call_tool("echo", {"text": "x"})).text == "x"
    assert limit._running == {}


async def test_a_result_that_is_too_large_says_so() -> None:
    with anyio.fail_after(5):
        async with Client(make_server(ResponseLimit(200))) as client:
            assert (await client.call_tool("echo", {"text": "short"})).is_error is False
            result = await client.call_tool("echo", {"text": "x" * 200})
            assert result.is_error and "more than the 200 that are allowed" in result.text
            with pytest.raises(PeerError, match="more than the 200"):
                await client.list_tools()


@pytest.mark.parametrize(
    "make", [lambda: RateLimit(0), lambda: RateLimit(1, burst=0), lambda: ConcurrencyLimit(0), lambda: RateLimit(-1)]
)
def test_limits_that_allow_nothing_are_refused(make: Any) -> None:
    with pytest.raises(ValueError, match=r"at least 1|positive"):
        make()


async def test_a_rate_limit_remembers_no_more_callers_than_it_has_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpcore.runtime.middleware._MOST_KEYS", 2)
    names = iter(["a", "b", "c", "a"])
    limit = RateLimit(0.001, burst=1, key=lambda message: next(names), clock=Clock())
    with anyio.fail_after(5):
        async with Client(make_server(limit)) as client:
            for _ in range(4):  # the fourth caller is the first, who has been forgotten
                await client.call_tool("echo", {"text": "x"})
