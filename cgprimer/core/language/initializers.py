"""Initializers: probability distributions of the values of a declaration.

``parameter W[32,16] = glorot`` declares values without writing 512 numbers. An initializer is part
of the text; numbers are sampled only when values are needed. They depend on a seed, on their use
(declared values or start values), and on the name and the shape of the parameter. Nothing else in
the text matters: editing one declaration does not change the values of the others.

Sources: Glorot and Bengio 2010, "Understanding the difficulty of training deep feedforward neural
networks"; He, Zhang, Ren, Sun 2015, "Delving deep into rectifiers".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from cgprimer.core.language.syntax_tree import Shape

#: The names of the arguments of each initializer.
INITIALIZERS = {
    "zeros": (),
    "ones": (),
    "normal": ("standard deviation",),
    "uniform": ("lower bound", "upper bound"),
    "glorot": (),
    "he": (),
}
MATRIX_INITIALIZERS = ("glorot", "he")  # the variance depends on the sizes of a matrix

VALUES_STREAM = 1  # values of the text: the point of `grad`, the ground truth of generated data
START_STREAM = 2  # start values of a training run


@dataclass(frozen=True, slots=True)
class Initializer:
    """An initializer such as ``normal(0.1)``: a probability distribution of declared values.

    >>> Initializer("uniform", (-1.0, 1.0)).sample("w", (), seed=0, stream=START_STREAM) < 1.0
    True
    """

    name: str
    arguments: tuple[float, ...] = ()

    def sample(self, name: str, shape: Shape, *, seed: int, stream: int) -> Any:
        """Sample the values of a parameter: a float for a scalar, otherwise an array.

        Args:
            name: the name of the parameter.
            shape: the shape of the parameter; ``()`` for a scalar.
            seed: random seed.
            stream: ``VALUES_STREAM`` or ``START_STREAM``, whose samples are independent.

        >>> Initializer("zeros").sample("b", (2,), seed=0, stream=VALUES_STREAM)
        array([0., 0.])
        """
        import numpy as np

        if self.name in ("zeros", "ones"):
            value = float(self.name == "ones")
            return np.full(shape, value) if shape else value
        digest = int.from_bytes(sha256(name.encode()).digest()[:8], "little")
        generator = np.random.default_rng([seed, stream, digest])
        if self.name in ("normal", "he"):
            values = generator.normal(0.0, self._compute_standard_deviation(shape), shape)
        else:
            values = generator.uniform(*self._compute_bounds(shape), shape)
        return values if shape else float(values)

    def _compute_standard_deviation(self, shape: Shape) -> float:
        """Return the standard deviation of ``normal`` or ``he`` for a parameter of this shape."""
        return math.sqrt(2 / shape[-1]) if self.name == "he" else self.arguments[0]

    def _compute_bounds(self, shape: Shape) -> tuple[float, float]:
        """Return the bounds of ``uniform`` or ``glorot`` for a parameter of this shape."""
        if self.name == "glorot":
            limit = math.sqrt(6 / (shape[-1] + shape[-2]))
            return -limit, limit
        low, high = self.arguments
        return low, high


def initializer_arguments_error(name: str, arguments: Sequence[float]) -> str:
    """Return the error message for invalid arguments of an initializer, or an empty string.

    >>> initializer_arguments_error("normal", [])
    "initializer 'normal' takes 1 argument (standard deviation), got 0"
    """
    expected = INITIALIZERS[name]
    if len(arguments) != len(expected):
        count = f"{len(expected) or 'no'} argument{'s' * (len(expected) != 1)}"
        names = f" ({', '.join(expected)})" if expected else ""
        return f"initializer {name!r} takes {count}{names}, got {len(arguments)}"
    if name == "normal" and arguments[0] < 0:
        return f"the standard deviation must not be negative, got {arguments[0]:g}"
    if name == "uniform":
        low, high = arguments
        if low > high:
            return f"the lower bound must not exceed the upper bound, got {low:g} and {high:g}"
        if not math.isfinite(high - low):
            return f"the bounds are too far apart: {low:g} and {high:g}"
    return ""


def initializer_shape_error(name: str, shape: Shape) -> str:
    """Return the error message for an initializer of an unsuitable shape, or an empty string."""
    if name not in MATRIX_INITIALIZERS or len(shape) >= 2:
        return ""
    kind = "vector" if shape else "scalar"
    return f"initializer {name!r} requires a matrix [outputs,inputs], got a {kind}"
