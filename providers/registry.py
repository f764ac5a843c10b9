"""Registering handlers: what fits is taken, what does not is told. It needs no server and no event loop."""

import logging
import re
from collections import Counter
from collections.abc import Callable, Sequence
from threading import RLock
from types import ModuleType
from typing import Any, Final, Literal, Unpack, overload

from msgspec.structs import replace

from mcpcore.exceptions import DefinitionError, DuplicateName, SkippedHandlers
from mcpcore.providers.annotations import enclosing_names
from mcpcore.providers.catalogue import Catalogue
from mcpcore.providers.declarations import (
    CompleteOptions,
    Declaration,
    F,
    PromptDeclaration,
    PromptOptions,
    ResourceOptions,
    ToolDeclaration,
    ToolOptions,
    declarations_of,
    read_decorator,
)
from mcpcore.providers.fields import Rename
from mcpcore.providers.handler import Handler, Settings
from mcpcore.providers.handlers import ToolHandler, make_handler
from mcpcore.providers.lint import Finding, lint
from mcpcore.providers.namespaces import below
from mcpcore.providers.options import FLAG, Row, check_option, instance, one_of, or_none
from mcpcore.providers.scanning import marked
from mcpcore.providers.selection import Provider, ServerState, ServerType, Skipped
from mcpcore.providers.signature import Kind

__all__ = ["Registry"]

_logger = logging.getLogger("mcpcore.registry")

_LABELS: Final[dict[Kind, str]] = {
    # kind: what several of them are called
    "tool": "tools",
    "resource": "resources",
    "template": "resource templates",
    "prompt": "prompts",
    "completion": "completions",
}

_UNSAID: Final = (ToolDeclaration(), PromptDeclaration())
_NAMESPACE: Final[Row] = (
    "a text of A-Z a-z 0-9 _ - . and not of dots alone",
    lambda value: isinstance(value, str) and re.fullmatch(r"(?!\.+$)[A-Za-z0-9_.-]+", value) is not None,
)


class Registry(Catalogue):
    """Takes functions as handlers, as far as they fit the kind of server that it is for.

    Args:
        type: "sync" takes only ``def``, "async" only ``async def``, "auto" both.
        state: "stateless" takes no handler that needs a way back to the client, unless its parameter admits None.
        scan: False makes `include` ignore what is marked; what is registered directly stays.
        on_skip: What happens to handlers that are not taken: "warn", "ignore", or "error" for `SkippedHandlers`.
        output_schema: For tools that do not say: True publishes output schemas and sends structured content.
        rename: "camel" publishes parameter ``order_id`` as ``orderId``.
        omit_none: For tools that do not say: leave out members of records that are None and not required.
        mask_unexpected: Tell the model nothing about exceptions other than `ToolError`, `ValueError` and `LookupError`.
        format_error: Makes the text of a tool error from the tool's name and the exception.
        on_error: Called with handler and exception whenever a handler fails.
        strict_names: False warns about tool names that clients may refuse, instead of refusing them.

    Raises:
        DefinitionError: An option is none of these.

    Attributes:
        skipped: What was not taken, and why.
        serving: A server uses the registry, see `serve`.

    Methods may be called from any thread.
    """

    def __init__(
        self,
        type: ServerType = "auto",
        state: ServerState = "stateful",
        *,
        scan: bool = True,
        on_skip: Literal["warn", "error", "ignore"] = "warn",
        output_schema: bool | Literal["any", "wrap"] = False,
        rename: Rename = None,
        omit_none: bool = False,
        mask_unexpected: bool = False,
        format_error: Callable[[str, BaseException], str] | None = None,
        on_error: Callable[[Handler, BaseException], None] | None = None,
        strict_names: bool = True,
    ) -> None:
        super().__init__()
        check_option("scan", scan, FLAG)
        check_option("on_skip", on_skip, one_of("warn", "error", "ignore"))
        self.provider = Provider(type, state)
        self.settings = Settings(
            type=type,
            output_schema=output_schema,
            rename=rename,
            omit_none=omit_none,
            mask_unexpected=mask_unexpected,
            format_error=format_error,
            on_error=on_error,
            strict_names=strict_names,
        )
        self.scan = scan
        self.on_skip = on_skip
        self.skipped: list[Skipped] = []
        self.serving = False
        self._singly: Counter[tuple[Kind, bool]] = Counter()  # by kind and whether it was taken, until it is served
        self._lock = RLock()

    # -- registering -------------------------------------------------------------------------------------------------

    @overload
    def tool(self, function: F, /, *, name: str | None = None, **options: Unpack[ToolOptions]) -> F: ...
    @overload
    def tool(self, name: str | None = None, **options: Unpack[ToolOptions]) -> Callable[[F], F]: ...
    def tool(self, *args: Any, **options: Any) -> Any:
        """Register a function as a tool, in the five forms of `mcpcore.tool`, and return it as it was.

        Where nothing else is said, what `mcpcore.tool` declared on the function holds.

        Raises:
            DefinitionError: It cannot be a tool as it is written.
            DuplicateName: There is a tool of that name.
            SkippedHandlers: It is not taken, and ``on_skip`` is "error".
        """
        return read_decorator("tool", args, options, self._register)

    @overload
    def resource(self, function: F, /, *, uri: str, **options: Unpack[ResourceOptions]) -> F: ...
    @overload
    def resource(self, uri: str, **options: Unpack[ResourceOptions]) -> Callable[[F], F]: ...
    def resource(self, *args: Any, **options: Any) -> Any:
        """Register a function as a resource or a resource template, in the forms of `mcpcore.resource`. Raises as `tool`."""
        return read_decorator("resource", args, options, self._register)

    @overload
    def prompt(self, function: F, /, *, name: str | None = None, **options: Unpack[PromptOptions]) -> F: ...
    @overload
    def prompt(self, name: str | None = None, **options: Unpack[PromptOptions]) -> Callable[[F], F]: ...
    def prompt(self, *args: Any, **options: Any) -> Any:
        """Register a function as a prompt, in the five forms of `mcpcore.prompt`. Declarations and errors as for `tool`."""
        return read_decorator("prompt", args, options, self._register)

    @overload
    def complete(self, function: F, /, **options: Unpack[CompleteOptions]) -> F: ...
    @overload
    def complete(self, **options: Unpack[CompleteOptions]) -> Callable[[F], F]: ...
    def complete(self, *args: Any, **options: Any) -> Any:
        """Register a function that completes arguments, in the forms of `mcpcore.complete`. Raises as `tool`."""
        return read_decorator("complete", args, options, self._register)

    def add_tool(self, function: Any, name: str | None = None, **options: Unpack[ToolOptions]) -> ToolHandler | None:
        """Register a function as a tool and return its handler; None when it is not taken. Raises as `tool`.

        Where nothing else is said, what `mcpcore.tool` declared on the function holds.
        """
        handler = self._made(function, ToolDeclaration(name=name, **options))
        accepted = self._accept([handler])
        return handler if accepted and isinstance(handler, ToolHandler) else None

    def include(self, target: Any, *, rename: Rename = None) -> None:
        """Register everything that is marked on an object, a class, a module, or a marked function itself.

        All of it is registered or, where something raises, nothing.

        Args:
            target: An object's methods are registered bound; they are found on its class and all bases.
            rename: In place of the registry's.

        Raises:
            DefinitionError: Something cannot be a handler as it is written.
            DuplicateName: A name is taken.
            SkippedHandlers: Something is not taken, and ``on_skip`` is "error".
        """
        if isinstance(target, Registry):
            raise DefinitionError("include takes objects and modules; use mount for another registry")
        settings = self.settings if rename is None else replace(self.settings, rename=rename)
        if not self.scan:
            return
        handlers = [
            make_handler(function, declared.declaration, settings, declared.names)
            for function, declared in marked(target)
        ]
        if not handlers:
            what = f"module {target.__name__}" if isinstance(target, ModuleType) else repr(target)
            _logger.warning(
                "Nothing to register in %s: mark functions with @tool, @resource, @prompt or @complete", what
            )
        self._accept_and_tell(handlers)

    def mount(self, other: "Registry", *, namespace: str | None = None, home: Any = None) -> None:
        """Take over the handlers that ``other`` has now, so that a call costs no more than to an own handler.

        They are selected as own ones are, and keep what else ``other`` was told. All of them are taken over or, where
        something raises, none.

        Args:
            other: What is added to it later is not followed.
            namespace: Tools and prompts become ``<namespace>_<name>``, resources ``scheme://<namespace>/…``.
            home: The server of ``other``; see `Handler.homes`.

        Raises:
            DefinitionError: The namespace cannot be part of a name, or ``other`` is no registry.
            DuplicateName: A name is taken.
            SkippedHandlers: Something is not taken, and ``on_skip`` is "error".
        """
        check_option("other", other, instance(Registry))
        check_option("namespace", namespace, or_none(_NAMESPACE))
        own = {"type": self.settings.type, "strict_names": self.settings.strict_names}
        outer = () if home is None else (home,)
        self._accept_and_tell(
            [
                make_handler(
                    handler.function,
                    replace(below(handler, namespace) if namespace else handler.declaration, meta=handler.meta),
                    replace(handler.settings, **own, homes=(*outer, *handler.homes)),
                    handler.names,
                )
                for handler in other.handlers()
            ]
        )

    def serve(self) -> None:
        """A server begins to use the registry.

        What was registered one by one is counted in the log now, as `include` and `mount` do at once. From now on a name
        that is registered again replaces the handler, with a warning, where it would raise `DuplicateName` before.
        """
        if not self.serving:
            self.serving = True
            for kind in _LABELS:
                self._summarise(kind, self._singly[kind, True], self._singly[kind, False])

    def remove(self, kind: Kind, name: str) -> None:
        """Take a handler away. Calls that run already are not disturbed.

        Args:
            name: Its published name; of a resource, its URI or template.

        Raises:
            KeyError: There is none of that name.
            ValueError: There is no such kind.
        """
        if kind not in _LABELS:
            raise ValueError(f"there is no kind {kind!r}; there are {', '.join(_LABELS)}")
        with self._lock:
            table = self._tables[kind]
            key = name if name in table else next((key for key, each in table.items() if each.name == name), None)
            if key is None:
                raise KeyError(f"no {kind} {name!r}; there are: {', '.join(each.name for each in table.values())}")
            del table[key]
        self._changed({kind})

    # -- reporting ---------------------------------------------------------------------------------------------------

    def lint(self) -> Sequence[Finding]:
        """Return what could be said better about the handlers."""
        return lint(self.handlers())

    def report(self) -> str:
        """Return what is registered and what is not, for people."""
        lines = [f"{label}: {len(table)}" for kind, label in _LABELS.items() if (table := self._tables[kind])]
        return "\n".join([*lines, *(skipped.message for skipped in self.skipped)])

    # -- inside ------------------------------------------------------------------------------------------------------

    def _register(self, function: Any, declaration: Declaration) -> None:
        handler = self._made(function, declaration)
        self._singly[handler.kind, bool(self._accept([handler]))] += 1

    def _made(self, function: Any, declaration: Declaration) -> Handler:
        """Return the handler for a function, by what a decorator declared on it where nothing is said now."""
        if declaration in _UNSAID:
            for declared in declarations_of(function):
                if type(declared.declaration) is type(declaration):
                    return make_handler(function, declared.declaration, self.settings, declared.names)
        return make_handler(function, declaration, self.settings, enclosing_names(function))

    def _accept_and_tell(self, handlers: Sequence[Handler]) -> None:
        """Take the handlers that fit, and log how many of each kind there are now for it."""
        found = Counter(handler.kind for handler in handlers)
        accepted = Counter(handler.kind for handler in self._accept(handlers))
        for kind in _LABELS:
            self._summarise(kind, accepted[kind], found[kind] - accepted[kind])

    def _accept(self, handlers: Sequence[Handler]) -> Sequence[Handler]:
        """Take the handlers that fit, all or (where something raises) none, and return them."""
        skipped: list[Skipped] = []
        accepted: list[Handler] = []
        for handler in handlers:
            why = self.provider.judge(handler.candidate)
            if why is None:
                accepted.append(handler)
            else:
                skipped.append(why)
        if skipped and self.on_skip == "error":
            raise SkippedHandlers(skipped)
        with self._lock:
            placed: dict[tuple[Kind, Any], Handler] = {}
            for handler in accepted:
                place: tuple[Kind, Any] = (handler.kind, handler.key)
                there = self._tables[handler.kind].get(handler.key)
                if place in placed:
                    placed[place] = self._twin(placed[place], handler)
                elif there is None:
                    placed[place] = handler
                else:
                    placed[place] = self._replacement(there, handler) if self.serving else self._twin(there, handler)
            for (kind, key), handler in placed.items():
                self._tables[kind][key] = handler
            self.skipped.extend(skipped)
        if self.on_skip == "warn":
            for each in skipped:
                _logger.warning(each.message, extra=self._extra(each))
        for handler in accepted:
            for level, text in handler.notices:
                _logger.log(level, text)
        self._changed({handler.kind for handler in accepted})
        return accepted

    def _replacement(self, there: Handler, new: Handler) -> Handler:
        """Return the new one of two handlers of the same name, of which the other is served."""
        what = f"{new.kind} {new.name!r}"
        _logger.warning("Replaced %s (%s) by %s", what, there.signature.where, new.signature.where)
        return new

    def _twin(self, there: Handler, new: Handler) -> Handler:
        """Return the one of two handlers of the same name that stays: the async one."""
        what = f"{new.kind} {new.name!r}"
        if there.is_async == new.is_async:
            raise DuplicateName(f"{what} is defined twice: {there.signature.where} and {new.signature.where}")
        kept, dropped = (there, new) if there.is_async else (new, there)
        text = "%s is defined twice: the async %s is kept, %s is not used"
        _logger.info(text, what.capitalize(), kept.signature.where, dropped.signature.where)
        return kept

    def _summarise(self, kind: Kind, accepted: int, skipped: int) -> None:
        label = _LABELS[kind]
        if accepted:
            _logger.info("Registered %s: %d%s", label, accepted, f" ({skipped} skipped)" if skipped else "")
        elif skipped and self.on_skip == "warn":
            _logger.warning("No %s registered: all %d were skipped", label, skipped)

    def _extra(self, skipped: Skipped) -> dict[str, Any]:
        # "name" is taken in a log record: it is the logger's.
        return {
            "reasons": skipped.reasons,
            "kind": skipped.kind,
            "handler_name": skipped.name,
            "type": self.provider.type,
            "state": self.provider.state,
        }
