"""The standard error of a server: always read, so that the server never waits for us, and passed on."""

import codecs
import logging
import sys
from collections.abc import Callable
from typing import IO, Any, Final

import anyio

from mcpcore.transports._descriptors import Input, read_on

__all__ = ["StderrDrain", "StderrTarget"]

logger = logging.getLogger("mcpcore.transports.stdio")

StderrTarget = Callable[[str], object] | IO[Any] | None
"""Where it goes: a function for each line, a file, or, for None, `sys.stderr`."""

_TAIL: Final = 4096
_READ_SIZE: Final = 64 * 1024
_PIPE_CAPACITY: Final = 1024 * 1024
_LONGEST_LINE: Final = 64 * 1024  # a function gets longer lines in pieces


class StderrDrain:
    """Reads the standard error of one server, passes it on and keeps the end of it.

    Args:
        input: The reading end of its pipe.
        target: See `StderrTarget`.
    """

    def __init__(self, input: Input, target: StderrTarget) -> None:
        self._input = input
        self._pass_on: Callable[[bytes], None] | None = _to_function(target) if callable(target) else _to_file(target)
        self._tail = bytearray()

    @property
    def tail(self) -> str:
        """The last 4 KiB at most, beginning with a whole line where possible."""
        text = self._tail[-_TAIL:].decode(errors="replace")
        if len(self._tail) > _TAIL:
            text = text.partition("\n")[2] or text
        return text.strip()

    async def run(self) -> None:
        """Read until it ends."""
        await read_on(self._input, self._take)
        self._take(b"")

    def finish(self) -> None:
        """Read what is there: the server has written its last, although others may hold the other end open."""
        try:
            for _ in range(_PIPE_CAPACITY // _READ_SIZE):
                if not (data := self._input.read(_READ_SIZE)):
                    break
                self._take(data)
        except (OSError, anyio.ClosedResourceError):
            pass  # nothing is left
        self._take(b"")

    def close(self) -> None:
        """Give the pipe up."""
        self._input.close()

    def _take(self, data: bytes) -> None:
        """Pass ``data`` on; b"" says that a line that is not complete will not be."""
        self._tail += data
        del self._tail[: -_TAIL - 1]
        if self._pass_on is not None:
            try:
                self._pass_on(data)
            except Exception:
                self._pass_on = None
                logger.exception("the standard error of a server is no longer passed on")


def _to_function(function: Callable[[str], object]) -> Callable[[bytes], None]:
    decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode
    pending = ""

    def pass_on(data: bytes) -> None:
        nonlocal pending
        *lines, pending = (pending + decode(data, not data)).split("\n")
        if pending and (not data or len(pending) > _LONGEST_LINE):
            lines.append(pending)
            pending = ""
        for line in lines:
            function(line.removesuffix("\r"))

    return pass_on


def _to_file(target: IO[Any] | None) -> Callable[[bytes], None]:
    decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode

    def pass_on(data: bytes) -> None:
        file: IO[Any] | None = sys.stderr if target is None else target  # the program may exchange sys.stderr
        if file is not None:
            passed: Any = decode(data, not data) if hasattr(file, "encoding") else data
            file.write(passed)
            file.flush()

    return pass_on
