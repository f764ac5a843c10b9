"""One request while a server works on it: what handlers' contexts look through, and the way back to the client."""

import logging
import secrets
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import anyio.from_thread
import anyio.lowlevel
import msgspec
from msgspec import UNSET, Raw

from mcpcore.exceptions import CapabilityError, McpError
from mcpcore.protocol.events import Caller, ErrorReceived, RequestReceived, ResultReceived
from mcpcore.protocol.messages import RequestScope
from mcpcore.protocol.request_state import digest, open_state
from mcpcore.protocol.server import ServerConnection
from mcpcore.providers.markers import Injection, Log, Progress, RequestMeta
from mcpcore.runtime.questions import Question, Wire, missing_capability, wire_of
from mcpcore.types._base import Object
from mcpcore.types.jsonrpc import INTERNAL_ERROR, MISSING_REQUIRED_CLIENT_CAPABILITY
from mcpcore.types.meta import LogLevel
from mcpcore.versions import Era

if TYPE_CHECKING:
    from mcpcore.runtime.server import Server

logger = logging.getLogger("mcpcore.server")

__all__ = ["InputNeeded", "MissingClientCapability", "Request", "Session"]

_NO_SCOPE = RequestScope()


class MissingClientCapability(CapabilityError, McpError):
    """A `CapabilityError` that answers a modern request with -32021 unless the handler catches it."""

    def __init__(self, message: str, required: dict[str, Any]) -> None:
        McpError.__init__(
            self, MISSING_REQUIRED_CLIENT_CAPABILITY, f"Missing required client capability: {message}",
            {"requiredCapabilities": required},
        )  # fmt: skip
        self.required = required


class InputNeeded(BaseException):
    """Ends a modern handler: these questions have no answer yet. The client asks again with the answers.

    A `BaseException`, so that no handler catches it by accident.
    """

    def __init__(self, questions: Mapping[str, Wire], answers: Mapping[str, Raw]) -> None:
        super().__init__("input required")
        self.questions = questions
        self.answers = answers


class Session:
    """What a connection keeps for its handlers, beside the protocol's own state.

    Args:
        server: The server that serves it.
        connection: The protocol's state.
        lifespan: What the server's lifespan yielded.
    """

    driver: Any  # a `Driver` or an `Exchange`; set by the server, which needs the session to make it

    def __init__(self, server: "Server", connection: ServerConnection, lifespan: Any) -> None:
        self.server = server
        self.connection = connection
        self.lifespan = lifespan
        self.state: dict[str, Any] = {}
        self.on_disconnect: list[Callable[[], Any]] = []
        self._thread = threading.get_ident()
        self._loop = anyio.lowlevel.current_token()

    def on_loop(self, function: Callable[[], Any]) -> None:
        """Call ``function`` on the event loop, from whatever thread this is called in."""
        if threading.get_ident() == self._thread:
            function()
        else:
            anyio.from_thread.run_sync(function, token=self._loop)

    def publish(self, method: str, params: Object) -> None:
        """Send a change notification, if the client wants it."""

        def send() -> None:
            self.connection.publish(method, params)
            self.driver.wake_writer()

        self.on_loop(send)

    def disconnected(self) -> None:
        """Call what handlers left for the end of the connection."""
        for callback in self.on_disconnect:
            try:
                callback()
            except Exception:
                logger.exception("an on_disconnect callback failed")


class Request:
    """One request of a client. Made by the server for each; handlers see it through their context."""

    __slots__ = ("_answers", "_asked", "_dependencies", "_meta", "_state", "event", "session")

    def __init__(self, session: Session, event: RequestReceived) -> None:
        self.session = session
        self.event = event
        self._state: dict[str, Any] | None = None
        self._meta: RequestMeta | None = None
        self._answers: dict[str, Raw] | None = None
        self._asked: dict[str, int] = {}
        self._dependencies: dict[Any, Any] | None = None

    # -- facts ---------------------------------------------------------------------------------------------------

    @property
    def scope(self) -> RequestScope:
        return self.event.scope or _NO_SCOPE

    @property
    def caller(self) -> Caller:
        caller = self.event.caller
        assert caller is not None  # only the requests of a client's peer have none
        return caller

    @property
    def meta(self) -> RequestMeta:
        """The request's ``_meta``, decoded when first asked for."""
        if self._meta is None:
            raw = self.event.params.meta
            self._meta = RequestMeta({} if raw is UNSET else msgspec.json.decode(raw))
        return self._meta

    @property
    def state(self) -> dict[str, Any]:
        if self._state is None:
            self._state = {}
        return self._state

    @property
    def target(self) -> str:
        """The name or URI that the request is about, if it has one."""
        named_by = self.event.method.named_by
        return getattr(self.event.params, named_by) if named_by else ""

    @property
    def digest(self) -> str:
        return digest(getattr(self.event.params, "arguments", None))

    @property
    def principal_name(self) -> str | None:
        principal = self.scope.principal
        return None if principal is None else str(principal)

    # -- what providers ask for ----------------------------------------------------------------------------------

    @property
    def dependencies(self) -> dict[Any, Any]:
        """Values that `Depends` made for this request."""
        if self._dependencies is None:
            self._dependencies = {}
        return self._dependencies

    def provide(self, injection: Injection) -> Any:
        """Return the value for an injected parameter."""
        make = self.session.server.injections.get(injection.kind)
        if make is None:
            raise McpError(INTERNAL_ERROR, f"Internal error: nothing provides {injection.kind}")
        return make(self)

    async def ask(self, questions: Mapping[str, Question]) -> dict[str, Any]:
        """Ask the client all of ``questions`` in one round and return the answers by key.

        Legacy: a request each, one after another. Modern: the handler ends here with `InputNeeded`, unless every
        answer is there already, from the client's retry or from earlier rounds.

        Raises:
            CapabilityError: The client cannot be asked that.
        """
        for question in questions.values():
            self.require(question)
        wires = {key: wire_of(question, secrets.token_urlsafe(16)) for key, question in questions.items()}
        if self.caller.era is Era.LEGACY:
            return {key: await self._send(wire) for key, wire in wires.items()}
        known = self._known_answers()
        missing = {key: wire for key, wire in wires.items() if key not in known}
        if missing:
            raise InputNeeded(missing, known)
        return {key: wire.answer(key, known[key]) for key, wire in wires.items()}

    def notify(self, item: Progress | Log) -> None:
        """Send what a generator yielded. It is written when the handler next waits."""
        if isinstance(item, Progress):
            self.progress(item.progress, item.total, item.message)
        else:
            self.log(item.level, item.data, item.logger)
        self.session.driver.wake_writer()

    def notify_from_thread(self, item: Progress | Log) -> None:
        """`notify`, from the worker thread of a ``def`` generator."""
        self.session.on_loop(lambda: self.notify(item))

    # -- what contexts offer -------------------------------------------------------------------------------------

    def key(self, kind: str) -> str:
        """The key of a question that was given none: ``<kind>-<n>`` in call order, equal each time the handler runs."""
        count = self._asked[kind] = self._asked.get(kind, 0) + 1
        return f"{kind}-{count}"

    def require(self, question: Question) -> None:
        """Raise `CapabilityError` when the client did not declare what ``question`` needs."""
        lack = missing_capability(question, self.caller)
        if lack is None and not self.can_ask:
            raise CapabilityError("this server is stateless and cannot ask the clients of legacy revisions")
        if lack is None:
            return
        words, required = lack
        if self.caller.era is Era.MODERN:
            raise MissingClientCapability(words, required)
        info = self.caller.info
        name = "the client" if info is None else f"client '{info.name} {info.version}'"
        raise CapabilityError(f"{name} does not support {words}", required=required)

    @property
    def can_ask(self) -> bool:
        """There is a way back to the client at all: always in the modern era, with a session in the legacy one."""
        return self.caller.era is Era.MODERN or self.session.connection.session is not None

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> bool:
        connection = self.session.connection
        if not connection.is_open(self.event.id):
            return False
        return connection.send_progress(self.event.id, progress, total, message)

    def log(self, level: LogLevel, data: Any, logger: str | None = None) -> bool:
        return self.session.connection.send_log(self.event.id, level, data, logger)

    async def flush(self) -> None:
        await self.session.driver.flush()

    async def send(self, method: str, params: Any) -> Any:
        """Send a request to the client of a legacy session and return its result.

        Raises:
            McpError: The client answered with an error; its text is not passed on.
        """
        driver, connection = self.session.driver, self.session.connection
        answer = await driver.request(lambda: connection.send_request(method, params, related_to=self.event.id))
        if isinstance(answer, ResultReceived):
            return answer.result
        why = answer.error.message if isinstance(answer, ErrorReceived) else "its answer cannot be used"
        raise CapabilityError(f"the client refused {method}: {why}")

    async def _send(self, wire: Wire) -> Any:
        return wire.read(await self.send(wire.method, wire.params))

    def _known_answers(self) -> dict[str, Raw]:
        """Answers of this round and of earlier ones; the state is checked before any of it is believed."""
        if self._answers is None:
            params = self.event.params
            answers: dict[str, Raw] = {}
            if params.request_state is not None:
                answers |= open_state(
                    self.session.server.state_codec,
                    params.request_state,
                    method=self.event.method.name,
                    target=self.target,
                    digest=self.digest,
                    principal=self.principal_name,
                    now=self.session.server.clock(),
                )
            answers |= params.input_responses or {}
            self._answers = answers
        return self._answers
