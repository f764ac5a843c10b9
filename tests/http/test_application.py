"""What an HTTP application does beside the protocol: routes of the user's own, health, and coming to an end."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse

from mcpcore import Context, Server, TransportContext
from mcpcore.auth import ResourceServer, StaticTokenVerifier
from tests.support.asgi import POST, Caller, encoded, initialize, modern, request
from tests.support.world import World

pytestmark = pytest.mark.anyio

Make = Callable[..., Any]
APPS: list[Make] = [Server.http_app, Server.sse_app]
both_apps = pytest.mark.parametrize("make_app", APPS, ids=["http", "sse"])

AUTH = ResourceServer(StaticTokenVerifier({}), resource="https://mcp.example.com/mcp", authorization_servers=[])


class Life:
    """A lifespan that counts, and fails as often as it is told to."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.steps: list[str] = []

    async def __aenter__(self) -> str:
        if self.failures:
            self.failures -= 1
            raise RuntimeError("no database")
        self.steps.append("in")
        return "value"

    async def __aexit__(self, *exc_info: object) -> None:
        self.steps.append("out")


# -- routes of the user's own --------------------------------------------------------------------------------------


def with_routes(**options: Any) -> Server:
    server = Server("routes", **options)

    @server.custom_route("/orders/{id}", methods=["GET", "PUT"])
    async def order(request: Request) -> JSONResponse:
        return JSONResponse({"method": request.method, "id": request.path_params["id"]})

    @server.custom_route("/slow")
    def slow(request: Request) -> JSONResponse:
        return JSONResponse("from a thread")

    return server


@both_apps
@pytest.mark.parametrize("root", ["", "/api"])
async def test_routes_are_served_beside_the_endpoint_wherever_that_is_mounted(make_app: Make, root: str) -> None:
    call = Caller(make_app(with_routes()), root=root)
    assert (await call.call("GET", "/orders/7")).json() == {"method": "GET", "id": "7"}
    assert (await call.call("PUT", "/orders/7")).json() == {"method": "PUT", "id": "7"}
    assert (await call.call("HEAD", "/orders/7")).status == 200
    assert (await call.call("GET", "/slow")).json() == "from a thread"
    assert (await call.call("DELETE", "/orders/7")).status == 405
    missing = await call.call("GET", "/elsewhere")
    assert (missing.status, missing.json()["error"]["message"]) == (404, "Invalid Request: there is nothing here")


async def test_a_route_that_is_added_later_is_served_too() -> None:
    server = Server("routes")
    call = Caller(server.http_app())
    assert (await call.call("GET", "/late")).status == 404

    @server.custom_route("/late")
    async def late(request: Request) -> JSONResponse:
        return JSONResponse("late")

    assert (await call.call("GET", "/late")).json() == "late"


async def test_routes_need_no_token_and_no_page_of_another_origin_gets_to_them() -> None:
    call = Caller(with_routes(auth=AUTH).http_app())
    assert (await call.call("GET", "/orders/7")).status == 200
    assert (await call.call("GET", "/orders/7", headers={"origin": "https://evil.example.com"})).status == 403
    assert (await call.call("GET", "/orders/7", headers={"host": "evil.example.com"})).status == 403
    assert (await call.post(request("ping"))).status == 401


async def test_a_route_cannot_take_the_place_of_the_endpoint() -> None:
    server = Server("routes")

    @server.custom_route("/mcp", methods=["POST"])
    async def mcp(request: Request) -> JSONResponse:
        return JSONResponse("mine")

    message, fields = modern("server/discover")
    assert "result" in (await Caller(server.http_app()).post(message, fields)).json()


# -- health --------------------------------------------------------------------------------------------------------


@both_apps
async def test_health_is_told_only_where_that_was_asked_for(make_app: Make) -> None:
    for path in ("/livez", "/readyz"):
        assert (await Caller(make_app(Server("well"))).call("GET", path)).status == 404
        well = Caller(make_app(Server("well"), health=True))
        response = await well.call("GET", path)
        assert (response.status, response.body, response.headers["cache-control"]) == (200, b"ok", "no-store")
        assert (await well.call("HEAD", path)).body == b""
        assert (await well.call("POST", path)).status == 405


@both_apps
async def test_a_probe_needs_no_token_and_may_call_the_server_by_its_address(make_app: Make) -> None:
    call = Caller(make_app(Server("well", auth=AUTH), health=True), root="/api")
    for path in ("/livez", "/readyz", "/readyz/"):
        assert (await call.call("GET", path, headers={"host": "10.1.2.3:8000"})).status == 200


async def test_a_server_is_ready_once_it_has_started_and_a_probe_starts_it() -> None:
    life = Life(failures=1)
    app = Server("well", lifespan=lambda _: life).http_app(health=True)
    call = Caller(app)
    assert (await call.call("GET", "/readyz")).status == 503
    assert (await call.call("GET", "/livez")).status == 200 and life.steps == []
    assert (await call.call("GET", "/readyz")).status == 200 and life.steps == ["in"]
    await app.drain()
    assert (await call.call("GET", "/readyz")).status == 503
    assert (await call.call("GET", "/livez")).status == 200
    assert life.steps == ["in"]


# -- the end -------------------------------------------------------------------------------------------------------


async def test_draining_ends_every_stream_with_a_last_frame_and_answers_what_can_be_answered() -> None:
    world = World()
    app = world.server.http_app()
    call = Caller(app)
    session = await call.initialize()
    listen, listen_fields = modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id="sub")
    hold, hold_fields = modern("tools/call", {"name": "hold"}, id="held")
    async with (
        call.open("GET", headers={"accept": "text/event-stream", **session}) as standalone,
        call.open("POST", headers={**POST, **listen_fields}, body=encoded(listen)) as subscription,
        call.open("POST", headers={**POST, **hold_fields}, body=encoded(hold)) as held,
    ):
        await standalone.wait_for(lambda each: each.status)
        await subscription.wait_for(lambda each: each.messages)
        with anyio.fail_after(5):
            await world.started.wait()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(app.drain, 5.0)
                await standalone.wait_for(lambda each: each.is_complete)
                await subscription.wait_for(lambda each: each.is_complete)
                assert not held.is_complete
                refused = await call.post(*modern("server/discover"))
                assert (refused.status, refused.headers["retry-after"]) == (503, "1")
                world.release.set()
        assert subscription.messages[-1]["id"] == "sub" and "result" in subscription.messages[-1]
        assert held.json()["result"]["content"][0]["text"] == "released"


async def test_what_is_not_answered_by_the_deadline_is_given_up_and_told_so() -> None:
    world = World()
    app = world.server.http_app()
    call = Caller(app)
    message, fields = modern("tools/call", {"name": "hold"})
    async with call.open("POST", headers={**POST, **fields}, body=encoded(message)) as response:
        with anyio.fail_after(5):
            await world.started.wait()
            await app.drain(0)
        await response.wait_for(lambda each: each.is_complete)
        assert (response.status, response.headers["retry-after"]) == (503, "1")
        assert world.cancelled.is_set()


async def test_the_lifespan_is_left_once_whatever_comes_while_a_server_ends_and_can_be_entered_anew() -> None:
    life = Life()
    app = Server("ending", lifespan=lambda _: life).http_app()
    call = Caller(app)
    message, fields = modern("server/discover")
    assert (await call.post(message, fields)).status == 200
    await app.drain()
    assert (await call.post(message, fields)).status == 503
    assert life.steps == ["in"]
    await app.aclose()
    await app.aclose()
    assert life.steps == ["in", "out"]
    assert (await call.post(message, fields)).status == 200
    assert life.steps == ["in", "out", "in"]


@both_apps
async def test_draining_from_two_places_at_once_is_draining(make_app: Make) -> None:
    app = make_app(World().server)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(app.drain)
            tasks.start_soon(app.aclose)


# -- one JSON object for each request ------------------------------------------------------------------------------


def talkative() -> Server:
    server = Server("talkative")

    @server.tool
    async def report(ctx: Context, tc: TransportContext) -> str:
        """Say much."""
        await ctx.progress(1)
        await ctx.info("half way")
        return "done"

    @server.tool
    async def ask(ctx: Context) -> str:
        """Ask."""
        reply = await ctx.elicit("Well?", {"type": "object", "properties": {}})
        return "yes" if reply.accepted else "no"

    return server


async def test_a_server_may_answer_with_json_only() -> None:
    call = Caller(talkative().http_app(json_response=True))
    session = await call.initialize()
    legacy = request("tools/call", {"name": "report", "_meta": {"progressToken": 1}})
    message, fields = modern("tools/call", {"name": "report"}, progressToken=1)
    for response in (await call.post(legacy, session), await call.post(message, fields)):
        assert response.headers["content-type"] == "application/json"
        assert response.json()["result"]["content"][0]["text"] == "done"
    refused = await call.post(message, {**fields, "accept": "text/event-stream"})
    assert (refused.status, "application/json" in refused.json()["error"]["message"]) == (406, True)


async def test_where_only_json_is_answered_the_handler_asks_by_its_answer_or_is_told_that_it_cannot() -> None:
    call = Caller(talkative().http_app(json_response=True))
    capabilities: dict[str, Any] = {"elicitation": {}}
    opened = await call.post(initialize(capabilities=capabilities))
    session = {"mcp-session-id": opened.headers["mcp-session-id"]}
    told = (await call.post(request("tools/call", {"name": "ask"}), session)).json()["result"]
    assert told["isError"] and "takes one answer" in told["content"][0]["text"]
    message, fields = modern(
        "tools/call", {"name": "ask"}, **{"io.modelcontextprotocol/clientCapabilities": capabilities}
    )
    assert (await call.post(message, fields)).json()["result"]["resultType"] == "input_required"


@pytest.mark.parametrize("json_response", [True, False])
async def test_a_subscription_is_a_stream_or_refused(json_response: bool) -> None:
    server = talkative()
    call = Caller(server.http_app(json_response=json_response))
    message, fields = modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    refused = await call.post(message, {**fields, "accept": "application/json"})
    assert (refused.status, "text/event-stream" in refused.json()["error"]["message"]) == (406, True)
    async with call.open("POST", headers={**POST, **fields}, body=encoded(message)) as response:
        await response.wait_for(lambda each: each.messages)
        server.notify_tools_changed()
        await response.wait_for(lambda each: len(each.messages) == 2)


async def test_a_request_cannot_pass_for_a_subscription() -> None:
    call = Caller(talkative().http_app(json_response=True))
    message, fields = modern("tools/call", {"name": "report"}, progressToken=1)
    response = await call.post(message, {**fields, "mcp-method": "subscriptions/listen"})
    assert (response.status, response.json()["error"]["code"]) == (400, -32020)
    legacy = request("tools/call", {"name": "report", "_meta": {"progressToken": 1}})
    session = await call.initialize()
    response = await call.post(legacy, {**session, "mcp-method": "subscriptions/listen"})
    assert response.headers["content-type"] == "application/json"


async def test_the_stream_of_a_session_is_there_although_answers_are_json() -> None:
    server = talkative()
    call = Caller(server.http_app(json_response=True))
    session = await call.initialize()
    async with call.open("GET", headers={"accept": "text/event-stream", **session}) as response:
        await response.wait_for(lambda each: each.status)
        server.notify_tools_changed()
        await response.wait_for(lambda each: each.messages)
