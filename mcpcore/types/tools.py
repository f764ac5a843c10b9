"""``tools/list`` and ``tools/call``."""

from typing import Any, Literal

from msgspec import UNSET, Raw, Struct, UnsetType, field

from mcpcore.types._base import Object
from mcpcore.types.content import ContentBlock, TextContent, no_content
from mcpcore.types.lifecycle import Icon

__all__ = [
    "CallToolParams",
    "CallToolResult",
    "ListToolsResult",
    "Tool",
    "ToolAnnotations",
    "ToolExecution",
    "ToolResult",
]


class ToolAnnotations(Object):
    """Hints about a tool's behaviour. Untrusted unless the server is. Since 2025-03-26."""

    title: str | None = None
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None


class ToolExecution(Object):
    """2025-11-25 only; tolerated on input, never sent."""

    task_support: Literal["forbidden", "optional", "required"] | None = None


class Tool(Object):
    name: str
    input_schema: dict[str, Any]
    title: str | None = None
    description: str | None = None
    output_schema: dict[str, Any] | None = None
    annotations: ToolAnnotations | None = None
    icons: list[Icon] | None = None
    execution: ToolExecution | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class ListToolsResult(Object):
    tools: list[Tool]
    next_cursor: str | None = None
    ttl_ms: int | None = None
    cache_scope: Literal["public", "private"] | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class CallToolParams(Object):
    """``arguments`` stays raw: the tool's own decoder reads it, once."""

    name: str
    arguments: Raw | UnsetType = UNSET
    input_responses: dict[str, Raw] | None = None
    request_state: str | None = None
    meta: Raw | UnsetType = field(name="_meta", default=UNSET)


class CallToolResult(Object):
    """What a tool gave. A failure of the tool is a result with ``is_error``, not a JSON-RPC error."""

    content: list[ContentBlock] = field(default_factory=no_content)
    structured_content: Any = UNSET
    is_error: bool | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)

    @classmethod
    def text(cls, text: str) -> "CallToolResult":
        """Return a result of one text block."""
        return cls([TextContent(text)], is_error=False)

    @classmethod
    def error(cls, text: str) -> "CallToolResult":
        """Return the result of a tool that failed; the model reads ``text``."""
        return cls([TextContent(text)], is_error=True)

    @classmethod
    def structured(cls, value: Any) -> "CallToolResult":
        """Return a result of structured content, any value that has a JSON form; the text is added when it is sent."""
        return cls(structured_content=value, is_error=False)


class ToolResult(Struct, frozen=True):
    """A `CallToolResult` as callers read it. A handler that returns one passes it on.

    Args:
        content: Its content blocks.
        structured_content: As on the wire, where it may be null; `UNSET` when there is none.
        is_error: The tool failed, and ``content`` says why.
        meta: The result's ``_meta``.
    """

    content: list[ContentBlock]
    structured_content: Any = UNSET
    is_error: bool = False
    meta: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        """All text blocks, one after another."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextContent))

    @property
    def structured(self) -> Any:
        """The structured content; None when there is none."""
        return None if self.structured_content is UNSET else self.structured_content

    @property
    def value(self) -> Any:
        """The structured content where there is some, else the text."""
        return self.text if self.structured_content is UNSET else self.structured_content

    def as_sent(self) -> CallToolResult:
        """Return the result as it goes over the wire."""
        return CallToolResult(self.content, self.structured_content, self.is_error, self.meta)
