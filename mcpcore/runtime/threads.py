"""Worker threads that keep working: what many short functions cost is the hand-over, there and back.

A worker is a thread of anyio's that takes one function after another. What is done lies in one queue, and the event loop is
woken once for all that it finds there, not once for each.
"""

import contextvars
import logging
import sys
import threading
from collections import deque
from collections.abc import Callable
from enum import Enum
from queue import Empty, SimpleQueue
from typing import Any, Final

import anyio
import anyio.to_thread

from mcpcore._tasks import start_task
from mcpcore._wakeup import Wakeup, asyncio_loop

__all__ = ["Threads"]

logger = logging.getLogger("mcpcore.server")

_IDLE: Final = 10.0  # seconds after which a worker that has nothing to do ends


class Threads:
    """The worker threads of one event loop, on which this is made and used.

    Args:
        most: How many functions run at the same time; others wait for their turn, in order.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._loop = asyncio_loop()
        self._call_soon: Callable[[Callable[[], None]], object] = (
            self._loop.call_soon_threadsafe
            if self._loop is not None
            else sys.modules["trio"].lowlevel.current_trio_token().run_sync_soon
        )
        self._waiting: SimpleQueue[_Job | None] = SimpleQueue()
        self._done: deque[_Job] = deque()
        self._is_told = False  # the event loop is going to look at what is done
        self._open = 0  # functions that have been given and are not done
        self._workers = 0
        self._lock = threading.Lock()  # of `_workers` and of the states of jobs

    async def run(self, function: Callable[[], Any]) -> Any:
        """Run ``function`` in a worker, with the caller's context variables, and return what it returns.

        Raises what it raises. A cancellation takes effect at once: a function that has not begun never does, and a
        worker that cannot be stopped is abandoned. It does not count any more, and what comes of it is dropped.
        """
        job = _Job(function, self._loop)
        self._waiting.put(job)
        self._open += 1
        self._hire()
        try:
            while not job.is_back:
                await job.arrival.wait()
        finally:
            if not job.is_back:
                self._abandon(job)
        return job.outcome()

    def dismiss(self) -> None:
        """End the workers as soon as they have nothing to do. Others come when they are needed."""
        for _ in range(self._workers):
            self._waiting.put(None)

    # -- on the event loop -----------------------------------------------------------------------------------------

    def _hire(self) -> None:
        with self._lock:
            if self._workers >= min(self._most, self._open):
                return
            self._workers += 1
        start_task(self._employ)

    async def _employ(self) -> None:
        # The limiter is one that is never waited for: `_hire` counts.
        await anyio.to_thread.run_sync(self._work, limiter=anyio.CapacityLimiter(1), abandon_on_cancel=True)

    def _abandon(self, job: "_Job") -> None:
        with self._lock:
            state = job.state
            job.enter(_State.ABANDONED)
            if state is _State.RUNNING:
                self._workers -= 1
        if state is _State.DONE:
            return  # it is on its way, and `_deliver` counts it
        self._open -= 1
        if state is _State.RUNNING:
            logger.warning("abandoned a worker thread that did not end with its request")
            self._hire()

    def _deliver(self) -> None:
        self._is_told = False  # first: whoever adds something from now on tells again
        while self._done:
            self._done.popleft().come_back()
            self._open -= 1

    # -- in the workers --------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            try:
                job = self._waiting.get(timeout=_IDLE)
            except Empty:
                job = None
            with self._lock:
                if job is None:
                    if self._workers <= self._open:
                        continue  # something came after this worker was told to end, and nobody was hired for it
                    self._workers -= 1
                    return
                if not job.enter(_State.RUNNING):
                    continue
            job.run()
            with self._lock:
                if not job.enter(_State.DONE):
                    return
            self._done.append(job)
            del job  # or its result would live until the next one comes
            if not self._is_told:
                self._is_told = True
                try:
                    self._call_soon(self._deliver)
                except RuntimeError:  # the event loop has closed: there is nobody to work for
                    return


class _State(Enum):
    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    ABANDONED = "abandoned"


class _Job:
    """One function, and what comes of it."""

    __slots__ = ("_context", "_error", "_function", "_result", "arrival", "is_back", "state")

    def __init__(self, function: Callable[[], Any], loop: Any) -> None:
        self._function = function
        self._context = contextvars.copy_context()
        self._result: Any = None
        self._error: BaseException | None = None
        self.arrival = Wakeup(loop)
        self.is_back = False
        self.state = _State.WAITING

    def enter(self, state: _State) -> bool:
        """Go on to ``state``; False when nobody waits for it any more."""
        if self.state is not _State.ABANDONED:
            self.state = state
            return True
        return False

    def run(self) -> None:
        try:
            self._result = self._context.run(self._function)
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is waited for
            self._error = error

    def come_back(self) -> None:
        self.is_back = True
        self.arrival.wake()

    def outcome(self) -> Any:
        error, self._error = self._error, None
        if error is None:
            return self._result
        try:
            raise error
        finally:
            del error  # its traceback holds this frame
