"""Runs where the official SDK 2 is installed: drives a server through its client and prints what it saw, as JSON.

Usage: official_client_2.py MODE COMMAND [ARGUMENT …] or official_client_2.py MODE URL. A URL that ends with ``/sse`` is one of
HTTP+SSE.
"""
# ruff: noqa: ASYNC110 - this client has nothing to wait for
# mypy: ignore-errors
# pyright: basic

import json
import sys
import warnings
from typing import Any

import anyio
from mcp import types
from mcp.client import Client
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

warnings.simplefilter("ignore")

asked: list[str] = []
logged: list[Any] = []
changed: list[str] = []


async def elicit(context: Any, params: Any) -> Any:
    asked.append(f"elicitation: {params.message}")
    wanted = params.requested_schema["properties"]
    return types.ElicitResult(
        action="accept", content={"seats": 3, "window": True} if "seats" in wanted else {next(iter(wanted)): True}
    )


async def sample(context: Any, params: Any) -> Any:
    asked.append(f"sampling: {params.messages[0].content.text} ({params.max_tokens})")
    return types.CreateMessageResult(
        role="assistant", content=types.TextContent(type="text", text="profound"), model="test-model"
    )


async def roots(context: Any) -> Any:
    asked.append("roots")
    return types.ListRootsResult(roots=[types.Root(uri="file:///work"), types.Root(uri="file:///home")])


async def on_log(params: Any) -> None:
    logged.append([params.level, params.logger, params.data])


async def on_message(message: Any) -> None:
    method = getattr(message, "method", type(message).__name__)
    if method not in ("notifications/message", "notifications/progress"):
        changed.append(method)


def dump(model: Any) -> Any:
    return model and model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def error_of(awaitable: Any) -> Any:
    try:
        return {"result": dump(await awaitable)}
    except MCPError as error:
        return {"code": error.error.code, "message": error.error.message}


def target(command: str, arguments: Any) -> Any:
    if command.endswith("/sse"):
        return sse_client(command)
    return command if "://" in command else StdioServerParameters(command=command, args=list(arguments))


async def main(mode: str, command: str, *arguments: str) -> None:
    report: dict[str, Any] = {}
    client = Client(
        target(command, arguments),
        mode=mode,
        elicitation_callback=elicit,
        sampling_callback=sample,
        list_roots_callback=roots,
        logging_callback=on_log,
        message_handler=on_message,
        log_level="info" if mode != "legacy" else None,
        read_timeout_seconds=30,
    )
    async with client:
        report["version"] = client.session.protocol_version
        report["server"] = dump(client.session.server_info)
        report["instructions"] = client.session.instructions
        report["tools"] = dump(await client.list_tools())["tools"]
        report["resources"] = dump(await client.list_resources())["resources"]
        report["templates"] = dump(await client.list_resource_templates())["resourceTemplates"]
        report["prompts"] = dump(await client.list_prompts())["prompts"]

        calls = {
            "add": {"a": 2, "b": 40}, "greet": {"name": "Ada", "style": "long"}, "locate": {"x": 1, "y": 2.5}, "picture": {},
            "sound": {}, "mixed": {}, "book": {}, "confirm": {}, "think": {"topic": "time"}, "folders": {},
        }  # fmt: skip
        report["calls"] = {name: dump(await client.call_tool(name, arguments)) for name, arguments in calls.items()}
        report["asked"] = asked

        report["errors"] = {
            "tool": await error_of(client.call_tool("fail", {"how": "tool"})),
            "crash": await error_of(client.call_tool("fail", {"how": "crash"})),
            "unknown tool": await error_of(client.call_tool("no_such_tool", {})),
            "missing argument": await error_of(client.call_tool("add", {})),
            "wrong type": await error_of(client.call_tool("add", {"a": "x"})),
            "unknown argument": await error_of(client.call_tool("add", {"a": 1, "c": 2})),
            "unknown resource": await error_of(client.read_resource("ours://nothing")),
            "unknown prompt": await error_of(client.get_prompt("nothing", {})),
        }

        progress: list[Any] = []

        async def on_progress(done: float, total: float | None, message: str | None) -> None:
            progress.append([done, total, message])

        result = await client.call_tool("steps", {"count": 5}, progress_callback=on_progress)
        report["steps"] = result.content[0].text
        with anyio.move_on_after(5):
            while len(progress) < 5 or len(logged) < 5:
                await anyio.sleep(0.01)
        report["progress"], report["logged"] = progress, logged

        with anyio.move_on_after(0.3):
            await client.call_tool("sleep", {"seconds": 600})
        try:
            await client.call_tool("sleep", {"seconds": 600}, read_timeout_seconds=0.2)
        except MCPError as error:
            report["timeout"] = error.error.code
        with anyio.move_on_after(10):
            while (running := (await client.call_tool("count_running", {})).content[0].text) != "0":
                await anyio.sleep(0.01)
        report["running after cancellation"] = running

        report["read"] = {
            uri: dump(await client.read_resource(uri))["contents"]
            for uri in ("ours://note", "ours://bytes", "ours://user/ada")
        }
        report["prompt"] = dump(await client.get_prompt("review", {"code": "x = 1", "strict": "true"}))["messages"]
        completion = await client.complete(
            types.PromptReference(type="ref/prompt", name="review"), {"name": "code", "value": "p"}
        )
        report["completion"] = dump(completion)["completion"]

        if report["version"] < "2026":
            await client.send_ping()
            await client.set_logging_level("error")
            await client.subscribe_resource("ours://note")
            await client.call_tool("change", {})
            with anyio.move_on_after(5):
                while len(set(changed)) < 2:
                    await anyio.sleep(0.01)
        else:
            events: set[str] = set()
            async with client.listen(tools_list_changed=True, resource_subscriptions=["ours://note"]) as subscription:
                await client.call_tool("change", {})
                with anyio.move_on_after(5):
                    async for event in subscription:
                        events.add(type(event).__name__)
                        if len(events) == 2:
                            break
                    while len(set(changed)) < 2:
                        await anyio.sleep(0.01)
            report["events"] = sorted(events)
        report["changed"] = sorted(set(changed))
        report["tools after the change"] = len((await client.list_tools(cache_mode="bypass")).tools)
    print(json.dumps(report))


anyio.run(main, *sys.argv[1:])
