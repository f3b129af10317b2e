"""Parameters as one vector of all their numbers: what optimizers and engines work on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import accumulate
from math import prod
from operator import itemgetter
from typing import Any

import numpy as np

from cgprimer.backends.call_arguments import convert_scalars
from cgprimer.errors import MissingValueError, ShapeError, UsageError
from cgprimer.expressions import ExpressionGraph, Shape
from cgprimer.support.array_values import convert_value
from cgprimer.tapes import elements

Array = Any


class ParameterVectors:
    """A graph's parameters, one after the other: from names and values to a vector, and back.

    Attributes:
        shapes: of each parameter; ``()`` of one that is a number.
        elements: what the numbers are called, in the vector's order.

    >>> import cgprimer
    >>> made = ParameterVectors(cgprimer.parse("parameter w[2]; input x[2]; xw = w @ x + b"))
    >>> made.elements, made.vector({"w": 1.0, "b": 2.0})
    (('w[0]', 'w[1]', 'b'), array([1., 1., 2.]))
    """

    def __init__(self, graph: ExpressionGraph) -> None:
        self.graph, names = graph, graph.parameters
        self.shapes: dict[str, Shape] = {n: graph.shapes.get(n, ()) for n in names}
        self.elements = tuple(e for n, shape in self.shapes.items() for e in elements(n, shape))
        ends = list(accumulate(map(prod, self.shapes.values())))
        parts = map(slice, [0, *ends], ends)
        self._parts = list(zip(names, parts, self.shapes.values(), strict=True))
        self.has_scalars_only = not any(self.shapes.values())
        # Of 25,000 weights, each would be looked up by Python otherwise.
        self._chosen: Callable[[Any], Any] = itemgetter(*names) if names else lambda given: ()

    def __len__(self) -> int:
        """How many numbers there are."""
        return len(self.elements)

    def vector(self, values: Mapping[str, Any]) -> Array:
        """The numbers of all parameters; shape (numbers,).

        Raises:
            MissingValueError: a parameter has no value.
            ShapeError, UsageError, EngineError: a value has another shape, or is no real number.
        """
        try:
            given = self._chosen(values)
            if not self.has_scalars_only:
                given = given if len(self.shapes) > 1 else (given,)
                named = zip(self.shapes.items(), given, strict=True)
                return np.concatenate([_flat(name, v, shape) for (name, shape), v in named])
            found = np.asarray(given)
        except KeyError as error:
            raise MissingValueError(f"missing value for the parameter {error.args[0]!r}") from None
        except (TypeError, IndexError):
            said = f"parameters are given by name, as in {{'k': 1.0}}, not as {values!r}"
            raise UsageError(said) from None
        except ValueError:  # arrays of several shapes among the values
            found = np.zeros(0)
        if found.dtype.kind in "fiu" and found.size == len(self) and found.ndim < 2:
            return found.astype(float).reshape(len(self))
        return convert_scalars(values, self.elements, np.dtype(float))  # names the missing value

    def sampled_start(self, seed: int) -> Array:
        """Return start values of all parameters, determined by a seed; shape (numbers,).

        They are samples of the initializers that the graph declares, otherwise uniform in [0, 1).
        """
        start = np.random.default_rng(seed).random(len(self))
        parts = self.parts(start)
        for name, value in self.graph.sampled_start(seed).items():
            parts[name][...] = value
        return start

    def values(self, vector: Array) -> dict[str, Any]:
        """For each parameter a float, or an array of its shape."""
        if self.has_scalars_only:
            return dict(zip(self.elements, vector.tolist(), strict=True))
        parts = self.parts(vector).items()
        return {n: part.astype(float) if part.ndim else float(part) for n, part in parts}

    def parts(self, vector: Array) -> dict[str, Array]:
        """Each parameter's part of the vector, in its shape: views, not copies."""
        return {name: vector[part].reshape(shape) for name, part, shape in self._parts}


def _flat(name: str, value: Any, shape: Shape) -> Array:
    if type(value) is np.ndarray and value.shape == shape and value.dtype == np.float64:
        return value.reshape(-1)
    found = np.asarray(convert_value(name, value, shape))
    if found.shape != shape:
        given, wanted = list(found.shape), list(shape) or "a number"
        raise ShapeError(f"the parameter {name!r} has the shape {wanted}, the value {given}")
    return found.reshape(-1)
