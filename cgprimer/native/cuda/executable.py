"""A tape on the GPU: samples cut into pieces that fit, results put together in order."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np

from cgprimer.core.engines import Array, Reduction
from cgprimer.core.methods.contract import Given
from cgprimer.core.tape.tape import Tape
from cgprimer.errors import EngineError
from cgprimer.native.arguments import UniformValues, apart, as_columns, times_samples
from cgprimer.native.cuda.columns import Piece, pieces, together
from cgprimer.native.cuda.device import (
    MEMORY_VARIABLE,
    Settings,
    blocks_at_work,
    is_out_of_memory,
    kernel,
    memory,
    quiet,
    toolkit,
)
from cgprimer.native.cuda.generated import functions
from cgprimer.native.cuda.kernels import device_program, reduce_text
from cgprimer.native.plans.making import plan


def signature(dtype: str, *, sums: bool, straight: bool) -> tuple[Any, ...]:
    """Types of a kernel's arguments."""
    from numba import types

    real, whole = getattr(types, dtype)[::1], types.int32[::1]
    out = types.float64[::1] if sums else real
    given = (real, types.int64[::1], real, types.int64, out)
    return given if straight else (*given, types.int32[:, ::1], whole, real)


def reduce_signature() -> tuple[Any, ...]:
    """Types of the second stage's arguments."""
    from numba import types

    wide, whole = types.float64[::1], types.int64
    return (wide, whole, whole, whole, wide)


class CudaExecutable:
    """A tape compiled for CUDA; see :class:`cgprimer.core.methods.contract.Execute`.

    Raises:
        EngineError: a primitive has no form on the GPU.
    """

    def __init__(self, tape: Tape, *, reduction: Reduction, dtype: str, settings: Settings) -> None:
        if dtype not in ("float64", "float32"):
            raise EngineError(f"the engine 'cuda' computes with float64 or float32, not {dtype}")
        self.sums = reduction == "sum"
        self.dtype = np.dtype(dtype)
        self.settings = settings
        self.order = tuple(tape.outputs)
        found = plan(tape, sums=self.sums)
        self.given = given = device_program(found, settings.straight)
        self.uniform = UniformValues(found.tape, found.uniform, found.size, dtype)
        self.single = {n: v for n, v in found.outputs.items() if n not in given.outputs}
        self.count = given.program.sums if self.sums else len(given.program.stored)
        self.alone = Lock()  # buffers on the device are kept from call to call
        self.buffers: dict[str, Any] = {}
        if given.outputs:
            types = signature(dtype, sums=self.sums, straight=given.straight)
            self.kernel = kernel(functions(given.text(), dtype)["kernel"], types)
            if not given.straight:
                self.code = [toolkit().to_device(part) for part in (given.code, given.table)]
            if self.sums:
                second = functions(reduce_text(settings.threads), "float64")["reduce"]
                self.reduce = kernel(second, reduce_signature())

    def __call__(self, columns: Given, scalars: Given, samples: int) -> dict[str, Array]:
        """Run the tape; columns may be host arrays or those that ``resident`` gave."""
        with self.alone:
            values = self.uniform(scalars)
            try:
                rows = list(self._varying(columns, values, samples)) if self.given.outputs else []
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                raise EngineError(
                    "the memory of the GPU is used up",
                    hint=f"{MEMORY_VARIABLE} limits the bytes that a call may take",
                ) from error
        fixed: list[Array]
        if self.sums:
            fixed = [np.float64(times_samples(values[v], samples)) for v in self.single.values()]
        else:
            fixed = [np.full(samples, values[v], self.dtype) for v in self.single.values()]
        number = {**self.given.outputs, **{n: len(rows) + k for k, n in enumerate(self.single)}}
        return apart([*rows, *fixed], {name: number[name] for name in self.order})

    def _varying(self, columns: Given, values: list[Any], samples: int) -> Array:
        """Sums, shape (results,) in float64, or values, shape (results, samples)."""
        names, size = self.given.columns, self.dtype.itemsize
        given: Sequence[Array] = [columns.get(name) for name in names]
        there = together(given, self.dtype) and len(given[0]) == samples
        if not there:
            given = as_columns(columns, names, self.dtype, samples)
        kept = sum(len(buffer) * buffer.dtype.itemsize for buffer in self.buffers.values())
        limit = memory(self.settings, kept)
        # What a sample takes: its columns, if they are not there yet, and its results.
        each = size * ((0 if there else len(names)) + (0 if self.sums else self.count))
        most = max(1, min(samples, limit // max(1, each)))
        found = np.zeros(self.count) if self.sums else np.empty((self.count, samples), self.dtype)
        with quiet(), np.errstate(all="ignore"):
            uniforms = toolkit().to_device(self.given.uniforms(values, self.dtype))
            for piece in pieces(given, samples, most, self.dtype):
                result = self._launch(piece, uniforms, limit)
                if self.sums:
                    found += result
                else:
                    found[:, piece.start : piece.stop] = result.reshape(self.count, -1)
        return found

    def _launch(self, piece: Piece, uniforms: Any, limit: int) -> Array:
        """The sums of a piece, shape (results,), or its values, shape (results * samples,)."""
        samples, threads, given = piece.stop - piece.start, self.settings.threads, self.given
        rows = 0 if given.straight else given.program.rows * threads
        partial = given.own_sums * threads + given.program.sums - given.own_sums
        fitting = limit // (8 * partial + self.dtype.itemsize * rows + 1)
        blocks = max(1, min(-(-samples // threads), blocks_at_work(self.settings), fitting))
        if self.sums:
            out = self._buffer("partial", blocks * partial, np.float64)
        else:
            out = self._buffer("values", self.count * samples, self.dtype)
        arguments = [piece.data, toolkit().to_device(np.array(piece.offsets)), uniforms]
        arguments += [samples, out]
        if not given.straight:
            arguments += [*self.code, self._buffer("rows", blocks * rows, self.dtype)]
        self.kernel[blocks, threads](*arguments)
        if self.sums:
            total = self._buffer("sums", self.count, np.float64)
            self.reduce[self.count, threads](out, given.own_sums, blocks, threads, total)
            out = total
        result: Array = out.copy_to_host()
        return result

    def _buffer(self, use: str, size: int, dtype: Any) -> Any:
        """Device memory that is kept from call to call."""
        if use not in self.buffers or len(self.buffers[use]) != size:
            self.buffers.pop(use, None)
            self.buffers[use] = toolkit().device_array(size, dtype)
        return self.buffers[use]
