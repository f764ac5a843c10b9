"""One HTTP response: a single JSON object, or a stream of events, decided by what happens.

The head is held back until the first message is known. A request that is answered at once gets JSON, and the status that
fits the answer; a notification or a request that has to go out first makes the response a stream.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from mcpcore.protocol.framing import encode_comment, encode_event
from mcpcore.protocol.messages import Kind, Outgoing
from mcpcore.transports.http.eventlog import EventLog

__all__ = ["SSE_HEADERS", "Send", "Stream", "respond"]

Send = Callable[[dict[str, Any]], Awaitable[None]]

_JSON: Final = (b"content-type", b"application/json")
SSE_HEADERS: Final = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]

_MODERN_STATUS: Final = {-32601: 404, -32700: 400, -32600: 400, -32602: 400, -32020: 400, -32021: 400, -32022: 400}
"""Error code to status, before a stream has begun (2026-07-28, basic/transports/streamable-http); 200 otherwise."""

_LEGACY_STATUS: Final = {-32700: 400, -32600: 400}


async def respond(
    send: Send, status: int, body: bytes = b"", headers: Sequence[tuple[bytes, bytes]] = (), *, json: bool = False
) -> None:
    """Send a whole response."""
    fields = [(b"content-length", b"%d" % len(body)), *headers]
    if body:
        fields.append(_JSON if json else (b"content-type", b"text/plain; charset=utf-8"))
    await send({"type": "http.response.start", "status": status, "headers": fields})
    await send({"type": "http.response.body", "body": body})


class Stream:
    """The response to one POST, or the stream that a GET opened.

    Args:
        send: The ASGI application's.
        modern: Which map from error codes to statuses applies.
        json: The client takes JSON.
        events: The client takes events.
        headers: For every form of response.
        step_up: Makes the challenge for a request that lacks scopes.
        log: Keeps events for resumption, under ``name``; None where there is none.
        primed: Begin with an event that has an id and no data, so that the client can resume from the start.
        retry_ms: Milliseconds after which a client should reconnect; told with the priming event.
    """

    def __init__(
        self,
        send: Send,
        *,
        modern: bool,
        json: bool = True,
        events: bool = True,
        headers: Sequence[tuple[bytes, bytes]] = (),
        step_up: Callable[[Sequence[str]], tuple[bytes, bytes]] | None = None,
        log: EventLog | None = None,
        name: str = "",
        primed: bool = False,
        retry_ms: int | None = None,
    ) -> None:
        self.headers = list(headers)
        self._send = send
        self._status = _MODERN_STATUS if modern else _LEGACY_STATUS
        self._json = json
        self._events = events
        self._step_up = step_up
        self._log = log
        self.name = name
        self._primed = primed and log is not None
        self._retry_ms = retry_ms
        self.began = False
        self.is_complete = False
        self.is_gone = False
        self.on_complete: Callable[[], None] = lambda: None
        self.on_success: Callable[[], None] = lambda: None

    @property
    def has_log(self) -> bool:
        """What is sent can be resumed."""
        return self._log is not None

    async def write(self, message: Outgoing) -> None:
        """Send one message; the answer ends the response. After the client has gone, messages only reach the log."""
        final = message.kind in (Kind.RESPONSE, Kind.ERROR, Kind.END)
        if self.is_complete:
            return
        if message.kind is Kind.RESPONSE:
            self.on_success()
        if not self.began and final and message.kind is not Kind.END and (self._json or not self._events):
            self._finish()
            await self._respond(message)
            return
        if not final and not self._events:
            return  # a client that takes JSON only gets nothing but the answer
        data = await self._framed(message) if message.kind is not Kind.END else b""
        if final:
            self._finish()
        if self.is_gone:
            return
        if not self.began:
            await self.begin()
        await self._send({"type": "http.response.body", "body": data, "more_body": not final})

    async def begin(self) -> None:
        """Start the stream of events, if it has not been started."""
        if self.began or self.is_gone:
            return
        self.began = True
        await self._send({"type": "http.response.start", "status": 200, "headers": [*SSE_HEADERS, *self.headers]})
        if self._primed and self._log is not None:
            first = await self._log.append(self.name, b"")
            body = encode_event(b"", id=first, retry=self._retry_ms)
            await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def detach(self) -> None:
        """End the response and go on without it: the client comes back for the rest with ``Last-Event-ID``."""
        if self.is_complete or self.is_gone:
            return
        await self.begin()
        self.is_gone = True
        self.on_complete()
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    def attach(self, send: Send) -> None:
        """Go on with the response to a client that came back."""
        self._send = send
        self._primed = False
        self.began = self.is_gone = False

    async def replay(self, events: Sequence[tuple[str, bytes]]) -> None:
        """Send what a client missed."""
        await self.begin()
        body = b"".join(encode_event(data, id=event_id) for event_id, data in events if data)
        if body:
            await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def keep_alive(self) -> None:
        """Send a comment, so that nobody between takes the connection for dead."""
        if self.is_complete or self.is_gone or not self._events:
            return
        await self.begin()
        await self._send({"type": "http.response.body", "body": encode_comment(""), "more_body": True})

    async def close(self) -> None:
        """End the response without an answer: 202 where nothing has been said."""
        if self.is_complete:
            return
        self._finish()
        if self.is_gone:
            return
        if self.began:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        else:
            await respond(self._send, 202, headers=self.headers)

    def _finish(self) -> None:
        self.is_complete = True
        self.on_complete()

    async def _respond(self, message: Outgoing) -> None:
        self.began = True
        status = 200 if message.error_code is None else self._status.get(message.error_code, 200)
        body = message.data
        fields = [(b"content-length", b"%d" % len(body)), _JSON, *self.headers]
        if message.challenge is not None:
            status = 403
            if self._step_up is not None:
                fields.append(self._step_up(message.challenge))
        await self._send({"type": "http.response.start", "status": status, "headers": fields})
        await self._send({"type": "http.response.body", "body": body})

    async def _framed(self, message: Outgoing) -> bytes:
        event_id = await self._log.append(self.name, message.data) if self._log is not None else None
        return encode_event(message.data, id=event_id)
