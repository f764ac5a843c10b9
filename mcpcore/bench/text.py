"""A report for people, as plain text; and how its figures are written, which the page does alike."""

from collections.abc import Iterator
from typing import Final

from mcpcore.bench.report import Latency, Report

__all__ = ["amount", "duration", "lines", "rows", "subject"]

UNITS: Final = ((1.0, "s"), (1e-3, "ms"), (0.0, "µs"))
ROUNDED: Final = 0.9995  # from here on three digits say that it is the next unit
LABEL: Final = 9  # columns


def amount(value: float) -> str:
    """Write a number with three digits that count, or all of them before the point."""
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:#.3g}".rstrip(".")


def duration(seconds: float) -> str:
    """Write a time in the unit that suits it."""
    least, unit = next(pair for pair in UNITS if seconds >= pair[0] * ROUNDED)
    return f"{amount(seconds / (least or 1e-6))} {unit}"


def size(count: float) -> str:
    """Write a number of bytes."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{amount(count)} {unit}"
        count /= 1024
    return f"{amount(count)} GiB"


def subject(report: Report) -> str:
    """Say what was measured, in one line."""
    loop = "closed loop" if report.rate is None else f"open loop at {amount(report.rate)} calls/s"
    return (
        f"{report.tool} of {report.server}, {report.transport}, protocol {report.protocol_version}, {loop}, "
        f"{report.concurrency} in flight, {duration(report.seconds)}"
    )


def rows(report: Report) -> Iterator[tuple[str, str]]:
    """Yield what was found: labels and texts."""
    wrong = f"{report.failed:,} failed" if report.failed else "none failed"
    yield "calls/s", f"{amount(report.calls_per_second)}  ({report.calls:,} of {report.sent:,} calls; {wrong})"
    yield "latency", _latency(report.latency) if report.latency is not None else "no call was answered rightly"
    sent, received = (total / max(report.sent, 1) for total in (report.bytes_sent, report.bytes_received))
    yield "bytes", f"{size(sent)} sent and {size(received)} received per call"
    yield "server", _server(report)
    yield "driver", _driver(report)
    if extras := ", ".join(_extras(report)):
        yield "also", extras


def lines(report: Report) -> Iterator[str]:
    """Yield the lines of the whole report."""
    yield subject(report)
    yield ""
    for label, text in rows(report):
        yield f"  {label:{LABEL}}{text}"
    for kind, failure in sorted(report.failures.items(), key=lambda item: -item[1].count):
        yield f"\n  {failure.count:,} times: {kind}"
        for example in failure.examples:
            yield "      " + example.replace("\n", "\n      ")
    if report.ended_by is not None:
        yield f"\n  It ended before its time: {report.ended_by}"
    for warning in report.warnings:
        yield f"\n  Note: {warning}."


def _latency(latency: Latency) -> str:
    named = (
        ("min", latency.min),
        ("p50", latency.p50),
        ("p90", latency.p90),
        ("p99", latency.p99),
        ("p99.9", latency.p99_9),
        ("max", latency.max),
    )
    return "   ".join(f"{name} {duration(seconds)}" for name, seconds in named)


def _server(report: Report) -> str:
    used = report.server_use
    if used is None:
        return "not known: it is not a process of this machine that this user may look at"
    processes = "" if used.processes == 1 else f", {used.processes} processes"
    return (
        f"{duration(used.cpu_per_call)} of CPU per call, {used.cpu:.0%} of a core, "
        f"{size(used.memory)} resident (at most {size(used.peak_memory)}){processes}"
    )


def _driver(report: Report) -> str:
    driver = report.driver
    busy = f"busy {driver.busy:.0%} of the time"
    if driver.ceiling is None:
        return f"{busy}; its own ceiling was not measured"
    return f"{busy}; with a server that does nothing it reaches {amount(driver.ceiling)} calls/s"


def _extras(report: Report) -> Iterator[str]:
    counted = (
        (report.notifications, "notifications"),
        (report.server_requests, "requests of the server, refused"),
        (report.streamed, "replies as streams of events"),
        (report.reconnections, "connections opened again"),
    )
    for count, what in counted:
        if count:
            yield f"{count:,} {what}"
