"""Worker threads: what they run, how many, and what becomes of those that nobody waits for."""

import contextvars
import gc
import logging
import threading
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
import pytest

from mcpcore.runtime.threads import Threads

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def some(most: int = 2) -> AsyncIterator[Threads]:
    threads = Threads(most)
    try:
        with anyio.fail_after(10):
            yield threads
    finally:
        threads.dismiss()


class Gate:
    """Functions that have begun wait here."""

    def __init__(self) -> None:
        self.began: list[Any] = []
        self.most = 0
        self._inside = 0
        self._lock = threading.Lock()
        self._begins = threading.Semaphore(0)
        self._open = threading.Event()

    def pass_through(self, name: Any = None) -> Any:
        with self._lock:
            self.began.append(name)
            self._inside += 1
            self.most = max(self.most, self._inside)
        self._begins.release()
        self._open.wait(10)
        with self._lock:
            self._inside -= 1
        return name

    def open(self) -> None:
        self._open.set()

    async def begun(self, count: int = 1) -> None:
        """Wait until so many more have begun."""
        for _ in range(count):
            await anyio.to_thread.run_sync(self._begins.acquire)


async def test_functions_run_in_other_threads_and_their_results_come_back() -> None:
    here, seen = threading.get_ident(), set[int]()
    results: dict[int, int] = {}
    async with some() as threads:

        async def ask(number: int) -> None:
            def work() -> int:
                seen.add(threading.get_ident())
                return number * number

            results[number] = await threads.run(work)

        async with anyio.create_task_group() as tasks:
            for number in range(200):
                tasks.start_soon(ask, number)
    assert results == {number: number * number for number in range(200)}
    assert here not in seen and len(seen) <= 2


async def test_so_many_run_at_the_same_time_and_the_others_in_order() -> None:
    gate = Gate()
    async with some(3) as threads, anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(threads.run, lambda number=number: gate.pass_through(number))
            await anyio.lowlevel.checkpoint()
        await gate.begun(3)
        gate.open()
    assert gate.most == 3 and sorted(gate.began[:3]) == [0, 1, 2] and len(gate.began) == 8


async def test_what_a_function_raises_is_raised_where_it_was_asked_for() -> None:
    def fail() -> None:
        raise LookupError("not here")

    async with some() as threads:
        with pytest.raises(LookupError, match="not here"):
            await threads.run(fail)
        assert await threads.run(lambda: 1) == 1


async def test_a_function_sees_the_callers_context_variables_and_changes_none_of_them() -> None:
    variable = contextvars.ContextVar("variable", default="unset")

    def work() -> str:
        before = variable.get()
        variable.set("of the worker")
        return before

    async with some(1) as threads:
        variable.set("of the caller")
        assert [await threads.run(work) for _ in range(2)] == ["of the caller"] * 2
        assert variable.get() == "of the caller"


async def test_a_worker_can_call_the_event_loop() -> None:
    async def answer() -> str:
        await anyio.lowlevel.checkpoint()
        return "from the loop"

    async with some() as threads:
        assert await threads.run(lambda: anyio.from_thread.run(answer)) == "from the loop"


async def test_a_function_that_is_given_up_before_it_begins_never_does() -> None:
    gate = Gate()
    async with some(1) as threads, anyio.create_task_group() as tasks:
        tasks.start_soon(threads.run, lambda: gate.pass_through("first"))
        await gate.begun()
        with anyio.move_on_after(0.001) as scope:
            await threads.run(lambda: gate.pass_through("second"))
        gate.open()
        assert await threads.run(lambda: gate.pass_through("third")) == "third"
    assert scope.cancelled_caught and gate.began == ["first", "third"]


async def test_a_worker_that_cannot_be_stopped_is_abandoned_and_another_takes_its_place(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gate, later = Gate(), Gate()
    later.open()
    async with some(1) as threads:
        with caplog.at_level(logging.WARNING), anyio.move_on_after(10) as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(threads.run, lambda: gate.pass_through("stuck"))
                await gate.begun()
                tasks.cancel_scope.cancel()
        assert not scope.cancelled_caught and "abandoned a worker thread" in caplog.text
        assert await threads.run(lambda: later.pass_through("next")) == "next"
        gate.open()
        assert await threads.run(lambda: later.pass_through("last")) == "last"


async def test_those_that_wait_behind_a_worker_that_is_abandoned_get_another() -> None:
    gate, later = Gate(), Gate()
    later.open()
    results: list[Any] = []
    async with some(1) as threads, anyio.create_task_group() as tasks:
        stuck = anyio.CancelScope()

        async def get_stuck() -> None:
            with stuck:
                await threads.run(lambda: gate.pass_through("stuck"))

        async def wait() -> None:
            results.append(await threads.run(lambda: later.pass_through("next")))

        tasks.start_soon(get_stuck)
        await gate.begun()
        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        stuck.cancel()
    gate.open()
    assert results == ["next"]


async def test_dismissed_workers_end_and_others_come_when_they_are_needed() -> None:
    async with some(8) as threads:
        for _ in range(3):
            gate = Gate()
            async with anyio.create_task_group() as tasks:
                for _ in range(8):
                    tasks.start_soon(threads.run, gate.pass_through)
                await gate.begun(8)
                gate.open()
            threads.dismiss()
            assert await threads.run(lambda: 5) == 5  # given before anybody has noticed that nobody is left
        threads.dismiss()
        with anyio.fail_after(5):  # long before they would end by themselves
            while threads._workers:  # noqa: ASYNC110 - nothing tells
                await anyio.sleep(0.001)
        assert await threads.run(lambda: 6) == 6


async def test_an_idle_worker_keeps_nothing_of_its_last_function_alive() -> None:
    class Result:
        """What can be referred to weakly."""

    async with some(1) as threads:
        result = weakref.ref(await threads.run(Result))
        await threads.run(lambda: None)
        while gc.collect() or result() is not None:  # noqa: ASYNC110 - nothing tells
            await anyio.sleep(0.001)


def test_a_worker_that_outlives_its_event_loop_ends_quietly(anyio_backend: str) -> None:
    gate = Gate()
    inside: list[threading.Thread] = []

    def work() -> None:
        inside.append(threading.current_thread())
        gate.pass_through()

    async def main() -> None:
        threads = Threads(1)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(threads.run, work)
            await gate.begun()
            tasks.cancel_scope.cancel()
        threads.dismiss()

    anyio.run(main, backend=anyio_backend)
    gate.open()
    if anyio_backend == "asyncio":  # trio keeps its threads for whoever needs one next
        inside[0].join(5)
        assert not inside[0].is_alive()
