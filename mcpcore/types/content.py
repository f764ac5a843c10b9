"""Content blocks: what tools, prompts and sampling messages are made of."""

from typing import Any, Final, Literal, get_args

from msgspec import UNSET, Raw, ValidationError, field, json

from mcpcore.types._base import Object
from mcpcore.types.lifecycle import Icon

__all__ = [
    "Annotations",
    "AudioContent",
    "ContentBlock",
    "EmbeddedResource",
    "ImageContent",
    "ResourceContents",
    "ResourceLink",
    "Role",
    "TextContent",
    "ToolResultContent",
    "ToolUseContent",
    "UnknownContent",
    "no_content",
]

Role = Literal["user", "assistant"]


class Annotations(Object):
    """Hints for the reader: for whom, how important (0.0 to 1.0), and when last changed (ISO 8601)."""

    audience: list[Role] | None = None
    priority: float | None = None
    last_modified: str | None = None


class TextContent(Object, tag="text", tag_field="type"):
    text: str
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class ImageContent(Object, tag="image", tag_field="type"):
    """An image; ``data`` is standard padded base64."""

    data: str
    mime_type: str
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class AudioContent(Object, tag="audio", tag_field="type"):
    """A sound; ``data`` is standard padded base64. Since 2025-03-26."""

    data: str
    mime_type: str
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class ResourceContents(Object):
    """What stands at a URI: ``text``, or ``blob`` in standard padded base64."""

    uri: str
    mime_type: str | None = None
    text: str | None = None
    blob: str | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class EmbeddedResource(Object, tag="resource", tag_field="type"):
    resource: ResourceContents
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class ResourceLink(Object, tag="resource_link", tag_field="type"):
    """A resource by reference. Since 2025-06-18."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    annotations: Annotations | None = None
    size: int | None = None
    icons: list[Icon] | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


ContentBlock = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource


def no_content() -> list[ContentBlock]:
    """Return an empty list. As a default that is not `list` itself, so that ``omit_defaults`` writes ``[]``:
    the member is not optional on the wire, though some peers leave it out."""
    return []


class ToolUseContent(Object, tag="tool_use", tag_field="type"):
    """The model asks for a tool (sampling, since 2025-11-25)."""

    id: str
    name: str
    input: dict[str, Any]
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class ToolResultContent(Object, tag="tool_result", tag_field="type"):
    """The answer to a `ToolUseContent` (sampling, since 2025-11-25)."""

    tool_use_id: str
    content: list[ContentBlock] = field(default_factory=no_content)
    structured_content: Any = UNSET
    is_error: bool | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class UnknownContent(dict[str, Any]):
    """A block of a type that this version of mcpcore does not know, with all its members, as it came (client side)."""

    @property
    def type(self) -> str:
        """What the sender calls it."""
        kind: str = self["type"]
        return kind

    @classmethod
    def found(cls, raw: Raw) -> "UnknownContent | None":
        """Return the block that ``raw`` is; None where it is none, or one of a known type."""
        try:
            block: dict[str, Any] = _decode_block(raw)
        except ValidationError:
            return None
        return cls(block) if isinstance(block.get("type"), str) and block["type"] not in _KNOWN else None


_decode_block: Final = json.Decoder(dict[str, Any]).decode
_KNOWN: Final = {kind.__struct_config__.tag for kind in get_args(ContentBlock)}
