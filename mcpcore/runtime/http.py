"""Serving a `Server` over HTTP: the ASGI application, and the servers that run it."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Literal

import anyio

from mcpcore.exceptions import TransportError
from mcpcore.runtime.background import asyncio_loop
from mcpcore.runtime.session import Session
from mcpcore.transports.http.application import Application
from mcpcore.transports.http.eventlog import EventLogFactory
from mcpcore.transports.http.guard import Guard, is_loopback
from mcpcore.transports.http.server import StreamableHTTPApp
from mcpcore.transports.http.sse import SSEApp

if TYPE_CHECKING:
    from mcpcore.runtime.server import Server

__all__ = ["http_app", "serve_http", "sse_app"]


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
    clock: Callable[[], float] | None = None,
) -> StreamableHTTPApp:
    """Return the ASGI application of ``server``; see `Server.http_app`."""

    def ended(session: Session | None) -> None:
        if session is not None:
            session.driver.end()
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
    log_level: str = "warning",
    **options: Any,
) -> None:
    """Serve until cancelled or `Server.stop`: with uvicorn on asyncio, with hypercorn on trio.

    Raises:
        TransportError: What it needs is not installed.
    """
    app = make_app(host=host, **options)
    stopped = anyio.Event()
    server.on_stop(stopped.set)
    on_asyncio = asyncio_loop() is not None
    try:
        await (_uvicorn(app, host, port, log_level, stopped) if on_asyncio else _hypercorn(app, host, port, stopped))
    except ImportError as error:
        extra = "http" if on_asyncio else "trio"
        raise TransportError(f"{error.name} is not installed: pip install 'mcpcore[{extra}]'") from error


async def _uvicorn(app: Application, host: str, port: int, log_level: str, stopped: anyio.Event) -> None:
    import uvicorn

    class Quiet(uvicorn.Server):
        """Leaves signals to whoever runs the event loop."""

        def capture_signals(self) -> Any:
            return nullcontext()

    config = uvicorn.Config(
        app, host=host, port=port, log_level=log_level, access_log=False, timeout_graceful_shutdown=2, lifespan="on"
    )
    runner = Quiet(config)
    async with anyio.create_task_group() as tasks:

        async def stop() -> None:
            await stopped.wait()
            await app.aclose()  # open streams end with a last frame; uvicorn would wait for them
            runner.should_exit = True

        tasks.start_soon(stop)
        try:
            await runner.serve()
        finally:
            tasks.cancel_scope.cancel()


async def _hypercorn(app: Application, host: str, port: int, stopped: anyio.Event) -> None:
    from hypercorn.config import Config
    from hypercorn.trio import serve

    config = Config()
    config.bind = [f"{host}:{port}"]
    config.accesslog = None
    config.graceful_timeout = 2

    async def stop() -> None:
        await stopped.wait()
        await app.aclose()

    application: Any = app  # hypercorn has types of its own for ASGI
    await serve(application, config, shutdown_trigger=stop)
