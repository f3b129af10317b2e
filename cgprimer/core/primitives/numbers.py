"""A builder that computes numbers as it goes: trees with arrays are evaluated with it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cgprimer.core.language.syntax import Shape, Structural
from cgprimer.core.primitives import arrays, floats
from cgprimer.core.primitives.structural import common_shape_of, result_shape


class Shaped(NamedTuple):
    """An array, and the shape that it has for one sample: samples are the axes before."""

    data: Any
    shape: Shape

    def over(self, samples: Shape) -> Any:
        """For all samples: an array of shape samples + shape, or a float."""
        made = np.array(np.broadcast_to(self.data, samples + self.shape))
        return made if made.ndim else float(made)


class Numbers:
    """Emits by computing; operands are :class:`Shaped`, or floats."""

    def constant(self, value: float) -> float:
        """A number is itself."""
        return value

    def value_of(self, value: Any) -> float | None:
        """The number that a constant is."""
        return value if isinstance(value, float) else None

    def shaped(self, value: Any) -> Shaped:
        """What a name stands for: a value that is no constant any more."""
        return Shaped(np.float64(value), ()) if isinstance(value, float) else value

    def shape(self, value: Any) -> Shape:
        """The shape for one sample."""
        return () if isinstance(value, float) else value.shape

    def broadcast(self, value: Any, shape: Shape) -> Any:
        """Repeated to a shape."""
        own = self.shape(value)
        if own == shape:
            return value
        return self.emit(Structural("broadcast", len(own), shape), value)

    def emit(self, name: str, *operands: Any) -> Any:
        """The value of a primitive; of constants, such as the axis -1, a constant."""
        if set(map(type, operands)) == {float}:
            return floats.function(name)(*operands)
        shapes = [self.shape(o) for o in operands]
        if isinstance(name, Structural):
            shape = result_shape(name, *shapes)
        else:
            shape = common_shape_of(name, *shapes)
            operands = tuple(
                o if isinstance(o, float) else self.broadcast(o, shape) for o in operands
            )
        data = [np.float64(o) if isinstance(o, float) else o.data for o in operands]
        with np.errstate(all="ignore"):
            return Shaped(arrays.function(name)(*data), shape)
