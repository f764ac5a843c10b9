"""What a Python parameter publishes: name on the wire, default, description.

Defaults and names may hide in the ``field(…)`` of dataclasses, msgspec, attrs or pydantic; descriptions may stand in
`Param`, in the metadata of other libraries, or in the docstring.
"""

import inspect
from collections.abc import Callable
from dataclasses import MISSING
from dataclasses import Field as DataclassField
from typing import Annotated, Any, Literal

import msgspec
from msgspec import NODEFAULT, UNSET

from mcpcore.exceptions import DefinitionError
from mcpcore.providers.markers import Param, is_secret
from mcpcore.providers.metadata import is_pydantic_field, read_metadata
from mcpcore.providers.schema import Field

__all__ = ["Rename", "read_field"]

Rename = Literal["camel"] | None

_DataclassField: Any = DataclassField
_MsgspecField: Any = msgspec.field().__class__


def read_field(
    parameter: inspect.Parameter,
    annotation: Any,
    metadata: tuple[Any, ...],
    documented: str | None,
    rename: Rename,
) -> Field:
    """Return the field that ``parameter`` publishes.

    Args:
        annotation: Resolved, with its metadata.
        metadata: All of it, also what stands inside an optional.
        documented: What the docstring says about the parameter.

    Raises:
        DefinitionError: Its default is made by a function that needs arguments.
    """
    default, factory = _default(parameter.default)
    if is_pydantic_field(parameter.default):
        metadata = (*metadata, parameter.default)
        annotation = Annotated[annotation, parameter.default]
    if parameter.default is parameter.empty:
        for each in metadata:
            if is_pydantic_field(each):
                default, factory = _default(each)
    if factory is not None:
        _check_factory(factory, parameter.name)
    param = next((each for each in reversed(metadata) if isinstance(each, Param)), Param())
    has_default = default is not UNSET or factory is not None or parameter.default is UNSET
    return Field(
        name=parameter.name,
        alias=param.alias
        or _alias(parameter.default, *metadata)
        or (_camel(parameter.name) if rename == "camel" else None),
        type=annotation,
        required=not has_default if param.required is None else param.required,
        default=default,
        default_factory=factory,
        description=read_metadata(metadata).notes.get("description") or documented,
        examples=param.examples,
        header=param.header,
        secret=is_secret(annotation),
    )


def _default(default: Any) -> tuple[Any, Callable[[], Any] | None]:
    """Return the default value, or `UNSET`, and the factory that makes one."""
    if default is inspect.Parameter.empty:
        return UNSET, None
    if isinstance(default, _DataclassField):
        return _known(default.default, MISSING), _known(default.default_factory, MISSING) or None
    if isinstance(default, _MsgspecField):
        return _known(default.default, NODEFAULT), _known(default.default_factory, NODEFAULT) or None
    if type(default).__module__.partition(".")[0] == "attr":  # a field(…) of attrs, or its Factory alone
        default = getattr(default, "_default", default)
        nothing = type(default).__name__ == "_Nothing"
        factory: Callable[[], Any] | None = getattr(default, "factory", None)
        return UNSET if nothing or factory is not None else default, factory
    if is_pydantic_field(default):
        undefined = default.default is ... or type(default.default).__name__ == "PydanticUndefinedType"
        return UNSET if undefined else default.default, default.default_factory
    return default, None


def _alias(*markers: Any) -> str | None:
    """Return the name on the wire that a ``field(…)`` of another library gives; the first that gives one."""
    for each in markers:
        if isinstance(each, _MsgspecField):
            alias: Any = each.name
        elif is_pydantic_field(each):
            alias = each.validation_alias or each.alias
        elif type(each).__module__.partition(".")[0] == "attr":
            alias = getattr(each, "alias", None)
        else:
            continue
        if isinstance(alias, str):
            return alias
    return None


def _check_factory(factory: Callable[[], Any], name: str) -> None:
    try:
        inspect.signature(factory).bind()
    except ValueError:  # of a builtin, which does not tell
        return
    except TypeError as exc:
        raise DefinitionError(
            f"parameter {name!r}: the function that makes its default is called without anything, so give one that "
            f"takes no arguments ({exc})"
        ) from None


def _known(value: Any, missing: Any) -> Any:
    return UNSET if value is missing else value


def _camel(name: str) -> str:
    first, *rest = [word for word in name.split("_") if word] or [""]
    return name[: len(name) - len(name.lstrip("_"))] + first + "".join(word[:1].upper() + word[1:] for word in rest)
