"""The rows of the trace table, and the vertices and edges of the picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from cgprimer.core.operations.layer_expansions import is_statistic
from cgprimer.core.tape.tape_passes import apply_printed_names
from cgprimer.core.tape.tape_printing import build_expression_trees
from cgprimer.expressions import unparse
from cgprimer.support.validation import check_choice
from cgprimer.tapes import Tape, labels, reachable
from cgprimer.visualization.diagrams.diagram import Role

LEVELS = ("variables", "operations")


class Row(NamedTuple):
    """A row of the trace table: the name of a value and the expression that defines it.

    Attributes:
        name: the name of the value.
        expression: the defining expression, or the role of an input or parameter.
        vertices: the names of the vertices whose expressions use the value.
    """

    name: str
    expression: str
    vertices: tuple[str, ...]


class Vertex(NamedTuple):
    """A vertex in the picture of a graph.

    Attributes:
        name: the name of the vertex.
        role: the role, which determines shape and color.
        row: the index of the row whose numbers the vertex shows.
        n_characters: the length of its longest array, in characters; 0 for scalars.
    """

    name: str
    role: Role
    row: int
    n_characters: int = 0


@dataclass(frozen=True)
class Scene:
    """The parts of a graph that are shown on a page: trace rows, vertices and edges.

    Attributes:
        tape: the tape of the graph, in which every value has a name (``v1``, ``v2``, ... for
            values that the text does not name).
        vertex_tape: the same tape, in which only vertices have names.
        target: the variable that is differentiated.
        wrt: the names with respect to which it is differentiated.
        rows: the rows of the trace, in execution order.
        vertices: the vertices of the picture, in the same order.
        edges: pairs of names of vertices, tail and head.
    """

    tape: Tape
    vertex_tape: Tape
    target: str
    wrt: tuple[str, ...]
    rows: tuple[Row, ...]
    vertices: tuple[Vertex, ...]
    edges: tuple[tuple[str, str], ...]

    @cached_property
    def row_indices(self) -> dict[str, int]:
        """The index of each row of the trace, keyed by the name of the value."""
        return {row.name: index for index, row in enumerate(self.rows)}

    @cached_property
    def edge_indices(self) -> dict[tuple[str, str], int]:
        """The index of each edge, keyed by the names of its tail and head."""
        return {edge: index for index, edge in enumerate(self.edges)}


def build_scene(tape: Tape, target: str, wrt: Sequence[str], level: str = "variables") -> Scene:
    """Select the trace rows, vertices and edges that determine a derivative of a tape.

    Raises:
        UsageError: an unknown level.

    >>> import cgprimer
    >>> tape = cgprimer.tape(cgprimer.parse("xx = xa^2; xw = cd*xx + 1"))
    >>> scene = build_scene(tape, "xw", ["cd"])
    >>> [(row.name, row.expression) for row in scene.rows]
    [('xa', 'input'), ('cd', 'parameter'), ('xx', 'xa^2'), ('v1', 'cd*xx'), ('xw', 'v1 + 1')]
    >>> scene.edges
    (('xa', 'xx'), ('cd', 'xw'), ('xx', 'xw'))
    """
    check_choice("level", level, LEVELS)
    statistics = [is_statistic(leaf.name) for leaf in tape.leaves]
    tape = apply_printed_names(tape) if any(statistics) else tape
    names, trees, first = labels(tape), build_expression_trees(tape), len(tape.leaves)
    kinds = [*(leaf.kind for leaf in tape.leaves), *[""] * len(tape)]
    needed = reachable(tape, [tape.index(target), *(tape.index(name) for name in wrt)])
    indices = [i for i, is_needed in enumerate(needed) if is_needed and kinds[i] != "constant"]
    named_tape = replace(tape, names={**tape.names, **{names[i]: i for i in indices}})
    vertex_indices = (
        set(indices) if level == "operations" else {i for i in indices if i in tape.labels}
    )
    operands = [*[()] * first, *(operands for _, operands in tape.instructions)]
    heads = _assign_to_vertices(indices, vertex_indices, operands)
    rows, vertices = [], []
    edges: dict[tuple[str, str], None] = {}
    for row, index in enumerate(indices):
        role: Role = "input" if kinds[index] == "column" else "parameter"
        text = unparse(trees[index]) if index in trees else role
        if index < first and statistics[index]:
            role, text = "constant", "running statistic"
        row_vertices = tuple(names[head] for head in sorted(heads[index]))
        rows.append(Row(names[index], text, row_vertices))
        if index in vertex_indices:
            if index >= first:
                inner: Role = "inner" if index in tape.labels else "operation"
                role = "output" if index == tape.index(target) else inner
            vertices.append(Vertex(names[index], role, row))
        tails = [operand for operand in operands[index] if operand in vertex_indices]
        edges.update(((names[tail], head), None) for tail in tails for head in row_vertices)
    vertex_tape = named_tape if level == "operations" else tape
    return Scene(
        named_tape, vertex_tape, target, tuple(wrt), tuple(rows), tuple(vertices), tuple(edges)
    )


def _assign_to_vertices(
    indices: Sequence[int], vertex_indices: set[int], operands: Sequence[Sequence[int]]
) -> dict[int, set[int]]:
    """Map each value to its own vertex, or to all vertices whose expressions use the value."""
    heads: dict[int, set[int]] = {}
    for index in reversed(indices):
        if index in vertex_indices:
            heads[index] = {index}
        for operand in operands[index]:
            if operand not in vertex_indices:
                heads.setdefault(operand, set()).update(heads[index])
    return heads
