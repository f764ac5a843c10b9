"""The endpoint as a protected resource."""

import logging
from typing import Annotated, Any

import pytest

from mcpcore import InsufficientScope, Param, Server, TransportContext
from mcpcore.auth import Principal, ResourceServer, StaticTokenVerifier
from tests.support.asgi import POST, Caller, encoded, initialize, modern, request

pytestmark = pytest.mark.anyio

ALICE = Principal("alice", "https://as.example.com", "app", frozenset({"read"}))
TOKENS = {
    "t-alice": ALICE,
    "t-alice-2": Principal("alice", "https://as.example.com", "app", frozenset({"read", "write"})),
    "t-bob": Principal("bob", "https://as.example.com", "app", frozenset({"read"})),
    "t-none": Principal("carol"),
}


def protected(**options: Any) -> Caller:
    return Caller(protected_server().http_app(allowed_hosts=["mcp.example.com", "localhost"], **options))


def protected_server() -> Server:
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

    @server.tool
    async def publish(tc: TransportContext) -> str:
        """Finds out while it runs that it needs another scope."""
        if "write" not in tc.principal.scopes:
            raise InsufficientScope("write")
        return "published"

    @server.tool(visible=show_to_alice)
    async def route(region: Annotated[str, Param(header="Region")]) -> str:
        """Is shown to one, and mirrored."""
        return region

    @server.resource("notes://all")
    async def everybodys() -> str:
        """A resource."""
        return "for all"

    @server.resource("notes://alice", visible=show_to_alice)
    async def alices() -> str:
        """A resource that is shown to one."""
        return "for Alice"

    return server


@pytest.fixture
def call() -> Caller:
    return protected()


def show_to_alice(principal: Any) -> bool:
    return isinstance(principal, Principal) and principal.subject == "alice"


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


@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize(("tool", "done"), [("write", "written"), ("publish", "published")])
async def test_a_tool_that_needs_more_asks_for_it_with_a_real_challenge(
    call: Caller, era: str, tool: str, done: str
) -> None:
    message, fields = modern("tools/call", {"name": tool})
    if era == "legacy":
        opened = await call.post(initialize(), bearer("t-alice"))
        message, fields = request("tools/call", {"name": tool}), {"mcp-session-id": opened.headers["mcp-session-id"]}
    response = await call.post(message, {**fields, **bearer("t-alice")})
    assert response.status == 403
    challenge = response.headers["www-authenticate"]
    assert challenge == f'Bearer error="insufficient_scope", scope="read write", {METADATA}'
    response = await call.post(message, {**fields, **bearer("t-alice-2")})
    assert response.json()["result"]["content"][0]["text"] == done


async def test_the_principal_stands_in_the_audit_log_and_so_does_what_was_denied(
    call: Caller, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "mcpcore.audit")
    for tool, token in (("who", "t-alice"), ("write", "t-bob"), ("publish", "t-bob")):
        message, fields = modern("tools/call", {"name": tool})
        await call.post(message, {**fields, **bearer(token)})
    records: list[Any] = [record for record in caplog.records if record.name == "mcpcore.audit"]
    assert [(record.tool, record.caller, record.outcome) for record in records] == [
        ("who", "alice", "ok"),
        ("write", "bob", "denied"),
        ("publish", "bob", "denied"),
    ]


@pytest.mark.parametrize(
    ("token", "shown"), [("t-alice", ["notes://all", "notes://alice"]), ("t-bob", ["notes://all"])]
)
async def test_a_subscription_tells_of_nothing_that_is_hidden_from_who_subscribes(token: str, shown: list[str]) -> None:
    server = protected_server()
    call = Caller(server.http_app())
    wanted = {"resourceSubscriptions": ["notes://all", "notes://alice", "notes://nobody"], "toolsListChanged": True}
    message, fields = modern("subscriptions/listen", {"notifications": wanted})
    headers = {**POST, **fields, **bearer(token)}
    async with call.open("POST", headers=headers, body=encoded(message)) as response:
        await response.wait_for(lambda each: each.messages)
        granted = response.messages[0]["params"]["notifications"]
        assert granted == {"resourceSubscriptions": shown, "toolsListChanged": True}
        for uri in ("notes://alice", "notes://all", "notes://nobody"):
            server.notify_resource_updated(uri)
        server.notify_tools_changed()
        await response.wait_for(lambda each: each.messages[-1]["method"] == "notifications/tools/list_changed")
        assert {each["params"]["uri"] for each in response.messages[1:-1]} == set(shown)


@pytest.mark.parametrize(("token", "told"), [("t-alice", ["notes://alice", "notes://all"]), ("t-bob", ["notes://all"])])
async def test_a_legacy_session_is_told_of_no_change_that_is_hidden_from_its_owner(token: str, told: list[str]) -> None:
    server = protected_server()
    call = Caller(server.http_app())
    session = await call.initialize(**bearer(token))
    for uri in ("notes://alice", "notes://all", "notes://nobody"):
        answer = await call.post(request("resources/subscribe", {"uri": uri}), session)
        assert answer.json()["result"] == {}  # what is hidden and what is unknown look alike
    async with call.open("GET", headers={"accept": "text/event-stream", **session}) as response:
        await response.wait_for(lambda each: each.status)
        for uri in ("notes://alice", "notes://all", "notes://nobody"):
            server.notify_resource_updated(uri)
        server.notify_tools_changed()
        await response.wait_for(lambda each: len(each.messages) > len(told))
        assert [each.get("params", {}).get("uri") for each in response.messages] == [*told, None]


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


async def test_a_page_of_an_allowed_origin_can_find_out_how_to_get_a_token_and_call() -> None:
    call = protected(cors=True, allowed_origins=["https://app.example.com"])
    page = {"origin": "https://app.example.com"}
    wanted = "authorization, content-type, last-event-id, mcp-method, mcp-name, mcp-protocol-version, mcp-session-id"
    asked = {"access-control-request-method": "POST", "access-control-request-headers": wanted}
    preflight = await call.call("OPTIONS", headers={**page, **asked})
    assert 200 <= preflight.status < 300
    assert preflight.headers["access-control-allow-origin"] == page["origin"]
    assert preflight.headers["access-control-allow-headers"] == wanted
    assert preflight.headers["access-control-allow-methods"] == "POST, GET, DELETE"

    refused = await call.post(request("ping"), page)
    forbidden = await call.post(request("ping"), {**page, **bearer("t-none")})
    opened = await call.post(initialize(), {**page, **bearer("t-alice")})
    session = {**page, **bearer("t-alice"), "mcp-session-id": opened.headers["mcp-session-id"]}
    message, fields = modern("tools/call", {"name": "write"})
    denied = await call.post(message, {**fields, **page, **bearer("t-alice")})
    unknown = await call.post(request("nothing"), session)
    ended = await call.call("DELETE", headers=session)
    lost = await call.post(request("ping"), session)
    responses = (refused, forbidden, opened, denied, unknown, ended, lost)
    assert [response.status for response in responses] == [401, 403, 200, 403, 200, 200, 404]
    for response in responses:
        assert response.headers["access-control-allow-origin"] == page["origin"]
        assert response.headers["access-control-expose-headers"] == "Mcp-Session-Id, WWW-Authenticate"


async def test_without_cors_nothing_about_origins_is_said_but_by_the_metadata(call: Caller) -> None:
    page = {"origin": "https://mcp.example.com"}
    message, fields = modern("tools/list")
    for response in (
        await call.call("OPTIONS", headers=page),
        await call.post(message, {**fields, **page}),
        await call.post(message, {**fields, **page, **bearer("t-alice")}),
    ):
        assert not any(name.startswith("access-control-") for name in response.headers)


async def test_nobody_but_the_owner_can_come_back_for_what_a_session_missed(call: Caller) -> None:
    opened = await call.post(initialize(), bearer("t-alice"))
    session = {
        "accept": "text/event-stream",
        "mcp-session-id": opened.headers["mcp-session-id"],
        "last-event-id": "p1-1",
    }
    stolen = await call.call("GET", headers={**session, **bearer("t-bob")})
    unknown = await call.call("GET", headers={**session, **bearer("t-alice")})
    assert (stolen.status, "session does not exist" in stolen.json()["error"]["message"]) == (404, True)
    assert (unknown.status, "event 'p1-1' is not known" in unknown.json()["error"]["message"]) == (404, True)


async def test_session_ids_cannot_be_guessed(call: Caller) -> None:
    ids = {(await call.post(initialize(), bearer("t-alice"))).headers["mcp-session-id"] for _ in range(50)}
    assert len(ids) == 50
    assert all(len(id) >= 22 and all("!" <= character <= "~" for character in id) for id in ids)  # 128 bits in base64


@pytest.mark.parametrize(
    ("token", "header", "code"),
    [
        ("t-alice", "eu", None),
        ("t-alice", "us", -32020),
        ("t-alice", None, -32020),
        ("t-bob", "eu", -32602),
        ("t-bob", "us", -32602),
    ],
)
async def test_what_is_mirrored_is_checked_for_those_who_may_see_the_tool_and_tells_others_nothing(
    call: Caller, token: str, header: str | None, code: int | None
) -> None:
    message, headers = modern("tools/call", {"name": "route", "arguments": {"region": "eu"}})
    mirrored = {} if header is None else {"mcp-param-region": header}
    answer = (await call.post(message, {**headers, **mirrored, **bearer(token)})).json()
    assert answer.get("error", {}).get("code") == code
    if code == -32602:
        assert answer["error"]["message"] == "Unknown tool: route"
