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

#: The initializers with the names of their arguments.
INITIALIZERS = {
    "zeros": (),
    "ones": (),
    "normal": ("standard deviation",),
    "uniform": ("lower bound", "upper bound"),
    "glorot": (),
    "he": (),
}
NEEDING_FANS = ("glorot", "he")  # their variance depends on the sizes of a matrix

VALUES_STREAM = 1  # values of the text: the point of `grad`, the ground truth of generated data
START_STREAM = 2  # start values of a training run


@dataclass(frozen=True, slots=True)
class Initializer:
    """A distribution from which declared values are sampled: its name and its arguments.

    >>> Initializer("uniform", (-1.0, 1.0)).sample("w", (), seed=0, stream=START_STREAM) < 1.0
    True
    """

    name: str
    arguments: tuple[float, ...] = ()

    def sample(self, name: str, shape: Shape, *, seed: int, stream: int) -> Any:
        """Return sampled values of a parameter: a float, or an array of its shape.

        Args:
            name: the name of the parameter.
            shape: its shape; ``()`` for a scalar.
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
            values = generator.normal(0.0, self._deviation(shape), shape)
        else:
            values = generator.uniform(*self._bounds(shape), shape)
        return values if shape else float(values)

    def _deviation(self, shape: Shape) -> float:
        return math.sqrt(2 / shape[-1]) if self.name == "he" else self.arguments[0]

    def _bounds(self, shape: Shape) -> tuple[float, float]:
        if self.name == "glorot":
            limit = math.sqrt(6 / (shape[-1] + shape[-2]))
            return -limit, limit
        low, high = self.arguments
        return low, high


def arguments_problem(name: str, arguments: Sequence[float]) -> str:
    """Return an error message if the arguments do not fit the initializer, else an empty text.

    >>> arguments_problem("normal", [])
    "initializer 'normal' takes 1 argument (standard deviation), got 0"
    """
    expected = INITIALIZERS[name]
    if len(arguments) != len(expected):
        count = f"{len(expected) or 'no'} argument{'s' * (len(expected) != 1)}"
        listed = f" ({', '.join(expected)})" if expected else ""
        return f"initializer {name!r} takes {count}{listed}, got {len(arguments)}"
    if name == "normal" and arguments[0] < 0:
        return f"the standard deviation must not be negative, got {arguments[0]:g}"
    if name == "uniform":
        low, high = arguments
        if low > high:
            return f"the lower bound must not exceed the upper bound, got {low:g} and {high:g}"
        if not math.isfinite(high - low):
            return f"the bounds are too far apart: {low:g} and {high:g}"
    return ""


def shape_problem(name: str, shape: Shape) -> str:
    """Return an error message if the initializer cannot have this shape, else an empty text."""
    if name not in NEEDING_FANS or len(shape) >= 2:
        return ""
    kind = "vector" if shape else "scalar"
    return f"initializer {name!r} needs a matrix [outputs,inputs], got a {kind}"
