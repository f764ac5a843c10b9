"""Pages of lists, and how clients learn that a list or a resource has changed."""

import threading
from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread
import pytest

from mcpcore import Client, PeerError, Server, resource
from mcpcore.exceptions import ConnectionLost, RemoteProtocolError, RequestTimeout
from mcpcore.types import PromptReference
from tests.support.wires import MODERN, Peer, Scripted, connected

pytestmark = pytest.mark.anyio

ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])


def numbered(count: int, **options: Any) -> Server:
    server = Server("numbered", **options)
    for number in range(count):

        async def tool(x: int) -> int:
            return x

        server.add_tool(tool, name=f"tool{number}")
    return server


# -- pages -----------------------------------------------------------------------------------------------------------


@ERAS
@pytest.mark.parametrize(("count", "pages"), [(1, 1), (3, 1), (4, 2), (6, 2), (7, 3)])
async def test_the_client_follows_all_pages(era: Any, count: int, pages: int) -> None:
    with anyio.fail_after(5):
        async with Client(numbered(count, page_size=3), eras=(era,)) as client:
            assert [tool.name for tool in await client.list_tools()] == [f"tool{number}" for number in range(count)]
        async with connected(numbered(count, page_size=3)) as peer:
            found, cursor = 0, None
            while found == 0 or cursor is not None:
                params: dict[str, Any] = {} if cursor is None else {"cursor": cursor}
                cursor = (await peer.request("tools/list", params))["result"].get("nextCursor")
                found += 1
            assert found == pages


@ERAS
@pytest.mark.parametrize("cursor", ["", "2", "9", "-3", "3.0", "x", "٣", "0", "03", "3" * 5000])
async def test_a_cursor_that_the_server_did_not_give_is_an_error(era: str, cursor: str) -> None:
    version = MODERN if era == "modern" else "2025-11-25"
    with anyio.fail_after(5):
        async with connected(numbered(9, page_size=3)) as peer:
            if era == "legacy":
                await peer.initialize()
            answer = await peer.request("tools/list", {"cursor": cursor}, era=version)
            assert answer["error"]["code"] == -32602
            assert len(answer["error"]["message"]) < 200


@pytest.mark.parametrize(
    ("method", "member"),
    [
        ("tools/list", "tools"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
        ("prompts/list", "prompts"),
    ],
)
@pytest.mark.parametrize("hides", [False, True])
async def test_every_list_is_cut_into_pages_in_the_order_of_registration(method: str, member: str, hides: bool) -> None:
    server = Server("paged", page_size=2)
    for number in (3, 1, 2, 5, 4):
        name = f"n{number}"
        server.tool(said, name=name)
        server.prompt(said, name=name)
        server.resource(said, uri=f"a://{number}", name=name)
        server.resource(echo, uri=f"a{number}://{{v}}", name=name)
    if hides:
        server.tool(said, name="hidden", visible=lambda principal: False)
    found: list[str] = []
    cursors: list[str | None] = [None]
    with anyio.fail_after(5):
        async with connected(server) as peer:
            for cursor in cursors:
                result = (await peer.request(method, {} if cursor is None else {"cursor": cursor}))["result"]
                found += [each["name"] for each in result[member]]
                cursors += [result["nextCursor"]] if "nextCursor" in result else []
            for bad in ("", "x", "1", "02", "6", "-2"):
                assert (await peer.request(method, {"cursor": bad}))["error"]["code"] == -32602
    assert (found, cursors) == (["n3", "n1", "n2", "n5", "n4"], [None, "2", "4"])


async def test_without_pages_no_cursor_is_known() -> None:
    with anyio.fail_after(5):
        async with connected(numbered(9)) as peer:
            assert "nextCursor" not in (await peer.request("tools/list"))["result"]
            assert (await peer.request("tools/list", {"cursor": "3"}))["error"]["code"] == -32602


@pytest.mark.parametrize("size", [0, -1, "5", 2.0, True])
def test_a_page_holds_at_least_one_item(size: Any) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Server("none", page_size=size)


def paged(*pages: dict[str, Any]) -> Scripted:
    """A server that answers list requests with these results, the last one again and again."""

    async def play(peer: Peer) -> None:
        left = list(pages)
        while True:
            message = await peer.receive()
            if message["method"] == "server/discover":
                result: Any = {"supportedVersions": [MODERN], "capabilities": {"tools": {}}}
            else:
                result = left.pop(0) if len(left) > 1 else left[0]
            await peer.send({"jsonrpc": "2.0", "id": message["id"], "result": {"resultType": "complete"} | result})

    return Scripted(play)


def tool(name: str) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}}


async def test_the_empty_string_is_a_cursor_and_null_ends_the_list() -> None:
    target = paged({"tools": [tool("a")], "nextCursor": ""}, {"tools": [tool("b")], "nextCursor": None})
    with anyio.fail_after(5):
        async with Client(target) as client:
            assert [each.name for each in await client.list_tools()] == ["a", "b"]


async def test_a_cursor_that_comes_twice_is_an_error_and_not_an_endless_list() -> None:
    with anyio.fail_after(5):
        async with Client(paged({"tools": [], "nextCursor": "again"})) as client:
            with pytest.raises(RemoteProtocolError, match="'again' twice"):
                await client.list_tools()


# -- handlers that come and go ---------------------------------------------------------------------------------------


@ERAS
async def test_tools_that_come_and_go_at_run_time_are_seen_at_once(era: Any) -> None:
    server = numbered(1)
    with anyio.fail_after(5):
        async with Client(server, eras=(era,), cache=False) as client:
            assert len(await client.list_tools()) == 1

            @server.tool
            async def late(x: int) -> int:
                return x + 1

            assert [each.name for each in await client.list_tools()] == ["tool0", "late"]
            assert (await client.call_tool("late", {"x": 1})).text == "2"
            server.remove_tool("late")
            assert len(await client.list_tools()) == 1
            with pytest.raises(PeerError, match="Unknown tool: late"):
                await client.call_tool("late", {"x": 1})


async def test_a_tool_of_the_same_name_replaces_the_one_that_is_served(caplog: pytest.LogCaptureFixture) -> None:
    server = numbered(1)

    async def better(x: int) -> int:
        return 10 * x

    with anyio.fail_after(5):
        async with Client(server) as client:
            server.add_tool(better, name="tool0")
            assert (await client.call_tool("tool0", {"x": 1})).text == "10"
    assert "Replaced tool 'tool0'" in caplog.text


@ERAS
async def test_a_call_that_runs_is_not_disturbed_when_its_tool_goes_and_comes_back_as_another(era: Any) -> None:
    server, started, release = Server("changing"), anyio.Event(), anyio.Event()

    async def old() -> str:
        started.set()
        await release.wait()
        return "old"

    async def new() -> str:
        return "new"

    server.add_tool(old, "tool")
    said: list[str] = []
    with anyio.fail_after(5):
        async with Client(server, eras=(era,), cache=False) as client, anyio.create_task_group() as tasks:

            async def call() -> None:
                said.append((await client.call_tool("tool")).text)

            tasks.start_soon(call)
            await started.wait()
            server.remove_tool("tool")
            with pytest.raises(PeerError, match="Unknown tool: tool"):
                await client.call_tool("tool")
            server.add_tool(new, "tool")
            await call()
            release.set()
    assert said == ["new", "old"]


COMINGS: dict[str, tuple[str, str, Callable[[Server, str], Any]]] = {
    # kind: (the notification, what an added one is called, how one is added; the text is its description)
    "tool": ("tools", "new", lambda server, text: server.tool(said, name="new", description=text)),
    "resource": ("resources", "new://it", lambda server, text: server.resource(said, uri="new://it", description=text)),
    "template": (
        "resources",
        "new://{v}",
        lambda server, text: server.resource(echo, uri="new://{v}", description=text),
    ),
    "prompt": ("prompts", "new", lambda server, text: server.prompt(said, name="new", description=text)),
}


async def said() -> str:
    return "said"


async def echo(v: str) -> str:
    return v


def giving(text: str) -> Callable[[str], list[str]]:
    return lambda prefix: [text]


async def everything_listed(client: Client) -> list[tuple[str, str | None]]:
    lists: list[list[Any]] = [
        await client.list_tools(),
        await client.list_resources(),
        await client.list_resource_templates(),
        await client.list_prompts(),
    ]
    return [(each.name, each.description) for items in lists for each in items]


@ERAS
@pytest.mark.parametrize("kind", COMINGS)
async def test_whatever_comes_is_replaced_or_goes_is_told_and_seen_at_once(era: Any, kind: Any) -> None:
    what, name, add = COMINGS[kind]
    server = Server("changing")
    server.tool(said)
    server.prompt(said)
    server.resource(said, uri="a://it")
    told: list[str] = []
    with anyio.fail_after(5):
        async with Client(server, eras=(era,)) as client:
            before = await everything_listed(client)
            async with client.listen(tools=True, prompts=True, resources=True) as changes:
                for change, after in (
                    (lambda: add(server, "first"), ["first"]),
                    (lambda: add(server, "second"), ["second"]),
                    (lambda: server.registry.remove(kind, name), []),
                ):
                    change()
                    async for method, _ in changes:
                        told.append(method)
                        break
                    listed = await everything_listed(client)
                    assert [text for _, text in listed if text in ("first", "second")] == after
                assert await everything_listed(client) == before
    assert told == [f"notifications/{what}/list_changed"] * 3


async def test_completions_come_and_go_in_silence() -> None:
    server = Server("completing")
    server.prompt(said, name="p")
    server.complete(lambda prefix: ["other"], prompt="p", argument="other")
    told: list[str] = []

    async def completed(client: Client) -> list[str]:
        return (await client.complete(PromptReference("p"), "x", "")).values

    with anyio.fail_after(5):
        async with Client(server, eras=("legacy",), on_notification=lambda method, _: told.append(method)) as client:
            assert await completed(client) == []
            for text in ("first", "second"):
                server.complete(giving(text), prompt="p")
                assert await completed(client) == [text]
            server.registry.remove("completion", "p")
            assert await completed(client) == []
    assert told == []


def test_what_is_not_there_cannot_be_removed() -> None:
    with pytest.raises(KeyError, match="tool0"):
        numbered(1).remove_tool("tool1")


async def test_a_legacy_session_is_told_once_per_change_after_the_handshake() -> None:
    server = numbered(1)

    @server.resource("a://fixed")
    def fixed() -> str:
        return ""

    with anyio.fail_after(5):
        async with connected(server) as peer:
            await peer.initialize()
            await peer.request("ping", era="2025-11-25")
            server.remove_tool("tool0")
            assert (await peer.receive())["method"] == "notifications/tools/list_changed"

            class Both:
                @resource("b://fixed")
                def one(self) -> str:
                    return ""

                @resource("b://{x}")
                def other(self, x: str) -> str:
                    return x

            server.include(Both())
            assert (await peer.receive())["method"] == "notifications/resources/list_changed"
            assert await peer.is_quiet()


async def test_modern_clients_are_told_only_what_they_subscribed_to() -> None:
    server = numbered(2)
    server.resource("a://it")(lambda: "x")
    with anyio.fail_after(5):
        async with connected(server) as peer:
            listening = await peer.start("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
            acknowledged = await peer.receive()
            assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
            assert acknowledged["params"]["notifications"] == {"toolsListChanged": True}
            server.notify_resources_changed()
            server.notify_resource_updated("a://it")
            server.remove_tool("tool1")
            changed = await peer.receive()
            assert changed["method"] == "notifications/tools/list_changed"
            assert changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == listening
            assert await peer.is_quiet()
            await peer.notify("notifications/cancelled", {"requestId": listening})
            await peer.request("server/discover")
            server.notify_tools_changed()
            assert await peer.is_quiet()


async def test_a_change_may_be_made_in_any_thread() -> None:
    server = numbered(1)
    with anyio.fail_after(5):
        async with connected(server) as peer:
            await peer.initialize()
            await peer.request("ping", era="2025-11-25")
            await anyio.to_thread.run_sync(server.remove_tool, "tool0")
            assert (await peer.receive())["method"] == "notifications/tools/list_changed"
            thread = threading.Thread(target=server.notify_tools_changed)
            thread.start()
            assert (await peer.receive())["method"] == "notifications/tools/list_changed"
            await anyio.to_thread.run_sync(thread.join)


# -- listen ------------------------------------------------------------------------------------------------------------


def changing() -> Server:
    server = numbered(2)
    server.resource("a://one")(lambda: "1")
    server.resource("a://two")(lambda: "2")
    server.prompt(name="p")(lambda: "p")
    return server


@ERAS
async def test_listen_tells_what_was_granted_and_then_each_change(era: Any) -> None:
    server = changing()
    with anyio.fail_after(5):
        async with Client(server, eras=(era,)) as client:
            async with client.listen(tools=True, resource_uris=["a://one"]) as changes:
                assert changes.granted is not None
                assert changes.granted.tools_list_changed is True
                assert changes.granted.resource_subscriptions == ["a://one"]
                assert changes.granted.prompts_list_changed is None
                server.notify_prompts_changed()
                server.notify_resource_updated("a://two")
                server.notify_resource_updated("a://one")
                server.remove_tool("tool1")
                seen: list[tuple[str, Any]] = []
                async for method, params in changes:
                    seen.append((method, getattr(params, "uri", None)))
                    if len(seen) == 2:
                        break
            assert seen == [("notifications/resources/updated", "a://one"), ("notifications/tools/list_changed", None)]


@ERAS
async def test_changes_that_wait_are_told_once(era: Any) -> None:
    server = changing()
    with anyio.fail_after(5):
        async with Client(server, eras=(era,)) as client, client.listen(tools=True) as changes:
            for _ in range(5):
                server.notify_tools_changed()
            await client.ping()
            await anyio.wait_all_tasks_blocked()
            iterator = aiter(changes)
            assert (await anext(iterator))[0] == "notifications/tools/list_changed"
            with anyio.move_on_after(0.01) as waiting:
                await anext(iterator)
            assert waiting.cancelled_caught


@ERAS
async def test_leaving_a_subscription_ends_it_on_the_server(era: Any) -> None:
    server = changing()
    told: list[str] = []
    with anyio.fail_after(5):
        client = Client(server, eras=(era,), on_notification=lambda method, params: told.append(method))
        async with client:
            async with client.listen(resource_uris=["a://one"]), client.listen(resource_uris=["a://one"]):
                pass
            await client.ping()
            server.notify_resource_updated("a://one")
            await client.ping()
        assert told == []


@ERAS
async def test_iteration_ends_when_the_server_ends_or_the_connection_breaks(era: Any) -> None:
    server = changing()
    with anyio.fail_after(5):
        async with Client(server, eras=(era,)) as client, client.listen(tools=True) as changes:
            server.stop()
            if era == "modern":
                assert [each async for each in changes] == []
            else:
                with pytest.raises(ConnectionLost):
                    await anext(aiter(changes))


async def test_a_server_that_refuses_or_does_not_answer_a_subscription_is_told_apart() -> None:
    async def play(peer: Peer) -> None:
        answers = iter([{"error": {"code": -32603, "message": "Too many"}}])
        while True:
            message = await peer.receive()
            if message.get("method") == "server/discover":
                answer: Any = {
                    "result": {"supportedVersions": [MODERN], "capabilities": {"tools": {"listChanged": True}}}
                }
            else:
                answer = next(answers, None)
            if answer:
                await peer.send({"jsonrpc": "2.0", "id": message["id"]} | answer)

    with anyio.fail_after(5):
        async with Client(Scripted(play), timeout=0.5) as client:
            with pytest.raises(PeerError, match="Too many"):
                async with client.listen(tools=True):
                    pytest.fail("must not be granted")
            with pytest.raises(RequestTimeout, match="subscriptions/listen"):
                async with client.listen(tools=True):
                    pytest.fail("must not be granted")


async def test_a_legacy_resource_subscription_is_for_one_uri_and_one_session() -> None:
    server = changing()
    told: dict[str, list[str]] = {"one": [], "other": []}

    def teller(name: str) -> Any:
        return lambda method, params: told[name].append(f"{method} {params.uri}")

    with anyio.fail_after(5):
        async with (
            Client(server, eras=("legacy",), on_notification=teller("one")) as one,
            Client(server, eras=("legacy",), on_notification=teller("other")) as other,
        ):
            await one.subscribe_resource("a://one")
            await other.subscribe_resource("a://two")
            server.notify_resource_updated("a://one")
            await one.ping()
            await one.unsubscribe_resource("a://one")
            server.notify_resource_updated("a://one")
            await one.ping()
            await other.ping()
    assert told == {"one": ["notifications/resources/updated a://one"], "other": []}
