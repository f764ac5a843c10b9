"""mcpcore: the Model Context Protocol for Python.

A sans-IO protocol core (`mcpcore.protocol`) under pluggable transports (`mcpcore.transports`), and a registry of typed
handlers (`mcpcore.providers`), joined by `Server` and `Client`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    # public name: module it is imported from when it is first used
    "AudioContent": "mcpcore.types",
    "CallToolResult": "mcpcore.types",
    "CapabilityError": "mcpcore.exceptions",
    "Client": "mcpcore.runtime.client",
    "Context": "mcpcore.runtime.context",
    "Depends": "mcpcore.providers.markers",
    "Elicit": "mcpcore.providers.markers",
    "EmbeddedResource": "mcpcore.types",
    "GetPromptResult": "mcpcore.types",
    "ImageContent": "mcpcore.types",
    "Limits": "mcpcore.limits",
    "McpError": "mcpcore.exceptions",
    "Param": "mcpcore.providers.markers",
    "PeerError": "mcpcore.exceptions",
    "ReadResourceResult": "mcpcore.types",
    "Registry": "mcpcore.providers.registry",
    "ResourceLink": "mcpcore.types",
    "ResourceNotFound": "mcpcore.exceptions",
    "Server": "mcpcore.runtime.server",
    "ServerSession": "mcpcore.runtime.context",
    "SyncContext": "mcpcore.runtime.context",
    "TextContent": "mcpcore.types",
    "ToolError": "mcpcore.exceptions",
    "ToolHints": "mcpcore.providers.declarations",
    "TransportContext": "mcpcore.runtime.context",
    "complete": "mcpcore.providers.declarations",
    "prompt": "mcpcore.providers.declarations",
    "resource": "mcpcore.providers.declarations",
    "stdio": "mcpcore.transports.stdio",
    "tool": "mcpcore.providers.declarations",
}
