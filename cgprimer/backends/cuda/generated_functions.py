"""Execution of generated source code, the only place of the package that does it."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from cgprimer.backends.cuda.cuda_primitives import FUNCTIONS, UNARY
from cgprimer.backends.cuda.device import numba_cuda, simulated


def compile_functions(source: str, dtype: str) -> dict[str, Any]:
    """Execute generated source code and return its functions.

    ``kernel_source.py`` generates the code from a verified plan and the table of primitives. Its
    variables are ``r0``, ``r1`` (rows), ``s0``, ``s1`` (sums) and so on: it never contains a name,
    a
    number or a text of a user. It runs once, to define a kernel, which numba then compiles.

    Args:
        source: definitions of functions.
        dtype: type of the numbers, ``float64`` or ``float32``.
    """
    cuda, scalar_type = numba_cuda(), np.dtype(dtype).type
    namespace = {
        "cuda": cuda,
        # A device function; in the simulator, the Python function.
        "device": (lambda f: f) if simulated() else (lambda f: cuda.jit(f, device=True)),
        "wide": np.float64,
        "m": _numpy_math() if simulated() else math,
        "zero": scalar_type(0.0),
        "half": scalar_type(0.5),
        "one": scalar_type(1.0),
        "minus_root_half": scalar_type(-0.7071067811865476),
        "log_two": scalar_type(math.log(2.0)),
    }
    exec(compile(FUNCTIONS + source, "<kernel of cgprimer>", "exec"), namespace)  # noqa: S102
    return namespace


def _numpy_math() -> SimpleNamespace:
    """Return numpy's functions under the names of ``math``, for the simulator."""
    numpy_names = {f"a{n}": f"arc{n}" for n in ("sin", "cos", "tan", "sinh", "cosh", "tanh")}
    functions = {n: getattr(np, numpy_names.get(n, n)) for n in UNARY if not n.startswith("erf")}
    functions |= {n: _with_result_type(getattr(math, n)) for n in ("erf", "erfc")}
    return SimpleNamespace(**functions, fabs=np.fabs, pow=_power)


def _power(x: Any, y: Any) -> Any:
    """Compute a power as numpy does for arrays; its scalar version returns other nans."""
    return np.power(np.array([x]), np.array([y]))[0]


def _with_result_type(function: Any) -> Any:
    return lambda x: type(x)(function(x))
