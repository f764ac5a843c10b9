"""What the answers of a modern server carry beside what its handlers give, and what must not be among it.

2026-07-28, basic, "Result Responses", "Error Codes" and "Per-response protocol fields"; server/utilities/caching;
basic/patterns/mrtr, "Server Requirements".
"""

from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct

from mcpcore.exceptions import LocalProtocolError
from mcpcore.protocol import codec
from mcpcore.protocol.exchanges import Inbound
from mcpcore.protocol.fitting import decoder_of, encode_fitted, fitted, take_meta
from mcpcore.types._base import Object
from mcpcore.types.elicitation import ElicitParams
from mcpcore.types.jsonrpc import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    RESOURCE_NOT_FOUND,
    UNSUPPORTED_PROTOCOL_VERSION,
    URL_ELICITATION_REQUIRED,
    ErrorData,
    RequestId,
)
from mcpcore.types.lifecycle import ClientCapabilities, Implementation
from mcpcore.types.meta import SERVER_INFO
from mcpcore.types.sampling import CreateMessageParams
from mcpcore.types.utilities import InputRequest, InputRequiredResult

__all__ = ["Stamps", "allowed_error", "can_elicit", "lacking", "missing_capabilities", "required_visits"]

_DEFINED: Final = (HEADER_MISMATCH, MISSING_REQUIRED_CLIENT_CAPABILITY, UNSUPPORTED_PROTOCOL_VERSION)


class Stamps:
    """Puts into results what every modern result has: its type, the server's name, and caching hints.

    Args:
        info: Who the server is.
        ttl_ms: How long cacheable results stay fresh, in milliseconds, where a result does not say.
        cache_scope: Who may cache them.

    Raises:
        ValueError: No such hints exist.
    """

    def __init__(self, info: Implementation, ttl_ms: int, cache_scope: str) -> None:
        self._info = info
        self._ttl_ms = ttl_ms
        self._cache_scope = cache_scope
        self._plain = self._stamp({})
        self._cacheable = self._stamp({}, **_hints(ttl_ms, cache_scope))

    def encode(self, request_id: RequestId, exchange: Inbound, result: Object | Raw) -> bytes:
        """Return the message that answers ``exchange`` with ``result``, whose own ``_meta`` and hints are kept.

        Raises:
            LocalProtocolError: Its hints do not exist.
        """
        cacheable = exchange.method.cacheable
        stamp = self._cacheable if cacheable else self._plain
        if type(result) is not Raw and (cacheable or getattr(result, "meta", None) is not None):
            stamp, result = self._merged(result, cacheable)
        return codec.encode_result(request_id, fitted(result, exchange.version), stamp)

    def encode_complete(self, request_id: RequestId, meta: dict[str, Any]) -> bytes:
        """Return a result of nothing but ``meta``."""
        return codec.encode_result(request_id, codec.EMPTY, self._stamp(meta))

    def encode_input_required(self, request_id: RequestId, required: InputRequiredResult) -> bytes:
        """Return the interim answer that asks for ``required``. It carries no caching hints."""
        required, meta = take_meta(required)  # type: ignore[assignment]  # it stays what it is
        stamp = self._stamp(meta, resultType="input_required")
        return codec.encode_result(request_id, codec.encode(required), stamp)

    def _merged(self, result: Any, cacheable: bool) -> tuple[bytes, Any]:
        result, meta = take_meta(result)
        if not cacheable:
            return self._stamp(meta), result
        ttl_ms, scope = result.ttl_ms, result.cache_scope
        if not meta and ttl_ms is None and scope is None:
            return self._cacheable, result
        try:
            hints = _hints(self._ttl_ms if ttl_ms is None else ttl_ms, self._cache_scope if scope is None else scope)
        except ValueError as error:
            raise LocalProtocolError(str(error)) from None
        return self._stamp(meta, **hints), msgspec.structs.replace(result, ttl_ms=None, cache_scope=None)

    def _stamp(self, meta: dict[str, Any], **members: Any) -> bytes:
        """Encode members with a trailing comma, as `codec.encode_result` wants them."""
        stamp = {"resultType": "complete", "_meta": {**meta, SERVER_INFO: self._info}, **members}
        return codec.encode(stamp)[1:-1] + b","


def _hints(ttl_ms: int, cache_scope: str) -> dict[str, Any]:
    if ttl_ms < 0:
        raise ValueError(f"a time to live of {ttl_ms} ms: give 0 or more")
    if cache_scope not in ("public", "private"):
        raise ValueError(f"cache scope {cache_scope!r}: give 'public' or 'private'")
    return {"ttlMs": ttl_ms, "cacheScope": cache_scope}


# -- errors ------------------------------------------------------------------------------------------------------


def allowed_error(error: ErrorData) -> ErrorData:
    """Return ``error`` with a code that a modern server may send.

    Codes of earlier revisions have successors or none, and from -32020 to -32099 there are none but those that the
    specification defines.
    """
    if error.code == RESOURCE_NOT_FOUND:
        return ErrorData(INVALID_PARAMS, error.message, error.data)
    if -32099 <= error.code <= -32020 and error.code not in _DEFINED:
        return ErrorData(INTERNAL_ERROR, error.message, error.data)
    return error


class _Visits(Struct):
    elicitations: list[ElicitParams]


def required_visits(error: ErrorData, version: str) -> InputRequiredResult | None:
    """Return the `InputRequiredResult` that says what -32042 said in 2025-11-25; None where ``error`` says something else."""
    if error.code != URL_ELICITATION_REQUIRED:
        return None
    try:
        visits = msgspec.convert(error.data, _Visits).elicitations
    except msgspec.ValidationError:
        return None
    asked = {
        f"visit-{number}": InputRequest(
            "elicitation/create", Raw(encode_fitted(msgspec.structs.replace(visit, mode="url"), version))
        )
        for number, visit in enumerate(visits, 1)
    }
    return InputRequiredResult(asked) if asked else None


# -- capabilities of the client ----------------------------------------------------------------------------------


def missing_capabilities(required: InputRequiredResult, capabilities: ClientCapabilities) -> dict[str, Any]:
    """Return what a client must declare, and did not, for these inputs; shaped like `ClientCapabilities`.

    Raises:
        LocalProtocolError: The parameters of an input are malformed.
    """
    missing: dict[str, Any] = {}
    for key, request in (required.input_requests or {}).items():
        raw = codec.EMPTY if request.params is UNSET else request.params
        kind = _QUESTIONS.get(request.method)
        try:
            params = None if kind is None else decoder_of(kind)(raw)
        except codec.UNDECODABLE as error:
            raise LocalProtocolError(f"input request {key!r} is malformed: {error}") from None
        for name, modes in lacking(request.method, params, capabilities).items():
            missing.setdefault(name, {}).update(modes)
    return missing


_QUESTIONS: Final[dict[str, type[Object]]] = {
    "elicitation/create": ElicitParams,
    "sampling/createMessage": CreateMessageParams,
}


def lacking(method: str, params: Any, capabilities: ClientCapabilities) -> dict[str, Any]:
    """Return what a client must declare, and did not, to be asked this; shaped like `ClientCapabilities`."""
    if isinstance(params, ElicitParams):
        mode = params.mode or "form"
        return {} if can_elicit(capabilities, mode) else {"elicitation": {mode: {}}}
    if isinstance(params, CreateMessageParams):
        with_tools = params.tools is not None or params.tool_choice is not None
        if capabilities.sampling is None or (with_tools and capabilities.sampling.tools is None):
            return {"sampling": {"tools": {}} if with_tools else {}}
        return {}
    return {"roots": {}} if method == "roots/list" and capabilities.roots is None else {}


def can_elicit(capabilities: ClientCapabilities, mode: str) -> bool:
    """Tell whether the client elicits in ``mode``. No mode named means form (client/elicitation, "Capabilities")."""
    declared_modes = capabilities.elicitation
    if declared_modes is None:
        return False
    if mode == "url":
        return declared_modes.url is not None
    return declared_modes.form is not None or declared_modes.url is None
