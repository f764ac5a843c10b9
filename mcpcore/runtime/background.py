"""Running one task beside the caller, on whichever event loop there is.

On asyncio the task is a plain task that owns every scope it opens, so the object it serves can be closed from any task
and in any order. Elsewhere structured concurrency is the rule of the loop: the task lives in a task group that is
entered in the caller's frame, so opening and closing happen in one task, last opened first closed.
"""

import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any

import anyio

__all__ = ["Background", "asyncio_loop", "start_task", "unwrap"]


class Background:
    """One task beside the caller, from `start` to `stop`."""

    def __init__(self) -> None:
        self._stack = AsyncExitStack()
        self._stop: Callable[[], Any] = lambda: None
        self._finished = anyio.Event()
        self._error: BaseException | None = None

    async def start(self, main: Callable[[], Awaitable[None]]) -> None:
        """Start ``main``. It runs until it returns or is stopped; what it raises is raised by `stop`."""
        loop = asyncio_loop()
        if loop is None:
            group = await self._stack.enter_async_context(anyio.create_task_group())
            self._stop = group.cancel_scope.cancel
            group.start_soon(self._run, main)
        else:
            task = loop.create_task(self._run(main))
            self._stop = task.cancel

    async def wait(self) -> None:
        """Wait until the task has ended by itself."""
        await self._finished.wait()

    async def stop(self) -> None:
        """Cancel the task and wait until it has ended. Safe to call twice and, on asyncio, from any task."""
        if not self._finished.is_set():
            self._stop()
        if asyncio_loop() is None:
            await self._stack.aclose()  # not inside a scope: the task group was entered outside of it
        else:
            with anyio.CancelScope(shield=True):
                await self._finished.wait()
        error, self._error = self._error, None
        if error is not None:
            raise error

    async def _run(self, main: Callable[[], Awaitable[None]]) -> None:
        try:
            await main()
        except anyio.get_cancelled_exc_class():
            if asyncio_loop() is None:
                raise  # the task group wants to see it
        except Exception as error:  # noqa: BLE001 - handed to whoever stops the task
            self._error = error
        finally:
            self._finished.set()


def unwrap(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the error that a task group wrapped. Where all members are cancellations, the group stands for itself."""
    cancelled = anyio.get_cancelled_exc_class()
    waiting: list[BaseException] = [group]
    while waiting:
        error = waiting.pop(0)
        if isinstance(error, BaseExceptionGroup):
            members: tuple[BaseException, ...] = error.exceptions
            waiting.extend(members)
        elif not isinstance(error, cancelled):
            return error
    return group


def asyncio_loop() -> Any:
    """The running asyncio loop; None on other backends. Does not import asyncio where nobody has."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return None
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


_tasks: set[Any] = set()  # the event loop itself holds tasks weakly


def start_task(loop: Any, coroutine: Coroutine[Any, Any, None]) -> None:
    """Run ``coroutine`` as a task of its own on an asyncio loop. It must not raise."""
    task = loop.create_task(coroutine)
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)
