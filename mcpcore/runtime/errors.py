"""From what a handler, or middleware, raises to what the client is answered."""

import logging
import math
from typing import Any, Final, cast

import anyio
import msgspec
from msgspec import UNSET, Raw

from mcpcore._wakeup import asyncio_loop
from mcpcore.exceptions import CapabilityError, InsufficientScope, McpError, ResourceNotFound
from mcpcore.protocol.answers import required_visits
from mcpcore.providers.failures import outstanding
from mcpcore.runtime.request import InputNeeded, Request
from mcpcore.types.elicitation import ElicitParams
from mcpcore.types.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    RESOURCE_NOT_FOUND,
    ErrorData,
)
from mcpcore.types.utilities import InputRequiredResult
from mcpcore.versions import Era

__all__ = ["error_of", "is_stray", "standing"]

logger = logging.getLogger("mcpcore.server")

_RESERVED: Final = range(-32099, -32019)
"""Codes that only the specification hands out (2026-07-28, basic, "Error Codes")."""


def standing(error: BaseException) -> BaseException:
    """Return what ``error`` stands for: of a group the member that is an answer, or its only one; else itself."""
    return outstanding(error, (InputNeeded, ResourceNotFound))


def is_stray(error: BaseException) -> bool:
    """Tell whether ``error`` is a handler's own failure although nothing that a handler should fail with.

    That is the cancellation of something else that the handler waited for, and what extension modules raise when they
    panic. The cancellation of the request, and what ends the process, are none of it.
    """
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return not isinstance(error, Exception) and all(
            isinstance(each, Exception) or is_stray(each) for each in group.exceptions
        )
    if isinstance(error, Exception | InputNeeded | KeyboardInterrupt | SystemExit | GeneratorExit):
        return False
    return not (isinstance(error, anyio.get_cancelled_exc_class()) and _is_cancelled())


def _is_cancelled() -> bool:
    """Tell whether somebody cancels the current task, by a scope around it or, as asyncio also can, directly."""
    if anyio.current_effective_deadline() == -math.inf:
        return True
    if (loop := asyncio_loop()) is None:
        return True  # trio has no other way, and its exception is made by nobody else
    import asyncio

    task: asyncio.Task[Any] | None = asyncio.current_task(loop)
    return task is not None and task.cancelling() > 0


def error_of(request: Request, error: BaseException) -> ErrorData | InputRequiredResult:
    """Return what to answer. What nobody foresaw is logged and not shown."""
    modern = request.caller.era is Era.MODERN
    if isinstance(error, McpError):
        return _modern(request, error) if modern else _legacy(request, error)
    if isinstance(error, ResourceNotFound):
        return ErrorData(INVALID_PARAMS if modern else RESOURCE_NOT_FOUND, str(error), {"uri": error.uri})
    if isinstance(error, InsufficientScope):
        return ErrorData(INVALID_REQUEST, str(error))
    if isinstance(error, CapabilityError):
        return ErrorData(INTERNAL_ERROR, f"Internal error: {error}")
    logger.error("%s failed", request.method, exc_info=error)
    return ErrorData(INTERNAL_ERROR, "Internal error")


def _legacy(request: Request, error: McpError) -> ErrorData:
    given = _as_given(error)
    if visits := required_visits(given, request.caller.version):
        for each in (visits.input_requests or {}).values():
            wanted = msgspec.json.decode(cast(Raw, each.params), type=ElicitParams)
            if wanted.elicitation_id is not None:
                request.session.visits(wanted.elicitation_id)
    return given


def _as_given(error: McpError) -> ErrorData:
    return ErrorData(error.code, error.message, UNSET if error.data is None else error.data)


def _modern(request: Request, error: McpError) -> ErrorData | InputRequiredResult:
    """Keep to the codes of 2026-07-28. The core sees to it, too, but knows neither our rounds nor our log."""
    given = _as_given(error)
    visits = required_visits(given, request.caller.version) if request.event.method.input_required else None
    if visits is not None:
        return request.input_required(visits)
    foreseen = isinstance(error, CapabilityError) or isinstance(error.__cause__, CapabilityError)
    if error.code not in _RESERVED or (error.code == MISSING_REQUIRED_CLIENT_CAPABILITY and foreseen):
        return given
    logger.error("%s failed with the reserved error code %d", request.method, error.code, exc_info=error)
    return ErrorData(INTERNAL_ERROR, "Internal error")
