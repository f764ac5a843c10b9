"""The server's role: handshake, discovery, the era of each request, and what a server may send.

One `ServerConnection` lives as long as the state that it keeps: one for a stdio process, one for a legacy HTTP session,
one for each modern HTTP request. Whether a request is legacy or modern is a property of the request (see
`ServerConnection._receive_request`), so both eras work side by side on one connection.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from mcpcore.exceptions import LocalProtocolError
from mcpcore.protocol import codec
from mcpcore.protocol._tables import EXCHANGE, SESSION, ExchangeStep, Session, SessionStep, advance
from mcpcore.protocol.answers import allowed_error, lacking, missing_capabilities, required_visits
from mcpcore.protocol.connection import NO_BATCHES, Connection, not_open, unknown_method
from mcpcore.protocol.events import Caller, Event, MessageIgnored, RequestReceived, SessionReady
from mcpcore.protocol.exchanges import Batch, Inbound, Outbound
from mcpcore.protocol.fitting import decoder_of, encode_fitted, fitted, take_meta
from mcpcore.protocol.messages import Incoming, Kind, RequestScope
from mcpcore.protocol.mirroring import method_mismatch, mismatch, version_mismatch
from mcpcore.protocol.request_meta import NO_CAPABILITIES
from mcpcore.protocol.server_config import ServerConfig
from mcpcore.protocol.subscriptions import CHANGES, grant, wants
from mcpcore.types._base import Object
from mcpcore.types.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    UNSUPPORTED_PROTOCOL_VERSION,
    Envelope,
    ErrorData,
    RequestId,
)
from mcpcore.types.lifecycle import (
    DiscoverResult,
    EmptyResult,
    InitializeParams,
    InitializeResult,
)
from mcpcore.types.logging import LOG_LEVELS, LogMessageParams, SetLevelParams
from mcpcore.types.meta import (
    PROGRESS_TOKEN,
    SUBSCRIPTION_ID,
    LogLevel,
    RequestMetaObject,
)
from mcpcore.types.methods import Direction, Method, declared, methods_of
from mcpcore.types.resources import ResourceUpdatedParams, SubscribeParams
from mcpcore.types.subscriptions import AcknowledgedParams, SubscriptionFilter
from mcpcore.types.tools import CallToolParams
from mcpcore.types.utilities import CancelledParams, EmptyParams, InputRequiredResult
from mcpcore.versions import LATEST_LEGACY, LEGACY_VERSIONS, VERSIONS, Era

__all__ = ["ServerConfig", "ServerConnection"]

_SEVERITY: Final = {level: rank for rank, level in enumerate(LOG_LEVELS)}
_FALLBACK_VERSION: Final = "2025-03-26"
"""The revision of a legacy request that names none (2025-06-18, basic/transports, "Protocol Version Header")."""
_LACKS_VERSION: Final = ErrorData(INVALID_PARAMS, "Invalid params: _meta lacks io.modelcontextprotocol/protocolVersion")
_LACKS_CAPABILITIES: Final = ErrorData(
    INVALID_PARAMS, "Invalid params: _meta lacks io.modelcontextprotocol/clientCapabilities"
)
LISTEN: Final = "subscriptions/listen"
_LISTEN: Final = methods_of(Direction.TO_SERVER, VERSIONS[-1])[LISTEN]
_CALL_TOOL: Final = methods_of(Direction.TO_SERVER, VERSIONS[-1])["tools/call"]
_UNKNOWN: Final = (Method("", Direction.TO_SERVER, EmptyParams, EmptyResult, ()), decoder_of(EmptyParams))
_BRACE: Final = ord("{")


class ServerConnection(Connection):
    """Protocol state of a server's end.

    Args:
        config: What the server is.
        one_shot: The connection carries one message and its answer, and is closed after that.
        session_version: Makes a connection that is born initialised, in this legacy revision (HTTP without sessions).
    """

    def __init__(self, config: ServerConfig, *, one_shot: bool = False, session_version: str | None = None) -> None:
        super().__init__(config.limits)
        self.config = config
        self._one_shot = one_shot
        self._stateless = session_version is not None
        self._session = Session.NEW if session_version is None else Session.READY
        spoken = config.legacy_versions
        self._version = session_version or (
            _FALLBACK_VERSION if _FALLBACK_VERSION in spoken else max(spoken, default="")
        )
        self._served = config.legacy.get(self._version, {})
        self._caller = Caller(None, NO_CAPABILITIES, self._version, Era.LEGACY)
        self._threshold: LogLevel = "info"
        self._watched: set[str] = set()

    @property
    def session(self) -> Caller | None:
        """The client of the legacy session; None before ``initialize`` has been answered, and without sessions."""
        return self._caller if self._session >= Session.NEGOTIATED and not self._stateless else None

    @property
    def is_closed(self) -> bool:
        """Nothing more will be said: the input has ended, or was one message, and all is answered and handed out."""
        ended = self._input_ended or (self._one_shot and self._has_answered)
        return ended and not self._inbound and not self._outbox

    # -- requests ------------------------------------------------------------------------------------------------

    def _receive_request(
        self, message: Incoming, envelope: Envelope, id: RequestId, batch: Batch | None
    ) -> list[Event]:
        """Find the era of a request and judge it by the rules of that era.

        In this order: ``_meta`` names a version: modern, whatever the method. Else ``initialize``: legacy. Else a
        header names a version that is not legacy: modern, and the missing ``_meta`` is an error. Else legacy.
        Parameters that do not decode are an `ErrorData` from here on: what is wrong by the era's rules comes first.
        """
        name = envelope.method or ""
        raw = codec.EMPTY if envelope.params is UNSET else envelope.params
        row, decode = self.config.requests.get(name, _UNKNOWN)
        try:
            params = decode(raw)
            if row is _CALL_TOOL and params.arguments is not UNSET and memoryview(params.arguments)[0] != _BRACE:
                _refuse_arguments(params)
            meta = self.config.meta.read(params.meta)
        except codec.UNDECODABLE as error:
            if raw is not codec.EMPTY and codec.absent(raw):
                envelope.params = UNSET
                return self._receive_request(message, envelope, id, batch)
            params, meta = ErrorData(INVALID_PARAMS, f"Invalid params: {error}"), self.config.meta.read_signs(raw)

        if meta.protocol_version is not None and self.config.modern_versions:
            return self._receive_modern(message, id, batch, name, params, meta)
        if name == "initialize":
            return self._initialize(message, id, batch, params)
        if self.config.modern_versions and _header_is_modern(message):
            return [self._reject(_LACKS_VERSION, message, id, batch)]
        return self._receive_legacy(message, id, batch, name, params, meta)

    def _receive_modern(
        self, message: Incoming, id: RequestId, batch: Batch | None, name: str, params: Any, meta: RequestMetaObject
    ) -> list[Event]:
        headers = message.headers
        row = self._judge_modern(name, meta, batch, headers)
        if isinstance(row, ErrorData):
            return [self._reject(row, message, id, batch)]
        if isinstance(params, ErrorData):
            return [self._reject(params, message, id, batch)]
        if headers is not None:
            problem = self._judge_mirrored(message, row, params)
            if problem is not None:
                return [self._reject(problem, message, id, batch)]
        caller = self.config.meta.caller_of(meta)
        exchange = Inbound(row, caller.version, message.tag, None, caller, meta.progress_token, meta.log_level)
        if row is _LISTEN:  # neither is ever sent on the stream of a subscription
            exchange.progress_token = exchange.log_level = None
        self._open(id, exchange)
        if name == "server/discover":
            self.send_result(id, self._discovery())
            return []
        return [RequestReceived(id, row, params, caller, meta.progress_token, meta.log_level, message.scope)]

    def _judge_modern(
        self, name: str, meta: RequestMetaObject, batch: Batch | None, headers: Mapping[str, str] | None
    ) -> Method | ErrorData:
        """Judge in the order that the HTTP binding prescribes; without headers only the rest of it is left."""
        version = meta.protocol_version or ""
        if meta.client_capabilities is None:
            return _LACKS_CAPABILITIES
        if headers is not None and (problem := version_mismatch(headers, version)) is not None:
            return problem
        methods = self.config.modern.get(version)
        if methods is None:
            return self._unsupported(version)
        if headers is not None and (problem := method_mismatch(headers, name)) is not None:
            return problem
        if batch is not None:
            return NO_BATCHES
        if name == LISTEN and len(self.subscriptions) >= self._limits.subscriptions:
            return self._too_many_subscriptions()
        return methods.get(name) or unknown_method(name)

    def _judge_mirrored(self, message: Incoming, row: Method, params: Any) -> ErrorData | None:
        find, mirrored = self.config.header_map, None
        if find is not None and row is _CALL_TOOL:
            mirrored = find(params.name, None if message.scope is None else message.scope.principal)
        try:
            return mismatch(message.headers, row, params, mirrored)
        except codec.UNDECODABLE as error:
            return ErrorData(INVALID_PARAMS, f"Invalid params: {error} - in `$.arguments`")

    def _receive_legacy(
        self, message: Incoming, id: RequestId, batch: Batch | None, name: str, params: Any, meta: RequestMetaObject
    ) -> list[Event]:
        row = self._served.get(name)
        if row is None or (self._session < Session.NEGOTIATED and name != "ping"):
            return [self._reject(self._judge_early(name, row, meta), message, id, batch)]
        if isinstance(params, ErrorData):
            return [self._reject(params, message, id, batch)]
        self._open(id, Inbound(row, self._version, message.tag, batch, self._caller, meta.progress_token))
        if name == "ping":
            self.send_result(id, EmptyResult())
            return []
        if isinstance(params, SetLevelParams):
            self._threshold = params.level
            self.send_result(id, EmptyResult())
            return []
        if isinstance(params, SubscribeParams):
            return self._watch(id, name, params.uri, message.scope)
        return [RequestReceived(id, row, params, self._caller, meta.progress_token, self._threshold, message.scope)]

    def _judge_early(self, name: str, row: Method | None, meta: RequestMetaObject) -> ErrorData:
        """Find out what is wrong with a request that no legacy revision has, or not before ``initialize``."""
        config = self.config
        if self._session >= Session.NEGOTIATED:
            return unknown_method(name)
        if not config.legacy_versions:
            text = f"this server speaks {', '.join(config.versions)} only: name one in _meta of each request"
            return ErrorData(INVALID_PARAMS, f"Invalid params: {text}")
        if any(name in methods and (row is None or meta.client_capabilities) for methods in config.modern.values()):
            return _LACKS_VERSION  # no legacy client sends this
        if row is None:
            return unknown_method(name)
        return ErrorData(INVALID_REQUEST, f"Invalid Request: {name} came before initialize; send initialize first")

    # -- opening -------------------------------------------------------------------------------------------------

    def _initialize(self, message: Incoming, id: RequestId, batch: Batch | None, params: Any) -> list[Event]:
        problem = self._judge_initialize(batch, params)
        if problem is not None:
            return [self._reject(problem, message, id, batch)]
        config = self.config
        versions = config.legacy_versions
        self._version = params.protocol_version if params.protocol_version in versions else versions[-1]
        self._served = config.legacy[self._version]
        self._caller = Caller(params.client_info, params.capabilities, self._version, Era.LEGACY)
        if not self._stateless:
            self._session = advance(SESSION, self._session, SessionStep.INITIALIZE)
            self._session = advance(SESSION, self._session, SessionStep.RESULT)
        self._open(id, Inbound(config.requests["initialize"][0], self._version, message.tag))
        self.send_result(id, InitializeResult(self._version, config.capabilities, config.info, config.instructions))
        return []

    def _judge_initialize(self, batch: Batch | None, params: InitializeParams | ErrorData) -> ErrorData | None:
        if not self.config.legacy_versions:
            return self._unsupported("" if isinstance(params, ErrorData) else params.protocol_version)
        if isinstance(params, ErrorData):
            return params
        if batch is not None:
            return ErrorData(INVALID_REQUEST, "Invalid Request: initialize must not be part of a batch")
        if self._session is not Session.NEW and not self._stateless:
            return ErrorData(INVALID_REQUEST, "Invalid Request: this session is initialized already")
        return None

    def _unsupported(self, requested: str) -> ErrorData:
        """The one error that names our versions; a modern-only server gives it to ``initialize`` too."""
        data = {"supported": list(self.config.modern_versions), "requested": requested}
        return ErrorData(UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version", data)

    def _discovery(self) -> DiscoverResult:
        config = self.config
        return DiscoverResult(list(config.modern_versions), config.capabilities, instructions=config.instructions)

    # -- notifications -------------------------------------------------------------------------------------------

    def _incoming_notification(self, method: str) -> Method | None:
        return self.config.notifications.get(method)

    def _notified(self, row: Method, params: Any, message: Incoming) -> list[Event]:
        if row.name != "notifications/initialized":
            return super()._notified(row, params, message)
        if self._session is not Session.NEGOTIATED:
            return [MessageIgnored("notifications/initialized at the wrong time")]
        self._session = advance(SESSION, self._session, SessionStep.INITIALIZED)
        return [SessionReady(self._caller)]

    def _accepts_batches(self) -> bool:
        return self._session >= Session.NEGOTIATED and self._version == "2025-03-26"

    def _refusal(self, id: RequestId | UnsetType, error: ErrorData) -> bytes:
        # Revisions whose schema wants an id get null where there is none, in their sessions.
        wants_id = self._session >= Session.NEGOTIATED and self._version <= "2025-06-18"
        return codec.encode_error(None if id is UNSET and wants_id else id, error)

    def _spoken_version(self) -> str:
        return self._version

    # -- answers -------------------------------------------------------------------------------------------------

    def _encode_result(self, request_id: RequestId, exchange: Inbound, result: Object | Raw) -> bytes:
        if exchange.version <= LATEST_LEGACY:
            return codec.encode_result(request_id, fitted(result, exchange.version))
        if exchange.method is _LISTEN:
            raise LocalProtocolError("a subscription is ended by end_subscription, or refused by send_error")
        return self.config.stamps.encode(request_id, exchange, result)

    def send_error(
        self,
        request_id: RequestId,
        error: ErrorData,
        *,
        challenge: tuple[str, ...] | None = None,
        retry_after: int | None = None,
    ) -> None:
        """Answer a request of the client with an error.

        In the modern era -32042 becomes the `InputRequiredResult` that has taken its place, and codes that a server
        must not send become those that it may (2026-07-28, basic, "Error Codes").

        Args:
            request_id: Of a request that is still open.
            error: Code, message and data.
            challenge: Scopes that the caller lacks, for bindings that can ask for them.
            retry_after: Seconds after which it is worth to try again, for bindings that can say so.

        Raises:
            LocalProtocolError: The request is not open.
            Exception: What msgspec raises for data that has no JSON form. The request stays open.
        """
        exchange = self._inbound.get(request_id) or not_open(request_id)
        if exchange.version > LATEST_LEGACY:
            visits = required_visits(error, exchange.version) if exchange.method.input_required else None
            if visits is not None:
                self.send_input_required(request_id, visits)
                return
            error = allowed_error(error)
        super().send_error(request_id, error, challenge=challenge, retry_after=retry_after)

    def send_input_required(self, request_id: RequestId, required: InputRequiredResult) -> None:
        """Answer a modern request by asking for more input.

        An input that the client did not declare is not sent: the answer is -32021 instead (2026-07-28,
        basic/patterns/mrtr, "Server Requirements" 7).

        Raises:
            LocalProtocolError: The request is not open, is legacy, its method does not allow it, or ``required``
                asks for nothing and has no state, or has malformed parameters.
        """
        exchange = self._inbound.get(request_id) or not_open(request_id)
        if exchange.version <= LATEST_LEGACY or not exchange.method.input_required:
            raise LocalProtocolError(f"{exchange.method.name} of {exchange.version} is never answered input_required")
        if not required.input_requests and required.request_state is None:
            raise LocalProtocolError("input_required needs inputRequests or requestState")
        assert exchange.caller is not None
        missing = missing_capabilities(required, exchange.caller.capabilities)
        if missing:
            text = f"Missing required client capability: {', '.join(missing)}"
            lacks = {"requiredCapabilities": missing}
            self.send_error(request_id, ErrorData(MISSING_REQUIRED_CLIENT_CAPABILITY, text, lacks))
            return
        data = self.config.stamps.encode_input_required(request_id, required)
        self._answer(request_id, exchange, data, Kind.RESPONSE)

    # -- what a server sends by itself ---------------------------------------------------------------------------

    def send_log(
        self,
        request_id: RequestId | None,
        level: LogLevel,
        data: Any,
        logger: str | None = None,
        *,
        meta: dict[str, Any] | None = None,
    ) -> bool:
        """Send a log message to the client.

        Args:
            request_id: The request that it belongs to; None for the legacy session as a whole.
            level: Its severity.
            data: Any JSON value.
            logger: Who says it.
            meta: Members of ``_meta``.

        Returns:
            False when nothing was sent: below what the client asked for, or it did not ask, or the request is gone.
        """
        exchange = None if request_id is None else self._inbound.get(request_id)
        if self.config.capabilities.logging is None or (request_id is not None and exchange is None):
            return False
        if exchange is None and self.session is None:
            return False
        legacy = exchange is None or exchange.version <= LATEST_LEGACY
        threshold = self._threshold if legacy else exchange.log_level if exchange else None
        if threshold is None or _SEVERITY[level] < _SEVERITY[threshold]:
            return False
        version = self._version if exchange is None else exchange.version
        tag = None if exchange is None else exchange.tag
        params = LogMessageParams(level, data, logger, meta)
        self._notify("notifications/message", params, version, related_to=request_id, tag=tag)
        return True

    def send_request(
        self, method: str, params: Object, *, related_to: RequestId | None = None, progress: bool = False
    ) -> RequestId:
        """Send a request to the client of a legacy session.

        Args:
            method: ``ping``, ``sampling/createMessage``, ``roots/list`` or ``elicitation/create``.
            params: Its parameters in the newest shape.
            related_to: The client's request on whose behalf this is sent; HTTP puts it on that one's stream.
            progress: Ask for progress.

        Raises:
            LocalProtocolError: There is no legacy session, its revision lacks the method, the client did not declare
                the capability, or ``related_to`` is not open.
        """
        exchange = None if related_to is None else self._inbound.get(related_to) or not_open(related_to)
        caller = self.session
        if caller is None or (exchange is not None and exchange.version > LATEST_LEGACY):
            raise LocalProtocolError(f"{method} needs a legacy session: modern servers never send requests")
        row = methods_of(Direction.TO_CLIENT, self._version, self.config.extensions).get(method)
        if row is None or row.result is None:
            raise LocalProtocolError(f"revision {self._version} has no request {method} to a client")
        missing = lacking(method, params, caller.capabilities)
        if missing or not declared(caller.capabilities, row.capability):
            raise LocalProtocolError(f"the client did not declare what {method} needs: {missing or row.capability}")
        id = self._take_id()
        params, meta = take_meta(params)
        body = encode_fitted(params, self._version)
        if progress:
            meta = {**meta, PROGRESS_TOKEN: id}
        stamped = codec.splice(body, b'"_meta":' + codec.encode(meta)) if meta else body
        tag = None if exchange is None else exchange.tag
        return self._request(id, Outbound(row, progress=progress), stamped, related_to=related_to, tag=tag)

    # -- subscriptions -------------------------------------------------------------------------------------------

    @property
    def subscriptions(self) -> tuple[RequestId, ...]:
        """The open subscriptions."""
        return tuple(id for id, exchange in self._inbound.items() if exchange.granted is not None)

    def acknowledge(self, request_id: RequestId, granted: SubscriptionFilter) -> SubscriptionFilter:
        """Start a subscription: from now on it gets what `publish` is given.

        Args:
            request_id: Of an open ``subscriptions/listen``.
            granted: What the client may have; what this server cannot deliver is taken out.

        Returns:
            What was granted.

        Raises:
            LocalProtocolError: The request is not open, not a subscription, or acknowledged already.
        """
        exchange = self._inbound.get(request_id) or not_open(request_id)
        if exchange.method is not _LISTEN:
            raise LocalProtocolError(f"request {request_id!r} is no {LISTEN}")
        exchange.state = advance(EXCHANGE, exchange.state, ExchangeStep.ACKNOWLEDGE)
        exchange.granted = granted = grant(granted, self.config.capabilities)
        params = AcknowledgedParams(granted)
        self._notify_subscription(request_id, exchange, "notifications/subscriptions/acknowledged", params)
        return granted

    def publish(self, method: str, params: Object) -> int:
        """Send a change notification to whoever wants it.

        Args:
            method: One of ``notifications/{tools,prompts,resources}/list_changed`` and
                ``notifications/resources/updated``.
            params: Its parameters.

        Returns:
            How many subscriptions (modern) and sessions (legacy) of this connection got it.

        Raises:
            LocalProtocolError: It is another method.
        """
        if method not in CHANGES:
            raise LocalProtocolError(f"{method} is no change notification: give one of {', '.join(CHANGES)}")
        count = 0
        for request_id, exchange in self._inbound.items():
            if exchange.granted is not None and wants(exchange.granted, method, params):
                self._notify_subscription(request_id, exchange, method, params)
                count += 1
        if self._session is Session.READY and not self._stateless and self._session_wants(method, params):
            self._notify(method, params, self._version)
            count += 1
        return count

    def send_notification(self, method: str, params: Object) -> bool:
        """Send a notification to the client of a legacy session.

        Args:
            method: One that changes nothing, such as ``notifications/elicitation/complete``.
            params: Its parameters.

        Returns:
            False when nothing was sent: there is no session that is ready, or its revision lacks the notification.
        """
        row = methods_of(Direction.TO_CLIENT, self._version).get(method)
        if row is None or row.result is not None or self._session is not Session.READY or self._stateless:
            return False
        self._notify(method, params, self._version)
        return True

    def end_subscription(self, request_id: RequestId) -> None:
        """End a subscription from this side, gracefully.

        On a shared channel ``notifications/cancelled`` goes first (2026-07-28, basic/patterns/cancellation); where the
        request has a stream of its own, its result and the end of the stream say it. Does nothing when it is not open.
        """
        exchange = self._inbound.get(request_id)
        if exchange is None or exchange.granted is None:
            return
        if exchange.tag is None:
            self._notify_subscription(request_id, exchange, "notifications/cancelled", CancelledParams(request_id))
        data = self.config.stamps.encode_complete(request_id, {SUBSCRIPTION_ID: request_id})
        self._answer(request_id, exchange, data, Kind.RESPONSE)

    def _notify_subscription(self, request_id: RequestId, exchange: Inbound, method: str, params: Object) -> None:
        meta = {SUBSCRIPTION_ID: request_id}
        self._notify(method, params, exchange.version, meta=meta, related_to=request_id, tag=exchange.tag)

    def _session_wants(self, method: str, params: Object) -> bool:
        if isinstance(params, ResourceUpdatedParams):
            return params.uri in self._watched
        return declared(self.config.capabilities, CHANGES[method][1])

    def _watch(self, id: RequestId, method: str, uri: str, scope: RequestScope | None) -> list[Event]:
        """Subscribe or unsubscribe. Who may not know of a resource is answered as if it never changed."""
        if method == "resources/unsubscribe":
            self._watched.discard(uri)
        elif uri not in self._watched and len(self._watched) >= self._limits.subscriptions:
            self.send_error(id, self._too_many_subscriptions())
            return []
        elif not self.config.is_hidden(uri, None if scope is None else scope.principal):
            self._watched.add(uri)
        self.send_result(id, EmptyResult())
        return []

    def _too_many_subscriptions(self) -> ErrorData:
        return ErrorData(INTERNAL_ERROR, f"Too many subscriptions: at most {self._limits.subscriptions}")


def _refuse_arguments(params: CallToolParams) -> None:
    """Refuse arguments that are no object, except null; the tool's own decoder reads nothing but objects."""
    if not codec.absent(params.arguments):
        raise msgspec.ValidationError("Expected `object` - at `$.arguments`")
    params.arguments = UNSET


def _header_is_modern(message: Incoming) -> bool:
    named = message.headers.get("mcp-protocol-version") if message.headers else None
    return named is not None and named not in LEGACY_VERSIONS
