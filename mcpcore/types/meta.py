"""Reserved keys of ``_meta`` (2026-07-28, basic, "General fields: _meta")."""

from typing import Final, Literal

from msgspec import Struct, field

from mcpcore.types.lifecycle import ClientCapabilities, Implementation

__all__ = [
    "CLIENT_CAPABILITIES",
    "CLIENT_INFO",
    "LOG_LEVEL",
    "LogLevel",
    "PROGRESS_TOKEN",
    "PROTOCOL_VERSION",
    "ProgressToken",
    "RequestMetaObject",
    "SERVER_INFO",
    "SUBSCRIPTION_ID",
]

PROGRESS_TOKEN: Final = "progressToken"
PROTOCOL_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO: Final = "io.modelcontextprotocol/clientInfo"
CLIENT_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"

ProgressToken = int | str
"""Chosen by the requester; 0 and "" are tokens, so test for None."""

LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
"""RFC 5424 severities, least severe first."""


class RequestMetaObject(Struct, frozen=True, omit_defaults=True):
    """The members of a request's ``_meta`` that the protocol reads. The rest stays with the caller, raw."""

    progress_token: ProgressToken | None = field(name=PROGRESS_TOKEN, default=None)
    protocol_version: str | None = field(name=PROTOCOL_VERSION, default=None)
    client_info: Implementation | None = field(name=CLIENT_INFO, default=None)
    client_capabilities: ClientCapabilities | None = field(name=CLIENT_CAPABILITIES, default=None)
    log_level: LogLevel | None = field(name=LOG_LEVEL, default=None)
