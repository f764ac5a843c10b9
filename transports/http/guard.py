"""Who may talk to the endpoint from where: Host and Origin against DNS rebinding, and CORS for browsers.

2026-07-28, basic/transports/streamable-http, "Security & Endpoint". A page in a browser can be made to send requests to
an address of the machine it runs on; it cannot forge ``Host`` and ``Origin``.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

__all__ = ["Guard", "is_loopback"]

_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")

_REQUEST_HEADERS: Final = (
    "Accept, Authorization, Content-Type, Last-Event-ID, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id"
)
_EXPOSED_HEADERS: Final = "Mcp-Session-Id, WWW-Authenticate"


class Guard(Struct, frozen=True):
    """Judges ``Host`` and ``Origin``.

    Args:
        allowed_hosts: Host names, with or without a port; without one any port will do. None allows any host.
        allowed_origins: Further origins, such as ``https://app.example.com``; ``*`` for any. An origin of an allowed
            host is always fine.
        cors: Answer preflight requests and name the origin in answers, so that pages of allowed origins can call.
    """

    allowed_hosts: tuple[str, ...] | None = _LOOPBACK
    allowed_origins: tuple[str, ...] = ()
    cors: bool = False

    def refusal(self, headers: Mapping[str, str]) -> str | None:
        """Return why a request is refused with 403, or None. A request without ``Origin`` comes from no page."""
        host = headers.get("host")
        if self.allowed_hosts is not None and not _is_allowed(host, self.allowed_hosts):
            return f"Host {host!r} is not allowed; allowed_hosts= names those that are"
        origin = headers.get("origin")
        if origin is None or self._is_allowed_origin(origin):
            return None
        return f"Origin {origin!r} is not allowed; allowed_origins= names those that are"

    def cors_headers(self, headers: Mapping[str, str], *, preflight: bool = False) -> list[tuple[bytes, bytes]]:
        """Return the header fields that let a page of an allowed origin read the answer."""
        origin = headers.get("origin")
        if not self.cors or origin is None or not self._is_allowed_origin(origin):
            return []
        fields = [
            (b"access-control-allow-origin", origin.encode("latin-1")),
            (b"vary", b"Origin"),
        ]
        if not preflight:
            return [*fields, (b"access-control-expose-headers", _EXPOSED_HEADERS.encode())]
        wanted = headers.get("access-control-request-headers") or _REQUEST_HEADERS
        return [
            *fields,
            (b"access-control-allow-methods", b"POST, GET, DELETE"),
            (b"access-control-allow-headers", wanted.encode("latin-1")),
            (b"access-control-max-age", b"600"),
        ]

    def _is_allowed_origin(self, origin: str) -> bool:
        if "*" in self.allowed_origins or origin in self.allowed_origins:
            return True
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        if parts.scheme not in ("http", "https") or self.allowed_hosts is None:
            return self.allowed_hosts is None and bool(parts.netloc)
        return _is_allowed(parts.netloc, self.allowed_hosts)


@lru_cache(256)
def _is_allowed(host: str | None, allowed: tuple[str, ...]) -> bool:
    parsed = _parse(host)
    if parsed is None:
        return False
    for entry in allowed:
        wanted = _parse(f"[{entry}]" if entry.count(":") > 1 and not entry.startswith("[") else entry)
        if wanted is not None and wanted[0] == parsed[0] and wanted[1] in (None, parsed[1]):
            return True
    return False


def _parse(host: str | None) -> tuple[str, int | None] | None:
    """Split a host and a port. Parsing, not comparing prefixes: ``localhost:1.evil.com`` is no localhost."""
    if not host:
        return None
    try:
        parts = urlsplit("//" + host)
        if parts.hostname is None or parts.username is not None or parts.path or parts.query or parts.fragment:
            return None
        return parts.hostname.rstrip("."), parts.port
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Tell whether ``host`` names this machine only."""
    return host in _LOOPBACK or host.startswith("127.")
