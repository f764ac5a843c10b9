"""The loop that joins a connection of the core and a channel of a transport.

Tasks follow the leader-and-followers pattern. One task leads: it reads, feeds the core, runs each handler itself, and
writes what came out, so a request whose handler never waits costs no task and no hand-over. The moment a handler
does wait, its task belongs to that request and another one takes the lead; when the handler is done the task queues
up to lead again. A coroutine thus never changes its task, which cancel scopes rely on, and every task has a scope of
its own from birth, by which its request can be cancelled.

One task at a time writes, with everything that is queued. A cancelled handler can therefore not cut a message in
half, and the order on the wire is the order of calls on the core.
"""

import contextvars
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from mcpcore._wakeup import asyncio_loop
from mcpcore.abc import Channel
from mcpcore.exceptions import MCPCoreError
from mcpcore.limits import Limits
from mcpcore.protocol.connection import Connection
from mcpcore.protocol.events import Event, RequestCancelled, RequestReceived
from mcpcore.protocol.messages import Incoming, Outgoing
from mcpcore.runtime.background import unwrap
from mcpcore.runtime.conversation import Conversation, Handle, Turn
from mcpcore.types.jsonrpc import INTERNAL_ERROR, ErrorData, RequestId

__all__ = ["Driver"]

_PARKED: Final = 32  # tasks kept for the next hand-over; more than a handful wait only after a burst


class Driver(Conversation):
    """Drives one connection until it ends.

    Args:
        connection: A `ServerConnection` or `ClientConnection`; only this driver may drain it.
        channel: Where its messages go and come from. The driver closes it.
        limits: See `Limits`.
        handle: Makes the coroutine that answers a request. It must answer by itself and raise nothing but cancellation.
        observe: Called for every other event, in order. Must not block or raise.
    """

    def __init__(
        self,
        connection: Connection,
        channel: Channel,
        limits: Limits,
        handle: Handle,
        observe: Callable[[Event], None],
    ) -> None:
        super().__init__(connection, limits, handle, observe)
        self._loop = asyncio_loop()
        self._channel = channel
        self._tasks: TaskGroup | None = None
        self._messages: deque[Incoming] = deque()
        self._events: deque[Event] = deque()
        self._waiting: deque[RequestReceived] = deque()
        self._parked: list[anyio.Event] = []
        self._ended = anyio.Event()
        self._idle = anyio.Event()
        self._closed = False
        self._context = contextvars.copy_context()

    # -- life ----------------------------------------------------------------------------------------------------

    async def run(self, *, started: Callable[[], None] = lambda: None) -> None:
        """Serve until the peer ends its input or is gone, then finish what is open within ``limits.drain`` seconds.

        Args:
            started: Called once requests can be sent.

        Cancellation ends everything at once; the channel is closed in any case. Never raises an exception group, and
        nothing for the loss of the peer.
        """
        try:
            async with anyio.create_task_group() as self._tasks:
                self._tasks.start_soon(self._lead)
                started()
                try:
                    await self._ended.wait()
                    if self._broken is None:
                        await self._drain()
                finally:
                    self._closed = True  # the group takes no more tasks from the moment on that its last one ends
                    if self._shield is not None:
                        self._shield.cancel()  # only now may a message be cut: the channel is closed next
                    self._tasks.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            raise unwrap(group) from None
        finally:
            self._end(anyio.ClosedResourceError())
            self._fail_waiters()
            with anyio.CancelScope(shield=True), anyio.move_on_after(self._limits.drain):
                await self._channel.aclose()

    def end(self) -> None:
        """Stop as if the peer had ended its input: drain, then close."""
        self._end(None)

    async def _drain(self) -> None:
        """Let open requests finish, end subscriptions, write what is queued; all of it within the time allowed."""
        with anyio.move_on_after(self._limits.drain):
            while self._running or self._waiting:
                self._idle = anyio.Event()
                await self._idle.wait()
        with anyio.move_on_after(self._limits.drain):
            while self._writing or self.connection.has_messages:
                self.wake_writer()
                await self._write_ended()

    def _end(self, error: BaseException | None) -> None:
        super()._end(error)
        self._ended.set()

    # -- reading and running handlers ----------------------------------------------------------------------------

    async def _lead(self) -> None:
        """Lead until a handler waits in this task, finish that one, queue up to lead again."""
        with anyio.CancelScope() as scope:
            turn = Turn(self, scope)
            while not self._ended.is_set():
                await self._read(turn)
                if turn.lost_lead:
                    if scope.cancel_called or not await self._follow():
                        return
                    turn.lost_lead = False

    async def _read(self, turn: Turn) -> None:
        """Write what is queued, take what is there, and act on it, until it is all done or the lead is lost."""
        events, messages, connection = self._events, self._messages, self.connection
        if not messages and not events:
            if connection.has_messages and not self._writing:
                await turn.step(self._write(), None, None)
                if turn.lost_lead:
                    return
            try:
                messages.extend(await self._channel.receive())
            except anyio.EndOfStream:
                self._end(None)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
                self._end(error)
        while True:
            while events:
                event = events.popleft()
                if type(event) is not RequestReceived:
                    self._dispatch(event)
                elif self._admit(event):
                    await turn.step(self._handle(event), self._context_of(event), event.id)
                    if turn.lost_lead:
                        return
            if connection.queued_bytes > self._limits.outbox and not self._writing:
                await turn.step(self._write(), None, None)
                if turn.lost_lead:
                    return
            if not messages:
                return
            events.extend(connection.receive(messages.popleft()))

    def _admit(self, event: RequestReceived) -> bool:
        """Keep to the limit of requests in flight: a request may run now, waits, or is refused."""
        if len(self._running) < self._limits.in_flight:
            return True
        if len(self._waiting) < self._limits.queued:
            self._waiting.append(event)
        else:
            self.connection.send_error(event.id, ErrorData(INTERNAL_ERROR, "Server busy: too many requests in flight"))
        return False

    async def _follow(self) -> bool:
        """After a handler that waited: write its answer, then wait to lead again.

        Returns False when this task is not needed any more.
        """
        if self._running:  # others may be done in this turn of the event loop, too: one write for all their answers
            await anyio.lowlevel.checkpoint()
        await self.flush()
        if self._ended.is_set() or len(self._parked) >= _PARKED:
            return False
        promoted = anyio.Event()
        self._parked.append(promoted)
        await promoted.wait()
        return True

    def has_way_back(self, request_id: RequestId) -> bool:
        return self._channel.info.back_channel

    def cancellable(self, request_id: RequestId) -> AbstractContextManager[Any]:
        return nullcontext()  # each task has a scope of its own

    def suspended(self, request_id: RequestId | None, scope: anyio.CancelScope | None) -> None:
        """A handler, or the writer, waits in the leading task: it keeps the task and gives the lead away."""
        if request_id is not None:
            assert scope is not None
            self._running[request_id] = scope
        self._promote()

    def finished(self, request_id: RequestId) -> None:
        """A handler that waited has ended, one way or another: a request that queued takes its place."""
        del self._running[request_id]
        if self._waiting and not self._closed and self._tasks is not None:
            event, scope = self._waiting.popleft(), anyio.CancelScope()
            self._running[event.id] = scope
            self._context_of(event).run(self._tasks.start_soon, self._serve_late, event, scope)
        elif not self._running:
            self._idle.set()

    def _context_of(self, event: RequestReceived) -> contextvars.Context:
        """What a handler runs in: the context that the transport gave the request, or a copy of the driver's own."""
        given = event.scope.context if event.scope is not None else None
        return given or self._context.copy()

    async def _serve_late(self, event: RequestReceived, scope: anyio.CancelScope) -> None:
        """Run the handler of a request that had to wait, in a task of its own."""
        try:
            with scope:
                await self._handle(event)
        finally:
            self.finished(event.id)
        await self.flush()

    def _promote(self) -> None:
        """Give the lead to a parked task, or to a new one."""
        if self._parked:
            self._parked.pop().set()
        elif self._tasks is not None:
            self._tasks.start_soon(self._lead)

    def _cancel_handler(self, event: RequestCancelled) -> None:
        if event.id not in self._running:
            self._waiting = deque(waiting for waiting in self._waiting if waiting.id != event.id)
        super()._cancel_handler(event)

    async def _send(self, messages: list[Outgoing]) -> None:
        await self._channel.send(messages)

    def spawn(self, function: Callable[[], Coroutine[Any, Any, None]]) -> bool:
        if self._tasks is None or self._closed:
            return False
        self._tasks.start_soon(function)
        return True

    def lost(self) -> MCPCoreError:
        """What the channel says about its end (``channel.failure``), or `ConnectionLost`."""
        failure = getattr(self._channel, "failure", None)
        return failure if isinstance(failure, MCPCoreError) else super().lost()
