"""What the keywords of decorators may be: a table, applied when a handler is declared and not when it is first called."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from msgspec import Struct

from mcpcore.exceptions import DefinitionError
from mcpcore.types.lifecycle import Icon

__all__ = ["check_options"]


def check_options(given: Struct, *, hints: type | None = None) -> None:
    """Raise `DefinitionError` for the first member of ``given`` that its row below does not take.

    None may be what is None by default.

    Args:
        hints: The class of the member of that name.
    """
    for name, default in zip(given.__struct_fields__, given.__struct_defaults__, strict=True):
        value = getattr(given, name)
        if value is None and default is None:
            continue
        if name == "hints" and hints is not None:
            wanted, fits = f"{hints.__name__}(…)", isinstance(value, hints)
        elif name in _OPTIONS:
            wanted, takes = _OPTIONS[name]
            fits = takes(value)
        else:
            continue
        if not fits:
            raise DefinitionError(f"{name}={value!r}: give {wanted}")


def _is_a(*classes: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, classes)


def _has_only(*classes: type) -> Callable[[Any], bool]:
    def takes(value: Any) -> bool:
        if not isinstance(value, Sequence) or isinstance(value, str | bytes):
            return False
        return all(isinstance(each, classes) for each in cast(Sequence[object], value))

    return takes


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _is_part(value: Any) -> bool:
    return isinstance(value, int | float) and 0.0 <= value <= 1.0


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _are_exceptions(value: Any) -> bool:
    if not isinstance(value, tuple):
        return False
    return all(isinstance(each, type) and issubclass(each, BaseException) for each in cast(tuple[object, ...], value))


def _or_none(takes: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or takes(value)


_TEXT: Final = ("a text", _is_a(str))
_FLAG: Final = ("True or False", _is_a(bool))
_TEXTS: Final = ("a list of texts", _has_only(str))

_OPTIONS: Final[dict[str, tuple[str, Callable[[Any], bool]]]] = {
    # keyword: (what it may be in words, the same as a predicate); output_schema= is read together with the return type
    "name": _TEXT,
    "title": _TEXT,
    "description": _TEXT,
    "icons": ("a list of Icon(…)", _has_only(Icon)),
    "tags": _TEXTS,
    "meta": ("a mapping, or a function that returns one", lambda value: isinstance(value, Mapping) or callable(value)),
    "scopes": _TEXTS,
    "visible": ("a function of the principal", callable),
    "timeout": ("a number of seconds above 0", _is_positive),
    "thread": _FLAG,
    "read_only": _FLAG,
    "destructive": _FLAG,
    "idempotent": _FLAG,
    "open_world": _FLAG,
    "input_schema": ("a JSON Schema as a dict", _is_a(dict)),
    "extra": ("'forbid' or 'ignore'", lambda value: value in ("forbid", "ignore")),
    "omit_none": _FLAG,
    "raises": ("a tuple of exception classes", _are_exceptions),
    "return_direct": _FLAG,
    "uri": _TEXT,
    "mime_type": _TEXT,
    "size": ("a number of bytes", _is_size),
    "prompt": _TEXT,
    "argument": _TEXT,
    "audience": ("'user', 'assistant' or both, in a tuple", _or_none(_has_only(str))),
    "priority": ("a number from 0.0 to 1.0", _or_none(_is_part)),
    "last_modified": _TEXT,
}
