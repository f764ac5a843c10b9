"""``python -m benchmarks``: measures MCP servers and clients side by side. docs/performance.md has the method."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks import machine
from benchmarks.guard import GUARDED, guard
from benchmarks.peers import prepare
from benchmarks.profiling import PROFILED, profiles
from benchmarks.readme import README, quote
from benchmarks.report import markdown, write
from benchmarks.results import run
from benchmarks.rows import ROWS, SMOKE
from benchmarks.table import BASELINE, CONTESTANTS, SUBJECT, BenchmarkError, Effort

RESULTS = Path(__file__).parent / "results"
PROFILE = RESULTS / "profile.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns:
        The exit status: 0, or 1 if anything failed: an installation, or a contestant in a row.
    """
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measures MCP servers and clients side by side."
    )
    parser.add_argument("--rows", metavar="NAME,…", help="only these rows; --list names them")
    parser.add_argument("--contestants", metavar="NAME,…", help=f"only these of {', '.join(CONTESTANTS)}")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="turns of each contestant (default: 3)")
    parser.add_argument("--seconds", type=float, default=2.0, metavar="S", help="for each rate (default: 2)")
    parser.add_argument(
        "--smoke",
        action="store_true",
        help="check a few hundred replies once, of every kind of row unless --rows is given; no figures come out",
    )
    parser.add_argument(
        "--guard",
        action="store_true",
        help="check in about a minute that a few rows keep their distance from mcp; takes no other option",
    )
    parser.add_argument(
        "--profile",
        action="store_true",
        help="tell where mcpcore's processor time goes, in the rows that are named or in some of those with goals",
    )
    parser.add_argument("--list", action="store_true", help="name the rows and exit")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="where results go (default: benchmarks/results after the whole table; a part of it is only printed)",
    )
    options = parser.parse_args(arguments)
    if options.guard and options != parser.parse_args(["--guard"]):
        parser.error("--guard takes no other option")
    if options.rounds < 1:
        parser.error("--rounds must be 1 or more")
    if not 0 < options.seconds <= 60:
        parser.error("--seconds must be above 0 and at most 60")
    try:
        rows = chosen("row", options.rows, ROWS)
        if options.smoke and options.rows is None:
            rows = list(SMOKE)
        if options.profile and options.rows is None:
            rows = list(PROFILED)
        names = chosen("contestant", options.contestants, CONTESTANTS)
    except ValueError as error:
        parser.error(str(error))
    if options.list:
        for row in rows:
            print(f"{row:24} {ROWS[row].title}")
        return 0
    try:
        if options.guard:
            return keep_guard()
        return profile(rows, options) if options.profile else measure(rows, names, options)
    except BenchmarkError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def chosen(kind: str, wanted: str | None, known: Iterable[str]) -> list[str]:
    """Return the wanted names in the order of the known ones, all of them by default."""
    names = list(known)
    if wanted is None:
        return names
    asked = wanted.split(",")
    if unknown := [name for name in asked if name not in names]:
        raise ValueError(f"there is no {kind} {unknown[0]!r}; choose from {', '.join(names)}")
    return [name for name in names if name in asked]


def measure(rows: list[str], names: list[str], options: argparse.Namespace) -> int:
    machine.open_files()
    results = run(
        [ROWS[row] for row in rows],
        prepare(names),
        rounds=1 if options.smoke else options.rounds,
        effort=Effort(options.seconds, options.smoke),
        say=say,
    )
    failed = any(entry.failures for entry in results.rows.values())
    if not options.smoke:
        print(markdown(results, ROWS))
        whole = len(rows) == len(ROWS) and len(names) == len(CONTESTANTS)
        folder = options.out or (RESULTS if whole and not failed else None)
        if folder is not None:
            write(results, ROWS, folder)
            print(f"written to {folder}", file=sys.stderr)
        if folder == RESULTS:
            quote(results)
            print(f"quoted in {README}", file=sys.stderr)
    return 1 if failed else 0


def profile(rows: list[str], options: argparse.Namespace) -> int:
    contestant = prepare([SUBJECT])[SUBJECT]
    effort = Effort(options.seconds, options.smoke)
    text = profiles([ROWS[row] for row in rows], contestant, effort, say)
    print(text)
    if options.rows is None and not options.smoke:
        PROFILE.write_text(text, encoding="utf-8")
        say(f"written to {PROFILE}")
    return 0


def keep_guard() -> int:
    found = guard(prepare((SUBJECT, BASELINE)), say)
    for words in found:
        print(f"broken: {words}", file=sys.stderr)
    if not found:
        print(f"all {len(GUARDED)} guarded rows hold", file=sys.stderr)
    return 1 if found else 0


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
