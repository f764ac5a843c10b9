"""The two state tables: they are total, what is final stays final, and only what a row says is possible."""

from enum import IntEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpcore.exceptions import LocalProtocolError
from mcpcore.protocol._tables import EXCHANGE, SESSION, Exchange, ExchangeStep, Session, SessionStep, advance

TABLES: list[tuple[dict[Any, dict[Any, Any]], type[IntEnum], type[IntEnum]]] = [
    (SESSION, Session, SessionStep),
    (EXCHANGE, Exchange, ExchangeStep),
]


@pytest.mark.parametrize(("table", "states", "steps"), TABLES)
def test_every_state_has_a_row_and_every_target_is_a_state(
    table: dict[Any, dict[Any, Any]], states: type[IntEnum], steps: type[IntEnum]
) -> None:
    assert set(table) == set(states)
    assert {step for row in table.values() for step in row} == set(steps)
    assert {target for row in table.values() for target in row.values()} <= set(states)


@pytest.mark.parametrize(("table", "states", "steps"), TABLES)
def test_a_step_is_possible_exactly_where_its_row_has_it(
    table: dict[Any, dict[Any, Any]], states: type[IntEnum], steps: type[IntEnum]
) -> None:
    for state in states:
        for step in steps:
            if step in table[state]:
                assert advance(table, state, step) is table[state][step]
            else:
                with pytest.raises(LocalProtocolError, match=f"{step.name} is not possible when {state.name}"):
                    advance(table, state, step)


@pytest.mark.parametrize(
    ("table", "start"), [(SESSION, Session.NEW), (EXCHANGE, Exchange.OPEN)], ids=["session", "exchange"]
)
def test_every_state_can_be_reached(table: dict[Any, dict[Any, Any]], start: Any) -> None:
    reached = {start}
    while True:
        more = reached | {target for state in reached for target in table[state].values()}
        if more == reached:
            break
        reached = more
    assert reached == set(table)


def test_a_refused_initialize_leaves_everything_as_it_was() -> None:
    assert advance(SESSION, Session.INITIALIZING, SessionStep.ERROR) is Session.NEW


@given(st.lists(st.sampled_from(ExchangeStep), max_size=30))
def test_an_exchange_ends_once(steps: list[ExchangeStep]) -> None:
    state = Exchange.OPEN
    ends = 0
    for step in steps:
        ended = state in (Exchange.ANSWERED, Exchange.CANCELLED)
        try:
            state = advance(EXCHANGE, state, step)
        except LocalProtocolError:
            continue
        assert not ended
        ends += step in (ExchangeStep.ANSWER, ExchangeStep.CANCEL)
    assert ends == (state in (Exchange.ANSWERED, Exchange.CANCELLED))
