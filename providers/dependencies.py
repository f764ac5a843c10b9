"""`Depends` and `Elicit` parameters: wired once into a plan, resolved for every request.

Wiring walks the tree of functions at registration and puts them into an order in which everything that a step needs was
made before it. Resolving asks all questions of the whole tree in one round and then goes through the steps.
"""

from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from functools import partial
from typing import Any, Final, get_origin

from msgspec import Struct, defstruct, structs

from mcpcore.exceptions import CapabilityError, DefinitionError, McpError, ToolError
from mcpcore.providers.forms import form_schema
from mcpcore.providers.markers import Depends, Elicit
from mcpcore.providers.schema import value_codec
from mcpcore.providers.signature import Colour, InjectedParameter, Kind, Signature, inspect_callable
from mcpcore.providers.source import RunSync, Source, in_thread
from mcpcore.types.jsonrpc import INTERNAL_ERROR

__all__ = ["Plan", "Provide", "Scope", "wire"]

Provide = Callable[[Any, Source | None], Any]
"""Gives the value of one injected parameter, from the params of a request and its source."""


class Scope(Struct):
    """What one resolution works with.

    Args:
        values: Arguments of the handler, by Python name.
        params: Params of the request.
        stack: What dependencies have to clean up.
    """

    values: dict[str, Any]
    params: Any
    source: Source | None
    run_sync: RunSync
    stack: AsyncExitStack
    answers: dict[str, Any] = {}
    made: list[Any] = []


Use = Callable[[Scope], Any]
"""Where one argument comes from."""


class Question(Struct, frozen=True):
    """An `Elicit` parameter.

    Args:
        elicit: What is asked, for a record.
        property: The member of the record that is the value; None where the record itself is.
        optional: Declining gives None.
        kind: Of the handler; a tool's failure is told to the model.
    """

    elicit: Elicit
    property: str | None
    optional: bool
    kind: Kind

    def read(self, reply: Any) -> Any:
        """Return the parameter's value.

        Raises:
            ToolError, McpError: The user did not answer, and the type admits no None.
        """
        if reply.action == "accept":
            if self.elicit.url is not None:
                return True
            return reply.value if self.property is None else getattr(reply.value, self.property)
        if self.optional:
            return None
        did = "declined to answer" if reply.action == "decline" else "dismissed the question"
        text = f"The user {did}: {self.elicit.message}"
        raise ToolError(text) if self.kind == "tool" else McpError(INTERNAL_ERROR, text)


class Step(Struct, frozen=True):
    """One function of the tree.

    Args:
        signature: Of the function.
        uses: Where its arguments come from, by name.
        managed: What it gives is entered, and left after the handler.
        thread: It is called in a worker thread.
    """

    signature: Signature
    uses: tuple[tuple[str, Use], ...]
    managed: bool
    thread: bool

    async def make(self, scope: Scope) -> Any:
        """Return the value for this request."""
        arguments = {name: use(scope) for name, use in self.uses}
        positional = [arguments.pop(name) for name in self.signature.positional if name in arguments]
        value: Any = await self._run(scope, partial(self.signature.function, *positional, **arguments))
        if hasattr(value.__class__, "__await__"):
            value = await value
        if not self.managed:
            return value
        manager = _manager(value)
        if isinstance(manager, AbstractAsyncContextManager):
            return await scope.stack.enter_async_context(manager)
        entered = await self._run(scope, manager.__enter__)
        scope.stack.push_async_exit(partial(self._leave, scope, manager))
        return entered

    async def _leave(self, scope: Scope, manager: AbstractContextManager[Any], *exc_info: Any) -> bool | None:
        started = False

        def leave() -> bool | None:
            nonlocal started
            started = True
            return manager.__exit__(*exc_info)

        try:
            suppressed: bool | None = await self._run(scope, leave)
        except BaseException:
            if not started:  # cancelled before a thread took it: better here than not at all
                leave()
            raise
        return suppressed

    async def _run(self, scope: Scope, work: Callable[[], Any]) -> Any:
        return await in_thread(scope.run_sync, work) if self.thread else work()


class Plan(Struct, frozen=True):
    """How the parameters of a handler that have to be resolved first are resolved.

    Args:
        questions: Everything that is asked for, in one round.
        steps: Functions, in an order in which each finds made what it needs.
        uses: Where the handler's own parameters come from, by name.
        injected: All injected parameters of the tree.
    """

    questions: Mapping[str, Question]
    steps: tuple[Step, ...]
    uses: tuple[tuple[str, Use], ...]
    injected: tuple[InjectedParameter, ...]

    async def resolve(self, scope: Scope) -> None:
        """Put the values of all parameters into ``scope.values``.

        Cancellation, and what `Source.ask` raises, pass through; what was entered so far is on ``scope.stack``.

        Raises:
            ToolError, McpError: The user did not answer a question that needs an answer.
        """
        if self.questions:
            if scope.source is None:
                raise CapabilityError("there is no client that could be asked")
            replies = await scope.source.ask({key: question.elicit for key, question in self.questions.items()})
            scope.answers = {key: question.read(replies[key]) for key, question in self.questions.items()}
        for step in self.steps:
            scope.made.append(await step.make(scope))
        for name, use in self.uses:
            scope.values[name] = use(scope)


def wire(signature: Signature, kind: Kind, provide: Callable[[InjectedParameter], Provide]) -> Plan | None:
    """Return the plan for a handler; None where nothing has to be resolved.

    Args:
        signature: Of the handler.
        kind: Of the handler.
        provide: How an injected parameter gets its value.

    Raises:
        DefinitionError: A parameter of the tree comes from nowhere, a function needs itself, a question is not flat.
    """
    if not signature.questions and not signature.dependencies:
        return None
    wiring = _Wiring(signature, kind, provide)
    uses = tuple(wiring.resolved(signature, ""))
    return Plan(wiring.questions, tuple(wiring.steps), uses, tuple(wiring.injected))


class _Wiring:
    def __init__(self, handler: Signature, kind: Kind, provide: Callable[[InjectedParameter], Provide]) -> None:
        self.handler = handler
        self.kind: Kind = kind
        self.provide = provide
        self.steps: list[Step] = []
        self.questions: dict[str, Question] = {}
        self.injected: list[InjectedParameter] = []
        self._places: dict[tuple[int, bool], int] = {}
        self._prefixes: dict[str, Any] = {}
        self._path: list[Any] = []

    def resolved(self, signature: Signature, prefix: str) -> list[tuple[str, Use]]:
        """Wire what has to be resolved for ``signature`` itself: its questions and its dependencies."""
        uses: list[tuple[str, Use]] = []
        for name, elicit in signature.questions.items():
            key = prefix + name
            self.questions[key] = self._question(signature, name, elicit)
            uses.append((name, partial(_answer, key)))
        for name, depends in signature.dependencies.items():
            uses.append((name, partial(_made, self._step(depends))))
        return uses

    def _step(self, depends: Depends) -> int:
        function = depends.function
        key = (id(function), depends.thread)
        if depends.cache and key in self._places:
            return self._places[key]
        if function in self._path:
            raise DefinitionError(f"{self.handler.where}: dependency {_name(function)} needs itself")
        self._path.append(function)
        signature = inspect_callable(function, kind=self.kind)
        uses = self.resolved(signature, self._prefix(signature.name, function))
        for parameter in signature.injected:
            self.injected.append(parameter)
            uses.append((parameter.name, partial(_injected, self.provide(parameter))))
        known = {field.name for field in self.handler.fields}
        for field in signature.fields:
            if field.name in known:
                uses.append((field.name, partial(_argument, field.name)))
            elif field.required:
                raise DefinitionError(
                    f"{signature.where}: parameter {field.name!r} is neither injected, nor made by Depends, nor an "
                    f"argument of {self.handler.qualname}"
                )
        managed = signature.streams or (get_origin(signature.returns) or signature.returns) in _MANAGERS
        thread = depends.thread and signature.colour is Colour.IMPERATIVE
        self.steps.append(Step(signature, tuple(uses), managed, thread))
        self._path.pop()
        self._places[key] = len(self.steps) - 1
        return len(self.steps) - 1

    def _prefix(self, name: str, function: Any) -> str:
        """Return what the keys of a function's questions begin with; of two functions with one name, not the same."""
        prefix, number = f"{name}.", 1
        while self._prefixes.setdefault(prefix, function) is not function:
            number += 1
            prefix = f"{name}-{number}."
        return prefix

    def _question(self, signature: Signature, name: str, elicit: Elicit) -> Question:
        where = f"{signature.where}: parameter {name!r}"
        optional = name in signature.optional
        if self.kind == "completion":
            raise DefinitionError(f"{where}: completions cannot ask the user")
        if elicit.url is not None:
            if elicit.type is not bool:
                raise DefinitionError(f"{where}: a visit to a URL is answered by yes or no; annotate bool")
            return Question(structs.replace(elicit, type=None), None, optional, self.kind)
        is_record = value_codec(elicit.type, mode="input").schema.get("type") == "object"
        record = elicit.type if is_record else defstruct("Answer", [(name, elicit.type)])
        try:
            form_schema(record)
        except DefinitionError as exc:
            raise DefinitionError(f"{where}: {exc}") from exc
        return Question(Elicit(elicit.message, record), None if is_record else name, optional, self.kind)


_GENERATOR: Any = Generator
_ASYNC_GENERATOR: Any = AsyncGenerator
_MANAGERS: Final = (AbstractContextManager, AbstractAsyncContextManager)


def _answer(key: str, scope: Scope) -> Any:
    return scope.answers[key]


def _made(place: int, scope: Scope) -> Any:
    return scope.made[place]


def _injected(provide: Provide, scope: Scope) -> Any:
    return provide(scope.params, scope.source)


def _argument(name: str, scope: Scope) -> Any:
    return scope.values[name]


def _manager(value: Any) -> AbstractContextManager[Any] | AbstractAsyncContextManager[Any]:
    """Return a context manager for what a managed function gave: one already, or a generator that yields once."""
    if isinstance(value, _GENERATOR):
        return contextmanager(partial(_same, value))()
    if isinstance(value, _ASYNC_GENERATOR):
        return asynccontextmanager(partial(_same, value))()
    managed: AbstractContextManager[Any] | AbstractAsyncContextManager[Any] = value
    return managed


def _same(value: Any) -> Any:
    return value


def _name(function: Any) -> str:
    return str(getattr(function, "__qualname__", function))
