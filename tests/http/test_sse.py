"""HTTP+SSE for peers of 2024-11-05."""

from typing import Any

import anyio
import pytest

from mcpcore import Limits, Server
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
    response = await call.call("POST", endpoint.removeprefix(call.root), headers=JSON, body=encoded(message))
    return response.status


@pytest.mark.parametrize("root", ["", "/api"])
async def test_a_session_runs_down_the_stream_that_named_where_to_post(root: str) -> None:
    call = Caller(server().sse_app(), root=root)
    async with call.open("GET", "/sse", headers=STREAM) as stream:
        await stream.wait_for(lambda each: each.events)
        [first] = stream.events
        assert first.event == "endpoint"
        endpoint = first.data.decode()
        assert endpoint.startswith(f"{root}/messages/?session_id=")
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
