"""Running straight-line code: columns and scalars in, arrays or sums out."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from cgprimer.collector import collector_paused
from cgprimer.execution.contract import Array, Reduction
from cgprimer.execution.cpu import threads
from cgprimer.execution.cpu.library import Library, processor
from cgprimer.execution.cpu.straight_line import module_text, order_of
from cgprimer.execution.given import as_columns, as_scalars
from cgprimer.tapes.identity import identity
from cgprimer.tapes.tape import Tape

_SMALL = 64  # instructions: below, two vectors at a time keep the processor busier than one

_RUN = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
)


class Fused:
    """A small tape as machine code.

    Args:
        tape: an optimized tape whose primitives LLVM can do.
        reduction: ``none`` or ``sum``.
        dtype: ``float64`` or ``float32``.
    """

    def __init__(self, tape: Tape, *, reduction: Reduction, dtype: str) -> None:
        self.tape, self.sums = tape, reduction == "sum"
        self.dtype = np.dtype(dtype)
        lanes = processor().lanes(dtype)
        self.lanes = lanes * 2 if len(tape) <= _SMALL and lanes > 1 else lanes
        key = f"{identity(tape)} {reduction} {dtype} {self.lanes}"
        text = partial(module_text, tape, sums=self.sums, dtype=dtype, lanes=self.lanes)
        with collector_paused():
            self.library = Library("straight-line", key, text)
        self.run = _RUN(self.library.address("run"))
        self.varying, self.fixed = order_of(tape)
        self.columns = tape.of_kind("column")
        self.scalars = tape.of_kind("scalar")

    def __call__(
        self, columns: Mapping[str, Array], scalars: Mapping[str, Any], samples: int
    ) -> dict[str, Array]:
        """Run the tape; see :class:`cgprimer.execution.contract.Executable`."""
        given = as_columns(columns, self.columns, self.dtype, samples)
        shared = as_scalars(scalars, self.scalars, self.dtype)
        fixed = np.empty(max(1, len(self.fixed)), self.dtype)
        if self.sums:
            found = self._sums(given, shared, fixed, samples)
        else:
            found = self._per_sample(given, shared, fixed, samples)
        return {name: found[index] for name, index in self.tape.outputs.items()}

    def _sums(
        self, given: list[Array], shared: Array, fixed: Array, samples: int
    ) -> dict[int, Any]:
        whole = samples - samples % self.lanes
        pieces = threads.parts(whole, self.lanes, max(8, len(self.tape)))
        # One row of totals for each part, and the last for the samples that fill no vector.
        totals = np.zeros((len(pieces) + 1, len(self.varying), self.lanes))
        calls = [
            self._call(given, list(total), shared, fixed, *piece)
            for total, piece in zip(totals, pieces, strict=False)
        ]
        threads.run(calls)
        if whole < samples or not pieces:
            last = [padded(column[whole:], self.lanes) for column in given]
            self._call(last, list(totals[-1]), shared, fixed, 0, self.lanes)()
            totals[-1, :, samples - whole :] = 0.0
        with np.errstate(all="ignore"):
            sums = totals.sum(axis=(0, 2))
            found = {index: np.float64(s) for index, s in zip(self.varying, sums, strict=True)}
            for index, value in zip(self.fixed, fixed, strict=False):
                found[index] = np.float64(value) * samples
        return found

    def _per_sample(
        self, given: list[Array], shared: Array, fixed: Array, samples: int
    ) -> dict[int, Any]:
        whole = samples - samples % self.lanes
        found = {index: np.empty(samples, self.dtype) for index in self.varying}
        arrays = list(found.values())
        pieces = threads.parts(whole, self.lanes, max(8, len(self.tape)))
        threads.run([self._call(given, arrays, shared, fixed, *piece) for piece in pieces])
        if whole < samples or not pieces:
            last = [padded(column[whole:], self.lanes) for column in given]
            ends = [np.empty(self.lanes, self.dtype) for _ in arrays]
            self._call(last, ends, shared, fixed, 0, self.lanes)()
            for array, end in zip(arrays, ends, strict=True):
                array[whole:] = end[: samples - whole]
        for index, value in zip(self.fixed, fixed, strict=False):
            found[index] = np.full(samples, value, self.dtype)
        return found

    def _call(
        self,
        given: list[Array],
        results: list[Array],
        shared: Array,
        fixed: Array,
        begin: int,
        end: int,
    ) -> Any:
        columns = addresses(given)
        written = addresses([*results, fixed])
        kept = (given, results, shared, fixed, columns, written)  # alive as long as the call is

        def call() -> object:
            self.run(columns.ctypes.data, written.ctypes.data, shared.ctypes.data, begin, end)
            return kept

        return call


def padded(rest: Array, length: int) -> Array:
    """The last samples, repeated up to a length: unread lanes compute on ordinary numbers."""
    filled = np.ones(length, rest.dtype)
    filled[: len(rest)] = rest
    if len(rest):
        filled[len(rest) :] = rest[-1]
    return filled


def addresses(arrays: list[Array]) -> Array:
    """Where arrays begin."""
    return np.array([array.ctypes.data for array in arrays] or [0], np.int64)
