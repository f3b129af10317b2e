"""A graph with arrays as the graph of their numbers: ``W[0,1]`` is a vertex of its own.

It is an ordinary graph, so every picture, page and curve that knows numbers alone takes it.
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

MOST = 50_000  #: operations of a graph that is written out: some seconds of work


def in_elements(graph: ExpressionGraph) -> ExpressionGraph:
    """The graph of the numbers; a graph without arrays is itself.

    What several elements share, as the sum in a softmax, is a vertex called ``v1``, ``v2``, ...

    Raises:
        UsageError: it would have more operations than anybody draws.

    >>> from cgprimer.core.graph import parse
    >>> found = in_elements(parse("input x[2]; parameter W[2,2] = [[1, 2], [3, 4]]; xh = W @ x"))
    >>> found.expression("xh[1]"), found.values["W[1,0]"]
    ('W[1,0]*x[0] + W[1,1]*x[1]', 3.0)
    """
    return (
        compute_once(graph, "elements", lambda: _in_elements(graph))
        if tape(graph).has_arrays
        else graph
    )


def _in_elements(graph: ExpressionGraph) -> ExpressionGraph:
    flat = tape_of_elements(tape(graph))
    return graph_of_elements(graph, flat, build_expression_trees(flat, inline=True))


def tape_of_elements(primal: Tape) -> Tape:
    """Return a tape that computes the elements of arrays one by one, with printable names.

    Raises:
        UsageError: it would have more than `MOST` operations.
    """
    sizes = list(map(math.prod, primal.shapes))
    for number, (name, operands) in enumerate(primal.instructions, len(primal.leaves)):
        if operator_name(name) == "matmul":
            sizes[number] *= primal.shapes[operands[0]][-1]
    if (count := sum(sizes)) > MOST:
        raise UsageError(
            f"written out in numbers, the graph has about {count:,} vertices, more than the"
            f" {MOST:,} that are worked with",
            hint="draw the arrays themselves, or a smaller network of the same kind",
        )
    return apply_printed_names(scalarize(primal))


def graph_of_elements(
    graph: ExpressionGraph,
    flat: Tape,
    trees: Mapping[int, Expression],
    without: Container[str] = (),
) -> ExpressionGraph:
    """Return the graph of a tape of elements, with the declared values of the original graph.

    Args:
        graph: the original graph.
        flat: a tape from :func:`tape_of_elements`.
        trees: the expressions of the graph, by the values of the tape that they define.
        without: leaves of the tape that the expressions do not use.
    """
    names = labels(flat)
    values = (
        element_values(graph, {**graph.point(needed=()), **running_statistics(graph, {})}) or {}
    )
    learnt = {e for name in graph.parameters for e in elements_of(graph, name)}
    statements: list[Declaration | Definition] = [
        Declaration(
            "parameter" if leaf.name in learnt else "input",
            leaf.name,
            values.get(leaf.name),
            0,
            domain=_element_domain(graph, leaf.name),
        )
        for leaf in flat.leaves
        if leaf.kind != "constant" and leaf.name not in without
    ]
    for index, tree in trees.items():
        statements.append(Definition(names[index], tree, tuple(names_in(tree)), 0))
    statements += [Declaration("output", name, None, 0) for name in flat.outputs]
    return build_graph(Program(graph.source, tuple(statements)))


def _element_domain(graph: ExpressionGraph, element: str) -> Domain | None:
    """The domain of one number of an input; numbers of a one-hot input have none of their own."""
    domain = graph.domains.get(parse_element(element)[0])
    return None if domain == ONE_HOT else domain


def numbers_of(
    graph: ExpressionGraph, at: Mapping[str, Value] | None, names: Iterable[str | None] = ()
) -> tuple[ExpressionGraph, dict[str, Value] | None]:
    """The graph of the numbers and a point for it, where names must be those of numbers.

    Raises:
        UsageError: a name is that of an array, or what :func:`in_elements` says.

    >>> from cgprimer.core.graph import parse
    >>> numbers_of(parse("input x[2]; xw = k*sum(x)"), {"x": [3, 4], "k": 2})[1]
    {'x[0]': 3.0, 'x[1]': 4.0, 'k': 2}
    """
    known = {*graph.variables, *graph.parameters}
    for name in names:
        if name in known and name is not None and (shape := shape_in(graph, name)):
            raise UsageError(
                f"{name!r} is an array, of the shape [{','.join(map(str, shape))}]",
                hint=f"name one of its numbers, as {elements_of(graph, name)[0]}",
            )
    return in_elements(graph), element_values(graph, at)


def shape_in(graph: ExpressionGraph, name: str) -> Shape:
    """The shape of a variable or parameter."""
    primal = tape(graph)
    return primal.shapes[primal.index(name)]


def elements_of(graph: ExpressionGraph, name: str) -> tuple[str, ...]:
    """What the numbers of a variable or parameter are called.

    >>> from cgprimer.core.graph import parse
    >>> elements_of(parse("input x[2]; xw = sum(x)"), "x")
    ('x[0]', 'x[1]')
    """
    return tuple(elements(name, shape_in(graph, name)))


def element_values(
    graph: ExpressionGraph, at: Mapping[str, Value] | None
) -> dict[str, Value] | None:
    """A point for the graph of the numbers: arrays are taken apart."""
    if at is None or not isinstance(at, Mapping):
        return at
    running = {n: value for n, value in at.items() if n not in (*graph.inputs, *graph.parameters)}
    found = (
        running_statistics(graph, running) if running else {}
    )  # they are called as they are shown
    shapes = {**graph.shapes, **{format_name(n): getattr(v, "shape", ()) for n, v in found.items()}}
    given = {n: v for n, v in at.items() if n not in found}
    given |= {format_name(n): v for n, v in found.items()}
    arrays = {n: convert_value(n, v, shapes[n]) if shapes.get(n) else v for n, v in given.items()}
    return split_arrays(arrays, shapes)


def element_names(graph: ExpressionGraph, names: Names | None) -> Names | None:
    """Names of the graph's numbers, for names of the graph or of its numbers.

    >>> from cgprimer.core.graph import parse
    >>> element_names(parse("input x[2]; xw = k*sum(x)"), ["x", "k"])
    ('x[0]', 'x[1]', 'k')
    """
    if names is None:
        return None
    known = {*graph.variables, *graph.parameters}
    parts = (elements_of(graph, n) if n in known else (n,) for n in normalize_names(names, "wrt"))
    return tuple(itertools.chain.from_iterable(parts))
