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
SampleRanges = list[tuple[int, int]]  # first and last sample of each


class CpuExecutable:
    """A tape as machine code.

    Attributes:
        function: address of the function ``run``.
        dtype: type of the computation.
        sums: whether the outputs are summed over the samples.
        outputs, columns, scalars: names.
        operations: operations per sample.
        unit: number of samples that the code processes at a time.
        count: number of arrays or sums that are written, for outputs that vary with the sample.
        lanes: number of partial sums per sum.
        size: size of the table of uniform values: scalars, constants, computed values.
        constants: the constants of this table.
        fixed: indices in the table of the outputs that do not vary with the sample.
        reads: for each output, its index among the written arrays, then the fixed outputs.
        factors: constant factor of each sum.
        lock: held during a call if calls must not overlap.
    """

    function: int
    dtype: np.dtype[Any]
    sums: bool
    outputs: tuple[str, ...]
    columns: tuple[str, ...]
    scalars: tuple[str, ...]
    operations: int
    unit: int
    count: int
    lanes: int
    size: int
    constants: Sequence[float] | Array = ()
    fixed: Array
    reads: Array
    factors: Array
    lock: AbstractContextManager[Any] = nullcontext()

    def prepare_calls(
        self, columns: Array, written: Array, table: Array, begin: int, end: int
    ) -> tuple[list[Call], Any]:
        """Return the calls of ``run`` for a range of samples, and data that must outlive them.

        The last call processes the samples. The calls before it are preparations: the first is
        common to
        all ranges, the others belong to this range.

        Args:
            columns: addresses of the columns.
            written: sums, shape (count, lanes), which are incremented, or values, (count, samples).
            table: uniform values, see :meth:`table`.
            begin, end: range of samples.
        """
        raise NotImplementedError

    def check(self) -> None:
        """Raise the exception of a Python primitive that failed during the call."""

    def table(self, values: Array) -> Array:
        """Return the table of uniform values for these values of the scalars."""
        table, first = np.empty(self.size, self.dtype), len(self.scalars)
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
        written = np.empty((self.count, samples), self.dtype)
        table = self._run(columns, values, [written] * len(ranges), ranges)
        fixed = [np.full(samples, table[place], self.dtype) for place in self.fixed]
        return copy_shared_outputs(
            [*written, *fixed], dict(zip(self.outputs, self.reads.tolist(), strict=True))
        )

    def compute_sums(self, columns: Inputs, values: Array, samples: int) -> Array:
        """Compute the sums of all outputs; see :class:`VectorExecutable`."""
        ranges = worker_threads.split_samples(samples, self.unit, self.operations)
        written = np.zeros((len(ranges), self.count, self.lanes))
        table = self._run(columns, values, list(written), ranges)
        with np.errstate(all="ignore"):
            sums = written.sum(axis=0).sum(axis=1)
            if len(self.fixed):
                sums = np.concatenate([sums, sum_uniform_value(table[self.fixed], samples)])
            results: Array = sums[self.reads] * self.factors
        return results

    def _run(
        self, columns: Inputs, values: Array, written: list[Array], ranges: SampleRanges
    ) -> Array:
        """Run ranges of samples in one thread each, and return the table of uniform values."""
        arrays = convert_columns(columns, self.columns, self.dtype, ranges[-1][1])
        column_addresses = addresses(arrays)
        final_calls, alive = [], []
        with self.lock:
            table = self.table(values)
            for number, (target, sample_range) in enumerate(zip(written, ranges, strict=True)):
                calls, arrays = self.prepare_calls(column_addresses, target, table, *sample_range)
                for call in calls[min(number, 1) : -1]:
                    worker_threads.run_in_threads(self.function, [call])
                final_calls.append(calls[-1])
                alive.append(arrays)
            worker_threads.run_in_threads(self.function, final_calls)
            self.check()
        return table


def addresses(arrays: list[Array]) -> Array:
    """Return the addresses of arrays."""
    return np.array([array.ctypes.data for array in arrays], np.int64)
