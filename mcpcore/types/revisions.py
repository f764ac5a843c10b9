"""Which member of which type came or went in which revision, and the function that applies it.

Handlers and registries speak the newest shape. Before a message is written for an older revision, members that it does
not know are left out and content that it cannot carry is put into words that it can.
"""

from collections.abc import Callable
from functools import cache
from types import UnionType
from typing import Any, Final, get_args, get_origin, get_type_hints

from msgspec import json
from msgspec.structs import fields, replace

from mcpcore.types._base import Object
from mcpcore.types.completion import CompleteParams, PromptReference
from mcpcore.types.content import (
    Annotations,
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
    ToolResultContent,
    ToolUseContent,
)
from mcpcore.types.elicitation import ElicitParams, ElicitResult
from mcpcore.types.lifecycle import (
    ClientCapabilities,
    DiscoverResult,
    Implementation,
    RootsCapability,
    ServerCapabilities,
)
from mcpcore.types.prompts import ListPromptsResult, Prompt, PromptArgument
from mcpcore.types.resources import (
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
)
from mcpcore.types.roots import ListRootsResult, Root
from mcpcore.types.sampling import CreateMessageParams, CreateMessageResult, SamplingContent, SamplingMessage
from mcpcore.types.tools import CallToolResult, ListToolsResult, Tool
from mcpcore.types.utilities import ProgressParams
from mcpcore.versions import VERSIONS

__all__ = ["MEMBERS", "fitter"]

_FIRST = VERSIONS[0]

MEMBERS: Final[dict[type[Object], dict[str, tuple[str, str | None]]]] = {
    # type: {member: (first revision that has it, first revision that no longer has it)}
    Annotations: {"last_modified": ("2025-06-18", None)},
    AudioContent: {"meta": ("2025-06-18", None)},
    CallToolResult: {"structured_content": ("2025-06-18", None)},
    ClientCapabilities: {"elicitation": ("2025-06-18", None)},
    CompleteParams: {"context": ("2025-06-18", None)},
    CreateMessageParams: {
        "tools": ("2025-11-25", None),
        "tool_choice": ("2025-11-25", None),
        "meta": (_FIRST, "2026-07-28"),
    },
    DiscoverResult: {"ttl_ms": ("2026-07-28", None), "cache_scope": ("2026-07-28", None)},
    ElicitParams: {
        "mode": ("2025-11-25", None),
        "elicitation_id": ("2025-11-25", "2026-07-28"),
        "meta": (_FIRST, "2026-07-28"),
    },
    ElicitResult: {"meta": (_FIRST, "2026-07-28")},
    EmbeddedResource: {"meta": ("2025-06-18", None)},
    ImageContent: {"meta": ("2025-06-18", None)},
    Implementation: {
        "title": ("2025-06-18", None),
        "description": ("2025-11-25", None),
        "website_url": ("2025-11-25", None),
        "icons": ("2025-11-25", None),
    },
    ListPromptsResult: {"ttl_ms": ("2026-07-28", None), "cache_scope": ("2026-07-28", None)},
    ListResourcesResult: {"ttl_ms": ("2026-07-28", None), "cache_scope": ("2026-07-28", None)},
    ListResourceTemplatesResult: {"ttl_ms": ("2026-07-28", None), "cache_scope": ("2026-07-28", None)},
    ListRootsResult: {"meta": (_FIRST, "2026-07-28")},
    ListToolsResult: {"ttl_ms": ("2026-07-28", None), "cache_scope": ("2026-07-28", None)},
    ProgressParams: {"message": ("2025-03-26", None)},
    Prompt: {"title": ("2025-06-18", None), "icons": ("2025-11-25", None), "meta": ("2025-06-18", None)},
    PromptArgument: {"title": ("2025-06-18", None)},
    PromptReference: {"title": ("2025-06-18", None)},
    ReadResourceResult: {"ttl_ms": ("2026-07-28", None), "cache_scope": ("2026-07-28", None)},
    Resource: {"title": ("2025-06-18", None), "icons": ("2025-11-25", None), "meta": ("2025-06-18", None)},
    ResourceContents: {"meta": ("2025-06-18", None)},
    ResourceLink: {"icons": ("2025-11-25", None)},
    ResourceTemplate: {"title": ("2025-06-18", None), "icons": ("2025-11-25", None), "meta": ("2025-06-18", None)},
    Root: {"meta": ("2025-06-18", None)},
    RootsCapability: {"list_changed": (_FIRST, "2026-07-28")},
    SamplingMessage: {"meta": ("2025-11-25", None)},
    ServerCapabilities: {"completions": ("2025-03-26", None)},
    TextContent: {"meta": ("2025-06-18", None)},
    Tool: {
        "annotations": ("2025-03-26", None),
        "title": ("2025-06-18", None),
        "output_schema": ("2025-06-18", None),
        "meta": ("2025-06-18", None),
        "icons": ("2025-11-25", None),
        "execution": ("2025-11-25", "2026-07-28"),
    },
}


def _audio_as_resource(block: AudioContent) -> EmbeddedResource:
    return EmbeddedResource(
        ResourceContents("attachment:audio", mime_type=block.mime_type, blob=block.data), annotations=block.annotations
    )


def _link_as_text(block: ResourceLink) -> TextContent:
    return TextContent(f"{block.title or block.name}: {block.uri}", annotations=block.annotations)


_REPLACED: Final[dict[type[Object], tuple[str, type[Object], Callable[[Any], Object]]]] = {
    # type: (first revision that has it, what stands for it before, how to make that)
    AudioContent: ("2025-03-26", EmbeddedResource, _audio_as_resource),
    ResourceLink: ("2025-06-18", TextContent, _link_as_text),
}


def _plain_blocks(content: SamplingContent | list[SamplingContent], version: str) -> list[Any]:
    """Return content of a sampling message as blocks that a revision before 2025-11-25 has."""
    blocks = content if isinstance(content, list) else [content]
    return [block if _is_plain(block, version) else TextContent(_words(block)) for block in blocks]


def _is_plain(block: Object, version: str) -> bool:
    return isinstance(block, TextContent | ImageContent) or (
        isinstance(block, AudioContent) and version >= _REPLACED[AudioContent][0]
    )


def _words(block: Any) -> str:
    match block:
        case TextContent(text=text):
            return text
        case ToolUseContent(name=name, input=input):
            return f"{name}({json.encode(input).decode()})"
        case ToolResultContent(content=content):
            return "\n".join(map(_words, content))
        case ResourceLink():
            return _link_as_text(block).text
        case EmbeddedResource(resource=resource):
            return resource.text or resource.uri
        case _:
            return f"[{block.mime_type}]"


def _separate_messages(messages: list[SamplingMessage], version: str) -> list[SamplingMessage]:
    """One message for each block: a message had only one."""
    return [
        SamplingMessage(message.role, block, message.meta)
        for message in messages
        for block in _plain_blocks(message.content, version)
    ]


def _one_block(content: SamplingContent | list[SamplingContent], version: str) -> Any:
    blocks = _plain_blocks(content, version)
    return blocks[0] if len(blocks) == 1 else TextContent("\n".join(map(_words, blocks)))


_RESHAPED: Final[dict[type[Object], dict[str, tuple[str, Callable[[Any, str], Any]]]]] = {
    # type: {member: (first revision that has it in the newest shape, how to make an older one)}
    CreateMessageParams: {"messages": ("2025-11-25", _separate_messages)},
    CreateMessageResult: {"content": ("2025-11-25", _one_block)},
}


@cache
def fitter(kind: type[Object], version: str) -> Callable[[Any], Any] | None:
    """Return the function that fits a ``kind`` into ``version``, or None where nothing has to change.

    The function returns its argument or a changed copy, and never changes its argument.
    """
    if kind in _REPLACED and version < _REPLACED[kind][0]:
        _, stand_in, convert = _REPLACED[kind]
        inner = fitter(stand_in, version)
        return convert if inner is None else lambda value: inner(convert(value))

    reshaped = {member: turn for member, (first, turn) in _RESHAPED.get(kind, {}).items() if version < first}
    absent = {f.name: f.default for f in fields(kind)}
    dropped = {
        member: absent[member]
        for member, (first, gone) in MEMBERS.get(kind, {}).items()
        if version < first or (gone is not None and version >= gone)
    }
    nested = {
        member: by_type
        for member, hint in get_type_hints(kind).items()
        if member not in dropped and (by_type := _inner_fitters(hint, version))
    }
    if not dropped and not nested and not reshaped:
        return None

    def fit(value: Any) -> Any:
        if reshaped:
            value = replace(value, **{name: turn(getattr(value, name), version) for name, turn in reshaped.items()})
        changes = {name: empty for name, empty in dropped.items() if getattr(value, name) is not empty}
        for name, by_type in nested.items():
            old = getattr(value, name)
            new = _fit_nested(old, by_type)
            if new is not old:
                changes[name] = new
        return replace(value, **changes) if changes else value

    return fit


def _fit_nested(value: Any, by_type: dict[type, Callable[[Any], Any]]) -> Any:
    if value.__class__ is list:
        fitted = [_fit_nested(item, by_type) for item in value]
        return fitted if any(new is not old for new, old in zip(fitted, value, strict=True)) else value
    fit = by_type.get(value.__class__)
    return value if fit is None else fit(value)


def _inner_fitters(hint: Any, version: str) -> dict[type, Callable[[Any], Any]]:
    """Find the fitters of the wire types inside an annotation such as ``list[Tool] | None``."""
    if isinstance(hint, type) and issubclass(hint, Object):
        fit = fitter(hint, version)
        return {hint: fit} if fit else {}
    if get_origin(hint) in (list, UnionType):
        return {kind: fit for part in get_args(hint) for kind, fit in _inner_fitters(part, version).items()}
    return {}
