"""The fields of classes: Struct, dataclass, attrs, TypedDict, NamedTuple, read into one shape."""

import dataclasses
import inspect
import sys
import typing
from collections.abc import Callable
from typing import Any, TypeVar, get_args, get_origin

import msgspec
from msgspec import UNSET, Struct

from mcpcore.exceptions import DefinitionError

__all__ = ["ClassField", "ClassShape", "class_shape", "field_types"]


class ClassField(Struct, frozen=True):
    """One field.

    Args:
        name: For the constructor.
        attribute: On the instance.
        alias: In JSON.
        default: `UNSET` for none, or for one that a factory makes.
        omitted: Says of a value that it is not written; None where all are.
        init: The constructor takes it.
    """

    name: str
    attribute: str
    alias: str
    required: bool
    default: Any = UNSET
    omitted: Callable[[Any], bool] | None = None
    init: bool = True


class ClassShape(Struct, frozen=True):
    """A class with named fields.

    Args:
        construct: Takes the fields by name.
        native: msgspec decodes the class like `construct`, apart from what its fields do.
        plain: msgspec encodes instances as an object of these fields.
        closed: The class itself refuses unknown members.
        hashable: Instances are; None where only the class can tell.
        tag: Member and value that tell a tagged Struct from others.
    """

    fields: tuple[ClassField, ...]
    construct: Callable[..., Any]
    native: bool
    plain: bool = True
    closed: bool = False
    hashable: bool | None = None
    tag: tuple[str, str | int] | None = None


def class_shape(cls: type) -> ClassShape | None:
    """Return the shape of ``cls``; None if it has no fields.

    Raises:
        DefinitionError: It is no object in JSON.
    """
    for recognise in (_struct, _dataclass, _attrs, _typed_dict, _named_tuple):
        if (shape := recognise(cls)) is not None:
            return shape
    return None


def _struct(cls: type) -> ClassShape | None:
    if not issubclass(cls, Struct):
        return None
    config = cls.__struct_config__
    if config.array_like:
        raise DefinitionError(f"{cls.__name__} is written as an array (array_like=True); give it named members")
    fields = tuple(
        ClassField(
            name=each.name,
            attribute=each.name,
            alias=each.encode_name,
            required=each.required,
            default=UNSET if each.default is msgspec.NODEFAULT else each.default,
            omitted=_omitted(each) if config.omit_defaults else None,
        )
        for each in _struct_fields(cls)
    )
    return ClassShape(
        fields,
        construct=cls,
        native=not hasattr(cls, "__post_init__"),
        closed=config.forbid_unknown_fields,
        hashable=config.frozen or not config.eq,
        tag=None if config.tag is None else (config.tag_field or "type", config.tag),
    )


def _struct_fields(cls: type[Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    try:
        return msgspec.structs.fields(cls)
    except Exception as exc:  # a string is a program, and can fail in any way
        field_types(cls)  # says it better, but for a class inside a function that mentions itself
        raise _unknown(cls, exc) from exc


def _omitted(field: msgspec.structs.FieldInfo) -> Callable[[Any], bool] | None:
    """Return which values ``omit_defaults`` leaves out."""
    default, factory = field.default, field.default_factory
    if factory in (list, dict, set):
        return lambda value: type(value) is factory and not value
    if default is msgspec.NODEFAULT:
        return None
    return lambda value: value is default or (type(value) is type(default) and value == default)


def _dataclass(cls: type) -> ClassShape | None:
    if not dataclasses.is_dataclass(cls):
        return None
    fields = tuple(
        ClassField(
            name=each.name,
            attribute=each.name,
            alias=each.name,
            required=each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING,
            default=UNSET if each.default is dataclasses.MISSING else each.default,
            init=each.init,
        )
        for each in dataclasses.fields(cls)
    )
    own_init: bool = vars(cls)["__dataclass_params__"].init
    native = own_init and not _has_init_variables(cls) and not hasattr(cls, "__post_init__")
    return ClassShape(fields, cls, native=native and all(each.init for each in fields), plain=_is_plain(fields))


def _is_plain(fields: tuple[ClassField, ...]) -> bool:
    # msgspec leaves out attributes with an underscore, and those that only the class has.
    return all(each.init and not each.attribute.startswith("_") for each in fields)


def _has_init_variables(cls: type) -> bool:
    annotations = (inspect.get_annotations(each) for each in cls.__mro__)
    return any("InitVar" in str(text) for each in annotations for text in each.values())


def _attrs(cls: type) -> ClassShape | None:
    declared: tuple[Any, ...] | None = getattr(cls, "__attrs_attrs__", None)
    if declared is None:
        return None
    nothing = sys.modules["attr"].NOTHING
    fields = tuple(
        ClassField(
            name=each.alias,
            attribute=each.name,
            alias=each.name,
            required=each.default is nothing,
            # A factory (attr.Factory) is no value.
            default=UNSET if each.default is nothing or hasattr(each.default, "takes_self") else each.default,
            init=each.init,
        )
        for each in declared
    )
    # msgspec calls neither converters nor validators.
    return ClassShape(fields, cls, native=False, plain=_is_plain(fields))


def _typed_dict(cls: type) -> ClassShape | None:
    if not typing.is_typeddict(cls):
        return None
    fields: list[ClassField] = []
    for name, hint in _hints(cls, cls).items():
        # Under `from __future__ import annotations` the class cannot tell which of its keys are NotRequired.
        _, wrappers = _unwrap(hint)
        required = name in cls.__required_keys__  # type: ignore[attr-defined]  # it is a TypedDict
        fields.append(
            ClassField(name, name, name, (required or "Required" in wrappers) and "NotRequired" not in wrappers)
        )
    return ClassShape(tuple(fields), dict, native=True)


def _unwrap(hint: Any) -> tuple[Any, set[str]]:
    wrappers: set[str] = set()
    while (wrapper := getattr(get_origin(hint), "_name", None)) in ("NotRequired", "Required", "ReadOnly"):
        wrappers.add(str(wrapper))
        (hint,) = get_args(hint)
    return hint, wrappers


def _named_tuple(cls: type) -> ClassShape | None:
    names: tuple[str, ...] | None = getattr(cls, "_fields", None)
    if names is None or tuple not in cls.__mro__:
        return None
    defaults: dict[str, Any] = getattr(cls, "_field_defaults", {})
    fields = tuple(ClassField(name, name, name, name not in defaults, defaults.get(name, UNSET)) for name in names)
    return ClassShape(fields, cls, native=False, plain=False)  # msgspec means an array


# -- annotations of classes --------------------------------------------------------------------------------------


def field_types(tp: Any) -> dict[str, Any]:
    """Return the types of the fields of a class, or of a generic class with its arguments, by attribute.

    Type variables are replaced; `Annotated` is kept.

    Raises:
        DefinitionError: An annotation cannot be resolved.
    """
    return {name: _unwrap(hint)[0] for name, hint in _hints(tp, get_origin(tp) or tp).items()}


def _hints(tp: Any, cls: type) -> dict[str, Any]:
    """Return the resolved annotations of ``cls`` and its bases, type variables replaced by the arguments of ``tp``."""
    try:
        # Its own name, because a class made inside a function may mention itself.
        hints = typing.get_type_hints(cls, localns={cls.__name__: cls}, include_extras=True)
    except NameError as exc:
        raise _unknown(cls, exc) from exc
    except Exception as exc:  # a string is a program, and can fail in any way
        raise DefinitionError(f"{cls.__qualname__}: an annotation is no type ({exc})") from exc
    owners = {name: base for base in reversed(cls.__mro__) for name in inspect.get_annotations(base)}
    arguments = _arguments(tp)
    return {name: _substitute(hint, arguments.get(owners.get(name, cls), {})) for name, hint in hints.items()}


def _unknown(cls: type, exc: Exception) -> DefinitionError:
    return DefinitionError(
        f"{cls.__qualname__}: an annotation mentions a name that is not known ({exc}). Import it at run time, not only "
        "under TYPE_CHECKING, and define it at module level"
    )


def _arguments(tp: Any) -> dict[Any, dict[Any, Any]]:
    """Return, for the class and each generic base, what its type variables stand for."""
    cls = get_origin(tp) or tp
    own = dict(zip(getattr(cls, "__parameters__", ()), get_args(tp), strict=False))
    found = {cls: own}
    for base in getattr(cls, "__orig_bases__", ()):
        if get_origin(base) not in (typing.Generic, typing.Protocol):
            found = _arguments(_substitute(base, own)) | found
    return found


def _substitute(hint: Any, arguments: dict[Any, Any]) -> Any:
    """Return ``hint`` with type variables replaced; those without argument by their bound."""
    if isinstance(hint, TypeVar):
        return arguments.get(hint, hint)
    parameters = getattr(hint, "__parameters__", ())
    if not parameters or isinstance(hint, type):
        return hint
    return hint[tuple(arguments.get(each, each) for each in parameters)]
