"""What processes use, as far as the system says: processor time and resident memory, from ``/proc``."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["TICKS", "Usage", "family", "listeners", "usage"]

TICKS: Final = os.sysconf("SC_CLK_TCK")
"""Ticks in a second of processor time."""

PROC: Final = Path("/proc")
LISTENING: Final = "0A"
SOCKET: Final = re.compile(r"socket:\[(\d+)\]")
GONE: Final = (FileNotFoundError, ProcessLookupError, PermissionError)


class Usage(NamedTuple):
    """What some processes use.

    Attributes:
        cpu: Seconds of processor time so far: user and system, all threads, and children that have ended.
        memory: Resident bytes. Pages that processes share are counted for each.
        peak: The sum of the most that each has had.
        processes: How many there are.
    """

    cpu: float
    memory: int
    peak: int
    processes: int


def usage(processes: Iterable[int]) -> Usage:
    """Return what the processes use that are still there."""
    cpu, memory, peak, count = 0.0, 0, 0, 0
    for process in processes:
        try:
            fields = _stat(process)
            status = (PROC / str(process) / "status").read_text()
        except GONE:
            continue
        sizes = dict(line.split(":", 1) for line in status.splitlines() if line.startswith("Vm"))
        cpu += sum(map(int, fields[11:15])) / TICKS
        memory += _bytes(sizes.get("VmRSS", "0 kB"))  # a process that has ended and is not reaped has none
        peak += _bytes(sizes.get("VmHWM", "0 kB"))
        count += 1
    return Usage(cpu, memory, peak, count)


def family(roots: Iterable[int]) -> list[int]:
    """Return the processes ``roots`` and all that descend from them."""
    children: dict[int, list[int]] = {}
    for process in _all():
        try:
            children.setdefault(int(_stat(process)[1]), []).append(process)
        except GONE:
            continue
    found: dict[int, None] = {}
    waiting = list(roots)
    while waiting:
        process = waiting.pop()
        if process not in found:
            found[process] = None
            waiting += children.get(process, [])
    return list(found)


def listeners(port: int) -> list[int]:
    """Return the processes that hold a listening TCP socket on ``port``, as far as this user may know."""
    sockets = set(_listening(port))
    return [process for process in _all() if sockets and not sockets.isdisjoint(_sockets(process))]


def _listening(port: int) -> Iterator[str]:
    for table in ("tcp", "tcp6"):
        try:
            lines = (PROC / "net" / table).read_text().splitlines()[1:]
        except GONE:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                yield fields[9]


def _sockets(process: int) -> Iterator[str]:
    try:
        descriptors = list((PROC / str(process) / "fd").iterdir())
    except GONE:
        return
    for descriptor in descriptors:
        try:
            match = SOCKET.fullmatch(os.readlink(descriptor))
        except GONE:
            continue
        if match is not None:
            yield match[1]


def _all() -> list[int]:
    return [int(name) for name in os.listdir(PROC) if name.isdigit()]


def _stat(process: int) -> list[bytes]:
    """Return the fields of a process behind its name, which may contain anything."""
    status = (PROC / str(process) / "stat").read_bytes()
    return status[status.rindex(b")") + 2 :].split()


def _bytes(size: str) -> int:
    return int(size.split()[0]) * 1024
