"""File descriptors of any kind, pipes, sockets, terminals, files, used so that nobody is made to wait.

Descriptors come from elsewhere: what is behind them, the open file description, is often shared with other
processes, and its ``O_NONBLOCK`` flag with it. Setting the flag would break them, so access that does not wait is
had in one of these ways, the first that fits:

* a pipe or a terminal is opened once more through ``/proc/self/fd``, which makes a description of our own;
* a socket takes a flag with each call;
* a regular file, and a device such as ``/dev/null``, never makes anyone wait, and cannot be waited for either;
* for the rest, where there is no ``/proc`` or no permission, the descriptor blocks, and is touched only when it is
  ready: a read then returns what is there, and a write of ``PIPE_BUF`` bytes fits.

Windows cannot wait for a pipe at all: there a daemon thread carries the input into a socket, and a worker thread
writes.
"""

import os
import select
import socket
import stat
import sys
import threading
from collections.abc import Callable
from enum import Enum
from typing import Final

import anyio

__all__ = ["CAN_WAIT", "Input", "Output", "read_on"]

PIPE_CAPACITY: Final = 1024 * 1024
"""Bytes that a pipe may be made to hold: the most that Linux gives without privileges."""

CAN_WAIT: Final = sys.platform != "win32"
"""Whether the system can wait for pipes."""


class _Way(Enum):
    """How a descriptor is used without making anybody wait."""

    TRY = "non-blocking: try first, wait when told to"
    READY = "blocking: touch it only when it is ready"
    DIRECT = "regular files and the like: never wait, and cannot be waited for"
    THREAD = "blocking, and cannot be waited for: write in a worker thread (Windows)"


class Input:
    """A descriptor to read from.

    Args:
        fd: The descriptor; it stays the caller's to close.
        shared: Other processes may have the same open file description. If not, it is made non-blocking.
    """

    def __init__(self, fd: int, *, shared: bool = True) -> None:
        if not CAN_WAIT:
            self._access = _Access.to_carrier(fd)
        else:
            self._access = _Access.to_descriptor(fd, os.O_RDONLY, shared=shared)
        self.fd = self._access.fd
        """What to wait for until there is something to read."""
        self.opened = self._access.opened
        """The descriptor that was opened in addition to the caller's, or None."""
        self.is_pollable = self._access.way is not _Way.DIRECT
        """Whether ``fd`` can be waited for; if not, reading never waits."""
        self.read: Callable[[int], bytes] = self._reader()
        """Read at most so many bytes; b"" at the end. Raises BlockingIOError while there is nothing."""

    def _reader(self) -> Callable[[int], bytes]:
        fd, sock = self._access.fd, self._access.socket
        if sock is None:
            return lambda size: os.read(fd, size)
        return lambda size: sock.recv(size, _DO_NOT_WAIT)

    def wake(self) -> None:
        """Make whoever waits for ``fd`` look again: `anyio.wait_readable` raises `anyio.ClosedResourceError`."""
        if self.is_pollable:
            anyio.notify_closing(self.fd)

    def close(self) -> None:
        """Wake whoever waits, refuse to read, and give back what was opened in addition to the caller's descriptor."""
        self.wake()
        self.read = _refuse
        self._access.close()


class Output:
    """A descriptor to write to.

    Args:
        fd: The descriptor; it stays the caller's to close.
        shared: Other processes may have the same open file description. If not, it is made non-blocking.
    """

    def __init__(self, fd: int, *, shared: bool = True) -> None:
        self._access = _Access.to_descriptor(fd, os.O_WRONLY, shared=shared)
        self.opened = self._access.opened
        """The descriptor that was opened in addition to the caller's, or None."""
        self._closed = False

    async def send_all(self, data: bytes) -> None:
        """Write all of ``data``, waiting only while the reader does not keep up. Cancelled, a part may be written.

        Raises:
            OSError: The other side is gone, or there is no space.
            anyio.ClosedResourceError: `close` was called meanwhile.
        """
        sent = self._write(data) if self._access.way is not _Way.THREAD else 0
        if sent < len(data):
            await self._send_rest(memoryview(data)[sent:])

    async def _send_rest(self, rest: memoryview) -> None:
        while rest:
            if self._access.way is _Way.THREAD:
                limiter = anyio.CapacityLimiter(1)  # not the one that all threads share: a write may be stuck
                sent = await anyio.to_thread.run_sync(self._write, rest, abandon_on_cancel=True, limiter=limiter)
            else:
                sent = self._write(rest)
                if not sent:
                    await anyio.wait_writable(self._access.fd)
            if self._closed:
                raise anyio.ClosedResourceError
            rest = rest[sent:]

    def _write(self, data: bytes | memoryview) -> int:
        """Write what fits; 0 is nothing."""
        access = self._access
        if access.way is _Way.READY:
            if not _is_writable(access.fd):
                return 0
            data = data[: select.PIPE_BUF]
        try:
            return os.write(access.fd, data) if access.socket is None else access.socket.send(data, _DO_NOT_WAIT)
        except BlockingIOError:
            return 0

    def close(self) -> None:
        """Wake whoever waits to write, and give back what was opened in addition to the caller's descriptor."""
        self._closed = True
        if self._access.way in (_Way.TRY, _Way.READY):
            anyio.notify_closing(self._access.fd)
        self._access.close()


async def read_on(input: Input, take: Callable[[bytes], object]) -> None:
    """Give what ``input`` yields to ``take``, until it ends or is closed."""
    try:
        while True:
            await anyio.wait_readable(input.fd)
            try:
                data = input.read(64 * 1024)
            except BlockingIOError:
                continue
            if not data:
                return
            take(data)
    except (OSError, anyio.ClosedResourceError):
        return


class _Access:
    """The way to use a descriptor, and what had to be opened for it."""

    def __init__(self, fd: int, way: _Way, *, sock: socket.socket | None = None, opened: int | None = None) -> None:
        self.fd = fd
        self.way = way
        self.socket = sock
        self.opened = opened

    @classmethod
    def to_descriptor(cls, fd: int, flags: int, *, shared: bool) -> "_Access":
        if not CAN_WAIT:
            return cls(fd, _Way.THREAD)
        mode = os.fstat(fd).st_mode
        if stat.S_ISFIFO(mode):
            _enlarge(fd)
        if not shared:
            os.set_blocking(fd, False)
            return cls(fd, _Way.TRY)
        if stat.S_ISSOCK(mode):
            return cls(fd, _Way.TRY, sock=_socket_on(fd))
        if not stat.S_ISFIFO(mode) and not os.isatty(fd):
            return cls(fd, _Way.DIRECT)
        try:
            own = os.open(f"/proc/self/fd/{fd}", flags | os.O_NONBLOCK | os.O_NOCTTY)
        except OSError:  # no /proc; another user's terminal; a pipe that has no reader left
            return cls(fd, _Way.READY)
        return cls(own, _Way.TRY, opened=own)

    @classmethod
    def to_carrier(cls, fd: int) -> "_Access":
        sock = _carry_into_socket(fd)
        return cls(sock.fileno(), _Way.TRY, sock=sock, opened=sock.fileno())

    def close(self) -> None:
        if self.socket is not None and self.opened is None:
            self.socket.detach()
        elif self.socket is not None:
            self.socket.close()
        elif self.opened is not None:
            os.close(self.opened)


def _enlarge(fd: int) -> None:
    """Let a pipe hold a long message in one piece, where the system allows it; it costs memory only while it is full."""
    import fcntl

    try:
        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_CAPACITY)
    except (AttributeError, OSError):
        pass  # not Linux; or this user's pipes have too much already


def _is_writable(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    return bool(poll.poll(0))


def _refuse(size: int) -> bytes:
    raise anyio.ClosedResourceError  # the number may belong to another file by now


_DO_NOT_WAIT: Final = getattr(socket, "MSG_DONTWAIT", 0)


def _socket_on(fd: int) -> socket.socket:
    """Wrap ``fd``. A default timeout, if the program has set one, would make the shared description non-blocking."""
    timeout = socket.getdefaulttimeout()
    socket.setdefaulttimeout(None)
    try:
        return socket.socket(fileno=fd)
    finally:
        socket.setdefaulttimeout(timeout)


def _carry_into_socket(fd: int) -> socket.socket:
    """Return a socket that yields what a thread reads from ``fd``, a descriptor that cannot be waited for.

    The thread is a daemon: it may be stuck in a read for ever, and must not keep the process from ending. It has a
    descriptor of its own, because Windows lets nobody close one that is being read.
    """
    fd = os.dup(fd)
    ours, its = socket.socketpair()
    ours.setblocking(False)

    def carry() -> None:
        try:
            with its:
                while data := os.read(fd, 64 * 1024):
                    its.sendall(data)
        except OSError:
            pass  # one of the ends is closed
        finally:
            os.close(fd)

    threading.Thread(target=carry, name="mcpcore input", daemon=True).start()
    return ours
