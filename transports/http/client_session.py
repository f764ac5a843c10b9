"""The client's side of a legacy session: its id, its stream for what comes by itself, its loss and its end.

2025-11-25, basic/transports, "Session Management" and "Listening for Messages from the Server". Servers without sessions
and without that stream are legal, and common.
"""

import logging
from collections.abc import Mapping
from typing import Final

import anyio
from anyio.abc import TaskGroup

from mcpcore.exceptions import SessionExpired, TransportError
from mcpcore.protocol.messages import Outgoing
from mcpcore.transports.http.event_stream import is_event_stream
from mcpcore.transports.http.post import Poster
from mcpcore.transports.http.replies import negotiated_version

__all__ = ["ClientSession"]

logger = logging.getLogger("mcpcore.transports.http")

_ACCEPTANCE: Final = 1.0  # seconds that requests wait for the server to take ``notifications/initialized``
_STREAM: Final = 2.0  # seconds that requests wait for the stream; some servers send no head before the first event
_END: Final = 1.0  # seconds for DELETE


class ClientSession:
    """A session, from ``initialize`` on; or two or more, when the server forgets them.

    Args:
        poster: Sends.
        tasks: Where the stream is read.
    """

    def __init__(self, poster: Poster, tasks: TaskGroup) -> None:
        self._poster = poster
        self._tasks = tasks
        self.id: str | None = None
        self.version: str | None = None
        self._opening: Outgoing | None = None
        self._initialized: Outgoing | None = None
        self._accepted = _set_event()
        self._listening = _set_event()
        self._stream_scope = anyio.CancelScope()
        self._renewing = anyio.Lock()

    @property
    def headers(self) -> dict[str, str]:
        """What every request after ``initialize`` carries."""
        fields = {"mcp-protocol-version": self.version, "mcp-session-id": self.id}
        return {name: value for name, value in fields.items() if value is not None}

    def opened(self, opening: Outgoing, answer: bytes, headers: Mapping[str, str]) -> None:
        """Take note of the answer to ``initialize``. Only here is the session's id read."""
        version = negotiated_version(answer)
        if version is None:
            return
        id = headers.get("mcp-session-id")
        if id is not None and not all("!" <= character <= "~" for character in id):
            logger.warning("the session's id has characters that no id may have; it is not used")
            id = None
        self.id, self.version, self._opening = id, version, opening

    def expect_initialized(self) -> None:
        """``notifications/initialized`` is about to be sent; requests have to wait for it."""
        self._accepted, self._listening = anyio.Event(), anyio.Event()

    async def initialized(self, message: Outgoing) -> None:
        """Send ``notifications/initialized``, and open the stream when the server has taken it."""
        self._initialized = message
        accepted, listening = self._accepted, self._listening
        try:
            refusal = await self._poster.tell(message, self.headers)
            if refusal is None:
                self._stream_scope = scope = anyio.CancelScope()
                self._tasks.start_soon(self._listen, scope, listening)
            else:
                logger.warning("%s", self._poster.error(refusal))
                listening.set()
        except BaseException:
            listening.set()
            raise
        finally:
            accepted.set()

    async def ready(self) -> None:
        """Wait until the session is open, and its stream, if there is one; but not long, and only once.

        While another session is being opened, what is sent in this one would be lost.
        """
        if self._renewing.locked():
            async with self._renewing:
                pass
        for event, patience in ((self._accepted, _ACCEPTANCE), (self._listening, _STREAM)):
            if not event.is_set():
                with anyio.move_on_after(patience) as waiting:
                    await event.wait()
                if waiting.cancelled_caught:
                    self._accepted.set()
                    self._listening.set()
                    return

    async def _listen(self, scope: anyio.CancelScope, listening: anyio.Event) -> None:
        """Read the stream. One attempt decides whether there is one; a stream that breaks is asked for again."""
        stream = self._poster.stream()
        with scope:
            try:
                while True:
                    try:
                        async with self._poster.get(self.headers, stream.place) as response:
                            if not is_event_stream(response):
                                logger.debug("no stream: GET was answered with %d", response.status_code)
                                return
                            listening.set()
                            await stream.read(response)
                    except TransportError as error:
                        logger.debug("the stream ended: %s", error)
                        if error.status is not None or not listening.is_set():
                            return
                    if not await stream.pause():
                        return
            finally:
                listening.set()

    async def renew(self, lost: str | None) -> None:
        """Open a new session in place of the one called ``lost``, unless that has been done.

        "it MUST start a new session by sending a new InitializeRequest without a session ID attached".

        Raises:
            TransportError: The server cannot be reached, or lets nobody in.
            RemoteProtocolError: Its answer is none.
        """
        async with self._renewing:
            if self.id != lost or self._opening is None or self._initialized is None:
                return
            old, version = self.id, self.version
            self._stream_scope.cancel()

            async def take(answer: bytes, headers: Mapping[str, str]) -> None:
                if negotiated_version(answer) == version and self._opening is not None:
                    self.opened(self._opening, answer, headers)

            refusal = await self._poster.request(self._opening, {}, take)
            if refusal is not None:
                raise self._poster.error(refusal)
            if self.id == old:
                raise SessionExpired(f"{self._poster.endpoint} has lost the session and opens no other like it")
            self.expect_initialized()
            await self.initialized(self._initialized)

    async def end(self) -> None:
        """Tell the server that the session is not needed any more. It need not like that."""
        if self.id is None:
            return
        try:
            with anyio.move_on_after(_END):
                async with self._poster.endpoint.request("DELETE", self.headers) as response:
                    logger.debug("the session was ended: %d", response.status_code)
        except TransportError as error:
            logger.debug("the session cannot be ended: %s", error)


def _set_event() -> anyio.Event:
    event = anyio.Event()
    event.set()
    return event
