"""Every row of the table in the negotiator's docstring."""

import itertools
from typing import Any

import pytest
from msgspec import UNSET

from mcpcore.protocol.negotiation import Discover, Fail, Initialize, Settled, Step, VersionNegotiator
from mcpcore.types import ErrorData
from mcpcore.versions import LATEST_LEGACY, LATEST_MODERN, LEGACY_VERSIONS, MODERN_VERSIONS, VERSIONS

LEGACY_REQUEST_ERRORS = (-32700, -32600, -32601, -32602, -32603, -32000, -32001, 0, 1, -1)


def unsupported(*supported: Any, data: Any = None) -> ErrorData:
    data = {"supported": list(supported), "requested": "x"} if data is None else data
    return ErrorData(-32022, "Unsupported protocol version", data)


def started(*versions: str) -> VersionNegotiator:
    negotiator = VersionNegotiator(versions)
    negotiator.start()
    return negotiator


def test_a_client_that_speaks_modern_revisions_asks_for_discovery_with_the_newest() -> None:
    for versions in itertools.permutations(VERSIONS):
        assert VersionNegotiator(versions).start() == Discover(LATEST_MODERN)


def test_a_client_that_speaks_legacy_revisions_only_initializes_with_the_newest() -> None:
    for versions in itertools.permutations(LEGACY_VERSIONS):
        assert VersionNegotiator(versions).start() == Initialize(LATEST_LEGACY)


# -- came back from discover ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("versions", [VERSIONS, MODERN_VERSIONS])
def test_a_result_with_a_modern_version_in_common_settles(versions: tuple[str, ...]) -> None:
    step = started(*versions).discovered(["2099-01-01", LATEST_MODERN, "2024-11-05"])
    assert step == Settled(LATEST_MODERN)


def test_a_result_with_only_legacy_versions_in_common_leads_to_initialize() -> None:
    assert started(*VERSIONS).discovered(["2024-11-05", "2025-03-26"]) == Initialize("2025-03-26")


@pytest.mark.parametrize("supported", [[], ["2099-01-01"], ["2024-11-05"]])
def test_a_result_with_nothing_in_common_fails(supported: list[str]) -> None:
    step = started(*MODERN_VERSIONS).discovered(supported)
    assert isinstance(step, Fail) and "no protocol version in common" in step.reason
    if "2024-11-05" not in supported:
        assert isinstance(started(*VERSIONS).discovered(supported), Fail)


def test_the_failure_names_what_both_sides_speak() -> None:
    step = started(*MODERN_VERSIONS).discovered(["2099-01-01"])
    assert isinstance(step, Fail)
    assert "2099-01-01" in step.reason and LATEST_MODERN in step.reason


@pytest.mark.parametrize("versions", [VERSIONS, MODERN_VERSIONS])
def test_unsupported_with_a_modern_version_in_common_discovers_again_once(versions: tuple[str, ...]) -> None:
    negotiator = started(*versions)
    assert negotiator.discover_failed(unsupported("2099-01-01", LATEST_MODERN)) == Discover(LATEST_MODERN)
    step = negotiator.discover_failed(unsupported(LATEST_MODERN))
    assert isinstance(step, Fail) and "refuses it" in step.reason


def test_unsupported_with_only_legacy_versions_in_common_leads_to_initialize() -> None:
    assert started(*VERSIONS).discover_failed(unsupported("2025-06-18")) == Initialize("2025-06-18")
    assert isinstance(started(*MODERN_VERSIONS).discover_failed(unsupported("2025-06-18")), Fail)


@pytest.mark.parametrize("versions", [VERSIONS, MODERN_VERSIONS])
@pytest.mark.parametrize(
    "error",
    [
        unsupported("2099-01-01"),
        unsupported(),
        unsupported(data=5),
        unsupported(data={"supported": None}),
        unsupported(data={"supported": [1]}),
        ErrorData(-32022, "x", UNSET),
    ],
)
def test_unsupported_with_nothing_in_common_fails(versions: tuple[str, ...], error: ErrorData) -> None:
    step = started(*versions).discover_failed(error)
    assert isinstance(step, Fail) and step.error is error


@pytest.mark.parametrize("versions", [VERSIONS, MODERN_VERSIONS])
@pytest.mark.parametrize("code", [-32020, -32021])
def test_other_errors_of_modern_servers_fail_and_do_not_fall_back(versions: tuple[str, ...], code: int) -> None:
    error = ErrorData(code, "Header mismatch")
    step = started(*versions).discover_failed(error)
    assert step == Fail("the server refused server/discover: Header mismatch", error)


@pytest.mark.parametrize("error", [None, *(ErrorData(code, "no") for code in LEGACY_REQUEST_ERRORS)])
def test_any_other_error_and_silence_mean_a_legacy_server(error: ErrorData | None) -> None:
    assert started(*VERSIONS).discover_failed(error) == Initialize(LATEST_LEGACY)
    step = started(*MODERN_VERSIONS).discover_failed(error)
    assert isinstance(step, Fail) and "legacy revisions only" in step.reason and step.error is error


def test_the_newest_legacy_version_that_is_allowed_is_asked_for() -> None:
    assert started("2024-11-05", LATEST_MODERN).discover_failed(None) == Initialize("2024-11-05")


# -- came back from initialize -------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", LEGACY_VERSIONS)
def test_a_version_that_we_speak_settles(version: str) -> None:
    assert started(*VERSIONS).initialized(version) == Settled(version)


@pytest.mark.parametrize("version", ["1999-01-01", "", "2025-06-18 ", LATEST_MODERN, "2024-11-05"])
def test_another_version_fails(version: str) -> None:
    step = started("2025-06-18", LATEST_MODERN).initialized(version)
    assert isinstance(step, Fail)
    assert repr(version) in step.reason and "2025-06-18" in step.reason


def test_initialize_refused_with_a_modern_version_in_common_discovers_once() -> None:
    negotiator = started(*VERSIONS)
    assert negotiator.discover_failed(None) == Initialize(LATEST_LEGACY)
    assert negotiator.initialize_failed(unsupported(LATEST_MODERN)) == Discover(LATEST_MODERN)
    assert isinstance(negotiator.discover_failed(unsupported(LATEST_MODERN)), Fail)


@pytest.mark.parametrize(
    "error", [unsupported("2025-06-18"), unsupported(), *(ErrorData(code, "no") for code in LEGACY_REQUEST_ERRORS)]
)
def test_any_other_error_to_initialize_fails(error: ErrorData) -> None:
    step = started(*VERSIONS).initialize_failed(error)
    assert step == Fail(f"the server refused initialize: {error.message}", error)


def test_a_legacy_client_is_not_led_to_a_modern_version() -> None:
    assert isinstance(started(*LEGACY_VERSIONS).initialize_failed(unsupported(LATEST_MODERN)), Fail)


def test_negotiation_always_ends() -> None:
    """Whatever a server answers, again and again, no more than a handful of messages is sent."""
    answers = [unsupported(LATEST_MODERN), unsupported("2025-06-18"), ErrorData(-32601, "no"), None, "result", "broken"]
    for script in itertools.product(answers, repeat=5):
        negotiator = VersionNegotiator(VERSIONS)
        step: Step | Settled = negotiator.start()
        for answer in script:
            if isinstance(step, Settled | Fail):
                break
            discovering = isinstance(step, Discover)
            if answer == "result":
                step = negotiator.discovered(VERSIONS) if discovering else negotiator.initialized(step.version)
            elif answer == "broken" or answer is None:
                error = ErrorData(-32600, "broken") if answer else None
                step = negotiator.discover_failed(error) if discovering else Fail("given up")
            else:
                assert isinstance(answer, ErrorData)
                step = negotiator.discover_failed(answer) if discovering else negotiator.initialize_failed(answer)
        assert isinstance(step, Settled | Fail), script
