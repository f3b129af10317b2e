"""A builder that computes numbers as it goes: trees with arrays are evaluated with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from cgprimer.core.language.syntax import Expression, Name, Number, Shape, Structural, fold
from cgprimer.core.primitives import arrays, floats
from cgprimer.core.primitives.layers import is_statistic
from cgprimer.core.primitives.structural import common_shape_of, result_shape
from cgprimer.errors import UsageError, name_hint
from cgprimer.numbers_and_arrays import as_value


class Shaped(NamedTuple):
    """An array, and the shape that it has for one sample: samples are the axes before."""

    data: Any
    shape: Shape

    def over(self, samples: Shape) -> Any:
        """For all samples: an array of shape samples + shape, or a float."""
        made = np.array(np.broadcast_to(self.data, samples + self.shape))
        return made if made.ndim else float(made)


class Numbers:
    """Emits by computing; operands are :class:`Shaped`, or floats.

    Args:
        given: values of leaves that layers have, by name.
        mode: how layers are written out: see :mod:`cgprimer.core.primitives.layers`.
    """

    vertex = ""

    def __init__(self, given: Mapping[str, Any], mode: str = "") -> None:
        self.given, self.mode = given, mode
        self.names: dict[str, Any] = {}

    def leaf(self, kind: str, name: str, value: float, shape: Shape) -> Any:
        """The value of a layer's leaf: a statistic."""
        found = as_value(name, self.given.get(name, value), shape)
        return self.name(Shaped(np.asarray(found), shape), name)

    def check_given(self) -> None:
        """Raise UsageError if a statistic was given that no layer has."""
        for name in self.given:
            if "." in name and name not in self.names:
                hint = name_hint(name, filter(is_statistic, self.names))
                raise UsageError(f"{name!r} is none of the statistics", hint=hint)

    def name(self, value: Any, name: str) -> Any:
        """Give a value a name; returns the value."""
        self.names[name] = value
        return value

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
        if set(map(type, operands)) == {float} and not isinstance(name, Structural):
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


class _Formulas(Numbers):
    """The same of arrays of sympy's expressions."""

    def leaf(self, kind: str, name: str, value: float, shape: Shape) -> Any:
        """Symbols: ``mean_xy``."""
        return self.name(_symbols(name.replace(".", "_"), shape), name)

    def emit(self, name: str, *operands: Any) -> Any:
        import sympy

        from cgprimer.core.primitives.formulas import symbolic_call

        shapes = [self.shape(o) for o in operands]
        data = [np.array(sympy.Rational(repr(o))) if isinstance(o, float) else o.data
                for o in operands]  # fmt: skip
        if not isinstance(name, Structural):
            called = np.frompyfunc(lambda *one: symbolic_call(name, list(one)), len(data), 1)
            return Shaped(np.asarray(called(*data)), common_shape_of(name, *shapes))
        if name.kind == "custom":
            raise UsageError(
                f"{name.setting[0].name!r} is a function of Python's: it has no formula"
            )
        if name.kind == "largest":
            (made,) = data
            for axis in name.setting[0]:  # from the first one on: those behind keep their numbers
                made = np.frompyfunc(sympy.Max, 2, 1).reduce(made, axis=axis)
        else:
            made = arrays.function(name)(*data)
        return Shaped(np.asarray(made), result_shape(name, *shapes))


def _symbols(name: str, shape: Shape) -> Shaped:
    """A symbol for each number of a value."""
    import sympy

    made = np.empty(shape, object)
    for place in np.ndindex(shape):
        text = f"{name}[{','.join(map(str, place))}]" if shape else name
        made[place] = sympy.Symbol(text, real=True)
    return Shaped(made, shape)


def formulas_of_elements(
    definitions: Mapping[str, Expression], shapes: Mapping[str, Shape]
) -> dict[str, Any]:
    """Every element of every definition as a sympy expression in elements: ``W[0,1]``.

    Args:
        definitions: in an order in which each uses those before it.
        shapes: of what is given and is no single number.
    """
    from cgprimer.core.primitives.array_functions import apply

    builder = _Formulas({})
    known = {name: _symbols(name, shape) for name, shape in shapes.items()}

    def leaf(node: Name | Number) -> Any:
        if isinstance(node, Number):
            return node.value
        return known.setdefault(node.name, _symbols(node.name, ()))

    found: dict[str, Any] = {}
    for name, expression in definitions.items():
        builder.vertex = name
        made = fold(expression, leaf, lambda row, arguments: apply(builder, row, arguments))
        made = builder.emit("copy", made)
        known[name] = _symbols(name, made.shape)
        formulas = np.broadcast_to(made.data, made.shape)
        found.update(zip(map(str, known[name].data.flat), formulas.flat, strict=True))
    return found
