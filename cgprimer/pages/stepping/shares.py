"""The summands of tangents and adjoints: along which edges they come, and when a sum has them all.

What flows where is on the program's tape, as its sweep noted it; here it is only read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.passes import reachable
from cgprimer.core.tape.tape import Tape
from cgprimer.pages.stepping.scene import Scene
from cgprimer.pages.stepping.steps import Show, Step


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
    mark: Literal["bar", "dot"]
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


def summands(tape: Tape, scene: Scene, mark: Literal["bar", "dot"]) -> Summands:
    """The shares of a derivative program: of adjoints, ``bar``, or of tangents, ``dot``.

    >>> import cgprimer
    >>> from cgprimer.pages.stepping.scene import scene
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

    row_at = {place[tape.names[n]]: k for n, k in scene.row_of().items() if n in tape.names}
    number, found, last = scene.edge_of(), dict[int, list[Summand]](), dict[int, int]()
    ends = [(place[s.tail], place[s.head], place[s.total], s.product) for s in tape.shares]
    for tail, head, total, _ in ends:
        last[tail if mark == "bar" else head] = total
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
        stops = {*row_at, *last.values()} - {last[whose]}
        summand = Summand(edges, product, negative, total, _work(lean, product, stops))
        found.setdefault(row_at[whose], []).append(summand)
    return Summands(lean, mark, {row: tuple(parts) for row, parts in found.items()})


def _work(tape: Tape, product: int, stops: set[int]) -> frozenset[int]:
    """The values up to a product that are computed on the way from where it stops."""
    work, waiting = set[int](), [product] if product >= 0 else []
    while waiting:
        here = waiting.pop()
        instruction = tape.instruction(here)
        if instruction is not None and here not in stops and here not in work:
            work.add(here)
            waiting.extend(instruction.operands)
    return frozenset(work)
