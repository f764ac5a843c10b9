"""Installs the other frameworks, at pinned versions, each in an environment of its own below one cache folder.

Preparing is idempotent: an environment that was finished for the same pins and interpreter is used as it is. Nothing is skipped: a
peer that cannot be installed is a `BenchmarkError` with the installer's own words.
"""

import fcntl
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Final

from benchmarks.table import BenchmarkError, Contestant

__all__ = ["cache_folder", "plotting_python", "prepare"]

PYTHON_PEERS: Final = {"mcp": ("mcp==2.3.0",), "fastmcp": ("fastmcp==4.2.3",)}
NPM_PEER: Final = ("@modelcontextprotocol/server@2.3.1", "zod@4.6.7")
PLOTTING: Final = ("matplotlib==3.11.2",)
NODE_MAJOR: Final = 20

PROGRAMS: Final = Path(__file__).parent / "contestants"
IMPORTS: Final = {
    "mcpcore": "from mcpcore import Server",
    "mcp": "from mcp.server.mcpserver import MCPServer",
    "fastmcp": "from fastmcp import FastMCP",
    "bare": "import asyncio, msgspec",
}
PYTHON_PROBE: Final = "from time import perf_counter as now; t = now(); {}; print(now() - t)"
NODE_PROBE: Final = """
const start = performance.now();
await import('@modelcontextprotocol/server');
await import('@modelcontextprotocol/server/stdio');
console.log((performance.now() - start) / 1000);
"""


def cache_folder() -> Path:
    """Where everything is installed: ``$MCPCORE_CACHE``, or ``~/.cache/mcpcore/benchmarks``."""
    named = os.environ.get("MCPCORE_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "mcpcore" / "benchmarks"


def prepare(names: Sequence[str]) -> dict[str, Contestant]:
    """Return the contestants with these names, in this order, after installing what is missing.

    Raises:
        BenchmarkError: A peer cannot be installed, or Node is missing or too old.
    """
    with locked(cache_folder()) as cache:
        return {name: prepare_one(name, cache) for name in names}


def plotting_python() -> str:
    """Return an interpreter that has matplotlib, which mcpcore itself does not need.

    Raises:
        BenchmarkError: It cannot be installed.
    """
    with locked(cache_folder()) as cache:
        python_environment(cache / "plotting", PLOTTING)
        return str(cache / "plotting" / "bin" / "python")


@contextmanager
def locked(cache: Path) -> Iterator[Path]:
    """Keep other runs out of the cache; a second run waits here until the first has installed."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield cache


def prepare_one(name: str, cache: Path) -> Contestant:
    if name == "typescript":
        return typescript(cache / name)
    python = sys.executable
    if name in PYTHON_PEERS:
        packages = python_environment(cache / name, PYTHON_PEERS[name])
        python = str(cache / name / "bin" / "python")
    else:
        packages = own_packages()
    return Contestant(
        name,
        version=packages["msgspec" if name == "bare" else name],
        programs={
            "stdio": (python, str(PROGRAMS / f"{name}_server.py")),
            "import": (python, "-c", PYTHON_PROBE.format(IMPORTS[name])),
        },
        packages=packages,
    )


def own_packages() -> dict[str, str]:
    try:
        return {name: metadata.version(name) for name in ("mcpcore", "anyio", "msgspec", "jsonschema-rs")}
    except metadata.PackageNotFoundError as error:
        raise BenchmarkError(
            f"{sys.executable} lacks {error.name}; install the working tree: pip install -e ."
        ) from error


def typescript(folder: Path) -> Contestant:
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise BenchmarkError(f"typescript needs Node {NODE_MAJOR} or later, but there is no {program} on the PATH")
    node = run("typescript", ["node", "--version"]).strip()
    if int(node.lstrip("v").split(".")[0]) < NODE_MAJOR:
        raise BenchmarkError(f"typescript needs Node {NODE_MAJOR} or later, but node --version says {node}")

    def install() -> dict[str, str]:
        (folder / "package.json").write_text('{"private": true, "type": "module"}\n')
        run("typescript", ["npm", "install", "--no-audit", "--no-fund", "--save-exact", *NPM_PEER], folder)
        listing = json.loads(run("typescript", ["npm", "ls", "--all", "--json"], folder))
        return dict(npm_versions(listing))

    packages = installed(folder, NPM_PEER, node, install)
    # Node looks for packages beside the importing file, so the programs have to be there.
    server, probe = folder / "server.mjs", folder / "probe.mjs"
    shutil.copyfile(PROGRAMS / "typescript_server.mjs", server)
    probe.write_text(NODE_PROBE)
    return Contestant(
        "typescript",
        version=packages["@modelcontextprotocol/server"],
        programs={"stdio": ("node", str(server)), "import": ("node", str(probe))},
        packages={**packages, "node": node},
    )


def npm_versions(node: dict[str, dict[str, dict[str, str]]]) -> Iterator[tuple[str, str]]:
    for name, package in node.get("dependencies", {}).items():
        if "version" in package:  # without one it is an optional peer that was not installed
            yield name, package["version"]
        yield from npm_versions(package)  # type: ignore[arg-type]  # the tree nests in itself


def python_environment(folder: Path, pins: Sequence[str]) -> dict[str, str]:
    def install() -> dict[str, str]:
        run(folder.name, [sys.executable, "-m", "venv", str(folder)])
        pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
        run(folder.name, [*pip, "install", "--quiet", *pins])
        frozen = json.loads(run(folder.name, [*pip, "list", "--format=json"]))
        return {package["name"].lower(): package["version"] for package in frozen}

    return installed(folder, pins, f"{sys.executable} {platform.python_version()}", install)


def installed(
    folder: Path, pins: Sequence[str], interpreter: str, install: Callable[[], dict[str, str]]
) -> dict[str, str]:
    """Return the packages in ``folder`` with their versions; install first, unless that was finished for the same pins."""
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
