"""Fixtures for the whole suite: every runtime test runs on asyncio and on trio."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Whether an example is made in time depends on the machine, and says nothing about what is tested.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """The event loop under an ``@pytest.mark.anyio`` test."""
    return str(request.param)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what takes long, unless it is asked for."""
    if "soak" not in config.option.markexpr:
        soak = [item for item in items if item.get_closest_marker("soak")]
        config.hook.pytest_deselected(items=soak)
        items[:] = [item for item in items if item not in soak]


def make_importable(folder: Path) -> None:
    """Import a package that is part of the repository and not of what is installed.

    The root on ``sys.path`` would do it too, but would hide the mcpcore that is installed.
    """
    spec = spec_from_file_location(folder.name, folder / "__init__.py")
    assert spec is not None and spec.loader is not None
    sys.modules[folder.name] = module = module_from_spec(spec)
    spec.loader.exec_module(module)


make_importable(Path(__file__).parents[1] / "benchmarks")
