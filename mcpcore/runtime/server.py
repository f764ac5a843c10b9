"""The server: a registry of handlers, served to any number of connections."""

import logging
import os
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import anyio

from mcpcore.abc import Channel, ChannelInfo, OneShotChannel, Outlet, ServerTransport
from mcpcore.exceptions import DefinitionError
from mcpcore.limits import Limits
from mcpcore.protocol.events import (
    ConnectionClosed,
    Event,
    MessageIgnored,
    NotificationReceived,
    RequestCancelled,
    RequestReceived,
    SessionReady,
)
from mcpcore.protocol.server import ServerConnection
from mcpcore.providers.options import ICONS, TEXT, check_option, instance, list_of, or_none
from mcpcore.providers.registry import Registry
from mcpcore.runtime.admission import Admission
from mcpcore.runtime.context import INJECTIONS
from mcpcore.runtime.dispatch import Dispatcher
from mcpcore.runtime.driver import Driver
from mcpcore.runtime.exchange import Exchange
from mcpcore.runtime.lifespan import Lifespan
from mcpcore.runtime.middleware import Middleware
from mcpcore.runtime.offer import CacheHint, Offer, versions_of
from mcpcore.runtime.process import run_until_signalled
from mcpcore.runtime.request import Notification, Request
from mcpcore.runtime.session import Session
from mcpcore.types._base import Object
from mcpcore.types.lifecycle import Icon, Implementation
from mcpcore.types.methods import Direction, methods_of
from mcpcore.types.resources import ResourceUpdatedParams
from mcpcore.types.utilities import CancelledParams, NotificationParams
from mcpcore.versions import LATEST_LEGACY

if TYPE_CHECKING:
    from mcpcore.auth.resource import ResourceServer
    from mcpcore.protocol.request_state import RequestStateCodec
    from mcpcore.transports.http.routes import Handler as RouteHandler
    from mcpcore.transports.http.routes import Routes
    from mcpcore.transports.http.server import StreamableHTTPApp
    from mcpcore.transports.http.sse import SSEApp

__all__ = ["Server"]

logger = logging.getLogger("mcpcore.server")


class Server:
    """An MCP server.

    Decorate functions with `tool`, `resource`, `prompt` and `complete`, or give it a `Registry`; then `run` it, `serve` it
    inside a running event loop, or hand it to a `Client` for tests.

    Args:
        name: The server's name, for programs.
        version: Its version.
        title: Its name for people.
        instructions: Guidance for the model that uses it.
        website_url: Where people read about it.
        icons: Images for user interfaces.
        registry: Handlers that have been registered already. ``type``, ``state``, ``scan``, ``on_skip``, ``output_schema``,
            ``rename``, ``mask_unexpected`` and ``format_error`` are then given to it and not to the server.
        type: ``sync`` takes ``def`` handlers only, ``async`` takes ``async def`` only, ``auto`` takes both. When None,
            ``MCPCORE_SERVER_TYPE`` says so, and without that ``auto``.
        state: ``stateless`` filters handlers that need a way back to the client.
        scan: False ignores declarations in `include`. When None, ``MCPCORE_SCAN`` says so.
        on_skip: What happens when a handler is filtered: ``warn``, ``error`` or ``ignore``.
        output_schema: Publish output schemas where tools do not say.
        rename: ``camel`` publishes argument names in camel case.
        lifespan: ``async with lifespan(server) as value``: entered once before the first request, left at the end; handlers
            find ``value`` as ``ctx.lifespan``.
        middleware: Functions ``async (message, call_next)`` around every request that reaches a handler and every
            notification, first outermost; see `mcpcore.runtime.middleware`.
        auth: Protects the server over HTTP; see `mcpcore.auth`.
        eras: The eras to speak.
        limits: See `Limits`.
        page_size: Items per page of lists; None for one page.
        cache: See `CacheHint`.
        mask_unexpected: Show the model nothing of exceptions other than `ToolError`, `ValueError` and `LookupError`.
        format_error: Makes the text that the model reads from a tool's name and its exception.
        secret: Seals ``requestState``; share it between the processes of one service. ``MCPCORE_SECRET`` when None.

    Raises:
        DefinitionError: An option cannot be what it was given, or belongs to ``registry``.
        ValueError: ``eras`` or ``page_size`` leave nothing.
    """

    def __init__(
        self,
        name: str,
        *,
        version: str = "0.0.0",
        title: str | None = None,
        instructions: str | None = None,
        website_url: str | None = None,
        icons: Sequence[Icon] = (),
        registry: Registry | None = None,
        type: Literal["auto", "sync", "async"] | None = None,
        state: Literal["stateful", "stateless"] | None = None,
        scan: bool | None = None,
        on_skip: Literal["warn", "error", "ignore"] | None = None,
        output_schema: "bool | Literal['any', 'wrap'] | None" = None,
        rename: Literal["camel"] | None = None,
        lifespan: Callable[["Server"], AbstractAsyncContextManager[Any]] | None = None,
        middleware: Sequence[Middleware] = (),
        auth: "ResourceServer | None" = None,
        eras: Sequence[Literal["legacy", "modern"]] = ("legacy", "modern"),
        limits: Limits | None = None,
        page_size: int | None = None,
        cache: CacheHint | None = None,
        mask_unexpected: bool | None = None,
        format_error: Callable[[str, BaseException], str] | None = None,
        secret: str | bytes | Sequence[str | bytes] | None = None,
    ) -> None:
        for option, value, row in (
            ("name", name, TEXT),
            ("version", version, TEXT),
            ("title", title, or_none(TEXT)),
            ("instructions", instructions, or_none(TEXT)),
            ("website_url", website_url, or_none(TEXT)),
            ("icons", icons, ICONS),
            ("registry", registry, or_none(instance(Registry))),
            ("lifespan", lifespan, or_none(("a function of the server that gives an async context manager", callable))),
            ("middleware", middleware, list_of("functions async (message, call_next)", callable)),
            ("limits", limits, or_none(instance(Limits))),
            ("cache", cache, or_none(instance(CacheHint))),
        ):
            check_option(option, value, row)
        self.info = Implementation(
            name, version, title=title, website_url=website_url, icons=list(icons) if icons else None
        )
        self.instructions = instructions
        options: dict[str, Any] = {
            "type": type,
            "state": state,
            "scan": scan,
            "on_skip": on_skip,
            "output_schema": output_schema,
            "rename": rename,
            "mask_unexpected": mask_unexpected,
            "format_error": format_error,
        }
        given = {name: value for name, value in options.items() if value is not None}
        if registry is not None and given:
            raise DefinitionError(f"give {', '.join(given)} to the Registry, which has read its handlers already")
        self.registry = registry or Registry(**{**_from_environment(), **given})
        self.middleware = tuple(middleware)
        self.auth = auth
        self.limits = limits or Limits()
        self.page_size = page_size
        if secret is not None:
            from mcpcore.runtime.sealing import state_codec

            self.state_codec = state_codec(secret)
        self.state_lifetime = 600.0
        self.clock: Callable[[], float] = time.time
        self.injections: Mapping[str, Callable[[Request], Any]] = INJECTIONS
        versions = versions_of(eras)
        self._offer = Offer(self.registry, self.info, instructions, versions, cache or CacheHint(), self.limits)
        self.lifespan = Lifespan(None if lifespan is None else lambda: lifespan(self), self._left)
        self._sessions: set[Session] = set()
        self._admission = Admission(self.limits)  # of requests that stand for themselves; sessions have their own
        self._dispatcher = Dispatcher(self)
        self._stopping: list[Callable[[], Any]] = []
        self._served: set[anyio.CancelScope] = set()  # around each `serve`
        self._told: dict[str, int] = {}  # list-changed notification: the generation of the registry that it told of
        self.registry.subscribe(self._changed)

        self.tool = self.registry.tool
        self.resource = self.registry.resource
        self.prompt = self.registry.prompt
        self.complete = self.registry.complete
        self.include = self.registry.include
        self.add_tool = self.registry.add_tool

    @cached_property
    def state_codec(self) -> "RequestStateCodec":
        """What seals ``requestState``. Made at first use: most servers never seal, and hashing would slow every start."""
        from mcpcore.runtime.sealing import state_codec

        return state_codec()

    @property
    def is_stateless(self) -> bool:
        """Legacy requests have no session and no way back to the client."""
        return self.registry.provider.state == "stateless"

    @property
    def surrounds_calls(self) -> bool:
        """Something of its own happens around calls of its handlers, wherever they are mounted."""
        return bool(self.middleware) or self.lifespan.exists

    @property
    def versions(self) -> tuple[str, ...]:
        """The protocol revisions that it speaks."""
        return self._offer.versions

    def report(self) -> str:
        """Return, for people, what this server is, what it offers, and which handlers it did not take and why."""
        provider = self.registry.provider
        mode = f"type={provider.type!r}, state={provider.state!r}"
        head = f"{self.info.name} {self.info.version}: {mode}, revisions {', '.join(self.versions)}"
        return f"{head}\n{self.registry.report()}".rstrip()

    # -- serving -------------------------------------------------------------------------------------------------

    def run(
        self,
        transport: "Literal['stdio', 'http', 'sse'] | ServerTransport" = "stdio",
        *,
        workers: int = 1,
        backend: str = "asyncio",
        **options: Any,
    ) -> None:
        """Serve until the input ends, or until SIGINT, SIGTERM or SIGHUP, then finish what is open and return.

        Args:
            transport: ``stdio``, ``http``, ``sse`` (for peers of 2024-11-05), or a `ServerTransport`.
            workers: For ``http``: so many processes serve, each of them this program once more. Without sessions only:
                the server is stateless, or speaks modern revisions only.
            backend: ``asyncio`` or ``trio``.
            options: For HTTP: ``host``, ``port`` and those of `http_app` or `sse_app`.

        Raises:
            SystemExit: 128 plus the signal's number, after a signal.
            TransportError: The address is not free, the server has sessions that workers cannot share, or a worker could
                not begin to serve.
        """
        if workers != 1:
            from mcpcore.runtime.workers import run_workers

            run_workers(self, transport, workers, backend=backend, **options)
            return
        opened: Any = transport if transport in ("http", "sse") else _server_transport(transport, self.limits)
        # The event loop may print and log, too, when it starts and ends.
        with opened.claimed() if hasattr(opened, "claimed") else nullcontext():
            serve = partial(self.serve, opened, **options)
            by_sockets = transport in ("http", "sse")
            run_until_signalled(serve, self.stop, self.limits.drain, backend, prefer_uvloop=by_sockets)

    async def serve(
        self, transport: "Literal['stdio', 'http', 'sse'] | ServerTransport" = "stdio", **options: Any
    ) -> None:
        """Serve inside a running event loop (asyncio or trio). Cancellation ends it.

        Args:
            transport: ``stdio``, ``http``, ``sse`` (for peers of 2024-11-05), or a `ServerTransport`.
            options: For HTTP: ``host`` (loopback), ``port`` (8000) and those of `http_app` or `sse_app`.
        """
        with anyio.CancelScope() as scope:
            self._served.add(scope)
            try:
                if transport in ("http", "sse"):
                    from mcpcore.runtime.http import serve_http

                    await serve_http(self, self.http_app if transport == "http" else self.sse_app, **options)
                    return
                async with self.running():
                    await _server_transport(transport, self.limits).serve(self.serve_channel)
            finally:
                self._served.discard(scope)

    async def serve_channel(self, channel: Channel) -> None:
        """Serve one channel until its input ends, inside `running`. Transports call this for each channel."""
        if channel.info.one_shot:
            await self._serve_exchange(cast(OneShotChannel, channel))
            return
        session = self._session(channel.info)
        session.driver = driver = Driver(
            session.connection, channel, self.limits, self._handle(session), partial(self._observe, session)
        )
        self.track(session)
        try:
            await driver.run()
        finally:
            self.forget(session)

    async def _serve_exchange(self, channel: OneShotChannel) -> None:
        """Serve one message. Its connection lives as long as the session that it belongs to, or as itself."""
        slot = channel.info.session
        if slot is None:
            session = self._exchange_session(channel.info, channel, self._admission)
        elif slot.state is None:
            session = slot.state = self._exchange_session(channel.info, slot, Admission(self.limits))
            self.track(session)
        else:
            session = slot.state
        try:
            await session.driver.serve(channel)
        finally:
            if slot is None:  # it stood for itself
                self.forget(session)
                session.driver.release()
            elif session in self._sessions and session.connection.session is None:  # it was never initialised
                self.forget(session)

    def _exchange_session(self, info: ChannelInfo, outlet: Outlet, admission: Admission) -> Session:
        session = self._session(info)
        observe = partial(self._observe, session)
        session.driver = Exchange(
            session.connection,
            outlet,
            self.limits,
            admission,
            self._handle(session),
            observe,
            self._dispatcher.may_wait,
        )
        return session

    def _session(self, info: ChannelInfo) -> Session:
        self.registry.serve()
        one_shot = info.one_shot and info.session is None
        config = self._offer.config(handshake_only=info.handshake_only)
        connection = ServerConnection(config, one_shot=one_shot, session_version=info.session_version)
        return Session(self, connection, self.lifespan.value)

    def _handle(self, session: Session) -> Callable[[RequestReceived], Coroutine[Any, Any, None]]:
        answer, lifespan = self._dispatcher.answer, self.lifespan
        if not lifespan.exists:
            return lambda event: answer(Request(session, event))

        async def handle(event: RequestReceived) -> None:
            lifespan.set_variables()
            await answer(Request(session, event))

        return handle

    def _observe(self, session: Session, event: Event) -> None:
        if isinstance(event, ConnectionClosed):
            for request_id in session.connection.subscriptions:
                session.connection.end_subscription(request_id)
        elif isinstance(event, MessageIgnored):
            logger.debug("ignored a message of the client: %s", event.reason)
        elif self._dispatcher.sees_notifications and (notification := _notification(event)) is not None:
            session.driver.spawn(partial(self._dispatcher.receive, Notification(session, notification)))

    def track(self, session: Session) -> None:
        """Have changes published to ``session``, by any thread."""
        session.note_loop()
        self._sessions.add(session)

    def forget(self, session: Session) -> None:
        """A session has ended."""
        self._sessions.discard(session)
        session.disconnected()

    def _left(self) -> None:
        self._dispatcher.dismiss_threads()

    def running(self) -> AbstractAsyncContextManager[None]:
        """Keep the server's lifespan entered. It is entered once, however many use it at the same time."""
        return self.lifespan()

    def http_app(self, **options: Any) -> "StreamableHTTPApp":
        """Return an ASGI application that serves this server: run it, or mount it anywhere; it needs no lifespan.

        Args:
            options: ``path`` (``/mcp``), ``allowed_hosts`` and ``allowed_origins`` (loopback only), ``cors``,
                ``event_log``, ``retry_ms``, ``json_response``, ``health``; see `StreamableHTTPApp`.
        """
        from mcpcore.runtime.http import http_app

        return http_app(self, **options)

    def sse_app(self, **options: Any) -> "SSEApp":
        """Return an ASGI application that serves peers of 2024-11-05 over HTTP+SSE.

        Args:
            options: ``path`` (``/sse``), ``messages`` (``/messages/``), ``allowed_hosts``, ``allowed_origins``, ``cors``,
                ``health``.
        """
        from mcpcore.runtime.http import sse_app

        return sse_app(self, **options)

    @cached_property
    def routes(self) -> "Routes":
        """Paths beside the endpoint; see `custom_route`. Made at first use: servers on stdio have none."""
        from mcpcore.transports.http.routes import Routes

        return Routes()

    def custom_route(self, path: str, methods: Sequence[str] = ("GET",)) -> "Callable[[RouteHandler], RouteHandler]":
        """Serve a path beside the endpoint over HTTP, such as ``/health``. Its requests need no token.

        Args:
            path: As Starlette has it: ``/orders/{id}``, below the place where the application is mounted.
            methods: HTTP methods.

        Returns:
            A decorator for functions that take a Starlette ``Request`` and return a Starlette ``Response``.

        Raises:
            ModuleNotFoundError: Starlette is not installed; the extra ``http`` brings it.
        """

        def register(handler: "RouteHandler") -> "RouteHandler":
            self.routes.add(path, handler, methods)
            return handler

        return register

    def on_stop(self, callback: Callable[[], Any]) -> None:
        """Have ``callback`` called by `stop`."""
        self._stopping.append(callback)

    def stop(self) -> None:
        """End all connections as if their clients had: what is open is finished within ``limits.drain`` seconds."""
        if self.lifespan.is_entering:  # nothing is served yet, and that may take for ever
            for scope in self._served:
                scope.cancel()
        for callback in self._stopping:
            callback()
        for session in list(self._sessions):
            session.driver.end()

    # -- changes -------------------------------------------------------------------------------------------------

    def remove_tool(self, name: str) -> None:
        """Take a tool away; clients that listen are told. Raises `KeyError` when there is none of that name."""
        self.registry.remove("tool", name)

    def mount(self, other: "Server | Registry", namespace: str | None = None) -> None:
        """Take over the handlers of ``other``, under ``<namespace>_<name>``, merged with one's own now.

        A call costs no more for it, unless ``other`` has middleware or a lifespan. Of a server they find its lifespan, which is entered with this one's, and its middleware is around their calls,
        inside this server's. Lists, notifications, tokens and audit records are this server's own.

        Args:
            other: What is added to it later is not followed. A registry brings handlers and nothing else.
            namespace: As for `Registry.mount`.

        Raises:
            DefinitionError: The namespace cannot be part of a name; ``other`` wants tokens and this server does not; or
                ``other`` has a lifespan and this server is being served.
            DuplicateName: A name is taken.
            SkippedHandlers: Something is not taken, and ``on_skip`` is "error".
        """
        if not isinstance(other, Server):
            self.registry.mount(other, namespace=namespace)
            return
        if other.auth is not None and self.auth is None:
            raise DefinitionError(
                f"{other.info.name!r} has auth= and {self.info.name!r} has not: protect it, too, or mount the registry"
            )
        self.lifespan.check_embrace(other.lifespan)
        self.registry.mount(other.registry, namespace=namespace, home=None if other is self else other)
        self.lifespan.embrace(other.lifespan)

    def notify_tools_changed(self) -> None:
        """Tell clients that the list of tools has changed. Adding and removing tools does it by itself."""
        self._publish("notifications/tools/list_changed", NotificationParams())

    def notify_resources_changed(self) -> None:
        """Tell clients that the list of resources has changed."""
        self._publish("notifications/resources/list_changed", NotificationParams())

    def notify_prompts_changed(self) -> None:
        """Tell clients that the list of prompts has changed."""
        self._publish("notifications/prompts/list_changed", NotificationParams())

    def notify_resource_updated(self, uri: str) -> None:
        """Tell clients that subscribed to ``uri`` that its contents have changed. Any thread may call this."""
        self._publish("notifications/resources/updated", ResourceUpdatedParams(uri))

    def notify_elicitation_complete(self, elicitation_id: str) -> bool:
        """Tell the legacy client that was asked for it that a visit to a URL is over. Any thread may call this.

        Args:
            elicitation_id: The ``id`` of `Context.elicit_url`, or the ``elicitationId`` in the data of an error -32042.

        Returns:
            False when no client that is connected was asked for it.
        """
        return any(session.visited(elicitation_id) for session in list(self._sessions))

    def _publish(self, method: str, params: Object) -> None:
        for session in list(self._sessions):
            session.publish(method, params)

    def _changed(self, kind: str) -> None:
        method = _LIST_CHANGED.get(kind)
        # One change may concern resources and templates, which clients know as one list.
        if method is not None and self._told.get(method) != self.registry.generation:
            self._told[method] = self.registry.generation
            self._publish(method, NotificationParams())


_LIST_CHANGED = {
    "tool": "notifications/tools/list_changed",
    "resource": "notifications/resources/list_changed",
    "template": "notifications/resources/list_changed",
    "prompt": "notifications/prompts/list_changed",
}


def _notification(event: Event) -> NotificationReceived | None:
    """Return the notification behind an event, also where the core has acted on it already."""
    if isinstance(event, NotificationReceived):
        return event
    if isinstance(event, SessionReady):
        return NotificationReceived(_LEGACY["notifications/initialized"], NotificationParams())
    if isinstance(event, RequestCancelled):
        return NotificationReceived(_LEGACY["notifications/cancelled"], CancelledParams(event.id, event.reason))
    return None


_LEGACY = methods_of(Direction.TO_SERVER, LATEST_LEGACY)


def _server_transport(transport: Any, limits: Limits) -> Any:
    if transport == "stdio":
        from mcpcore.transports.stdio_server import StdioServerTransport

        return StdioServerTransport(max_message_size=limits.message_size)
    if hasattr(transport, "serve"):
        served: ServerTransport = transport
        return served
    raise ValueError(f"unknown transport {transport!r}: give 'stdio' or an object with serve(handler)")


_SWITCHES: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    # environment variable: (option, value by what it says)
    "MCPCORE_SERVER_TYPE": ("type", {"auto": "auto", "sync": "sync", "async": "async"}),
    "MCPCORE_SCAN": ("scan", {"true": True, "1": True, "false": False, "0": False}),
}


def _from_environment() -> dict[str, Any]:
    options: dict[str, Any] = {}
    for variable, (option, values) in _SWITCHES.items():
        given = os.environ.get(variable, "").strip().lower()
        if given and given not in values:
            raise DefinitionError(f"{variable}={given!r}: give one of {', '.join(values)}")
        if given:
            options[option] = values[given]
    return options
