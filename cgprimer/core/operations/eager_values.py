"""Builders that compute values immediately: they evaluate syntax trees with arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from cgprimer.core.language.syntax_tree import Expression, Name, Number, Shape, fold
from cgprimer.core.language.value_names import is_internal
from cgprimer.core.operations.float_arithmetic import float_function
from cgprimer.core.operations.layer_expansions import is_statistic
from cgprimer.core.operations.numpy_arithmetic import numpy_function
from cgprimer.core.operations.primitive_registry import Applied, find_operation
from cgprimer.core.operations.shape_operations import Broadcast, Maximum
from cgprimer.errors import UsageError, name_hint
from cgprimer.support.array_values import convert_value


class SampleArray(NamedTuple):
    """An array with its shape per sample; leading axes of the data count the samples."""

    data: Any
    shape: Shape

    def broadcast_to_samples(self, samples: Shape) -> Any:
        """Return the value for all samples: an array of shape samples + shape, or a float."""
        values = np.array(np.broadcast_to(self.data, samples + self.shape))
        return values if values.ndim else float(values)


class ValueBuilder:
    """A builder whose values are floats and :class:`SampleArray` objects, computed immediately.

    Args:
        statistics: the running statistics of layers, by name; other names are ignored.
        mode: how layers are expanded: see :mod:`cgprimer.core.operations.layer_expansions`.
    """

    vertex = ""

    def __init__(self, statistics: Mapping[str, Any], mode: str = "") -> None:
        self.statistics, self.mode = statistics, mode
        self.names: dict[str, Any] = {}

    def leaf(self, kind: str, name: str, value: float, shape: Shape) -> Any:
        """Return the value of a running statistic of a layer."""
        statistic = convert_value(name, self.statistics.get(name, value), shape)
        return self.name(SampleArray(np.asarray(statistic), shape), name)

    def check_statistics(self) -> None:
        """Raise UsageError if no layer has one of the given statistics."""
        for name in self.statistics:
            if is_internal(name) and name not in self.names:
                hint = name_hint(name, filter(is_statistic, self.names))
                raise UsageError(f"no layer has the statistic {name!r}", hint=hint)

    def name(self, value: Any, name: str) -> Any:
        """Name a value, and return the value."""
        self.names[name] = value
        return value

    def constant(self, value: float) -> float:
        """Return a constant unchanged."""
        return value

    def value_of(self, value: Any) -> float | None:
        """Return the number of a constant; None for other values."""
        return value if isinstance(value, float) else None

    def to_array(self, value: Any) -> SampleArray:
        """Return a value as an array; a constant becomes an array without axes."""
        return SampleArray(np.float64(value), ()) if isinstance(value, float) else value

    def shape(self, value: Any) -> Shape:
        """Return the shape of a value, per sample."""
        return () if isinstance(value, float) else value.shape

    def broadcast(self, value: Any, shape: Shape) -> Any:
        """Return a value broadcast to a shape."""
        current = self.shape(value)
        if current == shape:
            return value
        return self.emit(Broadcast.create(len(current), shape), value)

    def emit(self, name: Applied, *operands: Any) -> Any:
        """Return the result of an operation; it is a constant if all operands are constants."""
        if set(map(type, operands)) == {float} and isinstance(name, str):
            return float_function(name)(*operands)
        shape = find_operation(name).shape(*map(self.shape, operands))
        if isinstance(name, str):
            operands = tuple(
                o if isinstance(o, float) else self.broadcast(o, shape) for o in operands
            )
        data = [np.float64(o) if isinstance(o, float) else o.data for o in operands]
        with np.errstate(all="ignore"):
            return SampleArray(numpy_function(name)(*data), shape)


class _FormulaBuilder(ValueBuilder):
    """A builder whose values are arrays of sympy expressions."""

    def leaf(self, kind: str, name: str, value: float, shape: Shape) -> Any:
        """Return symbols for a running statistic of a layer: ``mean_xy``."""
        return self.name(_symbols(name.replace(".", "_"), shape), name)

    def emit(self, name: Applied, *operands: Any) -> Any:
        import sympy

        from cgprimer.core.operations.symbolic_arithmetic import symbolic_call

        shape = find_operation(name).shape(*map(self.shape, operands))
        data = [np.array(sympy.Rational(repr(o))) if isinstance(o, float) else o.data
                for o in operands]  # fmt: skip
        if isinstance(name, str):
            function = np.frompyfunc(lambda *one: symbolic_call(name, list(one)), len(data), 1)
            return SampleArray(np.asarray(function(*data)), shape)
        if name.runs_python:
            raise UsageError(f"{name.spelling!r} is a Python function and has no formula")
        if isinstance(name, Maximum):
            (result,) = data
            for axis in name.axes:  # first to last: negative numbers of later axes stay valid
                result = np.frompyfunc(sympy.Max, 2, 1).reduce(result, axis=axis)
        else:
            result = name.run(*data)
        return SampleArray(np.asarray(result), shape)


def _symbols(name: str, shape: Shape) -> SampleArray:
    """Return an array with a sympy symbol for each element of a value."""
    import sympy

    symbols = np.empty(shape, object)
    for index in np.ndindex(shape):
        text = f"{name}[{','.join(map(str, index))}]" if shape else name
        symbols[index] = sympy.Symbol(text, real=True)
    return SampleArray(symbols, shape)


def formulas_of_elements(
    definitions: Mapping[str, Expression], shapes: Mapping[str, Shape]
) -> dict[str, Any]:
    """Return every element of every variable as a sympy expression of elements such as ``W[0,1]``.

    Args:
        definitions: the definition of each variable, in execution order.
        shapes: the shapes of the inputs and parameters that are arrays.
    """
    from cgprimer.core.operations.function_expansions import emit_applied

    builder = _FormulaBuilder({})
    symbols = {name: _symbols(name, shape) for name, shape in shapes.items()}

    def leaf(node: Name | Number) -> Any:
        if isinstance(node, Number):
            return node.value
        return symbols.setdefault(node.name, _symbols(node.name, ()))

    formulas: dict[str, Any] = {}
    for name, expression in definitions.items():
        builder.vertex = name
        tree = fold(expression, leaf, lambda row, arguments: emit_applied(builder, row, arguments))
        value = builder.emit("copy", tree)
        symbols[name] = _symbols(name, value.shape)
        elements = np.broadcast_to(value.data, value.shape).flat
        formulas.update(zip(map(str, symbols[name].data.flat), elements, strict=True))
    return formulas
