"""FastMCP's client, and an agent of Pydantic AI, use a server of ours over HTTP."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.installs import agents
from tests.support.serving import Service, free_port

pytestmark = [pytest.mark.peers, pytest.mark.timeout(120, func_only=True)]

HERE: Final = Path(__file__).parent
VERSIONS: Final = {"auto http": "2026-07-28", "legacy http": "2025-11-25", "auto sse": "2025-11-25"}


@pytest.fixture(scope="module", params=VERSIONS)
def seen(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What they have seen, and under ``expected`` which revision they had to agree on."""
    mode, transport = request.param.split()
    port = free_port()
    with Service([sys.executable, str(HERE / "our_server.py"), transport, str(port)], port) as service:
        url = f"{service.origin}/{'sse' if transport == 'sse' else 'mcp'}"
        done = subprocess.run(
            [agents(), str(HERE / "agent_clients.py"), mode, url],
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        service.stop()
    assert "Traceback" not in service.said, service.said
    return {**json.loads(done.stdout), "expected": VERSIONS[request.param]}


def test_fastmcp_lists_calls_and_reads(seen: dict[str, Any]) -> None:
    fastmcp = seen["fastmcp"]
    assert fastmcp["version"] == seen["expected"]
    assert len(fastmcp["tools"]) == 15
    assert fastmcp["add"] == "42"
    assert fastmcp["locate"] == [{"x": 1.0, "y": 2.5, "label": "here"}, "here"]
    assert (fastmcp["note"], fastmcp["prompt"]) == ("noted", "Review x = 1")


def test_fastmcp_is_asked_and_told(seen: dict[str, Any]) -> None:
    fastmcp = seen["fastmcp"]
    assert fastmcp["book"] == "3 seats, window: True"
    assert fastmcp["think"].endswith(": profound")
    assert json.loads(fastmcp["folders"]) == ["file:///work"]
    assert fastmcp["asked"] == ["How many seats?", "Say something about time."]
    assert fastmcp["steps"] == "done"
    assert fastmcp["progress"] == [[step, 3, f"step {step}"] for step in (1, 2, 3)]
    assert "it did not work" in fastmcp["fail"]


def test_an_agent_calls_tools_with_arguments_that_their_schemas_allow(seen: dict[str, Any]) -> None:
    returned = seen["pydantic_ai"]
    assert returned.keys() == {"add", "greet", "locate", "mixed"}
    assert returned["add"].isdecimal() and returned["greet"].startswith("Hi ")
    assert json.loads(returned["locate"])["label"] == "here"
    assert json.loads(returned["mixed"])[0] == "first"
