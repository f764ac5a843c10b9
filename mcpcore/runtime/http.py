"""Serving a `Server` over HTTP: the ASGI application, and the servers that run it."""

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Literal

import anyio

from mcpcore.runtime.session import Session
from mcpcore.transports.http.eventlog import EventLogFactory
from mcpcore.transports.http.guard import Guard, is_loopback
from mcpcore.transports.http.requests import Authenticate
from mcpcore.transports.http.server import StreamableHTTPApp

if TYPE_CHECKING:
    from mcpcore.runtime.server import Server

__all__ = ["http_app", "serve_http"]

logger = logging.getLogger("mcpcore.server")


def http_app(
    server: "Server",
    *,
    path: str = "/mcp",
    host: str = "127.0.0.1",
    allowed_hosts: Sequence[str] | None = None,
    allowed_origins: Sequence[str] = (),
    cors: bool = False,
    authenticate: Authenticate | None = None,
    event_log: EventLogFactory | Literal["memory"] | None = "memory",
    retry_ms: int | None = None,
    clock: Callable[[], float] | None = None,
) -> StreamableHTTPApp:
    """Return the ASGI application of ``server``; see `Server.http_app`."""

    def ended(session: Session | None) -> None:
        if session is not None:
            session.driver.end()
            server.forget(session)

    if allowed_hosts is not None:
        hosts: tuple[str, ...] | None = tuple(allowed_hosts)
    else:
        hosts = Guard().allowed_hosts if is_loopback(host) else None
    return StreamableHTTPApp(
        server.serve_channel,
        server.running,
        path=path,
        stateless=server.registry.provider.state == "stateless",
        guard=Guard(hosts, tuple(allowed_origins), cors),
        authenticate=authenticate,
        limits=server.limits,
        event_log=event_log,
        retry_ms=retry_ms,
        on_session_end=ended,
        clock=clock,
    )


async def serve_http(
    server: "Server", *, host: str = "127.0.0.1", port: int = 8000, log_level: str = "warning", **options: Any
) -> None:
    """Serve until cancelled or `Server.stop`: with uvicorn on asyncio, with hypercorn on trio."""
    app = http_app(server, host=host, **options)
    stopped = anyio.Event()
    server.on_stop(stopped.set)
    from mcpcore.runtime.background import asyncio_loop

    if asyncio_loop() is not None:
        await _uvicorn(app, host, port, log_level, stopped)
    else:
        await _hypercorn(app, host, port, stopped)


async def _uvicorn(app: StreamableHTTPApp, host: str, port: int, log_level: str, stopped: anyio.Event) -> None:
    import uvicorn

    class Quiet(uvicorn.Server):
        """Leaves signals to whoever runs the event loop."""

        def capture_signals(self) -> AbstractContextManager[None]:
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


async def _hypercorn(app: StreamableHTTPApp, host: str, port: int, stopped: anyio.Event) -> None:
    from hypercorn.config import Config
    from hypercorn.trio import serve

    config = Config()
    config.bind = [f"{host}:{port}"]
    config.accesslog = None
    config.graceful_timeout = 2

    async def stop() -> None:
        await stopped.wait()
        await app.aclose()

    await serve(app, config, shutdown_trigger=stop)  # type: ignore[arg-type]  # hypercorn's own ASGI types
