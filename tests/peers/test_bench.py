"""`mcpcore.bench` measures servers that other people's frameworks serve, over both transports and in all eras."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.peers import prepare
from benchmarks.table import Contestant
from mcpcore.bench import Plan, Report, measure
from tests.support.installs import official_sdk, python_server, typescript_server
from tests.support.serving import Service, free_port

pytestmark = [pytest.mark.peers, pytest.mark.timeout(300, func_only=True)]

HERE = Path(__file__).parent
FRAMEWORKS = ("mcp", "fastmcp", "typescript")
REVISIONS = ("2026-07-28", "2025-11-25", "2025-06-18")
LIMIT = 60.0


def plan(expect: str | None = None, concurrency: int = 4) -> Plan:
    return Plan(concurrency=concurrency, seconds=None, count=40, warm_up=0, ceiling=0, expect=expect)


@pytest.fixture(scope="module", name="contestants")
def fixture_contestants() -> dict[str, Contestant]:
    return prepare(FRAMEWORKS)


@contextmanager
def served(contestant: Contestant, state: str, replies: str) -> Generator[str]:
    port = free_port()
    with Service([*contestant.programs["http"], "0", state, replies, "1", str(port)], port) as service:
        yield f"{service.origin}/mcp"


def assert_right(report: Report, version: str) -> None:
    assert report.is_right, (report.failures, report.ended_by)
    assert (report.calls, report.protocol_version) == (40, version)


@pytest.mark.parametrize("version", REVISIONS)
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_over_stdio(contestants: dict[str, Contestant], name: str, version: str) -> None:
    command = (*contestants[name].programs["stdio"], "0")
    arguments = {"a": 2, "b": 3}
    report = measure(command, "add", arguments, plan=plan("5"), protocol_version=version, timeout=LIMIT)
    assert_right(report, version)
    assert report.server_use is not None and report.server_use.memory > 10_000_000
    assert report.driver.late == 0


@pytest.mark.parametrize("replies", ["json", "default"])
@pytest.mark.parametrize("state", ["stateless", "sessions"])
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_over_http(contestants: dict[str, Contestant], name: str, state: str, replies: str) -> None:
    with served(contestants[name], state, replies) as url:
        for version in REVISIONS:
            report = measure(url, "echo", {"text": "ä" * 50}, plan=plan("ä" * 50), protocol_version=version)
            assert_right(report, version)
            assert report.server_use is not None
        shared = measure(url, "add", {"a": 1, "b": 1}, plan=plan("2"), protocol_version="2025-11-25", sessions="shared")
        assert_right(shared, "2025-11-25")


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_the_newest_revision_is_found(contestants: dict[str, Contestant], name: str) -> None:
    report = measure(
        (*contestants[name].programs["stdio"], "0"), "add", {"a": 1, "b": 1}, plan=plan("2"), timeout=LIMIT
    )
    assert_right(report, "2026-07-28")


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_progress_does_no_harm_and_errors_are_counted(contestants: dict[str, Contestant], name: str) -> None:
    command = (*contestants[name].programs["stdio"], "0")
    counted = measure(command, "count", {"steps": 3}, plan=plan("done"), timeout=LIMIT)
    assert_right(counted, "2026-07-28")
    failed = measure(command, "add", {"a": "not a number"}, plan=plan(), timeout=LIMIT)
    assert failed.failed == 40 and failed.calls == 0
    assert set(failed.failures) <= {"tool error", "JSON-RPC error"}


@pytest.mark.parametrize("generation", ["1", "2"])
def test_the_official_sdk_of_either_generation(generation: str) -> None:
    command = (official_sdk(generation), str(HERE / f"official_server_{generation}.py"))
    version = "2025-11-25" if generation == "1" else "2026-07-28"
    assert_right(measure(command, "add", {"a": 1, "b": 2}, plan=plan("3"), timeout=LIMIT), version)


@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25"])
def test_a_tool_that_asks_somebody_is_told_that_there_is_nobody(version: str) -> None:
    command = (official_sdk("2"), str(HERE / "official_server_2.py"))
    report = measure(command, "book", plan=plan(), protocol_version=version, timeout=LIMIT)
    assert report.failed == 40 and report.ended_by is None
    assert set(report.failures) <= {"tool error", "JSON-RPC error", "input required"}


def test_servers_that_people_run() -> None:
    clock = (python_server("mcp-server-time"), "--local-timezone", "UTC")
    report = measure(clock, "get_current_time", {"timezone": "Asia/Tokyo"}, plan=plan(), timeout=LIMIT)
    assert report.is_right, report.failures
    everything = (typescript_server("mcp-server-everything"),)
    report = measure(everything, "echo", {"message": "hello"}, plan=plan("Echo: hello"), timeout=LIMIT)
    assert report.is_right, report.failures
    weather = '{"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82}'
    report = measure(everything, "get-structured-content", {"location": "Chicago"}, plan=plan(weather), timeout=LIMIT)
    assert report.is_right, report.failures


@pytest.mark.parametrize("sessions", ["connection", "shared"])
def test_server_everything_over_http(sessions: str) -> None:
    port = free_port()
    command = [typescript_server("mcp-server-everything"), "streamableHttp"]
    with Service(command, port, env={"PORT": str(port)}) as service:
        url = f"{service.origin}/mcp"
        report = measure(
            url,
            "echo",
            {"message": "hello"},
            plan=plan("Echo: hello"),
            sessions=sessions,  # type: ignore[arg-type]  # one of both
        )
    assert report.is_right, report.failures
    assert report.streamed == 40
