"""A derivative program read line by line: which row, vertices and edges each line is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from cgprimer.core.language.unparse import number_text
from cgprimer.core.primitives.notation import unparse
from cgprimer.core.tape.printing import expressions, labels, shown_name
from cgprimer.core.tape.tape import Tape
from cgprimer.pages.stepping.scene import Scene
from cgprimer.pages.stepping.shares import Summands
from cgprimer.pages.stepping.steps import Show, Step, listed

_DERIVATIVES = ("bar.", "dot.")


@dataclass(frozen=True)
class Program:
    """The lines of a program and the steps they make.

    Attributes:
        lines: as text, in execution order.
        steps: one per line; phase 0 computes the values of the graph itself, phase 1 the rest.
        start: what is known at the beginning: the given values.
    """

    lines: tuple[str, ...]
    steps: tuple[Step, ...]
    start: Step


@dataclass(frozen=True)
class _Meaning:
    """What a name of the program stands for: a row's value or derivative, or an edge."""

    show: Show
    vertices: tuple[str, ...]
    edge: tuple[str, str] | None = None


def read_program(
    tape: Tape, scene: Scene, found: Summands | None = None, *, backwards: bool
) -> Program:
    """Read the program of a derivative.

    Args:
        tape: the program.
        scene: what it is about.
        found: along which edges derivatives flow; not needed where rows have no derivatives.
        backwards: whether they flow against the edges, as adjoints do.

    >>> import cgprimer
    >>> from cgprimer.pages.stepping.shares import summands
    >>> from cgprimer.pages.stepping.scene import scene
    >>> shown = scene(cgprimer.tape(cgprimer.parse("xw = cd*xa + 1")), "xw", ["cd"])
    >>> program = cgprimer.differentiate(shown.tape, wrt="cd").tape
    >>> read_program(program, shown, summands(program, shown, backwards=True), backwards=True).lines
    ('v1 = cd*xa', 'xw = v1 + 1', 'bar_xw = 1', 'bar_v1 = 1', 'bar_cd = xa')
    """
    names, trees, first = labels(tape), expressions(tape), len(tape.leaves)
    meanings = {
        name: (index, meaning)
        for name, index in tape.names.items()
        if (meaning := _meaning(name, index, scene)) is not None
    }
    own = {i: meanings[n][1] for i, n in tape.labels.items() if n in meanings and i >= first}
    owner = _owners(tape, own)
    known: dict[int, list[_Meaning]] = {}
    for index, meaning in meanings.values():
        known.setdefault(index, []).append(meaning)
    lines: list[tuple[float, float, Step]] = []
    for index, tree in trees.items():
        about = owner.get(index)
        instruction = tape.instruction(index)
        assert instruction is not None
        shows = (own[index].show,) if index in own else ()
        step = Step(
            f"{names[index]} = {unparse(tree)}",
            phase=0 if about and about.show.column == "value" else 1,
            row=about.show.number if about and about.show.column != "edge" else -1,
            column=about.show.column if about else "value",
            shows=shows,
            operands=tuple((names[o], o) for o in dict.fromkeys(instruction.operands) if names[o]),
            vertices=() if about is None else about.vertices,
            edges=_edges(index, instruction.operands, about, known, scene, found),
            result=index,
        )
        lines.append((index, 0.0, step))
    lines += _aliases(tape, scene, names, meanings, found, backwards)
    lines.sort(key=lambda line: line[:2])
    steps = tuple(replace(step, line=k) for k, (_, _, step) in enumerate(lines))
    return Program(tuple(step.text for step in steps), steps, _start(tape, scene))


def _meaning(name: str, index: int, scene: Scene) -> _Meaning | None:
    rows, number = scene.row_of(), scene.edge_of()
    if name in rows:
        return _Meaning(Show("value", rows[name], index), scene.rows[rows[name]].vertices)
    for prefix in _DERIVATIVES:
        rest = name.removeprefix(prefix)
        if rest != name and rest in rows:
            return _Meaning(Show("derivative", rows[rest], index), scene.rows[rows[rest]].vertices)
    if name.startswith("partial."):
        _, head, tail = name.split(".")
        if (tail, head) in number:
            return _Meaning(Show("edge", number[tail, head], index), (head,), (tail, head))
    return None


def _owners(tape: Tape, own: Mapping[int, _Meaning]) -> dict[int, _Meaning]:
    """What has a name speaks for itself; what has none belongs to the first that uses it."""
    owner: dict[int, _Meaning] = {}
    for index in range(tape.size - 1, len(tape.leaves) - 1, -1):
        if index in own:
            owner[index] = own[index]
        instruction = tape.instruction(index)
        if index not in owner or instruction is None:
            continue
        for operand in instruction.operands:
            if operand not in own:  # a later line of the loop, an earlier user, overwrites it
                owner[operand] = owner[index]
    return owner


def _edges(
    index: int,
    operands: Iterable[int],
    about: _Meaning | None,
    known: Mapping[int, list[_Meaning]],
    scene: Scene,
    found: Summands | None,
) -> tuple[int, ...]:
    """The edges along which something flows in an instruction."""
    if about is None:
        return ()
    if about.edge is not None:
        return (about.show.number,)
    if about.show.column == "derivative":
        return found.edges_of(about.show.number, index) if found else ()
    number = scene.edge_of()
    values = [m for o in operands for m in known.get(o, ()) if m.show.column == "value"]
    pairs = {(scene.rows[m.show.number].name, head) for m in values for head in about.vertices}
    return tuple(sorted(number[pair] for pair in pairs if pair in number))


def _aliases(
    tape: Tape,
    scene: Scene,
    names: list[str],
    meanings: Mapping[str, tuple[int, _Meaning]],
    flowing: Summands | None,
    backwards: bool,
) -> list[tuple[float, float, Step]]:
    """Lines such as ``bar_v1 = bar_xw``, where one value has two names, in their places."""
    first = len(tape.leaves)
    primal = [i for i, m in meanings.values() if m.show.column == "value"]
    last = float(max(primal, default=first - 1))
    value_at = {m.show.number: i for i, m in meanings.values() if m.show.column == "value"}
    found: list[tuple[float, float, Step]] = []
    order = sorted(
        (item for item in meanings.items() if item[1][1].show.column != "value"),
        key=lambda item: item[1][1].show.number,
        reverse=backwards,
    )
    place = last
    for count, (name, (index, meaning)) in enumerate(order, start=1):
        if backwards:  # an adjoint is complete when all that comes later is
            place = max(place, float(index))
        elif meaning.show.column == "derivative":  # a tangent comes right after its value
            place = max(float(index), float(value_at.get(meaning.show.number, first)))
        else:  # the partials of the edges come after all values
            place = max(last, float(index))
        if index >= first and tape.labels.get(index) == name:
            continue
        if index < first and tape.leaves[index].kind != "constant" and name.startswith("dot."):
            continue  # a seed, not a line of its own
        value = names[index] or number_text(tape.leaves[index].value)
        edges: tuple[int, ...] = () if meaning.edge is None else (meaning.show.number,)
        if flowing and meaning.show.column == "derivative":
            edges = flowing.edges(meaning.show.number)
        step = Step(
            f"{shown_name(name)} = {value}",
            phase=1,
            row=-1 if meaning.edge else meaning.show.number,
            column=meaning.show.column,
            shows=(meaning.show,),
            operands=((names[index], index),) if names[index] else (),
            vertices=meaning.vertices,
            edges=edges,
            result=index,
        )
        found.append((place, float(count), step))
    return found


def _start(tape: Tape, scene: Scene) -> Step:
    rows = scene.row_of()
    leaves = [(leaf, i) for i, leaf in enumerate(tape.leaves) if leaf.kind != "constant"]
    given = {leaf.name: i for leaf, i in leaves if leaf.name in rows}
    return Step(
        f"given: {listed(list(given), ', ')}",
        shows=tuple(Show("value", rows[name], value) for name, value in given.items()),
        operands=tuple(given.items()),
        vertices=tuple(given),
    )
