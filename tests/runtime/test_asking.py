"""Asking the client: the same handler in both eras, whatever the client can, says, or does not say."""

from enum import Enum
from typing import Annotated, Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import msgspec
import pytest
from msgspec import Struct

from mcpcore import (
    CallToolResult,
    CapabilityError,
    Client,
    Context,
    Depends,
    Elicit,
    McpError,
    PeerError,
    Roots,
    Sample,
    Server,
    SyncContext,
    TextContent,
    ToolError,
)
from mcpcore.abc import ChannelInfo
from mcpcore.exceptions import RemoteProtocolError
from mcpcore.limits import Limits
from mcpcore.runtime.middleware import Next
from mcpcore.runtime.request import Message
from mcpcore.transports.memory import memory_pair
from mcpcore.types.elicitation import ElicitParams, ElicitResult
from mcpcore.types.roots import Root
from mcpcore.types.sampling import CreateMessageParams, CreateMessageResult, SamplingMessage
from mcpcore.types.utilities import InputRequest, InputRequiredResult
from tests.support.reaching import WAYS, reached
from tests.support.wires import MODERN, Lines, Peer, Scripted, connected

pytestmark = pytest.mark.anyio

ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


class Booking(Struct):
    name: str
    seats: Annotated[int, msgspec.Meta(ge=1)]
    size: Size = Size.SMALL
    window: bool | None = None


class Nested(Struct):
    booking: Booking


def make_server(**options: Any) -> Server:
    server = Server("asking", **options)
    server.secret_runs = 0  # type: ignore[attr-defined]  # how often a body ran

    @server.tool
    async def book(ctx: Context) -> str:
        match await ctx.elicit("How many seats?", Booking):
            case reply if reply.value is not None:
                return f"{reply.action} {reply.value!r}"
            case reply:
                return f"{reply.action} {reply.value}"

    @server.tool
    def book_in_thread(ctx: SyncContext) -> str:
        reply = ctx.elicit("How many seats?", Booking)
        return f"{reply.action} {reply.value!r}"

    @server.tool
    async def by_schema(ctx: Context) -> str:
        schema = {
            "type": "object",
            "properties": {"n": {"type": "integer", "minimum": 1}},
            "required": ["n"],
        }
        reply = await ctx.elicit("How many?", schema)
        return f"{reply.action} {reply.value}"

    @server.tool
    async def nested(ctx: Context) -> str:
        await ctx.elicit("What?", Nested)
        return "never"

    @server.tool
    async def nested_schema(ctx: Context) -> str:
        await ctx.elicit("What?", {"type": "object", "properties": {"x": {"type": "object", "properties": {}}}})
        return "never"

    @server.tool
    async def visit(ctx: Context) -> str:
        reply = await ctx.elicit_url("Sign in", "https://example.com/sign-in")
        return f"{reply.action} {reply.accepted} {reply.value}"

    @server.tool
    async def think(ctx: Context) -> str:
        result = await ctx.sample("What is the capital of France?", max_tokens=10, system_prompt="Be brief.")
        return f"{result.model}: {getattr(result.content, 'text', '')}"

    @server.tool
    def think_in_thread(ctx: SyncContext) -> str:
        messages: list[str | SamplingMessage] = ["One", SamplingMessage("assistant", TextContent("Two"))]
        return str(getattr(ctx.sample(messages).content, "text", ""))

    @server.tool
    async def folders(ctx: Context) -> list[str]:
        return [root.uri for root in await ctx.roots()]

    @server.tool
    async def everything(ctx: Context) -> str:
        answers = await ctx.ask(who=Elicit("Who?", Booking), what=Sample("What?"), where=Roots())
        return f"{answers['who'].value.name} {answers['what'].content.text} {answers['where'][0].uri}"

    @server.tool
    async def three_times(ctx: Context) -> str:
        server.secret_runs += 1  # type: ignore[attr-defined]
        names = [(await ctx.elicit(f"Name {number}?", Booking)).value for number in (1, 2, 3)]
        return " ".join(booking.name for booking in names if booking)

    @server.tool
    async def confirmed(
        title: str,
        sure: Annotated[bool, Elicit("Delete it?")],
        why: Annotated[str | None, Elicit("Why?")] = None,
    ) -> str:
        server.secret_runs += 1  # type: ignore[attr-defined]
        return f"{title} {sure} {why}"

    async def account(name: Annotated[str, Elicit("Which account?")], ctx: Context) -> str:
        return f"{name} in {ctx.protocol_version}"

    @server.tool
    async def through_dependency(account: Annotated[str, Depends(account)]) -> str:
        return account

    @server.tool
    async def abilities(ctx: Context) -> dict[str, bool]:
        return {"form": ctx.can_elicit, "url": ctx.can_elicit_url, "model": ctx.can_sample, "roots": ctx.can_roots}

    @server.tool
    async def copes(ctx: Context) -> str:
        try:
            await ctx.sample("Anybody?")
        except CapabilityError:
            return "did without"
        return "asked"

    @server.tool
    async def alive(ctx: Context) -> str:
        await ctx.ping()
        return "alive"

    @server.prompt
    async def letter(ctx: Context) -> str:
        return f"Dear {(await ctx.elicit('To whom?', Booking)).value}"

    @server.resource("letters://{name}")
    async def read_letter(name: str, ctx: Context) -> str:
        return f"{name}: {(await ctx.elicit('Which?', Booking)).action}"

    return server


def accept(params: ElicitParams) -> Any:
    return {"name": "Ada", "seats": 2}


def client(target: Any, era: str, **options: Any) -> Client:
    eras: Any = (era,)
    return Client(target, eras=eras, **options)


# -- forms -------------------------------------------------------------------------------------------------------------


@ERAS
@pytest.mark.parametrize("tool", ["book", "book_in_thread"])
@pytest.mark.parametrize("over", ["memory", "lines"])
async def test_an_accepted_form_arrives_as_an_instance(era: str, tool: str, over: str) -> None:
    asked: list[ElicitParams] = []

    async def elicitation(params: ElicitParams) -> Any:
        asked.append(params)
        await anyio.lowlevel.checkpoint()
        return {"name": "Ada", "seats": 2, "size": "large"}

    server = make_server()
    with anyio.fail_after(5):
        target = server if over == "memory" else Lines(server)
        async with client(target, era, elicitation=elicitation) as connection:
            result = await connection.call_tool(tool)
    assert result.text == "accept Booking(name='Ada', seats=2, size=<Size.LARGE: 'large'>, window=None)"
    (params,) = asked
    assert params.message == "How many seats?"
    assert params.requested_schema == {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "seats": {"type": "integer", "minimum": 1},
            "size": {"type": "string", "enum": ["small", "large"], "default": "small"},
            "window": {"type": "boolean"},
        },
        "required": ["name", "seats"],
    }


@ERAS
@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (None, "decline None"),
        (ElicitResult("decline"), "decline None"),
        (ElicitResult("cancel"), "cancel None"),
        (ElicitResult("cancel", {"name": "left over"}), "cancel None"),
    ],
)
@pytest.mark.parametrize("tool", ["book", "book_in_thread", "by_schema"])
async def test_declining_and_cancelling_are_told_apart_and_bring_no_value(
    era: str, answer: Any, text: str, tool: str
) -> None:
    with anyio.fail_after(5):
        async with client(make_server(), era, elicitation=lambda params: answer) as connection:
            assert (await connection.call_tool(tool)).text == text


@ERAS
@pytest.mark.parametrize(
    ("content", "named"),
    [
        ({"name": "Ada"}, "seats"),
        ({"name": "Ada", "seats": 0}, "seats"),
        ({"name": "Ada", "seats": "2"}, "seats"),
        ({"name": "Ada", "seats": 2, "size": "huge"}, "size"),
        ({"name": "Ada", "seats": 2, "more": 1}, "more"),
    ],
)
async def test_an_answer_that_does_not_fit_the_form_never_reaches_the_handler(
    era: str, content: Any, named: str
) -> None:
    with anyio.fail_after(5):
        async with client(make_server(), era, elicitation=lambda params: content) as connection:
            if era == "legacy":
                result = await connection.call_tool("book")
                assert result.is_error and f"/{named}" in result.text
            else:
                with pytest.raises(PeerError, match=f"/{named}") as caught:
                    await connection.call_tool("book")
                assert caught.value.code == -32602


@ERAS
async def test_a_json_schema_is_a_form_too_and_is_enforced(era: str) -> None:
    answers: list[Any] = [{"n": 3}, {"n": 0}]
    with anyio.fail_after(5):
        async with client(make_server(), era, elicitation=lambda params: answers.pop(0)) as connection:
            assert (await connection.call_tool("by_schema")).text == "accept {'n': 3}"
            if era == "legacy":
                assert "/n" in (await connection.call_tool("by_schema")).text
            else:
                with pytest.raises(PeerError, match="/n"):
                    await connection.call_tool("by_schema")


@ERAS
@pytest.mark.parametrize("tool", ["nested", "nested_schema"])
async def test_a_form_that_is_not_flat_is_refused_where_it_is_made(
    era: str, tool: str, caplog: pytest.LogCaptureFixture
) -> None:
    with anyio.fail_after(5):
        async with client(make_server(), era, elicitation=accept) as connection:
            result = await connection.call_tool(tool)
    assert result.is_error and "ref" in result.text
    assert "is not flat" in caplog.text


# -- URLs, models, folders ---------------------------------------------------------------------------------------------


@ERAS
async def test_a_visit_to_a_url_is_asked_for_with_an_id_where_the_revision_wants_one(era: str) -> None:
    asked: list[ElicitParams] = []

    def elicitation(params: ElicitParams) -> Any:
        asked.append(params)
        return ElicitResult("accept")

    with anyio.fail_after(5):
        async with client(make_server(), era, elicitation=elicitation) as connection:
            assert (await connection.call_tool("visit")).text == "accept True None"
    (params,) = asked
    assert (params.mode, params.url, params.requested_schema) == ("url", "https://example.com/sign-in", None)
    assert (params.elicitation_id is not None) is (era == "legacy")


@ERAS
async def test_the_clients_model_is_asked(era: str) -> None:
    asked: list[CreateMessageParams] = []

    async def sampling(params: CreateMessageParams) -> Any:
        asked.append(params)
        return CreateMessageResult("assistant", TextContent("Paris"), "model-1", stop_reason="endTurn")

    with anyio.fail_after(5):
        async with client(make_server(), era, sampling=sampling) as connection:
            assert (await connection.call_tool("think")).text == "model-1: Paris"
            assert (await connection.call_tool("think_in_thread")).text == "Paris"
    assert (asked[0].max_tokens, asked[0].system_prompt) == (10, "Be brief.")
    assert [(each.role, getattr(each.content, "text", "")) for each in asked[1].messages] == [
        ("user", "One"),
        ("assistant", "Two"),
    ]


@ERAS
async def test_a_question_for_the_model_is_sent_with_a_limit_and_without_the_callers_progress_token(era: str) -> None:
    server = Server("sampling")

    @server.tool
    async def think(ctx: Context) -> str:
        assert ctx.progress_token == "t"
        await ctx.sample("What?")
        return "thought"

    with anyio.fail_after(5):
        async with connected(server) as peer:
            if era == "legacy":
                await peer.initialize(sampling={})
                await peer.start("tools/call", {"name": "think"}, era="2025-11-25", progressToken="t")
                question = await peer.receive()
            else:
                declared: dict[str, Any] = {"io.modelcontextprotocol/clientCapabilities": {"sampling": {}}}
                answer = await peer.call("think", {}, progressToken="t", **declared)
                question = answer["result"]["inputRequests"]["sample-1"]
    assert question["method"] == "sampling/createMessage"
    assert question["params"] == {
        "messages": [{"role": "user", "content": {"type": "text", "text": "What?"}}],
        "maxTokens": 500,
    }


@ERAS
async def test_what_is_no_question_or_cannot_be_asked_fails_its_own_call_only(era: str) -> None:
    server = Server("careless")
    no_number: Any = "many"
    text: Any = "What is your name?"

    @server.tool
    async def malformed(ctx: Context) -> str:
        await ctx.sample("What?", max_tokens=no_number)
        return "never"

    @server.tool
    async def no_question(ctx: Context) -> str:
        await ctx.ask(name=text)
        return "never"

    @server.tool
    async def fine() -> str:
        return "fine"

    def sampling(params: CreateMessageParams) -> Any:
        raise AssertionError("nothing is asked")

    with anyio.fail_after(5):
        async with client(server, era, sampling=sampling, roots=["file:///a"]) as connection:
            result = await connection.call_tool("no_question")
            assert result.is_error and "name='What is your name?' is no question: give Elicit(…)" in result.text
            if era == "legacy":
                assert (await connection.call_tool("malformed")).is_error
            else:
                with pytest.raises(PeerError, match="Internal error"):
                    await connection.call_tool("malformed")
            assert (await connection.call_tool("fine")).text == "fine"


@ERAS
async def test_a_text_is_answer_enough_for_a_model(era: str) -> None:
    with anyio.fail_after(5):
        async with client(make_server(), era, sampling=lambda params: "Paris") as connection:
            assert (await connection.call_tool("think")).text == "unknown: Paris"


@ERAS
@pytest.mark.parametrize("roots", [["file:///a"], lambda: [Root("file:///a", name="A")], [Root("file:///a")]])
async def test_the_clients_folders_are_asked_for(era: str, roots: Any) -> None:
    with anyio.fail_after(5):
        async with client(make_server(), era, roots=roots) as connection:
            assert (await connection.call_tool("folders")).text == '["file:///a"]'


async def test_a_ping_reaches_a_legacy_client_and_is_no_question_to_modern_ones() -> None:
    with anyio.fail_after(5):
        async with client(make_server(), "legacy") as connection:
            assert (await connection.call_tool("alive")).text == "alive"
        async with client(make_server(), "modern") as connection:
            result = await connection.call_tool("alive")
            assert result.is_error and result.text.endswith("ping exists in legacy revisions only")


@ERAS
async def test_prompts_and_resources_can_ask_as_well(era: str) -> None:
    with anyio.fail_after(5):
        async with client(make_server(), era, elicitation=accept) as connection:
            message = (await connection.get_prompt("letter")).messages[0]
            assert getattr(message.content, "text", "").startswith("Dear Booking(name='Ada'")
            assert (await connection.read_resource("letters://x")).contents[0].text == "x: accept"


# -- what the client cannot ---------------------------------------------------------------------------------------------


@ERAS
@pytest.mark.parametrize(
    ("tool", "words", "required"),
    [
        ("book", "elicitation", {"elicitation": {"form": {}}}),
        ("book_in_thread", "elicitation", {"elicitation": {"form": {}}}),
        ("confirmed", "elicitation", {"elicitation": {"form": {}}}),
        ("visit", "elicitation by URL", {"elicitation": {"url": {}}}),
        ("think", "sampling", {"sampling": {}}),
        ("folders", "roots", {"roots": {}}),
    ],
)
async def test_a_missing_capability_is_a_tool_error_in_the_legacy_era_and_an_error_in_the_modern_one(
    era: str, tool: str, words: str, required: Any
) -> None:
    arguments = {"title": "it"} if tool == "confirmed" else None
    with anyio.fail_after(5):
        async with client(make_server(), era, name="host") as connection:
            if era == "legacy":
                result = await connection.call_tool(tool, arguments)
                assert result.is_error
                assert result.text.splitlines()[1].startswith("client 'host ")
                assert result.text.endswith(f"does not support {words}")
            else:
                with pytest.raises(PeerError, match=f"capability: {words}") as caught:
                    await connection.call_tool(tool, arguments)
                assert (caught.value.code, caught.value.data) == (-32021, {"requiredCapabilities": required})


async def test_in_the_legacy_era_a_prompt_that_cannot_ask_is_an_error_that_names_the_capability() -> None:
    with anyio.fail_after(5):
        async with client(make_server(), "legacy") as connection:
            with pytest.raises(PeerError, match="does not support elicitation") as caught:
                await connection.get_prompt("letter")
            assert caught.value.code == -32603


@ERAS
async def test_a_handler_may_look_first_or_cope_afterwards(era: str) -> None:
    with anyio.fail_after(5):
        async with client(make_server(), era) as connection:
            assert (await connection.call_tool("copes")).text == "did without"
            nothing = {"form": False, "url": False, "model": False, "roots": False}
            assert msgspec.json.decode((await connection.call_tool("abilities")).text) == nothing
        async with client(
            make_server(), era, elicitation=accept, sampling=lambda params: "yes", roots=[]
        ) as connection:
            assert (await connection.call_tool("copes")).text == "asked"
            assert set(msgspec.json.decode((await connection.call_tool("abilities")).text).values()) == {True}


async def test_no_mode_of_elicitation_means_forms_and_no_urls() -> None:
    with anyio.fail_after(5):
        async with connected(make_server()) as peer:
            answer = await peer.call("abilities")
            assert '"form":true,"url":false' in answer["result"]["content"][0]["text"]


async def test_a_capability_that_the_revision_does_not_have_is_no_capability() -> None:
    with anyio.fail_after(5):
        async with connected(make_server()) as peer:
            await peer.initialize("2025-03-26", elicitation={}, sampling={})
            answer = await peer.call("abilities", era="2025-03-26")
            assert '"form":false,"url":false,"model":true' in answer["result"]["content"][0]["text"]


async def test_a_client_that_takes_no_stream_cannot_be_asked_in_the_legacy_era() -> None:
    server = make_server()
    near, far = memory_pair()
    far.info = ChannelInfo("memory", back_channel=False)
    async with server.running(), anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve_channel, far)
        peer = Peer(near)
        await peer.initialize(elicitation={}, sampling={}, roots={})
        answer = await peer.call("abilities", era="2025-11-25")
        assert "true" not in answer["result"]["content"][0]["text"]
        answer = await peer.call("book", era="2025-11-25")
        assert answer["result"]["isError"] and "no questions" in answer["result"]["content"][0]["text"]
        assert "true" in (await peer.call("abilities"))["result"]["content"][0]["text"]
        tasks.cancel_scope.cancel()


# -- legacy answers ----------------------------------------------------------------------------------------------------


async def legacy_answer(tool: str, answer: dict[str, Any]) -> dict[str, Any]:
    """Call a tool and answer what it asks with ``answer``."""
    with anyio.fail_after(5):
        async with connected(make_server()) as peer:
            await peer.initialize(elicitation={}, sampling={}, roots={})
            id = await peer.start("tools/call", {"name": tool}, era="2025-11-25")
            while "method" not in (asked := await peer.receive()) or "id" not in asked:
                pass
            await peer.send({"jsonrpc": "2.0", "id": asked["id"]} | answer)
            result = (await peer.answer_to(id))["result"]
            return {"is_error": result["isError"], "text": result["content"][0]["text"]}


async def test_a_client_that_answers_with_an_error_fails_the_call_without_its_text_reaching_the_model(
    caplog: pytest.LogCaptureFixture,
) -> None:
    result = await legacy_answer("think", {"error": {"code": -1, "message": "User rejected sampling request"}})
    assert result["is_error"] and "rejected" not in result["text"]
    assert "User rejected sampling request (-1)" in caplog.text


async def test_a_client_that_has_no_such_method_lacks_the_capability() -> None:
    result = await legacy_answer("copes", {"error": {"code": -32601, "message": "Method not found"}})
    assert result == {"is_error": False, "text": "did without"}


@pytest.mark.parametrize("result", [{}, {"action": "maybe"}, [], "yes"])
async def test_an_answer_that_is_none_fails_the_call(result: Any) -> None:
    assert (await legacy_answer("book", {"result": result}))["is_error"]


@pytest.mark.parametrize("over", WAYS)
async def test_calls_that_ask_at_the_same_time_get_their_own_answers(over: str) -> None:
    server = Server("two")

    @server.tool
    def ask_in_thread(name: str, ctx: SyncContext) -> str:
        reply = ctx.elicit(name, {"type": "object", "properties": {"echo": {"type": "string"}}})
        return str(reply.value)

    @server.tool
    async def ask(name: str, ctx: Context) -> str:
        reply = await ctx.elicit(name, {"type": "object", "properties": {"echo": {"type": "string"}}})
        return str(reply.value)

    async def elicitation(params: ElicitParams) -> Any:
        await anyio.wait_all_tasks_blocked()
        return {"echo": params.message}

    results: dict[str, str] = {}
    with anyio.fail_after(20):
        async with reached(server, over) as target, client(target, "legacy", elicitation=elicitation) as connection:

            async def call(tool: str, name: str) -> None:
                results[name] = (await connection.call_tool(tool, {"name": name})).text

            async with anyio.create_task_group() as tasks:
                for name in ("a", "b", "c"):
                    tasks.start_soon(call, "ask", name)
                    tasks.start_soon(call, "ask_in_thread", f"{name} in a thread")
    names = [f"{name}{where}" for name in ("a", "b", "c") for where in ("", " in a thread")]
    assert results == {name: f"{{'echo': '{name}'}}" for name in names}


@ERAS
@pytest.mark.parametrize("over", WAYS)
async def test_the_clients_answering_function_may_itself_call_a_tool(era: str, over: str) -> None:
    server = make_server()

    @server.tool
    async def who() -> str:
        return "Grace"

    with anyio.fail_after(5):

        async def elicitation(params: ElicitParams) -> Any:
            return {"name": (await connection.call_tool("who")).text, "seats": 1}

        async with reached(server, over) as target, client(target, era, elicitation=elicitation) as connection:
            for tool in ("book", "book_in_thread"):
                assert "Grace" in (await connection.call_tool(tool)).text


async def test_a_legacy_server_learns_nothing_of_why_an_answering_function_failed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def elicitation(params: ElicitParams) -> Any:
        raise LookupError("/home/ada/secret")

    with anyio.fail_after(5):
        async with client(make_server(), "legacy", elicitation=elicitation) as connection:
            result = await connection.call_tool("book")
    assert result.is_error and "secret" not in result.text
    assert "/home/ada/secret" in caplog.text


@pytest.mark.parametrize(
    ("error", "seen"),
    [
        (McpError(-7, "Not today", {"again": "tomorrow"}), "-7 Not today (-7) {'again': 'tomorrow'}"),
        (McpError(-7, "Not today"), "-7 Not today (-7) None"),
        (McpError(-7, "no JSON", {"x": object()}), "-32603 Internal error (-32603) None"),
        (McpError(-7, "half a \ud800 pair"), "-32603 Internal error (-32603) None"),
    ],
    ids=["data", "no data", "unwritable data", "unwritable text"],
)
async def test_a_legacy_server_is_answered_with_the_error_that_an_answering_function_raises(
    error: McpError, seen: str
) -> None:
    server = make_server()

    @server.tool
    async def thinks(ctx: Context) -> str:
        try:
            await ctx.sample("What?")
        except PeerError as answer:
            return f"{answer.code} {answer} {answer.data}"
        return "answered"

    def sampling(params: CreateMessageParams) -> Any:
        raise error

    with anyio.fail_after(5):
        async with client(server, "legacy", sampling=sampling) as connection:
            assert (await connection.call_tool("thinks")).text == seen
            assert (await connection.call_tool("abilities")).is_error is False


async def test_an_answer_that_cannot_be_written_is_an_error_and_the_connection_goes_on() -> None:
    def sampling(params: Any) -> Any:
        return CreateMessageResult("assistant", TextContent("x"), "m", meta={"x": object()})

    with anyio.fail_after(5):
        async with client(make_server(), "legacy", sampling=sampling) as connection:
            assert (await connection.call_tool("think")).is_error
            assert (await connection.call_tool("abilities")).is_error is False


async def test_an_answering_function_that_fails_fails_a_modern_call_as_it_is() -> None:
    def elicitation(params: ElicitParams) -> Any:
        raise LookupError("nobody here")

    with anyio.fail_after(5):
        async with client(make_server(), "modern", elicitation=elicitation) as connection:
            with pytest.raises(LookupError, match="nobody here"):
                await connection.call_tool("book")
            assert (await connection.call_tool("copes", None)).is_error is False


@ERAS
async def test_an_answering_function_must_return_an_answer(era: str) -> None:
    with anyio.fail_after(5):
        async with client(make_server(), era, elicitation=lambda params: "yes") as connection:
            if era == "legacy":
                assert (await connection.call_tool("book")).is_error
            else:
                with pytest.raises(TypeError, match="ElicitResult, not str"):
                    await connection.call_tool("book")


# -- rounds ------------------------------------------------------------------------------------------------------------


@ERAS
async def test_several_questions_make_one_round(era: str) -> None:
    rounds: list[str] = []

    def elicitation(params: ElicitParams) -> Any:
        rounds.append("elicit")
        return {"name": "Ada", "seats": 1}

    server = make_server()
    with anyio.fail_after(5):
        async with client(
            server, era, elicitation=elicitation, sampling=lambda params: "tea", roots=["file:///r"]
        ) as connection:
            assert (await connection.call_tool("everything")).text == "Ada tea file:///r"
    assert rounds == ["elicit"]
    with anyio.fail_after(5):
        async with connected(server) as peer:
            result = (await peer.call("everything"))["result"]
            assert result["resultType"] == "input_required"
            assert sorted(result["inputRequests"]) == ["what", "where", "who"]


@ERAS
async def test_questions_one_after_another_make_a_round_each_and_keep_earlier_answers(era: str) -> None:
    names = iter(["Ada", "Bob", "Eve"])
    server = make_server()
    with anyio.fail_after(5):
        async with client(server, era, elicitation=lambda params: {"name": next(names), "seats": 1}) as connection:
            assert (await connection.call_tool("three_times")).text == "Ada Bob Eve"
    assert server.secret_runs == (1 if era == "legacy" else 4)  # type: ignore[attr-defined]


@ERAS
async def test_a_key_names_one_question_so_that_no_answer_counts_for_another(era: str) -> None:
    server = Server("keys")
    yes = {"type": "object", "properties": {"yes": {"type": "boolean"}}, "required": ["yes"]}

    @server.tool
    async def delete(ctx: Context) -> str:
        first = await ctx.elicit("Delete a?", yes, key="sure")
        second = await ctx.elicit("Delete b?", yes, key="sure")
        return f"deleted {first.accepted} {second.accepted}"

    @server.tool
    async def by_parameter(sure: Annotated[bool, Elicit("Delete a?")], ctx: Context) -> str:
        await ctx.ask(sure=Elicit("Delete b?", yes))
        return f"deleted {sure}"

    asked: list[str] = []

    def elicitation(params: ElicitParams) -> Any:
        asked.append(params.message)
        return dict.fromkeys((params.requested_schema or {})["properties"], True)

    with anyio.fail_after(5):
        async with client(server, era, elicitation=elicitation) as connection:
            for tool in ("delete", "by_parameter"):
                result = await connection.call_tool(tool)
                assert result.is_error and "'sure' is the key of two questions" in result.text
    assert asked == ["Delete a?", "Delete a?"]


@ERAS
async def test_a_handler_that_middleware_runs_twice_asks_the_same_questions_again(era: str) -> None:
    async def try_again(message: Message, call_next: Next) -> Any:
        result = await call_next(message)
        return await call_next(message) if isinstance(result, CallToolResult) and result.is_error else result

    server = Server("trying again", middleware=[try_again])
    runs: list[str] = []

    @server.tool
    async def flaky(ctx: Context) -> str:
        reply = await ctx.elicit("How many seats?", Booking)
        named = await ctx.elicit("And for whom?", Booking, key="whom")
        runs.append("run")
        if len(runs) == 1:
            raise ToolError("not yet")
        return f"{reply.action} {named.action}"

    asked: list[str] = []

    def elicitation(params: ElicitParams) -> Any:
        asked.append(params.message)
        return accept(params)

    with anyio.fail_after(5):
        async with client(server, era, elicitation=elicitation) as connection:
            assert (await connection.call_tool("flaky")).text == "accept accept"
    questions = ["How many seats?", "And for whom?"]
    assert asked == (questions if era == "modern" else questions * 2)


@ERAS
async def test_a_form_without_a_message_asks_in_general_words(era: str) -> None:
    server = Server("speechless")

    @server.tool
    async def ask(sure: Annotated[bool, Elicit("")], ctx: Context) -> str:
        await ctx.elicit("", Booking)
        await ctx.ask(it=Elicit("", Booking))
        return "asked"

    asked: list[str] = []

    def elicitation(params: ElicitParams) -> Any:
        asked.append(params.message)
        return {"sure": True} if len(asked) == 1 else accept(params)

    with anyio.fail_after(5):
        async with client(server, era, elicitation=elicitation) as connection:
            assert (await connection.call_tool("ask")).text == "asked"
    assert asked == ["Please provide the required information."] * 3


@ERAS
async def test_a_parameter_that_is_asked_for_is_answered_before_the_body_runs_which_runs_once(era: str) -> None:
    def elicitation(params: ElicitParams) -> Any:
        return {"sure": True} if params.message == "Delete it?" else {"why": "old"}

    server = make_server()
    with anyio.fail_after(5):
        async with client(server, era, elicitation=elicitation) as connection:
            (tool,) = [each for each in await connection.list_tools() if each.name == "confirmed"]
            assert list(tool.input_schema["properties"]) == ["title"]
            assert (await connection.call_tool("confirmed", {"title": "it"})).text == "it True old"
    assert server.secret_runs == 1  # type: ignore[attr-defined]


@ERAS
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_parameter_that_is_declined_is_none_where_it_may_be_and_a_tool_error_elsewhere(
    era: str, action: Any
) -> None:
    def elicitation(params: ElicitParams) -> Any:
        return {"sure": False} if params.message == "Delete it?" and optional else ElicitResult(action)

    server = make_server()
    with anyio.fail_after(5):
        async with client(server, era, elicitation=elicitation) as connection:
            optional = True
            assert (await connection.call_tool("confirmed", {"title": "it"})).text == "it False None"
            optional = False
            result = await connection.call_tool("confirmed", {"title": "it"})
            assert result.is_error and "Delete it?" in result.text
    assert server.secret_runs == 1  # type: ignore[attr-defined]


@ERAS
async def test_a_dependency_may_ask_too(era: str) -> None:
    with anyio.fail_after(5):
        async with client(make_server(), era, elicitation=lambda params: {"name": "savings"}) as connection:
            text = (await connection.call_tool("through_dependency")).text
    assert text == f"savings in {'2025-11-25' if era == 'legacy' else MODERN}"


# -- the state between rounds ------------------------------------------------------------------------------------------

ANSWER = {"elicit-1": {"action": "accept", "content": {"name": "Ada", "seats": 2}}}


async def first_round(peer: Peer, tool: str = "book", arguments: Any = None) -> dict[str, Any]:
    result: dict[str, Any] = (await peer.call(tool, arguments))["result"]
    assert result["resultType"] == "input_required"
    return result


async def retry(peer: Peer, tool: str, state: Any, answers: Any = ANSWER, **more: Any) -> dict[str, Any]:
    params: dict[str, Any] = {"name": tool, "inputResponses": answers, **more}
    if state is not None:
        params["requestState"] = state
    return await peer.request("tools/call", params)


async def test_the_state_is_for_one_request_only() -> None:
    server = make_server()

    @server.tool
    async def pay(amount: int, ctx: Context) -> str:
        reply = await ctx.elicit(f"Pay {amount}?", Booking)
        return f"{amount} {reply.action}"

    with anyio.fail_after(5):
        async with connected(server) as peer:
            state = (await first_round(peer, "pay", {"amount": 1}))["requestState"]
            assert (await retry(peer, "pay", state, arguments={"amount": 1}))["result"]["content"][0]["text"] == (
                "1 accept"
            )
            for tool, arguments in (("pay", {"amount": 1000}), ("book", {"amount": 1}), ("pay", {})):
                refused = await retry(peer, tool, state, arguments=arguments)
                assert refused["error"]["code"] == -32602
                assert refused["error"]["message"].startswith("Invalid params: requestState cannot be used")


@pytest.mark.parametrize("tool", ["book", "abilities"])
@pytest.mark.parametrize(
    "change", [lambda state: state[:-1], lambda state: "A" + state, lambda state: "", str.swapcase]
)
async def test_a_state_that_was_changed_is_refused_even_by_handlers_that_do_not_look_at_it(
    tool: str, change: Any
) -> None:
    with anyio.fail_after(5):
        async with connected(make_server()) as peer:
            state = (await first_round(peer))["requestState"]
            assert (await retry(peer, tool, change(state)))["error"]["code"] == -32602


async def test_a_state_expires() -> None:
    server = make_server()
    now = 1000.0
    server.clock = lambda: now
    with anyio.fail_after(5):
        async with connected(server) as peer:
            state = (await first_round(peer))["requestState"]
            now += server.state_lifetime - 1
            assert "result" in await retry(peer, "book", state)
            now += 1
            assert (await retry(peer, "book", state))["error"]["code"] == -32602


async def test_a_state_of_another_server_is_refused_unless_they_share_a_secret() -> None:
    with anyio.fail_after(5):
        async with connected(make_server(secret="one")) as peer:
            state = (await first_round(peer))["requestState"]
        async with connected(make_server(secret=["two", "one"])) as peer:
            assert "result" in await retry(peer, "book", state)
        async with connected(make_server(secret="two")) as peer:
            assert "error" in await retry(peer, "book", state)


async def test_answers_without_a_state_count_for_the_first_round() -> None:
    with anyio.fail_after(5):
        async with connected(make_server()) as peer:
            text = (await retry(peer, "book", None))["result"]["content"][0]["text"]
            assert text.startswith("accept Booking(name='Ada'")


async def test_what_was_not_answered_is_asked_again_and_what_was_not_asked_is_ignored() -> None:
    with anyio.fail_after(5):
        async with connected(make_server()) as peer:
            first = await first_round(peer, "everything")
            who = {"action": "accept", "content": {"name": "Ada", "seats": 1}}
            second = (await retry(peer, "everything", first["requestState"], {"who": who, "why": {}}))["result"]
            assert sorted(second["inputRequests"]) == ["what", "where"]
            rest = {
                "what": {"role": "assistant", "content": {"type": "text", "text": "tea"}, "model": "m"},
                "where": {"roots": [{"uri": "file:///r"}]},
            }
            last = (await retry(peer, "everything", second["requestState"], rest))["result"]
            assert last["content"][0]["text"] == "Ada tea file:///r"


@pytest.mark.parametrize("answer", [5, "yes", {}, {"action": "maybe"}, {"action": "accept", "content": {"seats": 1}}])
async def test_an_answer_that_cannot_be_used_is_an_error_that_names_it(answer: Any) -> None:
    with anyio.fail_after(5):
        async with connected(make_server()) as peer:
            state = (await first_round(peer))["requestState"]
            refused = await retry(peer, "book", state, {"elicit-1": answer})
            assert refused["error"]["code"] == -32602
            assert "inputResponses.elicit-1" in refused["error"]["message"]


async def test_a_server_that_asks_without_end_is_given_up() -> None:
    server = Server("curious")

    @server.tool
    async def more(ctx: Context) -> str:
        number = 0
        while True:
            number += 1
            await ctx.elicit(f"{number}?", Booking)

    asked: list[str] = []

    def elicitation(params: ElicitParams) -> Any:
        asked.append(params.message)
        return {"name": "Ada", "seats": 1}

    with anyio.fail_after(5):
        async with client(server, "modern", elicitation=elicitation, limits=Limits(input_rounds=3)) as connection:
            with pytest.raises(RemoteProtocolError, match="more than 3 times"):
                await connection.call_tool("more")
    assert asked == ["1?", "2?", "3?"]


async def test_a_retry_asks_for_the_same_log_level_and_progress() -> None:
    server = Server("telling")

    @server.tool
    async def tell(ctx: Context) -> str:
        await ctx.elicit("Well?", Booking)
        await ctx.info("after")
        await ctx.progress(1)
        return str(ctx.meta.get("example.com/trace"))

    told: list[Any] = []
    with anyio.fail_after(5):
        async with client(server, "modern", elicitation=accept, on_log=lambda message: told.append(message.data)) as c:
            await c.set_log_level("info")
            progress: list[float] = []
            result = await c.call_tool(
                "tell", meta={"example.com/trace": "t1"}, on_progress=lambda value, *_: progress.append(value)
            )
            assert (result.text, progress) == ("t1", [1])
    assert told == ["after"]


# -- handlers that return what they need -------------------------------------------------------------------------------


def form(message: str) -> InputRequest:
    params = {"message": message, "requestedSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}}
    return InputRequest("elicitation/create", msgspec.Raw(msgspec.json.encode(params)))


def returning() -> Server:
    server = Server("returning")

    @server.tool
    async def count(ctx: Context) -> CallToolResult | InputRequiredResult:
        so_far = int(ctx.request_state or 0)
        answers = ctx.input_responses
        if "n" in answers:
            so_far += answers["n"]["content"]["n"]
        if so_far >= 10:
            return CallToolResult.text(f"{so_far}")
        return InputRequiredResult({"n": form(f"{so_far} so far; more?")}, request_state=str(so_far))

    @server.tool
    async def models(ctx: Context) -> InputRequiredResult:
        params = {"messages": [], "maxTokens": 1}
        return InputRequiredResult(
            {"m": InputRequest("sampling/createMessage", msgspec.Raw(msgspec.json.encode(params)))}
        )

    @server.prompt
    async def prompt(ctx: Context) -> Any:
        if "x" not in ctx.input_responses:
            return InputRequiredResult({"x": form("x?")})
        return f"got {ctx.input_responses['x']['content']}"

    return server


@ERAS
async def test_a_handler_may_return_what_it_needs_and_keep_a_state(era: str) -> None:
    asked: list[str] = []

    def elicitation(params: ElicitParams) -> Any:
        asked.append(params.message)
        return {"n": 4}

    with anyio.fail_after(5):
        async with client(returning(), era, elicitation=elicitation) as connection:
            assert (await connection.call_tool("count")).text == "12"
            assert asked == ["0 so far; more?", "4 so far; more?", "8 so far; more?"]
            message = (await connection.get_prompt("prompt")).messages[0]
            assert getattr(message.content, "text", None) == "got {'n': 4}"


async def test_the_state_that_a_handler_keeps_is_sealed() -> None:
    with anyio.fail_after(5):
        async with connected(returning()) as peer:
            first = await first_round(peer, "count")
            assert first["requestState"] != "0"
            answers = {"n": {"action": "accept", "content": {"n": 4}}}
            assert (await retry(peer, "count", "9", answers))["error"]["code"] == -32602
            second = (await retry(peer, "count", first["requestState"], answers))["result"]
            assert second["inputRequests"]["n"]["params"]["message"] == "4 so far; more?"


@ERAS
async def test_what_a_handler_returns_is_checked_against_the_clients_capabilities(era: str) -> None:
    with anyio.fail_after(5):
        async with client(returning(), era, elicitation=accept) as connection:
            if era == "legacy":
                result = await connection.call_tool("models")
                assert result.is_error and "does not support sampling" in result.text
            else:
                with pytest.raises(PeerError) as caught:
                    await connection.call_tool("models")
                assert (caught.value.code, caught.value.data) == (-32021, {"requiredCapabilities": {"sampling": {}}})


async def test_a_legacy_client_is_not_asked_without_end() -> None:
    server = Server("curious", limits=Limits(input_rounds=3))

    @server.tool
    async def more() -> InputRequiredResult:
        return InputRequiredResult({"n": form("?")})

    asked: list[str] = []

    def elicitation(params: ElicitParams) -> Any:
        asked.append(params.message)
        return {"n": 1}

    with anyio.fail_after(5):
        async with client(server, "legacy", elicitation=elicitation) as connection:
            with pytest.raises(PeerError, match="more than 3 times"):
                await connection.call_tool("more")
    assert len(asked) == 3


# -- the required URL ---------------------------------------------------------------------------------------------------


@ERAS
async def test_an_error_that_wants_a_url_visited_becomes_input_required_in_the_modern_era(era: str) -> None:
    server = Server("gate")
    attempts: list[int] = []
    data = {
        "elicitations": [
            {"mode": "url", "elicitationId": "e-1", "url": "https://example.com/e-1", "message": "Sign in first"}
        ]
    }

    @server.tool
    async def gated() -> str:
        attempts.append(1)
        if len(attempts) < 2:
            raise McpError(-32042, "This request requires more information.", data)
        return "in"

    asked: list[ElicitParams] = []

    def elicitation(params: ElicitParams) -> Any:
        asked.append(params)
        return ElicitResult("accept")

    with anyio.fail_after(5):
        async with client(server, era, elicitation=elicitation) as connection:
            if era == "legacy":
                with pytest.raises(PeerError) as caught:
                    await connection.call_tool("gated")
                assert (caught.value.code, caught.value.data) == (-32042, data)
            else:
                assert (await connection.call_tool("gated")).text == "in"
                assert [(each.mode, each.url, each.message) for each in asked] == [
                    ("url", "https://example.com/e-1", "Sign in first")
                ]


async def test_a_legacy_client_that_was_asked_for_a_visit_is_told_when_it_is_over_and_no_other() -> None:
    server = Server("gate")
    data = {"elicitations": [{"mode": "url", "elicitationId": "e-2", "url": "https://example.com", "message": "m"}]}

    @server.tool
    async def visit(ctx: Context) -> str:
        return (await ctx.elicit_url("Sign in", "https://example.com/e-1", id="e-1")).action

    @server.tool
    async def gated() -> str:
        raise McpError(-32042, "Sign in", data)

    told: dict[str, list[str]] = {"one": [], "other": []}

    def teller(name: str) -> Any:
        return lambda method, params: told[name].append(f"{method} {params.elicitation_id}")

    def visitor(params: ElicitParams) -> Any:
        assert params.elicitation_id == "e-1"
        return ElicitResult("accept")

    with anyio.fail_after(5):
        async with (
            client(server, "legacy", elicitation=visitor, on_notification=teller("one")) as one,
            client(server, "legacy", elicitation=visitor, on_notification=teller("other")),
        ):
            assert not server.notify_elicitation_complete("e-1")
            assert (await one.call_tool("visit")).text == "accept"
            with pytest.raises(PeerError):
                await one.call_tool("gated")
            assert await anyio.to_thread.run_sync(server.notify_elicitation_complete, "e-1")
            assert server.notify_elicitation_complete("e-2")
            assert not server.notify_elicitation_complete("e-1")
            await one.ping()
    name = "notifications/elicitation/complete"
    assert told == {"one": [f"{name} e-1", f"{name} e-2"], "other": []}


async def test_a_client_that_cannot_visit_urls_learns_which_capability_is_missing() -> None:
    server = Server("gate")

    @server.tool
    async def gated() -> str:
        raise McpError(-32042, "Sign in", {"elicitations": [{"url": "https://example.com", "message": "Sign in"}]})

    @server.tool
    async def malformed() -> str:
        raise McpError(-32042, "Sign in", {"elicitations": "none"})

    with anyio.fail_after(5):
        async with connected(server) as peer:
            error = (await peer.call("gated"))["error"]
            assert (error["code"], error["data"]) == (-32021, {"requiredCapabilities": {"elicitation": {"url": {}}}})
            assert (await peer.call("malformed"))["error"] == {"code": -32603, "message": "Internal error"}


# -- clients without questions --------------------------------------------------------------------------------------------


async def test_a_modern_server_that_asks_for_what_was_not_declared_is_not_obeyed() -> None:
    async def play(peer: Peer) -> None:
        while True:
            message = await peer.receive()
            if message["method"] == "server/discover":
                result: Any = {"supportedVersions": [MODERN], "capabilities": {"tools": {}}}
            else:
                request = {"method": "roots/list", "params": {}}
                result = {"resultType": "input_required", "inputRequests": {"r": request}}
            await peer.send({"jsonrpc": "2.0", "id": message["id"], "result": {"resultType": "complete"} | result})

    with anyio.fail_after(5):
        async with Client(Scripted(play)) as connection:
            with pytest.raises(CapabilityError, match="did not declare"):
                await connection.call_tool("x")
