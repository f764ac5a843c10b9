"""How to measure: what makes sense, and what is refused."""

import pytest

from mcpcore.bench import Bench, Plan, measure_itself


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"concurrency": 0}, "concurrency must be 1 or more"),
        ({"count": 0}, "count must be 1 or more"),
        ({"seconds": None}, "give seconds or a count"),
        ({"seconds": 0.0}, "seconds must be more than 0"),
        ({"rate": -1.0}, "rate must be more than 0"),
        ({"rate": float("inf")}, "rate must be more than 0"),
        ({"rate": float("nan")}, "rate must be more than 0"),
        ({"warm_up": -0.1}, "warm_up must be 0 or more"),
        ({"ceiling": float("nan")}, "ceiling must be 0 or more"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, float], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Plan(**options)  # type: ignore[arg-type]  # it is wrong on purpose


@pytest.mark.parametrize(
    ("plan", "requests"),
    [
        (Plan(), None),
        (Plan(count=7), 7),
        (Plan(rate=3.0, seconds=2.0), 6),
        (Plan(rate=3.0, seconds=2.0, count=4), 4),
        (Plan(rate=0.1, seconds=1.0), 1),
    ],
)
def test_an_open_loop_knows_how_many_calls_it_has(plan: Plan, requests: int | None) -> None:
    assert plan.requests == requests


@pytest.mark.parametrize(
    ("target", "options", "complaint"),
    [
        (["server"], {"protocol_version": "2020-01-01"}, "there are 2024-11-05"),
        (["server"], {"headers": {"a": "b"}}, "headers are for URLs"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(
    target: list[str], options: dict[str, object], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        Bench(target, **options)  # type: ignore[arg-type]  # they are wrong on purpose


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_driver_can_be_measured_by_itself(transport: str) -> None:
    ceiling = measure_itself(transport, 4, 0.1)  # type: ignore[arg-type]  # one of both
    assert ceiling.calls_per_second > 1000
    assert 0 < ceiling.driver_cpu < 0.001
