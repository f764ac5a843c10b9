"""What handlers may ask for by annotating a parameter: `Context`, `SyncContext`, `TransportContext`, `ServerSession`.

All are views on one request. `Context` is for ``async def``, `SyncContext` for ``def`` (in its worker thread);
`TransportContext` only tells and never sends, so it is there in every mode.
"""

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Concatenate, Final, Generic, Literal, ParamSpec, TypedDict, TypeVar, Unpack, cast, overload

import anyio.lowlevel
import msgspec

from mcpcore.exceptions import CapabilityError
from mcpcore.providers.markers import Demand, Elicit, Injection, RequestMeta, Roots, Sample, ToolContext
from mcpcore.runtime.questions import ElicitReply, Question
from mcpcore.runtime.request import Request
from mcpcore.types.lifecycle import ClientCapabilities, Implementation
from mcpcore.types.meta import LogLevel, ProgressToken
from mcpcore.types.roots import Root
from mcpcore.types.sampling import CreateMessageResult, ModelPreferences, SamplingMessage, ToolChoice
from mcpcore.types.tools import Tool
from mcpcore.types.utilities import EmptyParams
from mcpcore.versions import Era

__all__ = ["INJECTIONS", "Context", "SampleOptions", "ServerSession", "SyncContext", "TransportContext"]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_BURST: Final = (
    0.001  # seconds in which a handler may report several things, written together, before others have a turn
)


class SampleOptions(TypedDict, total=False):
    """What may be said beside the messages when a client's model is asked; see `Sample`."""

    system_prompt: str | None
    model_preferences: ModelPreferences | None
    include_context: Literal["none", "thisServer", "allServers"] | None
    temperature: float | None
    stop_sequences: Sequence[str]
    metadata: Mapping[str, Any] | None
    tools: Sequence[Tool]
    tool_choice: ToolChoice | None


class TransportContext(Mapping[str, Any]):
    """Facts about the request that its transport vouches for. Cannot send anything.

    As a mapping it holds ``transport``, ``headers``, ``peer``, ``principal`` and ``session_id``, those that are known.
    """

    __mcpcore_injection__ = Injection("transport_context", Demand.TRANSPORT)

    def __init__(self, request: Request) -> None:
        self._scope = request.scope
        self._id = request.id
        names = ("transport", "headers", "peer", "principal", "session_id")
        known = {name: getattr(self._scope, name) for name in names}
        self._known = {name: value for name, value in known.items() if value is not None}

    @property
    def request_id(self) -> int | str:
        """The id that the client gave the request. No transport vouches for it, so the mapping does not have it."""
        return self._id

    @property
    def transport(self) -> str:
        """The binding: ``stdio``, ``http``, ``sse``, ``memory``, …"""
        return self._scope.transport

    @property
    def headers(self) -> Mapping[str, str]:
        """Header fields, names in lower case; empty where the binding has none."""
        headers: Mapping[str, str] = self._scope.headers or {}
        return headers

    @property
    def principal(self) -> Any:
        """Who calls, as authenticated by the transport; None for anonymous."""
        return self._scope.principal

    @property
    def peer(self) -> str | None:
        """Address of the other end."""
        return self._scope.peer

    @property
    def session_id(self) -> str | None:
        """The id of the legacy HTTP session; None where there is none."""
        return self._scope.session_id

    def __getitem__(self, key: str) -> Any:
        return self._known[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


class _View(Generic[R]):
    """What both contexts tell without waiting. ``R`` is what telling the client gives: something to await, or nothing."""

    def __init__(self, request: Request) -> None:
        self._request = request

    # -- the request -----------------------------------------------------------------------------------------------

    @property
    def request(self) -> Request:
        """The request itself, as middleware sees it."""
        return self._request

    @property
    def request_id(self) -> int | str:
        """The id that the client gave the request."""
        return self._request.id

    @property
    def cancelled(self) -> bool:
        """The client no longer wants the answer. A thread cannot be stopped: look at this in long loops."""
        return not self._request.is_open

    @property
    def progress_token(self) -> ProgressToken | None:
        """The token for progress; None when the client did not ask. ``0`` is a token."""
        return self._request.event.progress_token

    @property
    def wants_progress(self) -> bool:
        """The client asked for progress; use it to skip costly bookkeeping."""
        return self._request.event.progress_token is not None

    @property
    def meta(self) -> RequestMeta:
        """The request's ``_meta``: untrusted data of the caller."""
        return self._request.meta

    @property
    def transport(self) -> TransportContext:
        """What the transport knows: headers, peer, principal."""
        return TransportContext(self._request)

    @property
    def principal(self) -> Any:
        """Who calls, as authenticated by the transport; None for anonymous."""
        return self._request.principal

    @property
    def session_id(self) -> str | None:
        """The id of the legacy HTTP session; None where there is none."""
        return self._request.scope.session_id

    @property
    def client_info(self) -> Implementation | None:
        """How the client describes itself. For display and logs, never for decisions."""
        return self._request.caller.info

    @property
    def client_capabilities(self) -> ClientCapabilities:
        """What the client declared."""
        return self._request.caller.capabilities

    @property
    def protocol_version(self) -> str:
        """The revision of this request."""
        return self._request.caller.version

    # -- what outlives it ------------------------------------------------------------------------------------------

    @property
    def lifespan(self) -> Any:
        """What the server's ``lifespan`` yielded; for a handler that was mounted, that of the server it comes from."""
        return self._request.lifespan

    @property
    def state(self) -> dict[str, Any]:
        """A dictionary for this request, shared by middleware, dependencies and the handler."""
        return self._request.state

    @property
    def session_state(self) -> dict[str, Any]:
        """A dictionary for the legacy session.

        Raises:
            CapabilityError: The request is modern: there are no sessions; pass explicit handles instead.
        """
        if self._request.caller.era is Era.MODERN:
            raise CapabilityError("modern requests have no session: keep state under a handle that the client passes")
        return self._request.session.state

    def on_disconnect(self, callback: Callable[[], Any]) -> None:
        """Call ``callback``, a plain function, when the client has gone away. Raises `TypeError` for an async one.

        That is when its connection or legacy session ends. A modern request over HTTP is a connection of its own.
        """
        self._request.session.on_disconnect(callback)

    # -- asking ----------------------------------------------------------------------------------------------------

    @property
    def can_elicit(self) -> bool:
        """The client can show a form."""
        return self._can(Elicit(""))

    @property
    def can_elicit_url(self) -> bool:
        """The client can send the user to a URL."""
        return self._can(Elicit("", url=""))

    @property
    def can_sample(self) -> bool:
        """The client offers its model."""
        return self._can(Sample(""))

    @property
    def can_roots(self) -> bool:
        """The client offers its folders."""
        return self._can(Roots())

    @property
    def input_responses(self) -> dict[str, Any]:
        """What the client answered to the `InputRequiredResult` that this handler returned, as JSON, by key."""
        return {key: msgspec.json.decode(raw) for key, raw in self._request.answers.items() if key}

    @property
    def request_state(self) -> str | None:
        """The ``request_state`` of that `InputRequiredResult`, unchanged: the client could neither alter nor reuse it."""
        return self._request.own_state

    def _can(self, question: Question) -> bool:
        try:
            self._request.require(question)
        except CapabilityError:
            return False
        return True

    # -- telling ---------------------------------------------------------------------------------------------------

    def progress(
        self,
        progress: float,
        *,
        total: float | None = None,
        message: str | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> R:
        """Report progress. Does nothing when the client did not ask, or when the value has not increased.

        Args:
            progress: How far it is, in the handler's own unit.
            total: How far it goes, in the same unit.
            message: For people.
            meta: Members of the notification's ``_meta``.
        """
        raise NotImplementedError

    def percent(self, percent: float) -> R:
        """Report progress in percent. Raises `ValueError` outside 0 to 100."""
        if not 0 <= percent <= 100:
            raise ValueError(f"{percent} is no percentage: give 0 to 100")
        return self.progress(percent, total=100)

    def log(self, level: LogLevel, data: Any, *, logger: str | None = None, meta: Mapping[str, Any] | None = None) -> R:
        """Send a log message. Does nothing below the level that the client asked for.

        Args:
            level: Its severity.
            data: A text, or any other JSON value.
            logger: Who says it.
            meta: Members of the notification's ``_meta``.

        Raises:
            ValueError: There is no such level, or the message is empty: None, or a text of nothing but spaces.
        """
        raise NotImplementedError

    def debug(self, data: Any, *, logger: str | None = None) -> R:
        """`log` at debug."""
        return self.log("debug", data, logger=logger)

    def info(self, data: Any, *, logger: str | None = None) -> R:
        """`log` at info."""
        return self.log("info", data, logger=logger)

    def notice(self, data: Any, *, logger: str | None = None) -> R:
        """`log` at notice."""
        return self.log("notice", data, logger=logger)

    def warning(self, data: Any, *, logger: str | None = None) -> R:
        """`log` at warning."""
        return self.log("warning", data, logger=logger)

    def error(self, data: Any, *, logger: str | None = None) -> R:
        """`log` at error."""
        return self.log("error", data, logger=logger)

    def critical(self, data: Any, *, logger: str | None = None) -> R:
        """`log` at critical."""
        return self.log("critical", data, logger=logger)


class Context(_View[Awaitable[None]]):
    """The way back to the client for ``async def`` handlers.

    In the modern era `elicit`, `sample`, `roots` and `ask` end the handler unless the answer is there already; the client
    asks again with it, and **the handler runs again from its first line**. What it did before asking happens twice unless
    it asks first. A parameter ``Annotated[T, Elicit("…")]`` is asked for before the body, which then runs once.
    """

    __mcpcore_injection__ = Injection("context", Demand.FULL)

    _rested = float("-inf")  # when others last had their turn, in seconds of the monotonic clock

    async def progress(
        self,
        progress: float,
        *,
        total: float | None = None,
        message: str | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        if self._request.progress(progress, total, message, meta):
            await self._written()

    async def log(
        self, level: LogLevel, data: Any, *, logger: str | None = None, meta: Mapping[str, Any] | None = None
    ) -> None:
        if self._request.log(level, data, logger, meta):
            await self._written()

    async def _written(self) -> None:
        driver = self._request.session.driver
        if time.monotonic() - self._rested < _BURST:
            driver.wake_writer()
            return
        await driver.flush()
        # A handler that only reports would otherwise never let the event loop see a cancellation.
        await anyio.lowlevel.checkpoint()
        self._rested = time.monotonic()

    async def close_stream(self) -> None:
        """End the HTTP response here and go on: the client comes back for the rest (2025-11-25, "Resumability").

        Does nothing where nothing can be resumed.
        """
        close = self._request.scope.close_stream
        if close is not None:
            await close()

    async def ping(self) -> None:
        """Ask the client for a sign of life (legacy).

        Raises:
            CapabilityError: The request is modern: there, servers send no requests.
        """
        if self._request.caller.era is Era.MODERN:
            raise CapabilityError("ping exists in legacy revisions only")
        await self._request.send("ping", EmptyParams())

    @overload
    async def elicit(self, message: str, type: type[T], *, key: str | None = None) -> ElicitReply[T]: ...
    @overload
    async def elicit(
        self, message: str, type: Mapping[str, Any], *, key: str | None = None
    ) -> ElicitReply[dict[str, Any]]: ...
    async def elicit(self, message: str, type: Any, *, key: str | None = None) -> ElicitReply[Any]:
        """Ask the user to fill in a form.

        Args:
            message: What the user reads; a general request where it is empty.
            type: A record whose fields are flat (strings, numbers, booleans, choices), or a JSON Schema.
            key: Names the answer in the modern era, and no other one of the same call; ``elicit-<n>`` in call order
                when None.

        Returns:
            What the user did, with a validated value for ``accept``.

        Raises:
            CapabilityError: The client cannot ask; look at `can_elicit` first to answer in your own words.
            DefinitionError: The form is not flat.
        """
        reply: ElicitReply[Any] = await self._ask("elicit", key, Elicit(message, type=type))
        return reply

    async def elicit_url(
        self, message: str, url: str, *, id: str | None = None, key: str | None = None
    ) -> ElicitReply[None]:
        """Ask the user to visit ``url``, for what must not pass through the client. Since 2025-11-25.

        Args:
            message: What the user reads.
            url: Where to.
            id: Names the visit, for `Server.notify_elicitation_complete`; made up when None.
            key: As for `elicit`.

        Returns:
            Whether the user agreed to go there, not what came of it.
        """
        reply: ElicitReply[None] = await self._ask("elicit", key, Elicit(message, url=url, id=id))
        return reply

    async def sample(
        self,
        messages: str | Sequence[str | SamplingMessage],
        *,
        max_tokens: int = 500,
        key: str | None = None,
        **options: Unpack[SampleOptions],
    ) -> CreateMessageResult:
        """Ask the client's model.

        Args:
            messages: One text of the user, or a conversation.
            max_tokens: Most tokens that the answer may have.
            key: Names the answer in the modern era; ``sample-<n>`` in call order when None.
            options: See `Sample`.

        Raises:
            CapabilityError: The client offers no model.
        """
        question = Sample(messages, max_tokens=max_tokens, **options)
        result: CreateMessageResult = await self._ask("sample", key, question)
        return result

    async def roots(self, *, key: str | None = None) -> list[Root]:
        """Ask which folders the client offers. Raises `CapabilityError` when it offers none."""
        roots: list[Root] = await self._ask("roots", key, Roots())
        return roots

    async def ask(self, /, **questions: Question) -> dict[str, Any]:
        """Ask several things in one round: ``await ctx.ask(who=Elicit("Who?", Person), where=Roots())``.

        Returns:
            The answers by name: `ElicitReply`, `CreateMessageResult`, or a list of `Root`.

        Raises:
            TypeError: Something is no question.
        """
        for name, question in questions.items():
            if not isinstance(question, Elicit | Sample | Roots):  # pyright: ignore[reportUnnecessaryIsInstance]  # a text
                raise TypeError(f"{name}={question!r} is no question: give Elicit(…), Sample(…) or Roots()")
        return await self._request.ask(questions)

    async def _ask(self, kind: str, key: str | None, question: Question) -> Any:
        key = key or self._request.key(kind)
        return (await self._request.ask({key: question}))[key]


class SyncContext(_View[None]):
    """The way back to the client for ``def`` handlers, which run in a worker thread.

    The methods are those of `Context` and block the thread, not the event loop.
    """

    __mcpcore_injection__ = Injection("sync_context", Demand.FULL)

    def _wait(self, method: Callable[Concatenate[Context, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        value = self._request.from_thread(lambda: method(Context(self._request), *args, **kwargs))
        return cast(T, value)

    def progress(
        self,
        progress: float,
        *,
        total: float | None = None,
        message: str | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        if self.wants_progress and not self.cancelled:
            self._wait(Context.progress, progress, total=total, message=message, meta=meta)

    def log(
        self, level: LogLevel, data: Any, *, logger: str | None = None, meta: Mapping[str, Any] | None = None
    ) -> None:
        if not self.cancelled:
            self._wait(Context.log, level, data, logger=logger, meta=meta)

    def ping(self) -> None:
        """See `Context.ping`."""
        self._wait(Context.ping)

    @overload
    def elicit(self, message: str, type: type[T], *, key: str | None = None) -> ElicitReply[T]: ...
    @overload
    def elicit(
        self, message: str, type: Mapping[str, Any], *, key: str | None = None
    ) -> ElicitReply[dict[str, Any]]: ...
    def elicit(self, message: str, type: Any, *, key: str | None = None) -> ElicitReply[Any]:
        """See `Context.elicit`."""
        return self._wait(Context.elicit, message, type, key=key)

    def elicit_url(self, message: str, url: str, *, id: str | None = None, key: str | None = None) -> ElicitReply[None]:
        """See `Context.elicit_url`."""
        return self._wait(Context.elicit_url, message, url, id=id, key=key)

    def sample(
        self,
        messages: str | Sequence[str | SamplingMessage],
        *,
        max_tokens: int = 500,
        key: str | None = None,
        **options: Unpack[SampleOptions],
    ) -> CreateMessageResult:
        """See `Context.sample`."""
        return self._wait(Context.sample, messages, max_tokens=max_tokens, key=key, **options)

    def roots(self, *, key: str | None = None) -> list[Root]:
        """See `Context.roots`."""
        return self._wait(Context.roots, key=key)

    def ask(self, /, **questions: Question) -> dict[str, Any]:
        """See `Context.ask`."""
        return self._wait(Context.ask, **questions)


class ServerSession:
    """The lower level: raw requests to the client of a legacy session.

    A handler that takes it is filtered like one with a context by stateless servers, and is not offered to modern clients,
    who have no sessions; annotated ``ServerSession | None`` it is, and gets None there.
    """

    __mcpcore_injection__ = Injection("session", Demand.SESSION)

    def __init__(self, request: Request) -> None:
        self._request = request

    async def request(self, method: str, params: Any) -> Any:
        """Send a request of the protocol and return its typed result.

        Args:
            method: ``ping``, ``sampling/createMessage``, ``roots/list`` or ``elicitation/create``.
            params: The method's parameter struct.

        Raises:
            CapabilityError: The client has no such method.
            PeerError: It answered with another error.
        """
        return await self._request.send(method, params)


INJECTIONS: Final[dict[str, Callable[[Request], Any]]] = {
    "context": Context,
    "sync_context": SyncContext,
    "transport_context": TransportContext,
    "session": ServerSession,
    "tool_context": lambda request: ToolContext(),
    "meta": lambda request: request.meta,
    "progress_token": lambda request: request.event.progress_token,
}
"""How a server makes the value of each kind of injected parameter."""
