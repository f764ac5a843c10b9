"""A subscription on the client's side: what was granted, and its notifications as they come."""

from collections.abc import AsyncIterator

import anyio

from mcpcore.types._base import Object
from mcpcore.types.subscriptions import SubscriptionFilter

__all__ = ["Subscription"]


class Subscription:
    """An open ``subscriptions/listen`` (modern). Iterate it to get ``(method, params)`` pairs.

    Iteration ends when the server ends the subscription, and raises `ConnectionLost` when the connection breaks.
    A notification that waits already is not queued twice: it says that something changed, and that is still so.
    """

    def __init__(self) -> None:
        self.granted: SubscriptionFilter | None = None
        """What the server agreed to send."""
        self._pending: dict[tuple[str, str], tuple[str, Object]] = {}
        self._wake = anyio.Event()
        self._ended = False
        self._error: Exception | None = None

    def push(self, method: str, params: Object) -> None:
        """Take a notification from the wire."""
        self._pending[method, getattr(params, "uri", "")] = (method, params)
        self._wake.set()

    def acknowledge(self, granted: SubscriptionFilter) -> None:
        """Take the server's acknowledgement."""
        self.granted = granted
        self._wake.set()

    def end(self, error: Exception | None = None) -> None:
        """No more will come."""
        if not self._ended:
            self._ended, self._error = True, error
            self._wake.set()

    async def acknowledged(self) -> None:
        """Wait for the acknowledgement. Raises what ended the subscription instead, if it failed."""
        while self.granted is None and not self._ended:
            await self._wait()
        if self._error is not None:
            raise self._error

    async def __aiter__(self) -> AsyncIterator[tuple[str, Object]]:
        while True:
            while self._pending:
                yield self._pending.pop(next(iter(self._pending)))
            if self._error is not None:
                raise self._error
            if self._ended:
                return
            await self._wait()

    async def _wait(self) -> None:
        await self._wake.wait()
        self._wake = anyio.Event()
