"""The order service in every form of its data, in memory, over lines, over HTTP, and over stdio of its own process."""

from collections.abc import Iterator
from types import ModuleType

import pytest

from tests.support.order_service import FORMS, example_module
from tests.support.order_variants import Service
from tests.support.reaching import WAYS


@pytest.fixture(scope="module")
def example() -> Iterator[ModuleType]:
    """The module ``server`` of the example."""
    with example_module() as module:
        yield module


@pytest.fixture(params=[*WAYS, "stdio"])
def over(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def service(example: ModuleType, over: str, form: str) -> Service:
    return Service(example, over, form)


@pytest.fixture(params=["legacy", "modern"])
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)
