"""What an ASGI application of ours is, whatever it serves: started lazily or by its host, closed once, guarded."""

import logging
from collections.abc import Callable, Hashable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Final

import anyio

from mcpcore.limits import Limits
from mcpcore.transports.http.bearer import Bearer
from mcpcore.transports.http.guard import Guard
from mcpcore.transports.http.headers import Headers, read_headers
from mcpcore.transports.http.requests import Receive, Refusal, Scope, refuse
from mcpcore.transports.http.stream import Send, respond

__all__ = ["Application", "Exchange"]

logger: Final = logging.getLogger("mcpcore.transports.http")


class Exchange:
    """One request and the way to answer it."""

    __slots__ = ("extra", "headers", "principal", "receive", "scope", "send")

    def __init__(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.headers = headers
        self.receive = receive
        self.send = send
        self.extra: list[tuple[bytes, bytes]] = []
        self.principal: Hashable = None


class Application:
    """Base of the HTTP applications.

    Args:
        running: Entered before the first request, left when the host's lifespan ends.
        guard: Judges Host and Origin.
        bearer: Finds out who calls by bearer tokens; None lets anybody.
        limits: See `Limits`.
    """

    def __init__(
        self,
        running: Callable[[], AbstractAsyncContextManager[None]],
        guard: Guard | None,
        bearer: Bearer | None,
        limits: Limits | None,
    ) -> None:
        self._running = running
        self._guard = guard or Guard()
        self._bearer = bearer
        self._limits = limits or Limits()
        self._stack = AsyncExitStack()
        self._starting: anyio.Event | None = None
        self._started = False

    async def _serve(self, exchange: Exchange) -> None:
        """Serve one request that has been let in. Raises `Refusal`."""
        raise NotImplementedError

    def _is_mine(self, scope: Scope) -> bool:
        """Tell whether there is anything at the path."""
        raise NotImplementedError

    async def _close(self) -> None:
        """End what is open."""
        raise NotImplementedError

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI interface."""
        if scope["type"] == "http":
            await self._answer(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        else:
            raise RuntimeError(f"this application serves HTTP, not {scope['type']}")

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Judge a request in the order of the specification: where from, who, and only then what."""
        exchange = Exchange(scope, read_headers(scope["headers"]), receive, send)
        guard = self._guard
        if guard.cors:
            exchange.extra = guard.cors_headers(exchange.headers)
        bearer = self._bearer
        try:
            if bearer is not None and bearer.serves(scope):
                await self._metadata(bearer, exchange)
                return
            if not self._is_mine(scope):
                raise Refusal(404, "there is nothing here")
            refusal = guard.refusal(exchange.headers)
            if refusal is not None:
                logger.warning("refused a request: %s", refusal)
                raise Refusal(403, refusal)
            if guard.cors and scope["method"] == "OPTIONS":
                await respond(send, 204, headers=guard.cors_headers(exchange.headers, preflight=True))
                return
            if bearer is not None:
                exchange.principal = await bearer(exchange.headers, scope)
            if not self._started:
                await self.start()
            await self._serve(exchange)
        except Refusal as refused:
            await refuse(send, refused, exchange.extra)

    async def _metadata(self, bearer: Bearer, exchange: Exchange) -> None:
        """Anybody may read it, from any page: it says how to get a token."""
        if exchange.scope["method"] not in ("GET", "HEAD"):
            raise Refusal(405, "use GET here", headers=[(b"allow", b"GET")])
        fields = [(b"access-control-allow-origin", b"*"), (b"cache-control", b"public, max-age=3600")]
        await respond(exchange.send, 200, bearer.metadata, fields, json=True)

    async def start(self) -> None:
        """Enter the server's lifespan. The first request does it where the host has none."""
        if self._started:
            return
        if self._starting is not None:
            await self._starting.wait()
            return
        self._starting = anyio.Event()
        try:
            await self._stack.enter_async_context(self._running())
            self._started = True
        finally:
            self._starting.set()
            self._starting = None

    async def aclose(self) -> None:
        """End what is open, then leave the server's lifespan. Safe to call twice."""
        await self._close()
        self._started = False
        await self._stack.aclose()

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    await self.start()
                except Exception as error:
                    logger.exception("the server's lifespan failed to start")
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
                    return
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.aclose()
                await send({"type": "lifespan.shutdown.complete"})
                return
