"""Where the processor time of mcpcore goes: rows that are measured again with a sampling profiler in the program."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec

from benchmarks import machine
from benchmarks.report import table
from benchmarks.table import Contestant, Effort, Row

__all__ = ["PROFILED", "profiles"]

PROFILED: Final = (
    "call-1",
    "call-32",
    "sync-32",
    "list-1000",
    "http-16",
    "http-sessions-16",
    "in-memory-modern",
    "in-memory-legacy",
)
"""The rows that are profiled by default."""

SAMPLER: Final = Path(__file__).parent / "sampler.py"
SHOWN: Final = 10
COST: Final = "server CPU µs/call"


def profiles(rows: Sequence[Row], contestant: Contestant, effort: Effort, say: Callable[[str], None]) -> str:
    """Measure ``rows`` once more, sampled, and return the largest costs of each as Markdown."""
    parts = [
        "# Where the time goes\n",
        (
            f"Own processor time of {contestant.name} {contestant.version} by function, sampled each millisecond while the "
            "benchmark runs; what a function calls in C, system calls among it, counts as the function itself.\n"
        ),
        "\n".join(f"- {name}: {value}" for name, value in machine.describe().items()) + "\n",
    ]
    for row in rows:
        say(f"profiling {row.name}")
        counts, cost = sample(row, contestant, effort)
        parts += [f"## {row.name}: {row.title}\n", table(head(cost), lines(counts, cost)) + "\n"]
    return "\n".join(parts)


def sample(row: Row, contestant: Contestant, effort: Effort) -> tuple[Counter[str], float | None]:
    """Return how often each function was met, and the µs of a call, where the row tells."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / "samples.json"
        python, *program = contestant.programs[row.program]
        sampled = (python, str(SAMPLER), str(out), *program)
        measured = row.measure(replace(contestant, programs={**contestant.programs, row.program: sampled}), effort)
        counts = Counter(msgspec.json.decode(out.read_bytes(), type=dict[str, int]))
    if COST in measured.details:
        return counts, measured.details[COST]
    return counts, 1e6 / measured.value if row.unit == "calls/s" else None


def head(cost: float | None) -> list[str]:
    return ["function", "share", *([] if cost is None else ["µs per call"])]


def lines(counts: Counter[str], cost: float | None) -> Iterator[list[str]]:
    total = sum(counts.values())
    rows = counts.most_common(SHOWN)
    rest = total - sum(count for _, count in rows)
    for name, count in [*rows, ("all others", rest)]:
        share = count / total
        yield [name, f"{share:.1%}", *([] if cost is None else [f"{share * cost:.2f}"])]
