"""The measurement from beginning to end: connect, look, call once, warm up, measure, and measure the driver itself."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from types import TracebackType
from typing import Any, Final, Literal, Self

from msgspec import structs

from mcpcore.bench import calls
from mcpcore.bench.ceiling import Ceiling, measure_ceiling, split_at_id
from mcpcore.bench.driver import undisturbed
from mcpcore.bench.http_driver import framed
from mcpcore.bench.http_target import HTTPTarget
from mcpcore.bench.load import Load, Repeated, Tally
from mcpcore.bench.machine import describe
from mcpcore.bench.opening import Dialogue
from mcpcore.bench.plan import Phase, Plan
from mcpcore.bench.process import Usage
from mcpcore.bench.report import DriverUse, Latency, Report, ServerUse, distribution, timeline, warnings_of
from mcpcore.bench.target import StdioTarget, Target, refusal
from mcpcore.bench.traffic import encode
from mcpcore.exceptions import BenchmarkError
from mcpcore.protocol.events import ServerFacts
from mcpcore.types.tools import Tool
from mcpcore.versions import VERSIONS, Era

__all__ = ["Bench", "Sessions", "measure", "measure_itself"]

Sessions = Literal["connection", "shared"]
"""Legacy HTTP sessions: one for each connection, or one for all of them."""

FIRST_ID: Final = 1_000_000_000  # ids of ten digits: all requests have the same size
EMPTY_RESULT: Final = b'{"content":[]}'
SMALL_CALL: Final = {
    "jsonrpc": "2.0",
    "id": FIRST_ID,
    "method": "tools/call",
    "params": {"name": "x", "arguments": {"a": 1}},
}
SMALL_RESULT: Final = b'{"content":[{"type":"text","text":"3"}],"isError":false}'


class Bench:
    """A server to measure: a context manager that connects, negotiates and lists its tools, and ends it all.

    Everything waits in the calling thread; in an event loop, use a thread.

    Args:
        target: The URL of a server that runs, or the program and arguments of one that is started on pipes.
        protocol_version: Speak only this revision; None for the newest that both speak.
        timeout: Seconds that a request may take.
        headers: Further header fields, over HTTP.
        sessions: See `Sessions`.
        inherit_env: A server on pipes gets the whole environment, and not only what programs need to run.
        log: It may write to our standard error.

    Attributes:
        server: What was negotiated.
        tools: What there is to call.

    Raises:
        ValueError: An argument makes no sense.
        TransportError, BenchmarkError: The server cannot be started or reached, or is gone.
        PeerError, RemoteProtocolError, RequestTimeout: It does not speak MCP, or not this revision.
    """

    server: ServerFacts
    tools: list[Tool]

    def __init__(
        self,
        target: str | Sequence[str],
        *,
        protocol_version: str | None = None,
        timeout: float = 60.0,
        headers: Mapping[str, str] | None = None,
        sessions: Sessions = "connection",
        inherit_env: bool = False,
        log: bool = False,
    ) -> None:
        if protocol_version is not None and protocol_version not in VERSIONS:
            raise ValueError(f"{protocol_version!r} is no revision; there are {', '.join(VERSIONS)}")
        if not isinstance(target, str) and headers:
            raise ValueError("headers are for URLs")
        self._name = target if isinstance(target, str) else " ".join(target)
        self._versions = VERSIONS if protocol_version is None else (protocol_version,)
        self._timeout = timeout
        self._next_id = FIRST_ID
        self._stack = ExitStack()

        def open_target() -> Target:
            if isinstance(target, str):
                http = HTTPTarget(target, headers=headers, sessions=sessions, timeout=timeout)
                return self._stack.enter_context(http)
            return self._stack.enter_context(StdioTarget(target, inherit_env=inherit_env, log=log))

        self._open_target = open_target

    def __enter__(self) -> Self:
        with ExitStack() as stack:  # ends what has been started if the rest fails
            self._stack = stack
            self._target = self._open_target()
            self._dialogue = Dialogue(self._target, self._versions, self._timeout)
            self.server = self._dialogue.open()
            self.tools = self._dialogue.list_tools()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, traceback)

    def run(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        plan: Plan | None = None,
        progress: Callable[[Phase], None] | None = None,
    ) -> Report:
        """Call a tool over and over. Once before that to see what it says, and during the warm-up, which is not counted.

        Args:
            tool: Its name.
            arguments: Its arguments.
            plan: How; by default as `Plan` says.
            progress: Told how far it is, every now and then.

        Returns:
            What was found, wrong replies and a server that died included.

        Raises:
            ValueError: There is no such tool, or an argument cannot be mirrored in a header field.
            TransportError, BenchmarkError, RequestTimeout: The first call was not answered.
        """
        plan = plan or Plan()
        if tool not in (names := [each.name for each in self.tools]):
            raise ValueError(f"unknown tool {tool!r}; there are: {', '.join(names) or 'none'}")
        target, dialogue = self._target, self._dialogue
        call = dialogue.call(tool, dict(arguments or {}))
        assert isinstance(call.request_id, int)
        result = dialogue.try_call(call)
        before, after = split_at_id(call.data, call.request_id)
        repeated = structs.replace(call, data=b"%b%d%b" % (before, FIRST_ID, after))
        before, after = split_at_id(target.frame(repeated), FIRST_ID)
        target.prepare(plan.concurrency, self._open_session)
        load = Load(
            Repeated(before, after, FIRST_ID),
            FIRST_ID,
            calls.judge(plan.expect),
            window=plan.concurrency,
            decoder=calls.decoder,
            rate=plan.rate,
            timeout=self._timeout,
            refuse=(lambda message: target.frame_answer(refusal(message))) if self.server.era is Era.LEGACY else None,
            withdraw=target.withdraw,
        )
        if plan.warm_up:
            warm_up = Plan(seconds=plan.warm_up, rate=plan.rate)
            self._work(self._numbered(load, before, after, warm_up), Tally(strict=False), "warm-up", warm_up, progress)
        tally = Tally(strict=False)
        used = self._work(self._numbered(load, before, after, plan), tally, "load", plan, progress)
        ceiling = None
        if plan.ceiling:
            if progress is not None:
                progress(Phase("ceiling", 0.0, 0.0, 0, 0))
            if result is None or not _is_right(result, load):
                result, load = EMPTY_RESULT, replace(load, check=calls.judge(None))
            ceiling = measure_ceiling(target.transport, before, after, result, load, plan.ceiling)
        return self._report(tool, dict(arguments or {}), plan, tally, used, ceiling)

    def _open_session(self) -> None:
        Dialogue(self._target, (self.server.version,), self._timeout).open()

    def _numbered(self, load: Load, before: bytes, after: bytes, plan: Plan) -> Load:
        """Give a load ids that have not been used, and the limits of a plan."""
        requests = Repeated(before, after, self._next_id, plan.requests)
        seconds = math.inf if plan.seconds is None else plan.seconds
        return replace(load, requests=requests, first=self._next_id, seconds=seconds)

    def _work(
        self,
        load: Load,
        tally: Tally,
        name: Literal["warm-up", "load"],
        plan: Plan,
        progress: Callable[[Phase], None] | None,
    ) -> "_Used":
        target = self._target
        if progress is not None:
            load = replace(load, watch=partial(_show, progress, name, plan))
        with undisturbed():
            before, cpu = target.usage(), time.process_time()
            try:
                target.exchange(load, tally)
            except BenchmarkError as error:
                tally.ended_by = str(error)
            except KeyboardInterrupt:
                tally.ended_by = "it was interrupted"
            cpu = time.process_time() - cpu
        self._next_id += tally.sent
        return _Used(cpu, before, target.usage())

    def _report(
        self, tool: str, arguments: dict[str, Any], plan: Plan, tally: Tally, used: "_Used", ceiling: Ceiling | None
    ) -> Report:
        info, ordered = self.server.info, sorted(tally.latencies)
        rate = len(ordered) / tally.seconds if tally.seconds else 0.0
        driver = DriverUse(
            busy=used.driver_cpu / tally.seconds if tally.seconds else 0.0,
            ceiling=None if ceiling is None else ceiling.calls_per_second,
            late=tally.late,
            latest=tally.latest,
        )
        warnings = warnings_of(
            calls_per_second=rate, driver=driver, rate=plan.rate, concurrency=plan.concurrency, tally=tally
        )
        return Report(
            target=self._name,
            tool=tool,
            arguments=arguments,
            server=f"{info.name} {info.version}" if info is not None else "a server without a name",
            transport=self._target.transport,
            protocol_version=self.server.version,
            concurrency=plan.concurrency,
            rate=plan.rate,
            warm_up=plan.warm_up,
            seconds=tally.seconds,
            sent=tally.sent,
            calls=len(ordered),
            calls_per_second=rate,
            failed=tally.failed,
            failures=tally.failures,
            latency=Latency.of(ordered) if ordered else None,
            percentiles=distribution(ordered),
            timeline=timeline(tally),
            notifications=tally.notifications,
            server_requests=tally.server_requests,
            bytes_sent=tally.bytes_sent,
            bytes_received=tally.bytes_received,
            streamed=tally.streamed,
            reconnections=tally.connections,
            unsent=tally.unsent,
            server_use=used.server(tally),
            driver=driver,
            warnings=warnings,
            ended_by=tally.ended_by,
            date=datetime.now(UTC).isoformat(timespec="seconds"),
            machine=describe(),
        )


@dataclass(frozen=True)
class _Used:
    """What was used for a load."""

    driver_cpu: float
    before: Usage | None
    after: Usage | None

    def server(self, tally: Tally) -> ServerUse | None:
        """None where that is not known: the server is elsewhere, or gone."""
        if self.before is None or self.after is None or not self.after.processes or not tally.seconds:
            return None
        cpu = max(0.0, self.after.cpu - self.before.cpu)
        answered = max(1, len(tally.latencies) + tally.failed)
        return ServerUse(cpu / answered, cpu / tally.seconds, self.after.memory, self.after.peak, self.after.processes)


def _is_right(result: bytes, load: Load) -> bool:
    reply = calls.decoder.decode(b'{"jsonrpc":"2.0","id":0,"result":%b}' % result)
    return Tally(strict=False).check(reply, 0, load)


def _show(
    progress: Callable[[Phase], None], name: Literal["warm-up", "load"], plan: Plan, elapsed: float, tally: Tally
) -> None:
    shares = [elapsed / plan.seconds] if plan.seconds is not None else []
    if plan.requests is not None:
        shares.append(tally.sent / plan.requests)
    progress(Phase(name, elapsed, min(1.0, max(shares, default=0.0)), len(tally.latencies), tally.failed))


def measure(
    target: str | Sequence[str],
    tool: str,
    arguments: Mapping[str, Any] | None = None,
    *,
    plan: Plan | None = None,
    progress: Callable[[Phase], None] | None = None,
    protocol_version: str | None = None,
    timeout: float = 60.0,
    headers: Mapping[str, str] | None = None,
    sessions: Sessions = "connection",
    inherit_env: bool = False,
    log: bool = False,
) -> Report:
    """Measure one tool of one server. See `Bench` and `Bench.run`, of which this is the sum.

    Returns:
        What was found, wrong replies and a server that died included.

    Raises:
        ValueError: An argument makes no sense, or there is no such tool.
        TransportError, BenchmarkError, PeerError, RemoteProtocolError, RequestTimeout: There is nothing to measure: the
            server cannot be started, reached or understood.
    """
    with Bench(
        target,
        protocol_version=protocol_version,
        timeout=timeout,
        headers=headers,
        sessions=sessions,
        inherit_env=inherit_env,
        log=log,
    ) as bench:
        return bench.run(tool, arguments, plan, progress)


def measure_itself(transport: Literal["stdio", "http"], concurrency: int, seconds: float) -> Ceiling:
    """Measure the driver: small calls to a server that does nothing.

    Args:
        transport: Over which transport.
        concurrency: Calls in flight.
        seconds: How long.

    Raises:
        ValueError: A number is out of its range.
    """
    Plan(concurrency=concurrency, seconds=seconds)
    body = encode(SMALL_CALL)
    framed_call = body + b"\n" if transport == "stdio" else framed(body, [])
    before, after = split_at_id(framed_call, FIRST_ID)
    load = Load([], FIRST_ID, calls.judge(None), window=concurrency, decoder=calls.decoder)
    return measure_ceiling(transport, before, after, SMALL_RESULT, load, seconds)
