"""The MCP endpoint as a bare ASGI application: both eras on one path, mountable anywhere, no lifespan needed.

The order of checks is the specification's: Host and Origin, then who calls, then the form of the request; only then is
anything made for it (2026-07-28, basic/transports/streamable-http; 2025-11-25, basic/transports).
"""

import logging
from collections.abc import Awaitable, Callable, Hashable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from typing import Any, Final, Literal

import anyio
import msgspec

from mcpcore.abc import Channel, ChannelInfo
from mcpcore.limits import Limits
from mcpcore.protocol.inbound import classify
from mcpcore.protocol.messages import Incoming, RequestScope
from mcpcore.transports.http.channel import ExchangeChannel, Receive, wait_for_disconnect
from mcpcore.transports.http.eventlog import EventLogFactory, MemoryEventLog
from mcpcore.transports.http.guard import Guard
from mcpcore.transports.http.headers import Headers, accepts, is_json
from mcpcore.transports.http.sessions import STANDALONE, HTTPSession, Sessions
from mcpcore.transports.http.stream import Send, Stream, respond
from mcpcore.types.jsonrpc import INVALID_REQUEST, ErrorData
from mcpcore.versions import LEGACY_VERSIONS, Era

__all__ = ["Authenticate", "Refusal", "StreamableHTTPApp"]

logger = logging.getLogger("mcpcore.transports.http")

Scope = dict[str, Any]

_FALLBACK: Final = "2025-03-26"
_PRIMING: Final = "2025-11-25"  # the first revision whose streams begin with an event that has an id and no data


class Refusal(Exception):
    """A request that is refused before it reaches the protocol.

    Args:
        status: The HTTP status.
        text: Why, for people and for the error in the body.
        headers: Further header fields.
    """

    def __init__(self, status: int, text: str, *, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        super().__init__(text)
        self.status = status
        self.headers = headers


Authenticate = Callable[[Headers, Scope], Awaitable[Hashable]]
"""Returns the principal of a request, or raises `Refusal` with a challenge."""


class StreamableHTTPApp:
    """An ASGI application that serves MCP.

    Args:
        handler: Serves a channel; the transport calls it for each POST.
        running: Entered before the first request, left when the host's lifespan ends.
        path: Where the endpoint is, below the place where the application is mounted.
        stateless: Legacy requests have no sessions.
        guard: Judges Host and Origin.
        authenticate: Finds out who calls; None lets anybody.
        limits: See `Limits`.
        event_log: Makes event logs for resumption; ``memory`` for the built-in one; None for no resumption.
        retry_ms: Milliseconds that clients are told to wait before they reconnect.
        on_session_end: Called with the state that the runtime kept in a session, when that has ended.
        clock: Seconds, for the idleness of sessions.
    """

    def __init__(
        self,
        handler: Callable[[Channel], Awaitable[None]],
        running: Callable[[], AbstractAsyncContextManager[None]],
        *,
        path: str = "/mcp",
        stateless: bool = False,
        guard: Guard | None = None,
        authenticate: Authenticate | None = None,
        limits: Limits | None = None,
        event_log: EventLogFactory | Literal["memory"] | None = "memory",
        retry_ms: int | None = None,
        on_session_end: Callable[[Any], None] = lambda state: None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._handler = handler
        self._running = running
        self._path = "/" + path.strip("/")
        self._stateless = stateless
        self._guard = guard or Guard()
        self._authenticate = authenticate
        self._limits = limits or Limits()
        self._retry_ms = retry_ms
        most = self._limits.events
        make_log: EventLogFactory | None = (lambda _: MemoryEventLog(most)) if event_log == "memory" else event_log
        options: dict[str, Any] = {} if clock is None else {"clock": clock}
        self.sessions = Sessions(self._limits, make_log, lambda each: on_session_end(each.state), **options)
        self._stack = AsyncExitStack()
        self._starting: anyio.Event | None = None
        self._started = False

    # -- life ----------------------------------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI interface."""
        if scope["type"] == "http":
            await self._serve(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        else:
            raise RuntimeError(f"this application serves HTTP, not {scope['type']}")

    async def start(self) -> None:
        """Enter the server's lifespan. The first request does it where the host has no lifespan."""
        if self._started:
            return
        if self._starting is not None:
            await self._starting.wait()
            return
        self._starting = anyio.Event()
        try:
            await self._stack.enter_async_context(self._running())
            self._started = True
        finally:
            self._starting.set()
            self._starting = None

    async def aclose(self) -> None:
        """End all sessions and streams, then leave the server's lifespan."""
        for session in self.sessions:
            await self.sessions.end(session)
        self._started = False
        await self._stack.aclose()

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    await self.start()
                except Exception as error:
                    logger.exception("the server's lifespan failed to start")
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
                    return
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.aclose()
                await send({"type": "lifespan.shutdown.complete"})
                return

    # -- requests ------------------------------------------------------------------------------------------------

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope["headers"])
        extra = self._guard.cors_headers(headers) if self._guard.cors else []
        try:
            if not self._is_endpoint(scope):
                raise Refusal(404, "there is nothing here; the MCP endpoint is at " + self._path)
            refusal = self._guard.refusal(headers)
            if refusal is not None:
                logger.warning("refused a request: %s", refusal)
                raise Refusal(403, refusal)
            method = scope["method"]
            if method == "OPTIONS" and self._guard.cors:
                await respond(send, 204, headers=self._guard.cors_headers(headers, preflight=True))
                return
            principal = await self._authenticate(headers, scope) if self._authenticate is not None else None
            if not self._started:
                await self.start()
            await self.sessions.sweep()
            if method == "POST":
                await self._post(scope, headers, receive, send, principal, extra)
            elif method in ("GET", "DELETE"):
                await self._session_method(method, headers, receive, send, principal, extra)
            else:
                raise Refusal(405, f"{method} is not served here", headers=((b"allow", self._allowed()),))
        except Refusal as refused:
            body = msgspec.json.encode(
                {"jsonrpc": "2.0", "error": ErrorData(INVALID_REQUEST, f"Invalid Request: {refused}")}
            )
            await respond(send, refused.status, body, [*refused.headers, *extra], json=True)

    def _is_endpoint(self, scope: Scope) -> bool:
        """The path with and without a slash at its end; also the place itself where the application is mounted."""
        root: str = scope.get("root_path", "")
        path: str = scope["path"]
        below = path.removeprefix(root) if root else path
        return below.rstrip("/") == self._path or bool(root and below.rstrip("/") == "")

    def _allowed(self) -> bytes:
        return b"POST" if self._stateless else b"GET, POST, DELETE"

    async def _post(
        self,
        scope: Scope,
        headers: Headers,
        receive: Receive,
        send: Send,
        principal: Hashable,
        extra: list[tuple[bytes, bytes]],
    ) -> None:
        if not is_json(headers.get("content-type")):
            raise Refusal(415, "send a JSON-RPC message as Content-Type: application/json")
        json, events = accepts(headers.get("accept"))
        if not json and not events:
            raise Refusal(406, "Accept must name application/json, text/event-stream, or both")
        body = await self._body(headers, receive)
        inbound = classify(body, headers)
        modern = inbound.era is Era.MODERN
        session = None if modern else self._session_of(headers, principal, inbound.initializes)
        if not modern and not inbound.initializes:
            _check_version(headers)
        log = session.log if session is not None else None
        stream = Stream(
            send,
            modern=modern,
            json=json,
            events=events,
            headers=extra,
            log=log,
            name=session.name_stream() if session is not None else "",
            primed=log is not None
            and not inbound.initializes
            and (headers.get("mcp-protocol-version") or "") >= _PRIMING,
            retry_ms=self._retry_ms,
        )
        request_scope = RequestScope(
            "http",
            headers,
            _peer(scope),
            principal,
            session.id if session is not None else None,
            close_stream=stream.detach if log is not None else None,
        )
        version = None
        if not modern and session is None and not inbound.initializes:
            version = headers.get("mcp-protocol-version") or _FALLBACK
        info = ChannelInfo(
            "http",
            one_shot=True,
            session_version=version,
            session=session,
            back_channel=events and session is not None,
            disconnect_cancels=modern,
        )
        channel = ExchangeChannel(
            info, Incoming(body, headers, stream, request_scope), stream, receive, self._limits.stream_after
        )
        if session is None:
            await self._handler(channel)
            await stream.close()
            return
        await self._post_to_session(session, channel, stream, inbound.initializes)

    async def _post_to_session(
        self, session: HTTPSession, channel: ExchangeChannel, stream: Stream, initializes: bool
    ) -> None:
        if initializes and not self.sessions.is_known(session):
            stream.on_success = partial(self._opened, session, stream)
        session.streams[stream.name] = stream
        session.busy += 1
        try:
            await self._handler(channel)
        finally:
            session.busy -= 1
            session.streams.pop(stream.name, None)
        await stream.close()

    def _opened(self, session: HTTPSession, stream: Stream) -> None:
        """``initialize`` succeeded: from here on there is a session."""
        stream.headers.append((b"mcp-session-id", session.id.encode()))
        self.sessions.add(session)

    def _session_of(self, headers: Headers, principal: Hashable, initializes: bool) -> HTTPSession | None:
        if self._stateless:
            return None
        id = headers.get("mcp-session-id")
        if initializes and id is None:
            session = self.sessions.make(principal)
            if session is None:
                raise Refusal(503, "too many sessions; try again later", headers=((b"retry-after", b"60"),))
            return session
        return self._known_session(id, principal)

    def _known_session(self, id: str | None, principal: Hashable) -> HTTPSession:
        if id is None:
            raise Refusal(400, "Mcp-Session-Id is missing; send initialize first")
        session = self.sessions.find(id, principal)
        if session is None:
            raise Refusal(404, "the session does not exist any more; send initialize without Mcp-Session-Id")
        return session

    async def _body(self, headers: Headers, receive: Receive) -> bytes:
        """Read the body, and no more of it than is allowed."""
        limit = self._limits.message_size
        announced = headers.get("content-length")
        if announced is not None and announced.isdigit() and int(announced) > limit:
            raise Refusal(413, f"a message has at most {limit} bytes")
        message = await receive()
        if not message.get("more_body", False) and message["type"] == "http.request":
            body: bytes = message.get("body", b"")
            chunks = [body]
        else:
            chunks = []
            size = 0
            while True:
                if message["type"] == "http.disconnect":
                    raise Refusal(400, "the body ended early")
                chunks.append(message.get("body", b""))
                size += len(chunks[-1])
                if size > limit:
                    raise Refusal(413, f"a message has at most {limit} bytes")
                if not message.get("more_body", False):
                    break
                message = await receive()
        if len(chunks) == 1 and len(chunks[0]) > limit:
            raise Refusal(413, f"a message has at most {limit} bytes")
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    # -- the other methods of legacy sessions --------------------------------------------------------------------

    async def _session_method(
        self,
        method: str,
        headers: Headers,
        receive: Receive,
        send: Send,
        principal: Hashable,
        extra: list[tuple[bytes, bytes]],
    ) -> None:
        named = headers.get("mcp-protocol-version")
        if self._stateless or (named is not None and named not in LEGACY_VERSIONS):
            raise Refusal(405, f"{method} is not served here", headers=((b"allow", b"POST"),))
        session = self._known_session(headers.get("mcp-session-id"), principal)
        if method == "DELETE":
            await self.sessions.end(session)
            await respond(send, 200, headers=extra)
            return
        if not accepts(headers.get("accept"))[1]:
            raise Refusal(406, "Accept must name text/event-stream")
        session.busy += 1
        try:
            await self._get(session, headers, receive, send, extra)
        finally:
            session.busy -= 1

    async def _get(
        self, session: HTTPSession, headers: Headers, receive: Receive, send: Send, extra: list[tuple[bytes, bytes]]
    ) -> None:
        last = headers.get("last-event-id")
        missed = await session.log.after(last) if last is not None and session.log is not None else None
        if last is not None and missed is None:
            raise Refusal(404 if session.log is not None else 400, f"event {last[:64]!r} is not known in this session")
        name = missed[0] if missed is not None else STANDALONE
        running = session.streams.get(name)
        if name == STANDALONE and session.standalone is not None and not session.standalone.is_gone and missed is None:
            raise Refusal(409, "the session has a stream already")
        stream = running or Stream(send, modern=False, json=False, headers=extra, log=session.log, name=name)
        if running is not None:
            running.attach(send)
        elif name == STANDALONE:
            session.standalone = stream
        await stream.replay(missed[1] if missed is not None else ())
        if running is None and name != STANDALONE:
            await stream.close()  # the request was answered; that was all of it
            return
        try:
            await wait_for_disconnect(receive, stream, self._limits.stream_after)
        finally:
            if session.standalone is stream:
                session.standalone = None


def _check_version(headers: Headers) -> None:
    named = headers.get("mcp-protocol-version")
    if named is not None and named not in LEGACY_VERSIONS:
        known = ", ".join(LEGACY_VERSIONS)
        raise Refusal(400, f"MCP-Protocol-Version {named[:64]!r} is not supported; sessions speak {known}")


def _peer(scope: Scope) -> str | None:
    client = scope.get("client")
    return f"{client[0]}:{client[1]}" if client else None
