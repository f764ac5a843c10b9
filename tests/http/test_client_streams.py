"""Streams of legacy servers: the one that GET opens, and those that are resumed."""

from typing import Any

import anyio
import pytest

from mcpcore import Client, ConnectionLost
from tests.support.http_peer import Reply, Request, Script, answer, legacy, serve

pytestmark = pytest.mark.anyio

LEGACY: Any = ["legacy"]

CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


# -- the stream that GET opens -----------------------------------------------------------------------------------


def refusing(status: int) -> Script:
    async def refuse(request: Request, reply: Reply) -> None:
        await reply.empty(status)

    return refuse


async def plain_json(request: Request, reply: Reply) -> None:
    await reply.json({"status": "ok"})


async def broken(request: Request, reply: Reply) -> None:
    await reply.abort()


@pytest.mark.parametrize("get", [*map(refusing, (400, 404, 405, 500)), plain_json, broken])
async def test_a_server_without_a_stream_is_asked_for_it_once(get: Script) -> None:
    async with serve(legacy({"GET": get})) as peer, Client(peer.url, eras=LEGACY) as client:
        for _ in range(10):
            await client.call_tool("add")
    assert len(peer.of("GET")) == 1
    assert peer.of("GET")[0].headers["accept"] == "text/event-stream"


async def test_the_stream_is_open_before_the_first_call_is_sent() -> None:
    order: list[str] = []
    accepted = anyio.Event()

    async def initialized(request: Request, reply: Reply) -> None:
        await accepted.wait()
        order.append("initialized")
        await reply.empty(202)

    async def get(request: Request, reply: Reply) -> None:
        order.append("stream")
        await reply.events()
        await reply.gone()

    async def call(request: Request, reply: Reply) -> None:
        order.append("call")
        await reply.json(answer(request, {"content": []}))

    script = legacy({"notifications/initialized": initialized, "GET": get, "tools/call": call})
    async with serve(script) as peer, Client(peer.url, eras=LEGACY) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(client.call_tool, "add")
        await anyio.wait_all_tasks_blocked()
        assert not peer.of("tools/call")
        accepted.set()
    assert order == ["initialized", "stream", "call"]


@pytest.mark.parametrize("silent", ["notifications/initialized", "GET"])
async def test_a_server_that_is_slow_with_the_session_does_not_hold_calls_up_for_long(silent: str) -> None:
    async def hang(request: Request, reply: Reply) -> None:
        await reply.gone()

    async with serve(legacy({silent: hang})) as peer, Client(peer.url, eras=LEGACY) as client:
        with anyio.fail_after(9):
            for _ in range(20):
                await client.call_tool("add")


async def test_what_comes_on_the_stream_is_handed_on_and_answered_by_a_post() -> None:
    heard = anyio.Event()

    async def get(request: Request, reply: Reply) -> None:
        await reply.events()
        await reply.event(CHANGED)
        await reply.event({"jsonrpc": "2.0", "id": "q1", "method": "roots/list"})
        await reply.event({"jsonrpc": "2.0", "id": "q2", "method": "ping"})
        await reply.gone()

    async with serve(legacy({"GET": get})) as peer:
        async with Client(
            peer.url, eras=LEGACY, roots=["file:///w"], on_notification=lambda method, params: heard.set()
        ):
            await heard.wait()
            await peer.wait_for("answer", 2)
        answers = {request.id: request for request in peer.of("answer")}
    assert answers["q1"].message["result"] == {"roots": [{"uri": "file:///w"}]}
    assert answers["q2"].message["result"] == {}
    assert all(request.headers["mcp-session-id"] == "s1" for request in answers.values())


async def test_a_question_inside_a_call_comes_on_the_stream_of_the_call() -> None:
    answered = anyio.Event()

    async def call(request: Request, reply: Reply) -> None:
        await reply.events()
        await reply.event({"jsonrpc": "2.0", "id": 7, "method": "sampling/createMessage", "params": SAMPLING})
        await answered.wait()
        await reply.event(answer(request, {"content": []}))
        await reply.end()

    async def take(request: Request, reply: Reply) -> None:
        await reply.empty(202)
        answered.set()

    script = legacy({"tools/call": call, "answer": take})
    async with serve(script) as peer, Client(peer.url, eras=LEGACY, sampling=lambda params: "Hi") as client:
        await client.call_tool("add")
    assert peer.of("answer")[0].message["result"]["content"] == {"type": "text", "text": "Hi"}


SAMPLING = {"messages": [{"role": "user", "content": {"type": "text", "text": "?"}}], "maxTokens": 1}


async def test_a_stream_that_breaks_is_opened_again_where_it_was() -> None:
    heard: list[str] = []
    again = anyio.Event()

    async def get(request: Request, reply: Reply) -> None:
        await reply.events()
        if "last-event-id" not in request.headers:
            await reply.event(CHANGED, id="e7", retry=60)
            await reply.abort()
        else:
            await reply.event(CHANGED, id="e8")
            await reply.gone()

    def note(method: str, params: Any) -> None:
        heard.append(method)
        if len(heard) == 2:
            again.set()

    async with serve(legacy({"GET": get})) as peer, Client(peer.url, eras=LEGACY, on_notification=note):
        await again.wait()
    assert [request.headers.get("last-event-id") for request in peer.of("GET")] == [None, "e7"]


async def test_a_stream_that_brings_nothing_is_opened_no_more_than_three_times() -> None:
    ended = anyio.Event()

    async def get(request: Request, reply: Reply) -> None:
        await reply.events()
        if len(peer.of("GET")) == 1:
            await reply.chunk(b"retry: 60\n\n")
        await reply.end()
        if len(peer.of("GET")) == 3:
            ended.set()

    async with serve(legacy({"GET": get})) as peer, Client(peer.url, eras=LEGACY, cache=False) as client:
        await ended.wait()
        for _ in range(20):
            await client.list_tools()
    assert len(peer.of("GET")) == 3


# -- resuming ----------------------------------------------------------------------------------------------------


def begins_with(*first: Any, ends: str = "end", **fields: Any) -> Script:
    """A call whose stream begins like this and then ends without an answer."""

    async def call(request: Request, reply: Reply) -> None:
        await reply.events()
        for value in first or (None,):
            await reply.event(value, **fields)
        await (reply.end() if ends == "end" else reply.abort())

    return call


@pytest.mark.parametrize("ends", ["end", "abort"])
async def test_a_stream_that_ends_too_soon_is_resumed_where_it_was(ends: str) -> None:
    async def get(request: Request, reply: Reply) -> None:
        if "last-event-id" not in request.headers:
            await reply.empty(405)
            return
        await reply.events()
        await reply.event(answer(peer.of("tools/call")[0], {"content": [{"type": "text", "text": "late"}]}), id="e2")
        await reply.end()

    script = legacy({"tools/call": begins_with(id="e1", retry=60, ends=ends), "GET": get})
    async with serve(script) as peer, Client(peer.url, eras=LEGACY) as client:
        assert (await client.call_tool("add")).text == "late"
    _, resumed = peer.of("GET")
    assert resumed.headers["last-event-id"] == "e1"
    assert resumed.headers["mcp-session-id"] == "s1"
    assert resumed.headers["mcp-protocol-version"] == "2025-11-25"
    assert len(peer.of("tools/call")) == 1


async def test_a_client_waits_as_long_as_the_server_says() -> None:
    times: list[float] = []

    async def get(request: Request, reply: Reply) -> None:
        times.append(anyio.current_time())
        if "last-event-id" not in request.headers:
            await reply.empty(405)
            return
        await reply.events()
        await reply.event(answer(peer.of("tools/call")[0], {"content": []}))
        await reply.end()

    async def call(request: Request, reply: Reply) -> None:
        await begins_with(id="e1", retry=400)(request, reply)
        times.append(anyio.current_time())

    async with serve(legacy({"tools/call": call, "GET": get})) as peer, Client(peer.url, eras=LEGACY) as client:
        await client.call_tool("add")
    assert times[2] - times[1] >= 0.39


async def test_a_server_that_keeps_saying_when_to_come_back_is_asked_again_and_again() -> None:
    async def get(request: Request, reply: Reply) -> None:
        place = request.headers.get("last-event-id")
        if place is None:
            await reply.empty(405)
            return
        await reply.events()
        if place == "e6":
            await reply.event(answer(peer.of("tools/call")[0], {"content": []}))
        else:
            await reply.event(id=f"e{int(place[1:]) + 1}", retry=55)
        await reply.end()

    script = legacy({"tools/call": begins_with(id="e1", retry=55), "GET": get})
    async with serve(script) as peer, Client(peer.url, eras=LEGACY) as client:
        assert (await client.call_tool("add")).content == []
    assert [request.headers.get("last-event-id") for request in peer.of("GET")][1:] == [
        "e1",
        "e2",
        "e3",
        "e4",
        "e5",
        "e6",
    ]


async def test_a_stream_that_brings_nothing_more_is_resumed_twice_and_given_up() -> None:
    async def get(request: Request, reply: Reply) -> None:
        if "last-event-id" in request.headers:
            await reply.events()
            await reply.end()
        else:
            await reply.empty(405)

    script = legacy({"tools/call": begins_with(id="e1", retry=55), "GET": get})
    async with serve(script) as peer, Client(peer.url, eras=LEGACY) as client:
        with anyio.fail_after(5), pytest.raises(ConnectionLost, match="before the answer"):
            await client.call_tool("add")
        await client.list_tools()
    assert len(peer.of("GET")) == 3


@pytest.mark.parametrize("status", [400, 404, 405])
async def test_a_server_that_does_not_resume_fails_the_call_at_once(status: int) -> None:
    script = legacy({"tools/call": begins_with(id="e1", retry=55), "GET": refusing(status)})
    async with serve(script) as peer, Client(peer.url, eras=LEGACY) as client:
        with pytest.raises(ConnectionLost, match=str(status)) as caught:
            await client.call_tool("add")
        assert caught.value.status == status
    assert len(peer.of("GET")) == 2


async def test_an_id_that_was_taken_back_is_no_place_to_resume_from() -> None:
    async def call(request: Request, reply: Reply) -> None:
        await reply.events()
        await reply.event(None, id="e1", retry=55)
        await reply.event(None, id="")
        await reply.end()

    async with serve(legacy({"tools/call": call})) as peer, Client(peer.url, eras=LEGACY) as client:
        with pytest.raises(ConnectionLost):
            await client.call_tool("add")
    assert len(peer.of("GET")) == 1


async def test_a_place_is_sent_back_as_it_came() -> None:
    async def get(request: Request, reply: Reply) -> None:
        if "last-event-id" not in request.headers:
            await reply.empty(405)
            return
        await reply.events()
        await reply.event(answer(peer.of("tools/call")[0], {"content": []}))
        await reply.end()

    script = legacy({"tools/call": begins_with(id="ключ 1", retry=55), "GET": get})
    async with serve(script) as peer, Client(peer.url, eras=LEGACY) as client:
        await client.call_tool("add")
    assert peer.of("GET")[-1].headers["last-event-id"].encode("latin-1").decode() == "ключ 1"


async def test_cancelling_a_call_that_is_being_resumed_ends_that() -> None:
    resumed, gone = anyio.Event(), anyio.Event()

    async def get(request: Request, reply: Reply) -> None:
        if "last-event-id" not in request.headers:
            await reply.empty(405)
            return
        await reply.events()
        resumed.set()
        await reply.gone()
        gone.set()

    script = legacy({"tools/call": begins_with(id="e1", retry=55), "GET": get})
    async with serve(script) as peer, Client(peer.url, eras=LEGACY) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "add")
            await resumed.wait()
            tasks.cancel_scope.cancel()
        await gone.wait()
        await peer.wait_for("notifications/cancelled")
