"""Functions that numpy lacks, or that would overflow when written naively.

Each takes floats and arrays, element by element. Those that are analytic also take complex
numbers, for the complex step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

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
