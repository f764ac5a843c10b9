"""mcpcore: the Model Context Protocol for Python.

A sans-IO protocol core (`mcpcore.protocol`) under pluggable transports (`mcpcore.transports`), and a registry of typed
handlers (`mcpcore.providers`), joined by `Server` and `Client` (`mcpcore.runtime`).
"""

from typing import TYPE_CHECKING

from mcpcore._lazy import lazy

if TYPE_CHECKING:
    from mcpcore.exceptions import AuthError as AuthError
    from mcpcore.exceptions import CapabilityError as CapabilityError
    from mcpcore.exceptions import ConnectionLost as ConnectionLost
    from mcpcore.exceptions import DefinitionError as DefinitionError
    from mcpcore.exceptions import DuplicateName as DuplicateName
    from mcpcore.exceptions import InsufficientScope as InsufficientScope
    from mcpcore.exceptions import LocalProtocolError as LocalProtocolError
    from mcpcore.exceptions import MCPCoreError as MCPCoreError
    from mcpcore.exceptions import McpError as McpError
    from mcpcore.exceptions import OutputValidationError as OutputValidationError
    from mcpcore.exceptions import PeerError as PeerError
    from mcpcore.exceptions import ProtocolError as ProtocolError
    from mcpcore.exceptions import RemoteProtocolError as RemoteProtocolError
    from mcpcore.exceptions import RequestTimeout as RequestTimeout
    from mcpcore.exceptions import ResourceNotFound as ResourceNotFound
    from mcpcore.exceptions import ServerExited as ServerExited
    from mcpcore.exceptions import SessionExpired as SessionExpired
    from mcpcore.exceptions import SkippedHandlers as SkippedHandlers
    from mcpcore.exceptions import ToolError as ToolError
    from mcpcore.exceptions import TransportError as TransportError
    from mcpcore.exceptions import enum_error as enum_error
    from mcpcore.limits import Limits as Limits
    from mcpcore.providers.declarations import ResourceHints as ResourceHints
    from mcpcore.providers.declarations import ToolHints as ToolHints
    from mcpcore.providers.declarations import complete as complete
    from mcpcore.providers.declarations import prompt as prompt
    from mcpcore.providers.declarations import resource as resource
    from mcpcore.providers.declarations import tool as tool
    from mcpcore.providers.markers import Arg as Arg
    from mcpcore.providers.markers import CallToolRequest as CallToolRequest
    from mcpcore.providers.markers import CompleteRequest as CompleteRequest
    from mcpcore.providers.markers import Depends as Depends
    from mcpcore.providers.markers import Elicit as Elicit
    from mcpcore.providers.markers import GetPromptRequest as GetPromptRequest
    from mcpcore.providers.markers import Injected as Injected
    from mcpcore.providers.markers import Log as Log
    from mcpcore.providers.markers import Param as Param
    from mcpcore.providers.markers import Progress as Progress
    from mcpcore.providers.markers import ProgressToken as ProgressToken
    from mcpcore.providers.markers import ReadResourceRequest as ReadResourceRequest
    from mcpcore.providers.markers import RequestMeta as RequestMeta
    from mcpcore.providers.markers import Roots as Roots
    from mcpcore.providers.markers import Sample as Sample
    from mcpcore.providers.markers import ToolContext as ToolContext
    from mcpcore.providers.media import Audio as Audio
    from mcpcore.providers.media import File as File
    from mcpcore.providers.media import Image as Image
    from mcpcore.providers.registry import Registry as Registry
    from mcpcore.providers.results import assistant as assistant
    from mcpcore.providers.results import user as user
    from mcpcore.runtime.client import Client as Client
    from mcpcore.runtime.context import Context as Context
    from mcpcore.runtime.context import ServerSession as ServerSession
    from mcpcore.runtime.context import SyncContext as SyncContext
    from mcpcore.runtime.context import TransportContext as TransportContext
    from mcpcore.runtime.offer import CacheHint as CacheHint
    from mcpcore.runtime.questions import ElicitReply as ElicitReply
    from mcpcore.runtime.server import Server as Server
    from mcpcore.transports.stdio_client import stdio as stdio
    from mcpcore.types import AudioContent as AudioContent
    from mcpcore.types import CallToolResult as CallToolResult
    from mcpcore.types import CompleteResult as CompleteResult
    from mcpcore.types import Completion as Completion
    from mcpcore.types import EmbeddedResource as EmbeddedResource
    from mcpcore.types import GetPromptResult as GetPromptResult
    from mcpcore.types import Icon as Icon
    from mcpcore.types import ImageContent as ImageContent
    from mcpcore.types import PromptMessage as PromptMessage
    from mcpcore.types import ReadResourceResult as ReadResourceResult
    from mcpcore.types import ResourceContents as ResourceContents
    from mcpcore.types import ResourceLink as ResourceLink
    from mcpcore.types import TextContent as TextContent
    from mcpcore.types.tools import ToolResult as ToolResult

__version__ = "0.1.0"

# Each public name and the module that has it, which is imported when the name is first used: a server on stdio never
# loads the client, and a client never loads the registry.
_HOMES = {
    "Arg": "mcpcore.providers.markers",
    "Audio": "mcpcore.providers.media",
    "AudioContent": "mcpcore.types",
    "AuthError": "mcpcore.exceptions",
    "CacheHint": "mcpcore.runtime.offer",
    "CallToolRequest": "mcpcore.providers.markers",
    "CallToolResult": "mcpcore.types",
    "CapabilityError": "mcpcore.exceptions",
    "Client": "mcpcore.runtime.client",
    "CompleteRequest": "mcpcore.providers.markers",
    "CompleteResult": "mcpcore.types",
    "Completion": "mcpcore.types",
    "ConnectionLost": "mcpcore.exceptions",
    "Context": "mcpcore.runtime.context",
    "DefinitionError": "mcpcore.exceptions",
    "Depends": "mcpcore.providers.markers",
    "DuplicateName": "mcpcore.exceptions",
    "Elicit": "mcpcore.providers.markers",
    "ElicitReply": "mcpcore.runtime.questions",
    "EmbeddedResource": "mcpcore.types",
    "File": "mcpcore.providers.media",
    "GetPromptRequest": "mcpcore.providers.markers",
    "GetPromptResult": "mcpcore.types",
    "Icon": "mcpcore.types",
    "Image": "mcpcore.providers.media",
    "ImageContent": "mcpcore.types",
    "Injected": "mcpcore.providers.markers",
    "InsufficientScope": "mcpcore.exceptions",
    "Limits": "mcpcore.limits",
    "LocalProtocolError": "mcpcore.exceptions",
    "Log": "mcpcore.providers.markers",
    "MCPCoreError": "mcpcore.exceptions",
    "McpError": "mcpcore.exceptions",
    "OutputValidationError": "mcpcore.exceptions",
    "Param": "mcpcore.providers.markers",
    "PeerError": "mcpcore.exceptions",
    "Progress": "mcpcore.providers.markers",
    "ProgressToken": "mcpcore.providers.markers",
    "PromptMessage": "mcpcore.types",
    "ProtocolError": "mcpcore.exceptions",
    "ReadResourceRequest": "mcpcore.providers.markers",
    "ReadResourceResult": "mcpcore.types",
    "Registry": "mcpcore.providers.registry",
    "RemoteProtocolError": "mcpcore.exceptions",
    "RequestMeta": "mcpcore.providers.markers",
    "RequestTimeout": "mcpcore.exceptions",
    "ResourceContents": "mcpcore.types",
    "ResourceHints": "mcpcore.providers.declarations",
    "ResourceLink": "mcpcore.types",
    "ResourceNotFound": "mcpcore.exceptions",
    "Roots": "mcpcore.providers.markers",
    "Sample": "mcpcore.providers.markers",
    "Server": "mcpcore.runtime.server",
    "ServerExited": "mcpcore.exceptions",
    "ServerSession": "mcpcore.runtime.context",
    "SessionExpired": "mcpcore.exceptions",
    "SkippedHandlers": "mcpcore.exceptions",
    "SyncContext": "mcpcore.runtime.context",
    "TextContent": "mcpcore.types",
    "ToolContext": "mcpcore.providers.markers",
    "ToolError": "mcpcore.exceptions",
    "ToolHints": "mcpcore.providers.declarations",
    "ToolResult": "mcpcore.types.tools",
    "TransportContext": "mcpcore.runtime.context",
    "TransportError": "mcpcore.exceptions",
    "assistant": "mcpcore.providers.results",
    "complete": "mcpcore.providers.declarations",
    "enum_error": "mcpcore.exceptions",
    "prompt": "mcpcore.providers.declarations",
    "resource": "mcpcore.providers.declarations",
    "stdio": "mcpcore.transports.stdio_client",
    "tool": "mcpcore.providers.declarations",
    "user": "mcpcore.providers.results",
}

__all__ = [
    "Arg",
    "Audio",
    "AudioContent",
    "AuthError",
    "CacheHint",
    "CallToolRequest",
    "CallToolResult",
    "CapabilityError",
    "Client",
    "CompleteRequest",
    "CompleteResult",
    "Completion",
    "ConnectionLost",
    "Context",
    "DefinitionError",
    "Depends",
    "DuplicateName",
    "Elicit",
    "ElicitReply",
    "EmbeddedResource",
    "File",
    "GetPromptRequest",
    "GetPromptResult",
    "Icon",
    "Image",
    "ImageContent",
    "Injected",
    "InsufficientScope",
    "Limits",
    "LocalProtocolError",
    "Log",
    "MCPCoreError",
    "McpError",
    "OutputValidationError",
    "Param",
    "PeerError",
    "Progress",
    "ProgressToken",
    "PromptMessage",
    "ProtocolError",
    "ReadResourceRequest",
    "ReadResourceResult",
    "Registry",
    "RemoteProtocolError",
    "RequestMeta",
    "RequestTimeout",
    "ResourceContents",
    "ResourceHints",
    "ResourceLink",
    "ResourceNotFound",
    "Roots",
    "Sample",
    "Server",
    "ServerExited",
    "ServerSession",
    "SessionExpired",
    "SkippedHandlers",
    "SyncContext",
    "TextContent",
    "ToolContext",
    "ToolError",
    "ToolHints",
    "ToolResult",
    "TransportContext",
    "TransportError",
    "assistant",
    "complete",
    "enum_error",
    "prompt",
    "resource",
    "stdio",
    "tool",
    "user",
]


__getattr__, __dir__ = lazy(__name__, _HOMES)
