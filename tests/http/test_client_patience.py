"""Servers that have no room now and say when they will have some."""

import time
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from typing import Any

import anyio
import pytest

from mcpcore import Client, PeerError, TransportError
from mcpcore.transports.http.replies import read_refusal
from tests.support.http_peer import Reply, Request, Script, error, legacy, modern, serve

pytestmark = pytest.mark.anyio

ERAS: dict[str, Callable[..., Script]] = {"modern": modern, "legacy": legacy}
eras = pytest.mark.parametrize("era", ERAS)


def busy(times: int, then: Script, answer: Callable[[Request, Reply], Awaitable[None]]) -> Script:
    """Refuse so often before doing it."""
    refused = 0

    async def script(request: Request, reply: Reply) -> None:
        nonlocal refused
        refused += 1
        await (answer if refused <= times else then)(request, reply)

    return script


def refusal(status: int, after: str, body: Any = None) -> Callable[[Request, Reply], Awaitable[None]]:
    async def refuse(request: Request, reply: Reply) -> None:
        if body is None:
            await reply.body(b"too much to do", status, "text/plain", retry_after=after)
        else:
            await reply.json(body(request), status, retry_after=after)

    return refuse


@eras
@pytest.mark.parametrize("status", [429, 503])
async def test_what_may_be_asked_twice_is_asked_again_when_the_server_says(era: str, status: int) -> None:
    make = ERAS[era]
    script = make({"tools/list": busy(1, make(), refusal(status, "0"))})
    async with serve(script) as peer, Client(peer.url, eras=(era,)) as client:  # type: ignore[arg-type]  # a literal
        assert [tool.name for tool in await client.list_tools()] == ["add"]
        assert len(peer.of("tools/list")) == 2


@eras
async def test_a_server_that_has_still_no_room_is_not_asked_a_third_time(era: str) -> None:
    async with (
        serve(ERAS[era]({"tools/list": refusal(503, "0")})) as peer,
        Client(peer.url, eras=(era,)) as client,  # type: ignore[arg-type]  # a literal
    ):
        with pytest.raises(TransportError, match="status 503: too much to do") as caught:
            await client.list_tools()
        assert (caught.value.status, caught.value.retry_after) == (503, 0)
        assert len(peer.of("tools/list")) == 2


@eras
async def test_a_tool_is_not_called_again_and_the_error_says_when_it_may_be(era: str) -> None:
    async with (
        serve(ERAS[era]({"tools/call": refusal(429, "7")})) as peer,
        Client(peer.url, eras=(era,)) as client,  # type: ignore[arg-type]  # a literal
    ):
        with pytest.raises(TransportError, match="it can be tried again in 7 seconds") as caught:
            await client.call_tool("add")
        assert caught.value.retry_after == 7
        assert len(peer.of("tools/call")) == 1


async def test_who_has_to_wait_for_long_is_told_at_once() -> None:
    async with serve(modern({"tools/list": refusal(503, "3600")})) as peer, Client(peer.url) as client:
        with anyio.fail_after(5), pytest.raises(TransportError) as caught:
            await client.list_tools()
        assert caught.value.retry_after == 3600
        assert len(peer.of("tools/list")) == 1


async def test_waiting_counts_as_time_for_the_answer() -> None:
    async with serve(modern({"tools/list": refusal(503, "9")})) as peer, Client(peer.url, timeout=0.5) as client:
        with anyio.fail_after(5), pytest.raises(TimeoutError):
            await client.list_tools()
        assert len(peer.of("tools/list")) == 1


async def test_without_a_time_or_with_another_status_nothing_is_asked_again() -> None:
    for refuse in (refusal(500, "0"), refusal(503, "soon"), refusal(404, "0")):
        async with serve(modern({"tools/list": refuse})) as peer, Client(peer.url) as client:
            with pytest.raises(TransportError) as caught:
                await client.list_tools()
            assert caught.value.retry_after is None
            assert len(peer.of("tools/list")) == 1


async def test_an_error_that_names_the_request_is_the_servers_answer_all_the_same() -> None:
    def named(request: Request) -> Any:
        return error(request.id, -32603, "Server busy")

    def nameless(request: Request) -> Any:
        return error(None, -32600, "Invalid Request: the server is stopping")

    async with (
        serve(modern({"tools/list": refusal(503, "0", named), "prompts/list": refusal(503, "0", nameless)})) as peer,
        Client(peer.url) as client,
    ):
        with pytest.raises(PeerError, match="Server busy"):
            await client.list_tools()
        with pytest.raises(TransportError, match="the server is stopping") as caught:
            await client.list_prompts()
        assert caught.value.retry_after == 0
        assert len(peer.of("tools/list")) == len(peer.of("prompts/list")) == 2


async def test_a_server_that_is_busy_when_it_is_probed_is_not_taken_for_an_older_one() -> None:
    async with (
        serve(modern({"server/discover": busy(1, modern(), refusal(503, "0"))})) as peer,
        Client(peer.url) as client,
    ):
        assert client.protocol_version == "2026-07-28"
        assert [request.name for request in peer.requests] == ["server/discover"] * 2
    async with serve(modern({"server/discover": refusal(503, "60")})) as peer:
        with pytest.raises(TransportError) as caught:
            await Client(peer.url).connect()
        assert caught.value.retry_after == 60
        assert [request.name for request in peer.requests] == ["server/discover"]


@pytest.mark.parametrize(
    ("field", "seconds"),
    [
        ("0", 0),
        ("120", 120),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0),
        ("-1", None),
        ("1.5", None),
        ("\u0661", None),
        ("9" * 400, None),
        ("", None),
        ("soon", None),
        ("Wed, 21 Oct 99999 07:28:00 GMT", None),
    ],
)
def test_a_time_is_a_number_of_seconds_or_a_date(field: str, seconds: float | None) -> None:
    assert read_refusal(503, None, b"", 1, field).retry_after == seconds


def test_a_date_is_as_far_away_as_it_is() -> None:
    delay = read_refusal(429, None, b"", 1, formatdate(time.time() + 1000, usegmt=True)).retry_after
    assert delay is not None and 900 < delay <= 1000
