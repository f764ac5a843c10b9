"""Nodes of types that have no parts: anything, scalars, texts of some format, enumerations."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from mcpcore.providers.definitions import Definitions, Schema
from mcpcore.providers.nodes import Constraints, Mismatch, Node, Path
from mcpcore.providers.validation import json_type, scalar_text

__all__ = ["AnyNode", "EnumNode", "ScalarNode", "TextNode"]


class AnyNode(Node):
    """``Any``, ``object`` or no annotation: every JSON value, unchanged."""

    types = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})
    plain = False

    def schema(self, definitions: Definitions) -> Schema:
        return {}

    def decode(self, value: Any, path: Path) -> Any:
        return value

    def carrier(self) -> Any:
        return Any


class ScalarNode(Node):
    """``int``, ``float``, ``str``, ``bool`` and None."""

    _JSON: ClassVar[dict[type, str]] = {
        int: "integer",
        float: "number",
        str: "string",
        bool: "boolean",
        type(None): "null",
    }
    _NUMBER: ClassVar[dict[str, str]] = {
        "ge": "minimum",
        "gt": "exclusiveMinimum",
        "le": "maximum",
        "lt": "exclusiveMaximum",
        "multiple_of": "multipleOf",
    }
    _STRING: ClassVar[dict[str, str]] = {"min_length": "minLength", "max_length": "maxLength", "pattern": "pattern"}

    def __init__(self, cls: type) -> None:
        super().__init__()
        self.cls = cls
        self.name = self._JSON[cls]
        self.types = frozenset({self.name})
        self.keywords = self._NUMBER if cls in (int, float) else self._STRING if cls is str else {}  # type: ignore[misc]  # by kind

    def schema(self, definitions: Definitions) -> Schema:
        return {"type": self.name, **self.limit_keywords()}

    def decode(self, value: Any, path: Path) -> Any:
        if self.cls is int:
            return int(value)  # 5.0 is an integer in JSON Schema
        if self.cls is float:
            try:
                return float(value)
            except OverflowError:
                raise Mismatch(path, "number out of range") from None
        return value

    def carrier(self) -> Any:
        return self.limited(self.cls)


class TextNode(Node):
    """A type written as a string of some format: dates, UUID, Decimal, bytes, Path.

    Args:
        cls: The type; also what msgspec is given.
        keywords: Of the schema, beside ``"type": "string"``.
        noun: For messages: "value … is not a valid <noun>".
        parse: From text; raises ValueError. None leaves it to msgspec.
    """

    types = frozenset({"string"})
    keywords: ClassVar[dict[str, str]] = {
        name: name for name in ("ge", "gt", "le", "lt", "min_length", "max_length", "tz")
    }
    _CHECKS: ClassVar[dict[str, tuple[Callable[[Any, Any], bool], str]]] = {
        "ge": (lambda value, limit: value >= limit, "must be at least"),
        "gt": (lambda value, limit: value > limit, "must be more than"),
        "le": (lambda value, limit: value <= limit, "must be at most"),
        "lt": (lambda value, limit: value < limit, "must be less than"),
        "min_length": (lambda value, limit: len(value) >= limit, "must have a length of at least"),
        "max_length": (lambda value, limit: len(value) <= limit, "must have a length of at most"),
    }

    def __init__(self, cls: type, keywords: Schema, noun: str, parse: Callable[[str], Any] | None = None) -> None:
        super().__init__()
        self.cls = cls
        self.extra = keywords
        self.noun = noun
        self.parse = parse or self._parse_natively
        self.exact = parse is None
        self.decimal = cls is Decimal

    def constrain(self, constraints: Constraints, *, native: bool) -> None:
        super().constrain(constraints, native=native)
        # No keyword says these things of a string, so they are checked after parsing.
        self.exact = self.exact and constraints.keys() <= {"tz"}

    def schema(self, definitions: Definitions) -> Schema:
        return {"type": "string", **self.extra}

    def decode(self, value: Any, path: Path) -> Any:
        try:
            parsed = self.parse(value)
        except (ValueError, ArithmeticError):  # Decimal raises the latter
            raise Mismatch(path, f"value {scalar_text(value)} is not a valid {self.noun}") from None
        for name, limit in self.limits.items():
            if name in self._CHECKS:
                holds, words = self._CHECKS[name]
                try:
                    kept = holds(parsed, limit)
                except TypeError:  # a date-time with a zone against a limit without one, or the reverse
                    kept = False
                if not kept:
                    raise Mismatch(path, f"value {scalar_text(value)} {words} {limit}")
        return parsed

    def carrier(self) -> Any:
        zone = self.limits.get("tz")
        return self.cls if zone is None else Annotated[self.cls, Meta(tz=zone)]

    def _parse_natively(self, value: str) -> Any:
        return msgspec.convert(value, self.carrier())


class EnumNode(Node):
    """``Enum`` by value and ``Literal``.

    Args:
        options: Pairs of JSON value and Python value, in order of definition.
        native: The type for msgspec; None where msgspec cannot read it as the schema says.
    """

    def __init__(self, options: Sequence[tuple[Any, Any]], native: Any) -> None:
        super().__init__()
        self.values = [wire for wire, _ in options]
        self.types = frozenset(json_type(value) for value in self.values)
        self.native = native
        self.exact = native is not None
        self._by_value = {_key(wire): value for wire, value in reversed(options)}

    def schema(self, definitions: Definitions) -> Schema:
        names = list(dict.fromkeys(json_type(value) for value in self.values))
        return {"type": names[0] if len(names) == 1 else names, "enum": self.values}

    def decode(self, value: Any, path: Path) -> Any:
        return self._by_value[_key(value)]

    def carrier(self) -> Any:
        return self.native


def _key(value: Any) -> tuple[bool, Any]:
    """Return a key under which 1 and 1.0 are one value, as in JSON Schema, and true and 1 are two."""
    return isinstance(value, bool), value
