"""The client's role: opening, stamping requests, telling answers apart, and what the server may ask.

A `ClientConnection` is told to `negotiate` first. Until `VersionNegotiated` comes, requests may not be sent.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct

from mcpcore.exceptions import LocalProtocolError
from mcpcore.limits import Limits
from mcpcore.protocol import codec
from mcpcore.protocol.connection import (
    Batch,
    Connection,
    Inbound,
    Outbound,
    decoder_of,
    encode_fitted,
    unknown_method,
)
from mcpcore.protocol.events import (
    Event,
    InputRequired,
    MessageIgnored,
    NegotiationFailed,
    NotificationReceived,
    RequestReceived,
    ServerFacts,
    SubscriptionAcknowledged,
    SubscriptionEnded,
    SubscriptionNotified,
    VersionNegotiated,
)
from mcpcore.protocol.messages import Incoming
from mcpcore.protocol.negotiation import Discover, Fail, Initialize, Settled, Step, VersionNegotiator
from mcpcore.types._base import Object
from mcpcore.types.jsonrpc import INVALID_PARAMS, Envelope, ErrorData, RequestId
from mcpcore.types.lifecycle import (
    ClientCapabilities,
    DiscoverResult,
    EmptyResult,
    Implementation,
    InitializeParams,
    InitializeResult,
)
from mcpcore.types.meta import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    LOG_LEVEL,
    PROGRESS_TOKEN,
    PROTOCOL_VERSION,
    SERVER_INFO,
    SUBSCRIPTION_ID,
    LogLevel,
)
from mcpcore.types.methods import Direction, Method, declared, methods_of
from mcpcore.types.subscriptions import AcknowledgedParams, ListenParams, SubscriptionFilter
from mcpcore.types.utilities import CancelledParams, InputRequest, NotificationParams
from mcpcore.versions import LATEST_LEGACY, VERSIONS, Era

__all__ = ["ClientConfig", "ClientConnection"]


@dataclass(frozen=True)
class ClientConfig:
    """What a client is.

    Args:
        info: Name, version and so on.
        capabilities: What the server may ask for.
        versions: The revisions to speak.
        extensions: Further methods, one row each.
        limits: See `Limits`.
    """

    info: Implementation
    capabilities: ClientCapabilities = field(default_factory=ClientCapabilities)
    versions: tuple[str, ...] = VERSIONS
    extensions: tuple[Method, ...] = ()
    limits: Limits = field(default_factory=Limits)


class _Head(Struct, rename="camel"):
    """The members of a modern result that say how to read the rest."""

    result_type: str = "complete"
    input_requests: dict[str, InputRequest] | None = None
    request_state: str | None = None


class _ServerMeta(Struct):
    info: Implementation | None = msgspec.field(name=SERVER_INFO, default=None)


class _Identified(Struct):
    meta: _ServerMeta | None = msgspec.field(name="_meta", default=None)


_DISCOVER: Final = methods_of(Direction.TO_SERVER, VERSIONS[-1])["server/discover"]
_INITIALIZE: Final = methods_of(Direction.TO_SERVER, LATEST_LEGACY)["initialize"]


class ClientConnection(Connection):
    """Protocol state of a client's end."""

    def __init__(self, config: ClientConfig) -> None:
        super().__init__(config.limits)
        self.config = config
        self.server: ServerFacts | None = None
        self._negotiator = VersionNegotiator(config.versions)
        self._opening: RequestId | None = None
        self._outgoing: Mapping[str, Method] = {}
        self._incoming: Mapping[str, Method] = {}
        self._meta = b""
        self._listening: dict[RequestId, bool] = {}

    # -- opening -------------------------------------------------------------------------------------------------

    def negotiate(self) -> None:
        """Queue the first message of opening: ``server/discover``, or ``initialize`` for a legacy-only client.

        Raises:
            LocalProtocolError: It has been called before.
        """
        if self._opening is not None or self.server is not None:
            raise LocalProtocolError("negotiate() is called once")
        self._take(self._negotiator.start())

    def probe_timed_out(self) -> list[Event]:
        """Take note that ``server/discover`` was not answered in time. Does nothing once it has been."""
        opening = self._outbound.get(self._opening) if self._opening is not None else None
        if opening is None or opening.method is not _DISCOVER:
            return []
        del self._outbound[self._opening]  # type: ignore[arg-type]  # it was found under this key
        return self._take(self._negotiator.discover_failed(None))

    @property
    def is_probing(self) -> bool:
        """``server/discover`` has been sent and not been answered."""
        opening = self._outbound.get(self._opening) if self._opening is not None else None
        return opening is not None and opening.method is _DISCOVER

    def _take(self, step: Step) -> list[Event]:
        if isinstance(step, Discover):
            meta = b'"_meta":' + codec.encode(self._base_meta(step.version))
            self._opening = self._request(_DISCOVER, codec.EMPTY, codec.splice(codec.EMPTY, meta))
        elif isinstance(step, Initialize):
            params = InitializeParams(step.version, self.config.capabilities, self.config.info)
            body = encode_fitted(params, step.version)
            self._opening = self._request(_INITIALIZE, body, body)
        elif isinstance(step, Fail):
            self._opening = None
            return [NegotiationFailed(step.reason, step.error)]
        return []

    def _opened(self, exchange: Outbound, raw: Raw) -> list[Event]:
        if exchange.method is _DISCOVER:
            try:
                found: DiscoverResult = decoder_of(DiscoverResult)(raw)
            except msgspec.DecodeError:
                # No modern server answers like this; some legacy ones answer anything.
                return self._take(self._negotiator.discover_failed(ErrorData(INVALID_PARAMS, "not a discovery")))
            step = self._negotiator.discovered(found.supported_versions)
            if not isinstance(step, Settled):
                return self._take(step)
            facts = ServerFacts(_identity(raw), found.capabilities, found.instructions, step.version, Era.MODERN)
            return self._settle_version(facts)
        try:
            answer: InitializeResult = decoder_of(InitializeResult)(raw)
        except msgspec.DecodeError as error:
            self._opening = None
            return [NegotiationFailed(f"the answer to initialize cannot be used: {error}")]
        step = self._negotiator.initialized(answer.protocol_version)
        if not isinstance(step, Settled):
            return self._take(step)
        facts = ServerFacts(answer.server_info, answer.capabilities, answer.instructions, step.version, Era.LEGACY)
        events = self._settle_version(facts)
        self._notify("notifications/initialized", NotificationParams(), step.version)
        return events

    def _settle_version(self, facts: ServerFacts) -> list[Event]:
        self.server = facts
        self._opening = None
        self._outgoing = methods_of(Direction.TO_SERVER, facts.version, self.config.extensions)
        self._incoming = methods_of(Direction.TO_CLIENT, facts.version, self.config.extensions)
        self._meta = codec.encode(self._base_meta(facts.version))
        return [VersionNegotiated(facts)]

    def _base_meta(self, version: str) -> dict[str, Any]:
        return {
            PROTOCOL_VERSION: version,
            CLIENT_INFO: _fitted(self.config.info, version),
            CLIENT_CAPABILITIES: _fitted(self.config.capabilities, version),
        }

    # -- requests of ours ----------------------------------------------------------------------------------------

    def send_request(
        self,
        method: str,
        params: Object | None = None,
        *,
        meta: dict[str, Any] | None = None,
        progress: bool = False,
        log_level: LogLevel | None = None,
    ) -> RequestId:
        """Queue a request.

        Args:
            method: One that the negotiated revision has.
            params: Its parameters in the newest shape.
            meta: Members for ``_meta``; reserved ones are the core's.
            progress: Ask for progress notifications.
            log_level: Ask for log messages of this request (modern); legacy sessions use ``logging/setLevel``.

        Raises:
            LocalProtocolError: Nothing has been negotiated, or the revision or the server lacks the method.
        """
        body = codec.EMPTY if params is None else encode_fitted(params, self._negotiated().version)
        return self._send(self._method(method), body, b"", meta, progress, log_level)

    def retry(self, required: InputRequired, responses: dict[str, Object], *, progress: bool = False) -> RequestId:
        """Ask again with the inputs that the server wanted: a new request with a new id.

        Args:
            required: The interim answer; its state is sent back as it came.
            responses: A result for each of its ``input_requests``, by key.
            progress: Ask for progress notifications.
        """
        version = self._negotiated().version
        members: list[bytes] = []
        if responses:
            fitted = {key: Raw(encode_fitted(response, version)) for key, response in responses.items()}
            members.append(b'"inputResponses":' + codec.encode(fitted))
        if required.request_state is not None:
            members.append(b'"requestState":' + codec.encode(required.request_state))
        return self._send(self._method(required.method), required.params, b",".join(members), None, progress, None)

    def listen(self, wanted: SubscriptionFilter) -> RequestId:
        """Open a subscription (modern). `SubscriptionAcknowledged` tells what was granted; `cancel` ends it."""
        id = self.send_request("subscriptions/listen", ListenParams(wanted))
        self._listening[id] = False
        return id

    def send_notification(self, method: str, params: Object | None = None) -> None:
        """Queue a notification. Modern servers get none but ``notifications/cancelled``, which `cancel` sends.

        Raises:
            LocalProtocolError: Nothing has been negotiated, or the revision lacks the notification.
        """
        row = self._method(method, notification=True)
        self._notify(row.name, NotificationParams() if params is None else params, self._negotiated().version)

    def _send(
        self,
        row: Method,
        body: bytes,
        members: bytes,
        meta: dict[str, Any] | None,
        progress: bool,
        log_level: LogLevel | None,
    ) -> RequestId:
        id = self._take_id()
        stamps = [members] if members else []
        extra = dict(meta or {})
        if progress:
            extra[PROGRESS_TOKEN] = id
        modern = self._negotiated().era is Era.MODERN
        if modern and log_level is not None:
            extra[LOG_LEVEL] = log_level
        if modern:
            known = codec.splice(codec.encode(extra), self._meta[1:-1]) if extra else self._meta
            stamps.append(b'"_meta":' + known)
        elif extra:
            stamps.append(b'"_meta":' + codec.encode(extra))
        return self._request(row, body, codec.splice(body, *stamps), progress=progress, id=id)

    def _method(self, name: str, *, notification: bool = False) -> Method:
        server = self._negotiated()
        row = self._outgoing.get(name)
        if row is None or (row.result is None) is not notification:
            kind = "notification" if notification else "request"
            raise LocalProtocolError(f"revision {server.version} has no {kind} {name} to a server")
        if not declared(server.capabilities, row.capability) and not _undeclared_is_fine(name, server.version):
            raise LocalProtocolError(f"the server did not declare {row.capability}, which {name} needs")
        return row

    def _negotiated(self) -> ServerFacts:
        if self.server is None:
            raise LocalProtocolError("nothing has been negotiated yet: call negotiate() and wait for VersionNegotiated")
        return self.server

    def cancel(self, request_id: RequestId, reason: str | None = None) -> None:
        """Withdraw a request of ours. ``initialize`` is never cancelled (2025-11-25, basic/utilities/cancellation)."""
        self._listening.pop(request_id, None)
        if request_id == self._opening:
            self._outbound.pop(request_id, None)
            return
        super().cancel(request_id, reason)

    def _queue_cancelled(self, request_id: RequestId, reason: str | None) -> None:
        params = CancelledParams(request_id, reason)
        self._notify("notifications/cancelled", params, self._negotiated().version, cancels=request_id)

    # -- answers -------------------------------------------------------------------------------------------------

    def _result_received(self, id: RequestId, exchange: Outbound, raw: Raw) -> list[Event]:
        if id == self._opening:
            del self._outbound[id]
            return self._opened(exchange, raw)
        if self._negotiated().era is Era.LEGACY:
            return [self._typed_result(id, exchange, raw)]
        if id in self._listening:
            del self._outbound[id], self._listening[id]
            return [SubscriptionEnded(id, graceful=True)]
        try:
            head = decoder_of(_Head)(raw)
        except msgspec.DecodeError as error:
            return [self._broken_answer(id, f"its result is malformed: {error}")]
        if head.result_type == "complete":
            return [self._typed_result(id, exchange, raw)]
        if head.result_type != "input_required":
            return [self._broken_answer(id, f"resultType {head.result_type!r} is unknown")]
        if not exchange.method.input_required:
            return [self._broken_answer(id, "this method is never answered input_required")]
        if not head.input_requests and head.request_state is None:
            return [self._broken_answer(id, "input_required without inputRequests and requestState")]
        del self._outbound[id]
        return [InputRequired(id, head.input_requests or {}, head.request_state, exchange.method.name, exchange.params)]

    def _error_received(self, id: RequestId, exchange: Outbound, error: ErrorData) -> list[Event]:
        if id == self._opening:
            discovering = exchange.method is _DISCOVER
            negotiator = self._negotiator
            return self._take(negotiator.discover_failed(error) if discovering else negotiator.initialize_failed(error))
        self._listening.pop(id, None)
        return super()._error_received(id, exchange, error)

    # -- what the server sends by itself -------------------------------------------------------------------------

    def _receive_request(
        self, message: Incoming, envelope: Envelope, id: RequestId, batch: Batch | None
    ) -> list[Event]:
        name = str(envelope.method)
        row = self._incoming.get(name)
        if row is None or row.result is None:
            if name == "ping" and self.server is None:  # pings may come before the handshake is done
                row = methods_of(Direction.TO_CLIENT, LATEST_LEGACY)["ping"]
            else:
                return [self._reject(unknown_method(name), message, id, batch)]
        if not declared(self.config.capabilities, row.capability):
            return [self._reject(unknown_method(name), message, id, batch)]
        try:
            params = decoder_of(row.params)(codec.EMPTY if codec.absent(envelope.params) else envelope.params)
            progress_token = _progress_token(params.meta)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            problem = ErrorData(INVALID_PARAMS, f"Invalid params: {error}")
            return [self._reject(problem, message, id, batch)]
        version = self.server.version if self.server else LATEST_LEGACY
        exchange = Inbound(row, version, message.tag, batch)
        exchange.progress_token = progress_token
        self._open(id, exchange)
        if name == "ping":
            self.send_result(id, EmptyResult())
            return []
        return [RequestReceived(id, row, params, None, progress_token, None, message.scope)]

    def _incoming_notification(self, method: str) -> Method | None:
        row = self._incoming.get(method)
        return row if row is not None and row.result is None else None

    def _notified(self, row: Method, params: Any, message: Incoming) -> list[Event]:
        meta: dict[str, Any] = params.meta or {}
        id = meta.get(SUBSCRIPTION_ID)
        if id is None or self._negotiated().era is Era.LEGACY:
            return [NotificationReceived(row, params, message.scope)]
        if id not in self._listening:
            return [MessageIgnored(f"{row.name} of {id!r}, which is no subscription of ours")]
        if isinstance(params, AcknowledgedParams):
            self._listening[id] = True
            return [SubscriptionAcknowledged(id, params.notifications)]
        return [SubscriptionNotified(id, row, params)]

    def _cancelled(self, params: CancelledParams) -> list[Event]:
        id = params.request_id
        if id is not None and id in self._listening:  # a server ends a subscription like this on a shared channel
            del self._listening[id]
            self._outbound.pop(id, None)
            return [SubscriptionEnded(id, graceful=True)]
        return super()._cancelled(params)

    def _accepts_batches(self) -> bool:
        return self.server is not None and self.server.version == "2025-03-26"


def _undeclared_is_fine(method: str, version: str) -> bool:
    """2024-11-05 has completion and no capability for it."""
    return method == "completion/complete" and version < "2025-03-26"


def _progress_token(raw: Any) -> Any:
    if raw is UNSET:
        return None
    return decoder_of(_Token)(raw).token


class _Token(Struct):
    token: int | str | None = msgspec.field(name=PROGRESS_TOKEN, default=None)


def _identity(raw: Raw) -> Implementation | None:
    """The server's self-description. Display only, so a broken one is no reason to refuse the server."""
    try:
        identified: _Identified = decoder_of(_Identified)(raw)
    except msgspec.DecodeError:
        return None
    return identified.meta.info if identified.meta else None


def _fitted(value: Object, version: str) -> Raw:
    return Raw(encode_fitted(value, version))
