"""What stands on a parameter or comes out of a generator: markers, questions, and the types that are injected.

Parameters are recognised by type. The runtime's context classes carry an `Injection` as a class attribute, so that
nothing of the runtime has to be known here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Annotated, Any, Final, Literal

from msgspec import Struct

from mcpcore.exceptions import DefinitionError
from mcpcore.providers.annotations import all_metadata
from mcpcore.providers.options import check_options
from mcpcore.types.completion import CompletionArgument, CompletionContext, PromptReference, ResourceTemplateReference
from mcpcore.types.meta import LogLevel
from mcpcore.types.sampling import ModelPreferences, SamplingMessage, ToolChoice
from mcpcore.types.tools import Tool

__all__ = [
    "Arg",
    "CallToolRequest",
    "CompleteRequest",
    "Demand",
    "Depends",
    "Elicit",
    "GetPromptRequest",
    "Injected",
    "Injection",
    "Log",
    "Param",
    "Progress",
    "ProgressToken",
    "ReadResourceRequest",
    "RequestMeta",
    "Roots",
    "Sample",
    "ToolContext",
    "is_secret",
]


# -- parameters --------------------------------------------------------------------------------------------------


class Param(Struct, frozen=True):
    """What is published about one parameter: ``Annotated[str, Param("The order ID")]``.

    Args:
        description: Published as the description; wins over every other source.
        alias: The name on the wire.
        required: None takes it from the signature: no default value means required. False on a parameter without a
            default passes None when the argument is absent.
        header: Publishes ``x-mcp-header``: HTTP clients mirror the argument in ``Mcp-Param-<header>``.
        secret: The value is kept out of audit records and error messages. Counts on fields of records, too, where what is
            masked is every member of that name, and on parts of a type: ``list[Annotated[str, Param(secret=True)]]``.
        examples: Published as ``examples``.
    """

    description: str | None = None
    alias: str | None = None
    required: bool | None = None
    header: str | None = None
    secret: bool = False
    examples: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        try:
            check_options(self)
        except DefinitionError as exc:
            raise DefinitionError(f"Param: {exc}") from None


Arg = Param
"""`Param`, by the name that reads well on prompts."""


def is_secret(annotation: Any) -> bool:
    """Tell whether `Param` marks a type, or a part of it, as secret."""
    return any(isinstance(mark, Param) and mark.secret for mark in all_metadata(annotation))


class Demand(IntEnum):
    """What a parameter needs from the server; the most demanding parameter decides about the handler."""

    NONE = 0
    """Arguments only."""
    RAW = 1
    """The request itself, or data that came with it."""
    TRANSPORT = 2
    """Headers, peer, principal."""
    FULL = 3
    """A way back to the client."""
    SESSION = 4
    """A session of the legacy era."""


class Injection(Struct, frozen=True):
    """A kind of value that is passed by type, never by the caller.

    A class whose instances are injected carries one as the class attribute ``__mcpcore_injection__``.

    Args:
        kind: ``context``, ``sync_context``, ``session``, ``transport_context``, ``tool_context``, ``request``, ``meta``,
            ``progress_token``; in completions ``argument`` and ``chosen``; or a kind of one's own.
        demand: What it needs from the server.
        subclass: The class that the parameter is annotated with, where that inherits the attribute.
    """

    kind: str
    demand: Demand = Demand.RAW
    subclass: type | None = None


class Injected(Struct, frozen=True):
    """Marks a parameter of an ordinary type: ``Annotated[str | int | None, Injected("progress_token")]``."""

    kind: str


class Depends(Struct, frozen=True):
    """A parameter made by a function: ``Annotated[Store, Depends(open_store)]``.

    The function is a ``def``, an ``async def``, a generator of either colour that yields once, or returns a context
    manager of either colour; what follows the yield, and leaving the context, happen after the handler. Its own
    parameters are injected, made by further functions, asked for by `Elicit`, or named like an argument of the handler.

    Args:
        function: Makes the value.
        cache: Call it once per request, however many parameters ask for it.
        thread: False runs a ``def`` on the event loop, for functions that do not block.
    """

    function: Callable[..., Any]
    cache: bool = True
    thread: bool = True


# -- questions ---------------------------------------------------------------------------------------------------


class Elicit(Struct, frozen=True):
    """A question to the user, for ``ctx.ask`` or as ``Annotated[bool, Elicit("Delete it?")]``.

    As a parameter it is answered before the body runs. Declining gives None where the parameter's type or default is None,
    otherwise the call fails.

    Args:
        message: What the user reads.
        type: A record of flat fields, or (on a parameter, where it is taken from the annotation) a scalar.
        url: Asks the user to visit this address instead of filling in a form.
        id: Names the visit, so that the client can be told when it is over (2025-11-25); made up where None.
    """

    message: str
    type: Any = None
    url: str | None = None
    id: str | None = None


class Sample(Struct, frozen=True):
    """A question to the client's model, for ``ctx.ask``.

    Args:
        messages: One text of the user, or the conversation.
        max_tokens: Most tokens that the answer may have.
    """

    messages: str | Sequence[str | SamplingMessage]
    max_tokens: int = 500
    system_prompt: str | None = None
    model_preferences: ModelPreferences | None = None
    include_context: Literal["none", "thisServer", "allServers"] | None = None
    temperature: float | None = None
    stop_sequences: Sequence[str] = ()
    metadata: Mapping[str, Any] | None = None
    tools: Sequence[Tool] = ()
    tool_choice: ToolChoice | None = None


class Roots(Struct, frozen=True):
    """A question for the client's folders, for ``ctx.ask``."""


# -- yielded by generators ---------------------------------------------------------------------------------------


class Progress(Struct, frozen=True):
    """Yielded by a generator: a progress notification, if the caller asked for them. Its fields: see `Context.progress`."""

    progress: float
    total: float | None = None
    message: str | None = None
    meta: Mapping[str, Any] | None = None


class Log(Struct, frozen=True):
    """Yielded by a generator: a log notification, if the client wants that level. Its fields: see `Context.log`."""

    data: Any
    level: LogLevel = "info"
    logger: str | None = None
    meta: Mapping[str, Any] | None = None


# -- injected by type --------------------------------------------------------------------------------------------


class _ReadOnlyMapping(Mapping[str, Any]):
    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, Any] | None = None) -> None:
        self._items = dict(items or {})

    def __getitem__(self, key: str) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._items!r})"


class RequestMeta(_ReadOnlyMapping):
    """The request's ``_meta``, empty when absent. Untrusted: the caller writes what it likes."""

    __slots__ = ()
    __mcpcore_injection__: Final = Injection("meta")


class ToolContext(_ReadOnlyMapping):
    """Data of the application that the model never sees, given where a tool is run."""

    __slots__ = ()
    __mcpcore_injection__: Final = Injection("tool_context")


class CallToolRequest(Struct, frozen=True):
    """A ``tools/call`` as it came. A tool that takes it publishes an open schema and reads the arguments itself.

    Args:
        arguments: Unconverted; empty when absent.
        meta: The request's ``_meta``, untrusted.
    """

    __mcpcore_injection__ = Injection("request")

    name: str
    arguments: dict[str, Any]
    meta: RequestMeta


class ReadResourceRequest(Struct, frozen=True):
    """A ``resources/read`` as it came.

    Args:
        arguments: The variables of the template, decoded and unconverted.
        meta: The request's ``_meta``, untrusted.
    """

    __mcpcore_injection__ = Injection("request")

    uri: str
    arguments: dict[str, str]
    meta: RequestMeta


class GetPromptRequest(Struct, frozen=True):
    """A ``prompts/get`` as it came.

    Args:
        arguments: Unconverted; empty when absent.
        meta: The request's ``_meta``, untrusted.
    """

    __mcpcore_injection__ = Injection("request")

    name: str
    arguments: dict[str, str]
    meta: RequestMeta


class CompleteRequest(Struct, frozen=True):
    """A ``completion/complete`` as it came.

    Args:
        context: Arguments chosen before; empty when absent.
        meta: The request's ``_meta``, untrusted.
    """

    __mcpcore_injection__ = Injection("request")

    ref: PromptReference | ResourceTemplateReference
    argument: CompletionArgument
    context: CompletionContext
    meta: RequestMeta


ProgressToken = Annotated[str | int | None, Injected("progress_token")]
"""Annotates a parameter that receives the request's progress token, None when it has none. ``0`` is a token."""
