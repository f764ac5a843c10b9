"""The sans-IO core: no I/O, no clock, no chance, no coroutine. Feed it messages, drain its messages, read its events."""

from typing import TYPE_CHECKING

from mcpcore._lazy import lazy

if TYPE_CHECKING:
    from mcpcore.protocol.client import ClientConfig as ClientConfig
    from mcpcore.protocol.client import ClientConnection as ClientConnection
    from mcpcore.protocol.connection import Connection as Connection
    from mcpcore.protocol.messages import Incoming as Incoming
    from mcpcore.protocol.messages import Kind as Kind
    from mcpcore.protocol.messages import Outgoing as Outgoing
    from mcpcore.protocol.messages import RequestScope as RequestScope
    from mcpcore.protocol.messages import Unanswered as Unanswered
    from mcpcore.protocol.server import ServerConfig as ServerConfig
    from mcpcore.protocol.server import ServerConnection as ServerConnection

_HOMES = {
    "ClientConfig": "mcpcore.protocol.client",
    "ClientConnection": "mcpcore.protocol.client",
    "Connection": "mcpcore.protocol.connection",
    "Incoming": "mcpcore.protocol.messages",
    "Kind": "mcpcore.protocol.messages",
    "Outgoing": "mcpcore.protocol.messages",
    "RequestScope": "mcpcore.protocol.messages",
    "Unanswered": "mcpcore.protocol.messages",
    "ServerConfig": "mcpcore.protocol.server",
    "ServerConnection": "mcpcore.protocol.server",
}

__all__ = [
    "ClientConfig",
    "ClientConnection",
    "Connection",
    "Incoming",
    "Kind",
    "Outgoing",
    "RequestScope",
    "ServerConfig",
    "ServerConnection",
    "Unanswered",
]

__getattr__, __dir__ = lazy(__name__, _HOMES)
