"""What is written over a picture: partials, tangents, adjoints, one path and the sum over paths.

An overlay is text for vertices and edges, laid over a diagram by a function from diagrams to
diagrams. Without a path a derivative is 0, as traces and gradients have it, also where a partial is
not finite. The sweep is core's: the shares of `cgprimer.core.methods.edge_tape` are read, so a
class sees what was computed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

from cgprimer.analysis.scalar_points import point_values
from cgprimer.core.derivatives import resolve_output, resolve_wrt
from cgprimer.core.methods.edge_tape import edge_tape
from cgprimer.core.methods.path_sum import count_paths, list_paths
from cgprimer.errors import UsageError, pluralize
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.number_format import SHORT, choose_equality_sign, format_number
from cgprimer.support.value_names import element_hint
from cgprimer.tapes import tape as tape_of
from cgprimer.tapes import values_of
from cgprimer.visualization.diagrams.diagram import Diagram, Edge, Node

_LISTED = 12  # paths that are written out under a picture
_WHOLE = 7  # digits of a number that is written as it is
_WALKED = 5_000  # paths that are looked for


class SweepNumbers(NamedTuple):
    """What can be said at each vertex and edge; keys are names, or numbers of a tape's values."""

    order: tuple[str, ...]  # the vertices, operands before what is computed from them
    partials: Mapping[tuple[str, str], float]  # of (tail, head); none where it is 0 everywhere
    totals: Mapping[str, float]  # adjoints or tangents, where the sweep comes
    products: Mapping[tuple[str, str], float]  # what the sweep hands along


class Overlay(NamedTuple):
    """What is written over a picture, in the words of :func:`cgprimer.draw`."""

    at: Mapping[str, Any] | None = None
    level: str = "variables"
    partials: bool = False
    tangents: str | None = None
    adjoints: bool = False
    of: str | None = None
    path: tuple[str, ...] = ()


def path_names(path: str | Sequence[str] | None) -> tuple[str, ...]:
    """Names along a path, given as a sequence or as text.

    >>> path_names("xa xx, xz -> xw")
    ('xa', 'xx', 'xz', 'xw')
    """
    if isinstance(path, str):
        return tuple(name for name in re.split(r"[\s>→-]+|,(?![^\[]*\])", path) if name)
    return tuple(path or ())


def overlaid(diagram: Diagram, graph: ExpressionGraph, asked: Overlay) -> Diagram:
    """The diagram of a graph at a level, with lines on its vertices and edges, and notes under it.

    Errors are those of :func:`cgprimer.draw`.

    >>> from cgprimer.visualization.diagrams.graph_diagrams import variable_diagram
    >>> from cgprimer.core.graph import parse
    >>> graph = parse("input xa = 3; xb = 2*xa; xw = xb^2")
    >>> found = overlaid(variable_diagram(graph), graph, Overlay(adjoints=True))
    >>> [node.detail[-1] for node in found.nodes], found.edges[0].label
    (['adjoint = 24', 'adjoint = 12', 'adjoint = 1'], '12 × 2 = 24')
    """
    at, level, partials, tangents, adjoints, of, path = asked
    if path:
        check_path(graph, path)
    seed = resolve_wrt(graph, tangents)[0] if tangents else None
    of = resolve_output(graph, of) if adjoints else None
    backward = sweep_numbers(graph, at, level=level, of=of)
    forward = sweep_numbers(graph, at, level=level, wrt=seed) if seed else backward
    steps = set(pairwise(path))

    def vertex(node: Node) -> Node:
        lines = list(node.detail)
        if node.role != "constant":
            lines += [_named("tangent", forward.totals.get(node.key, 0.0))] if seed else []
            lines += [_named("adjoint", backward.totals.get(node.key, 0.0))] if of else []
        return replace(node, detail=tuple(lines), emphasis=node.key in path)

    role = {node.key: node.role for node in diagram.nodes}
    label = {node.key: node.label for node in diagram.nodes}

    def arrow(edge: Edge) -> Edge:
        ends = (edge.tail, edge.head)
        lines = [edge.label] if edge.label else []
        if role[edge.tail] != "constant":
            local = backward.partials.get(ends, 0.0)  # zero everywhere: no instruction computes it
            if partials or ends in steps:
                what = "" if level == "operations" else f"∂{label[ends[1]]}/∂{label[ends[0]]}"
                lines.append(f"{what} {_equal(local)} {_text(local)}" if what else _text(local))
            if of:
                upstream = backward.totals.get(edge.head, 0.0)
                down = backward.products.get(ends, 0.0)  # zero everywhere: nothing is handed along
                sign = _equal(upstream, local, down)
                lines.append(f"{_text(upstream)} × {_signed(local)} {sign} {_text(down)}")
        return replace(edge, label="\n".join(lines), emphasis=ends in steps)

    notes = list(diagram.notes)
    if seed:
        notes.append(
            f"tangent: derivative with respect to {seed}, computed forward from the seed 1"
        )
    if of:
        notes.append(
            f"adjoint: derivative of {of}, computed backward from the seed 1; "
            "on edges: upstream × local = downstream"
        )
    if path:
        numbers = sweep_numbers(graph, at, wrt=path[0])
        notes += path_notes(numbers, path, [(edge.tail, edge.head) for edge in diagram.edges])
    nodes, edges = tuple(map(vertex, diagram.nodes)), tuple(map(arrow, diagram.edges))
    return replace(diagram, nodes=nodes, edges=edges, notes=tuple(notes))


def sweep_numbers(
    graph: ExpressionGraph,
    at: Mapping[str, float] | None = None,
    *,
    level: str = "variables",
    of: str | None = None,
    wrt: str | None = None,
) -> SweepNumbers:
    """Partials and a sweep: back from ``of`` (adjoints) or forward from ``wrt`` (tangents).

    Keys are names, or the tape's numbers for the level ``operations``.

    Raises `MissingValueError` where a value is missing.

    >>> from cgprimer.core.graph import parse
    >>> found = sweep_numbers(parse("input xa = 3; xb = 2*xa; xw = xb^2"), of="xw")
    >>> found.partials, found.totals
    ({('xa', 'xb'): 2.0, ('xb', 'xw'): 12.0}, {'xw': 1.0, 'xb': 12.0, 'xa': 24.0})
    """
    primal = tape_of(graph)
    operations = level == "operations"
    made = edge_tape(primal, of=of, wrt=wrt, operations=operations)
    found = [float(value) for value in values_of(made.tape, point_values(graph, at))]
    key = {i: str(i) if operations else primal.labels[i] for i in made.vertices}
    name = {made.vertices[i]: key[i] for i in made.vertices}
    return SweepNumbers(
        tuple(key.values()),
        {(key[t], key[h]): found[index] for (t, h), index in made.partials.items()},
        {key[i]: found[index] for i, index in made.totals.items()},
        {(name[s.tail], name[s.head]): found[s.product] for s in made.tape.shares},
    )


def path_notes(
    numbers: SweepNumbers, path: tuple[str, ...], drawn: Iterable[tuple[str, str]] = ()
) -> list[str]:
    """The product along a path, and the sum over all paths between its ends, line by line.

    An edge that is drawn counts although its partial is zero everywhere, as under ``sign``: the
    picture shows its paths, and each of them adds 0.

    >>> partials = {("a", "b"): 2.0, ("a", "c"): 3.0, ("b", "c"): -5.0}
    >>> numbers = SweepNumbers(("a", "b", "c"), partials, {"c": -7.0}, {})
    >>> for line in path_notes(numbers, ("a", "b", "c")):
    ...     print(line)
    this path: ∂b/∂a · ∂c/∂b = 2 · (-5) = -10
    dc/da is the sum over 2 paths:
    a → c: 3
    a → b → c: 2 · (-5) = -10
    dc/da = 3 + (-10) = -7
    """
    first, last = path[0], path[-1]
    total = numbers.totals.get(last, 0.0)
    names = " · ".join(f"∂{head}/∂{tail}" for tail, head in pairwise(path))
    factors = [numbers.partials.get(step, 0.0) for step in pairwise(path)]
    notes = [f"this path: {names} {_equal(*factors)} {_product(numbers, path)[0]}"]
    rank = {key: number for number, key in enumerate(numbers.order)}
    heads: dict[int, list[int]] = {}
    for tail, head in sorted((rank[t], rank[h]) for t, h in {*drawn, *numbers.partials}):
        heads.setdefault(tail, []).append(head)
    leading = count_paths(heads, rank[last])
    count = leading.get(rank[first], 0)
    derivative, is_ = f"d{last}/d{first}", _equal(total)
    if count == 1:
        return [*notes, f"{derivative} {is_} {_text(total)}: there is no other path"]
    notes.append(f"{derivative} is the sum over {pluralize(count, 'path')}:")
    walked = list_paths(heads, rank[first], rank[last], leading) if count <= _WALKED else []
    paths = [tuple(numbers.order[i] for i in found) for found in walked]
    if count > _LISTED:  # the highlighted one is always among those that are written out
        paths = [path, *[found for found in paths if found != path][: _LISTED - 1]]
    written = [_product(numbers, found) for found in paths]
    products = [product for _, product in written]
    notes += [f"{' → '.join(p)}: {text}" for p, (text, _) in zip(paths, written, strict=True)]
    if left := count - len(paths):
        notes.append(f"and {pluralize(left, 'more path')}, together {_text(total - sum(products))}")
        return [*notes, f"{derivative} {is_} {_text(total)}"]
    terms = " + ".join([_text(products[0]), *map(_signed, products[1:])])
    signs = _equal(*products), _equal(*products, total)
    return [*notes, f"{derivative} {signs[0]} {terms} {signs[1]} {_text(total)}"]


def _text(value: float) -> str:
    """A number in all its digits if they are few, as 22.6875 has; otherwise rounded."""
    return format_number(value, _WHOLE if _equal(value) == "=" else SHORT)


def _signed(value: float) -> str:
    """A number that can follow an operator."""
    text = _text(value)
    return f"({text})" if text.startswith("-") else text


def _equal(*values: float) -> str:
    return choose_equality_sign(*values, digits=_WHOLE)


def _product(numbers: SweepNumbers, path: Sequence[str]) -> tuple[str, float]:
    known = [numbers.partials.get(step) for step in pairwise(path)]
    factors = [0.0 if factor is None else factor for factor in known]
    product = 0.0 if None in known else math.prod(factors)  # 0 everywhere, also beside an inf
    if len(factors) == 1:
        return _text(product), product
    terms = [_text(factors[0]), *map(_signed, factors[1:])]
    return f"{' · '.join(terms)} {_equal(*factors, product)} {_text(product)}", product


def _named(what: str, value: float) -> str:
    return f"{what} {choose_equality_sign(value)} {format_number(value)}"


def check_path(graph: ExpressionGraph, path: tuple[str, ...]) -> None:
    """Names along a path are vertices of the graph, and edges lead from one to the next."""
    known = (*graph.variables, *graph.parameters)
    for name in path:
        if name not in known:
            hint = element_hint(name, known)
            raise UsageError(f"the path names {name!r}, which the graph has not", hint=hint)
    for tail, head in pairwise(path) if len(path) > 1 else [(path[0], None)]:
        using = [user for user, used in graph.parameters_of.items() if tail in used]
        heads = graph.leads_to.get(tail) or using
        onward = f"{tail} leads to {', '.join(heads) or 'nothing'}"
        if head is None:
            raise UsageError(f"a path has two ends: {tail!r} is only one", hint=onward)
        if head not in heads:
            raise UsageError(f"no edge leads from {tail!r} to {head!r}", hint=onward)
