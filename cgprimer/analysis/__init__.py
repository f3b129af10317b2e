"""Derivatives explained and compared: traces, rules, comparison of methods, LaTeX, export.

The package may import `errors`, `support`, `core`, `recording`, `networks` and `backends`. Start
with `trace.py`, then `comparison.py`.
"""
