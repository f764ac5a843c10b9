"""Asking the client: what a question looks like on the wire, and what its answer means.

One table for both eras and both directions of travel: as a request of the server in the legacy era, inside
``input_required`` in the modern one.
"""

from collections.abc import Callable
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec
from msgspec import Raw, Struct

from mcpcore.exceptions import McpError
from mcpcore.protocol.answers import lacking
from mcpcore.protocol.events import Caller
from mcpcore.providers.forms import form_schema, form_value
from mcpcore.providers.markers import Elicit, Roots, Sample
from mcpcore.providers.schema import InvalidValue
from mcpcore.types._base import Object
from mcpcore.types.content import TextContent
from mcpcore.types.elicitation import ElicitParams, ElicitResult
from mcpcore.types.jsonrpc import INVALID_PARAMS
from mcpcore.types.methods import Direction, methods_of
from mcpcore.types.roots import ListRootsParams, ListRootsResult, Root
from mcpcore.types.sampling import CreateMessageParams, CreateMessageResult, SamplingMessage
from mcpcore.versions import LATEST_LEGACY, Era

__all__ = ["PARAMS", "ElicitReply", "Question", "Wire", "missing_capability", "wire_of", "words_for"]

T = TypeVar("T")

Question = Elicit | Sample | Roots

PARAMS: Final[dict[str, type[Object]]] = {
    # what a client can be asked: type of the parameters
    "elicitation/create": ElicitParams,
    "sampling/createMessage": CreateMessageParams,
    "roots/list": ListRootsParams,
}


class ElicitReply(Struct, Generic[T], frozen=True):
    """What the user did. ``value`` is set only for ``accept`` of a form; usable in ``match``."""

    action: Literal["accept", "decline", "cancel"]
    value: T | None = None

    @property
    def accepted(self) -> bool:
        return self.action == "accept"


class Wire(Struct, frozen=True):
    """A question as a request: its method and parameters, and how to read the result."""

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
        except (msgspec.DecodeError, InvalidValue) as error:
            raise McpError(INVALID_PARAMS, f"Invalid params: inputResponses.{key}: {error}") from None


def wire_of(question: Question, version: str) -> Wire:
    """Return a question as it travels to a client of revision ``version``.

    Raises:
        DefinitionError: The form is not flat, or has what the revision does not know.
    """
    if isinstance(question, Elicit):
        return _visit(question) if question.url is not None else _form(question, version)
    if isinstance(question, Sample):
        return Wire("sampling/createMessage", _sampling_params(question), CreateMessageResult, _same)
    return Wire("roots/list", ListRootsParams(), ListRootsResult, _roots)


def missing_capability(question: Question, caller: Caller) -> dict[str, Any]:
    """Return what the client must declare, and did not, to be asked this; shaped like `ClientCapabilities`."""
    if isinstance(question, Elicit):
        method: str = "elicitation/create"
        params: Object = ElicitParams("", mode="form" if question.url is None else "url")
    elif isinstance(question, Sample):
        tools = list(question.tools) or None
        method, params = (
            "sampling/createMessage",
            CreateMessageParams([], 0, tools=tools, tool_choice=question.tool_choice),
        )
    else:
        method, params = "roots/list", ListRootsParams()
    missing = lacking(method, params, caller.capabilities)
    if not missing and caller.era is Era.LEGACY and method not in methods_of(Direction.TO_CLIENT, caller.version):
        return {str(_ASKED[method].capability): {}}  # it declares what its revision does not have
    return missing


def words_for(missing: dict[str, Any]) -> str:
    """Name missing capabilities in a sentence."""
    return ", ".join(f"{name}{_MANNER[next(iter(modes), None)]}" for name, modes in missing.items())


_ASKED: Final = methods_of(Direction.TO_CLIENT, LATEST_LEGACY)
_MANNER: Final = {None: "", "form": "", "url": " by URL", "tools": " with tools"}


# -- elicitation -----------------------------------------------------------------------------------------------------

_DEFAULT_MESSAGE: Final = "Please provide the required information."


def _form(question: Elicit, version: str) -> Wire:
    def read(result: ElicitResult) -> ElicitReply[Any]:
        if result.action != "accept":
            return ElicitReply(result.action)
        return ElicitReply("accept", form_value(question.type, result.content))

    schema = form_schema(question.type, version=version)
    params = ElicitParams(question.message or _DEFAULT_MESSAGE, mode="form", requested_schema=schema)
    return Wire("elicitation/create", params, ElicitResult, read)


def _visit(question: Elicit) -> Wire:
    from secrets import token_urlsafe  # here, because its hashing would slow the start of every server

    id = question.id or token_urlsafe(16)
    params = ElicitParams(question.message, mode="url", url=question.url, elicitation_id=id)
    return Wire("elicitation/create", params, ElicitResult, _visited)


def _visited(result: ElicitResult) -> ElicitReply[None]:
    return ElicitReply(result.action)


# -- sampling and roots ----------------------------------------------------------------------------------------------


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
