"""A server made of a few lines that a test gives: they run for each message. Usage: odd_server.py CODE.

The code sees ``message`` and its ``method``; ``answer(result)`` and ``fail(code)`` answer it, ``send(message)`` and ``write(bytes)``
send anything, ``open_session()`` answers ``initialize``, and ``state`` is kept between messages.
"""

import json
import os  # noqa: F401 - for the code
import sys
from typing import Any

message: dict[str, Any] = {}
state: dict[str, Any] = {}


def write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def send(message: Any) -> None:
    write(json.dumps(message).encode() + b"\n")


def answer(result: Any) -> None:
    send({"jsonrpc": "2.0", "id": message["id"], "result": result})


def fail(code: int) -> None:
    send({"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": f"failed with {code}"}})


def open_session(version: str = "2025-11-25") -> None:
    answer({
        "protocolVersion": version,
        "capabilities": {"tools": {}, "logging": {}, "resources": {}, "prompts": {}},
        "serverInfo": {"name": "odd", "version": "1"},
    })  # fmt: skip


def legacy(version: str = "2025-11-25") -> None:
    """Do what servers do that know the handshake and nothing else."""
    if message["method"] == "initialize":
        open_session(version)
    elif "id" in message:
        fail(-32601)


code = compile(sys.argv[1], "<code>", "exec")
for line in sys.stdin:
    message = json.loads(line)
    exec(code, {**globals(), "message": message, "method": message.get("method")})  # noqa: S102 - a test says what
