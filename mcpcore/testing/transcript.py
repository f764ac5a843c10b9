"""Conversations as text files, played against a bare connection.

A transcript shows one side's core at work. Its lines are, by what they begin with::

    # a comment
    @ server {"capabilities": {"tools": {}}}         the side that is played, and its configuration; once, first
    > {"jsonrpc": "2.0", "id": 1, "method": "ping"}  a message that it receives
    ! send_result 1 {"content": []}                  what its application does: a method of the connection
    = RequestReceived(1)                             events that this brought, and the requests that they are about
    < {"jsonrpc":"2.0","id":1,"result":{}}           a message that it sends, byte for byte

A message may be tagged, as bindings with several streams do it: ``>a {...}`` comes in, ``<a {...}`` is its answer, and
``<a`` alone ends the stream without one. An action that is refused gives ``= LocalProtocolError: <text>``.

``>``, ``!``, ``@`` and comments are what a transcript says; ``=`` and ``<`` are what must come of it. `check` compares them,
`play` writes them. To write them anew on purpose, and then to read the difference::

    python -m mcpcore.testing.transcript tests/protocol/transcripts/*.txt
"""

import difflib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from mcpcore.exceptions import LocalProtocolError
from mcpcore.protocol.client import ClientConfig, ClientConnection
from mcpcore.protocol.connection import Connection
from mcpcore.protocol.events import Event, InputRequired, RequestReceived
from mcpcore.protocol.messages import Incoming, Outgoing
from mcpcore.protocol.server import ServerConfig, ServerConnection
from mcpcore.types._base import Object
from mcpcore.types.jsonrpc import ErrorData
from mcpcore.types.lifecycle import ClientCapabilities, Implementation, ServerCapabilities
from mcpcore.types.methods import METHODS, Method
from mcpcore.types.subscriptions import SubscriptionFilter
from mcpcore.types.utilities import InputRequiredResult
from mcpcore.versions import VERSIONS

__all__ = ["TranscriptError", "check", "play"]


class TranscriptError(AssertionError):
    """A transcript cannot be played, or something else came of it than it says."""


def check(path: Path) -> None:
    """Play a transcript and compare what comes of it with what it says.

    Args:
        path: The file.

    Raises:
        TranscriptError: They differ; the message shows how.
    """
    text = path.read_text(encoding="utf-8")
    played = play(text)
    if played != text:
        difference = difflib.unified_diff(
            text.split("\n"), played.split("\n"), f"{path} says", "this came", lineterm=""
        )
        raise TranscriptError("\n".join(difference))


def play(text: str) -> str:
    """Return the transcript with the lines that must come of it as they do come.

    Args:
        text: A transcript; its own ``=`` and ``<`` lines are not looked at.

    Raises:
        TranscriptError: A line cannot be understood.
    """
    player: _Player | None = None
    lines: list[str] = []
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        mark, rest = line[:1], line[1:].strip()
        if mark in ("=", "<"):
            continue
        lines.append(line)
        if mark in ("", "#"):
            continue
        try:
            if mark == "@":
                player = _Player(*_parts(rest))
            elif player is None or mark not in (">", "!"):
                raise TranscriptError(
                    "a transcript begins with '@ server' or '@ client', and its lines with one of #@>!=<"
                )
            else:
                lines += player.receive(line[1:]) if mark == ">" else player.act(*_parts(rest))
        except (TranscriptError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise TranscriptError(f"line {number}: {line}\n{type(error).__name__}: {error}") from error
    return "\n".join(lines) + "\n"


class _Player:
    """One side: its connection, and the little that an application has to remember."""

    def __init__(self, role: str, options: Any = None) -> None:
        self._connection = _connection(role, **(options or {}))
        self._methods: dict[int | str, Method] = {}
        self._interim: dict[int | str, InputRequired] = {}

    def receive(self, line: str) -> list[str]:
        tag, _, data = line.partition(" ")
        return self._shown(self._connection.receive(Incoming(data.strip().encode(), tag=tag or None)))

    def act(self, name: str, *args: Any) -> list[str]:
        convert = _ACTIONS.get(name)
        if convert is None:
            raise TranscriptError(f"{name} is no action: give one of {', '.join(_ACTIONS)}")
        try:
            outcome = getattr(self._connection, name)(*convert(self, *args))
        except LocalProtocolError as error:
            return [f"= LocalProtocolError: {error}", *self._shown([])]
        events: list[Event] = outcome if name in _GIVE_EVENTS else []
        return self._shown(events)

    def _shown(self, events: list[Event]) -> list[str]:
        for event in events:
            if isinstance(event, RequestReceived):
                self._methods[event.id] = event.method
            elif isinstance(event, InputRequired):
                self._interim[event.id] = event
        names = [_name(event) for event in events]
        return ([f"= {' '.join(names)}"] if names else []) + [
            _line(each) for each in self._connection.messages_to_send()
        ]

    # -- what actions take, in Python's terms ----------------------------------------------------------------------

    def plain(self, *args: Any) -> tuple[Any, ...]:
        return args

    def result(self, id: int | str, result: Any) -> tuple[Any, ...]:
        return id, msgspec.convert(result, self._methods[id].result)

    def error(self, id: int | str, error: Any) -> tuple[Any, ...]:
        return id, msgspec.convert(error, ErrorData)

    def input_required(self, id: int | str, required: Any) -> tuple[Any, ...]:
        return id, msgspec.json.decode(msgspec.json.encode(required), type=InputRequiredResult)

    def message(self, method: str, params: Any = None) -> tuple[Any, ...]:
        """Parameters of whatever this side may send, by the name of the method."""
        if params is None:
            return (method,)
        kind = next(row.params for row in METHODS if row.name == method)
        return method, msgspec.json.decode(msgspec.json.encode(params), type=kind)

    def wanted(self, *args: Any) -> tuple[Any, ...]:
        *ids, wanted = args
        return *ids, msgspec.convert(wanted, SubscriptionFilter)

    def responses(self, id: int | str, responses: Any) -> tuple[Any, ...]:
        required = self._interim[id]
        kinds = {key: _RESULTS[request.method] for key, request in required.input_requests.items()}
        return required, {key: msgspec.convert(value, kinds[key]) for key, value in responses.items()}


_RESULTS: Final[dict[str, type[Object]]] = {row.name: row.result for row in METHODS if row.result is not None}

_ACTIONS: Final[dict[str, Callable[..., tuple[Any, ...]]]] = {
    "acknowledge": _Player.wanted,
    "cancel": _Player.plain,
    "end_subscription": _Player.plain,
    "listen": _Player.wanted,
    "negotiate": _Player.plain,
    "probe_timed_out": _Player.plain,
    "publish": _Player.message,
    "receive_eof": _Player.plain,
    "retry": _Player.responses,
    "send_error": _Player.error,
    "send_input_required": _Player.input_required,
    "send_log": _Player.plain,
    "send_notification": _Player.message,
    "send_progress": _Player.plain,
    "send_request": _Player.message,
    "send_result": _Player.result,
}

_GIVE_EVENTS: Final = ("probe_timed_out", "receive_eof")


def _connection(role: str, capabilities: Any = None, versions: Any = VERSIONS, **options: Any) -> Connection:
    if role == "server":
        offered = msgspec.convert(capabilities or {}, ServerCapabilities)
        return ServerConnection(
            ServerConfig(Implementation("server", "1"), offered, versions=tuple(versions)), **options
        )
    if role == "client":
        declared = msgspec.convert(capabilities or {}, ClientCapabilities)
        return ClientConnection(ClientConfig(Implementation("client", "1"), declared, tuple(versions)), **options)
    raise TranscriptError(f"{role!r}: play 'server' or 'client'")


def _parts(text: str) -> Iterator[Any]:
    """Cut a line into words and JSON values."""
    decoder = json.JSONDecoder()
    while text:
        try:
            part, end = decoder.raw_decode(text)
        except ValueError:
            part, end = text.split(" ", 1)[0], len(text.split(" ", 1)[0])
        yield part
        text = text[end:].lstrip()


def _name(event: Event) -> str:
    id = getattr(event, "id", None)
    return type(event).__name__ if id is None else f"{type(event).__name__}({json.dumps(id, ensure_ascii=False)})"


def _line(message: Outgoing) -> str:
    return f"<{message.tag or ''} {message.data.decode()}".rstrip(" ")


def main(paths: list[str]) -> None:
    """Write the lines that must come of transcripts anew."""
    for path in map(Path, paths):
        path.write_text(play(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
