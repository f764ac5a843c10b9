"""Closing what the tests of HTTP open."""

from collections.abc import AsyncIterator

import pytest

from tests.support.asgi import Caller


@pytest.fixture(autouse=True)
async def applications_are_closed(anyio_backend: str) -> AsyncIterator[None]:
    """Close every application that a test has called."""
    yield
    while Caller.opened:
        await Caller.opened.pop().aclose()
