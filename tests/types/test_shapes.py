"""Small promises of the types: results made by hand, capabilities looked up, content that is not known."""

import json

import msgspec
import pytest
from msgspec import Raw

from mcpcore.types import (
    AudioContent,
    CallToolResult,
    CreateMessageParams,
    CreateMessageResult,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    SamplingContent,
    SamplingMessage,
    ServerCapabilities,
    TextContent,
    ToolResultContent,
    ToolUseContent,
    UnknownContent,
)
from mcpcore.types.lifecycle import ListChangedCapability, ResourcesCapability
from mcpcore.types.methods import METHODS, Direction, Method, declared, methods_of
from mcpcore.types.revisions import MEMBERS, fitter
from mcpcore.versions import LATEST_MODERN, VERSIONS


def test_results_of_a_tool_can_be_made_in_one_word() -> None:
    for result, told in [
        (CallToolResult.text("a"), {"content": [{"type": "text", "text": "a"}], "isError": False}),
        (CallToolResult.error("b"), {"content": [{"type": "text", "text": "b"}], "isError": True}),
        (CallToolResult.structured({"c": None}), {"content": [], "structuredContent": {"c": None}, "isError": False}),
    ]:
        assert json.loads(msgspec.json.encode(result)) == told


@pytest.mark.parametrize(
    ("path", "there"),
    [
        (None, True),
        ("", True),
        ("tools", True),
        ("tools.list_changed", True),
        ("resources", True),
        ("resources.subscribe", False),
        ("resources.list_changed", False),
        ("prompts", False),
        ("prompts.list_changed", False),
        ("logging", True),
        ("no_such", False),
    ],
)
def test_a_capability_is_declared_unless_it_is_absent_null_or_false(path: str | None, there: bool) -> None:
    capabilities = ServerCapabilities(
        tools=ListChangedCapability(True), resources=ResourcesCapability(subscribe=False), logging={}
    )
    assert declared(capabilities, path) is there


def test_extensions_add_rows_to_the_methods_of_their_revisions() -> None:
    row = Method("com.example/x", Direction.TO_SERVER, METHODS[0].params, METHODS[0].result, (LATEST_MODERN,))
    assert methods_of(Direction.TO_SERVER, LATEST_MODERN, (row,))["com.example/x"] is row
    assert "com.example/x" not in methods_of(Direction.TO_SERVER, "2025-11-25", (row,))
    assert "com.example/x" not in methods_of(Direction.TO_CLIENT, LATEST_MODERN, (row,))
    assert "com.example/x" not in methods_of(Direction.TO_SERVER, LATEST_MODERN)


@pytest.mark.parametrize("raw", [b"5", b"[]", b"null", b"{}", b'{"type":5}', b'{"type":"text"}', b'{"type":"image"}'])
def test_what_is_no_block_or_a_known_one_is_not_unknown_content(raw: bytes) -> None:
    assert UnknownContent.found(Raw(raw)) is None


# -- fitting to revisions ----------------------------------------------------------------------------------------------


def test_every_member_that_comes_or_goes_exists_and_at_a_revision_that_exists() -> None:
    for kind, members in MEMBERS.items():
        assert set(members) <= set(kind.__struct_fields__), kind
        for first, gone in members.values():
            assert first in VERSIONS and (gone is None or gone in VERSIONS)


def test_what_fits_is_returned_as_it_is() -> None:
    result = CallToolResult([TextContent("a")])
    fit = fitter(CallToolResult, "2024-11-05")
    assert fit is not None and fit(result) is result
    assert fitter(CallToolResult, LATEST_MODERN) is None


def test_what_does_not_fit_is_copied_and_not_changed() -> None:
    result = CallToolResult([TextContent("a", meta={"x": 1})], structured_content={"b": 1})
    before = msgspec.json.encode(result)
    fit = fitter(CallToolResult, "2024-11-05")
    assert fit is not None
    fitted = fit(result)
    assert json.loads(msgspec.json.encode(fitted)) == {"content": [{"type": "text", "text": "a"}]}
    assert msgspec.json.encode(result) == before


@pytest.mark.parametrize("version", VERSIONS)
def test_content_that_a_revision_cannot_carry_is_put_into_words_that_it_can(version: str) -> None:
    audio, link = AudioContent("AAAA", "audio/wav"), ResourceLink("file:///a", "a", title="A")
    fit = fitter(CallToolResult, version)
    result = CallToolResult([audio, link])
    first, second = (fit(result) if fit else result).content
    if version < "2025-03-26":
        assert first == EmbeddedResource(ResourceContents("attachment:audio", "audio/wav", blob="AAAA"))
    else:
        assert first == audio
    assert second == (TextContent("A: file:///a") if version < "2025-06-18" else link)


BLOCKS: list[tuple[SamplingContent, str]] = [
    (TextContent("a"), "a"),
    (ImageContent("AAAA", "image/png"), "[image/png]"),
    (AudioContent("AAAA", "audio/wav"), "[audio/wav]"),
    (ToolUseContent("1", "add", {"a": 1}), 'add({"a":1})'),
    (
        ToolResultContent(
            "1",
            [
                TextContent("x"),
                ResourceLink("file:///a", "a"),
                EmbeddedResource(ResourceContents("file:///b", text="y")),
                EmbeddedResource(ResourceContents("file:///c", blob="AAAA")),
            ],
        ),
        "x\na: file:///a\ny\nfile:///c",
    ),
]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_sampling_message_of_several_blocks_becomes_several_where_it_could_have_one(version: str) -> None:
    params = CreateMessageParams([SamplingMessage("user", [block for block, _ in BLOCKS])], 1)
    fit = fitter(CreateMessageParams, version)
    messages = (fit(params) if fit else params).messages
    if version >= "2025-11-25":
        assert messages == params.messages
        return
    assert [message.role for message in messages] == ["user"] * len(BLOCKS)
    kept = 3 if version >= "2025-03-26" else 2
    assert [message.content for message in messages[:kept]] == [block for block, _ in BLOCKS[:kept]]
    assert [message.content for message in messages[kept:]] == [TextContent(words) for _, words in BLOCKS[kept:]]


@pytest.mark.parametrize("version", VERSIONS[:-2])
def test_a_sampling_result_of_several_blocks_becomes_one(version: str) -> None:
    fit = fitter(CreateMessageResult, version)
    assert fit is not None
    for block, words in BLOCKS[3:]:
        assert fit(CreateMessageResult("assistant", block, "m")).content == TextContent(words)
    assert fit(CreateMessageResult("assistant", [BLOCKS[1][0]], "m")).content == BLOCKS[1][0]
    several = fit(CreateMessageResult("assistant", [BLOCKS[0][0], BLOCKS[1][0], BLOCKS[3][0]], "m"))
    assert several.content == TextContent('a\n[image/png]\nadd({"a":1})')
    assert fit(CreateMessageResult("assistant", [], "m")).content == TextContent("")
