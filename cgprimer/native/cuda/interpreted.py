"""Large tapes: a program that the interpreter's kernel reads; it takes no longer to compile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from cgprimer.core.engines import Array, Reduction
from cgprimer.core.tape.tape import Tape
from cgprimer.native.cuda.columns import Piece
from cgprimer.native.cuda.device import (
    PLAIN_SHARED,
    Settings,
    kernel,
    memory,
    multiprocessors,
    resident_blocks,
    shared_memory,
    toolkit,
)
from cgprimer.native.cuda.interpreter_source import Handlers, Layout, kernel_text, reduce_text
from cgprimer.native.cuda.program import Gather, device_program, outputs
from cgprimer.native.cuda.source import TREE
from cgprimer.native.cuda.straight import definitions
from cgprimer.native.plans.making import plan
from cgprimer.native.uniform import UniformValues

_LANES = 64
_KEPT_OFFSETS = 1000
_COMFORTABLE = 3  # blocks that a multiprocessor should hold, so that one works while another waits


def interpreter_functions(handlers: Handlers, layout: Layout, dtype: str) -> tuple[Any, str]:
    """The kernel as a plain function, and its text."""
    text = kernel_text(handlers, layout)
    return definitions(text, dtype, {})["kernel"], text


def interpreter_signature(dtype: str, *, sums: bool) -> tuple[Any, ...]:
    """Types of the kernel's arguments."""
    from numba import types

    real, wide, whole = getattr(types, dtype)[::1], types.float64[::1], types.int32[::1]
    out = wide if sums else real
    return (whole, types.int64, whole, real, real, types.int64[::1], types.int64, real, wide, out)


def reduce_function(threads: int) -> Any:
    """The kernel of the second stage as a plain function."""
    return definitions("@device" + TREE + reduce_text(threads), "float64", {})["reduce"]


def reduce_signature() -> tuple[Any, ...]:
    """Types of the second stage's arguments."""
    from numba import types

    return (types.float64[::1], types.int64, types.int64, types.int64, types.float64[::1])


class _OnDevice(NamedTuple):
    """What a GPU keeps of a program."""

    code: Any
    table: Any
    uniforms: Any


class Interpreted:
    """A tape compiled for the interpreter.

    Args:
        tape: an optimized tape.
        reduction, dtype: as of an engine's ``compile``.
        settings: how work is laid out.

    Attributes:
        place: for each output that varies with the sample its number among the results.
        single: for each other output its value.
    """

    def __init__(self, tape: Tape, reduction: Reduction, dtype: str, settings: Settings) -> None:
        self.plan = found = plan(tape, sums=reduction == "sum")
        self.reduction = reduction
        self.dtype = np.dtype(dtype)
        self.settings = settings
        self.device_program = device_program(found)
        self.program = self.device_program.program
        self.columns = self.device_program.columns
        self.uniform = UniformValues(found.tape, found.uniform, found.size, dtype)
        self.place = dict(outputs(found, self.program))
        self.single = {n: v for n, v in found.outputs.items() if n not in self.place}
        sums = reduction == "sum"
        self.results = tuple(range(self.program.sums)) if sums else self.program.stored
        self.gather = Gather(self.device_program, self.dtype.type)
        self._kernels: dict[Layout, Any] = {}
        self._buffers: dict[str, Any] = {}
        self._offsets: dict[tuple[int, ...], Any] = {}
        self._reduce: Any = None
        self._kept: _OnDevice | None = None
        # Compiled at the first call, which knows how many samples there are; but a primitive that
        # has no form on the GPU is refused here.
        kernel_text(self.program.handlers, self._all_in_device_memory())

    def bytes_per_sample(self) -> int:
        """Memory on the device that a sample takes, its columns included."""
        kept = 0 if self.reduction == "sum" else len(self.results)
        return max(1, (len(self.columns) + kept) * self.dtype.itemsize)

    def launch(self, piece: Piece, values: Sequence[Any]) -> Callable[[], Array]:
        """Start on a piece; the result waits for it.

        Returns:
            A function that gives the sums, shape (results,), or the values, (results, samples).
        """
        sums, count = self.reduction == "sum", len(self.results)
        layout = self._layout(piece.samples)
        if layout not in self._kernels:
            function, _ = interpreter_functions(self.program.handlers, layout, self.dtype.name)
            self._kernels[layout] = kernel(
                function, interpreter_signature(self.dtype.name, sums=sums)
            )
        run = self._kernels[layout]
        blocks = self._blocks(layout, run, piece.samples)
        if self._kept is None:
            cuda, found = toolkit(), self.device_program
            self._kept = _OnDevice(
                cuda.to_device(found.code.reshape(-1)),
                cuda.to_device(found.table),
                cuda.device_array(max(1, self.gather.size), self.dtype),
            )
        kept = self._kept
        kept.uniforms.copy_to_device(self.gather(values))
        shared = layout.numbers * self.dtype.itemsize if layout.shared else 0
        apart = 1 if layout.shared else blocks * layout.numbers
        scratch = self._buffer("rows", apart)
        partial = self._buffer("sums", blocks * _partials(layout))
        if sums:
            out = self._buffer("out", count)
        else:
            out = toolkit().device_array(max(1, count * piece.samples), self.dtype)
        run[blocks, layout.lanes, 0, shared](
            kept.code, len(self.program.main.code), kept.table, kept.uniforms, piece.data,
            self._places(piece), piece.samples, scratch, partial, out,
        )  # fmt: skip
        if sums and count:
            threads = self.settings.threads
            if self._reduce is None:
                self._reduce = kernel(reduce_function(threads), reduce_signature())
            self._reduce[count, threads](partial, layout.sums, blocks, layout.lanes, out)

        def collect() -> Array:
            found = out.copy_to_host()
            return found[:count] if sums else found.reshape(count, piece.samples)

        return collect

    def _buffer(self, use: str, size: int) -> Any:
        """Device memory that is kept from call to call: asking for it costs more than a launch."""
        kept, size = self._buffers.get(use), max(1, size)
        if kept is None or len(kept) != size:
            self._buffers.pop(use, None)
            dtype = self.dtype if use == "rows" else np.float64
            kept = self._buffers[use] = toolkit().device_array(size, dtype)
        return kept

    def _places(self, piece: Piece) -> Any:
        """On the device: where the columns begin."""
        if piece.offsets not in self._offsets:
            if len(self._offsets) > _KEPT_OFFSETS:
                self._offsets.clear()
            there = toolkit().to_device(np.array(piece.offsets or (0,), np.int64))
            self._offsets[piece.offsets] = there
        return self._offsets[piece.offsets]

    def _all_in_device_memory(self) -> Layout:
        """A sample a thread, rows in device memory: what always fits."""
        program = self.program
        return Layout(
            lanes=self.settings.lanes or _LANES,
            shared=False,
            rows=max(1, program.rows),
            columns=len(program.columns),
            sums=program.own_sums,
            shared_sums=program.sums - program.own_sums,
            uniforms=len(self.device_program.operands),
        )

    def _layout(self, samples: int) -> Layout:
        """Rows in shared memory where they fit well, else in device memory.

        Shared memory answers ten times faster; but with so many rows that only a block or two fit
        onto a multiprocessor, it stays idle while these wait. Then it is for few samples only,
        and with many samples the rows are in device memory, with many blocks at work.
        """
        plain, limit = self._all_in_device_memory(), shared_memory()
        side_by_side = multiprocessors()

        def size(tried: Layout) -> int:
            bytes_ = tried.numbers * self.dtype.itemsize
            return bytes_ if bytes_ <= PLAIN_SHARED else limit + 1

        if size(plain) * _COMFORTABLE <= limit:
            return replace(plain, shared=True)
        for lanes in (plain.lanes, plain.lanes // 2):
            tried = replace(plain, shared=True, lanes=lanes)
            if lanes and samples <= side_by_side * lanes * (limit // size(tried)):
                return tried
        return plain

    def _blocks(self, layout: Layout, run: Any, samples: int) -> int:
        """Blocks of a launch: what the samples need, what fits on the GPU and into its memory."""
        width = layout.numbers * self.dtype.itemsize
        most = self.settings.block_limit or resident_blocks(
            run, layout.lanes, width if layout.shared else 0
        )
        each = _partials(layout) * 8 + (0 if layout.shared else width)
        wanted = min(-(-samples // layout.lanes), most)
        if wanted * each > 2**26:
            wanted = min(wanted, memory(self.settings) // each)
        return max(1, wanted)


def _partials(layout: Layout) -> int:
    """Sums that a block keeps."""
    return layout.sums * layout.lanes + layout.shared_sums
