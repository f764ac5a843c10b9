"""Callbacks for things that come by themselves, called one at a time and in order."""

import logging
from collections import deque
from collections.abc import Callable
from typing import Any

import anyio

from mcpcore.runtime.client_handlers import call

__all__ = ["Notices"]

logger = logging.getLogger("mcpcore.client")


class Notices:
    """A queue of calls. `run` works it off beside whoever fills it, so that a slow callback delays no answer."""

    def __init__(self) -> None:
        self._calls: deque[tuple[Callable[..., Any], tuple[Any, ...]]] = deque()
        self._is_calling = False
        self._ended = False
        self._changed = anyio.Event()

    def put(self, function: Callable[..., Any], *args: Any) -> None:
        """Queue a call."""
        self._calls.append((function, args))
        self._wake()

    def end(self) -> None:
        """Have `run` return once the calls that are queued have been made."""
        self._ended = True
        self._wake()

    async def run(self) -> None:
        """Make the calls as they come, until `end`. What a callback raises is logged."""
        self._ended, self._changed = False, anyio.Event()
        while self._calls or not self._ended:
            if self._calls:
                await self._call(*self._calls.popleft())
            else:
                await self._wait()

    async def told(self) -> None:
        """Wait until all calls that are queued have been made."""
        while self._calls or self._is_calling:
            await self._wait()

    async def _call(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self._is_calling = True
        try:
            await call(function, *args)
        except Exception:
            logger.exception("a callback of the client failed")
        finally:
            self._is_calling = False
            self._wake()

    def _wake(self) -> None:
        self._changed.set()

    async def _wait(self) -> None:
        if self._changed.is_set():
            self._changed = anyio.Event()
        await self._changed.wait()
