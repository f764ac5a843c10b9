"""The client's role: opening, stamping requests, telling answers apart, and what the server may ask.

A `ClientConnection` is told to `negotiate` first. Until `VersionNegotiated` comes, requests may not be sent.

Clients of modern servers never send an answer, whatever comes (2026-07-28, basic/transports/stdio, "Sending Messages"),
and to legacy servers only under the id of a request: an error without one tells a server nothing, and what broke a rule
was often no message at all, but something that was printed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpcore.exceptions import LocalProtocolError
from mcpcore.limits import Limits
from mcpcore.protocol import codec
from mcpcore.protocol._tables import EXCHANGE, ExchangeStep, advance
from mcpcore.protocol.connection import Connection, check_versions, unknown_method
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
from mcpcore.protocol.exchanges import Batch, Inbound, Outbound
from mcpcore.protocol.fitting import decoder_of, encode_fitted, take_meta, without
from mcpcore.protocol.messages import Incoming, Unanswered
from mcpcore.protocol.mirroring import mirror
from mcpcore.protocol.negotiation import Discover, Fail, Initialize, Settled, Step, VersionNegotiator
from mcpcore.types._base import Object
from mcpcore.types.header_map import HeaderMap
from mcpcore.types.jsonrpc import INVALID_PARAMS, INVALID_REQUEST, Envelope, ErrorData, RequestId
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
from mcpcore.types.utilities import CancelledParams, EmptyParams, InputRequest, NotificationParams
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

    Raises:
        ValueError: No revisions, or one that mcpcore does not speak.
    """

    info: Implementation
    capabilities: ClientCapabilities = field(default_factory=ClientCapabilities)
    versions: tuple[str, ...] = VERSIONS
    extensions: tuple[Method, ...] = ()
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        check_versions(self.versions)


class _Answers(Object):
    """What a request carries that answers an earlier one."""

    input_responses: dict[str, Raw] | None = None
    request_state: str | None = None

    @classmethod
    def of(cls, params: Any) -> "_Answers":
        return cls(params.input_responses, params.request_state)


class _Head(Struct, rename="camel"):
    """The members of a modern result that say how to read the rest."""

    result_type: str | None = None
    input_requests: dict[str, InputRequest] | None = None
    request_state: str | None = None


class _ServerMeta(Struct):
    info: Implementation | None = msgspec.field(name=SERVER_INFO, default=None)


class _Identified(Struct):
    meta: _ServerMeta | None = msgspec.field(name="_meta", default=None)


class _RequestMeta(Struct):
    token: int | str | None = msgspec.field(name=PROGRESS_TOKEN, default=None)


_LISTEN: Final = methods_of(Direction.TO_SERVER, VERSIONS[-1])["subscriptions/listen"]
_DISCOVER: Final = methods_of(Direction.TO_SERVER, VERSIONS[-1])["server/discover"]
_INITIALIZE: Final = methods_of(Direction.TO_SERVER, LATEST_LEGACY)["initialize"]
_PING: Final = methods_of(Direction.TO_CLIENT, LATEST_LEGACY)["ping"]
_RESERVED: Final = {PROGRESS_TOKEN, PROTOCOL_VERSION, CLIENT_INFO, CLIENT_CAPABILITIES, LOG_LEVEL}
_OURS: Final = {"initialize", "notifications/initialized", "notifications/cancelled", "notifications/progress"}


class ClientConnection(Connection):
    """Protocol state of a client's end.

    ``header_maps`` tells whether requests to modern servers carry header fields that mirror them (HTTP): None for no, else
    the maps of the tools that have some, by name.
    """

    def __init__(self, config: ClientConfig) -> None:
        super().__init__(config.limits)
        self.config = config
        self.server: ServerFacts | None = None
        self.header_maps: dict[str, HeaderMap] | None = None
        self._negotiator = VersionNegotiator(config.versions)
        self._negotiating = False
        self._opening: RequestId | None = None
        self._outgoing: Mapping[str, Method] = {}
        self._incoming: Mapping[str, Method] = {}
        self._meta = b""

    # -- opening -------------------------------------------------------------------------------------------------

    def negotiate(self) -> None:
        """Queue the first message of opening: ``server/discover``, or ``initialize`` for a legacy-only client.

        Raises:
            LocalProtocolError: It has been called before.
        """
        if self._negotiating:
            raise LocalProtocolError("negotiate() is called once")
        self._take(self._negotiator.start())
        self._negotiating = True

    def probe_timed_out(self) -> list[Event]:
        """Take note that ``server/discover`` was not answered in time. Does nothing once it has been."""
        if self._opening is None or not self.is_probing:
            return []
        self._finish(self._outbound, self._opening, ExchangeStep.CANCEL)
        return self._take(self._negotiator.discover_failed(None))

    @property
    def is_probing(self) -> bool:
        """``server/discover`` has been sent and not been answered."""
        opening = self._outbound.get(self._opening) if self._opening is not None else None
        return opening is not None and opening.method is _DISCOVER

    def _take(self, step: Step) -> list[Event]:
        if isinstance(step, Discover):
            meta = b'"_meta":' + codec.encode(self._base_meta(step.version))
            params = codec.splice(codec.EMPTY, meta)
            headers = self._mirrored(_DISCOVER, step.version, codec.EMPTY)
            self._opening = self._request(self._take_id(), Outbound(_DISCOVER), params, headers=headers)
        elif isinstance(step, Initialize):
            body = InitializeParams(step.version, self.config.capabilities, self.config.info)
            self._opening = self._request(self._take_id(), Outbound(_INITIALIZE), encode_fitted(body, step.version))
        else:
            self._opening = None
            return [NegotiationFailed(step.reason, step.error)]
        return []

    def _opened(self, exchange: Outbound, raw: Raw) -> list[Event]:
        """Take the answer that opens the connection.

        Raises:
            msgspec.DecodeError: It cannot be used.
        """
        if exchange.method is _DISCOVER:
            found: DiscoverResult = decoder_of(DiscoverResult)(raw)
            step = self._negotiator.discovered(found.supported_versions)
            if not isinstance(step, Settled):
                return self._take(step)
            facts = ServerFacts(_identity(raw), found.capabilities, found.instructions, step.version, Era.MODERN)
            return self._settle_version(facts)
        answer: InitializeResult = decoder_of(InitializeResult)(raw)
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
            ValueError: An argument has to be mirrored in a header, and cannot be.
        """
        row = self._method(method)
        version = self._negotiated().version
        params, own = (EmptyParams(), {}) if params is None else take_meta(params)
        members = {name: value for name, value in (own | (meta or {})).items() if name not in _RESERVED}
        modern = self._negotiated().era is Era.MODERN
        if modern and log_level is not None:
            members[LOG_LEVEL] = log_level
        if not row.input_required:
            return self._send(row, encode_fitted(params, version), b"", members, progress)
        # What answers an earlier round belongs to this one only, and to this era.
        first = without(params, "input_responses", "request_state")
        body = encode_fitted(first, version)
        added = encode_fitted(_Answers.of(params), version)[1:-1] if modern and first is not params else b""
        return self._send(row, body, added, members, progress)

    def retry(self, required: InputRequired, responses: dict[str, Object], *, progress: bool = False) -> RequestId:
        """Ask again with the inputs that the server wanted: a new request with a new id.

        Args:
            required: The interim answer; its state is sent back as it came.
            responses: A result for each of its ``input_requests``, by key.
            progress: Ask for progress notifications.
        """
        version = self._negotiated().version
        fitted = {key: Raw(encode_fitted(response, version)) for key, response in responses.items()}
        added = codec.encode(_Answers(fitted or None, required.request_state))[1:-1]
        return self._send(self._method(required.method), required.params, added, required.meta, progress)

    def listen(self, wanted: SubscriptionFilter) -> RequestId:
        """Open a subscription (modern). `SubscriptionAcknowledged` tells what was granted; `cancel` ends it."""
        return self.send_request(_LISTEN.name, ListenParams(wanted))

    def send_notification(self, method: str, params: Object | None = None) -> None:
        """Queue a notification. Modern servers get none but ``notifications/cancelled``, which `cancel` sends.

        Raises:
            LocalProtocolError: Nothing has been negotiated, or the revision lacks the notification.
        """
        row = self._method(method, notification=True)
        self._notify(row.name, NotificationParams() if params is None else params, self._spoken_version())

    def _send(self, row: Method, body: bytes, added: bytes, meta: dict[str, Any], progress: bool) -> RequestId:
        """Queue a request: its parameters, further members of them, and ``_meta`` as its revision wants it."""
        server, headers = self._negotiated(), None
        id = self._take_id()
        members = {**meta, PROGRESS_TOKEN: id} if progress else meta
        stamp = codec.encode(members)
        if server.era is Era.MODERN:
            headers = self._mirrored(row, server.version, body)
            stamp = codec.splice(stamp, self._meta[1:-1])
        stamps = [added] if added else []
        if stamp != codec.EMPTY:
            stamps.append(b'"_meta":' + stamp)
        return self._request(id, Outbound(row, body, meta, progress), codec.splice(body, *stamps), headers=headers)

    def _mirrored(self, row: Method, version: str, body: bytes) -> dict[str, str] | None:
        if self.header_maps is None:
            return None
        params = decoder_of(row.params)(body)
        return mirror(row, version, params, self.header_maps.get(params.name) if row.name == "tools/call" else None)

    def _method(self, name: str, *, notification: bool = False) -> Method:
        server = self._negotiated()
        if name in _OURS:
            raise LocalProtocolError(f"{name} is sent by the core itself")
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
        if request_id == self._opening:
            self._finish(self._outbound, request_id, ExchangeStep.CANCEL)
            self._opening = None
            return
        super().cancel(request_id, reason)

    def _spoken_version(self) -> str:
        return self._negotiated().version

    # -- answers -------------------------------------------------------------------------------------------------

    def _receive_answer(self, envelope: Envelope) -> list[Event]:
        if self._opening is not None and envelope.id in (None, UNSET) and not codec.absent(envelope.error):
            # Nothing else is open, so this is meant for it: some servers lose the id of what they do not know.
            envelope.id = self._opening
        return super()._receive_answer(envelope)

    def _result_received(self, id: RequestId, exchange: Outbound, raw: Raw) -> list[Event]:
        if id == self._opening:
            try:
                events = self._opened(exchange, raw)
            except codec.UNDECODABLE as error:
                return self._broken_answer(id, f"its result is malformed: {error}")
            self._finish(self._outbound, id, ExchangeStep.ANSWER)
            return events
        if self._negotiated().era is Era.LEGACY:
            return self._typed_result(id, exchange, raw)
        if exchange.method is _LISTEN:
            self._finish(self._outbound, id, ExchangeStep.ANSWER)
            return [SubscriptionEnded(id)]
        try:
            head: _Head = decoder_of(_Head)(raw)
        except codec.UNDECODABLE as error:
            return self._broken_answer(id, f"its result is malformed: {error}")
        if head.result_type is None or head.result_type == "complete":
            return self._typed_result(id, exchange, raw)
        if head.result_type != "input_required":
            return self._broken_answer(id, f"resultType {head.result_type!r} is unknown")
        if not exchange.method.input_required:
            return self._broken_answer(id, "this method is never answered input_required")
        if not head.input_requests and head.request_state is None:
            return self._broken_answer(id, "input_required without inputRequests and requestState")
        self._finish(self._outbound, id, ExchangeStep.ANSWER)
        name, requests = exchange.method.name, head.input_requests or {}
        return [InputRequired(id, requests, head.request_state, name, exchange.params, exchange.meta)]

    def _error_received(self, id: RequestId, exchange: Outbound, error: ErrorData) -> list[Event]:
        events = super()._error_received(id, exchange, error)
        if id == self._opening:
            return self._refused(exchange, error)
        return [SubscriptionEnded(id, error)] if exchange.method is _LISTEN else events

    def _broken_answer(self, id: RequestId, what: str) -> list[Event]:
        exchange = self._outbound[id]
        events = super()._broken_answer(id, what)
        if id == self._opening and exchange.method is _DISCOVER:
            # As good as an error: no modern server answers like this.
            return events + self._take(self._negotiator.discover_failed(ErrorData(INVALID_REQUEST, what)))
        if id == self._opening:
            return events + self._take(Fail(f"the answer to initialize cannot be used: {what}"))
        if exchange.method is _LISTEN:
            events.append(SubscriptionEnded(id, ErrorData(INVALID_REQUEST, what)))
        return events

    def _lost(self, lost: Unanswered) -> list[Event]:
        exchange = self._outbound.get(lost.request_id)
        events = super()._lost(lost)
        if exchange is None or lost.request_id != self._opening:
            return events
        if exchange.method is _DISCOVER and lost.not_understood:
            step = self._negotiator.discover_failed(None)
        else:
            step = Fail(str(lost.error))
        return [
            NegotiationFailed(event.reason, event.error, lost.error) if isinstance(event, NegotiationFailed) else event
            for event in self._take(step)
        ]

    def _refused(self, exchange: Outbound, error: ErrorData) -> list[Event]:
        negotiator = self._negotiator
        discovering = exchange.method is _DISCOVER
        return self._take(negotiator.discover_failed(error) if discovering else negotiator.initialize_failed(error))

    # -- what the server sends by itself -------------------------------------------------------------------------

    def _receive_request(
        self, message: Incoming, envelope: Envelope, id: RequestId, batch: Batch | None
    ) -> list[Event]:
        name = envelope.method or ""
        row = _PING if name == "ping" and self.server is None else self._incoming.get(name)  # it may come that early
        if row is None or row.result is None or not declared(self.config.capabilities, row.capability):
            return [self._reject(unknown_method(name), message, id, batch)]
        try:
            params = decoder_of(row.params)(codec.EMPTY if codec.absent(envelope.params) else envelope.params)
            meta: _RequestMeta = decoder_of(_RequestMeta)(codec.EMPTY if codec.absent(params.meta) else params.meta)
        except codec.UNDECODABLE as error:
            problem = ErrorData(INVALID_PARAMS, f"Invalid params: {error}")
            return [self._reject(problem, message, id, batch)]
        version = self.server.version if self.server else LATEST_LEGACY
        self._open(id, Inbound(row, version, message.tag, batch, progress_token=meta.token))
        if name == "ping":
            self.send_result(id, EmptyResult())
            return []
        return [RequestReceived(id, row, params, None, meta.token, None, message.scope)]

    def _incoming_notification(self, method: str) -> Method | None:
        row = self._incoming.get(method)
        return row if row is not None and row.result is None else None

    def _notified(self, row: Method, params: Any, message: Incoming) -> list[Event]:
        meta: dict[str, Any] = getattr(params, "meta", None) or {}
        id = meta.get(SUBSCRIPTION_ID)
        if id is None or self._negotiated().era is Era.LEGACY:
            return [NotificationReceived(row, params, message.scope)]
        exchange = self._subscription(id)
        if exchange is None:
            return [MessageIgnored(f"{row.name} of {id!r}, which is no subscription of ours")]
        if not isinstance(params, AcknowledgedParams):
            return [SubscriptionNotified(id, row, params)]
        if ExchangeStep.ACKNOWLEDGE not in EXCHANGE[exchange.state]:
            return [MessageIgnored(f"{row.name} of {id!r} came twice")]
        exchange.state = advance(EXCHANGE, exchange.state, ExchangeStep.ACKNOWLEDGE)
        return [SubscriptionAcknowledged(id, params.notifications)]

    def _subscription(self, id: Any) -> Outbound | None:
        """Return the open subscription of this id. It comes from the server, and True is no 1."""
        exchange = self._outbound.get(id) if type(id) in (int, str) else None
        return exchange if exchange is not None and exchange.method is _LISTEN else None

    def _cancelled(self, params: CancelledParams) -> list[Event]:
        id = params.request_id
        if id is not None and self._subscription(id):  # a server ends a subscription like this on a shared channel
            self._finish(self._outbound, id, ExchangeStep.CANCEL)
            return [SubscriptionEnded(id)]
        return super()._cancelled(params)

    def _refusal(self, id: RequestId | UnsetType, error: ErrorData) -> bytes | None:
        legacy = self.server is None or self.server.era is Era.LEGACY
        return codec.encode_error(id, error) if legacy and id is not UNSET else None

    def _accepts_batches(self) -> bool:
        return self.server is not None and self.server.version == "2025-03-26"


def _undeclared_is_fine(method: str, version: str) -> bool:
    """2024-11-05 has completion and no capability for it."""
    return method == "completion/complete" and version < "2025-03-26"


def _identity(raw: Raw) -> Implementation | None:
    """The server's self-description. Display only, so a broken one is no reason to refuse the server."""
    try:
        identified: _Identified = decoder_of(_Identified)(raw)
    except msgspec.DecodeError:
        return None
    return identified.meta.info if identified.meta else None


def _fitted(value: Object, version: str) -> Raw:
    return Raw(encode_fitted(value, version))
