"""What a modern server's answers carry beside what its handlers give, and what must not be among it."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from mcpcore.exceptions import LocalProtocolError
from mcpcore.protocol.answers import Stamps, allowed_error, can_elicit, lacking, missing_capabilities, required_visits
from mcpcore.protocol.exchanges import Inbound
from mcpcore.types import (
    CallToolResult,
    ClientCapabilities,
    CreateMessageParams,
    ElicitParams,
    ErrorData,
    Implementation,
    InputRequest,
    InputRequiredResult,
    ListRootsParams,
    ListToolsResult,
    ToolChoice,
)
from mcpcore.types.lifecycle import ElicitationCapability, RootsCapability, SamplingCapability
from mcpcore.types.methods import METHODS
from mcpcore.versions import LATEST_MODERN

INFO = {"name": "s", "version": "1"}
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
STAMPS = Stamps(Implementation("s", "1"), 5, "public")


def exchange(name: str) -> Inbound:
    row = next(row for row in METHODS if row.name == name)
    return Inbound(row, LATEST_MODERN)


def result(data: bytes) -> dict[str, Any]:
    """The result, provided that no member is there twice."""
    pairs: list[tuple[str, Any]] = dict(json.loads(data, object_pairs_hook=list))["result"]
    names = [name for name, _ in pairs]
    assert len(names) == len(set(names)), names
    told: dict[str, Any] = json.loads(data)["result"]
    return told


# -- stamps ------------------------------------------------------------------------------------------------------------


def test_every_result_has_its_type_and_the_servers_name() -> None:
    told = result(STAMPS.encode(1, exchange("tools/call"), CallToolResult()))
    assert told == {"resultType": "complete", "_meta": {SERVER_INFO: INFO}, "content": []}


@pytest.mark.parametrize("meta", [{}, {"a": None}, {SERVER_INFO: {"name": "other", "version": "2"}, "b": 1}])
def test_meta_of_a_result_is_kept_and_the_servers_name_is_its_own(meta: dict[str, Any]) -> None:
    for method, given_result in [
        ("tools/call", CallToolResult(meta=meta)),
        ("tools/list", ListToolsResult([], meta=meta)),
    ]:
        assert result(STAMPS.encode(1, exchange(method), given_result))["_meta"] == {**meta, SERVER_INFO: INFO}


@pytest.mark.parametrize("ttl", [None, 0, 7])
@pytest.mark.parametrize("scope", [None, "private", "public"])
@pytest.mark.parametrize("meta", [None, {"a": 1}])
def test_hints_are_those_of_the_result_else_those_of_the_server(ttl: int | None, scope: Any, meta: Any) -> None:
    told = result(STAMPS.encode(1, exchange("tools/list"), ListToolsResult([], None, ttl, scope, meta)))
    assert (told["ttlMs"], told["cacheScope"]) == (5 if ttl is None else ttl, scope or "public")
    assert told["tools"] == []


def test_an_encoded_result_is_stamped_and_not_read() -> None:
    told = result(STAMPS.encode(1, exchange("tools/list"), Raw(b'{"tools":[]}')))
    assert told == {
        "resultType": "complete",
        "_meta": {SERVER_INFO: INFO},
        "ttlMs": 5,
        "cacheScope": "public",
        "tools": [],
    }
    assert "ttlMs" not in result(STAMPS.encode(1, exchange("tools/call"), Raw(b"{}")))


def test_the_result_that_was_given_is_not_changed() -> None:
    given_result = ListToolsResult([], ttl_ms=1, cache_scope="private", meta={"a": 1})
    before = msgspec.json.encode(given_result)
    STAMPS.encode(1, exchange("tools/list"), given_result)
    assert msgspec.json.encode(given_result) == before


def test_an_interim_answer_has_no_hints() -> None:
    required = InputRequiredResult({"r": InputRequest("roots/list")}, meta={"a": 1})
    told = result(STAMPS.encode_input_required(1, required))
    assert told == {
        "resultType": "input_required",
        "_meta": {"a": 1, SERVER_INFO: INFO},
        "inputRequests": {"r": {"method": "roots/list"}},
    }


def test_hints_that_do_not_exist_are_refused() -> None:
    with pytest.raises(ValueError, match="time to live of -1 ms: give 0 or more"):
        Stamps(Implementation("s", "1"), -1, "private")
    with pytest.raises(ValueError, match="cache scope 'shared': give 'public' or 'private'"):
        Stamps(Implementation("s", "1"), 0, "shared")
    with pytest.raises(LocalProtocolError, match="-5 ms"):
        STAMPS.encode(1, exchange("tools/list"), ListToolsResult([], ttl_ms=-5))


# -- errors ------------------------------------------------------------------------------------------------------------


@given(st.one_of(st.integers(-33000, -31000), st.integers()))
def test_no_code_is_sent_that_a_modern_server_must_not_send(code: int) -> None:
    error = ErrorData(code, "text", {"a": 1})
    allowed = allowed_error(error)
    defined = {-32020, -32021, -32022}
    assert not (-32099 <= allowed.code <= -32020 and allowed.code not in defined)
    assert allowed.code != -32002
    assert (allowed.message, allowed.data) == (error.message, error.data)
    if code != -32002 and (code in defined or not -32099 <= code <= -32020):
        assert allowed is error


def test_what_has_a_successor_becomes_that_and_the_rest_is_internal() -> None:
    assert allowed_error(ErrorData(-32002, "x")).code == -32602
    assert allowed_error(ErrorData(-32042, "x")).code == -32603
    assert allowed_error(ErrorData(-32099, "x")).code == -32603


VISIT = {"mode": "url", "elicitationId": "e", "url": "https://example.com", "message": "Log in"}


def test_visits_that_are_required_become_input_requests() -> None:
    error = ErrorData(-32042, "x", {"elicitations": [VISIT, VISIT]})
    required = required_visits(error, LATEST_MODERN)
    assert required is not None and required.input_requests is not None
    told = json.loads(msgspec.json.encode(required))["inputRequests"]
    params = {key: value for key, value in VISIT.items() if key != "elicitationId"}
    assert told == {f"visit-{number}": {"method": "elicitation/create", "params": params} for number in (1, 2)}


@pytest.mark.parametrize(
    "data", [UNSET, None, 5, {}, {"elicitations": None}, {"elicitations": []}, {"elicitations": [{"url": "x"}]}]
)
def test_without_visits_it_stays_an_error(data: Any) -> None:
    assert required_visits(ErrorData(-32042, "x", data), LATEST_MODERN) is None


def test_other_errors_require_no_visits() -> None:
    assert required_visits(ErrorData(-32603, "x", {"elicitations": [VISIT]}), LATEST_MODERN) is None


# -- capabilities of the client --------------------------------------------------------------------------------------

NOTHING = ClientCapabilities()
EVERYTHING = ClientCapabilities(
    roots=RootsCapability(), sampling=SamplingCapability({}, {}), elicitation=ElicitationCapability({}, {})
)
SAMPLE = CreateMessageParams([], 1)
FORM, URL = ElicitParams("x"), ElicitParams("x", mode="url", url="https://example.com")


@pytest.mark.parametrize(
    ("declared", "form", "url"),
    [
        (None, False, False),
        (ElicitationCapability(), True, False),
        (ElicitationCapability(form={}), True, False),
        (ElicitationCapability(url={}), False, True),
        (ElicitationCapability({}, {}), True, True),
    ],
)
def test_an_empty_elicitation_capability_means_forms(declared: Any, form: bool, url: bool) -> None:
    capabilities = ClientCapabilities(elicitation=declared)
    assert (can_elicit(capabilities, "form"), can_elicit(capabilities, "url")) == (form, url)
    assert lacking("elicitation/create", FORM, capabilities) == ({} if form else {"elicitation": {"form": {}}})
    assert lacking("elicitation/create", URL, capabilities) == ({} if url else {"elicitation": {"url": {}}})


@pytest.mark.parametrize(
    ("method", "params", "missing"),
    [
        ("sampling/createMessage", SAMPLE, {"sampling": {}}),
        ("sampling/createMessage", CreateMessageParams([], 1, tools=[]), {"sampling": {"tools": {}}}),
        ("sampling/createMessage", CreateMessageParams([], 1, tool_choice=ToolChoice()), {"sampling": {"tools": {}}}),
        ("roots/list", ListRootsParams(), {"roots": {}}),
        ("roots/list", None, {"roots": {}}),
        ("ping", None, {}),
    ],
)
def test_what_a_client_lacks_to_be_asked(method: str, params: Any, missing: dict[str, Any]) -> None:
    assert lacking(method, params, NOTHING) == missing
    assert lacking(method, params, EVERYTHING) == {}


def test_sampling_with_tools_has_a_capability_of_its_own() -> None:
    plain = ClientCapabilities(sampling=SamplingCapability())
    assert lacking("sampling/createMessage", SAMPLE, plain) == {}
    with_tools = CreateMessageParams([], 1, tools=[])
    assert lacking("sampling/createMessage", with_tools, plain) == {"sampling": {"tools": {}}}


def test_what_is_missing_is_collected_over_all_inputs() -> None:
    encode = msgspec.json.encode
    required = InputRequiredResult(
        {
            "a": InputRequest("elicitation/create", Raw(encode(FORM))),
            "b": InputRequest("elicitation/create", Raw(encode(URL))),
            "c": InputRequest("sampling/createMessage", Raw(encode(SAMPLE))),
            "d": InputRequest("roots/list"),
        }
    )
    missing: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
    assert missing_capabilities(required, NOTHING) == missing
    assert missing_capabilities(required, EVERYTHING) == {}
    assert missing_capabilities(InputRequiredResult(request_state="s"), NOTHING) == {}


@pytest.mark.parametrize("raw", [UNSET, Raw(b"{}"), Raw(b'{"message":5}')])
def test_a_malformed_input_request_is_named(raw: Any) -> None:
    required = InputRequiredResult({"who": InputRequest("elicitation/create", raw)})
    with pytest.raises(LocalProtocolError, match="input request 'who' is malformed"):
        missing_capabilities(required, EVERYTHING)
