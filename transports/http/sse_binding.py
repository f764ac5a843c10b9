"""The client's end of HTTP+SSE: one stream that brings everything, and a second endpoint, named on it, for what is sent.

2024-11-05, basic/transports, "HTTP with SSE". It was replaced in 2025-03-26, and there are still servers that speak nothing
else.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import anyio

from mcpcore.exceptions import ConnectionLost, RemoteProtocolError, TransportError
from mcpcore.protocol.framing import ServerSentEvent
from mcpcore.protocol.messages import Outgoing
from mcpcore.transports._inbox import Inbox
from mcpcore.transports.http.endpoint import Endpoint
from mcpcore.transports.http.event_stream import Deliver, EventStream, is_event_stream
from mcpcore.transports.http.post import Poster

__all__ = ["SSEBinding"]

_PATIENCE: Final = 10.0  # seconds for the first event, by which such a server is known


class SSEBinding:
    """Sends and receives as servers of 2024-11-05 do.

    Args:
        endpoint: Where the stream is.
        inbox: Gets what comes. It fails when the stream ends: there is no other.
        max_message_size: Bytes.
    """

    def __init__(self, endpoint: Endpoint, inbox: Inbox, max_message_size: int) -> None:
        self._endpoint = endpoint
        self._inbox = inbox
        self._max_message_size = max_message_size
        self._poster = Poster(endpoint, inbox.put, max_message_size)
        self._messages: Poster | None = None

    async def run(self, *, task_status: Any = anyio.TASK_STATUS_IGNORED) -> None:
        """Read the stream until it ends. Started once the server has said where to send.

        Raises:
            TransportError: It does not say so, and is no such server.
        """
        failure: TransportError = ConnectionLost(f"{self._endpoint} has ended its stream of events")
        scope = anyio.CancelScope(deadline=anyio.current_time() + _PATIENCE)
        try:
            with scope:

                def begin(named: str | None) -> None:
                    nonlocal failure
                    try:
                        self._messages = self._poster_to(named)
                    except TransportError as error:
                        failure = error
                        scope.cancel()
                    else:
                        scope.deadline = float("inf")
                        task_status.started()

                async with self._poster.get({}) as response:
                    if not is_event_stream(response):
                        raise self._no_such_server(f"GET was answered with status {response.status_code}")
                    await _Stream(self._inbox.put, self._max_message_size, begin).read(response)
        except TransportError as error:
            failure = error
        if self._messages is None:
            if scope.cancelled_caught and isinstance(failure, ConnectionLost):
                failure = self._no_such_server(f"it does not say where to send within {_PATIENCE:g} seconds")
            raise failure
        self._inbox.fail(failure)

    def _poster_to(self, named: str | None) -> Poster:
        if named is None:
            raise self._no_such_server("its stream does not begin with where to send")
        return Poster(self._endpoint.sibling(named), self._inbox.put, self._max_message_size)

    def _no_such_server(self, why: str) -> TransportError:
        return TransportError(f"{self._endpoint} does not speak HTTP+SSE: {why}")

    async def post(self, message: Outgoing) -> None:
        """Send a message. Its answer, if it gets one, comes on the stream.

        Raises:
            TransportError: The server did not take it.
        """
        assert self._messages is not None  # run() has started
        refusal = await self._messages.tell(message, {})
        if refusal is not None:
            raise self._messages.error(refusal)


class _Stream(EventStream):
    """The stream; its first event says where to send."""

    def __init__(self, deliver: Deliver, max_event_size: int, begin: Callable[[str | None], None]) -> None:
        super().__init__(deliver, max_event_size)
        self._begin: Callable[[str | None], None] | None = begin

    async def hand_on(self, event: ServerSentEvent | RemoteProtocolError, headers: Mapping[str, str]) -> None:
        begin, self._begin = self._begin, None
        if begin is None:
            await super().hand_on(event, headers)
        elif isinstance(event, ServerSentEvent) and event.event == "endpoint" and event.data:
            begin(event.data.decode().strip())
        else:
            begin(None)
