"""Being the process: running until the work ends or a signal says stop, and leaving in bounded time."""

import _thread
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from typing import Any, Final, NoReturn, Self

import anyio

from mcpcore.runtime.background import unwrap

__all__ = ["run_until_signalled"]

_SIGNALS: Final = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
_GRACE: Final = 1.0  # seconds for what should end by itself


def run_until_signalled(
    serve: Callable[[], Awaitable[None]],
    stop: Callable[[], None],
    drain: float,
    backend: str,
    *,
    prefer_uvloop: bool = False,
) -> None:
    """Run ``serve`` on an event loop of its own.

    Args:
        serve: Runs until it is done or cancelled.
        stop: Called on the event loop at a signal (SIGINT, SIGTERM, SIGHUP); ``serve`` should end soon. Without
            effect outside the main thread, which alone is told of signals.
        drain: Seconds that ``serve`` may take for handlers, and again for what they leave to be written, until it ends. A
            second signal that comes later than that ends the process.
        backend: ``asyncio`` or ``trio``.
        prefer_uvloop: Use uvloop for asyncio, where it is installed.

    Raises:
        SystemExit: 128 plus the signal's number, after a signal.

    Threads that do not end keep Python from exiting, and clients would be left with a process that nobody uses. So
    when ``serve`` has ended the event loop gets a second to close, and when the program's main thread has ended, too,
    the other threads get another. Then the process leaves without them.
    """
    uvloop = prefer_uvloop and backend == "asyncio" and find_spec("uvloop") is not None
    run = partial(anyio.run, backend=backend, backend_options={"use_uvloop": True} if uvloop else None)
    if threading.current_thread() is not threading.main_thread():
        run(serve)
        return
    with _Departure(drain) as departure:

        async def main() -> None:
            try:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(departure.watch, stop)
                    await serve()
                    tasks.cancel_scope.cancel()
            except BaseExceptionGroup as group:
                raise unwrap(group) from None
            finally:
                departure.begin(failed=sys.exception() is not None)

        run(main)
    if departure.status:
        raise SystemExit(departure.status)


class _Departure:
    """The end of this process: how it comes to it, and that it does not take for ever.

    Signals wake the event loop through a pair of sockets of our own. Those of the event loops would do, but they give
    the signals back before the loop has closed, and a child made by fork shares them: the SIGTERM with which
    `multiprocessing` ends its workers would stop the server.
    """

    def __init__(self, drain: float) -> None:
        self._drain = drain
        self.status = 0
        """The exit status."""
        self._closed = threading.Event()
        # Until this moment the event loop may be busy, before it notices and after; then it is stuck.
        self._patience = 0.0
        self._pid = os.getpid()
        self._replaced: dict[int, Any] = {}
        self._sockets = socket.socketpair()

    def __enter__(self) -> Self:
        for end in self._sockets:
            end.setblocking(False)
        for number in _SIGNALS:
            self._replaced[number] = signal.signal(number, self._signalled)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._closed.set()
        if not self.status:  # else the signals stay ours: who sends another one does not want to wait
            for number in _SIGNALS:
                self._give_back(number)
            for end in self._sockets:
                end.close()

    def begin(self, *, failed: bool) -> None:
        """Have the process end in bounded time from now on. Until now there is no thread, which `os.fork` would mind."""
        work = partial(self._leave_in_time, int(failed))
        threading.Thread(target=work, name="mcpcore exit", daemon=True).start()

    async def watch(self, stop: Callable[[], None]) -> None:
        """Call ``stop`` when there was a signal."""
        while not self.status:
            await anyio.wait_readable(self._sockets[0])
            with suppress(BlockingIOError):
                self._sockets[0].recv(64)
        self._patience = time.monotonic() + 2 * self._drain + _GRACE
        stop()

    def _signalled(self, number: int, frame: object) -> None:
        if os.getpid() != self._pid:  # a child made by fork
            self._give_back(number)
            os.kill(os.getpid(), number)
        elif not self.status:
            self.status = 128 + number
            self._patience = time.monotonic() + _GRACE
            self._sockets[1].send(b"\0")
        elif self._closed.is_set() or time.monotonic() > self._patience:
            signal.signal(number, signal.SIG_IGN)  # this function would be called once more, inside of this call
            _leave(self.status)

    def _give_back(self, number: int) -> None:
        handler = self._replaced[number]
        signal.signal(number, signal.SIG_DFL if handler is None else handler)  # None: it was not set from Python

    def _leave_in_time(self, otherwise: int) -> None:
        """Runs in a daemon thread, which is gone when the process is. ``otherwise`` is the status without a signal."""
        if not self._closed.wait(_GRACE):
            _leave(self.status or otherwise)
        main = threading.main_thread()
        main.join()
        deadline = time.monotonic() + _GRACE
        threads = [thread for thread in threading.enumerate() if thread is not main and not thread.daemon]
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        if any(thread.is_alive() for thread in threads):
            _leave(self.status or otherwise)


def _leave(status: int) -> NoReturn:
    """End the process without its threads, after what Python would have flushed. Signal handlers may call this."""
    flushed = _thread.allocate_lock()
    flushed.acquire()

    def flush() -> None:
        logging.shutdown()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        flushed.release()

    # `threading` has locks that the code below a signal handler may hold; this has none.
    _thread.start_new_thread(flush, ())
    flushed.acquire(timeout=_GRACE)  # nobody may read any more, or a thread that is stuck may have a lock
    os._exit(status)
