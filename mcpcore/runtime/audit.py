"""One record for every invocation of a tool: who, what, with which arguments, and how it ended.

Records go to the logger ``mcpcore.audit`` at INFO. A server writes them as soon as somebody listens there, and does
nothing for them before. To change what they hold, give the server an `AuditLog` of your own as middleware.
"""

import logging
import time
from collections.abc import Callable, Collection
from typing import Any, Final, cast

import anyio
import msgspec
from msgspec import UNSET

from mcpcore.exceptions import InsufficientScope
from mcpcore.runtime.errors import standing
from mcpcore.runtime.request import InputNeeded, Message, Request
from mcpcore.types.tools import CallToolResult
from mcpcore.types.utilities import InputRequiredResult

__all__ = ["AuditLog", "is_audited"]

logger = logging.getLogger("mcpcore.audit")

_MASK: Final = "***"


def is_audited() -> bool:
    """Somebody reads the records."""
    return logger.isEnabledFor(logging.INFO)


class AuditLog:
    """Middleware that writes a record for each ``tools/call``, when it has ended.

    The attributes of the record:

    * ``tool``, and ``arguments`` with parameters and fields of ``Param(secret=True)`` masked; the text of them, cut, if too long;
    * ``caller``: the principal, or ``anonymous``; ``session``: the id of the legacy HTTP session, or None;
    * ``request_id``, and ``client``: name and version that the client gives itself;
    * ``outcome``: ``ok``, ``tool_error``, ``hard_error`` (a JSON-RPC error), ``denied`` or ``cancelled``;
    * ``duration_ms``.

    A round that ends by asking the client for input is not the end of the invocation; it gets a DEBUG record with
    outcome ``input_required``.

    Args:
        redact: Called with the tool's name and its arguments, a copy; returns what the record may show.
        max_size: Characters of JSON that arguments may have in a record.
        clock: Seconds, from any start.
    """

    def __init__(
        self,
        *,
        redact: Callable[[str, dict[str, Any]], Any] | None = None,
        max_size: int = 4096,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._redact = redact
        self._max_size = max_size
        self._clock = clock

    async def __call__(self, message: Message, call_next: Callable[[Message], Any]) -> Any:
        if not isinstance(message, Request) or message.method != "tools/call":
            return await call_next(message)
        started, outcome = self._clock(), "hard_error"
        secrets = message.session.server.registry.secrets(message.params.name)  # it may be removed meanwhile
        try:
            result = await call_next(message)
            outcome = _outcome_of(message, result)
            return result
        except anyio.get_cancelled_exc_class():
            outcome = "cancelled"
            raise
        except BaseException as failure:
            error = standing(failure)
            if isinstance(error, InputNeeded):
                outcome = "input_required"
            elif isinstance(error, InsufficientScope):
                outcome = "denied"
            raise
        finally:
            self._write(message, secrets, outcome, (self._clock() - started) * 1000)

    def _write(self, request: Request, secrets: Collection[str], outcome: str, duration_ms: float) -> None:
        tool, info = request.params.name, request.caller.info
        caller = "anonymous" if request.principal is None else str(request.principal)
        record = {
            "tool": tool,
            "arguments": self._shown(request, secrets),
            "caller": caller,
            "session": request.scope.session_id,
            "request_id": request.id,
            "client": None if info is None else f"{info.name}/{info.version}",
            "outcome": outcome,
            "duration_ms": duration_ms,
        }
        level = logging.DEBUG if outcome == "input_required" else logging.INFO
        # Clients name tools as they like: quoted, a name cannot pass for another line of the log.
        logger.log(level, "%s called %r: %s after %.1f ms", caller, tool, outcome, duration_ms, extra=record)

    def _shown(self, request: Request, secrets: Collection[str]) -> Any:
        tool, raw = request.params.name, request.params.arguments
        arguments = None if raw is UNSET else msgspec.json.decode(raw)
        if not isinstance(arguments, dict):  # refused, but a secret may be anywhere in it
            return {} if arguments is None else _MASK
        shown: Any = _masked(arguments, secrets)
        try:
            if self._redact is not None:
                shown = self._redact(tool, shown)
            text = msgspec.json.encode(shown, enc_hook=repr).decode()
        except Exception:
            logger.exception("the redactor failed for tool %r", tool)
            return _MASK
        return shown if len(text) <= self._max_size else f"{text[: self._max_size]}… ({len(text)} characters)"


def _masked(value: Any, secrets: Collection[str]) -> Any:
    """Return a copy of ``value`` in which members of those names are masked, however deep."""
    if isinstance(value, dict):
        members = cast(dict[str, Any], value)
        return {name: _MASK if name in secrets else _masked(each, secrets) for name, each in members.items()}
    if isinstance(value, list):
        return [_masked(each, secrets) for each in cast(list[object], value)]
    return value


def _outcome_of(request: Request, result: Any) -> str:
    if not request.is_open:
        return "cancelled"
    if isinstance(result, InputRequiredResult):
        return "input_required"
    return "tool_error" if isinstance(result, CallToolResult) and result.is_error else "ok"
