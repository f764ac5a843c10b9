"""A server process as its client sees it: lines in, lines out, an exit status. Everything is bounded, nothing sleeps."""

import json
import os
import queue
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Self

__all__ = ["LIMIT", "VERSION", "Program", "call", "initialize", "modern"]

LIMIT: Final = 20.0
"""Seconds for anything that a process does; more than any of it takes."""

VERSION: Final = "2025-11-25"


def initialize(id: Any = 0, version: Any = VERSION, **capabilities: Any) -> dict[str, Any]:
    """The request that opens a legacy session."""
    params = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": {"name": "test", "version": "1"}}
    return {"jsonrpc": "2.0", "id": id, "method": "initialize", "params": params}


def call(id: Any, name: str, arguments: Any = None, **members: Any) -> dict[str, Any]:
    """A ``tools/call`` of a legacy session."""
    return {
        "jsonrpc": "2.0",
        "id": id,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments or {}, **members},
    }


def modern(request: dict[str, Any], version: str = "2026-07-28", **capabilities: Any) -> dict[str, Any]:
    """The same request in the modern era."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    }
    params = request.get("params", {})
    return {**request, "params": {**params, "_meta": {**meta, **params.get("_meta", {})}}}


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


class Program:
    """A process that speaks lines of JSON on its standard streams. Killed at the end, if it has not ended by then.

    Args:
        command: What to run.
        env: Added to the environment, of which Python's own settings are left out.
        stdin: A file to read from, instead of what `send` writes.
        **options: For `subprocess.Popen`.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        stdin: Any = subprocess.PIPE,
        **options: Any,
    ) -> None:
        self.process: subprocess.Popen[bytes] = subprocess.Popen(
            command,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**_environment(), **(env or {})},
            **options,
        )
        self.raw: list[bytes] = []
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._stderr = bytearray()
        self._readers = [threading.Thread(target=read) for read in (self._read_stdout, self._read_stderr)]
        for reader in self._readers:
            reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.process.kill()
        self.process.wait()
        for reader in self._readers:
            reader.join(LIMIT)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()

    def _read_stdout(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.raw.append(line)
            self._lines.put(line)
        self._lines.put(b"")

    def _read_stderr(self) -> None:
        assert self.process.stderr is not None
        while data := os.read(self.process.stderr.fileno(), 65536):
            self._stderr += data

    @property
    def stderr(self) -> str:
        """What it has written to its standard error so far; all of it after `wait`."""
        return self._stderr.decode()

    def send(self, *messages: Any) -> None:
        """Write messages; bytes are written as they are."""
        data = [message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n" for message in messages]
        assert self.process.stdin is not None
        self.process.stdin.write(b"".join(data))
        self.process.stdin.flush()

    def receive(self) -> Any:
        """Return the next message.

        Raises:
            EOFError: There will be none.
        """
        return json.loads(self.receive_line())

    def receive_line(self) -> bytes:
        """Return the next line as it is. Raises as `receive`."""
        line = self._lines.get(timeout=LIMIT)
        if not line:
            raise EOFError(f"no further message; standard error: {self.stderr}")
        return line

    def ask(self, *messages: Any) -> Any:
        """Send messages and return the one answer."""
        self.send(*messages)
        return self.receive()

    def result(self, request: dict[str, Any]) -> Any:
        """Send a request and return the result in its answer."""
        answer = self.ask(request)
        assert "result" in answer and answer["id"] == request["id"], answer
        return answer["result"]

    def open(self, version: str = VERSION, **capabilities: Any) -> Any:
        """Open a legacy session and return what the server answered."""
        result = self.result(initialize("open", version, **capabilities))
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return result

    def close_input(self) -> None:
        """End its input."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def pause(self, seconds: float) -> None:
        """Return after ``seconds``, or as soon as the process has ended."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)

    def wait(self) -> int:
        """Wait until it has ended and all that it wrote has been read; returns its status.

        Raises:
            subprocess.TimeoutExpired: It does not end.
        """
        status = self.process.wait(LIMIT)
        for reader in self._readers:
            reader.join(LIMIT)
            assert not reader.is_alive(), "somebody holds its streams open"
        return status

    def rest(self) -> list[Any]:
        """Return the messages that have not been received, up to the end."""
        messages: list[Any] = []
        while line := self._lines.get(timeout=LIMIT):
            messages.append(json.loads(line))
        return messages
