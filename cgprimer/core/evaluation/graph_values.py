"""The values of a graph at a point, and its formulas. The evaluator runs the tape of the graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from cgprimer.core.evaluation.evaluator import (
    Lookup,
    evaluate_instructions,
    ignore_numpy_warnings,
    prepare_instructions,
)
from cgprimer.core.evaluation.graph_cache import compute_once, lower_once
from cgprimer.core.language.syntax_tree import Expression, Shape, names_in
from cgprimer.core.operations.float_arithmetic import float_function
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.lowering import LowerableGraph, emit_vertex
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_entries import Leaf
from cgprimer.errors import UsageError, name_hint
from cgprimer.support.array_values import Value, convert_value
from cgprimer.support.value_names import Element, format_name, is_internal

if TYPE_CHECKING:
    import sympy


class EvaluableGraph(LowerableGraph, Protocol):
    """Protocol of a graph that can be evaluated."""

    @property
    def variables(self) -> tuple[str, ...]:
        """The vertices in topological order."""


def evaluate_graph(
    graph: EvaluableGraph, point: Mapping[str, Value], samples: Shape, mode: str
) -> dict[str, Value]:
    """Compute the value of every variable of a graph at a point.

    Args:
        graph: the graph.
        point: the value of each input and parameter, and of any running statistics of layers.
        samples: the shape of the samples; ``()`` for a single sample.
        mode: how layers are expanded: see :mod:`cgprimer.core.operations.layer_expansions`.

    Returns:
        A float for a scalar of a single sample; an array of shape samples + shape otherwise.
    """
    tape = lower_once(graph, mode)
    lookup: Lookup = float_function
    if samples or tape.has_arrays:
        from cgprimer.core.operations.numpy_arithmetic import numpy_function

        lookup = numpy_function
    keep = None if lookup is float_function else tape.names.values()  # arrays are released
    instructions = compute_once(
        graph, ("instructions", mode, lookup), lambda: prepare_instructions(tape, lookup, keep=keep)
    )
    leaf_values = _collect_leaf_values(tape, point)
    with ignore_numpy_warnings(lookup):
        values = evaluate_instructions(instructions, leaf_values)
    computed = {name: values[tape.names[name]] for name in graph.variables}
    if lookup is float_function:
        return computed
    shapes = {name: samples + tape.shapes[tape.names[name]] for name in computed}
    return {name: _copy_to_shape(value, shapes[name]) for name, value in computed.items()}


def _collect_leaf_values(tape: Tape, point: Mapping[str, Value]) -> list[Value]:
    """Return the values of a tape's leaves at a point; absent statistics have initial values.

    Raises:
        UsageError: the point has an unknown running statistic.
    """
    for name in point:
        if is_internal(name) and name not in tape.names:
            from cgprimer.core.operations.layer_expansions import is_statistic

            hint = name_hint(name, filter(is_statistic, tape.names))
            raise UsageError(f"unknown running statistic {name!r}", hint=hint)
    return [
        leaf.value if leaf.kind == "constant" else _look_up_leaf_value(leaf, point)
        for leaf in tape.leaves
    ]


def _look_up_leaf_value(leaf: Leaf, point: Mapping[str, Value]) -> Value:
    """Return the value that a point assigns to a leaf of a tape."""
    if is_internal(leaf.name):
        return convert_value(leaf.name, point.get(leaf.name, leaf.value), leaf.shape)
    return point[leaf.name]


def _copy_to_shape(value: Value, shape: Shape) -> Value:
    """Return a copy of a value, broadcast to a shape; a float for the shape ``()``."""
    import numpy as np

    copy = np.array(np.broadcast_to(value, shape))
    return copy if shape else float(copy)


def build_formulas(graph: LowerableGraph) -> dict[str, sympy.Expr]:
    """Build a sympy expression for each element of each variable of a graph.

    A formula uses the names in the definition of its variable: inputs, parameters and variables
    before it. Each definition becomes a separate tape, in which these names are leaves.

    Args:
        graph: the graph.

    Returns:
        Formulas by name: ``xw``, or ``xh[0]`` and so on for the elements of an array.
    """
    shapes = dict(graph.shapes)
    formulas: dict[str, sympy.Expr] = {}
    for name, definition in graph.definitions.items():
        tape = _lower_definition(graph, name, definition, shapes)
        index = tape.outputs[name]
        shapes[name] = tape.shapes[index]
        elements = _evaluate_symbolically(tape)[index].flat
        formulas.update(
            zip(map(str, _create_symbols(name, shapes[name]).flat), elements, strict=True)
        )
    return formulas


def _lower_definition(
    graph: LowerableGraph, name: str, definition: Expression, shapes: Mapping[str, Shape]
) -> Tape:
    """Lower one definition of a graph to a tape; constants are not folded: 1/3 stays exact."""
    builder = Builder(simplify=False, fold_constants=False)
    for operand in names_in(definition):
        builder.leaf("scalar", operand, shape=shapes.get(operand, ()))
    return builder.finish({name: emit_vertex(builder, name, definition, graph)})


def _evaluate_symbolically(tape: Tape) -> list[Any]:
    """Evaluate a tape with sympy symbols as leaf values; return the formulas of all values."""
    import numpy as np

    from cgprimer.core.operations.symbolic_arithmetic import convert_to_rational, sympy_function

    leaf_values = [
        np.array(convert_to_rational(leaf.value))
        if leaf.kind == "constant"
        else _create_symbols(format_name(leaf.name), leaf.shape)
        for leaf in tape.leaves
    ]
    return evaluate_instructions(prepare_instructions(tape, sympy_function), leaf_values)


def _create_symbols(name: str, shape: Shape) -> Any:
    """Return an array of sympy symbols: ``W[0,1]`` and so on, or a single symbol for a scalar."""
    import numpy as np
    import sympy

    symbols = np.empty(shape, object)
    for index in np.ndindex(shape):
        symbols[index] = sympy.Symbol(str(Element(name, index)), real=True)
    return symbols
