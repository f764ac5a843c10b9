"""Whatever a client and a server do, in whatever order messages arrive: what must hold of the two cores together.

Each step of the machine is a call on one of the cores or a whim of the wire. All calls are recorded, and at the end
they are made again on two new cores, which must say the same.
"""

import json
from collections import Counter
from typing import Any, Literal

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec import Raw

from mcpcore.exceptions import LocalProtocolError
from mcpcore.protocol.client import ClientConfig
from mcpcore.protocol.connection import Connection
from mcpcore.protocol.events import (
    ErrorReceived,
    Event,
    InputRequired,
    MessageRejected,
    RequestCancelled,
    RequestReceived,
    ResultReceived,
    SubscriptionEnded,
)
from mcpcore.protocol.messages import Incoming, Kind
from mcpcore.protocol.server import ServerConfig
from mcpcore.testing.pair import Pair
from mcpcore.types import (
    CallToolParams,
    CallToolResult,
    ClientCapabilities,
    ErrorData,
    Implementation,
    InputRequiredResult,
    ListRootsParams,
    ListRootsResult,
    ListToolsResult,
    NotificationParams,
    ServerCapabilities,
    SubscriptionFilter,
)
from mcpcore.types.lifecycle import ListChangedCapability, RootsCapability
from mcpcore.versions import VERSIONS, Era

Side = Literal["client", "server"]
OTHER: dict[Side, Side] = {"client": "server", "server": "client"}
TOOLS_CHANGED = "notifications/tools/list_changed"
GARBAGE = [
    b"nonsense",
    b"[]",
    b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":"y"}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[]}}',
    b'{"jsonrpc":"2.0","id":"never asked","result":{}}',
    b'{"jsonrpc":"2.0","id":"x","method":"nope"}',
]


class Ledger:
    """What has happened to the requests that one side received and the other sent."""

    def __init__(self) -> None:
        self.received: Counter[int | str] = Counter()
        self.answered: Counter[int | str] = Counter()
        self.cancelled: Counter[int | str] = Counter()
        self.silenced: set[int | str] = set()
        self.final: Counter[int | str] = Counter()
        self.sent: set[int | str] = set()
        self.resolved: Counter[int | str] = Counter()
        self.withdrawn: set[int | str] = set()

    @property
    def open(self) -> set[int | str]:
        return {id for id, count in self.received.items() if count > self.answered[id] + self.cancelled[id]}


class PairMachine(RuleBasedStateMachine):
    pair: Pair

    @initialize(
        client=st.sets(st.sampled_from(VERSIONS), min_size=1), server=st.sets(st.sampled_from(VERSIONS), min_size=1)
    )
    def open(self, client: set[str], server: set[str]) -> None:
        self.configs = (
            ClientConfig(Implementation("c", "1"), ClientCapabilities(roots=RootsCapability()), tuple(sorted(client))),
            ServerConfig(
                Implementation("s", "1"),
                ServerCapabilities(tools=ListChangedCapability(True), logging={}),
                versions=tuple(sorted(server)),
            ),
        )
        self.pair = Pair(*self.configs)
        self.calls: list[tuple[Side, str, tuple[Any, ...], dict[str, Any]]] = []
        self.said: list[tuple[Side, bytes]] = []
        self.ledgers: dict[Side, Ledger] = {"client": Ledger(), "server": Ledger()}  # by who receives the requests
        self.inputs: list[InputRequired] = []
        self.subscriptions: set[int | str] = set()
        self.ended: dict[Side, bool] = {"client": False, "server": False}
        self.call("client", "negotiate")
        for _ in range(6):
            self.carry()

    # -- calls and the wire ----------------------------------------------------------------------------------------------

    def call(self, side: Side, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method of a core; None when it was out of turn, which must not have queued anything."""
        core: Connection = getattr(self.pair, side)
        before = core.queued_bytes
        self.calls.append((side, name, args, kwargs))
        try:
            outcome = getattr(core, name)(*args, **kwargs)
        except LocalProtocolError:
            assert core.queued_bytes == before
            return None
        ledger = self.ledgers[side]
        if name in ("send_result", "send_error", "send_input_required", "end_subscription") and args[0] in ledger.open:
            ledger.answered[args[0]] += not core.is_open(args[0])
        if name in ("send_request", "listen", "retry"):
            self.ledgers[OTHER[side]].sent.add(outcome)
        return outcome

    def write(self, side: Side) -> None:
        """Take what a core has to say and put it on the wire."""
        ledger = self.ledgers[side]
        self.calls.append((side, "messages_to_send", (), {}))
        for message in getattr(self.pair, side).messages_to_send():
            self.said.append((side, message.data))
            assert b"\n" not in message.data
            told = json.loads(message.data)
            if told.get("error", {}).get("message", "").startswith(("Invalid Request", "Parse error")):
                assert "id" not in told or told["id"] not in ledger.open, "it looks like the answer to another request"
                continue  # to a malformed message; nobody waits for it
            for id in (message.request_id, message.related_to):
                if message.kind is not Kind.REQUEST and id is not None and ledger.received[id]:
                    assert id not in ledger.silenced, "something was sent for a request that was cancelled"
            if message.kind in (Kind.RESPONSE, Kind.ERROR) and message.request_id is not None:
                ledger.final[message.request_id] += ledger.received[message.request_id] > 0
                assert ledger.final[message.request_id] <= ledger.answered[message.request_id]
            if message.kind is Kind.REQUEST:
                assert message.request_id not in self.ledgers[OTHER[side]].withdrawn, "it was taken back"
            (self.pair.to_server if side == "client" else self.pair.to_client).append(message)

    def receive(self, side: Side, data: bytes) -> None:
        events: list[Event] = self.call(side, "receive", Incoming(data))
        ledger, other = self.ledgers[side], self.ledgers[OTHER[side]]
        for event in events:
            if isinstance(event, RequestReceived):
                assert event.id not in ledger.open
                ledger.received[event.id] += 1
                ledger.silenced.discard(event.id)
            elif isinstance(event, RequestCancelled):
                ledger.cancelled[event.id] += 1
                ledger.silenced.add(event.id)
            elif isinstance(event, InputRequired):
                self.inputs.append(event)
            if isinstance(event, ResultReceived | ErrorReceived | InputRequired | SubscriptionEnded) or (
                isinstance(event, MessageRejected) and event.id is not None
            ):
                id = event.id
                assert id is not None and id in other.sent and id not in other.withdrawn
                other.resolved[id] += 1

    def carry(self) -> None:
        for side in ("client", "server"):
            self.write(side)
        for side, wire in (("server", self.pair.to_server), ("client", self.pair.to_client)):
            messages = wire.copy()
            wire.clear()
            for message in messages:
                self.receive(side, message.data)  # type: ignore[arg-type]  # one of the two sides

    # -- the wire --------------------------------------------------------------------------------------------------------

    @rule(side=st.sampled_from(["client", "server"]))
    def what_is_queued_is_written(self, side: Side) -> None:
        self.write(side)

    @rule()
    def everything_arrives(self) -> None:
        self.carry()

    @rule(side=st.sampled_from(["client", "server"]), data=st.data())
    def one_message_overtakes_the_others(self, side: Side, data: st.DataObject) -> None:
        wire = self.pair.to_server if side == "server" else self.pair.to_client
        if wire:
            message = wire.pop(data.draw(st.integers(0, len(wire) - 1)))
            self.receive(side, message.data)

    @rule(side=st.sampled_from(["client", "server"]), data=st.data())
    def one_message_is_lost(self, side: Side, data: st.DataObject) -> None:
        wire = self.pair.to_server if side == "server" else self.pair.to_client
        if wire:
            wire.pop(data.draw(st.integers(0, len(wire) - 1)))

    @rule(side=st.sampled_from(["client", "server"]), data=st.sampled_from(GARBAGE))
    def garbage_arrives(self, side: Side, data: bytes) -> None:
        self.receive(side, data)

    @rule(
        side=st.sampled_from(["client", "server"]), flaw=st.sampled_from(['"x":1', '"method":5', '"method":"\\ud800"'])
    )
    def a_malformed_message_bears_an_open_id(self, side: Side, flaw: str) -> None:
        for id in self.ledgers[side].open:
            self.receive(side, f'{{"jsonrpc":"2.0","id":{json.dumps(id)},{flaw}}}'.encode())

    @rule(side=st.sampled_from(["client", "server"]))
    def a_request_arrives_a_second_time(self, side: Side) -> None:
        wire = self.pair.to_server if side == "server" else self.pair.to_client
        for message in wire:
            if message.kind is Kind.REQUEST:
                self.receive(side, message.data)
                return

    # -- the client ------------------------------------------------------------------------------------------------------

    @property
    def modern(self) -> bool:
        server = self.pair.client.server
        return server is not None and server.era is Era.MODERN

    @rule(method=st.sampled_from(["tools/call", "tools/list", "ping", "nope"]), progress=st.booleans())
    def the_client_asks(self, method: str, progress: bool) -> None:
        params = CallToolParams("t", Raw(b'{"a":1}')) if method == "tools/call" else None
        self.call("client", "send_request", method, params, progress=progress, log_level="debug")

    @rule()
    def the_client_listens(self) -> None:
        id = self.call("client", "listen", SubscriptionFilter(tools_list_changed=True))
        if id is not None:
            self.subscriptions.add(id)

    @rule(data=st.data())
    def the_client_cancels(self, data: st.DataObject) -> None:
        sent = self.ledgers["server"].sent
        if sent and self.pair.client.server is not None:
            id = data.draw(st.sampled_from(sorted(sent, key=str)))
            if not self.ledgers["server"].resolved[id]:
                self.ledgers["server"].withdrawn.add(id)
            self.call("client", "cancel", id)

    @precondition(lambda self: self.inputs)
    @rule()
    def the_client_tries_again(self) -> None:
        required = self.inputs.pop()
        id = self.call("client", "retry", required, {})
        assert id is None or id not in self.ledgers["server"].resolved

    # -- either side answers ---------------------------------------------------------------------------------------------

    @rule(side=st.sampled_from(["client", "server"]), how=st.sampled_from(["result", "error", "input"]), data=st.data())
    def a_request_is_answered(self, side: Side, how: str, data: st.DataObject) -> None:
        known = sorted(self.ledgers[side].received, key=str)
        if not known:
            return
        id = data.draw(st.sampled_from(known))
        was_open = id in self.ledgers[side].open
        results: tuple[Any, ...] = (
            (CallToolResult(), ListToolsResult([])) if side == "server" else (ListRootsResult([]),)
        )
        if how == "error":
            self.call(side, "send_error", id, ErrorData(-1, "no"))
        elif how == "input" and side == "server":
            self.call("server", "send_input_required", id, InputRequiredResult(request_state="s"))
        else:
            self.call(side, "send_result", id, data.draw(st.sampled_from(results)))
        assert id not in self.ledgers[side].open or (was_open and how != "error")  # an input may not be possible

    @rule(side=st.sampled_from(["client", "server"]), amount=st.integers(0, 5), data=st.data())
    def progress_is_reported(self, side: Side, amount: int, data: st.DataObject) -> None:
        known = sorted(self.ledgers[side].received, key=str)
        if known:
            self.call(side, "send_progress", data.draw(st.sampled_from(known)), amount)

    # -- the server ------------------------------------------------------------------------------------------------------

    @rule(data=st.data())
    def the_server_logs(self, data: st.DataObject) -> None:
        known: list[Any] = [None, *sorted(self.ledgers["server"].received, key=str)]
        self.call("server", "send_log", data.draw(st.sampled_from(known)), "info", {"a": None})

    @rule(data=st.data())
    def the_server_acknowledges(self, data: st.DataObject) -> None:
        known = sorted(self.subscriptions, key=str)
        if known:
            id = data.draw(st.sampled_from(known))
            self.call("server", "acknowledge", id, SubscriptionFilter(tools_list_changed=True))

    @rule()
    def something_changes(self) -> None:
        self.call("server", "publish", TOOLS_CHANGED, NotificationParams())

    @rule(data=st.data())
    def the_server_ends_a_subscription(self, data: st.DataObject) -> None:
        known = sorted(self.subscriptions, key=str)
        if known:
            self.call("server", "end_subscription", data.draw(st.sampled_from(known)))

    @rule(method=st.sampled_from(["roots/list", "ping", "elicitation/create"]))
    def the_server_asks(self, method: str) -> None:
        self.call("server", "send_request", method, ListRootsParams(), progress=True)

    @rule(data=st.data())
    def the_server_cancels(self, data: st.DataObject) -> None:
        sent = self.ledgers["client"].sent
        if sent:
            id = data.draw(st.sampled_from(sorted(sent, key=str)))
            if not self.ledgers["client"].resolved[id]:
                self.ledgers["client"].withdrawn.add(id)
            self.call("server", "cancel", id)

    # -- what must hold --------------------------------------------------------------------------------------------------

    @invariant()
    def open_requests_are_those_received_and_neither_answered_nor_cancelled(self) -> None:
        for side in ("client", "server"):
            core, ledger = getattr(self.pair, side), self.ledgers[side]
            assert core.open_requests == len(ledger.open)
            assert all(core.is_open(id) for id in ledger.open)

    @invariant()
    def a_request_is_resolved_once(self) -> None:
        for ledger in self.ledgers.values():
            assert all(count == 1 for count in ledger.resolved.values())

    @invariant()
    def a_modern_server_never_asks(self) -> None:
        if self.modern and self.pair.server.session is None:
            assert not self.ledgers["client"].sent

    def teardown(self) -> None:
        """The same calls say the same."""
        if not hasattr(self, "calls"):
            return
        pair, said = Pair(*self.configs), []
        for side, name, args, kwargs in self.calls:
            try:
                outcome = getattr(getattr(pair, side), name)(*args, **kwargs)
            except LocalProtocolError:
                continue
            if name == "messages_to_send":
                said += [(side, message.data) for message in outcome]
        assert said == self.said


PairMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestPair = PairMachine.TestCase


def test_the_ledger_itself_counts() -> None:
    ledger = Ledger()
    ledger.received.update([1, 1, 2])
    ledger.answered.update([1])
    ledger.cancelled.update([2])
    assert ledger.open == {1}
    assert msgspec.json.encode(sorted(ledger.open)) == b"[1]"
