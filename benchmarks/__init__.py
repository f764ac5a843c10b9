"""Measures MCP servers and clients side by side: ``python -m benchmarks --help``; docs/performance.md has the method.

A table of contestants and rows. A contestant (`benchmarks.peers`) is a set of small programs written on one framework;
a row (`benchmarks.rows`) is one question put to every contestant that has the program it needs.
"""
