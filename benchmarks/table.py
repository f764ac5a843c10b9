"""The two axes of the benchmark, contestants and rows, and what stands in a cell."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from mcpcore.exceptions import BenchmarkError

__all__ = [
    "BASELINE",
    "CONTESTANTS",
    "SUBJECT",
    "BenchmarkError",
    "Better",
    "Contestant",
    "Effort",
    "Goal",
    "Measurement",
    "Row",
]

CONTESTANTS = ("mcpcore", "mcp", "fastmcp", "typescript", "bare")
"""In the order in which they take turns."""

SUBJECT = "mcpcore"
"""The contestant that goals are for."""

BASELINE = "mcp"
"""The contestant that ratios refer to."""

Better = Literal["higher", "lower"]


@dataclass(frozen=True)
class Contestant:
    """One framework, as programs that can be measured.

    Attributes:
        name: How it is called on the command line and in tables.
        version: What was installed, for the record.
        programs: Argument vectors by the kind that rows ask for (`benchmarks.peers` says what each has to do). A row
            whose kind is missing here does not apply to the contestant.
        packages: Everything that is installed with it, with versions.
    """

    name: str
    version: str
    programs: Mapping[str, tuple[str, ...]]
    packages: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Effort:
    """How long to measure.

    Attributes:
        seconds: Time that one measurement of a rate aims at, warm-up not counted.
        smoke: Check a few hundred replies instead; the figures that come out mean nothing.
    """

    seconds: float = 2.0
    smoke: bool = False


@dataclass(frozen=True)
class Measurement:
    """What one contestant did in one row in one round: the row's figure, and others that explain it, by name."""

    value: float
    details: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True)
class Goal:
    """What mcpcore wants to reach in a row.

    Attributes:
        bound: A multiple of what ``against`` reaches in the same round, or an absolute figure in the row's unit.
        against: A contestant, or None for an absolute bound.
        detail: The entry of `Measurement.details` that an absolute bound is about; None for the row's own figure.
    """

    bound: float
    against: str | None = None
    detail: str | None = None


@dataclass(frozen=True)
class Row:
    """One question to every contestant.

    Attributes:
        name: How it is called on the command line.
        title: What is measured, in words.
        group: The rows that share a plot.
        unit: Of the figure.
        better: Which direction is better.
        program: The kind of program it needs (`Contestant.programs`).
        measure: Puts the question once, in a fresh process, and checks every reply.
        goals: What mcpcore wants to reach.
    """

    name: str
    title: str
    group: str
    unit: str
    better: Better
    program: str
    measure: Callable[[Contestant, Effort], Measurement]
    goals: tuple[Goal, ...] = ()
