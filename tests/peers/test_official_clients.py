"""Clients of the official SDKs, in every mode and over every transport, use a server of ours."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.installs import official_sdk, typescript_client
from tests.support.serving import Service, free_port

pytestmark = [pytest.mark.peers, pytest.mark.timeout(120, func_only=True)]

HERE = Path(__file__).parent
SERVER = str(HERE / "our_server.py")
MODES: Final = {
    # client: how it is told to connect
    "python-1": "legacy",
    "python-2": "auto",
    "python-2-legacy": "legacy",
    "python-2-modern": "2026-07-28",
    "typescript-2": "auto",
    "typescript-2-legacy": "legacy",
    "typescript-2-modern": "2026-07-28",
}
CONNECTIONS: Final = [
    f"{client} {transport}"
    for transport in ("stdio", "http", "sse")
    for client in MODES
    if not (client.endswith("modern") and transport == "sse")  # which is older than that
]


@pytest.fixture(scope="module", params=CONNECTIONS)
def seen(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What one client has seen: the report of its script, and under ``client`` and ``mode`` how it connected."""
    client, transport = request.param.split()
    if transport == "stdio":
        report = run(client, sys.executable, SERVER)
    else:
        port = free_port()
        with Service([sys.executable, SERVER, transport, str(port)], port) as service:
            report = run(client, f"{service.origin}/{'sse' if transport == 'sse' else 'mcp'}")
            service.stop()
        assert service.said.count("Traceback") == 1, service.said  # of the tool that fails unexpectedly
    return {**report, "client": client, "mode": "legacy" if transport == "sse" else MODES[client]}


def run(client: str, *target: str) -> dict[str, Any]:
    if client.startswith("typescript"):
        command = typescript_client(HERE / "typescript_client.mjs")
    else:
        generation = client.split("-")[1]
        command = [official_sdk(generation), str(HERE / f"official_client_{generation}.py")]
    done = subprocess.run(
        [*command, MODES[client], *target],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def modern(seen: dict[str, Any]) -> bool:
    return bool(seen["mode"] != "legacy")


def text(result: dict[str, Any]) -> str:
    assert [block["type"] for block in result["content"]] == ["text"]
    return str(result["content"][0]["text"])


def test_it_agrees_on_the_newest_revision_that_it_can_speak(seen: dict[str, Any]) -> None:
    assert seen["version"] == ("2026-07-28" if modern(seen) else "2025-11-25")
    if seen["mode"] != "2026-07-28":  # a client that is told the revision does not ask who is there
        assert (seen["server"]["name"], seen["server"]["title"], seen["server"]["version"]) == ("ours", "Ours", "1.2.3")
        assert seen["instructions"] == "Call the tools."


def test_it_sees_the_tools_with_their_schemas(seen: dict[str, Any]) -> None:
    tools = {tool["name"]: tool for tool in seen["tools"]}
    assert len(tools) == 15
    assert tools["add"]["title"] == "Add numbers"
    assert tools["add"]["description"] == "Add two numbers."
    assert tools["add"]["inputSchema"] == {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "description": "First"},
            "b": {"type": "integer", "description": "Second", "default": 1},
        },
        "required": ["a"],
        "additionalProperties": False,
    }
    assert tools["add"]["annotations"]["readOnlyHint"] is True
    assert tools["greet"]["inputSchema"]["properties"]["style"]["enum"] == ["short", "long"]
    assert tools["locate"]["outputSchema"]["required"] == ["x", "y"]
    assert "outputSchema" not in tools["add"]
    assert "sure" not in tools["confirm"]["inputSchema"]["properties"]


def test_it_gets_results_of_every_kind(seen: dict[str, Any]) -> None:
    calls = seen["calls"]
    assert not any(result["isError"] for result in calls.values())
    assert text(calls["add"]) == "42"
    assert text(calls["greet"]) == "Good afternoon, Ada"
    assert calls["locate"]["structuredContent"] == {"x": 1.0, "y": 2.5, "label": "here"}
    assert json.loads(text(calls["locate"])) == calls["locate"]["structuredContent"]
    (image,) = calls["picture"]["content"]
    assert (image["type"], image["mimeType"], image["data"][:8]) == ("image", "image/png", "iVBORw0K")
    (audio,) = calls["sound"]["content"]
    assert (audio["type"], audio["mimeType"]) == ("audio", "audio/wav")
    first, embedded, link = calls["mixed"]["content"]
    assert first == {"type": "text", "text": "first"}
    assert embedded["resource"] == {"uri": "ours://note", "mimeType": "text/plain", "text": "noted"}
    assert (link["type"], link["uri"], link["name"]) == ("resource_link", "ours://note", "note")


def test_it_is_asked_and_its_answers_arrive(seen: dict[str, Any]) -> None:
    calls = seen["calls"]
    assert text(calls["book"]) == "3 seats, window: True"
    assert text(calls["confirm"]) == "sure: True"
    assert text(calls["think"]) == "test-model: profound"
    assert json.loads(text(calls["folders"])) == ["file:///work", "file:///home"]
    assert seen["asked"] == [
        "elicitation: How many seats?",
        "elicitation: Are you sure?",
        "sampling: Say something about time. (50)",
        "roots",
    ]


def test_it_understands_errors(seen: dict[str, Any]) -> None:
    errors = seen["errors"]
    for name, words in {
        "tool": "it did not work",
        "crash": "Error invoking method: fail",
        "missing argument": "/a: required property not found",
        "wrong type": "/a: string found, integer expected",
        "unknown argument": "/c: unexpected property",
    }.items():
        assert errors[name]["result"]["isError"] is True
        assert words in text(errors[name]["result"])
    assert errors["unknown tool"] == {"code": -32602, "message": "Unknown tool: no_such_tool"}
    assert errors["unknown prompt"] == {"code": -32602, "message": "Unknown prompt: nothing"}
    renumbers = seen["client"].startswith("typescript")  # this one gives users the newer code in either era
    assert errors["unknown resource"]["code"] == (-32602 if modern(seen) or renumbers else -32002)


def test_it_is_told_progress_and_log_messages_in_order(seen: dict[str, Any]) -> None:
    assert seen["steps"] == "done"
    assert sorted(seen["progress"]) == [[step, 5, f"step {step}"] for step in range(1, 6)]
    assert seen["logged"] == [["info", "steps", f"at step {step}"] for step in range(1, 6)]


def test_calls_that_it_cancels_end(seen: dict[str, Any]) -> None:
    assert "timeout" in seen
    assert seen["running after cancellation"] == "0"


def test_it_reads_resources(seen: dict[str, Any]) -> None:
    assert [resource["uri"] for resource in seen["resources"]] == ["ours://note", "ours://bytes"]
    assert [template["uriTemplate"] for template in seen["templates"]] == ["ours://user/{name}"]
    read = seen["read"]
    assert read["ours://note"] == [{"uri": "ours://note", "mimeType": "text/plain", "text": "noted"}]
    assert [contents["blob"] for contents in read["ours://bytes"]] == ["+/8A/g=="]
    assert [json.loads(contents["text"]) for contents in read["ours://user/ada"]] == [{"name": "ada"}]


def test_it_gets_prompts_and_completions(seen: dict[str, Any]) -> None:
    (prompt,) = seen["prompts"]
    assert [(argument["name"], argument["required"]) for argument in prompt["arguments"]] == [
        ("code", True),
        ("strict", False),
    ]
    assert seen["prompt"] == [{"role": "user", "content": {"type": "text", "text": "Review x = 1, strictly"}}]
    assert seen["completion"]["values"] == ["python", "pascal"]


def test_it_is_told_of_changes(seen: dict[str, Any]) -> None:
    assert seen["changed"] == ["notifications/resources/updated", "notifications/tools/list_changed"]
    assert seen["tools after the change"] == 16
    if "events" in seen:
        assert seen["events"] == ["ResourceUpdated", "ToolsListChanged"]
