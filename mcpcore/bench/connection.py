"""One HTTP/1.1 connection that is kept alive, with at most one request on its way: a raw socket, or TLS on one."""

import select
import socket
import ssl
import time
from struct import pack
from typing import Final

from mcpcore.bench.responses import Response, ResponseReader
from mcpcore.bench.traffic import WrongReply

__all__ = ["CHUNK", "LOOPBACK", "Connection"]

CHUNK: Final = 1 << 16
"""Bytes that are read at once."""

LOOPBACK: Final = "127.0.0.1"


class Connection:
    """A connection, opened at once.

    Args:
        port: Of the server.
        silence: Seconds that connecting, a write, or a read that waits may take.
        host: Of the server.
        tls: What https is spoken with; None for http.

    Attributes:
        number: The id of the request that is on its way.
        since: When the latency of it begins, by the clock of the driver.
        sent_at: When it was sent.
        free_since: When the one before was answered.
        asked: Requests of the server's that its response has brought so far.
        head: What the requests of this connection begin with.
        needs_reopening: The server has closed it, or will.
        descriptor: Of the socket.
        bytes_sent, bytes_received: So far.
    """

    def __init__(self, port: int, silence: float, host: str = LOOPBACK, tls: ssl.SSLContext | None = None) -> None:
        self.number = -1
        self.since = self.sent_at = self.free_since = 0.0
        self.asked = self.bytes_sent = self.bytes_received = 0
        self.head = b""
        self._host = host
        self._port = port
        self._silence = silence
        self._tls = tls
        self._open()

    def _open(self) -> None:
        self.needs_reopening = False
        self._reader = ResponseReader()
        opened = socket.create_connection((self._host, self._port), timeout=self._silence)
        try:
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                opened = self._tls.wrap_socket(opened, server_hostname=self._host)
        except BaseException:
            opened.close()
            raise
        if self._tls is not None:
            # What is readable there need not be data: a read that waits for some would hold up all other connections.
            opened.setblocking(False)
        else:
            # The kernel's own limits: a timeout of Python's would cost a system call for each read and write.
            opened.settimeout(None)
            limit = pack("@qq", int(self._silence), int(self._silence % 1 * 1e6))
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        self.socket, self.descriptor = opened, opened.fileno()

    def reopen(self) -> None:
        """Leave what there was, and connect again.

        Raises:
            OSError: The server cannot be reached.
        """
        self.socket.close()
        self._open()

    def send(self, prepared: bytes) -> None:
        """Send the rest of a request, and wait until it is written.

        Raises:
            OSError: The connection is broken, or nothing was read at the other end for too long.
        """
        request = self.head + prepared
        self.bytes_sent += len(request)
        if self._tls is None:
            self.socket.sendall(request)
            return
        unsent = memoryview(request)
        while unsent:
            try:
                unsent = unsent[self.socket.send(unsent) :]
            except ssl.SSLWantReadError:
                self._wait(select.POLLIN)
            except ssl.SSLWantWriteError:
                self._wait(select.POLLOUT)

    def receive(self) -> Response | None:
        """Take bytes that have come; over plain http, wait for some. Returns the response if they complete it.

        Raises:
            ConnectionError: There are none to come.
            MalformedResponse: They are no response.
        """
        response = self._receive() if self._tls is None else self._receive_tls()
        if response is not None and response.head.closes:
            self.needs_reopening = True
        return response

    def ask(self, prepared: bytes, seconds: float) -> Response:
        """Send a request and wait for the response.

        Raises:
            TimeoutError: It has not come after so many seconds.
            OSError, MalformedResponse: As `send` and `receive`.
        """
        if self.needs_reopening:
            self.reopen()
        self.needs_reopening = True  # unless all goes well
        self.send(prepared)
        deadline = time.monotonic() + seconds
        while True:
            self._wait(select.POLLIN, deadline - time.monotonic())
            response = self.receive()
            if response is not None:
                self.needs_reopening = response.head.closes
                return response

    def early_events(self) -> list[bytes]:
        """Return the data of events that have come while the response goes on, each once."""
        return self._reader.early_events()

    def close(self) -> None:
        """Close it.

        Raises:
            WrongReply: There is something to read that no request has asked for.
        """
        try:
            unasked = b"" if self._tls is not None else self.socket.recv(CHUNK, socket.MSG_DONTWAIT)
        except (BlockingIOError, ConnectionError):
            unasked = b""
        self.socket.close()
        if unasked:
            raise WrongReply(f"nothing awaits this reply: {unasked[:500]!r}")

    def _receive(self) -> Response | None:
        data = self.socket.recv(CHUNK)
        self.bytes_received += len(data)
        response = self._reader.receive(data) if data else self._reader.receive_eof()
        if response is None and not data:
            raise ConnectionResetError("it was closed before the response was complete")
        return response

    def _receive_tls(self) -> Response | None:
        """Take all that has been decrypted: the selector does not know of it."""
        while True:
            try:
                response = self._receive()
            except ssl.SSLWantReadError:
                return None
            except ssl.SSLEOFError as error:
                raise ConnectionResetError(str(error)) from error
            if response is not None:
                return response

    def _wait(self, event: int, seconds: float | None = None) -> None:
        poll = select.poll()
        poll.register(self.socket, event)
        if not poll.poll(max(0.0, self._silence if seconds is None else seconds) * 1000):
            raise TimeoutError("it was silent for too long")
