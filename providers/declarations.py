"""What an author writes above a function: `tool`, `resource`, `prompt`, `complete`, and the hints they take.

A decorator attaches a declaration and returns the function as it was, so that it stays callable and testable. Nothing
is registered and nothing is global: `Registry.include` finds the declarations.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypedDict, TypeVar, Unpack, overload

from msgspec import Struct

from mcpcore.exceptions import DefinitionError
from mcpcore.providers.annotations import enclosing_names
from mcpcore.providers.options import check_options, instance
from mcpcore.types.content import Role
from mcpcore.types.lifecycle import Icon

__all__ = [
    "CompleteOptions",
    "CompletionDeclaration",
    "Declaration",
    "Declared",
    "PromptDeclaration",
    "PromptOptions",
    "ResourceDeclaration",
    "ResourceHints",
    "ResourceOptions",
    "ToolDeclaration",
    "ToolHints",
    "ToolOptions",
    "complete",
    "declarations_of",
    "prompt",
    "read_decorator",
    "resource",
    "tool",
]

F = TypeVar("F", bound=Callable[..., Any])

_MARK: Final = "__mcpcore_declared__"
_UNBOUND: Any = (staticmethod, classmethod)


# -- hints -------------------------------------------------------------------------------------------------------


class ToolHints(Struct, frozen=True, kw_only=True):
    """How a tool behaves, for clients that ask before they call. The defaults are the protocol's, all pessimistic.

    Args:
        read_only: It changes nothing.
        destructive: It may remove or overwrite, not only add. Means something only where ``read_only`` is False.
        idempotent: Calling it again with the same arguments changes nothing more. Same condition.
        open_world: It reaches out to things that the server does not own.
        title: A name for people.
    """

    read_only: bool = False
    destructive: bool = True
    idempotent: bool = False
    open_world: bool = True
    title: str | None = None

    def __post_init__(self) -> None:
        check_options(self)


class ResourceHints(Struct, frozen=True, kw_only=True):
    """For whom a resource is, and how much it matters. Nothing is published where none are given.

    Args:
        audience: Who should see it.
        priority: 0.0 (may be left out) to 1.0 (effectively required).
        last_modified: ISO 8601, with time zone where it has a time.
    """

    audience: tuple[Role, ...] | None = ("user",)
    priority: float | None = 0.5
    last_modified: str | None = None

    def __post_init__(self) -> None:
        check_options(self)
        if unknown := [who for who in self.audience or () if who not in ("user", "assistant")]:
            raise DefinitionError(f"ResourceHints(audience=…): {unknown[0]!r} is neither 'user' nor 'assistant'")
        if self.last_modified is not None and not _is_timestamp(self.last_modified):
            raise DefinitionError(
                f"ResourceHints(last_modified={self.last_modified!r}): give ISO 8601, for example 2026-01-31T12:00:00Z"
            )


def _is_timestamp(text: str) -> bool:
    from datetime import datetime

    try:
        return datetime.fromisoformat(text).tzinfo is not None or len(text) == len("2026-01-31")
    except ValueError:
        return False


# -- declarations ------------------------------------------------------------------------------------------------

Meta = Mapping[str, Any] | Callable[[], Mapping[str, Any] | None] | None
Visible = Callable[[Any], bool]


class Declaration(Struct, frozen=True, kw_only=True):
    """What a decorator was told, for every kind of handler.

    Args:
        name: Published name; the function's where None.
        title: A name for people; never made up.
        description: Wins over the docstring, which wins over the name.
        icons: For user interfaces.
        tags: For the author's own selection; not published.
        meta: Published as ``_meta``; a callable is called once, at registration.
        scopes: What the caller's token must grant.
        visible: Called with the caller's principal (None where there is none); False hides the handler from lists and
            from calls.
        timeout: Seconds after which a call is cancelled and fails.
        thread: False runs a ``def`` on the event loop, for functions that do not block.
    """

    name: str | None = None
    title: str | None = None
    description: str | None = None
    icons: Sequence[Icon] = ()
    tags: Sequence[str] = ()
    meta: Meta = None
    scopes: Sequence[str] = ()
    visible: Visible | None = None
    timeout: float | None = None
    thread: bool | None = None

    def __post_init__(self) -> None:
        check_options(self)


class ToolDeclaration(Declaration, frozen=True, kw_only=True):
    """What `tool` was told.

    Args:
        read_only, destructive, idempotent, open_world: As in `ToolHints`.
        hints: All of them in one object, in place of the four.
        input_schema: Published and enforced as given, in place of the generated one.
        output_schema: True publishes the return type's schema and sends structured content; "wrap" also to revisions
            that only know objects; "any" also scalars, where the revision allows; a type or a schema in place of the
            return type's. None takes the registry's setting.
        extra: What happens to arguments of unknown names.
        omit_none: Leave out members of records that are None and not required. None takes the registry's setting.
        raises: Exceptions that fail the request instead of being told to the model.
        return_direct: A tool loop hands the result to its caller and does not ask the model again.
    """

    read_only: bool = False
    destructive: bool = True
    idempotent: bool = False
    open_world: bool = True
    hints: ToolHints | None = None
    input_schema: dict[str, Any] | None = None
    output_schema: bool | Literal["any", "wrap"] | type | dict[str, Any] | None = None
    extra: Literal["forbid", "ignore"] = "forbid"
    omit_none: bool | None = None
    raises: tuple[type[BaseException], ...] = ()
    return_direct: bool = False

    def __post_init__(self) -> None:
        check_options(self, hints=instance(ToolHints))
        shorthands = ToolHints(
            read_only=self.read_only,
            destructive=self.destructive,
            idempotent=self.idempotent,
            open_world=self.open_world,
        )
        if self.hints is not None and shorthands != ToolHints():
            raise DefinitionError("@tool: give hints=ToolHints(…) or read_only=…, destructive=…, …, not both")

    @property
    def all_hints(self) -> ToolHints:
        """The four hints, however they were given."""
        return self.hints or ToolHints(
            read_only=self.read_only,
            destructive=self.destructive,
            idempotent=self.idempotent,
            open_world=self.open_world,
        )


class ResourceDeclaration(Declaration, frozen=True, kw_only=True):
    """What `resource` was told.

    Args:
        uri: A URI, or a template with ``{variables}`` named like the function's parameters.
        mime_type: Where None, ``text/plain``, or by the return annotation: ``application/octet-stream`` for bytes,
            ``application/json`` for records and other data.
        hints: Published as ``annotations``.
        size: Bytes, if known beforehand.
    """

    uri: str = ""
    mime_type: str | None = None
    hints: ResourceHints | None = None
    size: int | None = None

    def __post_init__(self) -> None:
        check_options(self, hints=instance(ResourceHints))
        if not self.uri.strip():
            raise DefinitionError('@resource needs a URI: @resource("config://app"), @resource("config://{key}")')


class PromptDeclaration(Declaration, frozen=True, kw_only=True):
    """What `prompt` was told."""


class CompletionDeclaration(Declaration, frozen=True, kw_only=True):
    """What `complete` was told.

    Args:
        prompt: Name of the prompt whose arguments are completed.
        uri: Template of the resource whose variables are completed; exactly one of the two.
        argument: The one argument that is completed; every argument without an own function where None.
    """

    prompt: str | None = None
    uri: str | None = None
    argument: str | None = None

    def __post_init__(self) -> None:
        check_options(self)
        if bool(self.prompt) == bool(self.uri):
            raise DefinitionError('@complete needs one of prompt="name" and uri="template"')


class _Options(TypedDict, total=False):
    title: str | None
    description: str | None
    icons: Sequence[Icon]
    tags: Sequence[str]
    meta: Meta
    scopes: Sequence[str]
    visible: Visible | None
    timeout: float | None
    thread: bool | None


class ToolOptions(_Options, total=False):
    """Keywords of `tool` besides the name; `ToolDeclaration` says what they mean."""

    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool
    hints: ToolHints | None
    input_schema: dict[str, Any] | None
    output_schema: bool | Literal["any", "wrap"] | type | dict[str, Any] | None
    extra: Literal["forbid", "ignore"]
    omit_none: bool | None
    raises: tuple[type[BaseException], ...]
    return_direct: bool


class ResourceOptions(_Options, total=False):
    """Keywords of `resource` besides the URI; `ResourceDeclaration` says what they mean."""

    name: str | None
    mime_type: str | None
    hints: ResourceHints | None
    size: int | None


class PromptOptions(_Options, total=False):
    """Keywords of `prompt` besides the name; `Declaration` says what they mean."""


class CompleteOptions(TypedDict, total=False):
    """Keywords of `complete`; `CompletionDeclaration` says what they mean."""

    prompt: str | None
    uri: str | None
    argument: str | None
    timeout: float | None
    thread: bool | None


# -- decorators --------------------------------------------------------------------------------------------------


class Declared(Struct, frozen=True):
    """A declaration as it hangs on a function.

    Args:
        declaration: What the decorator was told.
        names: What the function's string annotations mention of the scopes around it.
    """

    declaration: Declaration
    names: Mapping[str, Any]


@overload
def tool(function: F, /, *, name: str | None = None, **options: Unpack[ToolOptions]) -> F: ...
@overload
def tool(name: str | None = None, **options: Unpack[ToolOptions]) -> Callable[[F], F]: ...
def tool(*args: Any, **options: Any) -> Any:
    """Mark a function as a tool: ``@tool``, ``@tool()``, ``@tool("name")``, ``@tool(name=…)`` or ``tool(fn, …)``.

    The keywords are those of `ToolDeclaration`.

    Raises:
        DefinitionError: What is decorated cannot be marked, or the keywords contradict each other.
    """
    return read_decorator("tool", args, options, _mark)


@overload
def resource(function: F, /, *, uri: str, **options: Unpack[ResourceOptions]) -> F: ...
@overload
def resource(uri: str, **options: Unpack[ResourceOptions]) -> Callable[[F], F]: ...
def resource(*args: Any, **options: Any) -> Any:
    """Mark a function as a resource, or as a template where the URI has ``{variables}``: ``@resource("config://app")``.

    The keywords are those of `ResourceDeclaration`.

    Raises:
        DefinitionError: As for `tool`, and where there is no URI.
    """
    return read_decorator("resource", args, options, _mark)


@overload
def prompt(function: F, /, *, name: str | None = None, **options: Unpack[PromptOptions]) -> F: ...
@overload
def prompt(name: str | None = None, **options: Unpack[PromptOptions]) -> Callable[[F], F]: ...
def prompt(*args: Any, **options: Any) -> Any:
    """Mark a function as a prompt, in the same five forms as `tool`.

    The keywords are those of `Declaration`.

    Raises:
        DefinitionError: As for `tool`.
    """
    return read_decorator("prompt", args, options, _mark)


@overload
def complete(function: F, /, **options: Unpack[CompleteOptions]) -> F: ...
@overload
def complete(**options: Unpack[CompleteOptions]) -> Callable[[F], F]: ...
def complete(*args: Any, **options: Any) -> Any:
    """Mark a function that completes arguments: ``@complete(prompt="city-search", argument="city")``.

    The keywords are those of `CompletionDeclaration`.

    Raises:
        DefinitionError: As for `tool`, and unless exactly one of ``prompt`` and ``uri`` is given.
    """
    return read_decorator("complete", args, options, _mark)


_FORMS: Final[dict[str, tuple[type[Declaration], str | None]]] = {
    # decorator: (declaration, the member that a positional string means)
    "tool": (ToolDeclaration, "name"),
    "resource": (ResourceDeclaration, "uri"),
    "prompt": (PromptDeclaration, "name"),
    "complete": (CompletionDeclaration, None),
}


def read_decorator(
    decorator: str, args: tuple[Any, ...], options: dict[str, Any], use: Callable[[Any, Declaration], None]
) -> Any:
    """Read any of the call forms of ``decorator`` and hand function and declaration to ``use``, now or when applied."""
    declaration_type, positional = _FORMS[decorator]
    function: Any = None
    if args:
        first, *surplus = args
        if surplus:
            raise DefinitionError(f"@{decorator} takes one positional argument, not {len(args)}; the rest is named")
        if isinstance(first, str) and positional is not None:
            if positional in options:
                raise DefinitionError(
                    f"@{decorator}: {positional} is given twice, {first!r} and {options[positional]!r}"
                )
            options = {positional: first, **options}
        elif callable(first) or isinstance(first, _UNBOUND):
            function = first
        elif first is not None:
            raise DefinitionError(f"@{decorator} cannot be applied to {first!r}; it takes a function")
    try:
        declaration = declaration_type(**options)
    except TypeError as exc:
        known = ", ".join(sorted(declaration_type.__struct_fields__))
        raise DefinitionError(f"@{decorator}: {exc}. It takes {known}") from None
    except DefinitionError as exc:
        prefix = "" if str(exc).startswith("@") else f"@{decorator}: "
        raise DefinitionError(f"{prefix}{exc}") from None

    def apply(fn: Any) -> Any:
        use(fn, declaration)
        return fn

    return apply if function is None else apply(function)


def _mark(fn: Any, declaration: Declaration) -> None:
    # On the function itself, not on the static or class method around it: attribute access unwraps those.
    target = fn.__func__ if isinstance(fn, _UNBOUND) else fn
    if isinstance(target, type) or not callable(target):
        raise DefinitionError(f"{target!r} cannot be marked as a handler: mark a function, a method or an instance")
    declared = Declared(declaration, enclosing_names(target))
    try:
        # A new tuple: functools.wraps copies the reference, and the wrapped function's must not change.
        setattr(target, _MARK, (*declarations_of(target), declared))
    except AttributeError:
        raise DefinitionError(
            f"{target!r} cannot be marked because it takes no attributes; register it directly: registry.tool(…)"
        ) from None


def declarations_of(fn: Any) -> tuple[Declared, ...]:
    """Return what was declared on ``fn``, in the order of application."""
    target = fn.__func__ if isinstance(fn, _UNBOUND) else fn
    try:
        found: tuple[Declared, ...] = getattr(target, _MARK, ())
    except Exception:  # noqa: BLE001  # an object that answers for another, which is not there now
        return ()
    return found if type(found) is tuple else ()  # an object that answers every attribute has none
