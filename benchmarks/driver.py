"""A client that is faster than what it measures: newline-delimited JSON straight on a subprocess's pipes.

It uses no MCP library, no event loop and no thread. One `poll` and one `read` bring whatever replies are there, one `write`
refills the window. How far it goes is measured like everything else: the contestant ``bare`` is as close to nothing as a server
can be, so its figures bound from below what the driver can do.
"""

import gc
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

import msgspec

from benchmarks.spread import percentile
from benchmarks.table import BenchmarkError
from benchmarks.traffic import Message, Traffic, WrongReply, decode_lines, opening

__all__ = ["Run", "StdioServer", "environment"]

SILENCE: Final = 60.0
"""Seconds without a byte in either direction after which a server counts as hung."""

DRAIN: Final = 20.0
"""Seconds that a server has to exit once its input has ended."""

CHUNK: Final = 1 << 16  # what a pipe holds
PREPARED: Final = 256_000_000  # bytes of requests that are written ahead
WARM_UP: Final = 0.15  # seconds; a batch that takes so long, after smaller ones, has let V8 compile what is hot
TICKS: Final = os.sysconf("SC_CLK_TCK")


class Run(NamedTuple):
    """What became of a number of requests.

    Attributes:
        requests: How many were sent and answered.
        seconds: From the first byte written to the last reply read.
        latencies: Seconds from queueing a request to reading its reply, ascending.
        server_cpu: Seconds of processor time, user and system, in ticks of 10 ms.
        driver_cpu: The same for the driver itself.
    """

    requests: int
    seconds: float
    latencies: list[float]
    server_cpu: float
    driver_cpu: float

    @property
    def rate(self) -> float:
        """Requests per second."""
        return self.requests / self.seconds

    def details(self) -> dict[str, float]:
        """What explains the rate, by name and unit."""
        return {
            "p50 µs": percentile(self.latencies, 50) * 1e6,
            "p99 µs": percentile(self.latencies, 99) * 1e6,
            "server CPU µs/call": self.server_cpu / self.requests * 1e6,
            "server CPU %": self.server_cpu / self.seconds * 100,
            "driver CPU %": self.driver_cpu / self.seconds * 100,
        }


def environment() -> dict[str, str]:
    """The environment that contestants run in: this one, without the switches that would debug or redirect an interpreter."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "NODE_"))}


class StdioServer:
    """A server as a subprocess, in a process group of its own. A context manager: leaving it checks that the server ends well.

    Args:
        argv: The program.

    Attributes:
        opened_after: Seconds from spawning to the reply to the opening request.
    """

    opened_after: float = 0.0

    def __init__(self, argv: Sequence[str]) -> None:
        if not Path("/proc/self/stat").exists():
            raise BenchmarkError("processor time and memory are read from /proc, so the benchmark needs Linux")
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  # closed in __exit__
        self._spawned = time.perf_counter()
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            bufsize=0,
            process_group=0,
            cwd=tempfile.gettempdir(),
            env=environment(),
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self._input, self._output = self._stdin.fileno(), self._stdout.fileno()
        os.set_blocking(self._input, False)
        self._poll = select.poll()
        self._poll.register(self._output, select.POLLIN)
        self._partial: list[bytes] = []
        self._number = 0
        self._era = "legacy"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._end()
        finally:
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
            for stream in (self._stdin, self._stdout, self._stderr):
                stream.close()

    # -- measuring ---------------------------------------------------------------------------------------------------

    def open(self, era: str) -> None:
        """Introduce the driver as a client of ``era``: the handshake, or ``server/discover``."""
        self._era = era
        self.run(opening(era), 1)
        self.opened_after = time.perf_counter() - self._spawned
        if era == "legacy":
            os.write(self._input, b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')

    def run(self, traffic: Traffic, requests: int, window: int = 1, limit: float = SILENCE) -> Run:
        """Send ``requests`` with ``window`` of them in flight, and check every reply.

        Args:
            traffic: What to send and to expect.
            requests: How many.
            window: How many stay unanswered at a time, 1 or more.
            limit: Seconds after which no further request is sent.

        Raises:
            WrongReply: A reply is wrong, missing, or there is one too many.
            BenchmarkError: The server died or hung.
        """
        first = self._number
        lines = [traffic.line(number, self._era) for number in range(first, first + requests)]
        self._number += requests
        gc.collect()
        gc.disable()
        try:
            server_cpu, driver_cpu, started = self.cpu(), time.process_time(), time.perf_counter()
            latencies = self._exchange(traffic, first, lines, window, started + limit)
            seconds = time.perf_counter() - started
            driver_cpu, server_cpu = time.process_time() - driver_cpu, self.cpu() - server_cpu
        finally:
            gc.enable()
        latencies.sort()
        return Run(len(latencies), seconds, latencies, server_cpu, driver_cpu)

    def run_for(self, traffic: Traffic, seconds: float, window: int = 1) -> Run:
        """Warm the server up, then run as many requests as fill about ``seconds``."""
        self.run(traffic, window, window)  # what happens once happens here, and would spoil the estimate
        requests = window
        while (warm_up := self.run(traffic, requests, window)).seconds < WARM_UP:
            requests *= 2
        affordable = PREPARED // len(traffic.line(0, self._era))
        requests = max(window, min(int(warm_up.rate * seconds), affordable))
        return self.run(traffic, requests, window, limit=3 * seconds)

    def cpu(self) -> float:
        """Seconds of processor time that the server has used so far, user and system, all threads."""
        status = Path(f"/proc/{self._process.pid}/stat").read_bytes()
        fields = status[status.rindex(b")") + 2 :].split()  # the name before may contain anything
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory(self) -> tuple[float, float]:
        """Resident memory of the server in MiB: now, and at most since it started."""
        status = dict(line.split(":", 1) for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines())
        return int(status["VmRSS"].split()[0]) / 1024, int(status["VmHWM"].split()[0]) / 1024

    # -- the wire ----------------------------------------------------------------------------------------------------

    def _exchange(
        self, traffic: Traffic, first: int, lines: list[bytes], window: int, send_until: float
    ) -> list[float]:
        total = len(lines)
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
                unsent = memoryview(b"".join(lines[queued:refill]))
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
        ready = self._poll.poll(SILENCE * 1000)
        if wait_to_write:
            self._poll.unregister(self._input)
        if not ready:
            raise self._failure(f"was silent for {SILENCE:.0f} s")
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
        """End the server's input: it has to exit by itself, and without another reply."""
        self._stdin.close()
        deadline = time.monotonic() + DRAIN
        while self._poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            chunk = os.read(self._output, CHUNK)
            if not chunk:
                break
            self._partial.append(chunk)
        for message in self._decode(b"".join(self._partial)):
            if message.method is None:
                raise WrongReply(f"nothing awaits this reply: {str(message)[:500]}")
        try:
            status = self._process.wait(DRAIN)
        except subprocess.TimeoutExpired:
            raise self._failure(f"did not exit within {DRAIN:.0f} s after the end of its input") from None
        if status:
            raise self._failure(f"exited with status {status}")

    def _decode(self, lines: bytes) -> list[Message]:
        try:
            return decode_lines(lines)
        except msgspec.DecodeError as error:
            raise self._failure(f"wrote what is no JSON-RPC message ({error}): {lines[:500]!r}") from error

    def _failure(self, what: str) -> BenchmarkError:
        self._stderr.seek(0)
        tail = self._stderr.read()[-2000:].decode(errors="replace").strip()
        return BenchmarkError(f"the server {what}" + (f"; its standard error ends:\n{tail}" if tail else ""))


def note_progress(message: Message, progress: dict[int | None, int]) -> None:
    """Count a progress notification for its request. They have to come in order; other notifications are ignored."""
    if message.method != "notifications/progress":
        return
    token = message.params.progress_token
    progress[token] = progress.get(token, 0) + 1
    if message.params.progress != progress[token]:
        raise WrongReply(f"progress {message.params.progress} of request {token} is out of order")
