"""Legacy sessions as a client keeps them: begun, carried, lost, opened again, ended."""

from collections import Counter
from typing import Any

import anyio
import pytest

from mcpcore import Client, PeerError, SessionExpired, TransportError
from tests.support.http_peer import Peer, Reply, Request, Script, answer, error, legacy, serve

pytestmark = pytest.mark.anyio

LEGACY: Any = ["legacy"]


# -- what every request carries ----------------------------------------------------------------------------------


async def test_everything_after_initialize_carries_the_session_and_its_revision() -> None:
    async with serve(legacy()) as peer:
        async with Client(peer.url, eras=LEGACY) as client:
            await client.call_tool("add")
        opening, *rest = peer.requests
    assert opening.name == "initialize"
    assert "mcp-session-id" not in opening.headers and "mcp-protocol-version" not in opening.headers
    assert [request.name for request in rest] == ["notifications/initialized", "GET", "tools/call", "DELETE"]
    for request in rest:
        assert request.headers["mcp-session-id"] == "s1"
        assert request.headers["mcp-protocol-version"] == "2025-11-25"
        assert "mcp-method" not in request.headers


async def test_a_revision_that_the_server_chose_is_the_one_that_is_named() -> None:
    async with serve(legacy(version="2025-06-18")) as peer, Client(peer.url) as client:
        await client.call_tool("add")
    assert {request.headers["mcp-protocol-version"] for request in peer.requests[2:]} == {"2025-06-18"}


async def test_a_session_is_taken_from_the_answer_to_initialize_only() -> None:
    async def call(request: Request, reply: Reply) -> None:
        await reply.json(answer(request, {"content": []}), mcp_session_id="other")

    async with serve(legacy({"tools/call": call})) as peer, Client(peer.url, eras=LEGACY) as client:
        for _ in range(2):
            await client.call_tool("add")
    assert {request.headers["mcp-session-id"] for request in peer.requests[1:]} == {"s1"}


async def test_a_server_that_does_not_take_the_notification_of_being_initialized_is_called_all_the_same() -> None:
    async def refuse_it(request: Request, reply: Reply) -> None:
        await reply.empty(400)

    async with serve(legacy({"notifications/initialized": refuse_it})) as peer, Client(peer.url, eras=LEGACY) as client:
        assert (await client.call_tool("add")).text == "done"
    assert not peer.of("GET")


async def test_a_server_without_sessions_is_served_without() -> None:
    async with serve(legacy(session=None)) as peer:
        async with Client(peer.url, eras=LEGACY) as client:
            await client.call_tool("add")
        names = [request.name for request in peer.requests]
    assert names == ["initialize", "notifications/initialized", "GET", "tools/call"]
    assert not any("mcp-session-id" in request.headers for request in peer.requests)


async def test_a_session_id_that_no_header_may_have_is_not_used(caplog: pytest.LogCaptureFixture) -> None:
    async with serve(legacy(session="a b")) as peer, Client(peer.url, eras=LEGACY) as client:
        await client.call_tool("add")
    assert not any("mcp-session-id" in request.headers for request in peer.requests)
    assert "is not used" in caplog.text


async def test_an_initialize_that_is_answered_by_a_stream_opens_a_session_too() -> None:
    async def initialize(request: Request, reply: Reply) -> None:
        await reply.events(mcp_session_id="s2")
        result = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "x", "version": ""},
        }
        await reply.event(answer(request, result), event="message", id="e1")
        await reply.end()

    async with serve(legacy({"initialize": initialize})) as peer, Client(peer.url, eras=LEGACY) as client:
        await client.call_tool("add")
    assert {request.headers["mcp-session-id"] for request in peer.requests[1:]} == {"s2"}


# -- the end -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 204, 404, 405, 500])
async def test_a_server_may_answer_delete_as_it_likes(status: int) -> None:
    async def delete(request: Request, reply: Reply) -> None:
        await reply.empty(status)

    async with serve(legacy({"DELETE": delete})) as peer:
        async with Client(peer.url, eras=LEGACY) as client:
            await client.list_tools()
        assert len(peer.of("DELETE")) == 1


async def test_a_server_that_does_not_answer_delete_holds_nobody_up() -> None:
    async def delete(request: Request, reply: Reply) -> None:
        await reply.gone()

    async with serve(legacy({"DELETE": delete})) as peer:
        with anyio.fail_after(5):
            async with Client(peer.url, eras=LEGACY) as client:
                await client.list_tools()
        assert len(peer.of("DELETE")) == 1


async def test_a_session_that_was_refused_is_not_ended() -> None:
    async def initialize(request: Request, reply: Reply) -> None:
        await reply.json(error(request.id, -32603, "full"), mcp_session_id="s1")

    async with serve(legacy({"initialize": initialize})) as peer:
        with pytest.raises(PeerError, match="full"):
            async with Client(peer.url, eras=LEGACY):
                pass
        assert [request.name for request in peer.requests] == ["initialize"]


# -- loss --------------------------------------------------------------------------------------------------------


class Forgetful:
    """A server that forgets its sessions when it is told to, and counts what it was asked in those it knows."""

    def __init__(self, refusal: Any = None, status: int = 404) -> None:
        self.known = 1
        self.refusal = refusal
        self.status = status
        self.served: Counter[str] = Counter()
        self._served = legacy()

    def restart(self) -> None:
        self.known += 1

    async def __call__(self, request: Request, reply: Reply) -> None:
        session = f"s{self.known}"
        if request.name == "initialize":
            await legacy(session=session)(request, reply)
        elif request.headers.get("mcp-session-id") != session and request.name != "server/discover":
            if self.refusal is None:
                await reply.empty(self.status)
            else:
                await reply.json(self.refusal, self.status)
        else:
            self.served[request.name] += 1
            await self._served(request, reply)


def sessions(peer: Peer, name: str) -> list[str]:
    return [request.headers["mcp-session-id"] for request in peer.of(name)]


async def test_a_list_is_asked_for_again_in_a_new_session() -> None:
    async with serve(server := Forgetful()) as peer, Client(peer.url, eras=LEGACY, cache=False) as client:
        await client.list_tools()
        server.restart()
        assert [tool.name for tool in await client.list_tools()] == ["add"]
        await client.ping()
    assert sessions(peer, "tools/list") == ["s1", "s1", "s2"]
    assert sessions(peer, "notifications/initialized") == ["s1", "s2"]
    assert sessions(peer, "DELETE") == ["s2"]
    assert len(peer.of("GET")) == 2
    first, second = peer.of("initialize")
    assert first.message["params"] == second.message["params"]
    assert "mcp-session-id" not in second.headers and "mcp-protocol-version" not in second.headers


async def test_the_stream_of_a_lost_session_is_closed() -> None:
    server = Forgetful()
    opened: list[str] = []
    closed: list[str] = []

    async def get(request: Request, reply: Reply) -> None:
        session = request.headers["mcp-session-id"]
        opened.append(session)
        await reply.events()
        await reply.gone()
        closed.append(session)

    server._served = legacy({"GET": get})
    async with serve(server) as peer, Client(peer.url, eras=LEGACY, cache=False) as client:
        await client.list_tools()
        server.restart()
        await client.list_tools()
        with anyio.fail_after(5):
            while not closed:
                await anyio.wait_all_tasks_blocked()
        assert (opened, closed) == (["s1", "s2"], ["s1"])


async def test_a_tool_is_not_called_again_and_later_calls_work() -> None:
    async with serve(server := Forgetful()) as peer, Client(peer.url, eras=LEGACY) as client:
        await client.list_tools()
        server.restart()
        with pytest.raises(SessionExpired, match="tools/call was not repeated") as caught:
            await client.call_tool("add")
        assert caught.value.status == 404
        assert (await client.call_tool("add")).text == "done"
    assert server.served["tools/call"] == 1


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize("hint", ["readOnlyHint", "idempotentHint"])
async def test_a_tool_of_a_trusted_server_that_says_it_is_harmless_is_called_again(hint: str, trusted: bool) -> None:
    async def tools(request: Request, reply: Reply) -> None:
        tool = {"name": "add", "inputSchema": {"type": "object"}, "annotations": {hint: True}}
        await reply.json(answer(request, {"tools": [tool]}))

    server = Forgetful()
    server._served = legacy({"tools/list": tools})
    async with serve(server) as peer, Client(peer.url, eras=LEGACY, trusted=trusted) as client:
        await client.list_tools()
        server.restart()
        if trusted:
            assert (await client.call_tool("add")).text == "done"
        else:
            with pytest.raises(SessionExpired):
                await client.call_tool("add")


async def test_many_calls_that_lose_their_session_open_one_new_session() -> None:
    async with serve(server := Forgetful()) as peer, Client(peer.url, eras=LEGACY, cache=False) as client:
        await client.ping()
        server.restart()
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(client.list_resources)
    assert len(peer.of("initialize")) == 2
    assert server.served["resources/list"] == 20


async def test_a_new_session_is_told_what_the_old_one_knew() -> None:
    async with serve(server := Forgetful()) as peer, Client(peer.url, eras=LEGACY, cache=False) as client:
        await client.set_log_level("error")
        for uri in ("a:1", "a:2"):
            await client.subscribe_resource(uri)
        await client.unsubscribe_resource("a:1")
        server.restart()
        await client.list_tools()
    assert [request.message["params"]["level"] for request in peer.of("logging/setLevel")] == ["error", "error"]
    assert sessions(peer, "logging/setLevel") == ["s1", "s2"]
    told = [
        (request.message["params"]["uri"], request.headers["mcp-session-id"])
        for request in peer.of("resources/subscribe")
    ]
    assert told == [("a:1", "s1"), ("a:2", "s1"), ("a:2", "s2")]


@pytest.mark.parametrize(
    ("status", "refusal"),
    [
        (404, error(None, -32001, "Session not found")),
        (404, error("server-error", -32600, "Session has been terminated")),
        (400, error(3, -32000, "Bad Request: No valid session ID provided")),
    ],
)
async def test_servers_say_in_several_ways_that_they_do_not_know_a_session(status: int, refusal: Any) -> None:
    server = Forgetful(refusal, status)
    async with serve(server) as peer, Client(peer.url, eras=LEGACY, cache=False) as client:
        await client.list_tools()
        server.restart()
        await client.list_tools()
    assert len(peer.of("initialize")) == 2


async def test_a_method_that_does_not_exist_is_no_lost_session() -> None:
    async def prompts(request: Request, reply: Reply) -> None:
        await reply.json(error(request.id, -32601, "Method not found"), 404)

    async with serve(legacy({"prompts/list": prompts})) as peer, Client(peer.url, eras=LEGACY) as client:
        with pytest.raises(PeerError, match="Method not found"):
            await client.list_prompts()
    assert len(peer.of("initialize")) == 1


async def test_without_a_session_404_is_what_it_is() -> None:
    async def prompts(request: Request, reply: Reply) -> None:
        await reply.empty(404)

    async with serve(legacy({"prompts/list": prompts}, session=None)) as peer, Client(peer.url, eras=LEGACY) as client:
        with pytest.raises(TransportError) as caught:
            await client.list_prompts()
    assert not isinstance(caught.value, SessionExpired)
    assert len(peer.of("initialize")) == 1


async def refuse(request: Request, reply: Reply) -> None:
    await reply.body(b"maintenance", 503, "text/plain")


async def another_revision(request: Request, reply: Reply) -> None:
    await legacy(session="s2", version="2025-03-26")(request, reply)


@pytest.mark.parametrize("initialize", [refuse, another_revision])
async def test_a_session_that_cannot_be_opened_again_is_an_error_and_is_tried_again_later(initialize: Script) -> None:
    server = Forgetful()
    broken = False

    async def script(request: Request, reply: Reply) -> None:
        if broken and request.name == "initialize":
            await initialize(request, reply)
        else:
            await server(request, reply)

    async with serve(script) as peer, Client(peer.url, eras=LEGACY, cache=False) as client:
        await client.list_tools()
        server.restart()
        broken = True
        with pytest.raises(SessionExpired) as caught:
            await client.list_tools()
        assert isinstance(caught.value.__cause__, TransportError)
        broken = False
        assert await client.list_tools()


async def test_a_call_that_comes_while_a_session_is_being_opened_again_waits_for_it() -> None:
    server = Forgetful()
    reopened = anyio.Event()

    async def script(request: Request, reply: Reply) -> None:
        if request.name == "initialize" and len(peer.of("initialize")) == 2:
            await reopened.wait()
        await server(request, reply)

    async with serve(script) as peer, Client(peer.url, eras=LEGACY, cache=False) as client:
        await client.ping()
        server.restart()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.ping)
            await peer.wait_for("initialize", 2)
            tasks.start_soon(client.call_tool, "add")
            await anyio.wait_all_tasks_blocked()
            assert not peer.of("tools/call")
            reopened.set()
    assert sessions(peer, "tools/call") == ["s2"]


async def test_a_notification_that_meets_a_lost_session_opens_a_new_one() -> None:
    server = Forgetful()
    async with serve(server) as peer, Client(peer.url, eras=LEGACY, roots=[]) as client:
        await client.ping()
        server.restart()
        await client.notify_roots_changed()
        await peer.wait_for("notifications/initialized", 2)
        assert (await client.call_tool("add")).text == "done"
