"""Who may talk to the endpoint from where."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpcore.transports.http.guard import Guard, is_loopback

NAMED = Guard(("mcp.example.com", "other.example.com:8443", "[::2]", "fe80::1"), ("https://app.example.com",))


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:1", "LOCALHOST:80", "localhost.", "127.0.0.1:8000", "[::1]:80"]
)
def test_names_of_this_machine_are_allowed_at_any_port(host: str) -> None:
    assert Guard().refusal({"host": host}) is None


@pytest.mark.parametrize(
    "host",
    [
        "evil.com",
        "localhost.evil.com",
        "localhost:1.evil.com",
        "user@localhost",
        "localhost/path",
        "localhost?q",
        "localhost#f",
        "localhost:port",
        "localhost:99999",
        "[::1",
        "127.0.0.2",
        "",
        " ",
    ],
)
def test_everything_else_is_refused_with_what_would_help(host: str) -> None:
    refusal = Guard().refusal({"host": host})
    assert refusal is not None and "allowed_hosts=" in refusal


def test_a_request_without_a_host_is_refused() -> None:
    assert Guard().refusal({}) is not None


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("mcp.example.com", True),
        ("mcp.example.com:443", True),
        ("other.example.com:8443", True),
        ("other.example.com", False),
        ("other.example.com:80", False),
        ("[::2]:1", True),
        ("[fe80::1]", True),
        ("localhost", False),
    ],
)
def test_a_name_with_a_port_allows_that_port_only(host: str, allowed: bool) -> None:
    assert (NAMED.refusal({"host": host}) is None) is allowed


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("https://app.example.com", True),
        ("https://app.example.com:444", False),
        ("https://mcp.example.com", True),
        ("http://other.example.com:8443", True),
        ("http://other.example.com", False),
        ("https://evil.example.com", False),
        ("null", False),
        ("file://mcp.example.com", False),
        ("https://[::2", False),
        ("", False),
    ],
)
def test_an_origin_has_to_be_named_or_to_be_that_of_an_allowed_host(origin: str, allowed: bool) -> None:
    refusal = NAMED.refusal({"host": "mcp.example.com", "origin": origin})
    assert (refusal is None) is allowed
    assert allowed or "allowed_origins=" in str(refusal)


def test_where_any_host_is_allowed_any_page_is() -> None:
    anybody = Guard(None)
    assert anybody.refusal({"host": "what.ever", "origin": "https://what.ever.else"}) is None
    assert anybody.refusal({"host": "what.ever", "origin": "null"}) is not None


def test_a_star_allows_every_page() -> None:
    assert Guard(allowed_origins=("*",)).refusal({"host": "localhost", "origin": "https://any.example.com"}) is None


def test_pages_are_told_what_they_may_send_and_read() -> None:
    guard = Guard(cors=True)
    origin = {"origin": "http://localhost:3000"}
    assert dict(guard.cors_headers(origin)) == {
        b"access-control-allow-origin": b"http://localhost:3000",
        b"vary": b"Origin",
        b"access-control-expose-headers": b"Mcp-Session-Id, WWW-Authenticate",
    }
    preflight = dict(guard.cors_headers(origin, preflight=True))
    assert preflight[b"access-control-allow-methods"] == b"POST, GET, DELETE"
    for name in (b"Mcp-Session-Id", b"MCP-Protocol-Version", b"Last-Event-ID", b"Authorization", b"Mcp-Method"):
        assert name in preflight[b"access-control-allow-headers"]
    wanted = {**origin, "access-control-request-headers": "x-own"}
    assert dict(guard.cors_headers(wanted, preflight=True))[b"access-control-allow-headers"] == b"x-own"


def test_without_cors_and_without_an_origin_nothing_is_told() -> None:
    assert Guard().cors_headers({"origin": "http://localhost"}) == []
    assert Guard(cors=True).cors_headers({}) == []


def test_a_page_of_another_origin_is_told_nothing_not_even_why() -> None:
    for origin in ("https://evil.example.com", "null", ""):
        for preflight in (False, True):
            assert Guard(cors=True).cors_headers({"origin": origin}, preflight=preflight) == []


@pytest.mark.parametrize(
    ("host", "expected"), [("127.0.0.1", True), ("127.1.2.3", True), ("::1", True), ("0.0.0.0", False)]
)
def test_loopback_is_known(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


@given(st.text(st.characters(max_codepoint=255), max_size=30), st.text(st.characters(max_codepoint=255), max_size=30))
def test_nothing_in_a_header_makes_it_raise(host: str, origin: str) -> None:
    for guard in (Guard(), NAMED, Guard(None, cors=True)):
        refusal = guard.refusal({"host": host, "origin": origin})
        assert refusal is None or refusal.isprintable() or "\\" in refusal
        guard.cors_headers({"host": host, "origin": origin}, preflight=True)
