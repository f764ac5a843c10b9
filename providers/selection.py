"""Which handlers a server takes: two predicates over an inspected signature, as a table.

The *type* of a server judges the colour of a handler, its *state* judges the most demanding parameter. The two are
independent, so two small tables say what the matrix of sixteen providers would say. Every handler that is not taken is
reported with the reason and the remedy; nothing disappears in silence.
"""

from enum import Enum
from typing import Final, Literal

from msgspec import Struct

from mcpcore.providers.markers import Demand
from mcpcore.providers.options import check_options, one_of
from mcpcore.providers.signature import Colour, Kind

__all__ = [
    "AsyncProvider",
    "AsyncStatelessProvider",
    "Candidate",
    "Provider",
    "Reason",
    "ServerState",
    "ServerType",
    "Skipped",
    "SyncProvider",
    "SyncStatelessProvider",
]

ServerType = Literal["auto", "sync", "async"]
ServerState = Literal["stateful", "stateless"]


class Reason(Enum):
    """Why a handler is not taken; the values are for machines."""

    AWAITABLE_RETURN = "awaitable-return"
    IMPERATIVE_RETURN = "imperative-return"
    BIDIRECTIONAL_PARAMETER = "bidirectional-parameter"


_COLOUR: Final[dict[ServerType, dict[Colour, Reason]]] = {
    # type of the server: {colour of the handler: why not}
    "auto": {},
    "sync": {Colour.AWAITABLE: Reason.AWAITABLE_RETURN, Colour.STREAM: Reason.AWAITABLE_RETURN},
    "async": {Colour.IMPERATIVE: Reason.IMPERATIVE_RETURN},
}

_DEMAND: Final[dict[ServerState, dict[Demand, Reason]]] = {
    # state of the server: {most demanding parameter of the handler: why not}
    "stateful": {},
    "stateless": {
        Demand.FULL: Reason.BIDIRECTIONAL_PARAMETER,
        Demand.SESSION: Reason.BIDIRECTIONAL_PARAMETER,
    },
}


class Candidate(Struct, frozen=True, kw_only=True):
    """What selection looks at.

    Args:
        kind: What the handler would be registered as.
        name: Its published name.
        qualname: Its Python name, with the module.
        location: ``file:line``.
        colour: How a call is driven.
        form: The colour in the author's words.
        demand: Of the most demanding parameter that does not admit None, dependencies included.
        parameter: That parameter, as written.
    """

    kind: Kind
    name: str
    qualname: str
    location: str
    colour: Colour
    form: str
    demand: Demand = Demand.NONE
    parameter: str = ""


class Skipped(Struct, frozen=True, kw_only=True):
    """A handler that was not taken.

    Args:
        reasons: All of them, as in `Reason`.
        message: One line: what is skipped, where it is, why, and what to change.
    """

    kind: Kind
    name: str
    qualname: str
    location: str
    reasons: tuple[str, ...]
    message: str

    def __str__(self) -> str:
        return self.message


class Provider(Struct, frozen=True):
    """Takes the handlers that fit one kind of server.

    Args:
        type: "sync" takes what runs to its end, "async" what is awaited, "auto" both.
        state: "stateless" takes nothing that needs a way back to the client.
    """

    type: ServerType = "auto"
    state: ServerState = "stateful"

    def __post_init__(self) -> None:
        check_options(self, type=one_of(*_COLOUR), state=one_of(*_DEMAND))

    def judge(self, candidate: Candidate) -> Skipped | None:
        """Return why ``candidate`` is not taken, or None when it is."""
        found = (_COLOUR[self.type].get(candidate.colour), _DEMAND[self.state].get(candidate.demand))
        reasons = tuple(reason for reason in found if reason is not None)
        if not reasons:
            return None
        why = " Also, ".join(self._sentences(reason, candidate) for reason in reasons)
        codes = tuple(reason.value for reason in reasons)
        return Skipped(
            kind=candidate.kind,
            name=candidate.name,
            qualname=candidate.qualname,
            location=candidate.location,
            reasons=codes,
            message=f"Skipped {_WORDS[candidate.kind]} {candidate.name!r} ({candidate.qualname}, {candidate.location}): "
            f"{why} [{', '.join(codes)}]",
        )

    def _sentences(self, reason: Reason, candidate: Candidate) -> str:
        function = candidate.qualname.rpartition(".")[2]
        if reason is Reason.AWAITABLE_RETURN:
            return (
                f"{function} is async ({candidate.form}); this server is type={self.type!r}. "
                "Use a plain def, or type='auto'."
            )
        if reason is Reason.IMPERATIVE_RETURN:
            return (
                f"{function} is a plain {candidate.form}; this server is type={self.type!r}. "
                "Make it async def, or use type='auto', which runs it in a worker thread."
            )
        hint = candidate.parameter.partition(": ")[2]
        return (
            f"parameter {candidate.parameter!r} needs a stateful server, this one is {self.state}. "
            f"Use TransportContext, annotate '{hint} | None', or run stateful."
        )


_WORDS: Final[dict[Kind, str]] = {
    "tool": "tool",
    "resource": "resource",
    "template": "resource template",
    "prompt": "prompt",
    "completion": "completion",
}


class SyncProvider(Provider, frozen=True):
    """Plain ``def`` only, sessions."""

    type: ServerType = "sync"


class AsyncProvider(Provider, frozen=True):
    """``async def`` only, sessions."""

    type: ServerType = "async"


class SyncStatelessProvider(Provider, frozen=True):
    """Plain ``def`` only, no way back to the client."""

    type: ServerType = "sync"
    state: ServerState = "stateless"


class AsyncStatelessProvider(Provider, frozen=True):
    """``async def`` only, no way back to the client."""

    type: ServerType = "async"
    state: ServerState = "stateless"
