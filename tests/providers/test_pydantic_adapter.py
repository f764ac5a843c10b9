"""pydantic's models and types, by pydantic's own rules, in our schemas and messages."""

import dataclasses
import datetime
import enum
from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec
import pydantic
import pydantic.dataclasses
import pytest
from msgspec import Struct

from mcpcore.exceptions import DefinitionError
from mcpcore.providers.markers import Param
from mcpcore.providers.pydantic_adapter import claims, claims_metadata
from mcpcore.providers.results import output_codec, tool_result
from mcpcore.providers.schema import Field, InvalidArguments, arguments_codec, value_codec

T = TypeVar("T")


class Login(pydantic.BaseModel):
    pin: Annotated[str, Param(secret=True), pydantic.Field(max_length=4)]
    key: Annotated[int, Param(secret=True)] | None = pydantic.Field(default=None, alias="apiKey")


class Account(pydantic.BaseModel):
    logins: list[Login] = []
    parent: "Account | None" = None


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"


class Inner(pydantic.BaseModel):
    """For developers and, with pydantic, for readers of the schema."""

    when: datetime.date
    colour: Colour = Colour.RED


class Outer(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(populate_by_name=True)

    size: int = pydantic.Field(ge=1, alias="theSize", description="How large")
    inner: Inner | None = None
    tags: set[str] = set()

    @pydantic.field_validator("size")
    @classmethod
    def even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("must be even")
        return value

    @pydantic.computed_field  # type: ignore[prop-decorator]  # mypy has no plugin for it here
    @property
    def doubled(self) -> int:
        return self.size * 2


class Tree(pydantic.BaseModel):
    children: list["Tree"] = []


class Page(pydantic.BaseModel, Generic[T]):
    items: list[T]


@pydantic.dataclasses.dataclass
class Row:
    a: int = pydantic.Field(gt=0)


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]
    name: str


class Mixed(Struct):
    outer: Outer
    plain: int = 1


@dataclasses.dataclass
class Plain:
    inner: Inner


def errors(tp: Any, raw: bytes) -> list[str]:
    with pytest.raises(InvalidArguments) as caught:
        arguments_codec([Field(name="p", type=tp)]).decode(b'{"p":' + raw + b"}", tool="t")
    return caught.value.errors


def arrives(tp: Any, raw: bytes) -> Any:
    return arguments_codec([Field(name="p", type=tp)]).decode(b'{"p":' + raw + b"}", tool="t")["p"]


def test_a_model_is_published_without_noise_and_closed_for_arguments() -> None:
    published = arguments_codec([Field(name="p", type=Outer)]).schema
    assert "title" not in str(published) and "$defs" not in published
    outer = published["properties"]["p"]
    assert outer["properties"]["theSize"] == {"type": "integer", "minimum": 1, "description": "How large"}
    assert outer["additionalProperties"] is False and outer["required"] == ["theSize"]
    inner = outer["properties"]["inner"]["anyOf"][0]
    assert inner["additionalProperties"] is False and "default" not in outer["properties"]["inner"]
    assert inner["properties"]["colour"]["enum"] == ["red", "green"]


def test_the_output_side_has_computed_fields() -> None:
    assert "doubled" in value_codec(Outer).schema["properties"]
    assert "doubled" not in value_codec(Outer, mode="input").schema["properties"]


def test_a_model_arrives_as_an_instance() -> None:
    assert arrives(Outer, b'{"theSize":2.0,"inner":{"when":"2026-01-01"},"tags":["a"]}') == Outer(
        theSize=2, inner=Inner(when=datetime.date(2026, 1, 1)), tags={"a"}
    )
    assert arrives(Mixed, b'{"outer":{"theSize":4}}') == Mixed(Outer(theSize=4))
    assert arrives(list[Plain], b'[{"inner":{"when":"2026-01-01"}}]') == [Plain(Inner(when=datetime.date(2026, 1, 1)))]
    assert arrives(Row, b'{"a":1}') == Row(1)
    assert arrives(Page[int], b'{"items":[1]}') == Page[int](items=[1])
    assert arrives(Cat | Dog, b'{"kind":"dog","name":"x"}') == Dog(kind="dog", name="x")
    assert arrives(Inner | None, b"null") is None


@pytest.mark.parametrize(
    ("tp", "raw", "error"),
    [
        (Outer, b'{"theSize":0}', "/p/theSize: value 0 must be at least 1"),
        (Outer, b'{"theSize":"2"}', "/p/theSize: string found, integer expected"),
        (Outer, b'{"size":2}', "/p/size: unexpected property"),
        (Outer, b'{"theSize":3}', "/p/theSize: Value error, must be even"),
        (Outer, b'{"theSize":2,"inner":{"when":"x"}}', "/p/inner/when: Input should be a valid date or datetime, input is too short"),
        (Mixed, b'{"outer":{"theSize":3}}', "/p/outer/theSize: Value error, must be even"),
        (Cat | Dog, b'{"kind":"bird"}', '/p/kind: value "bird" must be one of [cat, dog]'),
        (Cat | Dog, b'{"kind":"cat"}', "/p/lives: required property not found"),
        (Row, b'{"a":0}', "/p/a: value 0 must be more than 0"),
    ],
)  # fmt: skip
def test_a_model_that_does_not_fit_is_named_in_our_grammar(tp: Any, raw: bytes, error: str) -> None:
    assert error in errors(tp, raw)


def test_constraints_of_field_work_on_plain_types() -> None:
    tp = Annotated[int, pydantic.Field(ge=2, description="at least two", examples=[2])]
    published = arguments_codec([Field(name="p", type=tp)]).schema["properties"]["p"]
    assert published == {"type": "integer", "minimum": 2, "description": "at least two", "examples": [2]}
    assert errors(tp, b"1") == ["/p: value 1 must be at least 2"]


def test_validators_in_annotated_run() -> None:
    tp = Annotated[int, pydantic.AfterValidator(lambda value: value + 1), pydantic.Field(le=3)]
    assert arrives(tp, b"2") == 3
    assert errors(tp, b'"x"') == ["/p: string found, integer expected"]


def test_types_of_pydantic_work() -> None:
    assert arrives(pydantic.HttpUrl, b'"http://a/b"') == pydantic.HttpUrl("http://a/b")
    assert errors(pydantic.HttpUrl, b'"nope"') == ["/p: Input should be a valid URL, relative URL without a base"]
    assert arrives(list[pydantic.PositiveInt], b"[1]") == [1]
    assert errors(pydantic.PositiveInt, b"0") == ["/p: value 0 must be more than 0"]


def test_recursive_and_shared_models_are_one_definition() -> None:
    published = arguments_codec([Field(name="a", type=Tree), Field(name="b", type=list[Tree] | None)]).schema
    assert list(published["$defs"]) == ["Tree"]
    shared = arguments_codec(
        [Field(name="a", type=Inner), Field(name="b", type=Outer), Field(name="c", type=Plain)]
    ).schema
    assert list(shared["$defs"]) == ["Inner"]
    assert shared["properties"]["a"] == {"$ref": "#/$defs/Inner"}


def test_different_models_of_one_name_are_told_apart() -> None:
    other = pydantic.create_model("Inner", x=(int, ...))
    codec = arguments_codec([Field(name="a", type=list[Inner]), Field(name="b", type=Inner), Field(name="c", type=other), Field(name="d", type=other)])  # fmt: skip
    assert list(codec.schema["$defs"]) == ["Inner", "Inner_2"]
    assert codec.decode(b'{"a":[],"b":{"when":"2026-01-01"},"c":{"x":1},"d":{"x":2}}', tool="t")["c"] == other(x=1)


def test_a_model_is_a_result_by_its_aliases() -> None:
    codec = output_codec(Outer, output_schema=True)
    result = tool_result(Outer(theSize=2, tags={"b", "a"}), tool="t", codec=codec, version="2025-11-25")
    assert result.is_error is False
    structured = result.structured_content
    assert structured["theSize"] == 2 and structured["doubled"] == 4 and structured["inner"] is None
    assert msgspec.json.decode(result.content[0].text) == structured  # type: ignore[union-attr]  # it is text
    without = output_codec(Inner | None, omit_none=True)
    assert tool_result(None, tool="t", codec=without, version="2025-11-25").content == []


@dataclasses.dataclass
class Remark:
    note: str | None = None


class Sparse(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(alias_generator=str.upper, populate_by_name=True)
    needed: int | None
    spare: int | None = None
    below: list["Sparse"] = []
    named: dict[str, "Sparse"] = {}
    pair: tuple[int, "Sparse"] | None = None


class Remarked(pydantic.BaseModel):
    remark: Remark


class Everything(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(json_schema_serialization_defaults_required=True)
    spare: int | None = None


class Rooted(pydantic.RootModel[dict[str, Sparse]]): ...


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (Sparse(needed=None), {"NEEDED": None, "BELOW": [], "NAMED": {}}),
        (
            Sparse(needed=1, below=[Sparse(needed=None)], named={"a": Sparse(needed=2)}, pair=(1, Sparse(needed=3))),
            {
                "NEEDED": 1,
                "BELOW": [{"NEEDED": None, "BELOW": [], "NAMED": {}}],
                "NAMED": {"a": {"NEEDED": 2, "BELOW": [], "NAMED": {}}},
                "PAIR": [1, {"NEEDED": 3, "BELOW": [], "NAMED": {}}],
            },
        ),
        (Remarked(remark=Remark()), {"remark": {}}),
        (Rooted({"root": Sparse(needed=None)}), {"root": {"NEEDED": None, "BELOW": [], "NAMED": {}}}),
        (Everything(), {"spare": None}),
    ],
)
def test_only_members_that_the_schema_does_not_require_are_left_out_for_being_none(value: Any, written: Any) -> None:
    codec = output_codec(type(value), output_schema=True, omit_none=True)
    result = tool_result(value, tool="t", codec=codec, version="2025-11-25")
    assert (result.is_error, result.structured_content) == (False, written)


def test_a_model_that_was_filled_with_something_else_is_an_error_not_a_warning() -> None:
    broken = Outer.model_construct(size="s3cret")
    codec = output_codec(Inner, output_schema=True)
    wrong = Inner.model_construct(when="s3cret", colour=5)
    result = tool_result(wrong, tool="t", codec=codec, version="2025-11-25")
    assert result.is_error is True and "s3cret" not in str(result)
    assert tool_result(broken, tool="t", codec=output_codec(Any), version="2025-11-25").is_error is not None


def test_a_model_without_schema_is_refused_in_words() -> None:
    class Opaque(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
        lock: type(compile("1", "", "eval"))  # type: ignore[valid-type]  # a type that pydantic does not know

    with pytest.raises(DefinitionError, match="pydantic has no JSON Schema"):
        value_codec(Opaque)


def test_a_default_of_a_model_that_json_has_not_is_left_out_without_a_warning() -> None:
    class Odd(pydantic.BaseModel):
        anything: Any = pydantic.Field(default=object())
        ratio: float = float("nan")
        most: float = float("inf")
        made: list[int] = pydantic.Field(default_factory=list)

    codec = arguments_codec([Field(name="p", type=Odd)])
    assert all("default" not in each for each in codec.schema["properties"]["p"]["properties"].values())
    assert codec.schema["properties"]["p"].get("required", []) == []
    assert isinstance(codec.decode(b'{"p":{}}', tool="t")["p"], Odd)


def test_a_model_whose_schema_cannot_be_written_is_refused_in_words() -> None:
    class Annotated_(pydantic.BaseModel):
        n: Annotated[int, pydantic.Field(json_schema_extra={"x": object()})] = 1

    with pytest.raises(DefinitionError, match=r"pydantic has no JSON Schema for .*Annotated_"):
        value_codec(Annotated_)


def test_nothing_else_is_claimed() -> None:
    assert claims(Outer) and claims(Row) and claims(pydantic.HttpUrl)
    assert not any(claims(each) for each in (int, Mixed, Plain, Colour, list[Outer], "Outer", None))
    assert claims_metadata([pydantic.AfterValidator(int)])
    assert not claims_metadata(["text", msgspec.Meta(ge=1), pydantic.Field(ge=1)])


def test_secret_fields_of_models_are_not_quoted_at_any_depth() -> None:
    codec = arguments_codec([Field(name="account", type=Account)])
    assert codec.secrets == {"pin", "apiKey"}
    with pytest.raises(InvalidArguments) as caught:
        codec.decode(b'{"account":{"parent":{"logins":[{"pin":"hunter2"}]}}}', tool="t")
    assert caught.value.errors == ["/account/parent/logins/0/pin: value must have at most 4 characters"]
