"""What processes use, as the system says."""

import os
import socket
import subprocess
import sys
from collections.abc import Generator

import pytest

from mcpcore.bench.process import Usage, family, listeners, usage

NESTED = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "print('ready', flush=True); input()"], stdin=0)
child.wait()
"""


@pytest.fixture
def nested() -> Generator[int]:
    """A process that has one child; both wait."""
    with subprocess.Popen([sys.executable, "-c", NESTED], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process.pid
        process.communicate(b"\n")


def test_a_family_is_a_process_with_all_that_descends_from_it(nested: int) -> None:
    found = family([nested])
    assert len(found) == 2 and nested in found
    assert os.getpid() not in found
    assert set(found) < set(family([os.getpid()]))


def test_usage_is_summed_over_processes(nested: int) -> None:
    one, both = usage([nested]), usage(family([nested]))
    assert (one.processes, both.processes) == (1, 2)
    assert 1_000_000 < one.memory < both.memory <= both.peak
    assert 0 <= one.cpu <= both.cpu < 60


def test_a_process_that_is_gone_uses_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    assert usage([process.pid]) == Usage(0.0, 0, 0, 0)


@pytest.mark.parametrize(("kind", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_who_listens_on_a_port_is_found(kind: socket.AddressFamily, address: str) -> None:
    with socket.socket(kind) as bound:
        bound.bind((address, 0))
        port = bound.getsockname()[1]
        assert listeners(port) == [], "it does not listen yet"
        bound.listen()
        assert listeners(port) == [os.getpid()]
    assert listeners(port) == []
