"""Primitives on numpy arrays, element by element, of any shape; they broadcast and never raise.

Those that are analytic also take complex numbers, for the complex step. The caller silences
numpy's warnings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cgprimer.core.primitives.registry import primitive

Array = Any


def sign_of_real_part(x: Array) -> Array:
    """+1 or -1 in the precision of x; complex steps stay on one branch."""
    real = np.asarray(x).real
    return np.where(real >= 0, 1.0, -1.0).astype(real.dtype)


def sigmoid(x: Array) -> Array:
    """1/(1 + exp(-x)) without overflow."""
    sign = sign_of_real_part(x)
    decay = np.exp(-sign * x)  # at most 1: exp never sees a large positive argument
    return np.where(sign > 0, 1.0, decay) / (1.0 + decay)


def softplus(x: Array) -> Array:
    """log(1 + exp(x)) without overflow."""
    sign = sign_of_real_part(x)
    return np.where(sign > 0, x, 0.0) + np.log1p(np.exp(-sign * x))


def step(x: Array) -> Array:
    """0, 1/2 or 1 by the sign."""
    return np.heaviside(x, 0.5)


def relu(x: Array) -> Array:
    """The positive part."""
    return np.maximum(x, 0.0)


def leaky_relu(x: Array, slope: Array) -> Array:
    """x, or slope*x below 0."""
    return np.where(np.less(x, 0.0), slope * x, x)


def clamp(x: Array, low: Array, high: Array) -> Array:
    """x, kept between low and high; high wins if they cross."""
    return np.minimum(np.maximum(x, low), high)


def less(x: Array, y: Array) -> Array:
    """1 where x < y, else 0."""
    return np.less(x, y).astype(np.result_type(x, y, np.float32))


def equal(x: Array, y: Array) -> Array:
    """1 where x = y, else 0."""
    return np.equal(x, y).astype(np.result_type(x, y, np.float32))


def where(condition: Array, x: Array, y: Array) -> Array:
    """x where the condition is not 0, else y."""
    return np.where(np.not_equal(condition, 0.0), x, y)


def erf(x: Array) -> Array:
    """The error function, at complex numbers too."""
    from scipy import special

    return special.erf(x)


def erfc(x: Array) -> Array:
    """One minus the error function, with all digits."""
    from scipy import special

    return special.erfc(x)


def gelu(x: Array) -> Array:
    """x times the normal distribution function."""
    return 0.5 * x * erfc(-0.7071067811865476 * x)  # erfc keeps the digits that 1 + erf loses


def copy(x: Array) -> Array:
    """The same value."""
    return np.positive(x)


FUNCTIONS: dict[str, Callable[..., Array]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "neg": np.negative, "copy": copy, "pow": np.power,
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log_base": lambda a, b: np.log(a) / np.log(b),
    "log1p": np.log1p, "log2": np.log2, "log10": np.log10, "logaddexp": np.logaddexp,
    "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "sec": lambda a: 1.0 / np.cos(a), "csc": lambda a: 1.0 / np.sin(a),
    "cot": lambda a: 1.0 / np.tan(a),
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "asec": lambda a: np.arccos(1.0 / a), "acsc": lambda a: np.arcsin(1.0 / a),
    "acot": lambda a: np.arctan(1.0 / a),
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
    "sech": lambda a: 1.0 / np.cosh(a), "csch": lambda a: 1.0 / np.sinh(a),
    "coth": lambda a: 1.0 / np.tanh(a),
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "asech": lambda a: np.arccosh(1.0 / a), "acsch": lambda a: np.arcsinh(1.0 / a),
    "acoth": lambda a: np.arctanh(1.0 / a),
    "sigmoid": sigmoid, "softplus": softplus, "relu": relu, "leaky_relu": leaky_relu,
    "erf": erf, "erfc": erfc, "gelu": gelu,
    "abs": np.abs, "sign": np.sign, "heaviside": step, "step": step,
    "max": np.maximum, "min": np.minimum, "clamp": clamp, "stop_gradient": copy,
    "where": where, "less": less, "equal": equal,
}  # fmt: skip


def function(name: str) -> Callable[..., Array]:
    """A primitive on arrays.

    >>> function("max")(np.array([1.0, 5.0]), 3.0)
    array([3., 5.])
    """
    return primitive(name).function or FUNCTIONS[name]
