"""What a connection keeps for its handlers, beside the protocol's own state."""

import inspect
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

import anyio.from_thread
from anyio.lowlevel import EventLoopToken, current_token

from mcpcore.protocol.server import ServerConnection
from mcpcore.types._base import Object
from mcpcore.types.elicitation import ElicitationCompleteParams

if TYPE_CHECKING:
    from mcpcore.runtime.server import Server

__all__ = ["Session"]

logger = logging.getLogger("mcpcore.server")

T = TypeVar("T")


class Session:
    """One connection of a server, as long as it lasts.

    Args:
        server: The server that serves it.
        connection: The protocol's state.
        lifespan: What the server's lifespan yielded.
    """

    driver: Any  # a `Driver` or an `Exchange`; set by the server, which needs the session to make it

    def __init__(self, server: "Server", connection: ServerConnection, lifespan: Any) -> None:
        self.server = server
        self.connection = connection
        self.lifespan = lifespan
        self.state: dict[str, Any] = {}
        self._visits: dict[str, None] = {}  # ids, oldest first
        self._callbacks: list[Callable[[], Any]] = []
        self._thread = threading.get_ident()
        self._loop: EventLoopToken | None = None

    def note_loop(self) -> None:
        """Remember the event loop, for threads that anyio has not started. Called before they can know of the session."""
        if self._loop is None:
            self._loop = current_token()

    @property
    def is_on_loop(self) -> bool:
        """The caller runs on the thread of the event loop."""
        return threading.get_ident() == self._thread

    def on_loop(self, function: Callable[[], Any]) -> None:
        """Call ``function`` on the event loop, from whatever thread this is called in."""
        if self.is_on_loop:
            function()
        else:
            anyio.from_thread.run_sync(function, token=self._loop)

    def run_on_loop(self, function: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Await ``function()`` on the event loop, and block the calling thread meanwhile."""
        return anyio.from_thread.run(function, token=self._loop)

    def publish(self, method: str, params: Object) -> None:
        """Send a change notification, if the client wants it. Any thread may call this."""

        def send() -> None:
            self.connection.publish(method, params)
            self.driver.wake_writer()

        self.on_loop(send)

    def visits(self, elicitation_id: str) -> None:
        """Remember that the client was asked to send its user to a URL."""
        self._visits[elicitation_id] = None
        if len(self._visits) > self.server.limits.subscriptions:
            del self._visits[next(iter(self._visits))]

    def visited(self, elicitation_id: str) -> bool:
        """Tell the client that a visit is over, if it was this one that was asked. Any thread may call this."""
        if elicitation_id not in self._visits:
            return False
        del self._visits[elicitation_id]

        def send() -> None:
            params = ElicitationCompleteParams(elicitation_id)
            self.connection.send_notification("notifications/elicitation/complete", params)
            self.driver.wake_writer()

        self.on_loop(send)
        return True

    def on_disconnect(self, callback: Callable[[], Any]) -> None:
        """Call ``callback``, a plain function, when the client has gone away.

        Raises:
            TypeError: It is an async function, which nobody could wait for.
        """
        if inspect.iscoroutinefunction(callback):
            raise TypeError("on_disconnect takes a plain function: the connection that could wait for more is gone")
        self._callbacks.append(callback)

    def disconnected(self) -> None:
        """Call what handlers left for the end of the connection."""
        while self._callbacks:
            try:
                self._callbacks.pop(0)()
            except Exception:
                logger.exception("an on_disconnect callback failed")
