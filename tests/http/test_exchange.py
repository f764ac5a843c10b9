"""What one exchange costs and leaves behind, and what becomes of handlers that begin to wait late."""

import gc
from typing import Any

import anyio
import msgspec
import pytest

from mcpcore import Server
from mcpcore.types.utilities import InputRequest, InputRequiredResult
from tests.support.asgi import LEGACY, POST, Caller, encoded, initialize, modern, request
from tests.support.world import World

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("name", ["add", "steps"])
async def test_an_exchange_leaves_nothing_that_only_the_garbage_collector_could_free(name: str) -> None:
    world = World()
    world.release.set()
    call = Caller(world.server.http_app())
    body, headers = modern("tools/call", {"name": name, "arguments": {"a": 1, "b": 2} if name == "add" else {}})
    await call.post(body, headers)  # what is made once is made here
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        assert (await call.post(body, headers)).status == 200
        gc.collect()
        left = {type(each).__qualname__ for each in gc.garbage if type(each).__module__.startswith("mcpcore")}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert left == set()


async def test_a_handler_that_waits_only_because_it_wants_input_is_cancelled_with_its_request() -> None:
    server = Server("late")
    runs: list[Any] = []

    @server.tool
    async def ask() -> Any:
        runs.append(1)
        form = {"mode": "form", "message": "Really?", "requestedSchema": {"type": "object", "properties": {}}}
        return InputRequiredResult({"q": InputRequest("elicitation/create", msgspec.Raw(encoded(form)))})

    call = Caller(server.http_app())
    opened = await call.post(initialize(capabilities={"elicitation": {}}))
    session = {"mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": LEGACY}
    await call.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, session)
    async with call.open(
        "POST", headers={**POST, **session}, body=encoded(request("tools/call", {"name": "ask"}, 7))
    ) as response:
        await response.wait_for(lambda each: each.messages)
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
        assert (await call.post(cancelled, session)).status == 202
        with anyio.fail_after(5):
            await response.wait_for(lambda each: each.is_complete)
    assert [message.get("method") for message in response.messages] == ["elicitation/create"]
    assert len(runs) == 1
