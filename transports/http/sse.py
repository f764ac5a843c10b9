"""The HTTP+SSE transport of 2024-11-05, for old peers: one stream down, POSTs up.

2024-11-05, basic/transports, "HTTP with SSE". A GET opens the stream, whose first event tells where to POST; every answer
comes down the stream. It speaks the handshake era only and is deprecated by the protocol.
"""

import secrets
from collections.abc import Awaitable, Callable, Hashable
from contextlib import AbstractAsyncContextManager
from typing import Final

import anyio
import msgspec

from mcpcore.abc import Channel, ChannelInfo
from mcpcore.auth.resource import ResourceServer
from mcpcore.limits import Limits
from mcpcore.protocol.framing import encode_comment, encode_event
from mcpcore.protocol.messages import Incoming, Outgoing, RequestScope
from mcpcore.transports.http.application import Application, Exchange
from mcpcore.transports.http.bearer import Bearer
from mcpcore.transports.http.guard import Guard
from mcpcore.transports.http.headers import accepts
from mcpcore.transports.http.requests import (
    Receive,
    Refusal,
    Scope,
    below_mount,
    peer,
    read_body,
)
from mcpcore.transports.http.stream import SSE_HEADERS, Send, respond

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
        self._is_gone = False
        self._is_closed = False

    def put(self, message: Incoming) -> bool:
        """Take a message that was POSTed; False when too many wait already."""
        if len(self._waiting) >= _MOST_WAITING:
            return False
        self._waiting.append(message)
        self._wake.set()
        return True

    async def receive(self) -> list[Incoming]:
        """See `Channel.receive`."""
        while not self._waiting:
            if self._is_closed:
                raise anyio.ClosedResourceError
            if self._is_gone:
                raise anyio.BrokenResourceError
            await self._wake.wait()
            self._wake = anyio.Event()
        messages, self._waiting = self._waiting, []
        return messages

    async def send(self, messages: list[Outgoing]) -> None:
        """See `Channel.send`."""
        if self._is_gone or self._is_closed:
            raise anyio.BrokenResourceError
        body = b"".join(encode_event(message.data, event="message") for message in messages if message.data)
        await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def aclose(self) -> None:
        """End the stream."""
        if self._is_closed:
            return
        self._is_closed = True
        self._wake.set()
        if not self._is_gone:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def begin(self, endpoint: str) -> None:
        """Send the head and tell the client where to POST."""
        await self._send({"type": "http.response.start", "status": 200, "headers": SSE_HEADERS})
        body = encode_event(endpoint.encode(), event="endpoint")
        await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def watch(self) -> None:
        """Notice when the client goes, and keep a silent stream alive."""
        while not self._is_closed:
            with anyio.move_on_after(self._silence) as quiet:
                while (await self._receive())["type"] != "http.disconnect":
                    pass
            if not quiet.cancelled_caught:
                self._is_gone = True
                self._wake.set()
                return
            await self._send({"type": "http.response.body", "body": encode_comment(), "more_body": True})


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
    ) -> None:
        super().__init__(running, guard, None if auth is None else Bearer(auth, "/" + path.strip("/")), limits)
        self._handler = handler
        self._path = "/" + path.strip("/")
        self._messages = "/" + messages.strip("/")
        self._clients: dict[str, SSEChannel] = {}

    async def _close(self) -> None:
        for client in list(self._clients.values()):
            await client.aclose()

    def _is_mine(self, scope: Scope) -> bool:
        return below_mount(scope)[1] in (self._path, self._messages)

    async def _serve(self, exchange: Exchange) -> None:
        root, below = below_mount(exchange.scope)
        wanted = "GET" if below == self._path else "POST"
        if exchange.scope["method"] != wanted:
            raise Refusal(405, f"use {wanted} here", headers=[(b"allow", wanted.encode())])
        if below == self._path:
            await self._open(exchange, root)
        else:
            await self._take(exchange)

    async def _open(self, exchange: Exchange, root: str) -> None:
        if not accepts(exchange.headers.get("accept"))[1]:
            raise Refusal(406, "Accept must name text/event-stream")
        if len(self._clients) >= self._limits.sessions:
            raise Refusal(503, "too many clients; try again later", headers=[(b"retry-after", b"60")])
        client = SSEChannel(exchange.send, exchange.receive, exchange.principal, self._limits.stream_after)
        self._clients[client.id] = client
        try:
            await client.begin(f"{root}{self._messages}/?session_id={client.id}")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.watch)
                await self._handler(client)
                tasks.cancel_scope.cancel()
        finally:
            del self._clients[client.id]
            await client.aclose()

    async def _take(self, exchange: Exchange) -> None:
        client = self._clients.get(_session_id(exchange.scope))
        if client is None or client.principal != exchange.principal:
            raise Refusal(404, "the stream of this session_id is not open; GET the stream first")
        body = await read_body(exchange.headers, exchange.receive, self._limits.message_size)
        try:
            msgspec.json.decode(body)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            raise Refusal(400, "the body is not JSON") from None
        scope = RequestScope("sse", exchange.headers, peer(exchange.scope), exchange.principal, client.id)
        if not client.put(Incoming(body, scope=scope)):
            raise Refusal(503, "too many messages wait; try again", headers=[(b"retry-after", b"1")])
        await respond(exchange.send, 202, b"Accepted", exchange.extra)


def _session_id(scope: Scope) -> str:
    query: bytes = scope.get("query_string", b"")
    for pair in query.decode("latin-1").split("&"):
        name, _, value = pair.partition("=")
        if name == "session_id":
            return value
    raise Refusal(400, "session_id is missing; POST to the address that the stream's endpoint event named")
