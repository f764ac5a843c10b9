"""Measures one tool of any MCP server, over stdio or HTTP, in either era: `measure`, and ``mcpcore bench`` (docs/bench.md).

The drivers below are no MCP clients. They write prepared requests to pipes and raw sockets, and decode replies into typed
structs, in one thread and without an event loop. How far they go is measured like everything else.
"""

from mcpcore.bench.ceiling import Ceiling
from mcpcore.bench.load import Failure
from mcpcore.bench.measurement import Bench, Sessions, measure, measure_itself
from mcpcore.bench.page import page
from mcpcore.bench.plan import Phase, Plan
from mcpcore.bench.report import DriverUse, Interval, Latency, Report, ServerUse

__all__ = [
    "Bench",
    "Ceiling",
    "DriverUse",
    "Failure",
    "Interval",
    "Latency",
    "Phase",
    "Plan",
    "Report",
    "ServerUse",
    "Sessions",
    "measure",
    "measure_itself",
    "page",
]
