"""The client: one object for any server, in memory, over stdio, or by any other transport."""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Literal, Self, cast

import anyio
import msgspec
from msgspec import UNSET, Raw, UnsetType

from mcpcore.abc import ClientTransport
from mcpcore.exceptions import ConnectionLost, PeerError, RemoteProtocolError, RequestTimeout
from mcpcore.limits import Limits
from mcpcore.protocol.client import ClientConfig
from mcpcore.protocol.events import (
    Event,
    NotificationReceived,
    ProgressReceived,
    ServerFacts,
    SubscriptionNotified,
)
from mcpcore.runtime.cache import ResponseCache
from mcpcore.runtime.client_handlers import ClientHandlers, call
from mcpcore.runtime.hints import Effects, effects, retry_safe
from mcpcore.runtime.link import Answered, Link
from mcpcore.runtime.mirrors import learn_mirrors
from mcpcore.runtime.notices import Notices
from mcpcore.runtime.outputs import Outputs
from mcpcore.runtime.subscription import Subscription, Subscriptions
from mcpcore.runtime.targets import transport_for
from mcpcore.types._base import Object
from mcpcore.types.completion import (
    CompleteParams,
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
)
from mcpcore.types.jsonrpc import HEADER_MISMATCH
from mcpcore.types.lifecycle import Implementation, ServerCapabilities
from mcpcore.types.logging import LogMessageParams, SetLevelParams
from mcpcore.types.meta import LogLevel
from mcpcore.types.prompts import GetPromptParams, GetPromptResult, Prompt
from mcpcore.types.resources import ReadResourceParams, ReadResourceResult, Resource, ResourceTemplate, SubscribeParams
from mcpcore.types.subscriptions import SubscriptionFilter
from mcpcore.types.tools import CallToolParams, CallToolResult, Tool, ToolResult
from mcpcore.types.utilities import EmptyParams, PaginatedParams
from mcpcore.versions import LEGACY_VERSIONS, MODERN_VERSIONS, VERSIONS, Era

if TYPE_CHECKING:
    from mcpcore.runtime.server import Server

__all__ = ["Client", "ToolResult"]

logger = logging.getLogger("mcpcore.client")

OnProgress = Callable[[float, float | None, str | None], Any]
"""Called with progress, total and message; a plain or an async function."""

Timeout = float | None | UnsetType
"""Seconds; None for ever; UNSET for the client's own."""

_MOST_PAGES = 1000


class Client:
    """A client of one MCP server.

    ``async with Client(target) as client`` connects, finds out which revision to speak, and closes at the end. `connect`
    and `aclose` may also be called by hand, from any task and in any order.

    Args:
        target: A `Server` (in memory), the result of `stdio`, the URL of an MCP endpoint, or any `ClientTransport`.
        name: How the client calls itself.
        version: Its version.
        eras: The eras to speak.
        protocol_version: Speak only this revision.
        timeout: Seconds for each request unless the call says otherwise; None for ever.
        http_client: For a URL: an ``AsyncClient`` of httpx or httpx2 to send with. By default one is made.
        sampling: Answers the server's questions to the model: takes `CreateMessageParams`, returns `CreateMessageResult`
            or a text.
        elicitation: Asks the user: takes `ElicitParams`; returns a dictionary (accept), None (decline) or `ElicitResult`.
        roots: Folders that the server may use: URIs or `Root` objects, or a function that returns them.
        on_log: Called with each `LogMessageParams`, in order.
        on_progress: Called with progress, total and message of every request, unless the call says otherwise.
        on_notification: Called with method and parameters of every other notification, in order.
        validate: ``strict`` raises `OutputValidationError` when structured content does not fit the schema that the
            tool published; ``lenient`` logs a warning.
        trusted: The server's tool hints may be relied on, as `effects` and `retry_safe` do.
        cache: Keep lists and resources for as long as the server says that they are fresh; or a `ResponseCache` that says
            how many and how long.
        limits: See `Limits`.

    Callbacks may be plain or async functions. Giving one declares the capability. Requests raise `PeerError` for an
    error of the server, `RequestTimeout`, `ConnectionLost` (or `ServerExited`), and `LocalProtocolError` for a method
    that the server did not declare. Cancelling a call tells the server.
    """

    def __init__(
        self,
        target: "Server | ClientTransport | str",
        *,
        name: str = "mcpcore",
        version: str | None = None,
        eras: Sequence[Literal["modern", "legacy"]] = ("modern", "legacy"),
        protocol_version: str | None = None,
        timeout: float | None = 60.0,
        http_client: Any = None,
        sampling: Callable[..., Any] | None = None,
        elicitation: Callable[..., Any] | None = None,
        roots: Sequence[Any] | Callable[[], Any] | None = None,
        on_log: Callable[[LogMessageParams], Any] | None = None,
        on_progress: OnProgress | None = None,
        on_notification: Callable[[str, Any], Any] | None = None,
        validate: Literal["strict", "lenient"] = "strict",
        trusted: bool = False,
        cache: bool | ResponseCache = True,
        limits: Limits | None = None,
    ) -> None:
        self.trusted = trusted
        self._limits = limits or Limits()
        self._timeout = timeout
        self.cache = cache if isinstance(cache, ResponseCache) else ResponseCache() if cache else None
        self._on_log = on_log
        self._on_progress = on_progress
        self._on_notification = on_notification
        self._transport = transport_for(target, http_client, self._limits.message_size)
        self._handlers = ClientHandlers(sampling, elicitation, roots)
        self._info = Implementation(name, version or _own_version())
        self._versions = _versions(eras, protocol_version)
        self._link: Link | None = None
        self._notices = Notices()
        self._subscriptions = Subscriptions()
        self._outputs = Outputs(validate)
        self._retry_safe: frozenset[str] = frozenset()
        self._listing = anyio.Lock()
        self._log_level: LogLevel | None = None

    # -- life ----------------------------------------------------------------------------------------------------

    async def connect(self) -> Self:
        """Connect and negotiate. See `Link.open` for what it raises."""
        try:
            await self._open(self._versions)
        except ConnectionLost:
            # Some legacy servers do not survive a request before `initialize`: greet those in their own way.
            legacy = tuple(version for version in self._versions if version in LEGACY_VERSIONS)
            if self._link is None or not self._link.lost_while_probing or not legacy:
                raise
            logger.info("the server went away at server/discover; connecting again with initialize")
            await self._open(legacy)
        return self

    async def _open(self, versions: tuple[str, ...]) -> None:
        self._forget_tools()  # nobody told of changes in between
        if self.cache is not None:
            self.cache.clear()
        config = ClientConfig(self._info, self._handlers.capabilities, versions, limits=self._limits)
        self._link = Link(self._transport, config, self._handlers, self._observe, self._notices)
        await self._link.open(self._timeout)

    async def aclose(self) -> None:
        """Close the connection; a server process that was started for it is ended. Safe to call twice."""
        if self._link is not None:
            await self._link.close()

    async def __aenter__(self) -> Self:
        return await self.connect()

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    @property
    def server(self) -> ServerFacts:
        """What the server told when the connection was opened.

        Raises:
            ConnectionLost: The client has not been connected.
        """
        facts = self._link.connection.server if self._link else None
        if facts is None:
            raise ConnectionLost("the client is not connected: use it inside 'async with'")
        return facts

    @property
    def server_info(self) -> Implementation | None:
        """How the server describes itself, if it does."""
        return self.server.info

    @property
    def server_capabilities(self) -> ServerCapabilities:
        """What the server offers."""
        return self.server.capabilities

    @property
    def instructions(self) -> str | None:
        """The server's guidance for the model."""
        return self.server.instructions

    @property
    def protocol_version(self) -> str:
        """The revision that is spoken."""
        return self.server.version

    # -- tools ---------------------------------------------------------------------------------------------------

    async def list_tools(self) -> list[Tool]:
        """Return all tools, from all pages. Over HTTP, those are left out whose schemas make them impossible to call."""
        known = self._outputs.epoch
        tools: list[Tool] = await self._list("tools/list", "tools")
        connection = self._connected().connection
        if connection.header_maps is not None and self.server.era is Era.MODERN:
            tools, connection.header_maps = learn_mirrors(tools)
        self._outputs.learn(tools, known)
        self._retry_safe = frozenset(tool.name for tool in tools if self.retry_safe(tool))
        return tools

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: Timeout = UNSET,
        on_progress: OnProgress | None = None,
        meta: dict[str, Any] | None = None,
    ) -> ToolResult:
        """Call a tool.

        Args:
            name: The tool's name.
            arguments: Its arguments, any JSON values; what has no JSON form raises `TypeError` or `ValueError`.
            timeout: Seconds; None for ever; the client's own when not given.
            on_progress: Called with progress, total and message, in order, before this returns.
            meta: Members for ``_meta`` of the request.

        Returns:
            The result. A failure of the tool is a result with ``is_error``.

        Raises:
            OutputValidationError: Its structured content does not fit the schema that `list_tools` brought. When the server
                says that its tools have changed, they are listed again before the next call.
            SessionExpired: The server has lost its session, and the tool is not known to be `retry_safe`.
            ValueError: An argument cannot be written into the header field that the tool wants for it.
        """
        params = CallToolParams(name, UNSET if arguments is None else _json(arguments))
        if self._outputs.outdated:
            await self._list_again()
        try:
            answered = await self._request("tools/call", params, timeout, on_progress, meta)
        except PeerError as error:
            if error.code != HEADER_MISMATCH or self._connected().connection.header_maps is None:
                raise
            if self.cache is not None:
                self.cache.drop("tools/list")
            await self.list_tools()  # what has to be mirrored is not what we thought
            answered = await self._request("tools/call", params, timeout, on_progress, meta)
        result: CallToolResult = answered.result
        answer = ToolResult(result.content, result.structured_content, bool(result.is_error), result.meta)
        if not answer.is_error:
            self._outputs.check(name, result.structured_content, answer)
        return answer

    async def _list_again(self) -> None:
        """The tools that were listed have changed. Where they cannot be listed, calls are not checked until they change again."""
        async with self._listing:
            if not self._outputs.outdated:
                return
            try:
                await self.list_tools()
            except (PeerError, RequestTimeout) as error:
                self._outputs.outdated = False
                logger.warning("the tools have changed and cannot be listed, so results are not checked: %s", error)

    def _forget_tools(self) -> None:
        """What was listed may no longer be true."""
        self._outputs.forget()
        self._retry_safe = frozenset()

    def effects(self, tool: Tool) -> Effects:
        """Tell what calling ``tool`` may do; see `mcpcore.runtime.hints.effects`."""
        return effects(tool, trusted=self.trusted)

    def retry_safe(self, tool: Tool) -> bool:
        """Tell whether calling ``tool`` twice does no more than once; see `mcpcore.runtime.hints.retry_safe`."""
        return retry_safe(tool, trusted=self.trusted)

    # -- resources, prompts, completion ----------------------------------------------------------------------------

    async def list_resources(self) -> list[Resource]:
        """Return all resources, from all pages. Templates are listed by `list_resource_templates`."""
        resources: list[Resource] = await self._list("resources/list", "resources")
        return resources

    async def list_resource_templates(self) -> list[ResourceTemplate]:
        """Return all resource templates, from all pages."""
        templates: list[ResourceTemplate] = await self._list("resources/templates/list", "resource_templates")
        return templates

    async def read_resource(self, uri: str, *, timeout: Timeout = UNSET) -> ReadResourceResult:
        """Read what stands at ``uri``, which is taken as it is."""
        result: ReadResourceResult = await self._fetch("resources/read", ReadResourceParams(uri), timeout)
        return result

    async def subscribe_resource(self, uri: str) -> None:
        """Have ``notifications/resources/updated`` sent for ``uri`` (legacy); modern servers have `listen`."""
        await self._request("resources/subscribe", SubscribeParams(uri))

    async def unsubscribe_resource(self, uri: str) -> None:
        """End `subscribe_resource`."""
        await self._request("resources/unsubscribe", SubscribeParams(uri))

    async def list_prompts(self) -> list[Prompt]:
        """Return all prompts, from all pages."""
        prompts: list[Prompt] = await self._list("prompts/list", "prompts")
        return prompts

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        timeout: Timeout = UNSET,
    ) -> GetPromptResult:
        """Return a prompt's messages.

        Args:
            name: The prompt's name.
            arguments: Strings, as the protocol has it; other values are refused with `TypeError`.
            timeout: As for `call_tool`.
        """
        given: Mapping[str, Any] = arguments or {}
        wrong = [key for key, value in given.items() if not isinstance(value, str)]
        if wrong:
            raise TypeError(f"prompt arguments are strings; convert {', '.join(map(repr, wrong))} first")
        params = GetPromptParams(name, None if arguments is None else dict(arguments))
        result: GetPromptResult = (await self._request("prompts/get", params, timeout)).result
        return result

    async def complete(
        self,
        ref: PromptReference | ResourceTemplateReference,
        argument: str,
        value: str,
        *,
        context: Mapping[str, str] | None = None,
    ) -> Completion:
        """Ask for completions of an argument.

        Args:
            ref: The prompt or template that it belongs to.
            argument: The argument's name.
            value: What has been typed so far.
            context: Arguments that have been chosen before.
        """
        chosen = CompletionContext(dict(context)) if context else None
        params = CompleteParams(ref, CompletionArgument(argument, value), chosen)
        completion: Completion = (await self._request("completion/complete", params)).result.completion
        return completion

    # -- the rest --------------------------------------------------------------------------------------------------

    async def ping(self, *, timeout: Timeout = UNSET) -> None:
        """Ask for a sign of life. Modern revisions have no ping: ``server/discover`` stands in for it."""
        modern = self.server.era is Era.MODERN
        await self._request("server/discover" if modern else "ping", EmptyParams(), timeout)

    async def set_log_level(self, level: LogLevel) -> None:
        """Ask for log messages at ``level`` and above: of the session (legacy), or of each later request (modern)."""
        if self.server.era is Era.LEGACY:
            await self._request("logging/setLevel", SetLevelParams(level))
        self._log_level = level

    def listen(
        self,
        *,
        tools: bool = False,
        prompts: bool = False,
        resources: bool = False,
        resource_uris: Iterable[str] = (),
    ) -> AbstractAsyncContextManager[Subscription]:
        """Subscribe to changes for as long as the context lasts: ``async with client.listen(tools=True) as changes``.

        Modern servers get a ``subscriptions/listen``. Legacy ones push list changes by themselves; they get a
        ``resources/subscribe`` for each URI.

        Args:
            tools: The list of tools.
            prompts: The list of prompts.
            resources: The list of resources.
            resource_uris: The contents of these resources.

        Raises:
            PeerError: The server refused.
            RequestTimeout: It did not answer in time.
        """
        wanted = SubscriptionFilter(tools or None, prompts or None, resources or None, list(resource_uris) or None)
        return self._subscriptions.open(self._connected(), wanted, self._timeout)

    async def notify_roots_changed(self) -> None:
        """Tell a legacy server that the roots have changed; modern servers ask when they need them."""
        if self.server.era is Era.LEGACY:
            await self._connected().notify("notifications/roots/list_changed")

    async def request(self, method: str, params: Object | None = None, *, timeout: Timeout = UNSET) -> Any:
        """Send any request of the negotiated revision and return its typed result."""
        return (await self._request(method, params, timeout)).result

    async def _request(
        self,
        method: str,
        params: Object | None,
        timeout: Timeout = UNSET,
        on_progress: OnProgress | None = None,
        meta: dict[str, Any] | None = None,
    ) -> Answered:
        report = on_progress or self._on_progress
        answered = await self._connected().request(
            method,
            params,
            timeout=self._timeout if timeout is UNSET else timeout,
            on_progress=None if report is None else _reporter(report),
            meta=meta,
            log_level=self._log_level,
            retry_safe=isinstance(params, CallToolParams) and params.name in self._retry_safe,
        )
        for what in answered.skipped:
            logger.warning("left out of the answer to %s, because it cannot be understood: %s", method, what)
        return answered

    async def _fetch(self, method: str, params: Object, timeout: Timeout = UNSET) -> Any:
        """Make a request whose result may be cached."""
        cache = self.cache
        if cache is None:
            return (await self._request(method, params, timeout)).result
        kept = cache.get(method, params)
        if kept is not None:
            return kept
        epoch = cache.epoch
        answered = await self._request(method, params, timeout)
        if answered.rounds == 1 and not answered.skipped:
            cache.put(method, params, answered.result, answered.raw, epoch)
        return answered.result

    async def _list(self, method: str, member: str) -> list[Any]:
        """Follow all pages. The empty string is a cursor; a cursor that comes twice would never end."""
        try:
            return await self._pages(method, member)
        except PeerError:
            if self.cache is None or not self.cache.drop(method):
                raise
            return await self._pages(method, member)  # a page that was kept had a cursor that is no longer good

    async def _pages(self, method: str, member: str) -> list[Any]:
        items: list[Any] = []
        cursor: str | None = None
        seen: set[str] = set()
        for _ in range(_MOST_PAGES):
            result = await self._fetch(method, PaginatedParams(cursor))
            items += getattr(result, member)
            cursor = result.next_cursor
            if cursor is None:
                return items
            if cursor in seen:
                raise RemoteProtocolError(f"{method}: the server gave the cursor {cursor!r} twice")
            seen.add(cursor)
        raise RemoteProtocolError(f"{method}: more than {_MOST_PAGES} pages")

    def _connected(self) -> Link:
        if self._link is None:
            raise ConnectionLost("the client is not connected: use it inside 'async with'")
        return self._link

    # -- what comes by itself --------------------------------------------------------------------------------------

    def _observe(self, event: Event) -> None:
        if isinstance(event, NotificationReceived | SubscriptionNotified):
            self._notified(event.method.name, event.params)
        self._subscriptions.observe(event, self._connected().lost)

    def _notified(self, method: str, params: Any) -> None:
        if method == "notifications/message":
            if self._on_log is not None:
                self._notices.put(self._on_log, params)
            return
        if method == "notifications/tools/list_changed":
            self._forget_tools()
        if self.cache is not None:
            self.cache.notified(method, params)
        if self._on_notification is not None:
            self._notices.put(self._on_notification, method, params)


def _json(arguments: Mapping[str, Any]) -> Raw:
    """Encode arguments. JSON has no NaN and no infinity, and null in their place would be something else."""
    encoded = msgspec.json.encode(arguments)
    if b"null" in encoded and not _is_finite(arguments):
        raise ValueError("arguments hold NaN or infinity, which JSON does not have")
    return Raw(encoded)


def _is_finite(value: Any) -> bool:
    if isinstance(value, float):
        return value - value == 0
    if isinstance(value, Mapping):
        return all(map(_is_finite, cast(Mapping[str, Any], value).values()))
    return not isinstance(value, list | tuple) or all(map(_is_finite, cast(Sequence[Any], value)))


def _reporter(report: OnProgress) -> Callable[[ProgressReceived], Awaitable[None]]:
    async def relay(event: ProgressReceived) -> None:
        try:
            await call(report, event.progress, event.total, event.message)
        except Exception:
            logger.exception("on_progress failed; the call goes on")

    return relay


def _versions(eras: Sequence[str], pinned: str | None) -> tuple[str, ...]:
    if pinned is not None:
        if pinned not in VERSIONS:
            raise ValueError(f"unknown protocol version {pinned!r}: give one of {', '.join(VERSIONS)}")
        return (pinned,)
    known = {"legacy": LEGACY_VERSIONS, "modern": MODERN_VERSIONS}
    unknown = [era for era in eras if era not in known]
    if unknown or not eras:
        raise ValueError(f"eras={tuple(eras)!r}: give 'modern', 'legacy' or both")
    return tuple(version for era in ("legacy", "modern") if era in eras for version in known[era])


def _own_version() -> str:
    from mcpcore import __version__

    return __version__
