"""What is open on one connection: handlers that run, and requests of ours that wait for an answer.

`Driver` and `Exchange` differ in who reads and in which task handlers run; what they share is here.
"""

import contextvars
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.lowlevel
from msgspec import UNSET

from mcpcore._wakeup import Wakeup
from mcpcore.exceptions import ConnectionLost, MCPCoreError, PeerError
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
    RequestLost,
    RequestReceived,
    ResultReceived,
)
from mcpcore.protocol.messages import Outgoing
from mcpcore.types.jsonrpc import ErrorData, RequestId

if TYPE_CHECKING:
    import asyncio

__all__ = ["Answer", "Conversation", "Handle", "Turn", "peer_error"]

logger = logging.getLogger("mcpcore.driver")

Answer = ResultReceived | ErrorReceived | InputRequired | MessageRejected
"""How a request of ours can end, other than by the loss of the connection."""


def peer_error(error: ErrorData) -> PeerError:
    """Return the exception for an error that the peer answered."""
    return PeerError(error.code, error.message, None if error.data is UNSET else error.data)


Handle = Callable[[RequestReceived], Coroutine[Any, Any, None]]
"""Makes the coroutine that answers a request. It answers by itself and raises nothing but cancellation."""


_ROOM: Final = 16 * 1024  # bytes that every pipe and socket takes without anybody reading


class Conversation:
    """The open ends of one connection.

    Args:
        connection: Only this conversation may drain it.
        limits: See `Limits`.
        handle: See `Handle`.
        observe: Called for every event that is no request and no answer, in order. Must not block or raise.
    """

    def __init__(
        self, connection: Connection, limits: Limits, handle: Handle, observe: Callable[[Event], None]
    ) -> None:
        self.connection = connection
        self._limits = limits
        self._handle = handle
        self._observe = observe
        self._running: dict[RequestId, anyio.CancelScope] = {}
        self._waiters: dict[RequestId, _Waiter] = {}
        self._writing = False
        self._is_waking = False
        self._blocked: anyio.Event | None = None
        self._shield: anyio.CancelScope | None = None
        self._sent = 0  # bytes, since the beginning
        self._taken = 0  # how many of them the peer must have read, because it answered what stands there
        self._broken: BaseException | None = None
        self._has_ended = False
        self._loop: asyncio.AbstractEventLoop | None = None  # asyncio's own, where it pays to know it

    # -- what the two kinds add ------------------------------------------------------------------------------------

    async def _send(self, messages: list[Outgoing]) -> None:
        raise NotImplementedError

    def spawn(self, function: Callable[[], Coroutine[Any, Any, None]]) -> bool:
        """Run ``function`` in a task beside those of the handlers. Returns False where there can be none any more."""
        raise NotImplementedError

    def has_way_back(self, request_id: RequestId) -> bool:
        """Tell whether the peer can be sent requests while this one of its own is open."""
        raise NotImplementedError

    def cancellable(self, request_id: RequestId) -> AbstractContextManager[Any]:
        """Return what has to be entered before the answer to a request waits for something."""
        raise NotImplementedError

    def suspended(self, request_id: RequestId | None, scope: anyio.CancelScope | None) -> None:
        """A handler waits for the first time; ``scope`` is what its `Turn` was given."""
        raise NotImplementedError

    def finished(self, request_id: RequestId) -> None:
        """A handler that waited has ended, one way or another."""
        raise NotImplementedError

    def lost(self) -> MCPCoreError:
        """The error for requests that can get no answer."""
        error = ConnectionLost("the connection has ended")
        error.__cause__ = self._broken
        return error

    # -- events ----------------------------------------------------------------------------------------------------

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
        elif isinstance(event, RequestLost):
            waiter = self._waiters.get(event.id)
            if waiter is None:
                self._observe(event)
            else:
                waiter.fail(event.error)
        elif isinstance(event, ConnectionClosed):
            self._fail_waiters()
            self._observe(event)
        else:
            self._observe(event)

    def _cancel_handler(self, event: RequestCancelled) -> None:
        scope = self._running.get(event.id)
        if scope is not None:
            scope.cancel()
        self._observe(event)

    def _end(self, error: BaseException | None) -> None:
        """Nothing more will come: ``error`` says why, None means that the peer has ended its input in good order."""
        if self._has_ended:
            return
        self._has_ended = True
        self._broken = error
        for event in self.connection.receive_eof():
            self._dispatch(event)

    # -- writing -------------------------------------------------------------------------------------------------

    async def flush(self) -> None:
        """Write what is queued, or leave it to the task that is writing. Cancellation does not cut a message.

        Waits for that other task only when more than ``limits.outbox`` bytes are queued: back-pressure.
        """
        if self._writing:
            while self._writing and self.connection.queued_bytes > self._limits.outbox:
                await self._write_ended()
        elif self.connection.has_messages:
            with anyio.CancelScope(shield=True) as self._shield:
                await self._write()

    async def _write_ended(self) -> None:
        self._blocked = self._blocked or anyio.Event()
        await self._blocked.wait()

    async def _write(self) -> None:
        self._writing = True
        try:
            while self.connection.has_messages:
                self._sent += self.connection.queued_bytes
                await self._send(self.connection.messages_to_send())
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            self.connection.messages_to_send()  # nobody will read them
            self._end(error)
        finally:
            self._writing = False
            if self._blocked is not None:
                self._blocked.set()
                self._blocked = None

    def wake_writer(self) -> None:
        """Have what is queued written soon, for callers that cannot wait."""
        if self.connection.has_messages and not self._writing and not self._is_waking:
            self._is_waking = self.spawn(self._write_soon)

    async def _write_soon(self) -> None:
        self._is_waking = False
        await self.flush()

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
        if self._has_ended:
            raise self.lost()
        request_id = send()
        waiter = self._waiters[request_id] = _Waiter(self._loop, with_progress=on_progress is not None)
        sent = self._sent + self.connection.queued_bytes
        try:
            if sent - self._taken <= _ROOM:
                await self.flush()
            else:  # a peer that does not read would let this task wait, timeout or no timeout
                self.wake_writer()
            if on_progress is None and self._loop is not None:
                await _in_time(waiter, timeout, self._loop)
            else:
                with anyio.fail_after(timeout):
                    await _told(waiter, on_progress)
            answer = waiter.answer()
            self._taken = max(self._taken, sent)
            return answer
        finally:
            del self._waiters[request_id]
            if waiter.pending:
                self.connection.cancel(request_id, "no longer wanted")
                self.wake_writer()

    def _resolve(self, event: Answer) -> None:
        waiter = self._waiters.get(event.id) if event.id is not None else None
        if waiter is not None:
            waiter.set(event)

    def _fail_waiters(self) -> None:
        for waiter in self._waiters.values():
            if waiter.pending:
                waiter.fail(self.lost())


async def _told(waiter: "_Waiter", on_progress: Callable[[ProgressReceived], Awaitable[None]] | None) -> None:
    """Wait for the answer, and hand on what progress comes before it."""
    while (progress := await waiter.wait()) is not None:
        if on_progress is not None:
            await on_progress(progress)
        # asyncio delivers no cancellation to a task that is always just being woken: a flood would shield it.
        await anyio.lowlevel.checkpoint_if_cancelled()


async def _in_time(waiter: "_Waiter", timeout: float | None, loop: "asyncio.AbstractEventLoop") -> None:
    """Wait for the answer, which nothing comes before; asyncio's timers cost much less than a cancel scope."""
    timer = None if timeout is None else loop.call_later(timeout, waiter.expire)
    try:
        await waiter.wait()
    finally:
        if timer is not None:
            timer.cancel()
    if waiter.pending:
        raise TimeoutError


class _Waiter:
    """The answer to one request of ours, and the progress that comes before it. Awaited by one task."""

    __slots__ = ("_answer", "_arrival", "_error", "_has_expired", "_progress")

    def __init__(self, loop: "asyncio.AbstractEventLoop | None", *, with_progress: bool) -> None:
        self._arrival = Wakeup(loop)
        self._answer: Answer | None = None
        self._error: BaseException | None = None
        self._has_expired = False
        self._progress: deque[ProgressReceived] | None = deque() if with_progress else None

    @property
    def pending(self) -> bool:
        return self._answer is None and self._error is None

    def push(self, progress: ProgressReceived) -> None:
        if self._progress is not None:
            self._progress.append(progress)
            self._arrival.wake()

    def set(self, answer: Answer) -> None:
        self._answer = answer
        self._arrival.wake()

    def fail(self, error: BaseException) -> None:
        self._error = error
        self._arrival.wake()

    def expire(self) -> None:
        """Have `wait` return although nothing has come."""
        self._has_expired = True
        self._arrival.wake()

    async def wait(self) -> ProgressReceived | None:
        """Return the next progress, or None when the answer is there and all progress has been handed out."""
        while not self._progress:
            if self._has_expired or not self.pending:
                return None
            await self._arrival.wait()
        return self._progress.popleft()

    def answer(self) -> Answer:
        if self._answer is None:
            assert self._error is not None  # wait() returned None
            raise self._error
        return self._answer


class Turn:
    """One task's turn to lead: runs coroutines in it, step by step, and notices the first time that one waits.

    Reused from request to request, so that a handler that does not wait costs little more than calling it.
    """

    __slots__ = ("_context", "_coroutine", "_driver", "_request_id", "_scope", "lost_lead")

    def __init__(self, driver: Conversation, scope: anyio.CancelScope | None = None) -> None:
        self._driver = driver
        self._scope = scope
        self.lost_lead = False
        self._coroutine: Coroutine[Any, Any, None]
        self._context: contextvars.Context | None
        self._request_id: RequestId | None

    def step(
        self, coroutine: Coroutine[Any, Any, None], context: contextvars.Context | None, request_id: RequestId | None
    ) -> "Turn":
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
