"""An address of a server: requests to it, redirects followed where that is safe, failures by name."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio

from mcpcore.exceptions import ConnectionLost, MCPCoreError, TransportError
from mcpcore.transports.http._family import Response, family_of

__all__ = ["Endpoint", "parse_url", "read_body"]

_PATIENCE: Final = 30.0  # seconds to connect, to write, and to get a connection; an answer may take as long as it does
_CLOSING: Final = 1.0  # seconds to close a connection in good order
_HOPS: Final = 5
_PORTS: Final = {"http": 80, "https": 443}

_KEEP_METHOD: Final = (307, 308)
_ANY_REDIRECT: Final = (301, 302, 303, 307, 308)


class Endpoint:
    """One URL of a server.

    Args:
        client: An ``AsyncClient`` of httpx or httpx2. Its own timeouts and its habit with redirects do not apply.
        url: Absolute, http or https.

    Raises:
        TypeError: ``client`` is something else.
        ValueError: ``url`` is no such URL.
    """

    def __init__(self, client: Any, url: Any) -> None:
        self._family: Any = family_of(client)
        self._client = client
        self._timeout = self._family.Timeout(_PATIENCE, read=None)
        self._url = parse_url(self._family, url)

    def __str__(self) -> str:
        """The URL without what may be secret."""
        return _shown(self._url)

    def sibling(self, reference: str) -> "Endpoint":
        """Return the endpoint that the server itself names, relative to this one.

        Raises:
            TransportError: It is none, or belongs to somebody else.
        """
        try:
            url = self._url.join(reference)
        except self._family.InvalidURL:
            raise TransportError(f"{self} names {reference!r} as its endpoint, which is no URL") from None
        if _origin(url) != _origin(self._url) or url.userinfo:
            raise TransportError(f"{self} names {_shown(url)} as its endpoint, which is of another origin")
        return Endpoint(self._client, url)

    @asynccontextmanager
    async def request(
        self, method: str, headers: Mapping[str, str | bytes], content: bytes | None = None
    ) -> AsyncGenerator[Response]:
        """Send a request and yield the response, of which the body is still to be read.

        Raises:
            ConnectionLost: The connection broke, before the response or in it.
            TransportError: The server cannot be reached, or redirects to where a request must not follow.

        Leaving the context early closes the connection, which tells the server that nobody listens any more.
        """
        try:
            response = await self._send(method, headers, content)
            try:
                yield response
            finally:
                with anyio.move_on_after(_CLOSING, shield=True):
                    await response.aclose()
        except MCPCoreError:
            raise
        except Exception as error:  # of the family, or of what the user has put into the client
            raise self._named(error) from error

    async def _send(self, method: str, headers: Mapping[str, str | bytes], content: bytes | None) -> Any:
        url = self._url
        for _ in range(_HOPS + 1):
            request = self._client.build_request(method, url, headers=headers, content=content, timeout=self._timeout)
            response = await self._client.send(request, stream=True, follow_redirects=False)
            if response.status_code not in _ANY_REDIRECT:
                return response
            await response.aclose()
            url = self._redirected(method, url, response)
        raise TransportError(f"{self} redirects more than {_HOPS} times")

    def _redirected(self, method: str, url: Any, response: Any) -> Any:
        """Return where a redirect leads.

        A client sends the user's credentials wherever it goes, so it goes nowhere but to the origin that the user named,
        or to that host by TLS. A POST goes on as a POST or not at all (RFC 9110 15.4).

        Raises:
            TransportError: Not there, or not so.
        """
        status, location = response.status_code, response.headers.get("location", "")
        try:
            target = url.join(location)
        except self._family.InvalidURL:
            target = None
        what = f"{self} answers with a redirect ({status})"
        if not location or target is None or not target.host:
            raise TransportError(f"{what} to {location!r}, which is no URL", status=status)
        if not _may_follow(url, target):
            hint = ""
            if (url.scheme, target.scheme, url.host) == ("https", "http", target.host):
                hint = "; the server seems not to know that a proxy in front of it speaks TLS"
            raise TransportError(
                f"{what} to another origin, {_shown(target)}, where nothing is sent; "
                f"connect to that URL if you trust it{hint}",
                status=status,
            )
        if method != "GET" and status not in _KEEP_METHOD:
            raise TransportError(
                f"{what} to {_shown(target)} that would turn {method} into GET; connect to that URL", status=status
            )
        return target

    def _named(self, error: Exception) -> MCPCoreError:
        family = self._family
        said = str(error) or type(error).__name__
        unsent = (family.ConnectError, family.ConnectTimeout, family.PoolTimeout, family.ProxyError)
        if isinstance(error, (*unsent, family.UnsupportedProtocol)):
            return TransportError(f"cannot connect to {self}: {said}")
        if isinstance(error, family.RequestError) and not isinstance(error, family.LocalProtocolError):
            return ConnectionLost(f"the connection to {self} broke: {said}")
        return TransportError(f"cannot send to {self}: {said}")


def parse_url(family: Any, url: Any) -> Any:
    """Return ``url`` as an object of the family.

    Raises:
        ValueError: It is no http or https URL.
    """
    try:
        parsed = family.URL(url)
    except family.InvalidURL as error:
        raise ValueError(f"{url!r} is no URL: {error}") from None
    if parsed.scheme not in _PORTS or not parsed.host:
        raise ValueError(f"{str(url)!r} is no http or https URL")
    return parsed


def _may_follow(url: Any, target: Any) -> bool:
    if target.userinfo:
        return False
    to_tls = (url.scheme, _port(url), target.scheme, _port(target)) == ("http", 80, "https", 443)
    return _origin(url) == _origin(target) or (to_tls and url.host == target.host)


def _origin(url: Any) -> tuple[str, str, int | None]:
    return url.scheme, url.host, _port(url)


def _port(url: Any) -> int | None:
    port: int | None = url.port or _PORTS.get(url.scheme)
    return port


def _shown(url: Any) -> str:
    return str(url.copy_with(userinfo=b"", query=None, fragment=None))


async def read_body(response: Response, limit: int) -> bytes | None:
    """Read a whole body. None when it is longer than ``limit`` bytes; the rest is not read then.

    The iteration ends by itself or by cancellation: left in the middle, the generators below would stay behind.
    """
    chunks: list[bytes] = []
    size = 0
    with anyio.CancelScope() as scope:
        async for chunk in response.aiter_bytes():
            size += len(chunk)
            if size > limit:
                chunks.clear()
                scope.cancel()
            else:
                chunks.append(chunk)
    return b"".join(chunks) if size <= limit else None
