"""The MCP endpoint as a bare ASGI application: both eras on one path, mountable anywhere, no lifespan needed.

The order of checks is the specification's: Host and Origin, then who calls, then the form of the request; only then is
anything made for it (2026-07-28, basic/transports/streamable-http; 2025-11-25, basic/transports).
"""

from collections.abc import Awaitable, Callable, Hashable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, Final, Literal

from mcpcore.abc import ChannelInfo, OneShotChannel
from mcpcore.auth.resource import ResourceServer
from mcpcore.limits import Limits
from mcpcore.protocol.inbound import classify
from mcpcore.protocol.messages import Incoming, RequestScope
from mcpcore.transports.http.application import Application, HTTPRequest
from mcpcore.transports.http.bearer import Bearer
from mcpcore.transports.http.channel import ExchangeChannel
from mcpcore.transports.http.eventlog import EventLogFactory, MemoryEventLog
from mcpcore.transports.http.guard import Guard
from mcpcore.transports.http.headers import Headers, accepts
from mcpcore.transports.http.requests import Refusal, Scope, below_mount, peer, read_body
from mcpcore.transports.http.response import Response, respond, retry_after
from mcpcore.transports.http.routes import Routes
from mcpcore.transports.http.sessions import HTTPSession, Sessions
from mcpcore.transports.http.stream import Stream, parse_event_id
from mcpcore.versions import LEGACY_VERSIONS, Era

__all__ = ["StreamableHTTPApp"]

_FALLBACK: Final = "2025-03-26"
_LISTEN: Final = "subscriptions/listen"
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
        json_response: Every request but ``subscriptions/listen`` is answered with one JSON object. Handlers then cannot
            report, log or ask while they run; in the modern era they can still ask.
        routes: Paths beside the endpoint.
        health: Serve ``/livez`` and ``/readyz``.
    """

    def __init__(
        self,
        handler: Callable[[OneShotChannel], Awaitable[None]],
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
        json_response: bool = False,
        routes: Routes | None = None,
        health: bool = False,
    ) -> None:
        bearer = None if auth is None else Bearer(auth, "/" + path.strip("/"))
        super().__init__(running, guard, bearer, limits, routes, health)
        self._handler = handler
        self._path = "/" + path.strip("/")
        self._stateless = stateless
        self._retry_ms = retry_ms
        self._json_response = json_response
        kept = self._limits.events, self._limits.outbox
        make_log: EventLogFactory | None = (lambda _: MemoryEventLog(*kept)) if event_log == "memory" else event_log
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

    async def _serve(self, request: HTTPRequest) -> None:
        if self.sessions.has_idle:
            await self.sessions.sweep()
        method = request.scope["method"]
        if method == "POST":
            await self._post(request)
        elif method in ("GET", "DELETE"):
            await self._session_method(method, request)
        else:
            allowed = b"POST" if self._stateless else b"GET, POST, DELETE"
            raise Refusal(405, f"{method} is not served here", headers=[(b"allow", allowed)])

    async def _post(self, request: HTTPRequest) -> None:
        headers = request.headers
        json, events = accepts(headers.get("accept"))
        if not json and not events:
            raise Refusal(406, "Accept must name application/json, text/event-stream, or both")
        body = await read_body(headers, request.receive, self._limits.message_size)
        inbound = classify(body, headers)
        modern = inbound.era is Era.MODERN
        # That this header says what the body does is made sure of by the core.
        json, events = self._forms(json, events, listens=modern and headers.get("mcp-method") == _LISTEN)
        session = None if modern else self._session_of(request, inbound.initializes)
        version = None
        if not modern and not inbound.initializes:
            named = _legacy_version(headers)
            version = None if session is not None else named or _FALLBACK
        response = Response(
            request.send,
            modern=modern,
            json=json,
            events=events,
            headers=request.extra,
            step_up=None if self._bearer is None else partial(self._bearer.step_up, request.scope),
        )
        stream = None if session is None else self._open_stream(session, request, response, inbound.initializes)
        scope = RequestScope(
            "http",
            headers,
            peer(request.scope),
            request.principal,
            session.id if session is not None else None,
            close_stream=stream.detach if stream is not None and stream.can_resume else None,
        )
        info = ChannelInfo(
            "http",
            one_shot=True,
            session_version=version,
            session=session,
            back_channel=events and session is not None,
            disconnect_cancels=modern,
        )
        message = Incoming(body, headers, stream or response, scope)
        on_loss = _nothing if session is None else partial(self.sessions.touch, session)
        channel = ExchangeChannel(info, message, response, request.receive, self._limits.stream_after, on_loss)
        self._unfinished.add(channel)
        try:
            await self._handler(channel)
        finally:
            self._finished(channel)
            if session is not None and stream is not None:
                session.close(stream)
                self.sessions.touch(session)
        await channel.aclose()

    def _forms(self, json: bool, events: bool, listens: bool) -> tuple[bool, bool]:
        """Tell whether the response may be JSON, and whether it may be a stream of events, from what is accepted."""
        if listens and not events:
            raise Refusal(406, f"Accept must name text/event-stream: {_LISTEN} is answered by a stream")
        if listens or not self._json_response:
            return json, events
        if not json:
            raise Refusal(406, "Accept must name application/json: this server answers with nothing else")
        return True, False

    def _open_stream(self, session: HTTPSession, request: HTTPRequest, response: Response, initializes: bool) -> Stream:
        if initializes and not self.sessions.is_known(session):
            response.on_result = partial(self._begun, session, response)
        stream = session.open(self._retry_ms)
        stream.carry(response, primed=(request.headers.get("mcp-protocol-version") or "") >= _PRIMING)
        return stream

    def _begun(self, session: HTTPSession, response: Response) -> None:
        """``initialize`` succeeded: from here on there is a session."""
        response.headers.append((b"mcp-session-id", session.id.encode()))
        self.sessions.add(session)

    def _session_of(self, request: HTTPRequest, initializes: bool) -> HTTPSession | None:
        if self._stateless:
            return None
        id = request.headers.get("mcp-session-id")
        if initializes and id is None:
            session = self.sessions.make(request.principal)
            if session is None:
                raise Refusal(503, "too many sessions; try again later", headers=[retry_after(60)])
            return session
        return self._known_session(id, request.principal)

    def _known_session(self, id: str | None, principal: Hashable) -> HTTPSession:
        if id is None:
            raise Refusal(400, "Mcp-Session-Id is missing; send initialize first")
        session = self.sessions.find(id, principal)
        if session is None:
            raise Refusal(404, "the session does not exist any more; send initialize without Mcp-Session-Id")
        return session

    # -- the other methods of legacy sessions --------------------------------------------------------------------

    async def _session_method(self, method: str, request: HTTPRequest) -> None:
        headers = request.headers
        named = headers.get("mcp-protocol-version")
        if self._stateless or (named is not None and named not in LEGACY_VERSIONS):
            raise Refusal(405, f"{method} is not served here", headers=[(b"allow", b"POST")])
        session = self._known_session(headers.get("mcp-session-id"), request.principal)
        if method == "DELETE":
            await self.sessions.end(session)
            await respond(request.send, 200, headers=request.extra)
            return
        if not accepts(headers.get("accept"))[1]:
            raise Refusal(406, "Accept must name text/event-stream")
        response = Response(request.send, modern=False, json=False, headers=request.extra)
        self._unfinished.add(response)
        try:
            await self._carry(session, response, headers.get("last-event-id"))
            await response.watch(request.receive, self._limits.stream_after)
        finally:
            self._finished(response)
            response.lose()
            self.sessions.touch(session)

    async def _carry(self, session: HTTPSession, response: Response, last: str | None) -> None:
        """Carry the stream of messages that belong to no request, or go on with one that was interrupted."""
        if last is None:
            if session.standalone.is_carried:
                raise Refusal(409, "the session has a stream already")
            session.standalone.carry(response)
            response.begin()
            return
        if session.log is None:
            raise Refusal(400, "nothing can be resumed here; leave out Last-Event-ID")
        event = parse_event_id(last)
        if event is None or not await session.stream(event[0]).resume(response, event[1]):
            raise Refusal(404, f"event {last[:64]!r} is not known in this session")


def _legacy_version(headers: Headers) -> str | None:
    named = headers.get("mcp-protocol-version")
    if named is not None and named not in LEGACY_VERSIONS:
        known = ", ".join(LEGACY_VERSIONS)
        raise Refusal(400, f"MCP-Protocol-Version {named[:64]!r} is not supported; sessions speak {known}")
    return named


def _nothing() -> None:
    return
