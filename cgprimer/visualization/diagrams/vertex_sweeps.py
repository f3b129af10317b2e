"""Derivatives at the vertices and edges of a graph, and the formulas that compute them.

All numbers and formulas are read from tapes of the core package: pictures show the computation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from cgprimer.analysis.element_graph import find_shape, list_element_names
from cgprimer.analysis.scalar_points import complete_point
from cgprimer.core.derivatives import jacobian, resolve_output, resolve_wrt
from cgprimer.core.language.syntax_tree import Symbol, operator_name
from cgprimer.core.methods.edge_tape import edge_tape
from cgprimer.errors import UsageError
from cgprimer.expressions import (
    Apply,
    Expression,
    ExpressionGraph,
    Name,
    Number,
    parse,
    parse_element,
    unparse,
)
from cgprimer.support.number_format import SHORT, format_number
from cgprimer.support.value_names import Element
from cgprimer.tapes import Tape, labels, values_of
from cgprimer.tapes import tape as tape_of
from cgprimer.visualization.diagrams.level_diagrams import format_shape_suffix


class SweepNumbers(NamedTuple):
    """The numerical results of one forward or backward sweep, keyed by vertex or edge.

    Attributes:
        order: the vertices, operands before the vertices computed from them.
        partials: the partial derivative on each edge ``(tail, head)``; edges whose partial is zero
            everywhere are omitted.
        totals: the adjoint or tangent of each vertex that the sweep reaches.
        products: the contribution of each edge to a total.
    """

    order: tuple[str, ...]
    partials: Mapping[tuple[str, str], float]
    totals: Mapping[str, float]
    products: Mapping[tuple[str, str], float]


def compute_sweep_numbers(
    graph: ExpressionGraph,
    at: Mapping[str, float] | None = None,
    *,
    level: str = "variables",
    of: str | None = None,
    wrt: str | None = None,
) -> SweepNumbers:
    """Compute all partials, and the adjoints of output ``of`` or the tangents for seed ``wrt``.

    Keys are names, or indices of tape values for the level ``operations``.

    Raises `MissingValueError` if an input or parameter has no value.

    >>> from cgprimer.core.graph import parse
    >>> sweep = compute_sweep_numbers(parse("input xa = 3; xb = 2*xa; xw = xb^2"), of="xw")
    >>> sweep.partials, sweep.totals
    ({('xa', 'xb'): 2.0, ('xb', 'xw'): 12.0}, {'xw': 1.0, 'xb': 12.0, 'xa': 24.0})
    """
    primal = tape_of(graph)
    operations = level == "operations"
    edges = edge_tape(primal, of=of, wrt=wrt, operations=operations)
    values = [float(value) for value in values_of(edges.tape, complete_point(graph, at))]
    key = {i: str(i) if operations else primal.labels[i] for i in edges.vertices}
    key_on_tape = {edges.vertices[i]: key[i] for i in edges.vertices}
    return SweepNumbers(
        tuple(key.values()),
        {(key[t], key[h]): values[index] for (t, h), index in edges.partials.items()},
        {key[i]: values[index] for i, index in edges.totals.items()},
        {(key_on_tape[c.tail], key_on_tape[c.head]): values[c.product] for c in edges.tape.shares},
    )


class EdgeContribution(NamedTuple):
    """The contribution of an edge to an adjoint; `tail` and `head` are indices on the primal tape.

    `partial` and `product` are indices of values of the sweep's own tape.
    """

    tail: int
    head: int
    partial: int
    product: int


class BackwardSweep:
    """A symbolic backward sweep that starts at one output; vertices are values on the primal tape.

    Attributes:
        tape: the primal tape.
        vertices: indices of the vertices, in order.
        names: the label of each vertex, keyed by index.
        contributions: the product on each edge, in the order of the sweep.
    """

    def __init__(self, tape: Tape, target: str, operations: bool) -> None:
        if shape := tape.shapes[tape.index(target)]:
            first = str(Element(target, (0,) * len(shape)))
            raise UsageError(
                f"a backward sweep must start at a scalar, but {target!r} has shape"
                f"{format_shape_suffix(shape)}",
                hint=f"choose an element: of={first!r} (--of {first!r}), or add the line"
                f" xl = sum({target})",
            )
        names = labels(tape)
        self.tape, self.edges = tape, edge_tape(tape, of=target, operations=operations)
        self.vertices = tuple(self.edges.vertices)
        self.names = {i: names[i] for i in self.vertices}
        index = {new: old for old, new in self.edges.vertices.items()}
        self.contributions = [
            EdgeContribution(index[c.tail], index[c.head], c.partial, c.product)
            for c in self.edges.tape.shares
        ]
        self._labels = {new: names[old] for old, new in self.edges.vertices.items() if names[old]}

    def build_partial_formula(self, contribution: EdgeContribution) -> Expression:
        """Build the expression for the partial derivative on an edge."""
        return build_formula(self.edges.tape, contribution.partial, self._labels)

    def build_product_formula(self, contribution: EdgeContribution) -> Expression:
        """Build the expression for the contribution of an edge, given the adjoint of its head."""
        head = contribution.head
        names = {**self._labels, self.edges.totals[head]: f"bar_{self.names[head]}"}
        return _simplify_notation(build_formula(self.edges.tape, contribution.product, names))

    def evaluate(
        self, graph: ExpressionGraph, at: Mapping[str, Any] | None = None
    ) -> BackwardNumbers:
        """Evaluate the adjoints and the contributions at a point."""
        import numpy as np

        values = values_of(self.edges.tape, complete_point(graph, at))
        shapes = {i: self.tape.shapes[i] for i in self.vertices}
        totals = {i: np.broadcast_to(values[j], shapes[i]) for i, j in self.edges.totals.items()}
        products = {
            (c.tail, c.head): (
                self.build_product_formula(c),
                np.broadcast_to(values[c.product], shapes[c.tail]),
            )
            for c in self.contributions
        }
        return BackwardNumbers(self.tape, self.vertices, self.names, totals, products)


@dataclass(frozen=True, eq=False)
class BackwardNumbers:
    """The numerical results of a backward sweep, for the values on the primal tape.

    Attributes:
        tape: the primal tape.
        vertices: indices of the vertices, in order.
        names: the label of each vertex, keyed by index.
        totals: the adjoint of each vertex, with the shape of the vertex.
        products: for each edge ``(tail, head)`` the formula of its contribution, and its value.
    """

    tape: Tape
    vertices: tuple[int, ...]
    names: Mapping[int, str]
    totals: Mapping[int, Any]
    products: Mapping[tuple[int, int], tuple[Expression, Any]]


def run_backward_sweep(
    graph: ExpressionGraph,
    at: Mapping[str, Any] | None = None,
    of: str | None = None,
    *,
    operations: bool = False,
) -> BackwardNumbers:
    """Run a backward sweep from one output of a graph, which may contain arrays.

    >>> graph = parse("input x[2]=[1, 2]; parameter W[2,2]=[[1, -1], [.5, -2]]; xl = sum(x @ W)")
    >>> sweep = run_backward_sweep(graph)
    >>> [(unparse(formula), value.tolist()) for formula, value in sweep.products.values()]
    [('W @ bar_xl', [0.0, -1.5]), ('outer(x, bar_xl)', [[1.0, 1.0], [2.0, 2.0]])]
    """
    sweep = BackwardSweep(tape_of(graph), resolve_output(graph, of), operations)
    return sweep.evaluate(graph, at)


def compute_local_jacobians(
    graph: ExpressionGraph, at: Mapping[str, Any] | None = None
) -> dict[tuple[str, str], Any]:
    """Compute the Jacobian on each edge ``(tail, head)`` of a graph.

    Each result has the axes of the head, then the axes of the tail.

    >>> graph = parse("input x[2] = [3, 4]; xs = x^2; xw = sum(xs)")
    >>> {edge: value.tolist() for edge, value in compute_local_jacobians(graph).items()}
    {('x', 'xs'): [[6.0, 0.0], [0.0, 8.0]], ('xs', 'xw'): [1.0, 1.0]}
    """
    import numpy as np

    point = complete_point(graph, at)
    values = {**point, **graph.evaluate(point)}
    jacobians: dict[tuple[str, str], Any] = {}
    for head in graph.definitions:
        tails = (*graph.depends_on.get(head, ()), *graph.parameters_of.get(head, ()))
        if not tails:
            continue
        shapes = {n: list(find_shape(graph, n)) for n in tails}
        inputs = ", ".join(f"{n}{shape or ''}".replace(" ", "") for n, shape in shapes.items())
        step = parse(f"input {inputs}\n{head} = {graph.expression(head)}\noutput {head}")
        rows = jacobian(step, {n: values[n] for n in tails}, of=head, wrt=tails)[head]
        full_shapes = {n: (*find_shape(graph, head), *shapes[n]) for n in tails}
        jacobians |= {(n, head): np.broadcast_to(rows[n], full_shapes[n]) for n in tails}
    return jacobians


def compute_tangents(
    graph: ExpressionGraph, at: Mapping[str, Any] | None, seed: str
) -> dict[str, Any]:
    """Compute the tangents of all variables that depend on a seed, a scalar or an array element."""
    base, index = parse_element(seed)
    name = resolve_wrt(graph, base)[0]
    elements = list_element_names(graph, name)
    if seed not in elements:
        raise UsageError(
            f"a forward sweep must start at a scalar, but {name!r} has shape"
            f"{format_shape_suffix(find_shape(graph, name))}",
            hint=f"choose an element, such as {elements[0]}, or draw all elements: scalars=True"
            " (--scalars all)",
        )
    dependent = {name}
    for head in graph.definitions:
        operands = (*graph.depends_on.get(head, ()), *graph.parameters_of.get(head, ()))
        if dependent & {*operands}:
            dependent.add(head)
    targets = [n for n in graph.variables if n in dependent]
    rows = jacobian(graph, complete_point(graph, at), of=targets, wrt=name, method="forward")
    tangents = {n: row[name][(..., *index)] for n, row in rows.items()}
    if name in graph.parameters:
        from cgprimer.support.array_values import zeros

        tangents[name] = zeros(find_shape(graph, name))
        tangents[name][index] = 1.0
    return tangents


def build_formula(tape: Tape, index: int, names: Mapping[int, str]) -> Expression:
    """Return the expression that computes a tape value from named values."""
    if index in names:
        return Name(names[index])
    instruction = tape.instruction(index)
    if instruction is None:
        value = tape.leaves[index].value  # long constants, such as the 1/9 of a mean, are rounded
        return Number(value if len(repr(value)) <= 12 else float(format_number(value, SHORT)))
    primitive, operands = instruction
    return Apply(primitive, tuple(build_formula(tape, o, names) for o in operands))


def _simplify_notation(tree: Expression) -> Expression:
    """Rewrite an expression in textbook notation, such as ``outer(x, y)`` or ``x.T``.

    A column times a row is an outer product, a transpose is ``x.T``, the derivative of ReLU is a
    condition, and reshapes and broadcasts are omitted.
    """
    if not isinstance(tree, Apply):
        return tree
    parts = tuple(map(_simplify_notation, tree.arguments))
    kind = operator_name(tree.primitive)
    if kind in ("broadcast", "reshape"):
        return parts[0]
    if kind == "matmul" and all(
        isinstance(a, Apply) and operator_name(a.primitive) == "reshape" for a in tree.arguments
    ):
        return Apply(Symbol("outer"), parts)
    if kind == "transpose":
        is_name = isinstance(parts[0], Name)
        return Name(f"{unparse(parts[0])}.T" if is_name else f"({unparse(parts[0])}).T")
    if tree.primitive == "less":
        return Name(f"({unparse(parts[1])} > {unparse(parts[0])})")
    return Apply(tree.primitive, parts)
