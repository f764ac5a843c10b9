"""The rows, a module per side and transport. A new one adds ``ROWS`` here, and a kind of program to the contestants."""

from typing import Final

from benchmarks.rows import client, http, scale, stdio
from benchmarks.table import Row

__all__ = ["ROWS", "SMOKE"]

ROWS: dict[str, Row] = {row.name: row for row in (*stdio.ROWS, *http.ROWS, *scale.ROWS, *client.ROWS)}
"""By name, in the order of the report."""

SMOKE: Final = (
    "call-32",
    "call-32-modern",
    "sync-1",
    "structured-32",
    "unknown-32",
    "invalid-32",
    "fail-32",
    "progress",
    "echo-1m",
    "result-64m",
    "list-1000",
    "start",
    "import",
    "memory",
    "http-16",
    "http-sessions-16-default",
    "http-workers-2",
    "subscriptions",
    "in-memory-modern",
    "client-32",
    "client-http-16",
)
"""What a smoke run takes by default: every kind of request and of program. The other rows differ in numbers only."""
