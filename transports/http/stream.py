"""What belongs to one request of a legacy session, or to none: kept for resumption, carried by one response after another.

2025-11-25, basic/transports, "Resumability and Redelivery". A client whose connection broke, or was told to come back later,
asks for the rest with ``Last-Event-ID``; the stream goes on in that response.
"""

from typing import Final

from mcpcore.protocol.framing import encode_event
from mcpcore.protocol.messages import Kind, Outgoing
from mcpcore.transports.http.eventlog import EventLog
from mcpcore.transports.http.response import Response

__all__ = ["Stream", "parse_event_id"]

_FINAL: Final = (Kind.RESPONSE, Kind.ERROR, Kind.END)


def parse_event_id(event_id: str) -> tuple[str, int] | None:
    """Return the stream that an event belongs to and its number in it; None for what is no id of ours."""
    name, _, number = event_id.rpartition("-")
    return (name, int(number)) if name and number.isascii() and number.isdigit() and len(number) < 18 else None


class Stream:
    """One stream.

    Args:
        name: Unique in its session.
        log: Keeps what is sent; None where nothing can be resumed.
        retry_ms: Milliseconds that clients are told to wait before they reconnect.

    Attributes:
        response: What carries it, if anything.
        is_complete: The answer has been put in, or there will be none.
    """

    def __init__(
        self, name: str, log: EventLog | None, retry_ms: int | None = None, *, is_complete: bool = False
    ) -> None:
        self.name = name
        self.response: Response | None = None
        self.is_complete = is_complete
        self._log = log
        self._retry_ms = retry_ms
        self._number = 0

    @property
    def can_resume(self) -> bool:
        """What was sent is kept."""
        return self._log is not None

    @property
    def is_carried(self) -> bool:
        """A response carries it, of which the client has not gone."""
        return self.response is not None and not self.response.is_over

    def put(self, message: Outgoing) -> None:
        """Add one message; the answer completes the stream. What no response carries only reaches the log."""
        if self.is_complete:
            return
        self.is_complete = message.kind in _FINAL
        if self.response is not None and not self.response.is_over:
            self.response.put(message)
        elif self._log is not None and message.data:
            self._record(message.data)

    async def flush(self) -> None:
        """Write what waits to be written."""
        if self.response is not None:
            await self.response.flush()

    def carry(self, response: Response, *, primed: bool = False) -> None:
        """Go on in ``response``. The one before it ends.

        Args:
            response: The response.
            primed: It begins with an event that has an id and no data, so that the client can resume from the start.
        """
        self._end_response()
        self.response = response
        if self._log is not None:
            response.record = self._record
            if primed:
                response.opening = self._opening

    async def resume(self, response: Response, number: int) -> bool:
        """Go on in ``response`` with what followed event ``number``. Returns False when that event is not known."""
        if self._log is None or await self._log.after(self.name, number) is None:
            return False
        response.hold()  # what is put in from here on comes after what was missed
        self.carry(response)
        missed = await self._log.after(self.name, number)
        response.begin()
        response.release(b"".join(encode_event(data, id=self._id(each)) for each, data in missed or () if data))
        if self.is_complete:
            response.end()
        return True

    async def detach(self) -> None:
        """End the response and go on without it: the client comes back for the rest with ``Last-Event-ID``."""
        if self.response is not None and self.is_carried and not self.is_complete:
            self.response.begin()
            self.response.end()
            await self.response.flush()

    def close(self) -> None:
        """End the stream, if it has not been completed, and the response."""
        self.is_complete = True
        self._end_response()

    def _end_response(self) -> None:
        """Have the task that watches the response end it: nobody else should wait for its client."""
        if self.response is not None and not self.response.is_over:
            self.response.end()
            self.response.wake()

    def _opening(self) -> bytes:
        return encode_event(b"", id=self._record(b""), retry=self._retry_ms)

    def _record(self, data: bytes) -> str:
        assert self._log is not None  # else nobody asks for an id
        self._number += 1
        self._log.append(self.name, self._number, data)
        return self._id(self._number)

    def _id(self, number: int) -> str:
        return f"{self.name}-{number}"
