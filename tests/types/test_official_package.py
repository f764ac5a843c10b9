"""What our cores send, read by the official package of types, in every revision."""

import json
from typing import Any

import pytest
from mcp_types import methods as official

from mcpcore.protocol import codec
from mcpcore.protocol.events import RequestReceived
from mcpcore.protocol.fitting import encode_fitted
from mcpcore.types import CancelledParams, ElicitParams, ListenParams
from mcpcore.types.methods import METHODS, Direction, Method
from tests.support.connected import connected
from tests.support.instances import full, minimal


def rows(direction: Direction, *, requests: bool) -> list[Any]:
    return [
        pytest.param(row, version, id=f"{row.name}-{version}")
        for row in METHODS
        for version in row.versions
        if row.direction is direction and (row.result is not None) is requests
    ]


def members(data: bytes, member: str) -> Any:
    return json.loads(data).get(member)


@pytest.mark.parametrize(("row", "version"), rows(Direction.TO_SERVER, requests=True))
def test_it_reads_requests_to_a_server_and_their_results(row: Method, version: str) -> None:
    if row.name == "initialize":
        return  # its opening is proven by the schemas
    assert row.result is not None
    for params in [minimal(row.params), *full(row.params)]:
        pair = connected(version)
        pair.client.send_request(row.name, params, progress=True)
        pair.pick_up()
        official.parse_client_request(row.name, version, members(pair.to_server[0].data, "params"))
    for result in [minimal(row.result), *full(row.result)]:
        pair = connected(version)
        id = pair.client.send_request(row.name, minimal(row.params))
        if (
            any(isinstance(event, RequestReceived) for event in pair.shuttle().server)
            and row.params is not ListenParams
        ):
            pair.server.send_result(id, result)
            answer = members(pair.server.messages_to_send()[0].data, "result")
            official.parse_server_result(row.name, version, answer)


@pytest.mark.parametrize(("row", "version"), rows(Direction.TO_CLIENT, requests=True))
def test_it_reads_requests_to_a_client_and_their_results(row: Method, version: str) -> None:
    assert row.result is not None
    for params in [minimal(row.params), *full(row.params)]:
        if isinstance(params, ElicitParams) and params.url is not None and version < "2025-11-25":
            continue  # the capability is never declared
        pair = connected(version)
        pair.server.send_request(row.name, params)
        official.parse_server_request(row.name, version, members(pair.server.messages_to_send()[0].data, "params"))
    for result in [minimal(row.result), *full(row.result)]:
        if row.name != "ping":
            official.parse_client_result(row.name, version, json.loads(encode_fitted(result, version)))


@pytest.mark.parametrize(("row", "version"), rows(Direction.TO_SERVER, requests=False))
def test_it_reads_notifications_to_a_server(row: Method, version: str) -> None:
    for params in [minimal(row.params), *full(row.params)]:
        if not (isinstance(params, CancelledParams) and params.request_id is None):
            data = codec.encode_notification(row.name, encode_fitted(params, version))
            official.parse_client_notification(row.name, version, members(data, "params"))


@pytest.mark.parametrize(("row", "version"), rows(Direction.TO_CLIENT, requests=False))
def test_it_reads_notifications_to_a_client(row: Method, version: str) -> None:
    for params in [minimal(row.params), *full(row.params)]:
        if not (isinstance(params, CancelledParams) and params.request_id is None):
            data = codec.encode_notification(row.name, encode_fitted(params, version))
            official.parse_server_notification(row.name, version, members(data, "params"))


def test_it_and_we_have_the_same_requests_in_each_revision() -> None:
    theirs = set(official.CLIENT_REQUESTS)
    ours = {
        (row.name, version)
        for row in METHODS
        for version in row.versions
        if row.direction is Direction.TO_SERVER and row.result is not None
    }
    assert theirs == ours


def test_it_and_we_agree_on_what_can_be_cached_and_what_can_ask_for_input() -> None:
    assert {row.name for row in METHODS if row.cacheable} == set(official.CACHEABLE_METHODS)
    assert {row.name for row in METHODS if row.input_required} == set(official.INPUT_REQUIRED_METHODS)
