"""httpx and httpx2, used alike.

httpx2 continues httpx under another name with another tree of classes, so neither is named in the code: whatever is
needed of a family is reached through its module. Neither is imported before an HTTP client is made.
"""

import sys
from collections.abc import AsyncIterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, Final, Protocol

__all__ = ["Response", "create_client", "family_of", "preferred_family"]

_FAMILIES: Final = ("httpx2", "httpx")

_KEPT: Final = 32  # idle connections
_KEPT_FOR: Final = 4.0  # seconds; servers close theirs after five, and a request must not meet that moment


class Response(Protocol):
    """What is used of a response."""

    @property
    def status_code(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    def aiter_bytes(self) -> AsyncIterator[bytes]: ...


def family_of(client: Any) -> ModuleType:
    """Return the module that ``client`` comes from.

    Raises:
        TypeError: It is no ``AsyncClient`` of httpx or httpx2.
    """
    for name in _FAMILIES:
        family = sys.modules.get(name)  # whoever made the client has imported it
        if family is not None and isinstance(client, family.AsyncClient):
            return family
    raise TypeError(f"http_client is {client!r}; give an httpx.AsyncClient or an httpx2.AsyncClient")


def create_client() -> Any:
    """Return an ``AsyncClient`` of httpx2, or of httpx where only that is installed.

    It speaks HTTP/1.1: in HTTP/2, neither family tells the server that a stream was given up, which in modern revisions
    is how a request is cancelled. It has as many connections as there are requests, so that none waits for another.

    Raises:
        ModuleNotFoundError: Neither is installed.
    """
    family = preferred_family()
    limits = family.Limits(max_connections=None, max_keepalive_connections=_KEPT, keepalive_expiry=_KEPT_FOR)
    return family.AsyncClient(limits=limits)


def preferred_family() -> ModuleType:
    """Return httpx2, or httpx where only that is installed.

    Raises:
        ModuleNotFoundError: Neither is installed.
    """
    for name in _FAMILIES:
        try:
            return import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise  # it is installed, and lacks something
    raise ModuleNotFoundError("an HTTP client needs httpx2 or httpx: pip install 'mcpcore[http]'", name="httpx2")
