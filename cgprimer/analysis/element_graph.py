"""Expansion of a graph with arrays into a graph of their elements, with vertices like ``W[0,1]``.

The result is an ordinary graph of scalars, for pictures, pages and plots that need scalars.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Container, Iterable, Mapping

from cgprimer.core.derivatives import running_statistics
from cgprimer.core.evaluation.graph_cache import compute_once
from cgprimer.core.graph import build_graph
from cgprimer.core.language.input_domains import ONE_HOT, Domain
from cgprimer.core.language.syntax_tree import operator_name
from cgprimer.core.methods.derivative_program import Names, normalize_names
from cgprimer.core.tape.scalarization import split_arrays
from cgprimer.core.tape.tape_passes import apply_printed_names
from cgprimer.core.tape.tape_printing import build_expression_trees
from cgprimer.errors import UsageError
from cgprimer.expressions import (
    Declaration,
    Definition,
    Expression,
    ExpressionGraph,
    Program,
    Shape,
    names_in,
    parse_element,
)
from cgprimer.support.array_values import Value, convert_value
from cgprimer.support.value_names import format_name
from cgprimer.tapes import Tape, elements, labels, scalarize, tape

MAX_OPERATIONS = 50_000  #: of an expanded graph, which takes some seconds


def expand_elements(graph: ExpressionGraph) -> ExpressionGraph:
    """Expand a graph with arrays into a graph of their scalar elements.

    Values that several elements share, such as the sum in a softmax, become vertices ``v1``, ...

    Raises:
        UsageError: the graph would have more than `MAX_OPERATIONS` operations.

    >>> from cgprimer.core.graph import parse
    >>> graph = parse("input x[2]; parameter W[2,2] = [[1, 2], [3, 4]]; xh = W @ x")
    >>> expanded = expand_elements(graph)
    >>> expanded.expression("xh[1]"), expanded.values["W[1,0]"]
    ('W[1,0]*x[0] + W[1,1]*x[1]', 3.0)
    """
    return (
        compute_once(graph, "elements", lambda: _build_expanded_graph(graph))
        if tape(graph).has_arrays
        else graph
    )


def _build_expanded_graph(graph: ExpressionGraph) -> ExpressionGraph:
    """Build a graph whose vertices are the scalar elements of another graph's arrays."""
    flat = build_element_tape(tape(graph))
    return build_element_graph(graph, flat, build_expression_trees(flat, inline=True))


def build_element_tape(primal: Tape) -> Tape:
    """Build a scalar tape that computes all array elements, with printable names.

    Raises:
        UsageError: the tape would have more than `MAX_OPERATIONS` operations.
    """
    sizes = list(map(math.prod, primal.shapes))
    for index, (name, operands) in enumerate(primal.instructions, len(primal.leaves)):
        if operator_name(name) == "matmul":
            sizes[index] *= primal.shapes[operands[0]][-1]
    if (count := sum(sizes)) > MAX_OPERATIONS:
        raise UsageError(
            f"the expanded graph has about {count:,} vertices: the maximum is {MAX_OPERATIONS:,}",
            hint="show whole arrays instead of their elements, or use a smaller network",
        )
    return apply_printed_names(scalarize(primal))


def build_element_graph(
    graph: ExpressionGraph,
    flat: Tape,
    trees: Mapping[int, Expression],
    without: Container[str] = (),
) -> ExpressionGraph:
    """Build a graph from a scalar tape, with the declared values of the original graph.

    Args:
        graph: the original graph.
        flat: a tape from :func:`build_element_tape`.
        trees: the expressions of the graph, keyed by the index of the value that they define.
        without: names of leaves that the expressions do not use.
    """
    names = labels(flat)
    values = split_point(graph, {**graph.point(needed=()), **running_statistics(graph, {})}) or {}
    parameters = {e for name in graph.parameters for e in list_element_names(graph, name)}
    statements: list[Declaration | Definition] = [
        Declaration(
            "parameter" if leaf.name in parameters else "input",
            leaf.name,
            values.get(leaf.name),
            0,
            domain=_find_element_domain(graph, leaf.name),
        )
        for leaf in flat.leaves
        if leaf.kind != "constant" and leaf.name not in without
    ]
    for index, tree in trees.items():
        statements.append(Definition(names[index], tree, tuple(names_in(tree)), 0))
    statements += [Declaration("output", name, None, 0) for name in flat.outputs]
    return build_graph(Program(graph.source, tuple(statements)))


def _find_element_domain(graph: ExpressionGraph, element: str) -> Domain | None:
    """Return the domain of an element of an input array; None if the input is one-hot."""
    domain = graph.domains.get(parse_element(element)[0])
    return None if domain == ONE_HOT else domain


def expand_with_point(
    graph: ExpressionGraph, at: Mapping[str, Value] | None, names: Iterable[str | None] = ()
) -> tuple[ExpressionGraph, dict[str, Value] | None]:
    """Expand the arrays of a graph and of a point into scalar elements, and return both.

    Args:
        graph: the graph.
        at: a point for the graph.
        names: names that must be scalars.

    Raises:
        UsageError: a name is an array, or the expanded graph would be too large.

    >>> from cgprimer.core.graph import parse
    >>> expand_with_point(parse("input x[2]; xw = k*sum(x)"), {"x": [3, 4], "k": 2})[1]
    {'x[0]': 3.0, 'x[1]': 4.0, 'k': 2}
    """
    variables = {*graph.variables, *graph.parameters}
    for name in names:
        if name in variables and name is not None and (shape := find_shape(graph, name)):
            raise UsageError(
                f"{name!r} has shape [{','.join(map(str, shape))}], expected a scalar",
                hint=f"choose an element, such as {list_element_names(graph, name)[0]}",
            )
    return expand_elements(graph), split_point(graph, at)


def find_shape(graph: ExpressionGraph, name: str) -> Shape:
    """Return the shape of the variable or parameter with the given name."""
    primal = tape(graph)
    return primal.shapes[primal.index(name)]


def list_element_names(graph: ExpressionGraph, name: str) -> tuple[str, ...]:
    """Return the names of all elements of a variable or parameter.

    >>> from cgprimer.core.graph import parse
    >>> list_element_names(parse("input x[2]; xw = sum(x)"), "x")
    ('x[0]', 'x[1]')
    """
    return tuple(elements(name, find_shape(graph, name)))


def split_point(graph: ExpressionGraph, at: Mapping[str, Value] | None) -> dict[str, Value] | None:
    """Split the arrays in a point into elements, to evaluate the expanded graph."""
    if at is None or not isinstance(at, Mapping):
        return at
    running = {n: value for n, value in at.items() if n not in (*graph.inputs, *graph.parameters)}
    internal = running_statistics(graph, running) if running else {}
    statistics = {format_name(n): v for n, v in internal.items()}
    shapes = {**graph.shapes, **{n: getattr(v, "shape", ()) for n, v in statistics.items()}}
    values = {n: v for n, v in at.items() if n not in internal} | statistics
    arrays = {n: convert_value(n, v, shapes[n]) if shapes.get(n) else v for n, v in values.items()}
    return split_arrays(arrays, shapes)


def expand_array_names(graph: ExpressionGraph, names: Names | None) -> Names | None:
    """Replace each array name by the names of the array's elements.

    >>> from cgprimer.core.graph import parse
    >>> expand_array_names(parse("input x[2]; xw = k*sum(x)"), ["x", "k"])
    ('x[0]', 'x[1]', 'k')
    """
    if names is None:
        return None
    variables = {*graph.variables, *graph.parameters}
    parts = (
        list_element_names(graph, name) if name in variables else (name,)
        for name in normalize_names(names, "wrt")
    )
    return tuple(itertools.chain.from_iterable(parts))
