"""One HTTP exchange as a channel: the body in, the response out."""

import anyio

from mcpcore.abc import ChannelInfo
from mcpcore.protocol.messages import Incoming, Outgoing
from mcpcore.transports.http.requests import Receive
from mcpcore.transports.http.stream import Stream

__all__ = ["ExchangeChannel", "wait_for_disconnect"]


class ExchangeChannel:
    """The channel of one POST.

    Args:
        info: What it is.
        message: The body.
        stream: The response.
        receive: The ASGI application's; tells when the client goes.
        silence: Seconds of silence after which a comment keeps the response alive.
    """

    def __init__(self, info: ChannelInfo, message: Incoming, stream: Stream, receive: Receive, silence: float) -> None:
        self.info = info
        self._message: Incoming | None = message
        self._stream = stream
        self._receive = receive
        self._silence = silence

    async def receive(self) -> list[Incoming]:
        """Return the body; asked again, wait until the client goes or the response is complete."""
        if self._message is not None:
            message, self._message = self._message, None
            return [message]
        await wait_for_disconnect(self._receive, self._stream, self._silence)
        if self._stream.is_gone:
            raise anyio.BrokenResourceError
        raise anyio.EndOfStream

    async def send(self, messages: list[Outgoing]) -> None:
        """Write to the response."""
        for message in messages:
            await self._stream.write(message)

    async def aclose(self) -> None:
        """End the response."""
        await self._stream.close()


async def wait_for_disconnect(receive: Receive, stream: Stream, silence: float) -> None:
    """Wait until the client has gone or the response is complete; keep a silent response alive meanwhile."""
    with anyio.CancelScope() as scope:
        stream.on_complete = scope.cancel
        if stream.is_complete:
            return
        while True:
            with anyio.move_on_after(silence) as quiet:
                while (await receive())["type"] != "http.disconnect":
                    pass
            if not quiet.cancelled_caught:
                if not stream.is_complete:
                    stream.is_gone = True
                return
            await stream.keep_alive()
