"""A load on HTTP connections that is not strict: what the server does is counted, and connections are opened again."""

import ssl
import sys
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mcpcore.bench import Bench, Plan, Report, measure
from mcpcore.bench.http_driver import HTTPServer
from mcpcore.exceptions import AuthError, PeerError, TransportError
from tests.support.sketches import HTTP, OPENING

QUICK = Plan(concurrency=4, seconds=None, count=20, warm_up=0, ceiling=0)
PRELUDE = 'state = {"calls": 0, "sessions": 0}\n'


@contextmanager
def sketch(
    body: str, *, era: str = "modern", schema: str = "{'type': 'object'}", prelude: str = "", more: str = ""
) -> Generator[HTTPServer]:
    """A server that does ``body`` for each call, and has ``more`` methods."""
    opening = OPENING.replace("ERA_GOES_HERE", repr(era)).replace("SCHEMA_GOES_HERE", schema)
    whole = opening.replace("BODY", body.replace("\n", "\n    ")).replace("\n", "\n        ")
    program = prelude + PRELUDE + HTTP.replace("self.BODY_GOES_HERE", whole)
    program = program.replace("    def write(", f"{more}\n    def write(")
    with HTTPServer([sys.executable, "-c", program]) as server:
        server.await_listening()
        yield server


def run(body: str, plan: Plan = QUICK, timeout: float = 20.0, **options: Any) -> Report:
    arguments = options.pop("arguments", {"a": 1})
    bench = {name: options.pop(name) for name in ("headers", "sessions") if name in options}
    with sketch(body, **options) as server, Bench(url(server), timeout=timeout, **bench) as opened:
        return opened.run("add", arguments, plan)


def url(server: HTTPServer, path: str = "/mcp") -> str:
    return f"http://127.0.0.1:{server.port}{path}"


def failures(report: Report) -> dict[str, tuple[int, list[str]]]:
    return {kind: (failure.count, failure.examples) for kind, failure in report.failures.items()}


@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
def test_every_call_is_answered_once_whatever_the_era_and_the_form(era: str, kind: str) -> None:
    report = run(f"self.write(right, kind={kind!r})", era=era)
    assert report.is_right
    assert (report.sent, report.calls, report.reconnections) == (20, 20, 0)
    assert report.streamed == (20 if kind == "text/event-stream" else 0)
    assert report.server_use is not None and report.server_use.memory > 5_000_000


def test_arguments_are_mirrored_in_header_fields_where_the_tool_says_so() -> None:
    body = """
import base64
region = base64.b64decode(headers["Mcp-Param-Region"].removeprefix("=?base64?").removesuffix("?=")).decode()
if (headers["Mcp-Method"], headers["Mcp-Name"], region) == ("tools/call", "add", "Z\\u00fcrich"):
    self.write(right)
else:
    self.send(400, str(headers))"""
    schema = "{'type': 'object', 'properties': {'a': {'type': 'string', 'x-mcp-header': 'Region'}}}"
    assert run(body, schema=schema, arguments={"a": "Zürich"}).is_right


@pytest.mark.parametrize(("sessions", "count"), [("connection", 4), ("shared", 1)])
def test_connections_have_a_session_each_or_share_one_and_end_them(sessions: str, count: int, tmp_path: Path) -> None:
    ended = tmp_path / "ended"
    more = f"""
    def do_DELETE(self):
        with open({str(ended)!r}, "a") as file:
            file.write(self.headers["Mcp-Session-Id"] + " ")
        self.send(204, "")
"""
    plan = Plan(concurrency=4, seconds=None, count=40, warm_up=0, ceiling=0)
    body = """
self.write(right) if headers["MCP-Protocol-Version"] == "2025-11-25" else self.send(400, "")"""
    report = run(body, plan, era="legacy", more=more, sessions=sessions)
    assert report.is_right
    assert sorted(ended.read_text().split()) == [f"s{number}" for number in range(1, count + 1)]


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        ("self.write({'id': number, 'error': {'code': -5, 'message': 'no'}}, status=400)", "JSON-RPC error", "no (-5)"),
        ("self.send(500, 'oh dear')", "HTTP status 500", "b'oh dear'"),
        ("self.send(307, '', Location='/other')", "HTTP status 307", "status 307 to /other"),
        ("self.write({**right, 'id': None}, status=404)", "HTTP status 404", "nothing awaits"),
        ("self.write({**right, 'id': 1})", "wrong reply", "nothing awaits"),
        ("self.write(right, right, kind='text/event-stream')", "wrong reply", "nothing awaits"),
        ("self.write(kind='text/event-stream')", "wrong reply", "no reply in it"),
        ("self.send(200, 'hello', 'application/json')", "no message", "b'hello'"),
        ("self.wfile.write(b'hello\\r\\n\\r\\n')", "broken response", "no status line"),
        ("self.close_connection = True", "lost", "closed before the response was complete"),
    ],
)
def test_what_is_wrong_is_counted_by_kind_with_examples(body: str, kind: str, said: str) -> None:
    report = run(f"self.write(right) if state['calls'] == 1 else None\nif state['calls'] > 1:\n    {body}")
    ((found, (count, examples)),) = failures(report).items()
    assert (found, count) == (kind, 20)
    assert said in examples[0]
    assert not report.is_right and report.ended_by is None


def test_a_server_that_closes_after_each_response_is_connected_to_again() -> None:
    report = run("self.write(right, Connection='close'); self.close_connection = True")
    assert report.is_right
    assert report.reconnections >= 16


def test_a_connection_that_the_server_closes_while_it_is_idle_is_no_failure() -> None:
    # Without saying so: the client finds out before, or when, it wants to send the next call.
    plan = Plan(concurrency=2, seconds=None, count=10, warm_up=0, ceiling=0, rate=50.0)
    report = run("self.write(right); self.close_connection = True", plan)
    assert report.is_right
    assert report.reconnections >= 8


def test_a_response_without_a_length_is_read_until_the_connection_ends() -> None:
    body = """
self.wfile.write(b"HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\n\\r\\n")
self.wfile.write(json.dumps({"jsonrpc": "2.0", **right}).encode())
self.close_connection = True"""
    assert run(body).is_right


def test_requests_of_a_legacy_server_are_refused_while_the_call_goes_on() -> None:
    body = """
def event(message):
    line = b"data: " + json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\\n\\n"
    self.wfile.write(b"%x\\r\\n%b\\r\\n" % (len(line), line))
self.send_response(200)
self.send_header("Content-Type", "text/event-stream")
self.send_header("Transfer-Encoding", "chunked")
self.end_headers()
if state["calls"] > 1:
    event({"method": "notifications/message", "params": {}})
    event({"id": -number, "method": "elicitation/create", "params": {}})
    while -number not in state.get("answers", {}):
        time.sleep(0.001)
    right["result"]["content"][0]["text"] = state["answers"][-number]["error"]["message"]
event(right)
self.wfile.write(b"0\\r\\n\\r\\n")"""
    expect = "elicitation/create is refused: this client measures, and there is nobody to ask"
    plan = Plan(concurrency=2, seconds=None, count=10, warm_up=0, ceiling=0, expect=expect)
    report = run(body, plan, era="legacy")
    assert report.is_right, report.failures
    assert (report.server_requests, report.notifications) == (10, 10)


def test_a_call_that_takes_too_long_is_given_up_and_its_connection_opened_again() -> None:
    plan = Plan(concurrency=1, seconds=None, count=10, warm_up=0, ceiling=0)
    report = run("time.sleep(1.5 if number % 10 == 5 else 0); self.write(right)", plan, timeout=0.5)
    assert failures(report) == {"timeout": (1, ["not answered within 0.5 s"])}
    assert (report.calls, report.reconnections) == (9, 1)


def test_a_server_that_is_gone_ends_the_load() -> None:
    report = run("self.write(right) if state['calls'] < 10 else __import__('os')._exit(0)")
    assert report.ended_by is not None and "cannot be reached any more" in report.ended_by
    assert failures(report)["lost"][0] >= 1
    assert not report.is_right


def test_a_stall_shows_in_every_call_of_an_open_loop_that_it_delays() -> None:
    body = "time.sleep(0.4 if number % 1000 == 5 else 0); self.write(right)"
    report = run(body, Plan(concurrency=1, seconds=None, count=100, warm_up=0, ceiling=0, rate=100.0))
    assert report.is_right and report.latency is not None
    assert report.latency.p90 > 0.1, "a third of them has waited"


def test_further_header_fields_are_sent_with_every_request() -> None:
    body = "self.write(right) if headers['Authorization'] == 'Bearer x' else self.send(401, '')"
    assert run(body, headers={"Authorization": "Bearer x"}).is_right
    report = run(f"self.write(right) if state['calls'] == 1 else None\nif state['calls'] > 1:\n    {body}")
    assert failures(report)["HTTP status 401"][0] == 20


def test_a_redirect_within_the_server_is_followed_when_the_connection_opens() -> None:
    prelude = ""
    more = """
    def parse_request(self):
        parsed = super().parse_request()
        if parsed and self.path == "/old":
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send(307, "", Location="/mcp")
            return False
        return parsed
"""
    with sketch("self.write(right)", prelude=prelude, more=more) as server, Bench(url(server, "/old")) as bench:
        assert bench.run("add", {}, QUICK).is_right


@pytest.mark.parametrize(
    ("target", "complaint"),
    [
        ("http://", "is no URL"),
        ("http://user:secret@127.0.0.1/mcp", "a user name in the URL is not sent"),
        ("http://127.0.0.1:99999/mcp", "a port or a character"),
        ("http://127.0.0.1:80/m cp", "a port or a character"),
    ],
)
def test_what_is_no_url_is_refused(target: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint), Bench(target):
        pass


@pytest.mark.parametrize(
    ("headers", "complaint"),
    [
        ({"a b": "c"}, "is no name of a header field"),
        ({"a": "b\r\nc: d"}, "cannot be sent"),
        ({"Mcp-Name": "x"}, "set by the measurement itself"),
        ({"content-length": "5"}, "set by the measurement itself"),
    ],
)
def test_header_fields_that_cannot_be_sent_are_refused(headers: dict[str, str], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint), Bench("http://127.0.0.1:1/mcp", headers=headers):
        pass


def test_a_server_that_cannot_be_reached_is_named() -> None:
    with (
        pytest.raises(TransportError, match=r"http://127\.0\.0\.1:1/mcp cannot be reached"),
        Bench("http://127.0.0.1:1/mcp"),
    ):
        pass


@pytest.mark.parametrize(
    ("body", "error", "said"),
    [
        ("self.send(401, 'who are you?')", AuthError, "status 401: who are you?"),
        ("self.send(404, 'nothing here')", TransportError, "status 404: nothing here; it may speak the HTTP.SSE"),
        ("self.write({'id': number, 'error': {'code': -1, 'message': 'not today'}})", PeerError, "not today"),
        ("self.close_connection = True", TransportError, "gave no answer to initialize"),
    ],
)
def test_a_server_that_does_not_open_is_quoted(body: str, error: type[Exception], said: str) -> None:
    program = HTTP.replace("self.BODY_GOES_HERE", body)
    with HTTPServer([sys.executable, "-c", program]) as server:
        server.await_listening()
        with pytest.raises(error, match=said), Bench(url(server), timeout=5.0):
            pass


@contextmanager
def secure(body: str, folder: Path) -> Generator[HTTPServer]:
    """The same as `sketch`, over TLS, with a certificate for localhost."""
    certificate, key = certify(folder)
    serve = 'Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()'
    serve_securely = f"""
import ssl
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain({certificate!r}, {key!r})
server = Server(("127.0.0.1", int(sys.argv[1])), Handler)
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
server.serve_forever()"""
    opening = OPENING.replace("ERA_GOES_HERE", "'modern'").replace("SCHEMA_GOES_HERE", "{'type': 'object'}")
    program = PRELUDE + HTTP.replace("self.BODY_GOES_HERE", opening.replace("BODY", body).replace("\n", "\n        "))
    assert serve in program
    with HTTPServer([sys.executable, "-c", program.replace(serve, serve_securely)]) as server:
        server.await_listening()
        yield server


def test_https_is_spoken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = "right['result']['content'][0]['text'] = request['params']['arguments']['a']; self.write(right)"
    plan = Plan(concurrency=4, seconds=None, count=20, warm_up=0, ceiling=0.05, expect="x" * 200_000)
    with secure(body, tmp_path) as server:
        target = f"https://localhost:{server.port}/mcp"
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
        assert measure(target, "add", {"a": "x" * 200_000}, plan=plan).is_right
        monkeypatch.delenv("SSL_CERT_FILE")
        with pytest.raises(TransportError, match="certificate"), Bench(target):
            pass


def test_a_call_that_waits_over_tls_holds_up_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # What comes after a handshake makes a connection readable without any data of the server's.
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
    plan = Plan(concurrency=4, seconds=None, count=12, warm_up=0, ceiling=0)
    with secure("time.sleep(1.0 if state['calls'] == 2 else 0); self.write(right)", tmp_path) as server:
        report = measure(f"https://localhost:{server.port}/mcp", "add", plan=plan)
    assert report.is_right and report.latency is not None
    assert report.latency.p90 < 0.5 < report.latency.max


def certify(folder: Path) -> tuple[str, str]:
    """Make a certificate for localhost. Returns the names of its file and of its key's."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    places = folder / "certificate.pem", folder / "key.pem"
    places[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    places[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    assert ssl.create_default_context(cafile=str(places[0]))
    return str(places[0]), str(places[1])
