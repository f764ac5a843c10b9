"""Fewer writes under uvicorn: a response that is whole goes out in one piece, at the end of a turn of the event loop.

uvicorn writes the head of a response when the application sends it, and the body when that comes. Each write is a system
call that takes the bytes through the whole of TCP, and each may wake the client. One write for both, when all requests
that had arrived have been worked on, makes small calls a quarter faster. Parts of a stream are written as they come: what
comes next may be far off.
"""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import asyncio

    import uvicorn

__all__ = ["join_writes"]

_MOST: Final = 64 * 1024  # bytes that are held back; the transport tells the application to wait, and must know of them


def join_writes(config: "uvicorn.Config") -> None:
    """Have the servers of ``config`` join their writes. It is loaded by this."""
    config.load()
    protocol: Any = config.http_protocol_class

    class Joining(protocol):  # type: ignore[misc]  # which one it is depends on what is installed
        def connection_made(self, transport: "asyncio.Transport") -> None:
            protocol.connection_made(self, _Joined(transport, self.loop))

    config.http_protocol_class = Joining


class _Joined:
    """A transport that holds back what is written, no longer than until the event loop comes around."""

    def __init__(self, transport: "asyncio.Transport", loop: "asyncio.AbstractEventLoop") -> None:
        self._transport = transport
        self._loop = loop
        self._held: list[bytes] = []
        self._size = 0
        self._streams = False  # the response comes in chunks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not self._held:
            self._loop.call_soon(self._flush)
        self._held.append(data)
        self._size += len(data)
        if data.startswith(b"HTTP/"):
            self._streams = b"\r\ntransfer-encoding: chunked\r\n" in data.lower()
        elif self._streams or self._size > _MOST:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        held, size, self._held, self._size = self._held, self._size, [], 0
        if size and not self._transport.is_closing():
            self._transport.writelines(held)
