"""Many at once: what the driver of HTTP servers cannot do by itself.

Streams of `subscriptions/listen` have no end, so they are not read as responses while the clock runs: only the moment
counts at which the notification has come. What else has come is read, and checked, when the streams are closed.
"""

import gc
import select
import time
from collections.abc import Sequence
from typing import Any, Final

from msgspec.json import decode

from mcpcore.bench.connection import CHUNK, Connection
from mcpcore.bench.http_driver import HTTPServer, rest
from mcpcore.bench.process import family, usage
from mcpcore.bench.responses import ResponseReader, event_data
from mcpcore.bench.traffic import ERAS, Message, Traffic, WrongReply

__all__ = ["Audience", "Workers"]

AT_ONCE: Final = 200  # streams that are being opened; a server's queue of connections holds more
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
CHANGED: Final = "notifications/tools/list_changed"
LAST_CHUNK: Final = b"0\r\n\r\n"


class Workers(HTTPServer):
    """A server of several processes. All that it starts counts."""

    def cpu(self) -> float:
        """Seconds of processor time of all processes."""
        return usage(family([self._process.pid])).cpu

    def memory(self) -> tuple[float, float]:
        """Resident memory of all processes in MiB, with what they share counted for each; and the sum of their peaks."""
        used = usage(family([self._process.pid]))
        return used.memory / 2**20, used.peak / 2**20


class Listener:
    """One stream of ``subscriptions/listen``, with all that has come on it."""

    def __init__(self, connection: Connection, number: int) -> None:
        self.socket = connection.socket
        self.socket.setblocking(False)
        self.number = number
        self.received = bytearray()
        self._seen = 0

    def has_got(self, method: bytes) -> bool:
        """Take what has come, and tell whether there is another notification of ``method`` in it.

        Raises:
            ConnectionError: The server has closed the stream.
            WrongReply: It is an error.
        """
        data = self.socket.recv(CHUNK)
        if not data:
            raise ConnectionResetError
        if b'"error"' in data:
            raise WrongReply(f"stream {self.number} is refused: {data[-500:]!r}")
        self.received += data
        found = self.received.find(method, self._seen)
        if found >= 0:
            self._seen = found + len(method)
        return found >= 0

    def check(self, announcements: int) -> None:
        """Check all that has come.

        Raises:
            WrongReply: It is not the acknowledgement and one notification for each announcement.
        """
        # As if the stream had ended well: a reader of responses gives nothing out before.
        response = ResponseReader().receive(bytes(self.received) + LAST_CHUNK)
        if response is None or response.head.status != 200:
            raise WrongReply(f"a stream is no response with status 200: {bytes(self.received[:500])!r}")
        messages = [decode(data) for data in event_data(response.body)]
        told = [(each.get("method"), subscription_of(each)) for each in messages]
        if told != [(ACKNOWLEDGED, self.number), *[(CHANGED, self.number)] * announcements]:
            raise WrongReply(f"stream {self.number} wants {announcements} notifications, but got {str(messages)[:500]}")


def subscription_of(message: dict[str, Any]) -> Any:
    return message.get("params", {}).get("_meta", {}).get("io.modelcontextprotocol/subscriptionId")


def _nothing(number: int, message: Message) -> None:
    """Streams are checked when they are closed."""


class Audience(HTTPServer):
    """A server and many modern clients that listen for changes of its tools."""

    def __init__(self, argv: Sequence[str]) -> None:
        super().__init__(argv)
        self._listeners: dict[int, Listener] = {}
        self._announcements = 0

    def listen(self, count: int) -> float:
        """Open ``count`` streams, and wait until each is acknowledged. Returns the seconds it took."""
        started = time.perf_counter()
        with self._guarded(), select.epoll() as readable:
            opened = waiting = 0
            while opened < count or waiting:
                while opened < count and waiting < AT_ONCE:
                    listener = self._open_stream()
                    self._listeners[listener.socket.fileno()] = listener
                    readable.register(listener.socket, select.EPOLLIN)
                    opened, waiting = opened + 1, waiting + 1
                for descriptor in self._ready(readable):
                    if self._listeners[descriptor].has_got(ACKNOWLEDGED.encode()):
                        readable.unregister(descriptor)
                        waiting -= 1
        return time.perf_counter() - started

    def announce(self, traffic: Traffic) -> list[float]:
        """Have the server tell all of them something.

        Args:
            traffic: The call that makes it do so.

        Returns:
            Seconds from sending the call until each of them was told, ascending.
        """
        method, latencies, clock = CHANGED.encode(), list[float](), time.perf_counter
        prepared, number = self._prepare(traffic, self._number), self._number
        self._number += 1
        self._announcements += 1
        self._connect(1)
        speaker = self._connections[0]
        response = None
        with self._guarded(), select.epoll() as readable:
            for listener in self._listeners.values():
                readable.register(listener.socket, select.EPOLLIN)
            readable.register(speaker.socket, select.EPOLLIN)
            gc.collect()
            gc.disable()
            try:
                started = clock()
                speaker.send(prepared)
                while len(latencies) < len(self._listeners) or response is None:
                    for descriptor in self._ready(readable):
                        if descriptor == speaker.socket.fileno():
                            response = speaker.receive()
                        elif self._listeners[descriptor].has_got(method):
                            latencies.append(clock() - started)
            finally:
                gc.enable()
        self._check(traffic, number, response)
        self._disconnect()
        return latencies

    def leave(self) -> None:
        """Check what has come on all streams, and close them."""
        for listener in self._listeners.values():
            listener.check(self._announcements)
        self._close_streams()

    def _ready(self, readable: select.epoll) -> list[int]:
        ready = readable.poll(self.silence)
        if not ready:
            raise TimeoutError
        return [descriptor for descriptor, _ in ready]

    def _open_stream(self) -> Listener:
        number = self._number
        self._number += 1
        traffic = Traffic("subscriptions/listen", lambda _: {"notifications": {"toolsListChanged": True}}, _nothing)
        fields = [f"MCP-Protocol-Version: {ERAS['modern']}", f"Mcp-Method: {traffic.method}"]
        try:
            connection = Connection(self.port, self.silence)
        except OSError as error:
            raise self._failure(f"takes no connection after {len(self._listeners)} streams: {error}") from error
        connection.head = self._head
        connection.send(rest(traffic.request(number, "modern"), fields))
        return Listener(connection, number)

    def _close_streams(self) -> None:
        for listener in self._listeners.values():
            listener.socket.close()
        self._listeners.clear()

    def _close(self) -> None:
        self._close_streams()
        super()._close()
