"""Where a client lets itself be sent, and where not: credentials go to the origin that the user named."""

from typing import Any

import httpx
import httpx2
import pytest

from mcpcore import Client, TransportError
from mcpcore.transports.http.endpoint import Endpoint
from tests.support.http_peer import Reply, Request, Script, modern, serve

pytestmark = pytest.mark.anyio

FAMILIES: pytest.MarkDecorator = pytest.mark.parametrize("family", [httpx, httpx2])


def redirecting(status: int, location: str) -> Script:
    """A server that has moved from ``/mcp`` to ``location``."""
    there = modern()

    async def script(request: Request, reply: Reply) -> None:
        if request.path == "/mcp":
            await reply.empty(status, location=location)
        else:
            await there(request, reply)

    return script


@FAMILIES
@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize("location", ["/mcp/", "mcp/", "/other?x=1"])
async def test_a_redirect_within_the_origin_is_followed_with_body_and_credentials(
    family: Any, status: int, location: str
) -> None:
    async with (
        family.AsyncClient(headers={"authorization": "Bearer t1"}) as given,
        serve(redirecting(status, location)) as peer,
        Client(peer.url, http_client=given) as client,
    ):
        await client.call_tool("add", {"a": 1})
    first, second = peer.requests[:2]
    assert (first.path, second.path) == ("/mcp", "/" + location.removeprefix("/"))
    assert first.body == second.body
    assert {request.headers["authorization"] for request in peer.requests} == {"Bearer t1"}
    assert {request.method for request in peer.requests} == {"POST"}
    assert second.headers["mcp-method"] == "server/discover"


@pytest.mark.parametrize("status", [301, 302, 303])
async def test_a_redirect_that_would_turn_a_post_into_a_get_is_not_followed(status: int) -> None:
    async with serve(redirecting(status, "/mcp/")) as peer:
        with pytest.raises(TransportError, match=f"{status}.*/mcp/.*would turn POST into GET") as caught:
            async with Client(peer.url):
                pass
        assert caught.value.status == status
        assert {request.path for request in peer.requests} == {"/mcp"}


@FAMILIES
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_nothing_is_sent_to_another_origin(family: Any, status: int) -> None:
    given = family.AsyncClient(headers={"authorization": "Bearer t1"}, follow_redirects=True)
    async with given, serve(modern()) as other, serve(redirecting(status, other.url)) as peer:
        with pytest.raises(TransportError, match=f"another origin, {other.url}"):
            async with Client(peer.url, http_client=given):
                pass
        assert not other.requests
        assert peer.requests


@pytest.mark.parametrize(
    "location",
    [
        "http://localhost:{port}/mcp/",
        "http://127.0.0.1.evil.example/mcp/",
        "//evil.example/mcp/",
        "http://127.0.0.1:{port}@evil.example/mcp",
        "http://user:pass@127.0.0.1:{port}/mcp/",
        "https://127.0.0.1:{port}/mcp/",
        "ftp://127.0.0.1:{port}/mcp/",
        "file:///etc/passwd",
        "http://[::1",
        "",
    ],
)
async def test_a_place_that_is_not_quite_the_origin_is_another_one(location: str) -> None:
    async def script(request: Request, reply: Reply) -> None:
        await reply.empty(307, location=location.format(port=peer.port))

    async with serve(script) as peer:
        with pytest.raises(TransportError, match=r"another origin|no URL"):
            async with Client(peer.url):
                pass
        assert {request.path for request in peer.requests} == {"/mcp"}


async def test_redirects_are_followed_five_times() -> None:
    there = modern()

    async def script(request: Request, reply: Reply) -> None:
        hops = request.path.count("x")
        if hops == limit:
            await there(request, reply)
        else:
            await reply.empty(307, location=request.path + "x")

    limit = 5
    async with serve(script) as peer, Client(peer.url) as client:
        await client.list_tools()
    limit = 6
    async with serve(script) as peer:
        with pytest.raises(TransportError, match="more than 5 times"):
            async with Client(peer.url):
                pass


async def test_a_loop_ends() -> None:
    async with serve(redirecting(307, "/mcp")) as peer:
        with pytest.raises(TransportError, match="more than 5 times"):
            async with Client(peer.url):
                pass


# Sockets on the well-known ports cannot be had, so the family's own transport stands in for the network here.


@FAMILIES
@pytest.mark.parametrize(
    ("origin", "location", "followed"),
    [
        ("http://mcp.example", "https://mcp.example/mcp", True),
        ("http://mcp.example:80", "https://mcp.example:443/mcp", True),
        ("http://mcp.example", "http://mcp.example:80/other", True),
        ("http://mcp.example:8080", "https://mcp.example/mcp", False),
        ("http://mcp.example", "https://mcp.example:8443/mcp", False),
        ("http://mcp.example", "https://other.example/mcp", False),
        ("https://mcp.example", "http://mcp.example/mcp", False),
    ],
)
async def test_tls_on_the_same_host_may_be_turned_on_and_not_off(
    family: Any, origin: str, location: str, followed: bool
) -> None:
    sent: list[str] = []

    def respond(request: Any) -> Any:
        sent.append(f"{request.url} {request.headers['authorization']}")
        return family.Response(200) if len(sent) > 1 else family.Response(308, headers={"location": location})

    transport = family.MockTransport(respond)
    async with family.AsyncClient(transport=transport, headers={"authorization": "Bearer t1"}) as given:
        endpoint = Endpoint(given, f"{origin}/mcp")
        if followed:
            async with endpoint.request("POST", {}, b"{}") as response:
                assert response.status_code == 200
        else:
            with pytest.raises(TransportError, match="another origin") as caught:
                async with endpoint.request("POST", {}, b"{}"):
                    pass
            assert ("proxy" in str(caught.value)) is origin.startswith("https")
    assert len(sent) == 1 + followed


@FAMILIES
async def test_a_get_may_be_redirected_in_any_way_within_its_origin(family: Any) -> None:
    def respond(request: Any) -> Any:
        assert request.method == "GET"
        if request.url.path == "/sse/":
            return family.Response(200)
        return family.Response(302, headers={"location": "/sse/"})

    given = family.AsyncClient(transport=family.MockTransport(respond))
    async with given, Endpoint(given, "http://mcp.example/sse").request("GET", {}) as response:
        assert response.status_code == 200
