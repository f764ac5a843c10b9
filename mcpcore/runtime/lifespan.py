"""A server's lifespan: entered once before the first use, left once after the last."""

import contextvars
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

import anyio

from mcpcore.exceptions import DefinitionError
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
        self._users = 0
        self._inner: list[Lifespan] = []

    def embrace(self, inner: "Lifespan") -> None:
        """Keep ``inner`` entered whenever this one is: it is entered before this one and left after it."""
        if inner.exists and not self._embraces(inner):
            self._inner.append(inner)

    def check_embrace(self, inner: "Lifespan") -> None:
        """Raise `DefinitionError` where `embrace` would come too late, or the two would wait for each other."""
        if not inner.exists or self._embraces(inner):
            return
        if inner._embraces(self):
            raise DefinitionError("servers with lifespans cannot be mounted into each other; mount one's registry")
        if self._users:
            raise DefinitionError(
                "mount servers that have a lifespan before this one is served, or mount their registry"
            )

    def _embraces(self, other: "Lifespan") -> bool:
        return other is self or any(inner._embraces(other) for inner in self._inner)

    @asynccontextmanager
    async def __call__(self) -> AsyncGenerator[None]:
        """Keep it entered. What entering raises is raised by every user; what leaving raises, by the last one."""
        while self._life is not None and self._users == 0:  # it is just being left
            await self._life.background.wait()
        if self._life is None and self.exists:
            self._life = _Life(self._all)
        life = self._life
        self._users += 1
        try:
            if life is not None:
                await life.entered()
            yield
        finally:
            self._left()
            self._users -= 1
            if life is not None and self._users == 0:
                try:
                    await life.leave()
                finally:
                    self._life = None

    @asynccontextmanager
    async def _all(self) -> AsyncGenerator[Any]:
        async with AsyncExitStack() as stack:
            for inner in self._inner:
                await stack.enter_async_context(inner())
            yield None if self._make is None else await stack.enter_async_context(self._make())

    @property
    def exists(self) -> bool:
        """There is something to enter."""
        return self._make is not None or bool(self._inner)

    @property
    def is_entering(self) -> bool:
        """Somebody waits for it to be entered."""
        return self._life is not None and not self._life.is_entered

    @property
    def value(self) -> Any:
        """What it yielded; None while it is not entered."""
        return self._life.value if self._life else None

    def set_variables(self, over: Iterable["Lifespan"] = ()) -> None:
        """Set, in the current context, the context variables that entering has set, where nobody nearer has.

        Args:
            over: Those that are less near, and have set their variables already.
        """
        if self._life is not None and self._life.variables:
            context = contextvars.copy_context()
            theirs = [each for life in over if life._life is not None for each in life._life.variables]
            for variable, before, value in self._life.variables:
                given = context.get(variable)
                if given is before or any(other is variable and given is set_to for other, _, set_to in theirs):
                    variable.set(value)


class _Life:
    """From entering to leaving, in one task of its own, because scopes inside it must not change tasks."""

    def __init__(self, make: Make) -> None:
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
