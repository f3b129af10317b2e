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
    sums = _SampleSums(tape, split_elementwise=split_elementwise)
    outputs = {
        name: sums.emit_sum(i) if sums.varies[i] else sums.values[i]
        for name, i in tape.outputs.items()
    }
    names = tuple(name for name, index in tape.outputs.items() if sums.varies[index])
    summed = verify(sums.builder.finish(outputs, prune=True))
    return summed, names, _count_largest_sample_value(summed)


class _SampleSums:
    """A builder of sums over the samples of values of a tape.

    Attributes:
        builder: the builder of the new tape, with a copy of the tape.
        values: the new index of each value of the tape.
        varies: for each value of the tape, whether it differs between samples.
    """

    def __init__(self, tape: Tape, *, split_elementwise: bool) -> None:
        self.tape, self.varies = tape, find_varying_values(tape)
        self.builder = Builder(simplify=False)
        self.values = self.builder.extend(tape)
        self._split_elementwise = split_elementwise
        self._sums: dict[int, int] = {}

    def emit_sum(self, root: int) -> int:
        """Emit the sum of a value over the samples, unless it has already been emitted."""
        stack = [root]
        while stack:  # not recursive, because long sums are deep
            index = stack[-1]
            pending = [o for o in self._list_summands(index) if o not in self._sums]
            if index in self._sums:
                stack.pop()
            elif pending:
                stack.extend(pending)
            else:
                self._sums[index] = self._emit_sum_of_result(index)
                stack.pop()
        return self._sums[root]

    def _find_instruction(self, index: int) -> tuple[Applied, tuple[int, ...]]:
        """Return the instruction that computes a value; an empty instruction for a leaf."""
        return self.tape.instruction(index) or ("", ())

    def _list_summands(self, index: int) -> tuple[int, ...]:
        """Return the operands to sum instead of a value; empty if the value itself is summed."""
        applied, operands = self._find_instruction(index)
        if isinstance(applied, str):
            linear = self._split_elementwise and applied in ("add", "sub", "neg", "copy")
        else:
            linear = applied.commutes_with_sum
        return operands if linear and all(self.varies[o] for o in operands) else ()

    def _emit_sum_of_result(self, index: int) -> int:
        """Emit the sum of a value over the samples, after the sums of its operands."""
        emit, values = self.builder.emit, self.values
        applied, operands = self._find_instruction(index)
        if summands := self._list_summands(index):
            return emit(applied, *[self._sums[o] for o in summands])
        if isinstance(applied, Matmul) and all(self.varies[o] for o in operands):
            return emit(BatchMatmul.create(*applied.ranks), *[values[o] for o in operands])
        if self._split_elementwise and applied == "mul":
            factors = _find_scalar_and_vector(self.tape, operands, self.varies)
            if factors is not None:
                scalar, vector = factors
                row = emit(Reshape.create(0, (1,)), values[scalar])
                column = emit(Reshape.create(1, (1, *self.tape.shapes[index])), values[vector])
                return emit(BatchMatmul.create(1, 2), row, column)
        return emit(BatchSum.create(len(self.tape.shapes[index])), values[index])


def _count_largest_sample_value(tape: Tape) -> int:
    """Return the maximum number of elements of a value of one sample."""
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
