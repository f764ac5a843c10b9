"""One HTTP exchange as a channel: the body in, the response out."""

from collections.abc import Callable

import anyio

from mcpcore.abc import ChannelInfo
from mcpcore.protocol.messages import Incoming, Outgoing
from mcpcore.transports.http.response import Receive, Response

__all__ = ["ExchangeChannel"]


class ExchangeChannel:
    """The channel of one POST. See `OneShotChannel`.

    Args:
        info: What it is.
        message: The body.
        response: The response.
        receive: The ASGI application's; tells when the client goes.
        silence: Seconds of silence after which a comment keeps the response alive.
        on_loss: Called when the client has gone before the answer.
    """

    def __init__(
        self,
        info: ChannelInfo,
        message: Incoming,
        response: Response,
        receive: Receive,
        silence: float,
        on_loss: Callable[[], None] = lambda: None,
    ) -> None:
        self.info = info
        self.on_stop: Callable[[], None] = lambda: None
        self._message: Incoming | None = message
        self._response = response
        self._receive = receive
        self._silence = silence
        self._on_loss = on_loss

    async def receive(self) -> list[Incoming]:
        """Return the body; asked again, wait until the client goes or the response is complete."""
        if self._message is not None:
            message, self._message = self._message, None
            return [message]
        await self._response.watch(self._receive, self._silence)
        if self._response.is_lost:
            self._on_loss()
            raise anyio.BrokenResourceError
        raise anyio.EndOfStream

    def put(self, messages: list[Outgoing]) -> None:
        """Add to the response."""
        for message in messages:
            self._response.put(message)
        self._response.wake()

    async def send(self, messages: list[Outgoing]) -> None:
        """Write to the response."""
        for message in messages:
            self._response.put(message)
        await self._response.flush()

    async def aclose(self) -> None:
        """End the response."""
        self._response.end()
        await self._response.flush()

    def stop(self) -> None:
        """The server stops: tell the runtime to come to an end."""
        self.on_stop()

    def abandon(self) -> None:
        """The server does not wait any longer: end the response as it is."""
        self._response.abandon()
