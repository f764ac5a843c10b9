"""The events that answer a POST or that a GET brings: one stream, over as many responses as it takes.

2025-11-25, basic/transports, "Resumability and Redelivery". Servers may end a response before the stream is at its end and
say when to come back; networks do the first without the second.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final

import anyio

from mcpcore.exceptions import ConnectionLost, RemoteProtocolError, TransportError
from mcpcore.protocol.framing import ServerSentEvent, SSEDecoder
from mcpcore.protocol.messages import Incoming, RequestScope
from mcpcore.transports.http._family import Response
from mcpcore.transports.http.replies import is_answer, media_type
from mcpcore.types.jsonrpc import RequestId

__all__ = ["EVENTS", "Deliver", "EventStream", "Take", "incoming", "is_event_stream"]

logger = logging.getLogger("mcpcore.transports.http")

Deliver = Callable[[Incoming], Awaitable[None]]
"""Hands a message on."""

Take = Callable[[bytes, Mapping[str, str]], Awaitable[None]]
"""Takes the answer to a request, with the header fields of the response it came in."""

Connect = Callable[[Mapping[str, bytes]], AbstractAsyncContextManager[Response]]
"""Sends a GET with these header fields added."""

EVENTS: Final = "text/event-stream"

_ATTEMPTS: Final = 2  # in a row that bring nothing, neither a message nor word of when to come back
_DELAY: Final = 1.0  # seconds before an attempt, where the server does not say
_SHORTEST: Final = 0.05  # seconds; a server that says less would be asked without end
_LINGER: Final = 1.0  # seconds for a response to end after the answer, so that its connection can be used again

_SCOPE: Final = RequestScope("http")


def incoming(data: bytes) -> Incoming:
    """Return a message that came over HTTP."""
    return Incoming(data, None, None, _SCOPE)


def is_event_stream(response: Response) -> bool:
    """Tell whether a response succeeded and brings events."""
    return response.status_code == 200 and media_type(response.headers.get("content-type")) == EVENTS


class EventStream:
    """A stream of messages.

    Args:
        deliver: Gets every message but the answer.
        max_event_size: Bytes of one event; a longer one is reported and skipped.
        request_id: The request that the stream answers; None for a stream that answers none.
        take: Gets the answer.
    """

    def __init__(
        self,
        deliver: Deliver,
        max_event_size: int,
        request_id: RequestId | None = None,
        take: Take | None = None,
    ) -> None:
        self._deliver = deliver
        self._max_event_size = max_event_size
        self._request_id = request_id
        self._take = take
        self._last_id: str | None = None
        self._delay = _DELAY
        self._attempts = 0
        self.is_answered = False

    async def read(self, response: Response) -> None:
        """Hand on the messages of one response. Once the answer is among them, its end is not waited for for long."""
        decoder = SSEDecoder(self._max_event_size)
        with anyio.CancelScope() as scope:
            async for chunk in response.aiter_bytes():
                for event in decoder.receive(chunk):
                    await self.hand_on(event, response.headers)
                if self.is_answered and scope.deadline == float("inf"):
                    scope.deadline = anyio.current_time() + _LINGER

    async def hand_on(self, event: ServerSentEvent | RemoteProtocolError, headers: Mapping[str, str]) -> None:
        """Do with one event what it is for. Must not raise: the response is being iterated."""
        if isinstance(event, RemoteProtocolError):
            await self._deliver(Incoming(b"", None, None, _SCOPE, event))
            return
        if event.id is not None:
            self._last_id = event.id or None
        if event.retry is not None:
            self._delay = max(event.retry / 1000, _SHORTEST)
        is_message = bool(event.data) and event.event in ("", "message")
        if is_message or event.retry is not None:
            self._attempts = 0
        if not is_message:
            return
        if self._take is None or self._request_id is None or not is_answer(event.data, self._request_id):
            await self._deliver(incoming(event.data))
        elif not self.is_answered:
            self.is_answered = True
            await self._take(event.data, headers)

    @property
    def can_resume(self) -> bool:
        """There is a place to resume from."""
        return self._last_id is not None

    async def resume(self, connect: Connect) -> None:
        """Go on until the answer has come.

        Raises:
            ConnectionLost: It does not come.
        """
        while not self.is_answered:
            if not self.can_resume or not await self.pause():
                raise ConnectionLost("the stream ended before the answer, and cannot be resumed")
            try:
                async with connect(self.place) as response:
                    if not is_event_stream(response):
                        raise ConnectionLost(
                            f"the stream ended before the answer; resuming it was refused with {response.status_code}",
                            status=response.status_code,
                        )
                    await self.read(response)
            except TransportError as error:
                if error.status is not None:
                    raise
                logger.debug("a stream broke while it was resumed: %s", error)

    @property
    def place(self) -> dict[str, bytes]:
        """The header field that says where to go on."""
        return {} if self._last_id is None else {"last-event-id": self._last_id.encode()}

    async def pause(self) -> bool:
        """Wait as long as the server asked for before the next attempt; False when there have been enough."""
        if self._attempts == _ATTEMPTS:
            return False
        self._attempts += 1
        await anyio.sleep(self._delay)
        return True
