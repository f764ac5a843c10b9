"""What a client can be pointed at."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from mcpcore.abc import Channel, ClientTransport
from mcpcore.runtime.background import Background
from mcpcore.transports.memory import memory_pair

if TYPE_CHECKING:
    from mcpcore.runtime.server import Server

__all__ = ["InMemory", "transport_for"]


class InMemory:
    """Connects to a `Server` object in this process."""

    def __init__(self, server: "Server") -> None:
        self._server = server

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Channel]:
        """Serve one end of a pair of channels and hand out the other."""
        near, far = memory_pair()
        background = Background()
        async with self._server.running():
            background.start(lambda: self._server.serve_channel(far))
            try:
                yield near
            finally:
                await near.aclose()
                await background.stop()


def transport_for(target: Any) -> ClientTransport:
    """Return the transport that reaches ``target``.

    Raises:
        TypeError: It is nothing that a client can connect to.
    """
    if hasattr(target, "serve_channel"):
        return InMemory(target)
    if hasattr(target, "open"):
        transport: ClientTransport = target
        return transport
    if isinstance(target, str) and target.startswith(("http://", "https://")):
        raise TypeError(f"{target}: this version of mcpcore has no HTTP transport; use stdio(…) or a Server object")
    raise TypeError(f"cannot connect to {target!r}: give a Server, stdio('command', …) or a transport with open()")
