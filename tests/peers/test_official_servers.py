"""Our client, on both event loops and in both eras, uses servers made with the official Python SDK."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcpcore import Client, PeerError, RequestTimeout, stdio
from mcpcore.types import CreateMessageParams, ElicitParams, LogMessageParams, PromptReference, TextContent
from tests.support.installs import official_sdk

pytestmark = [pytest.mark.peers, pytest.mark.anyio, pytest.mark.timeout(120, func_only=True)]

HERE = Path(__file__).parent
LIMIT = 60


class Application:
    """What stands behind a client: it answers the server's questions and writes down what it is told."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.logged: list[tuple[str, Any]] = []
        self.told: list[str] = []
        self.progress: list[tuple[float, float | None, str | None]] = []

    async def elicit(self, params: ElicitParams) -> dict[str, Any]:
        self.asked.append(params.message)
        return {"seats": 3, "window": True}

    async def sample(self, params: CreateMessageParams) -> str:
        block = params.messages[0].content
        assert isinstance(block, TextContent)
        self.asked.append(f"{block.text} ({params.max_tokens})")
        return "profound"

    def on_log(self, params: LogMessageParams) -> None:
        self.logged.append((params.level, params.data))

    def on_notification(self, method: str, params: Any) -> None:
        self.told.append(method)

    def on_progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.progress.append((progress, total, message))


@pytest.fixture(params=["1", "2-modern", "2-legacy"], name="which")
def fixture_which(request: pytest.FixtureRequest) -> str:
    """Which generation of the SDK; the newer one speaks both eras."""
    which: str = request.param
    official_sdk(which[0])
    return which


@asynccontextmanager
async def connected(which: str) -> AsyncGenerator[tuple[Client, Application]]:
    application = Application()
    target = stdio(official_sdk(which[0]), str(HERE / f"official_server_{which[0]}.py"), stderr=lambda line: None)
    eras: tuple[Any, ...] = ("legacy",) if which == "2-legacy" else ("modern", "legacy")
    with anyio.fail_after(LIMIT):
        async with Client(
            target,
            eras=eras,
            elicitation=application.elicit,
            sampling=application.sample,
            roots=["file:///work", "file:///home"],
            on_log=application.on_log,
            on_notification=application.on_notification,
        ) as client:
            yield client, application


async def test_the_newest_revision_is_chosen_and_lists_calls_and_errors_come_through(which: str) -> None:
    async with connected(which) as (client, _):
        assert client.protocol_version == ("2026-07-28" if which == "2-modern" else "2025-11-25")
        assert client.server_info is not None and client.server_info.name == "theirs"
        assert client.instructions == "Call the tools."

        tools = {tool.name: tool for tool in await client.list_tools()}
        assert tools["add"].description == "Add two numbers."
        assert tools["add"].input_schema["required"] == ["a"]
        assert (await client.call_tool("add", {"a": 2, "b": 40})).text == "42"
        assert (await client.call_tool("locate", {"x": 1, "y": 2.5})).structured == {"x": 1.0, "y": 2.5}
        failed = await client.call_tool("fail")
        assert failed.is_error and "fail" in failed.text
        assert (await client.call_tool("no_such_tool")).is_error  # an error of the tool, they say
        with pytest.raises(PeerError):
            await client.read_resource("theirs://nothing")


async def test_progress_and_log_messages_come_in_order_and_questions_are_answered(which: str) -> None:
    async with connected(which) as (client, application):
        if which == "2-modern":  # in the other era they send all, and do not declare that it can be set
            await client.set_log_level("info")
        result = await client.call_tool("steps", {"count": 5}, on_progress=application.on_progress)
        assert result.text == "done"
        assert application.progress == [(step, 5, f"step {step}") for step in range(1, 6)]
        while len(application.logged) < 5:
            await anyio.lowlevel.checkpoint()
        assert application.logged == [("info", f"at step {step}") for step in range(1, 6)]

        assert (await client.call_tool("book")).text == "3 seats, window: True"
        assert (await client.call_tool("think", {"topic": "time"})).text == "unknown: profound"
        assert (await client.call_tool("folders")).text == "file:///work, file:///home"
        assert application.asked == ["How many seats?", "Say something about time. (50)"]


async def test_calls_that_time_out_end_at_the_server_and_the_other_kinds_come_through(which: str) -> None:
    async with connected(which) as (client, _):
        with pytest.raises(RequestTimeout):
            await client.call_tool("sleep", {"seconds": 600}, timeout=0.3)
        while (await client.call_tool("count_running")).text != "0":
            await anyio.lowlevel.checkpoint()

        assert [resource.uri for resource in await client.list_resources()] == ["theirs://note"]
        assert [template.uri_template for template in await client.list_resource_templates()] == [
            "theirs://user/{name}"
        ]
        assert [contents.text for contents in (await client.read_resource("theirs://note")).contents] == ["noted"]
        assert [contents.text for contents in (await client.read_resource("theirs://user/ada")).contents] == [
            "user ada"
        ]
        assert [prompt.name for prompt in await client.list_prompts()] == ["review"]
        (message,) = (await client.get_prompt("review", {"code": "x"})).messages
        assert isinstance(message.content, TextContent) and message.content.text == "Review x"
        assert (await client.complete(PromptReference("review"), "code", "p")).values == ["python", "pascal"]


async def test_changes_are_told(which: str) -> None:
    async with connected(which) as (client, application):
        before = len(await client.list_tools())
        if which == "2-modern":
            async with client.listen(tools=True):
                await client.call_tool("change")
                while not application.told:
                    await anyio.lowlevel.checkpoint()
        else:
            await client.call_tool("change")
            while not application.told:
                await anyio.lowlevel.checkpoint()
        assert application.told == ["notifications/tools/list_changed"]
        assert len(await client.list_tools()) == before + 1
        await client.ping()
