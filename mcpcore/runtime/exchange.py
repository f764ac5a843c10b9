"""Driving a connection whose messages come one at a time, each on a channel of its own: HTTP.

There is no task that waits for the next message. The task that brought a message runs its handler and writes what comes
of it, so an idle session costs its state and nothing else. Only when a handler waits is a second task started, which
notices that the client has gone.
"""

import contextvars
from collections.abc import Callable, Coroutine
from typing import Any

import anyio

from mcpcore.abc import Channel
from mcpcore.limits import Limits
from mcpcore.protocol.connection import Connection
from mcpcore.protocol.events import Event, RequestReceived
from mcpcore.protocol.messages import Outgoing
from mcpcore.runtime.background import start_task
from mcpcore.runtime.conversation import Conversation, Handle, Turn
from mcpcore.types.jsonrpc import INTERNAL_ERROR, ErrorData, RequestId

__all__ = ["Exchange"]


class Exchange(Conversation):
    """Drives the connection of one session, or of a single request.

    Args:
        send: Writes messages to the channels they belong to.
    """

    def __init__(
        self,
        connection: Connection,
        send: Callable[[list[Outgoing]], Coroutine[Any, Any, None]],
        limits: Limits,
        handle: Handle,
        observe: Callable[[Event], None],
    ) -> None:
        super().__init__(connection, limits, handle, observe)
        self._write_to = send
        self._channels: dict[RequestId, Channel] = {}
        self._watchers: dict[RequestId, anyio.CancelScope] = {}

    async def serve(self, channel: Channel) -> None:
        """Take the message of ``channel``, run what it asks for, write what comes of it, and return.

        A subscription keeps this waiting until one side ends it. Cancellation cancels the handler.
        """
        requests: list[RequestReceived] = []
        for message in await channel.receive():
            for event in self.connection.receive(message):
                if type(event) is RequestReceived:
                    requests.append(event)
                else:
                    self._dispatch(event)
        if len(requests) == 1:
            await self._run(requests[0], channel)
        elif requests:
            async with anyio.create_task_group() as tasks:
                for request in requests:
                    tasks.start_soon(self._run, request, channel)
        if self._writing:
            await self.flush()  # back-pressure
        elif self.connection.has_messages:
            await self._write()  # in the request's own task, which nobody but its server cancels
        if any(self.connection.is_open(request.id) for request in requests):
            await self._hold(requests, channel)

    async def _run(self, event: RequestReceived, channel: Channel) -> None:
        if len(self._running) >= self._limits.in_flight:
            text = "Server busy: too many requests in flight"
            self.connection.send_error(event.id, ErrorData(INTERNAL_ERROR, text))
            return
        scope = event.scope
        context = (scope.context if scope is not None else None) or contextvars.copy_context()
        self._channels[event.id] = channel
        try:
            with anyio.CancelScope() as cancel_scope:
                await Turn(self, cancel_scope).step(self._handle(event), context, event.id)
        finally:
            del self._channels[event.id]

    async def _hold(self, requests: list[RequestReceived], channel: Channel) -> None:
        """Keep the channel of a subscription open until one of the sides ends it."""
        try:
            await channel.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            for request in requests:
                self._withdraw(request.id)

    def end(self) -> None:
        """End subscriptions and take no answers any more; handlers that run may finish."""
        self._end(None)
        self.wake_writer()

    # -- a handler that waits --------------------------------------------------------------------------------------

    def suspended(self, request_id: RequestId | None, scope: anyio.CancelScope) -> None:
        """See to it that the loss of the client is noticed while the handler waits."""
        if request_id is None:
            return
        self._running[request_id] = scope
        channel, watcher = self._channels[request_id], anyio.CancelScope()
        self._watchers[request_id] = watcher

        async def watch() -> None:
            with watcher:
                await self._notice_loss(request_id, channel)

        self.spawn(watch)

    def finished(self, request_id: RequestId) -> None:
        del self._running[request_id]
        self._watchers.pop(request_id).cancel()

    async def _notice_loss(self, request_id: RequestId, channel: Channel) -> None:
        try:
            await channel.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            if channel.info.disconnect_cancels:
                self._withdraw(request_id)

    def _withdraw(self, request_id: RequestId) -> None:
        for event in self.connection.withdraw(request_id):
            self._dispatch(event)

    # -- writing ---------------------------------------------------------------------------------------------------

    async def _send(self, messages: list[Outgoing]) -> None:
        await self._write_to(messages)

    def spawn(self, function: Callable[[], Coroutine[Any, Any, None]]) -> None:
        start_task(function)
