"""From a TARGET on the command line to a server object, or to something that a client can connect to."""

import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from mcpcore.abc import ClientTransport
from mcpcore.runtime.server import Server
from mcpcore.transports.stdio_client import stdio

__all__ = ["LoadError", "UsageError", "client_target", "is_ours", "load_server", "server_command"]

_NAMES: Final = ("mcp", "server", "app")


class LoadError(Exception):
    """The target cannot be loaded; the message says why and what would work."""


class UsageError(Exception):
    """The command line makes no sense; the message says what would."""


def client_target(target: str, on_stderr: Callable[[str], object]) -> ClientTransport:
    """Return what a `Client` connects to: the endpoint at a URL, anything else as a process of its own.

    Args:
        target: See the command line's help.
        on_stderr: Called with each line that the process writes to its standard error.
    """
    if target.startswith(("http://", "https://")):
        from mcpcore.transports.http.client import HTTPClientTransport  # with httpx, which need not be installed

        try:
            return HTTPClientTransport(target)
        except ValueError as error:
            raise UsageError(str(error)) from None
    return stdio(*server_command(target), inherit_env=is_ours(target), stderr=on_stderr)


def server_command(target: str) -> list[str]:
    """Return the command that starts the server of a target that is no URL.

    Raises:
        UsageError: It is empty.
        LoadError: There is no such file or module.
    """
    if target.startswith("\0"):
        command = target[1:].split("\0")
        if not command[0]:
            raise UsageError("give a command after --")
        return command
    _locate(target)  # a clear error now is better than one from the child process
    return [sys.executable, "-m", "mcpcore", "run", target]


def is_ours(target: str) -> bool:
    """Tell a server object, which may have our whole environment, from a command, which gets what programs need to run."""
    return not target.startswith("\0")


def load_server(target: str) -> Server:
    """Import ``target`` and return its server.

    While the module is imported, what it prints goes to standard error: standard output belongs to the protocol.

    Raises:
        LoadError: There is no such file, module or object, or it is no server.
    """
    if target.startswith(("\0", "http://", "https://")):
        raise UsageError(
            "this command takes a server object, as file.py or module; a command or a URL serves by itself"
        )
    place, name = _locate(target)
    with _stdout_on_stderr():
        try:
            candidate = _find(_import(place), name, target)
            if not isinstance(candidate, Server) and callable(candidate):
                candidate = candidate()
            if inspect.isawaitable(candidate):
                candidate = _await(candidate)
        except LoadError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever the target's code raises
            raise LoadError(f"{target} cannot be loaded\n{_own_traceback(error)}") from None
    if not isinstance(candidate, Server):
        raise LoadError(f"{target}: {type(candidate).__name__} is no mcpcore.Server")
    return candidate


def _own_traceback(error: Exception) -> str:
    """Format a traceback without what is above the target's code, so that people see their own lines first."""
    above = (os.path.dirname(__file__), os.path.dirname(importlib.__file__), "<frozen importlib")
    found = error.__traceback__
    while found is not None and found.tb_frame.f_code.co_filename.startswith(above):
        found = found.tb_next
    return "".join(traceback.format_exception(error.with_traceback(found))).rstrip()


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
            servers = [known for known, value in vars(module).items() if isinstance(value, Server)]
            raise LoadError(f"{target}: there is no {name!r}; servers there: {', '.join(servers) or 'none'}")
        return getattr(module, name)
    found = {known: getattr(module, known) for known in _NAMES if hasattr(module, known)}
    for candidate in found.values():
        if isinstance(candidate, Server) or inspect.isfunction(candidate):
            return candidate
    others = "".join(f"; {known} is a {type(value).__name__}" for known, value in found.items())
    raise LoadError(f"{target}: no mcpcore.Server is called {', '.join(_NAMES)}{others}. Name it: {target}:NAME")


def _await(awaitable: Any) -> Any:
    import anyio

    async def wait() -> Any:
        return await awaitable

    return anyio.run(wait)


@contextmanager
def _stdout_on_stderr() -> Generator[None]:
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
