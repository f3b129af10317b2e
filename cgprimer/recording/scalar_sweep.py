"""The backward pass of graphs of scalars, with cached derivative rules of each primitive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cgprimer.core.operations import find_primitive, float_arithmetic
from cgprimer.core.operations.custom_operations import CustomCall
from cgprimer.core.operations.primitive_registry import FUNCTIONS, Applied
from cgprimer.core.tape.lowering import emit_partial
from cgprimer.recording.eager_builder import PrimitiveCache
from cgprimer.recording.value_base import FREED, ValueBase, format_primitive_name

UNREACHED = -0.0  #: initial adjoint: x + -0.0 is x even for x = -0.0


def sweep_scalars(
    order: list[ValueBase],
    seed: float,
    *,
    totals: dict[ValueBase, Any] | None = None,
    free: bool = False,
) -> None:
    """Run reverse mode over scalar values, in a fifth of the time of the general sweep.

    Args:
        order: the values, latest first; their ``_bar`` is ``UNREACHED``, and None afterwards.
        seed: upstream gradient of the first value.
        totals: dictionary for the adjoints; by default, adjoints are added to ``_grad``.
        free: free the graph.
    """
    if _PARTIALS.generation != FUNCTIONS.generation:
        _PARTIALS.clear()
        _PARTIALS.generation = FUNCTIONS.generation
    order[0]._bar = seed
    for value in order:
        bar, value._bar = value._bar, None
        if bar is not UNREACHED:
            if totals is not None:
                totals[value] = bar
            elif value._grad is None:
                value._grad = bar
            else:
                value._grad += bar
                value._repeats += 1
            if operands := value.operands:
                partials, first, second, freed_name = _PARTIALS[value.primitive]
                if free:
                    value.primitive = freed_name
                if first is None:
                    _propagate_adjoint(operands, partials, bar, value._data)
                    continue
                left, right = operands  # both partials are numbers or operands: nothing to call
                if left.__class__ is float:
                    right._bar += bar * (left if second.__class__ is int else second)
                elif right.__class__ is float:
                    left._bar += bar * (right if first.__class__ is int else first)
                else:
                    if left.requires_grad:
                        left._bar += bar * (right._data if first.__class__ is int else first)
                    if right.requires_grad:
                        right._bar += bar * (left._data if second.__class__ is int else second)
        elif free and value.operands:
            value.primitive = FREED_NAMES[value.primitive]


def _propagate_adjoint(
    operands: tuple[Any, ...], partials: tuple[Any, ...], bar: float, result: float
) -> None:
    """Add the products of a result's adjoint and its partials to the adjoints of the operands."""
    data = [*[o if type(o) is float else o._data for o in operands], result]
    for operand, partial in zip(operands, partials, strict=True):
        if type(operand) is not float and operand.requires_grad and partial is not None:
            kind = type(partial)
            if kind is float:
                operand._bar += bar * partial
            else:
                operand._bar += bar * (data[partial] if kind is int else partial(data))


class _FunctionBuilder:
    """A builder that turns the partials of a primitive into Python functions of its operands.

    An operand is represented by its index, a constant by a float, an emitted operation by a
    function of the list of operands.
    """

    def constant(self, value: float) -> float:
        """Return a constant, which represents itself."""
        return value

    def emit(self, name: str, *operands: Any) -> Callable[[list[float]], float] | float:
        """Return a function that applies a primitive, or the result for constant operands."""
        function = float_arithmetic.float_function(name)
        if {type(o) for o in operands} == {float}:
            return function(*operands)

        def apply(values: list[float]) -> float:
            """Apply the primitive to operands selected from ``values``."""
            return function(
                *[values[o] if type(o) is int else o if type(o) is float else o(values)
                  for o in operands]
            )  # fmt: skip

        return apply


class _PartialTable(dict[Any, tuple[Any, Any, Any, str]]):
    """A lazily computed table of the partial derivatives of each primitive.

    A partial is a number, the index of an operand, a function, or None. An entry has the tuple of
    all partials; the two partials of a primitive such as ``mul``, if each is a number or the other
    operand; and the name of the freed primitive.
    """

    generation = 0

    def __missing__(self, name: str) -> tuple[Any, Any, Any, str]:
        arity = find_primitive(name).arity
        builder: Any = _FunctionBuilder()
        partials: Any = tuple(
            emit_partial(builder, name, index, tuple(range(arity)), arity) for index in range(arity)
        )
        is_simple = arity == 2 and all(
            type(partial) is float or (type(partial) is int and partial == 1 - index)
            for index, partial in enumerate(partials)
        )
        self[name] = (partials, *(partials if is_simple else (None, None)), FREED_NAMES[name])
        return self[name]


class _FreedNames(PrimitiveCache[str]):
    """A lazily computed table of the names that replace primitives in freed graphs."""

    def __missing__(self, name: Applied) -> str:
        freed = f"{FREED}{format_primitive_name(name)}"
        # A custom function is not stored: it holds the arrays that it saved.
        return freed if isinstance(name, CustomCall) else self.store(name, freed)


_PARTIALS, FREED_NAMES = _PartialTable(), _FreedNames()
