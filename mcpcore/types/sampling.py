"""``sampling/createMessage``: the server asks the client's model."""

from typing import Any, Literal

from msgspec import UNSET, Raw, UnsetType, field

from mcpcore.types._base import Object
from mcpcore.types.content import (
    AudioContent,
    ImageContent,
    Role,
    TextContent,
    ToolResultContent,
    ToolUseContent,
)
from mcpcore.types.tools import Tool

__all__ = [
    "CreateMessageParams",
    "CreateMessageResult",
    "ModelHint",
    "ModelPreferences",
    "SamplingContent",
    "SamplingMessage",
    "ToolChoice",
]

SamplingContent = TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent


class SamplingMessage(Object):
    """``content`` may be a list from 2025-11-25 on."""

    role: Role
    content: TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent | list[SamplingContent]
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class ModelHint(Object):
    name: str | None = None


class ModelPreferences(Object):
    """Priorities run from 0.0 to 1.0."""

    hints: list[ModelHint] | None = None
    cost_priority: float | None = None
    speed_priority: float | None = None
    intelligence_priority: float | None = None


class ToolChoice(Object):
    mode: Literal["auto", "required", "none"] | None = None


class CreateMessageParams(Object):
    messages: list[SamplingMessage]
    max_tokens: int
    model_preferences: ModelPreferences | None = None
    system_prompt: str | None = None
    include_context: Literal["none", "thisServer", "allServers"] | None = None
    temperature: float | None = None
    stop_sequences: list[str] | None = None
    metadata: dict[str, Any] | None = None
    tools: list[Tool] | None = None
    tool_choice: ToolChoice | None = None
    meta: Raw | UnsetType = field(name="_meta", default=UNSET)


class CreateMessageResult(Object):
    role: Role
    content: TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent | list[SamplingContent]
    model: str
    stop_reason: str | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)
