"""Types made of others: which branch of a union a value goes to, keys of mappings, depth."""

import datetime
import enum
import uuid
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, Struct, json
from typing_extensions import TypeAliasType

from mcpcore.providers.nodes import Mismatch, Node, is_exact
from mcpcore.providers.schema import Field, InvalidArguments, InvalidValue, arguments_codec, value_codec
from mcpcore.providers.type_reader import TypeReader


class Size(enum.IntEnum):
    SMALL = 1


class A(Struct, forbid_unknown_fields=True):
    n: int


class B(Struct, forbid_unknown_fields=True):
    n: int
    m: int = 0


class Cat(Struct, tag=True, forbid_unknown_fields=True):
    lives: int


class Dog(Struct, tag=True, forbid_unknown_fields=True):
    name: str


class Deep(Struct, forbid_unknown_fields=True):
    text: Annotated[str, Meta(pattern="^a")] = "a"
    child: "Deep | None" = None


Link = TypeAliasType("Link", "list[Link]")


def read(tp: Any) -> Node:
    return TypeReader(mode="input", closed=True).read(tp)


@pytest.mark.parametrize(
    ("tp", "value", "decoded"),
    [
        (int | float, 5, "5"),
        (float | int, 5, "5"),
        (int | float, 5.0, "5.0"),
        (int | str, 5.0, "5"),
        (Size | float, 1, "<Size.SMALL: 1>"),
        (datetime.date | str, "2026-01-01", "datetime.date(2026, 1, 1)"),
        (datetime.date | str, "tomorrow", "'tomorrow'"),
        (str | datetime.date, "2026-01-01", "'2026-01-01'"),
        (uuid.UUID | datetime.date, "2026-01-01", "datetime.date(2026, 1, 1)"),
        (list[int] | list[str], ["a"], "['a']"),
        (A | B, {"n": 1}, "A(n=1)"),
        (A | B, {"n": 1, "m": 2}, "B(n=1, m=2)"),
        (Cat | Dog | None, {"type": "Dog", "name": "x"}, "Dog(name='x')"),
        (set[int] | None, [1, 1], "{1}"),
        (Literal["a"] | int, "a", "'a'"),
    ],
)
def test_a_value_goes_to_the_branch_that_it_fits(tp: Any, value: Any, decoded: str) -> None:
    assert repr(value_codec(tp).decode(value)) == decoded
    assert repr(read(tp).decode(value, ())) == decoded


def test_a_text_that_fits_the_schema_of_a_union_and_no_branch_is_named() -> None:
    with pytest.raises(InvalidValue) as caught:
        value_codec(uuid.UUID | datetime.date).decode("x")
    assert caught.value.errors == [': value "x" is not a valid UUID']
    with pytest.raises(Mismatch, match="matches no allowed form"):
        read(A | B).decode(5, ())


def test_tags_are_required_where_the_schema_says_so() -> None:
    assert is_exact(read(Cat | Dog)) and not is_exact(read(Cat)) and not is_exact(read(Cat | None))
    for tp in (Cat, Cat | None, Cat | Dog):
        with pytest.raises(InvalidArguments, match="/p/type: required property not found"):
            arguments_codec([Field(name="p", type=tp)]).decode(b'{"p":{"lives":9}}', tool="t")


@pytest.mark.parametrize(
    ("tp", "value", "decoded"),
    [
        (dict[int, int], {"-7": 1, "0": 2}, {-7: 1, 0: 2}),
        (dict[Size, int], {"1": 1}, {Size.SMALL: 1}),
        (dict[Literal["a", 2], int], {"a": 1, "2": 2}, {"a": 1, 2: 2}),
        (dict[datetime.date, int], {"2026-01-01": 1}, {datetime.date(2026, 1, 1): 1}),
        (dict[Annotated[str, Meta(min_length=1)], int], {"a": 1}, {"a": 1}),
    ],
)
def test_a_string_spells_out_a_key(tp: Any, value: Any, decoded: Any) -> None:
    assert value_codec(tp).decode(value) == decoded
    assert value_codec(tp).encode(decoded) == value


@pytest.mark.parametrize(
    ("tp", "value"),
    [
        (dict[int, int], {"01": 1}),
        (dict[int, int], {"1.0": 1}),
        (dict[int, int], {"9" * 5000: 1}),
        (dict[Size, int], {"2": 1}),
        (dict[Annotated[str, Meta(min_length=1)], int], {"": 1}),
    ],
)
def test_a_string_that_spells_no_key_is_refused(tp: Any, value: Any) -> None:
    with pytest.raises(InvalidValue):
        value_codec(tp).decode(value)


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"child": value}
    return value


def test_values_nested_too_deeply_for_python_are_an_error_of_the_caller() -> None:
    codec = arguments_codec([Field(name="p", type=Deep)])
    assert codec.decode(json.encode({"p": nested(5)}), tool="t")["p"].child.child is not None
    with pytest.raises(InvalidArguments, match="/p: nested too deeply"):
        codec.decode(json.encode({"p": nested(700)}), tool="t")
    with pytest.raises(InvalidValue, match="nested too deeply"):
        value_codec(Deep).decode(nested(700))


def test_an_alias_that_contains_itself_is_never_left_to_msgspec() -> None:
    node = read(Link)
    assert not is_exact(node)
    with pytest.raises(NotImplementedError):
        node.carrier()
    assert value_codec(Link).decode([[], [[]]]) == [[], [[]]]
    assert value_codec(Annotated[Link, "noted"]).schema["description"] == "noted"
