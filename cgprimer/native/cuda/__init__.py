"""The engine for NVIDIA GPUs: tapes as kernels, written with ``numba.cuda``.

``engine`` is the door. A small tape becomes straight-line code (``source``, ``straight``); a large
one is data that a kernel written once reads (``program``, ``interpreter_source``, ``interpreted``).
``mathematics`` holds the primitives.
Nothing here imports numba before a tape is compiled.
"""
