"""``mcpcore bench``: measure one tool of a server."""

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Final, Self

import msgspec

from mcpcore.bench import Bench, Phase, Plan, Report, measure_itself, page
from mcpcore.bench.text import amount, duration, lines
from mcpcore.cli.arguments import read_arguments, signature
from mcpcore.cli.loading import LoadError, UsageError, is_ours, server_command
from mcpcore.exceptions import MCPCoreError
from mcpcore.types.tools import Tool

__all__ = ["bench_server"]

STANDARD_OUTPUT: Final = "-"
SHOWN_EVERY: Final = 0.2  # seconds
BAR: Final = 24  # columns


def bench_server(options: argparse.Namespace) -> int:
    """Measure; 1 when a reply was wrong or missing."""
    plan = _plan(options)
    for name in (options.json, options.html):
        if name not in (None, STANDARD_OUTPUT) and not Path(name).absolute().parent.is_dir():
            raise UsageError(f"{name}: there is no such folder")  # better now than when all is done
    if options.itself:
        if options.target is not None:
            raise UsageError("--self measures without a TARGET")
        return _itself(plan)
    if options.target is None:
        raise UsageError("give a TARGET, or --self; mcpcore bench --help tells more")
    is_url = options.target.startswith(("http://", "https://"))
    target = options.target if is_url else server_command(options.target)
    try:
        with Bench(
            target,
            protocol_version=options.protocol_version,
            timeout=options.timeout,
            headers=_headers(options.header) or None,
            sessions=options.sessions,
            inherit_env=is_ours(options.target),
            log=options.log,
        ) as bench:
            if not options.arguments:
                _offer(bench, options.target)
                return 0
            name, *pairs = options.arguments
            arguments = read_arguments(_tool(bench, name), pairs, options.object)
            with _Shown() as shown:
                report = bench.run(name, arguments, plan, shown if sys.stderr.isatty() else None)
    except ValueError as error:
        raise UsageError(str(error)) from None
    except MCPCoreError as error:
        _, said, why = str(error).rpartition("\nmcpcore: ")
        raise LoadError(why if said and is_ours(options.target) else str(error)) from None
    except KeyboardInterrupt:
        return 130
    _write(report, options)
    return 0 if report.is_right else 1


def _plan(options: argparse.Namespace) -> Plan:
    seconds = options.duration
    if seconds is None and options.count is None:
        seconds = Plan.seconds
    try:
        return Plan(
            concurrency=options.concurrency,
            seconds=seconds,
            count=options.count,
            warm_up=options.warm_up,
            rate=options.rate,
            expect=options.expect,
            ceiling=options.ceiling,
        )
    except ValueError as error:
        raise UsageError(str(error)) from None


def _headers(given: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for field in given:
        name, separator, value = field.partition(":")
        if not separator:
            raise UsageError(f"{field!r}: write header fields as 'NAME: VALUE'")
        found[name.strip()] = value.strip()
    return found


def _tool(bench: Bench, name: str) -> Tool:
    tools = {tool.name: tool for tool in bench.tools}
    if name not in tools:
        raise UsageError(f"unknown tool {name!r}; there are: {', '.join(tools) or 'none'}")
    return tools[name]


def _offer(bench: Bench, target: str) -> None:
    info = bench.server.info
    print(f"{info.name} {info.version}" if info is not None else "A server without a name", end="")
    print(f", protocol {bench.server.version}\n\nTools")
    for tool in bench.tools:
        print(f"  {signature(tool)}")
    if not bench.tools:
        print("  none, so there is nothing to measure")
        return
    shown = target if is_ours(target) else f"{target.replace(chr(0), ' ').replace(' ', '-- ', 1)} --"
    print(f"\nMeasure one of them: mcpcore bench {shown} {bench.tools[0].name} NAME=VALUE …")


def _write(report: Report, options: argparse.Namespace) -> None:
    if options.json == STANDARD_OUTPUT:
        print(_json(report))
    else:
        print("\n".join(lines(report)))
        if options.json is not None:
            _save(options.json, _json(report) + "\n")
    if options.html is not None:
        _save(options.html, page(report))


def _json(report: Report) -> str:
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode()


def _save(name: str, text: str) -> None:
    try:
        Path(name).write_text(text, "utf-8")
    except OSError as error:
        raise UsageError(f"{name} cannot be written: {error.strerror}") from None
    print(f"written to {name}", file=sys.stderr)


def _itself(plan: Plan) -> int:
    seconds = plan.ceiling or 1.0
    print(f"The driver by itself: small calls of a server that does nothing, {plan.concurrency} in flight\n")
    for transport in ("stdio", "http"):
        ceiling = measure_itself(transport, plan.concurrency, seconds)
        cost = duration(ceiling.driver_cpu)
        print(f"  {transport:9}{amount(ceiling.calls_per_second)} calls/s, {cost} of the driver's CPU per call")
    return 0


class _Shown:
    """Shows on a terminal how far it is. What was shown is wiped when the context is left."""

    def __init__(self) -> None:
        self._next = 0.0
        self._phase = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._phase:
            self._write("")

    def __call__(self, phase: Phase) -> None:
        now = time.monotonic()
        if now < self._next and phase.name == self._phase:
            return
        self._next, self._phase = now + SHOWN_EVERY, phase.name
        if phase.name == "ceiling":
            text = "measuring the driver itself …"
        else:
            done = "#" * int(phase.share * BAR)
            rate = amount(phase.calls / phase.elapsed) if phase.elapsed else "0"
            text = f"{phase.name:8} [{done:{BAR}}] {rate} calls/s, {phase.failed:,} failed"
        self._write(text)

    def _write(self, text: str) -> None:
        os.write(sys.stderr.fileno(), f"\r\x1b[K{text}".encode())
