"""Reads HTTP/1.1 responses, as far as MCP servers use them: with a length or in chunks, JSON or events.

A server repeats its head from reply to reply, so heads that came before are looked up instead of read. That, and taking
a reply that came in one piece as a whole, is what keeps the driver ahead of the servers.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from mcpcore.exceptions import BenchmarkError

__all__ = ["Head", "MalformedResponse", "Response", "ResponseReader", "event_data"]

END_OF_LINE: Final = b"\r\n"
END_OF_HEAD: Final = b"\r\n\r\n"
STATUS_LINE: Final = re.compile(rb"HTTP/1\.1 ([1-5]\d\d)(?: .*)?")
FIELD: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*")
CHUNK_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?")


class MalformedResponse(BenchmarkError):
    """What a server sent is no HTTP response that the driver can read."""


class Head(NamedTuple):
    """The head of a response.

    Attributes:
        status: The status code.
        media_type: The content type without parameters, in lower case.
        length: Bytes of the body, or None where it comes in chunks.
        session: ``Mcp-Session-Id``.
    """

    status: int
    media_type: str
    length: int | None
    session: str | None


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
        if head is None:
            end = data.find(END_OF_HEAD)
            if end < 0:
                self._keep(data, len(data) + 1)
                return None
            head = self._head = read_head(data[:end])
            data = data[end + len(END_OF_HEAD) :]
        if head.length is None:
            return self._receive_chunks(head, data)
        if len(data) < head.length:
            self._keep(data, head.length)
            return None
        return self._whole(head, data[: head.length], data[head.length :])

    def _receive_chunks(self, head: Head, data: bytes) -> Response | None:
        """RFC 9112 7.1. Nobody sends trailers, so none are read."""
        start = 0
        while (end := data.find(END_OF_LINE, start)) >= 0:
            line = data[start:end]
            match = CHUNK_SIZE.fullmatch(line)
            if match is None:
                raise MalformedResponse(f"no size of a chunk: {line[:200]!r}")
            begin = end + 2
            end = begin + int(match[1], 16)
            after = end + 2
            if len(data) < after:
                self._keep(data[start:], after - start)
                return None
            if data[end:after] != END_OF_LINE:
                raise MalformedResponse(f"a chunk is followed by {data[end : end + 200]!r}")
            if begin == end:
                return self._whole(head, b"".join(self._chunks), data[after:])
            self._chunks.append(data[begin:end])
            start = after
        self._keep(data[start:], len(data) - start + 1)
        return None

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
    chunked = fields.get(b"transfer-encoding", b"").lower() == b"chunked"
    if chunked is (length is not None) or (length is not None and not length.isdigit()):
        raise MalformedResponse(f"neither a length nor chunks: {head[:500]!r}")
    return Head(
        int(status[1]),
        fields.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1"),
        int(length) if length is not None else None,
        session.decode("latin-1") if session is not None else None,
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
