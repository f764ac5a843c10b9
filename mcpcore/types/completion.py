"""``completion/complete``."""

from typing import Any

from msgspec import UNSET, Raw, UnsetType, field

from mcpcore.types._base import Object

__all__ = [
    "CompleteParams",
    "CompleteResult",
    "Completion",
    "CompletionArgument",
    "CompletionContext",
    "PromptReference",
    "ResourceTemplateReference",
]


class PromptReference(Object, tag="ref/prompt", tag_field="type"):
    name: str
    title: str | None = None


class ResourceTemplateReference(Object, tag="ref/resource", tag_field="type"):
    uri: str


class CompletionArgument(Object):
    """The argument being completed and what has been typed so far."""

    name: str
    value: str


class CompletionContext(Object):
    """Arguments chosen before. Since 2025-06-18."""

    arguments: dict[str, str] | None = None


class CompleteParams(Object):
    ref: PromptReference | ResourceTemplateReference
    argument: CompletionArgument
    context: CompletionContext | None = None
    meta: Raw | UnsetType = field(name="_meta", default=UNSET)


class Completion(Object):
    """At most 100 values; ``total`` may say that there are more."""

    values: list[str]
    total: int | None = None
    has_more: bool | None = None


class CompleteResult(Object):
    completion: Completion
    meta: dict[str, Any] | None = field(name="_meta", default=None)
