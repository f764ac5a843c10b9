"""What a client sent, while a server works on it: what middleware and handlers' contexts look through."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio
import msgspec
from msgspec import UNSET, Raw

from mcpcore.exceptions import CapabilityError, ConnectionLost, McpError, PeerError, RemoteProtocolError
from mcpcore.protocol.answers import missing_capabilities
from mcpcore.protocol.events import Caller, ErrorReceived, NotificationReceived, RequestReceived, ResultReceived
from mcpcore.protocol.fitting import encode_fitted
from mcpcore.protocol.messages import RequestScope
from mcpcore.providers.markers import Demand, Injection, Log, Progress, RequestMeta
from mcpcore.runtime.conversation import peer_error
from mcpcore.runtime.questions import PARAMS, Question, Wire, missing_capability, wire_of, words_for
from mcpcore.runtime.session import Session
from mcpcore.types.elicitation import ElicitParams
from mcpcore.types.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    RequestId,
)
from mcpcore.types.logging import LOG_LEVELS
from mcpcore.types.meta import LogLevel
from mcpcore.types.utilities import InputRequest, InputRequiredResult
from mcpcore.versions import Era

if TYPE_CHECKING:
    from mcpcore.runtime.server import Server

__all__ = ["InputNeeded", "Message", "MissingClientCapability", "Notification", "Request"]

_NO_SCOPE: Final = RequestScope()
_OWN_STATE: Final = ""  # the key, among the answers in a sealed state, of the state that a handler gave itself


class MissingClientCapability(CapabilityError, McpError):
    """A `CapabilityError` that answers a modern request with -32021 unless the handler catches it."""

    def __init__(self, message: str, required: dict[str, Any]) -> None:
        text = f"Missing required client capability: {message}"
        McpError.__init__(self, MISSING_REQUIRED_CLIENT_CAPABILITY, text, {"requiredCapabilities": required})
        self.required = required


class InputNeeded(BaseException):
    """Ends a modern handler: it has asked what has no answer yet. The client asks again with the answers.

    A `BaseException`, so that no handler catches it by accident.
    """

    def __init__(self, required: InputRequiredResult) -> None:
        super().__init__("input required")
        self.required = required


class Message:
    """A `Request` or a `Notification`: what middleware is given."""

    __slots__ = ("_state", "event", "home", "session")

    event: Any
    home: "Server | None"

    def __init__(self, session: Session, event: RequestReceived | NotificationReceived) -> None:
        self.session = session
        self.event = event
        self.home = None  # the server that the handler was mounted from, once it is known
        self._state: dict[str, Any] | None = None

    @property
    def method(self) -> str:
        """As on the wire: ``tools/call``."""
        name: str = self.event.method.name
        return name

    @property
    def params(self) -> Any:
        """The parameters, as one of the structs in `mcpcore.types`."""
        return self.event.params

    @property
    def scope(self) -> RequestScope:
        """What the transport knows: headers, peer, session."""
        return self.event.scope or _NO_SCOPE

    @property
    def principal(self) -> Any:
        """Who sent it, as authenticated by the transport; None for anonymous."""
        return self.scope.principal

    @property
    def caller(self) -> Caller | None:
        """How the client describes itself; None where it has not done so yet."""
        return self.session.connection.session

    @property
    def lifespan(self) -> Any:
        """What the lifespan yielded of the server that the handler comes from."""
        return self.session.lifespan if self.home is None else self.home.lifespan.value

    @property
    def state(self) -> dict[str, Any]:
        """A dictionary for this message, shared by middleware, dependencies and the handler."""
        if self._state is None:
            self._state = {}
        return self._state


class Notification(Message):
    """A notification of a client."""

    __slots__ = ()

    event: NotificationReceived


class Request(Message):
    """A request of a client. Made by the server for each; handlers see it as ``ctx.request``."""

    __slots__ = ("_answered", "_answers", "_asked", "_is_over", "_meta", "_waiting")

    event: RequestReceived

    def __init__(self, session: Session, event: RequestReceived) -> None:
        super().__init__(session, event)
        self._meta: RequestMeta | None = None
        self._answers: dict[str, Raw] | None = None
        self._asked: dict[str, int] | None = None
        self._answered: set[str] | None = None
        self._is_over = False
        self._waiting: set[anyio.CancelScope] | None = None

    # -- facts ---------------------------------------------------------------------------------------------------

    @property
    def id(self) -> RequestId:
        """The id that the client gave it."""
        return self.event.id

    @property
    def caller(self) -> Caller:
        caller = self.event.caller
        assert caller is not None  # only the requests of a client's peer have none
        return caller

    @property
    def meta(self) -> RequestMeta:
        """The request's ``_meta``: untrusted data of the caller."""
        if self._meta is None:
            raw = self.event.params.meta
            self._meta = RequestMeta({} if raw is UNSET else msgspec.json.decode(raw))
        return self._meta

    @property
    def is_open(self) -> bool:
        """The client still waits for the answer: to this request, not to a later one that has its id."""
        return not self._is_over and self.session.connection.is_open(self.event.id)

    # -- what handlers are given -----------------------------------------------------------------------------------

    def provide(self, injection: Injection) -> Any:
        """Return the value for an injected parameter; None where this request has no way back to its client."""
        server = self.session.server
        self.session.note_loop()
        if injection.demand >= Demand.FULL and not self._has(injection.demand):
            return None
        make = (self.home or server).injections.get(injection.kind)
        if make is None:
            raise McpError(INTERNAL_ERROR, f"Internal error: nothing provides {injection.kind}")
        if injection.subclass is not None and isinstance(make, type):
            make = injection.subclass
        return make(self)

    def _has(self, demand: Demand) -> bool:
        """There is what ``demand`` wants: a way back to the client, or a session."""
        if self.caller.era is Era.MODERN:
            return demand is not Demand.SESSION
        return not self.session.server.is_stateless

    def notify(self, item: Progress | Log) -> None:
        """Send what a generator yielded. It is written when the handler next waits."""
        if isinstance(item, Progress):
            self.progress(item.progress, item.total, item.message, item.meta)
        else:
            self.log(item.level, item.data, item.logger, item.meta)
        self.session.driver.wake_writer()

    def notify_from_thread(self, item: Progress | Log) -> None:
        """`notify`, from the worker thread of a ``def`` generator."""
        self.session.on_loop(lambda: self.notify(item))

    async def shielded(self, close: Callable[[], Awaitable[Any]]) -> None:
        """Await ``close()`` although the handler has been cancelled, for as long as open requests get to finish."""
        with anyio.move_on_after(self.session.server.limits.drain, shield=True):
            await close()

    def progress(
        self,
        progress: float,
        total: float | None = None,
        message: str | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> bool:
        """Queue progress. Returns whether it is worth writing."""
        if not self.is_open:
            return False
        own = dict(meta) if meta else None
        return self.session.connection.send_progress(self.event.id, progress, total, message, meta=own)

    def log(self, level: LogLevel, data: Any, logger: str | None = None, meta: Mapping[str, Any] | None = None) -> bool:
        """Queue a log message. Returns whether the client wants it.

        Raises:
            ValueError: The level does not exist, or the message is empty; whatever the client wants, so that it is found.
        """
        if level not in LOG_LEVELS:
            raise ValueError(f"there is no log level {level!r}: use {', '.join(LOG_LEVELS)}")
        if data is None or (isinstance(data, str) and not data.strip()):
            raise ValueError("an empty log message says nothing: give it a text, or other JSON")
        if self._is_over:
            return False
        own = dict(meta) if meta else None
        return self.session.connection.send_log(self.event.id, level, data, logger, meta=own)

    # -- asking the client -----------------------------------------------------------------------------------------

    def restart(self) -> None:
        """The handler runs from its first line, for the first time or again: it asks its questions from the first one."""
        self._asked = self._answered = None

    def key(self, kind: str) -> str:
        """The key of a question that was given none: ``<kind>-<n>`` in call order, equal each time the handler runs."""
        if self._asked is None:
            self._asked = {}
        count = self._asked[kind] = self._asked.get(kind, 0) + 1
        return f"{kind}-{count}"

    async def ask(self, questions: Mapping[str, Question]) -> dict[str, Any]:
        """Ask the client all of ``questions`` in one round and return the answers by key.

        Legacy: a request each, one after another. Modern: the handler ends here with `InputNeeded`, unless every
        answer is there already, from the client's retry or from earlier rounds.

        Raises:
            CapabilityError: The client cannot be asked that.
            PeerError: It answered with an error (legacy).
            McpError: What it answered does not fit the question (modern).
            InvalidValue: The same (legacy).
            ConnectionLost: The request is over.
            ValueError: A key has been used before, for a question that has been answered.
        """
        self._require_open()
        answered = self._answered = self._answered or set()
        if reused := answered & questions.keys():
            raise ValueError(
                f"{min(reused)!r} is the key of two questions: the second would get the answer to the first"
            )
        for question in questions.values():
            self.require(question)
        version = self.caller.version
        wires = {key: wire_of(question, version) for key, question in questions.items()}
        if self.caller.era is Era.LEGACY:
            read = {key: wire.read(await self.send(wire.method, wire.params)) for key, wire in wires.items()}
            answered.update(read)
            return read
        answers = self.answers
        missing = {key: _input_request(wire, version) for key, wire in wires.items() if key not in answers}
        if missing:
            raise InputNeeded(self.input_required(InputRequiredResult(missing)))
        answered.update(wires)
        return {key: wire.answer(key, answers[key]) for key, wire in wires.items()}

    def require(self, question: Question) -> None:
        """Raise `CapabilityError` when ``question`` cannot be put to the client."""
        missing = missing_capability(question, self.caller)
        if missing:
            raise self._lacking(missing)
        self._require_way_back()

    def _require_open(self) -> None:
        if self._is_over:
            raise ConnectionLost("the request that asks has been answered or cancelled")

    def _require_way_back(self) -> None:
        if self.caller.era is Era.MODERN:
            return
        if self.session.server.is_stateless:
            raise CapabilityError("this server is stateless and cannot ask the clients of legacy revisions")
        if not self.session.driver.has_way_back(self.event.id):
            raise CapabilityError("the client takes one answer to this request and no questions before it")

    def _lacking(self, missing: dict[str, Any]) -> CapabilityError:
        words = words_for(missing)
        if self.caller.era is Era.MODERN:
            return MissingClientCapability(words, missing)
        info = self.caller.info
        name = "the client" if info is None else f"client '{info.name} {info.version}'"
        return CapabilityError(f"{name} does not support {words}", required=missing)

    async def send(self, method: str, params: Any) -> Any:
        """Send a request to the client of a legacy session and return its result.

        Raises:
            CapabilityError: The client has no such method.
            PeerError: It answered with another error, or with something that cannot be used.
            ConnectionLost: The connection ended first.
        """
        driver, connection = self.session.driver, self.session.connection
        self._require_open()
        if isinstance(params, ElicitParams) and params.elicitation_id is not None:
            self.session.visits(params.elicitation_id)
        answer = await driver.request(lambda: connection.send_request(method, params, related_to=self.event.id))
        if isinstance(answer, ResultReceived):
            return answer.result
        if not isinstance(answer, ErrorReceived):
            raise PeerError(INVALID_REQUEST, f"the client's answer to {method} cannot be used")
        if answer.error.code == METHOD_NOT_FOUND:
            raise CapabilityError(f"the client has no method {method}")
        raise peer_error(answer.error)

    # -- rounds ----------------------------------------------------------------------------------------------------

    @property
    def answers(self) -> dict[str, Raw]:
        """What the client has answered so far, by key. The sealed state is checked before any of it is believed.

        Raises:
            McpError: -32602, the state cannot be used.
        """
        if self._answers is None:
            params = self.event.params
            answers: dict[str, Raw] = {}
            if params.request_state is not None:
                from mcpcore.protocol.request_state import open_state

                server, binding = self.session.server, self._binding()
                try:
                    answers = open_state(server.state_codec, params.request_state, now=server.clock(), **binding)
                except RemoteProtocolError as error:
                    raise McpError(error.code, error.message) from None
            answers |= params.input_responses or {}
            self._answers = answers
        return self._answers

    @property
    def own_state(self) -> str | None:
        """The ``requestState`` that the handler itself gave in the round before."""
        raw = self.answers.get(_OWN_STATE)
        return None if raw is None else msgspec.json.decode(raw, type=str)

    def input_required(self, wanted: InputRequiredResult) -> InputRequiredResult:
        """Return ``wanted`` with a sealed state, which holds the answers of earlier rounds and the handler's own."""
        # Imported at first use, as everywhere here: see `Server.state_codec`.
        from mcpcore.protocol.request_state import Claims, seal_state

        server = self.session.server
        answers = {key: answer for key, answer in self.answers.items() if key != _OWN_STATE}
        if wanted.request_state is not None:
            answers[_OWN_STATE] = Raw(msgspec.json.encode(wanted.request_state))
        claims = Claims(**self._binding(), expires=server.clock() + server.state_lifetime, answers=answers)
        return msgspec.structs.replace(wanted, request_state=seal_state(server.state_codec, claims))

    async def fulfil(self, wanted: InputRequiredResult) -> None:
        """Gather from the client of a legacy session what a handler wants that returned ``wanted``, for its next run.

        Raises:
            CapabilityError: The client cannot be asked that.
        """
        requests = wanted.input_requests or {}
        if missing := missing_capabilities(wanted, self.caller.capabilities):
            raise self._lacking(missing)
        self._require_way_back()
        answers = dict(self.answers)
        for key, each in requests.items():
            params: Any = msgspec.json.decode(b"{}" if each.params is UNSET else each.params, type=PARAMS[each.method])
            if isinstance(params, ElicitParams) and params.url is not None and params.elicitation_id is None:
                params.elicitation_id = key
            answers[key] = Raw(msgspec.json.encode(await self.send(each.method, params)))
        answers.pop(_OWN_STATE, None)
        if wanted.request_state is not None:
            answers[_OWN_STATE] = Raw(msgspec.json.encode(wanted.request_state))
        self._answers = answers

    def _binding(self) -> dict[str, Any]:
        """What a state is bound to, so that it is good for nothing else."""
        from mcpcore.protocol.request_state import digest

        event, principal = self.event, self.principal
        named_by = event.method.named_by
        return {
            "method": event.method.name,
            "target": getattr(event.params, named_by) if named_by else "",
            "digest": digest(getattr(event.params, "arguments", None)),
            "principal": None if principal is None else str(principal),
        }

    # -- threads ---------------------------------------------------------------------------------------------------

    def from_thread(self, wait: Callable[[], Any]) -> Any:
        """Await ``wait()`` on the event loop for a handler in a worker thread, until the request is cancelled.

        Raises:
            RuntimeError: The handler runs on the event loop, which would wait for itself.
            ConnectionLost: The client has cancelled the request.
        """
        if self.session.is_on_loop:
            raise RuntimeError(
                "SyncContext waits, and this def runs on the event loop: leave out thread=False, or make it async def"
            )

        async def attempt() -> Any:
            with self._until_cancelled():
                return await wait()
            raise ConnectionLost("the client has cancelled the request")

        return self.session.run_on_loop(attempt)

    @contextmanager
    def _until_cancelled(self) -> Any:
        with anyio.CancelScope() as scope:
            if not self.is_open:
                scope.cancel()
            self._waiting = self._waiting or set()
            self._waiting.add(scope)
            try:
                yield
            finally:
                self._waiting.discard(scope)

    def abandon(self) -> None:
        """The request is over: what still works for it must neither wait for the client any more nor speak to it."""
        self._is_over = True
        for scope in self._waiting or ():
            scope.cancel()


def _input_request(wire: Wire, version: str) -> InputRequest:
    return InputRequest(wire.method, Raw(encode_fitted(wire.params, version)))
