"""The driver believes no server: each test starts one that misbehaves in one way, and the driver says which."""

import sys
from pathlib import Path

import pytest

from benchmarks import traffic
from mcpcore.bench.stdio_driver import StdioServer
from mcpcore.bench.traffic import WrongReply
from mcpcore.exceptions import BenchmarkError
from tests.support.sketches import STDIO

BARE = Path(__file__).parents[2] / "benchmarks" / "contestants" / "bare_server.py"


def sketch(body: str) -> StdioServer:
    """A server that does ``body`` for each request; ``right`` is the right reply."""
    return StdioServer([sys.executable, "-c", STDIO.replace("BODY", body)])


def bare(tools: int = 0) -> StdioServer:
    return StdioServer([sys.executable, str(BARE), str(tools)])


@pytest.mark.parametrize("window", [1, 7, 100])
def test_every_request_is_answered_once_whatever_the_window(window: int) -> None:
    with sketch("write(right)") as server:
        run = server.run(traffic.add(), 100, window)
    assert run.requests == 100
    assert len(run.latencies) == 100
    assert run.latencies == sorted(run.latencies)
    assert 0 < run.latencies[0] <= run.latencies[-1] <= run.seconds


def test_numbers_go_on_from_run_to_run() -> None:
    with sketch("write(right)") as server:
        server.run(traffic.add(), 3)
        server.run(traffic.add(), 3)
        with pytest.raises(WrongReply, match="request 6 wants"):
            server.run(traffic.echo(20), 1)
            pytest.fail("the sketch adds, so this reply must have been refused")


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("write({**right, 'result': text('0')})", "request 0 wants '7', but got '0'"),
        ("write({**right, 'result': {**text('7'), 'isError': True}})", "wants one block of text"),
        ("write({**right, 'result': {'content': []}})", "wants one block of text"),
        ("write({'id': number, 'error': {'code': -32603, 'message': 'no'}})", "answered with error -32603: no"),
        ("write({'id': number})", "neither result nor error"),
        ("write({**right, 'id': number + 1})", "nothing awaits this reply"),
        ("write({**right, 'id': None})", "nothing awaits this reply"),
        ("write(right); write(right)", "nothing awaits this reply"),
        ("print('hello', flush=True)", "no JSON-RPC message"),
        ("sys.exit('the reason')", "closed its output"),
        ("write(right); sys.exit(3)", "exited with status 3"),
    ],
)
def test_what_is_wrong_is_named(body: str, complaint: str) -> None:
    with pytest.raises(BenchmarkError, match=complaint), sketch(body) as server:
        server.run(traffic.add(), 1)


def test_the_reply_to_an_earlier_run_is_not_taken_for_one_of_this_run() -> None:
    with pytest.raises(WrongReply, match="nothing awaits this reply"), sketch("write({**right, 'id': 0})") as server:
        server.run(traffic.unknown_tool(), 0)
        server.run(traffic.add(), 1)
        server.run(traffic.add(), 1)


def test_the_standard_error_of_a_server_that_died_is_quoted() -> None:
    with pytest.raises(BenchmarkError, match="the reason"), sketch("sys.exit('the reason')") as server:
        server.run(traffic.add(), 1)


def test_a_silent_server_counts_as_hung(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StdioServer, "silence", 0.05)
    with pytest.raises(BenchmarkError, match="was silent"), sketch("pass") as server:
        server.run(traffic.add(), 1)


def test_a_server_that_outlives_its_input_is_killed_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StdioServer, "drain", 0.05)
    server = sketch("import signal; write(right); signal.pause()")
    with pytest.raises(BenchmarkError, match="did not exit"), server:
        server.run(traffic.add(), 1)
    assert server.memory() == (0, 0), "it is gone"


def test_requests_larger_than_a_pipe_go_out_while_replies_come_in() -> None:
    with bare() as server:
        run = server.run(traffic.echo(300_000), 20, window=10)
    assert run.requests == 20


def test_a_payload_that_came_back_changed_is_refused() -> None:
    body = "sent = request['params']['arguments']['text']; write({'id': number, 'result': text(sent[:-1] + 'X')})"
    with pytest.raises(WrongReply, match="wants its 5000 bytes back"), sketch(body) as server:
        server.run(traffic.echo(5000), 1)


def progress(steps: str) -> str:
    return (
        "token = request['params']['_meta']['progressToken']; "
        f"[write({{'method': 'notifications/progress', 'params': {{'progressToken': token, 'progress': step}}}}) "
        f"for step in {steps}]; write({{'id': number, 'result': text('done')}})"
    )


def test_progress_is_counted() -> None:
    with sketch(progress("(1, 2, 3)")) as server:
        assert server.run(traffic.count(3), 2).requests == 2


@pytest.mark.parametrize(
    ("steps", "complaint"), [("(1, 2)", "wants 3 progress"), ("(1, 2, 3, 4)", "wants 3"), ("(2, 1, 3)", "out of order")]
)
def test_progress_that_is_missing_or_out_of_order_is_refused(steps: str, complaint: str) -> None:
    with pytest.raises(WrongReply, match=complaint), sketch(progress(steps)) as server:
        server.run(traffic.count(3), 1)


def test_a_run_stops_sending_at_its_limit_and_waits_for_what_is_in_flight() -> None:
    with bare() as server:
        run = server.run(traffic.add(), 100_000, window=4, limit=0.05)
    assert 4 <= run.requests < 100_000


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_bare_server_gives_every_right_answer_in_both_eras(era: str) -> None:
    kinds = (traffic.add(), traffic.add("add_sync"), traffic.echo(100), traffic.fill(1000), traffic.locate())
    with bare() as server:
        server.open(era)
        assert server.opened_after > 0
        for asked in (*kinds, traffic.count(5), traffic.unknown_tool()):
            assert server.run(asked, 10, window=4).requests == 10
        assert server.cpu() >= 0
        now, peak = server.memory()
        assert 5 < now <= peak < 500


def test_a_listing_has_to_be_complete() -> None:
    with bare(3) as server:
        server.open("legacy")
        server.run(traffic.listing(3), 2)
        with pytest.raises(WrongReply, match="wants 4 tools on one page, but got 3"):
            server.run(traffic.listing(4), 1)


def test_a_server_that_does_not_agree_to_the_revision_is_refused() -> None:
    body = "write({'id': number, 'result': {'protocolVersion': '2024-11-05', 'capabilities': {}}})"
    with pytest.raises(WrongReply, match="does not agree to 2025-11-25"), sketch(body) as server:
        server.open("legacy")
