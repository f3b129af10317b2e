"""The sum over all paths: the chain rule written out.

The derivative of one vertex with respect to another is the sum, over every path from the one to
the other, of the product of the partial derivatives along its edges. That is what the other
methods compute without walking each path; here every path is walked, so the cost grows with
their number, which can be exponential in the size of the graph: beyond ``limit`` paths, or a
hundred times as many edges of all of them, the method refuses.

Vertices are the named values of the tape and its leaves. The partial derivative on an edge
treats the operands of the vertex's own expression as independent of each other.

Source: Bauer 1974, "Computational graphs and rounding error".
"""

from __future__ import annotations

from itertools import pairwise, product

from cgprimer.core.methods.derivative_program import DerivativeProgram, build_single_pass_program
from cgprimer.core.methods.edge_tape import emit_edge_partials
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_dependencies import reachable
from cgprimer.errors import PathLimitError, format_count

LIMIT = 10_000  #: paths beyond which the method refuses, unless told otherwise
_HINT = "reverse mode needs one pass, or raise the limit: `limit=N`"
_EDGES = 100  # of a path, on average: more of them in all are refused, too


def differentiate(
    tape: Tape, of: tuple[str, ...], wrt: tuple[str, ...], *, limit: int = LIMIT
) -> DerivativeProgram:
    """Return the program of the sum over at most ``limit`` paths.

    Raises:
        PathLimitError: there are more; the message says how many.
    """
    roots = [tape.index(name) for name in of]
    sources = [tape.index(name) for name in wrt]
    needed = reachable(tape, roots)
    builder = Builder()
    value = builder.extend(tape, keep=needed)
    edges = emit_edge_partials(builder, tape, value, needed, (*roots, *sources))
    heads: dict[int, list[int]] = {}
    for tail, head in edges:
        heads.setdefault(tail, []).append(head)

    leading = {root: count_paths(heads, root) for root in roots}
    total = sum(leading[root].get(source, 0) for root in roots for source in sources)
    if total > limit:
        raise PathLimitError(
            f"there are {format_count(total)} paths, more than the limit of {limit:,}", hint=_HINT
        )
    lengths = [count_edges(heads, root, leading[root]) for root in roots]
    walked = sum(of_root.get(source, 0) for of_root in lengths for source in sources)
    if walked > limit * _EDGES:
        raise PathLimitError(
            f"the {total:,} paths have {walked:,} edges, more than the limit of {limit * _EDGES:,}",
            hint=_HINT,
        )
    derivatives: dict[tuple[str, str], int] = {}
    paths: dict[tuple[str, str], tuple[tuple[str, ...], ...]] = {}
    builder.share = False  # every path pays for its own product: that is the method
    labels = {**dict(zip(roots, of, strict=True)), **tape.labels}
    for target, name in product(of, wrt):
        source, root = tape.index(name), tape.index(target)
        walks = list_paths(heads, source, root, leading[root])
        paths[target, name] = tuple(
            tuple(labels.get(vertex, f"value {vertex}") for vertex in path) for path in walks
        )
        total_of_paths: int | None = None
        for path in walks:
            along = builder.constant(1.0)
            for tail, head in pairwise(path):
                along = builder.emit("mul", along, edges[tail, head])
            earlier = total_of_paths
            total_of_paths = along if earlier is None else builder.emit("add", earlier, along)
        zero = builder.constant(0.0)
        derivatives[target, name] = zero if total_of_paths is None else total_of_paths
    values = {name: value[root] for name, root in zip(of, roots, strict=True)}
    return build_single_pass_program(
        "path-sum", builder, tape, wrt, values, derivatives, paths=paths
    )


def count_paths(heads: dict[int, list[int]], root: int) -> dict[int, int]:
    """Return the number of paths to the root for each vertex that leads there; walk none."""
    counts = {root: 1}
    for vertex in sorted(heads, reverse=True):  # values are numbered in topological order
        if vertex < root:
            total = sum(counts.get(head, 0) for head in heads[vertex])
            if total:
                counts[vertex] = total
    return counts


def count_edges(heads: dict[int, list[int]], root: int, paths: dict[int, int]) -> dict[int, int]:
    """Return the number of edges of all paths to the root, for each vertex that leads there."""
    edges = {root: 0}
    for vertex in sorted(paths, reverse=True):
        if vertex < root:
            ways = [head for head in heads[vertex] if head in paths]
            edges[vertex] = sum(edges[head] + paths[head] for head in ways)
    return edges


def list_paths(
    heads: dict[int, list[int]], source: int, root: int, leading: dict[int, int]
) -> list[list[int]]:
    """Return every path from one vertex to another, by length and then in order.

    ``leading`` has the vertices that lead to the root; the others are no way to go.
    """
    walks: list[list[int]] = []
    path: list[int] = []
    stack = [(source, 0)] if source in leading else []  # and how many vertices stand before it
    while stack:
        vertex, depth = stack.pop()
        path[depth:] = [vertex]
        if vertex == root:
            walks.append(path.copy())
        else:
            ways = [head for head in heads.get(vertex, ()) if head in leading]
            stack.extend((head, depth + 1) for head in ways)
    return sorted(walks, key=lambda path: (len(path), path))
