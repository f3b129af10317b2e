"""Execution of tapes with arrays: matrix products in BLAS, everything else in fused kernels.

Samples are processed in blocks, so that intermediate values stay in the caches. The buffers of a
block are allocated once and reused. For large workloads, several threads process separate blocks;
the split depends only on the number of samples and of threads.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from cgprimer.backends.cpu import blas_threads, worker_threads
from cgprimer.backends.cpu.array_kernel_ir import generate_kernels
from cgprimer.backends.cpu.llvm_library import CompiledLibrary
from cgprimer.backends.cpu.primitive_ir import SUPPORTED
from cgprimer.backends.interfaces import Array
from cgprimer.backends.plans.array_plan import ArrayPlan, FusedKernel
from cgprimer.core.language.syntax_tree import operator_name
from cgprimer.core.methods.derivative_program import Inputs
from cgprimer.core.operations import find_primitive, numpy_arithmetic
from cgprimer.core.tape.sample_sums import sum_over_samples
from cgprimer.core.tape.scalarization import estimate_scalar_cost
from cgprimer.core.tape.tape import Tape
from cgprimer.support.garbage_collection import pause_garbage_collection

Values = list[Any]
_MIN_OPERATIONS = 20_000_000  # operations per thread; below, the threads of BLAS are faster
_BLOCK_BYTES = 2**19  # bytes of the largest value in a block of samples
_MIN_BLOCK = 256  # samples per block; smaller matrix products are slow
_MAX_BUFFER_SIZES = 4  # block sizes for which buffers are kept


class BlockBuffers:
    """Preallocated arrays for the values of one block of samples.

    Attributes:
        values: value of the tape -> its array.
        sums: sums over the samples, in one array, so that they are set to zero at once.
        tables: for each kernel, the addresses of its arrays; 0 for arrays outside of the buffers.
        table_addresses: addresses of the tables.
    """

    def __init__(self, program: ArrayExecutable, samples: int) -> None:
        plan, shapes = program.plan, program.tape.shapes
        self.values: dict[int, Array] = {}
        sums = [i for i in program.buffered if operator_name(plan.operation(i)) == "batch_sum"]
        self.sums = np.zeros(sum(plan.sizes[i] for i in sums))
        start = 0
        for i in sums:
            end = start + plan.sizes[i]
            self.values[i] = self.sums[start:end].reshape(shapes[i])
            start = end
        for i in program.buffered:
            if i not in self.values:
                shape = shapes[i] if plan.batch_dependent[i] else (samples, *shapes[i])
                self.values[i] = np.empty(shape, program.dtype)
        self.tables = []
        for kernel in program.kernels:
            arrays = [self.values.get(i) for i in (*kernel.reads, *kernel.writes)]
            addresses = [0 if array is None else array.ctypes.data for array in arrays]
            self.tables.append(np.array(addresses, np.int64))
        self.table_addresses = [table.ctypes.data for table in self.tables]


Step = Callable[[Values, BlockBuffers, int], None]  # values, buffers, samples of the block


class ArrayExecutable:
    """A tape with arrays, compiled to fused kernels and matrix products.

    Args:
        tape: the tape.
        sums: sum the outputs over the samples.
        dtype: ``float64`` or ``float32``.
    """

    def __init__(self, tape: Tape, *, sums: bool, dtype: str) -> None:
        self.sums, self.dtype = sums, np.dtype(dtype)
        self.operations = estimate_scalar_cost(tape)[0]
        names = (name for name, _ in tape.instructions if isinstance(name, str))
        # Python functions run one at a time.
        self.divisible = all(find_primitive(name).built_in for name in names)
        if sums:
            tape, _, _ = sum_over_samples(tape, split_elementwise=False)
        self.tape, self.plan = tape, ArrayPlan(tape, SUPPORTED.__contains__)
        plan = self.plan
        self.varying = {n: i for n, i in tape.outputs.items() if plan.varies[i]}
        self.kernels = [step for step in plan.steps if isinstance(step, FusedKernel)]
        key = repr((tape.leaves, tape.instructions, tape.outputs, dtype, sums))
        if self.kernels:
            with pause_garbage_collection():
                self.library = CompiledLibrary("arrays", key, lambda: generate_kernels(plan, dtype))
        leaves = list(enumerate(tape.leaves))
        self.columns = [(i, leaf.name) for i, leaf in leaves if leaf.kind == "column"]
        self.scalars = [(i, leaf.name) for i, leaf in leaves if leaf.kind == "scalar"]
        constants = (
            self.dtype.type(f.value) if f.kind == "constant" else None for f in tape.leaves
        )
        with np.errstate(all="ignore"):  # too large for float32: infinite
            self.constants: Values = [*constants, *[None] * len(tape)]
        self.uniform_steps = [
            (i, numpy_arithmetic.numpy_function(plan.operation(i)), plan.operands(i))
            for i in plan.uniform
        ]
        self.kernel_reads = {i for kernel in self.kernels for i in kernel.reads}
        self.uniform_reads = sorted(i for i in self.kernel_reads if not plan.varies[i])
        self.buffered = [i for kernel in self.kernels for i in kernel.writes]
        products = {i for i in plan.steps if isinstance(i, int) and _arrange_factors(plan, i)}
        ends = products & set(tape.outputs.values())
        self.unbuffered = {i for i in ends if plan.batch_dependent[i]}  # in new memory, not copied
        self.buffered += sorted(products - self.unbuffered)
        self.steps = list(self._build_steps())
        widest = max(
            (plan.sizes[i] for i in self.buffered if not plan.batch_dependent[i]), default=1
        )
        self.block = max(_MIN_BLOCK, _BLOCK_BYTES // (widest * self.dtype.itemsize))
        self.free_buffers: dict[int, list[BlockBuffers]] = {}

    # --- steps -----------------------------------------------------------------------------------

    def _build_steps(self) -> Iterator[Step]:
        """Yield functions that process a block of samples, in execution order."""
        plan = self.plan
        needed = set(self.tape.outputs.values()) | self.kernel_reads
        needed |= {o for i in plan.steps if isinstance(i, int) for o in _find_factors(plan, i)}
        number = 0
        for step in plan.steps:
            if isinstance(step, FusedKernel):
                yield self._build_kernel_step(number, step)
                number += 1
            elif step in needed:  # else a reshaped column: the product reads the vector
                arrange = _arrange_factors(plan, step)
                if arrange:
                    yield self._build_product_step(step, arrange)
                else:
                    yield self._build_numpy_step(step)

    def _build_kernel_step(self, number: int, kernel: FusedKernel) -> Step:
        """Build a function that calls a compiled kernel on a block of samples."""
        function = _wrap_kernel(self.library.get_address(f"kernel{number}"))
        buffered = set(self.buffered)
        external = [(k, i) for k, i in enumerate(kernel.reads) if i not in buffered]

        def call_kernel(values: Values, buffers: BlockBuffers, samples: int) -> None:
            """Call the compiled kernel on a block of samples."""
            if external:
                table = buffers.tables[number]
                for slot, index in external:
                    table[slot] = values[index].__array_interface__["data"][0]
            function(buffers.table_addresses[number], 0, samples)

        return call_kernel

    def _build_numpy_step(self, index: int) -> Step:
        """Build a function that applies a numpy function to a block of samples."""
        function = numpy_arithmetic.numpy_function(self.plan.operation(index))
        operands, dtype = self.plan.operands(index), self.dtype
        contiguous = index in self.kernel_reads

        def call_function(values: Values, buffers: BlockBuffers, samples: int) -> None:
            """Apply the numpy function to a block of samples."""
            value = function(*[values[o] for o in operands])
            values[index] = np.asarray(value, dtype, order="C") if contiguous else value

        return call_function

    def _build_product_step(self, index: int, arrange: FactorArrangement) -> Step:
        """Build a function that multiplies two matrices for a block of samples."""
        one, other = _find_factors(self.plan, index)
        shape, dtype = self.tape.shapes[index], self.dtype
        matmul, empty = np.matmul, np.empty  # np.dot fills its result with zeros at first

        def multiply(values: Values, buffers: BlockBuffers, samples: int) -> None:
            """Multiply two matrices for a block of samples."""
            left, right = arrange(values[one], values[other])
            out = values[index]
            values[index] = matmul(left, right, empty(shape, dtype) if out is None else out)

        return multiply

    # --- runs ------------------------------------------------------------------------------------

    def __call__(self, columns: Inputs, scalars: Inputs, samples: int) -> dict[str, Array]:
        """Return each output, per sample or as a sum."""
        return self.run_into(columns, scalars, samples, {})

    def run_into(
        self, columns: Inputs, scalars: Inputs, samples: int, into: Inputs
    ) -> dict[str, Array]:
        """Run the tape and store sums in given arrays; see :class:`InPlaceExecutable`."""
        tape = self.tape
        initial = self._compute_initial_values(columns, scalars)
        if self.sums and samples == 0:
            for array in into.values():
                array[...] = 0.0
            return {n: np.zeros(tape.shapes[i]) for n, i in tape.outputs.items()}
        if not self.sums:
            outputs = self._allocate_outputs(initial, samples)
            self._run_ranges(initial, samples, outputs, {})
            return outputs
        destinations = {tape.outputs[n]: array for n, array in into.items()}
        destinations = {i: array for i, array in destinations.items() if i in self.unbuffered}
        sums = self._run_ranges(initial, samples, {}, destinations)
        results: dict[str, Array] = {}
        for name, i in tape.outputs.items():
            varies = self.plan.varies[i]
            results[name] = sums[i] if varies else initial[i] * float(samples)
            if name in into and into[name] is not results[name]:
                into[name][...] = results[name]
        return results

    def _compute_initial_values(self, columns: Inputs, scalars: Inputs) -> Values:
        """Compute the values that do not depend on the block of samples."""
        values, dtype = self.constants.copy(), self.dtype
        with np.errstate(all="ignore"):
            for i, name in self.scalars:
                if name in scalars:
                    values[i] = np.asarray(scalars[name], dtype)
            for i, function, operands in self.uniform_steps:
                values[i] = function(*[values[o] for o in operands])
            for i in self.uniform_reads:
                values[i] = np.asarray(values[i], dtype, order="C")
            for i, name in self.columns:
                column = np.asarray(columns[name], dtype, order="C")
                single = column.ndim == len(self.tape.leaves[i].shape)  # one sample, without axis
                values[i] = column[None] if single else column
        return values

    def _allocate_outputs(self, initial: Values, samples: int) -> dict[str, Array]:
        """Allocate the output arrays, and fill those that do not vary with the sample."""
        outputs: dict[str, Array] = {}
        for name, i in self.tape.outputs.items():
            outputs[name] = np.empty((samples, *self.tape.shapes[i]), self.dtype)
            if not self.plan.varies[i]:
                outputs[name][...] = initial[i]
        return outputs

    def _choose_thread_count(self, samples: int) -> int:
        """Choose the number of threads that share the samples."""
        operations = samples * self.operations
        if not self.divisible or operations < 2 * _MIN_OPERATIONS:
            return 1
        if not blas_threads.can_limit_threads():
            return 1
        worthwhile = min(operations // _MIN_OPERATIONS, samples // _MIN_BLOCK)
        return max(1, min(worker_threads.get_thread_count(), worthwhile))

    def _run_ranges(
        self,
        initial: Values,
        samples: int,
        outputs: dict[str, Array],
        destinations: dict[int, Any],
    ) -> dict[int, Array]:
        """Run the tape on all samples, divided among threads; return sums over the samples."""
        threads = self._choose_thread_count(samples)
        if threads == 1:
            return self._run_range(initial, 0, samples, outputs, destinations)
        first, *others = pairwise(samples * thread // threads for thread in range(threads + 1))
        with blas_threads.limit_to_one_thread():
            submit = _get_thread_pool().submit
            futures = [submit(self._run_range, initial, *r, outputs, {}) for r in others]
            sums = self._run_range(initial, *first, outputs, destinations)
            partial_sums = [future.result() for future in futures]
        for i, total in sums.items():
            for thread_sums in partial_sums:
                total += thread_sums[i]  # noqa: PLW2901
        return sums

    def _run_range(
        self,
        initial: Values,
        begin: int,
        end: int,
        outputs: dict[str, Array],
        destinations: dict[int, Any],
    ) -> dict[int, Array]:
        """Run the tape on a range of samples, block by block; return sums over the range."""
        count = max(1, -(-(end - begin) // self.block))
        sums: dict[int, Array] = {}
        with np.errstate(all="ignore"):
            for block in range(count):
                first, last = (begin + (end - begin) * k // count for k in (block, block + 1))
                buffers = self._take_buffers(last - first)
                values = initial.copy()
                for i, array in (*buffers.values.items(), *(() if block else destinations.items())):
                    values[i] = array
                for i, _ in self.columns:
                    values[i] = initial[i][first:last]
                buffers.sums[...] = 0.0
                for step in self.steps:
                    step(values, buffers, last - first)
                for name, i in self.varying.items():
                    if not self.sums:
                        outputs[name][first:last] = values[i]
                    elif block == 0:
                        sums[i] = values[i] if i in self.unbuffered else np.array(values[i])
                for i in sums if block else ():
                    sums[i] += values[i]
                self.free_buffers.setdefault(last - first, []).append(buffers)
        return sums

    def _take_buffers(self, samples: int) -> BlockBuffers:
        """Return buffers for a block of samples: free ones if possible, else new ones."""
        free = self.free_buffers.get(samples)
        if free is None and len(self.free_buffers) >= _MAX_BUFFER_SIZES:
            self.free_buffers.clear()
        try:
            return free.pop() if free else BlockBuffers(self, samples)
        except IndexError:  # another thread was faster
            return BlockBuffers(self, samples)


FactorArrangement = Callable[[Array, Array], tuple[Array, Array]]


def _arrange_factors(plan: ArrayPlan, index: int) -> FactorArrangement | None:
    """Return a function that arranges a product's factors, of all samples, for np.matmul.

    The result is None if an instruction is not a product of two matrices over all samples.
    """
    operation, shapes = operator_name(plan.operation(index)), plan.tape.shapes
    if operation not in ("matmul", "batch_matmul") or not prod(shapes[index]):
        return None
    one, other = plan.operands(index)
    varies = plan.varies[one], plan.varies[other]
    ranks = len(shapes[one]), len(shapes[other])
    if operation == "matmul" and ranks == (2, 1) and varies == (False, True):
        return lambda a, b: (b, a.T)
    if operation == "matmul" and ranks == (1, 2) and varies == (True, False):
        return lambda a, b: (a, b)
    if operation == "batch_matmul" and ranks == (2, 2) and shapes[one][1] == 1:
        if _find_factors(plan, index) != (one, other):
            return lambda a, b: (a.T, b)
        return lambda a, b: (a[..., 0].T, b[:, 0])  # a column times a row, of each sample
    return None


def _find_factors(plan: ArrayPlan, index: int) -> tuple[int, ...]:
    """Return the operands of an instruction, or the vectors of an outer product.

    A batch product of reshaped vectors, columns times rows, has the vectors as its operands.
    """
    operands, shapes = plan.operands(index), plan.tape.shapes
    if operator_name(plan.operation(index)) != "batch_matmul" or shapes[operands[0]][1:] != (1,):
        return operands
    reshapes = (
        i for i in operands if i >= plan.first and operator_name(plan.operation(i)) == "reshape"
    )
    vectors = tuple(o for i in reshapes for o in plan.operands(i) if len(shapes[o]) == 1)
    return vectors if len(vectors) == 2 else operands


@cache
def _wrap_kernel(address: int) -> Callable[[int, int, int], None]:
    """Return a Python function that calls the kernel at an address."""
    return ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)(address)


@cache
def _get_thread_pool() -> ThreadPoolExecutor:
    """Return the pool of worker threads for ranges of samples."""
    return ThreadPoolExecutor(
        max(1, worker_threads.get_thread_count() - 1), thread_name_prefix="cgprimer"
    )


if hasattr(os, "register_at_fork"):  # a child process has none of its parent's threads
    os.register_at_fork(after_in_child=_get_thread_pool.cache_clear)
