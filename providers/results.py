"""Turns what handlers return, or raise, into results of the protocol."""

from collections.abc import Callable, Iterable
from typing import Any, Literal

from mcpcore.types.completion import CompleteResult
from mcpcore.types.content import ContentBlock
from mcpcore.types.prompts import GetPromptResult, PromptMessage
from mcpcore.types.resources import ReadResourceResult
from mcpcore.types.tools import CallToolResult

__all__ = [
    "OutputCodec",
    "assistant",
    "completion_result",
    "content_blocks",
    "output_codec",
    "prompt_result",
    "resource_result",
    "streamed_result",
    "tool_failure",
    "tool_result",
    "user",
]


class OutputCodec:
    """How one tool's return values become results, and what it publishes about them.

    Attributes:
        ignored: Why ``output_schema`` was asked for and has no effect, in words for a warning; None otherwise.
        withheld: The revisions that cannot carry the schema although they know output schemas, for an INFO line.
    """

    ignored: str | None
    withheld: tuple[str, ...]

    def schema(self, version: str) -> dict[str, Any] | None:
        """Return what ``tools/list`` publishes as ``outputSchema`` to a peer of revision ``version``."""
        raise NotImplementedError


def output_codec(
    return_type: Any,
    *,
    output_schema: bool | Literal["any", "wrap"] | dict[str, Any] | type = False,
    omit_none: bool = False,
) -> OutputCodec:
    """Compile a codec for a tool annotated ``-> return_type`` (the awaited or, for generators, ``list[item]`` type).

    Args:
        return_type: `inspect.Signature.empty` or `Any` for none.
        output_schema: False publishes nothing. True publishes objects and (from 2026-07-28) arrays. "any" admits
            scalars from 2026-07-28. "wrap" gives older revisions ``{"result": …}`` for what is no object.
            A type or a literal schema is published in place of the return type's.

    Raises:
        DefinitionError: A literal schema that is invalid, or a type that has no schema.
    """
    raise NotImplementedError


def tool_result(value: Any, *, tool: str, codec: OutputCodec | None = None, version: str) -> CallToolResult:
    """Return the result of a tool that returned ``value``. Never raises for what ``value`` is."""
    raise NotImplementedError


def streamed_result(items: Iterable[Any], *, tool: str, codec: OutputCodec | None, version: str) -> CallToolResult:
    """Return the result of a generator tool that yielded ``items`` (without its Progress and Log)."""
    raise NotImplementedError


def content_blocks(value: Any) -> list[ContentBlock]:
    """Return ``value`` as content blocks (text rules of F27 to F35). Raises `EncodeError`."""
    raise NotImplementedError


def tool_failure(
    exc: BaseException,
    *,
    tool: str,
    function: str,
    raises: tuple[type[BaseException], ...] = (),
    mask_unexpected: bool = False,
    format_error: Callable[[str, BaseException], str] | None = None,
    version: str,
) -> CallToolResult:
    """Return the result of a tool that raised ``exc``, and log it.

    Raises:
        McpError: The JSON-RPC error to answer with.
        InsufficientScope: ``exc`` itself; the transport answers.
        BaseException: ``exc`` itself where it is no failure (cancellation, KeyboardInterrupt, signals of the runtime).
    """
    raise NotImplementedError


def resource_result(value: Any, *, uri: str, mime_type: str | None = None, meta: Any = None) -> ReadResourceResult:
    """Return the result of a resource handler; ``mime_type`` is None where its author gave none."""
    raise NotImplementedError


def prompt_result(value: Any, *, description: str | None = None) -> GetPromptResult:
    raise NotImplementedError


def completion_result(value: Any) -> CompleteResult:
    raise NotImplementedError


def user(content: Any) -> PromptMessage:
    """A prompt message of the user."""
    raise NotImplementedError


def assistant(content: Any) -> PromptMessage:
    """A prompt message of the assistant."""
    raise NotImplementedError
