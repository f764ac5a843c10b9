"""Which arguments of a tool HTTP mirrors in header fields: the ``x-mcp-header`` annotations of its input schema.

2026-07-28, server/tools, "x-mcp-header", with the rules of basic/transports/streamable-http, "Schema Extension".
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

__all__ = ["HeaderMap", "header_map"]

HeaderMap = Mapping[tuple[str, ...], str]
"""Where in a tool's arguments a mirrored value stands, and the name of its header, in lower case."""

_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")


def header_map(schema: Mapping[str, Any]) -> HeaderMap:
    """Find the ``x-mcp-header`` annotations of a tool's input schema.

    Raises:
        ValueError: One breaks a rule of "Schema Extension"; a client leaves the tool out, a server refuses to register it.
    """
    found = dict(_annotations(schema, ()))
    names = [name.lower() for name in found.values()]
    if len(set(names)) != len(names):
        raise ValueError("two parameters have the same x-mcp-header")
    if _count(schema) != len(found):
        raise ValueError("x-mcp-header stands where no chain of properties leads")
    return {path: f"mcp-param-{name.lower()}" for path, name in found.items()}


_DATA: Final = ("default", "examples", "enum")  # members of a schema that hold data and no schemas


def _annotations(schema: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    for name, value in _members(_members(schema).get("properties")).items():
        inner, here = _members(value), (*path, str(name))
        if "x-mcp-header" in inner:
            header = inner["x-mcp-header"]
            if not isinstance(header, str) or not _TOKEN.fullmatch(header):
                raise ValueError(f"x-mcp-header of {'.'.join(here)} is no header name: {header!r}")
            if not _primitive(inner.get("type")):
                raise ValueError(f"x-mcp-header of {'.'.join(here)}: only strings, integers and booleans are mirrored")
            yield here, header
        yield from _annotations(inner, here)


def _members(value: Any) -> dict[Any, Any]:
    """The members of an object; none if it is something else."""
    match value:
        case {**members}:
            return members
        case _:
            return {}


def _primitive(kinds: Any) -> bool:
    match kinds:
        case [*named]:
            wanted = [kind for kind in named if kind != "null"]
        case named:
            wanted = [named]
    return len(wanted) == 1 and wanted[0] in ("string", "integer", "boolean")


def _count(value: Any) -> int:
    """Count annotations wherever schemas may stand."""
    match value:
        case {**members}:
            own = 1 if "x-mcp-header" in members else 0
            return own + sum(_count(inner) for key, inner in members.items() if key not in _DATA)
        case [*items]:
            return sum(map(_count, items))
        case _:
            return 0
