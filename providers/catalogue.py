"""The handlers that there are: found by what a client asks for, listed as clients see them."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar, get_args
from urllib.parse import quote

import msgspec

from mcpcore.providers.handler import Handler
from mcpcore.providers.handlers import CompletionHandler, PromptHandler, ResourceHandler, TemplateHandler, ToolHandler
from mcpcore.providers.signature import Kind
from mcpcore.types.completion import PromptReference, ResourceTemplateReference
from mcpcore.versions import VERSIONS

__all__ = ["Catalogue"]

_LISTS: Final[dict[Kind, str]] = {
    # kind: the member of a list result
    "tool": "tools",
    "resource": "resources",
    "template": "resourceTemplates",
    "prompt": "prompts",
}

H = TypeVar("H", bound=Handler)
_ASCII: Final = "".join(map(chr, range(0x21, 0x7F)))


class Catalogue:
    """Handlers by kind and name, in the order of registration.

    Attributes:
        generation: Changes whenever a list may have changed.

    Methods may be called from any thread.
    """

    def __init__(self) -> None:
        self.generation = 0
        self._tables: dict[Kind, dict[Any, Any]] = {kind: {} for kind in get_args(Kind)}
        self._lists: dict[tuple[Kind, str], list[Any]] = {}
        self._spellings: dict[str, str] | None = None
        self._visibility: bool | None = None
        self._subscribers: list[Callable[[Kind], None]] = []

    def list(self, kind: Kind, version: str, principal: Any = None) -> Sequence[Any]:
        """Return what is published about the handlers of one kind, in order. Not to be changed by the caller.

        Args:
            kind: "tool", "resource", "template" or "prompt".
            version: The revision that is spoken; output schemas depend on it.
            principal: Who asks, for handlers that are not shown to everyone.
        """
        if kind not in _LISTS:
            raise ValueError(f"there is no list of {kind!r}; there are {', '.join(_LISTS)}")
        lists = self._lists
        if (kind, version) in lists:
            return lists[kind, version]
        if version not in VERSIONS:
            raise ValueError(f"there is no revision {version!r}; there are {', '.join(VERSIONS)}")
        handlers = tuple(self._tables[kind].values())
        found = [
            handler.describe(version)
            for handler in handlers
            if handler.is_visible(principal) and handler.is_offered(version)
        ]
        if all(handler.declaration.visible is None for handler in handlers):
            lists[kind, version] = found
        return found

    def find_tool(self, name: str, principal: Any = None) -> ToolHandler | None:
        """Return the tool of that name; None where there is none that ``principal`` may know of."""
        return _shown(self._tables["tool"].get(name), principal)

    def secrets(self, tool: str) -> frozenset[str]:
        """Return which arguments of the tool of that name are kept out of records, whoever may know of the tool."""
        handler: ToolHandler | None = self._tables["tool"].get(tool)
        return frozenset() if handler is None else handler.secrets

    def find_prompt(self, name: str, principal: Any = None) -> PromptHandler | None:
        """Return the prompt of that name; None where there is none that ``principal`` may know of."""
        return _shown(self._tables["prompt"].get(name), principal)

    def match_resource(self, uri: str, principal: Any = None) -> ResourceHandler | None:
        """Return the resource at ``uri``: a fixed one, else the first template that matches; None where there is none.

        URIs are compared as they are, except that spaces and letters outside ASCII may be percent-encoded on one side.
        """
        fixed = self._tables["resource"]
        handler = fixed.get(uri) or fixed.get(self._respelled(uri))
        if handler is not None:
            return _shown(handler, principal)
        for template in tuple(self._tables["template"].values()):
            if template.template.match(uri) is not None and template.is_visible(principal):
                found: TemplateHandler = template
                return found
        return None

    def is_hidden(self, uri: str, principal: Any) -> bool:
        """Tell whether changes at ``uri`` are kept from ``principal``, because to be told of them is to be told of it.

        Where something is hidden from somebody, what is unknown counts as hidden: the two must not differ.
        """
        return self.has_visibility and self.match_resource(uri, principal) is None

    def find_completion(
        self, ref: PromptReference | ResourceTemplateReference, argument: str, principal: Any = None
    ) -> CompletionHandler | None:
        """Return the function that completes ``argument`` of ``ref``, else the one for all its arguments, else None."""
        if isinstance(ref, PromptReference):
            key, target = ("prompt", ref.name), self._tables["prompt"].get(ref.name)
        else:
            key, target = ("uri", ref.uri), self._tables["template"].get(ref.uri)
        if target is not None and not target.is_visible(principal):
            return None
        table = self._tables["completion"]
        found: CompletionHandler | None = table.get((*key, argument)) or table.get((*key, None))
        return found

    def has(self, kind: Kind) -> bool:
        """Tell whether there is any handler of that kind."""
        return bool(self._tables[kind])

    @property
    def has_visibility(self) -> bool:
        """Some handler is not shown to everyone, so lists depend on who asks."""
        if self._visibility is None:
            self._visibility = any(handler.declaration.visible is not None for handler in self.handlers())
        return self._visibility

    def handlers(self) -> tuple[Handler, ...]:
        """Return all handlers, kind by kind."""
        return tuple(handler for table in self._tables.values() for handler in tuple(table.values()))

    def snapshot(self, version: str = VERSIONS[-1]) -> dict[str, Any]:
        """Return everything that is published, as JSON-shaped builtins, to keep beside the code and to compare."""
        return {name: msgspec.to_builtins(self.list(kind, version)) for kind, name in _LISTS.items()}

    def cost(self, version: str = VERSIONS[-1]) -> dict[str, int]:
        """Return bytes per tool: each of them is sent to the model with every request."""
        return {tool.name: len(msgspec.json.encode(tool)) for tool in self.list("tool", version)}

    def subscribe(self, callback: Callable[[Kind], None]) -> Callable[[], None]:
        """Call ``callback`` with the kind, in the thread that made the change, whenever a list has changed.

        Returns:
            A function that ends it.
        """
        self._subscribers = [*self._subscribers, callback]

        def unsubscribe() -> None:
            self._subscribers = [each for each in self._subscribers if each is not callback]

        return unsubscribe

    def _changed(self, kinds: "set[Kind]") -> None:
        if not kinds:
            return
        self._lists, self._spellings, self._visibility = {}, None, None
        self.generation += 1
        for kind in sorted(kinds):
            for callback in self._subscribers:
                callback(kind)

    def _respelled(self, uri: str) -> str | None:
        """Return the registered URI that differs from ``uri`` only in what is percent-encoded."""
        spellings = self._spellings
        if spellings is None:
            spellings = self._spellings = {_spelled(each): each for each in tuple(self._tables["resource"])}
        return spellings.get(_spelled(uri))


def _shown(handler: H | None, principal: Any) -> H | None:
    return handler if handler is not None and handler.is_visible(principal) else None


def _spelled(uri: str) -> str:
    return quote(uri, safe=_ASCII)
