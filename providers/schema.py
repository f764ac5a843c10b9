"""JSON Schema 2020-12 from Python types.

One codec makes the schema, decodes by it and encodes by it, so the three cannot disagree.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

from msgspec import UNSET, Raw, Struct

from mcpcore.exceptions import MCPCoreError

__all__ = ["ArgumentsCodec", "EncodeError", "Field", "InvalidArguments", "ValueCodec", "arguments_codec", "value_codec"]


class InvalidArguments(MCPCoreError):
    """The arguments of a call do not fit the published input schema. ``str()`` is the whole text for the model."""

    def __init__(self, tool: str, errors: list[str]) -> None:
        super().__init__(
            f"Tool ({tool}) input validation failed: "
            f"Validation failed: JSON schema validation errors: [{', '.join(errors)}]"
        )
        self.tool = tool
        self.errors = errors


class EncodeError(MCPCoreError):
    """A value has no JSON form: NaN or infinity, an object of no known kind, a structure that holds itself."""


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


class ArgumentsCodec:
    """Decodes the arguments of one handler.

    Attributes:
        schema: The input schema to publish. ``type`` is "object", ``properties`` are in order, ``required`` is
            always there.
    """

    schema: dict[str, Any]

    def decode(self, raw: bytes | Raw | None, *, tool: str) -> dict[str, Any]:
        """Return the arguments by Python name, defaults filled in. None, ``null`` and ``{}`` are the same.

        Args:
            raw: The member ``arguments`` as it came; None where it was absent.
            tool: The name for messages.

        Raises:
            InvalidArguments: A schema violation.
            McpError: -32602, ``raw`` is not a JSON object.
        """
        raise NotImplementedError


def arguments_codec(
    fields: Sequence[Field],
    *,
    extra: Literal["forbid", "ignore", "allow"] = "forbid",
    literal_schema: dict[str, Any] | None = None,
) -> ArgumentsCodec:
    """Compile a codec for ``fields``.

    Args:
        extra: "forbid" publishes ``additionalProperties: false`` and refuses unknown names. The other two publish
            nothing and drop unknown names; a handler that wants them takes the raw request.
        literal_schema: Published and enforced as given, in place of a generated one.

    Raises:
        DefinitionError: A type has no schema, or ``literal_schema`` is not a valid schema of an object.
    """
    raise NotImplementedError


class ValueCodec:
    """Encodes and decodes values of one type.

    Attributes:
        schema: The schema of the type.
    """

    schema: dict[str, Any]

    def encode(self, value: Any) -> Any:
        """Return ``value`` as JSON-shaped builtins. Does not validate. Raises `EncodeError`."""
        raise NotImplementedError

    def encode_json(self, value: Any) -> bytes:
        """Return ``value`` as compact JSON. Does not validate. Raises `EncodeError`."""
        raise NotImplementedError

    def decode(self, value: Any) -> Any:
        """Return a Python value for JSON-shaped builtins. Raises `InvalidValue` with ``errors`` in F53's grammar."""
        raise NotImplementedError


def value_codec(tp: Any, *, omit_none: bool = False, mode: Literal["input", "output"] = "output") -> ValueCodec:
    """Compile a codec for ``tp``.

    Args:
        omit_none: Leave out members of records that are None and not required.
        mode: Which side is meant where a type has two schemas (pydantic aliases and computed fields).

    Raises:
        DefinitionError: The type has no schema.
    """
    raise NotImplementedError
