"""Types and states of servers, the environment, what a server says about itself, and what cannot be."""

import logging
from contextlib import asynccontextmanager, nullcontext
from typing import Annotated, Any

import anyio
import anyio.lowlevel
import pytest

from mcpcore import (
    CacheHint,
    Client,
    Context,
    DefinitionError,
    Elicit,
    PeerError,
    Registry,
    Server,
    ServerSession,
    SkippedHandlers,
    SyncContext,
    TransportContext,
    tool,
)
from mcpcore.types.utilities import EmptyParams
from mcpcore.versions import VERSIONS
from tests.support.wires import MODERN, connected

pytestmark = pytest.mark.anyio


class Tools:
    @tool
    def plain(self) -> str:
        return "plain"

    @tool
    async def awaited(self) -> str:
        return "awaited"

    @tool
    async def needs(self, ctx: Context) -> str:
        return "needs"

    @tool
    def needs_blocking(self, ctx: SyncContext) -> str:
        return "needs blocking"

    @tool
    async def copes(self, ctx: Context | None) -> str:
        if ctx is None:
            return "without"
        await ctx.progress(1)
        return (await ctx.elicit("?", {"type": "object", "properties": {}})).action

    @tool
    def copes_blocking(self, ctx: SyncContext | None = None) -> str:
        return "without" if ctx is None else ctx.protocol_version

    @tool
    async def transported(self, ctx: TransportContext) -> str:
        return ctx.transport

    @tool
    async def asks(self, sure: Annotated[bool, Elicit("Sure?")]) -> str:
        return str(sure)


@pytest.mark.parametrize(
    ("type", "state", "taken"),
    [
        ("auto", "stateful", "plain awaited needs needs_blocking copes copes_blocking transported asks"),
        ("sync", "stateful", "plain needs_blocking copes_blocking"),
        ("async", "stateful", "awaited needs copes transported asks"),
        ("auto", "stateless", "plain awaited copes copes_blocking transported asks"),
        ("sync", "stateless", "plain copes_blocking"),
        ("async", "stateless", "awaited copes transported asks"),
    ],
)
async def test_a_server_takes_what_its_type_and_state_allow_and_knows_nothing_else(
    type: Any, state: Any, taken: str
) -> None:
    server = Server("modes", type=type, state=state)
    server.include(Tools())
    with anyio.fail_after(5):
        async with Client(server, elicitation=lambda params: {"sure": True}) as client:
            names = [each.name for each in await client.list_tools()]
            assert names == taken.split()
            for name in {each.kind and each.name for each in server.registry.skipped}:
                with pytest.raises(PeerError, match=f"Unknown tool: {name}") as caught:
                    await client.call_tool(name)
                assert caught.value.code == -32602
            for name in names:
                assert not (await client.call_tool(name)).is_error


async def test_on_a_stateless_server_a_context_that_may_be_none_is_none_for_legacy_clients_only() -> None:
    server = Server("stateless", state="stateless")
    server.include(Tools())
    told: list[float] = []
    with anyio.fail_after(5):
        async with Client(server, eras=("legacy",), elicitation=lambda params: {}) as client:
            assert (await client.call_tool("copes")).text == "without"
            assert (await client.call_tool("copes_blocking")).text == "without"
            assert (await client.call_tool("transported")).text == "memory"
        async with Client(server, eras=("modern",), elicitation=lambda params: {}) as client:
            result = await client.call_tool("copes", on_progress=lambda progress, *_: told.append(progress))
            assert (result.text, told) == ("accept", [1, 1])  # the body runs once for each round
            assert (await client.call_tool("copes_blocking")).text == MODERN


async def test_on_a_stateless_server_legacy_clients_cannot_be_asked_by_parameter_either() -> None:
    server = Server("stateless", state="stateless")
    server.include(Tools())
    with anyio.fail_after(5):
        async with Client(server, eras=("legacy",), elicitation=lambda params: {"sure": True}) as client:
            result = await client.call_tool("asks")
            assert result.is_error and "stateless" in result.text
        async with Client(server, eras=("modern",), elicitation=lambda params: {"sure": True}) as client:
            assert (await client.call_tool("asks")).text == "True"


async def test_a_stateful_server_gives_a_context_in_both_eras() -> None:
    server = Server("stateful")
    server.include(Tools())
    with anyio.fail_after(5):
        for era in ("legacy", "modern"):
            async with Client(server, eras=(era,), elicitation=lambda params: {}) as client:
                assert (await client.call_tool("copes")).text == "accept"


# -- the lower level ---------------------------------------------------------------------------------------------------


def with_session() -> Server:
    server = Server("sessions")

    @server.tool
    async def raw(session: ServerSession) -> str:
        return type(await session.request("ping", EmptyParams())).__name__

    @server.tool
    async def maybe(session: ServerSession | None) -> str:
        return "none" if session is None else "some"

    return server


async def test_a_server_session_exists_in_legacy_sessions_and_its_handlers_are_hidden_from_modern_clients() -> None:
    with anyio.fail_after(5):
        async with Client(with_session(), eras=("legacy",)) as client:
            assert [each.name for each in await client.list_tools()] == ["raw", "maybe"]
            assert (await client.call_tool("raw")).text == "EmptyResult"
            assert (await client.call_tool("maybe")).text == "some"
        async with Client(with_session(), eras=("modern",)) as client:
            assert [each.name for each in await client.list_tools()] == ["maybe"]
            assert (await client.call_tool("maybe")).text == "none"
            with pytest.raises(PeerError, match="Unknown tool: raw"):
                await client.call_tool("raw")


# -- options -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "taken"), [("sync", ["plain"]), ("ASYNC", ["awaited"]), ("", ["plain", "awaited"])])
def test_the_environment_chooses_the_type_where_the_program_does_not(
    value: str, taken: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Two:
        plain = Tools.plain
        awaited = Tools.awaited

    monkeypatch.setenv("MCPCORE_SERVER_TYPE", value)
    server = Server("environment")
    server.include(Two())
    assert [each.name for each in server.registry.list("tool", MODERN)] == taken
    server = Server("program", type="auto")
    server.include(Two())
    assert len(server.registry.list("tool", MODERN)) == 2


@pytest.mark.parametrize(("value", "found"), [("false", 0), ("FALSE", 0), ("0", 0), ("true", 1), ("1", 1)])
def test_the_environment_may_turn_scanning_off(value: str, found: int, monkeypatch: pytest.MonkeyPatch) -> None:
    class One:
        plain = Tools.plain

    monkeypatch.setenv("MCPCORE_SCAN", value)
    server = Server("environment")
    server.include(One())
    assert len(server.registry.list("tool", MODERN)) == found
    server.tool(lambda: "x", name="direct")
    assert len(server.registry.list("tool", MODERN)) == found + 1


@pytest.mark.parametrize("variable", ["MCPCORE_SERVER_TYPE", "MCPCORE_SCAN"])
def test_an_environment_that_makes_no_sense_is_an_error(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "maybe")
    with pytest.raises(DefinitionError, match=f"{variable}='maybe'"):
        Server("environment")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("name", 5),
        ("name", None),
        ("version", 1.0),
        ("version", None),
        *((option, 5) for option in ("title", "instructions", "website_url")),
        ("icons", "https://example.com/i.png"),
        ("icons", ["https://example.com/i.png"]),
        ("registry", {}),
        ("registry", Registry),
        ("lifespan", nullcontext()),
        ("middleware", max),
        ("middleware", ["name"]),
        *((option, 5) for option in ("limits", "cache")),
        ("type", "both"),
        ("type", ["sync"]),
        *((option, "yes") for option in ("state", "scan", "on_skip", "output_schema", "mask_unexpected")),
        ("rename", "snake"),
        ("format_error", "text"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused_where_the_server_is_made(option: str, value: Any) -> None:
    with pytest.raises(DefinitionError, match=f"^{option}=.*: give "):
        Server(**{"name": "x", option: value})


@pytest.mark.parametrize(
    "hint", [{"ttl_ms": -1}, {"ttl_ms": 0.5}, {"ttl_ms": True}, {"scope": "world"}, {"scope": None}]
)
def test_a_cache_hint_that_no_client_understands_is_refused(hint: Any) -> None:
    with pytest.raises(DefinitionError, match=r"^(ttl_ms|scope)=.*: give "):
        CacheHint(**hint)


def test_options_of_the_registry_are_not_given_twice() -> None:
    registry = Registry(type="sync")
    assert Server("x", registry=registry).registry is registry
    with pytest.raises(DefinitionError, match="type, rename"):
        Server("x", registry=registry, type="async", rename="camel")


def test_skipping_can_be_made_an_error() -> None:
    server = Server("strict", state="stateless", on_skip="error")
    with pytest.raises(SkippedHandlers, match="'needs'"):
        server.include(Tools())


def test_a_report_tells_what_is_offered_and_what_is_not() -> None:
    server = Server("reporting", version="3.1", type="sync")
    server.include(Tools())
    server.resource("a://it")(lambda: "x")
    lines = server.report().splitlines()
    assert lines[0] == f"reporting 3.1: type='sync', state='stateful', revisions {', '.join(VERSIONS)}"
    assert "tools: 3" in lines and "resources: 1" in lines
    assert sum(line.startswith("Skipped tool") for line in lines) == 5


async def test_handlers_of_another_server_can_be_taken_over_under_a_name() -> None:
    inner, outer = Server("inner"), Server("outer")
    inner.include(Tools())
    outer.mount(inner, "shop")
    with anyio.fail_after(5):
        async with Client(outer) as client:
            assert (await client.call_tool("shop_plain")).text == "plain"


async def test_a_server_logs_what_it_has_registered(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "mcpcore.registry"):
        Server("auto").include(Tools())
        Server("sync", type="sync").include(Tools())
    summaries = [each.getMessage() for each in caplog.records if each.getMessage().startswith("Registered")]
    assert summaries == ["Registered tools: 8", "Registered tools: 3 (5 skipped)"]


def test_an_unknown_transport_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="'carrier pigeon'"):
        Server("x").run("carrier pigeon")  # type: ignore[arg-type]  # on purpose
    with pytest.raises(TypeError, match="carrier pigeon"):
        Client("carrier pigeon")


# -- identity ----------------------------------------------------------------------------------------------------------


async def test_handlers_may_be_shown_to_some_only() -> None:
    server = Server("visible", cache=CacheHint(1000, "public"))
    server.tool(lambda: "open", name="open")
    server.tool(lambda: "secret", name="secret", visible=lambda principal: principal == "ada")
    async with connected(server) as peer:
        result = (await peer.request("tools/list"))["result"]
        assert [each["name"] for each in result["tools"]] == ["open"]
        assert result["cacheScope"] == "private"
        assert (await peer.call("secret"))["error"]["message"] == "Unknown tool: secret"


async def test_a_transport_context_tells_what_the_transport_knows_and_is_a_mapping() -> None:
    server = Server("transport")

    @server.tool
    async def facts(ctx: TransportContext) -> dict[str, Any]:
        return {"all": dict(ctx), "headers": dict(ctx.headers), "who": ctx.principal, "peer": ctx.peer, "n": len(ctx)}

    with anyio.fail_after(5):
        async with Client(server) as client:
            (listed,) = await client.list_tools()
            assert listed.input_schema["properties"] == {}
            assert (await client.call_tool("facts")).text == (
                '{"all":{"transport":"memory"},"headers":{},"who":null,"peer":null,"n":1}'
            )
            assert (await client.call_tool("facts", {"ctx": {}})).is_error


async def test_a_lifespan_is_given_the_server() -> None:
    @asynccontextmanager
    async def lifespan(server: Server) -> Any:
        server.tool(lambda: "late", name="late")
        yield

    with anyio.fail_after(5):
        async with Client(Server("x", lifespan=lifespan)) as client:
            assert (await client.call_tool("late")).text == "late"
