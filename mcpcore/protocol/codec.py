"""Bytes to envelopes and back.

Reading: one pass of msgspec finds the envelope and leaves ``params``, ``result`` and ``error`` raw. Only when msgspec
refuses a message does the slower standard parser look at it, to find out what was wrong and under which id to say so.

Writing: results and parameters are encoded once and the members that the protocol adds are spliced in as bytes that
were encoded before, so that adding them costs no second pass.
"""

from itertools import accumulate
from typing import Any, Final, cast

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpcore.types.jsonrpc import INVALID_REQUEST, PARSE_ERROR, Envelope, ErrorData, RequestId

__all__ = [
    "EMPTY",
    "UNDECODABLE",
    "Unreadable",
    "absent",
    "decode",
    "encode",
    "encode_error",
    "encode_notification",
    "encode_request",
    "encode_result",
    "is_batch",
    "splice",
    "split_batch",
    "without_deep_items",
]

EMPTY: Final = b"{}"

encode = msgspec.json.Encoder().encode
"""Encode any value as compact JSON."""

UNDECODABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises for JSON that does not fit."""

_NEITHER_BRACKET_NOR_QUOTE: Final = bytes(set(range(256)) - set(b'[]{}"'))
_STEPS: Final = bytes(1 if byte in b"[{" else 255 for byte in range(256))
_OPENING: Final = rb'\s*\{(?:[^"\[\]{}]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+'
_TOKEN: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}]'
_ITEM: Final = 4  # the depth of {"result":{"tools":[{…}]}}
_N: Final = ord("n")  # with which null begins, and no other value
_MOST_DIGITS: Final = 4300  # of an integer; Python refuses to read more (sys.int_info)

_decode_envelope = msgspec.json.Decoder(Envelope).decode
_decode_batch = msgspec.json.Decoder(list[Raw]).decode


class Unreadable(Exception):
    """A message that is no JSON-RPC message.

    Args:
        error: What to answer.
        id: The id to answer under; UNSET where none could be read.
        is_answer: It was meant as an answer. Those are never answered, or two peers could argue for ever.
    """

    def __init__(self, code: int, message: str, id: RequestId | UnsetType = UNSET, *, is_answer: bool = False) -> None:
        super().__init__(message)
        self.error = ErrorData(code, message)
        self.id = id
        self.is_answer = is_answer


def decode(data: bytes | Raw, max_depth: int) -> Envelope:
    """Decode one message.

    Args:
        data: JSON without framing.
        max_depth: How deep arrays and objects may nest.

    Raises:
        Unreadable: It is no JSON-RPC message; see there.
    """
    data = bytes(data)
    # Each level takes two brackets. That, or too few of them, settles it for nearly every message.
    if len(data) > 2 * max_depth and _has_more_than(max_depth, data) and _depth_exceeds(data, max_depth):
        raise _too_deep(data, max_depth)
    try:
        if not data.isascii():
            data.decode()  # the text of raw members is not looked at below
        return _decode_envelope(data)
    except RecursionError:
        raise _too_deep(data, max_depth) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _diagnose(data, error) from None


def absent(raw: bytes | Raw | UnsetType) -> bool:
    """Tell whether a raw member is missing. Null counts as missing: peers write it for optional members."""
    return raw is UNSET or (memoryview(raw)[0] == _N and bytes(raw) == b"null")


def is_batch(data: bytes) -> bool:
    """Tell whether a message is a JSON-RPC batch."""
    return data[:1] == b"[" or data.lstrip()[:1] == b"["


def split_batch(data: bytes) -> list[Raw]:
    """Return the members of a batch.

    Raises:
        Unreadable: It is no JSON array, or an empty one.
    """
    try:
        data.decode()
        members = _decode_batch(data)
    except RecursionError:
        raise Unreadable(INVALID_REQUEST, "Invalid Request: nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Unreadable(PARSE_ERROR, "Parse error: not valid JSON") from None
    if not members:
        raise Unreadable(INVALID_REQUEST, "Invalid Request: an empty batch")
    return members


class _Head(Struct):
    """The members that tell what a message is for, whatever else it holds."""

    id: int | str | UnsetType | None = UNSET
    method: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


_decode_head = msgspec.json.Decoder(_Head).decode


def _too_deep(data: bytes, limit: int) -> Unreadable:
    """Refuse a message for its depth. Its id is read where that can be done without following the nesting."""
    import re  # both are needed for refusals only

    opening = re.match(_OPENING, data, re.DOTALL)
    cut = opening.group() + b"null}" if opening else b""
    head = _Head()
    for text in (data, cut):
        try:
            head = _decode_head(text)
            break
        except UNDECODABLE:
            continue
    id = UNSET if head.id is None else head.id
    is_answer = absent(head.method) and (head.result is not UNSET or head.error is not UNSET)
    return Unreadable(INVALID_REQUEST, f"Invalid Request: nested deeper than {limit} levels", id, is_answer=is_answer)


def without_deep_items(data: bytes, member: str, limit: int) -> bytes:
    """Return an answer in which every object of its list ``result.<member>`` that nests deeper than ``limit`` is null.

    Reads no more than brackets and strings, because nothing else can follow any depth.
    """
    import re  # as above

    wanted = {2: b'"result"', 3: encode(member)}  # by depth: the name of what is opened there
    names: dict[int, bytes] = {}
    pieces: list[bytes] = []
    name, taken, start, depth, deepest = b"", 0, 0, 0, 0
    for token in re.finditer(_TOKEN, data, re.DOTALL):
        match token.group():
            case b"{" | b"[":
                depth += 1
                deepest = max(deepest, depth)
                if depth in wanted:
                    names[depth] = name
                elif depth == _ITEM:
                    start, deepest = token.start(), depth
            case b"}" | b"]":
                if depth == _ITEM and deepest > limit and names == wanted:
                    pieces += (data[taken:start], b"null")
                    taken = token.end()
                depth -= 1
            case string:
                name = string
    return b"".join((*pieces, data[taken:]))


def _diagnose(data: bytes, refusal: Exception) -> Unreadable:
    """Find out what is wrong with a message that msgspec refused."""
    import json

    try:
        value: Any = json.loads(data.decode(), parse_constant=_refuse_constant, parse_int=_integer)
    except (ValueError, RecursionError):
        return Unreadable(PARSE_ERROR, "Parse error: not valid JSON")
    if not isinstance(value, dict):
        return Unreadable(INVALID_REQUEST, f"Invalid Request: a message is an object, not {_json_type(value)}")
    message = cast("dict[str, Any]", value)
    is_answer = message.get("method") is None and ("result" in message or "error" in message)
    id = message.get("id")
    readable = id if isinstance(id, int | str) and not isinstance(id, bool) and _is_unicode(id) else UNSET
    if not isinstance(refusal, msgspec.ValidationError):
        # Well-formed for the standard parser only: a lone surrogate.
        return Unreadable(PARSE_ERROR, "Parse error: not valid Unicode text", readable, is_answer=is_answer)
    if "id" in message and readable is UNSET:
        what = f"Invalid Request: id is a string or an integer, not {_json_type(id)}"
    elif message.get("jsonrpc") != "2.0":
        what = 'Invalid Request: jsonrpc is "2.0"'
    else:
        what = f"Invalid Request: method is a string, not {_json_type(message.get('method'))}"
    return Unreadable(INVALID_REQUEST, what, readable, is_answer=is_answer)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _integer(digits: str) -> int | UnsetType:
    return int(digits) if len(digits) < _MOST_DIGITS else UNSET


def _is_unicode(value: int | str) -> bool:
    return isinstance(value, int) or not any("\ud800" <= character <= "\udfff" for character in value)


def _json_type(value: Any) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(value.__class__, "a fraction" if isinstance(value, float) else "a number")


def _has_more_than(limit: int, data: bytes) -> bool:
    """Tell whether there are more opening brackets than ``limit``. Searching for each is faster than counting all."""
    for bracket in (b"{", b"["):
        place = data.find(bracket)
        while place >= 0:
            limit -= 1
            if limit < 0:
                return True
            place = data.find(bracket, place + 1)
    return False


def _depth_exceeds(data: bytes, limit: int) -> bool:
    """Measure nesting on the bytes, in passes that are linear in their number whatever they hold.

    Escapes go first, so that each quote left begins or ends a string. Two quotes side by side have nothing between
    them, or only end one string and begin the next, so they can go as well. What is left between an even and an odd quote
    is outside of strings.
    """
    if b"\\" in data:
        data = data.replace(rb"\\", b"").replace(rb"\"", b"")
    data = data.translate(None, _NEITHER_BRACKET_NOR_QUOTE).replace(b'""', b"")
    brackets = b"".join(data.split(b'"')[::2])
    steps = memoryview(brackets.translate(_STEPS)).cast("b")
    return max(accumulate(steps), default=0) > limit


# -- writing -----------------------------------------------------------------------------------------------------


def _id(request_id: RequestId) -> bytes:
    return b"%d" % request_id if type(request_id) is int else encode(request_id)


def splice(body: bytes, *members: bytes) -> bytes:
    """Put encoded members, such as ``b'"ttlMs":0'``, in front of those of the encoded object ``body``."""
    head = b",".join(members)
    if not head:
        return body
    return b"".join((b"{", head, b"}")) if body == EMPTY else b"".join((b"{", head, b",", body[1:]))


def encode_request(request_id: RequestId, method: str, params: bytes = EMPTY) -> bytes:
    """Make a request. Without parameters there is no ``params`` member."""
    head = b"".join((b'{"jsonrpc":"2.0","id":', _id(request_id), b',"method":', encode(method)))
    return head + b"}" if params == EMPTY else b"".join((head, b',"params":', params, b"}"))


def encode_notification(method: str, params: bytes = EMPTY) -> bytes:
    """Make a notification. Without parameters there is no ``params`` member."""
    head = b'{"jsonrpc":"2.0","method":' + encode(method)
    return head + b"}" if params == EMPTY else b"".join((head, b',"params":', params, b"}"))


def encode_result(request_id: RequestId, result: bytes | memoryview, stamp: bytes = b"") -> bytes:
    """Make a result response; ``stamp`` is encoded members with a trailing comma, put first into the result."""
    if stamp:
        if result == EMPTY:
            result = b"".join((b"{", stamp[:-1], b"}"))
        else:
            return b"".join((b'{"jsonrpc":"2.0","id":', _id(request_id), b',"result":{', stamp, result[1:], b"}"))
    return b"".join((b'{"jsonrpc":"2.0","id":', _id(request_id), b',"result":', result, b"}"))


def encode_error(request_id: RequestId | UnsetType | None, error: ErrorData) -> bytes:
    """Make an error response. UNSET leaves the id out, None writes null."""
    body = encode(error)
    if request_id is UNSET:
        return b"".join((b'{"jsonrpc":"2.0","error":', body, b"}"))
    id = b"null" if request_id is None else _id(request_id)
    return b"".join((b'{"jsonrpc":"2.0","id":', id, b',"error":', body, b"}"))
