"""A server's lifespan: entered once before the first use, left once after the last."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio

from mcpcore.runtime.background import Background

__all__ = ["Lifespan"]


class Lifespan:
    """Shares one async context manager between any number of users.

    It is entered and left in one task of its own, because scopes inside it must not change tasks.

    Args:
        make: Makes the context manager; None where there is nothing to enter.
    """

    def __init__(self, make: Callable[[], AbstractAsyncContextManager[Any]] | None) -> None:
        self._make = make
        self._users = 0
        self._background = Background()
        self._entered = anyio.Event()
        self._leave = anyio.Event()
        self._failed: BaseException | None = None
        self.value: Any = None

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[None]:
        """Keep it entered. What entering raises is raised by every user; what leaving raises, by the last one."""
        if self._make is None:
            yield
            return
        self._users += 1
        try:
            if self._users == 1:
                self._background, self._failed = Background(), None
                self._entered, self._leave = anyio.Event(), anyio.Event()
                await self._background.start(self._live)
            await self._entered.wait()
            if self._failed is not None:
                raise self._failed
            yield
        finally:
            self._users -= 1
            if self._users == 0:
                self._leave.set()
                with anyio.CancelScope(shield=True):
                    await self._background.wait()
                    await self._background.stop()

    async def _live(self) -> None:
        assert self._make is not None
        try:
            async with self._make() as self.value:
                self._entered.set()
                await self._leave.wait()
        except Exception as error:
            if self._entered.is_set():
                raise
            self._failed = error
            self._entered.set()
