"""What a legacy session knows because it was told, to be told again to the one that takes its place."""

from collections.abc import Iterator
from typing import Any

from mcpcore.types._base import Object

__all__ = ["Standing"]


class Standing:
    """The requests whose effect lasts as long as their session: the log level, and subscriptions to resources."""

    def __init__(self) -> None:
        self._requests: dict[str, tuple[str, Object]] = {}

    def note(self, method: str, params: Any) -> None:
        """Take note of a request that was answered with success."""
        if method == "logging/setLevel":
            self._requests[method] = (method, params)
        elif method == "resources/subscribe":
            self._requests[f"{method} {params.uri}"] = (method, params)
        elif method == "resources/unsubscribe":
            self._requests.pop(f"resources/subscribe {params.uri}", None)

    def __iter__(self) -> Iterator[tuple[str, Object]]:
        return iter(list(self._requests.values()))
