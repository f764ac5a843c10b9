"""JSON Schema 2020-12 from Python types.

One codec makes the schema, decodes by it and encodes by it, so the three cannot disagree.

Decoding has two ways. Where msgspec accepts exactly what the schema accepts, it reads the bytes straight into Python
values and nothing else happens. Where it refuses, and for types that it reads differently, the compiled schema judges
and words the errors, and the nodes convert. So whole numbers written ``5.0`` are integers, as JSON Schema has it, and
the validator is not even imported while nobody makes a mistake.
"""

import copy
from collections.abc import Callable, Collection, Sequence
from functools import cached_property, partial
from typing import Any, Final, Literal, Union

import msgspec
from msgspec import NODEFAULT, UNSET, Raw, Struct, UnsetType
from msgspec.structs import asdict

from mcpcore.exceptions import DefinitionError, MCPCoreError, McpError
from mcpcore.providers.definitions import Definitions, Schema, fold
from mcpcore.providers.encoding import EncodeError, dump, dump_plain
from mcpcore.providers.nodes import Mismatch, Node, admits, document, has_decimals, is_exact, is_plain
from mcpcore.providers.type_reader import TypeReader, shown_default
from mcpcore.providers.validation import Validator, check_schema, join_errors, json_type, pointer, scalar_text
from mcpcore.types.header_map import header_map
from mcpcore.types.jsonrpc import INVALID_PARAMS, PARSE_ERROR

__all__ = [
    "ArgumentsCodec",
    "EncodeError",
    "Field",
    "InvalidArguments",
    "InvalidValue",
    "ValueCodec",
    "arguments_codec",
    "value_codec",
]

_TOO_DEEP: Final = ": nested too deeply"
_OUT_OF_RANGE: Final = ": number out of range"


class InvalidValue(MCPCoreError):
    """What a peer sent does not fit the type that was asked for.

    Args:
        errors: Entries ``<JSON pointer>: <what>``.
    """

    def __init__(self, errors: list[str]) -> None:
        super().__init__(", ".join(errors).removeprefix(": "))
        self.errors = errors


class InvalidArguments(InvalidValue):
    """The arguments of a call do not fit the published input schema. ``str()`` is the whole text for the model."""

    def __init__(self, tool: str, errors: list[str]) -> None:
        super().__init__(errors)
        self.args = (f"Tool ({tool}) input validation failed: {join_errors(errors)}",)
        self.tool = tool


class Field(Struct, frozen=True, kw_only=True):
    """One published parameter of a handler.

    Args:
        name: The Python name: the key of what `ArgumentsCodec.decode` returns.
        alias: The name on the wire; the Python name when None.
        type: The annotation with its `Annotated` metadata, strings already resolved; `Any` where there is none.
        required: False passes ``default``, or what ``default_factory`` makes, or None (`UNSET` where the type admits
            it) when the argument is absent.
        default: Published where it is JSON and not None. Lists, dicts and sets are copied for every call.
        default_factory: Called for every call that needs it.
        description, examples: Win over what the metadata of ``type`` says.
        header: Published as ``x-mcp-header``.
        secret: Never shown in an error message.
    """

    name: str
    type: Any = Any
    alias: str | None = None
    required: bool = True
    default: Any = UNSET
    default_factory: Callable[[], Any] | None = None
    description: str | None = None
    examples: tuple[Any, ...] = ()
    header: str | None = None
    secret: bool = False


class _Parameter(Struct, frozen=True):
    """A `Field` with its node, and what is passed when the argument is absent: a value or a factory for it."""

    field: Field
    node: Node
    admits_unset: bool
    default: Any
    factory: Callable[[], Any] | None

    @property
    def wire(self) -> str:
        return self.field.alias or self.field.name


# -- arguments ---------------------------------------------------------------------------------------------------


def arguments_codec(
    fields: Sequence[Field],
    *,
    extra: Literal["forbid", "ignore", "allow"] = "forbid",
    literal_schema: dict[str, Any] | None = None,
) -> "ArgumentsCodec":
    """Compile a codec for ``fields``.

    Args:
        extra: "forbid" publishes ``additionalProperties: false``, for nested records as well, and refuses unknown
            names. The other two publish nothing and drop unknown names; a handler that wants them takes the raw
            request.
        literal_schema: Published and enforced as given, in place of a generated one. What it leaves open is still held
            to the annotations; ``extra`` does not count then.

    Raises:
        DefinitionError: A type has no schema, or ``literal_schema`` is not a valid schema of an object, or has no place
            for a required field.
    """
    closed = extra == "forbid" and literal_schema is None
    reader = TypeReader(mode="input", closed=closed)
    parameters = [_parameter(reader, field) for field in fields]
    generated = _object_schema(parameters, closed=closed)
    if literal_schema is None:
        decoder = _native_decoder(parameters, closed=closed)
        return ArgumentsCodec(parameters, generated, decoder=decoder, secrets=reader.secrets)
    _check_literal(literal_schema, parameters)
    # The annotations hold as well: a schema by hand may say less than they do, and they convert.
    return ArgumentsCodec(
        parameters, copy.deepcopy(literal_schema), decoder=None, annotations=generated, secrets=reader.secrets
    )


def _check_literal(schema: Schema, parameters: Sequence[_Parameter]) -> None:
    check_schema(schema)
    if schema.get("type") != "object":
        raise DefinitionError('arguments are an object: the input schema needs "type": "object" at its root')
    _check_headers(schema)
    if schema.get("additionalProperties") is False and "patternProperties" not in schema:
        for each in parameters:
            if each.field.required and each.wire not in schema.get("properties", {}):
                raise DefinitionError(
                    f"parameter {each.field.name!r} is required, and the input schema allows no property {each.wire!r}"
                )


def _check_headers(schema: Schema) -> None:
    """Raise `DefinitionError` where clients would have to drop the tool (2026-07-28, server/tools, "x-mcp-header")."""
    try:
        header_map(schema)
    except ValueError as exc:
        raise DefinitionError(str(exc)) from None


class ArgumentsCodec:
    """Decodes the arguments of one handler. Made by `arguments_codec`.

    Attributes:
        schema: The input schema to publish. ``type`` is "object", ``properties`` are in order, ``required`` is
            always there.
        secrets: Names whose values are never quoted, of parameters and of fields inside them.
    """

    def __init__(
        self,
        parameters: Sequence[_Parameter],
        schema: dict[str, Any],
        *,
        decoder: Callable[[Any], Any] | None,
        secrets: Collection[str],
        annotations: Schema | None = None,
    ) -> None:
        self.schema = schema
        self._annotations = annotations
        self._parameters = parameters
        self.secrets = frozenset(secrets).union(each.wire for each in parameters if each.field.secret)
        self._decoder = decoder

    def decode(self, raw: bytes | Raw | None, *, tool: str) -> dict[str, Any]:
        """Return the arguments by Python name, defaults filled in. None, ``null`` and ``{}`` are the same.

        Args:
            raw: The member ``arguments`` as it came; None where it was absent.
            tool: The name for messages.

        Raises:
            InvalidArguments: A schema violation, or text that is not what its format promises.
            McpError: -32602, ``raw`` is not a JSON object; -32700, it is no JSON.
        """
        if raw is None:
            raw = b"{}"
        if self._decoder is not None:
            try:
                return asdict(self._decoder(raw))
            except (msgspec.DecodeError, RecursionError):
                pass  # the long way finds the words
        value = _read(raw, tool)
        for validator in self._validators:
            if errors := validator.errors(value, show_values=True, hidden=self.secrets):
                raise InvalidArguments(tool, errors)
        return self._convert(value, tool)

    @cached_property
    def _validators(self) -> list[Validator]:
        return [Validator(schema) for schema in (self.schema, self._annotations) if schema is not None]

    def _convert(self, value: dict[str, Any], tool: str) -> dict[str, Any]:
        arguments: dict[str, Any] = {}
        errors: list[str] = []
        for each in self._parameters:
            wire = each.wire
            try:
                if wire in value:
                    arguments[each.field.name] = each.node.decode(value[wire], (wire,))
                else:
                    arguments[each.field.name] = each.default if each.factory is None else each.factory()
            except Mismatch as exc:
                errors.append(exc.text(self.secrets))
            except RecursionError:
                errors.append(f"{pointer([wire])}{_TOO_DEEP}")
        if errors:
            raise InvalidArguments(tool, sorted(errors))
        return arguments


def _read(raw: bytes | Raw, tool: str) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(raw)
    except msgspec.ValidationError:  # digits without end: JSON, but no number that Python can hold
        raise InvalidArguments(tool, [_OUT_OF_RANGE]) from None
    except RecursionError:
        raise InvalidArguments(tool, [_TOO_DEEP]) from None
    except msgspec.DecodeError as exc:
        raise McpError(PARSE_ERROR, f"Parse error: {exc}") from None
    if value is None:
        return {}
    if (found := json_type(value)) != "object":
        raise McpError(INVALID_PARAMS, f"Invalid params: arguments must be an object, not {found}")
    arguments: dict[str, Any] = value
    return arguments


def _parameter(reader: TypeReader, field: Field) -> _Parameter:
    try:
        node, admits_unset = reader.read_field(field.type)
    except DefinitionError as exc:
        raise DefinitionError(f"parameter {field.name!r}: {exc}") from None
    default, factory = field.default, field.default_factory
    if field.required:
        default, factory = NODEFAULT, None
    elif factory is None and default is UNSET and not admits_unset:
        default = None
    elif factory is None:
        factory = _copier(default, node)
    return _Parameter(field, node, admits_unset, default, factory)


_CONTAINERS: Final = (list, dict, set, bytearray)  # with whatever inside, JSON or not


def _copier(default: Any, node: Node) -> Callable[[], Any] | None:
    """Return what copies a default that a call could change; None for one without parts, or that is no data at all."""
    if type(default) not in _CONTAINERS and not isinstance(shown_default(default, node), list | dict):
        return None
    try:
        copy.deepcopy(default)
    except Exception:  # noqa: BLE001  # it holds what cannot be copied, such as a lock, and may fail in any way
        return None
    return partial(copy.deepcopy, default)


def _object_schema(parameters: Sequence[_Parameter], *, closed: bool) -> Schema:
    definitions = Definitions()
    properties: Schema = {}
    for each in parameters:
        field = each.field
        published = each.node.schema(definitions)
        if field.description:
            published["description"] = field.description
        if field.examples:
            published["examples"] = list(field.examples)
        if not field.required and (default := shown_default(field.default, each.node)) is not UNSET:
            published["default"] = default
        if field.header is not None:
            published = {**_of_one_type(published), "x-mcp-header": field.header}
        properties[each.wire] = published
    schema: Schema = {
        "type": "object",
        "properties": properties,
        "required": [each.wire for each in parameters if each.field.required],
    }
    if closed:
        schema["additionalProperties"] = False
    folded = fold(schema, definitions.schemas)
    _check_headers(folded)
    return folded


def _of_one_type(schema: Schema) -> Schema:
    """Return the schema of an optional enumeration with null among its options; clients mirror what has a `type`."""
    match schema:
        case {"anyOf": [{"type": str(name), "enum": [*options]}, {"type": "null"}], **rest}:
            return {"type": [name, "null"], "enum": [*options, None], **rest}
        case _:
            return schema


def _native_decoder(parameters: Sequence[_Parameter], *, closed: bool) -> Callable[[Any], Any] | None:
    """Return msgspec's decoder for the arguments; None where it would not accept just what the schema accepts."""
    # A Struct takes any name but those that Python keeps for itself.
    if not all(is_exact(each.node) and not each.field.name.startswith("__") for each in parameters):
        return None
    try:
        members: list[tuple[str, Any, Any]] = []
        for each in parameters:
            carrier = each.node.carrier()
            if each.factory is not None:
                member = msgspec.field(name=each.wire, default_factory=each.factory)
            else:
                member = msgspec.field(name=each.wire, default=each.default)
            if each.admits_unset:
                carrier = Union[carrier, UnsetType]  # noqa: UP007  # made at run time
            members.append((each.field.name, carrier, member))
        struct = msgspec.defstruct("Arguments", members, kw_only=True, forbid_unknown_fields=closed)
        return msgspec.json.Decoder(struct).decode
    except (TypeError, ValueError):  # a union that msgspec does not do, a limit beyond 64 bits
        return None


# -- values ------------------------------------------------------------------------------------------------------


def value_codec(tp: Any, *, omit_none: bool = False, mode: Literal["input", "output"] = "output") -> "ValueCodec":
    """Compile a codec for ``tp``.

    Args:
        omit_none: Leave out members of records that are None and not required.
        mode: Which side is meant where a type has two schemas (pydantic's aliases and computed fields).

    Raises:
        DefinitionError: The type has no schema.
    """
    reader = TypeReader(mode=mode, closed=False)
    node, _ = reader.read_field(tp)
    return ValueCodec(node, omit_none=omit_none, secrets=reader.secrets)


class ValueCodec:
    """Encodes and decodes values of one type. Made by `value_codec`."""

    def __init__(self, node: Node, *, omit_none: bool, secrets: Collection[str]) -> None:
        self._node = node
        self._secrets = frozenset(secrets)
        self._omit_none = omit_none
        self._plain = is_plain(node) and not omit_none
        self._decimals = has_decimals(node)

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The schema of the type."""
        return document(self._node)

    def encode(self, value: Any) -> Any:
        """Return ``value`` as JSON-shaped builtins. Does not validate. Raises `EncodeError`."""
        return self.dump(value)[0]

    def encode_json(self, value: Any) -> bytes:
        """Return ``value`` as compact JSON. Does not validate. Raises `EncodeError`."""
        return self.dump(value)[1]

    def dump(self, value: Any) -> tuple[Any, bytes]:
        """Return both `encode` and `encode_json`, for the price of one."""
        return dump_plain(value, decimals=self._decimals) if self._plain else dump(value, omit_none=self._omit_none)

    def errors(self, builtins: Any, data: bytes) -> list[str]:
        """Return what in an encoded value does not fit the schema, values not shown.

        Args:
            builtins, data: From `dump`.
        """
        if self._decoder is not None:
            try:
                self._decoder(data)
            except (msgspec.DecodeError, RecursionError):
                pass  # the long way finds the words, or that 5.0 is an integer
            else:
                return []
        return self._validator.errors(builtins, show_values=False)

    def decode(self, value: Any) -> Any:
        """Return a Python value for JSON-shaped builtins. Raises `InvalidValue`."""
        if errors := self._validator.errors(value, show_values=True, hidden=self._secrets):
            raise InvalidValue(errors)
        try:
            return self._node.decode(value, ())
        except Mismatch as exc:
            raise InvalidValue([exc.text(self._secrets)]) from None
        except RecursionError:
            raise InvalidValue([_TOO_DEEP]) from None

    def decode_text(self, text: str) -> Any:
        """Return a Python value for text that stands for it: prompt arguments, variables of a URI.

        A type that has strings takes the text as it is; others read it as JSON, and an empty one as null.

        Raises:
            InvalidValue: It stands for no value of the type.
        """
        types = self._node.types
        if "string" in types:
            return self.decode(text)
        if text == "" and "null" in types:
            return self.decode(None)
        # `str(True)` is how Python clients spell it.
        spelled = text.lower() if "boolean" in types and text in ("True", "False") else text
        try:
            value = msgspec.json.decode(spelled)
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
            value = text
        if not admits(types, json_type(value)):
            raise InvalidValue([f": value {scalar_text(text)} is not {_one(self._node)}"])
        return self.decode(value)

    @cached_property
    def _validator(self) -> Validator:
        return Validator(self.schema)

    @cached_property
    def _decoder(self) -> Callable[[Any], Any] | None:
        if not is_exact(self._node):
            return None
        try:
            return msgspec.json.Decoder(self._node.carrier()).decode
        except (TypeError, ValueError):
            return None


def _one(node: Node) -> str:
    """Return the type in words: "an integer", "a number or null"."""
    names = [("an " if name[0] in "aeiou" else "a ") + name for name in sorted(node.types - {"null"})]
    return " or ".join(names + (["null"] if "null" in node.types else []))
