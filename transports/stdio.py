"""The channel that both ends of stdio share: lines on two file descriptors.

What starts and ends it is different: see `mcpcore.transports.stdio_server` and `mcpcore.transports.stdio_client`.
"""

from typing import TYPE_CHECKING, Final

import anyio
import anyio.lowlevel

from mcpcore._wakeup import Wakeup, asyncio_loop
from mcpcore.abc import ChannelInfo
from mcpcore.protocol.framing import MAX_MESSAGE_SIZE, LineDecoder
from mcpcore.protocol.messages import Incoming, Outgoing, RequestScope
from mcpcore.transports._descriptors import PIPE_CAPACITY, Input, Output
from mcpcore.transports.lines import to_incoming, to_lines

if TYPE_CHECKING:
    import asyncio

__all__ = ["StdioChannel"]

_READ_SIZE: Final = 64 * 1024  # what a pipe holds; memory beyond 128 KiB would be mapped anew for each read
_READ_AHEAD: Final = 1024 * 1024  # bytes read before anybody asks for them
_LARGE: Final = 64 * 1024  # bytes of a message from which on a second write costs less than a copy


class StdioChannel:
    """A channel that reads lines from one descriptor and writes them to another.

    Args:
        input: Where messages come from.
        output: Where messages go to.
        max_message_size: Bytes of one message received; a longer one is reported and skipped.
        transport: The name under which handlers and logs see the binding.
    """

    def __init__(
        self, input: Input, output: Output, *, max_message_size: int = MAX_MESSAGE_SIZE, transport: str = "stdio"
    ) -> None:
        self.info = ChannelInfo(transport)
        self._input = input
        self._output = output
        self._decoder = LineDecoder(max_message_size)
        self._scope = RequestScope(transport)
        self._arrived: list[Incoming] = []
        self._arrived_bytes = 0
        self._at_eof = False
        self._error: OSError | None = None
        self._closed = False
        self._arrival = Wakeup()
        self._loop: asyncio.AbstractEventLoop | None = asyncio_loop()
        self._watched = False

    async def receive(self) -> list[Incoming]:
        """See `Channel.receive`. Cancellation loses nothing."""
        while not self._arrived:
            if self._closed:
                raise anyio.ClosedResourceError
            if self._at_eof:
                raise anyio.EndOfStream
            if self._error is not None:
                raise anyio.BrokenResourceError from self._error
            await self._wait()
        messages, self._arrived = self._arrived, []
        self._arrived_bytes = 0
        return messages

    async def send(self, messages: list[Outgoing]) -> None:
        """See `Channel.send`. Cancelled, it may have written a part, so only close the channel then."""
        if self._closed:
            raise anyio.ClosedResourceError
        large = len(messages) == 1 and len(messages[0].data) >= _LARGE
        try:
            if large:
                await self._output.send_all(messages[0].data)
            if data := b"\n" if large else to_lines(messages):
                await self._output.send_all(data)
        except OSError as error:
            raise anyio.BrokenResourceError from error

    async def aclose(self) -> None:
        """See `Channel.aclose`. Does not wait."""
        if not self._closed:
            self._closed = True
            self._arrived = []
            self._unwatch()
            self._input.close()
            self._output.close()

    def finish(self) -> None:
        """Take what is there for all that will come, although somebody else may hold the other end open."""
        if self._closed:
            return
        self._read_all()
        if not self._at_eof:
            self._at_eof = True
            self._arrived += to_incoming(self._decoder.receive_eof(), self._scope)
        self._unwatch()
        self._input.wake()

    async def _wait(self) -> None:
        """Wait until something has been read, or the channel ends."""
        if not self._input.is_pollable:
            await anyio.lowlevel.checkpoint()
        elif self._watched or self._watch():
            await self._arrival.wait()
            return
        else:
            try:
                await anyio.wait_readable(self._input.fd)
            except anyio.ClosedResourceError:
                return
        if not self._closed and not self._at_eof:
            self._read()

    # On asyncio the descriptor is watched for as long as the channel lives, and read before anybody asks. Asking the
    # loop anew before each read, as `anyio.wait_readable` has to, costs more than all the rest of this module.

    def _watch(self) -> bool:
        if self._loop is None:
            return False
        try:
            self._loop.add_reader(self._input.fd, self._on_readable)
        except NotImplementedError:  # the proactor loop of Windows
            self._loop = None
            return False
        self._watched = True
        return True

    def _unwatch(self) -> None:
        if self._watched and self._loop is not None:
            self._loop.remove_reader(self._input.fd)
            self._watched = False
        self._arrival.wake()

    def _on_readable(self) -> None:
        self._read_all()
        if self._at_eof or self._error is not None or (self._arrived and self._arrived_bytes > _READ_AHEAD):
            self._unwatch()
        elif self._arrived:
            self._arrival.wake()

    def _read_all(self) -> None:
        """Read what there is, without waiting, but no more than a pipe holds."""
        for _ in range(PIPE_CAPACITY // _READ_SIZE):
            if not self._read():
                return

    def _read(self) -> bool:
        """Read once, without waiting. Returns whether another read may find more."""
        try:
            data = self._input.read(_READ_SIZE)
        except BlockingIOError:
            return False
        except OSError as error:
            self._error = error
            return False
        if data:
            found = self._decoder.receive(data)
        else:
            found = self._decoder.receive_eof()
            self._at_eof = True
        if found:
            self._arrived += to_incoming(found, self._scope)
        self._arrived_bytes += len(data)
        return len(data) == _READ_SIZE
