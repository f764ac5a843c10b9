"""``prompts/list`` and ``prompts/get``."""

from typing import Any, Literal

from msgspec import UNSET, Raw, UnsetType, field

from mcpcore.types._base import Object
from mcpcore.types.content import ContentBlock, Role
from mcpcore.types.lifecycle import Icon

__all__ = ["GetPromptParams", "GetPromptResult", "ListPromptsResult", "Prompt", "PromptArgument", "PromptMessage"]


class PromptArgument(Object):
    name: str
    title: str | None = None
    description: str | None = None
    required: bool | None = None


class Prompt(Object):
    name: str
    title: str | None = None
    description: str | None = None
    arguments: list[PromptArgument] | None = None
    icons: list[Icon] | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class PromptMessage(Object):
    role: Role
    content: ContentBlock


class ListPromptsResult(Object):
    prompts: list[Prompt]
    next_cursor: str | None = None
    ttl_ms: int | None = None
    cache_scope: Literal["public", "private"] | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class GetPromptParams(Object):
    """Arguments are strings on the wire; the prompt converts them by its annotations."""

    name: str
    arguments: dict[str, str] | None = None
    input_responses: dict[str, Raw] | None = None
    request_state: str | None = None
    meta: Raw | UnsetType = field(name="_meta", default=UNSET)


class GetPromptResult(Object):
    messages: list[PromptMessage]
    description: str | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)
