"""The parameters of a graph as one vector, which optimizers and engines update."""

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
    """Converter between the parameters of a graph, keyed by name, and one flat vector.

    Attributes:
        shapes: the shape of each parameter; ``()`` for a scalar.
        elements: the names of the elements, in the order of the vector.
        has_scalars_only: whether all parameters are scalars.

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
        # itemgetter is faster than a loop for thousands of parameters.
        self._chosen: Callable[[Any], Any] = itemgetter(*names) if names else lambda selected: ()

    def __len__(self) -> int:
        """Return the number of elements."""
        return len(self.elements)

    def vector(self, values: Mapping[str, Any]) -> Array:
        """Convert parameter values, keyed by name, to a vector of shape (elements,).

        Raises:
            MissingValueError: a parameter has no value.
            ShapeError, UsageError, EngineError: a value has a wrong shape, or is not a real number.
        """
        try:
            selected = self._chosen(values)
            if not self.has_scalars_only:
                selected = selected if len(self.shapes) > 1 else (selected,)
                shaped_values = zip(self.shapes.items(), selected, strict=True)
                return np.concatenate(
                    [_flatten_value(name, v, shape) for (name, shape), v in shaped_values]
                )
            vector = np.asarray(selected)
        except KeyError as error:
            raise MissingValueError(f"missing value for the parameter {error.args[0]!r}") from None
        except (TypeError, IndexError):
            message = f"parameters must be a dict such as {{'k': 1.0}}, got {values!r}"
            raise UsageError(message) from None
        except ValueError:  # arrays of several shapes among the values
            vector = np.zeros(0)
        if vector.dtype.kind in "fiu" and vector.size == len(self) and vector.ndim < 2:
            return vector.astype(float).reshape(len(self))
        return convert_scalars(values, self.elements, np.dtype(float))  # names the missing value

    def sampled_start(self, seed: int) -> Array:
        """Sample start values of all parameters with a seed; shape (elements,).

        They are samples of the initializers that the graph declares, otherwise uniform in [0, 1).
        """
        start = np.random.default_rng(seed).random(len(self))
        parts = self.parts(start)
        for name, value in self.graph.sampled_start(seed).items():
            parts[name][...] = value
        return start

    def values(self, vector: Array) -> dict[str, Any]:
        """Convert a parameter vector to floats and arrays, keyed by parameter."""
        if self.has_scalars_only:
            return dict(zip(self.elements, vector.tolist(), strict=True))
        parts = self.parts(vector).items()
        return {n: part.astype(float) if part.ndim else float(part) for n, part in parts}

    def parts(self, vector: Array) -> dict[str, Array]:
        """Return views of a vector in the shapes of the parameters, keyed by parameter."""
        return {name: vector[part].reshape(shape) for name, part, shape in self._parts}


def _flatten_value(name: str, value: Any, shape: Shape) -> Array:
    """Return the value of a parameter as a vector after checking its shape."""
    if type(value) is np.ndarray and value.shape == shape and value.dtype == np.float64:
        return value.reshape(-1)
    array = np.asarray(convert_value(name, value, shape))
    if array.shape != shape:
        if not shape:
            raise ShapeError(f"parameter {name!r} must be a scalar, got shape {list(array.shape)}")
        raise ShapeError(
            f"parameter {name!r} must have shape {list(shape)}, got shape {list(array.shape)}"
        )
    return array.reshape(-1)
