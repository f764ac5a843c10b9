"""Legacy sessions: their identity, owner and life, and where their messages go.

2025-11-25, basic/transports, "Session Management". A session is made only for an ``initialize`` that succeeded, belongs to
the principal that made it, and ends by DELETE, by idleness, or with the server. An idle one has no task.
"""

import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Final

from mcpcore.limits import Limits
from mcpcore.protocol.messages import Kind, Outgoing
from mcpcore.transports.http.eventlog import EventLog, EventLogFactory
from mcpcore.transports.http.stream import Stream

__all__ = ["STANDALONE", "HTTPSession", "Sessions"]

logger: Final = logging.getLogger("mcpcore.transports.http")

STANDALONE: Final = "s"
"""The name of the stream that GET opens, for messages that belong to no request."""

_UNRELATED: Final = (Kind.REQUEST, Kind.NOTIFICATION)
"""What may belong to no request: "The server MUST NOT send a JSON-RPC response on the stream unless resuming"."""

_AT_A_TIME: Final = 64  # idle sessions that one request ends; more would make it wait


class HTTPSession:
    """One session: a `SessionSlot` that routes by tag.

    Args:
        id: Unguessable, visible ASCII.
        principal: Who made it.
        log: Keeps events for resumption; None where that is off.
        outbox: Bytes that may wait for a client that does not read its standalone stream.
    """

    __slots__ = ("_count", "_outbox", "id", "last_used", "log", "principal", "state", "streams")

    def __init__(self, id: str, principal: Hashable | None, log: EventLog | None, outbox: int) -> None:
        self.id = id
        self.principal = principal
        self.log = log
        self.state: Any = None
        self.streams: dict[str, Stream] = {}
        self.last_used = 0.0
        self._count = 0
        self._outbox = outbox

    def open(self, retry_ms: int | None) -> Stream:
        """Return the stream for the answer to a request."""
        self._count += 1
        stream = self.streams[f"p{self._count}"] = Stream(f"p{self._count}", self.log, retry_ms)
        return stream

    def stream(self, name: str) -> Stream:
        """Return the stream of that name. One that is not open has been completed, if it ever was."""
        if name == STANDALONE:
            return self.standalone
        return self.streams.get(name) or Stream(name, self.log, is_complete=True)

    @property
    def standalone(self) -> Stream:
        """The stream of messages that belong to no request."""
        stream = self.streams.get(STANDALONE)
        if stream is None:
            stream = self.streams[STANDALONE] = Stream(STANDALONE, self.log)
        return stream

    @property
    def is_in_use(self) -> bool:
        """A client waits for something."""
        return any(stream.is_carried for stream in self.streams.values())

    def put(self, messages: list[Outgoing]) -> None:
        """Add each message to the stream of the POST that it belongs to, others to the standalone stream."""
        for message in messages:
            if isinstance(message.tag, Stream):
                self._hand_over(message.tag, message)
            elif message.kind in _UNRELATED and (self.log is not None or STANDALONE in self.streams):
                self._hand_over(self.standalone, message)

    async def send(self, messages: list[Outgoing]) -> None:
        """Do the same, and write what belongs to requests.

        What ends another request, or belongs to none, is written by the tasks that watch those streams. Nobody waits for
        a client that does not read one of its streams, except those who write to that stream.
        """
        mine: dict[Stream, None] = {}
        for message in messages:
            if isinstance(message.tag, Stream) and message.kind is not Kind.END:
                message.tag.put(message)
                mine[message.tag] = None
            else:
                self.put([message])
        for stream in mine:
            await stream.flush()

    def _hand_over(self, stream: Stream, message: Outgoing) -> None:
        stream.put(message)
        response = stream.response
        if response is None:
            return
        if response.queued_bytes > self._outbox and not response.is_over:
            logger.warning("ended a stream whose client does not read it")
            response.end()  # what it has not read, it may come back for
        response.wake()

    def close(self, stream: Stream) -> None:
        """Forget a stream: the request has been answered, or will not be."""
        del self.streams[stream.name]
        stream.close()

    def close_all(self) -> None:
        """End all streams."""
        for stream in self.streams.values():
            stream.close()


class Sessions:
    """All sessions of one endpoint.

    Args:
        limits: ``sessions``, ``session_idle``, ``outbox``.
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
        self._sessions: OrderedDict[str, HTTPSession] = OrderedDict()  # the one that was unused for longest comes first

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
        return HTTPSession(id, principal, log, self._limits.outbox)

    def add(self, session: HTTPSession) -> None:
        """Make a session known: it has been initialised."""
        self._sessions[session.id] = session
        session.last_used = self._clock()

    def is_known(self, session: HTTPSession) -> bool:
        """Tell whether a session has been added and has not ended."""
        return session.id in self._sessions

    def find(self, id: str, principal: Hashable | None) -> HTTPSession | None:
        """Return a session of this principal. Somebody else's does not exist."""
        session = self._sessions.get(id)
        if session is None or session.principal != principal:
            return None
        self.touch(session)
        return session

    def touch(self, session: HTTPSession) -> None:
        """Take note that a session is used, or was until now."""
        if session.id in self._sessions:
            self._sessions.move_to_end(session.id)
            session.last_used = self._clock()

    async def end(self, session: HTTPSession) -> None:
        """Forget a session and end its streams."""
        if self._sessions.pop(session.id, None) is None:
            return
        self._on_end(session)
        session.close_all()
        if session.log is not None:
            await session.log.drop()

    async def sweep(self) -> None:
        """End sessions that nobody has used for long. One whose client waits for something is in use."""
        for _ in range(_AT_A_TIME):
            if not self.has_idle:
                return
            session = next(iter(self._sessions.values()))
            if session.is_in_use:
                self.touch(session)
            else:
                await self.end(session)

    @property
    def has_idle(self) -> bool:
        """Some session has not been used for long."""
        for session in self._sessions.values():
            return session.last_used + self._limits.session_idle <= self._clock()
        return False
