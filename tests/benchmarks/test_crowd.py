"""Many streams and several processes: what is counted, and that nothing wrong is taken for an answer."""

import os
import resource
import sys
from pathlib import Path

import pytest

from benchmarks import machine, traffic
from benchmarks.crowd import Audience, Listener, Workers
from benchmarks.rows import scale
from benchmarks.table import BenchmarkError, Contestant, Effort
from mcpcore.bench.connection import Connection
from mcpcore.bench.traffic import WrongReply

BARE = Path(__file__).parents[2] / "benchmarks" / "contestants" / "bare_server.py"
ARGUMENTS = ("0", "stateless", "json")


class Pieces:
    """A socket that has so much to read, in pieces."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = list(pieces)

    def setblocking(self, flag: bool) -> None: ...

    def recv(self, size: int) -> bytes:
        return self.pieces.pop(0)


def stream(*pieces: bytes, number: int = 3) -> Listener:
    connection = Connection.__new__(Connection)
    connection.socket = Pieces(*pieces)  # type: ignore[assignment]  # as much of one as is used
    return Listener(connection, number)


def chunk(*events: tuple[str, int]) -> bytes:
    body = b"".join(
        b'data: {"method":"notifications/%b","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%d}}}\n\n'
        % (method.encode(), number)
        for method, number in events
    )
    return b"%x\r\n%b\r\n" % (len(body), body)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
ACKNOWLEDGED = chunk(("subscriptions/acknowledged", 3))
CHANGED = chunk(("tools/list_changed", 3))


def read(*pieces: bytes) -> Listener:
    listener = stream(*pieces)
    for _ in pieces:
        listener.has_got(b"notifications/nothing")
    return listener


def test_every_stream_is_told_of_every_announcement() -> None:
    with Audience([sys.executable, str(BARE), *ARGUMENTS, "1"]) as server:
        server.open("modern")
        assert server.listen(30) > 0
        for _ in range(3):
            latencies = server.announce(traffic.announce())
            assert len(latencies) == 30 and latencies == sorted(latencies)
        server.leave()


def test_a_notification_counts_once_and_when_it_is_complete_enough_to_be_known() -> None:
    half = CHANGED.index(b"_changed")
    listener = stream(HEAD + ACKNOWLEDGED, CHANGED[:half], CHANGED[half:], CHANGED)
    wanted = b"notifications/tools/list_changed"
    assert [listener.has_got(wanted) for _ in range(4)] == [False, False, True, True]
    listener.check(2)


@pytest.mark.parametrize(
    "pieces",
    [
        (HEAD, ACKNOWLEDGED),  # one is missing
        (HEAD, ACKNOWLEDGED, CHANGED, CHANGED),  # one too many
        (HEAD, CHANGED, ACKNOWLEDGED),  # in the wrong order
        (HEAD, ACKNOWLEDGED, chunk(("tools/list_changed", 4))),  # for somebody else
        (HEAD, ACKNOWLEDGED, chunk(("prompts/list_changed", 3))),  # about something else
        (HEAD.replace(b"200 OK", b"201 OK"), ACKNOWLEDGED, CHANGED),
    ],
)
def test_a_stream_with_anything_else_in_it_is_wrong(pieces: tuple[bytes, ...]) -> None:
    read(HEAD, ACKNOWLEDGED, CHANGED).check(1)
    with pytest.raises(WrongReply):
        read(*pieces).check(1)


def test_a_refusal_is_told_at_once_in_the_server_s_words() -> None:
    with pytest.raises(WrongReply, match=r"stream 3 is refused: .*too many"):
        read(b'HTTP/1.1 400 Bad Request\r\n\r\n{"error":{"code":-32603,"message":"too many"}}')


def test_a_stream_that_ends_is_no_stream() -> None:
    with pytest.raises(ConnectionResetError):
        read(b"")


def test_more_streams_than_files_can_be_open_are_refused_with_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1024, 4096))
    with pytest.raises(BenchmarkError, match="10000 streams need 10200 open files, and the limit is 1024"):
        scale.measure_subscriptions(Contestant("any", "1", {}), Effort())


def test_the_limit_of_open_files_is_raised_as_far_as_it_goes() -> None:
    assert machine.open_files() == resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 0


def test_processes_that_a_server_starts_count_with_it() -> None:
    with Workers([sys.executable, str(BARE), *ARGUMENTS, "2"]) as server:
        server.open("modern")
        run = server.run(traffic.add(), 200, 20)
        assert len(run.latencies) == 200
        alone = int(Path(f"/proc/{server._process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        now, most = server.memory()
        assert alone / 2**20 * 2 < now <= most
        assert server.cpu() > 0
