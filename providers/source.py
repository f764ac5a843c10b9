"""What surrounds one request, as far as handlers see it: the runtime's side of an invocation."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from mcpcore.providers.markers import Elicit, Injection, Log, Progress, Roots, Sample

__all__ = ["FAILURES", "RunSync", "Source", "in_thread"]

RunSync = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Runs a plain function in a worker thread, with the caller's context variables, and gives its result."""

FAILURES = (Exception, SystemExit, BaseExceptionGroup)
"""What a handler can fail with. Cancellation, KeyboardInterrupt and signals of the runtime are none of these and pass
through; a SystemExit must not end the server, and a group may hold an error that is an answer."""


class Source(Protocol):
    """The surroundings of one request."""

    def provide(self, injection: Injection, /) -> Any:
        """Return the value of an injected parameter. None where there is none, which only ``T | None`` parameters get."""
        ...

    async def ask(self, questions: Mapping[str, Elicit | Sample | Roots], /) -> Mapping[str, Any]:
        """Ask the client all ``questions`` in one round.

        The answer to an `Elicit` has ``action`` ("accept", "decline" or "cancel") and, for an accepted form, ``value``.
        """
        ...

    def notify(self, item: Progress | Log, /) -> None:
        """Send what a handler yielded. Called on the event loop."""
        ...

    @property
    def is_open(self) -> bool:
        """Somebody still waits for the result. Read in worker threads as well."""
        ...

    async def shielded(self, close: Callable[[], Awaitable[Any]], /) -> None:
        """Await ``close()`` although the handler has been cancelled; not for ever."""
        ...

    def notify_from_thread(self, item: Progress | Log, /) -> None:
        """Send what a ``def`` generator yielded. Called in the worker thread that `RunSync` gave it."""
        ...


async def in_thread(run_sync: RunSync, work: Callable[[], Any]) -> Any:
    """Run ``work`` by ``run_sync`` and return its result, or raise what it raised.

    Exceptions travel as values, because not every one survives the way between threads: StopIteration cannot be set on
    a future, and SystemExit would end some workers.
    """

    def attempt() -> tuple[Any, BaseException | None]:
        try:
            return work(), None
        except FAILURES as exc:
            return None, exc

    result, exc = await run_sync(attempt)
    if exc is not None:
        raise exc
    return result
