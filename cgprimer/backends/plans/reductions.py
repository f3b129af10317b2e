"""Planning of sums over the samples: products that are summed without being stored.

The gradient with respect to the weights of a layer is ``sum over samples of h_i * bar_z_j`` for
all pairs (i, j). If all pairs are computed at once, it is a product of two matrices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from cgprimer.backends.plans.plan import OuterProduct
from cgprimer.core.tape.tape import Tape

_MIN_PAIRS = 4  # dot products are as fast for fewer pairs
_MIN_DENSITY = (3, 4)  # fraction of the pairs of a block that must be needed

Pair = tuple[int, int]


class Reductions(NamedTuple):
    """The sums over the samples in a plan: accumulators, dot products and outer products.

    Attributes:
        accumulators: for each accumulator, the value that it sums, or -1 for a product.
        summed: output name -> accumulator.
        products: value of a product that is never stored -> its accumulator.
        dots: accumulator of a dot product -> its two factors.
        outers: outer products.
    """

    accumulators: list[int]
    summed: dict[str, int]
    products: dict[int, int]
    dots: dict[int, Pair]
    outers: list[OuterProduct]


def plan_reductions(tape: Tape, is_varying: list[bool], use_counts: list[int]) -> Reductions:
    """Plan the sums over the samples that the outputs of a tape require.

    Args:
        tape: an optimized tape.
        is_varying: for each value, whether it varies with the sample.
        use_counts: for each value, the number of its uses by varying instructions and by outputs.
    """
    accumulators: list[int] = []
    summed: dict[str, int] = {}
    accumulator_of: dict[int, int] = {}  # value -> accumulator
    products: dict[int, int] = {}
    pairs: dict[Pair, int] = {}  # factors -> accumulator
    for name, index in tape.outputs.items():
        if not is_varying[index]:
            continue
        if index not in accumulator_of:
            accumulator_of[index] = len(accumulators)
            step = tape.instruction(index)
            if (
                step is not None
                and step.primitive == "mul"
                and use_counts[index] == 1  # the output itself
                and all(is_varying[o] for o in step.operands)
            ):
                a, b = step.operands
                existing = pairs.get((a, b), pairs.get((b, a)))
                if existing is None:
                    pairs[a, b] = len(accumulators)
                    accumulators.append(-1)
                else:  # a*b and b*a are equal
                    accumulator_of[index] = existing
                products[index] = accumulator_of[index]
            else:
                accumulators.append(index)
        summed[name] = accumulator_of[index]
    outers = _find_outer_products(pairs)
    in_blocks = {n for outer in outers for row in outer.accumulators for n in row}
    dots = {n: pair for pair, n in pairs.items() if n not in in_blocks}
    return Reductions(accumulators, summed, products, dots, outers)


def _find_outer_products(pairs: Mapping[Pair, int]) -> list[OuterProduct]:
    """Find sets of left and right factors for which most pairwise products are needed.

    Args:
        pairs: pair of factors -> accumulator of their product.
    """
    neighbors: dict[int, list[int]] = {}
    for a, b in pairs:
        if a != b:  # a square cannot be part of a bipartite block
            neighbors.setdefault(a, []).append(b)
            neighbors.setdefault(b, []).append(a)
    blocks = []
    for side in _iterate_components(neighbors):
        left = [v for v, s in side.items() if s == 0]
        right = [v for v, s in side.items() if s == 1]
        needed = sum(len(neighbors[v]) for v in left)
        bipartite = all(side[n] == 1 for v in left for n in neighbors[v])
        if bipartite and needed * _MIN_DENSITY[1] >= len(left) * len(right) * _MIN_DENSITY[0]:
            if needed >= _MIN_PAIRS:
                blocks.append(_build_outer_product(left, right, pairs))
        else:
            blocks.extend(_find_complete_outer_products(side, neighbors, pairs))
    return blocks


def _iterate_components(neighbors: Mapping[int, list[int]]) -> Iterable[dict[int, int]]:
    """Yield the connected components of a graph, each as a mapping from vertex to side.

    Neighbours are on opposite sides, 0 and 1, if the component is bipartite, which the caller
    checks.

    Args:
        neighbors: the factors by which each factor is multiplied.
    """
    seen: set[int] = set()
    for start in neighbors:
        if start in seen:
            continue
        side = {start: 0}
        queue = [start]
        for value in queue:  # the queue grows during the iteration
            for other in neighbors[value]:
                if other not in side:
                    side[other] = 1 - side[value]
                    queue.append(other)
        seen.update(queue)
        yield side


def _find_complete_outer_products(
    values: Iterable[int], neighbors: Mapping[int, list[int]], pairs: Mapping[Pair, int]
) -> list[OuterProduct]:
    """Find sets of left and right factors for which all pairwise products are needed.

    Factors with the same neighbors form one side of an outer product, their neighbors the other.
    The largest outer product comes first. Factors with the same neighbors stay equivalent: an
    outer product that contains one of these factors contains all of them.
    """
    classes: dict[tuple[int, ...], list[int]] = {}
    for value in values:
        classes.setdefault(tuple(sorted(neighbors[value])), []).append(value)
    by_size = sorted(classes.items(), key=lambda entry: -len(entry[0]) * len(entry[1]))
    covered: set[Pair] = set()
    blocks = []
    for partners, members in by_size:
        free = [p for p in partners if (members[0], p) not in covered]
        if len(free) * len(members) < _MIN_PAIRS:
            continue
        for member in members:
            for partner in free:
                covered.add((member, partner))
                covered.add((partner, member))
        blocks.append(_build_outer_product(members, free, pairs))
    return blocks


def _build_outer_product(
    left: list[int], right: list[int], pairs: Mapping[Pair, int]
) -> OuterProduct:
    """Build an outer product; the accumulator index -1 marks pairs that are not needed."""
    accumulators = [tuple([pairs.get((a, b), pairs.get((b, a), -1)) for b in right]) for a in left]
    return OuterProduct(tuple(left), tuple(right), tuple(accumulators))
