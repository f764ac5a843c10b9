"""A channel that needs tasks of its own, as a context."""

from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeVar

import anyio

__all__ = ["Running", "running"]


class Running(Protocol):
    """A channel with a task."""

    def run(self, *, task_status: Any = ...) -> Coroutine[Any, Any, None]:
        """Do what the channel needs done until `aclose`, shielded from cancellation. Raises nothing."""
        ...

    async def aclose(self) -> None:
        """Have `run` end, and wait for that."""
        ...


C = TypeVar("C", bound=Running)


@asynccontextmanager
async def running(channel: C) -> AsyncGenerator[C]:
    """Run ``channel`` beside the body, and close it at the end. What the body raises is not wrapped in a group."""
    tasks = anyio.create_task_group()
    await tasks.__aenter__()
    try:
        await tasks.start(channel.run)
        try:
            yield channel
        finally:
            with anyio.CancelScope(shield=True):
                await channel.aclose()
    finally:
        await tasks.__aexit__(None, None, None)
