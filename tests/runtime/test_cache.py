"""What a client remembers of lists and resources, and when it forgets."""

from typing import Any

import anyio
import pytest
from msgspec import Raw

from mcpcore import CacheHint, Client, Context, PeerError, ReadResourceResult, ResourceContents, Server
from mcpcore.runtime.cache import ResponseCache
from mcpcore.types.resources import ReadResourceParams, ResourceUpdatedParams
from mcpcore.types.tools import ListToolsResult
from mcpcore.types.utilities import NotificationParams, PaginatedParams
from tests.support.wires import MODERN, Peer, Scripted

pytestmark = pytest.mark.anyio


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Counted:
    """A server that counts what reaches it, and a client's cache with a clock of its own."""

    def __init__(self, ttl_ms: int = 60_000, **options: Any) -> None:
        self.asked: list[str] = []
        self.clock = Clock()
        self.cache = ResponseCache(clock=self.clock)

        async def count(message: Any, call_next: Any) -> Any:
            self.asked.append(message.method)
            return await call_next(message)

        self.server = server = Server("counted", middleware=[count], cache=CacheHint(ttl_ms), **options)
        self.content = "one"
        for number in range(3):
            server.tool(lambda: "x", name=f"tool{number}")
        server.resource(lambda: self.content, uri="a://it")
        server.resource(lambda: "other", uri="a://other")
        server.prompt(lambda: "p", name="p")

        @server.resource("a://asked")
        async def asked(ctx: Context) -> str:
            return (await ctx.elicit("?", {"type": "object", "properties": {}})).action

        @server.resource("a://own")
        async def own() -> ReadResourceResult:
            return ReadResourceResult([ResourceContents("a://own", text="x")], ttl_ms=5_000)

    def client(self, **options: Any) -> Client:
        return Client(self.server, **{"cache": self.cache, "eras": ("modern",), **options})


async def test_a_list_is_asked_for_once_while_it_is_fresh() -> None:
    counted = Counted()
    with anyio.fail_after(5):
        async with counted.client() as client:
            first = await client.list_tools()
            counted.clock.now = 59.9
            assert await client.list_tools() == first and counted.asked == ["tools/list"]
            counted.clock.now = 60.0
            await client.list_tools()
            assert counted.asked == ["tools/list"] * 2


async def test_each_caller_gets_objects_of_its_own() -> None:
    with anyio.fail_after(5):
        async with Counted().client() as client:
            (await client.list_tools())[0].name = "changed"
            assert (await client.list_tools())[0].name == "tool0"


async def test_nothing_is_kept_that_the_server_does_not_allow_to_keep() -> None:
    for options in ({"eras": ("legacy",)}, {"cache": False}):
        counted = Counted()
        with anyio.fail_after(5):
            async with counted.client(**options) as client:
                await client.list_prompts()
                await client.list_prompts()
        assert [method for method in counted.asked if method == "prompts/list"] == ["prompts/list"] * 2
    counted = Counted(ttl_ms=0)
    with anyio.fail_after(5):
        async with counted.client() as client:
            await client.list_prompts()
            await client.list_prompts()
    assert counted.asked == ["prompts/list"] * 2


async def test_every_page_is_kept_for_itself() -> None:
    counted = Counted(page_size=2)
    with anyio.fail_after(5):
        async with counted.client() as client:
            assert len(await client.list_tools()) == 3
            assert len(await client.list_tools()) == 3
    assert counted.asked == ["tools/list"] * 2


async def test_resources_are_kept_by_their_uri_and_results_may_say_how_long() -> None:
    counted = Counted()
    with anyio.fail_after(5):
        async with counted.client() as client:
            for uri in ("a://it", "a://other", "a://it", "a://other", "a://own", "a://own"):
                await client.read_resource(uri)
            assert counted.asked == ["resources/read"] * 3
            counted.clock.now = 5.0
            await client.read_resource("a://own")
            await client.read_resource("a://it")
            assert counted.asked == ["resources/read"] * 4


async def test_calls_prompts_and_pings_are_never_kept() -> None:
    counted = Counted()
    with anyio.fail_after(5):
        async with counted.client() as client:
            for _ in range(2):
                await client.call_tool("tool0")
                await client.get_prompt("p")
                await client.ping()
    assert counted.asked == ["tools/call", "prompts/get"] * 2


async def test_a_result_of_several_rounds_is_never_kept() -> None:
    counted = Counted()
    questions: list[Any] = []

    def elicitation(params: Any) -> Any:
        questions.append(params)
        return {}

    with anyio.fail_after(5):
        client = counted.client(elicitation=elicitation)
        async with client:
            for _ in range(2):
                assert (await client.read_resource("a://asked")).contents[0].text == "accept"
    assert len(questions) == 2


async def test_a_notification_drops_what_it_makes_stale_and_nothing_else() -> None:
    counted = Counted()
    with anyio.fail_after(5):
        async with counted.client() as client:

            async def ask_all() -> list[str]:
                counted.asked.clear()
                await client.list_tools()
                await client.list_prompts()
                await client.list_resources()
                await client.list_resource_templates()
                await client.read_resource("a://it")
                await client.read_resource("a://other")
                return list(counted.asked)

            assert len(await ask_all()) == 6
            assert await ask_all() == []
            async with client.listen(tools=True, resources=True, resource_uris=["a://it"]) as changes:
                counted.server.notify_tools_changed()
                await anext(changes)
                assert await ask_all() == ["tools/list"]
                counted.server.notify_resources_changed()
                await anext(changes)
                assert await ask_all() == ["resources/list", "resources/templates/list"]
                counted.content = "two"
                counted.server.notify_resource_updated("a://it")
                await anext(changes)
                assert await ask_all() == ["resources/read"]
                assert (await client.read_resource("a://it")).contents[0].text == "two"


async def test_a_cursor_that_is_no_longer_good_starts_the_list_anew() -> None:
    lists = 0

    async def play(peer: Peer) -> None:
        nonlocal lists
        while True:
            message = await peer.receive()
            id, cursor = message["id"], message["params"].get("cursor")
            if message["method"] == "server/discover":
                answer: Any = {"result": {"supportedVersions": [MODERN], "capabilities": {"tools": {}}}}
            elif cursor is None:
                lists += 1
                tool = {"name": f"first{lists}", "inputSchema": {"type": "object"}}
                answer = {"result": {"tools": [tool], "nextCursor": f"c{lists}", "ttlMs": 10_000}}
            elif cursor == f"c{lists}" and not (cursor == "c1" and broken):
                answer = {"result": {"tools": [], "ttlMs": 0}}
            else:
                answer = {"error": {"code": -32602, "message": "unknown cursor"}}
            if "result" in answer:
                answer["result"]["resultType"] = "complete"
            await peer.send({"jsonrpc": "2.0", "id": id} | answer)

    broken = False
    with anyio.fail_after(5):
        async with Client(Scripted(play)) as client:
            assert [tool.name for tool in await client.list_tools()] == ["first1"]
            broken = True
            assert [tool.name for tool in await client.list_tools()] == ["first2"]


async def test_without_a_cache_a_cursor_that_is_not_good_is_an_error() -> None:
    async def play(peer: Peer) -> None:
        while True:
            message = await peer.receive()
            if message["method"] == "server/discover":
                answer: Any = {"result": {"supportedVersions": [MODERN], "capabilities": {"tools": {}}}}
            elif "cursor" in message["params"]:
                answer = {"error": {"code": -32602, "message": "unknown cursor"}}
            else:
                answer = {"result": {"tools": [], "nextCursor": "c", "ttlMs": 10_000, "resultType": "complete"}}
            await peer.send({"jsonrpc": "2.0", "id": message["id"]} | answer)

    with anyio.fail_after(5):
        async with Client(Scripted(play), cache=False) as client:
            with pytest.raises(PeerError, match="unknown cursor"):
                await client.list_tools()


# -- the cache itself --------------------------------------------------------------------------------------------------


def listed(ttl_ms: Any) -> tuple[Any, Raw]:
    return ListToolsResult([], ttl_ms=ttl_ms), Raw(b'{"tools":[]}')


@pytest.mark.parametrize(("ttl_ms", "kept"), [(None, False), (0, False), (-5, False), (1, True)])
def test_only_a_positive_time_to_live_keeps_a_result(ttl_ms: Any, kept: bool) -> None:
    cache = ResponseCache(clock=Clock())
    cache.put("tools/list", PaginatedParams(), *listed(ttl_ms), cache.epoch)
    assert (cache.get("tools/list", PaginatedParams()) is not None) is kept


def test_no_result_is_kept_longer_than_a_day() -> None:
    clock = Clock()
    cache = ResponseCache(clock=clock)
    cache.put("tools/list", PaginatedParams(), *listed(10**15), cache.epoch)
    clock.now = 24 * 3600 - 1
    assert cache.get("tools/list", PaginatedParams()) is not None
    clock.now = 24 * 3600
    assert cache.get("tools/list", PaginatedParams()) is None


def test_what_was_not_used_for_longest_goes_first() -> None:
    cache = ResponseCache(entries=2, clock=Clock())
    for cursor in ("a", "b"):
        cache.put("tools/list", PaginatedParams(cursor), *listed(1000), cache.epoch)
    assert cache.get("tools/list", PaginatedParams("a")) is not None
    cache.put("tools/list", PaginatedParams("c"), *listed(1000), cache.epoch)
    assert [cache.get("tools/list", PaginatedParams(cursor)) is not None for cursor in "abc"] == [True, False, True]


def test_a_result_that_was_under_way_when_its_like_was_dropped_is_not_kept() -> None:
    cache = ResponseCache(clock=Clock())
    epoch = cache.epoch
    cache.notified("notifications/tools/list_changed", NotificationParams())
    cache.put("tools/list", PaginatedParams(), *listed(1000), epoch)
    assert cache.get("tools/list", PaginatedParams()) is None


def test_only_the_resource_that_was_updated_is_dropped() -> None:
    cache = ResponseCache(clock=Clock())
    for uri in ("a", "b"):
        result = ReadResourceResult([], ttl_ms=1000)
        cache.put("resources/read", ReadResourceParams(uri), result, Raw(b'{"contents":[]}'), cache.epoch)
    cache.notified("notifications/resources/updated", ResourceUpdatedParams("a"))
    assert cache.get("resources/read", ReadResourceParams("a")) is None
    assert cache.get("resources/read", ReadResourceParams("b")) is not None
