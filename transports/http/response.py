"""One HTTP response: a single JSON object, or a stream of events, decided by what happens.

The head is held back until the first message is known. A request that is answered at once gets JSON, and the status that
fits the answer; a notification or a request that has to go out first makes the response a stream.

What is put in keeps its order from then on and never waits. Writing is apart from that, because it may have to wait for the
client: whoever put something in flushes it, or has a task do so that waits for nothing else.
"""

import logging
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, Final

import anyio
import anyio.lowlevel
import msgspec

from mcpcore._tasks import start_task
from mcpcore.protocol.framing import encode_comment, encode_event
from mcpcore.protocol.messages import Kind, Outgoing
from mcpcore.types.jsonrpc import INTERNAL_ERROR, ErrorData

__all__ = ["SSE_HEADERS", "Receive", "Response", "Send", "respond", "retry_after"]

logger = logging.getLogger("mcpcore.transports.http")

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_JSON: Final = (b"content-type", b"application/json")
SSE_HEADERS: Final = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]

_MODERN_STATUS: Final = {-32601: 404, -32700: 400, -32600: 400, -32602: 400, -32020: 400, -32021: 400, -32022: 400}
"""Error code to status, before a stream has begun (2026-07-28, basic/transports/streamable-http); 200 otherwise."""

_LEGACY_STATUS: Final = {-32700: 400, -32600: 400}

_ANSWERS: Final = (Kind.RESPONSE, Kind.ERROR)
_FINAL: Final = (*_ANSWERS, Kind.END)


def retry_after(seconds: int) -> tuple[bytes, bytes]:
    """Return the field that says when to try again."""
    return b"retry-after", b"%d" % seconds


async def respond(
    send: Send, status: int, body: bytes = b"", headers: Sequence[tuple[bytes, bytes]] = (), *, json: bool = False
) -> None:
    """Send a whole response."""
    fields = [(b"content-length", b"%d" % len(body)), *headers]
    if body:
        fields.append(_JSON if json else (b"content-type", b"text/plain; charset=utf-8"))
    await send({"type": "http.response.start", "status": status, "headers": fields})
    await send({"type": "http.response.body", "body": body})


class Response:
    """The response to a POST, or to a GET that opened a stream.

    Args:
        send: The ASGI application's.
        modern: Which map from error codes to statuses applies.
        json: The client takes JSON.
        events: The client takes events.
        headers: For every form of response. More may be added until the head is decided.
        step_up: Makes the challenge for a request that lacks scopes.

    Attributes:
        opening: Called when the response becomes a stream; returns what it begins with.
        record: Called for each message that becomes an event; returns the id of the event.
        on_result: Called when a result is put in, before the head is decided.
        is_over: Nothing more can be put in.
        is_lost: The client went before that.
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
    ) -> None:
        self.headers = list(headers)
        self._send = send
        self._status = _MODERN_STATUS if modern else _LEGACY_STATUS
        self._json = json
        self._events = events
        self._step_up = step_up
        self.opening: Callable[[], bytes] = bytes
        self.record: Callable[[bytes], str | None] = _no_id
        self.on_result: Callable[[], None] = _nothing
        self._head: tuple[int, list[tuple[bytes, bytes]]] | None = None
        self._is_decided = False
        self._body: list[bytes] = []
        self.queued_bytes = 0
        """How much waits to be written."""
        self.is_over = False
        self.is_lost = False
        self._is_complete = False
        self._is_held = False
        self._is_writing = False
        self._is_due = False  # a task is about to write
        self._written: anyio.Event | None = None
        self._written_at = 0.0  # seconds of the event loop's clock
        self._wake: Callable[[], None] = _nothing

    # -- what goes in ----------------------------------------------------------------------------------------------

    def is_whole(self, message: Outgoing) -> bool:
        """Tell whether ``message`` would be the whole response, as JSON."""
        return not self._is_decided and message.kind in _ANSWERS and (self._json or not self._events)

    def put(self, message: Outgoing) -> None:
        """Add one message; the answer ends the response."""
        if self.is_over:
            return
        if message.kind is Kind.RESPONSE:
            self.on_result()
        if self.is_whole(message):
            self._answer(message)
        elif self._events:
            self.begin()
            if message.kind is not Kind.END:
                self._add(encode_event(message.data, id=self.record(message.data)))
            self.is_over = message.kind in _FINAL
        elif message.kind is Kind.END:
            self.end()
        # else it is for clients that take events: this one gets nothing but the answer

    def begin(self) -> None:
        """Make the response a stream of events."""
        if not self._is_decided:
            self._decide(200, [*SSE_HEADERS, *self.headers])
            self._add(self.opening())

    def end(self) -> None:
        """End the response without an answer; one that has not begun is empty, with status 202."""
        if self.is_over:
            return
        if not self._is_decided:
            self._decide(202, [(b"content-length", b"0"), *self.headers])
        self.is_over = True

    def stop(self) -> None:
        """End a stream that waits for something to happen, because the server stops."""
        self.end()
        self._wake()

    def abandon(self) -> None:
        """End the response without an answer although one was due, because the server stops."""
        if not self.is_over and not self._is_decided:
            error = ErrorData(INTERNAL_ERROR, "Server is stopping: the request was given up")
            self._whole(503, msgspec.json.encode({"jsonrpc": "2.0", "error": error}), [retry_after(1)])
        self.is_over = self.is_lost = True
        self._wake()

    def _answer(self, message: Outgoing) -> None:
        status, fields = 200, list[tuple[bytes, bytes]]()
        if message.error_code is not None:
            status = self._status.get(message.error_code, 200)
        if message.challenge is not None:
            status = 403
            if self._step_up is not None:
                fields.append(self._step_up(message.challenge))
        if message.retry_after is not None:
            status = 503
            fields.append(retry_after(message.retry_after))
        self._whole(status, message.data, fields)

    def _whole(self, status: int, body: bytes, fields: Sequence[tuple[bytes, bytes]]) -> None:
        self._decide(status, [(b"content-length", b"%d" % len(body)), _JSON, *self.headers, *fields])
        self._add(body)
        self.is_over = True

    def _decide(self, status: int, fields: list[tuple[bytes, bytes]]) -> None:
        self._head = (status, fields)
        self._is_decided = True

    def _add(self, data: bytes) -> None:
        if data:
            self._body.append(data)
            self.queued_bytes += len(data)

    # -- what goes out ---------------------------------------------------------------------------------------------

    @property
    def has_output(self) -> bool:
        """Something waits to be written."""
        return self._head is not None or bool(self._body) or (self.is_over and not self._is_complete)

    def hold(self) -> None:
        """Write nothing until `release` is called."""
        self._is_held = True

    def release(self, first: bytes) -> None:
        """Write again, and ``first`` before all that was put in meanwhile."""
        self._is_held = False
        self._body.insert(0, first)
        self.queued_bytes += len(first)

    async def flush(self) -> None:
        """Write what waits to be written. Must not be cancelled: what was being written would be lost."""
        while self._is_writing:
            self._written = self._written or anyio.Event()
            await self._written.wait()
        if self._is_held or not self.has_output:
            return
        self._is_writing = True
        try:
            while self.has_output and not self._is_complete:
                await self._write()
        except OSError:  # what servers raise in `send` when the client has gone (ASGI, HTTP, "Disconnected Client")
            self.lose()
        finally:
            self._is_writing = False
            if self._written is not None:
                self._written.set()
                self._written = None
        if self.is_over:
            self._wake()

    async def _write(self) -> None:
        if self._head is not None:
            (status, fields), self._head = self._head, None
            await self._send({"type": "http.response.start", "status": status, "headers": fields})
        body, self._body, self.queued_bytes = b"".join(self._body), [], 0
        self._is_complete = self.is_over
        await self._send({"type": "http.response.body", "body": body, "more_body": not self._is_complete})
        if not self._is_complete:
            self._written_at = anyio.current_time()

    def lose(self) -> None:
        """Take note that the client has gone. What it has not got is forgotten."""
        if not self.is_over:
            self.is_over = self.is_lost = True
        self._is_complete = True
        self._head = None
        self._body.clear()
        self.queued_bytes = 0

    def wake(self) -> None:
        """Have what waits written soon: nobody should wait for the client of another."""
        if self.is_over:
            self._wake()
        elif not self._is_due:
            self._is_due = True
            start_task(self._flush_soon)

    async def _flush_soon(self) -> None:
        self._is_due = False
        try:
            await self.flush()
        except Exception:
            logger.exception("an event could not be written; its stream is given up")
            self.lose()
            self._wake()

    async def watch(self, receive: Receive, silence: float) -> None:
        """Wait until the response is over or its client has gone, and write what was there before.

        Args:
            receive: The ASGI application's.
            silence: Seconds of silence after which a comment keeps the response alive.
        """
        self._written_at = anyio.current_time()
        while not self._is_complete:
            with anyio.CancelScope(deadline=self._written_at + silence) as scope:
                self._wake = scope.cancel
                if not self.has_output and not self.is_over:
                    while (await receive())["type"] != "http.disconnect":
                        await anyio.lowlevel.checkpoint()  # some servers repeat the end of the body, again and again
                    self.lose()
                    return
            is_silent = anyio.current_time() >= self._written_at + silence
            if is_silent and self._events and not self.has_output and not self.is_over:
                self.begin()
                self._add(encode_comment())
            with anyio.CancelScope(shield=True):
                await self.flush()


def _nothing() -> None:
    return


def _no_id(data: bytes) -> None:
    return
