"""What a tool publishes about its results, per revision, and how a value is made to fit.

Which shapes a peer understands depends on the revision it speaks. Up to 2025-03-26 there are no output schemas. In
2025-06-18 and 2025-11-25 the root of a schema is an object. From 2026-07-28 it is anything (server/tools,
"Output Schema"). So one codec answers for all, when a list or a result is written.
"""

import copy
import inspect
from functools import cached_property
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from mcpcore.exceptions import DefinitionError
from mcpcore.providers.annotations import describe, split_annotated
from mcpcore.providers.definitions import Schema
from mcpcore.providers.encoding import dump
from mcpcore.providers.media import Audio, File, Image
from mcpcore.providers.schema import ValueCodec, value_codec
from mcpcore.providers.validation import Validator, check_schema
from mcpcore.types.content import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    UnknownContent,
)
from mcpcore.types.tools import CallToolResult, ToolResult
from mcpcore.types.utilities import InputRequiredResult

__all__ = ["BLOCKS", "MEDIA", "OutputCodec", "may_carry", "output_codec"]

# The last is what a client has received and a handler passes on.
BLOCKS: Final = (TextContent, ImageContent, AudioContent, ResourceLink, EmbeddedResource, UnknownContent)
MEDIA: Final = (Image, Audio, File)

_OBJECTS_ONLY: Final = ("2025-06-18", "2025-11-25")
_ANYTHING: Final = (Any, object, inspect.Parameter.empty)
_WHOLE: Final = (CallToolResult, ToolResult, InputRequiredResult)

Form = Literal["plain", "wrapped"] | None


def output_codec(
    return_type: Any,
    *,
    output_schema: bool | Literal["any", "wrap"] | dict[str, Any] | type = False,
    omit_none: bool = False,
) -> "OutputCodec":
    """Compile a codec for a tool annotated ``-> return_type``: what it returns, awaited; ``list[item]`` if it yields.

    Args:
        return_type: `inspect.Signature.empty` or `Any` for none.
        output_schema: False publishes nothing. True publishes objects and (from 2026-07-28) arrays. "any" admits
            scalars from 2026-07-28. "wrap" does too, and gives older revisions ``{"result": …}`` for what is no
            object. A type or a literal schema is published in place of the return type's. In a union, what is a whole
            result already (`CallToolResult`, `ToolResult`, `InputRequiredResult`) is left out.
        omit_none: Leave out members of records that are None and not required.

    Raises:
        DefinitionError: A literal schema that is invalid, or a type that has no schema.
    """
    if isinstance(output_schema, dict):
        check_schema(output_schema)
        return OutputCodec(None, copy.deepcopy(output_schema), omit_none=omit_none)
    declared: Any = return_type
    mode: Any = output_schema
    if not isinstance(output_schema, bool | str):
        declared, mode = output_schema, True
    declared = _data_of(declared)
    if isinstance(mode, str) and mode not in ("any", "wrap"):
        raise DefinitionError(f"output_schema={mode!r}: give True, 'any', 'wrap', a type or a schema")
    content = _content_in(declared)
    unknown = any(declared is each for each in _ANYTHING)
    if not mode or content is CallToolResult:
        return OutputCodec(_for_text(declared, omit_none), None, omit_none=omit_none)
    if content is not None:
        ignored = f"it returns content ({describe(content)}), not data"
        return OutputCodec(None, None, omit_none=omit_none, ignored=ignored)
    if unknown:
        ignored = "it is not annotated with what it returns"
        return OutputCodec(None, None, omit_none=omit_none, ignored=ignored)
    codec = value_codec(declared, omit_none=omit_none)
    if mode is True and not _holds_parts(codec.schema):
        ignored = f"{describe(declared)} is no object or array; output_schema='any' admits it from 2026-07-28 on"
        return OutputCodec(codec, None, omit_none=omit_none, ignored=ignored)
    return OutputCodec(codec, codec.schema, omit_none=omit_none, wraps=mode == "wrap")


class OutputCodec:
    """How one tool's return values become results. Made by `output_codec`.

    Attributes:
        ignored: Why ``output_schema`` was asked for and has no effect, in words for a warning; None otherwise.
        is_undeclared: There is no schema at all, in no revision. Whoever has said so once to the author sets it to False.
        withheld: The revisions that cannot carry the schema although they know output schemas, for an INFO line.
    """

    def __init__(
        self,
        value: ValueCodec | None,
        schema: Schema | None,
        *,
        omit_none: bool,
        wraps: bool = False,
        ignored: str | None = None,
    ) -> None:
        self._value = value
        self._schema = None if schema is None else _rooted(schema)
        self._omit_none = omit_none
        self._wraps = wraps
        self.ignored = ignored
        self.is_undeclared = schema is None
        self.withheld = tuple(version for version in _OBJECTS_ONLY if schema is not None and not self.form(version))

    def form(self, version: str) -> Form:
        """Return how a peer of revision ``version`` gets structured content: as it is, wrapped, or not at all."""
        if self._schema is None or version < _OBJECTS_ONLY[0]:
            return None
        if version not in _OBJECTS_ONLY or self._schema.get("type") == "object":
            return "plain"
        return "wrapped" if self._wraps else None

    def schema(self, version: str) -> dict[str, Any] | None:
        """Return what ``tools/list`` publishes as ``outputSchema`` to a peer of revision ``version``."""
        form = self.form(version)
        if form is None or self._schema is None:
            return None
        return self._schema if form == "plain" else _wrapped(self._schema)

    def dump(self, value: Any) -> tuple[Any, bytes]:
        """Return ``value`` as JSON-shaped builtins and as compact JSON. Raises `EncodeError`."""
        return dump(value, omit_none=self._omit_none) if self._value is None else self._value.dump(value)

    def errors(self, builtins: Any, data: bytes) -> list[str]:
        """Return what in a dumped value does not fit the published schema."""
        if self._value is not None:
            return self._value.errors(builtins, data)
        return self._validator.errors(builtins, show_values=False)

    @cached_property
    def _validator(self) -> Validator:
        return Validator(self._schema)


def may_carry(structured: Any, version: str) -> bool:
    """Return whether a peer of revision ``version`` understands this structured content, announced or not."""
    return version not in _OBJECTS_ONLY or isinstance(structured, dict)


def _for_text(declared: Any, omit_none: bool) -> ValueCodec | None:
    """Return a codec that may write values faster; without a schema to keep, any value can be written without one."""
    if _content_in(declared) is not None:
        return None
    try:
        return value_codec(declared, omit_none=omit_none)
    except DefinitionError:
        return None


def _data_of(tp: Any) -> Any:
    """Return ``tp`` without the whole results that a tool may return instead of data; one of those if it is all there is."""
    inner, metadata = split_annotated(tp)
    members = get_args(inner) if get_origin(inner) in (Union, UnionType) else (inner,)
    rest = tuple(member for member in members if member not in _WHOLE)
    if len(rest) == len(members):
        return tp
    if not set(rest) - {NoneType}:
        return CallToolResult
    data: Any = Union[rest]  # noqa: UP007  # made at run time
    return Annotated[(data, *metadata)] if metadata else data


def _content_in(tp: Any) -> Any:
    """Return the first type in ``tp`` whose instances are content or whole results, and no data."""
    if tp in (*BLOCKS, *MEDIA, CallToolResult):
        return tp
    if get_origin(tp) is Annotated:
        return _content_in(get_args(tp)[0])
    return next((found for each in get_args(tp) if (found := _content_in(each)) is not None), None)


def _holds_parts(schema: Schema) -> bool:
    """Return whether some values that fit ``schema`` are objects or arrays."""
    if "$ref" in schema or not schema:
        return True
    if "anyOf" in schema:
        return any(_holds_parts(each) for each in schema["anyOf"])
    types = schema.get("type", "object")
    return bool({"object", "array"} & {*([types] if isinstance(types, str) else types)})


def _rooted(schema: Schema) -> Schema:
    """Return ``schema`` with the ``"type": "object"`` that older revisions want, where it is true."""
    if "type" in schema or "anyOf" not in schema:
        return schema
    definitions = schema.get("$defs", {})
    branches = [
        definitions.get(each["$ref"].rpartition("/")[2], {}) if "$ref" in each else each for each in schema["anyOf"]
    ]
    return {"type": "object", **schema} if all(each.get("type") == "object" for each in branches) else schema


def _wrapped(schema: Schema) -> Schema:
    inner = {key: value for key, value in schema.items() if key != "$defs"}
    wrapped: Schema = {"type": "object", "properties": {"result": inner}, "required": ["result"]}
    if "$defs" in schema:
        wrapped["$defs"] = schema["$defs"]
    return wrapped
