"""Everything that a server offers, end to end: in every revision, in memory and over lines."""

from collections.abc import Callable
from enum import Enum
from typing import Annotated, Any

import anyio
import pytest

from mcpcore import CallToolResult, Client, Image, Param, PeerError, Server, TextContent
from mcpcore.exceptions import LocalProtocolError
from mcpcore.providers.declarations import ResourceHints
from mcpcore.providers.results import assistant, user
from mcpcore.types.completion import CompletionContext, PromptReference, ResourceTemplateReference
from mcpcore.types.lifecycle import Icon
from mcpcore.versions import MODERN_VERSIONS, VERSIONS
from tests.support.reaching import WAYS, reached
from tests.support.wires import MODERN, Lines, connected

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


LISTED: dict[str, tuple[str, str, dict[str, str]]] = {
    # method: (member of the result, what items have in every revision, what revisions added)
    "tools/list": (
        "tools",
        "name description inputSchema",
        {"2025-03-26": "annotations", "2025-06-18": "title outputSchema _meta", "2025-11-25": "icons"},
    ),
    "resources/list": (
        "resources",
        "uri name description mimeType size annotations annotations.audience annotations.priority",
        {"2025-06-18": "title _meta annotations.lastModified", "2025-11-25": "icons"},
    ),
    "resources/templates/list": (
        "resourceTemplates",
        "uriTemplate name description mimeType annotations annotations.audience annotations.priority",
        {"2025-06-18": "title _meta annotations.lastModified", "2025-11-25": "icons"},
    ),
    "prompts/list": ("prompts", "name description arguments", {"2025-06-18": "title _meta", "2025-11-25": "icons"}),
}


@pytest.mark.parametrize("method", LISTED)
async def test_whatever_an_author_says_is_listed_for_the_revisions_that_have_it(method: str, version: str) -> None:
    said: Any = {
        "title": "T",
        "description": "D",
        "icons": [Icon("https://x.example/i.png")],
        "meta": {"k": 1},
    }
    hints = ResourceHints(audience=("user",), priority=0.0, last_modified="2026-01-31")
    server = Server("saying all there is to say")
    server.tool(lambda: {"k": 1}, name="n", input_schema={"type": "object"}, output_schema={"type": "object"}, **said)
    server.resource(lambda: "", uri="a://b", name="n", mime_type="text/x", hints=hints, size=0, **said)
    server.resource(lambda v: v, uri="a://{v}", name="n", mime_type="text/x", hints=hints, **said)
    server.prompt(lambda x: x, name="n", **said)
    member, always, added = LISTED[method]
    expected = set(always.split()).union(*(new.split() for since, new in added.items() if since <= version))
    with anyio.fail_after(5):
        async with connected(server) as peer:
            if version not in MODERN_VERSIONS:
                await peer.initialize(version)
            (item,) = (await peer.request(method, era=version))["result"][member]
    hinted = {f"annotations.{each}" for each in item.get("annotations", {})} if method != "tools/list" else set()
    assert item.keys() | hinted == expected


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


# -- what is not offered -----------------------------------------------------------------------------------------------

REQUESTS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    # kind of handler: requests that belong to it
    "tool": [("tools/list", {}), ("tools/call", {"name": "x"})],
    "prompt": [("prompts/list", {}), ("prompts/get", {"name": "x"})],
    "resource": [
        ("resources/list", {}),
        ("resources/templates/list", {}),
        ("resources/read", {"uri": "a://b"}),
        ("resources/subscribe", {"uri": "a://b"}),
        ("resources/unsubscribe", {"uri": "a://b"}),
    ],
    "completion": [
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": ""}})
    ],
}


def offering(kind: str) -> Server:
    server = Server("one kind")
    match kind:
        case "tool":
            server.add_tool(lambda: "", "one")
        case "prompt":
            server.prompt(lambda: "", name="one")
        case "resource":
            server.resource(lambda: "", uri="one://it")
        case _:
            server.complete(lambda: None, prompt="one")
    return server


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("kind", REQUESTS)
async def test_requests_for_kinds_that_are_not_offered_are_unknown_methods_and_the_others_are_answered(
    kind: str, era: str
) -> None:
    version = MODERN if era == "modern" else "2025-11-25"
    async with connected(offering(kind)) as peer:
        if era == "legacy":
            await peer.initialize()
        for other, requests in REQUESTS.items():
            for method, params in requests:
                if era == "modern" and "subscribe" in method:
                    continue
                answer = await peer.request(method, params, era=version)
                code = answer.get("error", {}).get("code")
                assert (code == -32601) is (other != kind), (method, answer)


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_kind_that_was_offered_is_answered_when_its_last_handler_has_gone(era: Any) -> None:
    server = offering("tool")
    with anyio.fail_after(5):
        async with Client(server, eras=(era,), cache=False) as client:
            server.remove_tool("one")
            assert await client.list_tools() == []


# -- requests that cannot be read --------------------------------------------------------------------------------------

BROKEN: dict[str, list[dict[str, Any]]] = {
    "resources/read": [{}, {"uri": 5}, {"uri": None}, {"uri": ["config://app"]}],
    "prompts/get": [{}, {"name": 5}, {"name": None}, {"name": "greet", "arguments": ["Ada"]}],
    "completion/complete": [{}, {"ref": {"type": "ref/nothing"}, "argument": {"name": "a", "value": ""}}],
}


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("method", BROKEN)
async def test_parameters_of_another_form_are_invalid_and_the_connection_goes_on(method: str, era: str) -> None:
    version = MODERN if era == "modern" else "2025-11-25"
    async with connected(make_server()) as peer:
        if era == "legacy":
            await peer.initialize()
        for params in BROKEN[method]:
            answer = await peer.request(method, params, era=version)
            assert answer["error"]["code"] == -32602, (params, answer)
        assert "result" in await peer.request("tools/list", era=version)


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_an_empty_address_is_of_no_resource(era: Any) -> None:
    with anyio.fail_after(5):
        async with Client(make_server(), eras=(era,)) as client:
            with pytest.raises(PeerError) as caught:
                await client.read_resource("")
            assert caught.value.code == (-32602 if era == "modern" else -32002)
            assert caught.value.data == {"uri": ""}


@pytest.mark.parametrize("arguments", [None, {}])
async def test_a_prompt_without_parameters_needs_no_arguments(arguments: Any) -> None:
    server = Server("prompts")
    server.prompt(lambda: "Hello.", name="greet")
    async with connected(server) as peer:
        answer = await peer.request("prompts/get", {"name": "greet", "arguments": arguments})
        assert answer["result"]["messages"][0]["content"]["text"] == "Hello."


# -- addresses ---------------------------------------------------------------------------------------------------------

ADDRESSES = [
    "users/me",
    "urn:isbn:1",
    "data:text/plain,x",
    "config:a/b",
    "HTTP://Host/Path",
    "http://host:80/",
    "resource://CamelCase",
    "file:///a b",
    "x://h",
    "x://h/",
    "x://größe",
]


@pytest.mark.parametrize("over", WAYS)
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_addresses_are_listed_read_and_echoed_character_by_character(over: str, era: Any) -> None:
    server = Server("addresses")

    def at(address: str) -> Callable[[], str]:
        return lambda: f"at {address}"

    for address in ADDRESSES:
        server.resource(at(address), uri=address)
    with anyio.fail_after(20):
        async with reached(server, over) as target, Client(target, eras=(era,)) as client:
            assert [each.uri for each in await client.list_resources()] == ADDRESSES
            for address in ADDRESSES:
                (contents,) = (await client.read_resource(address)).contents
                assert (contents.uri, contents.text) == (address, f"at {address}")


@pytest.mark.parametrize(
    ("template", "spellings"),
    [
        ("shop://größe/{n}", ["shop://größe/1", "shop://gr%C3%B6%C3%9Fe/1"]),
        ("shop://a b/{n}", ["shop://a b/1", "shop://a%20b/1"]),
    ],
)
async def test_a_template_can_be_read_in_either_spelling_of_what_is_listed(template: str, spellings: list[str]) -> None:
    server = Server("templates")
    server.resource(lambda n: f"number {n}", uri=template)
    with anyio.fail_after(5):
        async with Client(server) as client:
            assert [each.uri_template for each in await client.list_resource_templates()] == [template]
            for uri in spellings:
                assert [(each.uri, each.text) for each in (await client.read_resource(uri)).contents] == [
                    (uri, "number 1")
                ]
