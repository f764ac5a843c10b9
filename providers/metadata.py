"""Reads what stands beside a type in `Annotated`: limits, descriptions, examples.

Limits are found by the names of their attributes (``ge``, ``max_length``, …), which `msgspec.Meta`, the
annotated-types package and pydantic's ``Field`` share, so that none of them has to be imported.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
from msgspec import Struct

from mcpcore.providers.definitions import Schema
from mcpcore.providers.markers import Param

__all__ = ["Metadata", "is_pydantic_field", "read_metadata"]

_LIMITS: Final = ("ge", "gt", "le", "lt", "multiple_of", "min_length", "max_length", "pattern", "tz")
# Keywords that only annotate. Anything else in `extra_json_schema` asserts, and the validator has to see to it.
_ANNOTATING: Final = {
    *("title", "description", "examples", "default", "deprecated", "readOnly", "writeOnly", "$comment"),
    *("format", "contentEncoding", "contentMediaType"),
}


class Metadata(Struct):
    """What was found.

    Args:
        limits: By the names that `msgspec.Meta` gives them.
        native: msgspec reads all limits itself, because they are in a `msgspec.Meta`.
        notes: Keywords to publish beside the type's own.
        asserting: One of the notes restricts values.
        unknown: What was not understood, for adapters.
    """

    limits: dict[str, Any]
    native: bool
    notes: Schema
    asserting: bool
    unknown: tuple[Any, ...]


def read_metadata(metadata: Iterable[Any]) -> Metadata:
    """Read the arguments of an `Annotated` after its type. The description of `Param` wins over that of
    `msgspec.Meta`, that over pydantic's ``Field``, that over a bare string."""
    limits: dict[str, Any] = {}
    native = True
    notes: Schema = {}
    descriptions: dict[int, str] = {}
    unknown: list[Any] = []
    for each in _flat(metadata):
        known = False
        for name in _LIMITS:
            limit = getattr(each, name, None)
            # min_length=0 says nothing; the zones of annotated-types are not msgspec's yes or no
            if limit is None or (name == "min_length" and limit == 0) or (name == "tz" and not isinstance(limit, bool)):
                continue
            limits[name] = limit
            native = native and isinstance(each, msgspec.Meta)
            known = True
        text = each if isinstance(each, str) else getattr(each, "description", None)
        text = text or getattr(each, "documentation", None)  # typing_extensions.Doc
        if isinstance(text, str) and text:
            descriptions.setdefault(_rank(each), text)
        if examples := getattr(each, "examples", None):
            notes["examples"] = list(examples)
        if isinstance(title := getattr(each, "title", None), str) and not isinstance(each, str):
            notes["title"] = title
        for extra in ("extra_json_schema", "json_schema_extra"):
            more: Any = getattr(each, extra, None)
            notes |= more if isinstance(more, dict) else {}
        if not known and not isinstance(each, str | msgspec.Meta | Param) and not is_pydantic_field(each):
            unknown.append(each)
    asserting = not notes.keys() <= _ANNOTATING
    if descriptions:
        notes["description"] = descriptions[min(descriptions)]
    return Metadata(limits, native, notes, asserting, tuple(unknown))


def is_pydantic_field(value: Any) -> bool:
    """Return whether ``value`` is what pydantic's ``Field`` returns."""
    return type(value).__name__ == "FieldInfo" and type(value).__module__.partition(".")[0] == "pydantic"


def _flat(metadata: Iterable[Any]) -> Iterator[Any]:
    for each in metadata:
        yield each
        if is_pydantic_field(each):
            yield from _flat(each.metadata)  # pydantic keeps the limits as annotated-types


def _rank(source: Any) -> int:
    kinds = (isinstance(source, Param), isinstance(source, msgspec.Meta), is_pydantic_field(source))
    return kinds.index(True) if True in kinds else len(kinds)
