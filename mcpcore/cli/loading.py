"""From a TARGET on the command line to a server object, or to something that a client can connect to."""

import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from mcpcore.runtime.server import Server
from mcpcore.transports.stdio_client import StdioClientTransport, stdio

__all__ = ["LoadError", "client_target", "load_server"]

_NAMES: Final = ("mcp", "server", "app")


class LoadError(Exception):
    """The target cannot be loaded; the message says why and what would work."""


def client_target(target: str) -> StdioClientTransport | str:
    """Return what a `Client` connects to: a URL as it is, anything else as a process of its own."""
    if target.startswith(("http://", "https://")):
        return target
    if target.startswith("\0"):
        command = target[1:].split("\0")
        if not command[0]:
            raise LoadError("give a command after --")
        return stdio(*command)
    _locate(target)  # a clear error now is better than one from the child process
    return stdio(sys.executable, "-m", "mcpcore", "run", target, inherit_env=True)


def load_server(target: str) -> Server:
    """Import ``target`` and return its server.

    While the module is imported, what it prints goes to standard error: standard output belongs to the protocol.

    Raises:
        LoadError: There is no such file, module or object, or it is no server.
    """
    place, name = _locate(target)
    with _stdout_on_stderr():
        module = _import(place)
        candidate = _find(module, name, target)
        if not isinstance(candidate, Server) and callable(candidate):
            candidate = candidate()
        if inspect.isawaitable(candidate):
            candidate = _await(candidate)
    if not isinstance(candidate, Server):
        raise LoadError(f"{target}: {type(candidate).__name__} is no mcpcore.Server")
    return candidate


def _locate(target: str) -> tuple[Path | str, str | None]:
    """Split ``target`` into a file or a module name, and the object's name."""
    place, separator, name = target.rpartition(":")
    if not separator or "/" in name or os.sep in name or not name.isidentifier():
        place, name = target, ""
    if place.endswith(".py"):
        path = Path(place).resolve()
        if not path.is_file():
            raise LoadError(f"{place}: there is no such file")
        return path, name or None
    if "/" in place or not all(part.isidentifier() for part in place.split(".")):
        raise LoadError(f"{target}: neither a .py file nor a module name")
    return place, name or None


def _import(place: Path | str) -> ModuleType:
    if isinstance(place, str):
        sys.path.insert(0, os.getcwd())
        try:
            return importlib.import_module(place)
        except ModuleNotFoundError as error:
            if error.name is not None and (place == error.name or place.startswith(error.name + ".")):
                raise LoadError(f"{place}: there is no such module") from None
            raise
    sys.path.insert(0, str(place.parent))
    spec = importlib.util.spec_from_file_location(place.stem, place)
    if spec is None or spec.loader is None:
        raise LoadError(f"{place}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[place.stem] = module
    spec.loader.exec_module(module)
    return module


def _find(module: ModuleType, name: str | None, target: str) -> Any:
    if name is not None:
        if not hasattr(module, name):
            raise LoadError(f"{target}: the module has no {name!r}")
        return getattr(module, name)
    for known in _NAMES:
        if hasattr(module, known):
            return getattr(module, known)
    raise LoadError(f"{target}: found none of {', '.join(_NAMES)}; name the server as {target}:NAME")


def _await(awaitable: Any) -> Any:
    import anyio

    async def wait() -> Any:
        return await awaitable

    return anyio.run(wait)


@contextmanager
def _stdout_on_stderr() -> Iterator[None]:
    """Point descriptor 1 at standard error, for prints and child processes alike."""
    sys.stdout.flush()
    saved = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(saved, 1)
        os.close(saved)
