"""Arguments that are texts on the wire: those of prompts, and the variables of URI templates.

A parameter that takes strings gets the text as it is; any other reads it as JSON: ``5`` for an ``int``, ``["a"]`` for a
``list[int]``. Nothing is guessed: ``007``, ``yes`` and ``2.5`` are no integers.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mcpcore.exceptions import McpError
from mcpcore.providers.annotations import split_annotated
from mcpcore.providers.markers import Param
from mcpcore.providers.schema import Field, InvalidValue, arguments_codec, value_codec
from mcpcore.types.jsonrpc import INVALID_PARAMS

__all__ = ["TextArguments"]


class TextArguments:
    """Converts texts to the annotations of a handler's parameters.

    Args:
        fields: The parameters.
        noun: What a text is called in messages: ``argument``, ``variable``.
        owner: Whose texts they are: ``prompt 'greet'``.
        extra: Texts without a parameter are accepted and dropped.

    Raises:
        DefinitionError: A type that no text can be converted to.
    """

    def __init__(self, fields: Sequence[Field], *, noun: str, owner: str, extra: bool = False) -> None:
        self._noun, self._owner, self._extra = noun, owner, extra
        self._readers = {field.alias or field.name: (field.name, _reader(field.type)) for field in fields}
        self._secrets = {field.alias or field.name for field in fields if field.secret}
        self._required = [field.alias or field.name for field in fields if field.required]
        optional = [field for field in fields if not field.required]
        self._defaults = arguments_codec(optional).decode if optional else None

    def decode(self, texts: Mapping[str, str] | None) -> dict[str, Any]:
        """Return values by Python name, defaults filled in.

        Raises:
            McpError: -32602, with the name of what is missing, unexpected or of the wrong form.
        """
        texts = texts or {}
        values = {} if self._defaults is None else self._defaults(None, tool="")
        for wire in self._required:
            if wire not in texts:
                raise McpError(INVALID_PARAMS, f"Missing {self._noun} {wire!r} of {self._owner}")
        for wire, text in texts.items():
            if wire in self._readers:
                name, read = self._readers[wire]
                try:
                    values[name] = read(text)
                except InvalidValue as exc:
                    why = "value is not valid" if wire in self._secrets else str(exc)
                    raise McpError(INVALID_PARAMS, f"Invalid {self._noun} {wire!r} of {self._owner}: {why}") from None
            elif not self._extra:
                known = ", ".join(self._readers) or "none"
                raise McpError(INVALID_PARAMS, f"Unexpected {self._noun} {wire!r} of {self._owner}; it has: {known}")
        return values


def _reader(tp: Any) -> Callable[[str], Any]:
    inner, metadata = split_annotated(tp)
    if inner in (str, Any) and all(isinstance(each, Param | str) for each in metadata):
        return _same
    return value_codec(tp, mode="input").decode_text


def _same(text: str) -> str:
    return text
