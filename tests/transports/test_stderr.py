"""The standard error of a server, without a server."""

import io
import os
import sys
from collections.abc import Generator

import anyio
import pytest

from mcpcore.transports._descriptors import Input
from mcpcore.transports._stderr import StderrDrain

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform == "win32", reason="descriptors of POSIX")]


@pytest.fixture
def pipe() -> Generator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    os.close(reader)
    os.close(writer)


async def test_finish_takes_what_is_there_although_others_hold_the_other_end_open(pipe: tuple[int, int]) -> None:
    lines: list[str] = []
    drain = StderrDrain(Input(pipe[0], shared=False), lines.append)
    os.write(pipe[1], b"one\ntwo")
    drain.finish()
    assert lines == ["one", "two"]
    assert drain.tail == "one\ntwo"
    drain.close()
    drain.finish()


async def test_it_is_read_while_it_comes_and_characters_may_be_cut_anywhere(pipe: tuple[int, int]) -> None:
    lines: list[str] = []
    arrived = anyio.Event()

    def take(line: str) -> None:
        lines.append(line)
        arrived.set()

    drain = StderrDrain(Input(pipe[0], shared=False), take)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(drain.run)
            for byte in "ž🐎\n".encode():
                os.write(pipe[1], bytes([byte]))
                await anyio.wait_all_tasks_blocked()
            await arrived.wait()
            tasks.cancel_scope.cancel()
    assert lines == ["ž🐎"]


async def test_a_tail_without_line_ends_is_cut_anywhere(pipe: tuple[int, int]) -> None:
    drain = StderrDrain(Input(pipe[0], shared=False), lambda line: None)
    os.write(pipe[1], b"x" * 10_000)
    drain.finish()
    assert drain.tail == "x" * 4096


async def test_no_more_than_the_tail_is_kept(pipe: tuple[int, int]) -> None:
    drain = StderrDrain(Input(pipe[0], shared=False), io.StringIO())
    for _ in range(10):
        os.write(pipe[1], b"x" * 50_000)
        drain.finish()
    assert len(drain._tail) < 2 * 4096
