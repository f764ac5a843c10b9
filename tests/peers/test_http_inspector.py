"""The official Inspector's command line uses a server of ours, in every era and over every transport that it has."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.installs import inspector
from tests.support.serving import Service, free_port

pytestmark = [pytest.mark.peers, pytest.mark.timeout(120, func_only=True)]

SERVER: Final = str(Path(__file__).parent / "our_server.py")
CONNECTIONS: Final = [
    f"{era} {transport}"
    for transport in ("stdio", "http", "sse")
    for era in ("legacy", "auto", "modern")
    if (era, transport) != ("modern", "sse")  # which is older than that
]

Inspect = Callable[..., Any]
"""Runs it with these arguments, and returns the JSON that it prints."""


@pytest.fixture(scope="module", params=CONNECTIONS)
def inspect(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Inspect]:
    """What inspects a server over one of the connections."""
    era, transport = request.param.split()
    environment = {**os.environ, "HOME": str(tmp_path_factory.mktemp("home"))}  # it writes files there

    def run(target: list[str], arguments: tuple[str, ...]) -> Any:
        command = [*inspector(), *target, "--transport", transport, "--protocol-era", era, "--format", "json"]
        done = subprocess.run(
            [*command, *arguments], capture_output=True, text=True, timeout=60, check=False, env=environment
        )
        return json.loads(done.stdout or done.stderr.splitlines()[-1])

    if transport == "stdio":
        yield lambda *arguments: run([sys.executable, SERVER], arguments)
        return
    port = free_port()
    with Service([sys.executable, SERVER, transport, str(port)], port) as service:
        url = f"{service.origin}/{'sse' if transport == 'sse' else 'mcp'}"
        yield lambda *arguments: run([url], arguments)
        service.stop()
    assert "Traceback" not in service.said, service.said


def test_it_connects_in_the_era_that_it_was_told(inspect: Inspect, request: pytest.FixtureRequest) -> None:
    seen = inspect("--method", "initialize")["result"]
    assert seen["serverInfo"]["name"] == "ours" and seen["instructions"] == "Call the tools."
    legacy = {"legacy stdio", "legacy http", "legacy sse", "auto sse"}
    assert seen["protocolVersion"] == (
        "2025-11-25" if request.node.callspec.params["inspect"] in legacy else "2026-07-28"
    )


def test_it_lists_the_tools_and_finds_nothing_wrong_with_their_schemas(inspect: Inspect) -> None:
    tools = inspect("--method", "tools/list", "--strict")["result"]["tools"]
    assert {"add", "greet", "locate", "book"} <= {tool["name"] for tool in tools}


def test_it_calls_tools(inspect: Inspect) -> None:
    called = inspect("--method", "tools/call", "--tool-name", "add", "--tool-arg", "a=40", "b=2")["result"]
    assert called["content"] == [{"type": "text", "text": "42"}]
    failed = inspect("--method", "tools/call", "--tool-name", "fail", "--tool-arg", "how=tool")
    assert "it did not work" in json.dumps(failed)


def test_it_reads_resources_and_prompts(inspect: Inspect) -> None:
    read = inspect("--method", "resources/read", "--uri", "ours://user/ada")["result"]
    assert json.loads(read["contents"][0]["text"]) == {"name": "ada"}
    got = inspect("--method", "prompts/get", "--prompt-name", "review", "--prompt-args", "code=x")["result"]
    assert got["messages"][0]["content"]["text"] == "Review x"


def test_it_calls_a_tool_many_times_at_once(inspect: Inspect) -> None:
    load = ("--load", "--load-requests", "200", "--load-concurrency", "20")
    seen = inspect("--method", "tools/call", "--tool-name", "add", "--tool-arg", "a=1", *load)["result"]
    assert (seen["requests"], seen["ok"], seen["toolErrors"], seen["errors"]) == (200, 200, 0, 0)
