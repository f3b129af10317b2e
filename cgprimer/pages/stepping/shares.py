"""The summands of tangents and adjoints: along which edges they come, and when a sum has them all.

What flows where is on the program's tape, as its sweep noted it; here it is only read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from cgprimer.core.methods.edges import edge_tape
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.passes import reachable
from cgprimer.core.tape.tape import Tape
from cgprimer.pages.stepping.scene import Scene
from cgprimer.pages.stepping.steps import Show, Step, copied

_ENDS = ("tail", "head", "total")


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
        tape: the program, whose values the shares are.
        of_row: by the row's number.
    """

    tape: Tape
    of_row: Mapping[int, tuple[Summand, ...]]

    def edges(self, row: int) -> tuple[int, ...]:
        """All edges along which shares come."""
        return tuple(sorted({e for share in self.of_row.get(row, ()) for e in share.edges}))

    def edges_of(self, row: int, value: int) -> tuple[int, ...]:
        """The edges that an instruction works on when it computes a part of a row's derivative.

        A factor or a share belongs to its own edge; a sum to the edges of the shares it adds.
        """
        shares, found = self.of_row.get(row, ()), set[int]()
        for number, share in enumerate(shares):
            if value in share.work:
                found.update(share.edges)
            elif number and value == share.total:
                # The first sum adds two shares, every later one adds one.
                found.update(share.edges, shares[0].edges if number == 1 else ())
        return tuple(sorted(found))


def summands(tape: Tape, scene: Scene, *, backwards: bool) -> Summands:
    """The shares of a derivative program: of adjoints if ``backwards``, else of tangents.

    >>> import cgprimer
    >>> from cgprimer.pages.stepping.scene import scene
    >>> shown = scene(cgprimer.tape(cgprimer.parse("xb = 2*xa; xw = xb + xa^2")), "xw", ["xa"])
    >>> made = summands(cgprimer.differentiate(shown.tape, wrt="xa").tape, shown, backwards=True)
    >>> [[shown.edges[k] for k in made.edges(row)] for row in range(len(shown.rows))]
    [[('xa', 'xb'), ('xa', 'xw')], [('xb', 'xw')], [], []]
    """
    lean, place = _without_dead_code(tape)
    row_at = {lean.names[name]: k for name, k in scene.row_of().items() if name in lean.names}
    number, found, last = scene.edge_of(), dict[int, list[Summand]](), dict[int, int]()
    shares = [
        share._replace(**{end: place.get(getattr(share, end), -1) for end in _ENDS})
        for share in tape.shares
    ]
    for share in shares:
        last[share.tail if backwards else share.head] = share.total
    for share in shares:
        whose = share.tail if backwards else share.head
        if share.tail not in row_at or share.head not in row_at:
            continue
        tail = scene.rows[row_at[share.tail]].name
        homes = scene.rows[row_at[share.head]].vertices
        edges = tuple(number[tail, home] for home in homes if (tail, home) in number)
        product, made = place.get(share.product, -1), tape.instruction(share.product)
        negative = product < 0 and made is not None and made.primitive == "neg"
        if negative and made is not None:  # the program subtracts instead
            product = place.get(made.operands[0], -1)
        stops = {*row_at, *last.values()} - {last[whose]}
        work = _work(lean, product, stops)
        summand = Summand(edges, product, negative, share.total, work)
        found.setdefault(row_at[whose], []).append(summand)
    return Summands(lean, {row: tuple(parts) for row, parts in found.items()})


def _without_dead_code(tape: Tape) -> tuple[Tape, dict[int, int]]:
    """A program without what only its shares need, and where its values are now."""
    needed = reachable(tape, [*tape.outputs.values(), *tape.names.values()])
    builder = Builder()
    copied = builder.extend(tape, keep=[i for i, wanted in enumerate(needed) if wanted])
    made = builder.finish({name: copied[i] for name, i in tape.outputs.items()})
    return made, {old: builder.moved[new] for old, new in copied.items()}


def _work(tape: Tape, product: int, stops: set[int]) -> frozenset[int]:
    work, waiting = set[int](), [product] if product >= 0 else []
    while waiting:
        here = waiting.pop()
        instruction = tape.instruction(here)
        if instruction is not None and here not in stops and here not in work:
            work.add(here)
            waiting.extend(instruction.operands)
    return frozenset(work)


def with_sums(steps: Sequence[Step], found: Summands, scene: Scene, mark: str) -> list[Step]:
    """Steps that also say which share they compute, and show sums to which some are missing."""
    told = list(steps)
    for row, shares in found.of_row.items():
        name, many = f"{mark}_{scene.rows[row].name}", len(shares)
        for place in _places(steps, row):
            step = told[place]
            left = step.text.partition(" = ")[0]
            notes, shows = [step.note] if step.note else [], list(step.shows)
            for sign in "+-" if left != name else "":
                computed = [
                    str(k)
                    for k, share in enumerate(shares, start=1)
                    if share.product == step.result and share.negative == (sign == "-")
                ]
                if computed:
                    of = f", share{'s' * (len(computed) > 1)} {' and '.join(computed)} of {many}"
                    notes.append(f"{name} {sign}= {left}{of if many > 1 else ''}")
            added = [k for k, share in enumerate(shares, start=1) if share.total == step.result]
            if added and many > 1:
                if added[-1] < many:
                    shows.append(Show("sofar", row, step.result))
                if added[-1] > 1:
                    both = "both shares" if many == 2 else f"{added[-1]} of {many} shares"
                    notes = [f"the sum of {both}"]
            told[place] = replace(step, note="; ".join(notes), shows=tuple(shows))
    return told


def with_numbers_on_edges(
    steps: Sequence[Step], found: Summands, scene: Scene, builder: Builder
) -> list[Step]:
    """Steps that show on each edge what of the adjoint flows along it, once that is complete.

    Args:
        steps: of the program, each row's derivative computed in one or more of them.
        found: the shares.
        scene: what is on the stage.
        builder: of the walk's tape, on which the numbers are computed, too.
    """
    edges = edge_tape(scene.plain, of=scene.target)
    place = copied(builder, edges.tape)
    number, told = scene.edge_of(), list(steps)
    names = {edges.vertices[i]: n for i, n in scene.plain.labels.items() if i in edges.vertices}
    on_edge = {
        number[names[share.tail], names[share.head]]: place[share.product]
        for share in edges.tape.shares
    }
    for row in found.of_row:
        here = _places(steps, row)
        for which in found.edges(row) if here else ():
            lit = [at for at in here if which in steps[at].edges]
            at = lit[-1] if lit else here[-1]
            if which in on_edge:
                show = Show("edge", which, on_edge[which])
                told[at] = replace(told[at], shows=(*told[at].shows, show))
    return told


def _places(steps: Iterable[Step], row: int) -> list[int]:
    """The steps that work on a row's derivative."""
    return [k for k, s in enumerate(steps) if s.row == row and s.column == "derivative"]
