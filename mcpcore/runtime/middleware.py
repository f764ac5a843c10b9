"""Functions around every message of a client, and the ones that most servers want.

A middleware is ``async def m(message, call_next)``. It is called for each request and notification that the core hands
on; ``await call_next(message)`` goes on to the next one and in the end to the handler. What it returns is the result, what
it raises is answered like an exception of the handler, and what it puts into ``message.state`` or context variables is
there for everything further in. The handshake, discovery, pings, log levels and legacy subscriptions are the core's own
business and do not pass here. Of notifications nothing is returned, and they are shown after they have taken effect.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Final

import msgspec

from mcpcore.exceptions import McpError
from mcpcore.runtime.request import Message, Request
from mcpcore.types.jsonrpc import INTERNAL_ERROR
from mcpcore.types.tools import CallToolResult

__all__ = ["ConcurrencyLimit", "Middleware", "Next", "RateLimit", "ResponseLimit", "Timing"]

Next = Callable[[Message], Awaitable[Any]]
"""The rest of the chain."""

Middleware = Callable[[Message, Next], Awaitable[Any]]
"""See the module."""

Key = Callable[[Message], Hashable]
"""What a limit counts by."""

_MOST_KEYS: Final = 10_000


def _caller(message: Message) -> Hashable:
    """Who is authenticated, else the session, else everyone together."""
    scope = message.scope
    return str(scope.principal) if scope.principal is not None else scope.session_id


class Timing:
    """Measures how long each request takes, from this middleware inwards.

    Args:
        report: Called with the message and seconds, also when it failed; a DEBUG record of ``mcpcore.timing`` when None.
        clock: Seconds, from any start.
    """

    def __init__(
        self,
        report: Callable[[Message, float], Any] | None = None,
        *,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._report = report or _log_timing
        self._clock = clock

    async def __call__(self, message: Message, call_next: Next) -> Any:
        started = self._clock()
        try:
            return await call_next(message)
        finally:
            self._report(message, self._clock() - started)


def _log_timing(message: Message, seconds: float) -> None:
    logging.getLogger("mcpcore.timing").debug("%s took %.1f ms", message.method, seconds * 1000)


class RateLimit:
    """Refuses requests of a caller that come too fast, by the token bucket.

    Args:
        per_second: How many may come in the long run.
        burst: How many may come at once.
        key: Whose requests are counted together; by default those of a principal, else of a session.
        clock: Seconds, from any start.
    """

    def __init__(
        self,
        per_second: float,
        *,
        burst: int = 10,
        key: Key = _caller,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if per_second <= 0 or burst < 1:
            raise ValueError(f"RateLimit({per_second}, burst={burst}): give a positive rate and at least 1 at once")
        self._rate = per_second
        self._burst = burst
        self._key = key
        self._clock = clock
        self._buckets: dict[Hashable, tuple[float, float]] = {}  # tokens left, and when that was

    async def __call__(self, message: Message, call_next: Next) -> Any:
        if isinstance(message, Request):
            self._take(self._key(message))
        return await call_next(message)

    def _take(self, key: Hashable) -> None:
        now = self._clock()
        tokens, since = self._buckets.pop(key, (self._burst, now))
        tokens = min(self._burst, tokens + (now - since) * self._rate)
        self._buckets[key] = (tokens - 1 if tokens >= 1 else tokens, now)
        if len(self._buckets) > _MOST_KEYS:
            del self._buckets[next(iter(self._buckets))]  # the one that has been quiet for longest
        if tokens < 1:
            wait = (1 - tokens) / self._rate
            raise McpError(
                INTERNAL_ERROR, f"Rate limit exceeded: try again in {wait:.1f} seconds", {"retryAfter": round(wait, 3)}
            )


class ConcurrencyLimit:
    """Refuses requests of a caller while so many of its requests run already.

    Args:
        most: How many may run at the same time.
        key: Whose requests are counted together; by default those of a principal, else of a session.
    """

    def __init__(self, most: int, *, key: Key = _caller) -> None:
        if most < 1:
            raise ValueError(f"ConcurrencyLimit({most}): give at least 1")
        self._most = most
        self._key = key
        self._running: dict[Hashable, int] = {}

    async def __call__(self, message: Message, call_next: Next) -> Any:
        if not isinstance(message, Request) or message.method == "subscriptions/listen":
            return await call_next(message)
        key = self._key(message)
        running = self._running.get(key, 0)
        if running >= self._most:
            raise McpError(INTERNAL_ERROR, f"Server busy: {self._most} requests of this caller run already")
        self._running[key] = running + 1
        try:
            return await call_next(message)
        finally:
            self._running[key] -= 1
            if not self._running[key]:
                del self._running[key]


class ResponseLimit:
    """Replaces results that are too large by an error that says so.

    Args:
        most_bytes: Of the encoded result.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes

    async def __call__(self, message: Message, call_next: Next) -> Any:
        result = await call_next(message)
        if result is None:
            return None
        size = len(msgspec.json.encode(result))
        if size <= self._most:
            return result
        text = f"The result has {size} bytes, more than the {self._most} that are allowed. Ask for less."
        if isinstance(result, CallToolResult):
            return CallToolResult.error(text)
        raise McpError(INTERNAL_ERROR, text)
