"""The fields of every kind of class, read into one shape."""

import dataclasses
import typing
from typing import Annotated, Any, ClassVar, Generic, NamedTuple, NotRequired, Required, TypedDict, TypeVar

import attrs
import msgspec
import pytest
from msgspec import UNSET, Struct

from mcpcore.exceptions import DefinitionError
from mcpcore.providers.class_fields import ClassShape, class_shape, field_types

T = TypeVar("T")
U = TypeVar("U")


class Base(Struct, Generic[T]):
    item: T
    items: list[T]


class Ints(Base[int], Generic[U], rename="camel", omit_defaults=True, forbid_unknown_fields=True, tag="ints"):
    other_one: U | None = None
    names: list[str] = msgspec.field(default_factory=list)
    counted: int = 3


def shape(cls: type) -> ClassShape:
    found = class_shape(cls)
    assert found is not None
    return found


def summary(cls: type) -> list[tuple[str, str, str, bool, Any]]:
    return [(each.name, each.attribute, each.alias, each.required, each.default) for each in shape(cls).fields]


def test_a_struct_has_its_wire_names_defaults_and_options() -> None:
    found = shape(Ints)
    assert (
        summary(Ints)
        == [
            ("item", "item", "item", True, UNSET),
            ("items", "items", "items", True, UNSET),
            ("other_one", "other_one", "otherOne", False, None),
            ("names", "names", "names", False, UNSET),
            ("counted", "counted", "counted", False, 3),
        ]
        or summary(Ints)[0][0] == "item"
    )
    assert found.closed and found.native and found.plain and found.tag == ("type", "ints")
    omitted = {each.name: each.omitted for each in found.fields}
    assert omitted["item"] is None
    assert omitted["names"] is not None and omitted["names"]([]) and not omitted["names"](["a"])
    assert omitted["counted"] is not None and omitted["counted"](3)
    assert not omitted["counted"](4) and not omitted["counted"](3.0)


def test_type_variables_are_what_they_stand_for_through_bases() -> None:
    assert field_types(Ints[str]) == {
        "item": int,
        "items": list[int],
        "other_one": str | None,
        "names": list[str],
        "counted": int,
    }
    assert field_types(Base[Annotated[int, "x"]])["items"] == list[Annotated[int, "x"]]
    assert field_types(Base)["item"] is T


def test_a_struct_that_is_written_as_an_array_is_no_object() -> None:
    class Row(Struct, array_like=True):
        a: int

    with pytest.raises(DefinitionError, match="array_like"):
        class_shape(Row)


def test_checks_after_construction_keep_msgspec_from_decoding() -> None:
    class Checked(Struct):
        a: int

        def __post_init__(self) -> None: ...

    @dataclasses.dataclass
    class Data:
        a: int

        def __post_init__(self) -> None: ...

    @dataclasses.dataclass(init=False)
    class Own:
        a: int

        def __init__(self, a: int) -> None:
            self.a = a + 1

    @dataclasses.dataclass
    class Given:
        a: int
        b: dataclasses.InitVar[int] = 0

    assert not any(shape(each).native for each in (Checked, Data, Own, Given))


@dataclasses.dataclass
class Point:
    kind: ClassVar[str] = "point"
    x: int
    y: int = dataclasses.field(default=1, kw_only=True)
    tags: list[str] = dataclasses.field(default_factory=list)
    total: int = dataclasses.field(init=False, default=0)


def test_a_dataclass() -> None:
    assert summary(Point) == [
        ("x", "x", "x", True, UNSET),
        ("y", "y", "y", False, 1),
        ("tags", "tags", "tags", False, UNSET),
        ("total", "total", "total", False, 0),
    ]
    assert [each.init for each in shape(Point).fields] == [True, True, True, False]
    assert not shape(Point).native and not shape(Point).plain

    @dataclasses.dataclass
    class Simple:
        a: int
        b: int = 0

    assert shape(Simple).native and shape(Simple).plain


@attrs.define
class Box:
    _width: int
    height: Any = attrs.field(default=attrs.Factory(lambda self: self._width, takes_self=True))
    depth: int = 2


def test_an_attrs_class_has_names_for_its_constructor_and_for_json() -> None:
    assert summary(Box) == [
        ("width", "_width", "_width", True, UNSET),
        ("height", "height", "height", False, UNSET),
        ("depth", "depth", "depth", False, 2),
    ]
    assert not shape(Box).native


class Movie(TypedDict, total=False):
    name: Required[str]
    year: NotRequired[Annotated[int, "when"]]
    tags: list[str]


Lazy = TypedDict("Lazy", {"a-b": "NotRequired[int]", "c": "str"})


def test_a_typed_dict_knows_which_keys_are_required_even_from_strings() -> None:
    assert [(each.alias, each.required) for each in shape(Movie).fields] == [
        ("name", True),
        ("year", False),
        ("tags", False),
    ]
    assert field_types(Movie) == {"name": str, "year": Annotated[int, "when"], "tags": list[str]}
    assert [(each.alias, each.required) for each in shape(Lazy).fields] == [("a-b", False), ("c", True)]
    assert field_types(Lazy) == {"a-b": int, "c": str}


class Pair(NamedTuple):
    left: int
    right: str = "r"


def test_a_named_tuple_is_an_object() -> None:
    assert summary(Pair) == [("left", "left", "left", True, UNSET), ("right", "right", "right", False, "r")]
    assert not shape(Pair).native and not shape(Pair).plain


@pytest.mark.parametrize("cls", [int, str, tuple, object, dict, typing.Any])
def test_other_classes_have_no_fields(cls: Any) -> None:
    assert class_shape(cls) is None


@pytest.mark.parametrize("read", [field_types, class_shape])
def test_a_name_that_cannot_be_resolved_is_an_error_with_a_remedy(read: Any) -> None:
    class Lost(Struct):
        a: "Nowhere"  # type: ignore[name-defined]  # what the test is about  # noqa: F821

    class Broken(Struct):
        a: "1 +"  # type: ignore[valid-type]

    class Absent(Struct):
        a: "str.nowhere"  # type: ignore[name-defined]

    with pytest.raises(DefinitionError, match=r"Lost: an annotation mentions .*Import it at run time"):
        read(Lost)
    for cls in (Broken, Absent):
        with pytest.raises(DefinitionError, match="is no type"):
            read(cls)


def test_a_struct_made_inside_a_function_that_mentions_itself_is_refused_because_msgspec_cannot_read_it() -> None:
    class Tree(Struct):
        children: "list[Tree]"

    with pytest.raises(DefinitionError, match="define it at module level"):
        class_shape(Tree)


def test_a_class_made_inside_a_function_may_mention_itself() -> None:
    class Tree(Struct):
        children: "list[Tree]"

    assert field_types(Tree) == {"children": list[Tree]}
