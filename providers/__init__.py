"""Handlers: declared by decorators, inspected once, selected for a kind of server, registered, invoked.

Nothing here knows an event loop, a transport or a protocol version other than the string it is given: a `Registry` can be
filled, listed and called with no server around it.
"""

from typing import TYPE_CHECKING

from mcpcore._lazy import lazy

if TYPE_CHECKING:
    from mcpcore.providers.declarations import ResourceHints as ResourceHints
    from mcpcore.providers.declarations import ToolHints as ToolHints
    from mcpcore.providers.declarations import complete as complete
    from mcpcore.providers.declarations import prompt as prompt
    from mcpcore.providers.declarations import resource as resource
    from mcpcore.providers.declarations import tool as tool
    from mcpcore.providers.handler import Handler as Handler
    from mcpcore.providers.markers import Arg as Arg
    from mcpcore.providers.markers import CallToolRequest as CallToolRequest
    from mcpcore.providers.markers import CompleteRequest as CompleteRequest
    from mcpcore.providers.markers import Demand as Demand
    from mcpcore.providers.markers import Depends as Depends
    from mcpcore.providers.markers import Elicit as Elicit
    from mcpcore.providers.markers import GetPromptRequest as GetPromptRequest
    from mcpcore.providers.markers import Injected as Injected
    from mcpcore.providers.markers import Injection as Injection
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
    from mcpcore.providers.selection import AsyncProvider as AsyncProvider
    from mcpcore.providers.selection import AsyncStatelessProvider as AsyncStatelessProvider
    from mcpcore.providers.selection import Provider as Provider
    from mcpcore.providers.selection import Skipped as Skipped
    from mcpcore.providers.selection import SyncProvider as SyncProvider
    from mcpcore.providers.selection import SyncStatelessProvider as SyncStatelessProvider
    from mcpcore.providers.source import Source as Source
    from mcpcore.providers.uri_template import URITemplate as URITemplate

# Each public name and the module that has it, which is imported when the name is first used.
_HOMES = {
    "Arg": "mcpcore.providers.markers",
    "AsyncProvider": "mcpcore.providers.selection",
    "AsyncStatelessProvider": "mcpcore.providers.selection",
    "Audio": "mcpcore.providers.media",
    "CallToolRequest": "mcpcore.providers.markers",
    "CompleteRequest": "mcpcore.providers.markers",
    "Demand": "mcpcore.providers.markers",
    "Depends": "mcpcore.providers.markers",
    "Elicit": "mcpcore.providers.markers",
    "File": "mcpcore.providers.media",
    "GetPromptRequest": "mcpcore.providers.markers",
    "Handler": "mcpcore.providers.handler",
    "Image": "mcpcore.providers.media",
    "Injected": "mcpcore.providers.markers",
    "Injection": "mcpcore.providers.markers",
    "Log": "mcpcore.providers.markers",
    "Param": "mcpcore.providers.markers",
    "Progress": "mcpcore.providers.markers",
    "ProgressToken": "mcpcore.providers.markers",
    "Provider": "mcpcore.providers.selection",
    "ReadResourceRequest": "mcpcore.providers.markers",
    "Registry": "mcpcore.providers.registry",
    "RequestMeta": "mcpcore.providers.markers",
    "ResourceHints": "mcpcore.providers.declarations",
    "Roots": "mcpcore.providers.markers",
    "Sample": "mcpcore.providers.markers",
    "Skipped": "mcpcore.providers.selection",
    "Source": "mcpcore.providers.source",
    "SyncProvider": "mcpcore.providers.selection",
    "SyncStatelessProvider": "mcpcore.providers.selection",
    "ToolContext": "mcpcore.providers.markers",
    "ToolHints": "mcpcore.providers.declarations",
    "URITemplate": "mcpcore.providers.uri_template",
    "assistant": "mcpcore.providers.results",
    "complete": "mcpcore.providers.declarations",
    "prompt": "mcpcore.providers.declarations",
    "resource": "mcpcore.providers.declarations",
    "tool": "mcpcore.providers.declarations",
    "user": "mcpcore.providers.results",
}

__all__ = [
    "Arg",
    "AsyncProvider",
    "AsyncStatelessProvider",
    "Audio",
    "CallToolRequest",
    "CompleteRequest",
    "Demand",
    "Depends",
    "Elicit",
    "File",
    "GetPromptRequest",
    "Handler",
    "Image",
    "Injected",
    "Injection",
    "Log",
    "Param",
    "Progress",
    "ProgressToken",
    "Provider",
    "ReadResourceRequest",
    "Registry",
    "RequestMeta",
    "ResourceHints",
    "Roots",
    "Sample",
    "Skipped",
    "Source",
    "SyncProvider",
    "SyncStatelessProvider",
    "ToolContext",
    "ToolHints",
    "URITemplate",
    "assistant",
    "complete",
    "prompt",
    "resource",
    "tool",
    "user",
]

__getattr__, __dir__ = lazy(__name__, _HOMES)
