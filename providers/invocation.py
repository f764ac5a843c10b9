"""From a request to a result: bind, call, shape, and what happens when that fails.

The steps are closures made at registration, one set per handler, so that a call looks nothing up and branches on nothing
that is known beforehand. No event loop is known here: a ``def`` runs where it is called, an ``async def`` is awaited by
whoever drives it.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from functools import lru_cache, partial
from types import CoroutineType
from typing import Any

from msgspec import Struct

from mcpcore.providers.dependencies import Plan, Scope
from mcpcore.providers.markers import Log, Progress
from mcpcore.providers.signature import Colour, Signature
from mcpcore.providers.source import FAILURES, RunSync, Source, in_thread

__all__ = ["Invoke", "InvokeAsync", "Steps", "make_invoke", "make_invoke_async"]

Invoke = Callable[[Any, Source | None, str], Any]
InvokeAsync = Callable[[Any, Source | None, str, RunSync], Awaitable[Any]]
Body = Callable[[dict[str, Any], Any, Source | None, str], Any]
Notify = Callable[[Progress | Log], None]


class Steps(Struct, frozen=True):
    """What differs between the kinds of handler.

    Args:
        bind: Arguments by Python name, injected ones included, from params and source.
        shape: The result for a returned value.
        collect: The result for what a generator yielded, notifications left out.
        fail: The result for an exception; raises what is an answer of its own, or no failure at all.
        admit: What becomes of something to await that came from a ``def``: returned, or closed and refused.
        most: A generator that has yielded more items than that is asked for no more; None for no end.
    """

    bind: Callable[[Any, Source | None], dict[str, Any]]
    shape: Callable[[Any, Any, str], Any]
    collect: Callable[[list[Any], Any, str], Any]
    fail: Callable[[BaseException, Any, str], Any]
    admit: Callable[[Any], Awaitable[Any]]
    most: int | None = None


def make_invoke(signature: Signature, steps: Steps) -> Invoke:
    """Return ``invoke(params, source, version)`` for a handler that needs nothing resolved first.

    For a ``def`` it gives the result, or an awaitable of the result where the function returned something to await. For
    anything else it gives an awaitable of the result.
    """
    if signature.colour is Colour.IMPERATIVE:
        return _invoke_imperative(signature, steps)
    return _invoke_native(signature, steps) if signature.form == "async def" else _invoke_awaitable(signature, steps)


def _invoke_native(signature: Signature, steps: Steps) -> Invoke:
    call, bind, shape, fail = _caller(signature), steps.bind, steps.shape, steps.fail

    async def invoke(params: Any, source: Source | None, version: str) -> Any:
        try:
            return shape(await call(**bind(params, source)), params, version)
        except FAILURES as exc:
            return fail(exc, params, version)

    return invoke


def _invoke_awaitable(signature: Signature, steps: Steps) -> Invoke:
    body, bind, fail = _body(signature, steps, threaded=False), steps.bind, steps.fail

    async def invoke(params: Any, source: Source | None, version: str) -> Any:
        try:
            return await body(bind(params, source), params, source, version)
        except FAILURES as exc:
            return fail(exc, params, version)

    return invoke


def _invoke_imperative(signature: Signature, steps: Steps) -> Invoke:
    body, bind, fail = _body(signature, steps, threaded=False), steps.bind, steps.fail

    async def finish(late: Awaitable[Any], params: Any, version: str) -> Any:
        try:
            return await late
        except FAILURES as exc:
            return fail(exc, params, version)

    def invoke(params: Any, source: Source | None, version: str) -> Any:
        try:
            result = body(bind(params, source), params, source, version)
        except FAILURES as exc:
            return fail(exc, params, version)
        return finish(result, params, version) if result.__class__ is CoroutineType else result

    return invoke


def make_invoke_async(signature: Signature, steps: Steps, plan: Plan | None, *, thread: bool) -> InvokeAsync:
    """Return ``invoke_async(params, source, version, run_sync)``, which resolves what ``plan`` says before the body.

    Arguments are bound on the event loop; with ``thread`` a ``def`` runs by ``run_sync``, from its first line to the
    shaped result. What dependencies clean up, they clean up before the result is returned; they see the exception if
    there is one.
    """
    imperative = signature.colour is Colour.IMPERATIVE
    body = _body(signature, steps, threaded=thread)
    bind, fail = steps.bind, steps.fail

    async def run(values: dict[str, Any], params: Any, source: Source | None, version: str, run_sync: RunSync) -> Any:
        if not imperative:
            return await body(values, params, source, version)
        work = partial(body, values, params, source, version)
        result = await in_thread(run_sync, work) if thread else work()
        return await result if result.__class__ is CoroutineType else result

    async def invoke(params: Any, source: Source | None, version: str, run_sync: RunSync) -> Any:
        try:
            values = bind(params, source)
            if plan is None:
                return await run(values, params, source, version, run_sync)
            async with AsyncExitStack() as stack:
                await plan.resolve(Scope(values, params, source, run_sync, stack))
                return await run(values, params, source, version, run_sync)
            return steps.shape(None, params, version)  # a dependency swallowed the handler's exception
        except FAILURES as exc:
            return fail(exc, params, version)

    return invoke


def _caller(signature: Signature) -> Callable[..., Any]:
    """Return what is called with all arguments by name."""
    function, positional = signature.function, signature.positional
    if not positional:
        return function

    def call(**values: Any) -> Any:
        return function(*[values.pop(name) for name in positional], **values)

    return call


def _body(signature: Signature, steps: Steps, *, threaded: bool) -> Body:
    """Return what calls the function with bound arguments and shapes what it gives. Failures are left to the caller."""
    if signature.colour is Colour.IMPERATIVE:
        return _generator(signature, steps, threaded) if signature.streams else _imperative(signature, steps)
    return _stream(signature, steps) if signature.streams else _awaitable(signature, steps)


def _imperative(signature: Signature, steps: Steps) -> Body:
    call, shape, admit = _caller(signature), steps.shape, steps.admit

    def body(values: dict[str, Any], params: Any, source: Source | None, version: str) -> Any:
        value = call(**values)
        if _gives(value.__class__, "__await__"):
            return _late(admit(value), shape, params, version)
        return shape(value, params, version)

    return body


async def _late(value: Awaitable[Any], shape: Callable[[Any, Any, str], Any], params: Any, version: str) -> Any:
    return shape(await value, params, version)


def _generator(signature: Signature, steps: Steps, threaded: bool) -> Body:
    call, shape, collect = _caller(signature), steps.shape, steps.collect

    def body(values: dict[str, Any], params: Any, source: Source | None, version: str) -> Any:
        value = call(**values)
        if not _gives(value.__class__, "__next__"):  # a wrapper that drained it already
            return shape(value, params, version)
        return collect(_drain(value, _notify(source, threaded), source, steps.most), params, version)

    return body


def _awaitable(signature: Signature, steps: Steps) -> Body:
    call, shape = _caller(signature), steps.shape

    async def body(values: dict[str, Any], params: Any, source: Source | None, version: str) -> Any:
        value = call(**values)
        if _gives(value.__class__, "__await__"):  # unless a wrapper drove it to its end
            value = await value
        return shape(value, params, version)

    return body


def _stream(signature: Signature, steps: Steps) -> Body:
    call, shape, collect = _caller(signature), steps.shape, steps.collect

    async def body(values: dict[str, Any], params: Any, source: Source | None, version: str) -> Any:
        value = call(**values)
        if _gives(value.__class__, "__await__"):
            value = await value
        if not _gives(value.__class__, "__aiter__"):
            return shape(value, params, version)
        return collect(await _drain_async(value, _notify(source, False), source, steps.most), params, version)

    return body


@lru_cache(maxsize=512)
def _gives(kind: type[Any], method: str) -> bool:
    """Tell whether instances of ``kind`` have ``method``. Remembered, because finding nothing takes long."""
    return hasattr(kind, method)


def _notify(source: Source | None, threaded: bool) -> Notify:
    if source is None:
        return _to_nobody
    return source.notify_from_thread if threaded else source.notify


def _to_nobody(item: Progress | Log) -> None:
    """There is no request around the call."""


def _drain(items: Iterator[Any], notify: Notify, source: Source | None, most: int | None) -> list[Any]:
    kept: list[Any] = []
    try:
        for item in items:
            if isinstance(item, Progress | Log):
                notify(item)
            else:
                kept.append(item)
            # Nobody can stop a thread, but between two items it can be told that nobody waits for it any more.
            if (source is not None and not source.is_open) or (most is not None and len(kept) > most):
                break
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()
    return kept


async def _drain_async(items: AsyncIterator[Any], notify: Notify, source: Source | None, most: int | None) -> list[Any]:
    kept: list[Any] = []
    try:
        async for item in items:
            if isinstance(item, Progress | Log):
                notify(item)
            else:
                kept.append(item)
            if most is not None and len(kept) > most:
                break
    finally:
        # A cancellation is thrown into a generator where it waits and has closed it: then there is nothing to do. Other
        # iterators learn of it here, and what they wait for to close must not be cancelled as well.
        aclose = getattr(items, "aclose", None)
        if aclose is not None:
            await (aclose() if source is None else source.shielded(aclose))
    return kept
