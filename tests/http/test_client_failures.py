"""Calls that get no answer: each fails at once, by a name that fits, and nothing else suffers."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from mcpcore import AuthError, Client, ConnectionLost, RemoteProtocolError, TransportError
from mcpcore.limits import Limits
from tests.support.http_peer import Reply, Request, Script, answer, error, legacy, modern, serve

pytestmark = pytest.mark.anyio

Failure = Callable[[Request, Reply], Awaitable[None]]


async def accepted(request: Request, reply: Reply) -> None:
    await reply.empty(202)


async def no_content(request: Request, reply: Reply) -> None:
    await reply.empty(204)


async def html(request: Request, reply: Reply) -> None:
    await reply.body(b"<html>Hello</html>", 200, "text/html")


async def no_type(request: Request, reply: Reply) -> None:
    await reply.body(b'{"jsonrpc":"2.0","id":%d,"result":{}}' % request.id)


async def cut_json(request: Request, reply: Reply) -> None:
    await reply.body(b'{"jsonrpc":"2.0","id":%d,"result":{"content"' % request.id, 200, "application/json")


async def no_json(request: Request, reply: Reply) -> None:
    await reply.body(b"", 200, "application/json")


async def no_answer(request: Request, reply: Reply) -> None:
    await reply.json({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})


async def other_answer(request: Request, reply: Reply) -> None:
    await reply.json({"jsonrpc": "2.0", "id": 99, "result": {"content": []}})


async def answer_by_text_id(request: Request, reply: Reply) -> None:
    await reply.json({"jsonrpc": "2.0", "id": str(request.id), "result": {"content": []}})


async def cut_body(request: Request, reply: Reply) -> None:
    await reply.head(200, content_type="application/json", content_length="1000")
    await reply.raw(b'{"jsonrpc":')
    await reply.abort()


async def no_head(request: Request, reply: Reply) -> None:
    await reply.abort()


async def no_http(request: Request, reply: Reply) -> None:
    await reply.raw(b"SSH-2.0-OpenSSH_9.6\r\n")
    await reply.abort()


async def silent_stream(request: Request, reply: Reply) -> None:
    await reply.events()
    await reply.chunk(b": hello\n\n")
    await reply.end()


async def broken_stream(request: Request, reply: Reply) -> None:
    await reply.events()
    await reply.event({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}})
    await reply.abort()


async def cut_event(request: Request, reply: Reply) -> None:
    await reply.events()
    await reply.chunk(b'data: {"jsonrpc":"2.0","id":%d,"result":{"content":[]}}\n' % request.id)
    await reply.end()


async def server_error(request: Request, reply: Reply) -> None:
    await reply.body(b"<html>Internal Server Error</html>", 500, "text/html")


async def bad_gateway(request: Request, reply: Reply) -> None:
    await reply.body(b"upstream\nis away", 502, "text/plain")


async def json_of_another_kind(request: Request, reply: Reply) -> None:
    await reply.json({"error": {"code": 7, "message": "no"}}, 503)


FAILURES: dict[Failure, tuple[type[Exception], int | None]] = {
    accepted: (TransportError, 202),
    no_content: (TransportError, 204),
    html: (TransportError, 200),
    no_type: (TransportError, 200),
    cut_json: (RemoteProtocolError, None),
    no_json: (RemoteProtocolError, None),
    no_answer: (RemoteProtocolError, None),
    other_answer: (RemoteProtocolError, None),
    answer_by_text_id: (RemoteProtocolError, None),
    cut_body: (ConnectionLost, None),
    no_head: (ConnectionLost, None),
    no_http: (ConnectionLost, None),
    silent_stream: (ConnectionLost, None),
    broken_stream: (ConnectionLost, None),
    cut_event: (ConnectionLost, None),
    server_error: (TransportError, 500),
    bad_gateway: (TransportError, 502),
    json_of_another_kind: (TransportError, 503),
}


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.__name__)
@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_reply_that_is_no_answer_fails_its_call_and_no_other(failure: Failure, era: Any) -> None:
    async def call(request: Request, reply: Reply) -> None:
        name = request.message["params"]["name"]
        if name == "open":
            await reply.gone()
        elif name == "bad":
            await failure(request, reply)
        else:
            await reply.json(answer(request, {"resultType": "complete", "content": []}))

    kind, status = FAILURES[failure]
    script = (modern if era == "modern" else legacy)({"tools/call": call})
    async with serve(script) as peer, anyio.create_task_group() as tasks, Client(peer.url, eras=[era]) as client:
        tasks.start_soon(client.call_tool, "open")
        await peer.wait_for("tools/call")
        with anyio.fail_after(5), pytest.raises(kind) as caught:
            await client.call_tool("bad")
        assert getattr(caught.value, "status", None) == status
        assert (await client.call_tool("good")).content == []
        tasks.cancel_scope.cancel()


async def test_what_a_server_says_in_a_refusal_is_told() -> None:
    async with serve(modern({"tools/call": bad_gateway})) as peer, Client(peer.url) as client:
        with pytest.raises(TransportError, match=rf"^{peer.url} refused with status 502: upstream is away$"):
            await client.call_tool("add")


async def test_an_answer_that_is_too_long_fails_its_call() -> None:
    async def call(request: Request, reply: Reply) -> None:
        if request.message["params"]["name"] == "stream":
            await reply.events()
            await reply.event(answer(request, {"content": [{"type": "text", "text": "x" * 5000}]}))
            await reply.end()
        else:
            await reply.json(answer(request, {"content": [{"type": "text", "text": "x" * 5000}]}))

    limits = Limits(message_size=1000)
    async with serve(modern({"tools/call": call})) as peer, Client(peer.url, limits=limits) as client:
        with pytest.raises(TransportError, match="longer than 1000 bytes"):
            await client.call_tool("add")
        with pytest.raises(ConnectionLost, match="before the answer"):
            await client.call_tool("stream")
        await client.list_tools()


async def test_an_answer_without_end_is_not_read_to_its_end() -> None:
    async def call(request: Request, reply: Reply) -> None:
        await reply.head(200, content_type="application/json", transfer_encoding="chunked")
        while True:
            await reply.chunk(b" " * 1000)

    limits = Limits(message_size=10_000)
    async with serve(modern({"tools/call": call})) as peer, Client(peer.url, limits=limits) as client:
        with anyio.fail_after(5), pytest.raises(TransportError, match="longer than 10000 bytes"):
            await client.call_tool("add")
        await client.list_tools()


async def test_a_server_that_ends_in_the_middle_of_a_call_fails_it() -> None:
    async def call(request: Request, reply: Reply) -> None:
        await reply.abort()

    async with serve(legacy({"tools/call": call})) as peer, Client(peer.url, eras=["legacy"]) as client:
        with pytest.raises(ConnectionLost):
            await client.call_tool("add")


async def test_a_server_that_is_not_there_is_named_at_once() -> None:
    async with serve(modern()) as peer:
        pass
    with anyio.fail_after(5), pytest.raises(TransportError, match=f"cannot connect to {peer.url}") as caught:
        async with Client(peer.url):
            pass
    assert not isinstance(caught.value, ConnectionLost)


async def test_a_call_after_the_server_has_gone_fails_and_one_after_it_came_back_does_not() -> None:
    alive = True

    async def call(request: Request, reply: Reply) -> None:
        if alive:
            await reply.json(answer(request, {"resultType": "complete", "content": []}))
        else:
            await reply.abort()

    async with serve(modern({"tools/call": call})) as peer, Client(peer.url) as client:
        alive = False
        with pytest.raises(ConnectionLost):
            await client.call_tool("add")
        alive = True
        await client.call_tool("add")


async def test_no_secret_of_the_url_is_in_an_error() -> None:
    async with serve(modern({"server/discover": bad_gateway, "initialize": bad_gateway})) as peer:
        with pytest.raises(TransportError) as caught:
            async with Client(f"http://user:pass@127.0.0.1:{peer.port}/mcp?token=secret#part"):
                pass
    assert "127.0.0.1" in str(caught.value)
    assert not any(secret in str(caught.value) for secret in ("user", "pass", "secret", "token", "part"))
    assert peer.requests[0].path == "/mcp?token=secret"


@pytest.mark.parametrize("script", [modern, legacy])
async def test_credentials_that_are_refused_are_an_error_of_their_own(script: Callable[..., Script]) -> None:
    async def refuse(request: Request, reply: Reply) -> None:
        await reply.json(error(None, -32001, "who are you?"), 401, www_authenticate="Bearer")

    async with serve(script({"server/discover": refuse, "initialize": refuse})) as peer:
        with pytest.raises(AuthError, match="who are you") as caught:
            async with Client(peer.url):
                pass
    assert caught.value.status == 401
    assert [request.name for request in peer.requests] == ["server/discover"]


async def test_a_subscription_ends_with_an_error_when_its_stream_breaks() -> None:
    async def listen(request: Request, reply: Reply) -> None:
        meta = {"io.modelcontextprotocol/subscriptionId": request.id}
        params = {"_meta": meta, "notifications": {"toolsListChanged": True}}
        await reply.events()
        await reply.event({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params})
        await reply.abort()

    async with serve(modern({"subscriptions/listen": listen})) as peer, Client(peer.url) as client:
        async with client.listen(tools=True) as changes:
            with pytest.raises(ConnectionLost):
                await anext(changes)
        await client.list_tools()
