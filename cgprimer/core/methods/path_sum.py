"""Path-sum: the chain rule as an explicit sum over all paths.

The derivative of an output with respect to a variable is the sum, over all paths from the variable
to the output, of the product of the partial derivatives along the path. The other methods compute
the same sum without enumerating the paths. The number of paths can be exponential in the size of
the graph, so the method raises an error beyond ``limit`` paths, or 100 times as many edges.

Vertices are the named values of the tape and its leaves. The partial derivative on an edge treats
the variables in the expression of a vertex as independent of each other.

Source: Bauer 1974, "Computational graphs and rounding error".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise, product

from cgprimer.core.methods.derivative_program import DerivativeProgram
from cgprimer.core.methods.edge_tape import emit_edge_partials
from cgprimer.core.methods.single_pass import build_single_pass_program
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_dependencies import reachable
from cgprimer.errors import PathLimitError, format_count

LIMIT = 10_000  #: the default of the maximum number of paths
_HINT = "use reverse mode, or raise the limit: `limit=N`"
_EDGES = 100  # the maximum of the average number of edges of a path, if ``limit`` is reached


def differentiate(
    tape: Tape, of: tuple[str, ...], wrt: tuple[str, ...], *, limit: int = LIMIT
) -> DerivativeProgram:
    """Return the program of the sum over all paths.

    Args:
        tape: the tape to differentiate.
        of: the names to differentiate.
        wrt: the names with respect to which to differentiate.
        limit: the maximum number of paths.

    Raises:
        PathLimitError: there are more paths; the message has their number.
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
    _check_limits(heads, leading, sources, limit)
    derivatives: dict[tuple[str, str], int] = {}
    paths: dict[tuple[str, str], tuple[tuple[str, ...], ...]] = {}
    builder.share = False  # each path has a separate product
    labels = {**dict(zip(roots, of, strict=True)), **tape.labels}
    for target, name in product(of, wrt):
        source, root = tape.index(name), tape.index(target)
        all_paths = list_paths(heads, source, root, leading[root])
        paths[target, name] = tuple(
            tuple(labels.get(vertex, f"value {vertex}") for vertex in path) for path in all_paths
        )
        derivatives[target, name] = _emit_sum_of_paths(builder, edges, all_paths)
    values = {name: value[root] for name, root in zip(of, roots, strict=True)}
    return build_single_pass_program(
        "path-sum", builder, tape, wrt, values, derivatives, paths=paths
    )


def _check_limits(
    heads: Mapping[int, Sequence[int]],
    paths: Mapping[int, Mapping[int, int]],
    sources: Sequence[int],
    limit: int,
) -> None:
    """Raise an error if there are too many paths, or if the paths have too many edges.

    Args:
        heads: for each vertex, the ends of the edges that start there.
        paths: for each root, the number of paths to it, keyed by the vertex at which they start.
        sources: the vertices at which the paths of the method start.
        limit: the maximum number of paths.
    """
    total = sum(counts.get(source, 0) for counts in paths.values() for source in sources)
    if total > limit:
        raise PathLimitError(
            f"the graph has {format_count(total)} paths, but at most {limit:,} are allowed",
            hint=_HINT,
        )
    edge_counts = [count_edges(heads, root, counts) for root, counts in paths.items()]
    total_edges = sum(counts.get(source, 0) for counts in edge_counts for source in sources)
    if total_edges > limit * _EDGES:
        raise PathLimitError(
            f"the {total:,} paths have {total_edges:,} edges,"
            f" but at most {limit * _EDGES:,} are allowed",
            hint=_HINT,
        )


def _emit_sum_of_paths(
    builder: Builder, edges: Mapping[tuple[int, int], int], paths: Iterable[Sequence[int]]
) -> int:
    """Emit the sum, over all paths, of the product of the partials along the path."""
    total: int | None = None
    for path in paths:
        path_product = builder.constant(1.0)
        for tail, head in pairwise(path):
            path_product = builder.emit("mul", path_product, edges[tail, head])
        total = path_product if total is None else builder.emit("add", total, path_product)
    return builder.constant(0.0) if total is None else total


def count_paths(heads: Mapping[int, Sequence[int]], root: int) -> dict[int, int]:
    """Count the paths to the root from each vertex, without enumerating the paths.

    Args:
        heads: for each vertex, the ends of the edges that start there.
        root: the vertex at which the paths end.

    Returns:
        The number of paths, keyed by vertex, for vertices with at least one path.
    """
    counts = {root: 1}
    for vertex in sorted(heads, reverse=True):  # values are numbered in topological order
        if vertex < root:
            total = sum(counts.get(head, 0) for head in heads[vertex])
            if total:
                counts[vertex] = total
    return counts


def count_edges(
    heads: Mapping[int, Sequence[int]], root: int, paths: Mapping[int, int]
) -> dict[int, int]:
    """Count the edges of all paths to the root from each vertex.

    Args:
        heads: for each vertex, the ends of the edges that start there.
        root: the vertex at which the paths end.
        paths: the number of paths from each vertex, from :func:`count_paths`.
    """
    edges = {root: 0}
    for vertex in sorted(paths, reverse=True):
        if vertex < root:
            next_vertices = [head for head in heads[vertex] if head in paths]
            edges[vertex] = sum(edges[head] + paths[head] for head in next_vertices)
    return edges


def list_paths(
    heads: dict[int, list[int]], source: int, root: int, leading: dict[int, int]
) -> list[list[int]]:
    """Return all paths from a source to a root, shortest first, as lists of vertices.

    Args:
        heads: for each vertex, the ends of the edges that start there.
        source: the vertex at which the paths start.
        root: the vertex at which the paths end.
        leading: the vertices from which the root can be reached.
    """
    all_paths: list[list[int]] = []
    path: list[int] = []
    stack = [(source, 0)] if source in leading else []  # with the number of vertices before it
    while stack:
        vertex, depth = stack.pop()
        path[depth:] = [vertex]
        if vertex == root:
            all_paths.append(path.copy())
        else:
            next_vertices = [head for head in heads.get(vertex, ()) if head in leading]
            stack.extend((head, depth + 1) for head in next_vertices)
    return sorted(all_paths, key=lambda path: (len(path), path))
