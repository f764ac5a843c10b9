"""Serving a `Server` over HTTP: the ASGI application, and the servers that run it."""

import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

import anyio
from anyio.abc import SocketAttribute, TaskStatus

from mcpcore._wakeup import asyncio_loop
from mcpcore.exceptions import TransportError
from mcpcore.runtime.background import unwrap
from mcpcore.runtime.joined_writes import join_writes
from mcpcore.runtime.session import Session
from mcpcore.transports.http.application import Application
from mcpcore.transports.http.eventlog import EventLogFactory
from mcpcore.transports.http.guard import Guard, is_loopback
from mcpcore.transports.http.requests import Scope
from mcpcore.transports.http.response import Receive, Send
from mcpcore.transports.http.server import StreamableHTTPApp
from mcpcore.transports.http.sse import SSEApp

if TYPE_CHECKING:
    from mcpcore.runtime.server import Server

__all__ = ["claim", "http_app", "listen", "serve_http", "sse_app"]

Run = Callable[[anyio.Event], Awaitable[None]]
"""Runs a web server until the event."""

_BACKLOG: Final = 2048  # connections that wait to be accepted; beyond it the system resets them
_GRACE: Final = 1  # seconds in which web servers end what the application has not ended


def http_app(
    server: "Server",
    *,
    path: str = "/mcp",
    host: str = "127.0.0.1",
    allowed_hosts: Sequence[str] | None = None,
    allowed_origins: Sequence[str] = (),
    cors: bool = False,
    event_log: EventLogFactory | Literal["memory"] | None = "memory",
    retry_ms: int | None = None,
    json_response: bool = False,
    health: bool = False,
    clock: Callable[[], float] | None = None,
) -> StreamableHTTPApp:
    """Return the ASGI application of ``server``; see `Server.http_app`."""

    def ended(session: Session | None) -> None:
        if session is not None:
            session.driver.abandon()
            server.forget(session)

    return StreamableHTTPApp(
        server.serve_channel,
        server.running,
        path=path,
        stateless=server.is_stateless,
        guard=_guard(host, allowed_hosts, allowed_origins, cors),
        auth=server.auth,
        limits=server.limits,
        event_log=event_log,
        retry_ms=retry_ms,
        on_session_end=ended,
        clock=clock,
        json_response=json_response,
        routes=server.routes,
        health=health,
    )


def sse_app(
    server: "Server",
    *,
    path: str = "/sse",
    messages: str = "/messages/",
    host: str = "127.0.0.1",
    allowed_hosts: Sequence[str] | None = None,
    allowed_origins: Sequence[str] = (),
    cors: bool = False,
    health: bool = False,
) -> SSEApp:
    """Return the HTTP+SSE application of ``server``; see `Server.sse_app`."""
    return SSEApp(
        server.serve_channel,
        server.running,
        path=path,
        messages=messages,
        guard=_guard(host, allowed_hosts, allowed_origins, cors),
        auth=server.auth,
        limits=server.limits,
        routes=server.routes,
        health=health,
    )


def _guard(host: str, hosts: Sequence[str] | None, origins: Sequence[str], cors: bool) -> Guard:
    """Bound to loopback, only its names are allowed; bound to more, whoever deploys it knows the names."""
    loopback = Guard().allowed_hosts if is_loopback(host) else None
    return Guard(tuple(hosts) if hosts is not None else loopback, tuple(origins), cors)


async def serve_http(
    server: "Server",
    make_app: Callable[..., Application],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    sockets: Sequence[socket.socket] | None = None,
    log_level: str = "warning",
    task_status: TaskStatus[int] = anyio.TASK_STATUS_IGNORED,
    **options: Any,
) -> None:
    """Serve until cancelled or `Server.stop`: with uvicorn on asyncio, with hypercorn on trio.

    Either way, what is open is finished within ``limits.drain`` seconds.

    Args:
        server: The server.
        make_app: Makes the application.
        host: A name or an address; all addresses of a name are listened on.
        port: 0 for any that is free.
        sockets: What to serve on instead: TCP sockets that listen already. They are closed at the end.
        log_level: Of the web server's own loggers.
        task_status: Is told the port once connections are accepted.
        options: Of ``make_app``.

    Raises:
        TransportError: The address is not free, or what this needs is not installed.
        Exception: What entering the server's lifespan raises.
    """
    app = make_app(host=host, **options)
    on_asyncio = asyncio_loop() is not None
    try:
        run = (_uvicorn if on_asyncio else _hypercorn)(app, log_level)
    except ImportError as error:
        extra = "http" if on_asyncio else "trio"
        raise TransportError(f"{error.name} is not installed: pip install 'mcpcore[{extra}]'") from error
    with ExitStack() as stack:
        listeners = [stack.enter_context(each) for each in sockets or await listen(host, port)]
        await app.start()
        task_status.started(listeners[0].getsockname()[1])
        try:
            await _run(server, app, partial(run, listeners))
        finally:
            with anyio.CancelScope(shield=True):
                await app.aclose()


async def listen(host: str, port: int, *, shared: bool = False) -> list[socket.socket]:
    """Listen on all addresses of a name.

    Web servers could do it; but uvicorn ends the process where it cannot, and neither says which port it got for 0.

    Args:
        host: A name or an address.
        port: 0 for any that is free.
        shared: Others of this user that say the same may listen there, too; on Linux each gets its share of connections.

    Raises:
        TransportError: The address is not free, or not ours.
    """
    try:
        listener = await anyio.create_tcp_listener(local_host=host, local_port=port, reuse_port=shared)
    except OSError as error:
        raise _unusable(host, port, error) from error
    async with listener:
        raw: list[socket.socket] = [each.extra(SocketAttribute.raw_socket) for each in listener.listeners]
        # asyncio turns Nagle's algorithm off where it sees that a socket is TCP, and only its number tells that. With it
        # on, each event would wait for the client's kernel to acknowledge the one before: 40 ms.
        return [socket.socket(each.family, each.type, socket.IPPROTO_TCP, fileno=each.dup().detach()) for each in raw]


async def claim(host: str, port: int) -> None:
    """Make sure that nobody listens on an address of a name, not even somebody who would share it.

    Raises:
        TransportError: The address is not free, or not ours.
    """
    try:
        for family, kind, protocol, _, address in await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # old connections may still be there
                if family == socket.AF_INET6:
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                probe.bind(address)
    except OSError as error:
        raise _unusable(host, port, error) from error


def _unusable(host: str, port: int, error: OSError) -> TransportError:
    return TransportError(f"cannot listen on {host}, port {port}: {error.strerror or error}")


async def _run(server: "Server", app: Application, run: Run) -> None:
    """Run a web server until it is to stop, or until cancelled, and let it end in good order either way."""
    stopped, ending = anyio.Event(), anyio.Event()
    server.on_stop(stopped.set)

    async def end() -> None:
        try:
            await stopped.wait()
        finally:
            with anyio.CancelScope(shield=True):
                await app.drain()  # open streams end with a last frame; web servers would wait for them
            ending.set()

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(end)
            with anyio.CancelScope(shield=True):
                await run(ending)
            tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise unwrap(group) from None


def _uvicorn(app: Application, log_level: str) -> Callable[[list[socket.socket], anyio.Event], Awaitable[None]]:
    import uvicorn

    class Quiet(uvicorn.Server):
        """Leaves signals to whoever runs the event loop."""

        def capture_signals(self) -> Any:
            return nullcontext()

    config = uvicorn.Config(
        app,
        log_config=None,  # how logging is set up is the program's own affair
        log_level=log_level,
        access_log=False,
        timeout_graceful_shutdown=_GRACE,
        backlog=_BACKLOG,
        lifespan="off",
    )
    join_writes(config)
    runner = Quiet(config)

    async def run(sockets: list[socket.socket], ending: anyio.Event) -> None:
        async def end() -> None:
            await ending.wait()
            runner.should_exit = True

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(end)
            await runner.serve(sockets)
            tasks.cancel_scope.cancel()

    return run


def _hypercorn(app: Application, log_level: str) -> Callable[[list[socket.socket], anyio.Event], Awaitable[None]]:
    import hypercorn.trio
    from hypercorn.config import Config

    hypercorn_trio: Any = hypercorn.trio  # it has types of its own for ASGI, and they are not complete
    config = Config()
    config.accesslog = None
    config.loglevel = log_level
    config.graceful_timeout = _GRACE
    config.backlog = _BACKLOG

    async def without_lifespan(scope: Scope, receive: Receive, send: Send) -> None:
        """Leave the lifespan to `serve_http`, which hears of what fails in it."""
        if scope["type"] != "lifespan":
            await app(scope, receive, send)
            return
        for step in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{step}.complete"})

    async def run(sockets: list[socket.socket], ending: anyio.Event) -> None:
        config.bind = [f"fd://{each.detach()}" for each in sockets]
        await hypercorn_trio.serve(without_lifespan, config, shutdown_trigger=ending.wait)

    return run
