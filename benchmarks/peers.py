"""The contestants: which packages each needs, at pinned versions, and the programs that are measured."""

import shutil
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Final

from benchmarks.environments import cache_folder, locked, node_environment, python_environment
from benchmarks.table import BenchmarkError, Contestant

__all__ = ["PROGRAMS", "plotting_python", "prepare"]

PYTHON_PEERS: Final = {"mcp": ("mcp==2.3.0",), "fastmcp": ("fastmcp==4.2.3",)}
HTTP_SERVER: Final = ("uvicorn", "uvloop", "httptools")
"""What serves every Python contestant over HTTP, in the versions that are installed beside mcpcore."""

NPM_PEER: Final = (
    "@modelcontextprotocol/server@2.3.1",
    "@modelcontextprotocol/client@2.3.1",
    "@modelcontextprotocol/node@2.1.1",
    "zod@4.6.7",
)
PLOTTING: Final = ("matplotlib==3.11.2",)

PROGRAMS: Final = Path(__file__).parent / "contestants"
"""The programs. The kinds that rows ask for, and what has to be added to their arguments:

- ``stdio``: a server on its standard streams. TOOLS is 0 for the benchmark's tools, or a number of tools that all add.
- ``http``: the same server on a port: TOOLS {stateless|sessions} {json|default} WORKERS PORT. WORKERS is 1.
- ``workers``: the same where WORKERS may be more.
- ``listen``: the same where ``subscriptions/listen`` is served.
- ``client``: calls a server on pipes and prints a report: {legacy|modern} WINDOW SECONDS SERVER…
- ``http client``: the same over HTTP: {legacy|modern} WINDOW SECONDS URL.
- ``memory``: the same with a server in its own process: {legacy|modern} WINDOW SECONDS.
- ``import``: prints the seconds that importing the server's class took.
"""

IMPORTS: Final = {
    "mcpcore": "from mcpcore import Server",
    "mcp": "from mcp.server.mcpserver import MCPServer",
    "fastmcp": "from fastmcp import FastMCP",
    "bare": "import asyncio, msgspec",
}
CLIENT_TARGETS: Final = {"client": "stdio", "memory": "memory", "http client": "http"}
LISTENING: Final = ("mcpcore", "mcp", "bare")
"""The Python contestants that serve ``subscriptions/listen``."""

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
    # Folders of the benchmark's own: the tests want the same packages with other ones beside them.
    folder = cache / f"benchmark-{name}"
    if name == "typescript":
        return typescript(folder)
    own = own_packages()
    if name in PYTHON_PEERS:
        http_server = [f"{package}=={own[package]}" for package in HTTP_SERVER]
        packages = python_environment(folder, [*PYTHON_PEERS[name], *http_server])
        python = str(folder / "bin" / "python")
    else:
        packages, python = own, sys.executable
    server = (python, str(PROGRAMS / f"{name}_server.py"))
    kinds = ("stdio", "http", "workers", "listen") if name in LISTENING else ("stdio", "http", "workers")
    programs: dict[str, tuple[str, ...]] = dict.fromkeys(kinds, server)
    programs["import"] = (python, "-c", PYTHON_PROBE.format(IMPORTS[name]))
    client = PROGRAMS / f"{name}_client.py"
    if client.exists():
        programs |= {target: (python, str(client), argument) for target, argument in CLIENT_TARGETS.items()}
    return Contestant(name, packages["msgspec" if name == "bare" else name], programs, packages)


def own_packages() -> dict[str, str]:
    wanted = ("mcpcore", "anyio", "msgspec", "jsonschema-rs", *HTTP_SERVER)
    try:
        return {name: metadata.version(name) for name in wanted}
    except metadata.PackageNotFoundError as error:
        raise BenchmarkError(
            f"{sys.executable} lacks {error.name}; install the working tree: pip install -e '.[test]'"
        ) from error


def typescript(folder: Path) -> Contestant:
    packages = node_environment(folder, NPM_PEER)
    # Node looks for packages beside the importing file, so the programs have to be there.
    server, client, probe = (folder / f"{program}.mjs" for program in ("server", "client", "probe"))
    shutil.copyfile(PROGRAMS / "typescript_server.mjs", server)
    shutil.copyfile(PROGRAMS / "typescript_client.mjs", client)
    probe.write_text(NODE_PROBE)
    return Contestant(
        "typescript",
        packages["@modelcontextprotocol/server"],
        {
            **dict.fromkeys(("stdio", "http", "listen"), ("node", str(server))),
            "client": ("node", str(client), "stdio"),
            "http client": ("node", str(client), "http"),
            "import": ("node", str(probe)),
        },
        packages,
    )
