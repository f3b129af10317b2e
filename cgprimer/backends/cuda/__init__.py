"""The engine ``cuda`` for NVIDIA GPUs: tapes as kernels, compiled by ``numba.cuda``.

Start reading in ``cuda_engine``. ``cuda_executable`` runs a tape, and ``kernel_source`` generates
the kernel: straight-line code for a small tape, an interpreter for a large one.
``cuda_primitives`` has the expressions of the primitives. This package imports numba only when a
tape is compiled.
"""
