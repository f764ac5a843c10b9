"""What the benchmark asks, and what has to come back.

What a request asks for depends on its number wherever it can, so that a reply is right for one request only.
"""

from collections.abc import Callable
from typing import Any, Final

from mcpcore.bench.traffic import Message, Traffic, WrongReply, succeeded, text_of

__all__ = ["add", "announce", "count", "echo", "fail", "fill", "listing", "locate", "unfit_arguments", "unknown_tool"]

FILLER: Final = "The quick brown fox jumps over the lazy dog. "  # needs no escapes: a byte is a byte on the wire
INVALID_PARAMS: Final = -32602


def calls(tool: str, arguments: Callable[[int], dict[str, Any]], expected: Callable[[int], str]) -> Traffic:
    def check(number: int, message: Message) -> None:
        if (text := text_of(message)) != (wanted := expected(number)):
            raise WrongReply(f"request {number} wants {wanted[:60]!r}, but got {text[:60]!r} ({len(text)} characters)")

    return Traffic("tools/call", lambda number: {"name": tool, "arguments": arguments(number)}, check)


def add(tool: str = "add") -> Traffic:
    """Add the request's number to 7, with one of the adding tools."""
    return calls(tool, lambda number: {"a": number, "b": 7}, lambda number: str(number + 7))


def echo(size: int) -> Traffic:
    """Send ``size`` bytes of text and want them back. The first eight differ from request to request."""
    body = (FILLER * (size // len(FILLER) + 1))[: size - 8]

    def check(number: int, message: Message) -> None:
        text = text_of(message)
        # Not compared as a whole: building the wanted text would cost the driver a copy of it per reply.
        if len(text) != size or not text.startswith(f"{number:08d}") or not text.endswith(body):
            raise WrongReply(f"request {number} wants its {size} bytes back, but got {len(text)}: {text[:60]!r}")

    return Traffic("tools/call", lambda number: {"name": "echo", "arguments": {"text": f"{number:08d}{body}"}}, check)


def fill(size: int) -> Traffic:
    """Ask for a text of ``size`` bytes."""
    wanted = "x" * size
    return calls("fill", lambda number: {"size": size}, lambda number: wanted)


def locate() -> Traffic:
    """Ask for a structured result."""

    def check(number: int, message: Message) -> None:
        result = succeeded(message)
        if result.is_error or result.structured_content != {"x": number, "y": 7}:
            raise WrongReply(f"request {number} wants a point as structured content, but got {str(result)[:500]}")

    return Traffic("tools/call", lambda number: {"name": "locate", "arguments": {"x": number, "y": 7}}, check)


def count(steps: int) -> Traffic:
    """Ask for ``steps`` progress notifications before the reply. That they came is checked by the driver."""
    done = calls("count", lambda number: {"steps": steps}, lambda number: "done")
    return Traffic(done.method, done.params, done.check, notifications=steps)


def refused(number: int, message: Message) -> None:
    invalid = message.error is not None and message.error.code == INVALID_PARAMS
    if not invalid and not (message.result is not None and message.result.is_error):
        raise WrongReply(f"request {number} cannot be served, but got {str(message)[:500]}")


def unknown_tool() -> Traffic:
    """Call a tool that does not exist.

    The specification wants error -32602; a tool error is accepted too, because some contestants answer so and the row
    is about speed.
    """
    return Traffic("tools/call", lambda number: {"name": f"unknown_{number}", "arguments": {}}, refused)


def unfit_arguments() -> Traffic:
    """Call the adding tool with a text where it wants a number; a tool error or -32602 is right."""
    return Traffic("tools/call", lambda number: {"name": "add", "arguments": {"a": f"no {number}", "b": 7}}, refused)


def fail() -> Traffic:
    """Call the tool that fails."""
    return Traffic("tools/call", lambda number: {"name": "fail", "arguments": {}}, refused)


def announce() -> Traffic:
    """Have the server tell all who listen that its tools have changed."""
    return calls("announce", lambda number: {}, lambda number: "done")


def listing(tools: int) -> Traffic:
    """List the tools of a server that was started with ``tools`` of them. All have to be on one page."""
    wanted = sorted(f"add_{index}" for index in range(tools))

    def check(number: int, message: Message) -> None:
        result = succeeded(message)
        if sorted([tool.name for tool in result.tools]) != wanted or result.next_cursor is not None:
            raise WrongReply(f"request {number} wants {tools} tools on one page, but got {len(result.tools)}")

    return Traffic("tools/list", lambda number: {}, check)
