"""What a load is, and how what became of it is counted."""

import pytest

from mcpcore.bench.load import Failure, Load, Repeated, Tally
from mcpcore.bench.traffic import Message, Progress, WrongReply
from mcpcore.exceptions import BenchmarkError


def load(**options: object) -> Load:
    return Load([b""] * 10, 100, lambda number, message: None, **options)  # type: ignore[arg-type]  # test options


def test_one_request_is_repeated_under_ids_that_follow_each_other() -> None:
    requests = Repeated(b"<", b">", 98, 5)
    assert len(requests) == 5
    assert [requests[index] for index in range(3)] == [b"<98>", b"<99>", b"<100>"]
    assert requests[1:4] == [b"<99>", b"<100>", b"<101>"]


def test_without_a_count_there_is_no_end_to_it() -> None:
    assert len(Repeated(b"", b"", 0)) > 10**12


def test_a_closed_loop_may_send_everything_at_once() -> None:
    assert load().due(0.0) == 10


def test_in_an_open_loop_the_first_request_is_due_at_once_and_the_others_in_equal_distances() -> None:
    opened = load(rate=4.0)
    assert [opened.due(elapsed) for elapsed in (0.0, 0.24, 0.26, 1.0, 99.0)] == [1, 1, 2, 5, 10]
    assert [opened.due_at(index) for index in range(3)] == [0.0, 0.25, 0.5]


def test_failures_are_counted_by_kind_with_the_first_different_texts() -> None:
    tally = Tally(strict=False)
    for text in ("a", "a", "b", "c", "d" * 1000):
        tally.fail(WrongReply(text, "bad"))
    tally.fail(BenchmarkError("else"))
    assert tally.failed == 6
    assert tally.failures["bad"] == Failure(5, ["a", "b", "c"])
    assert tally.failures["broken"] == Failure(1, ["else"])


def test_long_texts_are_shortened() -> None:
    failure = Failure(examples=[])
    failure.add("x" * 1000)
    (example,) = failure.examples
    assert len(example) < 400 and example.endswith("…")


def test_a_strict_tally_raises_the_first_failure() -> None:
    with pytest.raises(WrongReply, match="bad"):
        Tally().fail(WrongReply("bad"))


def test_only_delays_of_more_than_a_millisecond_count_as_late() -> None:
    tally = Tally()
    for delay in (-1.0, 0.0005, 0.003, 0.002):
        tally.sent_late(delay)
    assert (tally.late, tally.latest) == (2, 0.003)


def test_notifications_and_requests_of_the_server_are_told_apart() -> None:
    tally = Tally()
    asked = load(refuse=lambda message: b"no %d" % message.id)
    assert tally.take_aside(Message(jsonrpc="2.0", method="notifications/message"), asked) is None
    assert tally.take_aside(Message(jsonrpc="2.0", method="roots/list", id=3), asked) == b"no 3"
    assert (tally.notifications, tally.server_requests) == (1, 1)


def test_progress_has_to_come_in_order_where_some_is_wanted() -> None:
    def progress(step: int) -> Message:
        return Message(jsonrpc="2.0", method="notifications/progress", params=Progress(7, step))

    Tally().take_aside(progress(2), load())
    with pytest.raises(WrongReply, match="out of order"):
        Tally().take_aside(progress(2), load(notifications=2))
