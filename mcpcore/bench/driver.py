"""What drives a server: the frame of a measurement, the same over every transport, around a subprocess.

Drivers are no MCP clients. They write prepared requests to a descriptor and decode replies into typed structs, in one
thread, without an event loop. How far they go is measured like everything else: the contestant ``bare`` is as close to
nothing as a server can be, so its figures bound from below what a driver can do.
"""

import gc
import math
import os
import signal
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

import msgspec

from mcpcore.bench.latency import percentile
from mcpcore.bench.load import Load, Tally
from mcpcore.bench.process import usage
from mcpcore.bench.traffic import Traffic, encode, opening
from mcpcore.exceptions import BenchmarkError

__all__ = ["Driver", "Run", "environment", "undisturbed"]

PREPARED: Final = 256_000_000  # bytes of requests that are written ahead
WARM_UP: Final = 0.15  # seconds; a batch that takes so long, after smaller ones, has let V8 compile what is hot


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
    """The environment that contestants run in: this one, without switches that debug or redirect an interpreter."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "NODE_"))}


@contextmanager
def undisturbed() -> Generator[None]:
    """Keep the garbage collector from running while the clock does."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class Driver(ABC):
    """A server as a subprocess, in a process group of its own.

    A context manager: leaving it checks that the server ends well.

    Args:
        argv: The program.
        stdin: As `subprocess.Popen` takes it.
        stdout: The same.
        env: Its environment; by default ours without switches that debug or redirect an interpreter.
        cwd: Its working directory; by default one that has nothing to import.
        log: What it writes to its standard error goes to ours; else it is kept, and its end quoted if the server dies.

    Attributes:
        silence: Seconds without a byte in either direction after which a server counts as hung.
        drain: Seconds that a server has to exit once it has been told to.
        era: What the driver speaks, once it is open.
        opened_after: Seconds from spawning to the reply to the opening request.
    """

    silence: float = 60.0
    drain: float = 20.0
    era: str = "legacy"
    opened_after: float = 0.0

    def __init__(
        self,
        argv: Sequence[str],
        *,
        stdin: int,
        stdout: int,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        log: bool = False,
    ) -> None:
        if not Path("/proc/self/stat").exists():
            raise BenchmarkError("processor time and memory are read from /proc, so the benchmark needs Linux")
        self._number = 0
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  # closed in __exit__
        self._spawned = time.perf_counter()
        try:
            self._process = subprocess.Popen(
                argv,
                stdin=stdin,
                stdout=stdout,
                stderr=None if log else self._stderr,
                bufsize=0,
                process_group=0,
                cwd=tempfile.gettempdir() if cwd is None else cwd,
                env=environment() if env is None else env,
            )
        except BaseException:
            self._stderr.close()
            raise

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
            self._stderr.close()
            self._close()

    # -- measuring ---------------------------------------------------------------------------------------------------

    def open(self, era: str) -> None:
        """Introduce the driver as a client of ``era``: the handshake, or ``server/discover``."""
        self.era = era
        self._introduce(opening(era))
        self.opened_after = time.perf_counter() - self._spawned

    def run(self, traffic: Traffic, requests: int, window: int = 1, limit: float = math.inf) -> Run:
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
        prepared = [self._prepare(traffic, number) for number in range(first, first + requests)]
        self._number += requests
        return self.work(
            Load(
                prepared,
                first,
                traffic.check,
                window=window,
                notifications=traffic.notifications,
                seconds=limit,
                silence=self.silence,
            ),
            Tally(),
        )

    def work(self, load: Load, tally: Tally) -> Run:
        """Work a load off.

        Raises:
            WrongReply: A reply is wrong, and the tally is strict.
            BenchmarkError: The server died or hung.
        """
        self._connect(load.window)
        with undisturbed():
            server_cpu, driver_cpu = self.cpu(), time.process_time()
            self._exchange(load, tally)
            driver_cpu, server_cpu = time.process_time() - driver_cpu, self.cpu() - server_cpu
        return Run(len(tally.latencies), tally.seconds, sorted(tally.latencies), server_cpu, driver_cpu)

    def run_for(self, traffic: Traffic, seconds: float, window: int = 1) -> Run:
        """Warm the server up, then run as many requests as fill about ``seconds``."""
        self.run(traffic, window, window)  # what happens once happens here, and would spoil the estimate
        requests = window
        while (warm_up := self.run(traffic, requests, window)).seconds < WARM_UP:
            requests *= 2
        affordable = PREPARED // len(encode(traffic.request(0, self.era)))
        requests = max(window, min(int(warm_up.rate * seconds), affordable))
        return self.run(traffic, requests, window, limit=3 * seconds)

    def cpu(self) -> float:
        """Seconds of processor time that the server has used so far, user and system, all threads."""
        return usage([self._process.pid]).cpu

    def memory(self) -> tuple[float, float]:
        """Resident memory of the server in MiB: now, and at most since it started."""
        used = usage([self._process.pid])
        return used.memory / 2**20, used.peak / 2**20

    def details(self) -> dict[str, float]:
        """What else there is to know about the server, by name and unit."""
        return {"RSS MiB": self.memory()[0]}

    def _introduce(self, asked: Traffic) -> None:
        self.run(asked, 1)

    # -- what transports differ in -----------------------------------------------------------------------------------

    @abstractmethod
    def _prepare(self, traffic: Traffic, number: int) -> bytes:
        """Return the request with a number, as far as it can be written before the clock runs."""

    def _connect(self, window: int) -> None:  # noqa: B027  # pipes are there from the start
        """Make what ``window`` requests in flight need, before the clock runs."""

    @abstractmethod
    def _exchange(self, load: Load, tally: Tally) -> None:
        """Send the requests and check the replies."""

    @abstractmethod
    def _end(self) -> None:
        """Make the server exit: it has to do so in time, and without another reply."""

    def _close(self) -> None:  # noqa: B027  # nothing else may be open
        """Close what the transport has opened."""

    # -- for all of them ---------------------------------------------------------------------------------------------

    def _exit_status(self, told: str) -> int:
        """Wait until the server has exited after it was told to."""
        try:
            return self._process.wait(self.drain)
        except subprocess.TimeoutExpired:
            raise self._failure(f"did not exit within {self.drain:.0f} s after {told}") from None

    def _garbage(self, data: bytes, error: msgspec.DecodeError) -> BenchmarkError:
        return self._failure(f"wrote what is no JSON-RPC message ({error}): {data[:500]!r}")

    def _failure(self, what: str) -> BenchmarkError:
        self._stderr.seek(0)
        tail = self._stderr.read()[-2000:].decode(errors="replace").strip()
        return BenchmarkError(f"the server {what}" + (f"; its standard error ends:\n{tail}" if tail else ""))
