"""How a client finds out, over HTTP, what a server speaks: modern, legacy, or the HTTP+SSE before both."""

from typing import Any

import anyio
import pytest

from mcpcore import Client, ConnectionLost, PeerError, RemoteProtocolError, RequestTimeout, TransportError
from mcpcore.limits import Limits
from mcpcore.transports.http import sse_binding
from mcpcore.transports.http.client import SSEClientTransport
from tests.support.http_peer import Reply, Request, Script, answer, error, legacy, modern, serve

pytestmark = pytest.mark.anyio

MODERN: Any = ["modern"]
LEGACY: Any = ["legacy"]


# -- modern or legacy --------------------------------------------------------------------------------------------


def empty(status: int) -> Script:
    async def script(request: Request, reply: Reply) -> None:
        await reply.empty(status)

    return script


def refused(status: int, code: int, id: Any = None) -> Script:
    async def script(request: Request, reply: Reply) -> None:
        await reply.json(error(id, code), status)

    return script


async def html(request: Request, reply: Reply) -> None:
    await reply.body(b"<html></html>", 200, "text/html")


async def hung_up(request: Request, reply: Reply) -> None:
    await reply.abort()


async def silence(request: Request, reply: Reply) -> None:
    await reply.events()
    await reply.end()


NOT_MODERN = {
    "400": empty(400),
    "404": empty(404),
    "405": empty(405),
    "406": empty(406),
    "415": empty(415),
    "500": empty(500),
    "202": empty(202),
    "no session": refused(400, -32000),
    "not initialised": refused(400, -32600, id=1),
    "unknown method": refused(200, -32601, id=1),
    "unknown method 404": refused(404, -32601, id=1),
    "html": html,
    "hung up": hung_up,
    "silence": silence,
}


@pytest.mark.parametrize("discover", NOT_MODERN)
async def test_a_server_that_does_not_understand_the_probe_is_greeted_in_the_old_way(discover: str) -> None:
    async with serve(legacy({"server/discover": NOT_MODERN[discover]})) as peer, Client(peer.url) as client:
        assert client.protocol_version == "2025-11-25"
        await client.call_tool("add")
    names = [request.name for request in peer.requests]
    assert names[:5] == ["server/discover", "initialize", "notifications/initialized", "GET", "tools/call"]


async def test_a_probe_that_is_not_answered_is_given_up_and_its_stream_closed() -> None:
    closed = anyio.Event()

    async def hang(request: Request, reply: Reply) -> None:
        await reply.gone()
        closed.set()

    limits = Limits(probe=0.05)
    async with serve(legacy({"server/discover": hang})) as peer, Client(peer.url, limits=limits) as client:
        assert client.protocol_version == "2025-11-25"
        await closed.wait()


@pytest.mark.parametrize("code", [-32020, -32021])
async def test_an_error_that_only_a_modern_server_gives_is_no_reason_for_the_old_way(code: int) -> None:
    async with serve(modern({"server/discover": refused(400, code, id=1)})) as peer:
        with pytest.raises(PeerError) as caught:
            async with Client(peer.url):
                pass
        assert caught.value.code == code
        assert [request.name for request in peer.requests] == ["server/discover"]


async def test_a_server_that_names_its_modern_versions_is_asked_again() -> None:
    async def discover(request: Request, reply: Reply) -> None:
        if len(peer.requests) == 1:
            await reply.json(error(1, -32022, data={"supported": ["2026-07-28"], "requested": "2026-07-28"}), 400)
        else:
            await modern()(request, reply)

    async with serve(modern({"server/discover": discover})) as peer, Client(peer.url) as client:
        assert client.protocol_version == "2026-07-28"
    assert [request.headers["mcp-protocol-version"] for request in peer.requests] == ["2026-07-28"] * 2


async def test_a_modern_client_tells_how_a_legacy_server_refused_it() -> None:
    async with serve(legacy()) as peer:
        with pytest.raises(TransportError, match="status 400") as caught:
            async with Client(peer.url, eras=MODERN):
                pass
        assert caught.value.status == 400
        assert [request.name for request in peer.requests] == ["server/discover"]


async def test_a_server_that_refuses_everything_is_told_by_its_last_word() -> None:
    async def refuse(request: Request, reply: Reply) -> None:
        await reply.body(b"not here", 403, "text/plain")

    async with serve(refuse) as peer:
        with pytest.raises(TransportError, match="status 403: not here") as caught:
            async with Client(peer.url):
                pass
        assert caught.value.status == 403
        assert [request.name for request in peer.requests] == ["server/discover", "initialize"]


async def test_an_initialize_whose_answer_is_broken_fails_the_opening() -> None:
    async def initialize(request: Request, reply: Reply) -> None:
        await reply.body(b'{"jsonrpc"', 200, "application/json")

    async with serve(legacy({"initialize": initialize})) as peer:
        with anyio.fail_after(5), pytest.raises(RemoteProtocolError, match="initialize"):
            async with Client(peer.url, eras=LEGACY):
                pass


# -- HTTP+SSE ----------------------------------------------------------------------------------------------------


class OldServer:
    """A server of 2024-11-05: ``/mcp`` is its stream, and it says there where to send.

    Args:
        first: The first event, instead of the one with the endpoint.
        endpoint: What the first event says.
        refusal: How it answers a POST to its stream.
        accept: What it does with messages, instead of taking them.
    """

    def __init__(
        self,
        *,
        first: bytes | None = None,
        endpoint: str = "/messages?session=1",
        refusal: Script | None = None,
        accept: Script | None = None,
    ) -> None:
        self.stream: Reply | None = None
        self._first = first or b"event: endpoint\ndata: %b\n\n" % endpoint.encode()
        self._refusal = refusal or empty(405)
        self._accept = accept

    async def __call__(self, request: Request, reply: Reply) -> None:
        if request.method == "GET":
            await reply.events()
            self.stream = reply
            await reply.chunk(self._first)
            await reply.gone()
        elif request.path == "/mcp":
            await self._refusal(request, reply)
        elif self._accept is not None and request.name == "tools/call":
            await self._accept(request, reply)
        else:
            await reply.body(b"Accepted", 202, "text/plain")
            if "id" in request.message and "method" in request.message:
                await self.answer(request)

    async def answer(self, request: Request) -> None:
        assert self.stream is not None
        if request.name == "initialize":
            capabilities: dict[str, Any] = {"tools": {}, "logging": {}}
            result = {
                "protocolVersion": "2024-11-05",
                "capabilities": capabilities,
                "serverInfo": {"name": "old", "version": ""},
            }
            await self.stream.event(answer(request, result), event="message")
        elif request.name == "tools/call":
            await self.stream.event(answer(request, {"content": [{"type": "text", "text": "old"}]}), event="message")
        elif request.name == "server/discover":
            await self.stream.event(error(request.id, -32601), event="message")


@pytest.mark.parametrize(
    "refusal",
    [
        *map(empty, (400, 404, 405)),
        refused(405, -32000),
        refused(404, -32600),
    ],
)
async def test_a_server_that_knows_http_sse_only_is_recognised(refusal: Script) -> None:
    async with serve(OldServer(refusal=refusal)) as peer, Client(peer.url) as client:
        assert client.protocol_version == "2024-11-05"
        assert client.server_info is not None and client.server_info.name == "old"
        for _ in range(3):
            assert (await client.call_tool("add")).text == "old"
    assert [f"{request.method} {request.path}" for request in peer.requests] == [
        "POST /mcp",
        "POST /mcp",
        "GET /mcp",
        *["POST /messages?session=1"] * 5,
    ]


async def test_what_is_known_to_speak_http_sse_is_spoken_to_at_once() -> None:
    async with serve(OldServer()) as peer, Client(SSEClientTransport(peer.url), eras=LEGACY) as client:
        assert (await client.call_tool("add")).text == "old"
    assert [f"{request.method} {request.path}" for request in peer.requests][:2] == [
        "GET /mcp",
        "POST /messages?session=1",
    ]


async def test_a_probe_over_http_sse_is_answered_there() -> None:
    async with serve(OldServer()) as peer, Client(SSEClientTransport(peer.url)) as client:
        assert client.protocol_version == "2024-11-05"
        assert len(peer.of("initialize")) == 1


async def test_a_call_over_http_sse_is_cancelled_by_a_message() -> None:
    async with serve(OldServer(accept=empty(202))) as peer, Client(peer.url) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "add")
            called = await peer.wait_for("tools/call")
            tasks.cancel_scope.cancel()
        cancelled = await peer.wait_for("notifications/cancelled")
    assert cancelled.message["params"]["requestId"] == called.id


async def test_a_message_that_is_not_taken_over_http_sse_fails_its_call_only() -> None:
    async with serve(server := OldServer(accept=empty(404))) as peer, Client(peer.url) as client:
        with pytest.raises(TransportError) as caught:
            await client.call_tool("add")
        assert caught.value.status == 404
        server._accept = None
        assert (await client.call_tool("add")).text == "old"


async def test_the_end_of_the_stream_fails_open_and_later_calls() -> None:
    server = OldServer(accept=empty(202))
    raised: list[str] = []

    async def call(client: Client) -> None:
        try:
            await client.call_tool("add")
        except ConnectionLost as error:
            raised.append(str(error))

    async with serve(server) as peer, Client(peer.url) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(call, client)
        await peer.wait_for("tools/call")
        assert server.stream is not None
        await server.stream.end()
        await server.stream.abort()
        with anyio.fail_after(5):
            while not raised:
                await anyio.wait_all_tasks_blocked()
            await call(client)
    assert raised == [f"{peer.url} has ended its stream of events"] * 2


@pytest.mark.parametrize(
    "first", [b"data: {}\n\n", b"id: 1\ndata:\n\n", b"event: endpoint\nid: x\n\n", b"event: other\ndata: /messages\n\n"]
)
async def test_a_stream_that_does_not_begin_with_an_endpoint_is_not_http_sse(first: bytes) -> None:
    async with serve(OldServer(first=first)) as peer:
        with anyio.fail_after(5), pytest.raises(TransportError, match="status 405"):
            async with Client(peer.url):
                pass
        assert [request.name for request in peer.requests] == ["server/discover", "initialize", "GET"]


async def keeps_alive(request: Request, reply: Reply) -> None:
    await reply.events()
    await reply.chunk(b": nothing yet\n\n")
    await reply.gone()


async def never_answers(request: Request, reply: Reply) -> None:
    await reply.gone()


@pytest.mark.parametrize("stream", [keeps_alive, never_answers])
async def test_a_server_that_does_not_say_where_to_send_is_waited_for_no_longer_than_that(
    stream: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse_binding, "_PATIENCE", 0.1)

    async def script(request: Request, reply: Reply) -> None:
        await (stream if request.method == "GET" else empty(405))(request, reply)

    async with serve(script) as peer:
        with anyio.fail_after(5):
            with pytest.raises(TransportError, match=r"does not say where to send within 0\.1 seconds"):
                await Client(SSEClientTransport(peer.url)).connect()
            with pytest.raises(TransportError, match="status 405"):
                await Client(peer.url).connect()
        assert len(peer.of("GET")) == 2


async def test_a_stream_that_has_begun_may_be_silent_for_as_long_as_it_likes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse_binding, "_PATIENCE", 0.1)
    server = OldServer(accept=empty(202))
    async with serve(server) as peer, Client(SSEClientTransport(peer.url), eras=LEGACY) as client:
        with pytest.raises(RequestTimeout):
            await client.call_tool("add", timeout=0.3)
        server._accept = None
        assert (await client.call_tool("add")).text == "old"


@pytest.mark.parametrize(
    "endpoint", ["http://evil.example/messages", "//evil.example/m", "https://127.0.0.1/m", "http://[::1", "file:///x"]
)
async def test_an_endpoint_of_another_origin_is_not_sent_to(endpoint: str) -> None:
    async with serve(OldServer(endpoint=endpoint)) as peer:
        with pytest.raises(TransportError, match=r"another origin|no URL"):
            async with Client(SSEClientTransport(peer.url)):
                pass
        assert {request.path for request in peer.requests} == {"/mcp"}


@pytest.mark.parametrize("endpoint", ["/m", "m", "?session=2", "http://127.0.0.1:{port}/m"])
async def test_an_endpoint_is_resolved_where_the_stream_is(endpoint: str) -> None:
    server = OldServer()

    async def script(request: Request, reply: Reply) -> None:
        server._first = b"event: endpoint\ndata: %b\n\n" % endpoint.format(port=peer.port).encode()
        if request.method == "POST" and request.path == "/mcp?session=2":
            request.path = "/messages"
        await server(request, reply)

    async with serve(script) as peer, Client(SSEClientTransport(peer.url), eras=LEGACY) as client:
        assert (await client.call_tool("add")).text == "old"


async def test_the_error_of_a_server_that_is_no_older_one_is_told() -> None:
    async with serve(legacy({"initialize": refused(400, -32602, id=2)})) as peer:
        with pytest.raises(PeerError) as caught:
            async with Client(peer.url):
                pass
        assert caught.value.code == -32602
        assert len(peer.of("GET")) == 1


@pytest.mark.parametrize("code", [-32601, -32020, -32021, -32022])
async def test_a_modern_refusal_of_initialize_is_no_reason_to_look_for_an_older_server(code: int) -> None:
    async with serve(legacy({"initialize": refused(400, code, id=1)})) as peer:
        with pytest.raises((PeerError, RemoteProtocolError)):
            async with Client(peer.url, eras=LEGACY):
                pass
        assert [request.name for request in peer.requests] == ["initialize"]


async def test_a_server_that_is_not_there_fails_the_opening_of_its_stream() -> None:
    async with serve(OldServer()) as peer:
        pass
    with anyio.fail_after(5), pytest.raises(TransportError, match="cannot connect"):
        async with Client(SSEClientTransport(peer.url)):
            pass
