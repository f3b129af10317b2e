"""Sums over the samples, taken as early as possible.

The gradient of a weight matrix is the sum of an outer product for each sample: that is one matrix
product over all samples, if the sum is taken before the products are. What is linear changes
places with the sum; what is not is summed as it is.
"""

from __future__ import annotations

from math import prod

from cgprimer.core.operations.batch_operations import BatchSum
from cgprimer.core.operations.matrix_operations import BatchMatmul, Matmul
from cgprimer.core.operations.primitive_registry import Applied
from cgprimer.core.operations.shape_operations import Broadcast, Reshape
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_dependencies import find_varying_values
from cgprimer.core.tape.verifier import verify


def sum_over_samples(tape: Tape, *, terms: bool = True) -> tuple[Tape, tuple[str, ...], int]:
    """A tape whose outputs are sums over the samples, the names of those that are sums, and how
    many numbers the largest value of one sample has.

    Outputs that no column reaches are left as they are: the same for each sample. Without `terms`,
    what is added up element by element is summed as a whole: for who does both at once.
    """
    varies = find_varying_values(tape)
    builder = Builder(simplify=False)
    value = builder.extend(tape)
    first, totals = len(tape.leaves), dict[int, int]()

    def find_instruction(index: int) -> tuple[Applied, tuple[int, ...]]:
        return tape.instructions[index - first] if index >= first else ("", ())

    def list_summands(index: int) -> tuple[int, ...]:
        """Return the values to sum instead; none where the sum is taken of the value."""
        name, operands = find_instruction(index)
        if isinstance(name, str):
            linear = terms and name in ("add", "sub", "neg", "copy")
        else:
            linear = name.commutes_with_sum
        return operands if linear and all(varies[o] for o in operands) else ()

    stack = [i for i in tape.outputs.values() if varies[i]]
    while stack:  # a long sum is deep
        index = stack[-1]
        waiting = [o for o in list_summands(index) if o not in totals]
        if index in totals or waiting:
            stack.extend(waiting) if index not in totals else stack.pop()
            continue
        stack.pop()
        name, operands = find_instruction(index)
        if list_summands(index):
            totals[index] = builder.emit(name, *[totals[o] for o in operands])
        elif isinstance(name, Matmul) and all(varies[o] for o in operands):
            product = BatchMatmul.create(*name.ranks)
            totals[index] = builder.emit(product, *[value[o] for o in operands])
        elif terms and name == "mul" and (pair := _find_scalar_and_vector(tape, operands, varies)):
            number, vector = value[pair[0]], value[pair[1]]
            row = builder.emit(Reshape.create(0, (1,)), number)
            size = tape.shapes[index][0]
            column = builder.emit(Reshape.create(1, (1, size)), vector)
            totals[index] = builder.emit(BatchMatmul.create(1, 2), row, column)
        else:
            rank = len(tape.shapes[index])
            totals[index] = builder.emit(BatchSum.create(rank), value[index])
    outputs = {name: totals.get(i, value[i]) for name, i in tape.outputs.items()}
    names = tuple(name for name, index in tape.outputs.items() if varies[index])
    short = verify(builder.finish(outputs, prune=True))
    return short, names, _count_largest_sample_value(short)


def _count_largest_sample_value(tape: Tape) -> int:
    """Return the number of elements, per sample, of the largest value that varies by sample."""
    is_single = [isinstance(n, str) or not n.combines_samples for n, _ in tape.instructions]
    is_single = [True] * len(tape.leaves) + is_single
    values = zip(tape.shapes, find_varying_values(tape), is_single, strict=True)
    return max(prod(shape) for shape, varies, single in values if varies and single)


def _find_scalar_and_vector(
    tape: Tape, operands: tuple[int, ...], varies: list[bool]
) -> tuple[int, int] | None:
    """A number that was repeated to a vector's shape, and the vector: of a product's operands."""
    for one, other in (operands, operands[::-1]):
        instruction = tape.instruction(one)
        if instruction and isinstance(instruction.primitive, Broadcast) and varies[other]:
            (source,) = instruction.operands
            if tape.shapes[source] == () and len(tape.shapes[other]) == 1 and varies[source]:
                return source, other
    return None
