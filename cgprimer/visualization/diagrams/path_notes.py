"""Notes on a highlighted path: its product of partials, and the sum over all paths."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from cgprimer.analysis.element_graph import find_shape
from cgprimer.core.methods.path_sum import count_paths, list_paths
from cgprimer.errors import UsageError, pluralize
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.number_format import (
    SHORT,
    choose_equality_sign,
    format_array_lines,
    format_number,
)
from cgprimer.support.value_names import element_hint
from cgprimer.visualization.diagrams.level_diagrams import format_shape_suffix
from cgprimer.visualization.diagrams.vertex_sweeps import SweepNumbers

_MAX_LISTED = 12  # paths of scalars that are written out under a picture
_MAX_LISTED_ARRAYS = 4  # the same for arrays, whose products are matrices
_EXACT_DIGITS = 7  # a number with at most this many digits is not rounded
_MAX_SEARCHED = 5_000  # paths that are enumerated
Edges = Iterable[tuple[str, str]]


def check_path(graph: ExpressionGraph, path: tuple[str, ...]) -> None:
    """Raise UsageError unless a path has at least two vertices and follows edges of the graph."""
    names = (*graph.variables, *graph.parameters)
    for name in path:
        if name not in names:
            hint = element_hint(name, names)
            raise UsageError(f"unknown vertex {name!r} in `path`", hint=hint)
    for tail, head in pairwise(path) if len(path) > 1 else [(path[0], None)]:
        users = [user for user, used in graph.parameters_of.items() if tail in used]
        heads = graph.leads_to.get(tail) or users
        hint = f"choose a successor of {tail}: {', '.join(heads)}" if heads else ""
        if head is None:
            raise UsageError(f"`path` must have at least two vertices, got {tail!r}", hint=hint)
        if head not in heads:
            raise UsageError(f"the graph has no edge from {tail!r} to {head!r}", hint=hint)


def format_scalar_path_notes(
    numbers: SweepNumbers, path: tuple[str, ...], drawn: Edges = ()
) -> list[str]:
    """Format the product along a path of scalars, and the sum over all paths between its ends.

    Edges in `drawn` count even if their partial is zero everywhere, as under ``sign``: the picture
    shows their paths, and each of them adds 0.

    >>> partials = {("a", "b"): 2.0, ("a", "c"): 3.0, ("b", "c"): -5.0}
    >>> numbers = SweepNumbers(("a", "b", "c"), partials, {"c": -7.0}, {})
    >>> for line in format_scalar_path_notes(numbers, ("a", "b", "c")):
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
    factors = [numbers.partials.get(edge, 0.0) for edge in pairwise(path)]
    notes = [f"this path: {names} {equality_sign(*factors)} {_multiply_scalars(numbers, path)[0]}"]
    edges = {*drawn, *numbers.partials}
    count, paths = _find_paths(numbers.order, edges, first, last, _MAX_SEARCHED)
    derivative = f"d{last}/d{first}"
    if count == 1:
        value = f"{derivative} {equality_sign(total)} {format_exact(total)}"
        return [*notes, f"{value}: there is no other path"]
    notes.append(f"{derivative} is the sum over {pluralize(count, 'path')}:")
    if count > _MAX_LISTED:  # the highlighted path is always among those written out
        paths = [path, *[other for other in paths if other != path][: _MAX_LISTED - 1]]
    products = [_multiply_scalars(numbers, path) for path in paths]
    notes += [f"{' → '.join(p)}: {text}" for p, (text, _) in zip(paths, products, strict=True)]
    values = [value for _, value in products]
    if rest := count - len(paths):
        rest_sum = format_exact(total - sum(values))
        notes.append(f"and {pluralize(rest, 'more path')}, sum {rest_sum}")
        return [*notes, f"{derivative} {equality_sign(total)} {format_exact(total)}"]
    terms = " + ".join([format_exact(values[0]), *map(format_operand, values[1:])])
    signs = equality_sign(*values), equality_sign(*values, total)
    return [*notes, f"{derivative} {signs[0]} {terms} {signs[1]} {format_exact(total)}"]


def format_array_path_notes(
    graph: ExpressionGraph, jacobians: Mapping[tuple[str, str], Any], path: Sequence[str]
) -> list[str]:
    """Format the product of Jacobians along a path, and the sum over all paths between its ends."""
    order = (*graph.parameters, *graph.variables)
    first, last = path[0], path[-1]
    factors = [
        f"∂{head}/∂{tail}{format_shape_suffix(jacobians[tail, head].shape)}"
        for tail, head in reversed([*pairwise(path)])
    ]
    product = _format_in_line(_multiply_jacobians(graph, jacobians, path))
    notes = [f"this path: {' · '.join(factors)} {product}"]
    count, paths = _find_paths(order, jacobians, first, last, _MAX_LISTED_ARRAYS)
    total = _sum_over_paths(graph, jacobians, first, last, order)
    derivative = f"d{last}/d{first} {_format_in_line(total)}"
    if count == 1:
        return [*notes, f"{derivative}: there is no other path"]
    for names in paths:
        product = _format_in_line(_multiply_jacobians(graph, jacobians, names))
        notes.append(f"{' → '.join(names)}: {product}")
    return [*notes, f"{derivative}, the sum over {pluralize(count, 'path')}"]


def _find_paths(
    order: Sequence[str], edges: Edges, first: str, last: str, limit: int
) -> tuple[int, list[tuple[str, ...]]]:
    """Count the paths between two vertices; list the paths if there are at most `limit`.

    `order` lists the vertices in topological order.
    """
    rank = {name: position for position, name in enumerate(order)}
    heads: dict[int, list[int]] = {}
    for tail, head in sorted((rank[t], rank[h]) for t, h in edges):
        heads.setdefault(tail, []).append(head)
    counts = count_paths(heads, rank[last])
    count = counts.get(rank[first], 0)
    if count > limit:
        return count, []
    walks = list_paths(heads, rank[first], rank[last], counts)
    return count, [tuple(order[i] for i in walk) for walk in walks]


def _multiply_scalars(numbers: SweepNumbers, path: Sequence[str]) -> tuple[str, float]:
    """Return the product of the partials along a path, both as an equation and as a float."""
    partials = [numbers.partials.get(edge) for edge in pairwise(path)]
    factors = [0.0 if partial is None else partial for partial in partials]
    # A partial that is zero everywhere makes the product 0, even if another partial is infinite.
    product = 0.0 if None in partials else math.prod(factors)
    if len(factors) == 1:
        return format_exact(product), product
    terms = [format_exact(factors[0]), *map(format_operand, factors[1:])]
    sign = equality_sign(*factors, product)
    return f"{' · '.join(terms)} {sign} {format_exact(product)}", product


def _multiply_jacobians(
    graph: ExpressionGraph, jacobians: Mapping[tuple[str, str], Any], path: Sequence[str]
) -> Any:
    """Return the product of the Jacobians along a path, multiplied starting at the path's end."""
    import numpy as np

    *rest, last = pairwise(path)
    product = jacobians[last]
    for tail, head in reversed(rest):
        axes = len(find_shape(graph, head))
        product = np.tensordot(product, jacobians[tail, head], axes=axes)
    return product


def _sum_over_paths(
    graph: ExpressionGraph,
    jacobians: Mapping[tuple[str, str], Any],
    first: str,
    last: str,
    order: Sequence[str],
) -> Any:
    """Return the sum of the products of Jacobians over all paths between two vertices."""
    import numpy as np

    sums: dict[str, Any] = {}
    for name in order[order.index(first) :] if first in graph.variables else order:
        for (tail, head), local in jacobians.items():
            if head != name or (tail != first and tail not in sums):
                continue
            axes = len(find_shape(graph, tail))
            term = local if tail == first else np.tensordot(local, sums[tail], axes=axes)
            sums[name] = sums[name] + term if name in sums else term
    return sums[last]


def format_exact(value: float) -> str:
    """Format a number exactly if it has few digits, such as 22.6875; otherwise round it."""
    return format_number(value, _EXACT_DIGITS if equality_sign(value) == "=" else SHORT)


def format_operand(value: float) -> str:
    """Format a number as an operand, with parentheses if it is negative."""
    text = format_exact(value)
    return f"({text})" if text.startswith("-") else text


def equality_sign(*values: float) -> str:
    """Return ``=`` if all numbers are printed without rounding, otherwise ``≈``."""
    return choose_equality_sign(*values, digits=_EXACT_DIGITS)


def _format_in_line(value: Any) -> str:
    """Format the elements of an array on one line."""
    return " ".join(format_array_lines(value))
