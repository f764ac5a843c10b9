"""Two cores that declare everything they can."""

from typing import Final

from mcpcore.protocol.client import ClientConfig
from mcpcore.protocol.server import ServerConfig
from mcpcore.testing.pair import Pair
from mcpcore.types import ClientCapabilities, Implementation, ServerCapabilities
from mcpcore.types.lifecycle import ElicitationCapability, RootsCapability, SamplingCapability
from tests.support.instances import full

__all__ = ["DECLARED", "INFO", "OFFERED", "connected", "unconnected"]

INFO: Final[Implementation] = full(Implementation)[0]
OFFERED: Final[ServerCapabilities] = full(ServerCapabilities)[0]
DECLARED: Final = ClientCapabilities(
    experimental={"com.example/x": {}},
    roots=RootsCapability(True),
    sampling=SamplingCapability({}, {}),
    elicitation=ElicitationCapability({}, {}),
    extensions={"com.example/y": {}},
)


def unconnected(version: str) -> Pair:
    """A client and a server that declare everything, speak one revision, and have not said a word."""
    client = ClientConfig(INFO, DECLARED, (version,))
    return Pair(client, ServerConfig(INFO, OFFERED, "Be nice.", (version,)))


def connected(version: str) -> Pair:
    """The same after the opening."""
    pair = unconnected(version)
    pair.connect()
    return pair
