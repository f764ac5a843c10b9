"""The MCP endpoint as a bare ASGI application: both eras on one path, mountable anywhere, no lifespan needed.

The order of checks is the specification's: Host and Origin, then who calls, then the form of the request; only then is
anything made for it (2026-07-28, basic/transports/streamable-http; 2025-11-25, basic/transports).
"""

from collections.abc import Awaitable, Callable, Hashable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, Final, Literal

from mcpcore.abc import Channel, ChannelInfo
from mcpcore.auth.resource import ResourceServer
from mcpcore.limits import Limits
from mcpcore.protocol.inbound import classify
from mcpcore.protocol.messages import Incoming, RequestScope
from mcpcore.transports.http.application import Application, Exchange
from mcpcore.transports.http.bearer import Bearer
from mcpcore.transports.http.channel import ExchangeChannel, wait_for_disconnect
from mcpcore.transports.http.eventlog import EventLogFactory, MemoryEventLog
from mcpcore.transports.http.guard import Guard
from mcpcore.transports.http.headers import Headers, accepts
from mcpcore.transports.http.requests import Refusal, Scope, below_mount, peer, read_body
from mcpcore.transports.http.sessions import STANDALONE, HTTPSession, Sessions
from mcpcore.transports.http.stream import Stream, respond
from mcpcore.versions import LEGACY_VERSIONS, Era

__all__ = ["StreamableHTTPApp"]

_FALLBACK: Final = "2025-03-26"
_PRIMING: Final = "2025-11-25"  # the first revision whose streams begin with an event that has an id and no data


class StreamableHTTPApp(Application):
    """An ASGI application that serves MCP.

    Args:
        handler: Serves a channel; the transport calls it for each POST.
        running: Entered before the first request, left when the host's lifespan ends.
        path: Where the endpoint is, below the place where the application is mounted.
        stateless: Legacy requests have no sessions.
        guard: Judges Host and Origin.
        auth: What protects the endpoint; None lets anybody call.
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
        auth: ResourceServer | None = None,
        limits: Limits | None = None,
        event_log: EventLogFactory | Literal["memory"] | None = "memory",
        retry_ms: int | None = None,
        on_session_end: Callable[[Any], None] = lambda state: None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        super().__init__(running, guard, None if auth is None else Bearer(auth, "/" + path.strip("/")), limits)
        self._handler = handler
        self._path = "/" + path.strip("/")
        self._stateless = stateless
        self._retry_ms = retry_ms
        most = self._limits.events
        make_log: EventLogFactory | None = (lambda _: MemoryEventLog(most)) if event_log == "memory" else event_log
        options: dict[str, Any] = {} if clock is None else {"clock": clock}
        self.sessions = Sessions(self._limits, make_log, lambda each: on_session_end(each.state), **options)

    async def _close(self) -> None:
        for session in self.sessions:
            await self.sessions.end(session)

    # -- requests ------------------------------------------------------------------------------------------------

    def _is_mine(self, scope: Scope) -> bool:
        """The path, and the place itself where the application is mounted; both with and without a slash at the end."""
        root, below = below_mount(scope)
        return below == self._path or bool(root and not below)

    async def _serve(self, exchange: Exchange) -> None:
        await self.sessions.sweep()
        method = exchange.scope["method"]
        if method == "POST":
            await self._post(exchange)
        elif method in ("GET", "DELETE"):
            await self._session_method(method, exchange)
        else:
            allowed = b"POST" if self._stateless else b"GET, POST, DELETE"
            raise Refusal(405, f"{method} is not served here", headers=[(b"allow", allowed)])

    async def _post(self, exchange: Exchange) -> None:
        headers = exchange.headers
        json, events = accepts(headers.get("accept"))
        if not json and not events:
            raise Refusal(406, "Accept must name application/json, text/event-stream, or both")
        body = await read_body(headers, exchange.receive, self._limits.message_size)
        inbound = classify(body, headers)
        modern = inbound.era is Era.MODERN
        session = None if modern else self._session_of(exchange, inbound.initializes)
        version = None
        if not modern and not inbound.initializes:
            named = _legacy_version(headers)
            version = None if session is not None else named or _FALLBACK
        stream = self._stream(exchange, session, modern=modern, json=json, events=events)
        log = stream.has_log
        scope = RequestScope(
            "http",
            headers,
            peer(exchange.scope),
            exchange.principal,
            session.id if session is not None else None,
            close_stream=stream.detach if log else None,
        )
        info = ChannelInfo(
            "http",
            one_shot=True,
            session_version=version,
            session=session,
            back_channel=events and session is not None,
            disconnect_cancels=modern,
        )
        message = Incoming(body, headers, stream, scope)
        channel = ExchangeChannel(info, message, stream, exchange.receive, self._limits.stream_after)
        if session is None:
            await self._handler(channel)
            await stream.close()
        else:
            await self._post_to_session(session, channel, stream, inbound.initializes)

    def _stream(
        self, exchange: Exchange, session: HTTPSession | None, *, modern: bool, json: bool, events: bool
    ) -> Stream:
        log = session.log if session is not None else None
        return Stream(
            exchange.send,
            modern=modern,
            json=json,
            events=events,
            headers=exchange.extra,
            log=log,
            name=session.name_stream() if session is not None else "",
            step_up=None if self._bearer is None else partial(self._bearer.step_up, exchange.scope),
            primed=(exchange.headers.get("mcp-protocol-version") or "") >= _PRIMING,
            retry_ms=self._retry_ms,
        )

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

    def _session_of(self, exchange: Exchange, initializes: bool) -> HTTPSession | None:
        if self._stateless:
            return None
        id = exchange.headers.get("mcp-session-id")
        if initializes and id is None:
            session = self.sessions.make(exchange.principal)
            if session is None:
                raise Refusal(503, "too many sessions; try again later", headers=[(b"retry-after", b"60")])
            return session
        return self._known_session(id, exchange.principal)

    def _known_session(self, id: str | None, principal: Hashable) -> HTTPSession:
        if id is None:
            raise Refusal(400, "Mcp-Session-Id is missing; send initialize first")
        session = self.sessions.find(id, principal)
        if session is None:
            raise Refusal(404, "the session does not exist any more; send initialize without Mcp-Session-Id")
        return session

    # -- the other methods of legacy sessions --------------------------------------------------------------------

    async def _session_method(self, method: str, exchange: Exchange) -> None:
        headers = exchange.headers
        named = headers.get("mcp-protocol-version")
        if self._stateless or (named is not None and named not in LEGACY_VERSIONS):
            raise Refusal(405, f"{method} is not served here", headers=[(b"allow", b"POST")])
        session = self._known_session(headers.get("mcp-session-id"), exchange.principal)
        if method == "DELETE":
            await self.sessions.end(session)
            await respond(exchange.send, 200, headers=exchange.extra)
            return
        if not accepts(headers.get("accept"))[1]:
            raise Refusal(406, "Accept must name text/event-stream")
        session.busy += 1
        try:
            await self._get(session, exchange)
        finally:
            session.busy -= 1

    async def _get(self, session: HTTPSession, exchange: Exchange) -> None:
        """Open the stream for messages that belong to no request, or go on with one that was interrupted."""
        last, log = exchange.headers.get("last-event-id"), session.log
        missed = await log.after(last) if last is not None and log is not None else None
        if last is not None and missed is None:
            raise Refusal(404 if log is not None else 400, f"event {last[:64]!r} is not known in this session")
        name, events = missed if missed is not None else (STANDALONE, [])
        if missed is None and session.standalone is not None and not session.standalone.is_gone:
            raise Refusal(409, "the session has a stream already")
        running = session.streams.get(name)
        if running is not None:
            stream = running
            stream.attach(exchange.send)
        else:
            stream = Stream(exchange.send, modern=False, json=False, headers=exchange.extra, log=log, name=name)
        await stream.replay(events)
        if name == STANDALONE:
            session.standalone = stream
        elif running is None:
            await stream.close()  # the request has been answered; that was all of it
            return
        try:
            await wait_for_disconnect(exchange.receive, stream, self._limits.stream_after)
        finally:
            if session.standalone is stream:
                session.standalone = None


def _legacy_version(headers: Headers) -> str | None:
    named = headers.get("mcp-protocol-version")
    if named is not None and named not in LEGACY_VERSIONS:
        known = ", ".join(LEGACY_VERSIONS)
        raise Refusal(400, f"MCP-Protocol-Version {named[:64]!r} is not supported; sessions speak {known}")
    return named
