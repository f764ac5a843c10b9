"""What is kept for resumption: in memory, and in a file that several processes use."""

import logging
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcpcore.transports.http.eventlog import EventLog, MemoryEventLog, SQLiteEventLogs

pytestmark = pytest.mark.anyio


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[SQLiteEventLogs]:
    """Logs in a file of their own."""
    with closing(SQLiteEventLogs(tmp_path / "events.db", most=5)) as logs:
        yield logs


@pytest.fixture(params=["memory", "sqlite"])
def log(request: pytest.FixtureRequest, logs: SQLiteEventLogs) -> EventLog:
    """A log of each kind that keeps five events."""
    return MemoryEventLog(5, 1000) if request.param == "memory" else logs("session")


async def test_what_followed_an_event_in_its_stream_is_found(log: EventLog) -> None:
    for number in (1, 2):
        log.append("a", number, b"a%d" % number)
        log.append("b", number, b"b%d" % number)
    log.append("a", 3, "ä\u2028".encode())
    assert await log.after("a", 1) == [(2, b"a2"), (3, "ä\u2028".encode())]
    assert await log.after("a", 3) == []
    assert await log.after("b", 1) == [(2, b"b2")]


async def test_an_event_that_never_was_is_not_known(log: EventLog) -> None:
    log.append("a", 1, b"1")
    assert await log.after("a", 0) is None
    assert await log.after("a", 2) is None
    assert await log.after("b", 1) is None
    assert await log.after("' OR 1=1 --", 1) is None


async def test_no_more_than_the_last_events_of_a_session_are_kept(log: EventLog) -> None:
    for number in range(1, 4):
        log.append("a", number, b"a")
    for number in range(1, 5):
        log.append("b", number, b"b")
    assert await log.after("a", 2) is None
    assert await log.after("a", 3) == []
    assert await log.after("b", 1) == [(2, b"b"), (3, b"b"), (4, b"b")]


async def test_an_event_can_be_kept_that_says_nothing(log: EventLog) -> None:
    log.append("a", 1, b"")
    log.append("a", 2, b"2")
    assert await log.after("a", 1) == [(2, b"2")]


async def test_a_log_that_was_dropped_knows_nothing(log: EventLog) -> None:
    log.append("a", 1, b"1")
    await log.drop()
    assert await log.after("a", 1) is None
    await log.drop()


async def test_the_log_in_memory_keeps_no_more_bytes_than_it_may() -> None:
    log = MemoryEventLog(1000, 100)
    for number in range(1, 20):
        log.append("a", number, b"x" * 30)
    assert await log.after("a", 16) is None
    assert await log.after("a", 17) == [(18, b"x" * 30), (19, b"x" * 30)]
    log.append("a", 20, b"x" * 101)
    assert await log.after("a", 20) is None


# -- in a file ---------------------------------------------------------------------------------------------------


async def test_sessions_know_nothing_of_each_other(logs: SQLiteEventLogs) -> None:
    mine, theirs = logs("mine"), logs("theirs")
    mine.append("a", 1, b"secret")
    theirs.append("a", 1, b"other")
    mine.append("a", 2, b"secret")
    assert await theirs.after("a", 1) == []
    await theirs.drop()
    assert await mine.after("a", 1) == [(2, b"secret")]


async def test_a_burst_of_events_is_stored_in_order_while_others_look(logs: SQLiteEventLogs) -> None:
    log = logs("session")
    log.append("a", 1, b"1")
    for number in range(2, 500):
        log.append("a", number, b"%d" % number)
        if number % 100 == 0:
            # All that was appended before is there, however much of it is still on its way to the file.
            assert await log.after("a", number - 1) == [(number, b"%d" % number)]
    assert await log.after("a", 495) == [(number, b"%d" % number) for number in range(496, 500)]


async def test_events_of_a_process_that_was_killed_are_deleted_by_a_later_one(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    with closing(SQLiteEventLogs(path)) as logs:
        logs("old").append("a", 1, b"1")
        logs("new").append("a", 1, b"1")
        await logs("old").after("a", 1)
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE events SET made = made - 3600 WHERE session = 'old'")
        database.commit()
    with closing(SQLiteEventLogs(path, keep=1800)) as logs:
        assert await logs("old").after("a", 1) is None
        assert await logs("new").after("a", 1) == []


async def test_a_file_that_cannot_be_written_costs_the_resumption_and_nothing_else(
    logs: SQLiteEventLogs, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = logs("session")
    log.append("a", 1, b"1")
    assert await log.after("a", 1) == []
    with closing(sqlite3.connect(tmp_path / "events.db")) as database:
        database.execute("ALTER TABLE events RENAME TO elsewhere")
        with caplog.at_level(logging.ERROR):
            log.append("a", 2, b"2")
            with pytest.raises(sqlite3.OperationalError):
                await log.after("a", 1)
        assert "could not be stored" in caplog.text
        database.execute("ALTER TABLE elsewhere RENAME TO events")
    log.append("a", 3, b"3")
    assert await log.after("a", 1) == [(3, b"3")]


WRITER = """
import sys
from mcpcore.transports.http.eventlog import SQLiteEventLogs
logs = SQLiteEventLogs(sys.argv[1])
for session in sys.argv[2:]:
    log = logs(session)
    for number in range(1, 301):
        log.append("a", number, f"{session} {number}".encode())
logs.close()
"""


async def test_two_processes_write_to_one_file_at_the_same_time(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    sessions = [[f"{process}{number}" for number in range(5)] for process in "xy"]

    async def write(names: list[str]) -> None:
        done = await anyio.run_process([sys.executable, "-c", WRITER, str(path), *names], stderr=subprocess.STDOUT)
        assert done.stdout == b""

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for names in sessions:
                tasks.start_soon(write, names)
    with closing(SQLiteEventLogs(path)) as logs:
        for name in (name for names in sessions for name in names):
            expected: list[Any] = [(number, f"{name} {number}".encode()) for number in range(2, 301)]
            assert await logs(name).after("a", 1) == expected
