"""Reading header fields, and what they ask for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpcore.transports.http.headers import accepts, is_json, read_headers

JSON, EVENTS, BOTH, NEITHER = (True, False), (False, True), (True, True), (False, False)


def test_a_field_that_comes_twice_reads_as_one() -> None:
    raw = [(b"accept", b"application/json"), (b"host", b"x"), (b"accept", b" text/event-stream\t")]
    assert read_headers(raw) == {"accept": "application/json, text/event-stream", "host": "x"}
    assert accepts(read_headers(raw)["accept"]) == BOTH


def test_white_space_around_a_value_is_no_part_of_it() -> None:
    assert read_headers([(b"mcp-name", b"  a b\t ")]) == {"mcp-name": "a b"}


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (None, BOTH),
        ("*/*", BOTH),
        ("application/json", JSON),
        ("text/event-stream", EVENTS),
        ("application/*", JSON),
        ("text/*", EVENTS),
        ("text/event-stream, application/json", BOTH),
        ("APPLICATION/JSON ; q=0.3,Text/Event-Stream;charset=utf-8", BOTH),
        ("*/*, application/json;q=0", EVENTS),
        ("application/json;q=0, */*", EVENTS),
        ("text/event-stream;q=0.000, text/*", NEITHER),
        ("application/json; q = 0", NEITHER),
        ("application/json;q=nonsense", JSON),
        ("application/json;level=0", JSON),
        ("text/html, image/png", NEITHER),
        ("", NEITHER),
        (",;,q=0;;", NEITHER),
    ],
)
def test_media_ranges_are_understood(accept: str | None, expected: tuple[bool, bool]) -> None:
    assert accepts(accept) == expected


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        ("application/json", True),
        ("Application/JSON", True),
        ("application/json;charset=utf-8", True),
        (" application/json ; charset=UTF-16", True),
        ("application/jsonfoo", False),
        ("application/json-patch+json", False),
        ("text/plain", False),
        ("multipart/form-data; boundary=application/json", False),
        ("", False),
        (None, False),
    ],
)
def test_json_is_known_by_its_media_type(content_type: str | None, expected: bool) -> None:
    assert is_json(content_type) is expected


@given(st.lists(st.tuples(st.binary(max_size=10), st.binary(max_size=40)), max_size=5))
def test_nothing_in_a_header_makes_it_raise(raw: list[tuple[bytes, bytes]]) -> None:
    for value in read_headers(raw).values():
        accepts(value)
        is_json(value)
