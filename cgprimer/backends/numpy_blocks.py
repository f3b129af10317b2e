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
_BLOCK_LIMITS = (512, 2**15)
# OpenBLAS uses several threads for more multiplications than this. They gain little for small
# matrices, and on a busy machine waiting for them takes ten times as long as the work.
_MAX_SERIAL_PRODUCTS = 2**18


class BlockState(NamedTuple):
    """The data that the steps read and write for one block of samples."""

    values: list[Any]  # per value, an array of shape (samples of the block,) or a scalar
    buffer: Array  # shape (rows, samples of the block); the last row is scratch space
    sums: Array  # shape (accumulators,)
    matrices: Mapping[int, tuple[Array, Array]]  # step -> weights and biases of its affine group


StepFunction = Callable[[BlockState], None]


class NumpyExecutable:
    """A tape compiled for numpy; the arguments are those of an engine's ``compile``."""

    def __init__(self, tape: Tape, *, reduction: Reduction, dtype: str) -> None:
        self.reduction = reduction
        self.dtype = np.dtype(dtype)
        self.plan = build_plan(tape, sums=reduction == "sum")
        allocation = allocate_rows(self.plan)
        self.row_count = allocation.count + 1
        steps = range(len(self.plan.varying))
        self.step_functions = [
            _step_function(self.plan, allocation, position) for position in steps
        ]
        self.uniform = UniformEvaluator(self.plan.tape, self.plan.uniform, self.plan.size, dtype)
        live = self.row_count + len(self.plan.tape.of_kind("column"))
        block = _CACHE_BYTES // (live * self.dtype.itemsize)
        self.block_size = min(
            max(1 << block.bit_length() - 1 if block else 1, _BLOCK_LIMITS[0]), _BLOCK_LIMITS[1]
        )

    def __call__(self, columns: Inputs, scalars: Inputs, samples: int) -> dict[str, Array]:
        """Run the tape; see :class:`cgprimer.core.evaluation.engines.Execute`."""
        # IEEE 754 semantics: nan and infinity are values, not errors.
        with np.errstate(all="ignore"):
            values = self.uniform(scalars)
            collect = self._run_sums if self.reduction == "sum" else self._run_per_sample
            return collect(values, columns, samples)

    def _affine_matrices(self, values: Sequence[Any]) -> dict[int, tuple[Array, Array]]:
        """Return the weights, shape (outputs, inputs), and biases, (outputs, 1), of each group."""
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
        """Run all steps block by block; yield first and last sample and state of each block."""
        tape = self.plan.tape
        indices = [i for i, leaf in enumerate(tape.leaves) if leaf.kind == "column"]
        arrays = convert_columns(columns, tape.of_kind("column"), self.dtype, samples)
        leaves = list(zip(indices, map(_read_only, arrays), strict=True))
        size = max(1, min(self.block_size, samples))
        buffer = np.empty((self.row_count, size), self.dtype)
        sums = np.zeros(len(self.plan.accumulators))
        matrices = self._affine_matrices(values)
        for start in range(0, samples, size):
            stop = min(start + size, samples)
            for index, column in leaves:
                values[index] = column[start:stop]
            block = BlockState(values, buffer[:, : stop - start], sums, matrices)
            for run_step in self.step_functions:
                run_step(block)
            yield start, stop, block

    def _run_per_sample(self, values: list[Any], columns: Inputs, samples: int) -> dict[str, Array]:
        results = {name: np.empty(samples, self.dtype) for name in self.plan.tape.outputs}
        for start, stop, block in self._run_blocks(values, columns, samples):
            for name, index in self.plan.outputs.items():
                results[name][start:stop] = block.values[index]
        return results

    def _run_sums(self, values: list[Any], columns: Inputs, samples: int) -> dict[str, Any]:
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


def _read_only(column: Array) -> Array:
    """Return a read-only view, since the samples belong to the caller."""
    view = np.asarray(column).view()
    view.flags.writeable = False
    return view


# --- functions of the steps ---------------------------------------------------------------------


def _step_function(plan: Plan, allocation: RowAllocation, position: int) -> StepFunction:
    """Return a function that runs one step of a plan."""
    step = plan.varying[position]
    match step.name:
        case "sum" | "dot":
            return _reduction(step)
        case "outer":
            return _outer_product(plan.groups[position], allocation)  # type: ignore[arg-type]
        case "affine":
            return _affine(plan.groups[position], position, allocation)  # type: ignore[arg-type]
        case "sincos":
            return _sine_cosine(step, allocation)
        case "fma" | "fms" | "fnma":
            return _multiply_add(step, allocation)
    return _elementwise(step, allocation)


def _elementwise(step: PlanStep, allocation: RowAllocation) -> StepFunction:
    """Return a function that applies a primitive to arrays."""
    name, operands, (target,) = step
    function = numpy_arithmetic.numpy_function(name)
    row = allocation.row_of[target]

    def into_row(block: BlockState) -> None:
        values = block.values
        values[target] = function(*[values[o] for o in operands], out=block.buffer[row])

    def copy_to_row(block: BlockState) -> None:
        # Always copied: the function may return its argument, or an array of another type.
        values = block.values
        target_row, arguments = block.buffer[row], [values[o] for o in operands]
        target_row[...] = (
            function(*arguments)
            if built_in
            else call_custom_primitive(name, function, arguments, target_row.shape)
        )
        values[target] = target_row

    built_in = find_primitive(name).built_in
    return into_row if built_in and isinstance(function, np.ufunc) else copy_to_row


def _multiply_add(step: PlanStep, allocation: RowAllocation) -> StepFunction:
    """Return a function that multiplies into the scratch row, then adds or subtracts."""
    name, (a, b, c), (target,) = step
    row = allocation.row_of[target]
    combined: Any = np.add if name == "fma" else np.subtract

    def run_step(block: BlockState) -> None:
        values = block.values
        product = np.multiply(values[a], values[b], out=block.buffer[-1])
        pair = (values[c], product) if name == "fnma" else (product, values[c])
        values[target] = combined(*pair, out=block.buffer[row])

    return run_step


def _sine_cosine(step: PlanStep, allocation: RowAllocation) -> StepFunction:
    """Return a function that computes the sine, then the cosine of one value."""
    _, (operand,), (sine, cosine) = step
    sine_row, cosine_row = allocation.row_of[sine], allocation.row_of[cosine]

    def run_step(block: BlockState) -> None:
        values = block.values
        values[sine] = np.sin(values[operand], out=block.buffer[sine_row])
        values[cosine] = np.cos(values[operand], out=block.buffer[cosine_row])

    return run_step


def _reduction(step: PlanStep) -> StepFunction:
    """Return a function that sums values, or products that are never stored, over a block."""
    name, operands, (number,) = step
    total: Any = np.add.reduce if name == "sum" else np.dot

    def run_step(block: BlockState) -> None:
        block.sums[number] = total(*[block.values[o] for o in operands])

    return run_step


def _affine(group: AffineGroup, position: int, allocation: RowAllocation) -> StepFunction:
    """Return a function that multiplies a matrix by the inputs, a column for each sample."""
    inputs = _stacked_values(group.inputs, allocation)
    targets = [(output, allocation.row_of[output]) for output in group.outputs]
    rows = _as_slice([row for _, row in targets])
    biased = any(bias >= 0 for bias in group.biases)

    def run_step(block: BlockState) -> None:
        weights, biases = block.matrices[position]
        destination = block.buffer[rows] if rows else None
        result = _matrix_product(weights, inputs(block), destination)
        if biased:
            result += biases
        for (output, row), row_values in zip(targets, result, strict=True):
            if destination is None:
                block.buffer[row] = row_values
            block.values[output] = block.buffer[row]

    return run_step


def _outer_product(group: OuterProduct, allocation: RowAllocation) -> StepFunction:
    """Return a function that sums all pairwise products over the samples of a block."""
    left, right = _stacked_values(group.left, allocation), _stacked_values(group.right, allocation)
    accumulators = np.array(group.accumulators)
    needed = accumulators >= 0
    accumulators = accumulators[needed]

    def run_step(block: BlockState) -> None:
        block.sums[accumulators] = _sum_outer_products(left(block), right(block))[needed]

    return run_step


def _matrix_product(weights: Array, samples: Array, out: Array | None) -> Array:
    """Multiply a matrix by samples, slice by slice; return shape (outputs, samples)."""
    product = np.empty((len(weights), samples.shape[1]), samples.dtype) if out is None else out
    for part in _sample_slices(samples.shape[1], weights.size):
        np.matmul(weights, samples[:, part], out=product[:, part])
    return product


def _sum_outer_products(left: Array, right: Array) -> Array:
    """Sum the products of all pairs over the samples; return shape (left, right)."""
    total = np.zeros((len(left), len(right)), left.dtype)
    for part in _sample_slices(left.shape[1], total.size):
        total += np.matmul(left[:, part], right[:, part].T)
    return total


def _sample_slices(samples: int, weights: int) -> list[slice]:
    """Split the samples of a block so that BLAS multiplies each slice in one thread.

    Args:
        samples: number of samples of the block.
        weights: number of elements of the matrix.
    """
    size = _MAX_SERIAL_PRODUCTS // weights
    if size < 16:  # large matrices benefit from several threads
        return [slice(0, samples)]
    return [slice(start, start + size) for start in range(0, samples, size)]


def _stacked_values(
    values: Sequence[int], allocation: RowAllocation
) -> Callable[[BlockState], Array]:
    """Return a function that stacks values in a matrix of shape (values, samples of the block)."""
    rows = _as_slice([allocation.row_of.get(value, -1) for value in values])
    if rows:
        return lambda block: block.buffer[rows]
    return lambda block: np.array([block.values[value] for value in values], block.buffer.dtype)


def _as_slice(rows: Sequence[int]) -> slice | None:
    """Return rows as a slice if they are consecutive: such rows are stacked without a copy."""
    start = rows[0]
    if start < 0 or list(rows) != list(range(start, start + len(rows))):
        return None
    return slice(start, start + len(rows))


class NumpyEngine:
    """The reference engine, which is always available."""

    name = "numpy"
    scalarize_up_to = 0

    def unavailable(self) -> str:
        """Return the empty string: numpy is a dependency."""
        return ""

    def unsupported(self, tape: Tape, dtype: str) -> str:
        """Return the empty string: the engine runs every tape."""
        return ""

    def minimum_work(self, tape: Tape) -> float:
        """Return 0 for scalars, done before compiled code is loaded; arrays are left to `plain`."""
        return math.inf if tape.has_arrays else 0

    def describe(self) -> str:
        """Return the version of numpy."""
        return f"version: {np.__version__}"

    def compile(
        self, tape: Tape, *, reduction: Reduction = "none", dtype: str = "float64"
    ) -> Execute:
        """Prepare a tape to be run many times; arrays and complex numbers are left to `plain`."""
        if tape.has_arrays or dtype.startswith("complex"):
            return PLAIN.compile(tape, reduction=reduction, dtype=dtype)
        with pause_garbage_collection():
            return NumpyExecutable(tape, reduction=reduction, dtype=dtype)


ENGINE = NumpyEngine()
