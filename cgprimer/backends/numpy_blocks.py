"""The ``numpy`` engine: one numpy call per step of the plan and block of samples.

A plan lists the steps (:mod:`cgprimer.backends.plans.plan`). Each step becomes a small function,
and the executable calls these functions in order. Samples are processed in blocks, so that all
live values of a block fit into the processor's cache and memory does not grow with the number of
samples. The rows of the block's buffer are reused after the last use of a value. Values that do
not vary with the sample are computed once, before the first block.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cgprimer.backends.call_arguments import (
    UniformEvaluator,
    call_custom_primitive,
    convert_columns,
    sum_uniform_value,
)
from cgprimer.backends.interfaces import Array
from cgprimer.backends.plans.plan import AffineGroup, OuterProduct, Plan, PlanStep
from cgprimer.backends.plans.planning import build_plan
from cgprimer.backends.plans.row_allocation import RowAllocation, allocate_rows
from cgprimer.core.evaluation.engines import Reduction
from cgprimer.core.evaluation.plain_engine import PLAIN
from cgprimer.core.methods.derivative_program import Execute, Inputs
from cgprimer.core.operations import find_primitive, numpy_arithmetic
from cgprimer.core.tape.tape import Tape
from cgprimer.support.garbage_collection import pause_garbage_collection

_CACHE_BYTES = 2**18  # live values of a block: half of a typical second-level cache
_MIN_BLOCK = 512
# OpenBLAS uses several threads for more multiplications than this. They gain little for small
# matrices, and on a busy machine waiting for them takes ten times as long as the work.
_MAX_SERIAL_PRODUCTS = 2**18


class BlockState(NamedTuple):
    """The arrays that plan steps read and write for one block of samples."""

    values: list[Any]  # per value, an array of shape (samples of the block,) or a scalar
    buffer: Array  # shape (rows, samples of the block); the last row is scratch space
    sums: Array  # shape (accumulators,)
    matrices: Mapping[int, tuple[Array, Array]]  # step -> weights and biases of its affine group


StepFunction = Callable[[BlockState], None]


class NumpyExecutable:
    """A tape compiled to a list of numpy calls, which run on blocks of samples."""

    def __init__(self, tape: Tape, *, reduction: Reduction, dtype: str) -> None:
        self.reduction = reduction
        self.dtype = np.dtype(dtype)
        self.plan = build_plan(tape, sums=reduction == "sum")
        allocation = allocate_rows(self.plan)
        self.row_count = allocation.count + 1
        steps = range(len(self.plan.varying))
        self.step_functions = [_compile_step(self.plan, allocation, position) for position in steps]
        self.uniform = UniformEvaluator(self.plan.tape, self.plan.uniform, self.plan.size, dtype)
        live = self.row_count + len(self.plan.tape.of_kind("column"))
        block = _CACHE_BYTES // (live * self.dtype.itemsize)
        self.block_size = max(1 << block.bit_length() - 1 if block else 1, _MIN_BLOCK)

    def __call__(self, columns: Inputs, scalars: Inputs, samples: int) -> dict[str, Array]:
        """Run the tape; see :class:`cgprimer.core.evaluation.engines.Execute`."""
        # IEEE 754 semantics: nan and infinity are values, not errors.
        with np.errstate(all="ignore"):
            values = self.uniform(scalars)
            collect = self._run_and_sum if self.reduction == "sum" else self._run_per_sample
            return collect(values, columns, samples)

    def _build_affine_matrices(self, values: Sequence[Any]) -> dict[int, tuple[Array, Array]]:
        """Build the weight matrix and the bias vector of each affine group.

        Returns:
            Position of the affine step -> weights of shape (outputs, inputs), and biases of shape
            (outputs, 1).
        """
        return {
            position: (
                np.array([[values[w] for w in row] for row in group.weights], self.dtype),
                np.array([[values[b] if b >= 0 else -0.0] for b in group.biases], self.dtype),
            )
            for position, group in self.plan.groups.items()
            if isinstance(group, AffineGroup)
        }

    def _run_blocks(
        self, values: list[Any], columns: Inputs, samples: int
    ) -> Iterator[tuple[int, int, BlockState]]:
        """Run all steps on each block of samples; yield the bounds and the state of the block."""
        tape = self.plan.tape
        indices = [i for i, leaf in enumerate(tape.leaves) if leaf.kind == "column"]
        arrays = convert_columns(columns, tape.of_kind("column"), self.dtype, samples)
        leaves = list(zip(indices, map(_make_read_only_view, arrays), strict=True))
        size = max(1, min(self.block_size, samples))
        buffer = np.empty((self.row_count, size), self.dtype)
        sums = np.zeros(len(self.plan.accumulators))
        matrices = self._build_affine_matrices(values)
        for start in range(0, samples, size):
            stop = min(start + size, samples)
            for index, column in leaves:
                values[index] = column[start:stop]
            block = BlockState(values, buffer[:, : stop - start], sums, matrices)
            for run_step in self.step_functions:
                run_step(block)
            yield start, stop, block

    def _run_per_sample(self, values: list[Any], columns: Inputs, samples: int) -> dict[str, Array]:
        """Run the tape and return arrays with one value per sample."""
        results = {name: np.empty(samples, self.dtype) for name in self.plan.tape.outputs}
        for start, stop, block in self._run_blocks(values, columns, samples):
            for name, index in self.plan.outputs.items():
                results[name][start:stop] = block.values[index]
        return results

    def _run_and_sum(self, values: list[Any], columns: Inputs, samples: int) -> dict[str, Any]:
        """Run the tape and return the outputs summed over the samples."""
        # Block sums are added in order and in double precision: the result is reproducible.
        totals = np.zeros(len(self.plan.accumulators))
        for _, _, block in self._run_blocks(values, columns, samples):
            totals += block.sums
        summed, outputs = self.plan.summed, self.plan.outputs
        return {
            name: totals[summed[name]]
            if name in summed
            else np.float64(sum_uniform_value(values[outputs[name]], samples))
            for name in self.plan.tape.outputs
        }


def _make_read_only_view(column: Array) -> Array:
    """Return a read-only view of a column of the caller."""
    view = np.asarray(column).view()
    view.flags.writeable = False
    return view


# --- compilation of plan steps to functions -----------------------------------------------------


def _compile_step(plan: Plan, allocation: RowAllocation, position: int) -> StepFunction:
    """Compile the step at the given position of a plan to a function."""
    step = plan.varying[position]
    match step.name:
        case "sum" | "dot":
            return _compile_reduction(step)
        case "outer":
            return _compile_outer_product(plan.groups[position], allocation)  # type: ignore[arg-type]
        case "affine":
            return _compile_affine(plan.groups[position], position, allocation)  # type: ignore[arg-type]
        case "sincos":
            return _compile_sine_cosine(step, allocation)
        case "fma" | "fms" | "fnma":
            return _compile_multiply_add(step, allocation)
    return _compile_elementwise(step, allocation)


def _compile_elementwise(step: PlanStep, allocation: RowAllocation) -> StepFunction:
    """Compile an elementwise step to a call to numpy or to a custom primitive."""
    name, operands, (target,) = step
    function = numpy_arithmetic.numpy_function(name)
    row = allocation.row_of[target]

    def write_into_row(block: BlockState) -> None:
        """Apply a numpy ufunc, which stores its result in the row of the buffer."""
        values = block.values
        values[target] = function(*[values[o] for o in operands], out=block.buffer[row])

    def copy_to_row(block: BlockState) -> None:
        """Apply the wrapped function to a block and copy its result into a buffer row."""
        # Always copied: the function may return its argument, or an array of another dtype.
        values = block.values
        target_row, arguments = block.buffer[row], [values[o] for o in operands]
        target_row[...] = (
            function(*arguments)
            if built_in
            else call_custom_primitive(name, function, arguments, target_row.shape)
        )
        values[target] = target_row

    built_in = find_primitive(name).built_in
    return write_into_row if built_in and isinstance(function, np.ufunc) else copy_to_row


def _compile_multiply_add(step: PlanStep, allocation: RowAllocation) -> StepFunction:
    """Compile a multiply-add; the scratch row of the block holds the product."""
    name, (a, b, c), (target,) = step
    row = allocation.row_of[target]
    add_or_subtract: Any = np.add if name == "fma" else np.subtract

    def multiply_and_add(block: BlockState) -> None:
        """Multiply two operands and add or subtract the third, for one block of samples."""
        values = block.values
        product = np.multiply(values[a], values[b], out=block.buffer[-1])
        pair = (values[c], product) if name == "fnma" else (product, values[c])
        values[target] = add_or_subtract(*pair, out=block.buffer[row])

    return multiply_and_add


def _compile_sine_cosine(step: PlanStep, allocation: RowAllocation) -> StepFunction:
    """Compile a step that computes the sine and the cosine of the same value."""
    _, (operand,), (sine, cosine) = step
    sine_row, cosine_row = allocation.row_of[sine], allocation.row_of[cosine]

    def compute_sine_and_cosine(block: BlockState) -> None:
        """Compute the sine and the cosine of the operand for one block of samples."""
        values = block.values
        values[sine] = np.sin(values[operand], out=block.buffer[sine_row])
        values[cosine] = np.cos(values[operand], out=block.buffer[cosine_row])

    return compute_sine_and_cosine


def _compile_reduction(step: PlanStep) -> StepFunction:
    """Compile a sum or a dot product over the samples of a block."""
    name, operands, (accumulator,) = step
    reduce: Any = np.add.reduce if name == "sum" else np.dot

    def reduce_block(block: BlockState) -> None:
        """Reduce the operands over one block of samples and store the sum."""
        block.sums[accumulator] = reduce(*[block.values[o] for o in operands])

    return reduce_block


def _compile_affine(group: AffineGroup, position: int, allocation: RowAllocation) -> StepFunction:
    """Compile a group of affine functions to one matrix product with a column per sample."""
    inputs = _compile_stack(group.inputs, allocation)
    targets = [(output, allocation.row_of[output]) for output in group.outputs]
    rows = _convert_to_slice([row for _, row in targets])
    biased = any(bias >= 0 for bias in group.biases)

    def compute_affine_outputs(block: BlockState) -> None:
        """Compute ``weights @ inputs + biases`` for one block of samples."""
        weights, biases = block.matrices[position]
        destination = block.buffer[rows] if rows else None
        result = _multiply_in_slices(weights, inputs(block), destination)
        if biased:
            result += biases
        for (output, row), row_values in zip(targets, result, strict=True):
            if destination is None:
                block.buffer[row] = row_values
            block.values[output] = block.buffer[row]

    return compute_affine_outputs


def _compile_outer_product(group: OuterProduct, allocation: RowAllocation) -> StepFunction:
    """Compile an outer product, summed over the samples of a block, to a matrix product."""
    left, right = _compile_stack(group.left, allocation), _compile_stack(group.right, allocation)
    accumulators = np.array(group.accumulators)
    needed = accumulators >= 0
    accumulators = accumulators[needed]

    def sum_products(block: BlockState) -> None:
        """Sum the products of left and right factors over one block of samples."""
        block.sums[accumulators] = _sum_outer_products(left(block), right(block))[needed]

    return sum_products


def _multiply_in_slices(weights: Array, samples: Array, out: Array | None) -> Array:
    """Multiply a matrix by the samples of a block, one slice of samples at a time.

    Args:
        weights: shape (outputs, inputs).
        samples: shape (inputs, samples).
        out: array for the result of shape (outputs, samples); None to allocate it.
    """
    product = np.empty((len(weights), samples.shape[1]), samples.dtype) if out is None else out
    for part in _split_into_slices(samples.shape[1], weights.size):
        np.matmul(weights, samples[:, part], out=product[:, part])
    return product


def _sum_outer_products(left: Array, right: Array) -> Array:
    """Sum the outer products of left and right factors over the samples.

    Args:
        left: shape (left factors, samples).
        right: shape (right factors, samples).
    """
    total = np.zeros((len(left), len(right)), left.dtype)
    for part in _split_into_slices(left.shape[1], total.size):
        total += np.matmul(left[:, part], right[:, part].T)
    return total


def _split_into_slices(samples: int, weights: int) -> list[slice]:
    """Split the samples of a block into slices that BLAS multiplies in one thread each.

    Args:
        samples: number of samples of the block.
        weights: number of elements of the matrix.
    """
    size = _MAX_SERIAL_PRODUCTS // weights
    if size < 16:  # large matrices benefit from several threads
        return [slice(0, samples)]
    return [slice(start, start + size) for start in range(0, samples, size)]


def _compile_stack(
    values: Sequence[int], allocation: RowAllocation
) -> Callable[[BlockState], Array]:
    """Return a function that stacks values of a block in a matrix of shape (values, samples)."""
    rows = _convert_to_slice([allocation.row_of.get(value, -1) for value in values])
    if rows:
        return lambda block: block.buffer[rows]
    return lambda block: np.array([block.values[value] for value in values], block.buffer.dtype)


def _convert_to_slice(rows: Sequence[int]) -> slice | None:
    """Convert consecutive row indices to a slice; return None if they are not consecutive."""
    start = rows[0]
    if start < 0 or list(rows) != list(range(start, start + len(rows))):
        return None
    return slice(start, start + len(rows))


class NumpyEngine:
    """The engine ``numpy``, which is always available."""

    name = "numpy"
    scalarize_up_to = 0

    def unavailable(self) -> str:
        """Return the reason why the engine is unavailable: always the empty string."""
        return ""

    def unsupported(self, tape: Tape, dtype: str) -> str:
        """Return an empty string: the engine can run every tape."""
        return ""

    def minimum_work(self, tape: Tape) -> float:
        """Return the number of operations from which ``auto`` may choose this engine.

        For scalars it is 0: numpy is faster than loading a compiler. Tapes with arrays are left to
        the engine `plain`.
        """
        return math.inf if tape.has_arrays else 0

    def describe(self) -> str:
        """Return the installed version of numpy."""
        return f"version: {np.__version__}"

    def compile(
        self, tape: Tape, *, reduction: Reduction = "none", dtype: str = "float64"
    ) -> Execute:
        """Compile a tape; tapes with arrays or complex numbers are left to the engine ``plain``."""
        if tape.has_arrays or dtype.startswith("complex"):
            return PLAIN.compile(tape, reduction=reduction, dtype=dtype)
        with pause_garbage_collection():
            return NumpyExecutable(tape, reduction=reduction, dtype=dtype)


ENGINE = NumpyEngine()
