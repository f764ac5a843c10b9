"""Every exception that mcpcore raises, in one tree.

Local conditions are classes and never error codes, so that nothing raised on this side can be mistaken
for an answer of the peer (2026-07-28, basic, "Error Codes"). `McpError`, which a handler raises to answer,
and `PeerError`, which the client raises for an answer, are unrelated on purpose: a proxy that lets a
`PeerError` escape from a handler reports an unexpected failure and does not re-send somebody else's error.
"""

import re
from enum import Enum
from typing import Any

__all__ = [
    "AuthError",
    "BenchmarkError",
    "CapabilityError",
    "ConnectionLost",
    "DefinitionError",
    "DuplicateName",
    "InsufficientScope",
    "LocalProtocolError",
    "MCPCoreError",
    "McpError",
    "OutputValidationError",
    "PeerError",
    "ProtocolError",
    "RemoteProtocolError",
    "RequestTimeout",
    "ResourceNotFound",
    "ServerExited",
    "SessionExpired",
    "SkippedHandlers",
    "ToolError",
    "TransportError",
    "enum_error",
]


class MCPCoreError(Exception):
    """Base of everything that mcpcore raises."""


# -- the protocol core -------------------------------------------------------------------------------------------


class ProtocolError(MCPCoreError):
    """A rule of the protocol was broken. Never raised itself: one of the two subclasses says by whom."""

    def __init__(self, message: str) -> None:
        if type(self) is ProtocolError:
            raise TypeError("raise LocalProtocolError or RemoteProtocolError, not ProtocolError")
        super().__init__(message)


class LocalProtocolError(ProtocolError):
    """This side called the core out of turn. Nothing was queued; it is a bug in the caller."""


class RemoteProtocolError(ProtocolError):
    """The peer broke the protocol.

    Args:
        message: What was wrong, in words fit for the peer.
        code: The JSON-RPC error code that answers it.
        id: The id to answer under, or None where it could not be read or must not be used.
    """

    def __init__(self, message: str, *, code: int = -32600, id: int | str | None = None, data: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.id = id
        self.data = data


# -- raised by handlers, turned into answers ---------------------------------------------------------------------


class McpError(MCPCoreError):
    """Raised by a handler to answer with this JSON-RPC error, exactly as given.

    Args:
        code: A JSON-RPC error code.
        message: One short sentence.
        data: Any JSON value; absent when None.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class ToolError(MCPCoreError):
    """Raised by a tool to tell the model what went wrong and what would work instead.

    Args:
        message: The text the model reads.
        prefix: False leaves out the first line, ``Error invoking method: <function>``.
    """

    def __init__(self, message: str, *, prefix: bool = True) -> None:
        super().__init__(message)
        self.prefix = prefix


def enum_error(value: object, choices: type[Enum]) -> ToolError:
    """Return the error for a value that is none of an enumeration, with all that would have been: ``raise enum_error(…)``.

    Args:
        value: What was given.
        choices: Its class names the thing: ``Status`` makes "Invalid status 'X'. Must be one of: [A, B]".
    """
    thing = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", choices.__name__).lower()
    return ToolError(f"Invalid {thing} '{value}'. Must be one of: [{', '.join(str(each.value) for each in choices)}]")


class ResourceNotFound(MCPCoreError):
    """Raised by a resource handler: there is nothing at ``uri``.

    Answered with -32002 up to 2025-11-25 and -32602 from 2026-07-28, with ``data.uri``.
    """

    def __init__(self, uri: str) -> None:
        super().__init__(f"Resource not found: {uri}")
        self.uri = uri


class InsufficientScope(MCPCoreError):
    """Raised by a handler: the caller's token lacks these scopes."""

    def __init__(self, *scopes: str) -> None:
        super().__init__(f"Insufficient scope, needed: {' '.join(scopes)}")
        self.scopes = scopes


class CapabilityError(MCPCoreError):
    """The other side did not declare the capability that was asked for.

    Args:
        message: Names the capability and the peer.
        required: The missing capabilities, shaped like `ClientCapabilities`.
    """

    def __init__(self, message: str, *, required: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.required = required or {}


# -- raised by the client ----------------------------------------------------------------------------------------


class PeerError(MCPCoreError):
    """The peer answered with a JSON-RPC error. Nothing was violated: it is an answer."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        self.data = data


class TransportError(MCPCoreError):
    """The messages did not get through.

    Args:
        message: What happened.
        status: The HTTP status that a server answered with, where that is what happened.
        retry_after: Seconds after which the server wants to be asked again, where it has no time or room now.
    """

    def __init__(self, message: str, *, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class ConnectionLost(TransportError):
    """The connection ended before the answer came."""


class ServerExited(ConnectionLost):
    """The server's process ended.

    Args:
        command: The command line that had been started.
        returncode: Its exit status; negative is the number of the signal that ended it; None while unknown.
        stderr_tail: The last lines that it wrote to its standard error, at most 4 KiB.
    """

    def __init__(self, command: str, returncode: int | None, stderr_tail: str = "") -> None:
        how = "ended" if returncode is None else f"ended with status {returncode}"
        tail = f"; its standard error ends with:\n{stderr_tail}" if stderr_tail else ""
        super().__init__(f"server {command!r} {how}{tail}")
        self.command = command
        self.returncode = returncode
        self.stderr_tail = stderr_tail


class SessionExpired(TransportError):
    """The server no longer knows the session."""


class AuthError(TransportError):
    """The server refused the credentials, or none could be obtained."""


class RequestTimeout(MCPCoreError, TimeoutError):
    """No answer within the time allowed. The peer has been told that the request is cancelled."""


class OutputValidationError(MCPCoreError):
    """A tool's structured content does not fit the output schema that its server published.

    Args:
        tool: The tool's name.
        errors: What does not fit, as ``<JSON pointer>: <what>``.
        result: The result as it came, so that its content is not lost.
    """

    def __init__(self, tool: str, errors: list[str], result: Any) -> None:
        super().__init__(f"Tool ({tool}) output validation failed: {', '.join(errors)}")
        self.tool = tool
        self.errors = errors
        self.result = result


# -- raised by measurements --------------------------------------------------------------------------------------


class BenchmarkError(MCPCoreError):
    """What makes a figure impossible or worthless: a wrong reply, a dead server, one that cannot be reached."""


# -- raised while handlers are registered ------------------------------------------------------------------------


class DefinitionError(MCPCoreError):
    """A handler cannot be registered as it is written."""


class DuplicateName(DefinitionError):
    """Two handlers of one kind have the same name."""


class SkippedHandlers(DefinitionError):
    """Handlers were filtered out and the server was told to refuse that (``on_skip="error"``)."""

    def __init__(self, skipped: list[Any]) -> None:
        super().__init__("\n".join(str(each) for each in skipped))
        self.skipped = skipped
