"""The lines of a derivative program, with the row, the vertices and the edges of each line.

The tape of the program lists its contributions: the products that are added to adjoints or
tangents. This module only reads them; it computes no derivatives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal, NamedTuple

from cgprimer.core.tape.tape_printing import build_expression_trees
from cgprimer.expressions import number_text, readable, unparse
from cgprimer.support.value_names import format_name, parse_internal
from cgprimer.tapes import Builder, Tape, labels, reachable
from cgprimer.visualization.pages.stepping.scene import Scene
from cgprimer.visualization.pages.stepping.step_values import Column, Reveal, Step, join_parts

Mark = Literal["bar", "dot"]  # of adjoints and of tangents
_UNKNOWN = Step("", column="line")  # of lines that compute no named value


class RowContribution(NamedTuple):
    """One summand of the adjoint or tangent shown in a row of the trace table.

    Attributes:
        edges: indices of the picture's edges along which it flows: none inside a vertex, several
            where vertices share the value.
        product: the index of its value; -1 if the program does not compute the value.
        is_negative: whether the contribution is minus this value.
        total: the index of the sum so far, including the contribution; -1 if not computed.
        intermediates: the values that only this contribution needs.
    """

    edges: tuple[int, ...]
    product: int
    is_negative: bool
    total: int
    intermediates: frozenset[int]


@dataclass(frozen=True)
class RowContributions:
    """The summands of the adjoint or tangent in each row of the trace table, in order of addition.

    Attributes:
        tape: the program without instructions that only contributions need.
        mark: ``bar`` for adjoints, ``dot`` for tangents.
        by_row: the contributions, keyed by the index of the row.
    """

    tape: Tape
    mark: Mark
    by_row: Mapping[int, tuple[RowContribution, ...]]

    def edges(self, row: int, value: int | None = None) -> tuple[int, ...]:
        """Return the indices of the edges whose contributions add up to the derivative in a row.

        With a value of the tape, only the edges of the contributions that this value is part of: a
        factor or a product belongs to one contribution, a sum to those that it adds.
        """
        contributions, edges = self.by_row.get(row, ()), set[int]()
        for position, contribution in enumerate(contributions):
            if value is None or value in contribution.intermediates:
                edges.update(contribution.edges)
            elif position and value == contribution.total:
                # The first sum adds two contributions, every later sum adds one.
                edges.update(contribution.edges, contributions[0].edges if position == 1 else ())
        return tuple(sorted(edges))

    def annotate_step(self, step: Step, scene: Scene) -> Step:
        """Add a note on the contribution computed in a step, and show the incomplete sum."""
        contributions = self.by_row.get(step.row, ())
        if step.column != "derivative" or not contributions:
            return step
        count, numbered = len(contributions), list(enumerate(contributions, start=1))
        notes = self._format_contribution_notes(step, scene)
        n_added = max((k for k, part in numbered if part.total == step.result), default=count)
        if n_added < count:
            step = step.add_reveals(Reveal("sofar", step.row, step.result))
        if count > 1 and n_added > 1 and contributions[n_added - 1].total == step.result:
            parts = "both contributions" if count == 2 else f"{n_added} of {count} contributions"
            notes = [f"the sum of {parts}"]
        return replace(step, note="; ".join(notes))

    def _format_contribution_notes(self, step: Step, scene: Scene) -> list[str]:
        """Return notes on the result of a step, such as ``bar_xa += v2, contribution 1 of 2``."""
        name = f"{self.mark}_{scene.rows[step.row].name}"
        contributions = self.by_row[step.row]
        count, result, notes = len(contributions), step.text.partition(" = ")[0], []
        for sign in "+-" if result != name else "":
            numbers = [
                str(k)
                for k, part in enumerate(contributions, start=1)
                if (part.product, part.is_negative) == (step.result, sign == "-")
            ]
            if numbers:
                plural = "s" if len(numbers) > 1 else ""
                position = f", contribution{plural} {' and '.join(numbers)} of {count}"
                notes.append(f"{name} {sign}= {result}{position if count > 1 else ''}")
        return notes


def collect_contributions(tape: Tape, scene: Scene, mark: Mark) -> RowContributions:
    """Collect all contributions to adjoints or tangents that a derivative program computes.

    ``mark`` is ``bar`` for adjoints and ``dot`` for tangents.

    >>> import cgprimer
    >>> from cgprimer.visualization.pages.stepping.scene import build_scene
    >>> tape = cgprimer.tape(cgprimer.parse("xb = 2*xa; xw = xb + xa^2"))
    >>> scene = build_scene(tape, "xw", ["xa"])
    >>> program = cgprimer.differentiate(scene.tape, wrt="xa")
    >>> contributions = collect_contributions(program.tape, scene, "bar")
    >>> [[scene.edges[k] for k in contributions.edges(row)] for row in range(len(scene.rows))]
    [[('xa', 'xb'), ('xa', 'xw')], [('xb', 'xw')], [], []]
    """
    needed = reachable(tape, [*tape.outputs.values(), *tape.names.values()])
    builder = Builder()
    copies = builder.extend(tape, keep=needed)
    short_tape = builder.finish({name: copies[i] for name, i in tape.outputs.items()})
    indices = [builder.moved[copies[i]] if i in copies else -1 for i in range(tape.size)]

    row_at = {
        indices[tape.names[name]]: row
        for name, row in scene.row_indices.items()
        if name in tape.names
    }
    ends = [(indices[s.tail], indices[s.head], indices[s.total], s.product) for s in tape.shares]
    last_totals = {tail if mark == "bar" else head: total for tail, head, total, _ in ends}
    stops = {*row_at, *last_totals.values()}
    by_row = dict[int, list[RowContribution]]()
    for tail, head, total, full_product in ends:
        receiver = tail if mark == "bar" else head
        if tail not in row_at or head not in row_at:
            continue
        name = scene.rows[row_at[tail]].name
        heads = scene.rows[row_at[head]].vertices
        pairs = ((name, vertex) for vertex in heads)
        edges = tuple(scene.edge_indices[pair] for pair in pairs if pair in scene.edge_indices)
        product, instruction = indices[full_product], tape.instruction(full_product)
        is_negative = product < 0 and instruction is not None and instruction.primitive == "neg"
        if is_negative and instruction is not None:  # the program subtracts instead
            product = indices[instruction.operands[0]]
        last_total = last_totals[receiver]
        intermediates = _find_intermediates(short_tape, product, stops, last_total)
        contribution = RowContribution(edges, product, is_negative, total, intermediates)
        by_row.setdefault(row_at[receiver], []).append(contribution)
    return RowContributions(short_tape, mark, {row: tuple(parts) for row, parts in by_row.items()})


def _find_intermediates(
    tape: Tape, product: int, stops: set[int], last_total: int
) -> frozenset[int]:
    """Return all values from which a product is computed; do not search beyond ``stops``.

    The last total is a stop that is searched.
    """
    intermediates, waiting = set[int](), [product] if product >= 0 else []
    while waiting:
        index = waiting.pop()
        instruction = tape.instruction(index)
        is_open = index not in stops or index == last_total
        if instruction is not None and is_open and index not in intermediates:
            intermediates.add(index)
            waiting.extend(instruction.operands)
    return frozenset(intermediates)


class ProgramSteps(NamedTuple):
    """The steps of a derivative program: a step that reveals the inputs, and one step per line.

    Attributes:
        start: the step that reveals the inputs and parameters.
        steps: one step per line; phase 0 computes the values of the graph, phase 1 the rest.
    """

    start: Step
    steps: tuple[Step, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines of the program, in execution order."""
        return tuple(step.text for step in self.steps)


def read_program(
    tape: Tape, scene: Scene, contributions: RowContributions | None = None
) -> ProgramSteps:
    """Convert a derivative program to steps, one per line.

    Args:
        tape: the program.
        scene: the rows, vertices and edges that the steps highlight.
        contributions: the contributions of the program; not needed if rows have no derivatives.

    >>> import cgprimer
    >>> from cgprimer.visualization.pages.stepping.scene import build_scene
    >>> scene = build_scene(cgprimer.tape(cgprimer.parse("xw = cd*xa + 1")), "xw", ["cd"])
    >>> program = cgprimer.differentiate(scene.tape, wrt="cd")
    >>> contributions = collect_contributions(program.tape, scene, "bar")
    >>> read_program(contributions.tape, scene, contributions).lines
    ('v1 = cd*xa', 'xw = v1 + 1', 'bar_xw = 1', 'bar_v1 = 1', 'bar_cd = xa')
    """
    names, first = labels(tape), len(tape.leaves)
    name_steps = dict(_build_name_steps(tape, scene))
    lines = [
        *_build_instruction_steps(tape, scene, name_steps, contributions),
        *_build_alias_steps(tape, names, name_steps, contributions),
    ]
    lines.sort(key=lambda line: line[:2])
    steps = [replace(step, line=k) for k, (_, _, step) in enumerate(lines)]
    if contributions:
        steps = [contributions.annotate_step(step, scene) for step in steps]
    values = sorted(
        (step.result, name) for name, step in name_steps.items() if name in scene.row_indices
    )
    given_steps = {name: name_steps[name] for index, name in values if index < first}
    start = Step(
        f"given: {join_parts(list(given_steps), ', ')}",
        reveals=tuple(step.reveals[0] for step in given_steps.values()),
        operands=tuple((name, step.result) for name, step in given_steps.items()),
        vertices=tuple(given_steps),
    )
    return ProgramSteps(start, tuple(steps))


def _build_instruction_steps(
    tape: Tape,
    scene: Scene,
    name_steps: Mapping[str, Step],
    contributions: RowContributions | None,
) -> Iterator[tuple[int, int, Step]]:
    """Yield the step of each instruction, with two integers by which program lines are sorted."""
    names, trees, first = labels(tape), build_expression_trees(tape), len(tape.leaves)
    named_steps = {
        index: name_steps[name]
        for index, name in tape.labels.items()
        if name in name_steps and index >= first
    }
    owners = _assign_unnamed_values(tape, named_steps)
    row_at = {step.result: step.row for step in name_steps.values() if step.column == "value"}
    for index, (_, operands) in enumerate(tape.instructions, first):
        owner = owners.get(index, _UNKNOWN)
        edges = owner.edges
        if owner.column == "value":
            tails = (scene.rows[row_at[o]].name for o in operands if o in row_at)
            pairs = product(tails, owner.vertices)
            edges = tuple(
                sorted({scene.edge_indices[pair] for pair in pairs if pair in scene.edge_indices})
            )
        elif owner.column == "derivative" and contributions:
            edges = contributions.edges(owner.row, index)
        format_tree = unparse if owner.column == "value" else readable
        step = replace(
            owner,
            text=f"{names[index]} = {format_tree(trees[index])}",
            phase=int(owner.column != "value"),
            reveals=owner.reveals if index in named_steps else (),
            operands=tuple((names[o], o) for o in dict.fromkeys(operands) if names[o]),
            edges=edges,
            result=index,
        )
        yield index, 0, step


def _build_name_steps(tape: Tape, scene: Scene) -> Iterator[tuple[str, Step]]:
    """Yield the name and the step of each value shown in a trace row or on an edge."""
    for name, index in tape.names.items():
        kind, variables, copy = parse_internal(name)
        row = scene.row_indices.get(variables[0])
        if row is not None and kind in ("", "bar", "dot") and copy == len(variables) == 1:
            column: Column = "derivative" if kind else "value"
            reveals, vertices = (Reveal(column, row, index),), scene.rows[row].vertices
            step = Step("", 1, row=row, column=column, reveals=reveals, vertices=vertices)
        elif kind == "partial" and (variables[1], variables[0]) in scene.edge_indices:
            edge = scene.edge_indices[variables[1], variables[0]]
            reveals = (Reveal("edge", edge, index),)
            vertices = (variables[0],)
            step = Step("", 1, column="edge", reveals=reveals, vertices=vertices, edges=(edge,))
        else:
            continue
        yield name, replace(step, result=index)


def _assign_unnamed_values(tape: Tape, named_steps: Mapping[int, Step]) -> dict[int, Step]:
    """Map each value of a tape to its step; an unnamed value maps to the step of its first user."""
    owners = dict(named_steps)
    for index in range(tape.size - 1, len(tape.leaves) - 1, -1):
        if index in owners:
            for operand in tape.instructions[index - len(tape.leaves)].operands:
                if operand not in named_steps:  # an earlier user overwrites a later one
                    owners[operand] = owners[index]
    return owners


def _build_alias_steps(
    tape: Tape,
    names: list[str],
    name_steps: Mapping[str, Step],
    contributions: RowContributions | None,
) -> Iterator[tuple[int, int, Step]]:
    """Yield a step for each additional name of a value, such as the line ``bar_v1 = bar_xw``.

    Two integers precede each step, by which the lines of the program are sorted.
    """
    first, is_backward = len(tape.leaves), contributions is not None and contributions.mark == "bar"
    value_at = {step.row: step.result for step in name_steps.values() if step.column == "value"}
    position = last = max(value_at.values(), default=first - 1)
    derivatives = [item for item in name_steps.items() if item[1].column != "value"]
    derivatives.sort(key=lambda item: item[1].reveals[0].position, reverse=is_backward)
    for count, (name, step) in enumerate(derivatives, start=1):
        index = step.result
        if is_backward:  # an adjoint is complete after the adjoints of all later values
            position = max(position, index)
        elif step.column == "derivative":  # a tangent follows its value
            position = max(index, value_at.get(step.row, first))
        else:  # partials of edges follow all values
            position = max(last, index)
        if index >= first and tape.labels.get(index) == name:
            continue
        is_leaf = index < first and tape.leaves[index].kind != "constant"
        if is_leaf and parse_internal(name).kind == "dot":
            continue  # a seed has no line
        text = f"{format_name(name)} = {names[index] or number_text(tape.leaves[index].value)}"
        operands = ((names[index], index),) if names[index] else ()
        edges = contributions.edges(step.row) if contributions else step.edges
        yield position, count, replace(step, text=text, operands=operands, edges=edges)
