"""Nodes of types that are made of others: arrays, mappings, records, unions."""

from collections.abc import Callable, Sequence
from types import GenericAlias
from typing import Any, ClassVar, Union

import msgspec
from msgspec import UNSET

from mcpcore.exceptions import DefinitionError
from mcpcore.providers.definitions import Definitions, Schema
from mcpcore.providers.leaf_nodes import AnyNode, EnumNode, ScalarNode
from mcpcore.providers.nodes import Constraints, Mismatch, Node, Path, admits, document
from mcpcore.providers.validation import Validator, json_type

__all__ = [
    "AliasNode",
    "ArrayNode",
    "MapNode",
    "NotedNode",
    "RecordField",
    "RecordNode",
    "TupleNode",
    "UnionNode",
]


class ArrayNode(Node):
    """A list, set, frozenset, deque or ``tuple[T, ...]`` of one kind of item."""

    types = frozenset({"array"})
    keywords: ClassVar[dict[str, str]] = {"min_length": "minItems", "max_length": "maxItems"}
    _NATIVE: ClassVar[dict[Any, Any]] = {list: list, set: set, frozenset: frozenset, tuple: tuple}

    def __init__(self, item: Node, build: Callable[[list[Any]], Any]) -> None:
        super().__init__()
        self.item = item
        self.build = build
        self.exact = build in self._NATIVE
        self.plain = build is list  # sets are sorted when they are written, and tuples become lists
        self.hashable = build in (tuple, frozenset) and item.hashable

    def schema(self, definitions: Definitions) -> Schema:
        items = self.item.schema(definitions)
        return {"type": "array", **({"items": items} if items else {}), **self.limit_keywords()}

    def decode(self, value: Any, path: Path) -> Any:
        items = [self.item.decode(each, (*path, index)) for index, each in enumerate(value)]
        try:
            return self.build(items)
        except TypeError:  # a set of anything was given arrays or objects
            raise Mismatch(path, "items of a set must be scalars") from None

    def carrier(self) -> Any:
        item = self.item.carrier()
        return self.limited(GenericAlias(self._NATIVE[self.build], (item, ...) if self.build is tuple else item))

    def constrain(self, constraints: Constraints, *, native: bool) -> None:
        super().constrain(constraints, native=native)
        # [1, 1] has two items in JSON and one in a set.
        self.exact = self.exact and self.build not in (set, frozenset)

    def children(self) -> Sequence[Node]:
        return (self.item,)


class TupleNode(Node):
    """``tuple[A, B]``: an array of fixed length."""

    types = frozenset({"array"})
    plain = False

    def __init__(self, items: Sequence[Node]) -> None:
        super().__init__()
        self.items = items
        self.hashable = all(item.hashable for item in items)

    def schema(self, definitions: Definitions) -> Schema:
        length = len(self.items)
        prefix = {"prefixItems": [item.schema(definitions) for item in self.items]} if self.items else {}
        return {"type": "array", **prefix, "minItems": length, "maxItems": length}

    def decode(self, value: Any, path: Path) -> Any:
        pairs = zip(self.items, value, strict=True)
        return tuple(item.decode(each, (*path, index)) for index, (item, each) in enumerate(pairs))

    def carrier(self) -> Any:
        return GenericAlias(tuple, tuple(item.carrier() for item in self.items) or ((),))

    def children(self) -> Sequence[Node]:
        return self.items


class MapNode(Node):
    """A mapping. Keys are strings in JSON, so only what a string spells out can be a key."""

    types = frozenset({"object"})
    keywords: ClassVar[dict[str, str]] = {"min_length": "minProperties", "max_length": "maxProperties"}
    hashable = False

    def __init__(self, key: Node, value: Node, build: Callable[[dict[Any, Any]], Any]) -> None:
        super().__init__()
        if isinstance(key, AnyNode):
            key = ScalarNode(str)
        self.key = key
        self.value = value
        self.build = build
        self.exact = isinstance(key, ScalarNode) and key.cls is str and not key.limits and build is dict
        self._names, self._decode_key = self._key_rules(key)

    @staticmethod
    def _key_rules(key: Node) -> tuple[Schema, Callable[[str, Path], Any]]:
        if key.types == frozenset({"string"}):
            names = key.schema(Definitions())
            del names["type"]
            return names, key.decode
        if isinstance(key, ScalarNode) and key.cls is int and not key.limits:
            return {"pattern": "^(0|-?[1-9][0-9]*)$"}, _whole_number
        if isinstance(key, EnumNode) and key.types <= {"integer", "string"}:
            members = {str(value): key.decode(value, ()) for value in key.values}
            return {"enum": list(members)}, lambda name, path: members[name]
        raise DefinitionError(f"the keys of a mapping are strings in JSON, they cannot stand for {key.describe()}")

    def schema(self, definitions: Definitions) -> Schema:
        schema: Schema = {"type": "object"}
        if self._names:
            schema["propertyNames"] = dict(self._names)
        if values := self.value.schema(definitions):
            schema["additionalProperties"] = values
        return {**schema, **self.limit_keywords()}

    def decode(self, value: Any, path: Path) -> Any:
        decode_key, decode = self._decode_key, self.value.decode
        return self.build(
            {decode_key(name, (*path, name)): decode(each, (*path, name)) for name, each in value.items()}
        )

    def carrier(self) -> Any:
        return self.limited(GenericAlias(dict, (str, self.value.carrier())))

    def children(self) -> Sequence[Node]:
        return (self.value,)


def _whole_number(name: str, path: Path) -> int:
    try:
        return int(name)
    except ValueError:  # thousands of digits
        raise Mismatch(path, "number out of range") from None


class RecordField(msgspec.Struct, frozen=True):
    """One member of a record.

    Args:
        name: What the constructor calls it.
        alias: What JSON calls it.
        default: Published; `UNSET` for none, or none that JSON can show.
    """

    name: str
    alias: str
    node: Node
    required: bool
    default: Any = UNSET


class RecordNode(Node):
    """A class or TypedDict with named members.

    Args:
        name: For ``$defs``.
        construct: Makes an instance from keyword arguments.
        native: The type for msgspec; None where msgspec does not read it as the schema says.
        plain: msgspec writes it as the schema says.
        closed: Unknown members are refused.
        tag: Member and value that tell a tagged Struct from others.
    """

    types = frozenset({"object"})
    reads_fields = True

    def __init__(
        self,
        name: str,
        construct: Callable[..., Any],
        *,
        native: Any,
        plain: bool,
        closed: bool,
        hashable: bool = False,
        tag: tuple[str, str | int] | None = None,
    ) -> None:
        super().__init__()
        self.name = name
        self.construct = construct
        self.native = native
        self.exact = native is not None
        self.plain = plain
        self.closed = closed
        self.hashable = hashable
        self.tag = tag
        self.fields: list[RecordField] = []

    def schema(self, definitions: Definitions) -> Schema:
        return definitions.reference(self, self.name, lambda: self._body(definitions))

    def _body(self, definitions: Definitions) -> Schema:
        properties: Schema = {}
        required: list[str] = []
        if self.tag is not None:
            member, value = self.tag
            properties[member] = {"type": json_type(value), "enum": [value]}
            required.append(member)
        for each in self.fields:
            properties[each.alias] = each.node.schema(definitions)
            if each.default is not UNSET:
                properties[each.alias]["default"] = each.default
            if each.required:
                required.append(each.alias)
        schema: Schema = {"type": "object", "properties": properties}
        if required:
            schema["required"] = required
        if self.closed:
            schema["additionalProperties"] = False
        return schema

    def decode(self, value: Any, path: Path) -> Any:
        members = {
            each.name: each.node.decode(value[each.alias], (*path, each.alias))
            for each in self.fields
            if each.alias in value
        }
        try:
            return self.construct(**members)
        except (TypeError, ValueError) as exc:  # the class's own checks, in its own words
            raise Mismatch(path, str(exc) or type(exc).__name__, value) from None

    def carrier(self) -> Any:
        return self.native

    def children(self) -> Sequence[Node]:
        return [each.node for each in self.fields]


class UnionNode(Node):
    """One of several types; the first that fits."""

    def __init__(self, branches: Sequence[Node]) -> None:
        super().__init__()
        self.branches = branches
        self.types = frozenset().union(*(branch.types for branch in branches))
        self.hashable = all(branch.hashable for branch in branches)
        self.tells_apart = sum(branch.tag is not None for branch in branches) > 1
        self._validators: list[Validator] = []

    def constrain(self, constraints: Constraints, *, native: bool) -> None:
        for name, limit in constraints.items():
            takers = [branch for branch in self.branches if name in branch.keywords]
            if not takers:
                raise DefinitionError(f"the constraint {name!r} does not apply to {self.describe()}")
            for branch in takers:
                branch.constrain({name: limit}, native=native)

    def schema(self, definitions: Definitions) -> Schema:
        schemas: list[Schema] = []
        for branch in self.branches:
            each = branch.schema(definitions)
            schemas += each["anyOf"] if each.keys() == {"anyOf"} else [each]
        if {} in schemas:
            return {}
        if all(each.keys() == {"type"} for each in schemas):
            names = list(dict.fromkeys(each["type"] for each in schemas))
            return {"type": names if len(names) > 1 else names[0]}
        valued = [each for each in schemas if each != {"type": "null"}]
        if len(valued) == 1 and len(schemas) > 1:
            (only,) = valued
            # The other keywords of these types say nothing about null, so they can stand beside it.
            if only.get("type") in ("string", "integer", "number") and "enum" not in only:
                return {**only, "type": [only["type"], "null"]}
        return {"anyOf": schemas}

    def decode(self, value: Any, path: Path) -> Any:
        found = json_type(value)
        fitting = [branch for branch in self.branches if admits(branch.types, found)]
        if len(fitting) > 1:
            fitting = [branch for branch in fitting if self._validator(branch).is_valid(value)]
            # A whole number goes to the type of whole numbers, 5.0 to the type of fractions.
            fitting.sort(key=lambda branch: found not in branch.types)
        mismatch: Mismatch | None = None
        for branch in fitting:
            try:
                return branch.decode(value, path)
            except Mismatch as exc:
                mismatch = mismatch or exc
        raise mismatch or Mismatch(path, "matches no allowed form")

    def _validator(self, branch: Node) -> Validator:
        if not self._validators:
            self._validators = [Validator(document(each)) for each in self.branches]
        return self._validators[self.branches.index(branch)]

    def carrier(self) -> Any:
        return Union[tuple(branch.carrier() for branch in self.branches)]  # noqa: UP007  # made at run time

    def children(self) -> Sequence[Node]:
        return self.branches


class AliasNode(Node):
    """A named type alias (``type Tree = dict[str, Tree]``) that contains itself."""

    exact = False  # msgspec follows aliases only on newer Pythons

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.target: Node = AnyNode()
        self.recursive = False

    @property
    def types(self) -> frozenset[str]:  # type: ignore[override]  # known only when the target is
        return self.target.types

    def schema(self, definitions: Definitions) -> Schema:
        return definitions.reference(self, self.name, lambda: self.target.schema(definitions))

    def decode(self, value: Any, path: Path) -> Any:
        return self.target.decode(value, path)

    def children(self) -> Sequence[Node]:
        return (self.target,)


class NotedNode(Node):
    """A type with keywords of its author's: description, examples, title, or any (``extra_json_schema``)."""

    def __init__(self, node: Node, notes: Schema, *, asserting: bool) -> None:
        super().__init__()
        self.exact = not asserting
        self.node = node
        self.notes = notes
        self.types = node.types
        self.hashable = node.hashable
        self.keywords = node.keywords  # type: ignore[misc]  # those of the type inside

    def constrain(self, constraints: Constraints, *, native: bool) -> None:
        self.node.constrain(constraints, native=native)

    def schema(self, definitions: Definitions) -> Schema:
        return {**self.node.schema(definitions), **self.notes}

    def decode(self, value: Any, path: Path) -> Any:
        return self.node.decode(value, path)

    def carrier(self) -> Any:
        return self.node.carrier()

    def children(self) -> Sequence[Node]:
        return (self.node,)
