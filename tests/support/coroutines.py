"""Coroutines without an event loop."""

from typing import Any

import pytest

__all__ = ["drive"]


def drive(coroutine: Any) -> Any:
    """Return the result of a coroutine that waits for nothing."""
    with pytest.raises(StopIteration) as stopped:
        coroutine.send(None)
    return stopped.value.value
