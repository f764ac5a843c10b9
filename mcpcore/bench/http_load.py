"""A load on HTTP connections, each of which has one request on its way at a time.

A server is not told how to reply, with one JSON object or with a stream of events; either is read, and counted.
"""

import select
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from mcpcore.bench.connection import Connection
from mcpcore.bench.load import TICK, Load, Tally
from mcpcore.bench.responses import EVENTS, MalformedResponse, Response, event_data
from mcpcore.bench.traffic import WrongReply
from mcpcore.exceptions import BenchmarkError

__all__ = ["JSON", "check_response", "exchange"]

JSON: Final = "application/json"
SHOWN: Final = 500  # bytes of what is quoted


def exchange(connections: Sequence[Connection], load: Load, tally: Tally, answering: Connection | None = None) -> None:
    """Work a load off.

    Args:
        connections: As many as requests may be unanswered. One that breaks is opened again.
        load: The load.
        tally: Is filled.
        answering: On which requests of a legacy server's are answered, while the response to ours goes on; None for
            no answers.

    Raises:
        WrongReply, MalformedResponse, OSError: Something is wrong, and the tally is strict.
        BenchmarkError: The server cannot be reached any more.
    """
    with select.epoll() as readable:
        _Exchange(readable, connections, load, tally, answering).run()


def check_response(response: Response, number: int, load: Load, tally: Tally, asked: int = 0) -> bool:
    """Judge the response to a request.

    Args:
        response: The response.
        number: The id of the request.
        load: What has to come.
        tally: Is told.
        asked: Requests of the server's in this response that have been answered already.

    Returns:
        Whether it is right.

    Raises:
        WrongReply: It is not, and the tally is strict.
    """
    head = response.head
    tally.replies += 1
    try:
        messages = _messages(response, number, load)
    except WrongReply as error:
        tally.fail(error)
        return False
    if head.media_type == EVENTS:
        tally.streamed += 1
    replied = right = is_error = False
    for message in messages:
        if message.method is not None:
            if message.id is not None and asked:
                asked -= 1
            else:
                tally.take_aside(message, load)
        elif message.id != number or replied:
            kind = "wrong reply" if head.status == 200 else _status(head.status)
            tally.fail(WrongReply(f"nothing awaits this reply to request {number}: {str(message)[:SHOWN]}", kind))
            return False
        else:
            replied, is_error = True, message.error is not None
            right = tally.check(message, number, load)
    if not replied:
        tally.fail(WrongReply(f"the response to request {number} has no reply in it"))
    elif right and head.status != 200 and not is_error:  # to errors the protocol gives statuses of their own
        tally.fail(WrongReply(f"request {number} was answered with status {head.status}", _status(head.status)))
        return False
    return right


def _messages(response: Response, number: int, load: Load) -> list[Any]:
    head, body = response
    try:
        if head.media_type == EVENTS:
            return [load.decoder.decode(data) for data in event_data(body)]
        if head.media_type == JSON:
            return [load.decoder.decode(body)]
    except msgspec.DecodeError as error:
        if head.status == 200:
            problem = f"request {number} was answered with what is no JSON-RPC message ({error}): {body[:SHOWN]!r}"
            raise WrongReply(problem, "no message") from error
    where = f" to {head.location}" if head.location is not None else ""
    problem = f"request {number} was answered with status {head.status}{where} and {body[:SHOWN]!r}"
    raise WrongReply(problem, _status(head.status))


def _status(status: int) -> str:
    return f"HTTP status {status}"


class _Exchange:
    """One run of `exchange`."""

    def __init__(
        self,
        readable: select.epoll,
        connections: Sequence[Connection],
        load: Load,
        tally: Tally,
        answering: Connection | None,
    ) -> None:
        self._readable = readable
        self._connections = connections
        self._load = load
        self._tally = tally
        self._answering = answering
        self._total = len(load.requests)
        self._idle = deque(connections)
        self._busy: dict[int, Connection] = {}
        self._by_descriptor: dict[int, Connection] = {}
        self._started = 0.0
        for connection in connections:
            connection.free_since = 0.0
            connection.bytes_sent = connection.bytes_received = 0
            self._register(connection)

    def run(self) -> None:
        load, tally, clock = self._load, self._tally, time.perf_counter
        self._started = started = now = heard = clock()
        tick_at, send_until = started, started + load.seconds
        try:
            while True:
                if now >= tick_at:
                    tick_at = now + TICK
                    self._look(now, heard)
                if now > send_until and tally.sent < self._total:
                    tally.unsent = load.due(load.seconds) - tally.sent if load.rate is not None else 0
                    self._total = tally.sent
                self._send(now)
                if not self._busy and tally.sent >= self._total:
                    return
                ready = self._wait(tick_at)
                for descriptor, _ in ready:
                    self._receive(self._by_descriptor[descriptor])
                now = clock()
                if ready:
                    heard = now
        except BenchmarkError:
            if not tally.strict:
                for _ in self._busy:
                    tally.fail(WrongReply("not answered before the server was gone", "lost"))
            raise
        finally:
            tally.seconds = now - started
            tally.bytes_sent = sum(connection.bytes_sent for connection in self._connections)
            tally.bytes_received = sum(connection.bytes_received for connection in self._connections)

    # -- sending -----------------------------------------------------------------------------------------------------

    def _send(self, now: float) -> None:
        """Send what is due on what is idle."""
        load, tally, idle, clock = self._load, self._tally, self._idle, time.perf_counter
        rate, started = load.rate, self._started
        limit = self._total if rate is None else min(self._total, load.due(now - started))
        while idle and tally.sent < limit:
            connection, index = idle.popleft(), tally.sent
            tally.sent += 1
            connection.number = load.first + index
            connection.since = connection.sent_at = now
            if rate is not None:
                connection.since = started + load.due_at(index)
                tally.sent_late(now - max(connection.since, connection.free_since))
            try:
                if connection.needs_reopening:
                    self._reopen(connection)
                connection.send(load.requests[index])
            except OSError as error:
                self._lost(connection, error)
                return
            self._busy[connection.descriptor] = connection
            now = clock()

    def _wait(self, tick_at: float) -> list[tuple[int, int]]:
        wait = tick_at - time.perf_counter()
        if self._idle and self._tally.sent < self._total:
            if self._load.rate is None:
                wait = 0.0  # a connection was lost while something was sent on it
            else:
                due = self._started + self._load.due_at(self._tally.sent) - time.perf_counter()
                if 0 < due < wait:  # `epoll` would round the time up to a millisecond
                    select.select([self._readable], [], [], due)
                wait = 0.0 if due < wait else wait
        return self._readable.poll(max(0.0, wait))

    def _reopen(self, connection: Connection) -> None:
        self._by_descriptor.pop(connection.descriptor, None)
        try:
            connection.reopen()
        except OSError as error:
            raise BenchmarkError(f"the server cannot be reached any more: {error}") from error
        self._tally.connections += 1
        self._register(connection)

    def _register(self, connection: Connection) -> None:
        self._by_descriptor[connection.descriptor] = connection
        self._readable.register(connection.descriptor, select.EPOLLIN)

    # -- receiving ---------------------------------------------------------------------------------------------------

    def _receive(self, connection: Connection) -> None:
        load, tally = self._load, self._tally
        if connection.descriptor not in self._busy:
            self._receive_unasked(connection)
            return
        try:
            response = connection.receive()
            if response is None:
                if self._answering is not None:
                    self._answer(connection, self._answering)
                return
        except (OSError, MalformedResponse) as error:
            self._lost(connection, error)
            return
        right = check_response(response, connection.number, load, tally, connection.asked)
        now = time.perf_counter()
        if right:
            tally.latencies.append(now - connection.since)
            tally.ended.append(now - self._started)
        self._free(connection, now)
        self._send(now)

    def _receive_unasked(self, connection: Connection) -> None:
        """What comes on an idle connection is its end, as a rule."""
        try:
            response = connection.receive()
        except (OSError, MalformedResponse):
            response = None
        self._readable.unregister(connection.descriptor)
        connection.needs_reopening = True
        if response is not None:
            self._tally.fail(WrongReply(f"nothing awaits this reply: {response.body[:SHOWN]!r}"))

    def _answer(self, connection: Connection, answering: Connection) -> None:
        """Answer requests of the server's that have come on the stream of ours."""
        for data in connection.early_events():
            try:
                message = self._load.decoder.decode(data)
            except msgspec.DecodeError:
                continue  # it is judged when the response is complete
            if message.method is None or message.id is None:
                continue
            connection.asked += 1
            answer = self._tally.take_aside(message, self._load)
            if answer is not None:
                answering.head = connection.head
                answering.ask(answer, self._load.timeout)

    def _look(self, now: float, heard: float) -> None:
        """Give up what has waited too long."""
        load = self._load
        if now - heard > load.silence:
            raise TimeoutError
        for connection in [each for each in self._busy.values() if now - each.sent_at > load.timeout]:
            self._tally.fail(WrongReply(f"not answered within {load.timeout:g} s", "timeout"))
            self._drop(connection)
        if load.watch is not None:
            load.watch(now - self._started, self._tally)

    def _lost(self, connection: Connection, error: OSError | MalformedResponse) -> None:
        """A connection is of no use any more.

        Raises:
            OSError, MalformedResponse: Where the tally is strict.
        """
        if self._tally.strict:
            raise error
        if isinstance(error, MalformedResponse):
            self._tally.fail(WrongReply(f"this is no HTTP response: {error}", "broken response"))
        else:
            self._tally.fail(WrongReply(f"the connection was lost: {error}", "lost"))
        self._drop(connection)

    def _drop(self, connection: Connection) -> None:
        if not connection.needs_reopening:
            self._readable.unregister(connection.descriptor)
            connection.needs_reopening = True
        self._free(connection, time.perf_counter())

    def _free(self, connection: Connection, now: float) -> None:
        self._busy.pop(connection.descriptor, None)
        connection.asked = 0
        connection.free_since = now
        self._idle.append(connection)
