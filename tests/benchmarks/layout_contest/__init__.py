"""Layout libraries measured on the graphs of this project, for `tests/benchmarks/layouts.py`."""
