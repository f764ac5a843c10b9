"""The client over HTTP: what a call looks like on the wire, and what its reply may look like."""

import sys
from typing import Any

import anyio
import httpx
import httpx2
import pytest

from mcpcore import Client, MCPCoreError, PeerError, RequestTimeout, Server, TransportError
from mcpcore.transports.http._family import create_client
from mcpcore.transports.http.client import HTTPClientTransport
from tests.support.http_peer import Reply, Request, answer, error, legacy, modern, serve

pytestmark = pytest.mark.anyio

DONE: dict[str, Any] = {"resultType": "complete", "content": [{"type": "text", "text": "done"}]}


# -- requests ----------------------------------------------------------------------------------------------------


async def test_every_modern_request_carries_the_headers_that_mirror_it() -> None:
    async with serve(modern()) as peer, Client(peer.url) as client:
        await client.call_tool("add", {"a": 1})
        await client.read_resource("file:///a b?x=1")
        await client.list_tools()
    sent = [
        (request.headers["mcp-protocol-version"], request.headers["mcp-method"], request.headers.get("mcp-name"))
        for request in peer.requests
    ]
    assert sent == [
        ("2026-07-28", "server/discover", None),
        ("2026-07-28", "tools/call", "add"),
        ("2026-07-28", "resources/read", "file:///a b?x=1"),
        ("2026-07-28", "tools/list", None),
    ]
    assert [request.method for request in peer.requests] == ["POST"] * 4
    for request in peer.requests:
        assert request.headers["accept"] == "application/json, text/event-stream"
        assert request.headers["content-type"] == "application/json"
        assert "mcp-session-id" not in request.headers


async def test_a_modern_client_is_given_no_session_and_ends_none() -> None:
    async def discover(request: Request, reply: Reply) -> None:
        result = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
        await reply.json(answer(request, {**result, "ttlMs": 0, "cacheScope": "private"}), mcp_session_id="s9")

    async with serve(modern({"server/discover": discover})) as peer, Client(peer.url) as client:
        await client.call_tool("add")
    assert not any("mcp-session-id" in request.headers for request in peer.requests)
    assert [request.method for request in peer.requests] == ["POST", "POST"]


async def test_calls_do_not_wait_for_each_other() -> None:
    async with anyio.create_task_group() as tasks:

        async def call(request: Request, reply: Reply) -> None:
            if request.message["params"]["name"] == "slow":
                await reply.gone()
            else:
                await reply.json(answer(request, DONE))

        async with serve(modern({"tools/call": call})) as peer, Client(peer.url) as client:
            for _ in range(20):
                tasks.start_soon(client.call_tool, "slow")
            await peer.wait_for("tools/call", 20)
            assert (await client.call_tool("quick")).text == "done"
            tasks.cancel_scope.cancel()


async def test_a_notification_that_is_not_accepted_for_long_delays_no_call() -> None:
    async def hang(request: Request, reply: Reply) -> None:
        await reply.gone()

    script = legacy({"notifications/roots/list_changed": hang})
    async with serve(script) as peer, Client(peer.url, eras=["legacy"], roots=[]) as client:
        await client.call_tool("add")
        await client.notify_roots_changed()
        await peer.wait_for("notifications/roots/list_changed")
        with anyio.fail_after(5):
            await client.call_tool("add")


async def test_a_notification_that_has_been_sent_arrives_before_the_channel_closes() -> None:
    async with serve(legacy()) as peer:
        async with Client(peer.url, eras=["legacy"], roots=[]) as client:
            await client.notify_roots_changed()
        assert [request.name for request in peer.requests][-2:] == ["notifications/roots/list_changed", "DELETE"]


# -- replies -----------------------------------------------------------------------------------------------------


async def test_a_stream_of_events_brings_notifications_before_the_answer() -> None:
    async def call(request: Request, reply: Reply) -> None:
        token = request.message["params"]["_meta"]["progressToken"]
        await reply.events()
        for step in (1, 2):
            params = {"progressToken": token, "progress": step}
            await reply.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        await reply.event(answer(request, DONE))
        await reply.end()

    seen: list[float] = []
    async with serve(modern({"tools/call": call})) as peer, Client(peer.url) as client:
        result = await client.call_tool("add", on_progress=lambda progress, total, message: seen.append(progress))
        assert result.text == "done"
    assert seen == [1, 2]


async def test_a_call_returns_when_the_answer_has_come_though_the_stream_does_not_end() -> None:
    closed = anyio.Event()

    async def call(request: Request, reply: Reply) -> None:
        await reply.events()
        await reply.event(answer(request, DONE))
        await reply.gone()
        closed.set()

    async with serve(modern({"tools/call": call})) as peer, Client(peer.url) as client:
        assert (await client.call_tool("add")).text == "done"
        assert not closed.is_set()
        await closed.wait()


async def test_the_connection_of_a_finished_stream_is_used_again() -> None:
    sources: list[Any] = []

    async def call(request: Request, reply: Reply) -> None:
        sources.append(reply._source)
        await reply.events()
        await reply.event(answer(request, DONE))
        await reply.end()

    async with serve(modern({"tools/call": call})) as peer, Client(peer.url) as client:
        for _ in range(3):
            await client.call_tool("add")
            await anyio.wait_all_tasks_blocked()
    assert len(set(map(id, sources))) == 1


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
async def test_what_is_no_message_in_a_stream_is_passed_over(newline: bytes) -> None:
    async def call(request: Request, reply: Reply) -> None:
        lines = [
            b"\xef\xbb\xbf: a comment",
            b"",
            b"id: 1",
            b"data:",
            b"",
            b"event: ping",
            b"data: no JSON",
            b"",
            b"event: other",
            b'data: {"jsonrpc":"2.0","id":%d,"error":{"code":1,"message":"no"}}' % request.id,
            b"",
            b"data: {broken",
            b"",
            b"retry: 100",
            b"data:" + b'{"jsonrpc":"2.0","id":%d,' % request.id,
            b'data: "result":{"resultType":"complete",',
            b'data: "content":[{"type":"text","text":"a\xe2\x80\xa8\xc2\x85b"}]}}',
            b"",
            b"",
        ]
        await reply.events()
        for byte in newline.join(lines):
            await reply.chunk(bytes([byte]))
        await reply.end()

    async with serve(modern({"tools/call": call})) as peer, Client(peer.url) as client:
        assert (await client.call_tool("add")).text == "a\u2028\x85b"


async def test_an_answer_may_be_in_a_batch_of_2025_03_26() -> None:
    async def call(request: Request, reply: Reply) -> None:
        await reply.json([answer(request, {"content": []})])

    script = legacy({"tools/call": call}, version="2025-03-26")
    async with serve(script) as peer, Client(peer.url, protocol_version="2025-03-26") as client:
        assert (await client.call_tool("add")).content == []


@pytest.mark.parametrize("content_type", ["application/json", "Application/JSON; charset=utf-8", "application/json;"])
async def test_a_content_type_is_read_as_http_means_it(content_type: str) -> None:
    async def call(request: Request, reply: Reply) -> None:
        body = b'{"jsonrpc":"2.0","id":%d,"result":{"resultType":"complete","content":[]}}' % request.id
        await reply.body(body, 200, content_type)

    async with serve(modern({"tools/call": call})) as peer, Client(peer.url) as client:
        assert (await client.call_tool("add")).content == []


@pytest.mark.parametrize("id", [1, None, "other", "absent"])
@pytest.mark.parametrize("status", [400, 404, 500])
async def test_an_error_in_a_refusal_is_the_answer_whatever_id_it_has(status: int, id: Any) -> None:
    async def call(request: Request, reply: Reply) -> None:
        said = error(request.id if id == 1 else id, -32602, "bad", data={"why": 1})
        if id == "absent":
            del said["id"]
        await reply.json(said, status)

    async with serve(modern({"tools/call": call})) as peer, Client(peer.url) as client:
        with pytest.raises(PeerError) as caught:
            await client.call_tool("add")
    assert (caught.value.code, caught.value.message, caught.value.data) == (-32602, "bad", {"why": 1})


# -- cancellation ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("streams", [True, False])
async def test_cancelling_a_modern_call_closes_its_stream_and_sends_nothing(streams: bool) -> None:
    closed = anyio.Event()

    async def call(request: Request, reply: Reply) -> None:
        if streams:
            await reply.events()
        await reply.gone()
        closed.set()

    async with serve(modern({"tools/call": call})) as peer, Client(peer.url) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "add")
            await peer.wait_for("tools/call")
            tasks.cancel_scope.cancel()
        await closed.wait()
        await client.list_tools()
    assert [request.name for request in peer.requests] == ["server/discover", "tools/call", "tools/list"]


async def test_a_call_that_times_out_is_cancelled() -> None:
    closed = anyio.Event()

    async def call(request: Request, reply: Reply) -> None:
        await reply.gone()
        closed.set()

    async with serve(modern({"tools/call": call})) as peer, Client(peer.url) as client:
        with pytest.raises(RequestTimeout):
            await client.call_tool("add", timeout=0.05)
        await closed.wait()


async def test_cancelling_a_legacy_call_tells_the_server_and_then_closes_the_stream() -> None:
    closed = anyio.Event()

    async def call(request: Request, reply: Reply) -> None:
        await reply.events()
        await reply.gone()
        closed.set()

    script = legacy({"tools/call": call})
    async with serve(script) as peer, Client(peer.url, eras=["legacy"]) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "add")
            called = await peer.wait_for("tools/call")
            tasks.cancel_scope.cancel()
        told = await peer.wait_for("notifications/cancelled")
        await closed.wait()
    assert told.message["params"]["requestId"] == called.id
    assert told.headers["mcp-session-id"] == "s1"


# -- the client that sends ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", [httpx, httpx2])
async def test_a_client_of_either_family_can_be_given_and_is_not_closed(family: Any) -> None:
    async with family.AsyncClient(headers={"x-api-key": "k1"}, timeout=0.2) as given:
        async with serve(modern()) as peer, Client(peer.url, http_client=given) as client:
            await client.call_tool("add")
        assert [request.headers["x-api-key"] for request in peer.requests] == ["k1", "k1"]
        assert not given.is_closed


@pytest.mark.parametrize("family", [httpx, httpx2])
async def test_the_timeouts_of_the_given_client_do_not_apply(family: Any) -> None:
    timeouts: list[Any] = []

    async def note(request: Any) -> None:
        timeouts.append(request.extensions["timeout"])

    given = family.AsyncClient(timeout=0.1, event_hooks={"request": [note]})
    async with given, serve(modern()) as peer, Client(peer.url, http_client=given) as client:
        await client.list_tools()
    assert timeouts == [{"connect": 30, "read": None, "write": 30, "pool": 30}] * 2


@pytest.mark.parametrize("family", [httpx, httpx2])
async def test_what_the_given_client_raises_fails_the_call_and_is_its_cause(family: Any) -> None:
    class Locked(Exception):
        pass

    async def unlock(request: Any) -> None:
        if b"tools/call" in request.content:
            raise Locked

    given = family.AsyncClient(event_hooks={"request": [unlock]})
    async with given, serve(modern()) as peer, Client(peer.url, http_client=given) as client:
        with pytest.raises(TransportError, match="cannot send") as caught:
            await client.call_tool("add")
        assert isinstance(caught.value.__cause__, Locked)
        await client.list_tools()


@pytest.mark.parametrize("family", [httpx, httpx2])
async def test_a_given_client_that_was_closed_too_early_is_no_more_than_an_error(family: Any) -> None:
    async with serve(legacy()) as peer:
        async with family.AsyncClient() as given:
            client = Client(peer.url, http_client=given, eras=["legacy"])
            await client.connect()
            await client.list_tools()
        with pytest.raises(TransportError, match="closed"):
            await client.call_tool("add")
        await client.aclose()
        assert not peer.of("DELETE")


@pytest.mark.parametrize(("missing", "found"), [(["httpx2"], "httpx"), ([], "httpx2"), (["httpx", "httpx2"], None)])
def test_httpx2_is_preferred_and_one_of_both_is_needed(
    monkeypatch: pytest.MonkeyPatch, missing: list[str], found: str | None
) -> None:
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    if found is None:
        with pytest.raises(ModuleNotFoundError, match=r"pip install 'mcpcore\[http\]'"):
            Client("http://127.0.0.1/mcp")
    else:
        assert type(create_client()).__module__.partition(".")[0] == found


def test_something_else_than_an_async_client_is_refused() -> None:
    with httpx.Client() as given, pytest.raises(TypeError, match="AsyncClient"):
        Client("http://127.0.0.1/mcp", http_client=given)


def test_an_http_client_is_refused_where_there_is_no_url() -> None:
    with pytest.raises(TypeError, match="http_client= is for URLs"):
        Client(Server("x"), http_client=httpx.AsyncClient())


@pytest.mark.parametrize("url", ["http://", "https:///mcp", "http://[::1", "ftp://example.com/mcp"])
def test_a_url_that_is_none_is_refused_at_once(url: str) -> None:
    with pytest.raises(ValueError, match="URL"):
        HTTPClientTransport(url)


# -- life --------------------------------------------------------------------------------------------------------


async def test_closing_ends_calls_that_are_open() -> None:
    closed = anyio.Event()

    async def call(request: Request, reply: Reply) -> None:
        await reply.gone()
        closed.set()

    raised: list[Exception] = []

    async def use(client: Client) -> None:
        try:
            await client.call_tool("add")
        except MCPCoreError as error:
            raised.append(error)

    async with serve(modern({"tools/call": call})) as peer, anyio.create_task_group() as tasks:
        async with Client(peer.url) as client:
            tasks.start_soon(use, client)
            await peer.wait_for("tools/call")
        await closed.wait()
    assert [type(each).__name__ for each in raised] == ["ConnectionLost"]


async def test_what_the_user_raises_leaves_the_client_as_it_is() -> None:
    class Mine(Exception):
        pass

    async with serve(legacy()) as peer:
        with pytest.raises(Mine):
            async with Client(peer.url, eras=["legacy"]) as client:
                await client.list_tools()
                raise Mine
        assert peer.of("DELETE")


async def test_a_transport_can_be_opened_again() -> None:
    async with serve(modern()) as peer:
        transport = HTTPClientTransport(peer.url)
        for _ in range(2):
            async with Client(transport) as client:
                await client.list_tools()
