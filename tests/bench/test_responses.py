"""The reader of HTTP responses."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpcore.bench.responses import Head, MalformedResponse, Response, ResponseReader, event_data

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\n"


def counted(body: bytes) -> bytes:
    return HEAD + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def chunked(chunks: list[bytes]) -> bytes:
    framed = [b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks if chunk]
    return HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"".join(framed) + b"0\r\n\r\n"


def read(*pieces: bytes, reader: ResponseReader | None = None) -> Response | None:
    reader = reader or ResponseReader()
    *first, last = pieces
    for piece in first:
        assert reader.receive(piece) is None
    return reader.receive(last)


@given(st.binary(max_size=100), st.sets(st.integers(1, 200)))
def test_a_counted_response_is_the_same_however_it_is_cut(body: bytes, cuts: set[int]) -> None:
    whole = counted(body)
    assert read(*cut(whole, cuts)) == Response(Head(200, "application/json", len(body), None), body)


@given(st.lists(st.binary(max_size=40)), st.sets(st.integers(1, 400)))
def test_a_chunked_response_is_the_same_however_it_is_cut(chunks: list[bytes], cuts: set[int]) -> None:
    whole = chunked(chunks)
    assert read(*cut(whole, cuts)) == Response(Head(200, "application/json", None, None), b"".join(chunks))


def cut(data: bytes, cuts: set[int]) -> list[bytes]:
    places = [0, *sorted(place for place in cuts if place < len(data)), len(data)]
    return [data[start:end] for start, end in pairwise(places)]


def test_one_reader_reads_response_after_response() -> None:
    reader = ResponseReader()
    for whole in (counted(b"one"), chunked([b"t", b"wo"]), counted(b""), counted(b"four")):
        assert read(whole[:30], whole[30:], reader=reader) is not None
    response = reader.receive(counted(b"five"))
    assert response is not None
    assert response.body == b"five"


def test_a_session_is_read_from_the_head_whatever_the_case_of_names() -> None:
    response = read(b"HTTP/1.1 202 Accepted\r\nMCP-SESSION-ID: abc\r\ncontent-length:0\r\n\r\n")
    assert response == Response(Head(202, "", 0, "abc"), b"")


def test_what_is_read_in_pieces_is_looked_at_as_often_as_it_has_to_be_and_no_more() -> None:
    class Counting(ResponseReader):
        looks = 0

        def _receive_chunks(self, head: Head, data: bytes) -> Response | None:
            self.looks += 1
            return super()._receive_chunks(head, data)

    reader, whole = Counting(), chunked([b"x" * 100_000])
    for place in range(0, len(whole), 100):
        reader.receive(whole[place : place + 100])
    assert reader.looks <= 4


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", "no status line of HTTP/1.1"),
        (b"nonsense\r\n\r\n", "no status line of HTTP/1.1"),
        (b"HTTP/1.1 200 OK\r\nno field\r\n\r\n", "no header field: b'no field'"),
        (b"HTTP/1.1 200 OK\r\n\r\n", "neither a length nor chunks"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "neither a length nor chunks"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "neither a length nor chunks"),
        (counted(b"x") + b"y", "bytes after the end of a response: b'y'"),
        (chunked([b"x"]) + b"y", "bytes after the end of a response: b'y'"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", "no size of a chunk: b'zz'"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\nxyz", "a chunk is followed by b'yz'"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\nTrailer: x\r\n\r\n", "a chunk is followed by b'Trailer: x"),
    ],
)
def test_what_is_no_response_is_refused(data: bytes, complaint: str) -> None:
    with pytest.raises(MalformedResponse, match=complaint.replace("(", r"\(")):
        read(data)


def test_events_without_data_are_left_out() -> None:
    body = b'id: 1\r\ndata:\r\n\r\n: comment\n\nevent: message\ndata: {"a":\ndata:1}\n\ndata: 2\n\ndata: unfinished'
    assert list(event_data(body)) == [b'{"a":\n1}', b"2"]
