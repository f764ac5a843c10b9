"""What an HTTP client has to know about the messages that come in a response: which of them is the answer.

Each POST has its own reply, so a reply without an answer is the end of one call and of nothing else.
"""

import time
from email.utils import parsedate_to_datetime
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpcore.types.jsonrpc import (
    HEADER_MISMATCH,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    UNSUPPORTED_PROTOCOL_VERSION,
    RequestId,
)

__all__ = ["Refusal", "is_answer", "media_type", "negotiated_version", "own_answer", "read_refusal"]

_MODERN: Final = (
    METHOD_NOT_FOUND,
    HEADER_MISMATCH,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    UNSUPPORTED_PROTOCOL_VERSION,
)
_OLDER: Final = (400, 404, 405)
_NO_SESSION: Final = -32000
_BUSY: Final = (429, 503)
_SHOWN: Final = 200


class _Error(Struct):
    code: int
    message: str = ""


class _Peek(Struct):
    jsonrpc: Literal["2.0"]
    id: int | str | UnsetType | None = UNSET
    method: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class _Opened(Struct, rename="camel"):
    protocol_version: str


class _Opening(Struct):
    result: _Opened


_UNDECODABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_peek = msgspec.json.Decoder(_Peek).decode
_members = msgspec.json.Decoder(list[Raw]).decode
_error = msgspec.json.Decoder(_Error).decode
_opening = msgspec.json.Decoder(_Opening).decode


def media_type(content_type: str | None) -> str:
    """Return a content type without its parameters, in lower case."""
    return (content_type or "").partition(";")[0].strip().lower()


def is_answer(data: bytes, request_id: RequestId) -> bool:
    """Tell whether a message answers this request. Ids keep their type: "1" does not answer 1.

    In 2025-03-26 the answer may be in a batch.
    """
    try:
        if data.lstrip()[:1] == b"[":
            return any(_answers(_peek(member), request_id) for member in _members(data))
        return _answers(_peek(data), request_id)
    except _UNDECODABLE:
        return False


def _answers(peek: _Peek, request_id: RequestId) -> bool:
    return _is_result_or_error(peek) and _is_same(peek.id, request_id)


def _is_result_or_error(peek: _Peek) -> bool:
    return peek.method is UNSET and (peek.result is not UNSET or peek.error is not UNSET)


def _is_same(given: Any, request_id: RequestId) -> bool:
    return type(given) is type(request_id) and given == request_id


def own_answer(data: bytes, request_id: RequestId) -> bytes | None:
    """Return the answer in a JSON reply; None where there is none.

    An error that lost its id is meant for the request it replies to. A result under another id is somebody else's.
    """
    if is_answer(data, request_id):
        return data
    found = _error_in(data)
    return _under(request_id, found[0].error) if found is not None and found[0].id in (None, UNSET) else None


def negotiated_version(answer: bytes) -> str | None:
    """Return the revision that a result of ``initialize`` settles on; None for an error."""
    try:
        return _opening(answer).result.protocol_version
    except _UNDECODABLE:
        return None


def _error_in(data: bytes) -> tuple[_Peek, _Error] | None:
    try:
        peek = _peek(data)
        return None if peek.error is UNSET else (peek, _error(peek.error))
    except _UNDECODABLE:
        return None


def _under(request_id: RequestId, error: Raw | UnsetType) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "error": error})


class Refusal(Struct, frozen=True):
    """A reply with a status of 400 or more.

    Args:
        status: The status.
        text: What it says, for people; one short line or nothing.
        answer: The JSON-RPC error in it, as an answer to the request, whatever id it came with; None where there is none.
        code: The code of that error.
        is_addressed: It came under the id of the request.
        retry_after: Seconds after which the server wants to be asked again; None unless it said that it has no time or room.
    """

    status: int
    text: str = ""
    answer: bytes | None = None
    code: int | None = None
    is_addressed: bool = False
    retry_after: float | None = None

    @property
    def is_answer(self) -> bool:
        """It is an answer of the protocol. Where a server has no room, only what names the request is more than a refusal."""
        return self.answer is not None and (self.retry_after is None or self.is_addressed)

    @property
    def forgets_session(self) -> bool:
        """The server does not know the session (2025-11-25, basic/transports, "Session Management").

        That is 404, unless it is the answer that there is no such method. A server template that is much in use says it
        with 400 and a sentence.
        """
        if self.status == 404:
            return not (self.is_addressed and self.code == METHOD_NOT_FOUND)
        return self.status == 400 and self.code == _NO_SESSION and "session" in self.text.lower()

    @property
    def may_be_older(self) -> bool:
        """The server may speak HTTP+SSE only (2026-07-28, basic/transports/streamable-http, "HTTP+SSE Transport")."""
        return self.status in _OLDER and self.code not in _MODERN


def read_refusal(
    status: int, content_type: str | None, body: bytes, request_id: RequestId | None, retry_after: str | None = None
) -> Refusal:
    """Read the body of a refusal, and its ``Retry-After`` where that means that the same may be asked again."""
    found = _error_in(body)
    delay = _seconds(retry_after) if retry_after is not None and status in _BUSY else None
    if found is None:
        return Refusal(status, _one_line(body) if media_type(content_type) != "text/html" else "", retry_after=delay)
    peek, error = found
    answer = None if request_id is None else _under(request_id, peek.error)
    is_addressed = request_id is not None and _is_same(peek.id, request_id)
    return Refusal(status, error.message, answer, error.code, is_addressed, delay)


def _seconds(retry_after: str) -> float | None:
    """Read a number of seconds or a date (RFC 9110 10.2.3); None for what is neither."""
    if retry_after.isascii() and retry_after.isdecimal() and len(retry_after) < 10:
        return float(retry_after)
    try:
        return max(parsedate_to_datetime(retry_after).timestamp() - time.time(), 0.0)
    except (ValueError, OverflowError):
        return None


def _one_line(body: bytes) -> str:
    text = " ".join(body[: 4 * _SHOWN].decode(errors="replace").split())
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
