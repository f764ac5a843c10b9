"""Advice about definitions: what a model has to guess because nobody wrote it down. Never blocks anything."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, get_origin

from msgspec import Struct

from mcpcore.providers.annotations import peel, split_annotated
from mcpcore.providers.declarations import ToolDeclaration, ToolHints
from mcpcore.providers.handler import Handler
from mcpcore.providers.handlers import CompletionHandler, PromptHandler, TemplateHandler, ToolHandler
from mcpcore.providers.signature import Kind

__all__ = ["Finding", "lint"]


class Finding(Struct, frozen=True):
    """One piece of advice.

    Args:
        kind: Of the handler.
        name: Of the handler.
        rule: For machines.
        message: What to change.
    """

    kind: Kind
    name: str
    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}: {self.message} [{self.rule}]"


def lint(handlers: Iterable[Handler]) -> list[Finding]:
    """Return what could be said better, handler by handler."""
    known = list(handlers)
    arguments: dict[tuple[str, str], Sequence[str]] = {}
    for handler in known:
        if isinstance(handler, PromptHandler):
            arguments["prompt", handler.key] = [field.alias or field.name for field in handler.fields]
        elif isinstance(handler, TemplateHandler):
            arguments["uri", handler.key] = handler.template.variables
    return [
        Finding(handler.kind, handler.name, rule, message)
        for handler in known
        for rule, check in _RULES.items()
        for message in check(handler)
    ] + [
        Finding("completion", handler.name, "nothing-to-complete", message)
        for handler in known
        if isinstance(handler, CompletionHandler)
        for message in _nothing_to_complete(handler, arguments)
    ]


def _nothing_to_complete(
    handler: CompletionHandler, arguments: Mapping[tuple[str, str], Sequence[str]]
) -> Iterator[str]:
    what, name, argument = handler.key
    known = arguments.get((what, name))
    if known is None:
        yield f"there is no {'prompt' if what == 'prompt' else 'resource template'} {name!r}"
    elif argument is not None and argument not in known:
        yield f"{name!r} has no {argument!r}, but {', '.join(known) or 'nothing'}"


def _no_description(handler: Handler) -> Iterator[str]:
    if not handler.documented and not isinstance(handler, CompletionHandler):
        yield "it has no description: write a docstring that says what it returns"


def _description_is_name(handler: Handler) -> Iterator[str]:
    if handler.documented and _letters(handler.documented) == _letters(handler.name):
        yield "its description repeats its name: say what it returns and when to use it"


def _parameter_without_description(handler: Handler) -> Iterator[str]:
    if not isinstance(handler, CompletionHandler):
        for field in handler.signature.fields:
            if not field.description:
                yield f"parameter {field.name!r} has no description: Annotated[…, Param('…')] or an Args: section"


def _listed_values(handler: Handler) -> Iterator[str]:
    for field in handler.signature.fields:
        if peel(field.type)[0] is str and field.description and _VALUES.search(field.description):
            yield f"the description of {field.name!r} lists its values: annotate Literal[…] or an Enum"


def _empty_list(handler: Handler) -> Iterator[str]:
    returns = split_annotated(handler.signature.returns)[0]
    returns_list = (get_origin(returns) or returns) in (list, tuple, set, frozenset, AbstractSet)
    if isinstance(handler, ToolHandler) and returns_list and "empty" not in (handler.documented or "").lower():
        yield "it returns a list: say what an empty one means"


def _no_hints(handler: Handler) -> Iterator[str]:
    declaration = handler.declaration
    if isinstance(declaration, ToolDeclaration) and declaration.hints is None and declaration.all_hints == ToolHints():
        yield "it has no hints and counts as destructive: set read_only=True or destructive=False if it is not"


_RULES: Final[dict[str, Callable[[Handler], Iterator[str]]]] = {
    "no-description": _no_description,
    "description-is-name": _description_is_name,
    "parameter-without-description": _parameter_without_description,
    "listed-values": _listed_values,
    "empty-list": _empty_list,
    "no-hints": _no_hints,
}

_VALUES: Final = re.compile(
    r"\b(?:one of|either|must be|values?|options?|can be|allowed)\b.*\w+['\"`]?(?:\s*[,/|]\s*|\s+or\s+)['\"`]?\w+",
    re.IGNORECASE,
)


def _letters(text: Any) -> str:
    return re.sub(r"[^a-z0-9]", "", str(text).lower())
