"""The server's role: handshake, discovery, the era of each request, and what a server may send.

One `ServerConnection` lives as long as the state that it keeps: one for a stdio process, one for a legacy HTTP session,
one for each modern HTTP request. Whether a request is legacy or modern is a property of the request (product rules in
`ServerConnection._receive_request`), so both eras work side by side on one connection.
"""

from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from mcpcore.exceptions import LocalProtocolError
from mcpcore.limits import Limits
from mcpcore.protocol import codec
from mcpcore.protocol._tables import EXCHANGE, SESSION, ExchangeStep, Session, SessionStep, advance
from mcpcore.protocol.connection import Batch, Connection, Inbound, decoder_of, encode_fitted, unknown_method
from mcpcore.protocol.events import Caller, Event, MessageIgnored, RequestReceived, SessionReady
from mcpcore.protocol.messages import Incoming, Kind
from mcpcore.protocol.subscriptions import CHANGES, grant, wants
from mcpcore.types._base import Object
from mcpcore.types.elicitation import ElicitParams
from mcpcore.types.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    PARSE_ERROR,
    UNSUPPORTED_PROTOCOL_VERSION,
    Envelope,
    ErrorData,
    RequestId,
)
from mcpcore.types.lifecycle import (
    ClientCapabilities,
    DiscoverResult,
    EmptyResult,
    Implementation,
    InitializeParams,
    InitializeResult,
    ServerCapabilities,
)
from mcpcore.types.logging import LOG_LEVELS, LogMessageParams, SetLevelParams
from mcpcore.types.meta import PROGRESS_TOKEN, SERVER_INFO, SUBSCRIPTION_ID, LogLevel, RequestMetaObject
from mcpcore.types.methods import Direction, Method, declared, methods_of
from mcpcore.types.resources import ResourceUpdatedParams, SubscribeParams
from mcpcore.types.subscriptions import AcknowledgedParams, SubscriptionFilter
from mcpcore.types.utilities import CancelledParams, EmptyParams, InputRequiredResult
from mcpcore.versions import LATEST_LEGACY, LEGACY_VERSIONS, MODERN_VERSIONS, VERSIONS, Era

__all__ = ["ServerConfig", "ServerConnection"]

_NO_META: Final = RequestMetaObject()
_NO_CAPABILITIES: Final = ClientCapabilities()
_SEVERITY: Final = {level: rank for rank, level in enumerate(LOG_LEVELS)}
_FALLBACK_VERSION: Final = "2025-03-26"
"""The revision of a legacy request that names none (2025-06-18, basic/transports, "Protocol Version Header")."""


@dataclass(frozen=True)
class ServerConfig:
    """What a server is, shared by all its connections.

    Args:
        info: Name, version and so on.
        capabilities: What it offers. A method whose capability is missing does not exist: -32601.
        instructions: For the model; optional.
        versions: The revisions to speak.
        extensions: Further methods, one row each.
        ttl_ms: How long results of cacheable methods stay fresh, in milliseconds, where a result does not say.
        cache_scope: Who may cache them.
        limits: See `Limits`.
    """

    info: Implementation
    capabilities: ServerCapabilities
    instructions: str | None = None
    versions: tuple[str, ...] = VERSIONS
    extensions: tuple[Method, ...] = ()
    ttl_ms: int = 0
    cache_scope: str = "private"
    limits: Limits = field(default_factory=Limits)
    legacy_versions: tuple[str, ...] = field(init=False, repr=False, compare=False)
    modern_versions: tuple[str, ...] = field(init=False, repr=False, compare=False)
    methods: dict[str, dict[str, Method]] = field(init=False, repr=False, compare=False)
    stamp: bytes = field(init=False, repr=False, compare=False)
    cache_stamp: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, known in (("legacy_versions", LEGACY_VERSIONS), ("modern_versions", MODERN_VERSIONS)):
            object.__setattr__(self, name, tuple(version for version in known if version in self.versions))
        served = {version: self._served(version) for version in self.versions}
        object.__setattr__(self, "methods", served)
        info = codec.encode({SERVER_INFO: self.info})
        object.__setattr__(self, "stamp", b'"resultType":"complete","_meta":' + info + b",")
        hints = codec.encode({"ttlMs": self.ttl_ms, "cacheScope": self.cache_scope})
        object.__setattr__(self, "cache_stamp", self.stamp + hints[1:-1] + b",")

    def _served(self, version: str) -> dict[str, Method]:
        rows = methods_of(Direction.TO_SERVER, version, self.extensions)
        return {name: row for name, row in rows.items() if declared(self.capabilities, row.capability)}


_ANY: Final = {row.name: row for version in VERSIONS for row in methods_of(Direction.TO_SERVER, version).values()}
_UNKNOWN: Final = Method("", Direction.TO_SERVER, EmptyParams, EmptyResult, ())


class ServerConnection(Connection):
    """Protocol state of a server's end.

    Args:
        config: What the server is.
        one_shot: The connection carries one modern request and its answer.
        session_version: Makes a connection that is born initialised, in this legacy revision (HTTP without sessions).
    """

    def __init__(self, config: ServerConfig, *, one_shot: bool = False, session_version: str | None = None) -> None:
        super().__init__(config.limits)
        self.config = config
        self._one_shot = one_shot
        self._stateless = session_version is not None
        self._session = Session.NEW if session_version is None else Session.READY
        self._version = session_version or _FALLBACK_VERSION
        self._caller = Caller(None, _NO_CAPABILITIES, self._version, Era.LEGACY)
        self._threshold: LogLevel = "info"
        self._watched: set[str] = set()
        self._subscriptions: dict[RequestId, SubscriptionFilter] = {}
        self._known_meta: tuple[bytes, RequestMetaObject, Caller | None] = (b"", _NO_META, None)

    @property
    def session(self) -> Caller | None:
        """The client of the legacy session; None before ``initialize`` has been answered."""
        return self._caller if self._session >= Session.NEGOTIATED else None

    # -- requests ------------------------------------------------------------------------------------------------

    def _receive_request(
        self, message: Incoming, envelope: Envelope, id: RequestId, batch: Batch | None
    ) -> list[Event]:
        """Find the era of a request and judge it by the rules of that era.

        In this order: ``_meta`` names a version: modern, whatever the method. Else ``initialize``: legacy. Else a
        header names a version that is not legacy: modern, and the missing ``_meta`` is an error. Else legacy.
        """
        name = envelope.method
        row = _ANY.get(name) or self._extension(name) or _UNKNOWN  # type: ignore[arg-type]  # a request has a method
        raw = codec.EMPTY if codec.absent(envelope.params) else envelope.params
        try:
            params = decoder_of(row.params)(raw)
            meta = self._read_meta(params.meta)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return self._refuse_params(message, id, batch, str(name), raw, error)

        if meta.protocol_version is not None and self.config.modern_versions:
            problem = self._judge_modern(meta)
            if problem is not None:
                return [self._reject(problem, message, id, batch)]
            return self._receive_modern(message, id, batch, str(name), params, meta)
        if name == "initialize":
            return self._initialize(message, id, batch, params)
        if self.config.modern_versions and self._header_is_modern(message):
            lack = ErrorData(INVALID_PARAMS, "Invalid params: _meta lacks io.modelcontextprotocol/protocolVersion")
            return [self._reject(lack, message, id, batch)]
        return self._receive_legacy(message, id, batch, str(name), params, meta)

    def _receive_modern(
        self, message: Incoming, id: RequestId, batch: Batch | None, name: str, params: Any, meta: RequestMetaObject
    ) -> list[Event]:
        version = str(meta.protocol_version)
        row = self.config.methods[version].get(name)
        if row is None:
            return [self._reject(unknown_method(name), message, id, batch)]
        if name == "subscriptions/listen" and len(self._subscriptions) >= self._limits.subscriptions:
            error = ErrorData(INTERNAL_ERROR, f"Too many subscriptions: at most {self._limits.subscriptions}")
            return [self._reject(error, message, id, batch)]
        exchange = Inbound(row, version, message.tag, batch)
        exchange.caller = caller = self._caller_of(meta)
        exchange.progress_token = meta.progress_token
        exchange.log_level = meta.log_level
        self._open(id, exchange)
        if name == "server/discover":
            self.send_result(id, self._discovery())
            return []
        return [RequestReceived(id, row, params, caller, meta.progress_token, meta.log_level, message.scope)]

    def _receive_legacy(
        self, message: Incoming, id: RequestId, batch: Batch | None, name: str, params: Any, meta: RequestMetaObject
    ) -> list[Event]:
        if not self.config.legacy_versions:
            text = f"this server speaks {', '.join(self.config.versions)} only: name one in _meta of each request"
            return [self._reject(ErrorData(INVALID_PARAMS, f"Invalid params: {text}"), message, id, batch)]
        served = self.config.methods.get(self._version, {})
        row = served.get(name)
        if row is None:
            return [self._reject(unknown_method(name), message, id, batch)]
        if self._session < Session.NEGOTIATED and name != "ping":
            error = ErrorData(INVALID_REQUEST, f"Invalid Request: {name} came before initialize; send initialize first")
            return [self._reject(error, message, id, batch)]
        exchange = Inbound(row, self._version, message.tag, batch)
        exchange.caller = self._caller
        exchange.progress_token = meta.progress_token
        self._open(id, exchange)
        if name == "ping":
            self.send_result(id, EmptyResult())
            return []
        if isinstance(params, SetLevelParams):
            self._threshold = params.level
            self.send_result(id, EmptyResult())
            return []
        if isinstance(params, SubscribeParams):
            return self._watch(id, name, params.uri)
        return [RequestReceived(id, row, params, self._caller, meta.progress_token, self._threshold, message.scope)]

    def _read_meta(self, raw: Any) -> RequestMetaObject:
        """Decode the reserved members of ``_meta``. A modern client sends the same bytes each time: remember the last.

        Nothing is inferred from an earlier request by that: equal bytes have equal meaning.
        """
        if raw is UNSET:
            return _NO_META
        data = bytes(raw)
        if data == self._known_meta[0]:
            return self._known_meta[1]
        if data == b"null":
            return _NO_META
        meta: RequestMetaObject = decoder_of(RequestMetaObject)(data)
        self._known_meta = (data, meta, None)
        return meta

    def _caller_of(self, meta: RequestMetaObject) -> Caller:
        data, known, caller = self._known_meta
        if known is meta and caller is not None:
            return caller
        capabilities = meta.client_capabilities or _NO_CAPABILITIES
        caller = Caller(meta.client_info, capabilities, str(meta.protocol_version), Era.MODERN)
        if known is meta:
            self._known_meta = (data, meta, caller)
        return caller

    def _judge_modern(self, meta: RequestMetaObject) -> ErrorData | None:
        if meta.client_capabilities is None:
            return ErrorData(INVALID_PARAMS, "Invalid params: _meta lacks io.modelcontextprotocol/clientCapabilities")
        if meta.protocol_version not in self.config.modern_versions:
            return self._unsupported(str(meta.protocol_version))
        return None

    def _refuse_params(
        self, message: Incoming, id: RequestId, batch: Batch | None, name: str, raw: Any, error: Exception
    ) -> list[Event]:
        """Answer parameters that do not decode, by the first thing that is wrong in the order of the era's rules."""
        if not isinstance(error, msgspec.ValidationError):
            problem = ErrorData(PARSE_ERROR, "Parse error: not valid JSON text")
            return [self._reject(problem, message, id, batch)]
        problem = ErrorData(INVALID_PARAMS, f"Invalid params: {error}")
        try:
            meta = self._read_meta(decoder_of(EmptyParams)(raw).meta)
        except msgspec.DecodeError:
            return [self._reject(problem, message, id, batch)]
        if meta.protocol_version is not None and self.config.modern_versions:
            version = meta.protocol_version
            judged = self._judge_modern(meta)
            if judged is not None:
                problem = judged
            elif name not in self.config.methods[version]:
                problem = unknown_method(name)
        elif name != "initialize" and name not in self.config.methods.get(self._version, {}):
            problem = unknown_method(name)
        return [self._reject(problem, message, id, batch)]

    def _header_is_modern(self, message: Incoming) -> bool:
        named = message.headers.get("mcp-protocol-version") if message.headers else None
        return named is not None and named not in LEGACY_VERSIONS

    def _extension(self, name: Any) -> Method | None:
        return next((row for row in self.config.extensions if row.name == name), None)

    # -- opening -------------------------------------------------------------------------------------------------

    def _initialize(
        self, message: Incoming, id: RequestId, batch: Batch | None, params: InitializeParams
    ) -> list[Event]:
        problem = self._judge_initialize(batch, params)
        if problem is not None:
            return [self._reject(problem, message, id, batch)]
        versions = self.config.legacy_versions
        self._version = params.protocol_version if params.protocol_version in versions else versions[-1]
        self._caller = Caller(params.client_info, params.capabilities, self._version, Era.LEGACY)
        if not self._stateless:
            self._session = advance(SESSION, self._session, SessionStep.INITIALIZE)
            self._session = advance(SESSION, self._session, SessionStep.RESULT)
        self._open(id, Inbound(_ANY["initialize"], self._version, message.tag, None))
        config = self.config
        self.send_result(id, InitializeResult(self._version, config.capabilities, config.info, config.instructions))
        return []

    def _judge_initialize(self, batch: Batch | None, params: InitializeParams) -> ErrorData | None:
        if not self.config.legacy_versions:
            return self._unsupported(params.protocol_version)
        if batch is not None:
            return ErrorData(INVALID_REQUEST, "Invalid Request: initialize must not be part of a batch")
        if self._session is not Session.NEW and not self._stateless:
            return ErrorData(INVALID_REQUEST, "Invalid Request: this session is initialized already")
        return None

    def _unsupported(self, requested: str) -> ErrorData:
        """The one error that names our versions; a modern-only server gives it to ``initialize`` too."""
        versions = list(self.config.modern_versions)
        data = {"supported": versions, "requested": requested}
        return ErrorData(UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version", data)

    def _discovery(self) -> DiscoverResult:
        config = self.config
        return DiscoverResult(list(config.modern_versions), config.capabilities, instructions=config.instructions)

    # -- notifications -------------------------------------------------------------------------------------------

    def _incoming_notification(self, method: str) -> Method | None:
        row = _ANY.get(method)
        return row if row is not None and row.result is None else None

    def _notified(self, row: Method, params: Any, message: Incoming) -> list[Event]:
        if row.name != "notifications/initialized":
            return super()._notified(row, params, message)
        if self._session is not Session.NEGOTIATED:
            return [MessageIgnored("notifications/initialized at the wrong time")]
        self._session = advance(SESSION, self._session, SessionStep.INITIALIZED)
        return [SessionReady(self._caller)]

    def _accepts_batches(self) -> bool:
        return self._session >= Session.NEGOTIATED and self._version == "2025-03-26"

    def _unreadable_id(self) -> UnsetType | None:
        return None if self._session >= Session.NEGOTIATED and self._version <= "2025-06-18" else UNSET

    # -- answers -------------------------------------------------------------------------------------------------

    def _encode_result(self, request_id: RequestId, exchange: Inbound, result: Object | Raw) -> bytes:
        if exchange.version <= LATEST_LEGACY:
            return codec.encode_result(request_id, encode_fitted(result, exchange.version))
        config = self.config
        stamp = config.cache_stamp if exchange.method.cacheable else config.stamp
        if type(result) is not Raw:
            meta = getattr(result, "meta", None)
            hints = getattr(result, "ttl_ms", None), getattr(result, "cache_scope", None)
            if meta or hints != (None, None):
                stamp = self._merged_stamp(exchange.method, meta, *hints)
                result = _without(result, "meta", "ttl_ms", "cache_scope")
        return codec.encode_result(request_id, encode_fitted(result, exchange.version), stamp)

    def _merged_stamp(self, row: Method, meta: Any, ttl_ms: int | None, cache_scope: str | None) -> bytes:
        """The stamp for a result that brings ``_meta`` or caching hints of its own; what it does not say is ours."""
        members: dict[str, Any] = {
            "resultType": "complete",
            "_meta": {SERVER_INFO: self.config.info, **(meta or {})},
        }
        if row.cacheable:
            members["ttlMs"] = self.config.ttl_ms if ttl_ms is None else ttl_ms
            members["cacheScope"] = cache_scope or self.config.cache_scope
        return codec.encode(members)[1:-1] + b","

    def send_input_required(self, request_id: RequestId, required: InputRequiredResult) -> None:
        """Answer a modern request by asking for more input.

        An input that the client did not declare is not sent: the answer is -32021 instead (2026-07-28,
        basic/patterns/mrtr, "Server Requirements" 7).

        Raises:
            LocalProtocolError: The request is not open, is legacy, its method does not allow it, or ``required``
                asks for nothing and has no state.
        """
        exchange = self._inbound.get(request_id)
        if exchange is None:
            raise LocalProtocolError(f"request {request_id!r} is not open")
        if exchange.version <= LATEST_LEGACY or not exchange.method.input_required:
            raise LocalProtocolError(f"{exchange.method.name} of {exchange.version} is never answered input_required")
        if not required.input_requests and required.request_state is None:
            raise LocalProtocolError("input_required needs inputRequests or requestState")
        missing = missing_capabilities(required, exchange.caller.capabilities)
        if missing:
            self.send_error(
                request_id,
                ErrorData(
                    MISSING_REQUIRED_CLIENT_CAPABILITY,
                    f"Missing required client capability: {', '.join(missing)}",
                    {"requiredCapabilities": missing},
                ),
            )
            return
        del self._inbound[request_id]
        members = {"resultType": "input_required", "_meta": {SERVER_INFO: self.config.info, **(required.meta or {})}}
        stamp = codec.encode(members)[1:-1] + b","
        data = codec.encode_result(request_id, codec.encode(_without(required, "meta")), stamp)
        self._answer(request_id, exchange, data, Kind.RESPONSE, None)

    # -- what a server sends by itself ---------------------------------------------------------------------------

    def send_log(self, request_id: RequestId | None, level: LogLevel, data: Any, logger: str | None = None) -> bool:
        """Send a log message to the client.

        Args:
            request_id: The request that it belongs to; None for the legacy session as a whole.
            level: Its severity.
            data: Any JSON value.
            logger: Who says it.

        Returns:
            False when nothing was sent: below what the client asked for, or it did not ask, or the request is gone.
        """
        exchange = None if request_id is None else self._inbound.get(request_id)
        if self.config.capabilities.logging is None or (request_id is not None and exchange is None):
            return False
        legacy = exchange is None or exchange.version <= LATEST_LEGACY
        threshold = self._threshold if legacy else exchange.log_level if exchange else None
        if threshold is None or _SEVERITY[level] < _SEVERITY[threshold]:
            return False
        if exchange is None and self._session < Session.NEGOTIATED:
            return False
        version = self._version if exchange is None else exchange.version
        tag = None if exchange is None else exchange.tag
        params = LogMessageParams(level, data, logger)
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
            LocalProtocolError: There is no legacy session, its revision lacks the method, or the client did not
                declare the capability.
        """
        exchange = None if related_to is None else self._inbound.get(related_to)
        caller = self.session
        if caller is None or (exchange is not None and exchange.version > LATEST_LEGACY):
            raise LocalProtocolError(f"{method} needs a legacy session: modern servers never send requests")
        row = methods_of(Direction.TO_CLIENT, self._version).get(method)
        if row is None or row.result is None:
            raise LocalProtocolError(f"revision {self._version} has no request {method} to a client")
        if not declared(caller.capabilities, row.capability):
            raise LocalProtocolError(f"the client did not declare {row.capability}")
        body = encode_fitted(params, self._version)
        id = self._take_id()
        stamped = codec.splice(body, b'"_meta":' + codec.encode({PROGRESS_TOKEN: id})) if progress else body
        tag = None if exchange is None else exchange.tag
        return self._request(row, body, stamped, progress=progress, related_to=related_to, tag=tag, id=id)

    def _queue_cancelled(self, request_id: RequestId, reason: str | None) -> None:
        self._notify("notifications/cancelled", CancelledParams(request_id, reason), self._version, cancels=request_id)

    # -- subscriptions -------------------------------------------------------------------------------------------

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
        exchange = self._inbound.get(request_id)
        if exchange is None or exchange.method.name != "subscriptions/listen":
            raise LocalProtocolError(f"request {request_id!r} is no open subscriptions/listen")
        exchange.state = advance(EXCHANGE, exchange.state, ExchangeStep.ACKNOWLEDGE)
        granted = grant(granted, self.config.capabilities)
        self._subscriptions[request_id] = granted
        self._notify_subscription(
            request_id, exchange, "notifications/subscriptions/acknowledged", AcknowledgedParams(granted)
        )
        return granted

    def publish(self, method: str, params: Object) -> int:
        """Send a change notification to whoever wants it.

        Args:
            method: One of ``notifications/{tools,prompts,resources}/list_changed`` and
                ``notifications/resources/updated``.
            params: Its parameters.

        Returns:
            How many subscriptions (modern) and sessions (legacy) of this connection got it.
        """
        count = 0
        for request_id, granted in self._subscriptions.items():
            if wants(granted, method, params):
                self._notify_subscription(request_id, self._inbound[request_id], method, params)
                count += 1
        if self._session is Session.READY and not self._stateless and self._session_wants(method, params):
            self._notify(method, params, self._version)
            count += 1
        return count

    def end_subscription(self, request_id: RequestId) -> None:
        """End a subscription from this side, gracefully.

        On a shared channel ``notifications/cancelled`` goes first (2026-07-28, basic/patterns/cancellation); where the
        request has a stream of its own, its result and the end of the stream say it. Does nothing when it is not open.
        """
        if self._subscriptions.pop(request_id, None) is None:
            return
        exchange = self._inbound.pop(request_id)
        if exchange.tag is None:
            self._notify("notifications/cancelled", CancelledParams(request_id), exchange.version)
        members = {
            "resultType": "complete",
            "_meta": {SUBSCRIPTION_ID: request_id, SERVER_INFO: self.config.info},
        }
        data = codec.encode_result(request_id, codec.encode(members))
        self._answer(request_id, exchange, data, Kind.RESPONSE, None)

    @property
    def subscriptions(self) -> tuple[RequestId, ...]:
        """The open subscriptions."""
        return tuple(self._subscriptions)

    def _cancelled(self, params: CancelledParams) -> list[Event]:
        if params.request_id is not None:
            self._subscriptions.pop(params.request_id, None)
        return super()._cancelled(params)

    def _notify_subscription(self, request_id: RequestId, exchange: Inbound, method: str, params: Object) -> None:
        stamp = b'"_meta":' + codec.encode({SUBSCRIPTION_ID: request_id})
        self._notify(method, params, exchange.version, stamp=stamp, related_to=request_id, tag=exchange.tag)

    def _session_wants(self, method: str, params: Object) -> bool:
        if isinstance(params, ResourceUpdatedParams):
            return params.uri in self._watched
        return declared(self.config.capabilities, CHANGES[method][1])

    def _watch(self, id: RequestId, method: str, uri: str) -> list[Event]:
        if method == "resources/unsubscribe":
            self._watched.discard(uri)
        elif len(self._watched) >= self._limits.subscriptions:
            text = f"Too many subscriptions: at most {self._limits.subscriptions}"
            self.send_error(id, ErrorData(INTERNAL_ERROR, text))
            return []
        else:
            self._watched.add(uri)
        self.send_result(id, EmptyResult())
        return []


def missing_capabilities(required: InputRequiredResult, capabilities: ClientCapabilities) -> dict[str, Any]:
    """Return what a client must declare, and did not, for these inputs; shaped like `ClientCapabilities`."""
    missing: dict[str, Any] = {}
    for request in (required.input_requests or {}).values():
        if request.method == "elicitation/create":
            mode: Any = decoder_of(ElicitParams)(request.params).mode or "form"
            if not can_elicit(capabilities, mode):
                missing.setdefault("elicitation", {})[mode] = {}
        elif request.method == "roots/list":
            if capabilities.roots is None:
                missing["roots"] = {}
        elif capabilities.sampling is None:
            missing["sampling"] = {}
    return missing


def can_elicit(capabilities: ClientCapabilities, mode: str) -> bool:
    """Tell whether the client elicits in ``mode``. No mode named means form (client/elicitation, "Capabilities")."""
    declared_modes = capabilities.elicitation
    if declared_modes is None:
        return False
    if mode == "url":
        return declared_modes.url is not None
    return declared_modes.form is not None or declared_modes.url is None


def _without(value: Object, *members: str) -> Object:
    """Return ``value`` with these members absent, where it has them."""
    changes = {name: None for name in members if getattr(value, name, None) is not None}
    return msgspec.structs.replace(value, **changes) if changes else value
