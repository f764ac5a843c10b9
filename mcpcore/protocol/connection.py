"""What both roles share: open requests in both directions, answers, cancellation, and the outbox.

A `Connection` is fed whole messages and drained of whole messages. It never waits, retries, times out, logs or chooses
a handler, and it never raises for what the peer sent: a bad message is answered, where the protocol allows it, and
reported as an event, and the connection goes on, because JSON-RPC messages are independent of each other.

Calling a ``send_*`` method out of turn raises `LocalProtocolError` and queues nothing.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpcore.exceptions import LocalProtocolError
from mcpcore.limits import Limits
from mcpcore.protocol import codec
from mcpcore.protocol._tables import EXCHANGE, Exchange, ExchangeStep, advance
from mcpcore.protocol.events import (
    ConnectionClosed,
    ErrorReceived,
    Event,
    MessageIgnored,
    MessageRejected,
    NotificationReceived,
    ProgressReceived,
    RequestCancelled,
    ResultReceived,
)
from mcpcore.protocol.messages import Incoming, Kind, Outgoing
from mcpcore.types._base import Object
from mcpcore.types.jsonrpc import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, Envelope, ErrorData, RequestId
from mcpcore.types.meta import ProgressToken
from mcpcore.types.methods import Method
from mcpcore.types.revisions import fitter
from mcpcore.types.utilities import CancelledParams, ProgressParams

__all__ = ["Connection"]

_decoder_of: dict[type, Callable[[Any], Any]] = {}


def decoder_of(kind: type) -> Callable[[Any], Any]:
    """Return the function that decodes JSON into ``kind``, built once."""
    decoder = _decoder_of.get(kind)
    if decoder is None:
        decoder = _decoder_of[kind] = msgspec.json.Decoder(kind).decode
    return decoder


class Batch:
    """Answers to one JSON-RPC batch, held until all of them are there (2025-03-26, basic, "Batching")."""

    def __init__(self, tag: Any) -> None:
        self.tag = tag
        self.open = 0
        self.answers: list[bytes] = []


class Inbound(Struct, gc=False):
    """A request of the peer that has not been answered.

    Args:
        method: Its row.
        version: The revision that it belongs to.
        tag: Of the message that brought it.
        batch: Of which it is a member.
        caller: Who asks (server).
        progress_token: Given where the peer wants to hear of progress.
        log_level: From which severity on the client wants log messages of this request (modern).
        progress: What was reported last.
        granted: What a subscription gets; None before it is acknowledged, and for every other request.
    """

    method: Method
    version: str
    tag: Any = None
    batch: Batch | None = None
    caller: Caller | None = None
    progress_token: ProgressToken | None = None
    log_level: LogLevel | None = None
    progress: float | None = None
    granted: SubscriptionFilter | None = None
    state: Exchange = Exchange.OPEN


class Outbound(Struct):
    """A request of ours that has not been answered.

    Args:
        method: Its row.
        params: As encoded, without what the core adds.
        meta: What the caller wanted in ``_meta``.
        progress: Progress has been asked for.
    """

    method: Method
    params: bytes
    meta: dict[str, Any]
    progress: bool


class Connection:
    """Protocol state of one end. Abstract: see `ServerConnection` and `ClientConnection`.

    Args:
        limits: Only ``json_depth`` and ``subscriptions`` concern the core.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._outbox: list[Outgoing] = []
        self._outbox_size = 0
        self._inbound: dict[RequestId, Inbound] = {}
        self._outbound: dict[RequestId, Outbound] = {}
        self._next_id = 0
        self._input_ended = False

    # -- the surface of the driver -------------------------------------------------------------------------------

    def receive(self, message: Incoming) -> list[Event]:
        """Take one message and return what it means, in order. Never raises for what the peer sent."""
        if message.problem is not None:
            error = ErrorData(message.problem.code, str(message.problem))
            return [self._reject(error, message, UNSET)]
        data = message.data
        if data[:1] != b"{" and codec.is_batch(data):
            return self._receive_batch(message)
        try:
            envelope = codec.decode(data, self._limits.json_depth)
        except codec.Unreadable as unreadable:
            return [self._refuse_unreadable(unreadable, message, None)]
        return self._receive_one(message, envelope, None)

    def receive_eof(self) -> list[Event]:
        """Take note that no more input will come. Open requests of the peer can still be answered."""
        if self._input_ended:
            return []
        self._input_ended = True
        unanswered = tuple(self._outbound)
        self._outbound.clear()
        return [ConnectionClosed(unanswered)]

    def withdraw(self, request_id: RequestId) -> list[Event]:
        """Take note that the peer withdrew a request by closing the stream that its answer would have gone to."""
        return self._cancelled(CancelledParams(request_id))

    def messages_to_send(self) -> list[Outgoing]:
        """Hand out what is queued, in wire order, and forget it."""
        messages, self._outbox, self._outbox_size = self._outbox, [], 0
        return messages

    @property
    def has_messages(self) -> bool:
        """Something is queued."""
        return bool(self._outbox)

    @property
    def queued_bytes(self) -> int:
        """How much is queued, in bytes; what back-pressure is measured by."""
        return self._outbox_size

    def is_open(self, request_id: RequestId) -> bool:
        """Tell whether a request of the peer can still be answered: it came, and was neither answered nor cancelled."""
        return request_id in self._inbound

    @property
    def open_requests(self) -> int:
        """Requests of the peer that have not been answered."""
        return len(self._inbound)

    @property
    def is_closed(self) -> bool:
        """Nothing more will be said, in either direction: the input has ended and all is answered."""
        return self._input_ended and not self._inbound and not self._outbox

    def send_result(self, request_id: RequestId, result: Object | Raw) -> None:
        """Answer a request of the peer.

        Args:
            request_id: Of a request that is still open.
            result: In the newest shape; it is fitted to the revision. `Raw` is taken as it is: an encoded object
                that fits already and has none of the members that the core adds.

        Raises:
            LocalProtocolError: The request is not open.
        """
        exchange = self._inbound.get(request_id)
        if exchange is None:
            raise LocalProtocolError(f"request {request_id!r} is not open")
        advance(EXCHANGE, exchange.state, ExchangeStep.ANSWER)
        data = self._encode_result(request_id, exchange, result)
        del self._inbound[request_id]
        self._answer(request_id, exchange, data, Kind.RESPONSE, None)

    def send_error(self, request_id: RequestId, error: ErrorData, *, challenge: tuple[str, ...] | None = None) -> None:
        """Answer a request of the peer with an error.

        Args:
            request_id: Of a request that is still open.
            error: Code, message and data.
            challenge: Scopes that the caller lacks, for bindings that can ask for them.

        Raises:
            LocalProtocolError: The request is not open.
        """
        exchange = self._inbound.pop(request_id, None)
        if exchange is None:
            raise LocalProtocolError(f"request {request_id!r} is not open")
        self._answer(request_id, exchange, codec.encode_error(request_id, error), Kind.ERROR, error.code, challenge)

    def send_progress(
        self, request_id: RequestId, progress: float, total: float | None = None, message: str | None = None
    ) -> bool:
        """Report progress on a request of the peer, if it asked for that.

        Returns:
            False when nothing was sent: no token, or no increase (the value MUST increase: basic/patterns/progress).

        Raises:
            LocalProtocolError: The request is not open, or a value is not finite.
        """
        exchange = self._inbound.get(request_id)
        if exchange is None:
            raise LocalProtocolError(f"request {request_id!r} is not open")
        if not (_is_finite(progress) and (total is None or _is_finite(total))):
            raise LocalProtocolError("progress and total are finite numbers")
        if exchange.progress_token is None or (exchange.progress is not None and progress <= exchange.progress):
            return False
        exchange.progress = progress
        params = ProgressParams(exchange.progress_token, progress, total, message)
        self._notify("notifications/progress", params, exchange.version, related_to=request_id, tag=exchange.tag)
        return True

    def cancel(self, request_id: RequestId, reason: str | None = None) -> None:
        """Withdraw a request of ours. Does nothing when it has been answered; a late answer is ignored."""
        if self._outbound.pop(request_id, None) is None:
            return
        if any(queued.kind is Kind.REQUEST and queued.request_id == request_id for queued in self._outbox):
            self._drop_queued(lambda queued: queued.kind is Kind.REQUEST and queued.request_id == request_id)
            return  # it never left
        self._queue_cancelled(request_id, reason)

    # -- what the roles add --------------------------------------------------------------------------------------

    def _receive_request(
        self, message: Incoming, envelope: Envelope, id: RequestId, batch: Batch | None
    ) -> list[Event]:
        raise NotImplementedError

    def _incoming_notification(self, method: str) -> Method | None:
        raise NotImplementedError

    def _notified(self, row: Method, params: Any, message: Incoming) -> list[Event]:
        return [NotificationReceived(row, params, message.scope)]

    def _result_received(self, id: RequestId, exchange: Outbound, raw: Raw) -> list[Event]:
        return [self._typed_result(id, exchange, raw)]

    def _error_received(self, id: RequestId, exchange: Outbound, error: ErrorData) -> list[Event]:
        return [ErrorReceived(id, error)]

    def _encode_result(self, request_id: RequestId, exchange: Inbound, result: Object | Raw) -> bytes:
        return codec.encode_result(request_id, encode_fitted(result, exchange.version))

    def _accepts_batches(self) -> bool:
        raise NotImplementedError

    def _unreadable_id(self) -> UnsetType | None:
        """What stands for an id that could not be read: nothing, or null in revisions whose schema wants it."""
        return UNSET

    # -- requests of the peer ------------------------------------------------------------------------------------

    def _receive_one(self, message: Incoming, envelope: Envelope, batch: Batch | None) -> list[Event]:
        id = envelope.id
        if envelope.method is not UNSET:
            if id is UNSET:
                return self._receive_notification(message, envelope)
            if id is None:
                error = ErrorData(INVALID_REQUEST, "Invalid Request: id is a string or an integer, not null")
                return [self._reject(error, message, UNSET, batch)]
            if id in self._inbound:
                return [self._refuse_duplicate(message, id, batch)]
            return self._receive_request(message, envelope, id, batch)
        if envelope.result is UNSET and envelope.error is UNSET:
            error = ErrorData(INVALID_REQUEST, "Invalid Request: neither a method nor a result nor an error")
            return [self._reject(error, message, UNSET if id is None else id, batch)]
        return self._receive_answer(envelope)

    def _receive_batch(self, message: Incoming) -> list[Event]:
        if not self._accepts_batches():
            error = ErrorData(INVALID_REQUEST, "Invalid Request: batches exist in revision 2025-03-26 only")
            return [self._reject(error, message, UNSET)]
        try:
            members = codec.split_batch(message.data)
        except codec.Unreadable as unreadable:
            return [self._refuse_unreadable(unreadable, message, None)]
        batch = Batch(message.tag)
        batch.open += 1  # nothing goes out before every member has been read
        events: list[Event] = []
        for member in members:
            try:
                envelope = codec.decode(member, self._limits.json_depth)
            except codec.Unreadable as unreadable:
                events.append(self._refuse_unreadable(unreadable, message, batch))
            else:
                events += self._receive_one(message, envelope, batch)
        self._settle(batch)
        return events

    def _refuse_unreadable(self, unreadable: codec.Unreadable, message: Incoming, batch: Batch | None) -> Event:
        if unreadable.is_answer:
            return MessageRejected(unreadable.error, answered=False)
        # An id that is in use would make this error look like the answer to the request that uses it.
        taken = unreadable.id is not UNSET and unreadable.id in self._inbound and message.tag is None
        return self._reject(unreadable.error, message, UNSET if taken else unreadable.id, batch)

    def _refuse_duplicate(self, message: Incoming, id: RequestId, batch: Batch | None) -> Event:
        # On a shared channel the id belongs to the first request; where each message has a reply of its own it is safe.
        error = ErrorData(
            INVALID_REQUEST, f"Invalid Request: id {id!r} is in use by a request that is not answered yet"
        )
        return self._reject(error, message, UNSET if message.tag is None or batch is not None else id, batch)

    def _reject(
        self, error: ErrorData, message: Incoming, id: RequestId | UnsetType, batch: Batch | None = None
    ) -> Event:
        data = codec.encode_error(self._unreadable_id() if id is UNSET else id, error)
        if batch is not None:
            batch.answers.append(data)
        else:
            known = None if id is UNSET else id
            self._queue(Outgoing(data, Kind.ERROR, message.tag, known, error_code=error.code))
        return MessageRejected(error, answered=True)

    def _open(self, id: RequestId, exchange: Inbound) -> None:
        self._inbound[id] = exchange
        if exchange.batch is not None:
            exchange.batch.open += 1

    def _answer(
        self,
        id: RequestId,
        exchange: Inbound,
        data: bytes,
        kind: Kind,
        code: int | None,
        challenge: tuple[str, ...] | None = None,
    ) -> None:
        batch = exchange.batch
        if batch is None:
            self._queue(Outgoing(data, kind, exchange.tag, id, error_code=code, challenge=challenge))
        else:
            batch.answers.append(data)
            self._settle(batch)

    def _settle(self, batch: Batch) -> None:
        batch.open -= 1
        if batch.open == 0 and batch.answers:
            data = b"".join((b"[", b",".join(batch.answers), b"]"))
            self._queue(Outgoing(data, Kind.RESPONSE, batch.tag))

    def _cancelled(self, params: CancelledParams) -> list[Event]:
        id = params.request_id
        exchange = None if id is None else self._inbound.get(id)
        if id is None or exchange is None:
            return [MessageIgnored(f"cancelled request {id!r} is not open")]
        del self._inbound[id]
        exchange.state = advance(EXCHANGE, exchange.state, ExchangeStep.CANCEL)
        self._drop_queued(lambda queued: queued.related_to == id)
        if exchange.batch is not None:
            self._settle(exchange.batch)
        elif exchange.tag is not None:
            self._queue(Outgoing(b"", Kind.END, exchange.tag, id))
        return [RequestCancelled(id, params.reason)]

    def _drop_queued(self, withdrawn: Callable[[Outgoing], bool]) -> None:
        self._outbox = [queued for queued in self._outbox if not withdrawn(queued)]
        self._outbox_size = sum(len(queued.data) for queued in self._outbox)

    # -- notifications and answers of the peer -------------------------------------------------------------------

    def _receive_notification(self, message: Incoming, envelope: Envelope) -> list[Event]:
        name = str(envelope.method)
        row = self._incoming_notification(name)
        if row is None:
            return [MessageIgnored(f"notification {name} is unknown or not meant for this side")]
        try:
            params = decoder_of(row.params)(codec.EMPTY if codec.absent(envelope.params) else envelope.params)
        except msgspec.DecodeError as error:
            return [MessageRejected(ErrorData(INVALID_PARAMS, f"Invalid params of {name}: {error}"), answered=False)]
        if isinstance(params, CancelledParams):
            return self._cancelled(params)
        if isinstance(params, ProgressParams):
            return self._progressed(params)
        return self._notified(row, params, message)

    def _progressed(self, params: ProgressParams) -> list[Event]:
        token = params.progress_token  # ours are the ids of our requests
        exchange = self._outbound.get(token)
        if exchange is None or not exchange.progress:
            return [MessageIgnored(f"progress token {token!r} belongs to no open request")]
        return [ProgressReceived(token, params.progress, params.total, params.message)]

    def _receive_answer(self, envelope: Envelope) -> list[Event]:
        id = envelope.id
        exchange = None if id is None or id is UNSET else self._outbound.get(id)
        failed = not codec.absent(envelope.error)
        if id is None or id is UNSET or exchange is None:
            told = f" ({bytes(envelope.error)[:200].decode(errors='replace')})" if failed and envelope.error else ""
            return [MessageIgnored(f"answer to {id!r}, which is no open request{told}")]
        if failed:
            try:
                error: ErrorData = decoder_of(ErrorData)(envelope.error)
            except msgspec.DecodeError as problem:
                return [self._broken_answer(id, f"its error is malformed: {problem}")]
            del self._outbound[id]
            return self._error_received(id, exchange, error)
        if envelope.result is UNSET or codec.absent(envelope.result):
            return self._result_received(id, exchange, Raw(codec.EMPTY))
        return self._result_received(id, exchange, envelope.result)

    def _typed_result(self, id: RequestId, exchange: Outbound, raw: Raw) -> Event:
        kind = exchange.method.result
        assert kind is not None  # requests have one
        skipped: tuple[str, ...] = ()
        try:
            result = decoder_of(kind)(raw)
        except msgspec.DecodeError as error:
            try:
                result, skipped = decode_leniently(exchange.method, raw)
            except msgspec.DecodeError:
                return self._broken_answer(id, f"its result is malformed: {error}")
        self._outbound.pop(id, None)
        return ResultReceived(id, result, raw, skipped)

    def _broken_answer(self, id: RequestId, what: str) -> Event:
        exchange = self._outbound.pop(id)
        text = f"the answer to {exchange.method.name} cannot be used: {what}"
        return MessageRejected(ErrorData(INVALID_REQUEST, text), answered=False, id=id)

    def _queue(self, outgoing: Outgoing) -> None:
        self._outbox.append(outgoing)
        self._outbox_size += len(outgoing.data)

    # -- what we send ----------------------------------------------------------------------------------------------

    def _request(
        self,
        row: Method,
        params: bytes,
        stamped: bytes,
        *,
        progress: bool = False,
        related_to: RequestId | None = None,
        tag: Any = None,
        id: RequestId | None = None,
    ) -> RequestId:
        if self._input_ended:
            raise LocalProtocolError("the peer has ended its input and cannot answer")
        request_id = self._take_id() if id is None else id
        self._outbound[request_id] = Outbound(row, params, progress)
        data = codec.encode_request(request_id, row.name, stamped)
        self._queue(Outgoing(data, Kind.REQUEST, tag, request_id, related_to=related_to, method=row.name))
        return request_id

    def _take_id(self) -> RequestId:
        self._next_id += 1
        return self._next_id

    def _notify(
        self,
        method: str,
        params: Object,
        version: str,
        *,
        stamp: bytes = b"",
        related_to: RequestId | None = None,
        tag: Any = None,
        cancels: RequestId | None = None,
    ) -> None:
        body = encode_fitted(params, version)
        data = codec.encode_notification(method, codec.splice(body, stamp) if stamp else body)
        self._queue(Outgoing(data, Kind.NOTIFICATION, tag, related_to=related_to, method=method, cancels=cancels))

    def _queue_cancelled(self, request_id: RequestId, reason: str | None) -> None:
        raise NotImplementedError


def encode_fitted(value: Object | Raw, version: str) -> bytes:
    """Encode ``value`` in the shape of ``version``."""
    if type(value) is Raw:
        return bytes(value)
    fit = fitter(type(value), version)
    return codec.encode(value if fit is None else fit(value))


def decode_leniently(method: Method, raw: Raw) -> tuple[Any, tuple[str, ...]]:
    """Decode a list result whose items may be broken: keep the good ones and tell about the rest.

    Raises:
        msgspec.DecodeError: It is no list result, or broken elsewhere.
    """
    if method.items is None or method.result is None:
        raise msgspec.DecodeError("not a list")
    field = next(f for f in msgspec.structs.fields(method.result) if f.name == method.items)
    members: dict[str, Raw] = msgspec.json.decode(raw, type=dict[str, Raw])
    items: list[Raw] = msgspec.json.decode(members.pop(field.encode_name, b"[]"), type=list[Raw])
    item_decoder = msgspec.json.Decoder(field.type).decode
    kept: list[Any] = []
    skipped: list[str] = []
    for index, item in enumerate(items):
        try:
            kept += item_decoder(b"".join((b"[", item, b"]")))
        except msgspec.DecodeError as error:
            skipped.append(f"{field.encode_name}[{index}]: {error}")
    rest = codec.encode({**members, field.encode_name: []})
    result = decoder_of(method.result)(rest)
    setattr(result, method.items, kept)
    return result, tuple(skipped)


def _is_finite(value: float) -> bool:
    return value - value == 0


def unknown_method(name: str) -> ErrorData:
    """The error for a method that does not exist, or not here, or not now."""
    return ErrorData(METHOD_NOT_FOUND, f"Method not found: {name}")
