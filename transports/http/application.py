"""What an ASGI application of ours is, whatever it serves: started lazily or by its host, closed once, guarded."""

import logging
from collections.abc import AsyncGenerator, Callable, Hashable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Final, Protocol

import anyio

from mcpcore.limits import Limits
from mcpcore.transports.http.bearer import Bearer
from mcpcore.transports.http.guard import Guard
from mcpcore.transports.http.headers import Headers, read_headers
from mcpcore.transports.http.requests import Refusal, Scope, below_mount, refuse
from mcpcore.transports.http.response import Receive, Send, respond, retry_after
from mcpcore.transports.http.routes import Routes

__all__ = ["Application", "HTTPRequest"]

logger: Final = logging.getLogger("mcpcore.transports.http")

_HEALTH: Final = ("/livez", "/readyz")

_LINGER: Final = 0.5  # seconds for requests that were given up to notice


class HTTPRequest:
    """One request and the way to answer it."""

    __slots__ = ("extra", "headers", "principal", "receive", "scope", "send")

    def __init__(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.headers = headers
        self.receive = receive
        self.send = send
        self.extra: list[tuple[bytes, bytes]] = []
        self.principal: Hashable = None


class Unfinished(Protocol):
    """Something that keeps a response open."""

    def stop(self) -> None:
        """Come to an end."""

    def abandon(self) -> None:
        """End at once."""


class Application:
    """Base of the HTTP applications.

    Args:
        running: Entered before the first request, left when the host's lifespan ends.
        guard: Judges Host and Origin.
        bearer: Finds out who calls by bearer tokens; None lets anybody.
        limits: See `Limits`.
        routes: Paths beside those of the protocol. They are guarded, and open to anybody.
        health: ``/livez`` tells that the process answers; ``/readyz`` that the server has started and is not about to stop.
    """

    def __init__(
        self,
        running: Callable[[], AbstractAsyncContextManager[None]],
        guard: Guard | None,
        bearer: Bearer | None,
        limits: Limits | None,
        routes: Routes | None,
        health: bool,
    ) -> None:
        self._running = running
        self._guard = guard or Guard()
        self._bearer = bearer
        self._limits = limits or Limits()
        self._routes = routes or Routes()
        self._health = health
        self._stack = AsyncExitStack()
        self._starting: anyio.Event | None = None
        self._started = False
        self._is_draining = False
        self._unfinished: set[Unfinished] = set()
        self._all_finished: anyio.Event | None = None

    async def _serve(self, request: HTTPRequest) -> None:
        """Serve one request that has been let in. Raises `Refusal`."""
        raise NotImplementedError

    def _is_mine(self, scope: Scope) -> bool:
        """Tell whether there is anything at the path."""
        raise NotImplementedError

    async def _close(self) -> None:
        """Forget what outlives its requests."""
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
        request = HTTPRequest(scope, read_headers(scope["headers"]), receive, send)
        guard = self._guard
        if guard.cors:
            request.extra = guard.cors_headers(request.headers)
        bearer = self._bearer
        try:
            if bearer is not None and bearer.serves(scope):
                await self._metadata(bearer, request)
                return
            if self._health and below_mount(scope)[1] in _HEALTH:
                await self._tell_health(request)
                return
            refusal = guard.refusal(request.headers)
            if refusal is not None:
                logger.warning("refused a request: %s", refusal)
                raise Refusal(403, refusal)
            if not self._is_mine(scope):
                await self._routes(scope, receive, send)
                return
            if guard.cors and scope["method"] == "OPTIONS":
                await respond(send, 204, headers=guard.cors_headers(request.headers, preflight=True))
                return
            if bearer is not None:
                request.principal = await bearer(request.headers, scope)
            if self._is_draining:
                raise Refusal(503, "the server is stopping", headers=[retry_after(1)])
            if not self._started:
                await self.start()
            await self._serve(request)
        except Refusal as refused:
            await refuse(send, refused, request.extra)

    async def _metadata(self, bearer: Bearer, request: HTTPRequest) -> None:
        """Anybody may read it, from any page: it says how to get a token."""
        if request.scope["method"] not in ("GET", "HEAD"):
            raise Refusal(405, "use GET here", headers=[(b"allow", b"GET")])
        fields = [(b"access-control-allow-origin", b"*"), (b"cache-control", b"public, max-age=3600")]
        await respond(request.send, 200, bearer.metadata, fields, json=True)

    async def _tell_health(self, request: HTTPRequest) -> None:
        """Whoever asks this knows the server by its address and has no token; it tells nothing but yes or no."""
        if request.scope["method"] not in ("GET", "HEAD"):
            raise Refusal(405, "use GET here", headers=[(b"allow", b"GET, HEAD")])
        is_well = below_mount(request.scope)[1] == _HEALTH[0] or await self._is_ready()
        body = b"" if request.scope["method"] == "HEAD" else b"ok" if is_well else b"not ready"
        await respond(request.send, 200 if is_well else 503, body, [(b"cache-control", b"no-store")])

    async def _is_ready(self) -> bool:
        if self._is_draining:
            return False
        try:
            await self.start()  # a balancer sends no request before it has heard that the server is ready for one
        except Exception:
            logger.exception("the server's lifespan failed to start")
            return False
        return True

    async def start(self) -> None:
        """Enter the server's lifespan. The first request does it where the host has none."""
        while self._starting is not None:
            await self._starting.wait()
        if self._started:
            return
        self._starting = anyio.Event()
        try:
            await self._stack.enter_async_context(self._running())
            self._started = True
        finally:
            self._starting.set()
            self._starting = None

    def _finished(self, response: Unfinished) -> None:
        """Take something out of what `aclose` has to end."""
        self._unfinished.discard(response)
        if self._all_finished is not None and not self._unfinished:
            self._all_finished.set()
            self._all_finished = None

    async def drain(self, deadline: float | None = None) -> None:
        """End every stream with a last frame, and take nothing new: requests are answered with 503 until `aclose`.

        Streams that wait for something to happen end at once. Requests get until the deadline to be answered; then they
        are given up. Call this when a web server is told to stop, before it waits for its connections.

        Args:
            deadline: Seconds from now; ``limits.drain`` when None.
        """
        self._is_draining = True
        for each in list(self._unfinished):
            each.stop()
        await self._wait_until_finished(self._limits.drain if deadline is None else deadline)
        for each in list(self._unfinished):
            each.abandon()
        await self._close()
        await self._wait_until_finished(_LINGER)

    async def aclose(self) -> None:
        """`drain`, then leave the server's lifespan. Safe to call twice. A request that comes later starts it anew."""
        try:
            await self.drain()
        finally:
            self._started = self._is_draining = False
            await self._stack.aclose()

    @asynccontextmanager
    async def lifespan(self, host: object = None) -> AsyncGenerator[None]:
        """`start` now and `aclose` at the end: a lifespan for the application that this one is mounted in.

        Args:
            host: That application. Frameworks give it; it is not used.
        """
        await self.start()
        try:
            yield
        finally:
            await self.aclose()

    async def _wait_until_finished(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            while self._unfinished:
                self._all_finished = self._all_finished or anyio.Event()
                await self._all_finished.wait()

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
                try:
                    await self.aclose()
                except Exception as error:
                    logger.exception("the server's lifespan failed to end")
                    await send({"type": "lifespan.shutdown.failed", "message": str(error)})
                    return
                await send({"type": "lifespan.shutdown.complete"})
                return
