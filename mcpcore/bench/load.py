"""One load: what is sent, how fast, and what became of it. The drivers work one off; nothing here waits.

A closed loop keeps ``window`` requests unanswered and sends the next one when a reply has come. It is a kind client: when
the server stalls, it asks less. An open loop sends at a fixed rate whatever comes back, and counts the latency of each
request from the moment at which it was *due*, so a stall shows in every request that it delayed. (A closed loop that
claims to have a rate would leave them out, which is known as coordinated omission.)
"""

import math
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, overload

from msgspec import Struct
from msgspec.json import Decoder

from mcpcore.bench.traffic import Message, Progress, Reply, WrongReply
from mcpcore.exceptions import BenchmarkError

__all__ = ["TICK", "Failure", "Load", "Repeated", "Tally", "decoder_of_messages"]

TICK: Final = 0.05
"""Seconds between two looks at what has waited too long."""

LATE: Final = 0.001  # seconds; a request that is sent so long after it could have been was held up by the driver
EXAMPLES: Final = 3
EXAMPLE_SIZE: Final = 300
MOST_REQUESTS: Final = 1 << 62

decoder_of_messages: Final = Decoder(Message)


class Repeated(Sequence[bytes]):
    """One request over and over: what stands before its id, the id, what stands behind.

    Args:
        before: Bytes.
        after: Bytes.
        first: The id of the first.
        count: How many there are; None for as many as anybody wants.
    """

    def __init__(self, before: bytes, after: bytes, first: int, count: int | None = None) -> None:
        self._before = before
        self._after = after
        self._first = first
        self._count = MOST_REQUESTS if count is None else count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> bytes: ...

    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...

    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        before, after, first = self._before, self._after, self._first
        if isinstance(index, slice):
            numbers = range(*index.indices(self._count))
            return [b"%b%d%b" % (before, first + number, after) for number in numbers]
        return b"%b%d%b" % (before, first + index, after)


@dataclass(frozen=True)
class Load:
    """What to send, and how.

    Attributes:
        requests: Framed for the wire, in order.
        first: The id of the first; the others follow one by one.
        check: Judges the reply to the request with an id; raises `WrongReply`.
        window: How many may be unanswered at a time, 1 or more.
        decoder: Reads replies.
        notifications: Progress notifications that have to come before each reply.
        rate: Requests per second of an open loop; None for a closed one.
        seconds: No request is sent after this time.
        timeout: Seconds that one request may take; then nobody waits for it any more, and it has failed.
        silence: Seconds without a byte from the server after which it counts as hung.
        refuse: What to say to a request of the server's, framed; None where nothing is said.
        withdraw: What tells the server that nobody waits for a request any more, framed; None where nothing does.
        watch: Called every `TICK` or so with the seconds since the start and the tally.
    """

    requests: Sequence[bytes]
    first: int
    check: Callable[[int, Any], None]
    window: int = 1
    decoder: Decoder[Any] = decoder_of_messages
    notifications: int = 0
    rate: float | None = None
    seconds: float = math.inf
    timeout: float = math.inf
    silence: float = math.inf
    refuse: Callable[[Reply], bytes | None] | None = None
    withdraw: Callable[[int], bytes | None] | None = None
    watch: "Callable[[float, Tally], None] | None" = None

    def due(self, elapsed: float) -> int:
        """Return how many requests may have been sent after so many seconds."""
        total = len(self.requests)
        return total if self.rate is None else min(total, int(elapsed * self.rate) + 1)

    def due_at(self, index: int) -> float:
        """Return the seconds after which the request at ``index`` is due in an open loop."""
        return 0.0 if self.rate is None else index / self.rate


class Failure(Struct):
    """One way in which calls failed.

    Attributes:
        count: How many did.
        examples: What was said, the first few different texts.
    """

    count: int = 0
    examples: list[str] = []

    def add(self, text: str) -> None:
        self.count += 1
        if len(self.examples) < EXAMPLES:
            shown = text if len(text) <= EXAMPLE_SIZE else f"{text[:EXAMPLE_SIZE]}…"
            if shown not in self.examples:
                self.examples.append(shown)


@dataclass
class Tally:
    """What became of a load.

    Attributes:
        strict: The first wrong reply ends the measurement, as an exception.
        latencies: Seconds, of each request that was answered rightly, in the order of the replies.
        ended: When that was, in seconds since the start.
        sent: Requests sent.
        failures: By kind.
        notifications: That came from the server.
        server_requests: The same for requests.
        bytes_sent, bytes_received: With the framing.
        replies: HTTP responses.
        streamed: Those of them that were streams of events.
        connections: That were opened anew while the load went on.
        unsent: Requests of an open loop that were due in its time and have not been sent.
        late: Requests of an open loop that were held up by the driver itself, for more than a millisecond.
        latest: The longest of these delays, in seconds.
        seconds: From the first byte sent to the last reply read.
        ended_by: Why the load could not be worked off; None if it could.
    """

    strict: bool = True
    latencies: "array[float]" = field(default_factory=lambda: array("d"))
    ended: "array[float]" = field(default_factory=lambda: array("d"))
    sent: int = 0
    failures: dict[str, Failure] = field(default_factory=dict[str, Failure])
    notifications: int = 0
    server_requests: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    replies: int = 0
    streamed: int = 0
    connections: int = 0
    unsent: int = 0
    late: int = 0
    latest: float = 0.0
    seconds: float = 0.0
    ended_by: str | None = None
    progress: dict[Any, int] = field(default_factory=dict[Any, int])

    @property
    def failed(self) -> int:
        """How many failures there were, of all kinds."""
        return sum(failure.count for failure in self.failures.values())

    def fail(self, error: BenchmarkError) -> None:
        """Take a failure: count it, or raise it where the tally is strict."""
        if self.strict:
            raise error
        kind = error.kind if isinstance(error, WrongReply) else "broken"
        self.failures.setdefault(kind, Failure(examples=[])).add(str(error))

    def sent_late(self, delay: float) -> None:
        """Take a request that was sent ``delay`` seconds after it was due and there was room for it."""
        if delay > LATE:
            self.late += 1
            self.latest = max(self.latest, delay)

    def take_aside(self, message: Reply, load: Load) -> bytes | None:
        """Take a message that is no reply. Returns what to say to it.

        Raises:
            WrongReply: Progress is out of order, and the tally is strict.
        """
        if message.id is not None:
            self.server_requests += 1
            return load.refuse(message) if load.refuse is not None else None
        self.notifications += 1
        if message.method == "notifications/progress" and load.notifications:
            self._take_progress(message.params)
        return None

    def _take_progress(self, params: Progress) -> None:
        """Count progress for its request. It has to come in order."""
        token = params.progress_token
        self.progress[token] = self.progress.get(token, 0) + 1
        if params.progress != self.progress[token]:
            self.fail(WrongReply(f"progress {params.progress} of request {token} is out of order"))

    def check(self, message: Reply, number: int, load: Load) -> bool:
        """Judge a reply. Returns False if it is wrong, unless that is raised.

        Raises:
            WrongReply: It is wrong, and the tally is strict.
        """
        try:
            load.check(number, message)
            if load.notifications and self.progress.pop(number, 0) != load.notifications:
                raise WrongReply(f"request {number} wants {load.notifications} progress notifications first")
        except WrongReply as error:
            self.fail(error)
            return False
        return True
