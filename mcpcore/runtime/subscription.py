"""Subscriptions on the client's side: what was granted, and notifications as they come, in both eras alike."""

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Self

import anyio

from mcpcore.exceptions import MCPCoreError, RequestTimeout
from mcpcore.protocol.events import (
    ConnectionClosed,
    Event,
    NotificationReceived,
    RequestLost,
    SubscriptionAcknowledged,
    SubscriptionEnded,
    SubscriptionNotified,
)
from mcpcore.protocol.subscriptions import grant, wants
from mcpcore.runtime.conversation import peer_error
from mcpcore.types._base import Object
from mcpcore.types.jsonrpc import RequestId
from mcpcore.types.resources import SubscribeParams
from mcpcore.types.subscriptions import SubscriptionFilter
from mcpcore.types.utilities import EmptyParams

if TYPE_CHECKING:
    from mcpcore.runtime.link import Link

__all__ = ["Subscription", "Subscriptions"]


class Subscription:
    """What `Client.listen` gives. Iterate it to get ``(method, params)`` pairs.

    Iteration ends when the server ends the subscription, and raises `ConnectionLost` when the connection breaks.
    A notification that waits already is not queued twice: it says that something changed, and that is still so.
    """

    def __init__(self) -> None:
        self.granted: SubscriptionFilter | None = None
        """What the server agreed to send."""
        self._pending: dict[tuple[str, str], tuple[str, Object]] = {}
        self._wake = anyio.Event()
        self._ended = False
        self._error: Exception | None = None

    def push(self, method: str, params: Object) -> None:
        """Take a notification from the wire."""
        self._pending[method, getattr(params, "uri", "")] = (method, params)
        self._wake.set()

    def acknowledge(self, granted: SubscriptionFilter) -> None:
        """Take the server's acknowledgement."""
        self.granted = granted
        self._wake.set()

    def end(self, error: Exception | None = None) -> None:
        """No more will come."""
        if not self._ended:
            self._ended, self._error = True, error
            self._wake.set()

    async def acknowledged(self) -> None:
        """Wait for the acknowledgement. Raises what ended the subscription instead, if it failed."""
        while self.granted is None and not self._ended:
            await self._wait()
        if self._error is not None:
            raise self._error

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> tuple[str, Object]:
        while not self._pending:
            if self._error is not None:
                raise self._error
            if self._ended:
                raise StopAsyncIteration
            await self._wait()
        return self._pending.pop(next(iter(self._pending)))

    async def _wait(self) -> None:
        await self._wake.wait()
        self._wake = anyio.Event()


class Subscriptions:
    """All open subscriptions of one client."""

    def __init__(self) -> None:
        self._modern: dict[RequestId, Subscription] = {}
        self._legacy: list[Subscription] = []

    def open(
        self, link: "Link", wanted: SubscriptionFilter, timeout: float | None
    ) -> AbstractAsyncContextManager[Subscription]:
        """Subscribe for as long as the context lasts: by ``subscriptions/listen``, or by what legacy servers have for it.

        Raises:
            PeerError: The server refused.
            RequestTimeout: It did not acknowledge in time.
            ConnectionLost: The connection ended first.
        """
        return self._open_legacy(link, wanted, timeout) if link.is_legacy else self._open_modern(link, wanted, timeout)

    @asynccontextmanager
    async def _open_modern(
        self, link: "Link", wanted: SubscriptionFilter, timeout: float | None
    ) -> AsyncGenerator[Subscription]:
        id = link.connection.listen(wanted)
        subscription = self._modern[id] = Subscription()
        try:
            await link.flush()
            with anyio.move_on_after(timeout) as waiting:
                await subscription.acknowledged()
            if waiting.cancelled_caught:
                raise RequestTimeout(f"subscriptions/listen was not acknowledged within {timeout} seconds")
            yield subscription
        finally:
            del self._modern[id]
            link.connection.cancel(id)
            link.flush_soon()

    @asynccontextmanager
    async def _open_legacy(
        self, link: "Link", wanted: SubscriptionFilter, timeout: float | None
    ) -> AsyncGenerator[Subscription]:
        assert link.connection.server is not None  # it is legacy
        subscription = Subscription()
        subscription.granted = granted = grant(wanted, link.connection.server.capabilities)
        self._legacy.append(subscription)
        try:
            for uri in granted.resource_subscriptions or ():
                await link.request("resources/subscribe", SubscribeParams(uri), timeout=timeout)
            # Once this is answered the server has seen `initialized`, and tells of every change from then on.
            await link.request("ping", EmptyParams(), timeout=timeout)
            yield subscription
        finally:
            self._legacy.remove(subscription)
            with anyio.CancelScope(shield=True), anyio.move_on_after(link.limits.drain):
                await self._unsubscribe(link, granted.resource_subscriptions or ())

    async def _unsubscribe(self, link: "Link", uris: Iterable[str]) -> None:
        still = {uri for each in self._legacy if each.granted for uri in each.granted.resource_subscriptions or ()}
        for uri in uris:
            if uri not in still:
                try:
                    await link.request("resources/unsubscribe", SubscribeParams(uri), timeout=None)
                except MCPCoreError:
                    return  # the connection is gone, and the subscription with it

    def observe(self, event: Event, lost: Callable[[], MCPCoreError]) -> None:
        """Take note of what concerns subscriptions.

        Args:
            event: Any event.
            lost: Why the connection has ended, if it has.
        """
        if isinstance(event, NotificationReceived):
            self._notified(event.method.name, event.params)
        elif isinstance(event, SubscriptionAcknowledged | SubscriptionNotified | SubscriptionEnded | RequestLost):
            subscription = self._modern.get(event.id)
            if subscription is not None:
                _tell(subscription, event)
        elif isinstance(event, ConnectionClosed):
            for subscription in (*self._modern.values(), *self._legacy):
                subscription.end(lost())

    def _notified(self, method: str, params: Object) -> None:
        """A legacy server's notification belongs to whoever wants it."""
        for subscription in self._legacy:
            if subscription.granted is not None and wants(subscription.granted, method, params):
                subscription.push(method, params)


def _tell(subscription: Subscription, event: Event) -> None:
    if isinstance(event, SubscriptionAcknowledged):
        subscription.acknowledge(event.granted)
    elif isinstance(event, SubscriptionNotified):
        subscription.push(event.method.name, event.params)
    elif isinstance(event, SubscriptionEnded):
        subscription.end(None if event.error is None else peer_error(event.error))
    elif isinstance(event, RequestLost):
        subscription.end(event.error)
