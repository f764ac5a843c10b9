"""Peers that are nothing but JSON messages on a channel, and a server behind lines on a pair of sockets."""

import itertools
import json
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import anyio.abc
import anyio.lowlevel
from anyio.abc import SocketStream

from mcpcore import Server
from mcpcore.abc import Channel
from mcpcore.protocol.messages import Kind, Outgoing
from mcpcore.transports.lines import LineChannel
from mcpcore.transports.memory import memory_pair

__all__ = ["MODERN", "Lines", "Peer", "Scripted", "connected", "socket_pair"]

MODERN: Final = "2026-07-28"


class Peer:
    """One end of a channel, message by message.

    Attributes:
        seen: Everything that has come, in order.
    """

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.seen: list[dict[str, Any]] = []
        self._inbox: list[dict[str, Any]] = []
        self._ids = itertools.count(1)

    async def send(self, message: Any) -> None:
        """Send one message, whatever it is."""
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        await self.channel.send([Outgoing(data, Kind.NOTIFICATION)])

    async def receive(self) -> dict[str, Any]:
        """Return the next message."""
        while not self._inbox:
            with anyio.fail_after(5):
                for incoming in await self.channel.receive():
                    message = json.loads(incoming.data)
                    self.seen.append(message)
                    self._inbox.append(message)
        return self._inbox.pop(0)

    async def start(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        era: str = MODERN,
        id: int | None = None,
        **meta: Any,
    ) -> int:
        """Send a request and return its id. Modern requests get the ``_meta`` that they need."""
        id = next(self._ids) if id is None else id
        given = dict(params or {})
        if era == MODERN:
            meta = {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": {"name": "peer", "version": "1.0"},
                "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "sampling": {}, "roots": {}},
            } | meta
        if meta:
            given["_meta"] = meta
        await self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": given})
        return id

    async def answer_to(self, id: int | str) -> dict[str, Any]:
        """Return the answer to request ``id``; what comes before it is in `seen`."""
        while (message := await self.receive()).get("id") != id or "method" in message:
            pass
        return message

    async def request(
        self, method: str, params: dict[str, Any] | None = None, *, era: str = MODERN, **meta: Any
    ) -> dict[str, Any]:
        """Send a request and return its answer."""
        return await self.answer_to(await self.start(method, params, era=era, **meta))

    async def call(
        self, name: str, arguments: dict[str, Any] | None = None, *, era: Any = MODERN, **meta: Any
    ) -> dict[str, Any]:
        """Call a tool and return the answer."""
        params = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
        return await self.request("tools/call", params, era=era, **meta)

    async def initialize(self, version: str = "2025-11-25", **capabilities: Any) -> dict[str, Any]:
        """Do the legacy handshake and return its result."""
        params = {
            "protocolVersion": version,
            "capabilities": capabilities,
            "clientInfo": {"name": "peer", "version": "1.0"},
        }
        answer = await self.request("initialize", params, era=version)
        await self.notify("notifications/initialized")
        result: dict[str, Any] = answer["result"]
        return result

    async def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send a notification."""
        await self.send({"jsonrpc": "2.0", "method": method, "params": params or {}})

    async def is_quiet(self) -> bool:
        """Tell whether nothing comes once everybody waits."""
        await anyio.wait_all_tasks_blocked()
        with anyio.move_on_after(0):
            await anyio.lowlevel.checkpoint()
        before = len(self._inbox)
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_cancel_when_blocked, scope)
                while True:
                    self._inbox.append(await self.receive())
        return len(self._inbox) == before


async def _cancel_when_blocked(scope: anyio.CancelScope) -> None:
    await anyio.wait_all_tasks_blocked()
    scope.cancel()


@asynccontextmanager
async def connected(server: Server) -> AsyncGenerator[Peer]:
    """Serve one end of a pair of channels in memory, and give the other."""
    near, far = memory_pair()
    async with server.running(), anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve_channel, far)
        try:
            yield Peer(near)
        finally:
            await near.aclose()
            tasks.cancel_scope.cancel()


class Scripted:
    """A client's transport whose other end the test plays.

    Args:
        play: Runs beside the client, with its end.
    """

    def __init__(self, play: Callable[[Peer], Any]) -> None:
        self._play = play

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Channel]:
        near, far = memory_pair()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._play, Peer(far))
            try:
                yield near
            finally:
                tasks.cancel_scope.cancel()


async def socket_pair() -> tuple[SocketStream, SocketStream]:
    """Return the two ends of a connection."""
    one, other = socket.socketpair()
    return await SocketStream.from_socket(one), await SocketStream.from_socket(other)


class Lines:
    """A client's transport to a server behind newline-framed sockets, as over stdio.

    Args:
        server: Served at the other end.
    """

    def __init__(self, server: Server) -> None:
        self._server = server

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Channel]:
        near, far = await socket_pair()
        async with self._server.running(), anyio.create_task_group() as tasks:
            tasks.start_soon(self._server.serve_channel, LineChannel(far))
            channel = LineChannel(near)
            try:
                yield channel
            finally:
                with anyio.CancelScope(shield=True):
                    await channel.aclose()
                tasks.cancel_scope.cancel()
