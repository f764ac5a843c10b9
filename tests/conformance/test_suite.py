"""The official conformance suite, with warnings and skipped checks taken as seriously as failures.

The suite's own verdict hides both: a scenario with nothing to check passes. So each count of checks is compared, too.
"""

import signal
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.support.conformance import Outcome, Suite
from tests.support.serving import Service, free_port

pytestmark = [pytest.mark.peers, pytest.mark.timeout(900)]

HERE: Final = Path(__file__).parent
REVISIONS: Final = ("2025-11-25", "2026-07-28")

REQUIRED: Final = {
    # leg and revision: how many scenarios it requires
    ("server", "2025-11-25"): 30,
    ("server", "2026-07-28"): 37,
    ("client", "2025-11-25"): 18,
    ("client", "2026-07-28"): 32,
}

CHECKS: Final = {
    # leg and revision: scenarios that do not check two things, as most of them do
    ("server", "2025-11-25"): {
        "server-initialize": 3,
        "tools-list": 3,
        "elicitation-sep1034-defaults": 6,
        "elicitation-sep1330-enums": 6,
        "server-sse-multiple-streams": 1,
        "server-session-lifecycle": 3,
        "json-schema-2020-12": 8,
        "server-sse-polling": 3,
    },
    ("server", "2026-07-28"): {
        "server-stateless": 30,
        "tools-list": 4,
        "server-sse-multiple-streams": 1,
        "sep-2164-resource-not-found": 4,
        "caching": 8,
        "input-required-result-basic-elicitation": 3,
        "input-required-result-basic-sampling": 3,
        "input-required-result-basic-list-roots": 3,
        "input-required-result-request-state": 3,
        "input-required-result-multiple-input-requests": 3,
        "input-required-result-multi-round": 4,
        "input-required-result-non-tool-request": 3,
        "input-required-result-validate-input": 3,
        "json-schema-2020-12": 8,
        "http-header-validation": 14,
        "http-custom-header-server-validation": 10,
    },
    ("client", "2025-11-25"): {
        "initialize": 1,
        "elicitation-sep1034-client-defaults": 5,
        "sse-retry": 3,
    },
    ("client", "2026-07-28"): {
        "request-metadata": 8,
        "sep-2322-client-request-state": 5,
        "http-standard-headers": 9,
        "http-custom-headers": 18,
        "http-invalid-tool-headers": 12,
        "json-schema-ref-no-deref": 1,
    },
}


@pytest.fixture(scope="module")
def suite() -> Suite:
    """The suite, installed."""
    return Suite()


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_server_passes_every_check_of_a_revision(suite: Suite, revision: str, tmp_path: Path) -> None:
    port = free_port()
    with Service([sys.executable, str(HERE / "server.py"), str(port)], port) as service:
        outcomes = suite.run_server(f"{service.origin}/mcp", revision, tmp_path)
        assert service.stop() == 128 + signal.SIGTERM
    assert "Traceback" not in service.said, service.said
    offered = {name: outcome for name, outcome in outcomes.items() if not name.startswith("tasks-")}
    required, _ = suite.scenarios("server", revision)
    assert len(required) == REQUIRED["server", revision] and set(required) <= set(offered)
    _assert_complete(offered, CHECKS["server", revision])


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_client_passes_every_check_of_a_revision(suite: Suite, revision: str, tmp_path: Path) -> None:
    required, _ = suite.scenarios("client", revision)
    assert len(required) == REQUIRED["client", revision]
    command = f"{sys.executable} {HERE / 'client.py'}"
    outcomes = {
        name: suite.run_client(command, name, revision, tmp_path / name)
        for name in required
        if not name.startswith("auth/")
    }
    _assert_complete(outcomes, CHECKS["client", revision])


def _assert_complete(outcomes: dict[str, Outcome], checks: dict[str, int]) -> None:
    assert set(checks) <= set(outcomes)
    assert {name: outcome.complaints for name, outcome in outcomes.items() if outcome.complaints} == {}
    passed = {name: outcome.passed for name, outcome in outcomes.items()}
    assert passed == {name: checks.get(name, 2) for name in outcomes}
