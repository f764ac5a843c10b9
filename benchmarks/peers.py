"""The contestants: which packages each needs, at pinned versions, and the programs that are measured."""

import shutil
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Final

from benchmarks.environments import cache_folder, locked, node_environment, python_environment
from benchmarks.table import BenchmarkError, Contestant

__all__ = ["plotting_python", "prepare"]

PYTHON_PEERS: Final = {"mcp": ("mcp==2.3.0",), "fastmcp": ("fastmcp==4.2.3",)}
NPM_PEER: Final = ("@modelcontextprotocol/server@2.3.1", "zod@4.6.7")
PLOTTING: Final = ("matplotlib==3.11.2",)

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
    packages = node_environment(folder, NPM_PEER)
    # Node looks for packages beside the importing file, so the programs have to be there.
    server, probe = folder / "server.mjs", folder / "probe.mjs"
    shutil.copyfile(PROGRAMS / "typescript_server.mjs", server)
    probe.write_text(NODE_PROBE)
    return Contestant(
        "typescript",
        version=packages["@modelcontextprotocol/server"],
        programs={"stdio": ("node", str(server)), "import": ("node", str(probe))},
        packages=packages,
    )
