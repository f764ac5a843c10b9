"""A server at a URL, over Streamable HTTP of either era."""

import contextlib
import ipaddress
import os
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Final, Literal, Self
from urllib.parse import SplitResult, urljoin, urlsplit

from mcpcore.bench.connection import Connection
from mcpcore.bench.http_driver import HEAD, framed
from mcpcore.bench.http_load import JSON, exchange
from mcpcore.bench.load import Load, Tally
from mcpcore.bench.process import Usage, family, listeners, usage
from mcpcore.bench.responses import EVENTS, Head, MalformedResponse, Response, event_data
from mcpcore.bench.target import Target
from mcpcore.exceptions import AuthError, RemoteProtocolError, TransportError
from mcpcore.protocol.messages import Incoming, Kind, Outgoing, Unanswered
from mcpcore.transports.http.replies import Refusal, is_answer, negotiated_version, own_answer, read_refusal

__all__ = ["HTTPTarget"]

PORTS: Final = {"http": 80, "https": 443}
REDIRECTS: Final = (307, 308)  # those after which a POST is a POST
HOPS: Final = 5
GOODBYE: Final = 2.0  # seconds for the end of all sessions
OURS: Final = frozenset({"host", "content-length", "content-type", "accept", "connection", "transfer-encoding"})


class HTTPTarget(Target):
    """A server at a URL. Its sessions are ended, and its connections closed, when the context is left.

    Args:
        url: The endpoint.
        headers: Further header fields for every request.
        sessions: Legacy sessions: one for each ``connection``, or one that all of them have ``shared``.
        timeout: Seconds to connect, and that a write may take.

    Raises:
        ValueError: ``url`` is no http or https URL, or a header field cannot be sent like that.
        TransportError: The server cannot be reached.
    """

    transport = "http"
    mirrors = True

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        sessions: Literal["connection", "shared"] = "connection",
        timeout: float = 60.0,
    ) -> None:
        self._fields = "".join(f"{name}: {value}\r\n" for name, value in _checked(headers or {}).items())
        self._url = _split(url)
        self._sessions = sessions
        self._timeout = timeout
        self._tls = ssl.create_default_context() if self._url.scheme == "https" else None
        self._ids: list[str] = []
        self._session: str | None = None
        self._version: str | None = None
        self._arrived: list[Incoming] = []
        self._connections: list[Connection] = []
        self._speaker = self._connect()
        self._own = self._speaker  # what is asked beside a load
        self._listeners = self._find()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        until = time.monotonic() + GOODBYE
        for session in self._ids:
            with contextlib.suppress(OSError, MalformedResponse):
                if (left := until - time.monotonic()) <= 0:
                    break
                self._own.head = self._head("DELETE", session)
                self._own.ask(b"Content-Length: 0\r\n\r\n", left)
        for connection in (self._own, *self._connections):
            connection.socket.close()

    # -- single messages ---------------------------------------------------------------------------------------------

    def post(self, message: Outgoing, seconds: float) -> None:
        opening = message.method == "initialize"
        if opening:
            self._session = self._version = None
        request_id = message.request_id if message.kind is Kind.REQUEST else None
        try:
            response = self._ask(self.frame(message), seconds)
        except (OSError, MalformedResponse) as error:
            lost = TransportError(f"{self._shown()} gave no answer to {message.method}: {error}")
            if request_id is not None:
                self._arrived.append(Incoming(b"", problem=Unanswered(request_id, lost, not_understood=True)))
            return
        if request_id is not None:
            self._take(request_id, message.method, response)
            if opening:
                self._opened(response.head)

    def collect(self, seconds: float) -> list[Incoming]:
        """Responses have been waited for by `post`, so nothing else comes."""
        arrived, self._arrived = self._arrived, []
        if not arrived:
            time.sleep(max(0.0, seconds))
        return arrived

    def _ask(self, prepared: bytes, seconds: float) -> Response:
        for _ in range(HOPS + 1):
            self._speaker.head = self._head("POST", self._session)
            response = self._speaker.ask(prepared, seconds)
            location = response.head.location
            if response.head.status not in REDIRECTS or location is None:
                return response
            moved = urlsplit(urljoin(self._url.geturl(), location))
            if (moved.scheme, moved.netloc) != (self._url.scheme, self._url.netloc):
                raise ConnectionError(f"it redirects to {location}; give that URL")
            self._url = moved
        raise ConnectionError("it redirects in circles")

    def _take(self, request_id: int | str, method: str | None, response: Response) -> None:
        """Take the response to a request for what the core has to know."""
        head, body = response
        if head.status >= 400:
            refusal = _refusal(response, request_id)
            if refusal.answer is not None and refusal.is_answer:
                self._arrived.append(Incoming(refusal.answer))
                return
            error = self._refused(head, refusal)
            understood = isinstance(error, AuthError) or refusal.retry_after is not None
            self._arrived.append(Incoming(b"", problem=Unanswered(request_id, error, not understood)))
        elif head.media_type == EVENTS and any(is_answer(data, request_id) for data in event_data(body)):
            self._arrived += map(Incoming, event_data(body))
        elif head.media_type == JSON and (answer := own_answer(body, request_id)) is not None:
            self._arrived.append(Incoming(answer))
        else:
            what = f"{self._shown()} replied to {method} with status {head.status} and no answer: {body[:200]!r}"
            self._arrived.append(Incoming(b"", problem=Unanswered(request_id, RemoteProtocolError(what), True)))

    def _opened(self, head: Head) -> None:
        """Take note of the session. Only the answer to ``initialize`` says what it is."""
        for message in self._arrived:
            if message.data and (version := negotiated_version(message.data)) is not None:
                self._version, self._session = version, head.session
        if self._session is not None:
            self._ids.append(self._session)

    def _refused(self, head: Head, refusal: Refusal) -> TransportError:
        said = f": {refusal.text}" if refusal.text else ""
        hint = "; it may speak the HTTP+SSE of 2024-11-05, which is not measured" if refusal.may_be_older else ""
        kind = AuthError if head.status in (401, 403) else TransportError
        return kind(f"{self._shown()} refused with status {head.status}{said}{hint}", status=head.status)

    # -- a load ------------------------------------------------------------------------------------------------------

    def frame(self, message: Outgoing) -> bytes:
        mirrored = message.headers
        fields = (
            self._session_fields() if mirrored is None else [f"{name}: {value}" for name, value in mirrored.items()]
        )
        return framed(message.data, fields)

    def frame_answer(self, answer: bytes) -> bytes:
        return framed(answer, self._session_fields())

    def withdraw(self, number: int) -> bytes | None:
        """The connection is closed, which says it to modern servers; legacy servers go on in vain."""
        return None

    def prepare(self, window: int, open_session: Callable[[], object]) -> None:
        each = self._sessions == "connection" and self._session is not None
        for index in range(window):
            connection = self._connect()
            self._connections.append(connection)
            if each and index:
                self._speaker = connection
                open_session()
            connection.head = self._head("POST", self._session)

    def exchange(self, load: Load, tally: Tally) -> None:
        answering = self._own if load.refuse is not None else None
        exchange(self._connections[: load.window], load, tally, answering)

    def usage(self) -> Usage | None:
        """Of the processes that listen at the address, if it is one of this machine, and all that they have started."""
        return usage(family(self._listeners)) if self._listeners else None

    # -- what requests begin with ------------------------------------------------------------------------------------

    def _head(self, method: str, session: str | None) -> bytes:
        path = (self._url.path or "/") + (f"?{self._url.query}" if self._url.query else "")
        head = HEAD.format(method=method, path=path, host=self._url.netloc) + self._fields
        if session is not None:
            head += f"Mcp-Session-Id: {session}\r\n"
        return head.encode("latin-1")

    def _session_fields(self) -> list[str]:
        return [] if self._version is None else [f"MCP-Protocol-Version: {self._version}"]

    # -- the address -------------------------------------------------------------------------------------------------

    @property
    def _host(self) -> str:
        assert self._url.hostname is not None
        return self._url.hostname

    @property
    def _port(self) -> int:
        return self._url.port or PORTS[self._url.scheme]

    def _shown(self) -> str:
        return f"{self._url.scheme}://{self._url.netloc}{self._url.path}"

    def _connect(self) -> Connection:
        try:
            return Connection(self._port, self._timeout, self._host, self._tls)
        except OSError as error:
            raise TransportError(f"{self._shown()} cannot be reached: {error}") from error

    def _find(self) -> list[int]:
        """Return the processes that listen at the address; none if that is not here, or this process is one of them."""
        address = self._own.socket.getpeername()[0]
        if not ipaddress.ip_address(address).is_loopback:
            return []
        found = listeners(self._port)
        return [] if os.getpid() in found else found


def _refusal(response: Response, request_id: int | str | None) -> Refusal:
    return read_refusal(response.head.status, response.head.media_type, response.body, request_id)


def _split(url: str) -> SplitResult:
    parts = urlsplit(url)
    if parts.scheme not in PORTS or not parts.hostname:
        raise ValueError(f"{url!r} is no URL of a server; write http://HOST:PORT/PATH, or the same with https")
    if parts.username is not None:
        raise ValueError("a user name in the URL is not sent; give a header field: Authorization: …")
    with contextlib.suppress(ValueError):
        if parts.port != 0 and not any(character <= " " or character > "~" for character in url):
            return parts
    raise ValueError(f"{url!r} has a port or a character that no URL has")


def _checked(headers: Mapping[str, str]) -> Mapping[str, str]:
    for name, value in headers.items():
        if not name.isascii() or not name or any(character in name for character in " \t\r\n:"):
            raise ValueError(f"{name!r} is no name of a header field")
        if any(character < " " or character > "~" for character in value):
            raise ValueError(f"the value of header field {name} has characters that cannot be sent")
        if name.lower() in OURS or name.lower().startswith("mcp-"):
            raise ValueError(f"header field {name} is set by the measurement itself")
    return headers
