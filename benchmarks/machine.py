"""What a figure depends on besides the code: machine, interpreter, the state of the working tree, and the load."""

import os
import resource
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from mcpcore.bench import machine

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
        **machine.describe(),
        "open files": str(resource.getrlimit(resource.RLIMIT_NOFILE)[0]),
        "commit": commit(),
    }


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
