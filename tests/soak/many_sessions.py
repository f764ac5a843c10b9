"""Uses an endpoint in this process for long, and prints what that costs in memory, as JSON: see test_memory.py."""

import ctypes
import gc
import json
import resource
from pathlib import Path
from typing import Any, Final

import anyio

from mcpcore import Context, Limits, Server

ROUNDS: Final = 5
SESSIONS: Final = 10_000
CALLS: Final = 10_000

INITIALIZE: Final = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"sampling": {}, "elicitation": {}},
        "clientInfo": {"name": "client", "version": "1.0.0"},
    },
}
CALL: Final = {
    "jsonrpc": "2.0",
    "id": 2,
    "method": "tools/call",
    "params": {"name": "report", "arguments": {}, "_meta": {"progressToken": 1}},
}


def resident() -> int:
    """Bytes of memory that this process occupies, without what the allocator only keeps for later."""
    gc.collect()
    getattr(ctypes.CDLL(None), "malloc_trim", lambda _: 0)(0)
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()


class Endpoint:
    """An endpoint, and a client that has all the time in the world and no socket."""

    def __init__(self) -> None:
        self.now = 0.0
        self.server = Server("many", limits=Limits(session_idle=1.0, sessions=SESSIONS, events=100))

        @self.server.tool
        async def report(ctx: Context) -> str:
            """Report progress, which makes the answer a stream."""
            await ctx.progress(1, message="x" * 1000)
            return "x" * 1000

        self.app = self.server.http_app(clock=lambda: self.now)

    async def post(self, message: Any, **headers: str) -> dict[bytes, bytes]:
        """Post a message and return the headers of the answer."""
        body = json.dumps(message).encode()
        fields = {"host": "localhost", "content-type": "application/json", **headers}
        answer: dict[bytes, bytes] = {}

        chunks = [body]

        async def receive() -> dict[str, Any]:
            if not chunks:
                await anyio.sleep_forever()
            return {"type": "http.request", "body": chunks.pop()}

        async def send(sent: Any) -> None:
            if sent["type"] == "http.response.start":
                assert sent["status"] in (200, 202), sent
                answer.update(sent["headers"])

        scope = {
            "type": "http",
            "method": "POST",
            "path": "/mcp",
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in fields.items()],
            "client": ("127.0.0.1", 1),
        }
        await self.app(scope, receive, send)
        return answer

    async def open(self, count: int) -> str:
        """Open sessions and return the id of the last one."""
        for _ in range(count):
            answer = await self.post(INITIALIZE)
        return answer[b"mcp-session-id"].decode()


async def main() -> None:
    endpoint = Endpoint()
    await endpoint.open(500)
    before = resident()
    await endpoint.open(5000)
    report: dict[str, Any] = {"bytes of a session": (resident() - before) / 5000}

    rounds: list[int] = []
    for _ in range(ROUNDS):
        endpoint.now += 2.0
        await endpoint.open(SESSIONS)
        assert len(endpoint.app.sessions) == SESSIONS
        rounds.append(resident())
    report["resident after each round of sessions"] = rounds

    endpoint.now += 2.0
    id = await endpoint.open(1)
    initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    await endpoint.post(initialized, **{"mcp-session-id": id})
    rounds = []
    for _ in range(ROUNDS):
        for _ in range(CALLS // ROUNDS):
            await endpoint.post(CALL, **{"mcp-session-id": id, "mcp-protocol-version": "2025-11-25"})
        rounds.append(resident())
    report["resident after each round of calls"] = rounds
    print(json.dumps(report))
    await endpoint.app.aclose()


if __name__ == "__main__":
    anyio.run(main)
