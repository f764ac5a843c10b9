"""What is measured: a server that is started on pipes, or one that is somewhere at a URL."""

import contextlib
import os
import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Final

from msgspec.json import encode

from mcpcore.bench.load import Load, Tally
from mcpcore.bench.process import Usage, family, usage
from mcpcore.bench.stdio_driver import StdioServer
from mcpcore.bench.traffic import Reply
from mcpcore.exceptions import TransportError
from mcpcore.protocol.messages import Incoming, Outgoing
from mcpcore.transports.stdio_client import INHERITED

__all__ = ["StdioTarget", "Target", "refusal"]

METHOD_NOT_FOUND: Final = -32601
GRACE: Final = 2.0  # seconds between two ways of telling a server that it is to end


def refusal(message: Reply) -> bytes:
    """Return the answer to a request of a server's: nobody is here who could answer it. ``ping`` is answered."""
    if message.method == "ping":
        return encode({"jsonrpc": "2.0", "id": message.id, "result": {}})
    error = {
        "code": METHOD_NOT_FOUND,
        "message": f"{message.method} is refused: this client measures, and there is nobody to ask",
    }
    return encode({"jsonrpc": "2.0", "id": message.id, "error": error})


class Target(ABC):
    """A server, from the side of who measures it.

    Attributes:
        transport: ``stdio`` or ``http``.
        mirrors: See `Wire`.
    """

    transport: str
    mirrors: bool

    @abstractmethod
    def post(self, message: Outgoing, seconds: float) -> None:
        """See `Wire`."""

    @abstractmethod
    def collect(self, seconds: float) -> list[Incoming]:
        """See `Wire`."""

    @abstractmethod
    def frame(self, message: Outgoing) -> bytes:
        """Return a message as a load has to have it."""

    @abstractmethod
    def frame_answer(self, answer: bytes) -> bytes:
        """Return an answer to a request of the server's as a load has to have it."""

    @abstractmethod
    def withdraw(self, number: int) -> bytes | None:
        """Return what withdraws a request in the midst of a load; None where the connection says it."""

    @abstractmethod
    def prepare(self, window: int, open_session: Callable[[], object]) -> None:
        """Make what ``window`` requests in flight need.

        Args:
            window: How many.
            open_session: Opens another session on what `post` and `collect` use.
        """

    @abstractmethod
    def exchange(self, load: Load, tally: Tally) -> None:
        """Work a load off.

        Raises:
            BenchmarkError: The server is gone.
        """

    @abstractmethod
    def usage(self) -> Usage | None:
        """Return what the server uses; None where that cannot be known."""


class StdioTarget(StdioServer, Target):
    """A server that is started on pipes, in a process group of its own. It is ended when the context is left.

    Args:
        argv: The program.
        inherit_env: It gets the whole environment, and not only what programs need to run.
        log: It may write to our standard error; else that is kept, and its end is quoted if the server dies.

    Raises:
        TransportError: It cannot be started.
    """

    transport = "stdio"
    mirrors = False

    def __init__(self, argv: Sequence[str], *, inherit_env: bool = False, log: bool = False) -> None:
        environ = {
            name: value
            for name, value in os.environ.items()
            if inherit_env or name in INHERITED or name.startswith("LC_")
        }
        try:
            super().__init__(argv, env=environ, cwd=os.getcwd(), log=log)
        except (OSError, ValueError) as error:
            raise TransportError(f"cannot start {argv[0]!r}: {error}") from error

    def post(self, message: Outgoing, seconds: float) -> None:
        """Write it. ``seconds`` do not matter: who reads nothing is found out by who waits for the answer."""
        self.send(message.data)

    def collect(self, seconds: float) -> list[Incoming]:
        return [Incoming(line) for line in self.receive(seconds) if line.strip()]

    def frame(self, message: Outgoing) -> bytes:
        return message.data + b"\n"

    def frame_answer(self, answer: bytes) -> bytes:
        return answer + b"\n"

    def withdraw(self, number: int) -> bytes | None:
        params = {"requestId": number, "reason": "timeout"}
        return encode({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}) + b"\n"

    def prepare(self, window: int, open_session: Callable[[], object]) -> None:
        """Pipes are there from the start."""

    def exchange(self, load: Load, tally: Tally) -> None:
        self._exchange(load, tally)

    def usage(self) -> Usage | None:
        """With all processes that it has started, and those that these have."""
        return usage(family([self._process.pid]))

    def _end(self) -> None:
        """As the specification wants it (2026-07-28, basic/transports/stdio, "Shutdown"). How a server ends is not judged."""
        self._stdin.close()
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            if number is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, number)
            try:
                self._process.wait(GRACE)
            except subprocess.TimeoutExpired:
                continue
            break
        with contextlib.suppress(ProcessLookupError):  # what it has started and left behind
            os.killpg(self._process.pid, signal.SIGKILL)
