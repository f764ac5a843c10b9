"""Selection: the decision table row by row, and what the warnings say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpcore.exceptions import DefinitionError
from mcpcore.providers.markers import Demand
from mcpcore.providers.selection import (
    AsyncProvider,
    AsyncStatelessProvider,
    Candidate,
    Provider,
    Reason,
    SyncProvider,
    SyncStatelessProvider,
)
from mcpcore.providers.signature import Colour, Kind

I, A, S = Colour.IMPERATIVE, Colour.AWAITABLE, Colour.STREAM
R1, R2, R3 = Reason.AWAITABLE_RETURN, Reason.IMPERATIVE_RETURN, Reason.BIDIRECTIONAL_PARAMETER
BELOW_FULL = (Demand.NONE, Demand.RAW, Demand.TRANSPORT)
FULL_AND_ABOVE = (Demand.FULL, Demand.SESSION)

PROVIDERS = (
    SyncProvider(),
    AsyncProvider(),
    SyncStatelessProvider(),
    AsyncStatelessProvider(),
    Provider("auto", "stateful"),
    Provider("auto", "stateless"),
)

TABLE: dict[tuple[Colour, Demand], tuple[tuple[Reason, ...], ...]] = {
    # sync stateful, async stateful, sync stateless, async stateless, auto stateful, auto stateless
    **{(I, demand): ((), (R2,), (), (R2,), (), ()) for demand in BELOW_FULL},
    **{(I, demand): ((), (R2,), (R3,), (R2, R3), (), (R3,)) for demand in FULL_AND_ABOVE},
    **{(A, demand): ((R1,), (), (R1,), (), (), ()) for demand in BELOW_FULL},
    **{(A, demand): ((R1,), (), (R1, R3), (R3,), (), (R3,)) for demand in FULL_AND_ABOVE},
    **{(S, demand): ((R1,), (), (R1,), (), (), ()) for demand in BELOW_FULL},
    **{(S, demand): ((R1,), (), (R1, R3), (R3,), (), (R3,)) for demand in FULL_AND_ABOVE},
}

KINDS: tuple[Kind, ...] = ("tool", "resource", "template", "prompt", "completion")


def candidate(
    colour: Colour, demand: Demand = Demand.NONE, kind: Kind = "tool", form: str = "", parameter: str = ""
) -> Candidate:
    return Candidate(
        kind=kind,
        name="bidirectional-tool",
        qualname="shop.tools.StatelessTools.bidirectional_tool",
        location="shop/tools.py:31",
        colour=colour,
        form=form,
        demand=demand,
        parameter=parameter,
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("column", range(len(PROVIDERS)))
@pytest.mark.parametrize("row", TABLE)
def test_every_cell_of_the_decision_table_holds_for_every_kind(
    row: tuple[Colour, Demand], column: int, kind: Kind
) -> None:
    skipped = PROVIDERS[column].judge(candidate(*row, kind=kind))
    expected = TABLE[row][column]
    assert (skipped.reasons if skipped else ()) == tuple(reason.value for reason in expected)


def test_the_table_is_total() -> None:
    assert set(TABLE) == {(colour, demand) for colour in Colour for demand in Demand}


def test_a_bidirectional_parameter_is_named_with_the_remedy() -> None:
    skipped = Provider("auto", "stateless").judge(candidate(A, Demand.FULL, parameter="ctx: Context"))
    assert str(skipped) == (
        "Skipped tool 'bidirectional-tool' (shop.tools.StatelessTools.bidirectional_tool, shop/tools.py:31): "
        "parameter 'ctx: Context' needs a stateful server, this one is stateless. "
        "Use TransportContext, annotate 'Context | None', or run stateful. [bidirectional-parameter]"
    )


def test_an_async_handler_is_named_with_the_remedy() -> None:
    skipped = SyncProvider().judge(candidate(A, form="async def", kind="template"))
    assert str(skipped) == (
        "Skipped resource template 'bidirectional-tool' "
        "(shop.tools.StatelessTools.bidirectional_tool, shop/tools.py:31): "
        "bidirectional_tool is async (async def); this server is type='sync'. Use a plain def, or type='auto'. "
        "[awaitable-return]"
    )


def test_a_plain_handler_is_named_with_the_remedy() -> None:
    skipped = AsyncProvider().judge(candidate(I, form="def"))
    assert str(skipped) == (
        "Skipped tool 'bidirectional-tool' (shop.tools.StatelessTools.bidirectional_tool, shop/tools.py:31): "
        "bidirectional_tool is a plain def; this server is type='async'. "
        "Make it async def, or use type='auto', which runs it in a worker thread. [imperative-return]"
    )


def test_all_reasons_are_in_one_message() -> None:
    skipped = AsyncStatelessProvider().judge(candidate(I, Demand.FULL, form="def", parameter="ctx: SyncContext"))
    assert skipped is not None
    assert skipped.reasons == ("imperative-return", "bidirectional-parameter")
    assert "plain def" in skipped.message
    assert "'SyncContext | None'" in skipped.message
    assert skipped.message.endswith("[imperative-return, bidirectional-parameter]")


@given(st.sampled_from(Colour), st.sampled_from(Demand), st.sampled_from(["stateful", "stateless"]))
def test_strict_types_share_all_handlers_between_them(colour: Colour, demand: Demand, state: str) -> None:
    """Whatever "auto" takes, exactly one of "sync" and "async" takes; whatever it refuses, both refuse."""
    taken = [Provider(type, state).judge(candidate(colour, demand)) is None for type in ("auto", "sync", "async")]  # type: ignore[arg-type]  # drawn from a list
    assert taken[0] == (taken[1] != taken[2])
    assert taken[0] or not (taken[1] or taken[2])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(("ASYNC",), "'auto', 'sync' or 'async'"), (("auto", "sessionless"), "'stateful' or 'stateless'")],
)
def test_an_unknown_mode_is_refused_with_those_that_exist(arguments: tuple[str, ...], says: str) -> None:
    with pytest.raises(DefinitionError, match=says):
        Provider(*arguments)  # type: ignore[arg-type]  # that is the mistake
