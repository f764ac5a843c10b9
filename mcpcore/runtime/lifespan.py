"""A server's lifespan: entered once before the first use, left once after the last."""

import contextvars
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio

from mcpcore.runtime.background import Background

__all__ = ["Lifespan"]

Make = Callable[[], AbstractAsyncContextManager[Any]]


class Lifespan:
    """Shares one async context manager between any number of users.

    Args:
        make: Makes the context manager; None where there is nothing to enter.
        left: Called when one of the users has left.
    """

    def __init__(self, make: Make | None, left: Callable[[], None] = lambda: None) -> None:
        self._make = make
        self._left = left
        self._life: _Life | None = None

    @asynccontextmanager
    async def __call__(self) -> AsyncGenerator[None]:
        """Keep it entered. What entering raises is raised by every user; what leaving raises, by the last one."""
        if self._make is None:
            try:
                yield
            finally:
                self._left()
            return
        while self._life is not None and self._life.users == 0:  # it is just being left
            await self._life.background.wait()
        if self._life is None:
            self._life = _Life(self._make)
        life = self._life
        life.users += 1
        try:
            await life.entered()
            yield
        finally:
            self._left()
            life.users -= 1
            if life.users == 0:
                try:
                    await life.leave()
                finally:
                    self._life = None

    @property
    def exists(self) -> bool:
        """There is something to enter."""
        return self._make is not None

    @property
    def is_entering(self) -> bool:
        """Somebody waits for it to be entered."""
        return self._life is not None and not self._life.is_entered

    @property
    def value(self) -> Any:
        """What it yielded; None while it is not entered."""
        return self._life.value if self._life else None

    def set_variables(self) -> None:
        """Set, in the current context, the context variables that entering has set, where nobody nearer has."""
        if self._life is not None and self._life.variables:
            context = contextvars.copy_context()
            for variable, before, value in self._life.variables:
                if context.get(variable) is before:
                    variable.set(value)


class _Life:
    """From entering to leaving, in one task of its own, because scopes inside it must not change tasks."""

    def __init__(self, make: Make) -> None:
        self.users = 0
        self.value: Any = None
        self.variables: list[tuple[contextvars.ContextVar[Any], Any, Any]] = []
        self.background = Background()
        self._make = make
        self._entered = anyio.Event()
        self._leave = anyio.Event()
        self._failure: Exception | None = None
        self.background.start(self._live)

    @property
    def is_entered(self) -> bool:
        return self._entered.is_set()

    async def entered(self) -> None:
        await self._entered.wait()
        if self._failure is not None:
            raise self._failure

    async def leave(self) -> None:
        self._leave.set()
        if self._entered.is_set():
            with anyio.CancelScope(shield=True):
                await self.background.wait()
        await self.background.stop()

    async def _live(self) -> None:
        before = contextvars.copy_context()
        try:
            async with self._make() as self.value:
                for variable, value in contextvars.copy_context().items():
                    if before.get(variable) is not value:
                        self.variables.append((variable, before.get(variable), value))
                self._entered.set()
                await self._leave.wait()
        except Exception as error:
            if self._entered.is_set():
                raise
            self._failure = error
            self._entered.set()
