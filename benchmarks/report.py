"""Writes what was measured: JSON for machines, Markdown for people, plots for both."""

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from benchmarks.peers import plotting_python
from benchmarks.results import Results, RowResults, verdict
from benchmarks.spread import Spread, spread
from benchmarks.table import BASELINE, SUBJECT, BenchmarkError, Goal, Row

__all__ = ["markdown", "number", "table", "write"]


def write(results: Results, rows: Mapping[str, Row], folder: Path) -> None:
    """Write ``results.json``, ``results.md`` and one PNG per group of rows into ``folder``, which is made if need be.

    Raises:
        BenchmarkError: The plots cannot be drawn. The other files are there by then.
    """
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / "results.json"
    data.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")
    (folder / "results.md").write_text(markdown(results, rows))
    plots = Path(__file__).with_name("plots.py")
    # -P, because the folder of plots.py has modules with everyday names.
    drawn = subprocess.run(
        [plotting_python(), "-P", str(plots), str(data), str(folder)], capture_output=True, text=True, check=False
    )
    if drawn.returncode:
        raise BenchmarkError(f"the plots cannot be drawn:\n{drawn.stderr[-2000:]}")


def markdown(results: Results, rows: Mapping[str, Row]) -> str:
    """Return the report as Markdown."""
    names = list(results.versions)
    facts = {
        **results.machine,
        "contestants": ", ".join(f"{name} {version}" for name, version in results.versions.items()),
        "rounds": f"{results.rounds}, with {results.seconds:g} s for each rate",
    }
    parts = [
        "# Benchmark",
        "\n".join(f"- {name}: {value}" for name, value in facts.items()),
        "A cell is the median over the rounds, with the least and the most in parentheses.",
        "## Figures\n\n" + table(["row", "unit", "better", *names], figure_lines(results, names)),
        f"## Multiples of {BASELINE}, taken round by round\n\n"
        + table(["row", "better", *names], ratio_lines(results, names)),
        f"## Goals of {SUBJECT}\n\n" + table(["row", "goal", "reached", ""], goal_lines(results, rows)),
        *(f"## Details: {group}\n\n{text}" for group, text in detail_tables(results, names)),
        *failures(results),
    ]
    return "\n\n".join(parts) + "\n"


def table(head: Sequence[str], lines: Iterator[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    body = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in body)


def figure_lines(results: Results, names: Sequence[str]) -> Iterator[list[str]]:
    for row, entry in results.rows.items():
        yield [f"{row}: {entry.title}", entry.unit, entry.better, *(cell(entry, name) for name in names)]


def cell(entry: RowResults, name: str) -> str:
    if name in entry.failures:
        return "failed"
    found = entry.spread(name)
    return "—" if found is None else written(found)


def ratio_lines(results: Results, names: Sequence[str]) -> Iterator[list[str]]:
    for row, entry in results.rows.items():
        multiples = [entry.ratios(name, BASELINE) for name in names]
        yield [row, entry.better, *("—" if found is None else written(found) for found in multiples)]


def goal_lines(results: Results, rows: Mapping[str, Row]) -> Iterator[list[str]]:
    for name, entry in results.rows.items():
        for goal in rows[name].goals:
            judged = verdict(entry, SUBJECT, goal)
            reached = (
                ("—", "not measured")
                if judged is None
                else (
                    written(judged.reached),
                    "met" if judged.met else "**missed**",
                )
            )
            yield [name, goal_words(entry, goal), *reached]


def goal_words(entry: RowResults, goal: Goal) -> str:
    if goal.detail is not None:
        return f"{goal.detail} ≤ {goal.bound:g}"
    sign = "≥" if entry.better == "higher" else "≤"
    return f"{sign} {goal.bound:g} " + (entry.unit if goal.against is None else f"times {goal.against}")


def detail_tables(results: Results, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    groups = dict.fromkeys(entry.group for entry in results.rows.values())
    for group in groups:
        entries = {row: entry for row, entry in results.rows.items() if entry.group == group}
        figures = [figure for entry in entries.values() for found in entry.figures.values() for figure in found]
        columns = list(dict.fromkeys(detail for figure in figures for detail in figure.details))
        if not columns:
            continue
        lines = (
            [row, name, *(detail_cell(entry, name, column) for column in columns)]
            for row, entry in entries.items()
            for name in names
            if name in entry.figures
        )
        yield group, table(["row", "contestant", *columns], lines)


def detail_cell(entry: RowResults, name: str, detail: str) -> str:
    values = [figure.details[detail] for figure in entry.figures[name] if detail in figure.details]
    return number(spread(values).median) if values else "—"


def failures(results: Results) -> Iterator[str]:
    lines = [
        f"- {row}, {name}: {reason.splitlines()[0]}"
        for row, entry in results.rows.items()
        for name, reason in entry.failures.items()
    ]
    if lines:
        yield "## Failures\n\n" + "\n".join(lines)


def written(found: Spread) -> str:
    return f"{number(found.median)} ({number(found.least)} to {number(found.most)})"


def number(value: float) -> str:
    """Three significant digits, or all digits of the integral part."""
    if abs(value) >= 100:
        return f"{value:,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}")
    return f"{value:.3g}"
