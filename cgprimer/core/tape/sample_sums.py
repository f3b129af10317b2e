"""Move sums over the samples in front of linear operations.

The gradient of a weight matrix is a sum of outer products, one per sample. If the sum is moved in
front of the product, it becomes one matrix product over all samples.
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


def sum_over_samples(
    tape: Tape, *, split_elementwise: bool = True
) -> tuple[Tape, tuple[str, ...], int]:
    """Return a tape whose outputs are summed over the samples, with sums as early as possible.

    Args:
        tape: the tape. Outputs that are equal for all samples are not summed.
        split_elementwise: move sums in front of elementwise operations as well, not only in front
            of array operations.

    Returns:
        The new tape, the names of the summed outputs, and the number of elements of the largest
        value that one sample has.
    """
    varies = find_varying_values(tape)
    builder = Builder(simplify=False)
    value = builder.extend(tape)
    first, totals = len(tape.leaves), dict[int, int]()

    def find_instruction(index: int) -> tuple[Applied, tuple[int, ...]]:
        """Return the instruction that computes a value; an empty instruction for a leaf."""
        return tape.instructions[index - first] if index >= first else ("", ())

    def list_summands(index: int) -> tuple[int, ...]:
        """Return the operands to sum instead of a value; empty if the value itself is summed."""
        name, operands = find_instruction(index)
        if isinstance(name, str):
            linear = split_elementwise and name in ("add", "sub", "neg", "copy")
        else:
            linear = name.commutes_with_sum
        return operands if linear and all(varies[o] for o in operands) else ()

    stack = [i for i in tape.outputs.values() if varies[i]]
    while stack:  # not recursive, because long sums are deep
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
        elif (
            split_elementwise
            and name == "mul"
            and (pair := _find_scalar_and_vector(tape, operands, varies))
        ):
            scalar, vector = value[pair[0]], value[pair[1]]
            row = builder.emit(Reshape.create(0, (1,)), scalar)
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
    """Return the number of elements of the largest value that one sample has."""
    is_single = [isinstance(n, str) or not n.combines_samples for n, _ in tape.instructions]
    is_single = [True] * len(tape.leaves) + is_single
    values = zip(tape.shapes, find_varying_values(tape), is_single, strict=True)
    return max(prod(shape) for shape, varies, single in values if varies and single)


def _find_scalar_and_vector(
    tape: Tape, operands: tuple[int, ...], varies: list[bool]
) -> tuple[int, int] | None:
    """Return the scalar and the vector of a product in which the scalar is broadcast; else None."""
    for one, other in (operands, operands[::-1]):
        instruction = tape.instruction(one)
        if instruction and isinstance(instruction.primitive, Broadcast) and varies[other]:
            (source,) = instruction.operands
            if tape.shapes[source] == () and len(tape.shapes[other]) == 1 and varies[source]:
                return source, other
    return None
