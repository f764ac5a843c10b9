"""From a request to its answer: which handler, where it runs, and what its end means on the wire."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread
from msgspec import UNSET, Raw

from mcpcore.exceptions import CapabilityError, McpError, RemoteProtocolError, ResourceNotFound
from mcpcore.limits import Limits
from mcpcore.protocol.connection import encode_fitted
from mcpcore.protocol.request_state import Claims, seal_state
from mcpcore.providers.registry import Registry
from mcpcore.runtime.request import InputNeeded, Request
from mcpcore.types._base import Object
from mcpcore.types.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND, ErrorData
from mcpcore.types.prompts import ListPromptsResult
from mcpcore.types.resources import ListResourcesResult, ListResourceTemplatesResult
from mcpcore.types.tools import ListToolsResult
from mcpcore.types.utilities import InputRequest, InputRequiredResult
from mcpcore.versions import Era

if TYPE_CHECKING:
    from mcpcore.runtime.server import Server

__all__ = ["Dispatcher", "Middleware", "Next"]

logger = logging.getLogger("mcpcore.server")

Next = Callable[[Request], Awaitable[Any]]
Middleware = Callable[[Request, Next], Awaitable[Any]]
"""Wraps every request that reaches a handler: ``async def m(request, call_next): return await call_next(request)``."""

_LISTS: Final[dict[str, tuple[Any, Callable[..., Object]]]] = {
    # method: (kind in the registry, result type)
    "tools/list": ("tool", ListToolsResult),
    "resources/list": ("resource", ListResourcesResult),
    "resources/templates/list": ("template", ListResourceTemplatesResult),
    "prompts/list": ("prompt", ListPromptsResult),
}


class Dispatcher:
    """Answers requests with the handlers of a registry.

    Args:
        server: Whose requests these are.
    """

    def __init__(self, server: "Server") -> None:
        self._server = server
        self._registry: Registry = server.registry
        self._limits: Limits = server.limits
        self._lists: dict[tuple[str, str, str | None], Raw] = {}
        self._listed = -1
        self._threads: anyio.CapacityLimiter | None = None
        self.abandoned = 0
        self._methods: dict[str, Next] = {
            **dict.fromkeys(_LISTS, self._list),
            "tools/call": self._call_tool,
            "resources/read": self._read_resource,
            "prompts/get": self._get_prompt,
            "completion/complete": self._complete,
            "subscriptions/listen": self._listen,
        }
        self._chain: Next = self._route
        for middleware in reversed(server.middleware):
            self._chain = _wrapped(middleware, self._chain)

    async def answer(self, request: Request) -> None:
        """Answer ``request``. Raises nothing but cancellation and what ends the process."""
        connection, id = request.session.connection, request.event.id
        try:
            result = await self._chain(request)
        except (Exception, InputNeeded, BaseExceptionGroup) as error:  # noqa: BLE001 - every request is answered
            self._fail(request, error)
            return
        if result is not None and connection.is_open(id):
            self._send(request, result)

    def _send(self, request: Request, result: Any) -> None:
        connection, id = request.session.connection, request.event.id
        try:
            if isinstance(result, InputRequiredResult):
                connection.send_input_required(id, result)
            else:
                connection.send_result(id, result)
        except Exception as error:  # noqa: BLE001 - a result that cannot be encoded must still be answered
            self._fail(request, error)

    def _fail(self, request: Request, error: BaseException) -> None:
        """Answer with what ``error`` means. What nobody foresaw is logged and not shown."""
        connection, id = request.session.connection, request.event.id
        if not connection.is_open(id):
            return
        needed = _find(error, InputNeeded)
        if isinstance(needed, InputNeeded):
            connection.send_input_required(id, self._input_required(request, needed))
            return
        connection.send_error(id, self._error_of(request, error))

    def _error_of(self, request: Request, error: BaseException) -> ErrorData:
        known = _find(error, McpError) or _find(error, RemoteProtocolError) or _find(error, ResourceNotFound) or error
        modern = request.caller.era is Era.MODERN
        if isinstance(known, McpError):
            if modern and known.code == RESOURCE_NOT_FOUND:
                return ErrorData(INVALID_PARAMS, known.message, UNSET if known.data is None else known.data)
            return ErrorData(known.code, known.message, UNSET if known.data is None else known.data)
        if isinstance(known, RemoteProtocolError):
            return ErrorData(known.code, known.message)
        if isinstance(known, ResourceNotFound):
            return ErrorData(INVALID_PARAMS if modern else RESOURCE_NOT_FOUND, str(known), {"uri": known.uri})
        if isinstance(known, CapabilityError):
            return ErrorData(INTERNAL_ERROR, f"Internal error: {known}")
        logger.error("%s failed", request.event.method.name, exc_info=error)
        return ErrorData(INTERNAL_ERROR, "Internal error")

    def _input_required(self, request: Request, needed: InputNeeded) -> InputRequiredResult:
        claims = Claims(
            request.event.method.name,
            request.target,
            request.digest,
            request.principal_name,
            self._server.clock() + self._server.state_lifetime,
            dict(needed.answers),
        )
        version = request.caller.version
        asked = {
            key: InputRequest(wire.method, Raw(encode_fitted(wire.params, version)))
            for key, wire in needed.questions.items()
        }
        return InputRequiredResult(asked, seal_state(self._server.state_codec, claims))

    async def _route(self, request: Request) -> Any:
        return await self._methods[request.event.method.name](request)

    # -- one function per method -----------------------------------------------------------------------------------

    async def _list(self, request: Request) -> Object | Raw:
        """Lists are encoded once per revision and page, until something changes."""
        registry, method, version = self._registry, request.event.method, request.caller.version
        cursor = request.event.params.cursor
        if registry.has_visibility:
            return self._page(method.name, version, cursor, request)
        if self._listed != registry.generation:
            self._lists.clear()
            self._listed = registry.generation
        key = method.name, version, cursor
        page = self._lists.get(key)
        if page is None:
            fresh = self._page(method.name, version, cursor, request)
            page = self._lists[key] = Raw(encode_fitted(fresh, version))
        return page

    def _page(self, method: str, version: str, cursor: str | None, request: Request) -> Object:
        kind, result = _LISTS[method]
        items: Sequence[Any] = self._registry.list(kind, version, request.scope.principal)
        size = self._server.page_size
        start = 0 if cursor is None else self._position(cursor, len(items))
        if size is None:
            return result(items[start:])
        more = str(start + size) if start + size < len(items) else None
        return result(items[start : start + size], next_cursor=more)

    @staticmethod
    def _position(cursor: str, total: int) -> int:
        if not cursor.isascii() or not cursor.isdigit() or len(cursor) > 9 or not 0 < int(cursor) < total:
            raise McpError(INVALID_PARAMS, f"Invalid params: unknown cursor {cursor[:64]!r}")
        return int(cursor)

    async def _call_tool(self, request: Request) -> Any:
        name = request.event.params.name
        tool = self._registry.find_tool(name, request.scope.principal)
        if tool is None:
            raise McpError(INVALID_PARAMS, f"Unknown tool: {name}")
        return await self._invoke(tool, request)

    async def _read_resource(self, request: Request) -> Any:
        uri = request.event.params.uri
        found = self._registry.match_resource(uri, request.scope.principal)
        if found is None:
            raise ResourceNotFound(uri)
        return await self._invoke(found, request)

    async def _get_prompt(self, request: Request) -> Any:
        name = request.event.params.name
        prompt = self._registry.find_prompt(name, request.scope.principal)
        if prompt is None:
            raise McpError(INVALID_PARAMS, f"Unknown prompt: {name}")
        return await self._invoke(prompt, request)

    async def _complete(self, request: Request) -> Any:
        params = request.event.params
        handler = self._registry.find_completion(params.ref, params.argument.name)
        return await self._invoke(handler, request)

    async def _listen(self, request: Request) -> None:
        """Acknowledge; the subscription stays open without a task until it is cancelled or the server ends it."""
        request.session.connection.acknowledge(request.event.id, request.event.params.notifications)
        self._server.track(request.session)

    async def _invoke(self, handler: Any, request: Request) -> Any:
        """Run a handler where it belongs: async on the event loop, ``def`` in a worker thread unless it said otherwise."""
        version = request.caller.version
        if handler.timeout is not None:
            return await self._invoke_within(handler, request, handler.timeout)
        if handler.direct:
            result = handler.invoke(request.event.params, request, version)
            return await result if handler.is_async else result
        return await handler.invoke_async(request.event.params, request, version, self.run_sync)

    async def _invoke_within(self, handler: Any, request: Request, seconds: float) -> Any:
        with anyio.move_on_after(seconds):
            return await handler.invoke_async(request.event.params, request, request.caller.version, self.run_sync)
        return handler.timed_out(seconds)

    async def run_sync(self, function: Callable[[], Any]) -> Any:
        """Run a plain function in a worker thread of this server's own.

        When the request is cancelled the thread cannot be stopped: it is abandoned and counted, and its result dropped.
        """
        if self._threads is None:
            self._threads = anyio.CapacityLimiter(self._limits.threads)
        finished = False

        def work() -> Any:
            nonlocal finished
            try:
                return function()
            finally:
                finished = True

        try:
            return await anyio.to_thread.run_sync(work, limiter=self._threads, abandon_on_cancel=True)
        finally:
            if not finished:
                self.abandoned += 1
                logger.warning("abandoned a worker thread that did not end with its request")


def _wrapped(middleware: Middleware, call_next: Next) -> Next:
    async def call(request: Request) -> Any:
        return await middleware(request, call_next)

    return call


def _find(error: BaseException, kind: type[BaseException]) -> BaseException | None:
    """Return ``error``, or the first member of an exception group, that is a ``kind``."""
    if isinstance(error, kind):
        return error
    if isinstance(error, BaseExceptionGroup):
        members: tuple[BaseException, ...] = error.exceptions
        for member in members:
            if (found := _find(member, kind)) is not None:
                return found
    return None
