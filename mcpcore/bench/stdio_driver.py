"""The driver of stdio servers: newline-delimited JSON straight on a subprocess's pipes.

One `poll` and one `read` bring whatever replies are there, one `write` refills the window.
"""

import os
import select
import subprocess
import time
from collections.abc import Sequence

import msgspec

from mcpcore.bench.driver import CHUNK, Driver, note_progress
from mcpcore.bench.traffic import Message, Traffic, WrongReply, decode_lines, encode

__all__ = ["StdioServer"]


class StdioServer(Driver):
    """A server on pipes.

    Args:
        argv: The program.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        super().__init__(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self._input, self._output = self._stdin.fileno(), self._stdout.fileno()
        os.set_blocking(self._input, False)
        self._poll = select.poll()
        self._poll.register(self._output, select.POLLIN)
        self._partial: list[bytes] = []

    def open(self, era: str) -> None:
        super().open(era)
        if era == "legacy":
            os.write(self._input, b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')

    def _prepare(self, traffic: Traffic, number: int) -> bytes:
        return encode(traffic.request(number, self.era)) + b"\n"

    def _exchange(
        self, traffic: Traffic, first: int, prepared: list[bytes], window: int, send_until: float
    ) -> list[float]:
        total = len(prepared)
        queued_at = [0.0] * total
        unanswered = bytearray(b"\1") * total
        progress: dict[int | None, int] = {}
        latencies: list[float] = []
        unsent = memoryview(b"")
        queued = 0
        check, wanted_progress, clock = traffic.check, traffic.notifications, time.perf_counter
        while len(latencies) < total:
            now = clock()
            refill = min(total, len(latencies) + window)
            if refill > queued and not unsent:
                unsent = memoryview(b"".join(prepared[queued:refill]))
                queued_at[queued:refill] = [now] * (refill - queued)
                queued = refill
            if unsent:
                unsent = self._write(unsent)
            messages = self._read(wait_to_write=bool(unsent))
            now = clock()
            for message in messages:
                if message.method is not None:
                    note_progress(message, progress)
                    continue
                index = -1 if message.id is None else message.id - first
                if not 0 <= index < queued or not unanswered[index]:
                    raise WrongReply(f"nothing awaits this reply: {str(message)[:500]}")
                unanswered[index] = 0
                check(index + first, message)
                if wanted_progress and progress.pop(message.id, 0) != wanted_progress:
                    raise WrongReply(f"request {message.id} wants {wanted_progress} progress notifications first")
                latencies.append(now - queued_at[index])
            if now > send_until:
                total = queued
        return latencies

    def _write(self, unsent: memoryview) -> memoryview:
        try:
            return unsent[os.write(self._input, unsent) :]
        except BlockingIOError:
            return unsent
        except BrokenPipeError:
            raise self._failure("closed its input") from None

    def _read(self, wait_to_write: bool) -> list[Message]:
        """Return the messages that are there; wait for the first byte, or until there is room to write."""
        if wait_to_write:
            self._poll.register(self._input, select.POLLOUT)
        ready = self._poll.poll(self.silence * 1000)
        if wait_to_write:
            self._poll.unregister(self._input)
        if not ready:
            raise self._failure(f"was silent for {self.silence:.0f} s")
        if not any(descriptor == self._output for descriptor, _ in ready):
            return []
        chunk = os.read(self._output, CHUNK)
        if not chunk:
            raise self._failure("closed its output")
        end = chunk.rfind(b"\n") + 1
        if not end:
            self._partial.append(chunk)
            return []
        lines = b"".join((*self._partial, chunk[:end])) if self._partial else chunk[:end]
        self._partial = [chunk[end:]] if end < len(chunk) else []
        return self._decode(lines)

    def _end(self) -> None:
        self._stdin.close()
        deadline = time.monotonic() + self.drain
        while self._poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            chunk = os.read(self._output, CHUNK)
            if not chunk:
                break
            self._partial.append(chunk)
        for message in self._decode(b"".join(self._partial)):
            if message.method is None:
                raise WrongReply(f"nothing awaits this reply: {str(message)[:500]}")
        status = self._exit_status("the end of its input")
        if status:
            raise self._failure(f"exited with status {status}")

    def _close(self) -> None:
        self._stdin.close()
        self._stdout.close()

    def _decode(self, lines: bytes) -> list[Message]:
        try:
            return decode_lines(lines)
        except msgspec.DecodeError as error:
            raise self._garbage(lines, error) from error
