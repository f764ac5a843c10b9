"""Draws ``results.json`` as one PNG per group of rows: ``plots.py results.json FOLDER``.

Runs as a program in an interpreter of its own that has matplotlib, so it imports nothing of the benchmark.
"""

# mypy: disable-error-code="import-not-found"
# matplotlib is in the plotting environment only.

import json
import statistics
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot  # after the choice of the backend

COLOURS = {"mcpcore": "#d1495b", "mcp": "#30638e", "fastmcp": "#003d5b", "typescript": "#00798c", "bare": "#bbbbbb"}


def draw(group: str, rows: list[dict[str, Any]], path: Path) -> None:
    figure, all_axes = pyplot.subplots(len(rows), 1, figsize=(8, 0.6 + 1.7 * len(rows)), squeeze=False)
    for row, axes in zip(rows, all_axes[:, 0], strict=True):
        names = list(row["figures"])
        for place, name in enumerate(names):
            values = [entry["value"] for entry in row["figures"][name]]
            median = statistics.median(values)
            error = [[median - min(values)], [max(values) - median]]
            axes.barh(place, median, xerr=error, color=COLOURS.get(name), capsize=3, height=0.7)
            axes.annotate(f" {median:,.3g}" if median < 100 else f" {median:,.0f}", (max(values), place), va="center")
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        axes.margins(x=0.15)
        axes.set_title(f"{row['title']} ({row['unit']}, {row['better']} is better)", loc="left", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def main(source: str, folder: str) -> None:
    results = json.loads(Path(source).read_text())
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in results["rows"].values():
        if row["figures"]:
            groups.setdefault(row["group"], []).append(row)
    for group, rows in groups.items():
        draw(group, rows, Path(folder) / f"{group.replace(' ', '-')}.png")


main(*sys.argv[1:])
