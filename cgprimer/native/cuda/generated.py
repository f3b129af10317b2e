"""The one place in the package where generated text becomes functions."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from cgprimer.native.cuda.device import simulated, toolkit
from cgprimer.native.cuda.mathematics import FUNCTIONS, UNARY


def functions(text: str, dtype: str) -> dict[str, Any]:
    """The functions that a generated text defines.

    The text is written by ``kernels.py`` from a verified plan and the table of primitives. In it
    rows are called ``r0``, ``r1`` and so on, sums ``s0``, ``s1``: no name, number or text of a
    user's ever enters it. It is run once, to define a kernel, which numba then compiles.

    Args:
        text: definitions of functions.
        dtype: type of the numbers, ``float64`` or ``float32``.
    """
    cuda, real = toolkit(), np.dtype(dtype).type
    found = {
        "cuda": cuda,
        # A function that kernels call; in the simulator simply the function itself.
        "device": (lambda f: f) if simulated() else (lambda f: cuda.jit(f, device=True)),
        "wide": np.float64,
        "m": _numpy_math() if simulated() else math,
        "zero": real(0.0),
        "half": real(0.5),
        "one": real(1.0),
        "minus_root_half": real(-0.7071067811865476),
        "log_two": real(math.log(2.0)),
    }
    exec(compile(FUNCTIONS + text, "<kernel of cgprimer>", "exec"), found)  # noqa: S102
    return found


def _numpy_math() -> SimpleNamespace:
    """``math`` with numpy's functions, for the simulator."""
    arc = {f"a{n}": f"arc{n}" for n in ("sin", "cos", "tan", "sinh", "cosh", "tanh")}
    found = {n: getattr(np, arc.get(n, n)) for n in UNARY if not n.startswith("erf")}
    found |= {n: _same_type(getattr(math, n)) for n in ("erf", "erfc")}
    return SimpleNamespace(**found, fabs=np.fabs, pow=_power)


def _power(x: Any, y: Any) -> Any:
    """As numpy does it for arrays, and as C does; its way for single numbers has other nans."""
    return np.power(np.array([x]), np.array([y]))[0]


def _same_type(function: Any) -> Any:
    return lambda x: type(x)(function(x))
