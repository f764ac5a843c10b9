"""Environments for other implementations: pinned packages, each set in a folder of its own below one cache.

Preparing is idempotent: an environment that was finished for the same pins and interpreter is used as it is. Nothing is
skipped: what cannot be installed is a `BenchmarkError` with the installer's own words. The tests use this, too.
"""

import fcntl
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks.table import BenchmarkError

__all__ = ["cache_folder", "locked", "node_environment", "python_environment"]

NODE_MAJOR: Final = 20


def cache_folder() -> Path:
    """Where everything is installed: ``$MCPCORE_CACHE``, or ``~/.cache/mcpcore``."""
    named = os.environ.get("MCPCORE_CACHE")
    return Path(named).absolute() if named else Path.home() / ".cache" / "mcpcore"


@contextmanager
def locked(cache: Path) -> Generator[Path]:
    """Keep other runs out of the cache; a second run waits here until the first has installed."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield cache


def python_environment(folder: Path, pins: Sequence[str]) -> dict[str, str]:
    """Make a virtual environment with this interpreter and install ``pins``.

    Args:
        folder: The environment, inside a `locked` cache.
        pins: Requirements, as pip takes them.

    Returns:
        All packages in it, with their versions.

    Raises:
        BenchmarkError: They cannot be installed.
    """

    def install() -> dict[str, str]:
        run(folder.name, [sys.executable, "-m", "venv", str(folder)])
        pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
        run(folder.name, [*pip, "install", "--quiet", *pins])
        frozen = json.loads(run(folder.name, [*pip, "list", "--format=json"]))
        return {package["name"].lower(): package["version"] for package in frozen}

    # The interpreter behind a virtual environment: every checkout has one of its own, and all of them share the cache.
    interpreter = f"{os.path.realpath(sys.executable)} {platform.python_version()}"
    return installed(folder, pins, interpreter, install)


def node_environment(folder: Path, pins: Sequence[str]) -> dict[str, str]:
    """Install npm packages below ``folder``; what they can run is in ``node_modules/.bin``.

    Returns:
        All packages in it, with their versions, and ``node`` with its own.

    Raises:
        BenchmarkError: Node is missing or too old, or they cannot be installed.
    """
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise BenchmarkError(
                f"{folder.name} needs Node {NODE_MAJOR} or later, but there is no {program} on the PATH"
            )
    node = run(folder.name, ["node", "--version"]).strip()
    if int(node.lstrip("v").split(".")[0]) < NODE_MAJOR:
        raise BenchmarkError(f"{folder.name} needs Node {NODE_MAJOR} or later, but node --version says {node}")

    def install() -> dict[str, str]:
        (folder / "package.json").write_text('{"private": true, "type": "module"}\n')
        run(folder.name, ["npm", "install", "--no-audit", "--no-fund", "--save-exact", *pins], folder)
        listing = json.loads(run(folder.name, ["npm", "ls", "--all", "--json"], folder))
        return dict(npm_versions(listing))

    return {**installed(folder, pins, node, install), "node": node}


def npm_versions(node: dict[str, dict[str, dict[str, str]]]) -> Iterator[tuple[str, str]]:
    for name, package in node.get("dependencies", {}).items():
        if "version" in package:  # without one it is an optional peer that was not installed
            yield name, package["version"]
        yield from npm_versions(package)  # type: ignore[arg-type]  # the tree nests in itself


def installed(
    folder: Path, pins: Sequence[str], interpreter: str, install: Callable[[], dict[str, str]]
) -> dict[str, str]:
    """Return the packages in ``folder`` with their versions; install first, unless that is done for the same pins."""
    record = folder / "installed.json"
    if record.exists():
        found = json.loads(record.read_text())
        if (found["pins"], found["interpreter"]) == (list(pins), interpreter):
            return dict(found["packages"])
    print(f"installing {' '.join(pins)} for {interpreter} into {folder}", file=sys.stderr, flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    packages = install()
    # Written last: that it is there says that the rest is complete.
    record.write_text(json.dumps({"pins": pins, "interpreter": interpreter, "packages": packages}, indent=1))
    return packages


def run(name: str, argv: Sequence[str], folder: Path | None = None) -> str:
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchmarkError(f"{name} cannot be installed: {' '.join(argv)} failed:\n{done.stderr[-2000:]}")
    return done.stdout
