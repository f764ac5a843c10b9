"""What goes wrong in handlers, to the letter: what the model reads, what the client is answered, what the log keeps."""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal, TypedDict

import anyio
import anyio.lowlevel
import pytest

from mcpcore import (
    CallToolResult,
    CapabilityError,
    Client,
    Context,
    Depends,
    InsufficientScope,
    McpError,
    PeerError,
    Progress,
    ResourceNotFound,
    Server,
    ToolError,
)
from mcpcore.runtime.request import Message
from mcpcore.types.completion import PromptReference
from mcpcore.versions import VERSIONS
from tests.support.reaching import WAYS, reached
from tests.support.wires import MODERN, Peer, connected

pytestmark = pytest.mark.anyio

ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])


class PaymentDown(Exception):
    """Declared hard by the tool below."""


def _nested() -> str:
    try:
        raise OSError("db host 10.0.0.5 password=hunter2")
    except OSError as error:
        raise ValueError("no such order") from error


RAISED: dict[str, Any] = {
    "os_error": lambda: OSError("db host 10.0.0.5 password=hunter2"),
    "assertion": lambda: AssertionError("hunter2"),
    "memory": lambda: MemoryError("hunter2"),
    "recursion": lambda: RecursionError("hunter2"),
    "exit": lambda: SystemExit("hunter2"),
    "value": lambda: ValueError("Invalid status 'X'."),
    "empty": lambda: ValueError(),
    "lookup": lambda: KeyError("order"),
    "runtime": lambda: RuntimeError("went wrong"),
    "tool": lambda: ToolError("Ask again tomorrow."),
    "bare": lambda: ToolError("Ask again tomorrow.", prefix=False),
    "payment": lambda: PaymentDown("hunter2"),
    "mcp": lambda: McpError(-31000, "Own words", {"own": ["data"]}),
    "group_of_one": lambda: ExceptionGroup("hunter2", [ValueError("inner")]),
    "group_with_answer": lambda: ExceptionGroup(
        "x", [ValueError("a"), McpError(-31000, "Own words", {"own": ["data"]})]
    ),
    "scope": lambda: InsufficientScope("orders:write"),
    "capability": lambda: CapabilityError("cannot do that here"),
    "peer": lambda: PeerError(-32000, "hunter2"),
}


def raising(**options: Any) -> Server:
    server = Server("raising", **options)

    def decorate(name: str, make: Any) -> None:
        async def awaited() -> str:
            await anyio.lowlevel.checkpoint()
            raise make()

        def threaded() -> str:
            raise make()

        async def streamed() -> AsyncIterator[Any]:
            yield Progress(1)
            yield "discarded"
            raise make()

        async def dependency() -> str:
            raise make()

        async def depending(value: Annotated[str, Depends(dependency)]) -> str:
            return value

        async def grouped() -> str:
            async with anyio.create_task_group():
                raise make()
            return "never"

        for kind, function in (
            ("awaited", awaited),
            ("threaded", threaded),
            ("streamed", streamed),
            ("depending", depending),
            ("grouped", grouped),
        ):
            function.__name__ = "f"
            server.add_tool(function, name=f"{name}-{kind}", raises=(PaymentDown,))

    for name, make in (RAISED | STRAYS | {"silent": Silent}).items():
        decorate(name, make)

    @server.tool
    def nested() -> str:
        return _nested()

    @server.tool
    async def quick() -> str:
        return "quick"

    return server


KINDS = pytest.mark.parametrize("kind", ["awaited", "threaded", "streamed", "depending", "grouped"])


@ERAS
@KINDS
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("value", "Error invoking method: f\nInvalid status 'X'."),
        ("empty", "Error invoking method: f\nValueError"),
        ("lookup", "Error invoking method: f\n'order'"),
        ("runtime", "Error invoking method: f\nwent wrong"),
        ("tool", "Error invoking method: f\nAsk again tomorrow."),
        ("bare", "Ask again tomorrow."),
        ("group_of_one", "Error invoking method: f\ninner"),
    ],
)
async def test_the_model_reads_the_functions_name_and_the_exceptions_own_words(
    era: Any, kind: str, name: str, text: str
) -> None:
    with anyio.fail_after(5):
        async with Client(raising(), eras=(era,)) as client:
            result = await client.call_tool(f"{name}-{kind}")
            assert (result.is_error, result.text, result.structured) == (True, text, None)


@ERAS
@KINDS
@pytest.mark.parametrize("name", ["os_error", "assertion", "memory", "recursion", "exit", "peer"])
async def test_what_the_machine_says_stays_in_the_log(
    era: Any, kind: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with anyio.fail_after(5):
        async with Client(raising(), eras=(era,)) as client:
            result = await client.call_tool(f"{name}-{kind}")
            assert result.is_error
            first, second = result.text.splitlines()
            assert first == "Error invoking method: f"
            reference = second.removeprefix("Internal error (ref ").removesuffix(")")
            assert len(reference) == 8
            (record,) = [each for each in caplog.records if reference in each.getMessage()]
            assert record.levelno == logging.ERROR and record.exc_info
            assert "hunter2" in caplog.text
            assert (await client.call_tool("quick")).text == "quick"


@ERAS
@KINDS
async def test_an_exception_that_the_tool_declared_hard_fails_the_request(
    era: Any, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    with anyio.fail_after(5):
        async with Client(raising(), eras=(era,)) as client:
            with pytest.raises(PeerError) as caught:
                await client.call_tool(f"payment-{kind}")
            assert (caught.value.code, caught.value.message, caught.value.data) == (-32603, "Internal error", None)
    assert "hunter2" in caplog.text


@ERAS
@KINDS
@pytest.mark.parametrize("name", ["mcp", "group_with_answer"])
async def test_an_error_of_the_protocol_is_answered_as_it_is(era: Any, kind: str, name: str) -> None:
    with anyio.fail_after(5):
        async with Client(raising(), eras=(era,)) as client:
            with pytest.raises(PeerError) as caught:
                await client.call_tool(f"{name}-{kind}")
            error = caught.value
            assert (error.code, error.message, error.data) == (-31000, "Own words", {"own": ["data"]})


@ERAS
async def test_only_the_outer_message_of_a_chain_is_sent(era: Any) -> None:
    with anyio.fail_after(5):
        async with Client(raising(), eras=(era,)) as client:
            assert (await client.call_tool("nested")).text == "Error invoking method: nested\nno such order"


@ERAS
async def test_masking_leaves_only_what_authors_meant_to_say(era: Any) -> None:
    with anyio.fail_after(5):
        async with Client(raising(mask_unexpected=True), eras=(era,)) as client:
            assert "Internal error (ref" in (await client.call_tool("runtime-awaited")).text
            for name in ("value", "lookup", "tool"):
                assert "Internal error" not in (await client.call_tool(f"{name}-awaited")).text


@ERAS
async def test_the_text_can_be_made_by_the_application(era: Any, caplog: pytest.LogCaptureFixture) -> None:
    def format_error(tool: str, error: BaseException) -> str:
        if tool == "lookup-awaited":
            raise LookupError("cannot say")
        return f"{tool}: {type(error).__name__}"

    with anyio.fail_after(5):
        async with Client(raising(format_error=format_error), eras=(era,)) as client:
            assert (await client.call_tool("value-awaited")).text == "value-awaited: ValueError"
            assert (await client.call_tool("lookup-awaited")).text == "Error invoking method: f\n'order'"
    assert "format_error failed" in caplog.text


@ERAS
async def test_a_missing_scope_is_an_error_that_names_it(era: Any) -> None:
    with anyio.fail_after(5):
        async with Client(raising(), eras=(era,)) as client:
            with pytest.raises(PeerError, match="orders:write") as caught:
                await client.call_tool("scope-awaited")
            assert caught.value.code == -32600


@ERAS
async def test_a_capability_error_without_a_capability_is_an_ordinary_failure(era: Any) -> None:
    with anyio.fail_after(5):
        async with Client(raising(), eras=(era,)) as client:
            result = await client.call_tool("capability-awaited")
            assert result.text == "Error invoking method: f\ncannot do that here"


# -- what no handler should raise --------------------------------------------------------------------------------------


class Panic(BaseException):
    """What extension modules raise when they have lost their way."""


class Silent(Exception):
    def __str__(self) -> str:
        raise RuntimeError("hunter2")


STRAYS: dict[str, Any] = {
    "cancelled": lambda: asyncio.CancelledError("hunter2"),
    "panic": lambda: Panic("hunter2"),
    "panics": lambda: BaseExceptionGroup("hunter2", [Panic("hunter2"), ValueError("hunter2")]),
}


@ERAS
@KINDS
@pytest.mark.parametrize("name", STRAYS)
async def test_what_no_handler_should_raise_fails_its_call_and_no_other(
    era: Any, kind: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with anyio.fail_after(5):
        async with Client(raising(), eras=(era,)) as client:
            result = await client.call_tool(f"{name}-{kind}")
            assert result.is_error
            first, second = result.text.splitlines()
            assert first == "Error invoking method: f" and second.startswith("Internal error (ref ")
            assert "hunter2" in caplog.text
            assert (await client.call_tool("quick")).text == "quick"
            assert (await client.call_tool("value-threaded")).is_error


@ERAS
@KINDS
async def test_an_exception_that_cannot_even_be_read_is_told_by_its_class(era: Any, kind: str) -> None:
    with anyio.fail_after(5):
        async with Client(raising(), eras=(era,)) as client:
            assert (await client.call_tool(f"silent-{kind}")).text == "Error invoking method: f\nSilent"


@ERAS
@pytest.mark.parametrize("name", STRAYS)
async def test_what_no_handler_should_raise_is_an_internal_error_of_the_other_kinds(era: Any, name: str) -> None:
    with anyio.fail_after(5):
        async with Client(other_kinds(), eras=(era,)) as client:
            for call in (
                lambda: client.read_resource(f"fail://{name}"),
                lambda: client.get_prompt("prompt", {"how": name}),
                lambda: client.complete(PromptReference("prompt"), "how", name),
            ):
                with pytest.raises(PeerError) as caught:
                    await call()
                assert (caught.value.code, caught.value.message) == (-32603, "Internal error")


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("timeout", [None, 60.0])
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_cancellation_of_something_else_that_a_tool_waits_for_is_its_failure(
    era: Any, timeout: float | None
) -> None:
    server = Server("waiting")

    @server.tool(timeout=timeout)
    async def wait() -> str:
        task = asyncio.ensure_future(asyncio.sleep(3600))
        task.cancel()
        await task
        return "never"

    @server.tool(timeout=timeout)
    async def quick() -> str:
        return "quick"

    with anyio.fail_after(5):
        async with Client(server, eras=(era,)) as client:
            assert (await client.call_tool("wait")).is_error
            assert (await client.call_tool("quick")).text == "quick"


@pytest.mark.parametrize("name", STRAYS)
async def test_what_no_function_of_a_legacy_client_should_raise_fails_only_what_it_was_to_answer(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server("asking")

    @server.tool
    async def ask(ctx: Context) -> str:
        await ctx.roots()
        return "never"

    @server.tool
    async def quick() -> str:
        return "quick"

    async def roots() -> Any:
        raise STRAYS[name]()

    with anyio.fail_after(5):
        async with Client(server, eras=("legacy",), roots=roots) as client:
            assert (await client.call_tool("ask")).is_error
            assert "the function that answers roots/list failed" in caplog.text
            assert (await client.call_tool("quick")).text == "quick"


@ERAS
async def test_what_no_middleware_should_raise_is_an_internal_error(era: Any) -> None:
    async def stumble(message: Message, call_next: Any) -> Any:
        if message.method == "tools/call":
            raise Panic("hunter2")
        return await call_next(message)

    server = Server("stumbling", middleware=[stumble])

    @server.tool
    async def quick() -> str:
        return "quick"

    with anyio.fail_after(5):
        async with Client(server, eras=(era,)) as client:
            with pytest.raises(PeerError, match="Internal error"):
                await client.call_tool("quick")
            await client.list_tools()


# -- reserved codes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [-32020, -32021, -32022, -32042, -32099])
async def test_a_modern_client_is_never_answered_with_a_code_that_is_the_specifications(
    code: int, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server("reserved")

    @server.tool
    async def fail() -> str:
        raise McpError(code, "Mine")

    with anyio.fail_after(5):
        async with Client(server, eras=("modern",)) as client:
            with pytest.raises(PeerError) as caught:
                await client.call_tool("fail")
            assert (caught.value.code, caught.value.message) == (-32603, "Internal error")
        assert [each.levelno for each in caplog.records if str(code) in each.getMessage()] == [logging.ERROR]
        async with Client(server, eras=("legacy",)) as client:
            with pytest.raises(PeerError) as caught:
                await client.call_tool("fail")
            assert (caught.value.code, caught.value.message) == (code, "Mine")


@pytest.mark.parametrize("code", [-32000, -32019, -32100, -32602, 0, 17])
async def test_other_codes_are_answered_as_they_are(code: int) -> None:
    server = Server("own")

    @server.tool
    async def fail() -> str:
        raise McpError(code, "Mine", 5)

    with anyio.fail_after(5):
        async with Client(server, eras=("modern",)) as client:
            with pytest.raises(PeerError) as caught:
                await client.call_tool("fail")
            assert (caught.value.code, caught.value.message, caught.value.data) == (code, "Mine", 5)


# -- the other kinds ---------------------------------------------------------------------------------------------------


def other_kinds() -> Server:
    server = Server("others")

    @server.resource("fail://{how}")
    async def resource(how: str) -> Any:
        if how == "missing":
            raise ResourceNotFound("fail://missing")
        if how == "none":
            return None
        raise (RAISED | STRAYS)[how]()

    @server.prompt
    def prompt(how: str) -> str:
        raise (RAISED | STRAYS)[how]()

    @server.complete(prompt="prompt", argument="how")
    async def completion(prefix: str) -> list[str]:
        raise (RAISED | STRAYS)[prefix]()

    return server


@ERAS
@pytest.mark.parametrize("name", ["value", "tool", "os_error", "exit", "runtime", "group_of_one"])
async def test_failures_of_other_kinds_are_internal_errors_that_say_nothing(
    era: Any, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with anyio.fail_after(5):
        async with Client(other_kinds(), eras=(era,)) as client:
            for call in (
                lambda: client.read_resource(f"fail://{name}"),
                lambda: client.get_prompt("prompt", {"how": name}),
                lambda: client.complete(PromptReference("prompt"), "how", name),
            ):
                caplog.clear()
                with pytest.raises(PeerError) as caught:
                    await call()
                error = caught.value
                assert (error.code, error.message, error.data) == (-32603, "Internal error", None)
                assert any(record.exc_info for record in caplog.records if record.levelno == logging.ERROR)


@ERAS
@pytest.mark.parametrize("how", ["missing", "none"])
async def test_a_resource_that_is_not_there_says_which(era: Any, how: str) -> None:
    with anyio.fail_after(5):
        async with Client(other_kinds(), eras=(era,)) as client:
            with pytest.raises(PeerError) as caught:
                await client.read_resource(f"fail://{how}")
            assert caught.value.code == (-32002 if era == "legacy" else -32602)
            assert caught.value.data == {"uri": f"fail://{how}"}


async def test_the_code_of_a_missing_resource_follows_the_revision_whoever_gave_it() -> None:
    server = Server("own code")

    @server.resource("own://it")
    async def resource() -> str:
        raise McpError(-32002, "Gone", {"uri": "own://it"})

    with anyio.fail_after(5):
        for era, code in (("legacy", -32002), ("modern", -32602)):
            async with Client(server, eras=(era,)) as client:  # type: ignore[arg-type]  # one of the two
                with pytest.raises(PeerError) as caught:
                    await client.read_resource("own://it")
                assert (caught.value.code, caught.value.data) == (code, {"uri": "own://it"})


# -- requests that cannot be served ------------------------------------------------------------------------------------


@ERAS
@pytest.mark.parametrize("arguments", ['"{}"', "[]", "5", "true"])
async def test_arguments_that_are_no_object_are_refused_and_the_connection_goes_on(era: str, arguments: str) -> None:
    version = MODERN if era == "modern" else "2025-11-25"
    async with connected(raising()) as peer:
        if era == "legacy":
            await peer.initialize()
        answer = await _raw_call(peer, version, arguments)
        assert answer.get("error", {}).get("code") == -32602 or answer["result"]["isError"]
        assert "result" in await peer.call("quick", era=version)


@pytest.mark.parametrize("arguments", ["null", "{}", None])
async def test_a_tool_without_parameters_needs_no_arguments(arguments: str | None) -> None:
    async with connected(raising()) as peer:
        assert (await _raw_call(peer, MODERN, arguments))["result"]["isError"] is False


async def _raw_call(peer: Peer, version: str, arguments: str | None) -> dict[str, Any]:
    meta = (
        ',"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
        '"io.modelcontextprotocol/clientCapabilities":{}}'
    )
    member = "" if arguments is None else f',"arguments":{arguments}'
    params = f'{{"name":"quick"{member}{meta if version == MODERN else ""}}}'
    await peer.send(f'{{"jsonrpc":"2.0","id":"raw","method":"tools/call","params":{params}}}'.encode())
    return await peer.answer_to("raw")


@ERAS
async def test_a_result_that_cannot_be_written_is_a_tool_error(era: Any) -> None:
    server = Server("odd")

    @server.tool
    async def nan() -> float:
        return float("nan")

    @server.tool
    async def thing() -> Any:
        return {"x": object()}

    @server.tool
    async def meta() -> CallToolResult:
        return CallToolResult([], meta={"x": object()})

    with anyio.fail_after(5):
        async with Client(server, eras=(era,)) as client:
            for name in ("nan", "thing", "meta"):
                assert (await client.call_tool(name)).is_error


@ERAS
async def test_a_result_that_middleware_made_unwritable_is_an_internal_error(era: Any) -> None:
    async def spoil(message: Message, call_next: Any) -> Any:
        result = await call_next(message)
        return CallToolResult([], meta={"x": object()}) if message.method == "tools/call" else result

    server = Server("spoilt", middleware=[spoil])

    @server.tool
    async def quick() -> str:
        return "quick"

    with anyio.fail_after(5):
        async with Client(server, eras=(era,)) as client:
            with pytest.raises(PeerError, match="Internal error"):
                await client.call_tool("quick")
            await client.ping()


def deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


@ERAS
@pytest.mark.parametrize(
    "error",
    [
        McpError(-1, "no JSON", {"x": object()}),
        McpError(-1, "half a \ud800 pair"),
        McpError(-1, ValueError("an exception for a message")),  # type: ignore[arg-type]
        McpError(-32042, "visit", {"elicitations": [object()]}),
        McpError(-1, "without end", deep(2000)),
    ],
    ids=["data", "surrogate", "message", "visits", "depth"],
)
async def test_an_error_that_cannot_be_written_is_an_internal_error_and_the_connection_goes_on(
    era: Any, error: McpError, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server("odd")

    @server.tool
    async def fails() -> None:
        raise error

    @server.prompt(name="fails")
    def fails_as_well() -> str:
        raise error

    with anyio.fail_after(5):
        async with Client(server, eras=(era,)) as client:
            with pytest.raises(PeerError, match="Internal error"):
                await client.call_tool("fails")
            with pytest.raises(PeerError, match="Internal error"):
                await client.get_prompt("fails")
            await client.ping()
    assert [record.levelname for record in caplog.records if "failed with" in record.message] == ["ERROR", "ERROR"]


# -- which of the two errors -------------------------------------------------------------------------------------------


class Total(TypedDict):
    total: int


def everything_wrong() -> Server:
    server = Server("everything wrong")

    @server.tool(output_schema=True)
    def broken(how: Literal["raises", "error", "shape", "nothing", "fits"], total: int = 1) -> Total:
        if how == "raises":
            raise ValueError("what went wrong")
        wrong: Any = {"error": CallToolResult.error("what went wrong"), "shape": {"total": "many"}, "nothing": None}
        return Total(total=total) if how == "fits" else wrong[how]

    @server.tool(visible=lambda principal: False)
    def hidden() -> str:
        return "hidden"

    @server.tool
    def removed() -> str:
        return "removed"

    server.registry.remove("tool", "removed")
    return server


@pytest.mark.parametrize("over", WAYS)
@pytest.mark.parametrize("version", VERSIONS)
async def test_what_the_model_can_mend_is_a_result_and_what_the_client_did_is_an_error(over: str, version: str) -> None:
    with anyio.fail_after(20):
        async with reached(everything_wrong(), over) as target, Client(target, protocol_version=version) as client:
            for name in ("no_such_tool", "hidden", "removed", "Broken", "broken ", ""):
                with pytest.raises(PeerError) as caught:
                    await client.call_tool(name)
                assert (caught.value.code, caught.value.message) == (-32602, f"Unknown tool: {name}")
            heading = "Tool (broken) input validation failed: Validation failed: JSON schema validation errors: "
            for arguments, said in (
                ({}, "[/how: required property not found]"),
                ({"how": "often"}, '[/how: value "often" must be one of [raises, error, shape, nothing, fits]]'),
                ({"how": "fits", "total": "1"}, "[/total: string found, integer expected]"),
                ({"how": "fits", "more": 1}, "[/more: unexpected property]"),
            ):
                result = await client.call_tool("broken", arguments)
                assert (result.is_error, result.text) == (True, heading + said)


@pytest.mark.parametrize("over", WAYS)
@pytest.mark.parametrize("version", VERSIONS)
async def test_the_text_of_an_error_reaches_the_caller_whatever_the_tool_promised(over: str, version: str) -> None:
    with anyio.fail_after(20):
        async with reached(everything_wrong(), over) as target, Client(target, protocol_version=version) as client:
            await client.list_tools()  # from here on the client holds results to the schema
            raised = await client.call_tool("broken", {"how": "raises"})
            assert (raised.is_error, raised.text) == (True, "Error invoking method: broken\nwhat went wrong")
            given = await client.call_tool("broken", {"how": "error"})
            assert (given.is_error, given.text) == (True, "what went wrong")
            assert raised.structured is None and given.structured is None
            if version >= "2025-06-18":
                for how in ("shape", "nothing"):
                    result = await client.call_tool("broken", {"how": how})
                    assert result.is_error and result.structured is None
                    assert result.text.startswith("Tool (broken) output validation failed: ")
            fits = await client.call_tool("broken", {"how": "fits"})
            assert fits.is_error is False and fits.structured == ({"total": 1} if version >= "2025-06-18" else None)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", [None, 5, True, ["quick"], {"a": 1}, ...])
async def test_a_call_without_the_name_of_a_tool_is_refused_and_the_connection_goes_on(version: str, name: Any) -> None:
    async with connected(raising()) as peer:
        if version != MODERN:
            await peer.initialize(version)
        params = {} if name is ... else {"name": name}
        answer = await peer.request("tools/call", params | {"arguments": {}}, era=version)
        assert answer["error"]["code"] == -32602 and "result" not in answer
        assert (await peer.call("quick", era=version))["result"]["isError"] is False


@ERAS
async def test_a_tool_goes_on_after_its_name_is_removed_and_given_to_another(era: Any) -> None:
    server = Server("changing")
    entered, go_on = anyio.Event(), anyio.Event()

    async def first() -> str:
        entered.set()
        await go_on.wait()
        return "first"

    async def second() -> str:
        return "second"

    server.add_tool(first, name="it")
    results: list[str] = []
    with anyio.fail_after(5):
        async with Client(server, eras=(era,)) as client, anyio.create_task_group() as tasks:

            async def call() -> None:
                results.append((await client.call_tool("it")).text)

            tasks.start_soon(call)
            await entered.wait()
            server.registry.remove("tool", "it")
            with pytest.raises(PeerError, match="Unknown tool: it"):
                await client.call_tool("it")
            server.add_tool(second, name="it")
            assert (await client.call_tool("it")).text == "second"
            assert not results
            go_on.set()
    assert results == ["first"]
