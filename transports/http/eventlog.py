"""What a legacy client may have missed: events kept per session and stream, for resumption with ``Last-Event-ID``.

A log belongs to one session and is made with it, so that no event of another session can be found in it
(2025-11-25, basic/transports, "Resumability and Redelivery").
"""

import logging
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final, Protocol, TypeVar

import anyio.to_thread

__all__ = ["EventLog", "EventLogFactory", "MemoryEventLog", "SQLiteEventLogs"]

logger: Final = logging.getLogger("mcpcore.transports.http")

T = TypeVar("T")


class EventLog(Protocol):
    """The events of one session."""

    def append(self, stream: str, number: int, data: bytes) -> None:
        """Keep an event. Must not block: what takes time is done later, in order.

        Args:
            stream: The stream that it belongs to.
            number: Its number in that stream, counted from 1.
            data: The message. Nothing for a place to resume from.
        """
        ...

    async def after(self, stream: str, number: int) -> list[tuple[int, bytes]] | None:
        """Return what followed an event in its stream, of all that was appended before this call, with their numbers.

        None when the event is not known, or not any more.
        """
        ...

    async def drop(self) -> None:
        """Forget everything: the session has ended."""
        ...


EventLogFactory = Callable[[str], EventLog]
"""Makes the log of a session from its id."""


class MemoryEventLog:
    """Keeps the last events of a session in memory.

    Args:
        most: How many.
        size: How many bytes of them.
    """

    __slots__ = ("_events", "_kept", "_most", "_size")

    def __init__(self, most: int, size: int) -> None:
        self._most = most
        self._size = size
        self._kept = 0
        self._events: deque[tuple[str, int, bytes]] | None = None  # most sessions never have one, and it is not small

    def append(self, stream: str, number: int, data: bytes) -> None:
        """See `EventLog.append`."""
        if self._events is None:
            self._events = deque()
        self._events.append((stream, number, data))
        self._kept += len(data)
        while len(self._events) > self._most or self._kept > self._size:
            self._kept -= len(self._events.popleft()[2])

    async def after(self, stream: str, number: int) -> list[tuple[int, bytes]] | None:
        """See `EventLog.after`."""
        events = [(each, data) for name, each, data in self._events or () if name == stream and each >= number]
        return _following(number, events)

    async def drop(self) -> None:
        """See `EventLog.drop`."""
        self._events = None
        self._kept = 0


def _following(number: int, events: list[tuple[int, bytes]]) -> list[tuple[int, bytes]] | None:
    """Return ``events`` without the first one, which must have this number."""
    return events[1:] if events and events[0][0] == number else None


_BUSY: Final = 5.0  # seconds to wait for other processes
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS events (
    id INTEGER PRIMARY KEY, session TEXT NOT NULL, stream TEXT NOT NULL, number INTEGER NOT NULL, data BLOB NOT NULL,
    made INTEGER NOT NULL DEFAULT (CAST(strftime('%s', 'now') AS INTEGER))
);
CREATE INDEX IF NOT EXISTS sessions ON events (session);
"""
_INSERT: Final = "INSERT INTO events (session, stream, number, data) VALUES (?, ?, ?, ?)"
_TRIM: Final = """
DELETE FROM events WHERE session = :session AND id <= (
    SELECT id FROM events WHERE session = :session ORDER BY id DESC LIMIT 1 OFFSET :most
)
"""
_SELECT: Final = "SELECT number, data FROM events WHERE session = ? AND stream = ? AND number >= ? ORDER BY number"
_PURGE: Final = "DELETE FROM events WHERE made < CAST(strftime('%s', 'now') AS INTEGER) - ?"


class SQLiteEventLogs:
    """Keeps events in a file instead of memory. Call it to make the log of a session.

    Several processes may share the file. Each session still belongs to the process that has opened it, so a balancer in
    front of them has to send a session's requests to one of them.

    Args:
        path: The database; it is created when it is missing.
        most: Events kept for each session.
        keep: Seconds after which events are deleted when another process starts to use the file: those of sessions that
            nobody could end, because their process was killed.

    Raises:
        sqlite3.Error: The file cannot be used.
    """

    def __init__(self, path: str | Path, most: int = 1024, keep: float = 86_400.0) -> None:
        self._path = str(path)
        self._most = most
        self._lock = threading.Lock()
        self._rows: list[tuple[str, str, int, bytes]] = []
        self._thread = ThreadPoolExecutor(1, "mcpcore event log")  # one, so that everything happens in order
        # Autocommit, so that transactions are where they are written; used by the thread once this has returned.
        self._database = sqlite3.connect(self._path, timeout=_BUSY, isolation_level=None, check_same_thread=False)
        _write_ahead(self._database)
        self._database.execute("PRAGMA synchronous=NORMAL")
        self._database.executescript(_SCHEMA)
        self._database.execute(_PURGE, (int(keep),))

    def __call__(self, session: str) -> EventLog:
        """Return the log of a session."""
        return _SQLiteEventLog(self, session)

    def close(self) -> None:
        """Store what waits to be stored, and close the file."""
        self._thread.shutdown()
        self._database.close()

    def add(self, session: str, stream: str, number: int, data: bytes) -> None:
        """Have an event stored. A burst of them is one transaction."""
        with self._lock:
            self._rows.append((session, stream, number, data))
            if len(self._rows) == 1:
                self._thread.submit(self._store)

    async def find(self, session: str, stream: str, number: int) -> list[tuple[int, bytes]]:
        """Return the events of a stream from ``number`` on."""
        return await _result(
            self._thread.submit(lambda: self._database.execute(_SELECT, (session, stream, number)).fetchall())
        )

    async def delete(self, session: str) -> None:
        """Delete the events of a session."""
        await _result(
            self._thread.submit(lambda: self._database.execute("DELETE FROM events WHERE session = ?", (session,)))
        )

    def _store(self) -> None:
        with self._lock:
            rows, self._rows = self._rows, []
        try:
            self._database.execute("BEGIN IMMEDIATE")
            self._database.executemany(_INSERT, rows)
            for session in {row[0] for row in rows}:
                self._database.execute(_TRIM, {"session": session, "most": self._most})
            self._database.execute("COMMIT")
        except sqlite3.Error:
            logger.exception("events could not be stored, and cannot be resumed from")
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")


def _write_ahead(database: sqlite3.Connection) -> None:
    """Turn write-ahead logging on. Where another process is just doing that, SQLite fails at once instead of waiting."""
    deadline = time.monotonic() + _BUSY
    while True:
        try:
            database.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


class _SQLiteEventLog:
    __slots__ = ("_is_empty", "_logs", "_session")

    def __init__(self, logs: SQLiteEventLogs, session: str) -> None:
        self._logs = logs
        self._session = session
        self._is_empty = True

    def append(self, stream: str, number: int, data: bytes) -> None:
        self._is_empty = False
        self._logs.add(self._session, stream, number, data)

    async def after(self, stream: str, number: int) -> list[tuple[int, bytes]] | None:
        return _following(number, await self._logs.find(self._session, stream, number))

    async def drop(self) -> None:
        if not self._is_empty:
            await self._logs.delete(self._session)


async def _result(future: Future[T]) -> T:
    return await anyio.to_thread.run_sync(future.result, abandon_on_cancel=True)
