"""What a figure depends on besides the code: the machine and the interpreter."""

import os
import platform
from pathlib import Path

__all__ = ["describe"]


def describe() -> dict[str, str]:
    """Return the facts that belong beside a figure, in words, by name."""
    return {
        "CPU": f"{_cpu_model()}, {len(os.sched_getaffinity(0))} of {os.cpu_count()} cores",
        "memory": f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.1f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "load average": ", ".join(f"{value:.2f}" for value in os.getloadavg()),
    }


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()
