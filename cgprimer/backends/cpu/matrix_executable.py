"""Execution of tapes with arrays: matrix products by numpy's BLAS, the rest in fused kernels.

Samples are processed in blocks, so that intermediate values stay in the caches. The buffers of a
block are allocated once and reused. For large workloads, several threads process separate blocks;
the split depends only on the number of samples and of threads.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
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
    """Buffers for the values of a block of samples."""

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
                shape = shapes[i] if program.after[i] else (samples, *shapes[i])
                self.values[i] = np.empty(shape, program.dtype)
        self.tables = []
        for kernel in program.kernels:
            arrays = [self.values.get(i) for i in (*kernel.reads, *kernel.writes)]
            addresses = [0 if array is None else array.ctypes.data for array in arrays]
            self.tables.append(np.array(addresses, np.int64))
        self.places = [table.ctypes.data for table in self.tables]


class ArrayExecutable:
    """A compiled tape with arrays; call it with the values of its leaves.

    Args:
        tape: the tape.
        sums: sum the outputs over the samples.
        dtype: ``float64`` or ``float32``.
    """

    def __init__(self, tape: Tape, *, sums: bool, dtype: str) -> None:
        self.sums, self.dtype = sums, np.dtype(dtype)
        self.operations = estimate_scalar_cost(tape)[0]
        has_custom = any(isinstance(n, str) and not find_primitive(n).built_in
                  for n, _ in tape.instructions)  # fmt: skip
        self.divisible = not has_custom  # Python's functions run one at a time
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
        self.after = plan.batch_dependent
        leaves = list(enumerate(tape.leaves))
        self.columns = [(i, leaf.name) for i, leaf in leaves if leaf.kind == "column"]
        self.scalars = [(i, leaf.name) for i, leaf in leaves if leaf.kind == "scalar"]
        constants = (
            self.dtype.type(f.value) if f.kind == "constant" else None for f in tape.leaves
        )
        with np.errstate(all="ignore"):  # too large for float32: infinite
            self.start: Values = [*constants, *[None] * len(tape)]
        self.once = [
            (i, numpy_arithmetic.numpy_function(plan.operation(i)), plan.operands(i))
            for i in plan.uniform
        ]
        self.read = {i for kernel in self.kernels for i in kernel.reads}
        self.fixed = sorted(i for i in self.read if not plan.varies[i])
        self.buffered = [i for kernel in self.kernels for i in kernel.writes]
        products = {i for i in plan.steps if isinstance(i, int) and _product(plan, i)}
        ends = products & set(tape.outputs.values())
        self.fresh = {i for i in ends if plan.batch_dependent[i]}  # in new memory, not copied
        self.buffered += sorted(products - self.fresh)
        self.steps: list[Callable[[Values, BlockBuffers, int], None]] = []
        computed, number = set(self.buffered), 0
        needed = set(tape.outputs.values()) | self.read
        needed |= {o for i in plan.steps if isinstance(i, int) for o in _factors(plan, i)}
        for step in plan.steps:
            if isinstance(step, int) and step not in needed:
                continue  # a reshaped column: the product reads the vector
            if isinstance(step, FusedKernel):
                self.steps.append(self._kernel_step(number, step, computed))
                number += 1
            else:
                self.steps.append(self._separate_step(step, computed))
        widest = max(
            (plan.sizes[i] for i in self.buffered if not plan.batch_dependent[i]), default=1
        )
        self.block = max(_MIN_BLOCK, _BLOCK_BYTES // (widest * self.dtype.itemsize))
        self.free_buffers: dict[int, list[BlockBuffers]] = {}

    # --- steps -----------------------------------------------------------------------------------

    def _kernel_step(self, number: int, kernel: FusedKernel, computed: set[int]) -> Any:
        """Return a step that calls a kernel, with the addresses of arrays outside the buffers."""
        function = _callable(self.library.get_address(f"kernel{number}"))
        external = [(k, i) for k, i in enumerate(kernel.reads) if i not in computed]

        def step(values: Values, space: BlockBuffers, samples: int) -> None:
            if external:
                table = space.tables[number]
                for slot, index in external:
                    table[slot] = values[index].__array_interface__["data"][0]
            function(space.places[number], 0, samples)

        return step

    def _separate_step(self, index: int, computed: set[int]) -> Any:
        """Return a step that computes a product into its buffer, or calls a numpy function."""
        plan, operands, shape = self.plan, self.plan.operands(index), self.tape.shapes[index]
        product = _product(plan, index)
        if product is None:
            function, dtype = numpy_arithmetic.numpy_function(plan.operation(index)), self.dtype
            contiguous = index in self.read

            def step(values: Values, space: BlockBuffers, samples: int) -> None:
                value = function(*[values[o] for o in operands])
                values[index] = np.asarray(value, dtype, order="C") if contiguous else value

            return step
        one, other = _factors(plan, index)
        matmul, empty, dtype = np.matmul, np.empty, self.dtype  # dot fills with zeros at first

        def multiply(values: Values, space: BlockBuffers, samples: int) -> None:
            left, right = product(values[one], values[other])
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
        """Run the tape; see :class:`InPlaceExecutable`."""
        tape, dtype = self.tape, self.dtype
        start = self.start.copy()
        with np.errstate(all="ignore"):
            for i, name in self.scalars:
                if name in scalars:
                    start[i] = np.asarray(scalars[name], dtype)
            for i, function, operands in self.once:
                start[i] = function(*[start[o] for o in operands])
            for i in self.fixed:
                start[i] = np.asarray(start[i], dtype, order="C")
            for i, name in self.columns:
                column = np.asarray(columns[name], dtype, order="C")
                single = column.ndim == len(tape.leaves[i].shape)  # one sample, without an axis
                start[i] = column[None] if single else column
        outputs: dict[str, Array] = {}
        if not self.sums:
            for name, i in tape.outputs.items():
                shape = (samples, *tape.shapes[i])
                outputs[name] = np.empty(shape, dtype)
                if not self.plan.varies[i]:
                    outputs[name][...] = start[i]
        elif samples == 0:
            for array in into.values():
                array[...] = 0.0
            return {n: np.zeros(tape.shapes[i]) for n, i in tape.outputs.items()}
        destinations = {tape.outputs[n]: array for n, array in into.items()}
        destinations = {i: array for i, array in destinations.items() if i in self.fresh}
        threads = 1
        divisible = self.divisible and samples * self.operations >= 2 * _MIN_OPERATIONS
        if divisible and blas_threads.can_limit_threads():
            worth = min(samples * self.operations // _MIN_OPERATIONS, samples // _MIN_BLOCK)
            threads = max(1, min(worker_threads.thread_count(), worth))
        ranges = list(pairwise(samples * thread // threads for thread in range(threads + 1)))
        if threads == 1:
            totals = [self._run_range(start, 0, samples, outputs, destinations)]
        else:
            with blas_threads.one_thread():
                more = [_pool().submit(self._run_range, start, *p, outputs, {}) for p in ranges[1:]]
                totals = [
                    self._run_range(start, *ranges[0], outputs, destinations),
                    *[f.result() for f in more],
                ]
        for i, value in totals[0].items():
            for thread in totals[1:]:
                value += thread[i]  # noqa: PLW2901
        for name, i in tape.outputs.items():
            if self.sums:
                varies = self.plan.varies[i]
                outputs[name] = totals[0][i] if varies else start[i] * float(samples)
                if name in into and into[name] is not outputs[name]:
                    into[name][...] = outputs[name]
        return outputs

    def _run_range(
        self,
        start: Values,
        begin: int,
        end: int,
        outputs: dict[str, Array],
        destinations: dict[int, Any],
    ) -> dict[int, Array]:
        """Run a range of samples: write the outputs, or return the sums."""
        count = max(1, -(-(end - begin) // self.block))
        totals: dict[int, Array] = {}
        with np.errstate(all="ignore"):
            for block in range(count):
                first, last = (begin + (end - begin) * k // count for k in (block, block + 1))
                space = self._block_buffers(last - first)
                values = start.copy()
                for i, array in (*space.values.items(), *(() if block else destinations.items())):
                    values[i] = array
                for i, _ in self.columns:
                    values[i] = start[i][first:last]
                space.sums[...] = 0.0
                for step in self.steps:
                    step(values, space, last - first)
                for name, i in self.varying.items():
                    if not self.sums:
                        outputs[name][first:last] = values[i]
                    elif block == 0:
                        totals[i] = values[i] if i in self.fresh else np.array(values[i])
                for i in totals if block else ():
                    totals[i] += values[i]
                self.free_buffers.setdefault(last - first, []).append(space)
        return totals

    def _block_buffers(self, samples: int) -> BlockBuffers:
        """Return buffers for a block, reused if possible."""
        free = self.free_buffers.get(samples)
        if free is None and len(self.free_buffers) >= _MAX_BUFFER_SIZES:
            self.free_buffers.clear()
        try:
            return free.pop() if free else BlockBuffers(self, samples)
        except IndexError:  # another thread was faster
            return BlockBuffers(self, samples)


def _product(plan: ArrayPlan, index: int) -> Callable[[Array, Array], tuple[Array, Array]] | None:
    """Return the factors of an instruction that is a matrix product, as a function; else None."""
    name, shapes = plan.operation(index), plan.tape.shapes
    kind = operator_name(name)
    if kind not in ("matmul", "batch_matmul") or not prod(shapes[index]):
        return None
    one, other = plan.operands(index)
    varies = plan.varies[one], plan.varies[other]
    ranks = len(shapes[one]), len(shapes[other])
    if kind == "matmul" and ranks == (2, 1) and varies == (False, True):
        return lambda a, b: (b, a.T)
    if kind == "matmul" and ranks == (1, 2) and varies == (True, False):
        return lambda a, b: (a, b)
    if kind == "batch_matmul" and ranks == (2, 2) and shapes[one][1] == 1:
        if _factors(plan, index) != (one, other):
            return lambda a, b: (a.T, b)
        return lambda a, b: (a[..., 0].T, b[:, 0])  # a column times a row, of each sample
    return None


def _factors(plan: ArrayPlan, index: int) -> tuple[int, ...]:
    """Return the operands of a step; for a column times a row, the vectors before the reshape."""
    operands, shapes = plan.operands(index), plan.tape.shapes
    if operator_name(plan.operation(index)) != "batch_matmul" or shapes[operands[0]][1:] != (1,):
        return operands
    reshapes = (
        i for i in operands if i >= plan.first and operator_name(plan.operation(i)) == "reshape"
    )
    vectors = tuple(o for i in reshapes for o in plan.operands(i) if len(shapes[o]) == 1)
    return vectors if len(vectors) == 2 else operands


@cache
def _callable(function: int) -> Callable[[int, int, int], None]:
    return ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)(function)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(
        max(1, worker_threads.thread_count() - 1), thread_name_prefix="cgprimer"
    )


if hasattr(os, "register_at_fork"):  # a child process has none of its parent's threads
    os.register_at_fork(after_in_child=_pool.cache_clear)
