"""How lists and results look on a terminal."""

import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from mcpcore.cli.arguments import signature
from mcpcore.runtime.client import Client, ToolResult
from mcpcore.types.content import AudioContent, ContentBlock, EmbeddedResource, ImageContent, ResourceLink, TextContent
from mcpcore.types.prompts import Prompt

__all__ = ["print_json", "print_offers", "print_result"]

_WIDEST: Final = 100


def print_json(value: Any) -> None:
    """Print a value as indented JSON."""
    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def print_result(result: ToolResult) -> None:
    """Print what a tool gave: its structured content if there is some, else its blocks; an error goes to standard error."""
    if result.structured is not None and not result.is_error:
        print_json(result.structured)
        return
    for block in result.content:
        print(_shown(block), file=sys.stderr if result.is_error else sys.stdout)


def print_offers(client: Client, offers: Mapping[str, Sequence[Any]]) -> None:
    """Print who the server is and what it offers.

    Args:
        client: Connected to it.
        offers: Lists by ``tools``, ``resources``, ``resourceTemplates``, ``prompts``.
    """
    info = client.server_info
    name = f"{info.name} {info.version}" if info else "A server without a name"
    print(f"{name}, protocol {client.protocol_version}")
    if client.instructions:
        print(_wrapped(client.instructions, "  "))
    _section("Tools", ((signature(tool), tool.description) for tool in offers.get("tools", ())))
    _section("Resources", ((each.uri, each.description) for each in offers.get("resources", ())))
    _section(
        "Resource templates", ((each.uri_template, each.description) for each in offers.get("resourceTemplates", ()))
    )
    _section("Prompts", ((_prompt(prompt), prompt.description) for prompt in offers.get("prompts", ())))
    if not any(offers.values()):
        print("\nIt offers nothing.")


def _section(title: str, entries: Iterable[tuple[str, str | None]]) -> None:
    for number, (name, description) in enumerate(entries):
        if number == 0:
            print(f"\n{title}")
        print(f"  {name}")
        if description:
            print(_wrapped(description, "      "))


def _wrapped(text: str, indent: str) -> str:
    width = min(_WIDEST, shutil.get_terminal_size().columns)
    paragraphs = (" ".join(paragraph.split()) for paragraph in text.strip().split("\n\n"))
    return "\n".join(
        textwrap.fill(paragraph, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
        for paragraph in paragraphs
    )


def _prompt(prompt: Prompt) -> str:
    arguments = (argument.name if argument.required else f"{argument.name}?" for argument in prompt.arguments or ())
    return f"{prompt.name}({', '.join(arguments)})"


def _shown(block: ContentBlock) -> str:
    match block:
        case TextContent(text):
            return _indented(text)
        case ImageContent(data, mime_type) | AudioContent(data, mime_type):
            return f"[{mime_type}, {len(data) * 3 // 4 - data.count('=')} bytes]"
        case EmbeddedResource(resource):
            return f"[{resource.uri}]" + ("" if resource.text is None else f"\n{resource.text}")
        case ResourceLink(uri, name):
            return f"[{name}: {uri}]"


def _indented(text: str) -> str:
    """Indent JSON objects and arrays; other text stays as it is."""
    if text[:1] in ("{", "["):
        try:
            return msgspec.json.format(text, indent=2)
        except msgspec.DecodeError:
            pass
    return text
