"""Turns what handlers return into results of the protocol.

What a value is decides, never what its members are called: a dict with a key ``type`` is data, a `TextContent` is a
block. A value that cannot be sent, or does not fit the schema that was published for it, becomes an error that the
model can read; it is never sent half.
"""

import logging
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from inspect import isclass
from io import IOBase
from itertools import islice
from typing import Any, Final, get_args, get_origin

import msgspec
from msgspec import UNSET

from mcpcore.exceptions import ResourceNotFound
from mcpcore.providers.annotations import peel
from mcpcore.providers.encoding import EncodeError, dump
from mcpcore.providers.failures import failed, tool_failure
from mcpcore.providers.media import Audio, File, Image, base64_text
from mcpcore.providers.output import BLOCKS, MEDIA, OutputCodec, may_carry, output_codec
from mcpcore.providers.validation import join_errors
from mcpcore.types.completion import CompleteResult, Completion
from mcpcore.types.content import ContentBlock, ResourceContents, Role, TextContent
from mcpcore.types.prompts import GetPromptResult, PromptMessage
from mcpcore.types.resources import ReadResourceResult
from mcpcore.types.tools import CallToolResult, ToolResult

__all__ = [
    "COMPLETIONS",
    "OutputCodec",
    "assistant",
    "completion_result",
    "content_blocks",
    "mime_type_of",
    "output_codec",
    "prompt_result",
    "resource_result",
    "streamed_result",
    "tool_failure",
    "tool_result",
    "user",
]

_logger = logging.getLogger("mcpcore.handlers")

_MISSING: Final = "Response missing structured content which is expected when calling tool with non-empty outputSchema"
COMPLETIONS: Final = 100  # completion, "Completion Results": "Maximum 100 items per response"
_CONTENT: Final = BLOCKS + MEDIA
_SCALARS: Final = frozenset({str, int, float, bool})
_BINARY: Final = (bytes, bytearray, memoryview)


# -- tools -------------------------------------------------------------------------------------------------------


def tool_result(value: Any, *, tool: str, codec: OutputCodec, version: str) -> CallToolResult:
    """Return the result of a tool that returned ``value``.

    A value that cannot be written, or that does not fit the published schema, gives a result with ``is_error`` and a
    log record. Exceptions come only from the value itself, from an iterator that raises.
    """
    form = codec.form(version)
    try:
        if type(value) is ToolResult:
            value = value.as_sent()
        if form is None:
            if type(value) in _SCALARS:
                return CallToolResult([TextContent(_text(value, codec))], UNSET, False)
            if isinstance(value, CallToolResult):
                if codec.is_undeclared and value.structured_content is not UNSET:
                    codec.is_undeclared = False
                    _logger.warning("tool %r gives structured content that no output_schema= describes", tool)
                return _completed(value, version)
            return CallToolResult(_blocks(value, codec), UNSET, False)
        if isinstance(value, CallToolResult):
            if value.is_error:
                return _completed(value, version)
            return _checked(value, tool, codec, wrapped=form == "wrapped")
        if isinstance(value, _CONTENT) or _holds_content(value):
            return _invalid(tool, _MISSING)
        return _structured(value, tool, codec, wrapped=form == "wrapped")
    except EncodeError as exc:
        return _unsendable(tool, exc)


def streamed_result(items: Iterable[Any], *, tool: str, codec: OutputCodec, version: str) -> CallToolResult:
    """Return the result of a tool that yielded ``items``, notifications taken out.

    A `CallToolResult` at the end is the result. Otherwise the items make one array where the tool has a schema that
    the peer can use, and a block each where it has not.
    """
    values = [each.as_sent() if type(each) is ToolResult else each for each in items]
    given = [index for index, each in enumerate(values) if isinstance(each, CallToolResult)]
    if given == [len(values) - 1]:
        return tool_result(values[-1], tool=tool, codec=codec, version=version)
    if given:
        return _unsendable(
            tool, EncodeError("a CallToolResult that is yielded must be the last item, and the only one")
        )
    if codec.form(version) is not None:
        return tool_result(values, tool=tool, codec=codec, version=version)
    try:
        return CallToolResult([block for each in values for block in _blocks(each, codec)], is_error=False)
    except EncodeError as exc:
        return _unsendable(tool, exc)


def content_blocks(value: Any) -> list[ContentBlock]:
    """Return ``value`` as content blocks: blocks as they are, text verbatim, everything else as JSON, None as nothing.

    Raises:
        EncodeError: It has no JSON form.
    """
    return _blocks(value, None)


def _blocks(value: Any, codec: OutputCodec | None) -> list[ContentBlock]:
    if value is None:
        return []
    if isinstance(value, _CONTENT):
        return [_block(value)]
    if _is_iterator(value):
        value = list(value)
    if _holds_content(value):
        return [block for each in value for block in _blocks(each, None)]
    return [TextContent(_text(value, codec))]


def _text(value: Any, codec: OutputCodec | None) -> str:
    if type(value) is str:
        return _sendable(value)
    if type(value) is int:
        return str(value)
    if type(value) is bool:
        return "true" if value else "false"
    builtins, data = dump(value) if codec is None else codec.dump(value)
    # Enumerations, dates, UUIDs: a string that stands alone is text, without the quotes of JSON.
    return builtins if type(builtins) is str else data.decode()


def _is_iterator(value: Any) -> bool:
    # Many times faster than the abstract class. An open file is one too, and no answer.
    return hasattr(value, "__next__") and not isinstance(value, IOBase)


def _is_array(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _is_several(value: Any) -> bool:
    return _is_array(value) and not hasattr(value, "_fields")  # a NamedTuple is one record


def _holds_content(value: Any) -> bool:
    return _is_array(value) and any(issubclass(kind, _CONTENT) for kind in set(map(type, value)))


def _structured(value: Any, tool: str, codec: OutputCodec, *, wrapped: bool) -> CallToolResult:
    if _is_iterator(value):
        value = list(value)
    builtins, data = codec.dump(value)
    if errors := codec.errors(builtins, data):
        return _invalid(tool, join_errors(errors))
    if wrapped:
        builtins, data = {"result": builtins}, b'{"result":' + data + b"}"
    return CallToolResult([TextContent(data.decode())], builtins, is_error=False)


def _checked(given: CallToolResult, tool: str, codec: OutputCodec, *, wrapped: bool) -> CallToolResult:
    """Return a result that the tool built itself, once it keeps what the schema promises."""
    if given.structured_content is UNSET:
        return _invalid(tool, _MISSING)
    made = _structured(given.structured_content, tool, codec, wrapped=wrapped)
    if made.is_error:
        return made
    content = given.content or made.content
    return _completed(CallToolResult(content, made.structured_content, False, given.meta), None)


def _completed(given: CallToolResult, version: str | None) -> CallToolResult:
    """Return ``given`` with what goes without saying: ``isError``, and JSON in place of Python values.

    Args:
        version: Of the peer; None where the structured content has been checked and is JSON already.
    """
    content, structured, meta = _given_blocks(given.content), given.structured_content, given.meta
    if structured is not UNSET and version is not None:
        structured, data = dump(structured)
        content = content or [TextContent(data.decode())]  # some clients read nothing else
        if not may_carry(structured, version):
            structured = UNSET
    if meta is not None:
        meta, _ = dump(meta)
    return CallToolResult(content, structured, bool(given.is_error), meta)


def _given_blocks(content: Any) -> list[ContentBlock]:
    """Return the content of a result that a tool built: blocks, and media; anything else has a place of its own."""
    items: list[Any] = list(content) if _is_array(content) else [content]
    for each in items:
        if not isinstance(each, _CONTENT):
            raise EncodeError(
                f"the content of a CallToolResult is a list of content blocks, and {type(each).__name__} is none; "
                "use TextContent(…), or CallToolResult.structured(…) for data"
            )
    return [_block(each) for each in items]


def _block(value: Any) -> ContentBlock:
    return value.to_content() if isinstance(value, MEDIA) else _sendable_block(value)


def _sendable(text: str) -> str:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise EncodeError("a text holds half of a surrogate pair") from None
    return text


def _sendable_block(block: ContentBlock) -> ContentBlock:
    if isinstance(block, TextContent) and block.annotations is None and block.meta is None:
        _sendable(block.text)
        return block
    dump(block)
    return block


def _invalid(tool: str, why: str) -> CallToolResult:
    _logger.error("tool %r: output validation failed: %s", tool, why)
    return failed(why if why is _MISSING else f"Tool ({tool}) output validation failed: {why}")


def _unsendable(tool: str, exc: EncodeError) -> CallToolResult:
    _logger.error("tool %r returned what cannot be sent: %s", tool, exc)
    return failed(f"Tool ({tool}) returned what cannot be sent: {exc}")


# -- resources ---------------------------------------------------------------------------------------------------


def resource_result(
    value: Any, *, uri: str, mime_type: str | None = None, meta: dict[str, Any] | None = None
) -> ReadResourceResult:
    """Return the result of a resource handler that returned ``value``.

    Text is text and bytes are a blob, whatever the media type; a list of them gives one content each; other data
    becomes JSON.

    Args:
        uri: As requested; on every content that has none of its own.
        mime_type: As declared; None finds it from the value.
        meta: The resource's ``_meta``, copied to every content made here.

    Raises:
        ResourceNotFound: ``value`` is None.
        EncodeError: It has no JSON form.
    """
    if isinstance(value, ReadResourceResult):
        contents: Any = value.contents
        if _is_array(contents) and all(isinstance(each, ResourceContents) for each in contents):
            return value
        made = resource_result(contents, uri=uri, mime_type=mime_type, meta=meta)
        return msgspec.structs.replace(value, contents=made.contents)
    if value is None:
        raise ResourceNotFound(uri)
    if _is_iterator(value):
        value = list(value)
    several = _is_several(value) and all(isinstance(each, _CONTENTS) for each in value)
    parts: list[Any] = list(value) if several else [value]
    return ReadResourceResult([_contents(each, uri, mime_type, meta) for each in parts])


_CONTENTS: Final = (str, *_BINARY, ResourceContents, *MEDIA)


def _contents(value: Any, uri: str, mime_type: str | None, meta: dict[str, Any] | None) -> ResourceContents:
    if isinstance(value, ResourceContents):
        return value if value.meta is not None or meta is None else msgspec.structs.replace(value, meta=meta)
    if isinstance(value, File):
        made = value.to_contents(uri)
        return msgspec.structs.replace(made, mime_type=mime_type or made.mime_type, meta=meta)
    if isinstance(value, Image | Audio):
        return ResourceContents(uri, mime_type or value.mime_type, blob=base64_text(value.data), meta=meta)
    if type(value) in _BINARY:
        return ResourceContents(uri, mime_type or "application/octet-stream", blob=base64_text(value), meta=meta)
    builtins, data = dump(value)
    if type(builtins) is str:  # an enumeration, a date, a UUID: as text, without the quotes of JSON
        return ResourceContents(uri, mime_type or "text/plain", text=builtins, meta=meta)
    return ResourceContents(uri, mime_type or "application/json", text=data.decode(), meta=meta)


def mime_type_of(annotation: Any) -> str:
    """Return the media type that the contents made of such a value will have, as far as the annotation tells."""
    tp, _, _ = peel(annotation)
    kind = get_origin(tp) or tp
    if kind in _BINARY:
        return "application/octet-stream"
    if not isclass(kind) or issubclass(kind, (ReadResourceResult, *_CONTENTS)):
        return "text/plain"
    is_record = any(hasattr(kind, mark) for mark in _RECORDS)
    if issubclass(kind, list | tuple) and not is_record:  # of texts or blobs: contents each
        return mime_type_of((*get_args(tp), str)[0])
    is_data = is_record or issubclass(kind, Mapping | AbstractSet) or kind in (int, float, bool)
    return "application/json" if is_data else "text/plain"


_RECORDS: Final = ("__struct_fields__", "__dataclass_fields__", "__attrs_attrs__", "model_fields", "_fields")


# -- prompts -----------------------------------------------------------------------------------------------------


def prompt_result(value: Any, *, description: str | None = None) -> GetPromptResult:
    """Return the result of a prompt that returned ``value``: a message or a text, or a list of them.

    A bare text, and anything else that is no message, is said by the user.

    Raises:
        EncodeError: It has no JSON form, or is None.
    """
    if isinstance(value, GetPromptResult):
        if _is_array(value.messages) and all(_is_message(each) for each in value.messages):
            return value
        return msgspec.structs.replace(value, messages=prompt_result(value.messages).messages)
    if value is None:
        raise EncodeError("a prompt returned None; return a text, a message or a list of them")
    items: list[Any] = list(value) if _is_several(value) or _is_iterator(value) else [value]
    return GetPromptResult([each if _is_message(each) else _message_of(each) for each in items], description)


def _is_message(value: Any) -> bool:
    content: Any = value.content if isinstance(value, PromptMessage) else None
    return isinstance(content, BLOCKS)


def _message_of(value: Any) -> PromptMessage:
    return _message(value.role, value.content) if isinstance(value, PromptMessage) else user(value)


def user(content: Any) -> PromptMessage:
    """Return a message of the user: a text, a content block, an `Image`, or data that becomes JSON."""
    return _message("user", content)


def assistant(content: Any) -> PromptMessage:
    """Return a message of the assistant: a text, a content block, an `Image`, or data that becomes JSON."""
    return _message("assistant", content)


def _message(role: Role, content: Any) -> PromptMessage:
    blocks = content_blocks(content)
    if len(blocks) != 1:
        raise EncodeError(f"a message of a prompt has one content, not {len(blocks)}; return a list of messages")
    return PromptMessage(role, blocks[0])


# -- completion --------------------------------------------------------------------------------------------------


def completion_result(value: Any) -> CompleteResult:
    """Return the result of a completion that returned ``value``: texts in any iterable, one text, or None.

    Of more than 100 values the first 100 are sent, and the peer is told that there are more.
    """
    if isinstance(value, CompleteResult):
        return CompleteResult(_limited(value.completion), value.meta)
    if isinstance(value, Completion):
        return CompleteResult(_limited(value))
    if value is None:
        values: list[Any] = []
    elif isinstance(value, str):
        values = [value]
    elif _is_iterator(value):  # it may never end
        values = list(islice(value, COMPLETIONS + 1))
        if len(values) > COMPLETIONS:
            return CompleteResult(_limited(Completion(values[:COMPLETIONS], None, True)))
    else:
        values = list(value)
    return CompleteResult(_limited(Completion(values, len(values), False)))


def _limited(completion: Completion) -> Completion:
    """Return ``completion`` with as many values as may be sent, each a text."""
    values: list[Any] = completion.values
    sent = [each if type(each) is str else _text(each, None) for each in values[:COMPLETIONS]]
    if len(values) <= COMPLETIONS:
        return msgspec.structs.replace(completion, values=sent)
    return Completion(sent, completion.total if completion.total is not None else len(values), True)
