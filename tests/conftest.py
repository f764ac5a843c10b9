"""Fixtures for the whole suite: every runtime test runs on asyncio and on trio."""

import pytest


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """The event loop under an ``@pytest.mark.anyio`` test."""
    return str(request.param)
