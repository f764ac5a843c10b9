"""Driving a connection whose messages come one at a time, each on a channel of its own: HTTP.

There is no task that waits for the next message. The task that brought a message runs its handler and writes what comes
of it, so an idle session costs its state and nothing else. Only when a handler waits is a second task started, which
notices that the client has gone.

Each message is written to where it belongs by whoever queued it. So no request waits for another, nor for the client that
another one is answered to.
"""

import contextvars
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import anyio

from mcpcore._tasks import start_task
from mcpcore.abc import OneShotChannel, Outlet
from mcpcore.limits import Limits
from mcpcore.protocol.connection import Connection
from mcpcore.protocol.events import Event, RequestReceived
from mcpcore.runtime.admission import Admission
from mcpcore.runtime.conversation import Conversation, Handle, Turn
from mcpcore.types.jsonrpc import INTERNAL_ERROR, ErrorData, RequestId

__all__ = ["Exchange"]

_LATER: Final = 1  # seconds


class Exchange(Conversation):
    """Drives the connection of one session, or of a single request.

    Args:
        outlet: Takes messages to the channels that they belong to.
        admission: Keeps to the limits of requests in flight.
        may_wait: Tells whether answering a request may wait for anything. A scope by which it can be cancelled costs as
            much as a handler that does not wait.
    """

    def __init__(
        self,
        connection: Connection,
        outlet: Outlet,
        limits: Limits,
        admission: Admission,
        handle: Handle,
        observe: Callable[[Event], None],
        may_wait: Callable[[RequestReceived], bool],
    ) -> None:
        super().__init__(connection, limits, handle, observe)
        self._outlet = outlet
        self._admission = admission
        self._may_wait = may_wait
        self._scopes: dict[RequestId, anyio.CancelScope] = {}
        self._channels: dict[RequestId, OneShotChannel] = {}
        self._watchers: dict[RequestId, anyio.CancelScope] = {}

    async def serve(self, channel: OneShotChannel) -> None:
        """Take the message of ``channel``, run what it asks for, write what comes of it, and return.

        A subscription keeps this waiting until one side ends it. Cancellation cancels the handler.
        """
        channel.on_stop = self.end
        try:
            await self._serve(channel)
        finally:
            channel.on_stop = _nothing  # it would keep this object, which keeps the channel

    async def _serve(self, channel: OneShotChannel) -> None:
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
        await self._write()  # in the request's own task, which nobody but its server cancels
        for request in requests:
            if self.connection.is_open(request.id):
                await self._hold(requests, channel)
                break

    async def _run(self, event: RequestReceived, channel: OneShotChannel) -> None:
        if self._admission.is_full:
            error = ErrorData(INTERNAL_ERROR, "Server busy: too many requests in flight")
            self.connection.send_error(event.id, error, retry_after=_LATER)
            return
        scope, in_turn = event.scope, not self._admission.has_place
        context = (scope.context if scope is not None else None) or contextvars.copy_context()
        handler = self._handle_in_turn(event) if in_turn else self._handle(event)
        self._channels[event.id] = channel
        try:
            turn = Turn(self).step(handler, context, event.id)
            if in_turn or self._may_wait(event):
                with self.cancellable(event.id):
                    await turn
            else:
                await turn
        finally:
            del self._channels[event.id]
            self._scopes.pop(event.id, None)

    async def _handle_in_turn(self, event: RequestReceived) -> None:
        await self._admission.wait()
        await self._handle(event)

    def cancellable(self, request_id: RequestId) -> AbstractContextManager[Any]:
        if request_id in self._scopes:
            return nullcontext()
        scope = self._scopes[request_id] = anyio.CancelScope()
        return scope

    async def _hold(self, requests: list[RequestReceived], channel: OneShotChannel) -> None:
        """Keep the channel of a subscription open until one of the sides ends it."""
        try:
            await channel.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            for request in requests:
                self._withdraw(request.id)

    def end(self) -> None:
        """End subscriptions and take no answers any more; handlers that run may finish."""
        self._end(None)
        self.wake_writer()

    def release(self) -> None:
        """Nothing will come any more: let go of what refers back to this, or only the garbage collector could free it."""
        self._handle, self._observe, self._may_wait = _unused, _unused, _unused

    def abandon(self) -> None:
        """Do the same, and cancel the handlers that run: there is nobody left to answer to."""
        for request_id in list(self._running):
            self._withdraw(request_id)
        self.end()

    # -- a handler that waits --------------------------------------------------------------------------------------

    def has_way_back(self, request_id: RequestId) -> bool:
        channel = self._channels.get(request_id)
        return channel is not None and channel.info.back_channel

    def suspended(self, request_id: RequestId | None, scope: anyio.CancelScope | None) -> None:
        """See to it that the loss of the client is noticed while the handler waits."""
        if request_id is None:
            return
        self._admission.enter()
        self._running[request_id] = self._scopes[request_id]
        channel, watcher = self._channels[request_id], anyio.CancelScope()
        self._watchers[request_id] = watcher

        async def watch() -> None:
            with watcher:
                await self._notice_loss(request_id, channel)

        self.spawn(watch)

    def finished(self, request_id: RequestId) -> None:
        """The handler is done, one way or another: its place goes to the next."""
        del self._running[request_id]
        self._watchers.pop(request_id).cancel()
        self._admission.leave()

    async def _notice_loss(self, request_id: RequestId, channel: OneShotChannel) -> None:
        try:
            await channel.receive()
        except anyio.EndOfStream:
            return
        except anyio.BrokenResourceError:
            if channel.info.disconnect_cancels:
                self._withdraw(request_id)

    def _withdraw(self, request_id: RequestId) -> None:
        for event in self.connection.withdraw(request_id):
            self._dispatch(event)

    # -- writing ---------------------------------------------------------------------------------------------------

    async def flush(self) -> None:
        """Write what is queued, and wait until the clients it goes to have room for it: back-pressure."""
        if self.connection.has_messages:
            with anyio.CancelScope(shield=True):
                await self._write()

    async def _write(self) -> None:
        while self.connection.has_messages:
            self._sent += self.connection.queued_bytes
            await self._outlet.send(self.connection.messages_to_send())

    def wake_writer(self) -> None:
        """Have what is queued written soon, for callers that cannot wait."""
        if self.connection.has_messages:
            self._sent += self.connection.queued_bytes
            self._outlet.put(self.connection.messages_to_send())

    def spawn(self, function: Callable[[], Coroutine[Any, Any, None]]) -> bool:
        start_task(function)
        return True


def _nothing() -> None:
    return


def _unused(event: Event) -> Any:
    return None
