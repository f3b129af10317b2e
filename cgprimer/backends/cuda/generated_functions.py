"""Execution of generated source code; no other module of the package executes any."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from cgprimer.backends.cuda.cuda_primitives import FUNCTIONS, UNARY
from cgprimer.backends.cuda.device import import_numba_cuda, is_simulated


def compile_functions(source: str, dtype: str) -> dict[str, Any]:
    """Execute generated source code and return the functions that it defines.

    ``kernel_source.py`` generates the code from a verified plan and the table of primitives. Its
    variables are ``r0``, ``r1`` (rows), ``s0``, ``s1`` (sums) and so on: the code never contains a
    name, a number or a string of a user. It runs once, to define a kernel, which numba compiles.

    Args:
        source: function definitions.
        dtype: dtype of the computation, ``float64`` or ``float32``.
    """
    cuda, scalar_type = import_numba_cuda(), np.dtype(dtype).type
    namespace = {
        "cuda": cuda,
        # A device function; in the simulator, the Python function.
        "device": (lambda f: f) if is_simulated() else (lambda f: cuda.jit(f, device=True)),
        "wide": np.float64,
        "m": _build_numpy_math() if is_simulated() else math,
        "zero": scalar_type(0.0),
        "half": scalar_type(0.5),
        "one": scalar_type(1.0),
        "minus_root_half": scalar_type(-0.7071067811865476),
        "log_two": scalar_type(math.log(2.0)),
    }
    exec(compile(FUNCTIONS + source, "<kernel of cgprimer>", "exec"), namespace)  # noqa: S102
    return namespace


def _build_numpy_math() -> SimpleNamespace:
    """Build a namespace with numpy's functions under the names of ``math``, for the simulator."""
    numpy_names = {f"a{n}": f"arc{n}" for n in ("sin", "cos", "tan", "sinh", "cosh", "tanh")}
    functions = {n: getattr(np, numpy_names.get(n, n)) for n in UNARY if not n.startswith("erf")}
    functions |= {n: _preserve_argument_type(getattr(math, n)) for n in ("erf", "erfc")}
    return SimpleNamespace(**functions, fabs=np.fabs, pow=_compute_power)


def _compute_power(x: Any, y: Any) -> Any:
    """Compute a power with numpy's array loop, which treats nan differently from scalars."""
    return np.power(np.array([x]), np.array([y]))[0]


def _preserve_argument_type(function: Any) -> Any:
    """Wrap a function so that its result has the type of its argument."""
    return lambda x: type(x)(function(x))
