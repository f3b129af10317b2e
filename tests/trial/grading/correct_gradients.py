"""Correct gradients of a question, computed in ways that share no code with the package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import sympy

from tests.trial.grading.evaluation import NUMPY, Question, Values

Gradient = Callable[[Values], Any]
COMMON = ["exp", "sqrt", "sin", "cos", "tan", "tanh", "sinh", "cosh", "log", "atan", "asin", "acos"]
MPMATH: Values = {
    **{name: getattr(mpmath, name) for name in COMMON},
    "sigmoid": lambda a: 1 / (1 + mpmath.exp(-a)),
    "softplus": lambda a: mpmath.log(1 + mpmath.exp(a)),
    "relu": lambda a: a if a > 0 else 0 * a,
    "leaky_relu": lambda a, s=0.01: mpmath.mpf(s) * a if a < 0 else a,
    "abs": abs,
    "max": max,
    "min": min,
    "less": lambda a, b: a < b,
    "where": lambda c, a, b: a if c else b,
    "clamp": lambda a, low, high: min(max(a, low), high),
}
SYMPY: Values = {
    **{name: getattr(sympy, name) for name in COMMON},
    "sigmoid": lambda a: 1 / (1 + sympy.exp(-a)),
    "softplus": lambda a: sympy.log(1 + sympy.exp(a)),
    "relu": lambda a: sympy.Piecewise((a, a > 0), (0, True)),
    "leaky_relu": lambda a, s=0.01: sympy.Piecewise((s * a, a < 0), (a, True)),
    "abs": lambda a: sympy.Piecewise((-a, a < 0), (a, True)),
    "max": lambda a, b: sympy.Piecewise((a, a > b), (b, True)),
    "min": lambda a, b: sympy.Piecewise((a, a < b), (b, True)),
    "less": lambda a, b: a < b,
    "where": lambda c, a, b: sympy.Piecewise((a, c), (b, True)),
    "clamp": lambda a, low, high: sympy.Piecewise((low, a < low), (high, a > high), (a, True)),
}


def by_mpmath(question: Question) -> Gradient:
    """Return derivatives from differences with forty digits, rounded to floats."""

    def gradient(values: Values) -> Values:
        with mpmath.workdps(60):
            at = {n: mpmath.mpf(v) for n, v in values.items()}
            h, out = mpmath.mpf(10) ** -25, {}
            for name in question.wrt:
                up, down = {**at, name: at[name] + h}, {**at, name: at[name] - h}
                rise = question.value(up, MPMATH) - question.value(down, MPMATH)
                out[name] = float(rise / (2 * h))
        return out

    return gradient


def by_sympy(question: Question) -> Gradient:
    """Return derivatives of the symbolic expression, compiled for math."""
    symbols = {n: sympy.Symbol(n, real=True) for n in question.names()}
    formula = question.value(symbols, SYMPY)
    slopes = [sympy.diff(formula, symbols[n]) for n in question.wrt]
    function = sympy.lambdify(list(symbols.values()), slopes, "math", cse=True)
    return lambda values: [float(s) for s in function(*(float(values[n]) for n in symbols))]


def by_complex_step(question: Question, dtype: Any = complex) -> Gradient:
    """Return the imaginary part of a complex step, in double precision or in single as torch."""

    def slope(f: Callable[[Any], Any], base: Any, index: Any) -> float:
        moved = base.copy()
        moved[index] += 1e-20j
        return float(np.imag(f(moved)) / 1e-20)

    return lambda values: _slopes(question, values, dtype, slope)


def by_differences(question: Question, step: float, relative: bool = False) -> Gradient:
    """Return central differences with a fixed step, or one that grows with the number."""

    def slope(f: Callable[[Any], Any], base: Any, index: Any) -> float:
        h = step * max(1.0, abs(float(base[index]))) if relative else step
        up, down = base.copy(), base.copy()
        up[index] += h
        down[index] -= h
        return float((f(up) - f(down)) / (up[index] - down[index] if relative else 2 * h))

    return lambda values: _slopes(question, values, float, slope)


def _slopes(
    question: Question, values: Values, dtype: Any, slope: Callable[..., float]
) -> list[Any]:
    real = np.float32 if dtype == np.complex64 else float
    at = {n: np.asarray(v, dtype=real) for n, v in values.items()}
    result = []
    for name in question.wrt:
        base = at[name].astype(dtype)
        f = lambda moved, name=name: question.value({**at, name: moved}, NUMPY)  # noqa: E731
        out = np.empty(base.shape, real)
        for index in np.ndindex(base.shape):
            out[index] = slope(f, base, index)
        result.append(out if base.shape else float(out))
    return result


ARRAY_WAYS: dict[str, Callable[[Question], Gradient]] = {
    "complex step": by_complex_step,
    "single precision": lambda q: by_complex_step(q, np.complex64),
    "central differences 1e-5": lambda q: by_differences(q, 1e-5),
    "central differences 1e-6": lambda q: by_differences(q, 1e-6),
    "central differences 6e-6 relative": lambda q: by_differences(q, 6e-6, relative=True),
}
SCALAR_WAYS = {"mpmath": by_mpmath, "sympy": by_sympy, **ARRAY_WAYS}
