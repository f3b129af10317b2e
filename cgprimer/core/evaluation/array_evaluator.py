"""The evaluator on numpy arrays: instructions are prepared once and run on blocks of samples.

The values of a block stay in the processor's caches. A value is released after its last use.
Values that are equal for all samples are computed once, before the first block.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cgprimer.core.evaluation.evaluator import (
    Lookup,
    PreparedInstruction,
    prepare_instructions,
    run_instructions,
)
from cgprimer.core.methods.derivative_program import Inputs
from cgprimer.core.operations import find_primitive, numpy_arithmetic
from cgprimer.core.operations.shape_operations import Broadcast
from cgprimer.core.tape.sample_sums import sum_over_samples
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_dependencies import find_dependents, find_varying_values

Array: TypeAlias = npt.NDArray[np.floating[Any]]
_BLOCK = 2**17  # maximum number of elements of a value for a block of samples: a megabyte


class ArrayEvaluator:
    """A tape that is prepared for evaluation on numpy arrays.

    Args:
        tape: the tape to run.
        sums: return sums over the samples instead of a value for each sample.
        dtype: the type of numpy's arithmetic.
        lookup: returns the function that computes an operation.

    Attributes:
        common_steps: the instructions whose values are equal for all samples.
        sample_steps: the instructions whose values vary with the sample.
    """

    def __init__(
        self,
        tape: Tape,
        *,
        sums: bool,
        dtype: str,
        lookup: Lookup = numpy_arithmetic.numpy_function,
    ) -> None:
        self.dtype, self.sums = np.dtype(dtype), sums
        self.varying: tuple[str, ...] = ()
        self.needs_all_samples = tape.combines_samples
        if sums:
            tape, self.varying, width = sum_over_samples(tape)
            self.block = max(64, _BLOCK // width)
        self.tape = tape
        self.common_instructions, self.sample_instructions = _prepare_array_instructions(
            tape, lookup
        )

    def __call__(self, columns: Inputs, scalars: Inputs, samples: int) -> dict[str, Array]:
        """Evaluate the tape; return the values of each output for all samples, or their sums."""
        tape, dtype = self.tape, self.dtype
        with np.errstate(all="ignore"):
            leaf_values = {
                name: np.asarray(value).astype(dtype, copy=False)
                for name, value in {**scalars, **columns}.items()
            }
            start: list[Any] = [None] * tape.size
            column_values: list[tuple[int, Array]] = []
            for index, (kind, name, constant, _) in enumerate(tape.leaves):
                if kind == "column":
                    column_values.append((index, leaf_values[name]))
                else:
                    start[index] = (
                        dtype.type(constant) if kind == "constant" else leaf_values.get(name)
                    )
            run_instructions(self.common_instructions, start)
            if self.sums:
                return self._sum_blocks(start, column_values, samples)
            for index, column in column_values:
                start[index] = column
            run_instructions(self.sample_instructions, start)
            full_shapes = {n: (samples, *tape.shapes[i]) for n, i in tape.outputs.items()}
            outputs = {n: np.asarray(start[i], dtype) for n, i in tape.outputs.items()}
            return {n: np.array(np.broadcast_to(outputs[n], full_shapes[n])) for n in outputs}

    def _sum_blocks(
        self, start: list[Any], column_values: list[tuple[int, Array]], samples: int
    ) -> dict[str, Array]:
        """Run blocks of samples one after the other; return the sum of each output."""
        shapes = self.tape.shapes
        column_values = [
            (i, np.broadcast_to(a, (samples, *shapes[i])) if a.ndim == len(shapes[i]) else a)
            for i, a in column_values
        ]
        block = max(1, samples if self.needs_all_samples or not column_values else self.block)
        totals: dict[str, Array] = {}
        for begin in range(0, max(samples, 1), block):
            values, count = start.copy(), min(block, samples - begin)
            for index, column in column_values:
                values[index] = column[begin : begin + block]
            run_instructions(self.sample_instructions, values)
            for name, index in self.tape.outputs.items():
                value = values[index] if name in self.varying else values[index] * float(count)
                totals[name] = totals[name] + value if begin else value
        return totals


def _prepare_array_instructions(
    tape: Tape, lookup: Lookup
) -> tuple[list[PreparedInstruction], list[PreparedInstruction]]:
    """Prepare a tape for arrays; return the common instructions and the instructions per sample."""
    varies, first = find_varying_values(tape), len(tape.leaves)
    common = {i for i, varies_here in enumerate(varies) if not varies_here}
    permanent = {*tape.outputs.values(), *range(first)}
    overwritable = _find_overwritable_values(tape) - permanent
    implicit = _find_implicit_broadcasts(tape)
    common_instructions: list[PreparedInstruction] = []
    sample_instructions: list[PreparedInstruction] = []
    prepared = prepare_instructions(tape, lookup, keep=permanent | common)
    for instruction, (name, operands) in zip(prepared, tape.instructions, strict=True):
        index, function, _, released = instruction
        if index in implicit:
            function = _create_axis_inserter(name) if varies[index] else _identity  # type: ignore
        elif name in ("copy", "stop_gradient"):
            function = _identity
        elif name == "pow" and operands[1] < first:
            function = _POWERS.get(tape.leaves[operands[1]].value, function)
        if isinstance(function, np.ufunc) and varies[index] and tape.shapes[index]:
            shape, targets = tape.shapes[index], overwritable.intersection(released)
            positions = (p for p, o in enumerate(operands) if o in targets)
            position = next((p for p in positions if tape.shapes[operands[p]] == shape), None)
            function = function if position is None else _reuse_operand_memory(function, position)
        instructions = sample_instructions if varies[index] else common_instructions
        instructions.append((index, function, operands, released))
    return common_instructions, sample_instructions


def _find_overwritable_values(tape: Tape) -> set[int]:
    """Find the values whose memory is not shared with another value and can be overwritten."""
    first = len(tape.leaves)
    batch = [
        i for i, (name, _) in enumerate(tape.instructions, first)
        if not isinstance(name, str) and name.combines_samples
    ]  # fmt: skip
    unshared = {
        i for i, after in enumerate(find_dependents(tape, batch)) if i >= first and not after
    }
    for index, (name, operands) in enumerate(tape.instructions, first):
        if isinstance(name, str):
            may_share = name in ("copy", "stop_gradient") or not find_primitive(name).built_in
        else:
            may_share = name.may_be_view
        if may_share:
            unshared.difference_update((index, *operands))
    return unshared


def _reuse_operand_memory(function: Callable[..., Array], position: int) -> Callable[..., Array]:
    """Return a numpy function that stores its result in the memory of one of its operands."""
    return lambda *values: function(*values, out=values[position])


def _identity(a: Array) -> Array:
    """Return the argument unchanged."""
    return a


_POWERS: dict[float, Callable[..., Array]] = {2.0: lambda a, _: a * a, 3.0: lambda a, _: a * a * a}


def _find_implicit_broadcasts(tape: Tape) -> set[int]:
    """Find broadcasts that numpy does implicitly, because another operand has the full shape."""
    first = len(tape.leaves)
    repeated = {
        i for i, (name, _) in enumerate(tape.instructions, first)
        if isinstance(name, Broadcast)
    } - {*tape.outputs.values()}  # fmt: skip
    small = repeated | {i for i, leaf in enumerate(tape.leaves) if leaf.kind == "constant"}
    for name, operands in tape.instructions:
        if not isinstance(name, str) or small.issuperset(operands):
            repeated.difference_update(operands)
    return repeated


def _create_axis_inserter(broadcast: Broadcast) -> Callable[[Array], Array]:
    """Return a function that inserts axes of length 1 for the axes that a broadcast adds."""
    rank, more = broadcast.rank, (1,) * (len(broadcast.new_shape) - broadcast.rank)

    def insert_axes(a: Array) -> Array:
        """Insert axes of length 1 after the sample axes."""
        samples = a.ndim - rank
        return a.reshape(a.shape[:samples] + more + a.shape[samples:]) if more else a

    return insert_axes
