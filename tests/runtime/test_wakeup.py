"""Waking one task that waits."""

import anyio
import pytest

from mcpcore._wakeup import Wakeup, asyncio_loop

pytestmark = pytest.mark.anyio


async def test_a_task_that_waits_is_woken_each_time() -> None:
    wakeup = Wakeup()
    with anyio.fail_after(5):
        for _ in range(3):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wakeup.wait)
                await anyio.wait_all_tasks_blocked()
                wakeup.wake()
                wakeup.wake()


async def test_waking_nobody_is_forgotten() -> None:
    wakeup = Wakeup()
    wakeup.wake()
    with anyio.move_on_after(0.01) as scope:
        await wakeup.wait()
    assert scope.cancelled_caught
    wakeup.wake()


async def test_the_loop_is_asyncios_only_where_asyncio_runs_the_task(anyio_backend: str) -> None:
    assert (asyncio_loop() is not None) == (anyio_backend == "asyncio")


def test_a_guest_on_asyncio_is_not_asyncio() -> None:
    import asyncio

    import trio

    async def guest() -> object:
        return asyncio_loop()

    async def host() -> object:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[object] = loop.create_future()
        trio.lowlevel.start_guest_run(
            guest,
            run_sync_soon_threadsafe=loop.call_soon_threadsafe,
            done_callback=lambda outcome: done.set_result(outcome.unwrap()),
            host_uses_signal_set_wakeup_fd=True,
        )
        return await done

    assert asyncio.run(host()) is None
