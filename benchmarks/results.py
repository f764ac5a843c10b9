"""What a run brings home, and the run itself: contestants take turns, round after round."""

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from benchmarks import machine
from benchmarks.spread import Spread, ratios, spread
from benchmarks.table import BenchmarkError, Contestant, Effort, Goal, Row

__all__ = ["Figure", "Results", "RowResults", "Verdict", "run", "verdict"]


@dataclass
class Figure:
    """One measurement: which round it belongs to, what came out, and the machine's load average right after it."""

    round: int
    value: float
    details: Mapping[str, float]
    load: float


@dataclass
class RowResults:
    """A row, with the figures of each contestant and the reasons of those that failed."""

    title: str
    group: str
    unit: str
    better: str
    figures: dict[str, list[Figure]] = field(default_factory=dict[str, list[Figure]])
    failures: dict[str, str] = field(default_factory=dict[str, str])

    def values(self, name: str, detail: str | None = None) -> dict[int, float]:
        """A contestant's figures, or one of their details, by round."""
        figures = self.figures.get(name, ())
        return {figure.round: figure.value if detail is None else figure.details[detail] for figure in figures}

    def spread(self, name: str) -> Spread | None:
        """A contestant's figure over the rounds, or None where it has none."""
        values = self.values(name)
        return spread(list(values.values())) if values else None

    def ratios(self, name: str, baseline: str) -> Spread | None:
        """A contestant's figure as a multiple of another's in the same round."""
        return ratios(self.values(name), self.values(baseline))


@dataclass
class Results:
    """Everything a report needs, in a form that is written as JSON."""

    machine: dict[str, str]
    rounds: int
    seconds: float
    versions: dict[str, str]
    packages: dict[str, dict[str, str]]
    rows: dict[str, RowResults]


@dataclass
class Verdict:
    """How a contestant stands to a goal: what it reached, over the rounds, and whether the median is enough."""

    reached: Spread
    met: bool


def verdict(row: RowResults, name: str, goal: Goal) -> Verdict | None:
    """Judge a goal, or return None where the figures it needs are missing."""
    if goal.against is not None:
        reached = row.ratios(name, goal.against)
    else:
        values = list(row.values(name, goal.detail).values())
        reached = spread(values) if values else None
    if reached is None:
        return None
    # A detail that has a bound is something to keep small, whichever way the row's own figure goes.
    higher = row.better == "higher" and goal.detail is None
    return Verdict(reached, reached.median >= goal.bound if higher else reached.median <= goal.bound)


def run(
    rows: Sequence[Row],
    contestants: Mapping[str, Contestant],
    rounds: int,
    effort: Effort,
    say: Callable[[str], None],
) -> Results:
    """Measure every row with every contestant it applies to, ``rounds`` times.

    The rounds are the outer loop and the contestants the inner one: what else the machine does for a minute falls on
    all contestants of a row alike, and does not decide a row alone. A contestant that fails in a row is not asked again
    there.

    Args:
        rows: What to measure.
        contestants: Whom to measure, in the order of their turns.
        rounds: How often.
        effort: How long.
        say: Gets a line after each measurement.
    """
    results = Results(
        machine=machine.describe(),
        rounds=rounds,
        seconds=effort.seconds,
        versions={name: contestant.version for name, contestant in contestants.items()},
        packages={name: dict(contestant.packages) for name, contestant in contestants.items()},
        rows={row.name: RowResults(row.title, row.group, row.unit, row.better) for row in rows},
    )

    def turn(number: int, row: Row, contestant: Contestant) -> None:
        entry, name = results.rows[row.name], contestant.name
        if row.program not in contestant.programs or name in entry.failures:
            return
        where = f"round {number} of {rounds}, {row.name}, {name}"
        try:
            measured = row.measure(contestant, effort)
        except BenchmarkError as error:
            entry.failures[name] = str(error)
            say(f"{where}: FAILED: {error}")
            return
        figure = Figure(number, measured.value, measured.details, machine.load())
        entry.figures.setdefault(name, []).append(figure)
        say(f"{where}: {measured.value:,.3f} {row.unit}")

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for number in range(1, rounds + 1):
            for row in rows:
                take: Callable[[Contestant], None] = partial(turn, number, row)
                # In a smoke run no figure counts, so the contestants need not wait for each other.
                turns = pool.map(take, contestants.values()) if effort.smoke else map(take, contestants.values())
                for _ in turns:
                    pass
    return results
