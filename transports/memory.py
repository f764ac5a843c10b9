"""Two channels joined in one process: no bytes are framed, and nothing waits but for the other side."""

import anyio

from mcpcore._wakeup import Wakeup
from mcpcore.abc import ChannelInfo
from mcpcore.protocol.messages import Incoming, Outgoing, RequestScope

__all__ = ["MemoryChannel", "memory_pair"]

_MAX_MESSAGES = 1024
_MAX_BYTES = 4 * 1024 * 1024
_SCOPE = RequestScope("memory")


class MemoryChannel:
    """One end of a `memory_pair`. Both ends belong to the same event loop.

    Args:
        peer: The other end, where it exists already.
    """

    info = ChannelInfo("memory")

    def __init__(self, peer: "MemoryChannel | None" = None) -> None:
        self._peer = self
        if peer is not None:
            self._peer, peer._peer = peer, self
        self._inbox: list[Incoming] = []
        self._inbox_bytes = 0
        self._closed = False
        self._arrival = Wakeup()  # this end waits in `receive`
        self._space = Wakeup()  # this end waits in `send`

    async def receive(self) -> list[Incoming]:
        """See `Channel.receive`. What the peer sent before it closed is still received."""
        while True:
            if self._closed:
                raise anyio.ClosedResourceError
            if self._inbox:
                messages, self._inbox = self._inbox, []
                self._inbox_bytes = 0
                self._peer._space.wake()
                return messages
            if self._peer._closed:
                raise anyio.EndOfStream
            await self._arrival.wait()

    async def send(self, messages: list[Outgoing]) -> None:
        """See `Channel.send`. Waits, after the messages were handed over, while the peer is far behind."""
        peer = self._peer
        self._check_open()
        for message in messages:
            if message.data:
                peer._inbox.append(Incoming(message.data, None, None, _SCOPE))
                peer._inbox_bytes += len(message.data)
        peer._arrival.wake()
        while len(peer._inbox) > _MAX_MESSAGES or peer._inbox_bytes > _MAX_BYTES:
            await self._space.wait()
            self._check_open()

    async def aclose(self) -> None:
        """See `Channel.aclose`. What this end has not received is dropped."""
        self._closed = True
        self._inbox, self._inbox_bytes = [], 0
        for end in (self, self._peer):
            end._arrival.wake()
            end._space.wake()

    def _check_open(self) -> None:
        if self._closed:
            raise anyio.ClosedResourceError
        if self._peer._closed:
            raise anyio.BrokenResourceError


def memory_pair() -> tuple[MemoryChannel, MemoryChannel]:
    """Return two channels; what is sent into one is received from the other."""
    one = MemoryChannel()
    return one, MemoryChannel(one)
