"""Being the process: running until the work ends or a signal says stop, and leaving in bounded time."""

import logging
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable

import anyio

from mcpcore.runtime.background import unwrap

__all__ = ["run_until_signalled"]

_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


def run_until_signalled(
    serve: Callable[[], Awaitable[None]], stop: Callable[[], None], threads_left: Callable[[], int], backend: str
) -> None:
    """Run ``serve`` on an event loop of its own.

    Args:
        serve: Runs until it is done or cancelled.
        stop: Called on the event loop at the first signal (SIGINT, SIGTERM, SIGHUP); ``serve`` should end soon.
        threads_left: How many worker threads were abandoned and may still run.
        backend: ``asyncio`` or ``trio``.

    Raises:
        SystemExit: 128 plus the signal's number, after a signal.

    A worker thread that never ends would keep the interpreter from exiting. When one was abandoned the process leaves
    without waiting for it, once everything has been flushed.
    """
    received: list[int] = []

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            if threading.current_thread() is threading.main_thread():
                tasks.start_soon(_watch, received, stop)
            await serve()
            tasks.cancel_scope.cancel()

    try:
        anyio.run(main, backend=backend)
    except BaseExceptionGroup as group:
        raise unwrap(group) from None
    status = 128 + received[0] if received else 0
    if threads_left():
        _leave(status)
    if status:
        raise SystemExit(status)


async def _watch(received: list[int], stop: Callable[[], None]) -> None:
    with anyio.open_signal_receiver(*_SIGNALS) as signals:
        async for number in signals:
            received.append(number)
            stop()


def _leave(status: int) -> None:
    """End the process without joining threads, after what `sys.exit` would have flushed."""
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(status)
