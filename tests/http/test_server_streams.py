"""Streams of legacy sessions that go on in one response after another, and what is told where."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from mcpcore import Limits
from mcpcore.transports.http.eventlog import EventLog, MemoryEventLog
from tests.support.asgi import LEGACY, POST, Caller, Response, encoded, initialize, modern, request
from tests.support.world import World

pytestmark = pytest.mark.anyio


def caller(**options: Any) -> tuple[World, Caller]:
    world = World()
    return world, Caller(world.server.http_app(**options))


def steps(id: Any = 3) -> bytes:
    """A call that reports progress, and answers once it is released."""
    return encoded(request("tools/call", {"name": "steps", "_meta": {"progressToken": 1}}, id))


def stream(session: dict[str, str], last: str | None = None) -> dict[str, str]:
    """The headers of a GET."""
    resumed = {} if last is None else {"last-event-id": last}
    return {"accept": "text/event-stream", **session, **resumed}


@asynccontextmanager
async def abandoned(call: Caller, session: dict[str, str]) -> AsyncGenerator[str]:
    """Call `steps`, go away in the middle, and yield the id of the last event that came. The handler goes on."""
    async with call.open("POST", headers={**POST, **session}, body=steps()) as response:
        await response.wait_for(lambda each: each.messages)
        response.disconnect.set()
        await anyio.wait_all_tasks_blocked()
        yield str(response.events[-1].id)


# -- resumption --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "last", ["p1-99", "p1-0", "p9-1", "s-1", "p1", "-1", "1", "p1-x", "p1--1", "p1-" + "9" * 40, "p1-²", "ÿ-1", " "]
)
async def test_an_event_that_was_never_sent_cannot_be_resumed_from(last: str) -> None:
    world, call = caller()
    session = await call.initialize()
    world.release.set()
    answered = await call.call("POST", headers={**POST, **session}, body=steps())
    assert answered.events[0].id.endswith("-1")
    response = await call.call("GET", headers=stream(session, last))
    assert response.status == 404 and "not known" in response.json()["error"]["message"]


async def test_events_of_another_session_with_the_same_id_are_not_told() -> None:
    world, call = caller()
    world.release.set()
    mine, theirs = await call.initialize(), await call.initialize()
    first = await call.call("POST", headers={**POST, **mine}, body=steps("mine"))
    second = await call.call("POST", headers={**POST, **theirs}, body=steps("theirs"))
    assert [event.id for event in first.events] == [event.id for event in second.events]
    resumed = await call.call("GET", headers=stream(theirs, first.events[0].id))
    assert [message.get("id") for message in resumed.messages] == [None, "theirs"]


async def test_without_a_log_nothing_can_be_resumed_and_no_event_has_an_id() -> None:
    world, call = caller(event_log=None)
    session = await call.initialize()
    world.release.set()
    response = await call.call("POST", headers={**POST, **session}, body=steps())
    assert len(response.events) == 2 and not any(event.id for event in response.events)
    resumed = await call.call("GET", headers=stream(session, "p1-1"))
    assert resumed.status == 400 and "leave out Last-Event-ID" in resumed.json()["error"]["message"]


async def test_a_stream_resumed_twice_goes_on_in_the_newer_response_and_the_older_one_ends() -> None:
    world, call = caller()
    session = await call.initialize()
    async with abandoned(call, session) as last, call.open("GET", headers=stream(session, last)) as older:
        await older.wait_for(lambda each: each.status)
        async with call.open("GET", headers=stream(session, last)) as newer:
            await newer.wait_for(lambda each: each.status)
            await older.wait_for(lambda each: each.is_complete)
            older.disconnect.set()
            await anyio.wait_all_tasks_blocked()
            world.release.set()
            await newer.wait_for(lambda each: each.is_complete)
    assert older.messages == [] and [message["id"] for message in newer.messages] == [3]


async def test_a_stream_can_be_resumed_while_its_first_response_is_still_there() -> None:
    world, call = caller()
    session = await call.initialize()
    async with call.open("POST", headers={**POST, **session}, body=steps()) as first:
        await first.wait_for(lambda each: each.messages)
        async with call.open("GET", headers=stream(session, first.events[-1].id)) as second:
            await first.wait_for(lambda each: each.is_complete)
            world.release.set()
            await second.wait_for(lambda each: each.is_complete)
    assert len(first.messages) == 1 and [message["id"] for message in second.messages] == [3]


async def test_what_was_read_is_not_told_again() -> None:
    world, call = caller()
    session = await call.initialize()
    world.release.set()
    response = await call.call("POST", headers={**POST, **session}, body=steps())
    again = await call.call("GET", headers=stream(session, response.events[-1].id))
    assert (again.status, again.messages) == (200, [])


async def test_changes_that_came_while_nobody_listened_are_told_to_who_resumes() -> None:
    world, call = caller()
    session = await call.initialize()
    async with call.open("GET", headers=stream(session)) as first:
        await first.wait_for(lambda each: each.status)
        world.server.notify_tools_changed()
        await first.wait_for(lambda each: each.messages)
    world.server.notify_prompts_changed()
    async with call.open("GET", headers=stream(session, first.events[0].id)) as second:
        await second.wait_for(lambda each: each.messages)
        world.server.notify_tools_changed()
        await second.wait_for(lambda each: len(each.messages) == 2)
    told = [message["method"] for message in second.messages]
    assert told == ["notifications/prompts/list_changed", "notifications/tools/list_changed"]


class SlowLog:
    """A log in memory that takes its time to look."""

    def __init__(self) -> None:
        self._kept = MemoryEventLog(100, 10_000)
        self.looking = anyio.Event()
        self.look = anyio.Event()

    def append(self, stream: str, number: int, data: bytes) -> None:
        self._kept.append(stream, number, data)

    async def after(self, stream: str, number: int) -> list[tuple[int, bytes]] | None:
        found = await self._kept.after(stream, number)
        self.looking.set()
        await self.look.wait()
        return found

    async def drop(self) -> None:
        await self._kept.drop()

    async def look_once(self) -> None:
        """Let one look come to its end, and wait until there is another."""
        look, self.look, self.looking = self.look, anyio.Event(), anyio.Event()
        look.set()
        await self.looking.wait()


async def test_what_is_sent_while_the_log_is_being_read_is_neither_lost_nor_told_twice() -> None:
    log = SlowLog()

    def make(_: str) -> EventLog:
        return log

    world, call = caller(event_log=make)
    session = await call.initialize()
    async with call.open("GET", headers=stream(session)) as first:
        await first.wait_for(lambda each: each.status)
        world.server.notify_tools_changed()
        await first.wait_for(lambda each: each.messages)
    world.server.notify_prompts_changed()
    async with call.open("GET", headers=stream(session, first.events[0].id)) as second:
        with anyio.fail_after(5):
            await log.looking.wait()
            world.server.notify_resources_changed()
            await log.look_once()
        world.server.notify_tools_changed()
        log.look.set()
        await second.wait_for(lambda each: len(each.messages) >= 3)
    told = [message["method"].split("/")[1] for message in second.messages]
    assert told == ["prompts", "resources", "tools"]
    assert [event.id for event in second.events] == ["s-2", "s-3", "s-4"]


async def test_a_client_that_goes_while_the_log_is_being_read_can_come_back() -> None:
    log = SlowLog()

    def make(_: str) -> EventLog:
        return log

    world, call = caller(event_log=make)
    session = await call.initialize()
    async with abandoned(call, session) as last:
        async with call.open("GET", headers=stream(session, last)) as lost:
            with anyio.fail_after(5):
                await log.looking.wait()
            lost.disconnect.set()
            log.look.set()
        world.release.set()
    resumed = await call.call("GET", headers=stream(session, last))
    assert [message["id"] for message in resumed.messages] == [3]


# -- what is told where ------------------------------------------------------------------------------------------


async def test_a_client_that_takes_json_only_gets_its_answer_and_nothing_else() -> None:
    world, call = caller()
    session = await call.initialize()
    world.release.set()
    response = await call.call("POST", headers={**POST, **session, "accept": "application/json"}, body=steps())
    assert response.headers["content-type"] == "application/json" and response.json()["id"] == 3


async def test_a_client_that_takes_json_only_cannot_be_asked_and_the_handler_is_told_why() -> None:
    _, call = caller()
    opened = await call.post(initialize(capabilities={"elicitation": {}}))
    session = {"mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": LEGACY}
    response = await call.post(request("tools/call", {"name": "ask"}), {**session, "accept": "application/json"})
    result = response.json()["result"]
    assert result["isError"] and "no questions" in result["content"][0]["text"]


async def test_requests_of_one_batch_run_at_the_same_time_and_are_answered_together() -> None:
    world, call = caller()
    session = await call.initialize("2025-03-26")
    names = ["hold", "add", "hold"]
    batch = [
        request("tools/call", {"name": name, "arguments": {"a": 1, "b": 2} if name == "add" else {}}, id)
        for id, name in enumerate(names)
    ]
    async with call.open("POST", headers={**POST, **session}, body=encoded(batch)) as response:
        with anyio.fail_after(5):
            await world.started.wait()
        await anyio.wait_all_tasks_blocked()
        assert not response.status
        world.release.set()
        await response.wait_for(lambda each: each.is_complete)
    answers = {answer["id"]: answer["result"]["content"][0]["text"] for answer in response.json()}
    assert answers == {0: "released", 1: "3", 2: "released"}


async def test_cancelling_one_of_a_batch_leaves_the_others() -> None:
    world, call = caller()
    session = await call.initialize("2025-03-26")
    batch = [request("tools/call", {"name": "hold"}, id) for id in (1, 2)]
    async with call.open("POST", headers={**POST, **session}, body=encoded(batch)) as response:
        with anyio.fail_after(5):
            await world.started.wait()
        await anyio.wait_all_tasks_blocked()
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        assert (await call.post(cancelled, session)).status == 202
        world.release.set()
        await response.wait_for(lambda each: each.is_complete)
    assert [answer["id"] for answer in response.json()] == [2]


async def test_a_batch_of_which_all_is_cancelled_ends_without_a_message() -> None:
    world, call = caller()
    session = await call.initialize("2025-03-26")
    batch = [request("tools/call", {"name": "hold"}, id) for id in (1, 2)]
    async with call.open("POST", headers={**POST, **session}, body=encoded(batch)) as response:
        with anyio.fail_after(5):
            await world.started.wait()
        for id in (1, 2):
            cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}
            assert (await call.post(cancelled, session)).status == 202
        await response.wait_for(lambda each: each.is_complete)
    assert response.messages == []


async def test_a_batch_of_nothing_but_notifications_is_accepted() -> None:
    _, call = caller()
    session = await call.initialize("2025-03-26")
    notification = {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}
    response = await call.post([notification, notification], session)
    assert (response.status, response.body) == (202, b"")


async def test_the_stream_of_a_cancelled_request_ends_although_its_handler_does_not() -> None:
    world, call = caller()
    session = await call.initialize()
    body = encoded(request("tools/call", {"name": "stubborn"}, 7))
    async with call.open("POST", headers={**POST, **session}, body=body) as response:
        with anyio.fail_after(5):
            await world.started.wait()
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
        assert (await call.post(cancelled, session)).status == 202
        await response.wait_for(lambda each: each.is_complete)
        world.release.set()
    assert (response.status, response.messages) == (200, [])


async def test_a_cancelled_request_of_a_client_that_takes_json_only_gets_nothing() -> None:
    world, call = caller()
    session = {**await call.initialize(), "accept": "application/json"}
    body = encoded(request("tools/call", {"name": "hold"}, 7))
    async with call.open("POST", headers={**POST, **session}, body=body) as response:
        with anyio.fail_after(5):
            await world.started.wait()
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
        assert (await call.post(cancelled, session)).status == 202
        await response.wait_for(lambda each: each.is_complete)
    assert (response.status, response.body) == (202, b"")


async def test_a_priming_event_comes_first_even_where_the_stream_begins_with_silence() -> None:
    world = World(limits=Limits(stream_after=0.01))
    call = Caller(world.server.http_app(retry_ms=100))
    session = await call.initialize()
    body = encoded(request("tools/call", {"name": "hold"}, 7))
    async with call.open("POST", headers={**POST, **session}, body=body) as response:
        await response.wait_for(lambda each: each.body.count(b"\n:") >= 2)
        world.release.set()
        await response.wait_for(lambda each: each.is_complete)
    primer, answer = response.events
    assert (primer.data, primer.retry) == (b"", 100) and primer.id and answer.id != primer.id


class Gone(Response):
    """Of a server that says in ``send`` that the client has gone, as ASGI 2.4 has it."""

    async def send(self, message: dict[str, Any]) -> None:
        raise BrokenPipeError


async def test_servers_that_raise_when_the_client_has_gone_are_understood() -> None:
    world, call = caller()
    session = await call.initialize()
    world.release.set()
    with anyio.fail_after(5):
        async with call.open("POST", headers={**POST, **session}, body=steps(), response=Gone()):
            pass
    resumed = await call.call("GET", headers=stream(session, "p3-1"))
    assert [message.get("id") for message in resumed.messages] == [None, 3]


async def test_a_stream_of_its_own_has_to_be_accepted_as_events() -> None:
    _, call = caller()
    session = await call.initialize()
    assert (await call.call("GET", headers={**session, "accept": "application/json"})).status == 406


async def test_other_protocols_are_no_requests() -> None:
    _, call = caller()
    with pytest.raises(RuntimeError, match="serves HTTP, not websocket"):
        await call.app({"type": "websocket"}, None, None)


async def test_servers_that_repeat_the_end_of_the_body_do_not_keep_everybody_else_waiting() -> None:
    world, call = caller()
    message, headers = modern("tools/call", {"name": "hold"})
    response = Response()
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "query_string": b"",
        "headers": [
            (name.encode(), value.encode()) for name, value in {"host": "localhost", **POST, **headers}.items()
        ],
    }
    bodies = [encoded(message)]

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": bodies.pop() if bodies else b"", "more_body": False}

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call.app, scope, receive, response.send)
        with anyio.fail_after(5):
            await world.started.wait()
            world.release.set()
            await response.wait_for(lambda each: each.is_complete)
    assert response.json()["result"]["content"][0]["text"] == "released"
