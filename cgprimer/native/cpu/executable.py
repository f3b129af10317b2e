"""How compiled tapes are run: columns and scalars in, arrays or sums out, on all cores."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from cgprimer.core.engines import Array
from cgprimer.core.methods.contract import Given
from cgprimer.native.arguments import apart, as_columns, as_scalars, times_samples
from cgprimer.native.cpu import threads

Call = tuple[int, ...]  # arguments of ``run``
Pieces = list[tuple[int, int]]  # first and last sample of each


class Executable:
    """A tape as machine code."""

    function: int  #: the address of ``run``
    dtype: np.dtype[Any]
    sums: bool  #: whether the outputs are sums
    outputs: tuple[str, ...]  #: names, as those below
    columns: tuple[str, ...]
    scalars: tuple[str, ...]
    operations: int  #: per sample
    unit: int  #: samples that are best taken at a time
    count: int  #: arrays or sums that are written, for outputs that vary with the sample
    lanes: int  #: numbers that a sum consists of
    size: int  #: of the table: scalars, ``constants``, and what is computed from them
    constants: Sequence[float] | Array = ()
    fixed: Array  #: which numbers of the table are outputs
    reads: Array  #: of each output: its number among ``count``, then ``fixed``
    factors: Array  #: what each sum is multiplied by
    alone: AbstractContextManager[Any] = nullcontext()  # of one call at a time, if it must be

    def calls(
        self, columns: Array, written: Array, table: Array, begin: int, end: int
    ) -> tuple[list[Call], Any]:
        """Calls of ``run`` for a range of samples, and what must live as long as they do.

        The last call goes through the samples. Those before prepare it: the first what all ranges
        have in common, the others this one.

        Args:
            columns: addresses.
            written: shape (count, lanes) of sums that are added to, or (count, samples).
            table: of numbers, see :meth:`table`.
            begin, end: the range.
        """
        raise NotImplementedError

    def check(self) -> None:
        """Raise what a primitive in Python raised meanwhile."""

    def table(self, values: Array) -> Array:
        """The numbers that no sample changes, with the values of the scalars."""
        found, first = np.empty(self.size, self.dtype), len(self.scalars)
        with np.errstate(all="ignore"):  # too large for float32: infinite, as in any conversion
            found[:first] = values
        found[first : first + len(self.constants)] = self.constants
        return found

    def __call__(self, columns: Given, scalars: Given, samples: int) -> dict[str, Array]:
        """Run the tape; see :class:`cgprimer.core.methods.contract.Execute`."""
        values = as_scalars(scalars, self.scalars, self.dtype)
        if self.sums:
            return dict(zip(self.outputs, self.totals(columns, values, samples), strict=True))
        pieces = threads.parts(samples, self.unit, self.operations)
        written = np.empty((self.count, samples), self.dtype)
        table = self._run(columns, values, [written] * len(pieces), pieces)
        fixed = [np.full(samples, table[place], self.dtype) for place in self.fixed]
        return apart([*written, *fixed], dict(zip(self.outputs, self.reads.tolist(), strict=True)))

    def totals(self, columns: Given, values: Array, samples: int) -> Array:
        """The sums of all outputs; see :class:`cgprimer.native.contract.Summing`."""
        pieces = threads.parts(samples, self.unit, self.operations)
        written = np.zeros((len(pieces), self.count, self.lanes))
        table = self._run(columns, values, list(written), pieces)
        with np.errstate(all="ignore"):
            sums = written.sum(axis=0).sum(axis=1)
            if len(self.fixed):
                sums = np.concatenate([sums, times_samples(table[self.fixed], samples)])
            found: Array = sums[self.reads] * self.factors
        return found

    def _run(self, columns: Given, values: Array, written: list[Array], pieces: Pieces) -> Array:
        """Ranges of samples, each in a thread; returns the table."""
        given = as_columns(columns, self.columns, self.dtype, pieces[-1][1])
        places = addresses(given)
        last, kept = [], []
        with self.alone:
            table = self.table(values)
            for number, (target, piece) in enumerate(zip(written, pieces, strict=True)):
                calls, arrays = self.calls(places, target, table, *piece)
                for call in calls[min(number, 1) : -1]:
                    threads.run(self.function, [call])
                last.append(calls[-1])
                kept.append(arrays)
            threads.run(self.function, last)
            self.check()
        return table


def addresses(arrays: list[Array]) -> Array:
    """Where arrays begin."""
    return np.array([array.ctypes.data for array in arrays], np.int64)
