"""The fixture server of the official conformance suite: ``python server.py PORT``."""

import base64
import sys
from typing import Annotated, Any

import anyio
from msgspec import Meta, Struct

from mcpcore import (
    AudioContent,
    CallToolResult,
    Context,
    Elicit,
    EmbeddedResource,
    ImageContent,
    Param,
    PromptMessage,
    ResourceContents,
    Roots,
    Sample,
    Server,
    TextContent,
    ToolError,
)

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WAV = base64.b64encode(
    b"RIFF$\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00@\x1f\x00\x00\x80>\x00\x00\x02\x00\x10\x00data\x00\x00\x00\x00"
).decode()

server = Server("mcpcore-conformance", version="1.0.0", instructions="Answers the conformance suite.")


# -- tools called on both wires ----------------------------------------------------------------------------------


@server.tool
async def test_simple_text() -> str:
    """Returns a text."""
    return "This is a simple text response for testing."


@server.tool
async def test_image_content() -> ImageContent:
    """Returns an image."""
    return ImageContent(PNG, "image/png")


@server.tool
async def test_audio_content() -> AudioContent:
    """Returns a sound."""
    return AudioContent(WAV, "audio/wav")


@server.tool
async def test_embedded_resource() -> EmbeddedResource:
    """Returns an embedded resource."""
    text = "This is an embedded resource content."
    return EmbeddedResource(ResourceContents("test://embedded-resource", mime_type="text/plain", text=text))


@server.tool
async def test_multiple_content_types() -> CallToolResult:
    """Returns a text, an image and a resource."""
    resource = ResourceContents("test://mixed-content-resource", mime_type="application/json", text='{"test":"data"}')
    return CallToolResult(
        [TextContent("Multiple content types test:"), ImageContent(PNG, "image/png"), EmbeddedResource(resource)]
    )


@server.tool
async def test_error_handling() -> str:
    """Always fails."""
    raise ToolError("This tool intentionally returns an error for testing")


@server.tool
async def test_tool_with_progress(ctx: Context) -> str:
    """Reports progress three times."""
    for progress in (0, 50, 100):
        await ctx.progress(progress, total=100, message=f"Completed step {progress} of 100")
        await anyio.sleep(0.05)
    return "Done."


@server.tool
async def test_tool_with_logging(ctx: Context) -> str:
    """Logs three times."""
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.info(text)
        await anyio.sleep(0.05)
    return "Logged."


@server.tool
async def test_logging_tool(ctx: Context) -> str:
    """Logs although nobody may have asked."""
    await ctx.info("This must not be sent unless the request asked for it.")
    return "Logged."


JSON_SCHEMA_2020_12 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@server.tool(name="json_schema_2020_12_tool", input_schema=JSON_SCHEMA_2020_12)
async def json_schema_tool(
    name: str | None = None,
    address: dict[str, Any] | None = None,
    contact_method: Annotated[str | None, Param(alias="contactMethod")] = None,
    phone: str | None = None,
    email: str | None = None,
) -> str:
    """Has a schema that was written by hand."""
    return f"{name}"


@server.tool
async def test_custom_header(
    region: Annotated[str, Param("Mirrored in a header", header="Region")] = "none",
) -> str:
    """Has an argument that HTTP mirrors."""
    return f"region: {region}"


# -- asking the client -------------------------------------------------------------------------------------------


class UserInfo(Struct):
    username: Annotated[str, Meta(description="Your name")]
    email: Annotated[str, Meta(description="Your address")]


@server.tool
async def test_sampling(prompt: str, ctx: Context) -> str:
    """Asks the client's model."""
    result = await ctx.sample(prompt, max_tokens=100)
    content = result.content
    return f"LLM response: {content.text if isinstance(content, TextContent) else content}"


@server.tool
async def test_elicitation(message: str, ctx: Context) -> str:
    """Asks the user."""
    answer = await ctx.elicit(message, UserInfo)
    return f"User response: {answer.action}"


@server.tool
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Asks with defaults of every primitive type."""
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "User name", "default": "John Doe"},
            "age": {"type": "integer", "description": "User age", "default": 30},
            "score": {"type": "number", "description": "User score", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "description": "Verification status", "default": True},
        },
        "required": [],
    }
    answer = await ctx.elicit("Please review the defaults", schema)
    return f"Elicitation completed: {answer.action}"


@server.tool
async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Asks with every form of choice."""
    options = ["option1", "option2", "option3"]
    titled = [{"const": f"value{n}", "title": f"Option {n}"} for n in (1, 2, 3)]
    schema = {
        "type": "object",
        "properties": {
            "untitledSingle": {"type": "string", "enum": options},
            "titledSingle": {"type": "string", "oneOf": titled},
            "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
            "titledMulti": {"type": "array", "items": {"anyOf": titled}},
        },
        "required": [],
    }
    answer = await ctx.elicit("Please choose", schema)
    return f"Elicitation completed: {answer.action}"


@server.tool
async def test_reconnection(ctx: Context) -> str:
    """Closes its own stream and answers when the client comes back."""
    await ctx.close_stream()
    await anyio.sleep(0.2)
    return "Reconnected."


# -- diagnostics of the modern wire ------------------------------------------------------------------------------


@server.tool
async def test_missing_capability(ctx: Context) -> str:
    """Needs a client that samples."""
    await ctx.sample("Hello", max_tokens=10)
    return "Sampled."


class Name(Struct):
    name: str


class Color(Struct):
    color: str


class Ok(Struct):
    ok: bool


class Note(Struct):
    context: str


@server.tool
async def test_streaming_elicitation(ctx: Context) -> str:
    """Asks the user."""
    answer = await ctx.elicit("What is your name?", Name, key="user_name")
    return f"Hello, {answer.value.name if answer.value else 'nobody'}!"


@server.tool
async def test_trigger_tool_change() -> str:
    """Changes the list of tools."""
    server.notify_tools_changed()
    return "Changed."


@server.tool
async def test_trigger_prompt_change() -> str:
    """Changes the list of prompts."""
    server.notify_prompts_changed()
    return "Changed."


@server.tool
async def test_input_required_result_elicitation(ctx: Context) -> str:
    """Asks for a name."""
    answer = await ctx.elicit("What is your name?", Name, key="user_name")
    return f"Hello, {answer.value.name if answer.value else 'nobody'}!"


@server.tool
async def test_input_required_result_sampling(ctx: Context) -> str:
    """Asks the model."""
    result = await ctx.sample("What is the capital of France?", max_tokens=100)
    return f"{result.content}"


@server.tool
async def test_input_required_result_list_roots(ctx: Context) -> str:
    """Asks for roots."""
    return ", ".join(root.uri for root in await ctx.roots())


@server.tool
async def test_input_required_result_request_state(ctx: Context) -> str:
    """Asks and keeps state."""
    answer = await ctx.elicit("Is this all right?", Ok, key="confirm")
    return f"state-ok: {answer.action}"


@server.tool
async def test_input_required_result_multiple_inputs(ctx: Context) -> str:
    """Asks for three things in one round."""
    answers = await ctx.ask(
        user_name=Elicit("What is your name?", Name),
        greeting=Sample("Write a greeting", max_tokens=50),
        folders=Roots(),
    )
    return ", ".join(answers)


@server.tool
async def test_input_required_result_multi_round(ctx: Context) -> str:
    """Asks in two rounds."""
    name = await ctx.elicit("What is your name?", Name, key="step1")
    color = await ctx.elicit("What is your favourite colour?", Color, key="step2")
    return f"{name.value} likes {color.value}"


@server.tool
async def test_input_required_result_tampered_state(ctx: Context) -> str:
    """Asks, and checks its state."""
    await ctx.elicit("Is this all right?", Ok, key="confirm")
    return "state-ok"


@server.tool
async def test_input_required_result_capabilities(ctx: Context) -> str:
    """Asks only for what the client can do."""
    if ctx.can_elicit:
        await ctx.elicit("What is your name?", Name, key="user_name")
    elif ctx.can_sample:
        await ctx.sample("Write a name", max_tokens=20)
    return "Done."


# -- resources ---------------------------------------------------------------------------------------------------


@server.resource("test://static-text", mime_type="text/plain")
async def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
async def static_binary() -> bytes:
    """An image."""
    return base64.b64decode(PNG)


@server.resource("test://watched-resource", mime_type="text/plain")
async def watched_resource() -> str:
    """Can be subscribed to."""
    return "Watched."


@server.resource("test://template/{id}/data", mime_type="application/json")
async def template(id: str) -> dict[str, str]:
    """Data of one id."""
    return {"id": id, "data": f"Data for ID: {id}"}


# -- prompts and completion --------------------------------------------------------------------------------------


@server.prompt
async def test_simple_prompt() -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


@server.prompt
async def test_prompt_with_arguments(
    arg1: Annotated[str, Param("First test argument")], arg2: Annotated[str, Param("Second test argument")]
) -> str:
    """A prompt with two arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.prompt
async def test_prompt_with_embedded_resource(
    uri: Annotated[str, Param("URI of the resource", alias="resourceUri")],
) -> list[PromptMessage]:
    """A prompt with an embedded resource."""
    resource = ResourceContents(uri, mime_type="text/plain", text="Embedded resource content for testing.")
    return [
        PromptMessage("user", EmbeddedResource(resource)),
        PromptMessage("user", TextContent("Please process the embedded resource above.")),
    ]


@server.prompt
async def test_prompt_with_image() -> list[PromptMessage]:
    """A prompt with an image."""
    return [
        PromptMessage("user", ImageContent(PNG, "image/png")),
        PromptMessage("user", TextContent("Please analyze the image above.")),
    ]


@server.prompt
async def test_input_required_result_prompt(ctx: Context) -> str:
    """Asks before it answers."""
    answer = await ctx.elicit("Which context?", Note, key="context")
    return f"Context: {answer.value.context if answer.value else 'none'}"


@server.complete(prompt="test_prompt_with_arguments")
async def complete_arguments(prefix: str) -> list[str]:
    """Completions of both arguments."""
    return [value for value in ("paris", "park", "party") if value.startswith(prefix)]


if __name__ == "__main__":
    server.run("http", port=int(sys.argv[1]), retry_ms=500)
