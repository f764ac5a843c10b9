"""Running one task beside the caller, on whichever event loop there is.

The task is nobody's child: a plain task on asyncio, a system task on trio. It owns every scope that it opens, so the
object it serves can be opened in one task and closed from another, in any order, and nothing of it is left then.
"""

import contextvars
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, cast

import anyio

from mcpcore._tasks import start_task

__all__ = ["Background", "unwrap"]

_inside: Final[contextvars.ContextVar[tuple["Background", ...]]] = contextvars.ContextVar("mcpcore.background")


class Background:
    """One task beside the caller, from `start` to `stop`."""

    def __init__(self) -> None:
        self._scope: anyio.CancelScope | None = None
        self._finished = anyio.Event()
        self._error: BaseException | None = None

    def start(self, main: Callable[[], Awaitable[None]]) -> None:
        """Start ``main``. It runs until it returns or is stopped; what it raises is raised by `stop`."""
        self._scope, self._finished = anyio.CancelScope(), anyio.Event()
        start_task(partial(self._run, main, self._scope))

    @property
    def is_current(self) -> bool:
        """The caller is the task itself, or runs on its behalf."""
        return self in _inside.get(())

    async def wait(self) -> None:
        """Wait until the task has ended by itself."""
        await self._finished.wait()

    async def stop(self) -> None:
        """Cancel the task and wait until it has ended. Safe to call twice, and from any task.

        Called inside the task itself or by what runs on its behalf, this only cancels: nobody can wait for his own end.
        """
        if self._scope is None:
            return
        self._scope.cancel()
        if self.is_current:
            return
        with anyio.CancelScope(shield=True):
            await self._finished.wait()
        error, self._error = self._error, None
        if error is not None:
            raise error

    async def _run(self, main: Callable[[], Awaitable[None]], scope: anyio.CancelScope) -> None:
        _inside.set((*_inside.get(()), self))
        try:
            with scope:
                await main()
        except anyio.get_cancelled_exc_class():
            raise  # the event loop itself comes to its end
        except BaseException as error:  # noqa: BLE001 - handed to whoever stops the task
            self._error = unwrap(error)
        finally:
            self._finished.set()


def unwrap(error: BaseException) -> BaseException:
    """Return ``error``, or of a group the first member that is no cancellation; the group itself where all are."""
    waiting = [error]
    while waiting:
        first = waiting.pop(0)
        if isinstance(first, BaseExceptionGroup):
            waiting.extend(cast(BaseExceptionGroup[BaseException], first).exceptions)
        elif type(first).__name__ not in ("CancelledError", "Cancelled"):  # of asyncio and trio, also after their end
            return first
    return error
