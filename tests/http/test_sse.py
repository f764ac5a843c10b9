"""HTTP+SSE for peers of 2024-11-05."""

from typing import Any
from urllib.parse import quote

import anyio
import pytest

from mcpcore import Limits, Server
from mcpcore.protocol.messages import Incoming, Kind, Outgoing
from mcpcore.transports.http.sse import SSEChannel
from tests.support.asgi import Caller, encoded, initialize, request

pytestmark = pytest.mark.anyio

STREAM = {"accept": "text/event-stream"}
JSON = {"content-type": "application/json"}


def server(**options: Any) -> Server:
    made = Server("old", version="1.0.0", **options)

    @made.tool
    async def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    return made


def messages(response: Any) -> list[Any]:
    import msgspec

    return [msgspec.json.decode(event.data) for event in response.events if event.event == "message"]


async def post(call: Caller, endpoint: str, message: Any) -> int:
    response = await call.call("POST", endpoint.removeprefix(quote(call.root)), headers=JSON, body=encoded(message))
    return response.status


@pytest.mark.parametrize("root", ["", "/api", "/my api"])
async def test_a_session_runs_down_the_stream_that_named_where_to_post(root: str) -> None:
    call = Caller(server().sse_app(), root=root)
    async with call.open("GET", "/sse", headers=STREAM) as stream:
        await stream.wait_for(lambda each: each.events)
        [first] = stream.events
        assert first.event == "endpoint"
        endpoint = first.data.decode()
        assert endpoint.startswith(f"{quote(root)}/messages/?session_id=")
        assert await post(call, endpoint, initialize("2024-11-05")) == 202
        await stream.wait_for(lambda each: len(messages(each)) == 1)
        assert messages(stream)[0]["result"]["protocolVersion"] == "2024-11-05"
        assert await post(call, endpoint, {"jsonrpc": "2.0", "method": "notifications/initialized"}) == 202
        assert await post(call, endpoint, request("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})) == 202
        await stream.wait_for(lambda each: len(messages(each)) == 2)
        assert messages(stream)[1]["result"]["content"] == [{"type": "text", "text": "3"}]


async def test_modern_requests_find_no_server_here() -> None:
    call = Caller(server().sse_app())
    async with call.open("GET", "/sse", headers=STREAM) as stream:
        await stream.wait_for(lambda each: each.events)
        endpoint = stream.events[0].data.decode()
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        await post(call, endpoint, request("server/discover", {"_meta": meta}))
        await stream.wait_for(messages)
        assert messages(stream)[0]["error"]["code"] == -32601


@pytest.mark.parametrize(
    ("target", "headers", "body", "status"),
    [
        ("/messages/?session_id=unknown", JSON, b"{}", 404),
        ("/messages/", JSON, b"{}", 400),
        ("/elsewhere", JSON, b"{}", 404),
        ("/sse", JSON, b"{}", 405),
    ],
)
async def test_what_cannot_be_accepted_is_told_so(target: str, headers: Any, body: bytes, status: int) -> None:
    call = Caller(server().sse_app())
    assert (await call.call("POST", target, headers=headers, body=body)).status == status


async def test_only_json_is_accepted_for_an_open_stream() -> None:
    call = Caller(server().sse_app())
    async with call.open("GET", "/sse", headers=STREAM) as stream:
        await stream.wait_for(lambda each: each.events)
        endpoint = stream.events[0].data.decode()
        assert (await call.call("POST", endpoint, headers=JSON, body=b"{")).status == 400
        assert (await call.call("POST", endpoint, headers={"content-type": "text/plain"}, body=b"{}")).status == 415


async def test_a_session_ends_with_its_stream() -> None:
    app = server().sse_app()
    call = Caller(app)
    async with call.open("GET", "/sse", headers=STREAM) as stream:
        await stream.wait_for(lambda each: each.events)
        endpoint = stream.events[0].data.decode()
    assert await post(call, endpoint, request("ping")) == 404


async def test_a_silent_stream_is_kept_alive_by_comments() -> None:
    call = Caller(server(limits=Limits(stream_after=0.01)).sse_app())
    async with call.open("GET", "/sse", headers=STREAM) as stream:
        await stream.wait_for(lambda each: each.body.count(b"\n:") >= 2)
        assert len(stream.events) == 1


async def test_closing_the_application_ends_the_streams() -> None:
    app = server().sse_app()
    call = Caller(app)
    async with call.open("GET", "/sse", headers=STREAM) as stream:
        await stream.wait_for(lambda each: each.events)
        await app.aclose()
        with anyio.fail_after(5):
            await stream.wait_for(lambda each: each.is_complete)


async def never() -> Any:
    await anyio.sleep_forever()


async def test_a_client_that_sends_more_than_is_read_is_told_to_come_later() -> None:
    channel = SSEChannel(lambda message: anyio.sleep_forever(), never, None, 15)
    message = Incoming(b"{}")
    taken = 0
    while channel.put(message):
        taken += 1
    assert taken == 1024
    assert len(await channel.receive()) == 1024 and channel.put(message)


async def test_a_stream_of_which_the_server_says_that_its_client_has_gone_ends() -> None:
    async def send(message: Any) -> None:
        raise BrokenPipeError

    channel = SSEChannel(send, never, None, 15)
    await channel.send([Outgoing(b"{}", Kind.NOTIFICATION)])
    with pytest.raises(anyio.BrokenResourceError):
        await channel.send([Outgoing(b"{}", Kind.NOTIFICATION)])
    with pytest.raises(anyio.BrokenResourceError):
        await channel.receive()


@pytest.mark.parametrize(
    ("accept", "status"), [("application/json", 406), ("text/event-stream", 200), ("*/*", 200), ("text/html", 406)]
)
async def test_a_stream_has_to_be_accepted(accept: str, status: int) -> None:
    call = Caller(server().sse_app())
    async with call.open("GET", "/sse", headers={"accept": accept}) as stream:
        await stream.wait_for(lambda each: each.status)
        assert stream.status == status


async def test_clients_beyond_the_limit_are_told_to_come_later() -> None:
    call = Caller(server(limits=Limits(sessions=1)).sse_app())
    async with call.open("GET", "/sse", headers=STREAM) as stream:
        await stream.wait_for(lambda each: each.events)
        refused = await call.call("GET", "/sse", headers=STREAM)
        assert (refused.status, refused.headers["retry-after"]) == (503, "60")


async def test_what_is_open_when_the_application_closes_is_finished_first() -> None:
    made = server()
    started, release = anyio.Event(), anyio.Event()

    @made.tool
    async def hold() -> str:
        """Wait until released."""
        started.set()
        await release.wait()
        return "released"

    app = made.sse_app()
    call = Caller(app)
    async with call.open("GET", "/sse", headers=STREAM) as stream:
        await stream.wait_for(lambda each: each.events)
        endpoint = stream.events[0].data.decode()
        await post(call, endpoint, initialize("2024-11-05"))
        await post(call, endpoint, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        await post(call, endpoint, request("tools/call", {"name": "hold"}))
        with anyio.fail_after(5):
            await started.wait()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(app.aclose)
                await anyio.wait_all_tasks_blocked()
                assert not stream.is_complete
                release.set()
        await stream.wait_for(lambda each: each.is_complete)
        assert messages(stream)[-1]["result"]["content"][0]["text"] == "released"
