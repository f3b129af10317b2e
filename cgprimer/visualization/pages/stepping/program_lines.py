"""A derivative program read line by line: which row, vertices and edges each line is about.

What flows where is on the program's tape, as its sweep noted it; here it is only read: along which
edges the summands of tangents and adjoints come, and when a sum has them all.
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
from cgprimer.visualization.pages.stepping.step_values import Column, Show, Step, listed

Mark = Literal["bar", "dot"]  # of adjoints and of tangents
_NOTHING = Step("", column="line")  # what a line is about that no name speaks for


class Summand(NamedTuple):
    """One share of a row's derivative.

    Attributes:
        edges: numbers of the picture's edges along which it comes: none inside of a vertex,
            several where vertices share the value that hands it on.
        product: the value that holds it; -1 where the program does without.
        negative: it is minus that value.
        total: the sum so far, this share included; -1 where the program does without.
        work: the values that are computed for it alone.
    """

    edges: tuple[int, ...]
    product: int
    negative: bool
    total: int
    work: frozenset[int]


@dataclass(frozen=True)
class Summands:
    """For each row of the trace the shares of its derivative, in the order of the sum.

    Attributes:
        tape: the program, whose values the shares are; without what only they need.
        mark: ``bar`` for adjoints, ``dot`` for tangents.
        of_row: by the row's number.
    """

    tape: Tape
    mark: Mark
    of_row: Mapping[int, tuple[Summand, ...]]

    def edges(self, row: int, value: int | None = None) -> tuple[int, ...]:
        """The edges along which shares of a row come; of a value, a part of it, those it works on.

        A factor or a share belongs to its own edge; a sum to the edges of the shares it adds.
        """
        shares, found = self.of_row.get(row, ()), set[int]()
        for number, share in enumerate(shares):
            if value is None or value in share.work:
                found.update(share.edges)
            elif number and value == share.total:
                # The first sum adds two shares, every later one adds one.
                found.update(share.edges, shares[0].edges if number == 1 else ())
        return tuple(sorted(found))

    def told(self, step: Step, scene: Scene) -> Step:
        """A step that also says which share it computes, and shows a sum that lacks some."""
        shares = self.of_row.get(step.row, ())
        if step.column != "derivative" or not shares:
            return step
        name, many = f"{self.mark}_{scene.rows[step.row].name}", len(shares)
        left, notes, counted = step.text.partition(" = ")[0], [], list(enumerate(shares, start=1))
        for sign in "+-" if left != name else "":
            mine = (step.result, sign == "-")
            computed = [str(k) for k, share in counted if (share.product, share.negative) == mine]
            if computed:
                of = f", share{'s' * (len(computed) > 1)} {' and '.join(computed)} of {many}"
                notes.append(f"{name} {sign}= {left}{of if many > 1 else ''}")
        added = max((k for k, share in counted if share.total == step.result), default=many)
        if added < many:
            step = step.showing(Show("sofar", step.row, step.result))
        if many > 1 and added > 1 and shares[added - 1].total == step.result:
            notes = [f"the sum of {'both shares' if many == 2 else f'{added} of {many} shares'}"]
        return replace(step, note="; ".join(notes))


def summands(tape: Tape, scene: Scene, mark: Mark) -> Summands:
    """The shares of a derivative program: of adjoints, ``bar``, or of tangents, ``dot``.

    >>> import cgprimer
    >>> from cgprimer.visualization.pages.stepping.scene import scene
    >>> shown = scene(cgprimer.tape(cgprimer.parse("xb = 2*xa; xw = xb + xa^2")), "xw", ["xa"])
    >>> made = summands(cgprimer.differentiate(shown.tape, wrt="xa").tape, shown, "bar")
    >>> [[shown.edges[k] for k in made.edges(row)] for row in range(len(shown.rows))]
    [[('xa', 'xb'), ('xa', 'xw')], [('xb', 'xw')], [], []]
    """
    needed = reachable(tape, [*tape.outputs.values(), *tape.names.values()])
    builder = Builder()
    copied = builder.extend(tape, keep=needed)
    lean = builder.finish({name: copied[i] for name, i in tape.outputs.items()})
    place = [builder.moved[copied[i]] if i in copied else -1 for i in range(tape.size)]

    row_at = {place[tape.names[n]]: k for n, k in scene.row_of.items() if n in tape.names}
    number, found, last = scene.edge_of, dict[int, list[Summand]](), dict[int, int]()
    ends = [(place[s.tail], place[s.head], place[s.total], s.product) for s in tape.shares]
    for tail, head, total, _ in ends:
        last[tail if mark == "bar" else head] = total
    stops = {*row_at, *last.values()}
    for tail, head, total, computed in ends:
        whose = tail if mark == "bar" else head
        if tail not in row_at or head not in row_at:
            continue
        name = scene.rows[row_at[tail]].name
        homes = scene.rows[row_at[head]].vertices
        edges = tuple(number[name, home] for home in homes if (name, home) in number)
        product, made = place[computed], tape.instruction(computed)
        negative = product < 0 and made is not None and made.primitive == "neg"
        if negative and made is not None:  # the program subtracts instead
            product = place[made.operands[0]]
        work = _work(lean, product, stops, through=last[whose])
        summand = Summand(edges, product, negative, total, work)
        found.setdefault(row_at[whose], []).append(summand)
    return Summands(lean, mark, {row: tuple(parts) for row, parts in found.items()})


def _work(tape: Tape, product: int, stops: set[int], through: int) -> frozenset[int]:
    """The values up to a product, and through one of the stops, computed since the others."""
    work, waiting = set[int](), [product] if product >= 0 else []
    while waiting:
        here = waiting.pop()
        instruction = tape.instruction(here)
        open_ = here not in stops or here == through
        if instruction is not None and open_ and here not in work:
            work.add(here)
            waiting.extend(instruction.operands)
    return frozenset(work)


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
    >>> from cgprimer.visualization.pages.stepping.scene import scene
    >>> shown = scene(cgprimer.tape(cgprimer.parse("xw = cd*xa + 1")), "xw", ["cd"])
    >>> found = summands(cgprimer.differentiate(shown.tape, wrt="cd").tape, shown, "bar")
    >>> read_program(found.tape, shown, found).lines
    ('v1 = cd*xa', 'xw = v1 + 1', 'bar_xw = 1', 'bar_v1 = 1', 'bar_cd = xa')
    """
    names, trees, first = labels(tape), build_expression_trees(tape), len(tape.leaves)
    about = dict(_meanings(tape, scene))
    own = {i: about[n] for i, n in tape.labels.items() if n in about and i >= first}
    owner, number = _owners(tape, own), scene.edge_of
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
        written = unparse if what.column == "value" else readable
        step = replace(
            what,
            text=f"{names[index]} = {written(trees[index])}",
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
    known = sorted((step.result, name) for name, step in about.items() if name in scene.row_of)
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
    rows, number = scene.row_of, scene.edge_of
    for name, index in tape.names.items():
        kind, variables, copy = parse_internal(name)
        if variables[0] in rows and kind in ("", "bar", "dot") and copy == len(variables) == 1:
            row = rows[variables[0]]
            column: Column = "derivative" if kind else "value"
            shows, vertices = (Show(column, row, index),), scene.rows[row].vertices
            about = Step("", 1, row=row, column=column, shows=shows, vertices=vertices)
        elif kind == "partial" and (edge := (variables[1], variables[0])) in number:
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
        if (
            index < first
            and tape.leaves[index].kind != "constant"
            and parse_internal(name).kind == "dot"
        ):
            continue  # a seed, not a line of its own
        text = f"{format_name(name)} = {names[index] or number_text(tape.leaves[index].value)}"
        operands = ((names[index], index),) if names[index] else ()
        edges = found.edges(step.row) if found else step.edges
        yield place, count, replace(step, text=text, operands=operands, edges=edges)
