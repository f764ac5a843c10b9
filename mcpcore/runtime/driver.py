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
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any

import anyio
from anyio.abc import TaskGroup

from mcpcore.abc import Channel
from mcpcore.exceptions import ConnectionLost, MCPCoreError
from mcpcore.limits import Limits
from mcpcore.protocol.connection import Connection
from mcpcore.protocol.events import (
    ConnectionClosed,
    ErrorReceived,
    Event,
    InputRequired,
    MessageRejected,
    ProgressReceived,
    RequestCancelled,
    RequestReceived,
    ResultReceived,
)
from mcpcore.protocol.messages import Incoming
from mcpcore.runtime.background import unwrap
from mcpcore.types.jsonrpc import INTERNAL_ERROR, ErrorData, RequestId

__all__ = ["Answer", "Driver"]

logger = logging.getLogger("mcpcore.driver")

Answer = ResultReceived | ErrorReceived | InputRequired | MessageRejected
"""How a request of ours can end, other than by the loss of the connection."""

_PARKED = 32  # tasks kept for the next hand-over; more than a handful wait only after a burst


class Driver:
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
        handle: Callable[[RequestReceived], Coroutine[Any, Any, None]],
        observe: Callable[[Event], None],
    ) -> None:
        self.connection = connection
        self._channel = channel
        self._limits = limits
        self._handle = handle
        self._observe = observe
        self._tasks: TaskGroup | None = None
        self._messages: deque[Incoming] = deque()
        self._events: deque[Event] = deque()
        self._waiting: deque[RequestReceived] = deque()
        self._running: dict[RequestId, anyio.CancelScope] = {}
        self._parked: list[anyio.Event] = []
        self._waiters: dict[RequestId, _Waiter] = {}
        self._writing = False
        self._written = anyio.Event()
        self._blocked = 0
        self._ended = anyio.Event()
        self._idle = anyio.Event()
        self._broken: BaseException | None = None
        self._closed = False

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
                await self._ended.wait()
                if self._broken is None:
                    await self._drain()
                self._tasks.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            raise unwrap(group) from None
        finally:
            self._closed = True
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
            await self.flush()

    def _end(self, error: BaseException | None) -> None:
        if self._ended.is_set():
            return
        self._broken = error
        for event in self.connection.receive_eof():
            self._dispatch(event)
        self._ended.set()

    # -- reading and running handlers ----------------------------------------------------------------------------

    async def _lead(self) -> None:
        """Lead until a handler waits in this task, finish that one, queue up to lead again."""
        with anyio.CancelScope() as scope:
            turn = _Turn(self, scope)
            while not self._ended.is_set():
                await self._read(turn)
                if turn.lost_lead:
                    if scope.cancel_called or not await self._follow():
                        return
                    turn.lost_lead = False

    async def _read(self, turn: "_Turn") -> None:
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
                    scope = event.scope
                    context = (scope.context if scope is not None else None) or contextvars.copy_context()
                    await turn.step(self._handle(event), context, event.id)
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
        """After a handler that waited: write its answer, take a request that queued, then wait to lead again.

        Returns False when this task is not needed any more.
        """
        await self.flush()
        while self._waiting:
            event = self._waiting.popleft()
            with anyio.CancelScope() as scope:
                self._running[event.id] = scope
                try:
                    await self._handle(event)
                finally:
                    self.finished(event.id)
            await self.flush()
        if self._ended.is_set() or len(self._parked) >= _PARKED:
            return False
        promoted = anyio.Event()
        self._parked.append(promoted)
        await promoted.wait()
        return True

    def suspended(self, request_id: RequestId | None, scope: anyio.CancelScope) -> None:
        """A handler, or the writer, waits in the leading task: it keeps the task and gives the lead away."""
        if request_id is not None:
            self._running[request_id] = scope
        self._promote()

    def finished(self, request_id: RequestId) -> None:
        """A handler that waited has ended, one way or another."""
        del self._running[request_id]
        if not self._running:
            self._idle.set()

    def _promote(self) -> None:
        """Give the lead to a parked task, or to a new one."""
        if self._parked:
            self._parked.pop().set()
        elif self._tasks is not None:
            self._tasks.start_soon(self._lead)

    def _dispatch(self, event: Event) -> None:
        kind = type(event)
        if kind is ResultReceived or kind is ErrorReceived or kind is InputRequired:
            self._resolve(event)  # type: ignore[arg-type]  # one of the three
        elif isinstance(event, ProgressReceived):
            waiter = self._waiters.get(event.id)
            if waiter is not None:
                waiter.push(event)
        elif kind is RequestCancelled:
            self._cancel_handler(event)  # type: ignore[arg-type]
        elif isinstance(event, MessageRejected):
            if event.id is not None:
                self._resolve(event)
            logger.warning("rejected a message of the peer: %s", event.error.message)
        elif isinstance(event, ConnectionClosed):
            self._fail_waiters()
            self._observe(event)
        else:
            self._observe(event)

    def _cancel_handler(self, event: RequestCancelled) -> None:
        scope = self._running.get(event.id)
        if scope is not None:
            scope.cancel()
        else:
            self._waiting = deque(waiting for waiting in self._waiting if waiting.id != event.id)
        self._observe(event)

    # -- writing -------------------------------------------------------------------------------------------------

    async def flush(self) -> None:
        """Write what is queued, or leave it to the task that is writing. Cancellation does not cut a message.

        Waits for that other task only when more than ``limits.outbox`` bytes are queued: back-pressure.
        """
        if self._writing:
            while self._writing and self.connection.queued_bytes > self._limits.outbox:
                self._blocked += 1
                await self._written.wait()
        elif self.connection.has_messages:
            with anyio.CancelScope(shield=True):
                await self._write()

    async def _write(self) -> None:
        self._writing = True
        try:
            while self.connection.has_messages:
                await self._channel.send(self.connection.messages_to_send())
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            self.connection.messages_to_send()  # nobody will read them
            self._end(error)
        finally:
            self._writing = False
            if self._blocked:
                self._written.set()
                self._written, self._blocked = anyio.Event(), 0

    def wake_writer(self) -> None:
        """Have what is queued written soon, for callers that cannot wait."""
        if self.connection.has_messages and not self._writing and self._tasks is not None and not self._closed:
            self._tasks.start_soon(self.flush)

    # -- requests of ours ----------------------------------------------------------------------------------------

    async def request(
        self,
        send: Callable[[], RequestId],
        *,
        timeout: float | None = None,
        on_progress: Callable[[ProgressReceived], Awaitable[None]] | None = None,
    ) -> Answer:
        """Send a request and wait for its answer.

        Args:
            send: Queues the request on the core and returns its id.
            timeout: Seconds, whatever progress is made; None waits for ever.
            on_progress: Awaited in this task for each progress notification, in order, all before the answer.

        Raises:
            TimeoutError: No answer in time; the peer has been told that the request is cancelled.
            ConnectionLost: The connection ended first.

        Cancellation tells the peer, too, and a late answer is ignored.
        """
        if self._ended.is_set():
            raise self.lost()
        request_id = send()
        waiter = self._waiters[request_id] = _Waiter(with_progress=on_progress is not None)
        try:
            await self.flush()
            with anyio.fail_after(timeout):
                while (progress := await waiter.wait()) is not None:
                    if on_progress is not None:
                        await on_progress(progress)
            return waiter.answer()
        finally:
            del self._waiters[request_id]
            if waiter.pending:
                self.connection.cancel(request_id, "no longer wanted")
                self.wake_writer()

    def lost(self) -> MCPCoreError:
        """The error for requests that can get no answer: what the channel says about its end, or `ConnectionLost`."""
        failure = getattr(self._channel, "failure", None)
        if isinstance(failure, MCPCoreError):
            return failure
        error = ConnectionLost("the connection has ended")
        error.__cause__ = self._broken
        return error

    def _resolve(self, event: Answer) -> None:
        waiter = self._waiters.get(event.id) if event.id is not None else None
        if waiter is not None:
            waiter.set(event)

    def _fail_waiters(self) -> None:
        for waiter in self._waiters.values():
            if waiter.pending:
                waiter.fail(self.lost())


class _Waiter:
    """The answer to one request of ours, and the progress that comes before it. Awaited by one task."""

    __slots__ = ("_answer", "_error", "_event", "_progress")

    def __init__(self, *, with_progress: bool) -> None:
        self._event = anyio.Event()
        self._answer: Answer | None = None
        self._error: BaseException | None = None
        self._progress: deque[ProgressReceived] | None = deque() if with_progress else None

    @property
    def pending(self) -> bool:
        return self._answer is None and self._error is None

    def push(self, progress: ProgressReceived) -> None:
        if self._progress is not None:
            self._progress.append(progress)
            self._event.set()

    def set(self, answer: Answer) -> None:
        self._answer = answer
        self._event.set()

    def fail(self, error: BaseException) -> None:
        self._error = error
        self._event.set()

    async def wait(self) -> ProgressReceived | None:
        """Return the next progress, or None when the answer is there and all progress has been handed out."""
        while not self._progress:
            if not self.pending:
                return None
            if self._event.is_set():
                self._event = anyio.Event()
            await self._event.wait()
        return self._progress.popleft()

    def answer(self) -> Answer:
        if self._answer is None:
            assert self._error is not None  # wait() returned None
            raise self._error
        return self._answer


class _Turn:
    """One task's turn to lead: runs coroutines in it, step by step, and notices the first time that one waits.

    Reused from request to request, so that a handler that does not wait costs little more than calling it.
    """

    __slots__ = ("_context", "_coroutine", "_driver", "_request_id", "_scope", "lost_lead")

    def __init__(self, driver: Driver, scope: anyio.CancelScope) -> None:
        self._driver = driver
        self._scope = scope
        self.lost_lead = False
        self._coroutine: Coroutine[Any, Any, None]
        self._context: contextvars.Context | None
        self._request_id: RequestId | None

    def step(
        self, coroutine: Coroutine[Any, Any, None], context: contextvars.Context | None, request_id: RequestId | None
    ) -> "_Turn":
        """Return what to await: ``coroutine`` in this task, each step inside ``context``."""
        self._coroutine, self._context, self._request_id = coroutine, context, request_id
        return self

    def __await__(self) -> Generator[Any, Any, None]:
        coroutine, request_id = self._coroutine, self._request_id
        run: Callable[..., Any] = _call if self._context is None else self._context.run
        try:
            wanted = run(coroutine.send, None)
        except StopIteration:
            return
        self.lost_lead = True
        self._driver.suspended(request_id, self._scope)
        try:
            while True:
                try:
                    given = yield wanted
                except GeneratorExit:
                    run(coroutine.close)
                    raise
                except BaseException as error:  # noqa: BLE001 - cancellation and errors alike go to the coroutine
                    wanted = run(coroutine.throw, error)
                else:
                    wanted = run(coroutine.send, given)
        except StopIteration:
            return
        finally:
            if request_id is not None:
                self._driver.finished(request_id)


def _call(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)
