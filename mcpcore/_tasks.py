"""Starting tasks that are nobody's children."""

import contextvars
import sys
from collections.abc import Callable, Coroutine
from typing import Any, Final

from mcpcore._wakeup import asyncio_loop

_tasks: Final[set[Any]] = set()  # the event loop itself holds tasks weakly


def start_task(function: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run ``function`` as a task that is nobody's child. It must not raise."""
    loop = asyncio_loop()
    if loop is None:
        sys.modules["trio"].lowlevel.spawn_system_task(function, context=contextvars.copy_context())
        return
    task = loop.create_task(function())
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)
