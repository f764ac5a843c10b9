"""A load on pipes that is not strict: whatever the server does is counted, and the load goes on as long as there is one."""

import sys

import pytest

from mcpcore.bench import Bench, Phase, Plan, Report
from mcpcore.bench.process import usage
from mcpcore.exceptions import BenchmarkError, PeerError, RemoteProtocolError, TransportError
from tests.support.sketches import MCP

QUICK = Plan(concurrency=4, seconds=None, count=20, warm_up=0, ceiling=0)


def sketch(body: str, *, era: str = "modern", begin: int = 0) -> list[str]:
    """A server that does ``body`` for each call from ``begin`` on; ``right`` is the right reply."""
    program = MCP.replace("ERA_GOES_HERE", repr(era)).replace("BEGIN_GOES_HERE", str(begin))
    return [sys.executable, "-c", program.replace("BODY", body.replace("\n", "\n    "))]


def run(body: str, plan: Plan = QUICK, *, era: str = "modern", begin: int = 0, timeout: float = 20.0) -> Report:
    with Bench(sketch(body, era=era, begin=begin), timeout=timeout) as bench:
        return bench.run("add", {"a": 1}, plan)


def failures(report: Report) -> dict[str, tuple[int, list[str]]]:
    return {kind: (failure.count, failure.examples) for kind, failure in report.failures.items()}


@pytest.mark.parametrize(("era", "version"), [("modern", "2026-07-28"), ("legacy", "2025-11-25")])
def test_every_call_is_answered_once_in_both_eras(era: str, version: str) -> None:
    report = run("write(right)", era=era)
    assert report.is_right
    assert (report.protocol_version, report.sent, report.calls, report.failures) == (version, 20, 20, {})
    assert report.latency is not None
    assert 0 < report.latency.min <= report.latency.p50 <= report.latency.max <= report.seconds
    assert report.server_use is not None and report.server_use.processes == 1


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        ("write({'id': number, 'error': {'code': -5, 'message': 'no'}})", "JSON-RPC error", "no (-5)"),
        ("write({'id': number, 'result': text('broken', isError=True)})", "tool error", "broken"),
        ("write({'id': number})", "wrong reply", "neither result nor error"),
        ("write({'id': number, 'result': text('', resultType='input_required')})", "input required", "input_required"),
        ("write(right); write(right)", "wrong reply", "nothing awaits this reply"),
        ("print('hello', flush=True); write(right)", "no message", "b'hello'"),
    ],
)
def test_what_is_wrong_is_counted_by_kind_with_examples(body: str, kind: str, said: str) -> None:
    report = run(body, begin=2)
    (count, examples) = failures(report).pop(kind)
    # A reply that comes twice may come a second time when nobody reads any more.
    assert 15 <= count <= 20
    assert said in examples[0]
    assert not report.is_right


def test_an_id_that_nobody_has_sent_is_no_reply() -> None:
    report = run("write({**right, 'id': 'text'}); write(right)")
    assert failures(report)["wrong reply"][0] >= 15
    assert report.calls == 20


def test_an_exact_result_can_be_demanded() -> None:
    plan = Plan(concurrency=2, seconds=None, count=10, warm_up=0, ceiling=0, expect="right")
    assert run("write(right)", plan).is_right
    report = run("write({'id': number, 'result': text('right' if number % 2 else 'left')})", plan)
    assert failures(report) == {"unexpected result": (5, ["not what was expected: 'left'"])}
    assert report.calls == 5


def test_structured_content_can_be_demanded_as_json() -> None:
    plan = Plan(concurrency=2, seconds=None, count=10, warm_up=0, ceiling=0, expect='{"b": [1], "a": null}')
    assert run("write({'id': number, 'result': text('x', structuredContent={'a': None, 'b': [1]})})", plan).is_right
    assert not run("write({'id': number, 'result': text('x', structuredContent={'a': None, 'b': [2]})})", plan).calls


def test_notifications_are_counted_and_do_no_harm() -> None:
    report = run("write({'method': 'notifications/message', 'params': {'data': [1]}}); write(right)")
    assert report.is_right
    assert report.notifications >= 20


def test_requests_of_a_legacy_server_are_refused_and_counted() -> None:
    body = """
write({'id': 'q', 'method': 'elicitation/create', 'params': {'message': 'sure?'}})
answer = json.loads(sys.stdin.readline())
write({'id': number, 'result': text(answer['error']['message'] if answer['id'] == 'q' else '?')})"""
    plan = Plan(
        concurrency=1,
        seconds=None,
        count=5,
        warm_up=0,
        ceiling=0,
        expect="elicitation/create is refused: this client measures, and there is nobody to ask",
    )
    report = run(body, plan, era="legacy", begin=2)
    assert report.is_right
    assert report.server_requests == 5


def test_ping_is_answered() -> None:
    body = """
write({'id': 'p', 'method': 'ping'})
write({'id': number, 'result': text(json.dumps(json.loads(sys.stdin.readline())['result']))})"""
    plan = Plan(concurrency=1, seconds=None, count=5, warm_up=0, ceiling=0, expect="{}")
    assert run(body, plan, era="legacy", begin=2).is_right


def test_a_call_that_takes_too_long_is_given_up_withdrawn_and_not_missed_when_it_comes_at_last() -> None:
    body = """
if number % 5:
    write(right)
else:
    told = json.loads(sys.stdin.readline())
    assert told['method'] == 'notifications/cancelled' and told['params']['requestId'] == number
    write(right)"""
    plan = Plan(concurrency=1, seconds=None, count=10, warm_up=0, ceiling=0)
    report = run(body, plan, begin=2, timeout=0.5)
    assert failures(report) == {"timeout": (2, ["not answered within 0.5 s"])}
    assert report.calls == 8


def test_a_server_that_dies_ends_the_load_and_what_was_in_flight_counts_as_lost() -> None:
    report = run("sys.exit('the reason')", begin=8)
    assert report.ended_by is not None
    assert "status 1" in report.ended_by and "the reason" in report.ended_by
    assert failures(report) == {"lost": (4, ["not answered before the server was gone"])}
    assert not report.is_right


def test_a_stall_shows_in_every_call_of_an_open_loop_that_it_delays() -> None:
    body = "time.sleep(0.4 if number % 1000 == 5 else 0); write(right)"
    closed = run(body, Plan(concurrency=1, seconds=None, count=100, warm_up=0, ceiling=0))
    opened = run(body, Plan(concurrency=1, seconds=None, count=100, warm_up=0, ceiling=0, rate=100.0))
    assert closed.latency is not None and opened.latency is not None
    assert closed.latency.p90 < 0.1 < closed.latency.max, "one call has noticed"
    assert opened.latency.p90 > 0.1, "a third of them has waited"
    assert opened.calls_per_second <= 105


def test_an_open_loop_says_when_the_server_does_not_keep_up() -> None:
    plan = Plan(concurrency=2, seconds=0.5, warm_up=0, ceiling=0, rate=1000.0)
    report = run("time.sleep(0.01); write(right)", plan)
    assert report.is_right
    assert report.sent + report.unsent == 500
    assert report.unsent > 300
    assert any("were due and never sent" in warning for warning in report.warnings)


def test_time_ends_a_load_and_what_is_in_flight_is_waited_for() -> None:
    report = run("write(right)", Plan(concurrency=4, seconds=0.2, warm_up=0.05, ceiling=0))
    assert report.is_right
    assert report.sent == report.calls > 10
    assert 0.2 <= report.seconds < 5
    assert sum(piece.calls_per_second for piece in report.timeline) > 0


def test_progress_is_reported() -> None:
    phases: list[Phase] = []
    with Bench(sketch("write(right)")) as bench:
        bench.run("add", {}, Plan(seconds=0.15, warm_up=0.1, ceiling=0.05), phases.append)
    assert list(dict.fromkeys(phase.name for phase in phases)) == ["warm-up", "load", "ceiling"]
    assert all(0 <= phase.share <= 1 for phase in phases)


def test_large_replies_and_arguments_pass() -> None:
    plan = Plan(concurrency=8, seconds=None, count=16, warm_up=0, ceiling=0.05, expect="x" * 300_000)
    body = "write({'id': number, 'result': text(request['params']['arguments']['x'])})"
    with Bench(sketch(body)) as bench:
        report = bench.run("add", {"x": "x" * 300_000}, plan)
    assert report.is_right
    assert report.bytes_sent > 16 * 300_000 < report.bytes_received
    assert report.driver.ceiling


def test_the_ceiling_is_what_the_driver_reaches_with_a_server_that_does_nothing() -> None:
    report = run("time.sleep(0.001); write(right)", Plan(concurrency=1, seconds=0.1, warm_up=0, ceiling=0.1))
    assert report.driver.ceiling is not None
    assert report.driver.ceiling > 2 * report.calls_per_second


def test_a_first_call_that_fails_leaves_a_ceiling() -> None:
    body = "write({'id': number, 'result': text('broken', isError=True)})"
    report = run(body, Plan(concurrency=1, seconds=None, count=3, warm_up=0, ceiling=0.05))
    assert report.calls == 0 and report.latency is None and report.percentiles == [] and report.timeline == []
    assert report.driver.ceiling


def test_a_server_is_gone_when_the_context_is_left_with_all_that_it_has_started() -> None:
    body = "import subprocess; subprocess.Popen(['sleep', '60']); write(right)"
    with Bench(sketch(body)) as bench:
        report = bench.run("add", {}, Plan(concurrency=1, seconds=None, count=2, warm_up=0, ceiling=0))
        assert report.server_use is not None and report.server_use.processes >= 3
        pid = bench._target._process.pid  # type: ignore[attr-defined]  # there is no public way to it
    assert usage([pid]).processes == 0


@pytest.mark.parametrize(
    ("argv", "error", "said"),
    [
        (["no-such-command"], TransportError, "cannot start 'no-such-command'"),
        ([sys.executable, "-c", "import sys; sys.exit('the reason')"], BenchmarkError, "status 1.*the reason"),
        (sketch("", era="neither"), PeerError, "Method not found"),
    ],
)
def test_there_is_nothing_to_measure(argv: list[str], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=f"(?s){said}"), Bench(argv):
        pass


def test_a_revision_can_be_demanded() -> None:
    with Bench(sketch("write(right)", era="legacy"), protocol_version="2025-11-25") as bench:
        assert bench.server.version == "2025-11-25"
    with pytest.raises((RemoteProtocolError, PeerError)), Bench(sketch(""), protocol_version="2025-06-18"):
        pass


def test_an_unknown_tool_is_named_with_those_that_there_are() -> None:
    with Bench(sketch("write(right)")) as bench, pytest.raises(ValueError, match="unknown tool 'sub'; there are: add"):
        bench.run("sub")
