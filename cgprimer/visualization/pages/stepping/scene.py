"""What is on the stage: the rows of the trace, the vertices and edges of the picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from cgprimer.core.operations.layer_expansions import is_statistic
from cgprimer.core.tape.tape_passes import apply_printed_names
from cgprimer.core.tape.tape_printing import build_expression_trees
from cgprimer.errors import UsageError
from cgprimer.expressions import unparse
from cgprimer.tapes import Tape, labels, reachable
from cgprimer.visualization.diagrams.diagram import Role

LEVELS = ("variables", "operations")


class Row(NamedTuple):
    """A row of the trace: a name and how it is computed."""

    name: str
    expression: str
    vertices: tuple[str, ...]  # that the row belongs to: those whose expressions use its value


class Vertex(NamedTuple):
    """A vertex of the picture, and the row whose numbers it shows."""

    name: str
    role: Role
    row: int
    room: int = 0  # characters of its longest text, where that is no number


@dataclass(frozen=True)
class Scene:
    """Rows, vertices and edges.

    Attributes:
        tape: the graph's tape, in which every value has a name (``v1``, ``v2``, ... where the
            text gives none).
        plain: the same tape, in which only what is a vertex has a name.
        target: the variable that is differentiated.
        wrt: with respect to which names.
        rows: of the trace, in execution order.
        vertices: of the picture, in the same order.
        edges: pairs of names of vertices.
    """

    tape: Tape
    plain: Tape
    target: str
    wrt: tuple[str, ...]
    rows: tuple[Row, ...]
    vertices: tuple[Vertex, ...]
    edges: tuple[tuple[str, str], ...]

    @cached_property
    def row_of(self) -> dict[str, int]:
        """Name to number of its row."""
        return {row.name: number for number, row in enumerate(self.rows)}

    @cached_property
    def edge_of(self) -> dict[tuple[str, str], int]:
        """Tail and head to number of the edge."""
        return {edge: number for number, edge in enumerate(self.edges)}


def scene(tape: Tape, target: str, wrt: Sequence[str], level: str = "variables") -> Scene:
    """What a walk over a tape shows.

    Raises:
        UsageError: an unknown level.

    >>> import cgprimer
    >>> shown = scene(cgprimer.tape(cgprimer.parse("xx = xa^2; xw = cd*xx + 1")), "xw", ["cd"])
    >>> [(row.name, row.expression) for row in shown.rows]
    [('xa', 'input'), ('cd', 'parameter'), ('xx', 'xa^2'), ('v1', 'cd*xx'), ('xw', 'v1 + 1')]
    >>> shown.edges
    (('xa', 'xx'), ('cd', 'xw'), ('xx', 'xw'))
    """
    if level not in LEVELS:
        raise UsageError(f"there is no level {level!r}", hint=f"choose one of {', '.join(LEVELS)}")
    kept = [is_statistic(leaf.name) for leaf in tape.leaves]
    tape = apply_printed_names(tape) if any(kept) else tape
    names, trees, first = labels(tape), build_expression_trees(tape), len(tape.leaves)
    kinds = [*(leaf.kind for leaf in tape.leaves), *[""] * len(tape)]
    operands = [*[()] * first, *(operands for _, operands in tape.instructions)]
    needed = reachable(tape, [tape.index(target), *(tape.index(name) for name in wrt)])
    shown = [i for i, wanted in enumerate(needed) if wanted and kinds[i] != "constant"]
    named = replace(tape, names={**tape.names, **{names[i]: i for i in shown}})
    separate = set(shown) if level == "operations" else {i for i in shown if i in tape.labels}
    homes: dict[int, set[int]] = {}
    for index in reversed(shown):  # a value without a name belongs to all vertices that use it
        if index in separate:
            homes[index] = {index}
        for operand in operands[index]:
            if operand not in separate:
                homes.setdefault(operand, set()).update(homes[index])
    rows, vertices = [], []
    edges: dict[tuple[str, str], None] = {}
    for number, index in enumerate(shown):
        role: Role = "input" if kinds[index] == "column" else "parameter"
        text = unparse(trees[index]) if index in trees else role
        if index < first and kept[index]:
            role, text = "constant", "running statistic"
        own = tuple(names[home] for home in sorted(homes[index]))
        rows.append(Row(names[index], text, own))
        if index in separate:
            if index >= first:
                inner: Role = "inner" if index in tape.labels else "operation"
                role = "output" if index == tape.index(target) else inner
            vertices.append(Vertex(names[index], role, number))
        tails = [operand for operand in operands[index] if operand in separate]
        edges.update(((names[tail], home), None) for tail in tails for home in own)
    plain = named if level == "operations" else tape
    return Scene(named, plain, target, tuple(wrt), tuple(rows), tuple(vertices), tuple(edges))
