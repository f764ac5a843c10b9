"""Calls of any tool of any server: what a reply has to look like to be right."""

from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct
from msgspec.json import Decoder

from mcpcore.bench.traffic import Reply, WrongReply

__all__ = ["CallReply", "decoder", "judge"]

NOTHING: Final = Raw(b"null")
SHOWN: Final = 200


class CallResult(Struct, rename="camel"):
    """A result of ``tools/call``, read as far as has to be: what it brings is looked at where somebody wants to know."""

    content: Raw = NOTHING
    structured_content: Raw = NOTHING
    is_error: bool | None = None
    result_type: str | None = None


class CallReply(Reply, kw_only=True):
    """A reply to ``tools/call``."""

    result: CallResult | None = None


class Block(Struct):
    text: Any = None


decoder: Final = Decoder(CallReply)
_blocks: Final = Decoder(list[Block] | None)


def judge(expect: str | None) -> Callable[[int, CallReply], None]:
    """Return what judges replies.

    Args:
        expect: What each has to say: the text of its blocks, one to a line, or, where it is JSON, its structured content.
            None for whatever it likes, as long as it is no error.
    """
    structured = _json(expect)
    known: list[bytes] = []  # results that have been looked at and are right; most are the same

    def check(number: int, reply: CallReply) -> None:
        if reply.error is not None:
            raise WrongReply(f"{reply.error.message} ({reply.error.code})", "JSON-RPC error")
        result = reply.result
        if result is None:
            raise WrongReply("the reply has neither result nor error")
        if result.is_error:
            raise WrongReply(_text(result) or "(without a text)", "tool error")
        if result.result_type not in (None, "complete"):
            raise WrongReply(f"the tool wants to know more (resultType {result.result_type})", "input required")
        if expect is None or bytes(result.content) in known:
            return
        text = _text(result)
        if text == expect:
            known[:] = [bytes(result.content)]
        elif structured is NOTHING or _json(bytes(result.structured_content).decode()) != structured:
            raise WrongReply(f"not what was expected: {text[:SHOWN]!r}", "unexpected result")

    return check


def _text(result: CallResult) -> str:
    try:
        blocks = _blocks.decode(result.content) or []
    except msgspec.DecodeError:
        return bytes(result.content)[:SHOWN].decode(errors="replace")
    return "\n".join(block.text for block in blocks if isinstance(block.text, str))


def _json(text: str | None) -> Any:
    """Return an object or array in JSON; `NOTHING` for any other text."""
    if text is None or text.lstrip()[:1] not in ("{", "["):
        return NOTHING
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return NOTHING
