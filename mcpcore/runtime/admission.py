"""The limits of requests in flight: so many run, so many wait for a place, and no more are taken."""

from collections import deque

import anyio

from mcpcore.limits import Limits

__all__ = ["Admission"]


class Admission:
    """Counts the handlers that wait for something; one that does not is done before the next request is looked at.

    Args:
        limits: ``in_flight`` and ``queued``.
    """

    __slots__ = ("_limits", "_open", "_waiting")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._open = 0
        self._waiting: deque[anyio.Event] | None = None  # most never have one, and it is not small

    @property
    def has_place(self) -> bool:
        """A request can run now."""
        return self._open < self._limits.in_flight

    @property
    def is_full(self) -> bool:
        """A request can neither run nor wait."""
        return self._open >= self._limits.in_flight + self._limits.queued

    def enter(self) -> None:
        """Count a request, which runs or goes on to wait for its place."""
        self._open += 1

    async def wait(self) -> None:
        """Wait for a place. Those who wait get theirs in order; who gives up just calls `leave`."""
        if self._waiting is None:
            self._waiting = deque()
        place = anyio.Event()
        self._waiting.append(place)
        try:
            await place.wait()
        finally:
            if not place.is_set():
                self._waiting.remove(place)

    def leave(self) -> None:
        """Take a request out of the count and give its place away."""
        self._open -= 1
        if self._waiting and self._open - len(self._waiting) < self._limits.in_flight:
            self._waiting.popleft().set()
