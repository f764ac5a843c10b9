"""Newline framing on any stream of bytes, and with it Unix and TCP sockets.

The wire format of stdio "works unchanged over Unix domain sockets, TCP connections, or any similar channel"
(2026-07-28, basic/transports/stdio). There is no authentication: who can connect can call.
"""

import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import anyio

from mcpcore.abc import Channel, ChannelInfo
from mcpcore.exceptions import RemoteProtocolError, TransportError
from mcpcore.protocol.framing import MAX_MESSAGE_SIZE, LineDecoder, encode_lines
from mcpcore.protocol.messages import Incoming, Outgoing, RequestScope

if TYPE_CHECKING:
    from anyio.abc import ByteStream, SocketStream

__all__ = [
    "LineChannel",
    "TCPClientTransport",
    "TCPServerTransport",
    "UnixClientTransport",
    "UnixServerTransport",
    "to_incoming",
    "to_lines",
]

_READ_SIZE = 64 * 1024


def to_incoming(found: list[bytes | RemoteProtocolError], scope: RequestScope) -> list[Incoming]:
    """Turn what a `LineDecoder` found into messages; a line that is none becomes the problem to answer."""
    return [
        Incoming(line, None, None, scope) if isinstance(line, bytes) else Incoming(b"", None, None, scope, line)
        for line in found
    ]


def to_lines(messages: list[Outgoing]) -> bytes:
    """Return the bytes of one write that sends all of ``messages``; a mere end of a request sends nothing."""
    return encode_lines([message.data for message in messages if message.data])


class LineChannel:
    """A channel on a stream of bytes: a message is a line.

    Args:
        stream: Any `anyio.abc.ByteStream`. The channel owns it.
        max_message_size: Bytes of one message received; a longer one is reported and skipped.
        transport: The name under which handlers and logs see the binding.
        peer: Address of the other end, for logs.
    """

    def __init__(
        self,
        stream: "ByteStream",
        *,
        max_message_size: int = MAX_MESSAGE_SIZE,
        transport: str = "lines",
        peer: str | None = None,
    ) -> None:
        self.info = ChannelInfo(transport)
        self._stream = stream
        self._decoder = LineDecoder(max_message_size)
        self._scope = RequestScope(transport, peer=peer)
        self._at_eof = False
        self._closed = False

    async def receive(self) -> list[Incoming]:
        """See `Channel.receive`. One read, all lines in it. Cancellation loses nothing."""
        while not self._closed:
            if self._at_eof:
                raise anyio.EndOfStream
            try:
                found = self._decoder.receive(await self._stream.receive(_READ_SIZE))
            except anyio.EndOfStream:
                found = self._decoder.receive_eof()
                self._at_eof = True
            if found:
                return to_incoming(found, self._scope)
        raise anyio.ClosedResourceError

    async def send(self, messages: list[Outgoing]) -> None:
        """See `Channel.send`. One write; cancelled, it may have written a part, so only close the channel then."""
        if self._closed:
            raise anyio.ClosedResourceError
        if data := to_lines(messages):
            await self._stream.send(data)

    async def aclose(self) -> None:
        """See `Channel.aclose`."""
        self._closed = True
        await self._stream.aclose()


# -- sockets -----------------------------------------------------------------------------------------------------


class UnixServerTransport:
    """Serves one channel for each connection to a Unix socket.

    Args:
        path: Where to create the socket. A socket left there is replaced; it is removed at the end.
        mode: Permissions of the socket: who can connect. By default the same user.
        max_message_size: See `LineChannel`.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, mode: int = 0o600, max_message_size: int = MAX_MESSAGE_SIZE
    ) -> None:
        self._path = path
        self._mode = mode
        self._max_message_size = max_message_size

    async def serve(
        self,
        handler: Callable[[Channel], Awaitable[None]],
        *,
        task_status: Any = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """See `ServerTransport.serve`. Started with the path once clients can connect."""

        async def accept(stream: "SocketStream") -> None:
            async with stream:
                await handler(LineChannel(stream, max_message_size=self._max_message_size, transport="unix"))

        listener = await anyio.create_unix_listener(self._path, mode=self._mode)
        try:
            async with listener:
                task_status.started(os.fspath(self._path))
                await listener.serve(accept)
        finally:
            try:
                os.unlink(self._path)
            except OSError:
                pass  # somebody else has removed it


class UnixClientTransport:
    """Connects to a Unix socket.

    Args:
        path: The server's socket.
        max_message_size: See `LineChannel`.
    """

    def __init__(self, path: str | os.PathLike[str], *, max_message_size: int = MAX_MESSAGE_SIZE) -> None:
        self._path = path
        self._max_message_size = max_message_size

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Channel]:
        """See `ClientTransport.open`.

        Raises:
            TransportError: Nobody listens there.
        """
        try:
            stream = await anyio.connect_unix(self._path)
        except OSError as error:
            raise TransportError(f"cannot connect to the Unix socket {os.fspath(self._path)!r}: {error}") from error
        async with stream:
            yield LineChannel(stream, max_message_size=self._max_message_size, transport="unix")


class TCPServerTransport:
    """Serves one channel for each TCP connection.

    Args:
        host: Address to listen on. Other machines can connect only to one that is not of the loopback network.
        port: Port to listen on; 0 lets the system choose.
        max_message_size: See `LineChannel`.
    """

    def __init__(self, host: str = "127.0.0.1", port: int = 0, *, max_message_size: int = MAX_MESSAGE_SIZE) -> None:
        self._host = host
        self._port = port
        self._max_message_size = max_message_size

    async def serve(
        self,
        handler: Callable[[Channel], Awaitable[None]],
        *,
        task_status: Any = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """See `ServerTransport.serve`. Started with the port once clients can connect."""
        from anyio.abc import SocketAttribute

        async def accept(stream: "SocketStream") -> None:
            host, port, *_ = cast(tuple[Any, ...], stream.extra(SocketAttribute.remote_address))
            peer = f"{host}:{port}"
            async with stream:
                await handler(LineChannel(stream, max_message_size=self._max_message_size, transport="tcp", peer=peer))

        async with await anyio.create_tcp_listener(local_host=self._host, local_port=self._port) as listener:
            task_status.started(listener.extra(SocketAttribute.local_port))
            await listener.serve(accept)


class TCPClientTransport:
    """Connects to a TCP port.

    Args:
        host: Name or address of the server.
        port: Its port.
        max_message_size: See `LineChannel`.
    """

    def __init__(self, host: str, port: int, *, max_message_size: int = MAX_MESSAGE_SIZE) -> None:
        self._host = host
        self._port = port
        self._max_message_size = max_message_size

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Channel]:
        """See `ClientTransport.open`.

        Raises:
            TransportError: Nobody listens there.
        """
        try:
            stream = await anyio.connect_tcp(self._host, self._port)
        except OSError as error:
            raise TransportError(f"cannot connect to {self._host}:{self._port}: {error}") from error
        async with stream:
            peer = f"{self._host}:{self._port}"
            yield LineChannel(stream, max_message_size=self._max_message_size, transport="tcp", peer=peer)
