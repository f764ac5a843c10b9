"""Measures MCP servers side by side: ``python -m benchmarks --help``, and docs/performance.md for the method.

A table of contestants and rows. A contestant (`benchmarks.peers`) is a small server program written on one framework; a row
(`benchmarks.rows`) is one question put to every contestant that has a program for the row's transport.
"""
