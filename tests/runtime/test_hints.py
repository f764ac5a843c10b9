"""What a client may conclude from the hints of a tool, and from whom."""

from itertools import product
from typing import Any

import anyio
import pytest

from mcpcore import Client, Server, ToolHints
from mcpcore.runtime.hints import display_name, effects, retry_safe
from mcpcore.types.resources import Resource
from mcpcore.types.tools import Tool, ToolAnnotations


def tool(**hints: Any) -> Tool:
    return Tool("t", {"type": "object"}, annotations=ToolAnnotations(**hints) if hints else None)


@pytest.mark.parametrize(("read_only", "destructive", "idempotent"), list(product((None, False, True), repeat=3)))
def test_hints_of_a_trusted_server_are_read_and_missing_ones_are_pessimistic(
    read_only: Any, destructive: Any, idempotent: Any
) -> None:
    each = tool(read_only_hint=read_only, destructive_hint=destructive, idempotent_hint=idempotent)
    wanted = "read" if read_only else "additive" if destructive is False else "destructive"
    assert effects(each, trusted=True) == wanted
    assert retry_safe(each, trusted=True) is bool(read_only or idempotent)


def test_hints_of_an_untrusted_server_never_relax_anything() -> None:
    harmless = tool(read_only_hint=True, destructive_hint=False, idempotent_hint=True)
    for each in (harmless, tool()):
        assert effects(each, trusted=False) == "destructive"
        assert retry_safe(each, trusted=False) is False


@pytest.mark.parametrize(
    ("title", "annotated", "by_title", "by_annotations"),
    [
        (None, None, "t", "t"),
        ("Title", None, "Title", "Title"),
        (None, "Hint", "Hint", "Hint"),
        ("Title", "Hint", "Title", "Hint"),
        ("", "", "t", "t"),
    ],
)
def test_the_name_to_show_follows_the_protocols_order_unless_told_otherwise(
    title: Any, annotated: Any, by_title: str, by_annotations: str
) -> None:
    each = Tool("t", {}, title=title, annotations=ToolAnnotations(title=annotated))
    assert display_name(each) == by_title
    assert display_name(each, precedence="annotations") == by_annotations


def test_resources_have_a_name_to_show_too() -> None:
    assert display_name(Resource("a://x", "x")) == "x"
    assert display_name(Resource("a://x", "x", title="X")) == "X"


@pytest.mark.anyio
@pytest.mark.parametrize("trusted", [False, True])
async def test_a_client_reads_hints_as_far_as_it_trusts_its_server(trusted: bool) -> None:
    server = Server("hints")
    server.tool(lambda: "x", name="reads", hints=ToolHints(read_only=True))
    server.tool(lambda: "x", name="adds", destructive=False, idempotent=True)
    with anyio.fail_after(5):
        async with Client(server, trusted=trusted) as client:
            reads, adds = await client.list_tools()
            if trusted:
                assert (client.effects(reads), client.effects(adds)) == ("read", "additive")
                assert client.retry_safe(reads) and client.retry_safe(adds)
            else:
                assert {client.effects(reads), client.effects(adds)} == {"destructive"}
                assert not client.retry_safe(reads) and not client.retry_safe(adds)
