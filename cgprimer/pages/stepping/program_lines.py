"""A derivative program read line by line: which row, vertices and edges each line is about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from cgprimer.core.primitives.notation import number_text, unparse
from cgprimer.core.tape.printing import expressions, labels, shown_name
from cgprimer.core.tape.tape import Tape
from cgprimer.pages.stepping.scene import Scene
from cgprimer.pages.stepping.shares import Summands
from cgprimer.pages.stepping.steps import Column, Show, Step, listed

_NOTHING = Step("", column="line")  # what a line is about that no name speaks for


class Program(NamedTuple):
    """What is known at the beginning, and a step for each line of a program.

    Phase 0 computes the values of the graph itself, phase 1 the rest.
    """

    start: Step
    steps: tuple[Step, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        """As text, in execution order."""
        return tuple(step.text for step in self.steps)


def read_program(tape: Tape, scene: Scene, found: Summands | None = None) -> Program:
    """Read the program of a derivative.

    Args:
        tape: the program.
        scene: what it is about.
        found: along which edges derivatives flow; not needed where rows have no derivatives.

    >>> import cgprimer
    >>> from cgprimer.pages.stepping.shares import summands
    >>> from cgprimer.pages.stepping.scene import scene
    >>> shown = scene(cgprimer.tape(cgprimer.parse("xw = cd*xa + 1")), "xw", ["cd"])
    >>> found = summands(cgprimer.differentiate(shown.tape, wrt="cd").tape, shown, "bar")
    >>> read_program(found.tape, shown, found).lines
    ('v1 = cd*xa', 'xw = v1 + 1', 'bar_xw = 1', 'bar_v1 = 1', 'bar_cd = xa')
    """
    names, trees, first = labels(tape), expressions(tape), len(tape.leaves)
    about = dict(_meanings(tape, scene))
    own = {i: about[n] for i, n in tape.labels.items() if n in about and i >= first}
    owner, number = _owners(tape, own), scene.edge_of()
    row_at = {step.result: step.row for step in about.values() if step.column == "value"}
    lines: list[tuple[int, int, Step]] = []
    for index, (_, operands) in enumerate(tape.instructions, first):
        what = owner.get(index, _NOTHING)
        edges = what.edges
        if what.column == "value":
            tails = (scene.rows[row_at[o]].name for o in operands if o in row_at)
            found_at = {number.get(pair, -1) for pair in product(tails, what.vertices)}
            edges = tuple(sorted(found_at - {-1}))
        elif what.column == "derivative" and found:
            edges = found.edges(what.row, index)
        step = replace(
            what,
            text=f"{names[index]} = {unparse(trees[index])}",
            phase=int(what.column != "value"),
            shows=what.shows if index in own else (),
            operands=tuple((names[o], o) for o in dict.fromkeys(operands) if names[o]),
            edges=edges,
            result=index,
        )
        lines.append((index, 0, step))
    lines += _aliases(tape, names, about, found)
    lines.sort(key=lambda line: line[:2])
    steps = (replace(step, line=k) for k, (_, _, step) in enumerate(lines))
    known = sorted((step.result, name) for name, step in about.items() if name in scene.row_of())
    given = {name: about[name] for index, name in known if index < first}
    start = Step(
        f"given: {listed(list(given), ', ')}",
        shows=tuple(step.shows[0] for step in given.values()),
        operands=tuple((name, step.result) for name, step in given.items()),
        vertices=tuple(given),
    )
    return Program(start, tuple(found.told(s, scene) if found else s for s in steps))


def _meanings(tape: Tape, scene: Scene) -> Iterator[tuple[str, Step]]:
    """What names stand for: a row's value or derivative, or an edge; as a step that finds it."""
    rows, number = scene.row_of(), scene.edge_of()
    for name, index in tape.names.items():
        kind, _, rest = name.rpartition(".")
        if rest in rows and kind in ("", "bar", "dot"):
            row = rows[rest]
            column: Column = "derivative" if kind else "value"
            shows, vertices = (Show(column, row, index),), scene.rows[row].vertices
            about = Step("", 1, row=row, column=column, shows=shows, vertices=vertices)
        elif kind.startswith("partial.") and (edge := (rest, kind.split(".")[1])) in number:
            shows, vertices = (Show("edge", number[edge], index),), edge[1:]
            lit = (number[edge],)
            about = Step("", 1, column="edge", shows=shows, vertices=vertices, edges=lit)
        else:
            continue
        yield name, replace(about, result=index)


def _owners(tape: Tape, own: Mapping[int, Step]) -> dict[int, Step]:
    """What has a name speaks for itself; what has none belongs to the first that uses it."""
    owner = dict(own)
    for index in range(tape.size - 1, len(tape.leaves) - 1, -1):
        if index in owner:
            for operand in tape.instructions[index - len(tape.leaves)].operands:
                if operand not in own:  # a later line of the loop, an earlier user, overwrites it
                    owner[operand] = owner[index]
    return owner


def _aliases(
    tape: Tape, names: list[str], about: Mapping[str, Step], found: Summands | None
) -> Iterator[tuple[int, int, Step]]:
    """Lines such as ``bar_v1 = bar_xw``, where one value has two names, in their places."""
    first, backwards = len(tape.leaves), found is not None and found.mark == "bar"
    value_at = {step.row: step.result for step in about.values() if step.column == "value"}
    place = last = max(value_at.values(), default=first - 1)
    others = [item for item in about.items() if item[1].column != "value"]
    others.sort(key=lambda item: item[1].shows[0].number, reverse=backwards)
    for count, (name, step) in enumerate(others, start=1):
        index = step.result
        if backwards:  # an adjoint is complete when all that comes later is
            place = max(place, index)
        elif step.column == "derivative":  # a tangent comes right after its value
            place = max(index, value_at.get(step.row, first))
        else:  # the partials of the edges come after all values
            place = max(last, index)
        if index >= first and tape.labels.get(index) == name:
            continue
        if index < first and tape.leaves[index].kind != "constant" and name.startswith("dot."):
            continue  # a seed, not a line of its own
        text = f"{shown_name(name)} = {names[index] or number_text(tape.leaves[index].value)}"
        operands = ((names[index], index),) if names[index] else ()
        edges = found.edges(step.row) if found else step.edges
        yield place, count, replace(step, text=text, operands=operands, edges=edges)
