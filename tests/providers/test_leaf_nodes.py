"""Types without parts: what the schema cannot say is checked after parsing."""

import datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

import annotated_types
import pytest
from msgspec import Meta

from mcpcore.providers.leaf_nodes import AnyNode, EnumNode, ScalarNode, TextNode
from mcpcore.providers.nodes import Mismatch, Node, is_exact
from mcpcore.providers.type_reader import TypeReader

UTC = datetime.UTC


def read(tp: Any) -> Node:
    return TypeReader(mode="input", closed=False).read(tp)


@pytest.mark.parametrize(
    ("tp", "text", "error"),
    [
        (Annotated[Decimal, annotated_types.Ge(Decimal(1))], "0.5", 'value "0.5" must be at least 1'),
        (Annotated[Decimal, annotated_types.Gt(1)], "1", 'value "1" must be more than 1'),
        (Annotated[Decimal, annotated_types.Le(1)], "2", 'value "2" must be at most 1'),
        (Annotated[Decimal, annotated_types.Lt(1)], "1", 'value "1" must be less than 1'),
        (Annotated[bytes, Meta(min_length=2)], "AA==", 'value "AA==" must have a length of at least 2'),
        (Annotated[bytes, Meta(max_length=0)], "AA==", 'value "AA==" must have a length of at most 0'),
        (
            Annotated[datetime.datetime, annotated_types.Gt(datetime.datetime(2026, 1, 1, tzinfo=UTC))],
            "2026-01-02T00:00:00",
            'value "2026-01-02T00:00:00" must be more than 2026-01-01 00:00:00+00:00',
        ),
        (datetime.timedelta, "P1Y", 'value "P1Y" is not a valid duration'),
        (datetime.time, "25:00:00", 'value "25:00:00" is not a valid time'),
        (Decimal, "1_0", 'value "1_0" is not a valid decimal number'),
        (Decimal, "٣", 'value "٣" is not a valid decimal number'),
        (Decimal, "x" * 100, f'value "{"x" * 63}… is not a valid decimal number'),
    ],
)
def test_text_that_stands_for_no_value(tp: Any, text: str, error: str) -> None:
    with pytest.raises(Mismatch) as caught:
        read(tp).decode(text, ("a", 0))
    assert str(caught.value) == f"/a/0: {error}" and caught.value.path == ("a", 0)


def test_text_within_its_limits() -> None:
    limited = Annotated[datetime.datetime, annotated_types.Gt(datetime.datetime(2026, 1, 1, tzinfo=UTC)), Meta(tz=True)]
    assert read(limited).decode("2026-01-02T00:00:00Z", ()) == datetime.datetime(2026, 1, 2, tzinfo=UTC)
    assert read(Annotated[bytes, Meta(min_length=1)]).decode("AA==", ()) == b"\0"
    assert not is_exact(read(limited)) and is_exact(read(Annotated[datetime.datetime, Meta(tz=False)]))


def test_a_number_is_its_type_whatever_its_spelling() -> None:
    assert repr(ScalarNode(int).decode(5.0, ())) == "5"
    assert repr(ScalarNode(float).decode(5, ())) == "5.0"
    with pytest.raises(Mismatch, match="/a: number out of range"):
        ScalarNode(float).decode(10**400, ("a",))


def test_true_and_one_are_two_options_and_one_and_one_point_zero_are_one() -> None:
    node = read(Literal[True, 1, "1"])
    assert isinstance(node, EnumNode)
    assert [node.decode(each, ()) for each in (True, 1, 1.0, "1")] == [True, 1, 1, "1"]
    assert type(node.decode(True, ())) is bool and type(node.decode(1.0, ())) is int


def test_anything_is_passed_on() -> None:
    value = {"a": [5.0]}
    assert AnyNode().decode(value, ()) is value


def test_kinds_describe_themselves() -> None:
    assert ScalarNode(int).describe() == "integer"
    assert TextNode(bytes, {}, "x").describe() == "string"
