"""Our client, on both event loops, uses servers that people run: two in Python, two in TypeScript."""

import json
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcpcore import Client, PeerError, stdio
from mcpcore.types import (
    CreateMessageParams,
    ElicitParams,
    EmbeddedResource,
    ImageContent,
    LogMessageParams,
    PromptReference,
    ResourceTemplateReference,
    TextContent,
)
from tests.support.installs import python_server, typescript_server

pytestmark = [pytest.mark.peers, pytest.mark.anyio, pytest.mark.timeout(120, func_only=True)]

LIMIT = 60


@asynccontextmanager
async def connected(*command: str, **options: Any) -> AsyncGenerator[Client]:
    with anyio.fail_after(LIMIT):
        async with Client(stdio(*command, stderr=lambda line: None), **options) as client:
            yield client


# -- mcp-server-time ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def time_server() -> str:
    return python_server("mcp-server-time")


async def test_time(time_server: str) -> None:
    async with connected(time_server, "--local-timezone", "UTC") as client:
        assert client.server_info is not None and client.server_info.name == "mcp-time"
        tools = {tool.name: tool for tool in await client.list_tools()}
        assert tools.keys() == {"get_current_time", "convert_time"}
        assert tools["get_current_time"].input_schema["required"] == ["timezone"]
        now = json.loads((await client.call_tool("get_current_time", {"timezone": "Asia/Tokyo"})).text)
        assert now["timezone"] == "Asia/Tokyo" and now["datetime"].endswith("+09:00")
        arguments = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        converted = json.loads((await client.call_tool("convert_time", arguments)).text)
        assert (converted["time_difference"], converted["target"]["datetime"][11:16]) == ("+9.0h", "21:00")
        failed = await client.call_tool("get_current_time", {"timezone": "Nowhere/Land"})
        assert failed.is_error and "Nowhere/Land" in failed.text


# -- mcp-server-git ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def git_server() -> str:
    return python_server("mcp-server-git")


@pytest.fixture
def repository(tmp_path: Path) -> str:
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "file.txt").write_text("one\n")

    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)

    git("init", "-b", "main")
    git("add", "file.txt")
    git("commit", "-m", "The first commit")
    (folder / "file.txt").write_text("one\ntwo\n")
    return str(folder)


async def test_git(git_server: str, repository: str) -> None:
    async with connected(git_server, "--repository", repository) as client:
        names = {tool.name for tool in await client.list_tools()}
        assert names >= {"git_status", "git_diff_unstaged", "git_log", "git_add", "git_commit", "git_show"}
        at = {"repo_path": repository}
        assert "modified:   file.txt" in (await client.call_tool("git_status", at)).text
        assert "+two" in (await client.call_tool("git_diff_unstaged", at)).text
        assert "The first commit" in (await client.call_tool("git_log", {**at, "max_count": 5})).text
        assert not (await client.call_tool("git_add", {**at, "files": ["file.txt"]})).is_error
        assert "+two" in (await client.call_tool("git_diff_staged", at)).text
        assert (await client.call_tool("git_show", {**at, "revision": "no-such-revision"})).is_error


# -- server-filesystem -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def filesystem_server() -> str:
    return typescript_server("mcp-server-filesystem")


async def test_filesystem(filesystem_server: str, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("first\nsecond\n")
    folder = str(tmp_path)
    async with connected(filesystem_server, folder) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        assert tools.keys() >= {"read_text_file", "write_file", "edit_file", "list_directory", "search_files"}
        assert (await client.call_tool("list_allowed_directories")).text.endswith(folder)
        assert "[FILE] note.txt" in (await client.call_tool("list_directory", {"path": folder})).text
        read = await client.call_tool("read_text_file", {"path": f"{folder}/note.txt"})
        assert read.text == "first\nsecond\n"
        written = await client.call_tool("write_file", {"path": f"{folder}/new.txt", "content": "ünï\n"})
        assert not written.is_error
        assert (tmp_path / "new.txt").read_text(encoding="utf-8") == "ünï\n"
        outside = await client.call_tool("read_text_file", {"path": "/etc/hostname"})
        assert outside.is_error and "denied" in outside.text


async def test_the_filesystem_server_takes_its_folders_from_our_roots(filesystem_server: str, tmp_path: Path) -> None:
    async with connected(filesystem_server, roots=[tmp_path.as_uri()]) as client:
        while str(tmp_path) not in (await client.call_tool("list_allowed_directories")).text:
            await anyio.lowlevel.checkpoint()


# -- server-everything -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def everything_server() -> str:
    return typescript_server("mcp-server-everything")


async def test_everything_tools(everything_server: str) -> None:
    async with connected(everything_server) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        assert tools.keys() >= {"echo", "get-sum", "get-tiny-image", "get-structured-content"}
        assert (await client.call_tool("echo", {"message": "hello"})).text == "Echo: hello"
        assert "42" in (await client.call_tool("get-sum", {"a": 2, "b": 40})).text
        image = await client.call_tool("get-tiny-image")
        assert any(isinstance(block, ImageContent) and block.mime_type == "image/png" for block in image.content)
        weather = await client.call_tool("get-structured-content", {"location": "Chicago"})
        assert weather.structured is not None and weather.structured.keys() == {"temperature", "conditions", "humidity"}
        assert (await client.call_tool("get-sum", {"a": "x", "b": 1})).is_error


async def test_everything_progress(everything_server: str) -> None:
    seen: list[tuple[float, float | None]] = []
    async with connected(everything_server) as client:
        result = await client.call_tool(
            "trigger-long-running-operation",
            {"duration": 1, "steps": 4},
            on_progress=lambda progress, total, message: seen.append((progress, total)),
        )
        assert not result.is_error
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


async def test_everything_questions(everything_server: str) -> None:
    asked: list[str] = []

    def sample(params: CreateMessageParams) -> str:
        block = params.messages[0].content
        asked.append(block.text if isinstance(block, TextContent) else repr(block))
        return "profound"

    def elicit(params: ElicitParams) -> dict[str, Any]:
        asked.append(params.message)
        properties = (params.requested_schema or {}).get("properties", {})
        return {"name": "Ada"} if "name" in properties else {}

    async with connected(everything_server, sampling=sample, elicitation=elicit, roots=["file:///work"]) as client:
        names = {tool.name for tool in await client.list_tools()}
        assert names >= {"trigger-sampling-request", "trigger-elicitation-request", "get-roots-list"}
        sampled = await client.call_tool("trigger-sampling-request", {"prompt": "Think!", "maxTokens": 20})
        assert "profound" in sampled.text
        elicited = await client.call_tool("trigger-elicitation-request")
        assert "Ada" in elicited.text
        roots = await client.call_tool("get-roots-list")
        assert "file:///work" in roots.text
    assert len(asked) == 2 and "Think!" in asked[0]


async def test_everything_resources_and_prompts(everything_server: str) -> None:
    async with connected(everything_server) as client:
        resources = await client.list_resources()
        assert resources
        contents = (await client.read_resource(resources[0].uri)).contents
        assert contents and contents[0].text
        templates = await client.list_resource_templates()
        assert templates
        prompts = {prompt.name: prompt for prompt in await client.list_prompts()}
        assert prompts.keys() >= {"simple-prompt", "args-prompt", "completable-prompt", "resource-prompt"}
        assert (await client.get_prompt("simple-prompt")).messages
        messages = (await client.get_prompt("args-prompt", {"city": "Paris"})).messages
        assert any(isinstance(each.content, TextContent) and "Paris" in each.content.text for each in messages)
        completion = await client.complete(PromptReference("completable-prompt"), "department", "E")
        assert "Engineering" in completion.values
        with pytest.raises(PeerError):
            await client.get_prompt("no-such-prompt")
        await client.complete(ResourceTemplateReference(templates[0].uri_template), "resourceId", "1")
        embedded = (await client.get_prompt("resource-prompt", {"resourceType": "Text", "resourceId": "1"})).messages
        assert any(isinstance(each.content, EmbeddedResource) for each in embedded)


async def test_everything_log_messages(everything_server: str) -> None:
    logged: list[LogMessageParams] = []
    async with connected(everything_server, on_log=logged.append) as client:
        await client.set_log_level("debug")
        await client.call_tool("toggle-simulated-logging")
        while not logged:
            await anyio.lowlevel.checkpoint()
    assert logged[0].level
