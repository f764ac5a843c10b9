"""The driver of stdio servers: newline-delimited JSON straight on a subprocess's pipes.

One wait and one `read` bring whatever replies are there, one `write` refills the window.
"""

import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from mcpcore.bench.driver import Driver
from mcpcore.bench.load import TICK, Load, Tally, decoder_of_messages
from mcpcore.bench.traffic import Reply, Traffic, WrongReply, encode
from mcpcore.exceptions import BenchmarkError

__all__ = ["StdioServer"]

CHUNK: Final = 1 << 16  # bytes that are read at once: what a pipe holds
FATE: Final = 0.5  # seconds for a server that has closed a pipe to exit


class StdioServer(Driver):
    """A server on pipes.

    Args:
        argv: The program.
        env: Its environment; see `Driver`.
        cwd: Its working directory; the same.
        log: The same.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        log: bool = False,
    ) -> None:
        super().__init__(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, cwd=cwd, log=log)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self._input, self._output = self._stdin.fileno(), self._stdout.fileno()
        os.set_blocking(self._input, False)
        self._partial: list[bytes] = []

    def open(self, era: str) -> None:
        super().open(era)
        if era == "legacy":
            self.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')

    # -- single messages ---------------------------------------------------------------------------------------------

    def send(self, message: bytes) -> None:
        """Write one message, and wait until it is written.

        Raises:
            BenchmarkError: The server takes no input any more.
        """
        unsent = memoryview(message + b"\n")
        while unsent := self._write(unsent):
            self._wait(self.silence, wait_to_write=True)

    def receive(self, seconds: float) -> list[bytes]:
        """Return the lines that are there; wait for the first bytes, but not longer than so many seconds.

        Raises:
            BenchmarkError: There are none to come.
        """
        return self._read().splitlines() if self._wait(seconds, wait_to_write=False) else []

    # -- a load ------------------------------------------------------------------------------------------------------

    def _prepare(self, traffic: Traffic, number: int) -> bytes:
        return encode(traffic.request(number, self.era)) + b"\n"

    def _exchange(self, load: Load, tally: Tally) -> None:
        requests, first, window, rate = load.requests, load.first, load.window, load.rate
        total = len(requests)
        unanswered: dict[int, tuple[float, float]] = {}  # since when their latency counts, and when they were sent
        unsent = memoryview(b"")
        given_up: set[int] = set()
        answers = b""  # to requests of the server's, and what withdraws ours
        queued, freed = 0, 0.0
        right, ended, clock = tally.latencies.append, tally.ended.append, time.perf_counter
        started = now = heard = clock()
        tick_at, send_until = started, started + load.seconds
        try:
            while True:
                if now >= tick_at:
                    tick_at = now + TICK
                    for number in self._look(load, tally, unanswered, now, heard):
                        given_up.add(number)
                        answers += (load.withdraw(number) if load.withdraw is not None else None) or b""
                    if load.watch is not None:
                        load.watch(now - started, tally)
                if now > send_until and queued < total:
                    tally.unsent = load.due(load.seconds) - queued if rate is not None else 0
                    total = queued
                if not unsent:
                    refill = min(total, queued + window - len(unanswered))
                    if rate is not None:
                        refill = min(refill, load.due(now - started))
                    if refill > queued:
                        unsent = memoryview(answers + b"".join(requests[queued:refill]))
                        for index in range(queued, refill):
                            since = now if rate is None else started + load.due_at(index)
                            if rate is not None:
                                tally.sent_late(now - max(since, freed))
                            unanswered[first + index] = (since, now)
                        queued = refill
                        answers = b""
                    elif answers:
                        unsent, answers = memoryview(answers), b""
                if unsent:
                    left = self._write(unsent)
                    tally.bytes_sent += len(unsent) - len(left)
                    unsent = left
                    if unsent:
                        freed = now
                if not unanswered and not unsent and queued >= total:
                    return
                wait = tick_at - now
                if rate is not None and queued < total and len(unanswered) < window:
                    wait = min(wait, started + load.due_at(queued) - now)
                readable = self._wait(max(0.0, wait), wait_to_write=bool(unsent))
                if not readable:
                    now = clock()
                    continue
                full = len(unanswered) >= window
                lines = self._read()
                now = heard = clock()
                if full:
                    freed = now
                tally.bytes_received += len(lines)
                for message in self._decode(lines, load, tally):
                    if message.method is not None:
                        answer = tally.take_aside(message, load)
                        if answer is not None:
                            answers += answer
                        continue
                    number = message.id
                    sent = unanswered.pop(number, None) if type(number) is int else None
                    if sent is None:
                        if number in given_up:  # too late
                            given_up.remove(number)
                            continue
                        tally.fail(WrongReply(f"nothing awaits this reply: {str(message)[:500]}"))
                    elif tally.check(message, number, load):
                        right(now - sent[0])
                        ended(now - started)
        except BenchmarkError:
            if not tally.strict:
                for _ in unanswered:
                    tally.fail(WrongReply("not answered before the server was gone", "lost"))
            raise
        finally:
            tally.sent = queued
            tally.seconds = now - started

    def _look(
        self, load: Load, tally: Tally, unanswered: dict[int, tuple[float, float]], now: float, heard: float
    ) -> list[int]:
        """Give up what has waited too long. Returns what that is."""
        if now - heard > load.silence:
            raise self._failure(f"was silent for {load.silence:.0f} s")
        overdue = [number for number, (_, sent) in unanswered.items() if now - sent > load.timeout]
        for number in overdue:
            del unanswered[number]
            tally.fail(WrongReply(f"not answered within {load.timeout:g} s", "timeout"))
        return overdue

    def _write(self, unsent: memoryview) -> memoryview:
        try:
            return unsent[os.write(self._input, unsent) :]
        except BlockingIOError:
            return unsent
        except BrokenPipeError:
            raise self._failure("closed its input" + self._fate()) from None

    def _fate(self) -> str:
        """Say how the server ended, if it does so now."""
        try:
            return f" and exited with status {self._process.wait(FATE)}"
        except subprocess.TimeoutExpired:
            return ""

    def _wait(self, seconds: float, wait_to_write: bool) -> bool:
        """Wait until there is something to read, or room to write. Returns whether there is something to read."""
        # `poll` would round the time up to a millisecond, which an open loop cannot wait.
        readable, _, _ = select.select([self._output], [self._input] if wait_to_write else [], [], seconds)
        return bool(readable)

    def _read(self) -> bytes:
        """Return the whole lines that are there."""
        chunk = os.read(self._output, CHUNK)
        if not chunk:
            raise self._failure("closed its output" + self._fate())
        end = chunk.rfind(b"\n") + 1
        if not end:
            self._partial.append(chunk)
            return b""
        lines = b"".join((*self._partial, chunk[:end])) if self._partial else chunk[:end]
        self._partial = [chunk[end:]] if end < len(chunk) else []
        return lines

    def _decode(self, lines: bytes, load: Load, tally: Tally) -> Sequence[Any]:
        try:
            return load.decoder.decode_lines(lines)
        except msgspec.DecodeError as error:
            if tally.strict:
                raise self._garbage(lines, error) from error
        found: list[Reply] = []
        for line in lines.splitlines():
            if not line.strip():
                continue
            try:
                found.append(load.decoder.decode(line))
            except msgspec.DecodeError as error:
                tally.fail(WrongReply(f"{error}: {line[:200]!r}", "no message"))
        return found

    # -- the end -----------------------------------------------------------------------------------------------------

    def _end(self) -> None:
        self._stdin.close()
        deadline = time.monotonic() + self.drain
        while self._wait(max(0.0, deadline - time.monotonic()), wait_to_write=False):
            chunk = os.read(self._output, CHUNK)
            if not chunk:
                break
            self._partial.append(chunk)
        try:
            last = decoder_of_messages.decode_lines(b"".join(self._partial))
        except msgspec.DecodeError as error:
            raise self._garbage(b"".join(self._partial), error) from error
        for message in last:
            if message.method is None:
                raise WrongReply(f"nothing awaits this reply: {str(message)[:500]}")
        status = self._exit_status("the end of its input")
        if status:
            raise self._failure(f"exited with status {status}")

    def _close(self) -> None:
        self._stdin.close()
        self._stdout.close()
