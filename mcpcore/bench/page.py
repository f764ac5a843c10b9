"""A report as one HTML page that needs nothing else: figures, the distribution of latencies, and the course of time."""

import math
from collections.abc import Iterator
from html import escape
from typing import Final

from msgspec.json import encode

from mcpcore.bench.plot import Axis, Line, draw, log_ticks, ticks
from mcpcore.bench.report import Interval, Report
from mcpcore.bench.text import amount, duration, rows, subject

__all__ = ["page"]

STYLE: Final = """
:root {
  color-scheme: light dark;
  --paper: #fff; --ink: #1c2128; --faint: #59636e; --rule: #d8dee4; --box: #f6f8fa;
  --first: #0969da; --second: #bc4c00; --bad: #cf222e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #0d1117; --ink: #e6edf3; --faint: #9198a1; --rule: #30363d; --box: #161b22;
    --first: #58a6ff; --second: #f0883e; --bad: #ff7b72;
  }
}
body {
  margin: 2rem auto; max-width: 56rem; padding: 0 1rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif;
}
h1 { font-size: 1.4rem; margin: 0; }
h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
p { margin: .3rem 0; }
.faint, .tick, .axis { color: var(--faint); fill: var(--faint); }
.tiles { display: flex; flex-wrap: wrap; gap: .5rem; margin: 1.25rem 0; }
.tile { background: var(--box); border: 1px solid var(--rule); border-radius: 8px; padding: .6rem .9rem; min-width: 5.5rem; }
.tile b { display: block; font-size: 1.35rem; font-variant-numeric: tabular-nums; white-space: nowrap; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--rule); padding: .35rem .6rem .35rem 0; text-align: left; vertical-align: top; }
th { font-weight: 600; white-space: nowrap; width: 9rem; }
td { overflow-wrap: anywhere; white-space: pre-wrap; }
pre { background: var(--box); border-radius: 6px; margin: .3rem 0; padding: .5rem .75rem; white-space: pre-wrap; }
.note { border-left: 3px solid var(--second); margin: .75rem 0; padding-left: .75rem; }
.bad { border-left-color: var(--bad); }
svg { display: block; width: 100%; height: auto; }
.tick, .axis { font: 12px system-ui, sans-serif; }
.grid { stroke: var(--rule); stroke-width: 1; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.point { fill: transparent; }
.point:hover { fill: currentColor; }
.line.first { stroke: var(--first); }
.line.second { stroke: var(--second); }
.point.first { color: var(--first); }
.point.second { color: var(--second); }
"""

MARKS: Final = (0, 50, 90, 99, 99.9, 99.99, 99.999, 99.9999)


def page(report: Report) -> str:
    """Return the page."""
    return "\n".join(_parts(report)) + "\n"


def _parts(report: Report) -> Iterator[str]:
    yield '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{escape(report.tool)}: {escape(amount(report.calls_per_second))} calls/s</title>"
    yield f"<style>{STYLE}</style>\n</head>\n<body>"
    yield f"<h1>{escape(report.tool)}</h1>"
    yield f"<p>{escape(subject(report))}</p>"
    yield f'<p class="faint">{escape(report.target)}</p>'
    yield from _tiles(report)
    if report.ended_by is not None:
        yield f'<div class="note bad">It ended before its time: {escape(report.ended_by)}</div>'
    for warning in report.warnings:
        yield f'<div class="note">Note: {escape(warning)}.</div>'
    if report.latency is not None:
        yield "<h2>Latency: how many calls took how long</h2>"
        yield _distribution(report)
        yield "<h2>Calls per second over time</h2>"
        yield _rate(report)
        yield "<h2>Latency over time</h2>"
        yield _latencies(report)
    yield "<h2>Figures</h2>"
    yield from _table(list(rows(report)))
    if report.failures:
        yield "<h2>Failures</h2>"
        for kind, failure in sorted(report.failures.items(), key=lambda item: -item[1].count):
            yield f"<p><b>{failure.count:,}</b> times: {escape(kind)}</p>"
            yield from (f"<pre>{escape(example)}</pre>" for example in failure.examples)
    yield "<h2>Conditions</h2>"
    conditions = [("arguments", encode(report.arguments).decode()), ("date", report.date)]
    conditions += [("warm-up", duration(report.warm_up)), *report.machine.items()]
    yield from _table(conditions)
    yield "</body>\n</html>"


def _tiles(report: Report) -> Iterator[str]:
    latency = report.latency
    tiles = [("calls/s", amount(report.calls_per_second)), ("failed", f"{report.failed:,}")]
    if latency is not None:
        tiles += [("p50", duration(latency.p50)), ("p99", duration(latency.p99)), ("max", duration(latency.max))]
    if report.server_use is not None:
        tiles.append(("server CPU per call", duration(report.server_use.cpu_per_call)))
    yield '<div class="tiles">'
    for name, value in tiles:
        yield f'<div class="tile"><b>{escape(value)}</b><span class="faint">{escape(name)}</span></div>'
    yield "</div>"


def _table(entries: list[tuple[str, str]]) -> Iterator[str]:
    yield "<table>"
    for name, text in entries:
        yield f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>"
    yield "</table>"


def _distribution(report: Report) -> str:
    """Per cent stand where their distance from 100 does, on a logarithmic scale: the slow ones are what matters."""
    below = [(percent, seconds) for percent, seconds in report.percentiles if percent < 100]
    highest = max(below[-1][0], 90.0)
    # The slowest call of all stands at the end: it is the one beyond which there is none.
    points: list[tuple[float, float | None]] = [*below, (highest, report.percentiles[-1][1])]
    marks = [mark for mark in MARKS if mark <= highest]
    x = Axis("per cent of calls, ever closer to 100", 0, highest, marks, lambda percent: f"{percent:g} %", _closeness)
    y = _seconds_axis("latency", [value for _, value in points if value is not None])
    tip = "{:.6g} % of calls took at most {}".format
    line = Line("latency", "first", points, lambda percent, seconds: tip(percent, duration(seconds)))
    return draw("Latency by per cent of calls", x, y, [line])


def _closeness(percent: float) -> float:
    return -math.log10(1 - percent / 100)


def _seconds_axis(title: str, values: list[float]) -> Axis:
    marks = log_ticks(max(min(values), 1e-7), max(*values, 1e-7))
    return Axis(title, marks[0], marks[-1], marks, duration, math.log10)


def _rate(report: Report) -> str:
    marks = ticks(max(piece.calls_per_second for piece in report.timeline))
    y = Axis("calls/s", 0, marks[-1], marks, amount)
    points = [(_middle(report, piece), piece.calls_per_second) for piece in report.timeline]
    line = Line("calls/s", "first", points, lambda at, rate: f"{amount(rate)} calls/s at {duration(at)}")
    return draw("Calls per second over time", _time_axis(report), y, [line])


def _latencies(report: Report) -> str:
    def line(name: str, style: str, values: list[float | None]) -> Line:
        middles = [_middle(report, piece) for piece in report.timeline]
        points = list(zip(middles, values, strict=True))
        return Line(name, style, points, lambda at, seconds: f"{name} {duration(seconds)} at {duration(at)}")

    lines = [
        line("p50", "first", [piece.p50 for piece in report.timeline]),
        line("p99", "second", [piece.p99 for piece in report.timeline]),
    ]
    seen = [value for each in lines for _, value in each.points if value is not None]
    return draw("Latency over time", _time_axis(report), _seconds_axis("latency", seen), lines)


def _time_axis(report: Report) -> Axis:
    marks = [mark for mark in ticks(report.seconds, 8) if mark <= report.seconds]
    return Axis("seconds", 0, report.seconds, marks, lambda seconds: f"{seconds:g}")


def _middle(report: Report, piece: Interval) -> float:
    return piece.start + report.seconds / len(report.timeline) / 2
