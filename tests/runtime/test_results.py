"""What handlers return, on the wire of every revision: in its shape, and valid by its schema to the last member."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import anyio
import msgspec
import pytest

from mcpcore import Audio, CallToolResult, File, Image, Progress, ResourceLink, Server, TextContent, assistant, user
from mcpcore.types import Annotations, EmbeddedResource, Icon, ResourceContents
from mcpcore.versions import VERSIONS
from tests.support.schemas import strict_errors
from tests.support.wires import MODERN, connected

pytestmark = pytest.mark.anyio

REVISIONS = pytest.mark.parametrize("version", VERSIONS)
FIRST, THIRD = "2024-11-05", "2025-06-18"


class Order(msgspec.Struct):
    id: int


def annotations() -> Annotations:
    return Annotations(["user"], 0.5, "2026-01-01T00:00:00Z")


def make_server() -> Server:
    server = Server("results")
    link = ResourceLink("x://a", "a", "T", "d", "text/plain", annotations(), 5, [Icon("https://a/i.png")], {"m": 1})
    embedded = EmbeddedResource(ResourceContents("x://a", text="t", meta={"m": 1}), annotations(), {"m": 1})
    built = CallToolResult([TextContent("a", annotations(), {"m": 1})], {"n": 1}, False, {"m": 1})
    pieces: list[Any] = [Image(b"GIF89a", annotations=annotations(), meta={"m": 1}), Audio(b"ID3"), link, embedded]
    pieces.append(File(b"t", name="a.txt"))

    @server.tool
    def blocks() -> list[Any]:
        return pieces

    @server.tool
    async def whole() -> CallToolResult:
        return built

    @server.tool(output_schema=True)
    def order() -> Order:
        return Order(1)

    @server.tool(output_schema=True)
    async def orders() -> list[Order]:
        return [Order(1), Order(2)]

    @server.tool(output_schema="wrap")
    def wrapped() -> int:
        return 5

    @server.tool(output_schema="any")
    async def nothing() -> int | None:
        return None

    @server.tool(output_schema=True)
    async def stream() -> AsyncIterator[Order | Progress]:
        yield Order(1)
        yield Progress(1)
        yield Order(2)

    @server.tool(output_schema=True)
    def stream_in_thread() -> Iterator[Order]:
        yield Order(1)
        yield Order(2)

    @server.tool(output_schema=True)
    async def misfit() -> Order:
        return Order("secret")  # type: ignore[arg-type]  # what is to be found

    @server.tool
    def silent() -> None: ...

    @server.prompt
    def prompt() -> list[Any]:
        return [user(piece) for piece in pieces] + [assistant("a")]

    @server.resource("x://pictures")
    def pictures() -> list[Any]:
        return [Image(b"GIF89a"), b"b", "t", ResourceContents("x://own", text="o", meta={"m": 1})]

    return server


async def ask(version: str, method: str, params: dict[str, Any]) -> Any:
    with anyio.fail_after(5):
        async with connected(make_server()) as peer:
            if version != MODERN:
                await peer.initialize(version)
            answer = await peer.request(method, params, era=version)
    return answer["result"]


@REVISIONS
@pytest.mark.parametrize(
    "tool", [handler.name for handler in make_server().registry.handlers() if handler.kind == "tool"]
)
async def test_the_result_of_a_tool_is_valid_in_every_revision(tool: str, version: str) -> None:
    result = await ask(version, "tools/call", {"name": tool})
    assert strict_errors(version, "CallToolResult", result) == []
    assert result["isError"] is (tool == "misfit" and version >= THIRD)


@REVISIONS
@pytest.mark.parametrize(
    ("method", "params", "definition"),
    [
        ("prompts/get", {"name": "prompt"}, "GetPromptResult"),
        ("resources/read", {"uri": "x://pictures"}, "ReadResourceResult"),
    ],
)
async def test_other_results_are_valid_in_every_revision(
    method: str, params: dict[str, Any], definition: str, version: str
) -> None:
    assert strict_errors(version, definition, await ask(version, method, params)) == []


@REVISIONS
@pytest.mark.parametrize("through", ["tools/call", "prompts/get"])
async def test_blocks_that_a_revision_has_not_are_what_comes_nearest(through: str, version: str) -> None:
    result = await ask(version, through, {"name": "blocks" if through == "tools/call" else "prompt"})
    blocks = result["content"] if through == "tools/call" else [each["content"] for each in result["messages"][:-1]]
    image, audio, link, embedded, file = blocks
    assert (image["type"], embedded["type"], file["type"]) == ("image", "resource", "resource")
    assert image["annotations"].get("lastModified") == (None if version < THIRD else "2026-01-01T00:00:00Z")
    assert ("_meta" in image, "_meta" in embedded, "_meta" in embedded["resource"]) == (version >= THIRD,) * 3
    if version == FIRST:
        assert audio["resource"] == {"uri": "attachment:audio", "mimeType": "audio/mpeg", "blob": "SUQz"}
    else:
        assert audio == {"type": "audio", "data": "SUQz", "mimeType": "audio/mpeg"}
    if version < THIRD:
        assert (link["type"], link["text"]) == ("text", "T: x://a")
    else:
        assert (link["type"], link["size"], "icons" in link) == ("resource_link", 5, version > THIRD)


TEXT = '[{"id":1},{"id":2}]'
ABSENT = "absent"


@pytest.mark.parametrize(
    ("tool", "texts", "structured"),
    [
        # by revision: up to 2025-03-26, from 2025-06-18, 2026-07-28
        ("order", [['{"id":1}']] * 3, [ABSENT, {"id": 1}, {"id": 1}]),
        ("orders", [[TEXT]] * 3, [ABSENT, ABSENT, [{"id": 1}, {"id": 2}]]),
        ("stream", [['{"id":1}', '{"id":2}']] * 2 + [[TEXT]], [ABSENT, ABSENT, [{"id": 1}, {"id": 2}]]),
        ("stream_in_thread", [['{"id":1}', '{"id":2}']] * 2 + [[TEXT]], [ABSENT, ABSENT, [{"id": 1}, {"id": 2}]]),
        ("wrapped", [["5"], ['{"result":5}'], ["5"]], [ABSENT, {"result": 5}, 5]),
        ("nothing", [[], [], ["null"]], [ABSENT, ABSENT, None]),
        ("whole", [["a"]] * 3, [ABSENT, {"n": 1}, {"n": 1}]),
        ("silent", [[]] * 3, [ABSENT] * 3),
    ],
)
@REVISIONS
async def test_structured_content_is_what_the_revision_can_carry(
    tool: str, texts: list[Any], structured: list[Any], version: str
) -> None:
    form = 0 if version < THIRD else 2 if version == MODERN else 1
    result = await ask(version, "tools/call", {"name": tool})
    assert [block["text"] for block in result["content"]] == texts[form]
    assert result.get("structuredContent", ABSENT) == structured[form]
    (listed,) = [each for each in (await ask(version, "tools/list", {}))["tools"] if each["name"] == tool]
    assert ("outputSchema" in listed) is (structured[form] != ABSENT and tool != "whole")


@REVISIONS
async def test_a_result_that_does_not_fit_what_was_published_is_replaced(version: str) -> None:
    result = await ask(version, "tools/call", {"name": "misfit"})
    if version < THIRD:
        assert result["content"] == [{"type": "text", "text": '{"id":"secret"}'}]
        return
    assert "structuredContent" not in result
    (block,) = result["content"]
    assert block["text"] == (
        "Tool (misfit) output validation failed: Validation failed: JSON schema validation errors: "
        "[/id: string found, integer expected]"
    )
