"""The sans-IO core: no I/O, no clock, no chance, no coroutine. Feed it messages, drain its messages, read its events."""

from mcpcore.protocol.client import ClientConfig, ClientConnection
from mcpcore.protocol.connection import Connection
from mcpcore.protocol.messages import Incoming, Kind, Outgoing, RequestScope
from mcpcore.protocol.server import ServerConfig, ServerConnection

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
]
