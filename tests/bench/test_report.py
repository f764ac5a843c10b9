"""Reports: from what was counted to text, JSON, plots and the page."""

from array import array
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpcore.bench import DriverUse, Failure, Latency, Report, ServerUse, page
from mcpcore.bench.load import Tally
from mcpcore.bench.plot import Axis, Line, draw, log_ticks, ticks
from mcpcore.bench.report import distribution, timeline, warnings_of
from mcpcore.bench.text import amount, duration, lines, size

LATENCIES = [index / 1000 for index in range(1, 1001)]


def tally(**changes: Any) -> Tally:
    made = Tally(strict=False, seconds=2.0, sent=1000)
    made.latencies = array("d", LATENCIES)
    made.ended = array("d", [index * 0.002 for index in range(1, 1001)])
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def report(**changes: Any) -> Report:
    counted = tally()
    values: dict[str, Any] = {
        "target": "http://127.0.0.1:8000/mcp",
        "tool": "add",
        "arguments": {"a": "<b>"},
        "server": "x 1",
        "transport": "http",
        "protocol_version": "2026-07-28",
        "concurrency": 4,
        "rate": None,
        "warm_up": 1.0,
        "seconds": 2.0,
        "sent": 1000,
        "calls": 1000,
        "calls_per_second": 500.0,
        "failed": 0,
        "failures": {},
        "latency": Latency.of(LATENCIES),
        "percentiles": distribution(LATENCIES),
        "timeline": timeline(counted),
        "notifications": 0,
        "server_requests": 0,
        "bytes_sent": 300_000,
        "bytes_received": 5_000_000,
        "streamed": 0,
        "reconnections": 0,
        "unsent": 0,
        "server_use": ServerUse(0.00005, 0.25, 30 * 2**20, 31 * 2**20, 1),
        "driver": DriverUse(0.1, 50_000.0, 0, 0.0),
        "warnings": [],
        "ended_by": None,
        "date": "2026-01-01T00:00:00+00:00",
        "machine": {"CPU": "one"},
    }
    return Report(**{**values, **changes})


# -- figures -----------------------------------------------------------------------------------------------------


def test_latencies_are_summed_up() -> None:
    assert Latency.of([0.25, 0.75]) == Latency(0.25, 0.5, 0.25, 0.75, 0.75, 0.75, 0.75)
    found = Latency.of(LATENCIES)
    assert (found.min, found.p50, found.p90, found.p99, found.p99_9, found.max) == (0.001, 0.5, 0.9, 0.99, 0.999, 1.0)


def test_a_distribution_goes_as_far_up_as_there_are_latencies_to_tell_apart() -> None:
    found = distribution(LATENCIES)
    assert found[0] == (0.0, 0.001)
    assert found[-1] == (100.0, 1.0)
    assert 99.8 < found[-2][0] < 99.9
    assert distribution([]) == []


@given(st.lists(st.floats(1e-6, 10), min_size=1).map(sorted))
def test_a_distribution_only_rises(ordered: list[float]) -> None:
    found = distribution(ordered)
    assert found == sorted(found)
    assert [seconds for _, seconds in found] == sorted(seconds for _, seconds in found)


def test_the_course_of_time_adds_up_to_all_calls() -> None:
    pieces = timeline(tally())
    assert len(pieces) == 40
    assert sum(piece.calls_per_second * 0.05 for piece in pieces) == pytest.approx(1000)
    assert pieces[0].p50 is not None and pieces[-1].p99 is not None
    assert pieces[0].p50 < pieces[-1].p99


def test_a_time_in_which_nothing_came_has_no_latency() -> None:
    found = timeline(tally(latencies=array("d", [0.1, 0.1]), ended=array("d", [0.01, 2.0])))
    assert [piece.calls_per_second > 0 for piece in found] == [True, *[False] * 38, True]
    assert found[1].p50 is None
    assert timeline(Tally(strict=False)) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"failed": 1}, False),
        ({"calls": 0}, False),
        ({"ended_by": "it was interrupted"}, False),
        ({}, True),
        ({"warnings": ["x"]}, True),
    ],
)
def test_a_report_is_right_if_every_call_was(changes: dict[str, Any], said: bool) -> None:
    assert report(**changes).is_right is said


@pytest.mark.parametrize(
    ("busy", "ceiling", "rate", "counted", "said"),
    [
        (0.5, 10_000.0, None, tally(), []),
        (0.95, 10_000.0, None, tally(), ["the driver was busy 95% of the time: calls/s is a lower bound"]),
        (0.5, 550.0, None, tally(), ["calls/s is 91% of what the driver reaches at all: it is a lower bound"]),
        (0.5, None, None, tally(), []),
        (0.5, 0.0, None, tally(), []),
        (0.5, 10_000.0, 500.0, tally(), []),
        (
            0.5,
            10_000.0,
            1000.0,
            tally(unsent=1000),
            ["500 of 1000 calls/s could be sent with 4 in flight, and 1,000 were due and never sent: the latencies"],
        ),
        (0.5, 10_000.0, 500.0, tally(late=3), ["3 of 1,000 calls were sent more than 1 ms late by the driver itself"]),
    ],
)
def test_what_makes_figures_less_than_they_seem_is_said(
    busy: float, ceiling: float | None, rate: float | None, counted: Tally, said: list[str]
) -> None:
    driver = DriverUse(busy, ceiling, counted.late, counted.latest)
    found = warnings_of(calls_per_second=500.0, driver=driver, rate=rate, concurrency=4, tally=counted)
    assert len(found) == len(said)
    assert all(text.startswith(start) for text, start in zip(found, said, strict=True)), found


# -- text --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (16, "16"), (0.0123, "0.0123"), (9.996, "10.0"), (99.96, "100"), (1234.5, "1,234"), (7.25, "7.25")],
)
def test_an_amount_has_three_digits_that_count(value: float, text: str) -> None:
    assert amount(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 µs"),
        (0.00000123, "1.23 µs"),
        (0.00099996, "1.00 ms"),
        (0.0123, "12.3 ms"),
        (0.99996, "1.00 s"),
        (61, "61 s"),
    ],
)
def test_a_time_has_the_unit_that_suits_it(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"), [(12, "12 B"), (2048, "2 KiB"), (1.5 * 2**20, "1.50 MiB"), (5 * 2**40, "5,120 GiB")]
)
def test_bytes_have_the_unit_that_suits_them(count: float, text: str) -> None:
    assert size(count) == text


def test_the_text_has_every_figure() -> None:
    text = "\n".join(lines(report()))
    assert text == (
        "add of x 1, http, protocol 2026-07-28, closed loop, 4 in flight, 2 s\n"
        "\n"
        "  calls/s  500  (1,000 of 1,000 calls; none failed)\n"
        "  latency  min 1 ms   p50 500 ms   p90 900 ms   p99 990 ms   p99.9 999 ms   max 1 s\n"
        "  bytes    300 B sent and 4.88 KiB received per call\n"
        "  server   50.0 µs of CPU per call, 25% of a core, 30 MiB resident (at most 31 MiB)\n"
        "  driver   busy 10% of the time; with a server that does nothing it reaches 50,000 calls/s"
    )


def test_the_text_says_what_went_wrong_the_most_frequent_first() -> None:
    failures = {"lost": Failure(1, ["gone"]), "tool error": Failure(20, ["two\nlines"])}
    found = report(
        calls=0,
        failed=21,
        failures=failures,
        latency=None,
        percentiles=[],
        timeline=[],
        server_use=None,
        driver=DriverUse(0.1, None, 0, 0.0),
        rate=12.5,
        ended_by="the server exited",
        warnings=["beware"],
        reconnections=3,
        streamed=1,
    )
    text = "\n".join(lines(found))
    assert "open loop at 12.5 calls/s" in text
    assert "21 failed" in text and "no call was answered rightly" in text
    assert text.index("20 times: tool error\n      two\n      lines") < text.index("1 times: lost")
    assert "It ended before its time: the server exited" in text and "Note: beware." in text
    assert "not known" in text and "was not measured" in text
    assert "1 replies as streams of events, 3 connections opened again" in text


def test_a_report_is_the_same_after_json() -> None:
    found = report(failures={"lost": Failure(1, ["gone"])})
    assert msgspec.json.decode(msgspec.json.encode(found), type=Report) == found


# -- plots and the page ------------------------------------------------------------------------------------------


@given(st.floats(1e-6, 1e9))
def test_ticks_are_few_round_and_reach_beyond_the_highest_value(high: float) -> None:
    found = ticks(high)
    assert found[0] == 0 and found[-1] >= high * (1 - 1e-9)
    assert 2 <= len(found) <= 8


@given(st.floats(1e-7, 1e3), st.floats(1, 1e6))
def test_ticks_of_a_logarithmic_axis_enclose_the_values(low: float, factor: float) -> None:
    found = log_ticks(low, low * factor)
    assert found[0] <= low * (1 + 1e-6) and found[-1] >= low * factor * (1 - 1e-6)
    assert len(found) >= 2 and found == sorted(found)


def test_a_plot_is_well_formed_and_shows_its_lines_with_their_gaps() -> None:
    x = Axis("time <s>", 0, 10, [0, 5, 10], "{:g}".format)
    y = Axis("value", 0, 4, [0, 2, 4], "{:g}".format)
    points = [(0.0, 1.0), (1.0, 2.0), (2.0, None), (3.0, 4.0)]
    tip = "{} at {}".format
    root = ElementTree.fromstring(
        draw("a & b", x, y, [Line("one", "first", points, tip), Line("two", "second", [], tip)])
    )
    assert root.get("aria-label") == "a & b"
    pieces = [each.get("points", "").split() for each in root.findall("polyline")]
    assert [len(piece) for piece in pieces] == [2, 1]
    assert len(root.findall("circle")) == 3
    assert {"time <s>", "value", "one", "two", "10", "4"} <= {each.text for each in root.findall("text")}
    (left, top), (right, bottom) = [tuple(map(float, place.split(","))) for place in (pieces[1][0], pieces[0][0])]
    assert left > right and top < bottom, "a later and larger value is further right and further up"


class Reader(HTMLParser):
    """Checks that elements are closed as they were opened."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not any(name in ("src", "href") for name, _ in attrs), "the page needs nothing else"
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """It is closed already."""

    def handle_data(self, data: str) -> None:
        self.text += data


def read(found: Report) -> Reader:
    reader = Reader()
    reader.feed(page(found))
    reader.close()
    assert not reader.open
    return reader


def test_the_page_needs_nothing_else_and_shows_every_figure_and_three_plots() -> None:
    text = page(report(rate=100.0, warnings=["a < b"]))
    reader = read(report(rate=100.0, warnings=["a < b"]))
    assert text.count("<svg") == 3
    assert "prefers-color-scheme: dark" in text and "<script" not in text and "url(" not in text
    for shown in ("500", "990 ms", "50.0 µs", "a < b", '{"a":"<b>"}', "2026-07-28", "99 %"):
        assert shown in reader.text


def test_the_page_of_a_measurement_without_a_right_reply_shows_why_instead_of_plots() -> None:
    failures = {"tool error": Failure(3, ["<broken>"])}
    found = report(
        calls=0, failed=3, failures=failures, latency=None, percentiles=[], timeline=[], server_use=None, ended_by="x"
    )
    reader = read(found)
    assert "<svg" not in page(found)
    assert "<broken>" in reader.text and "It ended before its time: x" in reader.text


@pytest.mark.parametrize("latencies", [[0.001], [0.001, 0.001], [1e-9, 5.0]])
def test_the_page_can_be_drawn_of_hardly_anything(latencies: list[float]) -> None:
    counted = tally(latencies=array("d", latencies), ended=array("d", [0.1] * len(latencies)), seconds=0.1)
    read(
        report(
            seconds=0.1,
            latency=Latency.of(latencies),
            percentiles=distribution(latencies),
            timeline=timeline(counted),
        )
    )
