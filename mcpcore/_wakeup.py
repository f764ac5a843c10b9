"""Waking one waiting task, at the price of the event loop's own primitive."""

import sys
from typing import TYPE_CHECKING, Any

import anyio

if TYPE_CHECKING:
    import asyncio


def asyncio_loop() -> "asyncio.AbstractEventLoop | None":
    """Return the loop when the caller runs on asyncio, None on any other event loop.

    Nothing is imported for it, and that asyncio has a running loop does not suffice: trio can be its guest.
    """
    module: Any = sys.modules.get("asyncio")
    if module is None or anyio.get_cancelled_exc_class() is not module.CancelledError:
        return None
    loop: asyncio.AbstractEventLoop = module.get_running_loop()
    return loop


class Wakeup:
    """One task waits, others or callbacks of the same event loop wake it. There is no state to set or to clear.

    A bare future costs a third of `anyio.Event` per hand-over, and a channel waits once per read.
    """

    __slots__ = ("_loop", "_loop_is_known", "_waiter")

    def __init__(self, loop: "asyncio.AbstractEventLoop | None" = None) -> None:
        self._loop = loop
        self._loop_is_known = (
            loop is not None
        )  # else it is looked for by the task that waits, which is sure to run on it
        self._waiter: asyncio.Future[None] | anyio.Event | None = None

    async def wait(self) -> None:
        """Wait for the next `wake`. It may come for nothing: look again at what was waited for."""
        if not self._loop_is_known:
            self._loop, self._loop_is_known = asyncio_loop(), True
        try:
            if self._loop is None:
                self._waiter = event = anyio.Event()
                await event.wait()
            else:
                self._waiter = future = self._loop.create_future()
                await future
        finally:
            self._waiter = None

    def wake(self) -> None:
        """Wake the task that waits, if one does."""
        waiter = self._waiter
        if waiter is None:
            return
        if isinstance(waiter, anyio.Event):
            waiter.set()
        elif not waiter.done():
            waiter.set_result(None)
