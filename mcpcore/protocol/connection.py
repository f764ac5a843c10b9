"""What both roles share: open requests in both directions, answers, cancellation, and the outbox.

A `Connection` is fed whole messages and drained of whole messages. It never waits, retries, times out, logs or chooses
a handler, and it never raises for what the peer sent: a bad message is answered, where the protocol allows it, and
reported as an event, and the connection goes on, because JSON-RPC messages are independent of each other.

Calling a ``send_*`` method out of turn raises `LocalProtocolError` and queues nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn

from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import replace

from mcpcore.exceptions import LocalProtocolError
from mcpcore.limits import Limits
from mcpcore.protocol import codec
from mcpcore.protocol._tables import EXCHANGE, ExchangeStep, advance
from mcpcore.protocol.events import (
    ConnectionClosed,
    ErrorReceived,
    Event,
    MessageIgnored,
    MessageRejected,
    NotificationReceived,
    ProgressReceived,
    RequestCancelled,
    RequestLost,
    ResultReceived,
)
from mcpcore.protocol.exchanges import Batch, Inbound, Outbound
from mcpcore.protocol.fitting import decode_leniently, decoder_of, encode_fitted, fitted, list_field, take_meta
from mcpcore.protocol.messages import Incoming, Kind, Outgoing, Unanswered
from mcpcore.types._base import Object
from mcpcore.types.jsonrpc import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, Envelope, ErrorData, RequestId
from mcpcore.types.methods import Method
from mcpcore.types.utilities import CancelledParams, PaginatedParams, ProgressParams
from mcpcore.versions import VERSIONS

__all__ = ["Connection"]


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
        self._has_answered = False

    # -- the surface of the driver -------------------------------------------------------------------------------

    def receive(self, message: Incoming) -> list[Event]:
        """Take one message and return what it means, in order. Never raises for what the peer sent."""
        problem = message.problem
        if problem is not None:
            if isinstance(problem, Unanswered):
                return self._lost(problem)
            error = ErrorData(problem.code, problem.message, UNSET if problem.data is None else problem.data)
            return [self._reject(error, message, UNSET if problem.id is None else problem.id)]
        data = message.data
        if data[:1] != b"{" and codec.is_batch(data):
            return self._receive_batch(message)
        try:
            envelope = codec.decode(data, self._limits.json_depth)
        except codec.Unreadable as unreadable:
            return self._refuse_unreadable(unreadable, message)
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
            LocalProtocolError: The request is not open, or its method is not answered by such a result.
            Exception: What msgspec raises for values that have no JSON form. The request stays open.
        """
        exchange = self._inbound.get(request_id) or not_open(request_id)
        if type(result) is not exchange.method.result and type(result) is not Raw:
            raise LocalProtocolError(f"{exchange.method.name} is not answered by {type(result).__name__}")
        data = self._encode_result(request_id, exchange, result)
        self._answer(request_id, exchange, data, Kind.RESPONSE)

    def send_error(
        self,
        request_id: RequestId,
        error: ErrorData,
        *,
        challenge: tuple[str, ...] | None = None,
        retry_after: int | None = None,
    ) -> None:
        """Answer a request of the peer with an error.

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
        data = codec.encode_error(request_id, error)
        self._answer(request_id, exchange, data, Kind.ERROR, error.code, challenge, retry_after)

    def send_progress(
        self,
        request_id: RequestId,
        progress: float,
        total: float | None = None,
        message: str | None = None,
        *,
        meta: dict[str, Any] | None = None,
    ) -> bool:
        """Report progress on a request of the peer, if it asked for that.

        Args:
            request_id: Of a request that is still open.
            progress: How far it is.
            total: How far it goes.
            message: For people.
            meta: Members of ``_meta``.

        Returns:
            False when nothing was sent: no token, or no increase (the value MUST increase: basic/patterns/progress).

        Raises:
            LocalProtocolError: The request is not open, or a value is not finite.
        """
        exchange = self._inbound.get(request_id) or not_open(request_id)
        if not (_is_finite(progress) and (total is None or _is_finite(total))):
            raise LocalProtocolError("progress and total are finite numbers")
        if exchange.progress_token is None or (exchange.progress is not None and progress <= exchange.progress):
            return False
        params = ProgressParams(exchange.progress_token, progress, total, message, meta)
        self._notify("notifications/progress", params, exchange.version, related_to=request_id, tag=exchange.tag)
        exchange.progress = progress
        return True

    def cancel(self, request_id: RequestId, reason: str | None = None) -> None:
        """Withdraw a request of ours. Does nothing when it has been answered; a late answer is ignored."""
        if request_id not in self._outbound:
            return
        self._finish(self._outbound, request_id, ExchangeStep.CANCEL)
        if any(queued.kind is Kind.REQUEST and queued.request_id == request_id for queued in self._outbox):
            self._drop_queued(lambda queued: queued.kind is Kind.REQUEST and queued.request_id == request_id)
            return  # it never left
        params = CancelledParams(request_id, reason)
        self._notify("notifications/cancelled", params, self._spoken_version(), cancels=request_id)

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
        return self._typed_result(id, exchange, raw)

    def _error_received(self, id: RequestId, exchange: Outbound, error: ErrorData) -> list[Event]:
        self._finish(self._outbound, id, ExchangeStep.ANSWER)
        return [ErrorReceived(id, error)]

    def _encode_result(self, request_id: RequestId, exchange: Inbound, result: Object | Raw) -> bytes:
        return codec.encode_result(request_id, fitted(result, exchange.version))

    def _accepts_batches(self) -> bool:
        raise NotImplementedError

    def _refusal(self, id: RequestId | UnsetType, error: ErrorData) -> bytes | None:
        """Encode the answer to a message that broke a rule; None where the protocol allows none.

        Args:
            id: UNSET where there is none that can be used.
        """
        raise NotImplementedError

    def _spoken_version(self) -> str:
        """The revision of messages that belong to no request of the peer."""
        raise NotImplementedError

    # -- requests of the peer ------------------------------------------------------------------------------------

    def _receive_one(self, message: Incoming, envelope: Envelope, batch: Batch | None) -> list[Event]:
        id = envelope.id
        if envelope.method is not None:
            if id is UNSET:
                return self._receive_notification(message, envelope.method, envelope)
            if id is None:
                error = ErrorData(INVALID_REQUEST, "Invalid Request: id is a string or an integer, not null")
                return [self._reject(error, message, UNSET, batch)]
            if id in self._inbound:
                text = f"Invalid Request: id {id!r} is in use by a request that is not answered yet"
                return [self._reject(ErrorData(INVALID_REQUEST, text), message, id, batch)]
            return self._receive_request(message, envelope, id, batch)
        if envelope.result is UNSET and envelope.error is UNSET:
            error = ErrorData(INVALID_REQUEST, "Invalid Request: neither a method nor a result nor an error")
            return [self._reject(error, message, UNSET if id is None else id, batch)]
        return self._receive_answer(envelope)

    def _receive_batch(self, message: Incoming) -> list[Event]:
        try:
            members = codec.split_batch(message.data)
        except codec.Unreadable as unreadable:
            return self._refuse_unreadable(unreadable, message)
        if not self._accepts_batches():
            return [self._reject(NO_BATCHES, message, UNSET)]
        batch = Batch(message.tag)
        batch.open += 1  # nothing goes out before every member has been read
        events: list[Event] = []
        for member in members:
            try:
                envelope = codec.decode(member, self._limits.json_depth)
            except codec.Unreadable as unreadable:
                events += self._refuse_unreadable(unreadable, message, batch)
            else:
                events += self._receive_one(message, envelope, batch)
        self._settle(batch)
        return events

    def _refuse_unreadable(
        self, unreadable: codec.Unreadable, message: Incoming, batch: Batch | None = None
    ) -> list[Event]:
        if not unreadable.is_answer:
            return [self._reject(unreadable.error, message, unreadable.id, batch)]
        rejected = MessageRejected(unreadable.error, answered=False)
        if unreadable.id is UNSET or unreadable.id not in self._outbound:
            return [rejected]
        method = self._outbound[unreadable.id].method
        if method.params is PaginatedParams and method.items is not None and batch is None:
            # One item that cannot be read must not cost the list that it is in.
            limit = self._limits.json_depth
            try:
                envelope = codec.decode(
                    codec.without_deep_items(message.data, list_field(method).encode_name, limit), limit
                )
            except codec.Unreadable:
                pass
            else:
                return [rejected, *self._receive_one(message, envelope, None)]
        return self._broken_answer(unreadable.id, unreadable.error.message)

    def _reject(
        self, error: ErrorData, message: Incoming, id: RequestId | UnsetType, batch: Batch | None = None
    ) -> Event:
        """Answer a message that broke a rule, where that is allowed, and report it."""
        if id is not UNSET and id in self._inbound and (message.tag is None or batch is not None):
            # An id that is in use would make this error look like the answer to the request that uses it. Where each
            # message has a reply of its own it is safe.
            id = UNSET
        data = self._refusal(id, error)
        if data is None:
            return MessageRejected(error, answered=False)
        self._has_answered = True
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
        code: int | None = None,
        challenge: tuple[str, ...] | None = None,
        retry_after: int | None = None,
    ) -> None:
        exchange.state = advance(EXCHANGE, exchange.state, ExchangeStep.ANSWER)
        del self._inbound[id]
        self._has_answered = True
        batch = exchange.batch
        if batch is None:
            answer = Outgoing(
                data, kind, exchange.tag, id, error_code=code, challenge=challenge, retry_after=retry_after
            )
            self._queue(answer)
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
        self._finish(self._inbound, id, ExchangeStep.CANCEL)
        self._drop_queued(lambda queued: queued.related_to == id)
        batch = exchange.batch
        if batch is not None:
            self._settle(batch)
        if exchange.tag is not None and (batch is None or (batch.open == 0 and not batch.answers)):
            self._queue(Outgoing(b"", Kind.END, exchange.tag, id))
        return [RequestCancelled(id, params.reason)]

    def _drop_queued(self, withdrawn: Callable[[Outgoing], bool]) -> None:
        self._outbox = [queued for queued in self._outbox if not withdrawn(queued)]
        self._outbox_size = sum(len(queued.data) for queued in self._outbox)

    @staticmethod
    def _finish(exchanges: dict[RequestId, Any], id: RequestId, step: ExchangeStep) -> None:
        """Move an open exchange to its end."""
        exchange = exchanges[id]
        exchange.state = advance(EXCHANGE, exchange.state, step)
        del exchanges[id]

    # -- notifications and answers of the peer -------------------------------------------------------------------

    def _receive_notification(self, message: Incoming, name: str, envelope: Envelope) -> list[Event]:
        row = self._incoming_notification(name)
        if row is None:
            return [MessageIgnored(f"notification {name} is unknown or not meant for this side")]
        try:
            params = decoder_of(row.params)(codec.EMPTY if codec.absent(envelope.params) else envelope.params)
        except codec.UNDECODABLE as error:
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
            except codec.UNDECODABLE as problem:
                return self._broken_answer(id, f"its error is malformed: {problem}")
            return self._error_received(id, exchange, error)
        if envelope.result is UNSET:
            return self._broken_answer(id, "it has neither a result nor an error")
        return self._result_received(
            id, exchange, Raw(codec.EMPTY) if codec.absent(envelope.result) else envelope.result
        )

    def _typed_result(self, id: RequestId, exchange: Outbound, raw: Raw) -> list[Event]:
        kind = exchange.method.result
        assert kind is not None  # requests have one
        skipped: tuple[str, ...] = ()
        try:
            result = decoder_of(kind)(raw)
        except codec.UNDECODABLE as error:
            try:
                result, skipped = decode_leniently(exchange.method, raw)
            except codec.UNDECODABLE:
                return self._broken_answer(id, f"its result is malformed: {error}")
        self._finish(self._outbound, id, ExchangeStep.ANSWER)
        return [ResultReceived(id, result, raw, skipped)]

    def _broken_answer(self, id: RequestId, what: str) -> list[Event]:
        """End a request of ours whose answer is of no use."""
        text = f"the answer to {self._outbound[id].method.name} cannot be used: {what}"
        self._finish(self._outbound, id, ExchangeStep.ANSWER)
        return [MessageRejected(ErrorData(INVALID_REQUEST, text), answered=False, id=id)]

    def _lost(self, lost: Unanswered) -> list[Event]:
        id = lost.request_id
        if id not in self._outbound:
            return [MessageIgnored(f"request {id!r} gets no answer, and nobody waits for one: {lost.error}")]
        self._finish(self._outbound, id, ExchangeStep.CANCEL)
        return [RequestLost(id, lost.error)]

    # -- what we send ----------------------------------------------------------------------------------------------

    def _request(
        self,
        id: RequestId,
        exchange: Outbound,
        params: bytes,
        *,
        related_to: RequestId | None = None,
        tag: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> RequestId:
        if self._input_ended:
            raise LocalProtocolError("the peer has ended its input and cannot answer")
        name = exchange.method.name
        data = codec.encode_request(id, name, params)
        self._queue(Outgoing(data, Kind.REQUEST, tag, id, related_to, name, headers))
        self._outbound[id] = exchange
        return id

    def _take_id(self) -> RequestId:
        self._next_id += 1
        return self._next_id

    def _notify(
        self,
        method: str,
        params: Object,
        version: str,
        *,
        meta: dict[str, Any] | None = None,
        related_to: RequestId | None = None,
        tag: Any = None,
        cancels: RequestId | None = None,
    ) -> None:
        """Queue a notification; ``meta`` are members of ``_meta`` that the core adds."""
        stamp = b""
        if meta:
            params, own = take_meta(params)
            stamp = b'"_meta":' + codec.encode({**own, **meta})
        data = codec.encode_notification(method, codec.splice(encode_fitted(params, version), stamp))
        self._queue(Outgoing(data, Kind.NOTIFICATION, tag, related_to=related_to, method=method, cancels=cancels))

    def _queue(self, message: Outgoing) -> None:
        if b"\n" in message.data:
            # From JSON that somebody else laid out. Inside strings line breaks are escaped, so these mean nothing, but
            # they would end a line of the binding.
            message = replace(message, data=message.data.translate(None, b"\r\n"))
        self._outbox.append(message)
        self._outbox_size += len(message.data)


NO_BATCHES: Final = ErrorData(INVALID_REQUEST, "Invalid Request: batches exist in revision 2025-03-26 only")


def check_versions(versions: Sequence[str]) -> None:
    """Raise `ValueError` unless ``versions`` are some that mcpcore speaks."""
    unknown = [version for version in versions if version not in VERSIONS]
    if unknown or not versions:
        raise ValueError(f"versions={tuple(versions)!r}: give some of {', '.join(VERSIONS)}")


def not_open(request_id: RequestId) -> NoReturn:
    raise LocalProtocolError(f"request {request_id!r} is not open")


def _is_finite(value: float) -> bool:
    return value - value == 0


def unknown_method(name: str) -> ErrorData:
    """The error for a request whose method does not exist, or not here, or not now."""
    if name.startswith("notifications/"):
        return ErrorData(INVALID_REQUEST, f"Invalid Request: {name} is a notification and has no id")
    return ErrorData(METHOD_NOT_FOUND, f"Method not found: {name}")
