"""The commands over HTTP: a server that is run, listed and called by its URL, on either transport."""

import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from mcpcore.cli import main
from tests.support.serving import Service, free_port

SERVER = str(Path(__file__).parents[2] / "examples" / "order_service" / "server.py")


def run_command(transport: str, port: int, *options: str) -> list[str]:
    arguments = ["run", SERVER, "--transport", transport, "--port", str(port), *options]
    return [sys.executable, "-m", "mcpcore", *arguments]


@pytest.fixture(params=["http", "sse"])
def service(request: pytest.FixtureRequest) -> Generator[tuple[Service, str]]:
    """The order service and its URL."""
    port = free_port()
    with Service(run_command(request.param, port), port) as running:
        yield running, f"{running.origin}/{'mcp' if request.param == 'http' else 'sse'}"


def test_a_url_is_listed_and_called(service: tuple[Service, str], capsys: pytest.CaptureFixture[str]) -> None:
    _, url = service
    assert main(["list", url]) == 0
    assert "get_order" in capsys.readouterr().out
    assert main(["call", url, "get_order", "orderId=ORD-10001"]) == 0
    assert '"ORD-10001"' in capsys.readouterr().out
    assert main(["call", url, "get_order", "orderId=ORD-0"]) == 1
    assert capsys.readouterr().err


def test_it_says_where_it_serves_and_ends_when_told(service: tuple[Service, str]) -> None:
    running, url = service
    assert running.stop() == 128 + signal.SIGTERM
    assert running.said.strip() == f"Serving order-service at {url}"


def test_an_older_revision_can_be_asked_for(service: tuple[Service, str], capsys: pytest.CaptureFixture[str]) -> None:
    _, url = service
    assert main(["call", "--protocol-version", "2024-11-05", url, "get_order", "orderId=ORD-10001"]) == 0
    assert '"ORD-10001"' in capsys.readouterr().out


def test_a_port_that_is_taken_is_explained_with_status_3() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        command = run_command("http", taken.getsockname()[1], "--host", "127.0.0.1")
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 3
    assert "cannot listen on 127.0.0.1" in done.stderr and "Traceback" not in done.stderr
