"""The server's end of stdio: this process's own standard input and output."""

import os
import sys
import threading
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import anyio

from mcpcore.abc import Channel
from mcpcore.exceptions import TransportError
from mcpcore.protocol.framing import MAX_MESSAGE_SIZE
from mcpcore.transports._descriptors import Input, Output
from mcpcore.transports.stdio import StdioChannel

__all__ = ["StdioServerTransport"]


class StdioServerTransport:
    """Serves the one client that has started this process.

    While it serves, nothing else can touch the protocol's streams: they are moved to private descriptors, reading
    file descriptor 0 yields the end of input, and what is written to 1, by ``print``, by a library in C or by a child
    process, goes to standard error. Afterwards everything is as it was.

    Args:
        max_message_size: Bytes of one message received; a longer one is reported and skipped.
    """

    def __init__(self, *, max_message_size: int = MAX_MESSAGE_SIZE) -> None:
        self._max_message_size = max_message_size
        self._claimed: tuple[int, int] | None = None

    @contextmanager
    def claimed(self) -> Generator[None]:
        """Take the streams now and until the context ends, for programs that do something around `serve`.

        Raises:
            TransportError: As for `serve`.
        """
        with _claim() as self._claimed:
            try:
                yield
            finally:
                self._claimed = None

    async def serve(
        self, handler: Callable[[Channel], Awaitable[None]], *, task_status: Any = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """See `ServerTransport.serve`: returns when ``handler`` does, which is called once.

        Raises:
            TransportError: This process already serves on standard input and output, or they are closed.
        """
        with _claim() if self._claimed is None else nullcontext(self._claimed) as (fd_in, fd_out):
            input, output = Input(fd_in), Output(fd_out)
            opened = {fd for fd in (input.opened, output.opened) if fd is not None}
            channel = StdioChannel(input, output, max_message_size=self._max_message_size)
            _close_in_children.update(opened)
            try:
                task_status.started()
                await handler(channel)
            finally:
                _close_in_children.difference_update(opened)
                await channel.aclose()


_claim_lock = threading.Lock()


@contextmanager
def _claim() -> Generator[tuple[int, int]]:
    """Move the protocol's streams away from descriptors 0 and 1, yield where they are, and move them back."""
    if sys.__stdin__ is None or sys.__stdout__ is None:  # the numbers 0 and 1 belong to something else by now
        raise TransportError("standard input or output was closed when this process started; there is nobody to serve")
    if not _claim_lock.acquire(blocking=False):
        raise TransportError("standard input and output already serve a client; a process can serve only one at a time")
    try:
        try:
            null = _open_null()
            private = os.dup(0), os.dup(1)
        except OSError:
            yield 0, 1  # they cannot be moved: serve where they are
            return
        _close_in_children.update(private)
        try:
            os.dup2(null, 0)
            os.dup2(2 if sys.__stderr__ is not None else null, 1)
            os.close(null)
            _flush_stdout()  # what was printed before and not yet written is no message either
            yield private
        finally:
            _flush_stdout()
            _close_in_children.difference_update(private)
            for target, fd in enumerate(private):
                os.dup2(fd, target)
                os.close(fd)
    finally:
        _claim_lock.release()


def _open_null() -> int:
    """Open the null device, also as 2 if that is free: no other file may become standard error by chance."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    return fd


def _flush_stdout() -> None:
    with suppress(Exception):  # sys.stdout can be anything, or nothing
        sys.stdout.flush()


# A child made by fork inherits the private descriptors. It may outlive us, and then the client would wait for the end
# of our output for as long as the child runs.

_close_in_children: set[int] = set()


def _after_fork_in_child() -> None:
    for fd in _close_in_children:
        with suppress(OSError):
            os.close(fd)
    _close_in_children.clear()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_after_fork_in_child)
