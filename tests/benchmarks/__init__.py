"""Benchmarks of docs/internals/performance.md: ``python -m tests.benchmarks --help``."""
