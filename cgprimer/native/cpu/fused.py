"""Running straight-line code: columns and scalars in, arrays or sums out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from cgprimer.core.engines import Array, Reduction
from cgprimer.core.tape.tape import Tape
from cgprimer.garbage_collection import collector_paused
from cgprimer.native.arguments import apart, as_columns, as_scalars, times_samples
from cgprimer.native.cpu import threads
from cgprimer.native.cpu.library import Library, processor
from cgprimer.native.cpu.straight_line import module_text, order_of
from cgprimer.native.plans.constant_factors import constant_factors
from cgprimer.native.programs import fingerprint

_SMALL = 64  # instructions: below, two vectors at a time keep the processor busier than one


class Fused:
    """A small tape as machine code.

    Args:
        tape: an optimized tape whose primitives LLVM can do.
        reduction: ``none`` or ``sum``.
        dtype: ``float64`` or ``float32``.
    """

    def __init__(self, tape: Tape, *, reduction: Reduction, dtype: str) -> None:
        self.sums = reduction == "sum"
        factors = dict.fromkeys(tape.outputs, 1.0)
        if self.sums:
            tape, factors = constant_factors(tape)
        self.factors = np.array(list(factors.values()))
        self.tape = tape
        self.dtype = np.dtype(dtype)
        lanes = processor().lanes(dtype)
        self.lanes = lanes * 2 if len(tape) <= _SMALL and lanes > 1 else lanes
        key = f"{fingerprint(tape)} {reduction} {dtype} {self.lanes}"
        text = partial(module_text, tape, sums=self.sums, dtype=dtype, lanes=self.lanes)
        with collector_paused():
            self.library = Library("straight-line", key, text)
        self.function = self.library.address("run")
        self.varying, self.fixed = order_of(tape)
        place = {value: k for k, value in enumerate((*self.varying, *self.fixed))}
        self.reads = np.array([place[value] for value in tape.outputs.values()], np.int64)
        self.columns = tape.of_kind("column")
        self.scalars = tape.of_kind("scalar")

    def __call__(
        self, columns: Mapping[str, Array], scalars: Mapping[str, Any], samples: int
    ) -> dict[str, Array]:
        """Run the tape; see :class:`cgprimer.core.methods.contract.Execute`."""
        shared = as_scalars(scalars, self.scalars, self.dtype)
        if self.sums:
            return dict(zip(self.tape.outputs, self.totals(columns, shared, samples), strict=True))
        found = self._per_sample(columns, shared, samples)
        return apart(found, dict(zip(self.tape.outputs, self.reads.tolist(), strict=True)))

    def totals(self, columns: Mapping[str, Array], values: Array, samples: int) -> Array:
        """The sums of all outputs; see :class:`cgprimer.core.engines.Summing`."""
        given = as_columns(columns, self.columns, self.dtype, samples)
        with np.errstate(all="ignore"):  # too large for float32: infinite, as in any conversion
            shared = np.ascontiguousarray(values, self.dtype)
        fixed = np.empty(max(1, len(self.fixed)), self.dtype)
        whole = samples - samples % self.lanes
        pieces = threads.parts(whole, self.lanes, max(8, len(self.tape)))
        # One row of totals for each part, and the last for the samples that fill no vector.
        totals = np.zeros((len(pieces) + 1, len(self.varying), self.lanes))
        written = list(rows_of(totals, fixed))
        self._run(addresses(given), written, shared, pieces)
        if whole < samples or not pieces:
            last = [padded(column[whole:], self.lanes) for column in given]
            self._run(addresses(last), written[-1:], shared, [(0, self.lanes)])
            totals[-1, :, samples - whole :] = 0.0
        with np.errstate(all="ignore"):
            sums = totals.sum(axis=0).sum(axis=1)
            if self.fixed:
                sums = np.concatenate([sums, times_samples(fixed, samples)])
            found: Array = sums[self.reads] * self.factors
        return found

    def _per_sample(self, columns: Mapping[str, Array], shared: Array, samples: int) -> list[Array]:
        given = as_columns(columns, self.columns, self.dtype, samples)
        fixed = np.empty(max(1, len(self.fixed)), self.dtype)
        whole = samples - samples % self.lanes
        arrays = [np.empty(samples, self.dtype) for _ in self.varying]
        pieces = threads.parts(whole, self.lanes, max(8, len(self.tape)))
        written = addresses([*arrays, fixed])
        self._run(addresses(given), [written] * len(pieces), shared, pieces)
        if whole < samples or not pieces:
            last = [padded(column[whole:], self.lanes) for column in given]
            ends = [np.empty(self.lanes, self.dtype) for _ in arrays]
            written = addresses([*ends, fixed])
            self._run(addresses(last), [written], shared, [(0, self.lanes)])
            for array, end in zip(arrays, ends, strict=True):
                array[whole:] = end[: samples - whole]
        return arrays + [np.full(samples, value, self.dtype) for value in fixed[: len(self.fixed)]]

    def _run(
        self, columns: Array, written: list[Array], shared: Array, pieces: list[tuple[int, int]]
    ) -> None:
        """Ranges of samples, each in a thread; the caller keeps all arrays until it returns."""
        given, scalars = columns.ctypes.data, shared.ctypes.data
        threads.run(
            self.function,
            [
                (given, results.ctypes.data, scalars, *piece)
                for results, piece in zip(written, pieces, strict=False)
            ],
        )


def rows_of(totals: Array, fixed: Array) -> Array:
    """For each part its table of addresses: the rows of its totals, then another array."""
    parts, count, width = totals.shape
    found = np.empty((parts, count + 1), np.int64)
    step = width * totals.itemsize
    found[:, :count] = totals.ctypes.data + step * np.arange(parts * count).reshape(parts, count)
    found[:, count] = fixed.ctypes.data
    return found


def padded(rest: Array, length: int) -> Array:
    """The last samples, repeated up to a length: unread lanes compute on ordinary numbers."""
    filled = np.ones(length, rest.dtype)
    filled[: len(rest)] = rest
    if len(rest):
        filled[len(rest) :] = rest[-1]
    return filled


def places_of(names: Sequence[str], among: Sequence[str]) -> Array:
    """Where names stand among others; never empty, so that it has an address."""
    place = {name: k for k, name in enumerate(among)}
    return np.array([place[name] for name in names] or [0], np.int64)


def addresses(arrays: list[Array]) -> Array:
    """Where arrays begin."""
    return np.array([array.ctypes.data for array in arrays] or [0], np.int64)
