"""The order service over Streamable HTTP, byte by byte: the handshake, the listing, what callers are told and who they are."""

import logging
from types import ModuleType
from typing import Any

import anyio
import httpx
import pytest

from mcpcore import Client, Server, TransportContext, tool
from mcpcore.auth import ResourceServer, StaticTokenVerifier
from mcpcore.types.meta import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION
from tests.support.order_service import CALLS, EXPECTED, Shop, assert_same, expected
from tests.support.sockets import HTTPSocket, connected, serving

pytestmark = pytest.mark.anyio

LEGACY, MODERN = "2025-11-25", "2026-07-28"
JSON, STREAM = "application/json", "text/event-stream"
BOTH = {"content-type": JSON, "accept": f"{JSON}, {STREAM}"}


def message(method: str, params: dict[str, Any] | None = None, id: int = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}


OPENING = message(
    "initialize",
    {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "by hand", "version": "1"}},
)


async def posted(http: HTTPSocket, body: Any, headers: dict[str, str]) -> Any:
    """POST ``body`` and return the last message of the response."""
    await http.request("POST", {**BOTH, **headers}, body)
    await http.finish()
    return http.messages[-1] if http.messages else None


async def opened(http: HTTPSocket) -> dict[str, str]:
    """Open a legacy session and return the headers of its requests."""
    answer = await posted(http, OPENING, {})
    assert (http.status, answer["result"]["protocolVersion"]) == (200, LEGACY)
    session = {"mcp-session-id": http.headers["mcp-session-id"], "mcp-protocol-version": LEGACY}
    await posted(http, {"jsonrpc": "2.0", "method": "notifications/initialized"}, session)
    assert (http.status, bytes(http.body)) == (202, b"")
    return session


def modern(method: str, params: dict[str, Any], **meta: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """A modern request and its headers."""
    about = {
        PROTOCOL_VERSION: MODERN,
        CLIENT_INFO: {"name": "by hand", "version": "1"},
        CLIENT_CAPABILITIES: {},
        **meta,
    }
    headers = {"mcp-protocol-version": MODERN, "mcp-method": method}
    if "name" in params:
        headers["mcp-name"] = params["name"]
    return message(method, {**params, "_meta": about}), headers


# -- the handshake and the listing -------------------------------------------------------------------------------------


async def test_a_session_is_opened_and_lists_exactly_what_is_expected(example: ModuleType) -> None:
    async with serving(Shop(example).server) as port, connected(port) as http:
        answer = await posted(http, OPENING, {})
        assert answer["result"]["serverInfo"] == {"name": "order-service", "version": "1.0.0"}
        assert answer["result"]["capabilities"]["tools"] == {"listChanged": True}
        session = await opened(http)
        assert (await posted(http, message("tools/list"), session))["result"] == {"tools": EXPECTED["tools"]}
        assert http.status == 200


@pytest.mark.parametrize(
    ("accept", "status", "form"),
    [(JSON, 200, JSON), (STREAM, 200, STREAM), ("text/html", 406, JSON), (f"{JSON};q=0, {STREAM};q=0", 406, JSON)],
)
async def test_a_client_is_answered_in_a_form_that_it_takes_and_one_that_takes_neither_is_not(
    example: ModuleType, accept: str, status: int, form: str
) -> None:
    async with serving(Shop(example).server) as port, connected(port) as http:
        await posted(http, OPENING, {"accept": accept})
        assert (http.status, http.headers["content-type"]) == (status, form)


async def test_modern_requests_list_the_same_without_any_handshake(example: ModuleType) -> None:
    async with serving(Shop(example).server) as port, connected(port) as http:
        body, headers = modern("tools/list", {})
        answer = await posted(http, body, headers)
        assert (http.status, "mcp-session-id" in http.headers) == (200, False)
        assert answer["result"]["tools"] == EXPECTED["tools"]


# -- the calls ---------------------------------------------------------------------------------------------------------

ON_THE_WIRE = [name for name in CALLS if name[0] in "ABC" or name == "D5"]


async def test_results_and_tool_errors_alike_are_answers_with_status_200(example: ModuleType, era: str) -> None:
    async with serving(Shop(example).server) as port, connected(port) as http:
        session = await opened(http) if era == "legacy" else {}
        for name in ON_THE_WIRE:
            params = {"name": CALLS[name]["name"], "arguments": CALLS[name]["arguments"]}
            body, headers = (
                modern("tools/call", params) if era == "modern" else (message("tools/call", params), session)
            )
            result = (await posted(http, body, headers))["result"]
            assert http.status == 200, name
            if era == "modern":
                assert result.pop("resultType") == "complete"
                assert list(result.pop("_meta")) == ["io.modelcontextprotocol/serverInfo"]
            assert_same(result, expected(name))


async def test_an_unknown_tool_is_a_json_rpc_error(example: ModuleType) -> None:
    error = {"code": -32602, "message": "Unknown tool: no_such_tool"}
    async with serving(Shop(example).server) as port, connected(port) as http:
        params = {"name": "no_such_tool", "arguments": {}}
        answer = await posted(http, message("tools/call", params), await opened(http))
        assert (http.status, answer["error"]) == (200, error)
        body, headers = modern("tools/call", params)
        answer = await posted(http, body, headers)
        assert (http.status, answer["error"]) == (400, error)


@pytest.mark.parametrize("token", ["p1", 0])
async def test_progress_is_streamed_with_its_token_before_the_result(example: ModuleType, era: str, token: Any) -> None:
    params: dict[str, Any] = {"name": "recheck_shipments", "arguments": {}}
    async with serving(Shop(example).server) as port, connected(port) as http:
        if era == "modern":
            body, headers = modern("tools/call", params, progressToken=token)
        else:
            headers = await opened(http)
            body = message("tools/call", {**params, "_meta": {"progressToken": token}})
        await posted(http, body, headers)
        *notices, last = http.messages
        assert http.headers["content-type"] == STREAM
        assert last["result"]["structuredContent"]["checked"] == 57
        assert [(each["method"], each["params"]) for each in notices] == [
            ("notifications/progress", {"progressToken": token, "progress": number, "total": 57})
            for number in range(1, 58)
        ]


# -- stateless ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("type", ["auto", "sync"])
async def test_a_stateless_server_gives_no_session_and_needs_none(example: ModuleType, type: Any) -> None:
    shop = Shop(example, type=type, state="stateless")
    async with serving(shop.server) as port, connected(port) as http:
        await posted(http, OPENING, {})
        assert (http.status, "mcp-session-id" in http.headers) == (200, False)
        listed = (await posted(http, message("tools/list"), {"mcp-protocol-version": LEGACY}))["result"]["tools"]
        assert listed == EXPECTED["tools"][:4]
        for name in (each for each in CALLS if each[0] in "AB"):
            params = {"name": CALLS[name]["name"], "arguments": CALLS[name]["arguments"]}
            answer = await posted(http, message("tools/call", params), {"mcp-protocol-version": LEGACY})
            assert (http.status, "mcp-session-id" in http.headers) == (200, False)
            assert_same(answer["result"], expected(name))


# -- identity ----------------------------------------------------------------------------------------------------------


def with_identity(example: ModuleType) -> Server:
    class Tools(example.OrderTools):  # type: ignore[misc, name-defined]  # loaded at run time
        @tool
        def get_my_orders(self, tc: TransportContext) -> list[example.Order]:  # type: ignore[name-defined]  # loaded at run time
            """The orders of whoever asks."""
            return list(self.orders.of_customer(tc.principal.subject))

    verifier = StaticTokenVerifier({"t-42": "CUST-42"})
    address = "http://127.0.0.1/mcp"
    server = Server(
        "order-service",
        auth=ResourceServer(verifier, resource=address, authorization_servers=["https://as.example.com"]),
        rename="camel",
    )
    server.include(Tools(example.Orders(), example.StubCarrier(), lambda: example.NOW))
    return server


async def test_a_tool_knows_the_caller_by_the_token_and_by_nothing_that_is_said(
    example: ModuleType, era: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "mcpcore.audit"), anyio.fail_after(30):
        async with (
            serving(with_identity(example)) as port,
            httpx.AsyncClient(headers={"authorization": "Bearer t-42"}) as http,
            Client(f"http://127.0.0.1:{port}/mcp", eras=(era,), http_client=http) as client,
        ):
            mine = next(each for each in await client.list_tools() if each.name == "get_my_orders")
            assert mine.input_schema["properties"] == {}
            result = await client.call_tool("get_my_orders", {})
            wanted = expected("A7")
            found: Any = {"content": [{"type": "text", "text": result.text}], "isError": result.is_error}
            assert_same(found, wanted)
            forgeries: list[dict[str, Any]] = [{"customerId": "CUST-1"}, {"tc": {}}]
            for forged in forgeries:
                refused = await client.call_tool("get_my_orders", forged)
                assert refused.is_error and "input validation failed" in refused.text
    records: list[Any] = [record for record in caplog.records if record.name == "mcpcore.audit"]
    assert [(each.caller, each.outcome) for each in records] == [
        ("CUST-42", "ok"),
        ("CUST-42", "tool_error"),
        ("CUST-42", "tool_error"),
    ]


async def test_without_a_token_there_is_nothing(example: ModuleType) -> None:
    async with serving(with_identity(example)) as port, connected(port) as http:
        body, headers = modern("tools/call", {"name": "get_my_orders", "arguments": {}})
        for each in ((OPENING, {}), (body, headers)):
            await posted(http, *each)
            assert http.status == 401
