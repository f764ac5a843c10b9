"""The reader of HTTP responses."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpcore.bench.responses import Head, MalformedResponse, Response, ResponseReader, event_data

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\n"


def counted(body: bytes) -> bytes:
    return HEAD + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def chunked(chunks: list[bytes], trailers: bytes = b"") -> bytes:
    framed = [b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks if chunk]
    return HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"".join(framed) + b"0\r\n" + trailers + b"\r\n"


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


@given(
    st.lists(st.binary(max_size=40)), st.sampled_from([b"", b"Digest: x\r\nOther: y\r\n"]), st.sets(st.integers(1, 400))
)
def test_a_chunked_response_is_the_same_however_it_is_cut(chunks: list[bytes], trailers: bytes, cuts: set[int]) -> None:
    whole = chunked(chunks, trailers)
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


@given(st.sets(st.integers(1, 200)))
def test_interim_responses_are_read_over_however_they_are_cut(cuts: set[int]) -> None:
    whole = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + counted(b"body")
    assert read(*cut(whole, cuts)) == Response(Head(200, "application/json", 4, None), b"body")


def test_a_response_without_a_length_ends_with_its_connection() -> None:
    reader = ResponseReader()
    assert reader.receive_eof() is None, "there was no response"
    assert reader.receive(b"HTTP/1.1 200 OK\r\n\r\n") is None
    assert reader.receive(b"bo") is None
    assert reader.receive(b"dy") is None
    response = reader.receive_eof()
    assert response is not None
    assert (response.body, response.head.closes) == (b"body", True)


def test_a_response_that_is_cut_off_is_none() -> None:
    reader = ResponseReader()
    assert reader.receive(counted(b"body")[:-1]) is None
    assert reader.receive_eof() is None


@pytest.mark.parametrize("status", [204, 304])
def test_a_status_without_a_body_has_none_whatever_the_head_says(status: int) -> None:
    response = read(b"HTTP/1.1 %d x\r\n\r\n" % status)
    assert response is not None and response.body == b""


@pytest.mark.parametrize(
    ("version", "field", "closes"),
    [
        (b"1.1", b"", False),
        (b"1.1", b"Connection: Upgrade, Close\r\n", True),
        (b"1.0", b"", True),
        (b"1.0", b"Connection: keep-alive\r\n", False),
    ],
)
def test_a_server_says_whether_the_connection_goes_on(version: bytes, field: bytes, closes: bool) -> None:
    response = read(b"HTTP/%b 200 OK\r\n%bContent-Length: 0\r\n\r\n" % (version, field))
    assert response is not None and response.head.closes is closes


def test_events_are_given_out_early_and_once() -> None:
    reader = ResponseReader()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert reader.receive(head) is None
    assert reader.early_events() == []
    assert reader.receive(b"9\r\ndata: 1\n\n\r\n3\r\ndat\r\n") is None
    assert reader.early_events() == [b"1"]
    assert reader.early_events() == []
    assert reader.receive(b"7\r\na: 22\n\n\r\n") is None
    assert reader.early_events() == [b"22"]
    response = reader.receive(b"0\r\n\r\n")
    assert response is not None
    assert list(event_data(response.body)) == [b"1", b"22"]


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
        (b"HTTP/2 200 OK\r\nContent-Length: 0\r\n\r\n", "no status line of HTTP/1.1"),
        (b"nonsense\r\n\r\n", "no status line of HTTP/1.1"),
        (b"HTTP/1.1 200 OK\r\nno field\r\n\r\n", "no header field: b'no field'"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "no length: b'-1'"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "not clear where it ends"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "not clear where it ends"),
        (counted(b"x") + b"y", "bytes after the end of a response: b'y'"),
        (chunked([b"x"]) + b"y", "bytes after the end of a response: b'y'"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", "no size of a chunk: b'zz'"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\nxyz", "a chunk is followed by b'yz'"),
    ],
)
def test_what_is_no_response_is_refused(data: bytes, complaint: str) -> None:
    with pytest.raises(MalformedResponse, match=complaint.replace("(", r"\(")):
        read(data)


def test_events_without_data_are_left_out() -> None:
    body = b'id: 1\r\ndata:\r\n\r\n: comment\n\nevent: message\ndata: {"a":\ndata:1}\n\ndata: 2\n\ndata: unfinished'
    assert list(event_data(body)) == [b'{"a":\n1}', b"2"]
