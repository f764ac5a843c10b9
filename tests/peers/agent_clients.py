"""Runs where FastMCP's client and Pydantic AI are installed: uses a server through both, and prints what they saw, as JSON.

Usage: agent_clients.py {auto|legacy} URL
"""
# mypy: ignore-errors
# pyright: basic

import json
import sys
import warnings
from typing import Any

import anyio
from fastmcp.client import Client
from fastmcp.exceptions import ToolError
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ToolReturnPart
from pydantic_ai.models.test import TestModel

warnings.simplefilter("ignore")


async def fastmcp(mode: str, url: str) -> dict[str, Any]:
    asked: list[str] = []
    logged: list[Any] = []
    progress: list[Any] = []

    async def elicit(message: str, response_type: Any, params: Any, context: Any) -> Any:
        asked.append(message)
        return response_type(seats=3, window=True)

    async def sample(messages: Any, params: Any, context: Any) -> str:
        asked.append(messages[0].content.text)
        return "profound"

    async def on_log(message: Any) -> None:
        logged.append(message.data)

    async def on_progress(done: float, total: float | None, message: str | None) -> None:
        progress.append([done, total, message])

    client = Client(
        url, mode=mode, elicitation_handler=elicit, sampling_handler=sample, log_handler=on_log, roots=["file:///work"]
    )
    async with client:
        report: dict[str, Any] = {"version": client.protocol_version}
        report["tools"] = [tool.name for tool in await client.list_tools()]
        report["add"] = (await client.call_tool("add", {"a": 2, "b": 40})).content[0].text
        located = await client.call_tool("locate", {"x": 1, "y": 2.5})
        report["locate"] = [located.structured_content, located.data.label]
        report["book"] = (await client.call_tool("book")).content[0].text
        report["think"] = (await client.call_tool("think", {"topic": "time"})).content[0].text
        report["folders"] = (await client.call_tool("folders")).content[0].text
        report["asked"] = asked
        try:
            await client.call_tool("fail", {"how": "tool"})
        except ToolError as error:
            report["fail"] = str(error)
        steps = await client.call_tool("steps", {"count": 3}, progress_handler=on_progress)
        report["steps"] = steps.content[0].text
        report["progress"] = progress
        report["note"] = (await client.read_resource("ours://note"))[0].text
        report["prompt"] = (await client.get_prompt("review", {"code": "x = 1"})).messages[0].content.text
    return report


async def pydantic_ai(url: str) -> dict[str, Any]:
    """Let an agent call the tools that need no user, with the arguments that a model without a mind makes up."""
    agent = Agent(TestModel(call_tools=["add", "greet", "locate", "mixed"]), toolsets=[MCPToolset(url)])
    async with agent:
        run = await agent.run("Call the tools.")
    returned = [part for message in run.all_messages() for part in message.parts if isinstance(part, ToolReturnPart)]
    return {part.tool_name: part.model_response_str() for part in returned}


async def main(mode: str, url: str) -> None:
    print(json.dumps({"fastmcp": await fastmcp(mode, url), "pydantic_ai": await pydantic_ai(url)}))


anyio.run(main, *sys.argv[1:])
