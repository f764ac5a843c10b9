"""The driver of HTTP servers: HTTP/1.1 on raw sockets, one request at a time on each connection that is kept alive.

It is not told how a server replies, with one JSON object or with a stream of events; it reads either and counts.
"""

import signal
import socket
import subprocess
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from mcpcore.bench.connection import LOOPBACK, Connection
from mcpcore.bench.driver import Driver
from mcpcore.bench.http_load import check_response, exchange
from mcpcore.bench.load import Load, Tally
from mcpcore.bench.responses import MalformedResponse, Response
from mcpcore.bench.traffic import ERAS, Traffic, WrongReply, encode, opening

__all__ = ["HEAD", "HTTPServer", "framed", "rest"]

PAUSE: Final = 0.002  # seconds between attempts to reach a server that has just been started
HEAD: Final = (
    "{method} {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: benchmark\r\n"
    "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
)
"""How a request begins."""


class HTTPServer(Driver):
    """A server that listens on a port of the loopback interface.

    Args:
        argv: The program. The port is added as its last argument.
        sessions: Legacy requests belong to sessions, one for each connection; else the server must not give out any.

    Attributes:
        port: The port.
    """

    def __init__(self, argv: Sequence[str], *, sessions: bool = False) -> None:
        # Bound and held: neither another program nor an attempt to connect gets this port from the kernel. Who asks
        # for it by number may still listen on it, because nobody does.
        self._reserved = socket.socket()
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._reserved.bind((LOOPBACK, 0))
        self.port = int(self._reserved.getsockname()[1])
        super().__init__([*argv, str(self.port)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self._head = HEAD.format(method="POST", path="/mcp", host=f"{LOOPBACK}:{self.port}").encode()
        self._with_sessions = sessions
        self._in_sessions = False  # the opening request stands for itself in any case
        self._sessions: list[str] = []
        self._connections: list[Connection] = []
        self._replies = self._streamed = 0

    def open(self, era: str) -> None:
        self.await_listening()
        super().open(era)
        self._in_sessions = self._with_sessions

    def details(self) -> dict[str, float]:
        """What the base says, and how many of the replies came as streams of events."""
        return {**super().details(), "SSE %": self._streamed / self._replies * 100}

    def open_sessions(self, count: int, then: Traffic) -> None:
        """Open further legacy sessions on one connection, send one request in each, and leave them."""
        self._connect(1)
        connection = self._connections[0]
        for _ in range(count):
            self._sessions.append(self._handshake(connection))
            connection.head = self._head_of(self._sessions[-1])
            prepared = self._prepare(then, self._number)
            self._check(then, self._number, self._ask(connection, prepared))
            self._number += 1
        self._disconnect()

    def _introduce(self, asked: Traffic) -> None:
        self._connect(1)
        self._check(asked, self._number, self._ask(self._connections[0], self._prepare(asked, self._number)))
        self._number += 1
        self._disconnect()

    # -- the wire ----------------------------------------------------------------------------------------------------

    def await_listening(self) -> None:
        """Wait until the server takes connections.

        Raises:
            BenchmarkError: It does not.
        """
        deadline = time.monotonic() + self.silence
        while time.monotonic() < deadline:
            if (status := self._process.poll()) is not None:
                raise self._failure(f"exited with status {status} instead of listening")
            try:
                socket.create_connection((LOOPBACK, self.port)).close()
            except ConnectionRefusedError:
                time.sleep(PAUSE)
            else:
                return
        raise self._failure(f"does not listen on port {self.port} after {self.silence:.0f} s")

    def _prepare(self, traffic: Traffic, number: int) -> bytes:
        """All that does not depend on the connection, which is the rest of the head and the body."""
        message = traffic.request(number, self.era)
        fields: list[str] = []
        if self.era == "modern":
            fields = [f"MCP-Protocol-Version: {ERAS[self.era]}", f"Mcp-Method: {traffic.method}"]
            if traffic.method == "tools/call":
                fields.append(f"Mcp-Name: {message['params']['name']}")
        elif traffic.method != "initialize":
            fields = [f"MCP-Protocol-Version: {ERAS[self.era]}"]
        return rest(message, fields)

    def _head_of(self, session: str | None) -> bytes:
        return self._head if session is None else self._head + f"Mcp-Session-Id: {session}\r\n".encode()

    def _connect(self, window: int) -> None:
        try:
            while len(self._connections) < window:
                self._connections.append(Connection(self.port, self.silence))
        except OSError as error:
            raise self._failure(f"cannot be reached: {error}") from error
        for index, connection in enumerate(self._connections):
            connection.head = self._head
            if self._in_sessions:
                if index == len(self._sessions):
                    self._sessions.append(self._handshake(connection))
                connection.head = self._head_of(self._sessions[index])

    def _disconnect(self) -> None:
        while self._connections:
            self._connections.pop().close()

    def _handshake(self, connection: Connection) -> str:
        """Open a legacy session."""
        connection.head = self._head
        asked = opening("legacy")
        response = self._ask(connection, self._prepare(asked, self._number))
        self._check(asked, self._number, response)
        self._number += 1
        session = response.head.session
        assert session is not None  # it has been checked
        connection.head = self._head_of(session)
        fields = [f"MCP-Protocol-Version: {ERAS['legacy']}"]
        told = self._ask(connection, rest({"jsonrpc": "2.0", "method": "notifications/initialized"}, fields))
        if told.head.status != 202 or told.body:
            raise WrongReply(f"a notification is answered with 202 and nothing, not {str(told)[:500]}")
        return session

    def _ask(self, connection: Connection, prepared: bytes) -> Response:
        with self._guarded():
            connection.send(prepared)
            while (response := connection.receive()) is None:
                pass
            return response

    def _exchange(self, load: Load, tally: Tally) -> None:
        with self._guarded():
            exchange(self._connections[: load.window], load, tally)
        self._replies += tally.replies
        self._streamed += tally.streamed
        self._disconnect()  # a server may close what is idle; the next run has connections of its own

    @contextmanager
    def _guarded(self) -> Generator[None]:
        """Say what it means that the connections do what they do."""
        try:
            yield
        except (TimeoutError, BlockingIOError):
            raise self._failure(f"was silent for {self.silence:.0f} s") from None
        except ConnectionError:
            raise self._failure("closed a connection instead of replying") from None
        except MalformedResponse as error:
            raise self._failure(f"sent what is no response: {error}") from error

    def _check(self, traffic: Traffic, number: int, response: Response) -> None:
        """Check the response to a request that is no part of a load."""
        tally = Tally()
        check_response(response, number, Load([], number, traffic.check, notifications=traffic.notifications), tally)
        self._replies += tally.replies
        self._streamed += tally.streamed
        if traffic.method == "initialize" and self._with_sessions is (response.head.session is None):
            given = "no session" if response.head.session is None else "a session"
            raise WrongReply(f"the server gives out {given}, which is not what this row is about")

    # -- the end -----------------------------------------------------------------------------------------------------

    def _end(self) -> None:
        self._disconnect()
        self._process.terminate()
        status = self._exit_status("SIGTERM")
        if status not in (0, -signal.SIGTERM, 128 + signal.SIGTERM):
            raise self._failure(f"exited with status {status}")

    def _close(self) -> None:
        self._reserved.close()
        for connection in self._connections:
            connection.socket.close()


def rest(message: dict[str, Any], fields: list[str]) -> bytes:
    """Return what follows the head that all requests of a connection have in common."""
    return framed(encode(message), fields)


def framed(body: bytes, fields: list[str]) -> bytes:
    """The same for a message that is encoded."""
    lines = [*fields, f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode("latin-1") + body
