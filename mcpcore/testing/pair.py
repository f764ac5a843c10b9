"""A client's and a server's core with a wire between them: no event loop, no bytes of a transport, nothing waits."""

from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct

from mcpcore.protocol.client import ClientConfig, ClientConnection
from mcpcore.protocol.events import Event, ServerFacts
from mcpcore.protocol.messages import Incoming, Kind, Outgoing
from mcpcore.protocol.server import ServerConfig, ServerConnection
from mcpcore.types.lifecycle import Implementation, ServerCapabilities

__all__ = ["Events", "Pair"]

Direction = Literal["to_server", "to_client"]


class Events(Struct, frozen=True):
    """What messages meant to each side, in order."""

    server: list[Event]
    client: list[Event]


class Pair:
    """Two connections and what is on its way between them.

    The test plays the application of both sides: it reads events and calls ``send_*`` on ``client`` and ``server``.

    Args:
        client: The client's configuration.
        server: The server's configuration.

    Attributes:
        client: The client's core.
        server: The server's core.
        to_server: Messages that the client has sent and the server has not received.
        to_client: The same the other way.
    """

    def __init__(self, client: ClientConfig | None = None, server: ServerConfig | None = None) -> None:
        self.client = ClientConnection(client or ClientConfig(Implementation("client", "1")))
        self.server = ServerConnection(server or ServerConfig(Implementation("server", "1"), ServerCapabilities()))
        self.to_server: list[Outgoing] = []
        self.to_client: list[Outgoing] = []

    def connect(self) -> ServerFacts:
        """Negotiate, and return what the client learned about the server.

        Raises:
            AssertionError: They have no revision in common.
        """
        self.client.negotiate()
        events = self.shuttle()
        assert self.client.server is not None, f"negotiation failed: {events.client}"
        return self.client.server

    def shuttle(self) -> Events:
        """Carry messages to and fro until neither side has anything to say."""
        events = Events([], [])
        while self.pick_up():
            events.server.extend(self.deliver("to_server"))
            events.client.extend(self.deliver("to_client"))
        return events

    def pick_up(self) -> bool:
        """Put what both sides have queued on the wire. Tell whether anything is on it."""
        self.to_server += self.client.messages_to_send()
        self.to_client += self.server.messages_to_send()
        return bool(self.to_server or self.to_client)

    def deliver(self, direction: Direction) -> list[Event]:
        """Hand what is on the wire in one direction to its receiver, and return what it meant there."""
        receiver = self.server if direction == "to_server" else self.client
        messages = self._take(direction)
        received = [Incoming(message.data) for message in messages if message.kind is not Kind.END]
        return [event for message in received for event in receiver.receive(message)]

    def drop(self, direction: Direction, lost: Callable[[Outgoing], bool] = lambda message: True) -> list[Outgoing]:
        """Lose messages on the wire.

        Args:
            direction: Where.
            lost: Chooses; all by default.

        Returns:
            What was lost.
        """
        self.pick_up()
        messages = self._take(direction)
        kept: list[Outgoing] = []
        dropped: list[Outgoing] = []
        for message in messages:
            (dropped if lost(message) else kept).append(message)
        self._wire(direction).extend(kept)
        return dropped

    def reorder(self, direction: Direction, order: Sequence[int]) -> None:
        """Bring what is on the wire into another order, as transports with several streams may.

        Args:
            direction: Where.
            order: The present positions, in the order to come.

        Raises:
            ValueError: ``order`` does not name each position once.
        """
        self.pick_up()
        messages = self._wire(direction)
        if sorted(order) != list(range(len(messages))):
            raise ValueError(f"order={list(order)}: name each position below {len(messages)} once")
        messages[:] = [messages[position] for position in order]

    def _take(self, direction: Direction) -> list[Outgoing]:
        wire = self._wire(direction)
        messages = wire.copy()
        wire.clear()
        return messages

    def _wire(self, direction: Direction) -> list[Outgoing]:
        return self.to_server if direction == "to_server" else self.to_client
