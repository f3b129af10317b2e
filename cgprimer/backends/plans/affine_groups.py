"""Recognition of affine layers that are written as scalar sums of products.

A layer of a neural network, written as scalar expressions, is a list of sums

    z_j = w_j1*x_1 + w_j2*x_2 + ... + b_j

and its backward pass is a list of sums ``bar.x_i = w_1i*bar.z_1 + w_2i*bar.z_2 + ...``. Both are
the product of a matrix that does not depend on the sample with a vector that does. The pass in
this module replaces such sums by one matrix-vector product.

The order of the additions changes, so a sum may differ in its last digits, and a sum of zero may
have the other sign. Infinite and nan results are preserved: two weights of one input are never
added up, because ``w*x + x`` with w = 0 and an infinite x is nan, but ``(w + 1)*x`` is infinite.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from cgprimer.backends.plans.plan import AffineGroup, PlanStep
from cgprimer.core.tape.tape import Tape

_MIN_WEIGHTS = 8  # multiply-adds are as fast for smaller matrices, and easier to read
_MIN_INPUTS = 2
_new = tuple.__new__

SignedTerms = list[tuple[int, int]]  # values, each with the sign +1 or -1


class WeightedSum(NamedTuple):
    """A tree of additions, split by the kind of its terms.

    Attributes:
        root: the value of the whole sum.
        weights: input -> (weight, sign).
        products: the tape's values of the products ``weight * input``.
        unweighted: input -> sign, for inputs that occur without a weight.
        bias: terms that do not vary with the sample.
        remainder: terms that the matrix cannot hold: repeated inputs.
    """

    root: int
    weights: dict[int, tuple[int, int]]
    products: list[int]
    unweighted: dict[int, int]
    bias: SignedTerms
    remainder: SignedTerms


class AffineRewrite(NamedTuple):
    """The result of the recognition of affine groups.

    Attributes:
        groups: root of the first sum of a group -> the group, which replaces this sum.
        sums: root of every replaced sum -> steps that add its remainder to the group's output.
        absorbed: values that are no longer computed.
        uniform: additional steps, run once per call: negated weights, sums of biases.
        size: number of values, including the additional ones.
    """

    groups: dict[int, AffineGroup]
    sums: dict[int, list[PlanStep]]
    absorbed: set[int]
    uniform: list[PlanStep]
    size: int


def find_affine_groups(tape: Tape, varies: list[bool], uses: list[int]) -> AffineRewrite | None:
    """Find the sums of products that are worth computing as matrix-vector products.

    Args:
        tape: an optimized tape.
        varies: for each value, whether it varies with the sample.
        uses: for each value, the number of its uses by varying instructions and by outputs.

    Returns:
        The rewrite; None if a weight of 1 is needed and the tape has no constant 1.
    """
    terms, tree_of = _sum_trees(tape, varies, uses)
    constants = (
        i for i, leaf in enumerate(tape.leaves) if leaf[0] == "constant" and leaf[2] == 1.0
    )
    one = next(constants, -1)
    grouped = _group_by_inputs(_weighted_sums(tape, varies, uses, terms), one)
    if one < 0 and any(w < 0 for _, sums in grouped for s in sums for w, _ in s.weights.values()):
        return None
    extra = _AdditionalSteps(tape.size)
    groups: dict[int, AffineGroup] = {}
    remainders: dict[int, list[PlanStep]] = {}
    absorbed: set[int] = set()
    for inputs, members in grouped:
        outputs, weights, biases = [], [], []
        for member in members:
            outputs.append(extra.new_value() if member.remainder else member.root)
            weights.append(tuple([extra.signed(*member.weights[x]) for x in inputs]))
            biases.append(extra.total(member.bias))
            remainders[member.root] = extra.add_remainder(outputs[-1], member)
            absorbed.update(member.products)
        # The group's step replaces its first sum. All sums have the same inputs, so all inputs are
        # computed before the first sum, and every use of a later sum comes later still. No value
        # can depend on itself through the group.
        groups[members[0].root] = AffineGroup(inputs, tuple(outputs), tuple(weights), tuple(biases))
    absorbed.update(node for node, root in tree_of.items() if root in remainders)
    return AffineRewrite(groups, remainders, absorbed, extra.uniform, extra.size)


def _sum_trees(
    tape: Tape, varies: list[bool], uses: list[int]
) -> tuple[dict[int, SignedTerms], dict[int, int]]:
    """Return the terms of each sum, and the sum that each partial sum belongs to."""
    first = len(tape.leaves)
    instructions = tape.instructions
    terms: dict[int, SignedTerms] = {}
    partial: dict[int, tuple[int, int]] = {}  # partial sum -> root and sign
    index = tape.size
    for name, operands in reversed(instructions):
        index -= 1
        if name not in ("add", "sub", "neg") or not varies[index]:
            continue
        if index in partial:
            root, sign = partial[index]
            sum_terms = terms[root]
        elif name == "neg":
            continue  # the negated sum is a separate tree
        else:
            root, sign = index, 1
            sum_terms = terms[root] = []
        # Operands are visited from last to first: the list of terms is in reverse order.
        operand_sign = sign if name == "add" else -sign
        for operand in reversed(operands):
            single_use = operand >= first and uses[operand] == 1 and varies[operand]
            if single_use and instructions[operand - first][0] in ("add", "sub", "neg"):
                partial[operand] = (root, operand_sign)
            else:
                sum_terms.append((operand, operand_sign))
            operand_sign = sign  # only the last operand is subtracted
    return terms, {node: root for node, (root, _) in partial.items()}


def _weighted_sums(
    tape: Tape, varies: list[bool], uses: list[int], terms: dict[int, SignedTerms]
) -> Iterable[WeightedSum]:
    """Yield the sums with enough products, in the order of the tape.

    A product that has other uses is computed anyway: it counts as an input without a weight.
    """
    first = len(tape.leaves)
    instructions = tape.instructions
    for root, sum_terms in reversed(terms.items()):
        weights: dict[int, tuple[int, int]] = {}
        products: list[int] = []
        others: SignedTerms = []
        bias: SignedTerms = []
        remainder: SignedTerms = []
        for term in reversed(sum_terms):
            value, sign = term
            if not varies[value]:
                bias.append(term)
                continue
            if value >= first and uses[value] == 1:
                name, operands = instructions[value - first]
                if name == "mul" and varies[operands[0]] != varies[operands[1]]:
                    weight, other = operands if varies[operands[1]] else operands[::-1]
                    if other in weights:
                        remainder.append(term)
                    else:
                        weights[other] = (weight, sign)
                        products.append(value)
                    continue
            others.append(term)
        if len(weights) < _MIN_INPUTS:
            continue
        unweighted: dict[int, int] = {}
        for value, sign in others:
            if value in weights or value in unweighted:
                remainder.append((value, sign))
            else:
                unweighted[value] = sign
        yield WeightedSum(root, weights, products, unweighted, bias, remainder)


def _group_by_inputs(
    sums: Iterable[WeightedSum], one: int
) -> list[tuple[tuple[int, ...], list[WeightedSum]]]:
    """Group the sums that have the same inputs.

    An input without a weight gets the weight 1 if several sums have the same inputs, and at least
    as many as have the same products: ``x1 + w*x2`` may be a row of a matrix. In a layer with a
    separate skip connection for each sum, only the products form a matrix.

    Args:
        sums: the candidates.
        one: the value of the constant 1, or -1.
    """
    candidates = []
    same_products: dict[tuple[int, ...], int] = {}
    same_inputs: dict[tuple[int, ...], int] = {}
    for candidate in sums:
        products = tuple(sorted(candidate.weights))
        inputs = (
            tuple(sorted((*products, *candidate.unweighted))) if candidate.unweighted else products
        )
        candidates.append((candidate, products, inputs))
        same_products[products] = same_products.get(products, 0) + 1
        same_inputs[inputs] = same_inputs.get(inputs, 0) + 1
    groups: dict[tuple[int, ...], list[WeightedSum]] = {}
    for candidate, products, inputs in candidates:
        enough_sums = same_inputs[inputs] >= max(2, same_products[products])
        if not candidate.unweighted:
            groups.setdefault(products, []).append(candidate)
        elif enough_sums and 2 * len(products) >= len(inputs):
            ones = {x: (one, sign) for x, sign in candidate.unweighted.items()}
            extended = candidate._replace(weights={**candidate.weights, **ones})
            groups.setdefault(inputs, []).append(extended)
        else:
            remainder = [*candidate.remainder, *candidate.unweighted.items()]
            groups.setdefault(products, []).append(candidate._replace(remainder=remainder))
    return [
        (tuple(members[0].weights), members)  # in the order of the text
        for key, members in groups.items()
        if len(key) * len(members) >= _MIN_WEIGHTS
    ]


class _AdditionalSteps:
    """Values and steps that are added to those of the tape."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.uniform: list[PlanStep] = []
        self.negated: dict[int, int] = {}

    def new_value(self) -> int:
        self.size += 1
        return self.size - 1

    def add_step(self, name: str, *operands: int) -> int:
        result = self.new_value()
        self.uniform.append(_new(PlanStep, (name, operands, (result,))))
        return result

    def signed(self, weight: int, sign: int) -> int:
        """Return the weight or its negative, which is computed only once."""
        if sign > 0:
            return weight
        if weight not in self.negated:
            self.negated[weight] = self.add_step("neg", weight)
        return self.negated[weight]

    def total(self, terms: SignedTerms) -> int:
        """Return the sum of values that do not vary with the sample; -1 if there are no terms."""
        if not terms:
            return -1
        total = self.signed(*terms[0])
        for value, sign in terms[1:]:
            total = self.add_step("add" if sign > 0 else "sub", total, value)
        return total

    def add_remainder(self, value: int, member: WeightedSum) -> list[PlanStep]:
        """Return steps that add the remainder of a sum to a value; the last step yields its root.

        Args:
            value: the output of the affine group for this sum.
            member: the sum.
        """
        steps = []
        for position, (term, sign) in enumerate(member.remainder, 1):
            result = member.root if position == len(member.remainder) else self.new_value()
            steps.append(PlanStep("add" if sign > 0 else "sub", (value, term), (result,)))
            value = result
        return steps
