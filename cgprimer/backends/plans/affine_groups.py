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

_MIN_WEIGHTS = 8  # for smaller matrices, multiply-adds are as fast and easier to read
_MIN_INPUTS = 2
_new = tuple.__new__

SignedTerms = list[tuple[int, int]]  # pairs of a value and a sign, +1 or -1


class WeightedSum(NamedTuple):
    """A sum of products of weights and inputs, with its terms sorted by kind.

    Attributes:
        root: the value of the whole sum.
        weights: input -> weight and sign.
        products: values of the products ``weight * input``.
        unweighted: input -> sign, for inputs that occur without a weight.
        bias: terms that do not vary with the sample.
        remainder: terms with repeated inputs, which do not fit in a matrix.
    """

    root: int
    weights: dict[int, tuple[int, int]]
    products: list[int]
    unweighted: dict[int, int]
    bias: SignedTerms
    remainder: SignedTerms


class AffineRewrite(NamedTuple):
    """A rewrite that replaces weighted sums by matrix-vector products.

    Attributes:
        groups: root of the first sum of a group -> the group, which replaces this sum.
        sums: root of every replaced sum -> steps that add its remainder to the group's output.
        absorbed: values that are no longer computed.
        uniform: additional steps, run once per call: negated weights, sums of biases.
        size: number of values, including the additional values.
    """

    groups: dict[int, AffineGroup]
    sums: dict[int, list[PlanStep]]
    absorbed: set[int]
    uniform: list[PlanStep]
    size: int


def find_affine_groups(
    tape: Tape, is_varying: list[bool], use_counts: list[int]
) -> AffineRewrite | None:
    """Find the weighted sums that are worth computing as matrix-vector products.

    Args:
        tape: an optimized tape.
        is_varying: for each value, whether it varies with the sample.
        use_counts: for each value, the number of its uses by varying instructions and by outputs.

    Returns:
        The rewrite; None if a weight of 1 is needed and the tape has no constant 1.
    """
    terms, tree_of = _flatten_sums(tape, is_varying, use_counts)
    constants = (
        i for i, leaf in enumerate(tape.leaves) if leaf[0] == "constant" and leaf[2] == 1.0
    )
    constant_one = next(constants, -1)
    weighted_sums = _collect_weighted_sums(tape, is_varying, use_counts, terms)
    grouped = _group_by_inputs(weighted_sums, constant_one)
    weights = (w for _, sums in grouped for s in sums for w, _ in s.weights.values())
    if constant_one < 0 and any(weight < 0 for weight in weights):
        return None
    builder = _StepBuilder(tape.size)
    groups: dict[int, AffineGroup] = {}
    remainders: dict[int, list[PlanStep]] = {}
    absorbed: set[int] = set()
    for inputs, members in grouped:
        outputs, rows, biases = [], [], []
        for weighted_sum in members:
            outputs.append(builder.add_value() if weighted_sum.remainder else weighted_sum.root)
            rows.append(
                tuple([builder.emit_signed_weight(*weighted_sum.weights[x]) for x in inputs])
            )
            biases.append(builder.emit_sum(weighted_sum.bias))
            remainders[weighted_sum.root] = builder.emit_remainder(outputs[-1], weighted_sum)
            absorbed.update(weighted_sum.products)
        # The step of the group replaces its first sum. All sums have the same inputs, so all inputs
        # are computed before the first sum, and every use of a later sum comes later still. No
        # value can depend on itself through the group.
        groups[members[0].root] = AffineGroup(inputs, tuple(outputs), tuple(rows), tuple(biases))
    absorbed.update(node for node, root in tree_of.items() if root in remainders)
    return AffineRewrite(groups, remainders, absorbed, builder.uniform, builder.size)


def _flatten_sums(
    tape: Tape, is_varying: list[bool], use_counts: list[int]
) -> tuple[dict[int, SignedTerms], dict[int, int]]:
    """Flatten nested additions into lists of signed terms.

    Returns:
        The terms of each sum, keyed by its root; and the root of each partial sum.
    """
    first = len(tape.leaves)
    instructions = tape.instructions
    terms: dict[int, SignedTerms] = {}
    partial: dict[int, tuple[int, int]] = {}  # partial sum -> root and sign
    index = tape.size
    for name, operands in reversed(instructions):
        index -= 1
        if name not in ("add", "sub", "neg") or not is_varying[index]:
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
            single_use = operand >= first and use_counts[operand] == 1 and is_varying[operand]
            if single_use and instructions[operand - first][0] in ("add", "sub", "neg"):
                partial[operand] = (root, operand_sign)
            else:
                sum_terms.append((operand, operand_sign))
            operand_sign = sign  # only the last operand is subtracted
    return terms, {node: root for node, (root, _) in partial.items()}


def _collect_weighted_sums(
    tape: Tape, is_varying: list[bool], use_counts: list[int], terms: dict[int, SignedTerms]
) -> Iterable[WeightedSum]:
    """Yield the flattened sums with at least two products of a weight and an input.

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
            if not is_varying[value]:
                bias.append(term)
                continue
            if value >= first and use_counts[value] == 1:
                name, operands = instructions[value - first]
                if name == "mul" and is_varying[operands[0]] != is_varying[operands[1]]:
                    weight, other = operands if is_varying[operands[1]] else operands[::-1]
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
    sums: Iterable[WeightedSum], constant_one: int
) -> list[tuple[tuple[int, ...], list[WeightedSum]]]:
    """Group weighted sums that have the same inputs.

    An input without a weight gets the weight 1 if several sums have the same inputs, and at least
    as many as have the same products: ``x1 + w*x2`` may be a row of a matrix. In a layer with a
    separate skip connection for each sum, only the products form a matrix.

    Args:
        sums: the candidates.
        constant_one: the value of the constant 1, or -1.
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
            ones = {x: (constant_one, sign) for x, sign in candidate.unweighted.items()}
            extended = candidate._replace(weights={**candidate.weights, **ones})
            groups.setdefault(inputs, []).append(extended)
        else:
            remainder = [*candidate.remainder, *candidate.unweighted.items()]
            groups.setdefault(products, []).append(candidate._replace(remainder=remainder))
    return [
        (tuple(members[0].weights), members)  # in the order of the expression
        for key, members in groups.items()
        if len(key) * len(members) >= _MIN_WEIGHTS
    ]


class _StepBuilder:
    """Builder of the plan steps and values that affine groups need in addition to the tape."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.uniform: list[PlanStep] = []
        self.negated: dict[int, int] = {}

    def add_value(self) -> int:
        """Add a value to the plan and return its index."""
        self.size += 1
        return self.size - 1

    def add_uniform_step(self, name: str, *operands: int) -> int:
        """Add a step that runs once per call, and return the index of its result."""
        result = self.add_value()
        self.uniform.append(_new(PlanStep, (name, operands, (result,))))
        return result

    def emit_signed_weight(self, weight: int, sign: int) -> int:
        """Return a weight with the given sign; emit its negation at most once."""
        if sign > 0:
            return weight
        if weight not in self.negated:
            self.negated[weight] = self.add_uniform_step("neg", weight)
        return self.negated[weight]

    def emit_sum(self, terms: SignedTerms) -> int:
        """Emit the sum of terms that do not vary with the sample; return -1 if there are none."""
        if not terms:
            return -1
        total = self.emit_signed_weight(*terms[0])
        for value, sign in terms[1:]:
            total = self.add_uniform_step("add" if sign > 0 else "sub", total, value)
        return total

    def emit_remainder(self, value: int, weighted_sum: WeightedSum) -> list[PlanStep]:
        """Emit steps that add the terms of a weighted sum that its affine group does not cover.

        Args:
            value: the output of the affine group.
            weighted_sum: the sum; its root is the result of the last step.
        """
        steps = []
        for position, (term, sign) in enumerate(weighted_sum.remainder, 1):
            is_last = position == len(weighted_sum.remainder)
            result = weighted_sum.root if is_last else self.add_value()
            steps.append(PlanStep("add" if sign > 0 else "sub", (value, term), (result,)))
            value = result
        return steps
