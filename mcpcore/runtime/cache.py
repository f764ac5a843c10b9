"""A client's memory of lists and resources, for as long as the server says that they are fresh.

2026-07-28, server/utilities/caching. A result is kept under its method and the parameter that decides about it, page by
page; a notification that it has changed drops it at once. Results of requests that took several rounds are never kept.
"""

import time
from collections.abc import Callable
from typing import Any, Final

from msgspec import Raw

from mcpcore.protocol.fitting import decoder_of
from mcpcore.types._base import Object
from mcpcore.types.methods import METHODS
from mcpcore.types.resources import ResourceUpdatedParams

__all__ = ["ResponseCache"]

_DAY: Final = 24 * 3600.0

_RESULTS: Final = {row.name: row.result for row in METHODS if row.cacheable and row.result is not None}

_OUTDATED: Final = {
    # notification: the methods whose results it makes stale
    "notifications/tools/list_changed": ("tools/list",),
    "notifications/prompts/list_changed": ("prompts/list",),
    "notifications/resources/list_changed": ("resources/list", "resources/templates/list"),
    "notifications/resources/updated": ("resources/read",),
}

Key = tuple[str, str | None]


class ResponseCache:
    """Results by method and cursor or URI. It belongs to one client, so private results may be in it, too.

    Args:
        entries: How many are kept; the one that was not used for longest goes first.
        longest: Seconds that a result is kept at most, whatever the server says.
        clock: Seconds, from any start.
    """

    def __init__(
        self, *, entries: int = 1024, longest: float = _DAY, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._entries = entries
        self._longest = longest
        self._clock = clock
        self._kept: dict[Key, tuple[float, Raw]] = {}
        self.epoch = 0
        """Changes whenever something was dropped."""

    def get(self, method: str, params: Object) -> Any:
        """Return the result, an object of the caller's own, if there is one that is fresh; else None."""
        key = _key(method, params)
        found = self._kept.pop(key, None)
        if found is None or self._clock() >= found[0]:
            return None
        self._kept[key] = found
        return decoder_of(_RESULTS[method])(found[1])

    def put(self, method: str, params: Object, result: Any, raw: Raw, epoch: int) -> None:
        """Keep a result that has just come, if the server allows it.

        Args:
            method, params: Of the request.
            result, raw: What came, decoded and as it came.
            epoch: `epoch` when the request was sent: what was dropped since may have made the result stale.
        """
        fresh_for = min((getattr(result, "ttl_ms", None) or 0) / 1000, self._longest)
        if fresh_for <= 0 or epoch != self.epoch:
            return
        self._kept[_key(method, params)] = (self._clock() + fresh_for, Raw(bytes(raw)))
        if len(self._kept) > self._entries:
            del self._kept[next(iter(self._kept))]

    def drop(self, *methods: str, uri: str | None = None) -> bool:
        """Forget the results of ``methods``, or only that for ``uri``. Returns whether there were any."""
        self.epoch += 1
        stale = [key for key in self._kept if key[0] in methods and uri in (None, key[1])]
        for key in stale:
            del self._kept[key]
        return bool(stale)

    def notified(self, method: str, params: Any) -> None:
        """Forget what a notification of the server makes stale."""
        if method in _OUTDATED:
            self.drop(*_OUTDATED[method], uri=params.uri if isinstance(params, ResourceUpdatedParams) else None)

    def clear(self) -> None:
        """Forget everything."""
        self.epoch += 1
        self._kept.clear()


def _key(method: str, params: Any) -> Key:
    return method, getattr(params, "uri", None) if method == "resources/read" else getattr(params, "cursor", None)
