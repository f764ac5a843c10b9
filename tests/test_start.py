"""What the start of a server must not pay for: a host waits for it, each time."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

SERVER: Final = """
import sys
from mcpcore import Server
server = Server("start")

@server.tool
async def loaded(a: int, b: int = 1) -> str:
    "All that is loaded."
    return " ".join(sys.modules)

if __name__ == "__main__":
    server.run()
"""
HEAVY: Final = {
    *("cryptography", "h11", "httpcore", "httptools", "httpx", "httpx2", "hypercorn", "joserfc", "jsonschema_rs"),
    *("opentelemetry", "pydantic", "starlette", "trio", "uvicorn", "uvloop"),
}
NOT_FOR_PIPES: Final = ("mcpcore.auth", "mcpcore.bench", "mcpcore.runtime.workers", "mcpcore.transports.http")

CALL: Final[dict[str, Any]] = {"name": "loaded", "arguments": {"a": 1}}
META: Final = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "host", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
HANDSHAKE: Final = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "host", "version": "1"}}
CONVERSATIONS: Final[dict[str, list[dict[str, Any]]]] = {
    "legacy": [
        {"id": 0, "method": "initialize", "params": HANDSHAKE},
        {"method": "notifications/initialized"},
        {"id": 1, "method": "tools/list"},
        {"id": 2, "method": "tools/call", "params": CALL},
    ],
    "modern": [
        {"id": 0, "method": "server/discover", "params": {"_meta": META}},
        {"id": 1, "method": "tools/list", "params": {"_meta": META}},
        {"id": 2, "method": "tools/call", "params": {**CALL, "_meta": META}},
    ],
}


def run(*command: str, said: str = "") -> str:
    done = subprocess.run(
        [sys.executable, *command], input=said, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


def modules_after(era: str, *command: str) -> set[str]:
    """What a server has loaded once it has been opened, has listed its tools and runs one of them."""
    lines = [json.dumps({"jsonrpc": "2.0", **message}) for message in CONVERSATIONS[era]]
    last = run(*command, said="\n".join(lines) + "\n").splitlines()[-1]
    return set(json.loads(last)["result"]["content"][0]["text"].split())


@pytest.mark.parametrize("era", CONVERSATIONS)
def test_a_server_on_pipes_loads_nothing_but_itself_asyncio_anyio_and_msgspec(era: str) -> None:
    known = set(run("-c", "import sys, asyncio, anyio._backends._asyncio, msgspec; print(*sys.modules)").split())
    loaded = modules_after(era, "-c", SERVER)
    assert "mcpcore.runtime.server" in loaded
    assert {name for name in loaded - known if not name.startswith(("mcpcore", "anyio", "__editable__"))} == set()
    assert {name for name in loaded if name.startswith(NOT_FOR_PIPES)} == set()


@pytest.mark.parametrize("era", CONVERSATIONS)
def test_the_command_line_loads_nothing_heavy_to_serve_on_pipes(era: str, tmp_path: Path) -> None:
    target = tmp_path / "target.py"
    target.write_text(SERVER)
    loaded = modules_after(era, "-m", "mcpcore", "run", str(target))
    assert {name.partition(".")[0] for name in loaded} & HEAVY == set()
    assert {name for name in loaded if name.startswith(NOT_FOR_PIPES)} == set()
