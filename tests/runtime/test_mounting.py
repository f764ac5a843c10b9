"""One server inside another: what comes along with its handlers, and what does not."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Annotated, Any

import anyio
import pytest

from mcpcore import (
    Client,
    Context,
    DefinitionError,
    Depends,
    DuplicateName,
    Elicit,
    PeerError,
    Registry,
    Server,
    SkippedHandlers,
    SyncContext,
)
from mcpcore.auth.resource import ResourceServer
from mcpcore.runtime.audit import AuditLog
from mcpcore.runtime.middleware import Next
from mcpcore.runtime.request import Message
from mcpcore.types import PromptReference, ResourceTemplateReference
from tests.support.asgi import POST, Caller, encoded, modern

pytestmark = pytest.mark.anyio

ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])
KINDS = pytest.mark.parametrize("kind", ["tool", "resource", "template", "prompt", "completion"])

variable: ContextVar[str] = ContextVar("variable", default="nobody's")


def living(name: str, log: list[str] | None = None, **options: Any) -> Server:
    """A server whose lifespan yields its name, and whose handlers of every kind say what they find."""

    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[str]:
        token = variable.set(f"{name}'s")
        if log is not None:
            log.append(f"enter {name}")
        yield name
        variable.reset(token)
        if log is not None:
            log.append(f"leave {name}")

    server = Server(name, lifespan=lifespan, **options)

    async def found(ctx: Context) -> str:
        return f"{ctx.lifespan}, {variable.get()}"

    async def said(below: Annotated[str, Depends(found)], ctx: Context) -> str:
        assert below == f"{ctx.lifespan}, {variable.get()}"
        return below

    @server.tool
    def blocking(ctx: SyncContext) -> str:
        return f"{ctx.lifespan}, {variable.get()}"

    server.tool(said, name="tool")
    server.resource(said, uri="a://fixed")
    server.prompt(said, name="prompt")

    @server.resource("a://at/{v}")
    async def template(v: str, below: Annotated[str, Depends(found)]) -> str:
        return below

    @server.complete(prompt="prompt")
    async def completion(prefix: str, below: Annotated[str, Depends(found)]) -> list[str]:
        return [below]

    server.complete(completion, uri="a://at/{v}", argument="v")
    return server


async def said_by(client: Client, kind: str, namespace: str) -> str:
    """What the handler of that kind below ``namespace`` says."""
    match kind:
        case "tool":
            found = (await client.call_tool(f"{namespace}_blocking")).text
            assert found == (await client.call_tool(f"{namespace}_tool")).text
            return found
        case "resource" | "template":
            uri = f"a://{namespace.replace('_', '/')}/" + ("fixed" if kind == "resource" else "at/x")
            return str((await client.read_resource(uri)).contents[0].text)
        case "prompt":
            return str((await client.get_prompt(f"{namespace}_prompt")).messages[0].content.text)  # type: ignore[union-attr]  # it is a text
        case _:
            (one,) = (await client.complete(PromptReference(f"{namespace}_prompt"), "x", "")).values
            ref = ResourceTemplateReference(f"a://{namespace.replace('_', '/')}/at/{{v}}")
            assert (await client.complete(ref, "v", "")).values == [one]
            return one


@ERAS
@KINDS
@pytest.mark.parametrize("has_lifespan", [True, False])
async def test_handlers_find_the_lifespan_of_the_server_that_they_come_from(
    kind: str, era: Any, has_lifespan: bool
) -> None:
    outer = living("outer") if has_lifespan else Server("outer")
    outer.mount(living("inner"), "in")
    outer.mount(living("other"), "ot")
    with anyio.fail_after(5):
        async with Client(outer, eras=(era,)) as client:
            for _ in range(2):
                assert await said_by(client, kind, "ot") == "other, other's"
                assert await said_by(client, kind, "in") == "inner, inner's"
                if has_lifespan:
                    assert (await client.call_tool("tool")).text == "outer, outer's"


async def test_lifespans_of_mounted_servers_are_entered_once_before_and_left_after_the_one_that_took_them() -> None:
    log: list[str] = []
    inmost, inner, outer = living("inmost", log), living("inner", log), living("outer", log)
    inner.mount(inmost, "most")
    outer.mount(inner, "in")
    outer.mount(inner, "again")
    outer.mount(inmost, "direct")
    with anyio.fail_after(5):
        async with Client(outer) as client, Client(inner) as beside:
            assert await said_by(client, "tool", "in_most") == "inmost, inmost's"
            assert await said_by(client, "prompt", "again") == "inner, inner's"
            assert await said_by(client, "tool", "direct") == "inmost, inmost's"
            assert await said_by(beside, "tool", "most") == "inmost, inmost's"
    assert log == ["enter inmost", "enter inner", "enter outer", "leave outer", "leave inner", "leave inmost"]


async def test_a_mounted_lifespan_that_fails_is_what_the_client_raises() -> None:
    @asynccontextmanager
    async def broken(server: Server) -> AsyncIterator[None]:
        raise OSError("no database")
        yield

    outer = Server("outer")
    outer.mount(Server("inner", lifespan=broken), "in")
    with anyio.fail_after(5), pytest.raises(OSError, match="no database"):
        async with Client(outer):
            raise AssertionError


async def test_a_lifespan_that_would_not_be_entered_is_refused_and_nothing_is_mounted() -> None:
    outer = Server("outer")
    outer.tool(lambda: "x", name="own")
    with anyio.fail_after(5):
        async with Client(outer) as client:
            with pytest.raises(DefinitionError, match="before this one is served"):
                outer.mount(living("late"), "late")
            outer.mount(Server("without"), "without")
            outer.mount(living("handlers only").registry, "only")
            assert (await client.call_tool("only_tool")).text == "None, nobody's"
        outer.mount(living("later"), "later")
        async with Client(outer) as client:
            assert await said_by(client, "tool", "later") == "later, later's"
            names = {each.name for each in await client.list_tools()}
            assert names == {"own", "only_tool", "only_blocking", "later_tool", "later_blocking"}


def test_servers_are_not_mounted_into_each_other_with_their_lifespans() -> None:
    one, two = living("one"), living("two")
    one.mount(two, "two")
    with pytest.raises(DefinitionError, match="into each other"):
        two.mount(one, "one")
    two.mount(two, "again")
    assert "again_tool" in two.registry.cost() and all(not each.homes for each in two.registry.handlers())


def test_a_mount_that_is_refused_leaves_nothing() -> None:
    outer = Server("outer")
    outer.tool(lambda: "x", name="in_blocking")
    with pytest.raises(DuplicateName):
        outer.mount(living("inner"), "in")
    assert list(outer.registry.cost()) == ["in_blocking"] and not outer.lifespan.exists
    strict = Server("strict", state="stateless", on_skip="error")
    with pytest.raises(SkippedHandlers):
        strict.mount(living("inner"), "in")
    assert not strict.registry.handlers() and not strict.lifespan.exists


async def test_what_middleware_has_set_stands_against_the_lifespans() -> None:
    async def nearer(message: Message, call_next: Next) -> Any:
        variable.set("the request's")
        return await call_next(message)

    outer = living("outer", middleware=[nearer])
    outer.mount(living("inner"), "in")
    with anyio.fail_after(5):
        async with Client(outer) as client:
            assert await said_by(client, "tool", "in") == "inner, the request's"


# -- middleware --------------------------------------------------------------------------------------------------------


def noting(log: list[str], name: str) -> Any:
    async def note(message: Message, call_next: Next) -> Any:
        if not message.method.startswith("notifications/"):
            log.append(f"{name}: {message.method}")
        return await call_next(message)

    return note


@ERAS
@KINDS
async def test_middleware_of_a_mounted_server_is_around_calls_of_its_handlers_inside_that_of_the_outer_one(
    kind: str, era: Any
) -> None:
    log: list[str] = []
    inmost = living("inmost", middleware=[noting(log, "inmost")])
    inner = living("inner", middleware=[noting(log, "inner 1"), noting(log, "inner 2")])
    outer = living("outer", middleware=[noting(log, "outer")])
    inner.mount(inmost, "most")
    outer.mount(inner, "in")
    with anyio.fail_after(5):
        async with Client(outer, eras=(era,)) as client:
            for namespace, around in (("in_most", ["outer", "inner 1", "inner 2", "inmost"]), ("in", ["outer", "inner 1", "inner 2"])):  # fmt: skip
                log.clear()
                await said_by(client, kind, namespace)
                rounds, method = len(log) // len(around), log[0].partition(": ")[2]
                assert log == [f"{each}: {method}" for each in around] * rounds and rounds
            log.clear()
            await client.list_tools()
            await client.call_tool("tool")
            assert log == ["outer: tools/list", "outer: tools/call"]


async def test_middleware_of_a_mounted_server_may_refuse_and_may_change_results() -> None:
    async def closed(message: Message, call_next: Next) -> Any:
        if message.method == "tools/call":
            raise ValueError("closed")
        result: Any = await call_next(message)
        return type(result)(result.messages * 2)

    inner, outer = living("inner", middleware=[closed]), Server("outer")
    outer.mount(inner, "in")
    with anyio.fail_after(5):
        async with Client(outer) as client:
            with pytest.raises(PeerError, match="Internal error"):
                await client.call_tool("in_tool")
            assert len((await client.get_prompt("in_prompt")).messages) == 2


@ERAS
async def test_a_mounted_handler_asks_and_its_middleware_is_around_each_request(era: Any) -> None:
    log: list[str] = []
    inner, outer = living("inner", middleware=[noting(log, "inner")]), Server("outer")

    @inner.tool
    async def ask(sure: Annotated[bool, Elicit("Sure?")], ctx: Context) -> str:
        return f"{sure} {ctx.lifespan}"

    outer.mount(inner, "in")
    with anyio.fail_after(5):
        async with Client(outer, eras=(era,), elicitation=lambda params: {"sure": True}) as client:
            assert (await client.call_tool("in_ask")).text == "True inner"
    assert len(log) == (1 if era == "legacy" else 2)


async def test_a_call_of_a_mounted_tool_leaves_one_audit_record(caplog: pytest.LogCaptureFixture) -> None:
    inner, outer = living("inner", middleware=[AuditLog()]), Server("outer")
    outer.mount(inner, "in")
    with anyio.fail_after(5), caplog.at_level(logging.INFO, "mcpcore.audit"):
        async with Client(outer) as client:
            await client.call_tool("in_tool")
    assert [each.tool for each in caplog.records if each.name == "mcpcore.audit"] == ["in_tool"]  # type: ignore[attr-defined]  # an attribute of audit records


async def test_middleware_of_a_mounted_server_that_waits_is_cancelled_when_an_http_client_leaves() -> None:
    waits, left = anyio.Event(), anyio.Event()

    async def wait(message: Message, call_next: Next) -> Any:
        try:
            waits.set()
            await anyio.sleep_forever()
        finally:
            left.set()

    inner, outer = Server("inner", middleware=[wait]), Server("outer")

    @inner.tool
    async def quick() -> str:
        return "never waits"

    outer.mount(inner, "in")
    message, fields = modern("tools/call", {"name": "in_quick", "arguments": {}})
    with anyio.fail_after(5):
        async with Caller(outer.http_app()).open("POST", headers={**POST, **fields}, body=encoded(message)):
            await waits.wait()
        await left.wait()


# -- the rest ----------------------------------------------------------------------------------------------------------


def test_what_wants_tokens_is_not_mounted_where_none_are_asked_for() -> None:
    options: Any = {"resource": "https://x.example/mcp", "authorization_servers": ["https://issuer.example"]}
    auth = ResourceServer(object(), **options)  # type: ignore[arg-type]  # nobody asks it
    guarded = living("guarded", auth=auth)
    outer = Server("outer")
    with pytest.raises(DefinitionError, match="'guarded' has auth= and 'outer' has not"):
        outer.mount(guarded, "in")
    assert not outer.registry.handlers()
    outer.mount(guarded.registry, "in")
    Server("also guarded", auth=auth).mount(guarded, "in")


def test_the_log_counts_what_was_mounted_as_it_counts_what_was_included(caplog: pytest.LogCaptureFixture) -> None:
    inner = living("inner").registry
    with caplog.at_level(logging.INFO, "mcpcore.registry"):
        Registry().mount(inner, namespace="in")
    assert [each.getMessage() for each in caplog.records] == [
        "Registered tools: 2",
        "Registered resources: 1",
        "Registered resource templates: 1",
        "Registered prompts: 1",
        "Registered completions: 2",
    ]
    caplog.clear()
    with caplog.at_level(logging.INFO, "mcpcore.registry"):
        Registry("auto", "stateless").mount(inner, namespace="in")
    assert [each.getMessage() for each in caplog.records][-5:] == [
        "No tools registered: all 2 were skipped",
        "No resources registered: all 1 were skipped",
        "No resource templates registered: all 1 were skipped",
        "No prompts registered: all 1 were skipped",
        "No completions registered: all 2 were skipped",
    ]


async def test_what_is_mounted_while_it_is_served_is_told_and_listed_at_the_end() -> None:
    outer, told = Server("outer", page_size=2), list[str]()
    for register, name in ((outer.tool, "own"), (outer.prompt, "own")):
        register(lambda: "x", name=name)
    outer.resource(lambda: "x", uri="own://x", name="own")
    with anyio.fail_after(5):
        async with Client(outer, cache=False) as client:
            async with client.listen(tools=True, prompts=True, resources=True) as changes:
                outer.mount(living("inner").registry, "in")
                async for method, _ in changes:
                    told.append(method)
                    if len(told) == 3:
                        break
            assert [each.name for each in await client.list_tools()] == ["own", "in_blocking", "in_tool"]
            assert [each.name for each in await client.list_prompts()] == ["own", "in_prompt"]
            assert [each.uri for each in await client.list_resources()] == ["own://x", "a://in/fixed"]
    assert sorted(told) == [f"notifications/{each}/list_changed" for each in ("prompts", "resources", "tools")]
