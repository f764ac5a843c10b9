"""`Depends` and `Elicit`: wiring, order, caching, cleanup, questions."""

import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from typing import Annotated, Any, ClassVar, Literal

import anyio
import anyio.to_thread
import pytest
from msgspec import Raw, Struct

from mcpcore.exceptions import DefinitionError, McpError
from mcpcore.providers.markers import CallToolRequest, Demand, Depends, Elicit, Injection, Log, Progress, RequestMeta
from mcpcore.providers.registry import Registry
from mcpcore.types import CallToolParams, CallToolResult, GetPromptParams

pytestmark = pytest.mark.anyio

VERSION = "2025-11-25"


class Context:
    __mcpcore_injection__: ClassVar = Injection("context", Demand.FULL)


class SyncContext:
    __mcpcore_injection__: ClassVar = Injection("sync_context", Demand.FULL)


class Reply(Struct):
    action: Literal["accept", "decline", "cancel"]
    value: Any = None


class Source:
    """A request's surroundings with prepared answers."""

    def __init__(self, answer: Callable[[str, Elicit], Reply] | None = None) -> None:
        self.answer = answer
        self.rounds: list[Mapping[str, Any]] = []

    def provide(self, injection: Injection, /) -> Any:
        return f"the {injection.kind}"

    async def ask(self, questions: Mapping[str, Any], /) -> Mapping[str, Any]:
        assert self.answer is not None
        self.rounds.append(questions)
        return {key: self.answer(key, question) for key, question in questions.items()}

    def notify(self, item: Progress | Log, /) -> None:
        raise AssertionError("nothing is yielded here")

    notify_from_thread = notify
    is_open = True

    async def shielded(self, close: Callable[[], Any], /) -> None:
        raise AssertionError("there is no generator here")


async def call(registry: Registry, source: Any = None, arguments: bytes = b"{}") -> CallToolResult:
    (tool,) = registry.handlers()
    with anyio.fail_after(5):
        result = await tool.invoke_async(
            CallToolParams(tool.name, Raw(arguments)), source, VERSION, anyio.to_thread.run_sync
        )
    assert isinstance(result, CallToolResult)
    return result


def text(result: CallToolResult) -> str:
    (block,) = result.content
    return block.text  # type: ignore[union-attr]  # these tools give text


async def test_functions_of_every_shape_make_values_and_clean_up_in_reverse_order() -> None:
    log: list[str] = []

    def plain() -> str:
        return "plain"

    async def coroutine() -> str:
        return "coroutine"

    def generator() -> Iterator[str]:
        yield "generator"
        log.append("generator closed")

    async def agenerator() -> AsyncIterator[str]:
        yield "agenerator"
        log.append("agenerator closed")

    @contextmanager
    def managed() -> Iterator[str]:
        yield "managed"
        log.append("managed closed")

    @asynccontextmanager
    async def amanaged() -> AsyncIterator[str]:
        yield "amanaged"
        log.append("amanaged closed")

    def annotated() -> AbstractContextManager[str]:
        return nullcontext("annotated")

    registry = Registry()

    @registry.tool
    async def show(
        a: Annotated[str, Depends(plain)],
        b: Annotated[str, Depends(coroutine)],
        c: Annotated[str, Depends(generator)],
        d: Annotated[str, Depends(agenerator)],
        e: Annotated[str, Depends(managed)],
        f: Annotated[str, Depends(amanaged)],
        g: Annotated[str, Depends(annotated)],
    ) -> str:
        log.append("body")
        return f"{a} {b} {c} {d} {e} {f} {g}"

    assert text(await call(registry)) == "plain coroutine generator agenerator managed amanaged annotated"
    assert log == ["body", "amanaged closed", "managed closed", "agenerator closed", "generator closed"]


async def test_an_object_that_could_be_entered_is_left_alone() -> None:
    lock = threading.Lock()

    def share() -> Any:
        return lock

    registry = Registry()

    @registry.tool
    def use(shared: Annotated[Any, Depends(share)]) -> bool:
        return shared is lock and not lock.locked()

    assert text(await call(registry)) == "true"


async def test_a_function_is_called_once_per_request_unless_told_otherwise() -> None:
    calls: list[int] = []

    def count() -> int:
        calls.append(1)
        return len(calls)

    def left(n: Annotated[int, Depends(count)]) -> int:
        return n

    registry = Registry()

    @registry.tool
    def show(
        a: Annotated[int, Depends(count)],
        b: Annotated[int, Depends(left)],
        c: Annotated[int, Depends(count, cache=False)],
    ) -> str:
        return f"{a} {b} {c}"

    assert text(await call(registry)) == "1 1 2"
    assert text(await call(registry)) == "3 3 4"


async def test_functions_get_injected_values_and_arguments_of_the_handler() -> None:
    async def owner(
        order_id: str, ctx: Context, request: CallToolRequest, meta: RequestMeta, unrelated: int = 7, /
    ) -> str:
        return f"{order_id} {ctx} {request.arguments} {dict(meta)} {unrelated}"

    registry = Registry(rename="camel")

    @registry.tool
    async def show(order_id: str, owned: Annotated[str, Depends(owner)]) -> str:
        return owned

    result = await call(registry, Source(), b'{"orderId":"o"}')
    assert text(result) == "o the context {'orderId': 'o'} {} 7"


async def test_plain_functions_run_in_a_thread_unless_told_otherwise() -> None:
    here = threading.get_ident()

    def where() -> bool:
        return threading.get_ident() == here

    def where_inline() -> bool:
        return threading.get_ident() == here

    registry = Registry()

    @registry.tool
    async def show(
        a: Annotated[bool, Depends(where)], b: Annotated[bool, Depends(where_inline, thread=False)]
    ) -> list[bool]:
        return [a, b]

    assert text(await call(registry)) == "[false,true]"


async def test_cleanup_sees_the_exception_of_the_handler_and_comes_before_the_answer() -> None:
    log: list[str] = []

    def transaction() -> Iterator[str]:
        try:
            yield "open"
        except ValueError as exc:
            log.append(f"rolled back: {exc}")
            raise

    registry = Registry()

    @registry.tool
    def fail(tx: Annotated[str, Depends(transaction)]) -> None:
        raise ValueError("no")

    result = await call(registry)
    assert result.is_error
    assert text(result) == "Error invoking method: fail\nno"
    assert log == ["rolled back: no"]


async def test_a_function_that_fails_fails_the_call_and_closes_what_was_open() -> None:
    log: list[str] = []

    def first() -> Iterator[int]:
        yield 1
        log.append("not reached")

    def watched() -> Iterator[int]:
        try:
            yield 1
        finally:
            log.append("closed")

    def second(a: Annotated[int, Depends(watched)]) -> int:
        raise LookupError("nothing there")

    registry = Registry()

    @registry.tool
    def show(b: Annotated[int, Depends(second)], a: Annotated[int, Depends(first)]) -> str:
        return ""

    assert text(await call(registry)) == "Error invoking method: show\nnothing there"
    assert log == ["closed"]


async def test_a_dependency_may_swallow_the_exception() -> None:
    def swallow() -> Iterator[None]:
        try:
            yield
        except ValueError:
            pass

    registry = Registry()

    @registry.tool
    def fail(x: Annotated[None, Depends(swallow)]) -> str:
        raise ValueError("no")

    result = await call(registry)
    assert (result.content, result.is_error) == ([], False)


async def test_cleanup_happens_even_where_a_cancellation_keeps_threads_from_starting() -> None:
    closed = threading.Event()

    def resource() -> Iterator[int]:
        try:
            yield 1
        finally:
            closed.set()

    registry = Registry()
    started = anyio.Event()

    @registry.tool
    async def wait(x: Annotated[int, Depends(resource)]) -> None:
        started.set()
        await anyio.sleep_forever()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(call, registry)
            await started.wait()
            group.cancel_scope.cancel()
    assert closed.is_set()


@pytest.mark.parametrize("error", [StopIteration("x"), SystemExit(3)])
async def test_exceptions_that_threads_cannot_pass_on_are_failures_of_the_call(error: BaseException) -> None:
    registry = Registry()

    @registry.tool
    def stop() -> None:
        raise error

    assert (await call(registry)).is_error


# -- questions -----------------------------------------------------------------------------------------------------


class Confirm(Struct):
    confirm: bool


def accept(key: str, question: Elicit) -> Reply:
    record = question.type
    values = {"sure": True, "size": "L", "pick": "red"}
    if record is Confirm:
        return Reply("accept", Confirm(True))
    (property_,) = record.__struct_fields__
    return Reply("accept", record(values[property_]))


async def test_all_questions_of_the_tree_are_asked_in_one_round_before_anything_runs() -> None:
    ran: list[str] = []

    def chosen(pick: Annotated[str, Elicit("Which colour?")]) -> str:
        ran.append("chosen")
        return pick

    registry = Registry()

    @registry.tool
    def order(
        item: str,
        sure: Annotated[bool, Elicit("Sure?")],
        form: Annotated[Confirm, Elicit("Really?")],
        size: Annotated[Literal["S", "L"], Elicit("Size?")],
        colour: Annotated[str, Depends(chosen)],
    ) -> str:
        return f"{item} {sure} {form} {size} {colour}"

    def answer(key: str, question: Elicit) -> Reply:
        assert not ran
        return accept(key, question)

    source = Source(answer)
    assert text(await call(registry, source, b'{"item":"hat"}')) == "hat True Confirm(confirm=True) L red"
    (asked,) = source.rounds
    assert {key: question.message for key, question in asked.items()} == {
        "sure": "Sure?",
        "form": "Really?",
        "size": "Size?",
        "chosen.pick": "Which colour?",
    }


async def test_functions_of_one_name_ask_their_own_questions() -> None:
    def asking(message: str) -> Any:
        def confirm(sure: Annotated[str, Elicit(message)]) -> str:
            return sure

        return confirm

    one, other = asking("Delete a?"), asking("Delete b?")
    registry = Registry()

    @registry.tool
    def delete(
        a: Annotated[str, Depends(one)],
        b: Annotated[str, Depends(other)],
        again: Annotated[str, Depends(one, cache=False)],
    ) -> str:
        return f"{a} {b} {again}"

    def answer(key: str, question: Elicit) -> Reply:
        return Reply("accept", question.type(question.message))

    source = Source(answer)
    assert text(await call(registry, source)) == "Delete a? Delete b? Delete a?"
    (asked,) = source.rounds
    assert list(asked) == ["confirm.sure", "confirm-2.sure"]


@pytest.mark.parametrize("action", ["decline", "cancel"])
@pytest.mark.parametrize(
    "annotation",
    [Annotated[bool | None, Elicit("Sure?")], Annotated[bool, Elicit("Sure?")]],
    ids=["admits", "defaults to"],
)
async def test_declining_gives_none_where_the_type_admits_it_or_the_default_is(action: Any, annotation: Any) -> None:
    registry = Registry()

    async def ask(sure: Any = None) -> str:
        return repr(sure)

    ask.__annotations__["sure"] = annotation
    registry.tool(ask)
    assert text(await call(registry, Source(lambda key, question: Reply(action)))) == "None"


@pytest.mark.parametrize(
    ("action", "says"), [("decline", "The user declined to answer: Sure?"), ("cancel", "dismissed the question: Sure?")]
)
async def test_declining_is_a_tool_error_otherwise_and_the_body_does_not_run(action: Any, says: str) -> None:
    registry = Registry()

    @registry.tool
    async def ask(sure: Annotated[bool, Elicit("Sure?")]) -> str:
        raise AssertionError

    result = await call(registry, Source(lambda key, question: Reply(action)))
    assert result.is_error
    assert text(result).endswith(says)


async def test_declining_a_question_of_a_prompt_is_an_error_that_says_so() -> None:
    registry = Registry()

    @registry.prompt
    def ask(sure: Annotated[bool, Elicit("Sure?")]) -> str:
        raise AssertionError

    (prompt,) = registry.handlers()
    source = Source(lambda key, question: Reply("decline"))
    with pytest.raises(McpError, match=r"The user declined to answer: Sure\?") as raised:
        await prompt.invoke_async(GetPromptParams("ask"), source, VERSION, anyio.to_thread.run_sync)
    assert raised.value.code == -32603


async def test_a_visit_to_a_url_is_answered_by_true() -> None:
    registry = Registry()

    @registry.tool
    async def pay(paid: Annotated[bool, Elicit("Pay here", url="https://pay.example", id="visit-1")]) -> str:
        return repr(paid)

    source = Source(lambda key, question: Reply("accept"))
    assert text(await call(registry, source)) == "True"
    assert source.rounds == [{"paid": Elicit("Pay here", url="https://pay.example", id="visit-1")}]


async def test_without_a_client_a_question_is_a_tool_error() -> None:
    registry = Registry()

    @registry.tool
    async def ask(sure: Annotated[bool, Elicit("Sure?")]) -> str:
        raise AssertionError

    assert "no client" in text(await call(registry))


async def test_a_signal_of_the_runtime_passes_through_untouched() -> None:
    class Needed(BaseException): ...

    def answer(key: str, question: Elicit) -> Reply:
        raise Needed

    registry = Registry()

    @registry.tool
    def ask(sure: Annotated[bool, Elicit("Sure?")]) -> None: ...

    with pytest.raises(Needed):
        await call(registry, Source(answer))


async def test_other_kinds_resolve_the_same_way() -> None:
    def who() -> str:
        return "you"

    registry = Registry()

    @registry.prompt
    def greet(name: Annotated[str, Depends(who)], sure: Annotated[bool, Elicit("Sure?")]) -> str:
        return f"Hello {name} {sure}"

    (prompt,) = registry.handlers()
    result = await prompt.invoke_async(GetPromptParams("greet"), Source(accept), VERSION, anyio.to_thread.run_sync)
    assert result.messages[0].content.text == "Hello you True"


async def test_invoke_resolves_in_place() -> None:
    registry = Registry()
    here = threading.get_ident()

    def where() -> bool:
        return threading.get_ident() == here

    @registry.tool
    def show(a: Annotated[bool, Depends(where)]) -> bool:
        return a and threading.get_ident() == here

    tool = registry.find_tool("show")
    assert tool is not None
    assert not tool.direct
    assert text(await tool.invoke(CallToolParams("show"), None, VERSION)) == "true"


# -- wiring --------------------------------------------------------------------------------------------------------


def needs_context(ctx: SyncContext) -> str:
    return ""


def needs_deeply(x: Annotated[str, Depends(needs_context)]) -> str:
    return ""


def test_a_dependency_counts_as_the_most_demanding_parameter_of_its_tree() -> None:
    registry = Registry(state="stateless")

    @registry.tool
    def show(x: Annotated[str, Depends(needs_deeply)]) -> str:
        return x

    (skipped,) = registry.skipped
    assert skipped.reasons == ("bidirectional-parameter",)
    assert "'ctx: SyncContext'" in skipped.message


def test_needs_tell_what_has_to_be_there() -> None:
    registry = Registry()

    @registry.tool
    def show(x: Annotated[str, Depends(needs_deeply)], sure: Annotated[bool, Elicit("?")]) -> str:
        return x

    @registry.tool
    def simple(x: int) -> int:
        return x

    show_needs, simple_needs = (handler.needs for handler in registry.handlers())
    assert show_needs.injections == (Injection("sync_context", Demand.FULL),)
    assert (show_needs.questions, show_needs.dependencies, show_needs.resolution) == (("sure",), True, True)
    assert (simple_needs.injections, simple_needs.questions, simple_needs.resolution) == ((), (), False)


class Nested(Struct):
    inner: Confirm


def itself(x: Annotated[int, Depends(lambda: 1)]) -> int:
    return x


def nowhere(elsewhere: int) -> int:
    return elsewhere


def wrong_colour(ctx: Context) -> int:
    return 1


@pytest.mark.parametrize(
    ("marker", "annotation", "says"),
    [
        (Depends(nowhere), int, "parameter 'elsewhere' is neither injected"),
        (Depends(wrong_colour), int, "Take SyncContext"),
        (Elicit("?"), Nested, "inner"),
        (Elicit("?", url="https://x.example"), str, "annotate bool"),
    ],
)
def test_a_tree_that_cannot_be_resolved_is_refused(marker: Any, annotation: Any, says: str) -> None:
    def show(x: Any) -> None: ...

    show.__annotations__["x"] = Annotated[annotation, marker]
    with pytest.raises(DefinitionError, match=says):
        Registry().tool(show)


def test_a_function_that_needs_itself_is_refused() -> None:
    def itself(x: int) -> int:
        return x

    itself.__annotations__["x"] = Annotated[int, Depends(itself)]

    def show(x: Annotated[int, Depends(itself)]) -> None: ...

    with pytest.raises(DefinitionError, match="itself needs itself"):
        Registry().tool(show)


def test_completions_cannot_ask() -> None:
    def cities(prefix: str, sure: Annotated[bool, Elicit("?")]) -> list[str]:
        return []

    with pytest.raises(DefinitionError, match="completions cannot ask"):
        Registry().complete(cities, prompt="p")
