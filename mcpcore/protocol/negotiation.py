"""How a client finds out which revision to speak, as a machine that is told what came back and says what to do next.

The probe is ``server/discover`` (2026-07-28, basic/transports/stdio, "Backward Compatibility"). A `DiscoverResult` or an
error that only a modern server gives settles the era; any other error, or silence, means a legacy server, and
``initialize`` follows. The code of that error must not matter. The rows, by what the server turned out to be:

    came back from discover                              next, if we speak both eras     modern only     legacy only
    ---------------------------------------------------  ------------------------------  --------------  -----------
    a result with a modern version in common             settled                         settled         (never sent)
    a result with only legacy versions in common         initialize                      fail
    -32022 with a modern version in common               discover again, once            same
    -32022 with only legacy versions in common           initialize                      fail
    -32022 with nothing in common                        fail                            fail
    -32020, -32021: the server is modern                 fail                            fail
    any other error, or nothing in time                  initialize                      fail

    came back from initialize
    ---------------------------------------------------
    a version that we speak                              settled
    another version, or none                             fail: the client disconnects (basic/lifecycle)
    -32022 with a modern version in common               discover, once (the probe had merely been slow)
    any other error                                      fail
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct

from mcpcore.types.jsonrpc import (
    HEADER_MISMATCH,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    UNSUPPORTED_PROTOCOL_VERSION,
    ErrorData,
)
from mcpcore.versions import Era, era_of

__all__ = ["Discover", "Fail", "Initialize", "Settled", "Step", "VersionNegotiator"]

_MODERN_ONLY: Final = (HEADER_MISMATCH, MISSING_REQUIRED_CLIENT_CAPABILITY)


class _Supported(Struct):
    supported: list[str]


class Discover(Struct, frozen=True):
    """Send ``server/discover`` with this version."""

    version: str


class Initialize(Struct, frozen=True):
    """Send ``initialize`` and ask for this version."""

    version: str


class Settled(Struct, frozen=True):
    """Speak this version."""

    version: str


class Fail(Struct, frozen=True):
    """Give up, for this reason."""

    reason: str
    error: ErrorData | None = None


Step = Discover | Initialize | Fail
"""What to do while nothing is settled."""


class VersionNegotiator:
    """Decides the next step of opening a connection.

    Args:
        versions: What the client speaks, at least one, in any order; the newest in common is chosen.
    """

    def __init__(self, versions: Sequence[str]) -> None:
        ordered = sorted(versions, reverse=True)
        self._modern = [version for version in ordered if era_of(version) is Era.MODERN]
        self._legacy = [version for version in ordered if era_of(version) is Era.LEGACY]
        self._reprobed = False

    def start(self) -> Discover | Initialize:
        """The first step."""
        return Discover(self._modern[0]) if self._modern else Initialize(self._legacy[0])

    def discovered(self, supported: Sequence[str]) -> Settled | Step:
        """``server/discover`` was answered with these versions."""
        version = _newest(self._modern, supported)
        return Settled(version) if version else self._legacy_among(supported)

    def discover_failed(self, error: ErrorData | None) -> Step:
        """``server/discover`` was answered with an error, or with nothing in time (None)."""
        if error is not None and error.code == UNSUPPORTED_PROTOCOL_VERSION:
            return self._unsupported(error)
        if error is not None and error.code in _MODERN_ONLY:
            return Fail(f"the server refused server/discover: {error.message}", error)
        if not self._legacy:
            what = "did not answer server/discover" if error is None else f"answered {error.message!r}"
            return Fail(f"the server {what}; it seems to speak legacy revisions only, and they are not allowed", error)
        return Initialize(self._legacy[0])

    def initialized(self, version: str) -> Settled | Fail:
        """``initialize`` was answered with this version."""
        if version in self._legacy:
            return Settled(version)
        ours = ", ".join(self._legacy)
        return Fail(f"the server wants protocol version {version!r}; this client speaks {ours}")

    def initialize_failed(self, error: ErrorData) -> Step:
        """``initialize`` was answered with an error."""
        if error.code == UNSUPPORTED_PROTOCOL_VERSION and _newest(self._modern, _supported(error)):
            return self._unsupported(error)
        return Fail(f"the server refused initialize: {error.message}", error)

    def _unsupported(self, error: ErrorData) -> Step:
        supported = _supported(error)
        version = _newest(self._modern, supported)
        if version is None:
            return self._legacy_among(supported, error)
        if self._reprobed:
            return Fail(f"the server names version {version} as supported and refuses it", error)
        self._reprobed = True
        return Discover(version)

    def _legacy_among(self, supported: Sequence[str], error: ErrorData | None = None) -> Step:
        version = _newest(self._legacy, supported)
        if version:
            return Initialize(version)
        ours = ", ".join(self._modern + self._legacy)
        theirs = ", ".join(supported) or "none that it names"
        return Fail(f"no protocol version in common: the server speaks {theirs}; this client {ours}", error)


def _newest(ours: Sequence[str], theirs: Sequence[str]) -> str | None:
    return next((version for version in ours if version in theirs), None)


def _supported(error: ErrorData) -> list[str]:
    try:
        return msgspec.convert(error.data, _Supported).supported
    except msgspec.ValidationError:
        return []
