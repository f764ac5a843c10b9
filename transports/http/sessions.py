"""Legacy sessions: their identity, owner and life, and where their messages go.

2025-11-25, basic/transports, "Session Management". A session is made only for an ``initialize`` that succeeded, belongs to
the principal that made it, and ends by DELETE, by idleness, or with the server. An idle one has no task.
"""

import heapq
import secrets
import time
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import anyio

from mcpcore.limits import Limits
from mcpcore.protocol.messages import Kind, Outgoing
from mcpcore.transports.http.eventlog import EventLog, EventLogFactory
from mcpcore.transports.http.stream import Stream

__all__ = ["STANDALONE", "HTTPSession", "Sessions"]

STANDALONE = "s"
"""The name of the stream that GET opens, for messages that belong to no request."""


class HTTPSession:
    """One session: a `SessionSlot` that routes by tag.

    Args:
        id: Unguessable, visible ASCII.
        principal: Who made it.
        log: Keeps events for resumption; None where that is off.
        patience: Seconds that one stream may keep a message waiting before its client counts as gone.
    """

    __slots__ = ("_count", "_patience", "busy", "id", "last_used", "log", "principal", "standalone", "state", "streams")

    def __init__(self, id: str, principal: Hashable | None, log: EventLog | None, patience: float) -> None:
        self.id = id
        self.principal = principal
        self.log = log
        self.state: Any = None
        self.standalone: Stream | None = None
        self.streams: dict[str, Stream] = {}
        self.busy = 0
        self.last_used = 0.0
        self._count = 0
        self._patience = patience

    def name_stream(self) -> str:
        """Return a name for the stream of the next POST."""
        self._count += 1
        return f"p{self._count}"

    async def send(self, messages: list[Outgoing]) -> None:
        """Write each message to the stream of the POST that it belongs to, others to the standalone stream."""
        for message in messages:
            stream = message.tag if isinstance(message.tag, Stream) else self.standalone
            if stream is not None:
                await self._write(stream, message)
            elif self.log is not None and message.kind is not Kind.ERROR:
                await self.log.append(STANDALONE, message.data)  # for a client that comes back

    async def _write(self, stream: Stream, message: Outgoing) -> None:
        with anyio.move_on_after(self._patience) as waiting:
            await stream.write(message)
        if waiting.cancelled_caught:
            stream.is_gone = True  # it does not read; other streams of the session must not wait for it

    async def close(self) -> None:
        """End all streams."""
        for stream in [*self.streams.values(), *([self.standalone] if self.standalone else [])]:
            await stream.close()


class Sessions:
    """All sessions of one endpoint.

    Args:
        limits: ``sessions``, ``session_idle``, ``drain``.
        event_log: Makes the logs; None turns resumption off.
        on_end: Called with each session that has ended.
        clock: Seconds, for idleness.
    """

    def __init__(
        self,
        limits: Limits,
        event_log: EventLogFactory | None,
        on_end: Callable[[HTTPSession], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits = limits
        self._event_log = event_log
        self._on_end = on_end
        self._clock = clock
        self._sessions: dict[str, HTTPSession] = {}
        self._deadlines: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[HTTPSession]:
        return iter(list(self._sessions.values()))

    def make(self, principal: Hashable | None) -> HTTPSession | None:
        """Return a session that is not known yet, or None when there are too many."""
        if len(self._sessions) >= self._limits.sessions:
            return None
        id = secrets.token_urlsafe(24)
        log = self._event_log(id) if self._event_log is not None else None
        return HTTPSession(id, principal, log, self._limits.drain)

    def add(self, session: HTTPSession) -> None:
        """Make a session known: it has been initialised."""
        session.last_used = self._clock()
        self._sessions[session.id] = session
        heapq.heappush(self._deadlines, (session.last_used + self._limits.session_idle, session.id))

    def is_known(self, session: HTTPSession) -> bool:
        """Tell whether a session has been added and has not ended."""
        return session.id in self._sessions

    def find(self, id: str, principal: Hashable | None) -> HTTPSession | None:
        """Return a session of this principal. Somebody else's does not exist."""
        session = self._sessions.get(id)
        if session is None or session.principal != principal:
            return None
        session.last_used = self._clock()
        return session

    async def end(self, session: HTTPSession) -> None:
        """Forget a session and close its streams."""
        if self._sessions.pop(session.id, None) is None:
            return
        self._on_end(session)
        await session.close()
        if session.log is not None:
            await session.log.drop()

    async def sweep(self) -> None:
        """End sessions that nobody has used for long. One with an open request or stream is in use."""
        now = self._clock()
        while self._deadlines and self._deadlines[0][0] <= now:
            _, id = heapq.heappop(self._deadlines)
            session = self._sessions.get(id)
            if session is None:
                continue
            due = session.last_used + self._limits.session_idle
            if session.busy or due > now:
                heapq.heappush(self._deadlines, (max(due, now + self._limits.session_idle), id))
            else:
                await self.end(session)
