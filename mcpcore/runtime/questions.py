"""Asking the client: what a question looks like on the wire, and what its answer means.

One table for both eras and both directions of travel: as a request of the server in the legacy era, inside
``input_required`` in the modern one.
"""

from collections.abc import Callable, Mapping
from typing import Any, Generic, Literal, TypeVar

import msgspec
from msgspec import Raw, Struct

from mcpcore.exceptions import McpError
from mcpcore.protocol.events import Caller
from mcpcore.protocol.server import can_elicit
from mcpcore.providers.forms import form_schema, form_value
from mcpcore.providers.markers import Elicit, Roots, Sample
from mcpcore.providers.schema import InvalidArguments
from mcpcore.types._base import Object
from mcpcore.types.content import TextContent
from mcpcore.types.elicitation import ElicitParams, ElicitResult
from mcpcore.types.jsonrpc import INVALID_PARAMS
from mcpcore.types.roots import ListRootsParams, ListRootsResult, Root
from mcpcore.types.sampling import CreateMessageParams, CreateMessageResult, SamplingMessage

__all__ = ["ElicitReply", "Question", "Wire", "missing_capability", "wire_of"]

T = TypeVar("T")

Question = Elicit | Sample | Roots


class ElicitReply(Struct, Generic[T], frozen=True):
    """What the user did. ``value`` is set only for ``accept`` of a form; usable in ``match``."""

    action: Literal["accept", "decline", "cancel"]
    value: T | None = None

    @property
    def accepted(self) -> bool:
        return self.action == "accept"


class Wire(Struct, frozen=True):
    """A question as a request: its method and parameters, and how to read the result."""

    kind: str
    method: Literal["elicitation/create", "sampling/createMessage", "roots/list"]
    params: Object
    result: type[Object]
    read: Callable[[Any], Any]

    def answer(self, key: str, raw: Raw) -> Any:
        """Read an answer that came as JSON under ``key``.

        Raises:
            McpError: -32602, it is no answer to this question.
        """
        try:
            return self.read(msgspec.json.decode(raw, type=self.result))
        except msgspec.DecodeError as error:
            raise McpError(INVALID_PARAMS, f"Invalid params: inputResponses.{key}: {error}") from None
        except InvalidArguments as error:
            text = f"Invalid params: inputResponses.{key}: {', '.join(error.errors)}"
            raise McpError(INVALID_PARAMS, text) from None


def wire_of(question: Question, elicitation_id: str) -> Wire:
    """Return a question as it travels.

    Args:
        question: What to ask.
        elicitation_id: Unique; 2025-11-25 wants one for a visit to a URL.
    """
    if isinstance(question, Elicit):
        return _elicitation(question, elicitation_id)
    if isinstance(question, Sample):
        return Wire("sample", "sampling/createMessage", _sampling_params(question), CreateMessageResult, _same)
    return Wire("roots", "roots/list", ListRootsParams(), ListRootsResult, _roots)


def missing_capability(question: Question, caller: Caller) -> tuple[str, dict[str, Any]] | None:
    """Tell what the client lacks for this question: words for it, and the shape of `ClientCapabilities`."""
    capabilities = caller.capabilities
    if isinstance(question, Elicit):
        mode = "form" if question.url is None else "url"
        if can_elicit(capabilities, mode):
            return None
        words = "elicitation" if mode == "form" else "elicitation by URL"
        return words, {"elicitation": {mode: {}}}
    if isinstance(question, Sample):
        return None if capabilities.sampling is not None else ("sampling", {"sampling": {}})
    return None if capabilities.roots is not None else ("roots", {"roots": {}})


def _elicitation(question: Elicit, elicitation_id: str) -> Wire:
    if question.url is not None:
        params = ElicitParams(question.message, mode="url", url=question.url, elicitation_id=elicitation_id)
        return Wire("elicit", "elicitation/create", params, ElicitResult, _visit)
    schema: Mapping[str, Any] = question.type if isinstance(question.type, Mapping) else form_schema(question.type)
    params = ElicitParams(question.message, mode="form", requested_schema=dict(schema))

    def read(result: ElicitResult) -> ElicitReply[Any]:
        if result.action != "accept":
            return ElicitReply(result.action)
        content = result.content or {}
        return ElicitReply("accept", content if question.type is schema else form_value(question.type, content))

    return Wire("elicit", "elicitation/create", params, ElicitResult, read)


def _visit(result: ElicitResult) -> ElicitReply[None]:
    return ElicitReply(result.action)


def _sampling_params(question: Sample) -> CreateMessageParams:
    given = [question.messages] if isinstance(question.messages, str) else question.messages
    messages = [
        SamplingMessage("user", TextContent(message)) if isinstance(message, str) else message for message in given
    ]
    return CreateMessageParams(
        messages,
        question.max_tokens,
        model_preferences=question.model_preferences,
        system_prompt=question.system_prompt,
        include_context=question.include_context,
        temperature=question.temperature,
        stop_sequences=list(question.stop_sequences) or None,
        metadata=dict(question.metadata) if question.metadata else None,
        tools=list(question.tools) or None,
        tool_choice=question.tool_choice,
    )


def _same(result: CreateMessageResult) -> CreateMessageResult:
    return result


def _roots(result: ListRootsResult) -> list[Root]:
    return result.roots
