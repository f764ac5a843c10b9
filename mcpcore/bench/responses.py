"""Reads HTTP/1.1 responses, as far as MCP servers use them: with a length or in chunks, JSON or events.

A server repeats its head from reply to reply, so heads that came before are looked up instead of read. That, and taking
a reply that came in one piece as a whole, is what keeps the driver ahead of the servers.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from mcpcore.exceptions import BenchmarkError
from mcpcore.protocol.framing import ServerSentEvent, SSEDecoder

__all__ = ["EVENTS", "Head", "MalformedResponse", "Response", "ResponseReader", "event_data"]

END_OF_LINE: Final = b"\r\n"
END_OF_HEAD: Final = b"\r\n\r\n"
STATUS_LINE: Final = re.compile(rb"HTTP/1\.([01]) ([1-5]\d\d)(?: .*)?")
FIELD: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*")
NO_BODY: Final = (204, 304)
EVENTS: Final = "text/event-stream"
CHUNK_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?")


class MalformedResponse(BenchmarkError):
    """What a server sent is no HTTP response that the driver can read."""


class Head(NamedTuple):
    """The head of a response.

    Attributes:
        status: The status code.
        media_type: The content type without parameters, in lower case.
        length: Bytes of the body, or None where it comes in chunks or goes on until the connection ends.
        session: ``Mcp-Session-Id``.
        closes: The connection ends after this response.
        until_end: The body goes on until then.
        location: Where the server redirects to.
    """

    status: int
    media_type: str
    length: int | None
    session: str | None
    closes: bool = False
    until_end: bool = False
    location: str | None = None


class Response(NamedTuple):
    """A whole response."""

    head: Head
    body: bytes


class ResponseReader:
    """Cuts what comes on one connection into responses. Each has to be taken before the next request is sent."""

    def __init__(self) -> None:
        self._head: Head | None = None
        self._chunks: list[bytes] = []
        self._pieces: list[bytes] = []
        self._has = 0
        self._needs = 0
        self._early: SSEDecoder | None = None
        self._looked = 0

    def early_events(self) -> list[bytes]:
        """Return the data of events in a response that has not come to its end, each once."""
        if self._head is None or self._head.media_type != EVENTS or len(self._chunks) == self._looked:
            return []
        if self._early is None:
            self._early = SSEDecoder()
        new, self._looked = self._chunks[self._looked :], len(self._chunks)
        found = self._early.receive(b"".join(new))
        return [event.data for event in found if isinstance(event, ServerSentEvent) and event.data]

    def receive(self, data: bytes) -> Response | None:
        """Take what has arrived. Returns the response once it is whole.

        Raises:
            MalformedResponse: It is no response, or goes on after its end.
        """
        if self._pieces:
            self._pieces.append(data)
            self._has += len(data)
            if self._has < self._needs:
                return None
            data = b"".join(self._pieces)
            self._pieces = []
        head = self._head
        while head is None:
            end = data.find(END_OF_HEAD)
            if end < 0:
                self._keep(data, len(data) + 1)
                return None
            head = read_head(data[:end])
            data = data[end + len(END_OF_HEAD) :]
            if head.status < 200:  # RFC 9110 15.2: there may be any number of them before the response
                head = None
        self._head = head
        if head.until_end:
            self._chunks.append(data)
            return None
        if head.length is None:
            return self._receive_chunks(head, data)
        if len(data) < head.length:
            self._keep(data, head.length)
            return None
        return self._whole(head, data[: head.length], data[head.length :])

    def receive_eof(self) -> Response | None:
        """Take the end of the connection. Returns the response that it completes, if there is one."""
        if self._head is None or not self._head.until_end:
            return None
        return self._whole(self._head, b"".join(self._chunks), b"")

    def _receive_chunks(self, head: Head, data: bytes) -> Response | None:
        """RFC 9112 7.1. Trailers are read over."""
        start = 0
        while (end := data.find(END_OF_LINE, start)) >= 0:
            line = data[start:end]
            match = CHUNK_SIZE.fullmatch(line)
            if match is None:
                raise MalformedResponse(f"no size of a chunk: {line[:200]!r}")
            begin = end + 2
            size = int(match[1], 16)
            if not size:
                return self._receive_trailers(head, data, start, begin)
            end = begin + size
            after = end + 2
            if len(data) < after:
                self._keep(data[start:], after - start)
                return None
            if data[end:after] != END_OF_LINE:
                raise MalformedResponse(f"a chunk is followed by {data[end : end + 200]!r}")
            self._chunks.append(data[begin:end])
            start = after
        self._keep(data[start:], len(data) - start + 1)
        return None

    def _receive_trailers(self, head: Head, data: bytes, start: int, begin: int) -> Response | None:
        if data.startswith(END_OF_LINE, begin):
            end = begin
        elif (end := data.find(END_OF_HEAD, begin)) >= 0:
            end += len(END_OF_LINE)
        else:
            self._keep(data[start:], len(data) - start + 1)
            return None
        return self._whole(head, b"".join(self._chunks), data[end + len(END_OF_LINE) :])

    def _keep(self, data: bytes, needs: int) -> None:
        """Keep ``data`` until there are ``needs`` bytes. Looking again before that would be quadratic."""
        if data:
            self._pieces = [data]
        self._has, self._needs = len(data), needs

    def _whole(self, head: Head, body: bytes, rest: bytes) -> Response:
        if rest:
            raise MalformedResponse(f"bytes after the end of a response: {rest[:200]!r}")
        self._head = None
        if self._chunks:
            self._chunks = []
            self._early, self._looked = None, 0
        return Response(head, body)


@lru_cache(maxsize=1024)
def read_head(head: bytes) -> Head:
    """Read the head of a response, without the empty line at its end."""
    status_line, *lines = head.split(END_OF_LINE)
    status = STATUS_LINE.fullmatch(status_line)
    if status is None:
        raise MalformedResponse(f"no status line of HTTP/1.1: {status_line[:200]!r}")
    fields: dict[bytes, bytes] = {}
    for line in lines:
        field = FIELD.fullmatch(line)
        if field is None:
            raise MalformedResponse(f"no header field: {line[:200]!r}")
        fields[field[1].lower()] = field[2]
    length, session = fields.get(b"content-length"), fields.get(b"mcp-session-id")
    coding, code, location = fields.get(b"transfer-encoding"), int(status[2]), fields.get(b"location")
    if coding is not None and (coding.lower() != b"chunked" or length is not None):
        raise MalformedResponse(f"it is not clear where it ends: {head[:500]!r}")
    if length is not None and not length.isdigit():
        raise MalformedResponse(f"no length: {length[:200]!r}")
    if code < 200 or code in NO_BODY:
        length = b"0"
    until_end = coding is None and length is None
    options = [option.strip().lower() for option in fields.get(b"connection", b"").split(b",")]
    kept = b"keep-alive" in options if status[1] == b"0" else b"close" not in options
    return Head(
        code,
        fields.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1"),
        int(length) if length is not None else None,
        session.decode("latin-1") if session is not None else None,
        closes=until_end or not kept,
        until_end=until_end,
        location=location.decode("latin-1") if location is not None else None,
    )


def event_data(body: bytes) -> Iterator[bytes]:
    """Yield the data of the events in the whole body of a stream, without those that have none."""
    data: list[bytes] = []
    for line in body.splitlines():
        if not line:
            if data:
                yield b"\n".join(data)
            data = []
        elif line.startswith(b"data:") and (value := line[5:].removeprefix(b" ")):
            data.append(value)
