"""What HTTP says twice: body fields that are mirrored in headers, for both ends.

2026-07-28, basic/transports/streamable-http, "Request Metadata". Header names are compared in lower case; values are
compared after the base64 sentinel has been undone, strictly: two spellings of one value would be two values to whoever
routes by them.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET

from mcpcore.types.header_map import HeaderMap
from mcpcore.types.jsonrpc import HEADER_MISMATCH, ErrorData
from mcpcore.types.methods import Method

__all__ = [
    "decode_value",
    "encode_value",
    "method_mismatch",
    "mirror",
    "mismatch",
    "version_mismatch",
]

_PREFIX: Final = "=?base64?"
_SUFFIX: Final = "?="
_SAFE: Final = (1 - 2**53, 2**53 - 1)


def encode_value(text: str) -> str:
    """Return ``text`` as a header value: as it is where that is safe, in the base64 sentinel elsewhere."""
    plain = all(" " <= character <= "~" for character in text) and text == text.strip(" ")
    if plain and not (text.startswith(_PREFIX) and text.endswith(_SUFFIX)):
        return text
    return _PREFIX + base64.b64encode(text.encode("utf-8")).decode("ascii") + _SUFFIX


def decode_value(value: str) -> str:
    """Undo `encode_value`. Without the whole sentinel a value stands for itself.

    Raises:
        ValueError: The sentinel holds no canonical base64 of UTF-8, or the value has characters that no header has.
    """
    value = value.strip(" \t")
    if not (value.startswith(_PREFIX) and value.endswith(_SUFFIX) and len(value) >= len(_PREFIX) + len(_SUFFIX)):
        if any(not (" " <= character <= "~" or character == "\t") for character in value):
            raise ValueError("it has characters that must be encoded")
        return value
    encoded = value[len(_PREFIX) : -len(_SUFFIX)]
    try:
        data = base64.b64decode(encoded.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise ValueError("its base64 is malformed") from None
    if base64.b64encode(data).decode("ascii") != encoded:
        raise ValueError("its base64 is not canonical")
    return data.decode("utf-8")


def mirror(row: Method, version: str, params: Any, headers: HeaderMap | None) -> dict[str, str]:
    """Return the header fields for a modern request, names as the specification writes them.

    Raises:
        ValueError: An integer cannot be mirrored without loss.
    """
    fields = {"MCP-Protocol-Version": version, "Mcp-Method": row.name}
    if row.named_by is not None:
        fields["Mcp-Name"] = encode_value(getattr(params, row.named_by))
    if headers:
        arguments = _arguments(params)
        for path, name in headers.items():
            value = _at(arguments, path)
            if value is not None:
                fields["Mcp-Param-" + name.removeprefix("mcp-param-")] = encode_value(_text(value, path))
    return fields


def method_mismatch(received: Mapping[str, str], method: str) -> ErrorData | None:
    """Compare ``Mcp-Method`` with the body; asked before anybody looks whether there is such a method."""
    return _compare(received, "Mcp-Method", method)


def mismatch(
    received: Mapping[str, str], row: Method, params: Any, headers: HeaderMap | None = None
) -> ErrorData | None:
    """Compare ``Mcp-Name`` and ``Mcp-Param-*`` with the body; None means that they agree.

    Args:
        received: Header fields, names in lower case.
        row: The method.
        params: As decoded.
        headers: Of the tool that is called, if it has any.
    """
    problem = _compare(received, "Mcp-Name", getattr(params, row.named_by)) if row.named_by is not None else None
    return problem or (_parameters(received, params, headers) if headers else None)


def _compare(received: Mapping[str, str], name: str, body: str) -> ErrorData | None:
    given = received.get(name.lower())
    if given is None:
        return _refusal(f"{name} is missing")
    if given == body and not given.startswith(_PREFIX) and given.isascii() and given.isprintable():
        return None
    try:
        value = decode_value(given)
    except ValueError as error:
        return _refusal(f"{name} cannot be read: {error}")
    if value != body:
        return _refusal(f"{name} header value {value[:64]!r} does not match body value {body[:64]!r}")
    return None


def version_mismatch(received: Mapping[str, str], version: str) -> ErrorData | None:
    """Compare the version header with ``_meta``; asked before anybody looks whether the version is supported."""
    given = received.get("mcp-protocol-version")
    if given is None:
        return _refusal("MCP-Protocol-Version is missing")
    if given.strip(" \t") != version:
        return _refusal(f"MCP-Protocol-Version header value {given[:64]!r} does not match body value {version[:64]!r}")
    return None


def _parameters(received: Mapping[str, str], params: Any, headers: HeaderMap) -> ErrorData | None:
    arguments = _arguments(params)
    for path, name in headers.items():
        body, given = _at(arguments, path), received.get(name)
        if body is None and given is None:
            continue
        if body is None or given is None:
            return _refusal(f"{name} and argument {'.'.join(path)}: one is there and the other is not")
        try:
            value = decode_value(given)
        except ValueError as error:
            return _refusal(f"{name} cannot be read: {error}")
        if not _equal(value, body):
            return _refusal(f"{name} does not match argument {'.'.join(path)}")
    return None


def _equal(value: str, body: Any) -> bool:
    if isinstance(body, bool):
        return value == ("true" if body else "false")
    if isinstance(body, int | float):
        try:
            return float(value) == float(body)
        except (ValueError, OverflowError):
            return False
    return isinstance(body, str) and value == body


def _text(value: Any, path: tuple[str, ...]) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if not _SAFE[0] <= value <= _SAFE[1]:
            raise ValueError(f"argument {'.'.join(path)}: {value} is beyond the integers that headers can carry")
        return str(value)
    return str(value)


def _arguments(params: Any) -> Any:
    raw = getattr(params, "arguments", UNSET)
    return {} if raw is UNSET else msgspec.json.decode(raw)


def _at(arguments: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        match arguments:
            case {**members}:
                arguments = members.get(name)
            case _:
                return None
    return arguments


def _refusal(what: str) -> ErrorData:
    return ErrorData(HEADER_MISMATCH, f"Header mismatch: {what}")
