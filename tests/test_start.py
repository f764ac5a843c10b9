"""What the start of a server must not pay for: a host waits for it, each time."""

import subprocess
import sys

_START = """
import sys, asyncio, anyio._backends._asyncio, msgspec
before = set(sys.modules)
from mcpcore import Server
server = Server("start")
@server.tool
async def add(a: int, b: int = 1) -> int:
    "Add."
    return a + b
import mcpcore.transports.stdio
print(*sorted(name for name in set(sys.modules) - before if not name.startswith(("mcpcore", "anyio", "__editable__"))))
"""


def test_a_server_starts_with_no_module_that_asyncio_anyio_and_msgspec_do_not_load() -> None:
    done = subprocess.run([sys.executable, "-c", _START], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == []
