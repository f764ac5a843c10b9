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
        self._wake = anyio.Event()

    def put(self, function: Callable[..., Any], *args: Any) -> None:
        """Queue a call."""
        self._calls.append((function, args))
        self._wake.set()

    async def run(self) -> None:
        """Make the calls as they come, until cancelled. What a callback raises is logged."""
        while True:
            await self.drain()
            self._wake = anyio.Event()
            await self._wake.wait()

    async def drain(self) -> None:
        """Make the calls that are queued."""
        while self._calls:
            function, args = self._calls.popleft()
            try:
                await call(function, *args)
            except Exception:
                logger.exception("a callback of the client failed")
