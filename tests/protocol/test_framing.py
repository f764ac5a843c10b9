"""Lines and Server-Sent Events: what comes out, and that chunking and damage change nothing else."""

import json
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpcore.exceptions import RemoteProtocolError
from mcpcore.protocol.framing import (
    LineDecoder,
    ServerSentEvent,
    SSEDecoder,
    encode_comment,
    encode_event,
    encode_line,
    encode_lines,
)

BOM = b"\xef\xbb\xbf"


def comparable(found: Sequence[Any]) -> list[Any]:
    """Errors compared by what they say."""
    return [(item.code, str(item)) if isinstance(item, RemoteProtocolError) else item for item in found]


def lines_of(*chunks: bytes, max_size: int = 1000) -> list[Any]:
    """All that a line decoder makes of a stream; of an error, its code."""
    decoder = LineDecoder(max_size)
    found = [item for chunk in chunks for item in decoder.receive(chunk)] + decoder.receive_eof()
    return [item.code if isinstance(item, RemoteProtocolError) else item for item in found]


def events_of(*chunks: bytes, max_size: int = 1000) -> list[Any]:
    """All that an event decoder makes of a stream; of an error, its code."""
    decoder = SSEDecoder(max_size)
    found = [item for chunk in chunks for item in decoder.receive(chunk)]
    decoder.receive_eof()
    return [item.code if isinstance(item, RemoteProtocolError) else item for item in found]


@st.composite
def chunked(draw: st.DrawFn, pieces: st.SearchStrategy[bytes]) -> list[bytes]:
    """A stream of interesting pieces, cut anywhere."""
    stream = b"".join(draw(st.lists(pieces, max_size=12)))
    cuts = draw(st.lists(st.integers(0, len(stream)), max_size=8).map(sorted))
    return [stream[start:end] for start, end in pairwise([0, *cuts, len(stream)])]


LINE_PIECES = st.one_of(
    st.sampled_from(
        [b"\n", b"\r\n", b"\r", b" ", b"\t", BOM, b'{"a":1}', b"\xff", "\u2028\u2029\x85".encode(), b"x" * 9]
    ),
    st.text(max_size=4).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.binary(max_size=4),
)

EVENT_PIECES = st.one_of(
    st.sampled_from(
        [
            *(b"\n", b"\r\n", b"\r", b"\n\n", BOM, b"x" * 9, b"\xff", "\u2028".encode(), b": comment"),
            *(b"data:", b"data: x", b"data", b"event: e", b"id: 1", b"id", b"id:\0", b"retry: 5", b"retry: x"),
        ]
    ),
    st.binary(max_size=4),
)


# -- lines -------------------------------------------------------------------------------------------------------


@given(chunked(LINE_PIECES), st.integers(1, 20))
def test_chunking_never_changes_the_lines(chunks: list[bytes], max_size: int) -> None:
    def decode(chunks: Sequence[bytes]) -> list[Any]:
        decoder = LineDecoder(max_size)
        return comparable([item for chunk in chunks for item in decoder.receive(chunk)] + decoder.receive_eof())

    stream = b"".join(chunks)
    whole = decode([stream])
    assert decode(chunks) == whole
    assert decode([bytes([byte]) for byte in stream]) == whole


@given(st.lists(st.text(max_size=30).map(lambda text: json.dumps(text, ensure_ascii=False).encode())))
def test_encoded_messages_come_back_as_they_were(messages: list[bytes]) -> None:
    assert lines_of(encode_lines(messages)) == messages
    assert lines_of(b"".join(map(encode_line, messages))) == messages


@given(chunked(LINE_PIECES))
def test_every_line_that_comes_out_is_utf8_without_line_feed_and_not_blank(chunks: list[bytes]) -> None:
    for line in lines_of(*chunks):
        if isinstance(line, bytes):
            assert line.strip() and line.decode()
            assert b"\n" not in line


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\r", "\x0b", "\x0c", "\x1c"])
def test_only_line_feed_ends_a_line(separator: str) -> None:
    message = f'{{"a":"x{separator}y"}}'.encode()
    assert lines_of(message + b"\n" + message + b"\n") == [message, message]


def test_a_carriage_return_before_line_feed_belongs_to_the_line_end() -> None:
    assert lines_of(b"1\r\n2\r", b"\n3\r\r\n") == [b"1", b"2", b"3\r"]


def test_blank_lines_are_skipped_silently() -> None:
    assert lines_of(b"\n  \n\t\r\n\r\n1\n\n   2\n \n") == [b"1", b"   2"]
    assert lines_of(b"1\n\n \n\t \n2\n", b"\n\n", b" \n") == [b"1", b"2"]


def test_a_byte_order_mark_at_the_start_of_the_stream_is_skipped() -> None:
    assert lines_of(BOM + b"1\r\n" + BOM + b"2\n") == [b"1", BOM + b"2"]
    assert lines_of(BOM[:1], BOM[1:], b"1\n") == [b"1"]
    assert lines_of(BOM + b"\n1\n") == [b"1"]


def test_an_unterminated_last_line_is_delivered_at_the_end_of_the_stream() -> None:
    assert lines_of(b'1\n{"a":2}') == [b"1", b'{"a":2}']
    assert lines_of(b"1\n  ") == [b"1"]


def test_a_line_that_is_too_long_is_reported_once_and_the_stream_goes_on() -> None:
    assert lines_of(b"1\n", b"x" * 11, b"x" * 11, b"x\n2\n", max_size=10) == [b"1", -32600, b"2"]
    assert lines_of(b"1\n" + b"x" * 33 + b"\n2\n", max_size=10) == [b"1", -32600, b"2"]
    assert lines_of(b"x" * 11, max_size=10) == [-32600]


def test_the_size_limit_applies_to_one_line_and_not_to_what_one_read_holds() -> None:
    line = b"x" * 10
    assert lines_of((line + b"\n") * 5, max_size=10) == [line] * 5


def test_the_error_about_a_long_line_names_the_limit() -> None:
    (error,) = LineDecoder(10).receive(b"x" * 11)
    assert isinstance(error, RemoteProtocolError)
    assert "10 bytes" in str(error)


def test_a_line_that_is_not_utf8_is_reported_once_and_the_stream_goes_on() -> None:
    assert lines_of(b'1\n"\xff"\n2\n"\xed\xa0\x80"\n3\n') == [b"1", -32700, b"2", -32700, b"3"]
    assert lines_of(b'"\xc3', b'\xa9"\n"\xc3"\n') == ['"é"'.encode(), -32700]


@pytest.mark.parametrize(
    ("length", "size"), [(100_000, 1), (5_000_000, 4095), (5_000_000, 65536), (5_000_000, 6_000_000)]
)
def test_a_large_message_is_the_same_in_fragments_and_whole(length: int, size: int) -> None:
    message = json.dumps("é" * (length // 2), ensure_ascii=False).encode()
    stream = message + b"\n"
    decoder = LineDecoder()
    found = [item for start in range(0, len(stream), size) for item in decoder.receive(stream[start : start + size])]
    assert found == [message]


# -- Server-Sent Events ------------------------------------------------------------------------------------------


@given(chunked(EVENT_PIECES), st.integers(1, 20))
def test_chunking_never_changes_the_events(chunks: list[bytes], max_size: int) -> None:
    def decode(chunks: Sequence[bytes]) -> list[Any]:
        decoder = SSEDecoder(max_size)
        return comparable([item for chunk in chunks for item in decoder.receive(chunk)])

    stream = b"".join(chunks)
    whole = decode([stream])
    assert decode(chunks) == whole
    assert decode([bytes([byte]) for byte in stream]) == whole


def reference_events(stream: bytes) -> Iterator[ServerSentEvent]:
    """The parsing rules of the standard, written down as they stand there, on the whole of a stream that is UTF-8."""
    text = stream.decode().removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    data: list[str] = []
    fields: dict[str, Any] = {}
    for line in text.split("\n")[:-1]:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data or "id" in fields or "retry" in fields:
                yield ServerSentEvent("\n".join(data).encode(), **fields)
            data, fields = [], {}
        elif field == "data":
            data.append(value)
        elif field == "event" or (field == "id" and "\0" not in value):
            fields[field] = value
        elif field == "retry" and value.isascii() and value.isdigit():
            fields[field] = int(value)


@given(chunked(EVENT_PIECES.filter(lambda piece: piece.decode(errors="replace").encode() == piece)))
def test_events_are_those_of_the_standard(chunks: list[bytes]) -> None:
    assert events_of(*chunks, max_size=10_000) == list(reference_events(b"".join(chunks)))


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_line_end_of_the_standard_ends_a_line(end: bytes) -> None:
    stream = end.join([b"event: message", b"id: 7", b"data: 1", b"data: 2", b"", b"data:3", b"", b""])
    assert events_of(stream) == [ServerSentEvent(b"1\n2", "message", "7"), ServerSentEvent(b"3")]


def test_a_line_end_that_is_cut_between_carriage_return_and_line_feed_is_one() -> None:
    assert events_of(b"data: 1\r", b"\ndata: 2\r", b"\n\r", b"\n") == [ServerSentEvent(b"1\n2")]


def test_an_event_ends_with_a_carriage_return_without_waiting_for_more() -> None:
    assert SSEDecoder().receive(b"data: 1\r\r") == [ServerSentEvent(b"1")]


def test_separators_of_unicode_do_not_end_a_line() -> None:
    assert events_of("data: a\u2028b\x85c\n\n".encode()) == [ServerSentEvent("a\u2028b\x85c".encode())]


def test_comments_and_unknown_fields_and_spaces_are_read_as_the_standard_says() -> None:
    stream = b": keep-alive\n\nnonsense\ndata:no space\ndata:  two spaces\nfoo: bar\ndata\n\n"
    assert events_of(stream) == [ServerSentEvent(b"no space\n two spaces\n")]


def test_an_event_with_an_id_and_empty_data_is_delivered_because_it_primes_a_stream() -> None:
    assert events_of(b"id: 1\ndata:\n\nid: 2\n\nretry: 500\n\n") == [
        ServerSentEvent(b"", id="1"),
        ServerSentEvent(b"", id="2"),
        ServerSentEvent(b"", retry=500),
    ]


def test_a_name_alone_makes_no_event() -> None:
    assert events_of(b"event: ping\n\ndata: 1\n\n") == [ServerSentEvent(b"1")]


def test_an_id_with_nul_and_a_delay_that_is_no_number_are_ignored() -> None:
    stream = "id: a\0b\nretry: -1\nretry: ٣\nretry:\nretry: 9999999999999999\ndata: 1\n\nid\ndata: 2\n\n".encode()
    assert events_of(stream) == [ServerSentEvent(b"1"), ServerSentEvent(b"2", id="")]


def test_an_event_without_its_blank_line_is_dropped_at_the_end_of_the_stream() -> None:
    assert events_of(b"data: 1\n\ndata: 2\n") == [ServerSentEvent(b"1")]
    decoder = SSEDecoder()
    decoder.receive(b"id: 1\ndata: 2\nda")
    decoder.receive_eof()
    assert decoder.receive(b"data: 3\n\n") == [ServerSentEvent(b"3")]


def test_a_byte_order_mark_at_the_start_is_skipped_and_later_ones_are_not() -> None:
    assert events_of(BOM + b"data: 1\n\n" + BOM + b"data: 2\n\ndata: 3\n\n") == [
        ServerSentEvent(b"1"),
        ServerSentEvent(b"3"),
    ]


@pytest.mark.parametrize(
    "chunks",
    [
        [b"data: 0123456789a\n\n"],
        [b"data: 0123", b"456789", b"abcdefghij", b"klm\n\n"],
        [b"data: 01234\ndata: 56789\n\n"],
        [b"data: 0123456789a\ndata: 0123456789a\nid: 1\n\n"],
        [b": " + b"x" * 40 + b"\ndata: 1\n\n"],
    ],
)
def test_an_event_that_is_too_long_is_reported_once_and_the_stream_goes_on(chunks: list[bytes]) -> None:
    assert events_of(*chunks, b"data: next\n\n", max_size=10) == [-32600, ServerSentEvent(b"next")]


def test_an_event_as_long_as_the_limit_is_delivered() -> None:
    assert events_of(b"data: 0123456789\n\n", max_size=10) == [ServerSentEvent(b"0123456789")]


def test_keep_alive_comments_never_add_up_to_an_event_that_is_too_long() -> None:
    assert events_of(b": ping\n" * 100, b"data: 1\n\n", max_size=10) == [ServerSentEvent(b"1")]


def test_data_that_is_not_utf8_is_reported_and_the_stream_goes_on() -> None:
    assert events_of(b"id: 1\ndata: \xff\n\ndata: 1\n\n") == [-32700, ServerSentEvent(b"1")]


@given(
    st.text().map(lambda text: json.dumps(text, ensure_ascii=False).encode()),
    st.none() | st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]), min_size=1),
    st.none() | st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"])),
    st.none() | st.integers(0, 10**9),
)
def test_encoded_events_come_back_with_the_same_meaning(
    data: bytes, event: str | None, id: str | None, retry: int | None
) -> None:
    (decoded,) = SSEDecoder().receive(encode_event(data, event, id, retry))
    assert isinstance(decoded, ServerSentEvent)
    assert json.loads(decoded.data) == json.loads(data)
    assert (decoded.event, decoded.id, decoded.retry) == (event or "", id, retry)


@given(st.text().map(lambda text: json.dumps(text, ensure_ascii=False).encode()))
def test_an_encoded_event_survives_readers_that_split_decoded_text(data: bytes) -> None:
    assert encode_event(data).decode().splitlines() == encode_event(data).decode().split("\n")[:-1]


def test_encoded_data_with_line_breaks_stays_one_event() -> None:
    assert events_of(encode_event(b'{\r\n"a":\r1,\n"b":2}')) == [ServerSentEvent(b'{\n"a":\n1,\n"b":2}')]


@pytest.mark.parametrize("field", ["event", "id"])
@pytest.mark.parametrize("character", ["\n", "\r", "\0"])
def test_a_field_that_cannot_be_written_is_refused(field: str, character: str) -> None:
    with pytest.raises(ValueError, match="cannot be written as one line"):
        encode_event(b"1", **{field: f"a{character}b"})  # type: ignore[arg-type]  # one of the two names


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_comment_is_ignored_whatever_it_says(text: str) -> None:
    assert events_of(encode_comment(text), b"data: 1\n\n") == [ServerSentEvent(b"1")]


# -- cost --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("make", "field"), [(LineDecoder, b""), (SSEDecoder, b"data: ")])
def test_a_message_in_tiny_pieces_takes_no_more_memory_than_its_bytes(
    make: Callable[[], LineDecoder | SSEDecoder], field: bytes
) -> None:
    decoder = make()
    decoder.receive(field)
    pieces = [bytes([65 + index % 8, 66]) for index in range(8)]
    tracemalloc.start()
    try:
        for index in range(50_000):
            decoder.receive(pieces[index % 8])
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size < 2 * 100_000
