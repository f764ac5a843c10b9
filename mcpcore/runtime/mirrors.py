"""Tools whose arguments are mirrored in header fields, as a client has to learn them from their schemas.

2026-07-28, basic/transports/streamable-http, "Custom Headers from Tool Parameters".
"""

import logging
from collections.abc import Iterable

from mcpcore.types.header_map import HeaderMap, header_map
from mcpcore.types.tools import Tool

__all__ = ["learn_mirrors"]

logger = logging.getLogger("mcpcore.client")


def learn_mirrors(tools: Iterable[Tool]) -> tuple[list[Tool], dict[str, HeaderMap]]:
    """Return the tools that can be called, and what is mirrored of those that have something to mirror.

    "the client MUST exclude the invalid tool from the result of tools/list", and one bad tool spoils no other.
    """
    usable: list[Tool] = []
    maps: dict[str, HeaderMap] = {}
    for tool in tools:
        try:
            found = header_map(tool.input_schema)
        except ValueError as error:
            logger.warning("tool %r is left out, because it cannot be called over HTTP: %s", tool.name, error)
            continue
        usable.append(tool)
        if found:
            maps[tool.name] = found
    return usable, maps
