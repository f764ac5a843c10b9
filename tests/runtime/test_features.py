"""Everything that a server offers, end to end: in every revision, in memory and over lines."""

from enum import Enum
from typing import Annotated, Any

import anyio
import pytest

from mcpcore import CallToolResult, Client, Image, Param, PeerError, Server, TextContent
from mcpcore.exceptions import LocalProtocolError
from mcpcore.providers.results import assistant, user
from mcpcore.types.completion import CompletionContext, PromptReference, ResourceTemplateReference
from mcpcore.versions import MODERN_VERSIONS, VERSIONS
from tests.support.wires import Lines

pytestmark = pytest.mark.anyio


class Colour(Enum):
    RED = "red"
    GREEN = "green"


def make_server(**options: Any) -> Server:
    server = Server("everything", version="1.2.3", instructions="Be brief.", **options)

    @server.tool(title="Add")
    async def add(a: int, b: Annotated[int, Param("The other one")] = 1) -> int:
        """Add two numbers."""
        return a + b

    @server.tool
    def blocking(text: str) -> str:
        return text.upper()

    @server.tool(output_schema=True)
    async def record(name: str) -> dict[str, str]:
        return {"name": name}

    @server.tool
    async def picture() -> list[Any]:
        return ["a pixel", Image(b"\x89PNG", format="png")]

    @server.tool(thread=False)
    def quick() -> CallToolResult:
        return CallToolResult([TextContent("quick")], is_error=False)

    @server.resource("config://app", title="Configuration")
    def config() -> str:
        """How it is set up."""
        return "debug = false"

    @server.resource("data://bytes")
    async def blob() -> bytes:
        return b"\x00\xff"

    @server.resource("users://{user_id}/{colour}")
    async def profile(user_id: int, colour: Colour) -> dict[str, Any]:
        return {"id": user_id, "colour": colour.value}

    @server.prompt(title="Greeting")
    def greet(name: str, times: int = 1) -> list[Any]:
        """Greet somebody."""
        return [user(f"Greet {name}"), assistant("Hello! " * times)]

    @server.complete(prompt="greet", argument="name")
    async def names(prefix: str) -> list[str]:
        return [name for name in ("Ada", "Alan", "Grace") if name.startswith(prefix)]

    @server.complete(uri="users://{user_id}/{colour}")
    def colours(prefix: str, context: CompletionContext) -> list[str]:
        chosen = (context.arguments or {}).get("user_id", "nobody")
        return [f"{colour.value} for {chosen}" for colour in Colour if colour.value.startswith(prefix)]

    return server


@pytest.fixture(params=["memory", "lines"])
def target(request: pytest.FixtureRequest) -> Any:
    server = make_server()
    return server if request.param == "memory" else Lines(server)


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def test_a_client_learns_who_the_server_is_and_what_it_offers(target: Any, version: str) -> None:
    with anyio.fail_after(5):
        async with Client(target, protocol_version=version) as client:
            assert client.protocol_version == version
            assert client.server_info is not None
            assert (client.server_info.name, client.server_info.version) == ("everything", "1.2.3")
            assert client.instructions == "Be brief."
            offered = client.server_capabilities
            assert offered.tools and offered.resources and offered.prompts and offered.logging is not None
            assert (offered.completions is not None) is (version > "2024-11-05")


async def test_tools_are_listed_in_order_and_called(target: Any, version: str) -> None:
    with anyio.fail_after(5):
        async with Client(target, protocol_version=version) as client:
            tools = await client.list_tools()
            assert [tool.name for tool in tools] == ["add", "blocking", "record", "picture", "quick"]
            assert tools[0].description == "Add two numbers."
            assert tools[0].title == ("Add" if version >= "2025-06-18" else None)
            assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
            assert (await client.call_tool("add", {"a": 1})).value == "2"
            assert (await client.call_tool("blocking", {"text": "loud"})).text == "LOUD"
            assert (await client.call_tool("quick")).text == "quick"
            record = await client.call_tool("record", {"name": "Ada"})
            assert record.text == '{"name":"Ada"}'
            assert record.structured == ({"name": "Ada"} if version >= "2025-06-18" else None)
            text, image = (await client.call_tool("picture")).content
            assert getattr(text, "text", None) == "a pixel"
            assert getattr(image, "mime_type", None) == "image/png"


async def test_resources_and_templates_are_listed_and_read(target: Any, version: str) -> None:
    with anyio.fail_after(5):
        async with Client(target, protocol_version=version) as client:
            assert [resource.uri for resource in await client.list_resources()] == ["config://app", "data://bytes"]
            templates = await client.list_resource_templates()
            assert [template.uri_template for template in templates] == ["users://{user_id}/{colour}"]
            (config,) = (await client.read_resource("config://app")).contents
            assert (config.uri, config.text, config.mime_type) == ("config://app", "debug = false", "text/plain")
            (blob,) = (await client.read_resource("data://bytes")).contents
            assert (blob.blob, blob.mime_type) == ("AP8=", "application/octet-stream")
            (profile,) = (await client.read_resource("users://7/red")).contents
            assert (profile.uri, profile.text) == ("users://7/red", '{"id":7,"colour":"red"}')


async def test_what_is_not_there_is_not_found_with_the_code_of_the_revision(target: Any, version: str) -> None:
    code = -32602 if version in MODERN_VERSIONS else -32002
    with anyio.fail_after(5):
        async with Client(target, protocol_version=version) as client:
            with pytest.raises(PeerError) as caught:
                await client.read_resource("config://other")
            assert (caught.value.code, caught.value.data) == (code, {"uri": "config://other"})
            with pytest.raises(PeerError) as caught:
                await client.read_resource("users://seven/red")
            assert caught.value.code == -32602
            for call in (client.call_tool("no_such_tool"), client.get_prompt("no_such_prompt")):
                with pytest.raises(PeerError) as caught:
                    await call
                assert caught.value.code == -32602
            assert caught.value.message == "Unknown prompt: no_such_prompt"


async def test_prompts_are_listed_and_their_texts_converted(target: Any, version: str) -> None:
    with anyio.fail_after(5):
        async with Client(target, protocol_version=version) as client:
            (prompt,) = await client.list_prompts()
            assert [(each.name, each.required) for each in prompt.arguments or ()] == [("name", True), ("times", False)]
            result = await client.get_prompt("greet", {"name": "Ada", "times": "2"})
            assert [(each.role, getattr(each.content, "text", None)) for each in result.messages] == [
                ("user", "Greet Ada"),
                ("assistant", "Hello! Hello! "),
            ]
            for arguments, named in (({}, "name"), ({"name": "Ada", "times": "often"}, "times")):
                with pytest.raises(PeerError) as caught:
                    await client.get_prompt("greet", arguments)
                assert caught.value.code == -32602 and named in caught.value.message


async def test_prompt_arguments_other_than_strings_are_refused_before_they_are_sent() -> None:
    with anyio.fail_after(5):
        async with Client(make_server()) as client:
            arguments: dict[str, Any] = {"name": 5}
            with pytest.raises(TypeError, match="'name'"):
                await client.get_prompt("greet", arguments)


async def test_arguments_are_completed(target: Any, version: str) -> None:
    with anyio.fail_after(5):
        async with Client(target, protocol_version=version) as client:
            found = await client.complete(PromptReference("greet"), "name", "A")
            assert (found.values, found.total, found.has_more) == (["Ada", "Alan"], 2, False)
            template = ResourceTemplateReference("users://{user_id}/{colour}")
            found = await client.complete(template, "colour", "r", context={"user_id": "7"})
            assert found.values == ["red for 7" if version >= "2025-06-18" else "red for nobody"]


async def test_where_nothing_completes_an_argument_there_are_no_values_and_no_error() -> None:
    with anyio.fail_after(5):
        async with Client(make_server()) as client:
            found = await client.complete(PromptReference("greet"), "times", "1")
            assert (found.values, found.total, found.has_more) == ([], 0, False)


@pytest.mark.parametrize("ref", [PromptReference("nobody"), ResourceTemplateReference("nothing://{x}")])
async def test_completing_what_does_not_exist_is_an_error(ref: Any) -> None:
    with anyio.fail_after(5):
        async with Client(make_server()) as client:
            with pytest.raises(PeerError) as caught:
                await client.complete(ref, "x", "")
            assert caught.value.code == -32602


async def test_a_sign_of_life_can_be_asked_for(target: Any, version: str) -> None:
    with anyio.fail_after(5):
        async with Client(target, protocol_version=version) as client:
            await client.ping()


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_what_a_server_does_not_have_it_does_not_declare_and_does_not_answer(era: Any) -> None:
    server = Server("tools only")

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    with anyio.fail_after(5):
        async with Client(server, eras=(era,)) as client:
            offered = client.server_capabilities
            assert (offered.prompts, offered.resources, offered.completions) == (None, None, None)
            for call in (client.list_prompts, client.list_resources, client.list_resource_templates):
                with pytest.raises(LocalProtocolError, match="did not declare"):
                    await call()


async def test_eras_narrow_what_a_server_speaks() -> None:
    with anyio.fail_after(5):
        async with Client(make_server(eras=("legacy",))) as client:
            assert client.protocol_version == "2025-11-25"
        async with Client(make_server(eras=("modern",))) as client:
            assert client.protocol_version == "2026-07-28"


@pytest.mark.parametrize("options", [{"eras": ()}, {"eras": ("new",)}])
def test_eras_that_do_not_exist_are_refused(options: Any) -> None:
    with pytest.raises(ValueError, match="legacy"):
        make_server(**options)
    with pytest.raises(ValueError, match="legacy"):
        Client(make_server(), **options)


def test_a_protocol_version_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="2025-11-25"):
        Client(make_server(), protocol_version="2025-11-26")
