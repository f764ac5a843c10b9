"""Other implementations at pinned versions, installed into the cache that the benchmarks use, too.

A failed installation fails the test that wanted it, with the installer's own words.
"""

from typing import Final

from benchmarks.environments import cache_folder, locked, node_environment, python_environment

__all__ = ["official_sdk", "python_server", "typescript_server"]

OFFICIAL_SDK: Final = {"2": ("mcp==2.3.0",), "1": ("mcp==1.30.0",)}
PYTHON_SERVERS: Final = ("mcp-server-time==2026.10.19", "mcp-server-git==2026.10.19")
TYPESCRIPT_SERVERS: Final = (
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
)


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
