"""Servers as processes of their own on loopback, started, stopped and heard out."""

import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Final, Self

__all__ = ["LIMIT", "Service", "free_port"]

LIMIT: Final = 30.0
"""Seconds for a server to start, on a machine that has other work."""


def free_port() -> int:
    """Return a port of loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Service:
    """A process that listens on a port of loopback, from entering the context to leaving it.

    Args:
        command: What to run.
        port: Where it will listen.
        env: Added to the environment.
    """

    def __init__(self, command: Sequence[str], port: int, env: Mapping[str, str] | None = None) -> None:
        self.port = port
        self.said = ""
        """What it wrote, once it has ended."""
        self._command = command
        self._env = {**os.environ, **(env or {})}
        self._process: subprocess.Popen[bytes]
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the process has been heard out

    @property
    def origin(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.DEVNULL, stdout=self._output, stderr=self._output, env=self._env
        )
        deadline = time.monotonic() + LIMIT
        while not self._listens():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                raise RuntimeError(f"{' '.join(self._command)} does not listen on {self.origin}: {self.said}")
            time.sleep(0.02)  # another process's start cannot be waited for in another way
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._hear_out()

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send it a signal, wait for its end, and return its exit status."""
        self._process.send_signal(number)
        status = self._process.wait(LIMIT)
        self._hear_out()
        return status

    def _listens(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def _hear_out(self) -> None:
        self._process.wait(LIMIT)
        if not self._output.closed:
            self._output.seek(0)
            self.said = self._output.read().decode(errors="replace")
            self._output.close()
