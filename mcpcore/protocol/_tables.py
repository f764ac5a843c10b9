"""Everything that moves a state is in this file, and this file does not know which side we are.

Two small machines carry the protocol; all else is a look-up in `mcpcore.types.methods`.

**The session** exists in the legacy era only. ``initialize`` opens it, the result settles the revision, and
``notifications/initialized`` makes it ready. An error to ``initialize`` leaves everything as it was, so that the peer
can try again. A client that never sends ``initialized`` is served all the same: the lifecycle says SHOULD NOT, and
refusing would hang clients that are merely late (2025-11-25, basic/lifecycle, "Initialization").

**The exchange** is one request with all that belongs to it, in either direction and either era. It is open until it is
answered or cancelled, and both of these are final: their rows are empty, which is how "one answer at most" and "nothing
after the answer" are kept. ``subscriptions/listen`` is an exchange that is acknowledged before anything else is sent on
it; multi-round input is an ordinary answer of another kind; so neither needs a table of its own.

The same rows judge our messages and the peer's. What is missing is illegal: `advance` raises for us, and the caller
that judges the peer turns that into a refusal.
"""

from enum import IntEnum
from typing import Final, TypeVar

from mcpcore.exceptions import LocalProtocolError

__all__ = ["EXCHANGE", "SESSION", "Exchange", "ExchangeStep", "Session", "SessionStep", "advance"]


class Session(IntEnum):
    """Where the handshake stands."""

    NEW = 0
    INITIALIZING = 1
    NEGOTIATED = 2
    READY = 3


class SessionStep(IntEnum):
    """What moves a session."""

    INITIALIZE = 0
    RESULT = 1
    ERROR = 2
    INITIALIZED = 3


class Exchange(IntEnum):
    """Where one request stands."""

    OPEN = 0
    STREAMING = 1
    ANSWERED = 2
    CANCELLED = 3


class ExchangeStep(IntEnum):
    """What moves an exchange."""

    NOTIFY = 0
    ACKNOWLEDGE = 1
    ANSWER = 2
    CANCEL = 3


SESSION: Final[dict[Session, dict[SessionStep, Session]]] = {
    Session.NEW: {SessionStep.INITIALIZE: Session.INITIALIZING},
    Session.INITIALIZING: {SessionStep.RESULT: Session.NEGOTIATED, SessionStep.ERROR: Session.NEW},
    Session.NEGOTIATED: {SessionStep.INITIALIZED: Session.READY},
    Session.READY: {},
}

EXCHANGE: Final[dict[Exchange, dict[ExchangeStep, Exchange]]] = {
    Exchange.OPEN: {
        ExchangeStep.NOTIFY: Exchange.OPEN,
        ExchangeStep.ACKNOWLEDGE: Exchange.STREAMING,
        ExchangeStep.ANSWER: Exchange.ANSWERED,
        ExchangeStep.CANCEL: Exchange.CANCELLED,
    },
    Exchange.STREAMING: {
        ExchangeStep.NOTIFY: Exchange.STREAMING,
        ExchangeStep.ANSWER: Exchange.ANSWERED,
        ExchangeStep.CANCEL: Exchange.CANCELLED,
    },
    Exchange.ANSWERED: {},
    Exchange.CANCELLED: {},
}

State = TypeVar("State", Session, Exchange)
Step = TypeVar("Step", SessionStep, ExchangeStep)


def advance(table: dict[State, dict[Step, State]], state: State, step: Step) -> State:
    """Return the state that ``step`` leads to.

    Raises:
        LocalProtocolError: The table has no such step from ``state``.
    """
    try:
        return table[state][step]
    except KeyError:
        raise LocalProtocolError(f"{step.name} is not possible when {state.name}") from None
