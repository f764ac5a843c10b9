"""One task beside the caller: started here, stopped anywhere."""

import contextvars

import anyio
import anyio.lowlevel
import pytest

from mcpcore.runtime.background import Background, unwrap

pytestmark = pytest.mark.anyio


async def test_stop_cancels_the_task_and_waits_until_it_has_cleaned_up() -> None:
    log: list[str] = []

    async def main() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
            log.append("cleaned up")

    background = Background()
    background.start(main)
    await anyio.wait_all_tasks_blocked()
    with anyio.fail_after(5):
        await background.stop()
        await background.stop()
    assert log == ["cleaned up"]


async def test_stop_before_the_task_has_run_still_ends_it() -> None:
    background = Background()
    background.start(anyio.sleep_forever)
    with anyio.fail_after(5):
        await background.stop()


async def test_stop_without_start_does_nothing() -> None:
    await Background().stop()


async def test_what_the_task_raises_is_raised_once_by_stop() -> None:
    async def main() -> None:
        raise LookupError("gone")

    background = Background()
    background.start(main)
    with anyio.fail_after(5):
        await background.wait()
    with pytest.raises(LookupError, match="gone"):
        await background.stop()
    await background.stop()


async def test_the_task_may_be_stopped_from_another_task_and_in_any_order() -> None:
    first, second = Background(), Background()

    async def stop(background: Background) -> None:
        await background.stop()

    first.start(anyio.sleep_forever)
    second.start(anyio.sleep_forever)
    with anyio.fail_after(5):
        for background in (first, second):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(stop, background)


async def test_a_scope_of_the_caller_does_not_cancel_the_task() -> None:
    ended = anyio.Event()

    async def main() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    background = Background()
    with anyio.CancelScope() as scope:
        background.start(main)
        scope.cancel()
        await anyio.lowlevel.checkpoint()
    await anyio.wait_all_tasks_blocked()
    assert not ended.is_set()
    await background.stop()
    assert ended.is_set()


async def test_stop_inside_the_task_cancels_without_waiting_for_its_own_end() -> None:
    background = Background()
    reached = anyio.Event()

    async def child() -> None:
        await background.stop()
        reached.set()
        await anyio.sleep_forever()

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(child)

    background.start(main)
    with anyio.fail_after(5):
        await background.wait()
        await background.stop()
    assert reached.is_set()


async def test_the_task_sees_the_context_variables_of_the_caller() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    seen: list[str] = []

    async def main() -> None:
        seen.append(variable.get())
        variable.set("theirs")

    variable.set("ours")
    background = Background()
    background.start(main)
    with anyio.fail_after(5):
        await background.wait()
    assert seen == ["ours"] and variable.get() == "ours"


def test_unwrap_returns_the_error_at_any_depth_also_outside_of_event_loops() -> None:
    error = ValueError()
    assert unwrap(ExceptionGroup("", [ExceptionGroup("", [error])])) is error
