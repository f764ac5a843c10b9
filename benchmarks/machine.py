"""What a figure depends on besides the code: machine, interpreter, the state of the working tree, and the load."""

import os
import platform
import resource
import subprocess
from datetime import UTC, datetime
from pathlib import Path

__all__ = ["describe", "load", "open_files"]


def load() -> float:
    """The load average of the last minute; a figure that was taken beside other work says so."""
    return os.getloadavg()[0]


def open_files() -> int:
    """Raise the limit of open files, for this process and those that it starts, as far as the system lets it.

    Returns:
        The limit.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


def describe() -> dict[str, str]:
    """The facts that belong beside a figure, in words, by name."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "CPU": f"{cpu_model()}, {len(os.sched_getaffinity(0))} of {os.cpu_count()} cores",
        "memory": f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.1f} GiB",
        "open files": str(resource.getrlimit(resource.RLIMIT_NOFILE)[0]),
        "kernel": f"{platform.system()} {platform.release()}",
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "load average": ", ".join(f"{value:.2f}" for value in os.getloadavg()),
        "commit": commit(),
    }


def cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


def commit() -> str:
    """The commit of the working tree, marked where files differ from it."""
    git = ["git", "-C", str(Path(__file__).parent)]
    head = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    if head.returncode:
        return "unknown: not a git working tree"
    changes = subprocess.run(
        [*git, "status", "--porcelain", "--untracked-files=no"], capture_output=True, text=True, check=False
    )
    return head.stdout.strip() + (" with uncommitted changes" if changes.stdout.strip() else "")
