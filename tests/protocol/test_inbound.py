"""What an HTTP server sees at a glance is what the core decides after reading."""

from pathlib import Path
from typing import Any

import pytest

from mcpcore.protocol.events import RequestReceived
from mcpcore.protocol.inbound import Inbound, classify
from mcpcore.protocol.messages import Incoming
from mcpcore.protocol.server import ServerConfig, ServerConnection
from mcpcore.types import Implementation, ServerCapabilities
from mcpcore.types.lifecycle import ListChangedCapability, ResourcesCapability
from mcpcore.versions import LEGACY_VERSIONS, Era

MODERN = b'"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}'
CORPUS = sorted(
    {
        line[1:].strip()
        for path in (Path(__file__).parent / "transcripts").glob("*.txt")
        for line in path.read_text(encoding="utf-8").split("\n")
        if line.startswith(">")
    }
)


@pytest.mark.parametrize(
    ("data", "version", "era", "initializes"),
    [
        (b'{"method":"tools/list","id":1,"params":{%b}}' % MODERN, None, Era.MODERN, False),
        (b'{"method":"tools/list","id":1,"params":{%b}}' % MODERN, "2025-06-18", Era.MODERN, False),
        (b'{"method":"initialize","id":1,"params":{%b}}' % MODERN, None, Era.MODERN, False),
        (b'{"method":"initialize","id":1}', None, Era.LEGACY, True),
        (b'{"method":"initialize","id":1}', "2026-07-28", Era.LEGACY, True),
        (b'{"method":"initialize","id":null}', None, Era.LEGACY, True),
        (b'{"method":"initialize"}', None, Era.LEGACY, False),
        (b'{"method":"tools/list","id":1}', None, Era.LEGACY, False),
        (b'{"method":"tools/list","id":1}', "2025-06-18", Era.LEGACY, False),
        (b'{"method":"tools/list","id":1}', " 2025-06-18\t", Era.LEGACY, False),
        (b'{"method":"tools/list","id":1}', "2026-07-28", Era.MODERN, False),
        (b'{"method":"tools/list","id":1}', "2031-01-01", Era.MODERN, False),
        (b'{"method":"tools/list","id":1,"params":{"_meta":null}}', None, Era.LEGACY, False),
        (b'{"method":"tools/list","id":1,"params":null}', None, Era.LEGACY, False),
        (b'{"method":5,"id":[]}', None, Era.LEGACY, False),
        (b"[]", "2025-03-26", Era.LEGACY, False),
        (b"nonsense", "2026-07-28", Era.MODERN, False),
        (b"nonsense", None, Era.LEGACY, False),
        (b"[" * 100_000, None, Era.LEGACY, False),
        (b'{"method":"\xff"}', None, Era.LEGACY, False),
    ],
)
def test_a_post_is_told_by_meta_then_method_then_header(
    data: bytes, version: str | None, era: Era, initializes: bool
) -> None:
    headers = {} if version is None else {"mcp-protocol-version": version}
    assert classify(data, headers) == Inbound(era, initializes)


@pytest.mark.parametrize("version", [None, *LEGACY_VERSIONS])
def test_the_core_decides_the_same_for_every_request_that_it_takes(version: str | None) -> None:
    capabilities = ServerCapabilities(
        tools=ListChangedCapability(), prompts=ListChangedCapability(), resources=ResourcesCapability(True), logging={}
    )
    headers: dict[str, Any] = {} if version is None else {"mcp-protocol-version": version}
    taken = 0
    for text in CORPUS:
        connection = ServerConnection(
            ServerConfig(Implementation("s", "1"), capabilities), session_version="2025-11-25"
        )
        for event in connection.receive(Incoming(text.encode())):
            if isinstance(event, RequestReceived) and not text.startswith("["):
                assert event.caller is not None
                assert classify(text.encode(), headers).era is event.caller.era
                taken += 1
    assert taken > 20
