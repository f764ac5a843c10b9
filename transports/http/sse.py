"""The HTTP+SSE transport of 2024-11-05, for old peers: one stream down, POSTs up.

2024-11-05, basic/transports, "HTTP with SSE". A GET opens the stream, whose first event tells where to POST; every answer
comes down the stream. It speaks the handshake era only and is deprecated by the protocol.
"""

import secrets
from collections.abc import Awaitable, Callable, Hashable
from contextlib import AbstractAsyncContextManager
from typing import Final
from urllib.parse import quote

import anyio
import anyio.lowlevel
import msgspec

from mcpcore.abc import Channel, ChannelInfo
from mcpcore.auth.resource import ResourceServer
from mcpcore.limits import Limits
from mcpcore.protocol.framing import encode_comment, encode_event
from mcpcore.protocol.messages import Incoming, Outgoing, RequestScope
from mcpcore.transports.http.application import Application, HTTPRequest
from mcpcore.transports.http.bearer import Bearer
from mcpcore.transports.http.guard import Guard
from mcpcore.transports.http.headers import accepts
from mcpcore.transports.http.requests import Refusal, Scope, below_mount, peer, read_body
from mcpcore.transports.http.response import SSE_HEADERS, Receive, Send, respond, retry_after
from mcpcore.transports.http.routes import Routes

__all__ = ["SSEApp", "SSEChannel"]

_MOST_WAITING: Final = 1024  # messages that were POSTed and not read yet; more are told to come later


class SSEChannel:
    """One client: what it POSTs comes in, what goes out is an event of its stream.

    Args:
        send: The ASGI application's, of the GET.
        receive: The ASGI application's, of the GET.
        principal: Who opened the stream.
        silence: Seconds of silence after which a comment keeps the stream alive.
    """

    info = ChannelInfo("sse", handshake_only=True)

    def __init__(self, send: Send, receive: Receive, principal: Hashable, silence: float) -> None:
        self.id = secrets.token_urlsafe(24)
        self.principal = principal
        self._send = send
        self._receive = receive
        self._silence = silence
        self._waiting: list[Incoming] = []
        self._wake = anyio.Event()
        self._end: type[Exception] | None = None
        """Why nothing more will come, once that is so."""

    def put(self, message: Incoming) -> bool:
        """Take a message that was POSTed; False when too many wait already."""
        if len(self._waiting) >= _MOST_WAITING:
            return False
        self._waiting.append(message)
        self._wake.set()
        return True

    async def receive(self) -> list[Incoming]:
        """See `Channel.receive`."""
        while not self._waiting or self._end is anyio.ClosedResourceError:
            if self._end is not None:
                raise self._end
            await self._wake.wait()
            self._wake = anyio.Event()
        messages, self._waiting = self._waiting, []
        return messages

    async def send(self, messages: list[Outgoing]) -> None:
        """See `Channel.send`."""
        if self._end in (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise self._end
        body = b"".join(encode_event(message.data, event="message") for message in messages if message.data)
        if body:
            await self._write(body)

    async def aclose(self) -> None:
        """End the stream."""
        if self._end is anyio.ClosedResourceError:
            return
        is_gone = self._end is anyio.BrokenResourceError
        self._ends(anyio.ClosedResourceError)
        if not is_gone:
            await self._write(b"", more=False)

    def stop(self) -> None:
        """The server stops: nothing more is taken, and what is open gets its time to be finished."""
        if self._end is None:
            self._ends(anyio.EndOfStream)

    def abandon(self) -> None:
        """That time is over."""
        if self._end is not anyio.ClosedResourceError:
            self._ends(anyio.BrokenResourceError)

    def _ends(self, how: type[Exception]) -> None:
        self._end = how
        self._wake.set()

    async def _write(self, body: bytes, *, more: bool = True) -> None:
        try:
            await self._send({"type": "http.response.body", "body": body, "more_body": more})
        except OSError:  # what servers raise when the client has gone (ASGI, HTTP, "Disconnected Client")
            self.abandon()

    async def begin(self, endpoint: str) -> None:
        """Send the head and tell the client where to POST."""
        await self._send({"type": "http.response.start", "status": 200, "headers": SSE_HEADERS})
        await self._write(encode_event(endpoint.encode(), event="endpoint"))

    async def watch(self) -> None:
        """Notice when the client goes, and keep a silent stream alive."""
        while self._end in (None, anyio.EndOfStream):
            with anyio.move_on_after(self._silence) as quiet:
                while (await self._receive())["type"] != "http.disconnect":
                    await anyio.lowlevel.checkpoint()  # some servers repeat the end of the body, again and again
            if not quiet.cancelled_caught:
                self.abandon()
                return
            await self._write(encode_comment())


class SSEApp(Application):
    """An ASGI application that serves MCP over HTTP+SSE.

    Args:
        handler: Serves a channel; called once for each client.
        running: Entered before the first request, left when the host's lifespan ends.
        path: Where the stream is, below the place where the application is mounted.
        messages: Where messages are POSTed, likewise.
        guard: Judges Host and Origin.
        auth: What protects the endpoint; None lets anybody call.
        limits: See `Limits`.
        routes: Paths beside these.
        health: Serve ``/livez`` and ``/readyz``.
    """

    def __init__(
        self,
        handler: Callable[[Channel], Awaitable[None]],
        running: Callable[[], AbstractAsyncContextManager[None]],
        *,
        path: str = "/sse",
        messages: str = "/messages/",
        guard: Guard | None = None,
        auth: ResourceServer | None = None,
        limits: Limits | None = None,
        routes: Routes | None = None,
        health: bool = False,
    ) -> None:
        bearer = None if auth is None else Bearer(auth, "/" + path.strip("/"))
        super().__init__(running, guard, bearer, limits, routes, health)
        self._handler = handler
        self._path = "/" + path.strip("/")
        self._messages = "/" + messages.strip("/")
        self._clients: dict[str, SSEChannel] = {}

    async def _close(self) -> None:
        return

    def _is_mine(self, scope: Scope) -> bool:
        return below_mount(scope)[1] in (self._path, self._messages)

    async def _serve(self, request: HTTPRequest) -> None:
        root, below = below_mount(request.scope)
        wanted = "GET" if below == self._path else "POST"
        if request.scope["method"] != wanted:
            raise Refusal(405, f"use {wanted} here", headers=[(b"allow", wanted.encode())])
        if below == self._path:
            await self._stream_to(request, root)
        else:
            await self._take(request)

    async def _stream_to(self, request: HTTPRequest, root: str) -> None:
        if not accepts(request.headers.get("accept"))[1]:
            raise Refusal(406, "Accept must name text/event-stream")
        if len(self._clients) >= self._limits.sessions:
            raise Refusal(503, "too many clients; try again later", headers=[retry_after(60)])
        client = SSEChannel(request.send, request.receive, request.principal, self._limits.stream_after)
        self._clients[client.id] = client
        self._unfinished.add(client)
        try:
            await client.begin(f"{quote(root)}{self._messages}/?session_id={client.id}")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.watch)
                await self._handler(client)
                tasks.cancel_scope.cancel()
        finally:
            del self._clients[client.id]
            self._finished(client)
            await client.aclose()

    async def _take(self, request: HTTPRequest) -> None:
        client = self._clients.get(_session_id(request.scope))
        if client is None or client.principal != request.principal:
            raise Refusal(404, "the stream of this session_id is not open; GET the stream first")
        body = await read_body(request.headers, request.receive, self._limits.message_size)
        try:
            msgspec.json.decode(body)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            raise Refusal(400, "the body is not JSON") from None
        scope = RequestScope("sse", request.headers, peer(request.scope), request.principal, client.id)
        if not client.put(Incoming(body, scope=scope)):
            raise Refusal(503, "too many messages wait; try again", headers=[retry_after(1)])
        await respond(request.send, 202, b"Accepted", request.extra)


def _session_id(scope: Scope) -> str:
    query: bytes = scope.get("query_string", b"")
    for pair in query.decode("latin-1").split("&"):
        name, _, value = pair.partition("=")
        if name == "session_id":
            return value
    raise Refusal(400, "session_id is missing; POST to the address that the stream's endpoint event named")
