"""Fast engines for tapes: `numpy` in blocks, `cpu` by LLVM, `cuda` by numba, and their plans.

The package imports `cgprimer.core`, `cgprimer.recording` and `cgprimer.support`; core finds its
engines by entry points. Start with `plans/planning.py`, then `cpu/cpu_engine.py`.
"""
