"""What a Python type is in JSON: one node per kind of type, with its schema and its way from JSON to Python.

`schema` and `decode` stand side by side so that they say the same. A node's `decode` is given values that the
published schema has accepted; what a schema cannot say (is this text a date?) is left to raise `Mismatch`.

Three facts decide where msgspec, which is many times faster, may do the work alone:

``exact``
    msgspec's decoder, given `carrier`, accepts the same JSON as the schema and makes the same value.
``as_written``
    msgspec reads the annotation itself the way this node does. Needed inside classes, whose fields msgspec reads.
``plain``
    msgspec's encoder writes values of this type as `mcpcore.providers.encoding` would.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from mcpcore.exceptions import DefinitionError
from mcpcore.providers.definitions import Definitions, Schema, fold
from mcpcore.providers.validation import pointer

__all__ = ["Constraints", "Mismatch", "Node", "Path", "admits", "document", "has_decimals", "is_exact", "is_plain"]

Path = tuple[str | int, ...]
Constraints = dict[str, Any]


class Mismatch(Exception):
    """A value that its schema accepts has no Python value of the type.

    Args:
        quoted: What the words may quote although it stands below ``path``: the words are those of a user's class.
    """

    def __init__(self, path: Path, what: str, quoted: Any = None) -> None:
        super().__init__(f"{pointer(path)}: {what}")
        self.path = path
        self._quoted = quoted

    def text(self, secrets: Collection[str]) -> str:
        """Return the message, without its words where they may quote a member whose name is among ``secrets``."""
        hides = any(name in secrets for name in (*self.path, *_names(self._quoted)))
        return f"{pointer(self.path)}: value is not valid" if hides else str(self)


def _names(value: Any) -> Iterator[str]:
    """Yield the names of all members inside a JSON value."""
    match value:
        case {**members}:
            for name, inner in members.items():
                yield str(name)
                yield from _names(inner)
        case [*items]:
            for inner in items:
                yield from _names(inner)
        case _:
            pass


class Node(ABC):
    """One type. Attributes are explained in the module's docstring; ``types`` are the JSON types it admits."""

    types: frozenset[str] = frozenset()
    exact = True
    as_written = True
    plain = True
    hashable = True
    decimal = False
    """Values are of the one type that spells NaN out."""
    reads_fields = False
    """msgspec reads the annotations below this node by itself."""
    tag: tuple[str, str | int] | None = None
    """Member and value that tell a tagged Struct from others."""
    tells_apart = False
    """Values are told apart by their tags."""
    keywords: ClassVar[dict[str, str]] = {}  # what constraints are called in a schema of this kind

    def __init__(self) -> None:
        self.limits: Constraints = {}

    @abstractmethod
    def schema(self, definitions: Definitions) -> Schema:
        """Return the schema of the type; records go to ``definitions``."""

    @abstractmethod
    def decode(self, value: Any, path: Path) -> Any:
        """Return the Python value for ``value``. Raises `Mismatch`."""

    def carrier(self) -> Any:
        """Return the type to give to msgspec. Only asked of exact nodes."""
        raise NotImplementedError(f"{type(self).__name__} is never exact")

    def children(self) -> Sequence["Node"]:
        return ()

    def constrain(self, constraints: Constraints, *, native: bool) -> None:
        """Add limits such as ``ge`` and ``max_length`` to a node that nobody else holds.

        Args:
            native: msgspec sees them too, because they are written as `msgspec.Meta`.

        Raises:
            DefinitionError: The limit means nothing for this kind of type.
        """
        for name, limit in constraints.items():
            if name not in self.keywords:
                raise DefinitionError(f"the constraint {name!r} does not apply to {self.describe()}")
            self.limits[name] = limit
        # Two engines disagree about patterns, and about remainders of large or fractional numbers.
        self.exact = self.exact and not {"pattern", "multiple_of"} & constraints.keys()
        self.as_written = self.as_written and native

    def limit_keywords(self) -> Schema:
        return {self.keywords[name]: limit for name, limit in self.limits.items()}

    def limited(self, carrier: Any) -> Any:
        return Annotated[carrier, Meta(**self.limits)] if self.limits else carrier

    def describe(self) -> str:
        return " or ".join(sorted(self.types)) or "any value"


def document(node: Node) -> Schema:
    """Return the schema of ``node`` as a document of its own."""
    definitions = Definitions()
    return fold(node.schema(definitions), definitions.schemas)


def is_exact(node: Node) -> bool:
    """Return whether msgspec may decode ``node`` alone; see the module's docstring."""
    return all(
        each.exact
        and (each.as_written or not in_record)
        # msgspec insists on the tag only where there is something to tell apart.
        and (each.tag is None or (parent is not None and parent.tells_apart))
        for each, parent, in_record in _walk(node)
    )


def is_plain(node: Node) -> bool:
    """Return whether msgspec may encode values of ``node`` alone."""
    return all(each.plain for each, _, _ in _walk(node))


def has_decimals(node: Node) -> bool:
    """Return whether there may be a `Decimal` in a value of ``node``."""
    return any(each.decimal for each, _, _ in _walk(node))


def _walk(root: Node) -> Iterator[tuple[Node, Node | None, bool]]:
    """Yield every node below ``root`` once per kind of place: (node, parent, whether inside a record)."""
    seen: set[tuple[int, bool, bool]] = set()
    waiting: list[tuple[Node, Node | None, bool]] = [(root, None, False)]
    while waiting:
        node, parent, in_record = waiting.pop()
        place = (id(node), parent is not None and parent.tells_apart, in_record)
        if place in seen:
            continue
        seen.add(place)
        yield node, parent, in_record
        below = in_record or node.reads_fields
        waiting += [(child, node, below) for child in node.children()]


def admits(types: frozenset[str], found: str) -> bool:
    """Return whether values of the JSON type ``found`` may be among ``types``. 5.0 may be an integer."""
    return found in types or (found == "integer" and "number" in types) or (found == "number" and "integer" in types)
