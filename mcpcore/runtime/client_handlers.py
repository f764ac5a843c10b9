"""What the application gives a client to answer the server with: model, user, folders, log.

The same functions answer the requests of a legacy server and the input requests of a modern one.
"""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import msgspec
from msgspec import UNSET

from mcpcore.exceptions import CapabilityError, McpError
from mcpcore.types._base import Object
from mcpcore.types.content import TextContent
from mcpcore.types.elicitation import ElicitParams, ElicitResult
from mcpcore.types.jsonrpc import METHOD_NOT_FOUND
from mcpcore.types.lifecycle import ClientCapabilities, ElicitationCapability, RootsCapability, SamplingCapability
from mcpcore.types.roots import ListRootsParams, ListRootsResult, Root
from mcpcore.types.sampling import CreateMessageParams, CreateMessageResult
from mcpcore.types.utilities import InputRequest

__all__ = ["ClientHandlers", "call"]

_PARAMS: dict[str, type[Object]] = {
    "sampling/createMessage": CreateMessageParams,
    "elicitation/create": ElicitParams,
    "roots/list": ListRootsParams,
}


async def call(function: Callable[..., Any], *args: Any) -> Any:
    """Call a plain or an async function."""
    value = function(*args)
    return await value if inspect.isawaitable(value) else value


class ClientHandlers:
    """Answers what a server asks. Having a function is what declares the capability.

    Args:
        sampling: Takes `CreateMessageParams`; returns `CreateMessageResult`, or a text.
        elicitation: Takes `ElicitParams`; returns a dictionary (accept), None (decline), or `ElicitResult`.
        roots: URIs or `Root` objects, or a function without parameters that returns them.
    """

    def __init__(
        self,
        sampling: Callable[..., Any] | None = None,
        elicitation: Callable[..., Any] | None = None,
        roots: Sequence[str | Root] | Callable[[], Any] | None = None,
    ) -> None:
        self._answers: dict[str, Callable[[Any], Awaitable[Object]]] = {}
        if sampling is not None:
            self._sampling = sampling
            self._answers["sampling/createMessage"] = self._sample
        if elicitation is not None:
            self._elicitation = elicitation
            self._answers["elicitation/create"] = self._elicit
        if roots is not None:
            self._roots_source = roots
            self._answers["roots/list"] = self._roots

    @property
    def capabilities(self) -> ClientCapabilities:
        """What these functions let the client declare."""
        has = self._answers
        return ClientCapabilities(
            sampling=SamplingCapability() if "sampling/createMessage" in has else None,
            elicitation=ElicitationCapability(form={}, url={}) if "elicitation/create" in has else None,
            roots=RootsCapability(list_changed=True) if "roots/list" in has else None,
        )

    async def answer(self, method: str, params: Object) -> Object:
        """Answer one question of the server.

        Raises:
            McpError: -32601, there is no function for it.
        """
        answer = self._answers.get(method)
        if answer is None:
            raise McpError(METHOD_NOT_FOUND, f"Method not found: {method}; this client has nothing to answer it with")
        return await answer(params)

    async def fulfil(self, request: InputRequest) -> Object:
        """Answer one input request of a modern server.

        Raises:
            CapabilityError: The server asks for what this client did not declare; it must not.
        """
        if request.method not in self._answers:
            raise CapabilityError(f"the server asks for {request.method}, which this client did not declare")
        raw = b"{}" if request.params is UNSET else request.params
        return await self.answer(request.method, msgspec.json.decode(raw, type=_PARAMS[request.method]))

    async def _sample(self, params: CreateMessageParams) -> Object:
        value = await call(self._sampling, params)
        if isinstance(value, str):
            return CreateMessageResult("assistant", TextContent(value), "unknown", stop_reason="endTurn")
        return _checked(value, CreateMessageResult, "sampling")

    async def _elicit(self, params: ElicitParams) -> Object:
        value = await call(self._elicitation, params)
        if value is None:
            return ElicitResult("decline")
        if isinstance(value, dict):
            return ElicitResult("accept", cast(dict[str, Any], value) or None)
        return _checked(value, ElicitResult, "elicitation")

    async def _roots(self, params: ListRootsParams) -> Object:
        source = self._roots_source
        value = await call(source) if callable(source) else source
        if isinstance(value, ListRootsResult):
            return value
        return ListRootsResult([root if isinstance(root, Root) else Root(root) for root in value])


def _checked(value: Any, kind: type[Object], name: str) -> Object:
    if not isinstance(value, kind):
        raise TypeError(f"{name} must return {kind.__name__}, not {type(value).__name__}")
    return value
