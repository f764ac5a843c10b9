"""The rows about clients: the loop that all programs share, and what becomes of a program's report."""

import json
import sys
from collections.abc import Callable

import anyio
import pytest

from benchmarks.contestants import calls
from benchmarks.rows import client
from benchmarks.table import BenchmarkError, Contestant, Effort, Measurement


def test_calls_are_made_one_after_another_in_as_many_lines_as_the_window_has() -> None:
    numbers: list[int] = []
    most = running = 0

    async def call(number: int) -> str:
        nonlocal most, running
        numbers.append(number)
        running += 1
        most = max(most, running)
        await anyio.lowlevel.checkpoint()
        running -= 1
        return str(number + 7)

    async def main() -> None:
        assert await calls.run(call, 4, 30) > 0

    anyio.run(main)
    assert sorted(numbers) == list(range(30))
    assert most == 4


def test_a_wrong_result_ends_the_program() -> None:
    async def call(number: int) -> str:
        return "0"

    with pytest.raises(SystemExit, match="0 \\+ 7 is not '0'"):
        anyio.run(calls.run, call, 1, 1)


def test_the_report_counts_calls_that_were_made(capsys: pytest.CaptureFixture[str]) -> None:
    made = 0

    async def call(number: int) -> str:
        nonlocal made
        made += 1
        return str(number + 7)

    anyio.run(calls.measure, call, 2, 0.0)
    report = json.loads(capsys.readouterr().out)
    assert report["calls"] == made / 2 == 200  # the first half was the warm-up
    assert report["seconds"] > 0
    assert report["cpu"] >= 0


def measured(program: str) -> Callable[[], object]:
    contestant = Contestant("one", "1", {"memory": (sys.executable, "-c", program)})
    row = client.in_memory("row", "a row", era="modern")
    return lambda: row.measure(contestant, Effort(smoke=True))


def test_a_report_becomes_calls_per_second() -> None:
    report = {"calls": 10, "seconds": 2.0, "cpu": 1.0}
    found = measured(f"print('''{json.dumps(report)}''')")()
    assert found == Measurement(5.0, {"µs/call": 200_000.0, "CPU µs/call": 100_000.0})


@pytest.mark.parametrize(
    ("program", "complaint"),
    [
        ("import sys; sys.exit('the reason')", r"(?s)exited with status 1; its standard error ends:\nthe reason"),
        ("print('hello')", "printed no report"),
        ("print('{}')", "printed no report"),
    ],
)
def test_a_program_that_fails_is_named(program: str, complaint: str) -> None:
    with pytest.raises(BenchmarkError, match=complaint):
        measured(program)()


def test_a_program_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "PATIENCE", 0.05)
    with pytest.raises(BenchmarkError, match="was not done after 0 s"):
        measured("import signal; signal.pause()")()
