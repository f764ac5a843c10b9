"""Arguments that are mirrored in header fields: learnt from schemas, sent, and learnt again when they have changed."""

from typing import Any

import anyio
import pytest

from mcpcore import Client, PeerError, Server
from tests.support.http_peer import Reply, Request, Script, answer, error, legacy, modern, serve

pytestmark = pytest.mark.anyio

STAMP = {"resultType": "complete", "ttlMs": 300_000, "cacheScope": "private"}


def tool(name: str, **headers: str) -> dict[str, Any]:
    """A tool whose arguments are mirrored: argument to header."""
    properties = {argument: {"type": "string", "x-mcp-header": header} for argument, header in headers.items()}
    return {"name": name, "inputSchema": {"type": "object", "properties": properties}}


def listing(*tools: dict[str, Any]) -> Script:
    async def script(request: Request, reply: Reply) -> None:
        await reply.json(answer(request, {"tools": list(tools), **STAMP}))

    return script


def mirrored(request: Request) -> dict[str, str]:
    return {name: value for name, value in request.headers.items() if name.startswith("mcp-param-")}


async def test_arguments_are_mirrored_once_the_tools_are_known() -> None:
    schema = {
        "type": "object",
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "count": {"type": "integer", "x-mcp-header": "Count"},
            "dry": {"type": "boolean", "x-mcp-header": "Dry"},
            "plain": {"type": "string"},
            "place": {"type": "object", "properties": {"city": {"type": "string", "x-mcp-header": "City"}}},
        },
    }
    arguments: dict[str, Any] = {"region": "", "count": -7, "dry": False, "plain": "x", "place": {"city": "Köln"}}
    script = modern({"tools/list": listing({"name": "sql", "inputSchema": schema})})
    async with serve(script) as peer, Client(peer.url) as client:
        await client.list_tools()
        await client.call_tool("sql", arguments)
        await client.call_tool("sql", {"region": None, "place": {}})
        await client.call_tool("other", arguments)
    first, second, third = peer.of("tools/call")
    assert mirrored(first) == {
        "mcp-param-region": "",
        "mcp-param-count": "-7",
        "mcp-param-dry": "false",
        "mcp-param-city": "=?base64?S8O2bG4=?=",
    }
    assert mirrored(second) == mirrored(third) == {}


async def test_a_name_that_no_header_can_carry_is_encoded() -> None:
    async with serve(modern()) as peer, Client(peer.url) as client:
        await client.call_tool("größe")
    assert peer.of("tools/call")[0].headers["mcp-name"] == "=?base64?Z3LDtsOfZQ==?="


async def test_an_integer_that_no_header_can_carry_is_refused_before_anything_is_sent() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}}
    script = modern({"tools/list": listing({"name": "sql", "inputSchema": schema})})
    async with serve(script) as peer, Client(peer.url) as client:
        await client.list_tools()
        with pytest.raises(ValueError, match="argument n"):
            await client.call_tool("sql", {"n": 2**53})
        assert not peer.of("tools/call")
        await client.call_tool("sql", {"n": 2**53 - 1})


async def test_a_tool_with_a_bad_annotation_is_left_out_with_a_warning_and_spoils_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    script = modern(
        {"tools/list": listing(tool("good", a="A"), tool("bad", a="Not a token"), tool("twice", a="X", b="x"))}
    )
    async with serve(script) as peer, Client(peer.url) as client:
        assert [each.name for each in await client.list_tools()] == ["good"]
    assert "'bad' is left out" in caplog.text and "'twice' is left out" in caplog.text


async def test_where_nothing_is_mirrored_no_tool_is_left_out() -> None:
    async def tools(request: Request, reply: Reply) -> None:
        await reply.json(answer(request, {"tools": [tool("bad", a="Not a token")]}))

    async with serve(legacy({"tools/list": tools})) as peer, Client(peer.url, eras=["legacy"]) as client:
        assert [each.name for each in await client.list_tools()] == ["bad"]
        await client.call_tool("bad", {"a": "x"})
    assert not mirrored(peer.of("tools/call")[0])


class Strict:
    """A server that wants the argument ``a`` mirrored under a name that it can change."""

    def __init__(self, header: str) -> None:
        self.header = header

    async def __call__(self, request: Request, reply: Reply) -> None:
        if request.name == "tools/list":
            await listing(tool("sql", a=self.header))(request, reply)
        elif request.name == "tools/call" and f"mcp-param-{self.header.lower()}" not in request.headers:
            await reply.json(error(request.id, -32020, "Header mismatch"), 400)
        else:
            await modern()(request, reply)


async def test_a_mismatch_makes_the_client_look_again_and_repeat_the_call() -> None:
    async with serve(server := Strict("Region")) as peer, Client(peer.url) as client:
        assert (await client.call_tool("sql", {"a": "x"})).text == "done"  # nothing had been listed
        server.header = "Zone"
        assert (await client.call_tool("sql", {"a": "x"})).text == "done"  # though the list was kept as fresh
    assert [mirrored(request) for request in peer.of("tools/call")] == [
        {},
        {"mcp-param-region": "x"},
        {"mcp-param-region": "x"},
        {"mcp-param-zone": "x"},
    ]
    assert len(peer.of("tools/list")) == 2


async def test_a_mismatch_that_stays_is_an_error_after_one_more_try() -> None:
    async def call(request: Request, reply: Reply) -> None:
        await reply.json(error(request.id, -32020, "Header mismatch"), 400)

    async with serve(modern({"tools/call": call})) as peer, Client(peer.url) as client:
        with pytest.raises(PeerError, match="Header mismatch"):
            await client.call_tool("add", {"a": 1})
    assert [request.name for request in peer.requests][1:] == ["tools/call", "tools/list", "tools/call"]


async def test_the_second_round_of_a_call_is_mirrored_like_the_first() -> None:
    async def call(request: Request, reply: Reply) -> None:
        if "requestState" in request.message["params"]:
            await reply.json(answer(request, {"resultType": "complete", "content": []}))
        else:
            await reply.json(answer(request, {"resultType": "input_required", "requestState": "s"}))

    script = modern({"tools/call": call, "tools/list": listing(tool("sql", a="A"))})
    async with serve(script) as peer, Client(peer.url) as client:
        await client.list_tools()
        await client.call_tool("sql", {"a": "x"})
    assert [mirrored(request) for request in peer.of("tools/call")] == [{"mcp-param-a": "x"}] * 2
    assert [request.headers["mcp-name"] for request in peer.of("tools/call")] == ["sql"] * 2


async def test_in_memory_nothing_is_mirrored_and_no_tool_is_left_out() -> None:
    async def sql(a: str) -> str:
        """Run."""
        return a

    server = Server("x")
    server.tool(sql)
    with anyio.fail_after(5):
        async with Client(server) as client:
            assert client._link is not None and client._link.connection.header_maps is None
            assert (await client.call_tool("sql", {"a": "x"})).text == "x"
