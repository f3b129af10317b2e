"""Along which edges a derivative flows: the shares that sum up to a tangent or an adjoint.

One number can be the adjoint of many vertices, and one instruction can be of use to several of
them, so numbers do not tell where a share came from. The chain rule is therefore walked once more
over the finished program: whatever it asks for is found there, and what it asked for is noted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from cgprimer.stepping.scene import Scene
from cgprimer.tapes.builder import Builder
from cgprimer.tapes.lower import emit_partial
from cgprimer.tapes.passes import depends, reachable
from cgprimer.tapes.tape import Instruction, Tape


class Share(NamedTuple):
    """One summand of a tangent or an adjoint; values are those of the derivative program.

    Attributes:
        edge: number of the picture's edge along which it comes; -1 inside of a vertex.
        value: the value that holds it; -1 where the program does without.
        negative: it is minus that value.
        total: the sum so far, this share included; -1 where the program does without.
        work: the values that are computed for it alone.
    """

    edge: int
    value: int
    negative: bool
    total: int
    work: frozenset[int]


class _Found(NamedTuple):
    """A share while the program is walked; values are the builder's."""

    row: int  # the value of the primal whose derivative it is a summand of
    edge: int
    share: int
    total: int


@dataclass(frozen=True)
class Flows:
    """For each row of the trace the shares of its derivative, in the order of the sum."""

    shares: Mapping[int, tuple[Share, ...]]

    def edges(self, row: int) -> tuple[int, ...]:
        """All edges along which shares come."""
        return _numbers(share.edge for share in self.shares.get(row, ()))

    def edges_of(self, row: int, value: int) -> tuple[int, ...]:
        """The edges that an instruction works on when it computes a part of a row's derivative.

        A factor or a share belongs to its own edge; a sum to the edges of the shares it adds.
        """
        shares, found = self.shares.get(row, ()), set[int]()
        for number, share in enumerate(shares):
            if value in share.work:
                found.add(share.edge)
            elif number and value == share.total:
                found.add(share.edge)
                if number == 1:  # the first sum adds two shares, every later one adds one
                    found.add(shares[0].edge)
        return _numbers(found)


def flows(tape: Tape, scene: Scene, *, backwards: bool) -> Flows:
    """The shares of a derivative program: of adjoints if ``backwards``, else of tangents.

    >>> import cgprimer
    >>> from cgprimer.stepping.scene import scene
    >>> shown = scene(cgprimer.tape(cgprimer.parse("xb = 2*xa; xw = xb + xa^2")), "xw", ["xa"])
    >>> found = flows(cgprimer.differentiate(shown.tape, wrt="xa").tape, shown, backwards=True)
    >>> [[shown.edges[k] for k in found.edges(row)] for row in range(len(shown.rows))]
    [[('xa', 'xb'), ('xa', 'xw')], [('xb', 'xw')], [], []]
    """
    primal, rows = scene.tape, scene.row_of()
    builder = Builder()
    names = {name: index for name, index in tape.names.items() if name in primal.names}
    # Derivatives have no names in this copy, so that they are found like any other value.
    copied = builder.extend(replace(tape, names=names))
    value = {primal.index(name): copied[index] for name, index in names.items()}
    for index, leaf in enumerate(primal.leaves):
        if leaf.kind == "constant":
            value[index] = builder.constant(leaf.value)
    found: dict[int, list[_Found]] = {}
    walk = _adjoints if backwards else _tangents
    for share in walk(builder, scene, value):
        found.setdefault(share.row, []).append(share)
    own = {new: old for old, new in copied.items()}
    ends = {parts[-1].total for parts in found.values()}
    labels = primal.labels
    return Flows(
        {
            rows[labels[row]]: tuple(
                _share(part, builder, own, {*value.values(), *ends} - {parts[-1].total})
                for part in parts
            )
            for row, parts in found.items()
            if labels.get(row) in rows
        }
    )


def _adjoints(builder: Builder, scene: Scene, value: Mapping[int, int]) -> Iterator[_Found]:
    """The shares that reverse mode adds up, in its order."""
    tape, root = scene.tape, scene.tape.index(scene.target)
    needed = reachable(tape, [root])
    active = depends(tape, [tape.index(name) for name in scene.wrt])
    adjoint, edge = {root: builder.constant(1.0)}, _edge_numbers(scene)
    for head in range(tape.size - 1, len(tape.leaves) - 1, -1):
        if head not in adjoint or not needed[head] or not active[head]:
            continue
        for tail, partial in _partials(builder, tape, head, value):
            if active[tail]:
                share = builder.emit("mul", adjoint[head], partial)
                total = builder.emit("add", adjoint[tail], share) if tail in adjoint else share
                adjoint[tail] = total
                yield _Found(tail, edge(tail, head), share, total)


def _tangents(builder: Builder, scene: Scene, value: Mapping[int, int]) -> Iterator[_Found]:
    """The shares that forward mode adds up, in its order."""
    tape = scene.tape
    needed, first = reachable(tape, [tape.index(scene.target)]), len(tape.leaves)
    seeds = {
        tape.index(name): builder.scalar(f"{'dot' if tape.index(name) < first else 'seed'}.{name}")
        for name in scene.wrt
    }
    tangent = {index: seed for index, seed in seeds.items() if index < first}
    edge = _edge_numbers(scene)
    for head in range(first, tape.size):
        if not needed[head]:
            continue
        for tail, partial in _partials(builder, tape, head, value, tangent):
            share = builder.emit("mul", partial, tangent[tail])
            total = builder.emit("add", tangent[head], share) if head in tangent else share
            tangent[head] = total
            yield _Found(head, edge(tail, head), share, total)
        if head in seeds:
            known = head in tangent
            seed = seeds[head]
            tangent[head] = builder.emit("add", tangent[head], seed) if known else seed
            yield _Found(head, -1, seed, tangent[head])


def _partials(
    builder: Builder,
    tape: Tape,
    head: int,
    value: Mapping[int, int],
    among: Mapping[int, int] | None = None,
) -> Iterator[tuple[int, int]]:
    """Operands of an instruction with the partial derivatives, where these are not zero."""
    primitive, operands = tape.instructions[head - len(tape.leaves)]
    values = tuple(value[o] for o in operands)
    active = among if among is not None else value
    for which, tail in enumerate(operands):
        if tail in active:
            partial = emit_partial(builder, primitive, which, values, value[head])
            if partial is not None:
                yield tail, partial


def _edge_numbers(scene: Scene) -> Callable[[int, int], int]:
    """Two values of the primal to the number of the picture's edge between them."""
    rows, number = scene.row_of(), {edge: k for k, edge in enumerate(scene.edges)}
    vertex = {
        index: scene.rows[rows[name]].vertex
        for index, name in scene.tape.labels.items()
        if name in rows
    }
    return lambda tail, head: number.get((vertex.get(tail, ""), vertex.get(head, "")), -1)


def _share(found: _Found, builder: Builder, own: Mapping[int, int], stops: set[int]) -> Share:
    index, negative = found.share, False
    entry = builder.entries[index]
    if index not in own and isinstance(entry, Instruction) and entry.primitive == "neg":
        index, negative = entry.operands[0], True  # the program subtracts instead
    work, waiting = set[int](), [index]
    while waiting:
        here = waiting.pop()
        entry = builder.entries[here]
        if isinstance(entry, Instruction) and here not in stops and here not in work:
            work.add(here)
            waiting.extend(entry.operands)
    return Share(
        found.edge,
        own.get(index, -1),
        negative,
        own.get(found.total, -1),
        frozenset(own[i] for i in work if i in own),
    )


def _numbers(edges: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted({edge for edge in edges if edge >= 0}))
