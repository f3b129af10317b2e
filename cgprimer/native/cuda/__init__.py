"""The engine for NVIDIA GPUs: tapes as kernels, written with ``numba.cuda``.

``engine`` is the door, ``executable`` runs a tape, ``kernels`` writes its kernel: a line for each
operation of a small tape, a loop that reads the operations of a large one. ``mathematics`` holds
the primitives. Nothing here imports numba before a tape is compiled.
"""
