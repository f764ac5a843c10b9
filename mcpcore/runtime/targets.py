"""What a client can be pointed at."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from mcpcore.abc import Channel, ClientTransport
from mcpcore.protocol.framing import MAX_MESSAGE_SIZE
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
    async def open(self) -> AsyncGenerator[Channel]:
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


def transport_for(target: Any, http_client: Any = None, max_message_size: int = MAX_MESSAGE_SIZE) -> ClientTransport:
    """Return the transport that reaches ``target``.

    Args:
        target: See `Client`.
        http_client: For a URL: what to send with.
        max_message_size: For a URL: bytes of one message received.

    Raises:
        TypeError: It is nothing that a client can connect to, or nothing that ``http_client`` could be used for.
        ValueError: It is a broken URL.
    """
    if isinstance(target, str) and target.startswith(("http://", "https://")):
        from mcpcore.transports.http.client import HTTPClientTransport  # with httpx, which nobody else needs

        return HTTPClientTransport(target, http_client=http_client, max_message_size=max_message_size)
    if http_client is not None:
        raise TypeError(f"http_client= is for URLs, and the target is {target!r}")
    known: Any = target
    if hasattr(known, "serve_channel"):
        return InMemory(known)
    if hasattr(known, "open"):
        transport: ClientTransport = known
        return transport
    raise TypeError(
        f"cannot connect to {target!r}: give a Server, stdio('command', …), an http(s) URL or a transport with open()"
    )
