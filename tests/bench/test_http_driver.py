"""The driver believes no server over HTTP either: each test starts one that misbehaves in one way, to be named."""

import socket
import sys
from pathlib import Path

import pytest

from benchmarks import traffic
from mcpcore.bench.http_driver import HTTPServer
from mcpcore.bench.traffic import Message, Traffic, WrongReply
from mcpcore.exceptions import BenchmarkError
from tests.support.sketches import HTTP

BARE = Path(__file__).parents[2] / "benchmarks" / "contestants" / "bare_server.py"


def sketch(body: str, *, sessions: bool = False, prelude: str = "") -> HTTPServer:
    """A server that does ``body`` for each request; ``right`` is the right reply to a call, ``opened`` to another."""
    program = prelude + HTTP.replace("self.BODY_GOES_HERE", body.replace("\n", "\n        "))
    return HTTPServer([sys.executable, "-c", program], sessions=sessions)


def opening(body: str) -> str:
    """``body``, but the opening request is answered rightly."""
    return f"""if request["method"] in ("server/discover", "initialize"):
    self.write(opened)
else:
    {body}"""


def bare(state: str = "stateless", tools: int = 0) -> HTTPServer:
    return HTTPServer([sys.executable, str(BARE), str(tools), state, "json", "1"], sessions=state == "sessions")


@pytest.mark.parametrize("window", [1, 3, 20])
def test_every_request_is_answered_once_whatever_the_number_of_connections(window: int) -> None:
    with bare() as server:
        server.open("modern")
        run = server.run(traffic.add(), 50, window)
    assert run.requests == 50
    assert len(run.latencies) == 50
    assert run.latencies == sorted(run.latencies)
    assert 0 < run.latencies[0] <= run.latencies[-1] <= run.seconds


@pytest.mark.parametrize(("era", "state"), [("modern", "stateless"), ("legacy", "stateless"), ("legacy", "sessions")])
def test_the_bare_server_gives_every_right_answer_in_all_forms(era: str, state: str) -> None:
    kinds = (traffic.add(), traffic.echo(100), traffic.fill(1_000_000), traffic.locate(), traffic.unknown_tool())
    with bare(state) as server:
        server.open(era)
        assert server.opened_after > 0
        for asked in kinds:
            assert server.run(asked, 10, window=4).requests == 10
        details = server.details()
    assert details["SSE %"] == 0
    assert 5 < details["RSS MiB"] < 500


def test_requests_say_in_their_headers_what_the_era_wants() -> None:
    body = """wanted = {
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": request["method"],
    "Mcp-Name": request["params"].get("name"),
    "Mcp-Session-Id": None,
}
if (missing := [name for name in wanted if headers[name] != wanted[name]]):
    self.send(400, str(missing))
else:
    self.write(opened if request["method"] == "server/discover" else right)"""
    with sketch(body) as server:
        server.open("modern")
        server.run(traffic.add(), 3)


def test_each_connection_has_a_session_of_its_own_that_is_opened_as_the_specification_says() -> None:
    body = """global seen, initialized
if request["method"] == "initialize":
    seen = globals().get("seen", 0) + 1
    self.write(opened, Mcp_Session_Id=f"s{seen}")
elif request["method"] == "notifications/initialized":
    initialized = globals().get("initialized", set()) | {headers["Mcp-Session-Id"]}
    self.send(202, "")
elif headers["MCP-Protocol-Version"] == "2025-11-25" and headers["Mcp-Session-Id"] in initialized:
    right["result"]["content"][0]["text"] += headers["Mcp-Session-Id"]
    self.write(right)
else:
    self.send(404, "")"""
    sessions: set[str] = set()

    def check(number: int, message: Message) -> None:
        assert message.result is not None
        sessions.add(message.result.content[0].text.removeprefix(str(number + 7)))

    asked = Traffic("tools/call", traffic.add().params, check)
    with sketch(body, sessions=True) as server:
        server.open("legacy")
        server.run(asked, 6, window=3)
        server.run(asked, 6, window=3)
    assert sessions == {"s2", "s3", "s4"}  # the first belongs to the opening request


def test_an_error_that_is_asked_for_may_come_with_the_status_that_the_protocol_gives_it() -> None:
    body = "self.write({'id': number, 'error': {'code': -32602, 'message': 'Unknown tool'}}, status=400)"
    with sketch(opening(body)) as server:
        server.open("modern")
        server.run(traffic.unknown_tool(), 3)


def test_sessions_that_are_left_open_have_answered_one_request_each() -> None:
    with bare("sessions") as server:
        server.open("legacy")
        server.open_sessions(5, traffic.add())
        server.run(traffic.add(), 7, window=7)


@pytest.mark.parametrize(
    ("body", "sessions", "complaint"),
    [
        ("self.write(opened)", True, "gives out no session"),
        ("self.write(opened, Mcp_Session_Id='s')", False, "gives out a session"),
    ],
)
def test_a_server_of_the_other_kind_is_refused(body: str, sessions: bool, complaint: str) -> None:
    with pytest.raises(WrongReply, match=complaint), sketch(body, sessions=sessions) as server:
        server.open("legacy")


def test_a_notification_that_is_answered_with_more_than_202_is_refused() -> None:
    body = "self.write(opened, Mcp_Session_Id='s')"
    with pytest.raises(WrongReply, match="a notification is answered with 202"), sketch(body, sessions=True) as server:
        server.open("legacy")
        server.run(traffic.add(), 1)


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("right['result'] = text('0'); self.write(right)", "wants '8', but got '0'"),
        ("self.write({'id': number, 'error': {'code': -32603, 'message': 'no'}})", "answered with error -32603: no"),
        ("self.write({'id': number})", "neither result nor error"),
        ("self.write({**right, 'id': number + 1})", "nothing awaits this reply"),
        ("self.write(right, right, kind='text/event-stream')", "nothing awaits this reply"),
        ("self.write(kind='text/event-stream')", "has no reply in it"),
        ("self.write(right, status=500)", "answered with status 500"),
        ("self.send(500, 'oh dear')", "answered with status 500 and b'oh dear'"),
        ("self.send(200, 'hello', 'application/json')", "no JSON-RPC message"),
        ("self.wfile.write(b'hello\\r\\n\\r\\n')", "sent what is no response"),
        ("self.write(right); self.wfile.write(b'!')", "after the end of a response|sent what is no response"),
        ("self.close_connection = True", "closed a connection instead of replying"),
    ],
)
def test_what_is_wrong_is_named(body: str, complaint: str) -> None:
    with pytest.raises(BenchmarkError, match=complaint), sketch(opening(body)) as server:
        server.open("modern")
        server.run(traffic.add(), 2)  # what comes too late for the first is in front of the second


def test_a_silent_server_counts_as_hung(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BenchmarkError, match="was silent"), sketch(opening("time.sleep(60)")) as server:
        server.open("modern")
        monkeypatch.setattr(server, "silence", 0.05)
        server.run(traffic.add(), 1)


def test_a_server_that_exits_instead_of_listening_is_quoted() -> None:
    with (
        pytest.raises(BenchmarkError, match=r"(?s)exited with status 1 instead of listening.*the reason"),
        HTTPServer([sys.executable, "-c", "import sys; sys.exit('the reason')"]) as server,
    ):
        server.open("modern")


def test_nobody_gets_the_port_before_the_server_listens() -> None:
    waiting = HTTPServer([sys.executable, "-c", "import signal; signal.pause()"])
    with waiting as server, socket.socket() as stranger, pytest.raises(OSError, match="in use"):
        stranger.bind(("127.0.0.1", server.port))


def test_a_server_that_never_listens_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HTTPServer, "silence", 0.05)
    server = HTTPServer([sys.executable, "-c", "import signal; signal.pause()"])
    with pytest.raises(BenchmarkError, match="does not listen on port"), server:
        server.open("modern")


def test_a_server_that_does_not_heed_sigterm_is_killed_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HTTPServer, "drain", 0.05)
    server = sketch("self.write(opened)", prelude="import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)")
    with pytest.raises(BenchmarkError, match="did not exit within 0 s after SIGTERM"), server:
        server.open("modern")
    assert server.memory() == (0, 0), "it is gone"


def test_a_server_that_ends_with_an_error_is_reported() -> None:
    prelude = "import os, signal; signal.signal(signal.SIGTERM, lambda *_: os._exit(3))"
    with (
        pytest.raises(BenchmarkError, match="exited with status 3"),
        sketch("self.write(opened)", prelude=prelude) as server,
    ):
        server.open("modern")


def test_streams_of_events_are_read_and_counted() -> None:
    body = """progress = [
    {"method": "notifications/progress", "params": {"progressToken": number, "progress": step}} for step in (1, 2, 3)
]
self.write(*progress, {"id": number, "result": text("done")}, kind="text/event-stream")"""
    with sketch(opening(body.replace("\n", "\n    "))) as server:
        server.open("modern")
        assert server.run(traffic.count(3), 3).requests == 3
        assert server.details()["SSE %"] == 75
        with pytest.raises(WrongReply, match="wants 4 progress notifications"):
            server.run(traffic.count(4), 1)


def test_a_run_stops_sending_at_its_limit_and_waits_for_what_is_in_flight() -> None:
    with bare() as server:
        server.open("modern")
        run = server.run(traffic.add(), 100_000, window=4, limit=0.05)
    assert 4 <= run.requests < 100_000


def test_a_listing_has_to_be_complete() -> None:
    with bare(tools=3) as server:
        server.open("modern")
        server.run(traffic.listing(3), 2)
        with pytest.raises(WrongReply, match="wants 4 tools on one page, but got 3"):
            server.run(traffic.listing(4), 1)
