"""The endpoint as a protected resource."""

from typing import Any

import pytest

from mcpcore import Server, TransportContext
from mcpcore.auth import Principal, ResourceServer, StaticTokenVerifier
from tests.support.asgi import Caller, encoded, initialize, modern, request

pytestmark = pytest.mark.anyio

ALICE = Principal("alice", "https://as.example.com", "app", frozenset({"read"}))
TOKENS = {
    "t-alice": ALICE,
    "t-alice-2": Principal("alice", "https://as.example.com", "app", frozenset({"read", "write"})),
    "t-bob": Principal("bob", "https://as.example.com", "app", frozenset({"read"})),
    "t-none": Principal("carol"),
}


@pytest.fixture
def call() -> Caller:
    auth = ResourceServer(
        StaticTokenVerifier(TOKENS),
        resource="https://mcp.example.com/mcp",
        authorization_servers=["https://as.example.com"],
        scopes=["read"],
        scopes_supported=["read", "write"],
    )
    server = Server("protected", auth=auth)

    @server.tool
    async def who(tc: TransportContext) -> str:
        """Who calls."""
        return str(tc.principal)

    @server.tool(scopes=["write"])
    async def write() -> str:
        """Needs another scope."""
        return "written"

    return Caller(server.http_app(allowed_hosts=["mcp.example.com", "localhost"]))


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


METADATA = 'resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp"'


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({}, b""),
        ({"accept": "text/html"}, b""),
        ({"content-type": "text/plain"}, b"x"),
        ({"mcp-session-id": "unknown"}, encoded(request("ping"))),
    ],
)
async def test_a_request_without_a_token_learns_how_to_get_one_and_nothing_else(
    call: Caller, headers: dict[str, str], body: bytes
) -> None:
    for method in ("POST", "GET", "DELETE"):
        response = await call.call(method, headers=headers, body=body)
        assert response.status == 401
        assert response.headers["www-authenticate"] == f'Bearer scope="read", {METADATA}'


@pytest.mark.parametrize("header", ["Bearer wrong", "bearer  wrong", "Basic t-alice", "Bearer", "t-alice"])
async def test_a_token_that_is_not_valid_is_refused(call: Caller, header: str) -> None:
    message, fields = modern("tools/list")
    response = await call.post(message, {**fields, "authorization": header})
    assert response.status == 401
    assert ('error="invalid_token"' in response.headers["www-authenticate"]) == ("wrong" in header)


async def test_a_token_in_the_url_does_not_count(call: Caller) -> None:
    message, fields = modern("tools/list")
    assert (await call.post(message, fields, "/mcp?access_token=t-alice")).status == 401


async def test_a_token_without_the_scope_that_all_requests_need_is_forbidden(call: Caller) -> None:
    message, fields = modern("tools/list")
    response = await call.post(message, {**fields, **bearer("t-none")})
    assert response.status == 403
    assert 'error="insufficient_scope"' in response.headers["www-authenticate"]


async def test_the_principal_reaches_the_handler_and_arguments_cannot_change_it(call: Caller) -> None:
    message, fields = modern("tools/call", {"name": "who"})
    response = await call.post(message, {**fields, **bearer("t-alice")})
    assert response.json()["result"]["content"][0]["text"] == "alice"
    message, fields = modern("tools/call", {"name": "who", "arguments": {"tc": {"principal": "bob"}}})
    assert (await call.post(message, {**fields, **bearer("t-alice")})).json()["result"]["isError"]


async def test_a_tool_that_needs_more_asks_for_it_with_a_real_challenge(call: Caller) -> None:
    message, fields = modern("tools/call", {"name": "write"})
    response = await call.post(message, {**fields, **bearer("t-alice")})
    assert response.status == 403
    challenge = response.headers["www-authenticate"]
    assert challenge == f'Bearer error="insufficient_scope", scope="read write", {METADATA}'
    response = await call.post(message, {**fields, **bearer("t-alice-2")})
    assert response.json()["result"]["content"][0]["text"] == "written"


@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/mcp/.well-known/oauth-protected-resource",
    ],
)
@pytest.mark.parametrize("root", ["", "/api"])
async def test_the_metadata_is_there_at_every_form_of_its_path(call: Caller, path: str, root: str) -> None:
    call.root = root
    response = await call.call("GET", path)
    assert response.status == 200 and response.headers["access-control-allow-origin"] == "*"
    assert response.json() == {
        "resource": "https://mcp.example.com/mcp",
        "authorization_servers": ["https://as.example.com"],
        "scopes_supported": ["read", "write"],
        "bearer_methods_supported": ["header"],
    }


async def test_a_session_belongs_to_its_principal_and_not_to_its_token(call: Caller) -> None:
    opened = await call.post(initialize(), bearer("t-alice"))
    session: dict[str, Any] = {"mcp-session-id": opened.headers["mcp-session-id"]}
    ping = request("ping")
    assert (await call.post(ping, {**session, **bearer("t-alice")})).status == 200
    assert (await call.post(ping, {**session, **bearer("t-alice-2")})).status == 200
    assert (await call.post(ping, {**session, **bearer("t-bob")})).status == 404
    assert (await call.call("DELETE", headers={**session, **bearer("t-bob")})).status == 404
    assert (await call.post(ping, {**session, **bearer("t-alice")})).status == 200
