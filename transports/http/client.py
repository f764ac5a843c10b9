"""The client's end of Streamable HTTP, in both eras, and of the HTTP+SSE that came before it.

Each message is a POST in a task of its own, so no call waits for another, and the loss of one is the loss of no other.
What a server of an earlier revision needs beside that, a session and a stream for what comes by itself, is in
`ClientSession`; one that is older still is known by what it answers to ``initialize``, and `SSEBinding` knows how to talk to it.
"""

import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup
from msgspec import Struct

from mcpcore.abc import Channel, ChannelInfo
from mcpcore.exceptions import (
    AuthError,
    ConnectionLost,
    MCPCoreError,
    RemoteProtocolError,
    SessionExpired,
    TransportError,
)
from mcpcore.protocol.framing import MAX_MESSAGE_SIZE
from mcpcore.protocol.messages import Incoming, Kind, Outgoing, Unanswered
from mcpcore.transports._inbox import Inbox
from mcpcore.transports._running import running
from mcpcore.transports.http._family import create_client, family_of, preferred_family
from mcpcore.transports.http.client_session import ClientSession
from mcpcore.transports.http.endpoint import Endpoint, parse_url
from mcpcore.transports.http.event_stream import incoming
from mcpcore.transports.http.post import Poster
from mcpcore.transports.http.replies import Refusal
from mcpcore.transports.http.sse_binding import SSEBinding
from mcpcore.types.jsonrpc import RequestId

__all__ = ["HTTPClientChannel", "HTTPClientTransport", "SSEClientTransport"]

logger = logging.getLogger("mcpcore.transports.http")

_LAST_WORDS: Final = 0.5  # seconds for notifications that are under way when the channel is closed


class HTTPClientTransport:
    """Connects to the MCP endpoint of a server.

    A server that speaks HTTP+SSE only, as those of 2024-11-05 do, is recognised and spoken to in its way.

    Args:
        url: The endpoint.
        http_client: An ``AsyncClient`` of httpx or httpx2 to send with: its headers, its authentication, its certificates
            and proxies. It is not closed. Redirects are followed to the same origin only, and no timeout applies to an
            answer, whatever it says itself. With HTTP/2, cancelling a call reaches the server when the connection ends.
        max_message_size: Bytes of one message received.

    Raises:
        ValueError: ``url`` is no http or https URL.
        TypeError: ``http_client`` is something else.
        ModuleNotFoundError: Neither httpx2 nor httpx is installed.
    """

    def __init__(self, url: str, *, http_client: Any = None, max_message_size: int = MAX_MESSAGE_SIZE) -> None:
        # What is wrong with the arguments is said now, and what is slow to import is imported now.
        parse_url(preferred_family() if http_client is None else family_of(http_client), url)
        self._url = url
        self._http_client = http_client
        self._max_message_size = max_message_size

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Channel]:
        """Make the channel. Nothing is sent before the first message."""
        async with self._channel() as channel:
            yield channel

    @asynccontextmanager
    async def _channel(self) -> AsyncGenerator["HTTPClientChannel"]:
        client = create_client() if self._http_client is None else self._http_client
        try:
            async with running(HTTPClientChannel(Endpoint(client, self._url), self._max_message_size)) as channel:
                yield channel
        finally:
            if self._http_client is None:
                with anyio.CancelScope(shield=True):
                    await client.aclose()


class SSEClientTransport(HTTPClientTransport):
    """Connects to a server of which is known that it speaks HTTP+SSE: ``url`` is where its stream is.

    `HTTPClientTransport` finds that out by itself, at the price of two requests.
    """

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Channel]:
        """Make the channel and open the stream.

        Raises:
            TransportError: The server cannot be reached, or is no such server.
        """
        async with self._channel() as channel:
            await channel.use_sse()
            yield channel


class _Post(Struct):
    """A request that has not been answered: what cancels its POST."""

    is_modern: bool
    scope: anyio.CancelScope


class HTTPClientChannel:
    """The channel to one endpoint. Made by `HTTPClientTransport.open`.

    A call that gets no answer is reported as `Unanswered`. ``failure`` is None unless the channel is of no use any more,
    which happens with HTTP+SSE only.
    """

    info = ChannelInfo("http", mirrors=True)

    def __init__(self, endpoint: Endpoint, max_message_size: int) -> None:
        self._endpoint = endpoint
        self._max_message_size = max_message_size
        self._inbox = Inbox()
        self._poster = Poster(endpoint, self._inbox.put, max_message_size)
        self._posts: dict[RequestId, _Post] = {}
        self._telling = 0
        self._told = anyio.Event()
        self._closing = anyio.Event()
        self._ended = anyio.Event()
        self._sse: SSEBinding | None = None
        self._tasks: TaskGroup
        self._session: ClientSession

    @property
    def failure(self) -> MCPCoreError | None:
        """Why the channel broke."""
        return self._inbox.failure

    # -- life ----------------------------------------------------------------------------------------------------

    async def run(self, *, task_status: Any = anyio.TASK_STATUS_IGNORED) -> None:
        """Look after everything that is under way until `aclose` is called, then end it."""
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as self._tasks:
                self._session = ClientSession(self._poster, self._tasks)
                task_status.started()
                await self._closing.wait()
                with anyio.move_on_after(_LAST_WORDS):
                    while self._telling:
                        await self._told.wait()
                self._tasks.cancel_scope.cancel()
            await self._session.end()
        self._ended.set()

    async def aclose(self) -> None:
        """See `Channel.aclose`. A legacy session is ended, in bounded time."""
        self._inbox.close()
        self._closing.set()
        await self._ended.wait()

    async def use_sse(self) -> None:
        """Speak HTTP+SSE from here on.

        Raises:
            TransportError: The server does not.
        """
        binding = SSEBinding(self._endpoint, self._inbox, self._max_message_size)
        await self._tasks.start(binding.run)
        self._sse = binding

    async def receive(self) -> list[Incoming]:
        """See `Channel.receive`."""
        return await self._inbox.receive()

    async def send(self, messages: list[Outgoing]) -> None:
        """See `Channel.send`. Waits for nothing: each message travels by itself."""
        self._inbox.check(drained=True)
        for message in messages:
            if message.data and not self._withdraw(message):
                self._start(message)

    def _withdraw(self, message: Outgoing) -> bool:
        """Cancel a request by closing its stream, and tell whether nothing else is to be done.

        "no `notifications/cancelled` message is expected" (2026-07-28, basic/transports/streamable-http, "Cancellation").
        """
        if message.cancels is None or self._sse is not None or self._session.version is not None:
            return False
        post = self._posts.get(message.cancels)
        if post is not None:
            post.scope.cancel()
        return True

    def _start(self, message: Outgoing) -> None:
        if message.kind is Kind.REQUEST and message.request_id is not None:
            post = self._posts[message.request_id] = _Post(message.headers is not None, anyio.CancelScope())
            self._tasks.start_soon(self._ask, message, message.request_id, post)
            return
        if message.method == "notifications/initialized":
            self._session.expect_initialized()
        self._telling += 1
        self._tasks.start_soon(self._tell, message)

    # -- requests ------------------------------------------------------------------------------------------------

    async def _ask(self, message: Outgoing, request_id: RequestId, post: _Post) -> None:
        """Carry a request through to its answer, or to the reason why there is none."""
        error: MCPCoreError
        try:
            with post.scope:
                await self._request(message)
            return
        except MCPCoreError as raised:
            error = raised
        except Exception as raised:
            logger.exception("%s could not be sent", message.method)
            error = TransportError(f"{message.method} could not be sent: {raised!r}")
            error.__cause__ = raised
        finally:
            del self._posts[request_id]
        not_understood = isinstance(error, RemoteProtocolError | ConnectionLost) or (
            isinstance(error, TransportError)
            and error.status is not None
            and error.retry_after is None
            and not isinstance(error, AuthError)
        )
        await self._inbox.put(Incoming(b"", problem=Unanswered(request_id, error, not_understood)))

    async def _request(self, message: Outgoing) -> None:
        if self._sse is not None:
            await self._sse.post(message)
        elif message.headers is not None:
            await self._refused(await self._poster.request(message, message.headers, self._take))
        elif message.method == "initialize":
            await self._initialize(message)
        else:
            await self._request_in_session(message)

    async def _initialize(self, message: Outgoing) -> None:
        for post in self._posts.values():
            if post.is_modern:
                post.scope.cancel()  # a probe that has been given up

        async def take(answer: bytes, headers: Mapping[str, str]) -> None:
            self._session.opened(message, answer, headers)
            await self._take(answer, headers)

        refusal = await self._poster.request(message, {}, take)
        if refusal is not None and refusal.may_be_older:
            try:
                await self.use_sse()
            except TransportError as error:
                logger.debug("%s", error)
        if self._sse is not None:
            await self._sse.post(message)
        else:
            await self._refused(refusal)

    async def _request_in_session(self, message: Outgoing) -> None:
        session = self._session
        await session.ready()
        used = session.id
        refusal = await self._poster.request(message, session.headers, self._take, can_resume=True)
        if refusal is None or used is None or not refusal.forgets_session:
            await self._refused(refusal)
            return
        expired = SessionExpired(
            f"{self._endpoint} has lost the session; {message.method} was not repeated in a new one",
            status=refusal.status,
        )
        try:
            await session.renew(used)
        except MCPCoreError as error:
            raise expired from error
        raise expired

    async def _take(self, answer: bytes, headers: Mapping[str, str]) -> None:
        await self._inbox.put(incoming(answer))

    async def _refused(self, refusal: Refusal | None) -> None:
        """Take a refusal for the answer, if it holds one."""
        if refusal is None:
            return
        if refusal.answer is None or not refusal.is_answer:
            raise self._poster.error(refusal)
        await self._inbox.put(incoming(refusal.answer))

    # -- notifications, and answers of ours ----------------------------------------------------------------------

    async def _tell(self, message: Outgoing) -> None:
        """Send a message that has no answer. Nobody can be told that it did not arrive."""
        what = message.method or "an answer"
        try:
            await self._notify(message)
        except MCPCoreError as error:
            logger.warning("%s did not arrive: %s", what, error)
        except Exception:
            logger.exception("%s could not be sent", what)
        finally:
            self._telling -= 1
            self._told.set()
            self._told = anyio.Event()
            post = self._posts.get(message.cancels) if message.cancels is not None else None
            if post is not None:
                post.scope.cancel()  # there will be no answer, and some servers leave the stream open all the same

    async def _notify(self, message: Outgoing) -> None:
        if self._sse is not None:
            await self._sse.post(message)
            return
        session = self._session
        if message.method == "notifications/initialized":
            await session.initialized(message)
            return
        await session.ready()
        used = session.id
        refusal = await self._poster.tell(message, session.headers)
        if refusal is None:
            return
        if used is None or not refusal.forgets_session:
            raise self._poster.error(refusal)
        await session.renew(used)
