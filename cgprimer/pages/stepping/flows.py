"""Along which edges a derivative flows: the shares that sum up to a tangent or an adjoint.

One number can be the adjoint of many vertices, and one instruction can be of use to several of
them, so numbers do not tell where a share came from. The chain rule is therefore walked once more
over the finished program: whatever it asks for is found there, and what it asked for is noted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.lowering import emit_partial
from cgprimer.core.tape.passes import depends, reachable
from cgprimer.core.tape.tape import Instruction, Tape
from cgprimer.pages.stepping.scene import Scene
from cgprimer.pages.stepping.steps import CONSTANT, Write


class Share(NamedTuple):
    """One summand of a tangent or an adjoint; values are those of the derivative program.

    Attributes:
        edges: numbers of the picture's edges along which it comes: none inside of a vertex,
            several where vertices share the value that hands it on.
        value: the value that holds it; -1 where the program does without.
        negative: it is minus that value.
        total: the sum so far, this share included; -1 where the program does without.
        work: the values that are computed for it alone.
        loads: for each edge what it has carried in all, this share included; of adjoints only.
    """

    edges: tuple[int, ...]
    value: int
    negative: bool
    total: int
    work: frozenset[int]
    loads: tuple[tuple[int, int], ...]


class _Found(NamedTuple):
    """A share while the program is walked; values are the builder's."""

    row: int  # the value of the primal whose derivative it is a summand of
    edges: tuple[int, ...]
    share: int
    total: int
    loads: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Flows:
    """For each row of the trace the shares of its derivative, in the order of the sum.

    Attributes:
        shares: by row.
        extra: how slots come about that the program does without: sums of an edge's shares, and
            what belongs to one edge of a share that the program computes for several at once.
        size: number of slots, the program's and these.
    """

    shares: Mapping[int, tuple[Share, ...]]
    extra: Mapping[int, Write]
    size: int

    def edges(self, row: int) -> tuple[int, ...]:
        """All edges along which shares come."""
        return _numbers(share.edges for share in self.shares.get(row, ()))

    def edges_of(self, row: int, value: int) -> tuple[int, ...]:
        """The edges that an instruction works on when it computes a part of a row's derivative.

        A factor or a share belongs to its own edge; a sum to the edges of the shares it adds.
        """
        shares, found = self.shares.get(row, ()), set[int]()
        for number, share in enumerate(shares):
            if value in share.work:
                found.update(share.edges)
            elif number and value == share.total:
                found.update(share.edges)
                if number == 1:  # the first sum adds two shares, every later one adds one
                    found.update(shares[0].edges)
        return tuple(sorted(found))


def flows(tape: Tape, scene: Scene, *, backwards: bool) -> Flows:
    """The shares of a derivative program: of adjoints if ``backwards``, else of tangents.

    >>> import cgprimer
    >>> from cgprimer.pages.stepping.scene import scene
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
    slots, extra, size = _extra_slots(builder, own, found, tape.size)
    ends = {parts[-1].total for parts in found.values()}
    labels = primal.labels
    return Flows(
        {
            rows[labels[row]]: tuple(
                _share(part, builder, own, slots, {*value.values(), *ends} - {parts[-1].total})
                for part in parts
            )
            for row, parts in found.items()
            if labels.get(row) in rows
        },
        extra,
        size,
    )


def _adjoints(builder: Builder, scene: Scene, value: Mapping[int, int]) -> Iterator[_Found]:
    """The shares that reverse mode adds up, in its order."""
    tape, root = scene.tape, scene.tape.index(scene.target)
    needed = reachable(tape, [root])
    active = depends(tape, [tape.index(name) for name in scene.wrt])
    adjoint, places = {root: builder.constant(1.0)}, _places(scene)
    on_edge: dict[int, int] = {}
    # Of an inner value that several vertices share: the part of its adjoint from each of them.
    part: dict[tuple[int, str], int] = {}
    for head in range(tape.size - 1, len(tape.leaves) - 1, -1):
        if head not in adjoint or not needed[head] or not active[head]:
            continue
        for tail, partial in _partials(builder, tape, head, value):
            if active[tail]:
                share = builder.emit("mul", adjoint[head], partial)
                total = builder.emit("add", adjoint[tail], share) if tail in adjoint else share
                adjoint[tail] = total
                loads: dict[int, int] = {}
                heads = places.homes[head]
                for home in heads:
                    if len(heads) == 1:
                        flow = share
                    elif (head, home) in part:
                        flow = builder.emit("mul", part[head, home], partial)
                    else:
                        continue  # no way from here to the output
                    edge = places.edge(tail, home)
                    if edge >= 0:
                        here = builder.emit("add", on_edge[edge], flow) if edge in on_edge else flow
                        loads[edge] = on_edge[edge] = here
                    elif len(places.homes[tail]) > 1:
                        known = part.get((tail, home))
                        part[tail, home] = (
                            flow if known is None else builder.emit("add", known, flow)
                        )
                yield _Found(tail, tuple(loads), share, total, tuple(loads.items()))


def _tangents(builder: Builder, scene: Scene, value: Mapping[int, int]) -> Iterator[_Found]:
    """The shares that forward mode adds up, in its order."""
    tape = scene.tape
    needed, first = reachable(tape, [tape.index(scene.target)]), len(tape.leaves)
    seeds = {
        tape.index(name): builder.scalar(f"{'dot' if tape.index(name) < first else 'seed'}.{name}")
        for name in scene.wrt
    }
    tangent = {index: seed for index, seed in seeds.items() if index < first}
    places = _places(scene)
    for head in range(first, tape.size):
        if not needed[head]:
            continue
        for tail, partial in _partials(builder, tape, head, value, tangent):
            share = builder.emit("mul", partial, tangent[tail])
            total = builder.emit("add", tangent[head], share) if head in tangent else share
            tangent[head] = total
            edges = (places.edge(tail, home) for home in places.homes[head])
            yield _Found(head, tuple(e for e in edges if e >= 0), share, total)
        if head in seeds:
            known = head in tangent
            seed = seeds[head]
            tangent[head] = builder.emit("add", tangent[head], seed) if known else seed
            yield _Found(head, (), seed, tangent[head])


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


class _Places(NamedTuple):
    """Where the values of the primal are in the picture."""

    labels: Mapping[int, str]
    homes: Mapping[int, tuple[str, ...]]  # the vertices that a value belongs to
    numbers: Mapping[tuple[str, str], int]  # of the edges

    def edge(self, tail: int, head: str) -> int:
        """The edge from a value to a vertex; -1 where the value is inside of the vertex."""
        return self.numbers.get((self.labels[tail], head), -1)


def _places(scene: Scene) -> _Places:
    rows, labels = scene.row_of(), scene.tape.labels
    homes = {i: scene.rows[rows[name]].vertices for i, name in labels.items() if name in rows}
    return _Places(labels, homes, scene.edge_of())


def _extra_slots(
    builder: Builder, own: Mapping[int, int], found: Mapping[int, list[_Found]], size: int
) -> tuple[dict[int, int], dict[int, Write], int]:
    """Slots for what the edges carry: the program's where it has the value, new ones behind them.

    Returns:
        The builder's values to slots, how the new slots are computed, and the number of all slots.
    """
    slots, missing = dict(own), set[int]()
    waiting = [value for parts in found.values() for part in parts for _, value in part.loads]
    while waiting:
        value = waiting.pop()
        if value in slots or value in missing:
            continue
        missing.add(value)
        entry = builder.entries[value]
        if isinstance(entry, Instruction):
            waiting.extend(entry.operands)
    extra: dict[int, Write] = {}
    for value in sorted(missing):  # operands stand before their users
        entry = builder.entries[value]
        slots[value] = size
        if isinstance(entry, Instruction):
            extra[size] = Write(size, entry.primitive, tuple(slots[o] for o in entry.operands))
        else:
            extra[size] = Write(size, CONSTANT, (entry.value,))
        size += 1
    return slots, extra, size


def _share(
    found: _Found,
    builder: Builder,
    own: Mapping[int, int],
    slots: Mapping[int, int],
    stops: set[int],
) -> Share:
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
        found.edges,
        own.get(index, -1),
        negative,
        own.get(found.total, -1),
        frozenset(own[i] for i in work if i in own),
        tuple((edge, slots[value]) for edge, value in found.loads),
    )


def _numbers(edges: Iterable[Iterable[int]]) -> tuple[int, ...]:
    return tuple(sorted({edge for some in edges for edge in some}))
