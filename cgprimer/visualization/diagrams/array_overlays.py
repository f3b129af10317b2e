"""Overlays on graphs with arrays: Jacobians, tangents and adjoints as small matrices.

What flows back along an edge is written as it is computed, ``outer(x, bar_xh)``, with its shape and
its numbers where they are few. Text is read off core's tapes, as in `overlays.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from cgprimer.analysis.element_graph import elements_of, shape_in
from cgprimer.analysis.scalar_points import point_values
from cgprimer.core.derivatives import jacobian, resolve_output, resolve_wrt
from cgprimer.core.language.syntax_tree import Symbol, operator_name
from cgprimer.core.methods.edge_tape import edge_tape
from cgprimer.core.methods.path_sum import count_paths, list_paths
from cgprimer.errors import UsageError, pluralize
from cgprimer.expressions import (
    Apply,
    Expression,
    ExpressionGraph,
    Name,
    Number,
    Shape,
    parse,
    parse_element,
    unparse,
)
from cgprimer.support.number_format import SHORT, format_array_lines, format_number
from cgprimer.support.value_names import Element
from cgprimer.tapes import Tape, labels, values_of
from cgprimer.tapes import tape as tape_of
from cgprimer.visualization.diagrams.diagram import Diagram, Edge, Node
from cgprimer.visualization.diagrams.overlays import Overlay, check_path

_LISTED = 4  # paths that are written out
_ON_EDGES = 3  # rows and columns of a matrix on an edge
_LONGEST = 60  # characters on an edge: what takes more, as a softmax, is told as a product


def array_overlaid(diagram: Diagram, graph: ExpressionGraph, asked: Overlay) -> Diagram:
    """The same as `overlays.overlaid`, for a graph with arrays.

    >>> from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram
    >>> graph = parse("input x[2] = [3, 4]; parameter w[2] = [1, 2]; xw = x @ w")
    >>> found = graph_diagram(graph, adjoints=True)
    >>> [node.detail[-1] for node in found.nodes], found.edges[0].label.split("\\n")
    (['adjoint = [3, 4]', 'adjoint = [1, 2]', 'adjoint = 1'], ['w [2]', '= [1, 2]'])
    """
    at, level, partials, tangents, adjoints, of, path = asked
    if (partials or path) and level == "operations":
        raise UsageError(
            "between operations on arrays there are no single partials",
            hint="level='variables' (--level variables), or every number: scalars=True"
            " (--scalars all)",
        )
    if path:
        check_path(graph, path)
    lines: dict[str, list[str]] = {}
    written: dict[tuple[str, str], list[str]] = {}
    notes = list(diagram.notes)
    steps = set(pairwise(path))
    locals_: dict[tuple[str, str], Any] = {}
    if partials or path:
        locals_ = local_jacobians(graph, at)
        for (tail, head), value in locals_.items():
            if partials or (tail, head) in steps:
                text = f"∂{head}/∂{tail}{shape_text(value.shape)}"
                written[tail, head] = _under(text, value)
    if tangents:
        found = _tangents(graph, at, tangents)
        for name in (*graph.variables, *graph.parameters):
            lines[name] = _named("tangent", found.get(name))
        notes.append(
            f"tangent: derivative with respect to {tangents}, computed forward from the seed 1"
        )
    if adjoints:
        target = resolve_output(graph, of)
        for key, value in _adjoints(graph, at, target, level, written).items():
            lines.setdefault(key, []).extend(_named("adjoint", value))
        notes.append(
            f"adjoint: derivative of {target}, of the shape of its vertex; on edges: the term added"
            " to the adjoint at the tail"
        )
    if path:
        notes += _path_notes(graph, locals_, path)
    missing = _named("adjoint", None) if adjoints else []

    def vertex(node: Node) -> Node:
        more = [] if node.role == "constant" else lines.get(node.key, missing)
        return replace(node, detail=(*node.detail, *more), emphasis=node.key in path)

    def arrow(edge: Edge) -> Edge:
        ends = (edge.tail, edge.head)
        text = "\n".join(filter(None, (edge.label, *written.get(ends, ()))))
        return replace(edge, label=text, emphasis=ends in steps)

    nodes, edges = tuple(map(vertex, diagram.nodes)), tuple(map(arrow, diagram.edges))
    return replace(diagram, nodes=nodes, edges=edges, notes=tuple(notes))


def local_jacobians(
    graph: ExpressionGraph, at: Mapping[str, Any] | None = None
) -> dict[tuple[str, str], Any]:
    """For each edge ``(tail, head)`` its partial derivatives, of the head's shape and the tail's.

    >>> graph = parse("input x[2] = [3, 4]; xs = x^2; xw = sum(xs)")
    >>> {edge: value.tolist() for edge, value in local_jacobians(graph).items()}
    {('x', 'xs'): [[6.0, 0.0], [0.0, 8.0]], ('xs', 'xw'): [1.0, 1.0]}
    """
    import numpy as np

    point = point_values(graph, at)
    values = {**point, **graph.evaluate(point)}
    found: dict[tuple[str, str], Any] = {}
    for head in graph.definitions:
        tails = (*graph.depends_on.get(head, ()), *graph.parameters_of.get(head, ()))
        if not tails:
            continue
        shapes = {n: list(shape_in(graph, n)) for n in tails}
        given = ", ".join(f"{n}{shape or ''}".replace(" ", "") for n, shape in shapes.items())
        alone = parse(f"input {given}\n{head} = {graph.expression(head)}\noutput {head}")
        rows = jacobian(alone, {n: values[n] for n in tails}, of=head, wrt=tails)[head]
        whole = {n: (*shape_in(graph, head), *shapes[n]) for n in tails}
        found |= {(n, head): np.broadcast_to(rows[n], whole[n]) for n in tails}
    return found


def _tangents(graph: ExpressionGraph, at: Mapping[str, Any] | None, seed: str) -> dict[str, Any]:
    """The derivative of everything that a seed leads to with respect to it, a number."""
    base, place = parse_element(seed)
    name = resolve_wrt(graph, base)[0]
    known = elements_of(graph, name)
    if seed not in known:
        raise UsageError(
            f"a tangent is along one direction, and {name!r} has the shape"
            f"{shape_text(shape_in(graph, name))}",
            hint=f"name one of its numbers, as {known[0]}, or draw all numbers: scalars=True"
            " (--scalars all)",
        )
    reached = {name}
    for head in graph.definitions:
        used = (*graph.depends_on.get(head, ()), *graph.parameters_of.get(head, ()))
        if reached & {*used}:
            reached.add(head)
    targets = [n for n in graph.variables if n in reached]
    found = jacobian(graph, point_values(graph, at), of=targets, wrt=name, method="forward")
    tangents = {n: row[name][(..., *place)] for n, row in found.items()}
    if name in graph.parameters:
        from cgprimer.support.array_values import zeros

        tangents[name] = zeros(shape_in(graph, name))
        tangents[name][place] = 1.0
    return tangents


def _adjoints(
    graph: ExpressionGraph,
    at: Mapping[str, Any] | None,
    target: str,
    level: str,
    written: dict[tuple[str, str], list[str]],
) -> dict[str, Any]:
    """The adjoint of each vertex; on edges what is handed back goes into ``written``."""
    primal, operations = tape_of(graph), level == "operations"
    flow = back_flow(graph, at, target, operations=operations)
    key = {i: str(i) if operations else primal.labels[i] for i in flow.vertices}
    for (tail, head), (tree, value) in flow.products.items():
        text = unparse(tree)
        if len(text) > _LONGEST:
            text = f"bar_{flow.names[head]} · ∂{flow.names[head]}/∂{flow.names[tail]}"
        text += shape_text(primal.shapes[tail])
        written.setdefault((key[tail], key[head]), []).extend(_under(text, value))
    return {key[i]: total for i, total in flow.totals.items()}


class BackFlow:
    """What a sweep back over a graph with arrays computes; keys are values of the primal.

    Attributes:
        vertices: in order.
        totals: adjoints, each of its vertex's shape.
        products: on each edge ``(tail, head)`` what is handed back: how it is computed, in names of
            the graph and its adjoints, and its numbers.
    """

    def __init__(self, tape: Tape, target: str, operations: bool) -> None:
        if shape := tape.shapes[tape.index(target)]:
            first = str(Element(target, (0,) * len(shape)))
            raise UsageError(
                f"a backward sweep begins at one number, and {target!r} has the shape"
                f"{shape_text(shape)}",
                hint=f"name one of its numbers: of={first!r} (--of {first!r}), or add a line:"
                f" xl = sum({target})",
            )
        self.tape, self.made = tape, edge_tape(tape, of=target, operations=operations)
        self.vertices = tuple(self.made.vertices)
        names = labels(tape)
        self.names = {i: names[i] for i in self.vertices}
        self.known = {new: names[old] for old, new in self.made.vertices.items() if names[old]}
        old = {new: old for old, new in self.made.vertices.items()}
        self.shares = [(old[s.tail], old[s.head], s.product) for s in self.made.tape.shares]
        self.totals: dict[int, Any] = {}
        self.products: dict[tuple[int, int], tuple[Expression, Any]] = {}

    def written(self, head: int, product: int) -> Expression:
        """How what an edge hands back is computed."""
        known = {**self.known, self.made.totals[head]: f"bar_{self.names[head]}"}
        return _readable(value_tree(self.made.tape, product, known))

    def at(self, graph: ExpressionGraph, at: Mapping[str, Any] | None) -> BackFlow:
        """The same with numbers."""
        import numpy as np

        found = values_of(self.made.tape, point_values(graph, at))
        shape = {i: self.tape.shapes[i] for i in self.vertices}
        self.totals = {
            i: np.broadcast_to(found[new], shape[i]) for i, new in self.made.totals.items()
        }
        made = ((t, h, self.written(h, p), found[p]) for t, h, p in self.shares)
        self.products = {(t, h): (w, np.broadcast_to(v, shape[t])) for t, h, w, v in made}
        return self


def back_flow(
    graph: ExpressionGraph,
    at: Mapping[str, Any] | None = None,
    of: str | None = None,
    *,
    operations: bool = False,
) -> BackFlow:
    """A sweep back from an output, with its numbers.

    >>> graph = parse("input x[2]=[1, 2]; parameter W[2,2]=[[1, -1], [.5, -2]]; xl = sum(x @ W)")
    >>> found = back_flow(graph)
    >>> [(unparse(tree), value.tolist()) for tree, value in found.products.values()]
    [('W @ bar_xl', [0.0, -1.5]), ('outer(x, bar_xl)', [[1.0, 1.0], [2.0, 2.0]])]
    """
    return BackFlow(tape_of(graph), resolve_output(graph, of), operations).at(graph, at)


def value_tree(tape: Tape, index: int, known: Mapping[int, str]) -> Expression:
    """A value as an expression in the names that are known; there are only a few operations."""
    if index in known:
        return Name(known[index])
    instruction = tape.instruction(index)
    if instruction is None:
        value = tape.leaves[index].value  # 1/9 of a mean is nothing that anybody wrote
        return Number(value if len(repr(value)) <= 12 else float(format_number(value, SHORT)))
    primitive, operands = instruction
    return Apply(primitive, tuple(value_tree(tape, o, known) for o in operands))


def _readable(tree: Expression) -> Expression:
    """Return an expression as slides write it.

    A column times a row is an outer product, a transpose is ``x.T``, the derivative of a ReLU is a
    condition, and shapes are left out.
    """
    if not isinstance(tree, Apply):
        return tree
    parts = tuple(map(_readable, tree.arguments))
    kind = operator_name(tree.primitive)
    if kind in ("broadcast", "reshape"):
        return parts[0]
    if kind == "matmul" and all(
        isinstance(a, Apply) and operator_name(a.primitive) == "reshape" for a in tree.arguments
    ):
        return Apply(Symbol("outer"), parts)
    if kind == "transpose":
        name = isinstance(parts[0], Name)
        return Name(f"{unparse(parts[0])}.T" if name else f"({unparse(parts[0])}).T")
    if tree.primitive == "less":
        return Name(f"({unparse(parts[1])} > {unparse(parts[0])})")
    return Apply(tree.primitive, parts)


def _path_notes(
    graph: ExpressionGraph, partials: Mapping[tuple[str, str], Any], path: Sequence[str]
) -> list[str]:
    """The product of Jacobians along a path, and their sum over all paths between its ends."""
    order = (*graph.parameters, *graph.variables)
    rank = {name: number for number, name in enumerate(order)}
    heads: dict[int, list[int]] = {}
    for tail, head in sorted((rank[t], rank[h]) for t, h in partials):
        heads.setdefault(tail, []).append(head)
    first, last = path[0], path[-1]
    factors = [f"∂{head}/∂{tail}{shape_text(partials[tail, head].shape)}" for tail, head in
               reversed(list(pairwise(path)))]  # fmt: skip
    notes = [f"this path: {' · '.join(factors)} {_in_line(_product(graph, partials, path))}"]
    leading = count_paths(heads, rank[last])
    count = leading.get(rank[first], 0)
    total = jacobian_of(partials, graph, first, last, order)
    derivative = f"d{last}/d{first} {_in_line(total)}"
    if count == 1:
        return [*notes, f"{derivative}: there is no other path"]
    walked = list_paths(heads, rank[first], rank[last], leading) if count <= _LISTED else []
    for walk in walked:
        names = [order[i] for i in walk]
        notes.append(f"{' → '.join(names)}: {_in_line(_product(graph, partials, names))}")
    return [*notes, f"{derivative}, the sum over {pluralize(count, 'path')}"]


def _product(
    graph: ExpressionGraph, partials: Mapping[tuple[str, str], Any], path: Sequence[str]
) -> Any:
    """The Jacobians along a path, multiplied from its end to its beginning."""
    import numpy as np

    made: Any = None
    for tail, head in reversed([*pairwise(path)]):
        part = partials[tail, head]
        made = part if made is None else np.tensordot(made, part, axes=len(shape_in(graph, head)))
    return made


def jacobian_of(
    partials: Mapping[tuple[str, str], Any],
    graph: ExpressionGraph,
    first: str,
    last: str,
    order: Sequence[str],
) -> Any:
    """The sum over all paths between two vertices, vertex by vertex."""
    import numpy as np

    along: dict[str, Any] = {}
    for name in order[order.index(first) :] if first in graph.variables else order:
        for (tail, head), partial in partials.items():
            if head != name or (tail != first and tail not in along):
                continue
            axes = len(shape_in(graph, tail))
            part = partial if tail == first else np.tensordot(partial, along[tail], axes=axes)
            along[name] = along[name] + part if name in along else part
    return along[last]


def shape_text(shape: Shape) -> str:
    """What stands behind a name: nothing, for a number.

    >>> shape_text((2, 3)), shape_text(())
    (' [2,3]', '')
    """
    return f" [{','.join(map(str, shape))}]" if shape else ""


def _under(text: str, value: Any) -> list[str]:
    """A text with the numbers under it, or with their norm alone where they are many."""
    lines = format_array_lines(value, max_size=_ON_EDGES)
    return [text, *(lines[-1:] if lines[-1].startswith("norm") else lines)]


def _in_line(value: Any) -> str:
    return " ".join(format_array_lines(value))


def _named(what: str, value: Any) -> list[str]:
    if value is None:
        return [f"{what} = 0"]  # in every element: no path leads there
    first, *rest = format_array_lines(value)
    return [f"{what} {first}", *rest]
