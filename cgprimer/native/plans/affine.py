"""Affine groups: sums of products over the same values are a matrix at work.

A layer of a neural network, written as scalar expressions, is a list of sums

    z_j = w_j1*x_1 + w_j2*x_2 + ... + b_j

and its reverse sweep a list of sums ``bar.x_i = w_1i*bar.z_1 + w_2i*bar.z_2 + ...``. Both are the
product of a matrix that no sample changes with the values of a sample: one step on a machine
that multiplies matrices.

The order of the additions changes, so a sum may differ in its last digits, and a sum that is
zero may have the other sign; what is infinite or nan stays so. For that reason no two weights of
one value are added up: ``w*x + x`` at w = 0 and an infinite x is nan, ``(w + 1)*x`` is not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from cgprimer.core.tape.tape import Tape
from cgprimer.native.plans.plan import Affine, Step

_FEWEST_WEIGHTS = 8  # smaller matrices are as fast as multiply-adds, and harder to read
_FEWEST_INPUTS = 2
_new = tuple.__new__

Terms = list[tuple[int, int]]  # values, each with the sign +1 or -1


class Sum(NamedTuple):
    """A tree of additions, taken apart. ``weights`` holds for each value its weight, signed."""

    root: int
    weights: dict[int, tuple[int, int]]
    products: list[int]  # the tape's values for the products
    plain: dict[int, int]  # values that vary and have no weight, with their signs
    bias: Terms
    rest: Terms  # second products of one value, second mentions of one


class Grouped(NamedTuple):
    """What the pass found.

    Attributes:
        groups: for each value at whose place a group's step stands, the group.
        sums: steps that are left at the place of a sum: what the group does not cover is added.
        absorbed: values that nobody computes any more.
        uniform: further steps, once a call: signs of weights, sums of biases.
        size: number of values.
    """

    groups: dict[int, Affine]
    sums: dict[int, list[Step]]
    absorbed: set[int]
    uniform: list[Step]
    size: int


def affine_groups(tape: Tape, varies: list[bool], uses: list[int]) -> Grouped | None:
    """The sums of products of a tape that are worth being matrices.

    None if a weight of 1 is needed, and the tape has no such constant.

    Args:
        tape: an optimized tape.
        varies: for each value whether it varies with the sample.
        uses: for each value how often instructions that vary, and outputs, use it.
    """
    terms, tree_of = _trees(tape, varies, uses)
    constants = (
        i for i, leaf in enumerate(tape.leaves) if leaf[0] == "constant" and leaf[2] == 1.0
    )
    one = next(constants, -1)
    grouped = _by_inputs(_taken_apart(tape, varies, uses, terms), one)
    if one < 0 and any(w < 0 for _, sums in grouped for s in sums for w, _ in s.weights.values()):
        return None
    more = _More(tape.size)
    groups: dict[int, Affine] = {}
    left: dict[int, list[Step]] = {}
    absorbed: set[int] = set()
    for inputs, members in grouped:
        outputs, weights, biases = [], [], []
        for found in members:
            outputs.append(more.value() if found.rest else found.root)
            weights.append(tuple([more.signed(*found.weights[x]) for x in inputs]))
            biases.append(more.total(found.bias))
            left[found.root] = more.added(outputs[-1], found)
            absorbed.update(found.products)
        # The step stands where its first sum stood. All sums have the same inputs, so all inputs
        # are computed before the first of them; and whoever reads a later sum comes later still.
        # No value can depend on itself through the group.
        groups[members[0].root] = Affine(inputs, tuple(outputs), tuple(weights), tuple(biases))
    absorbed.update(node for node, root in tree_of.items() if root in left)
    return Grouped(groups, left, absorbed, more.uniform, more.size)


def _trees(
    tape: Tape, varies: list[bool], uses: list[int]
) -> tuple[dict[int, Terms], dict[int, int]]:
    """Sums as lists of terms, and for each partial sum inside the tree that it is in."""
    first = len(tape.leaves)
    instructions = tape.instructions
    terms: dict[int, Terms] = {}
    inner: dict[int, tuple[int, int]] = {}  # partial sum -> root and sign
    index = tape.size
    for name, operands in reversed(instructions):
        index -= 1
        if name not in ("add", "sub", "neg") or not varies[index]:
            continue
        if index in inner:
            root, sign = inner[index]
            found = terms[root]
        elif name == "neg":
            continue  # a sum that is negated as a whole is a sum of its own
        else:
            root, sign = index, 1
            found = terms[root] = []
        # The last operand first: the terms come out in reverse and are turned round in the end.
        own = sign if name == "add" else -sign
        for operand in reversed(operands):
            alone = operand >= first and uses[operand] == 1 and varies[operand]
            if alone and instructions[operand - first][0] in ("add", "sub", "neg"):
                inner[operand] = (root, own)
            else:
                found.append((operand, own))
            own = sign  # only the last operand is subtracted
    return terms, {node: root for node, (root, _) in inner.items()}


def _taken_apart(
    tape: Tape, varies: list[bool], uses: list[int], terms: dict[int, Terms]
) -> Iterable[Sum]:
    """The sums that have products enough, in the order of the tape.

    A product that somebody else needs too is there anyway: it is a value without a weight.
    """
    first = len(tape.leaves)
    instructions = tape.instructions
    for root, found in reversed(terms.items()):
        weights: dict[int, tuple[int, int]] = {}
        products: list[int] = []
        others: Terms = []
        bias: Terms = []
        rest: Terms = []
        for term in reversed(found):
            value, sign = term
            if not varies[value]:
                bias.append(term)
                continue
            if value >= first and uses[value] == 1:
                name, operands = instructions[value - first]
                if name == "mul" and varies[operands[0]] != varies[operands[1]]:
                    weight, other = operands if varies[operands[1]] else operands[::-1]
                    if other in weights:
                        rest.append(term)
                    else:
                        weights[other] = (weight, sign)
                        products.append(value)
                    continue
            others.append(term)
        if len(weights) < _FEWEST_INPUTS:
            continue
        plain: dict[int, int] = {}
        for value, sign in others:
            if value in weights or value in plain:
                rest.append((value, sign))
            else:
                plain[value] = sign
        yield Sum(root, weights, products, plain, bias, rest)


def _by_inputs(sums: Iterable[Sum], one: int) -> list[tuple[tuple[int, ...], list[Sum]]]:
    """Groups of sums over the same values.

    A value without a weight counts as one with the weight 1 if several sums have it, and at least
    as many as have the same products: ``x1 + w*x2`` may be a row of a matrix, but of a layer with
    a bypass of its own for each sum only the products are.
    """
    found = []
    alone: dict[tuple[int, ...], int] = {}
    together: dict[tuple[int, ...], int] = {}
    for this in sums:
        products = tuple(sorted(this.weights))
        everything = tuple(sorted((*products, *this.plain))) if this.plain else products
        found.append((this, products, everything))
        alone[products] = alone.get(products, 0) + 1
        together[everything] = together.get(everything, 0) + 1
    groups: dict[tuple[int, ...], list[Sum]] = {}
    for this, products, everything in found:
        if not this.plain:
            groups.setdefault(products, []).append(this)
        elif together[everything] >= max(2, alone[products]) and 2 * len(products) >= len(
            everything
        ):
            ones = {x: (one, sign) for x, sign in this.plain.items()}
            joined = this._replace(weights={**this.weights, **ones})
            groups.setdefault(everything, []).append(joined)
        else:
            rest = [*this.rest, *this.plain.items()]
            groups.setdefault(products, []).append(this._replace(rest=rest))
    return [
        (tuple(members[0].weights), members)  # in the order in which the text has them
        for key, members in groups.items()
        if len(key) * len(members) >= _FEWEST_WEIGHTS
    ]


class _More:
    """Values and steps that the tape does not have."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.uniform: list[Step] = []
        self.negated: dict[int, int] = {}

    def value(self) -> int:
        self.size += 1
        return self.size - 1

    def step(self, name: str, *operands: int) -> int:
        made = self.value()
        self.uniform.append(_new(Step, (name, operands, (made,))))
        return made

    def signed(self, weight: int, sign: int) -> int:
        """A weight or its negative, which is made once."""
        if sign > 0:
            return weight
        if weight not in self.negated:
            self.negated[weight] = self.step("neg", weight)
        return self.negated[weight]

    def total(self, terms: Terms) -> int:
        """A sum of values that no sample changes; -1 if there are none."""
        if not terms:
            return -1
        total = self.signed(*terms[0])
        for value, sign in terms[1:]:
            total = self.step("add" if sign > 0 else "sub", total, value)
        return total

    def added(self, value: int, found: Sum) -> list[Step]:
        """Steps that add the rest of a sum to a value; the last one gives the sum its number."""
        steps = []
        for position, (term, sign) in enumerate(found.rest, 1):
            result = found.root if position == len(found.rest) else self.value()
            steps.append(Step("add" if sign > 0 else "sub", (value, term), (result,)))
            value = result
        return steps
