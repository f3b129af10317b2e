"""Execution of compiled tapes: columns and scalars in, arrays or sums out, on all cores."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from cgprimer.backends.call_arguments import (
    convert_columns,
    convert_scalars,
    copy_shared_outputs,
    sum_uniform_value,
)
from cgprimer.backends.cpu import worker_threads
from cgprimer.backends.interfaces import Array
from cgprimer.core.methods.derivative_program import Inputs

Call = tuple[int, ...]  # arguments of ``run``
SampleRanges = list[tuple[int, int]]  # first sample and end of each range


class CpuExecutable:
    """A tape that is compiled to machine code for the CPU.

    Attributes:
        function: address of the compiled function ``run``.
        dtype: dtype of the computation.
        sums: whether the outputs are summed over the samples.
        outputs, columns, scalars: names.
        operations: number of operations per sample.
        unit: number of samples that the code processes at a time.
        result_count: number of arrays or sums that the code stores, for outputs that vary with the
            sample.
        lanes: number of partial sums per sum.
        table_size: size of the uniform table: scalars, constants, computed values.
        constants: the constants of the uniform table.
        uniform_slots: indices in the uniform table of the outputs that do not vary with the sample.
        output_slots: for each output, its index among the stored results, then the uniform outputs.
        factors: constant factor of each sum.
        lock: lock that is held during a call if calls must not overlap.
    """

    function: int
    dtype: np.dtype[Any]
    sums: bool
    outputs: tuple[str, ...]
    columns: tuple[str, ...]
    scalars: tuple[str, ...]
    operations: int
    unit: int
    result_count: int
    lanes: int
    table_size: int
    constants: Sequence[float] | Array = ()
    uniform_slots: Array
    output_slots: Array
    factors: Array
    lock: AbstractContextManager[Any] = nullcontext()

    def prepare_calls(
        self, columns: Array, results: Array, table: Array, begin: int, end: int
    ) -> tuple[list[Call], Any]:
        """Prepare the calls to the compiled function ``run`` for a range of samples.

        The last call processes the samples. The calls before it are preparations: the first is
        common to all ranges, the others belong to this range.

        Args:
            columns: addresses of the columns.
            results: sums, shape (result_count, lanes), which are incremented, or values, shape
                (result_count, samples).
            table: uniform table, see :meth:`build_uniform_table`.
            begin, end: range of samples.

        Returns:
            The arguments of each call, and the buffers that the calls use, which the caller keeps
            alive until the calls have ended.
        """
        raise NotImplementedError

    def raise_failure(self) -> None:
        """Raise the exception of a Python primitive that failed during the call."""

    def build_uniform_table(self, values: Array) -> Array:
        """Build the table of sample-independent values from the values of the scalars."""
        table, first = np.empty(self.table_size, self.dtype), len(self.scalars)
        with np.errstate(all="ignore"):  # too large for float32: infinite, as in any conversion
            table[:first] = values
        table[first : first + len(self.constants)] = self.constants
        return table

    def __call__(self, columns: Inputs, scalars: Inputs, samples: int) -> dict[str, Array]:
        """Run the tape; see :class:`cgprimer.core.methods.derivative_program.Execute`."""
        values = convert_scalars(scalars, self.scalars, self.dtype)
        if self.sums:
            return dict(zip(self.outputs, self.compute_sums(columns, values, samples), strict=True))
        ranges = worker_threads.split_samples(samples, self.unit, self.operations)
        results = np.empty((self.result_count, samples), self.dtype)
        table = self._run_ranges(columns, values, [results] * len(ranges), ranges)
        uniform_outputs = [np.full(samples, table[k], self.dtype) for k in self.uniform_slots]
        slots = dict(zip(self.outputs, self.output_slots.tolist(), strict=True))
        return copy_shared_outputs([*results, *uniform_outputs], slots)

    def compute_sums(self, columns: Inputs, values: Array, samples: int) -> Array:
        """Compute the sums of all outputs over the samples; see ``VectorExecutable``."""
        ranges = worker_threads.split_samples(samples, self.unit, self.operations)
        partial_sums = np.zeros((len(ranges), self.result_count, self.lanes))
        table = self._run_ranges(columns, values, list(partial_sums), ranges)
        with np.errstate(all="ignore"):
            sums = partial_sums.sum(axis=0).sum(axis=1)
            if len(self.uniform_slots):
                uniform_sums = sum_uniform_value(table[self.uniform_slots], samples)
                sums = np.concatenate([sums, uniform_sums])
            output_sums: Array = sums[self.output_slots] * self.factors
        return output_sums

    def _run_ranges(
        self, columns: Inputs, values: Array, results: list[Array], ranges: SampleRanges
    ) -> Array:
        """Run the compiled code on ranges of samples, with one thread per range."""
        arrays = convert_columns(columns, self.columns, self.dtype, ranges[-1][1])
        column_addresses = get_addresses(arrays)
        final_calls, alive = [], []
        with self.lock:
            table = self.build_uniform_table(values)
            for number, (target, sample_range) in enumerate(zip(results, ranges, strict=True)):
                calls, buffers = self.prepare_calls(column_addresses, target, table, *sample_range)
                for call in calls[min(number, 1) : -1]:
                    worker_threads.run_in_threads(self.function, [call])
                final_calls.append(calls[-1])
                alive.append(buffers)
            worker_threads.run_in_threads(self.function, final_calls)
            self.raise_failure()
        return table


def get_addresses(arrays: list[Array]) -> Array:
    """Return the memory addresses of arrays."""
    return np.array([array.ctypes.data for array in arrays], np.int64)
