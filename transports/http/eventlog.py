"""What a legacy client may have missed: events kept per session and stream, for resumption with ``Last-Event-ID``.

A log belongs to one session and is made with it, so that no id of another session can be found in it
(2025-11-25, basic/transports, "Resumability and Redelivery").
"""

import sqlite3
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

import anyio
import anyio.to_thread

__all__ = ["EventLog", "EventLogFactory", "MemoryEventLog", "SQLiteEventLogs"]


class EventLog(Protocol):
    """The events of one session."""

    async def append(self, stream: str, data: bytes) -> str:
        """Keep an event; empty data is a place to resume from. Returns its id, unique in the session."""
        ...

    async def after(self, event_id: str) -> tuple[str, list[tuple[str, bytes]]] | None:
        """Return the stream that an event belongs to and what followed it there; None when it is not known."""
        ...

    async def drop(self) -> None:
        """Forget everything: the session has ended."""
        ...


T = TypeVar("T")

EventLogFactory = Callable[[str], EventLog]
"""Makes the log of a session from its id."""


def _parse(event_id: str) -> tuple[str, int] | None:
    stream, _, number = event_id.rpartition("-")
    return (stream, int(number)) if stream and number.isascii() and number.isdigit() and len(number) < 18 else None


class MemoryEventLog:
    """Keeps the last events of each stream in memory.

    Args:
        most: Events kept for each stream.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._streams: dict[str, deque[tuple[int, bytes]]] = {}

    async def append(self, stream: str, data: bytes) -> str:
        events = self._streams.setdefault(stream, deque(maxlen=self._most))
        number = events[-1][0] + 1 if events else 1
        events.append((number, data))
        return f"{stream}-{number}"

    async def after(self, event_id: str) -> tuple[str, list[tuple[str, bytes]]] | None:
        place = _parse(event_id)
        if place is None or place[0] not in self._streams:
            return None
        stream, seen = place
        events = self._streams[stream]
        if not events or seen > events[-1][0] or seen < events[0][0] - 1:
            return None
        return stream, [(f"{stream}-{number}", data) for number, data in events if number > seen]

    async def drop(self) -> None:
        self._streams.clear()


class SQLiteEventLogs:
    """Keeps events in a file, for the processes of one host. Call it to make the log of a session.

    Args:
        path: The database; it is created when it is missing.
        most: Events kept for each stream.
    """

    def __init__(self, path: str | Path, most: int = 1024) -> None:
        self._path = str(path)
        self._most = most
        with self._connect() as database:
            database.execute(
                "CREATE TABLE IF NOT EXISTS events (session TEXT, stream TEXT, number INTEGER, data BLOB, "
                "PRIMARY KEY (session, stream, number)) WITHOUT ROWID"
            )

    def __call__(self, session: str) -> EventLog:
        return _SQLiteEventLog(self._connect, session, self._most)

    def _connect(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._path, timeout=5, isolation_level=None, check_same_thread=False)
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=NORMAL")
        return database


class _SQLiteEventLog:
    def __init__(self, connect: Callable[[], sqlite3.Connection], session: str, most: int) -> None:
        self._connect = connect
        self._session = session
        self._most = most
        self._database: sqlite3.Connection | None = None
        self._lock = anyio.Lock()

    async def append(self, stream: str, data: bytes) -> str:
        def work(database: sqlite3.Connection) -> str:
            database.execute("BEGIN IMMEDIATE")
            newest = "SELECT coalesce(max(number), 0) FROM events WHERE session = ? AND stream = ?"
            number = database.execute(newest, (self._session, stream)).fetchone()[0] + 1
            database.execute("INSERT INTO events VALUES (?, ?, ?, ?)", (self._session, stream, number, data))
            old = "DELETE FROM events WHERE session = ? AND stream = ? AND number <= ?"
            database.execute(old, (self._session, stream, number - self._most))
            database.execute("COMMIT")
            return f"{stream}-{number}"

        return await self._run(work)

    async def after(self, event_id: str) -> tuple[str, list[tuple[str, bytes]]] | None:
        place = _parse(event_id)
        if place is None:
            return None
        stream, seen = place

        def work(database: sqlite3.Connection) -> tuple[str, list[tuple[str, bytes]]] | None:
            kept = "SELECT number, data FROM events WHERE session = ? AND stream = ? ORDER BY number"
            rows = database.execute(kept, (self._session, stream)).fetchall()
            if not rows or seen > rows[-1][0] or seen < rows[0][0] - 1:
                return None
            return stream, [(f"{stream}-{number}", bytes(data)) for number, data in rows if number > seen]

        return await self._run(work)

    async def drop(self) -> None:
        def work(database: sqlite3.Connection) -> None:
            database.execute("DELETE FROM events WHERE session = ?", (self._session,))

        await self._run(work)
        if self._database is not None:
            self._database.close()
            self._database = None

    async def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def connected() -> T:
            if self._database is None:
                self._database = self._connect()
            return work(self._database)

        async with self._lock:
            return await anyio.to_thread.run_sync(connected)
