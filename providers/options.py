"""What the options of decorators, markers and registries may be: a table, applied where they are given and not when the
first handler is called."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from msgspec import Struct

from mcpcore.exceptions import DefinitionError
from mcpcore.types.lifecycle import Icon

__all__ = ["FLAG", "ICONS", "TEXT", "Row", "check_option", "check_options", "instance", "list_of", "one_of", "or_none"]

Row = tuple[str, Callable[[Any], bool]]
"""What an option may be: in words, and the same as a predicate."""


def check_options(given: Struct, **own: Row) -> None:
    """Raise `DefinitionError` for the first member of ``given`` that its row does not take.

    None may be what is None by default.

    Args:
        own: Rows of members that mean something of their own here, in place of those in the table.
    """
    for name, default in zip(given.__struct_fields__, given.__struct_defaults__, strict=True):
        value = getattr(given, name)
        row = own.get(name) or _OPTIONS.get(name)
        if row is not None and not (value is None and default is None):
            check_option(name, value, row)


def check_option(name: str, value: Any, row: Row) -> None:
    """Raise `DefinitionError` unless ``row`` takes ``value``."""
    wanted, takes = row
    if not takes(value):
        raise DefinitionError(f"{name}={value!r}: give {wanted}")


def instance(of: type) -> Row:
    """Return the row of an option that is an instance of a class."""
    return f"{of.__name__}(…)", _is_a(of)


def one_of(*values: str | bool) -> Row:
    """Return the row of an option that is one of ``values``."""
    *most, last = (repr(each) for each in values)
    return f"{', '.join(most)} or {last}", lambda value: isinstance(value, str | bool) and value in values


def list_of(wanted: str, takes: Callable[[Any], bool]) -> Row:
    """Return the row of an option that is a list or tuple of what ``takes`` takes."""
    return f"a list of {wanted}", _has_only(takes)


def or_none(row: Row) -> Row:
    """Return the row of an option that may be None as well."""
    wanted, takes = row
    return f"{wanted}, or None", lambda value: value is None or takes(value)


def _is_a(of: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, of)


def _has_only(takes: Callable[[Any], bool]) -> Callable[[Any], bool]:
    def has_only(value: Any) -> bool:
        if not isinstance(value, Sequence) or isinstance(value, str | bytes):
            return False
        return all(takes(each) for each in cast(Sequence[object], value))

    return has_only


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _is_part(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value <= 1.0


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _are_exceptions(value: Any) -> bool:
    if not isinstance(value, tuple):
        return False
    return all(isinstance(each, type) and issubclass(each, BaseException) for each in cast(tuple[object, ...], value))


TEXT: Final[Row] = ("a text", _is_a(str))
FLAG: Final[Row] = ("True or False", _is_a(bool))
ICONS: Final[Row] = list_of("Icon(…)", _is_a(Icon))
_TEXTS: Final[Row] = list_of("texts", _is_a(str))

_OPTIONS: Final[dict[str, Row]] = {
    # of decorators; output_schema= is read together with the return type
    "name": TEXT,
    "title": TEXT,
    "description": TEXT,
    "icons": ICONS,
    "tags": _TEXTS,
    "meta": ("a mapping, or a function that returns one", lambda value: isinstance(value, Mapping) or callable(value)),
    "scopes": _TEXTS,
    "visible": ("a function of the principal", callable),
    "timeout": ("a number of seconds above 0", _is_positive),
    "thread": FLAG,
    "read_only": FLAG,
    "destructive": FLAG,
    "idempotent": FLAG,
    "open_world": FLAG,
    "input_schema": ("a JSON Schema as a dict", _is_a(dict)),
    "extra": one_of("forbid", "ignore"),
    "omit_none": FLAG,
    "raises": ("a tuple of exception classes", _are_exceptions),
    "return_direct": FLAG,
    "uri": TEXT,
    "mime_type": TEXT,
    "size": ("a number of bytes", _is_size),
    "prompt": TEXT,
    "argument": TEXT,
    "audience": or_none(("'user', 'assistant' or both, in a tuple", _has_only(_is_a(str)))),
    "priority": or_none(("a number from 0.0 to 1.0", _is_part)),
    "last_modified": TEXT,
    # of parameters
    "alias": ("a text of at least one character", lambda value: isinstance(value, str) and value != ""),
    "required": FLAG,
    "header": TEXT,
    "secret": FLAG,
    "examples": list_of("values", lambda value: True),
    # of registries
    "rename": ("'camel' or None", lambda value: value in ("camel",)),
    "mask_unexpected": FLAG,
    "format_error": ("a function of the tool's name and the exception", callable),
    "on_error": ("a function of the handler and the exception", callable),
    "strict_names": FLAG,
}
