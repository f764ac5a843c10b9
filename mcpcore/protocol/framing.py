"""Messages in a stream of bytes: one to a line, or as Server-Sent Events. No input makes a decoder raise.

Both decoders promise three things. How the bytes were cut into reads changes nothing in what comes out. The work is
linear in the number of bytes: a byte is looked at when it arrives and once more when its message is complete, and
what waits for its end is kept in one growing buffer. And damage stays where it is: a piece that is too long or is not
UTF-8 comes out as one `RemoteProtocolError` in its place, the answer to give, and what follows is read as usual.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from mcpcore.exceptions import RemoteProtocolError
from mcpcore.types.jsonrpc import INVALID_REQUEST, PARSE_ERROR

__all__ = [
    "MAX_MESSAGE_SIZE",
    "LineDecoder",
    "SSEDecoder",
    "ServerSentEvent",
    "encode_comment",
    "encode_event",
    "encode_line",
    "encode_lines",
]

MAX_MESSAGE_SIZE: Final = 64 * 1024 * 1024
"""Bytes of one message, unless a decoder is told otherwise."""

_MOST_PIECES: Final = 64
_BOM: Final = b"\xef\xbb\xbf"


class _Held:
    """The start of a line whose end has not come. A few pieces are joined once; many small ones as they come."""

    __slots__ = ("_joined", "_pieces", "size")

    def __init__(self) -> None:
        self._joined = bytearray()
        self._pieces: list[bytes] = []
        self.size = 0

    def add(self, data: bytes) -> None:
        self.size += len(data)
        self._pieces.append(data)
        if len(self._pieces) > _MOST_PIECES:
            self._joined += b"".join(self._pieces)
            self._pieces.clear()

    def take(self) -> bytes:
        """Return all of it and be empty again."""
        line = b"".join((self._joined, *self._pieces))
        self._joined = bytearray()
        self._pieces.clear()
        self.size = 0
        return line


# -- lines -------------------------------------------------------------------------------------------------------


class LineDecoder:
    """Cuts a stream into lines (2026-07-28, basic/transports/stdio: "Messages are delimited by newlines").

    Only LF ends a line. A CR before it belongs to the line end; any other CR, and the separators U+2028, U+2029 and
    U+0085, are content. Blank lines are skipped, and so is a byte order mark at the start of the stream.

    Args:
        max_size: Bytes that a line may have, without its LF.
    """

    __slots__ = ("_at_start", "_held", "_max_size", "_skipping")

    def __init__(self, max_size: int = MAX_MESSAGE_SIZE) -> None:
        self._max_size = max_size
        self._held = _Held()
        self._skipping = False  # that line is too long, which has been reported
        self._at_start = True

    def receive(self, data: bytes) -> list[bytes | RemoteProtocolError]:
        """Take the next bytes of the stream, return the lines that they complete, in order."""
        found: list[bytes | RemoteProtocolError] = []
        if b"\n" not in data:  # `split` would find that out at a third of the speed
            self._hold(data, found)
            return found
        lines = data.split(b"\n")
        rest = lines.pop()
        if lines and (self._held.size or self._skipping or self._at_start):
            self._end_line(lines.pop(0), found)
        if lines:
            if len(data) <= self._max_size and b"\r" not in data and data.isascii():
                found += [line for line in lines if line and not line.isspace()]  # what most reads come down to
            else:
                for line in lines:
                    self._add_line(line, found)
        if rest:
            self._hold(rest, found)
        return found

    def receive_eof(self) -> list[bytes | RemoteProtocolError]:
        """Take the end of the stream. A last line without LF counts as a line: it may be a whole message."""
        found: list[bytes | RemoteProtocolError] = []
        self._end_line(b"", found)
        return found

    def _hold(self, data: bytes, found: list[bytes | RemoteProtocolError]) -> None:
        if self._skipping:
            return
        if self._held.size + len(data) > self._max_size:
            self._held = _Held()
            self._skipping = True
            found.append(_too_long("message", self._max_size))
        else:
            self._held.add(data)

    def _end_line(self, data: bytes, found: list[bytes | RemoteProtocolError]) -> None:
        """End the line that is held with ``data``."""
        self._hold(data, found)
        if not self._skipping:
            line = self._held.take()
            self._add_line(line.removeprefix(_BOM) if self._at_start else line, found)
        self._skipping = False
        self._at_start = False

    def _add_line(self, line: bytes, found: list[bytes | RemoteProtocolError]) -> None:
        if len(line) > self._max_size:
            found.append(_too_long("message", self._max_size))
            return
        line = line.removesuffix(b"\r")
        if not line or line.isspace():
            return
        found.append(line if _is_utf8(line) else _not_utf8())


def encode_line(data: bytes) -> bytes:
    """Frame one message. JSON text of this library has no line break in it, so that nothing needs to be escaped."""
    return data + b"\n"


def encode_lines(messages: Iterable[bytes]) -> bytes:
    """Frame several messages for one write."""
    return b"\n".join([*messages, b""])


# -- Server-Sent Events ------------------------------------------------------------------------------------------


class ServerSentEvent(Struct, frozen=True, gc=False):
    """One event of a stream.

    Args:
        data: The lines of data, joined by LF. Empty for an event that only carries an id or a delay.
        event: The event's name; "" where it has none, which means ``message``.
        id: Where to resume after this event; None where the event does not say. "" takes back an earlier id.
        retry: Milliseconds to wait before reconnecting.
    """

    data: bytes
    event: str = ""
    id: str | None = None
    retry: int | None = None


class SSEDecoder:
    """Cuts a stream into events (WHATWG HTML, "Server-sent events", "Interpreting an event stream").

    Two deliberate differences: an event with an id or a delay but no data comes out as well, because MCP primes
    streams with such events (2025-11-25, basic/transports, "Sending Messages to the Server"); and data that is not
    UTF-8 is reported instead of being replaced by question marks.

    Args:
        max_event_size: Bytes of data that an event may have.
    """

    __slots__ = (
        "_after_cr",
        "_at_start",
        "_data",
        "_event",
        "_held",
        "_id",
        "_max_line",
        "_max_size",
        "_retry",
        "_size",
        "_skipping_event",
        "_skipping_line",
    )

    def __init__(self, max_event_size: int = MAX_MESSAGE_SIZE) -> None:
        self._max_size = max_event_size
        self._max_line = max_event_size + len(_LONGEST_FIELD)
        self._held = _Held()
        self._at_start = True
        self._after_cr = False  # the last byte was a CR; an LF now belongs to it
        self._skipping_line = False
        # The event so far.
        self._data: list[bytes] = []
        self._size = 0
        self._event = ""
        self._id: str | None = None
        self._retry: int | None = None
        self._skipping_event = False  # it is too long, which has been reported

    def receive(self, data: bytes) -> list[ServerSentEvent | RemoteProtocolError]:
        """Take the next bytes of the stream, return the events that they complete, in order."""
        if not data:
            return []
        if self._after_cr:
            data = data.removeprefix(b"\n")
        self._after_cr = data.endswith(b"\r")
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = data.split(b"\n")
        found: list[ServerSentEvent | RemoteProtocolError] = []
        for line in lines:
            if self._held.size or self._skipping_line or self._at_start:
                self._end_line(line, found)
            else:
                self._add_line(line, found)
        if rest:
            self._hold(rest, found)
        return found

    def receive_eof(self) -> None:
        """Take the end of the stream. An event without its blank line is dropped: nobody knows what it lacks."""
        self._held = _Held()
        self._clear()

    def _hold(self, data: bytes, found: list[ServerSentEvent | RemoteProtocolError]) -> None:
        if self._skipping_line:
            return
        if self._held.size + len(data) > self._max_line:
            self._held = _Held()
            self._skipping_line = True
            self._skip_event(found)
        else:
            self._held.add(data)

    def _end_line(self, data: bytes, found: list[ServerSentEvent | RemoteProtocolError]) -> None:
        self._hold(data, found)
        if not self._skipping_line:
            line = self._held.take()
            self._add_line(line.removeprefix(_BOM) if self._at_start else line, found)
        self._skipping_line = False
        self._at_start = False

    def _add_line(self, line: bytes, found: list[ServerSentEvent | RemoteProtocolError]) -> None:
        if not line:
            self._end_event(found)
            return
        if len(line) > self._max_line:
            self._skip_event(found)
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._size += len(value) + 1
            if self._size > self._max_size + 1:  # the last line's LF is not part of the data
                self._skip_event(found)
            elif not self._skipping_event:
                self._data.append(value)
        elif field == b"event":
            self._event = value.decode(errors="replace")
        elif field == b"id":
            if b"\0" not in value:
                self._id = value.decode(errors="replace")
        elif field == b"retry" and value.isdigit() and len(value) <= _RETRY_DIGITS:
            self._retry = int(value)
        # anything else is a comment or a field to be ignored

    def _skip_event(self, found: list[ServerSentEvent | RemoteProtocolError]) -> None:
        if not self._skipping_event:
            self._skipping_event = True
            found.append(_too_long("event", self._max_size))
        self._data.clear()

    def _end_event(self, found: list[ServerSentEvent | RemoteProtocolError]) -> None:
        if not self._skipping_event and (self._data or self._id is not None or self._retry is not None):
            data = b"\n".join(self._data)
            if _is_utf8(data):
                found.append(ServerSentEvent(data, self._event, self._id, self._retry))
            else:
                found.append(_not_utf8())
        self._clear()

    def _clear(self) -> None:
        self._data = []
        self._size = 0
        self._event = ""
        self._id = None
        self._retry = None
        self._skipping_event = False


_LONGEST_FIELD: Final = b"event: "
_RETRY_DIGITS: Final = 15  # of milliseconds: 30 000 years; int() refuses to read numbers of thousands of digits


def encode_event(data: bytes, event: str | None = None, id: str | None = None, retry: int | None = None) -> bytes:
    """Frame one message as an event.

    Args:
        data: UTF-8 JSON, or nothing. The characters that other readers take for line ends are escaped.
        event: The event's name.
        id: Where to resume after this event.
        retry: Milliseconds to wait before reconnecting.

    Raises:
        ValueError: ``event`` or ``id`` has a character that would end its line, or is U+0000.
    """
    if not data.isascii():
        for character, escape in _ESCAPES:
            data = data.replace(character, escape)
    head = b""
    if event is not None:
        head += b"event: %b\n" % _one_line(event)
    if id is not None:
        head += b"id: %b\n" % _one_line(id)
    if retry is not None:
        head += b"retry: %d\n" % retry
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return b"%bdata: %b\n\n" % (head, lines.replace(b"\n", b"\ndata: "))


# Legal in JSON text and in events, but readers that split decoded text with a general-purpose function cut here.
_ESCAPES: Final = tuple((chr(code).encode(), b"\\u%04x" % code) for code in (0x2028, 0x2029, 0x85))


def encode_comment(text: str = "") -> bytes:
    """Frame a comment, which keeps a silent stream open and is ignored by readers."""
    return b"".join(b": %b\n" % line.encode() for line in text.splitlines() or [""]) + b"\n"


def _one_line(text: str) -> bytes:
    if any(character in text for character in "\r\n\0"):
        raise ValueError(f"{text!r} cannot be written as one line of an event; leave out line breaks and U+0000")
    return text.encode()


# -- both --------------------------------------------------------------------------------------------------------


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _not_utf8() -> RemoteProtocolError:
    return RemoteProtocolError("Parse error: the message is not UTF-8", code=PARSE_ERROR)


def _too_long(what: str, limit: int) -> RemoteProtocolError:
    return RemoteProtocolError(f"Invalid request: the {what} is longer than {limit} bytes", code=INVALID_REQUEST)
