"""The rows, one module per transport. A new transport adds a module with ``ROWS`` here, and a kind of program to its contestants."""

from benchmarks.rows import stdio
from benchmarks.table import Row

__all__ = ["ROWS"]

ROWS: dict[str, Row] = {row.name: row for row in stdio.ROWS}
"""By name, in the order of the report."""
