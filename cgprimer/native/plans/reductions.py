"""Sums over the samples: which products are never stored, and which of them form a block.

The gradient with respect to the weights of a layer is ``sum over samples of h_i * bar_z_j`` for
all pairs (i, j): the product of two matrices, if all pairs are taken together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from cgprimer.core.tape.tape import Tape
from cgprimer.native.plans.plan import Outer

_FEWEST_PAIRS = 4  # fewer are as fast as dot products
_DENSE = (3, 4)  # a block is worth it if three quarters of its pairs are wanted

Pair = tuple[int, int]


class Reductions(NamedTuple):
    """What is summed over the samples.

    Attributes:
        accumulators: for each accumulator the value that it sums up, or -1 for a product.
        summed: output name to accumulator.
        products: for each value that is such a product and never stored, its accumulator.
        dots: for each accumulator of a product on its own, the factors.
        outers: products in blocks.
    """

    accumulators: list[int]
    summed: dict[str, int]
    products: dict[int, int]
    dots: dict[int, Pair]
    outers: list[Outer]


def reductions(tape: Tape, varies: list[bool], uses: list[int]) -> Reductions:
    """The sums that the outputs of a tape are; arguments are those of ``affine_groups``."""
    accumulators: list[int] = []
    summed: dict[str, int] = {}
    number: dict[int, int] = {}  # value -> accumulator
    products: dict[int, int] = {}
    pairs: dict[Pair, int] = {}  # factors -> accumulator
    for name, index in tape.outputs.items():
        if not varies[index]:
            continue
        if index not in number:
            number[index] = len(accumulators)
            step = tape.instruction(index)
            if (
                step is not None
                and step.primitive == "mul"
                and uses[index] == 1  # by the output
                and all(varies[o] for o in step.operands)
            ):
                a, b = step.operands
                known = pairs.get((a, b), pairs.get((b, a)))
                if known is None:
                    pairs[a, b] = len(accumulators)
                    accumulators.append(-1)
                else:  # a*b and b*a are the same number
                    number[index] = known
                products[index] = number[index]
            else:
                accumulators.append(index)
        summed[name] = number[index]
    outers = _blocks(pairs)
    inside = {n for outer in outers for row in outer.numbers for n in row}
    dots = {n: pair for pair, n in pairs.items() if n not in inside}
    return Reductions(accumulators, summed, products, dots, outers)


def _blocks(pairs: Mapping[Pair, int]) -> list[Outer]:
    """Blocks of left and right values most of whose pairs are wanted."""
    neighbours: dict[int, list[int]] = {}
    for a, b in pairs:
        if a != b:  # a square has no two sides
            neighbours.setdefault(a, []).append(b)
            neighbours.setdefault(b, []).append(a)
    found = []
    for side in _components(neighbours):
        left = [v for v, s in side.items() if s == 0]
        right = [v for v, s in side.items() if s == 1]
        wanted = sum(len(neighbours[v]) for v in left)
        two_sided = all(side[n] == 1 for v in left for n in neighbours[v])
        if two_sided and wanted * _DENSE[1] >= len(left) * len(right) * _DENSE[0]:
            if wanted >= _FEWEST_PAIRS:
                found.append(_outer(left, right, pairs))
        else:
            found.extend(_complete_blocks(side, neighbours, pairs))
    return found


def _components(neighbours: Mapping[int, list[int]]) -> Iterable[dict[int, int]]:
    """Values that pairs connect, each with its side, 0 or 1; sides that do not work out stay so."""
    seen: set[int] = set()
    for start in neighbours:
        if start in seen:
            continue
        side = {start: 0}
        queue = [start]
        for value in queue:  # grows while it is walked
            for other in neighbours[value]:
                if other not in side:
                    side[other] = 1 - side[value]
                    queue.append(other)
        seen.update(queue)
        yield side


def _complete_blocks(
    values: Iterable[int], neighbours: Mapping[int, list[int]], pairs: Mapping[Pair, int]
) -> list[Outer]:
    """Blocks without gaps: values with the same partners, with all of these, the largest first.

    If a and b have the same partners, every block that takes a pair of a with some c takes that
    of b with c too: so what is left of one value's partners is left of the other's.
    """
    classes: dict[tuple[int, ...], list[int]] = {}
    for value in values:
        classes.setdefault(tuple(sorted(neighbours[value])), []).append(value)
    by_size = sorted(classes.items(), key=lambda entry: -len(entry[0]) * len(entry[1]))
    taken: set[Pair] = set()
    found = []
    for partners, members in by_size:
        free = [p for p in partners if (members[0], p) not in taken]
        if len(free) * len(members) < _FEWEST_PAIRS:
            continue
        for member in members:
            for partner in free:
                taken.add((member, partner))
                taken.add((partner, member))
        found.append(_outer(members, free, pairs))
    return found


def _outer(left: list[int], right: list[int], pairs: Mapping[Pair, int]) -> Outer:
    numbers = [tuple([pairs.get((a, b), pairs.get((b, a), -1)) for b in right]) for a in left]
    return Outer(tuple(left), tuple(right), tuple(numbers))
