"""Turns what a handler raises into what its caller reads.

Of a tool, three answers are possible. Most exceptions are conveyed: the model reads their message, and nothing else of them.
Some are masked: they come from the machine and not from the author, so their text may hold addresses and passwords,
and the model learns that the call failed but not why. A few are not the model's business and become JSON-RPC errors.
Everything that another kind of handler raises becomes a JSON-RPC error. All of it is logged.
"""

import logging
import os
from collections.abc import Callable, Iterator
from typing import Final, NoReturn, cast

from mcpcore.exceptions import CapabilityError, InsufficientScope, MCPCoreError, McpError, ResourceNotFound, ToolError
from mcpcore.providers.schema import InvalidArguments, InvalidValue
from mcpcore.types.content import TextContent
from mcpcore.types.jsonrpc import INTERNAL_ERROR, MISSING_REQUIRED_CLIENT_CAPABILITY
from mcpcore.types.tools import CallToolResult
from mcpcore.versions import Era, era_of

__all__ = ["failed", "outstanding", "request_failure", "tool_failure"]

_logger = logging.getLogger("mcpcore.handlers")

# Written for whoever calls the tool.
_FOR_THE_CALLER: Final = (ToolError, CapabilityError, ResourceNotFound, InvalidValue)
# Raised by the machine. RequestTimeout is an OSError too, and the rest of our own tree speaks to developers.
_OF_THE_MACHINE: Final = (
    OSError,
    AssertionError,
    MemoryError,
    RecursionError,
    SystemError,
    SystemExit,
    MCPCoreError,
)
_ORDINARY: Final = (ValueError, LookupError)


def tool_failure(
    exc: BaseException,
    *,
    tool: str,
    function: str,
    raises: tuple[type[BaseException], ...] = (),
    mask_unexpected: bool = False,
    format_error: Callable[[str, BaseException], str] | None = None,
    version: str,
) -> CallToolResult:
    """Return the result of a tool that raised ``exc``, and log it.

    An `ExceptionGroup` stands for its only member, or for the first `McpError` in it, else the first `ToolError`; the others
    of several are logged.

    Args:
        tool, function: The published name, and the name that the first line of the text gives.
        raises: Exceptions that the author declared hard: the model is not told.
        mask_unexpected: Mask everything but `ToolError`, ValueError and LookupError.
        format_error: ``format_error(tool, exc)`` writes the text of a conveyed exception.
        version: The peer's revision.

    Raises:
        McpError: The JSON-RPC error to answer with.
        InsufficientScope: ``exc`` itself; the transport answers.
        BaseException: ``exc`` itself where it is no failure: cancellation, KeyboardInterrupt, signals of the runtime.
    """
    if not all(isinstance(each, Exception | SystemExit) for each in _leaves(exc)):
        raise exc
    found = outstanding(exc, (*raises, ToolError))
    _log_others(exc, found, f"tool {tool!r}")
    if isinstance(found, McpError | InsufficientScope):
        _logger.info("tool %r answered with %s: %s", tool, type(found).__name__, found)
        raise found
    if isinstance(found, CapabilityError) and _is_missing(found, version):
        _logger.info("tool %r: %s", tool, found)
        raise _missing_capability(found) from found
    if isinstance(found, raises):
        _logger.error("tool %r failed", tool, exc_info=found)
        raise McpError(INTERNAL_ERROR, "Internal error") from found
    if isinstance(found, InvalidArguments):  # the function was not entered
        _logger.info("%s", found)
        return failed(str(found))
    heading = f"Error invoking method: {function}\n"
    if not isinstance(found, _FOR_THE_CALLER):
        reference = os.urandom(4).hex()
        if isinstance(found, _OF_THE_MACHINE) or (mask_unexpected and not isinstance(found, _ORDINARY)):
            _logger.error("tool %r failed (ref %s)", tool, reference, exc_info=found)
            return failed(f"{heading}Internal error (ref {reference})")
        level = logging.WARNING if isinstance(found, _ORDINARY) else logging.ERROR
        _logger.log(level, "tool %r failed (ref %s)", tool, reference, exc_info=found)
    else:
        _logger.info("tool %r failed: %s", tool, _message(found))
    if format_error is not None:
        try:
            return failed(format_error(tool, found))
        except Exception:
            _logger.exception("format_error failed for tool %r", tool)
    if isinstance(found, ToolError) and not found.prefix:
        heading = ""
    return failed(heading + _message(found))


def request_failure(exc: BaseException, *, handler: str, version: str) -> NoReturn:
    """Raise the answer to what a resource, a prompt or a completion raised, and log it.

    Args:
        handler: Kind, name and place, for the log.
        version: The peer's revision.

    Raises:
        McpError: The JSON-RPC error to answer with; one that says nothing for everything unforeseen.
        ResourceNotFound, InsufficientScope: ``exc`` itself; the answer depends on more than is known here.
        BaseException: ``exc`` itself where it is no failure, as in `tool_failure`.
    """
    if not all(isinstance(each, Exception | SystemExit) for each in _leaves(exc)):
        raise exc
    found = outstanding(exc, (ResourceNotFound,))
    _log_others(exc, found, handler)
    if isinstance(found, McpError | ResourceNotFound | InsufficientScope):
        raise found
    if isinstance(found, CapabilityError):
        _logger.info("%s: %s", handler, found)
        missing = _is_missing(found, version)
        raise (_missing_capability(found) if missing else McpError(INTERNAL_ERROR, str(found))) from found
    _logger.error("%s failed", handler, exc_info=found)
    raise McpError(INTERNAL_ERROR, "Internal error") from found


def failed(text: str) -> CallToolResult:
    """Return a tool's error with ``text``."""
    # Half a surrogate pair, which no peer could read, shows as a question mark.
    return CallToolResult([TextContent(text.encode(errors="replace").decode())], is_error=True)


def outstanding(exc: BaseException, raises: tuple[type[BaseException], ...] = ()) -> BaseException:
    """Return the exception that a group stands for; a group of several that are all ordinary stands for itself."""
    leaves = list(_leaves(exc))
    if len(leaves) == 1:
        return leaves[0]
    telling = (McpError, InsufficientScope, *raises)
    return next((each for kind in telling for each in leaves if isinstance(each, kind)), exc)


def _log_others(exc: BaseException, found: BaseException, handler: str) -> None:
    """Log a group of which only ``found`` is answered, because the others may be what nobody foresaw."""
    if found is not exc and len(list(_leaves(exc))) > 1:
        _logger.error("%s failed in several ways, of which one is answered", handler, exc_info=exc)


def _message(exc: BaseException) -> str:
    """Return the exception's own words; its class where it has none."""
    try:
        return str(exc) or type(exc).__name__
    except Exception:  # noqa: BLE001  # somebody's __str__
        return type(exc).__name__


def _leaves(exc: BaseException) -> Iterator[BaseException]:
    if isinstance(exc, BaseExceptionGroup):
        for each in cast("BaseExceptionGroup[BaseException]", exc).exceptions:
            yield from _leaves(each)
    else:
        yield exc


def _is_missing(exc: CapabilityError, version: str) -> bool:
    """Tell whether a client of 2026-07-28 or later could do something about it: declare what it lacks, and ask again."""
    return bool(exc.required) and era_of(version) is Era.MODERN


def _missing_capability(exc: CapabilityError) -> McpError:
    return McpError(MISSING_REQUIRED_CLIENT_CAPABILITY, str(exc), {"requiredCapabilities": exc.required})
