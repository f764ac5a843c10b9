"""Opens a connection with the sans-IO core, without an event loop: the same negotiation that `Client` does.

What is prepared here is what a load repeats: one request, as the core would send it.
"""

import time
from collections.abc import Iterator
from typing import Any, Protocol

from msgspec import Raw
from msgspec.json import encode

from mcpcore import __version__
from mcpcore.exceptions import PeerError, RemoteProtocolError, RequestTimeout
from mcpcore.protocol.client import ClientConfig, ClientConnection
from mcpcore.protocol.events import (
    ErrorReceived,
    Event,
    InputRequired,
    NegotiationFailed,
    RequestLost,
    ResultReceived,
    ServerFacts,
    VersionNegotiated,
)
from mcpcore.protocol.messages import Incoming, Outgoing
from mcpcore.runtime.mirrors import learn_mirrors
from mcpcore.types._base import Object
from mcpcore.types.jsonrpc import RequestId
from mcpcore.types.lifecycle import Implementation
from mcpcore.types.tools import CallToolParams, Tool
from mcpcore.types.utilities import PaginatedParams

__all__ = ["Dialogue", "Wire"]

MOST_PAGES = 1000


class Wire(Protocol):
    """What carries single messages."""

    mirrors: bool
    """Requests carry header fields that say what their bodies say."""

    def post(self, message: Outgoing, seconds: float) -> None:
        """Send a message.

        Raises:
            BenchmarkError, TransportError: The server is gone, or takes nothing for so many seconds.
        """
        ...

    def collect(self, seconds: float) -> list[Incoming]:
        """Return what has come; wait for something, but not longer than so many seconds."""
        ...


class Dialogue:
    """A client's end of a connection.

    Args:
        wire: What carries its messages.
        versions: The revisions to speak.
        timeout: Seconds for each request.
    """

    def __init__(self, wire: Wire, versions: tuple[str, ...], timeout: float) -> None:
        self._wire = wire
        self._timeout = timeout
        self._connection = ClientConnection(
            ClientConfig(Implementation("mcpcore-bench", __version__), versions=versions)
        )
        if wire.mirrors:
            self._connection.header_maps = {}

    def open(self) -> ServerFacts:
        """Negotiate.

        Raises:
            PeerError: The server refuses.
            RemoteProtocolError: There is no revision in common.
            RequestTimeout: It does not answer.
            TransportError, BenchmarkError: It cannot be reached, or is gone.
        """
        connection = self._connection
        connection.negotiate()
        probe = connection.config.limits.probe
        for event in self._events(probe if connection.is_probing else None):
            if isinstance(event, VersionNegotiated):
                self._flush()
                return event.server
            if isinstance(event, NegotiationFailed):
                if event.cause is not None:
                    raise event.cause
                if event.error is not None:
                    raise PeerError(event.error.code, event.reason, event.error.data)
                raise RemoteProtocolError(event.reason)
        raise RequestTimeout(
            f"the server did not answer the opening of the connection within {self._timeout:g} seconds"
        )

    def list_tools(self) -> list[Tool]:
        """Return all tools, and learn what of their arguments is mirrored in header fields.

        Raises:
            See `open`.
        """
        if self._facts().capabilities.tools is None:
            return []
        tools: list[Tool] = []
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            page: Any = self._ask("tools/list", PaginatedParams(cursor)).result
            tools += page.tools
            cursor = page.next_cursor
            if cursor is None:
                break
        if self._wire.mirrors:
            tools, self._connection.header_maps = learn_mirrors(tools)
        return tools

    def call(self, name: str, arguments: dict[str, Any]) -> Outgoing:
        """Return a call as the core would send it, without sending it.

        Raises:
            ValueError: An argument has to be mirrored in a header field, and cannot be.
        """
        self._flush()
        self._connection.send_request("tools/call", CallToolParams(name, Raw(encode(arguments))))
        (message,) = self._connection.messages_to_send()
        return message

    def try_call(self, message: Outgoing) -> bytes | None:
        """Send a call and return its result as JSON; None if there is none, but an error, or a wish for input.

        Raises:
            RequestTimeout: There is no answer.
            TransportError, BenchmarkError: The server is gone.
        """
        self._wire.post(message, self._timeout)
        assert message.request_id is not None
        answer = self._answer(message.request_id, "tools/call")
        return bytes(answer.raw) if isinstance(answer, ResultReceived) else None

    def _ask(self, method: str, params: Object) -> ResultReceived:
        answer = self._answer(self._connection.send_request(method, params), method)
        if isinstance(answer, ErrorReceived):
            raise PeerError(answer.error.code, answer.error.message, answer.error.data)
        if isinstance(answer, RequestLost):
            raise answer.error
        assert isinstance(answer, ResultReceived)
        return answer

    def _answer(self, id: RequestId, method: str) -> ResultReceived | ErrorReceived | InputRequired | RequestLost:
        for event in self._events():
            if isinstance(event, ResultReceived | ErrorReceived | InputRequired | RequestLost) and event.id == id:
                return event
        raise RequestTimeout(f"the server did not answer {method} within {self._timeout:g} seconds")

    def _events(self, probe: float | None = None) -> Iterator[Event]:
        """Yield what the server says, until nothing has come for too long."""
        connection = self._connection
        deadline = time.monotonic() + self._timeout
        probe_until = None if probe is None else time.monotonic() + probe
        while True:
            self._flush(probing=probe_until is not None)
            now = time.monotonic()
            if probe_until is not None and now >= probe_until:
                probe_until = None
                yield from connection.probe_timed_out()
                continue
            if now >= deadline:
                return
            until = deadline if probe_until is None else min(deadline, probe_until)
            for message in self._wire.collect(until - now):
                yield from connection.receive(message)

    def _flush(self, *, probing: bool = False) -> None:
        for message in self._connection.messages_to_send():
            if message.data:
                self._wire.post(message, self._connection.config.limits.probe if probing else self._timeout)

    def _facts(self) -> ServerFacts:
        assert self._connection.server is not None, "open() comes first"
        return self._connection.server
