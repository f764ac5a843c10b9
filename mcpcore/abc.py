"""The interface of transports: three small protocols, structural, with no base class to inherit.

A transport moves whole messages and knows nothing about them. Whatever routing needs, an error code, the stream
of a request, a header, travels as data on `Incoming` and `Outgoing`. Verbs and failures are anyio's.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from msgspec import Struct

from mcpcore.protocol.messages import Incoming, Outgoing

__all__ = ["Channel", "ChannelInfo", "ClientTransport", "OneShotChannel", "Outlet", "ServerTransport", "SessionSlot"]


class Outlet(Protocol):
    """Where messages go that belong to several channels, by their tags. Any task may use it at any time."""

    def put(self, messages: list[Outgoing]) -> None:
        """Take ``messages``, in order, to be written soon. Never waits."""
        ...

    async def send(self, messages: list[Outgoing]) -> None:
        """Take ``messages``, in order and before anything else happens, and wait until they are written."""
        ...


class SessionSlot(Outlet, Protocol):
    """What several channels of one session share, where each message comes on a channel of its own (legacy HTTP).

    The transport makes one for each session and owns its life; the runtime keeps what must outlive a channel in ``state``.
    """

    state: Any


class ChannelInfo(Struct, frozen=True):
    """What the driver has to know about a channel, read once.

    Args:
        transport: A short name for logs and telemetry: ``stdio``, ``http``, ``sse``, ``memory``, ``lines``.
        one_shot: One message in, its answer out, then the channel closes (an HTTP exchange).
        session_version: The legacy revision this channel is born with; None where ``initialize`` decides.
        session: The session that a one-shot channel belongs to; None where each stands for itself.
        back_channel: Requests can be sent to the peer while one of its own is open.
        handshake_only: Legacy revisions only: the binding is older than the others.
        disconnect_cancels: The loss of the channel withdraws its request. Otherwise the handler goes on.
        mirrors: Modern requests want header fields that mirror their body, as `Outgoing.headers`.
    """

    transport: str
    one_shot: bool = False
    session_version: str | None = None
    session: SessionSlot | None = None
    back_channel: bool = True
    handshake_only: bool = False
    disconnect_cancels: bool = True
    mirrors: bool = False


class Channel(Protocol):
    """A flow of whole messages to and from one peer.

    Promised to implementers: `receive` is never called from two tasks at once, nor is `send`; `send` is never
    cancelled except to close. Asked of them: messages whole and in order; half-close and breakage told apart;
    `aclose` idempotent, and it unblocks `receive`.
    """

    @property
    def info(self) -> ChannelInfo: ...

    async def receive(self) -> list[Incoming]:
        """Wait for messages and return all that are there, never an empty list.

        Raises:
            anyio.EndOfStream: No more input will come; finish what is open.
            anyio.BrokenResourceError: The peer is gone.
            anyio.ClosedResourceError: This side has closed the channel.
        """
        ...

    async def send(self, messages: list[Outgoing]) -> None:
        """Write all of ``messages`` in order.

        Raises:
            anyio.BrokenResourceError: The peer is gone.
            anyio.ClosedResourceError: This side has closed the channel.
        """
        ...

    async def aclose(self) -> None:
        """Close both directions. Safe to call twice, and while `receive` waits."""
        ...


class OneShotChannel(Channel, Outlet, Protocol):
    """A channel with ``info.one_shot``.

    `receive` returns the one message. Asked again, it waits: `anyio.EndOfStream` says that all has been answered, and
    `anyio.BrokenResourceError` that the peer is gone, or that the transport does not wait any longer.
    """

    on_stop: Callable[[], None]
    """Set by the driver; the transport calls it when it comes to an end, so that what is open is finished."""


class ClientTransport(Protocol):
    """Opens channels to a server."""

    def open(self) -> AbstractAsyncContextManager[Channel]:
        """Connect; the channel is closed when the context ends."""
        ...


class ServerTransport(Protocol):
    """Accepts channels from clients."""

    async def serve(self, handler: Callable[[Channel], Awaitable[None]], *, task_status: Any = ...) -> None:
        """Call ``handler`` for each channel, concurrently, until cancelled or no more can come."""
        ...
