"""Reading types into nodes: every spelling, and the refusals."""

import collections
import enum
import typing
from collections.abc import Callable
from typing import Annotated, Any, Final, Generic, Literal, NamedTuple, Optional, Protocol, TypeVar, Union

import msgspec
import pytest
from msgspec import UNSET, Meta, Struct, UnsetType, defstruct
from typing_extensions import TypeAliasType

from mcpcore.exceptions import DefinitionError
from mcpcore.providers.markers import Param
from mcpcore.providers.nodes import document, is_exact, is_plain
from mcpcore.providers.type_reader import TypeReader, admits_unset, shown_default

T = TypeVar("T")
Bound = TypeVar("Bound", bound=int)
Either = TypeVar("Either", int, str)

Json = TypeAliasType("Json", "dict[str, Json] | list[Json] | str | None")
Age = TypeAliasType("Age", Annotated[int, Meta(ge=0)])
ListOf = TypeAliasType("ListOf", list[T], type_params=(T,))


def read(tp: Any, *, closed: bool = False) -> Any:
    return TypeReader(mode="input", closed=closed).read(tp)


def schema(tp: Any) -> dict[str, Any]:
    return document(read(tp))


class Page(Struct, Generic[T]):
    items: list[T]
    next: "Page[T] | None" = None


class Closed(Struct, forbid_unknown_fields=True):
    a: int


class Open(Struct):
    a: int


class Colour(enum.Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("tp", "same_as"),
    [
        (Optional[int], int | None),  # noqa: UP045
        (Union[int, Union[str, None]], int | str | None),  # noqa: UP007
        (typing.List[int], list[int]),  # noqa: UP006
        (typing.Dict[str, int], dict[str, int]),  # noqa: UP006
        (typing.Tuple[int, ...], tuple[int, ...]),  # noqa: UP006
        (typing.Sequence[int], list[int]),
        (collections.abc.Iterable[int], list[int]),
        (collections.abc.Generator[int, None, None], list[int]),
        (typing.Mapping[str, int], dict[str, int]),
        (collections.OrderedDict[str, int], dict[str, int]),
        (typing.AbstractSet[int], set[int]),
        (Final[int], int),
        (typing.LiteralString, str),
        (T, Any),
        (Bound, int),
        (Either, int | str),
        (Age, Annotated[int, Meta(ge=0)]),
        (ListOf[int], list[int]),
        (Annotated[Age, Meta(le=9)], Annotated[int, Meta(ge=0, le=9)]),
        (Literal["a"] | None, Optional[Literal["a"]]),  # noqa: UP045
        (Annotated[Annotated[int, "x"], Param("y")], Annotated[int, "y"]),
        (dict[Any, int], dict[str, int]),
        (bytearray, bytes),
        (Annotated[Annotated[int, "x"] | None, Meta(ge=1)], Annotated[int, "x", Meta(ge=1)] | None),
    ],
)
def test_spellings_of_one_type_are_one_schema(tp: Any, same_as: Any) -> None:
    assert schema(tp) == schema(same_as)


def test_an_alias_that_contains_itself_is_a_definition() -> None:
    found = schema(Json)
    assert found["anyOf"][0] == {"type": "object", "additionalProperties": {"$ref": "#/$defs/Json"}}
    assert list(schema(tuple[Json, Json])["$defs"]) == ["Json"]
    assert read(Json).decode({"a": [None, "x"]}, ()) == {"a": [None, "x"]}


def test_a_generic_class_is_named_with_its_arguments() -> None:
    found = schema(list[Page[int] | Page[Colour]])
    assert sorted(found["$defs"]) == ["Page_Colour", "Page_int"]


@pytest.mark.parametrize(
    ("tp", "exact", "plain"),
    [
        (int, True, True),
        (list[dict[str, int | None]], True, True),
        (Closed, True, True),
        (Page[int], False, True),
        (Any, True, False),
        (tuple[int, str], True, False),
        (set[int], True, False),
        (Annotated[str, Meta(pattern="a")], False, True),
        (Annotated[int, Meta(multiple_of=2)], False, True),
        (dict[int, int], False, True),
    ],
)
def test_what_may_be_left_to_msgspec(tp: Any, exact: bool, plain: bool) -> None:
    node = read(tp, closed=True)
    assert (is_exact(node), is_plain(node)) == (exact, plain)


def test_a_record_is_exact_where_it_is_as_closed_as_it_has_to_be() -> None:
    assert [is_exact(read(tp, closed=closed)) for tp in (Open, Closed) for closed in (False, True)] == [
        True,
        False,
        True,
        True,
    ]
    assert schema(Closed)["additionalProperties"] is False and "additionalProperties" not in schema(Open)


class Empty(enum.Enum):
    pass


class Shape(enum.Enum):
    BOX = (1, 2)


class Row(Struct, array_like=True):
    a: int


class Talks(Protocol):
    def talk(self) -> None: ...


@pytest.mark.parametrize(
    ("tp", "why"),
    [
        (complex, "complex has no form in JSON"),
        (Callable[[], int], "has no form in JSON"),
        (type, "type has no form in JSON"),
        ([], r"\[\] has no form in JSON"),
        ({}, r"{} has no form in JSON"),
        (list[[int]], r"has no form in JSON"),  # type: ignore[misc, valid-type]  # the mistake
        (Talks, "Talks has no form in JSON"),
        (UnsetType, "UnsetType has no form in JSON"),
        ("Nowhere", "the name 'Nowhere' is not known"),
        (set[list[int]], "items of a set must be hashable"),
        (set[Open], "items of a set must be hashable"),
        (dict[float, int], "keys of a mapping are strings"),
        (dict[Annotated[int, Meta(ge=1)], int], "keys of a mapping are strings"),
        (dict[list[int], int], "keys of a mapping are strings"),
        (Empty, "Empty has no members"),
        (Shape, r"Shape.BOX has the value \(1, 2\)"),
        (Literal[b"x"], "use strings, numbers, booleans or None"),
        (Row, "array_like"),
        (Annotated[bool, Meta(ge=1)], "'ge' does not apply to boolean"),
        (Annotated[int, Meta(max_length=1)], "'max_length' does not apply to integer"),
        (Annotated[Open, Meta(ge=1)], "'ge' does not apply to object"),
        (Annotated[int | bool, Meta(pattern="a")], "'pattern' does not apply"),
        (Annotated[Colour, Meta(min_length=1)], "'min_length' does not apply to string"),
        (defstruct("R", [("a", Annotated[int, Param(alias="b")])]), "R.a: alias=, header= and required= of Param"),
        (defstruct("R", [("a", Annotated[int, Param(header="A")])]), "R.a: alias=, header= and required= of Param"),
        (defstruct("R", [("a", Annotated[int, Param(required=False)])]), "R.a: alias=, header= and required= of Param"),
    ],
)
def test_a_type_is_refused(tp: Any, why: str) -> None:
    with pytest.raises(DefinitionError, match=why):
        read(tp)


def test_a_frozen_record_may_be_in_a_set() -> None:
    class Key(Struct, frozen=True):
        a: int

    class Point(NamedTuple):
        x: int

    assert read(set[Key]).decode([{"a": 1}, {"a": 1}], ()) == {Key(1)}
    assert read(frozenset[Point]).decode([{"x": 1}], ()) == {Point(1)}
    assert read(set[frozenset[int]]).decode([[1]], ()) == {frozenset({1})}


class Access(enum.Flag):
    READ = 1
    WRITE = 4


def test_flags_are_the_sum_of_their_bits() -> None:
    assert schema(Access) == {"type": "integer", "minimum": 0, "maximum": 5}
    assert read(Access).decode(5.0, ()) == Access.READ | Access.WRITE
    with pytest.raises(Exception, match="value 2 is not a sum of Access"):
        read(Access).decode(2, ())


def test_absence_is_a_value_of_fields_only() -> None:
    assert admits_unset(int | UnsetType) and admits_unset(Annotated[int | UnsetType, "x"])
    assert not admits_unset(int | None)
    node, absent = TypeReader(mode="input", closed=False).read_field(Annotated[int | UnsetType | None, "x"])
    assert absent and document(node) == {"type": ["integer", "null"], "description": "x"}
    with pytest.raises(DefinitionError):
        read(list[int | UnsetType])


def test_a_default_that_does_not_fit_is_not_shown() -> None:
    assert shown_default(Colour.RED, read(Colour)) == "red"
    assert shown_default("red", read(Colour)) == "red"
    for default, tp in [("blue", Colour), (True, int), ("1", int), ([1], list[Colour]), (object(), Any), (None, int)]:
        assert shown_default(default, read(tp)) is UNSET
    assert shown_default(Open(1), read(Open)) == {"a": 1}
    assert shown_default(msgspec.Raw(b"1"), read(Any)) is UNSET
