"""What every change has to keep: multiples of ``mcp`` in one short run, far enough below what is reached that noise keeps them."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from benchmarks.results import RowResults, run
from benchmarks.rows import ROWS
from benchmarks.table import BASELINE, SUBJECT, Contestant, Effort, Goal

__all__ = ["GUARDED", "broken", "guard"]

ROUNDS: Final = 3
SECONDS: Final = 0.4  # for each rate

GUARDED: Final = {
    "call-1": Goal(3, BASELINE),
    "call-32": Goal(15, BASELINE),
    "list-100": Goal(10, BASELINE),
    "start": Goal(0.5, BASELINE),
    "memory": Goal(0.6, BASELINE),
    "http-16": Goal(1.2, BASELINE),
    "in-memory-modern": Goal(1.2, BASELINE),
}
"""By row. At most half of what a quiet machine shows, or twice it where less is better."""


def guard(contestants: Mapping[str, Contestant], say: Callable[[str], None]) -> list[str]:
    """Measure the guarded rows.

    Args:
        contestants: `SUBJECT` and `BASELINE`.
        say: Gets a line after each measurement.

    Returns:
        What is broken, in words; nothing where all holds.
    """
    rows = [ROWS[name] for name in GUARDED]
    results = run(rows, contestants, ROUNDS, Effort(SECONDS), say)
    return [words for name, entry in results.rows.items() for words in broken(name, entry, GUARDED[name])]


def broken(name: str, entry: RowResults, goal: Goal) -> Iterator[str]:
    """Say what is broken in a row: a contestant failed, or no round reached the bound.

    A machine that is busy for a moment spoils rounds; code that has become slow spoils all of them.
    """
    for contestant, reason in entry.failures.items():
        yield f"{name}: {contestant} failed: {reason}"
    if entry.failures:
        return
    reached = entry.ratios(SUBJECT, goal.against or BASELINE)
    assert reached is not None  # both were measured
    higher = entry.better == "higher"
    best = reached.most if higher else reached.least
    if best < goal.bound if higher else best > goal.bound:
        sign = "≥" if higher else "≤"
        yield f"{name}: {best:.2f} times {goal.against} in its best round, and it has to be {sign} {goal.bound:g} times"
