"""The driver of HTTP servers: HTTP/1.1 on raw sockets, one request at a time on each connection that is kept alive.

It is not told how a server replies, with one JSON object or with a stream of events; it reads either and counts.
"""

import select
import signal
import socket
import subprocess
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from struct import pack
from typing import Any, Final

import msgspec

from mcpcore.bench.driver import CHUNK, Driver, note_progress
from mcpcore.bench.responses import MalformedResponse, Response, ResponseReader, event_data
from mcpcore.bench.traffic import ERAS, Message, Traffic, WrongReply, decode, encode, opening

__all__ = ["HTTPServer"]

LOOPBACK: Final = "127.0.0.1"
PAUSE: Final = 0.002  # seconds between attempts to reach a server that has just been started
HEAD: Final = (
    "POST /mcp HTTP/1.1\r\nHost: {host}\r\nUser-Agent: benchmark\r\nAccept: application/json, text/event-stream\r\n"
    "Content-Type: application/json\r\n"
)
JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"


class Connection:
    """A connection with at most one request on its way.

    Attributes:
        number: Of that request.
        sent_at: When it was sent.
        head: What the requests of this connection begin with.
    """

    def __init__(self, port: int, silence: float) -> None:
        self.socket = socket.create_connection((LOOPBACK, port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # The kernel's own limits: a timeout of Python's would cost a system call for each read and write.
        limit = pack("@qq", int(silence), int(silence % 1 * 1e6))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        self.number = -1
        self.sent_at = 0.0
        self.head = b""
        self._reader = ResponseReader()

    def send(self, prepared: bytes) -> None:
        self.socket.sendall(self.head + prepared)

    def receive(self) -> Response | None:
        """Wait for bytes. Returns the response if they complete it.

        Raises:
            ConnectionError: There are none to come.
            MalformedResponse: They are no response.
        """
        data = self.socket.recv(CHUNK)
        if not data:
            raise ConnectionResetError
        return self._reader.receive(data)

    def close(self) -> None:
        """Close it.

        Raises:
            WrongReply: There is something to read that no request has asked for.
        """
        try:
            unasked = self.socket.recv(CHUNK, socket.MSG_DONTWAIT)
        except (BlockingIOError, ConnectionError):
            unasked = b""
        self.socket.close()
        if unasked:
            raise WrongReply(f"nothing awaits this reply: {unasked[:500]!r}")


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
        self._head = HEAD.format(host=f"{LOOPBACK}:{self.port}").encode()
        self._with_sessions = sessions
        self._in_sessions = False  # the opening request stands for itself in any case
        self._sessions: list[str] = []
        self._connections: list[Connection] = []
        self._replies = self._streamed = 0

    def open(self, era: str) -> None:
        self._await_listening()
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

    # -- the wire ----------------------------------------------------------------------------------------------------

    def _await_listening(self) -> None:
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

    def _exchange(
        self, traffic: Traffic, first: int, prepared: list[bytes], window: int, send_until: float
    ) -> list[float]:
        with self._guarded():
            latencies = self._exchange_all(traffic, first, prepared, window, send_until)
        self._disconnect()  # a server may close what is idle; the next run has connections of its own
        return latencies

    def _exchange_all(
        self, traffic: Traffic, first: int, prepared: list[bytes], window: int, send_until: float
    ) -> list[float]:
        total = len(prepared)
        latencies: list[float] = []
        clock = time.perf_counter
        sent = 0
        with select.epoll() as readable:
            connections: dict[int, Connection] = {}
            for connection in self._connections[: min(window, total)]:
                connections[connection.socket.fileno()] = connection
                readable.register(connection.socket, select.EPOLLIN)
                connection.number, connection.sent_at = first + sent, clock()
                connection.send(prepared[sent])
                sent += 1
            while len(latencies) < sent:
                ready = readable.poll(self.silence)
                if not ready:
                    raise TimeoutError
                for descriptor, _ in ready:
                    connection = connections[descriptor]
                    response = connection.receive()
                    if response is None:
                        continue
                    self._check(traffic, connection.number, response)
                    now = clock()
                    latencies.append(now - connection.sent_at)
                    if sent < total and now < send_until:
                        connection.number, connection.sent_at = first + sent, now
                        connection.send(prepared[sent])
                        sent += 1
        return latencies

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

    # -- checking ----------------------------------------------------------------------------------------------------

    def _check(self, traffic: Traffic, number: int, response: Response) -> None:
        head, body = response
        self._replies += 1
        if head.media_type == JSON:
            messages = [self._decode(body)]
        elif head.media_type == EVENTS:
            self._streamed += 1
            messages = [self._decode(data) for data in event_data(body)]
        else:
            raise WrongReply(f"request {number} was answered with status {head.status} and {body[:500]!r}")
        progress: dict[int | None, int] = {}
        replies = 0
        for message in messages:
            if message.method is not None:
                note_progress(message, progress)
            elif message.id != number or replies:
                raise WrongReply(f"nothing awaits this reply to request {number}: {str(message)[:500]}")
            else:
                replies = 1
                traffic.check(number, message)
        if not replies:
            raise WrongReply(f"the response to request {number} has no reply in it")
        if head.status != 200:
            raise WrongReply(f"request {number} was answered with status {head.status}")
        if progress.get(number, 0) != traffic.notifications:
            raise WrongReply(f"request {number} wants {traffic.notifications} progress notifications first")
        if traffic.method == "initialize" and self._with_sessions is (head.session is None):
            given = "no session" if head.session is None else "a session"
            raise WrongReply(f"the server gives out {given}, which is not what this row is about")

    def _decode(self, data: bytes) -> Message:
        try:
            return decode(data)
        except msgspec.DecodeError as error:
            raise self._garbage(data, error) from error

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
    body = encode(message)
    lines = [*fields, f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body
