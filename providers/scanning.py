"""Finds what was marked by the decorators on an object, a class or a module."""

from collections.abc import Iterator
from inspect import isclass, isfunction, ismodule, unwrap
from types import ModuleType
from typing import Any

from mcpcore.exceptions import DefinitionError
from mcpcore.providers.declarations import Declared, declarations_of

__all__ = ["marked"]


def marked(target: Any) -> Iterator[tuple[Any, Declared]]:
    """Yield callables, bound where they are methods, with what was declared on them, in the order of definition.

    The class of an object is scanned through its bases, bases first. An overriding method keeps the declaration of the
    method that it overrides unless it has its own; ``name = None`` in a subclass takes a handler away. In a module only
    what is defined there counts, or below it where it is a package.

    Raises:
        DefinitionError: ``target`` is a class with marked methods that need an instance.
    """
    if ismodule(target):
        yield from _in_module(target)
        return
    own = declarations_of(target)
    if own:
        yield from ((target, declared) for declared in own)
        return
    # __class__ and not type(): a proxy answers with the class of what it stands for, and binds its methods.
    owner = target if isclass(target) else target.__class__
    found: dict[str, tuple[Declared, ...]] = {}
    for base in reversed(owner.__mro__):
        for name, attribute in vars(base).items():
            if declared := declarations_of(attribute):
                found[name] = declared
    for name, attribute in (getattr(target, "__dict__", {}) if owner is not target else {}).items():
        if name not in found and (declared := declarations_of(attribute)):
            found[name] = declared
    for name, declared in found.items():
        function = getattr(target, name)
        if not callable(function):
            continue
        if owner is target and isfunction(function) and not isinstance(_raw(owner, name), staticmethod):
            raise DefinitionError(
                f"{owner.__qualname__}.{name} is a method and needs an object: include({owner.__qualname__}(…))"
            )
        yield from ((function, each) for each in declared)


def _raw(owner: type, name: str) -> Any:
    return next(vars(base)[name] for base in owner.__mro__ if name in vars(base))


def _in_module(module: ModuleType) -> Iterator[tuple[Any, Declared]]:
    here = module.__name__
    below = f"{here}." if hasattr(module, "__path__") else None
    for attribute in list(vars(module).values()):
        if not (found := declarations_of(attribute)):
            continue
        function = unwrap(attribute)
        home = getattr(function, "__module__", None) if isfunction(function) else here
        if home == here or (below is not None and home is not None and home.startswith(below)):
            yield from ((attribute, declared) for declared in found)
