"""Runs a program and takes note, at every millisecond of processor time, of the function that it is in.

``python sampler.py OUT PROGRAM ARGUMENT…``. What a function calls in C counts as the function itself. The counts are
written as JSON when the program ends.
"""

import atexit
import json
import runpy
import signal
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Final

INTERVAL: Final = 0.001  # seconds
counts: Counter[str] = Counter()


def take(number: int, frame: FrameType | None) -> None:
    if frame is not None:
        code = frame.f_code
        counts[f"{name_of(code.co_filename)} {code.co_qualname}"] += 1


def name_of(path: str) -> str:
    """Return a file's path from its package or the standard library on."""
    for mark in ("/site-packages/", "/lib/python3", "/mcpcore/"):
        _, found, rest = path.rpartition(mark)
        if found:
            return (
                rest.partition("/")[2] if mark == "/lib/python3" else "mcpcore/" + rest if mark == "/mcpcore/" else rest
            )
    return Path(path).name


def main(out: str, *program: str) -> None:
    def write() -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        Path(out).write_text(json.dumps(counts), encoding="utf-8")

    atexit.register(write)
    sys.argv = list(program)
    sys.path[0] = str(Path(program[0]).parent)
    signal.signal(signal.SIGPROF, take)
    signal.setitimer(signal.ITIMER_PROF, INTERVAL, INTERVAL)
    runpy.run_path(program[0], run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
