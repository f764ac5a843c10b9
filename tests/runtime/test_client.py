"""A client's life: opened and closed from anywhere, with plain and named errors, and nothing left behind."""

import asyncio
import contextlib
import contextvars
import gc
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from mcpcore import (
    CacheHint,
    CallToolResult,
    Client,
    ConnectionLost,
    Context,
    Elicit,
    OutputValidationError,
    PeerError,
    RequestTimeout,
    ResourceLink,
    Roots,
    Sample,
    Server,
    TextContent,
    ToolResult,
)
from mcpcore.exceptions import LocalProtocolError, RemoteProtocolError, TransportError
from mcpcore.limits import Limits
from mcpcore.transports.memory import memory_pair
from tests.support.wires import MODERN, Lines, Peer, Scripted, connected

pytestmark = pytest.mark.anyio

ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])


def make_server(**options: Any) -> Server:
    server = Server("plain", **options)

    @server.tool
    async def echo(text: str) -> str:
        return text

    @server.tool
    async def wait(ctx: Context) -> str:
        await ctx.info("waiting")
        await anyio.sleep_forever()
        return "never"

    return server


def leftovers() -> set[str]:
    """Names of what still runs on this event loop beside the test."""
    gc.collect()
    current = anyio.get_current_task()
    return {task.name or "" for task in anyio.get_running_tasks() if task.id not in (current.id, current.parent_id)}


# -- opening and closing -----------------------------------------------------------------------------------------------


@ERAS
@pytest.mark.parametrize("over", [lambda server: server, Lines])
async def test_nothing_is_left_of_a_client_that_was_closed(era: Any, over: Any) -> None:
    before = leftovers()
    with anyio.fail_after(5):
        async with Client(over(make_server()), eras=(era,)) as client:
            await client.call_tool("echo", {"text": "x"})
    assert leftovers() == before


@ERAS
async def test_clients_may_be_closed_in_any_order(era: Any) -> None:
    server = make_server()
    with anyio.fail_after(5):
        clients = [await Client(server, eras=(era,)).connect() for _ in range(3)]
        for index in (0, 2, 1):
            await clients[index].aclose()
            for client in clients:
                if client is clients[index]:
                    with pytest.raises(ConnectionLost):
                        await client.call_tool("echo", {"text": "x"})
            await clients[index].aclose()


async def test_a_client_may_be_closed_by_another_task_than_opened_it() -> None:
    opened: list[Client] = []

    async def open_one() -> None:
        opened.append(await Client(make_server()).connect())

    async def close_one() -> None:
        await opened[0].aclose()

    with anyio.fail_after(5):
        for step in (open_one, close_one):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(step)


async def test_a_client_may_be_closed_by_its_own_callback() -> None:
    closing = anyio.Event()

    async def close(message: Any) -> None:
        await client.aclose()
        closing.set()

    client = Client(make_server(), eras=("legacy",), on_log=close)
    with anyio.fail_after(5):
        async with client:
            with pytest.raises(ConnectionLost):
                await client.call_tool("wait")
            await closing.wait()


async def test_a_client_can_be_used_again_after_it_was_closed() -> None:
    client = Client(make_server())
    with anyio.fail_after(5):
        for _ in range(3):
            async with client:
                assert (await client.call_tool("echo", {"text": "x"})).text == "x"


def test_on_asyncio_a_client_may_be_opened_in_one_run_and_closed_in_another() -> None:
    loop = asyncio.new_event_loop()
    client = Client(make_server())
    try:
        loop.run_until_complete(client.connect())
        result = loop.run_until_complete(client.call_tool("echo", {"text": "x"}))
        assert result.text == "x"
        loop.run_until_complete(client.aclose())
        assert asyncio.all_tasks(loop) == set()
    finally:
        loop.close()


async def test_nothing_that_was_kept_of_one_connection_is_believed_in_the_next() -> None:
    server = make_server(cache=CacheHint(60_000))
    client = Client(server)
    with anyio.fail_after(5):
        async with client:
            assert len(await client.list_tools()) == 2
        server.remove_tool("wait")
        async with client:
            assert len(await client.list_tools()) == 1

        async def numbered() -> dict[str, int]:
            return {"n": 1}

        async def lettered() -> dict[str, str]:
            return {"n": "a"}

        server.add_tool(numbered, name="t", output_schema=True)
        async with client:
            await client.list_tools()
        server.add_tool(lettered, name="t", output_schema=True)
        async with client:
            assert (await client.call_tool("t")).value == {"n": "a"}


async def test_what_the_block_raises_escapes_as_it_is() -> None:
    class Own(Exception):
        pass

    for target in (make_server(), Lines(make_server())):
        with anyio.fail_after(5), pytest.raises(Own):
            async with Client(target):
                raise Own


async def test_cancelling_while_connecting_leaves_nothing() -> None:
    before = leftovers()

    async def silent(peer: Peer) -> None:
        await anyio.sleep_forever()

    class Hanging:
        closed = False

        @asynccontextmanager
        async def open(self) -> AsyncGenerator[Any]:
            try:
                await anyio.sleep_forever()
                yield
            finally:
                Hanging.closed = True

    for target in (Scripted(silent), Hanging()):
        with anyio.move_on_after(0.02) as patience:
            async with Client(target):
                pytest.fail("must not connect")
        assert patience.cancelled_caught
    assert Hanging.closed and leftovers() == before


async def test_a_server_that_does_not_answer_the_opening_times_out() -> None:
    async def silent(peer: Peer) -> None:
        await anyio.sleep_forever()

    with anyio.fail_after(5), pytest.raises(RequestTimeout, match=r"within 0\.05 seconds"):
        async with Client(Scripted(silent), timeout=0.05):
            pytest.fail("must not connect")


async def test_the_handshake_is_never_cancelled_by_a_message() -> None:
    seen: list[str] = []

    async def silent(peer: Peer) -> None:
        while True:
            seen.append((await peer.receive())["method"])

    with anyio.fail_after(5), pytest.raises(RequestTimeout):
        async with Client(Scripted(silent), eras=("legacy",), timeout=0.05):
            pytest.fail("must not connect")
    assert seen == ["initialize"]


async def test_a_server_that_does_not_know_discovery_is_greeted_in_the_legacy_way_after_a_while() -> None:
    async def old(peer: Peer) -> None:
        message = await peer.receive()
        while message["method"] != "initialize":
            message = await peer.receive()
        info = {"name": "old", "version": "1"}
        result: Any = {"protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": info}
        await peer.send({"jsonrpc": "2.0", "id": message["id"], "result": result})
        await anyio.sleep_forever()

    with anyio.fail_after(5):
        async with Client(Scripted(old), limits=Limits(probe=0.02)) as client:
            assert client.protocol_version == "2024-11-05"


async def test_a_server_that_dies_of_discovery_is_connected_to_again() -> None:
    server = make_server()
    attempts: list[str] = []

    class Fragile:
        @asynccontextmanager
        async def open(self) -> AsyncIterator[Any]:
            near, far = memory_pair()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._serve, far)
                try:
                    yield near
                finally:
                    await near.aclose()
                    tasks.cancel_scope.cancel()

        async def _serve(self, channel: Any) -> None:
            if not attempts:
                attempts.append("first")
                await channel.receive()
                await channel.aclose()
            else:
                attempts.append("second")
                await server.serve_channel(channel)

    with anyio.fail_after(5):
        async with Client(Fragile()) as client:
            assert client.protocol_version == "2025-11-25"
    assert attempts == ["first", "second"]


async def test_a_transport_that_cannot_connect_says_why() -> None:
    class Broken:
        def __init__(self, error: Exception) -> None:
            self._error = error

        @asynccontextmanager
        async def open(self) -> AsyncGenerator[Any]:
            raise self._error
            yield

    errors = (
        TransportError("no route"),
        OSError("no network"),
        TimeoutError("too slow"),
        ExceptionGroup("g", [OSError()]),
    )
    for error in errors:
        wanted = OSError if isinstance(error, ExceptionGroup) else type(error)
        with anyio.fail_after(5), pytest.raises(wanted):
            async with Client(Broken(error)):
                pytest.fail("must not connect")


async def test_no_revision_in_common_is_said_in_words() -> None:
    with anyio.fail_after(5):
        with pytest.raises((RemoteProtocolError, PeerError)):
            async with Client(Server("old", eras=("legacy",)), eras=("modern",)):
                pytest.fail("must not connect")
        with pytest.raises((RemoteProtocolError, PeerError)):
            async with Client(Server("new", eras=("modern",)), eras=("legacy",)):
                pytest.fail("must not connect")


async def test_before_it_is_connected_a_client_says_so() -> None:
    client = Client(make_server())
    with pytest.raises(ConnectionLost, match="async with"):
        _ = client.server
    for call in (client.list_tools, client.ping):
        with pytest.raises(ConnectionLost, match="async with"):
            await call()
    await client.aclose()


# -- the loss of the server --------------------------------------------------------------------------------------------


@ERAS
async def test_calls_fail_promptly_when_the_server_goes_away(era: Any) -> None:
    server = make_server(limits=Limits(drain=0.01))
    with anyio.fail_after(5):
        async with Client(server, eras=(era,), timeout=None) as client:

            async def call() -> None:
                with pytest.raises(ConnectionLost):
                    await client.call_tool("wait")

            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(call)
                await anyio.wait_all_tasks_blocked()
                server.stop()
            with pytest.raises(ConnectionLost):
                await client.call_tool("echo", {"text": "x"})


async def test_what_a_channel_knows_about_its_end_is_what_calls_raise() -> None:
    class Dead(ConnectionLost):
        pass

    class Telling:
        @asynccontextmanager
        async def open(self) -> AsyncGenerator[Any]:
            near, far = memory_pair()
            near.failure = Dead("it was the power")  # type: ignore[attr-defined]  # what channels may offer
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._greet_and_die, Peer(far))
                yield near

        async def _greet_and_die(self, peer: Peer) -> None:
            message = await peer.receive()
            result: Any = {"resultType": "complete", "supportedVersions": [MODERN], "capabilities": {"tools": {}}}
            await peer.send({"jsonrpc": "2.0", "id": message["id"], "result": result})
            await peer.receive()
            await peer.channel.aclose()

    with anyio.fail_after(5):
        async with Client(Telling()) as client:
            for _ in range(2):
                with pytest.raises(Dead, match="the power"):
                    await client.call_tool("x")


# -- what comes by itself ----------------------------------------------------------------------------------------------


async def test_other_notifications_are_told_in_order_and_a_slow_callback_delays_no_answer() -> None:
    server = make_server()
    server.prompt(lambda: "p", name="p")
    told: list[str] = []
    gate = anyio.Event()

    async def slow(method: str, params: Any) -> None:
        await gate.wait()
        told.append(method)

    with anyio.fail_after(5):
        async with Client(server, eras=("legacy",), on_notification=slow) as client:
            await client.ping()
            server.notify_tools_changed()
            server.notify_prompts_changed()
            assert (await client.call_tool("echo", {"text": "x"})).text == "x"
            assert told == []
            gate.set()
    assert told == ["notifications/tools/list_changed", "notifications/prompts/list_changed"]


async def test_a_callback_that_never_ends_does_not_keep_the_client_open() -> None:
    async def stuck(message: Any) -> None:
        await anyio.sleep_forever()

    with anyio.fail_after(5):
        client = Client(make_server(), eras=("legacy",), on_log=stuck, limits=Limits(drain=0.05))
        async with client:
            with pytest.raises(RequestTimeout):
                await client.call_tool("wait", timeout=0.02)


async def test_callbacks_see_the_context_variables_of_whoever_connected() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="nobody")
    seen: list[str] = []
    variable.set("ada")
    with anyio.fail_after(5):
        async with Client(
            make_server(), eras=("legacy",), on_log=lambda message: seen.append(variable.get())
        ) as client:
            with pytest.raises(RequestTimeout):
                await client.call_tool("wait", timeout=0.02)
    assert seen == ["ada"]


async def test_a_client_answers_only_what_it_has_something_for() -> None:
    async def play(peer: Peer) -> None:
        message = await peer.receive()
        info = {"name": "old", "version": "1"}
        result: Any = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": info}
        assert message["params"]["capabilities"] == {"roots": {"listChanged": True}}
        await peer.send({"jsonrpc": "2.0", "id": message["id"], "result": result})
        assert (await peer.receive())["method"] == "notifications/initialized"
        for id, method, params in (
            ("s", "sampling/createMessage", {"messages": [], "maxTokens": 1}),
            ("r", "roots/list", {}),
            ("p", "ping", {}),
            ("x", "x/unknown", {}),
        ):
            await peer.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
            answers[id] = await peer.answer_to(id)
        done.set()

    answers: dict[str, Any] = {}
    done = anyio.Event()
    with anyio.fail_after(5):
        async with Client(Scripted(play), eras=("legacy",), roots=["file:///a"]) as client:
            await done.wait()
            await client.notify_roots_changed()
    assert answers["s"]["error"]["code"] == -32601 and answers["x"]["error"]["code"] == -32601
    assert answers["r"]["result"] == {"roots": [{"uri": "file:///a"}]} and answers["p"]["result"] == {}


def in_colour(colour: str, function: Callable[..., Any]) -> Callable[..., Any]:
    async def coloured(*args: Any) -> Any:
        await anyio.lowlevel.checkpoint()
        return function(*args)

    return function if colour == "def" else coloured


@ERAS
@pytest.mark.parametrize("colour", ["def", "async def"])
async def test_what_a_client_answers_and_hears_with_may_be_of_either_colour(era: Any, colour: str) -> None:
    server, heard = Server("asking"), list[Any]()
    server.prompt(lambda: "x", name="p")

    @server.tool
    async def ask(ctx: Context) -> str:
        answers = await ctx.ask(
            user=Elicit("Sure?", {"type": "object", "properties": {"x": {"type": "string"}}}),
            text=Sample("Hi"),
            at=Roots(),
        )
        await ctx.progress(1, total=2, message="half")
        await ctx.log("warning", {"a": 1}, logger="l")
        return f"{answers['user'].value} {answers['text'].content.text} {answers['at'][0].uri}"

    def hear(*what: Any) -> None:
        heard.append(what)

    answering: dict[str, Callable[..., Any]] = {
        "elicitation": lambda params: {"x": params.message},
        "sampling": lambda params: "said",
        "roots": lambda: ["file:///r"],
        "on_progress": hear,
        "on_log": lambda params: hear(params.level, params.logger, params.data),
        "on_notification": lambda method, params: hear(method),
    }
    coloured: Any = {name: in_colour(colour, function) for name, function in answering.items()}
    with anyio.fail_after(5):
        async with Client(server, eras=(era,), **coloured) as client:
            await client.set_log_level("debug")
            assert (await client.call_tool("ask")).text == "{'x': 'Sure?'} said file:///r"
            async with client.listen(prompts=True) as changes:
                server.prompt(lambda: "x", name="q")
                async for _ in changes:
                    break
    assert sorted(heard, key=repr) == [
        ("notifications/prompts/list_changed",),
        ("warning", "l", {"a": 1}),
        (1.0, 2.0, "half"),
    ]


# -- requests ----------------------------------------------------------------------------------------------------------


async def test_any_request_of_the_revision_can_be_sent() -> None:
    with anyio.fail_after(5):
        async with Client(make_server(), eras=("modern",)) as client:
            assert (await client.request("server/discover")).supported_versions == [MODERN]
            with pytest.raises(LocalProtocolError, match="no request ping"):
                await client.request("ping")


@pytest.mark.parametrize(
    "arguments", [{"text": float("nan")}, {"text": [1, {"x": (float("inf"),)}]}, {"text": None, "y": -float("inf")}]
)
async def test_numbers_that_json_does_not_have_are_not_turned_into_null(arguments: Any) -> None:
    with anyio.fail_after(5):
        async with Client(make_server()) as client:
            with pytest.raises(ValueError, match="NaN"):
                await client.call_tool("echo", arguments)
            with pytest.raises(TypeError):
                await client.call_tool("echo", {"text": object()})
            assert (await client.call_tool("echo", {"text": "null"})).text == "null"
            assert (await client.call_tool("echo", {"text": None, "y": [1.5]})).is_error


async def test_meta_reaches_the_handler() -> None:
    server = Server("meta")

    @server.tool
    async def trace(ctx: Context) -> str:
        return str(ctx.meta.get("example.com/trace"))

    with anyio.fail_after(5):
        async with Client(server) as client:
            assert (await client.call_tool("trace", meta={"example.com/trace": "t1"})).text == "t1"


async def test_the_client_and_server_tell_each_other_who_they_are() -> None:
    server = Server("who", version="2", title="Who", website_url="https://example.com")

    @server.tool
    async def caller(ctx: Context) -> str:
        assert ctx.client_info is not None
        return f"{ctx.client_info.name} {ctx.client_info.version} {ctx.request_id} {ctx.request.method}"

    with anyio.fail_after(5):
        async with Client(server, name="host", version="7") as client:
            assert client.server_info is not None and client.server_info.title == "Who"
            assert (await client.call_tool("caller")).text == "host 7 2 tools/call"


# -- results -----------------------------------------------------------------------------------------------------------


NESTED: Any = {"properties": {"n": {"type": "integer"}}}
for _ in range(110):
    NESTED = {"allOf": [NESTED]}


def structured(*results: Any, schema: Any = None) -> Scripted:
    """A modern server whose one tool has an output schema and gives these results in turn."""
    output = schema or {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    tools = [
        {"name": "t", "inputSchema": {"type": "object"}, "outputSchema": output},
        {"name": "good", "inputSchema": {"type": "object"}},
    ]
    left = list(results)

    async def play(peer: Peer) -> None:
        while True:
            message = await peer.receive()
            match message.get("method"):
                case "server/discover":
                    result: Any = {"supportedVersions": [MODERN], "capabilities": {"tools": {"listChanged": True}}}
                case "tools/list":
                    result = {"tools": tools}
                case "subscriptions/listen":
                    wanted = {"subscriptionId": message["id"], "notifications": message["params"]["notifications"]}
                    meta = {"io.modelcontextprotocol/subscriptionId": message["id"]}
                    for method, params in (
                        ("notifications/subscriptions/acknowledged", {"notifications": wanted["notifications"]}),
                        ("notifications/tools/list_changed", {}),
                    ):
                        await peer.send({"jsonrpc": "2.0", "method": method, "params": {**params, "_meta": meta}})
                    continue
                case "notifications/cancelled":
                    continue
                case _:
                    result = left.pop(0)
            await peer.send({"jsonrpc": "2.0", "id": message["id"], "result": {"resultType": "complete"} | result})

    return Scripted(play)


def result(value: Any = None, **more: Any) -> dict[str, Any]:
    content = {"content": [{"type": "text", "text": "usable"}]}
    return content | ({} if value is None else {"structuredContent": value}) | more


async def test_structured_content_must_fit_the_schema_that_was_listed() -> None:
    wrong = result({"n": "one"})
    with anyio.fail_after(5):
        async with Client(structured(wrong, wrong, result(), result({"n": 1}), result(isError=True))) as client:
            assert not (await client.call_tool("t")).is_error  # nothing was listed yet
            await client.list_tools()
            with pytest.raises(OutputValidationError, match="/n: string found, integer expected") as caught:
                await client.call_tool("t")
            assert caught.value.result.text == "usable"
            with pytest.raises(OutputValidationError, match="structured content is missing"):
                await client.call_tool("t")
            assert (await client.call_tool("t")).value == {"n": 1}
            assert (await client.call_tool("t")).is_error


@pytest.mark.parametrize(
    "schema",
    [
        {"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"n": {"type": "integer"}}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"a": {"$ref": "#/$defs/a"}, "n": {"type": "integer"}}}}},
        {"properties": {"n": {"type": "integer"}, "s": {"pattern": "^(a+)+$"}}},
        NESTED,
    ],
    ids=["older dialect", "recursive", "a pattern that could take for ever", "deep"],
)
async def test_an_odd_schema_that_can_be_used_is_used_and_harms_no_other_tool(schema: Any) -> None:
    good, slow, wrong = result({"n": 1}), result({"s": "a" * 64 + "!"}), result({"n": "one"})
    with anyio.fail_after(10):
        async with Client(structured(good, good, wrong, slow, schema={"type": "object", **schema})) as client:
            assert len(await client.list_tools()) == 2
            for name in ("t", "good"):
                assert (await client.call_tool(name)).structured == {"n": 1}
            with pytest.raises(OutputValidationError) as caught:
                await client.call_tool("t")
            assert caught.value.result.text == "usable"
            with contextlib.suppress(OutputValidationError):
                await client.call_tool("t")


async def test_a_list_that_comes_again_brings_new_schemas() -> None:
    schemas: list[Any] = [
        {"type": "object", "properties": {"n": {"type": "string"}}},
        {"type": "object", "properties": {"n": {"type": "integer"}}},
    ]

    async def play(peer: Peer) -> None:
        while True:
            message = await peer.receive()
            if message["method"] == "server/discover":
                answer: Any = {"supportedVersions": [MODERN], "capabilities": {"tools": {}}}
            elif message["method"] == "tools/list":
                answer = {"tools": [{"name": "t", "inputSchema": {}, "outputSchema": schemas.pop(0)}]}
            else:
                answer = result({"n": 1})
            await peer.send({"jsonrpc": "2.0", "id": message["id"], "result": {"resultType": "complete"} | answer})

    with anyio.fail_after(5):
        async with Client(Scripted(play)) as client:
            await client.list_tools()
            with pytest.raises(OutputValidationError):
                await client.call_tool("t")
            await client.list_tools()
            assert (await client.call_tool("t")).value == {"n": 1}


async def test_a_lenient_client_only_warns(caplog: pytest.LogCaptureFixture) -> None:
    with anyio.fail_after(5):
        async with Client(structured(result({"n": "one"})), validate="lenient") as client:
            await client.list_tools()
            assert (await client.call_tool("t")).structured == {"n": "one"}
    assert "does not fit its schema" in caplog.text


class Changing:
    """A server that lists its tool with a schema and a hint, then with others; and that counts what it is asked."""

    def __init__(self, *, lists: int = 9, changes_meanwhile: bool = False) -> None:
        self.asked: list[str] = []
        self.lists = lists
        self.changes_meanwhile = changes_meanwhile

    async def play(self, peer: Peer) -> None:
        while True:
            message = await peer.receive()
            method = message["method"]
            if "id" not in message:
                continue
            self.asked.append(method)
            answer: Any = {"result": {"content": [{"type": "text", "text": "x"}], "structuredContent": {"n": 1}}}
            if method == "initialize":
                facts = {"capabilities": {"tools": {"listChanged": True}}, "serverInfo": {"name": "x", "version": "1"}}
                answer = {"result": {"protocolVersion": "2025-11-25", **facts}}
            elif method == "tools/list" and self.asked.count(method) > self.lists:
                answer = {"error": {"code": -32603, "message": "no list today"}}
            elif method == "tools/list":
                if self.changes_meanwhile and self.asked.count(method) == 1:
                    await peer.send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
                kind = "integer" if self.asked.count(method) == 1 else "string"
                schema = {"type": "object", "properties": {"n": {"type": kind}}}
                hints = {"readOnlyHint": kind == "integer"}
                answer = {
                    "result": {
                        "tools": [
                            {
                                "name": "t",
                                "inputSchema": {"type": "object"},
                                "outputSchema": schema,
                                "annotations": hints,
                            }
                        ]
                    }
                }
            elif method == "ping":
                await peer.send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
                answer = {"result": {}}
            await peer.send({"jsonrpc": "2.0", "id": message["id"], **answer})


async def test_when_the_tools_have_changed_they_are_listed_again_before_the_next_call() -> None:
    changing = Changing()
    with anyio.fail_after(5):
        async with Client(Scripted(changing.play), eras=("legacy",), trusted=True) as client:
            assert (await client.call_tool("t")).structured == {"n": 1}
            await client.ping()
            assert (await client.call_tool("t")).structured == {"n": 1}  # nobody has asked for a list so far
            assert "tools/list" not in changing.asked
            await client.list_tools()
            assert (await client.call_tool("t")).structured == {"n": 1}
            await client.ping()
            async with anyio.create_task_group() as group:
                for _ in range(2):
                    group.start_soon(refused, client)
            await refused(client)
    assert changing.asked.count("tools/list") == 2


async def refused(client: Client) -> None:
    with pytest.raises(OutputValidationError, match="/n: integer found, string expected"):
        await client.call_tool("t")


async def test_a_list_that_was_under_way_when_the_tools_changed_is_not_believed() -> None:
    changing = Changing(changes_meanwhile=True)
    with anyio.fail_after(5):
        async with Client(Scripted(changing.play), eras=("legacy",)) as client:
            await client.list_tools()
            await refused(client)
    assert changing.asked.count("tools/list") == 2


async def test_where_changed_tools_cannot_be_listed_calls_go_on_unchecked(caplog: pytest.LogCaptureFixture) -> None:
    changing = Changing(lists=1)
    with anyio.fail_after(5):
        async with Client(Scripted(changing.play), eras=("legacy",), trusted=True) as client:
            await client.list_tools()
            assert "t" in client._retry_safe  # by the hints that were listed
            await client.ping()
            for _ in range(2):
                assert (await client.call_tool("t")).structured == {"n": 1}
                assert "t" not in client._retry_safe
    assert changing.asked.count("tools/list") == 2 and caplog.text.count("no list today") == 1


async def test_a_structured_null_is_a_value() -> None:
    server = Server("nothing")

    @server.tool(output_schema="any")
    async def nothing() -> int | None:
        return None

    with anyio.fail_after(5):
        async with Client(server) as client:
            result = await client.call_tool("nothing")
            assert (result.value, result.structured, result.text) == (None, None, "null")
        async with Client(server, eras=("legacy",)) as client:
            assert (await client.call_tool("nothing")).value == ""


@ERAS
async def test_a_handler_passes_on_what_another_server_has_answered(era: Any) -> None:
    upstream, gateway = Server("upstream"), Server("gateway")

    @upstream.tool
    async def mixed(fails: bool) -> CallToolResult:
        return CallToolResult([TextContent("a"), ResourceLink("x://b", "b")], {"n": 1}, fails, {"m": 1})

    async with Client(upstream) as inner:

        @gateway.tool
        async def relay(fails: bool) -> ToolResult:
            return await inner.call_tool("mixed", {"fails": fails})

        with anyio.fail_after(5):
            async with Client(gateway, eras=(era,)) as client:
                for fails in (False, True):
                    direct = await inner.call_tool("mixed", {"fails": fails})
                    relayed = await client.call_tool("relay", {"fails": fails})
                    assert relayed.content == direct.content and len(direct.content) == 2
                    assert (relayed.value, relayed.is_error) == (direct.value, direct.is_error) == ({"n": 1}, fails)
                    assert relayed.meta is not None and relayed.meta["m"] == 1


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"n": {"$ref": "#/$defs/missing"}}},
        {"$ref": "http://127.0.0.1:9/schema"},
        {"type": "nothing"},
        {"type": "object", "properties": 5},
        {"type": "object", "$schema": "urn:a-dialect-of-nobody"},
        {"type": "object", "properties": {"n": {"pattern": "(unclosed"}}},
        {"type": "object", "properties": {"n": {"type": "integer"}, "required": ["n"]}},
    ],
)
async def test_a_schema_that_is_of_no_use_costs_no_result(schema: Any, caplog: pytest.LogCaptureFixture) -> None:
    with anyio.fail_after(5):
        async with Client(structured(*[result({"n": 1})] * 3, schema=schema)) as client:
            assert len(await client.list_tools()) == 2
            for name in ("t", "t", "good"):
                assert (await client.call_tool(name)).structured == {"n": 1}
    assert caplog.text.count("is of no use") == 1


def test_how_to_validate_is_one_of_two_words() -> None:
    with pytest.raises(ValueError, match="'strict' or 'lenient'"):
        Client(make_server(), validate="never")  # type: ignore[arg-type]  # on purpose


async def test_items_that_cannot_be_understood_are_left_out_and_reported(caplog: pytest.LogCaptureFixture) -> None:
    async def play(peer: Peer) -> None:
        while True:
            message = await peer.receive()
            if message["method"] == "server/discover":
                answer: Any = {"supportedVersions": [MODERN], "capabilities": {"tools": {}}}
            else:
                answer = {"tools": [{"name": 5}, {"name": "b", "description": None, "inputSchema": {"type": "object"}}]}
            await peer.send({"jsonrpc": "2.0", "id": message["id"], "result": {"resultType": "complete"} | answer})

    with caplog.at_level(logging.WARNING), anyio.fail_after(5):
        async with Client(Scripted(play)) as client:
            assert [each.name for each in await client.list_tools()] == ["b"]
    assert "left out of the answer to tools/list" in caplog.text


@ERAS
async def test_many_calls_at_once_get_their_own_answers(era: Any) -> None:
    results: dict[int, str] = {}
    with anyio.fail_after(10):
        async with Client(Lines(make_server()), eras=(era,)) as client:

            async def call(number: int) -> None:
                results[number] = (await client.call_tool("echo", {"text": f"<{number}>"})).text

            async with anyio.create_task_group() as tasks:
                for number in range(300):
                    tasks.start_soon(call, number)
    assert results == {number: f"<{number}>" for number in range(300)}


async def test_a_large_result_arrives_whole() -> None:
    with anyio.fail_after(10):
        async with Client(Lines(make_server())) as client:
            text = "ö" * 3_000_000
            assert (await client.call_tool("echo", {"text": text})).text == text


async def test_the_connection_survives_what_a_peer_should_not_send() -> None:
    async with connected(make_server()) as peer:
        for data in (b"{", b"[]", b'{"jsonrpc":"2.0"}', b'{"jsonrpc":"2.0","id":1,"result":{}}', b"null"):
            await peer.send(data)
        assert (await peer.call("echo", {"text": "x"}))["result"]["content"][0]["text"] == "x"
