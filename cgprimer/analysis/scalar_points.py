"""Completion of a single point, and the choice of the variable to differentiate."""

from __future__ import annotations

from collections.abc import Mapping

from cgprimer.core.derivatives import parse_element_of, resolve_wrt, running_statistics
from cgprimer.core.operations.array_shapes import format_shape
from cgprimer.errors import UsageError, join_names
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.array_values import Value, convert_value, count_axes
from cgprimer.tapes import Tape, elements, reachable, tape


def complete_point(
    graph: ExpressionGraph, at: Mapping[str, Value] | None = None, *, of: str | None = None
) -> dict[str, Value]:
    """Return a point with values for all inputs and parameters; unused values default to zero.

    Args:
        graph: the graph.
        at: values, as in :func:`gradient`, but of one sample only.
        of: the variable to compute, by default all variables.

    Raises:
        MissingValueError: a needed value is missing.
        UsageError: a value has samples.
    """
    primal = tape(graph)
    needed = reachable(
        primal, [primal.index(parse_element_of(graph, of)[0])] if of else range(primal.size)
    )
    leaves = zip(primal.leaves, needed, strict=False)
    point = graph.point(at, needed=[leaf.name for leaf, wanted in leaves if wanted])
    shapes = {name: graph.shapes.get(name, ()) for name in (*graph.inputs, *graph.parameters)}
    arrays = [name for name in shapes if count_axes(point.get(name, 0.0)) > len(shapes[name])]
    if arrays:
        name = arrays[0]
        hint = f"pass a single sample: at={{{name!r}: ...}} (--at {name}=...)"
        if "batchnorm" in graph.layers:
            hint += "; trace(method='reverse') (cgprimer trace --method reverse) shows a batch"
        raise UsageError(
            f"expected one sample, got an array of samples for {name!r}",
            hint=hint,
        )
    values = {name: convert_value(name, point.get(name, 0.0), s) for name, s in shapes.items()}
    return values | running_statistics(graph, point)


def choose_variable(graph: ExpressionGraph, wrt: str | None) -> str:
    """Return the given variable, or by default the only input or the only parameter.

    Raises:
        UsageError: the name is unknown, or it is missing and there are several candidates.

    >>> from cgprimer.core.graph import parse
    >>> choose_variable(parse("y = tanh(k); output y"), None)
    'k'
    """
    if wrt is not None:
        return resolve_wrt(graph, wrt)[0]
    for names in (graph.inputs, graph.parameters):
        if len(names) == 1:
            return names[0]
    candidates = join_names((*graph.inputs, *graph.parameters)) or "none"
    raise UsageError("`wrt` is required", hint=f"choose wrt=... (--wrt NAME) from {candidates}")


def check_scalar(
    primal: Tape, name: str, rule: str, *, argument: str = "of", alternative: str = ""
) -> None:
    """Raise UsageError if a variable is an array instead of a scalar.

    Args:
        primal: the tape of the graph.
        name: the variable.
        rule: the rule that an array violates, for the message.
        argument: the argument that has the name, such as ``of``.
        alternative: what to do instead of choosing an element, for the hint.
    """
    if shape := primal.shapes[primal.index(name)]:
        element = next(elements(name, shape)).replace("][", ",")
        hint = f"choose an element, {argument}={element!r} (--{argument} {element!r}){alternative}"
        raise UsageError(f"{name!r} has shape {format_shape(shape)}: {rule}", hint=hint)
