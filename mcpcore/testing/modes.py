"""A registry for each strict kind of server, to see in a test which handlers each of them takes, and why not."""

from typing import Any, Final

from mcpcore.providers.fields import Rename
from mcpcore.providers.registry import Registry
from mcpcore.providers.selection import (
    AsyncProvider,
    AsyncStatelessProvider,
    Provider,
    SyncProvider,
    SyncStatelessProvider,
)

__all__ = ["MODES", "in_every_mode"]

MODES: Final[tuple[Provider, ...]] = (
    SyncProvider(),
    AsyncProvider(),
    SyncStatelessProvider(),
    AsyncStatelessProvider(),
)


def in_every_mode(*targets: Any, rename: Rename = None) -> dict[Provider, Registry]:
    """Include ``targets`` in one registry for each of `MODES`, and return the registries by their mode.

    Nothing is logged about what is not taken; ``skipped`` of each registry has it.

    Args:
        targets: What `Registry.include` takes: objects, modules, marked functions.
        rename: As for `Registry`.

    Raises:
        DefinitionError: Something cannot be a handler in any mode.
    """
    registries: dict[Provider, Registry] = {}
    for mode in MODES:
        registry = registries[mode] = Registry(mode.type, mode.state, on_skip="ignore", rename=rename)
        for target in targets:
            registry.include(target)
    return registries
