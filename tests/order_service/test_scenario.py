"""The acceptance scenario: the order service as a client sees it, in memory, over lines, as a process and over HTTP."""

import json
import logging
import sys
from types import ModuleType
from typing import Any

import anyio
import msgspec
import pytest

from mcpcore import Client, PeerError, stdio
from mcpcore.types.elicitation import ElicitParams, ElicitResult
from tests.support.order_service import (
    CALLS,
    EXAMPLE,
    EXPECTED,
    ROOT,
    Shop,
    assert_same,
    expected,
    without_optional_members,
)
from tests.support.order_variants import Service, command_of
from tests.support.program import Program
from tests.support.program import call as called
from tests.support.program import modern as as_modern
from tests.support.wires import MODERN, connected

pytestmark = pytest.mark.anyio

LEGACY = "2025-11-25"


class User:
    """Answers what the server asks, and remembers it."""

    def __init__(self, answer: Any = None) -> None:
        self.answer = {"confirm": True} if answer is None else answer
        self.asked: list[ElicitParams] = []

    def __call__(self, params: ElicitParams) -> Any:
        self.asked.append(params)
        return self.answer


async def call(connection: Client, name: str, **options: Any) -> dict[str, Any]:
    """Make the call of that name and return its result as JSON."""
    each = CALLS[name]
    result = await connection.call_tool(each["name"], each["arguments"], **options)
    found: dict[str, Any] = {
        "content": [{"type": "text", "text": getattr(block, "text", None)} for block in result.content],
        "isError": result.is_error,
    }
    if result.structured is not None:
        found["structuredContent"] = result.structured
    return found


# -- the listing -------------------------------------------------------------------------------------------------------


async def test_the_listing_on_the_wire_is_the_expected_one(example: ModuleType) -> None:
    async with connected(Shop(example).server) as peer:
        opened = await peer.initialize(LEGACY)
        assert opened["protocolVersion"] == LEGACY
        assert opened["serverInfo"] == {"name": "order-service", "version": "1.0.0"}
        assert opened["capabilities"]["tools"] == {"listChanged": True}
        listed = (await peer.request("tools/list", era=LEGACY))["result"]
        assert listed == {"tools": EXPECTED["tools"]}
        assert [list(tool["inputSchema"]["properties"]) for tool in listed["tools"]] == [
            list(tool["inputSchema"]["properties"]) for tool in EXPECTED["tools"]
        ]


async def test_every_transport_lists_the_same_however_the_data_is_written_down(service: Service, era: str) -> None:
    async with service.client(eras=(era,)) as connection:
        assert connection.server_info is not None
        assert (connection.server_info.name, connection.server_info.version) == ("order-service", "1.0.0")
        listed = msgspec.to_builtins(await connection.list_tools())
    if service.form == "dataclass":
        assert {"type": "null"} in listed[0]["outputSchema"]["properties"]["shipment"]["anyOf"]
        assert without_optional_members(listed) == without_optional_members(EXPECTED["tools"])
    else:
        assert listed == EXPECTED["tools"]


async def test_the_example_itself_serves_that_on_stdin_and_stdout() -> None:
    with anyio.fail_after(30):
        async with Client(stdio(sys.executable, str(EXAMPLE)), eras=("legacy",)) as connection:
            assert msgspec.to_builtins(await connection.list_tools()) == EXPECTED["tools"]
            assert_same(await call(connection, "A1"), expected("A1"))


async def test_the_log_says_how_many_tools_there_are(example: ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "mcpcore.registry"):
        Shop(example)
    assert [record.getMessage() for record in caplog.records] == ["Registered tools: 6"]


# -- the calls, in their order -----------------------------------------------------------------------------------------


async def test_all_calls_of_one_session_give_the_expected_results(
    example: ModuleType, service: Service, era: str
) -> None:
    user = User()
    texts: dict[str, str] = {}
    async with service.client(eras=(era,), elicitation=user) as connection:
        await connection.list_tools()  # so that structured content is checked here as well
        for name in CALLS:
            if name == "D5":
                continue
            user.answer = ElicitResult("decline") if name == "D3" else {"confirm": True}
            before = len(user.asked)
            result = await call(connection, name)
            texts[name] = result["content"][0]["text"]
            assert_same(result, expected(name))
            assert len(user.asked) - before == (1 if name in ("D1", "D3") else 0), name
        for answer in (ElicitResult("cancel"), {"confirm": False}):
            user.answer = answer
            assert_same(await call(connection, "D3"), expected("D3"))
        with pytest.raises(PeerError, match="Unknown tool: no_such_tool") as caught:
            await connection.call_tool("no_such_tool")
        assert caught.value.code == -32602
    assert texts["B1"] == texts["B2"]
    first = user.asked[0]
    assert first.message == "Cancel order ORD-10004? This cannot be undone."
    assert first.mode in (None, "form")
    assert first.requested_schema == {
        "type": "object",
        "properties": {"confirm": {"type": "boolean", "description": "Cancel this order for good"}},
        "required": ["confirm"],
    }
    if (shop := service.shop) is not None:
        assert [each for each, _ in shop.orders.history["ORD-10002"]] == ["PENDING"]
        assert shop.orders.get("ORD-10011").status == "PROCESSING"
        assert shop.orders.get("ORD-10004").status == "CANCELLED"
        assert shop.orders.get("ORD-10004").last_updated == example.NOW


async def test_a_client_that_cannot_ask_is_told_what_to_do_instead(service: Service, era: str) -> None:
    async with service.client(eras=(era,)) as connection:
        assert_same(await call(connection, "D5"), expected("D5"))


async def test_the_wire_is_byte_for_byte_what_was_agreed(example: ModuleType) -> None:
    async with connected(Shop(example).server) as peer:
        await peer.initialize(LEGACY)
        a2 = await peer.call("get_order", {"orderId": "ORD-10002"}, era=LEGACY)
        assert a2["result"] == expected("A2")
        assert list(a2["result"]) == ["content", "structuredContent", "isError"]
        b3 = await peer.call("update_order_status", CALLS["B3"]["arguments"], era=LEGACY)
        assert b3["result"] == expected("B3")


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18"])
async def test_older_revisions_get_the_same_texts_and_what_they_know(service: Service, version: str) -> None:
    async with service.client(protocol_version=version, elicitation=User()) as connection:
        tools = {tool.name: tool for tool in await connection.list_tools()}
        assert (tools["get_order"].output_schema is not None) is (version >= "2025-06-18")
        assert (tools["get_order"].annotations is not None) is (version >= "2025-03-26")
        for name in ("A1", "A2", "A3", "A4", "A7", "B1", "C1", "C2"):
            found, wanted = await call(connection, name), expected(name)
            if version < "2025-06-18":
                wanted.pop("structuredContent", None)
            assert_same(found, wanted)
        if version < "2025-06-18":  # elicitation came then
            assert_same(await call(connection, "D5"), expected("D5"))
        else:
            assert (await call(connection, "D1"))["isError"] is False


# -- progress ----------------------------------------------------------------------------------------------------------


async def test_rechecking_reports_each_order_before_the_result(service: Service, era: str) -> None:
    told: list[tuple[float, float | None]] = []
    async with service.client(eras=(era,)) as connection:
        result = await call(connection, "C2", on_progress=lambda value, total, _: told.append((value, total)))
        assert told == [(number, 57) for number in range(1, 58)]
        told.clear()
        await call(connection, "C3")
        assert told == []
    assert result["structuredContent"]["checked"] == 57 and len(result["structuredContent"]["delivered"]) == 19


@pytest.mark.parametrize("token", ["p1", 0])
async def test_progress_carries_the_token_and_comes_before_the_result(
    example: ModuleType, era: str, token: Any
) -> None:
    version = MODERN if era == "modern" else LEGACY
    async with connected(Shop(example).server) as peer:
        if era == "legacy":
            await peer.initialize(LEGACY)
        start = len(peer.seen)
        answer = await peer.call("recheck_shipments", {}, era=version, progressToken=token)
        *notices, last = peer.seen[start:]
        assert last == answer and len(notices) == 57
        assert [each["params"] for each in notices] == [
            {"progressToken": token, "progress": number, "total": 57} for number in range(1, 58)
        ]
        assert {each["method"] for each in notices} == {"notifications/progress"}


@pytest.mark.parametrize("token", ["p1", 0])
async def test_a_process_writes_each_progress_on_a_line_of_its_own_before_the_result(
    form: str, era: str, token: Any
) -> None:
    request = called(1, "recheck_shipments", _meta={"progressToken": token})
    with Program(command_of(form=form), cwd=ROOT) as program:
        if era == "legacy":
            program.open()
        program.send(request if era == "legacy" else as_modern(request))
        notices = [program.receive() for _ in range(57)]
        last = program.receive()
    assert [(each["method"], each["params"]) for each in notices] == [
        ("notifications/progress", {"progressToken": token, "progress": number, "total": 57}) for number in range(1, 58)
    ]
    assert (last["id"], last["result"]["structuredContent"]["checked"]) == (1, 57)


# -- audit -------------------------------------------------------------------------------------------------------------


async def test_every_call_leaves_one_audit_record(service: Service, era: str) -> None:
    user = User()
    async with service.client(eras=(era,), elicitation=user, name="shop", version="1.0") as connection:
        for name in CALLS:
            if name != "D5":
                user.answer = ElicitResult("decline") if name == "D3" else {"confirm": True}
                await call(connection, name)
    records = service.log.records("mcpcore.audit")
    names = [name for name in CALLS if name != "D5"]
    assert [record.tool for record in records] == [CALLS[name]["name"] for name in names]
    assert [record.arguments for record in records] == [CALLS[name]["arguments"] for name in names]
    outcomes = ["tool_error" if expected(name)["isError"] else "ok" for name in names]
    assert [record.outcome for record in records] == outcomes
    (session,) = {record.session for record in records}
    assert isinstance(session, str) if (service.over, era) == ("http", "legacy") else session is None
    for record in records:
        assert (record.caller, record.client) == ("anonymous", "shop/1.0")
        assert record.duration_ms >= 0 and isinstance(record.request_id, int)


# -- modes -------------------------------------------------------------------------------------------------------------

NAMES = [tool["name"] for tool in EXPECTED["tools"]]
R1, R2, R3 = "awaitable-return", "imperative-return", "bidirectional-parameter"


@pytest.mark.parametrize(
    ("type", "state", "taken", "reasons", "summary"),
    [
        ("auto", "stateful", NAMES, [], "Registered tools: 6"),
        ("sync", "stateful", NAMES[:4], [(R1,)] * 2, "Registered tools: 4 (2 skipped)"),
        ("async", "stateful", NAMES[4:], [(R2,)] * 4, "Registered tools: 2 (4 skipped)"),
        ("sync", "stateless", NAMES[:4], [(R1, R3)] * 2, "Registered tools: 4 (2 skipped)"),
        ("async", "stateless", [], [(R2,)] * 4 + [(R3,)] * 2, "No tools registered: all 6 were skipped"),
        ("auto", "stateless", NAMES[:4], [(R3,)] * 2, "Registered tools: 4 (2 skipped)"),
    ],
)
async def test_the_mode_decides_which_tools_there_are(
    service: Service, era: str, type: str, state: str, taken: list[str], reasons: list[Any], summary: str
) -> None:
    skipped = [name for name in NAMES if name not in taken]
    async with service.client({"type": type, "state": state}, eras=(era,)) as connection:
        if taken:
            assert [tool.name for tool in await connection.list_tools()] == taken
            for name in skipped:
                with pytest.raises(PeerError, match=f"Unknown tool: {name}") as caught:
                    await connection.call_tool(name, {"orderId": "ORD-10001"})
                assert caught.value.code == -32602
        else:
            assert connection.server_capabilities.tools is None
    *warnings, last = service.log.records("mcpcore.registry")
    assert last.text == summary and last.level == ("INFO" if taken else "WARNING")
    assert [tuple(warning.reasons) for warning in warnings] == reasons
    for name, warning in zip(skipped, warnings, strict=True):
        assert (warning.level, warning.kind, warning.handler_name) == ("WARNING", "tool", name)
        assert f"'{name}'" in warning.text and f"OrderTools.{name}" in warning.text and ".py:" in warning.text
        assert f"type='{type}'" in warning.text or state in warning.text


async def test_contexts_that_may_be_none_work_in_a_stateless_server(service: Service) -> None:
    setup = {"variant": "optional contexts", "state": "stateless"}
    told: list[float] = []
    async with service.client(setup, eras=("legacy",), elicitation=User()) as connection:
        assert len(await connection.list_tools()) == 6
        result = await call(connection, "C1", on_progress=lambda value, *_: told.append(value))
        assert result["structuredContent"] == {"checked": 1, "delivered": []} and told == []
        assert_same(await call(connection, "D5"), expected("D5"))
    async with service.client(setup, eras=("modern",), elicitation=User()) as connection:
        await call(connection, "C2", on_progress=lambda value, *_: told.append(value))
        assert told == list(range(1, 58))
        assert (await call(connection, "D1"))["structuredContent"]["cancelled"] is True


# -- cancelled while it asks -------------------------------------------------------------------------------------------


async def test_cancelling_while_the_user_is_asked_changes_nothing(example: ModuleType) -> None:
    shop = Shop(example)
    async with connected(shop.server) as peer:
        await peer.initialize(LEGACY, elicitation={})
        id = await peer.start("tools/call", {"name": "cancel_order", "arguments": {"orderId": "ORD-10004"}}, era=LEGACY)
        asked = await peer.receive()
        assert asked["method"] == "elicitation/create"
        await peer.notify("notifications/cancelled", {"requestId": id})
        assert (await peer.receive())["method"] == "notifications/cancelled"
        assert await peer.is_quiet()
        assert shop.orders.get("ORD-10004").status == "PROCESSING"
        answer = await peer.call("get_order", {"orderId": "ORD-10004"}, era=LEGACY)
        assert json.loads(answer["result"]["content"][0]["text"])["status"] == "PROCESSING"


async def test_a_call_that_is_given_up_while_the_user_is_asked_changes_nothing_and_the_next_one_works(
    service: Service, era: str
) -> None:
    asked, abandoned = anyio.Event(), anyio.Event()

    async def hesitate(params: ElicitParams) -> Any:
        asked.set()
        try:
            await anyio.sleep_forever()
        finally:
            abandoned.set()

    async with service.client(eras=(era,), elicitation=hesitate) as connection:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, connection, "D1")
            await asked.wait()
            tasks.cancel_scope.cancel()
        await abandoned.wait()
        result = await connection.call_tool("get_order", {"orderId": "ORD-10004"})
        assert result.structured["status"] == "PROCESSING"
    if service.shop is not None:
        assert service.shop.orders.history["ORD-10004"] == []


async def test_an_order_that_ships_while_the_user_thinks_is_not_cancelled(example: ModuleType) -> None:
    shop = Shop(example)

    def ship(params: ElicitParams) -> Any:
        shop.orders.move("ORD-10004", "SHIPPED", example.NOW)
        return {"confirm": True}

    with anyio.fail_after(10):
        for era in ("legacy", "modern"):
            async with Client(shop.server, eras=(era,), elicitation=ship) as connection:
                assert (await call(connection, "D1"))["isError"]
    assert shop.orders.get("ORD-10004").status == "SHIPPED"
