"""From a message to its answer: through middleware to a handler, which runs where it belongs, and back."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import msgspec

from mcpcore.exceptions import CapabilityError, InsufficientScope, McpError, ResourceNotFound
from mcpcore.protocol.events import RequestReceived
from mcpcore.providers.registry import Registry
from mcpcore.runtime.audit import AuditLog, is_audited
from mcpcore.runtime.errors import error_of, is_stray, standing
from mcpcore.runtime.lists import LISTS, Lists
from mcpcore.runtime.middleware import Middleware, Next
from mcpcore.runtime.request import InputNeeded, Message, Notification, Request
from mcpcore.runtime.threads import Threads
from mcpcore.types.completion import CompleteParams, CompleteResult, Completion, PromptReference
from mcpcore.types.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, ErrorData
from mcpcore.types.resources import ResourceTemplate
from mcpcore.types.subscriptions import SubscriptionFilter
from mcpcore.types.tools import CallToolResult
from mcpcore.types.utilities import InputRequiredResult
from mcpcore.versions import Era

if TYPE_CHECKING:
    from mcpcore.runtime.server import Server

__all__ = ["Dispatcher"]

logger = logging.getLogger("mcpcore.server")


class Dispatcher:
    """Answers requests with the handlers of a registry.

    Args:
        server: Whose requests these are.
    """

    def __init__(self, server: "Server") -> None:
        self._server = server
        self._registry: Registry = server.registry
        self._limits = server.limits
        self._threads: anyio.lowlevel.RunVar[Threads] = anyio.lowlevel.RunVar("mcpcore threads")
        self._methods: dict[str, Callable[[Request], Awaitable[Any]]] = {
            **dict.fromkeys(LISTS, Lists(server.registry, server.page_size).answer),
            "tools/call": self._call_tool,
            "resources/read": self._read_resource,
            "prompts/get": self._get_prompt,
            "completion/complete": self._complete,
            "subscriptions/listen": self._listen,
        }
        self._chain: Next = self._route
        for middleware in reversed(server.middleware):
            self._chain = _wrapped(middleware, self._chain)
        has_audit = any(isinstance(each, AuditLog) for each in server.middleware)
        self._audited = self._chain if has_audit else _wrapped(AuditLog(), self._chain)

    async def answer(self, request: Request) -> None:
        """Answer ``request``. Raises nothing but cancellation and what ends the process."""
        connection, id = request.session.connection, request.event.id
        try:
            result = await (self._audited if is_audited() else self._chain)(request)
            if connection.is_open(id):
                if result is not None:
                    self._send(request, result)
                elif id not in connection.subscriptions:  # nobody would ever be answered
                    raise TypeError("middleware returned None for a request: return what call_next gives")
        except BaseException as failure:
            error = standing(failure)
            if not (isinstance(error, Exception | InputNeeded) or is_stray(error)):
                raise  # cancellation, or what ends the process
            self._fail(request, error)
        finally:
            request.abandon()

    async def receive(self, notification: Notification) -> None:
        """Show a notification to the middleware. What that raises is logged."""
        try:
            await self._chain(notification)
        except BaseException as failure:
            if not (isinstance(failure, Exception) or is_stray(failure)):
                raise  # cancellation, or what ends the process
            logger.exception("middleware failed at %s", notification.method)

    @property
    def sees_notifications(self) -> bool:
        """There is somebody to show notifications to."""
        return self._chain != self._route

    def may_wait(self, event: RequestReceived) -> bool:
        """Tell whether answering a request may wait for anything; where that is not known, it may."""
        if self._chain != self._route:
            return True
        if event.method.name != "tools/call":
            return event.method.name not in LISTS
        tool = self._registry.find_tool(event.params.name, event.scope.principal if event.scope is not None else None)
        return tool is not None and (not tool.never_waits or _is_surrounded(tool))

    def _send(self, request: Request, result: Any) -> None:
        connection, id = request.session.connection, request.event.id
        if isinstance(result, InputRequiredResult):
            connection.send_input_required(id, result)
        else:
            connection.send_result(id, result)

    def _fail(self, request: Request, error: BaseException) -> None:
        connection, id = request.session.connection, request.event.id
        if not connection.is_open(id):
            return
        try:
            answer = error.required if isinstance(error, InputNeeded) else error_of(request, error)
            if isinstance(answer, ErrorData):
                challenge = error.scopes if isinstance(error, InsufficientScope) else None
                connection.send_error(id, answer, challenge=challenge)
            else:
                connection.send_input_required(id, answer)
        except Exception:  # what it says has no JSON form: others on this connection are not to pay for that
            logger.exception("%s failed with an error that cannot be written: %r", request.method, error)
            connection.send_error(id, ErrorData(INTERNAL_ERROR, "Internal error"))

    # -- one function per method -----------------------------------------------------------------------------------

    async def _route(self, message: Message) -> Any:
        if isinstance(message, Request):
            return await self._methods[message.event.method.name](message)
        return None

    async def _call_tool(self, request: Request) -> Any:
        name = request.event.params.name
        tool = self._registry.find_tool(name, request.principal)
        if tool is None or not tool.is_offered(request.caller.version):
            raise McpError(INVALID_PARAMS, f"Unknown tool: {name}")
        if tool.declaration.scopes and request.principal is not None:
            granted: frozenset[str] = getattr(request.principal, "scopes", frozenset())
            if missing := [scope for scope in tool.declaration.scopes if scope not in granted]:
                raise InsufficientScope(*missing)
        return await self._at_home(self._invoke, tool, request)

    async def _read_resource(self, request: Request) -> Any:
        uri = request.event.params.uri
        found = self._registry.match_resource(uri, request.principal)
        if found is None or not found.is_offered(request.caller.version):
            raise ResourceNotFound(uri)
        return await self._at_home(self._invoke, found, request)

    async def _get_prompt(self, request: Request) -> Any:
        name = request.event.params.name
        prompt = self._registry.find_prompt(name, request.principal)
        if prompt is None or not prompt.is_offered(request.caller.version):
            raise McpError(INVALID_PARAMS, f"Unknown prompt: {name}")
        return await self._at_home(self._invoke, prompt, request)

    async def _complete(self, request: Request) -> Any:
        params: CompleteParams = request.event.params
        handler = self._registry.find_completion(params.ref, params.argument.name, request.principal)
        if handler is not None and handler.is_offered(request.caller.version):
            return await self._at_home(self._run, handler, request)
        ref = params.ref
        if isinstance(ref, PromptReference):
            if self._registry.find_prompt(ref.name, request.principal) is None:
                raise McpError(INVALID_PARAMS, f"Unknown prompt: {ref.name}")
        elif all(each.uri_template != ref.uri for each in self._templates(request)):
            raise McpError(INVALID_PARAMS, f"Unknown resource template: {ref.uri}")
        return CompleteResult(Completion([], 0, False))

    def _templates(self, request: Request) -> Sequence[ResourceTemplate]:
        return self._registry.list("template", request.caller.version, request.principal)

    async def _listen(self, request: Request) -> None:
        """Acknowledge; the subscription stays open without a task until it is cancelled or the server ends it."""
        request.session.connection.acknowledge(request.event.id, self._grantable(request))
        self._server.track(request.session)

    def _grantable(self, request: Request) -> SubscriptionFilter:
        """Leave out resources that are hidden from who asks."""
        wanted: SubscriptionFilter = request.event.params.notifications
        uris, is_hidden = wanted.resource_subscriptions, self._registry.is_hidden
        if not uris:
            return wanted
        shown = [uri for uri in uris if not is_hidden(uri, request.principal)]
        return msgspec.structs.replace(wanted, resource_subscriptions=shown or None)

    # -- running handlers --------------------------------------------------------------------------------------------

    async def _invoke(self, handler: Any, request: Request) -> Any:
        """Run a handler that may ask the client, by `Context` or by returning an `InputRequiredResult` itself."""
        if request.event.params.request_state is not None:
            _ = request.answers  # a state that was not made for this request is refused before the handler sees it
        result = await self._run(handler, request)
        if type(result) is not InputRequiredResult:
            return result
        if request.caller.era is Era.MODERN:
            return request.input_required(result)
        with request.session.driver.cancellable(request.id):
            return await self._run_again(handler, request, result)
        return None  # nobody waits for it any more

    def _at_home(self, run: Callable[[Any, Request], Awaitable[Any]], handler: Any, request: Request) -> Awaitable[Any]:
        """Run a handler with what the servers that it was mounted from have around it."""
        if handler.homes:
            request.home = handler.homes[-1]
            if _is_surrounded(handler):
                return self._surrounded(run, handler, request)
        return run(handler, request)

    async def _surrounded(self, run: Callable[[Any, Request], Awaitable[Any]], handler: Any, request: Request) -> Any:
        async def call(message: Any) -> Any:
            message.home = request.home  # a middleware may have put another message in its place
            return await run(handler, message)

        chain: Next = call
        outer = [self._server.lifespan]
        for server in handler.homes:
            server.lifespan.set_variables(outer)
            outer.append(server.lifespan)
        for server in reversed(handler.homes):
            for middleware in reversed(server.middleware):
                if not isinstance(middleware, AuditLog):  # one record for each call
                    chain = _wrapped(middleware, chain)
        return await chain(request)

    async def _run_again(self, handler: Any, request: Request, result: InputRequiredResult) -> Any:
        """A legacy client cannot be told to ask again: ask it now, and run the handler again with the answers."""
        for _ in range(self._limits.input_rounds):
            try:
                await request.fulfil(result)
            except CapabilityError as error:
                if request.method == "tools/call":
                    return CallToolResult.error(str(error))
                raise
            result = await self._run(handler, request)
            if type(result) is not InputRequiredResult:
                return result
        raise McpError(INTERNAL_ERROR, f"Internal error: input required more than {self._limits.input_rounds} times")

    async def _run(self, handler: Any, request: Request) -> Any:
        """Run a handler where it belongs: async on the event loop, ``def`` in a worker thread unless it said otherwise."""
        params, version = request.event.params, request.caller.version
        request.restart()
        try:
            if handler.timeout is not None:
                with anyio.move_on_after(handler.timeout):
                    return await handler.invoke_async(params, request, version, self.run_sync)
                return handler.timed_out(handler.timeout)
            if handler.direct:
                result: Any = handler.invoke(params, request, version)
                return await result if hasattr(result, "__await__") else result
            return await handler.invoke_async(params, request, version, self.run_sync)
        except BaseException as error:
            if is_stray(standing(error)):
                return handler.crashed(error, version)
            raise

    async def run_sync(self, function: Callable[[], Any]) -> Any:
        """Run a plain function in a worker thread of this server's own; see `Threads.run`."""
        threads = self._threads.get(None)
        if threads is None:  # some for each event loop that the server is used on
            threads = Threads(self._limits.threads)
            self._threads.set(threads)
        return await threads.run(function)

    def dismiss_threads(self) -> None:
        """Nobody uses the server any more on this event loop."""
        threads = self._threads.get(None)
        if threads is not None:
            threads.dismiss()


def _is_surrounded(handler: Any) -> bool:
    """One of the servers that it was mounted from does something around its calls."""
    return any(server.surrounds_calls for server in handler.homes)


def _wrapped(middleware: Middleware, call_next: Next) -> Next:
    async def call(message: Message) -> Any:
        return await middleware(message, call_next)

    return call
