"""Memory over many sessions and many calls, in a process of its own. Run by ``pytest -m soak``."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

pytestmark = [
    pytest.mark.soak,
    pytest.mark.timeout(300, func_only=True),
    pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not tell what is resident"),
]

PROGRAM: Final = str(Path(__file__).parent / "many_sessions.py")


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    """What the program has measured."""
    done = subprocess.run([sys.executable, PROGRAM], capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


def test_an_idle_session_takes_no_more_than_four_kibibytes(report: dict[str, Any]) -> None:
    assert report["bytes of a session"] <= 4096


def test_sessions_that_were_abandoned_leave_nothing_behind(report: dict[str, Any]) -> None:
    rounds = report["resident after each round of sessions"]
    assert len(rounds) == 5 and rounds[4] <= 1.05 * rounds[1], rounds


def test_a_session_does_not_grow_with_its_calls(report: dict[str, Any]) -> None:
    rounds = report["resident after each round of calls"]
    assert len(rounds) == 5 and rounds[4] <= 1.01 * rounds[1], rounds
