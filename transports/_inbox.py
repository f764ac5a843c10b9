"""Messages from several tasks for the one that receives."""

import anyio

from mcpcore.exceptions import MCPCoreError
from mcpcore.protocol.messages import Incoming

__all__ = ["Inbox"]

_MAX_MESSAGES = 1024


class Inbox:
    """What a channel with several sources receives from.

    ``failure`` is None until `fail` has been called, and then the reason.
    """

    def __init__(self) -> None:
        self._put, self._take = anyio.create_memory_object_stream[Incoming](_MAX_MESSAGES)
        self._closed = False
        self.failure: MCPCoreError | None = None

    async def put(self, message: Incoming) -> None:
        """Add a message; wait while the receiver is far behind. After the end it is dropped."""
        try:
            await self._put.send(message)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            pass

    async def receive(self) -> list[Incoming]:
        """See `mcpcore.abc.Channel.receive`."""
        self.check()
        try:
            messages = [await self._take.receive()]
        except anyio.EndOfStream:
            self.check(drained=True)
            raise
        try:
            while True:
                messages.append(self._take.receive_nowait())
        except (anyio.WouldBlock, anyio.EndOfStream):
            return messages

    def check(self, *, drained: bool = False) -> None:
        """Raise what a closed channel raises, or, once its messages are ``drained``, a broken one."""
        if self._closed:
            raise anyio.ClosedResourceError
        if drained and self.failure is not None:
            raise anyio.BrokenResourceError from self.failure

    def fail(self, error: MCPCoreError) -> None:
        """No more will come, because of ``error``. What is there can still be received."""
        self.failure = self.failure or error
        self._put.close()

    def close(self) -> None:
        """Drop everything and wake the receiver."""
        self._closed = True
        self._put.close()
        self._take.close()
