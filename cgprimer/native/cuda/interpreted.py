"""Large tapes: a program that the interpreter's kernel reads; it takes no longer to compile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from cgprimer.core.engines import Array, Reduction
from cgprimer.core.tape.tape import Tape
from cgprimer.errors import EngineError
from cgprimer.native.cuda.columns import Piece
from cgprimer.native.cuda.device import (
    PLAIN_SHARED,
    Settings,
    allow_shared_memory,
    kernel,
    memory,
    multiprocessors,
    on,
    resident_blocks,
    shared_memory,
    toolkit,
)
from cgprimer.native.cuda.interpreter_source import Layout, kernel_text, reduce_text
from cgprimer.native.cuda.program import Gather, Program, encoded, outputs
from cgprimer.native.cuda.source import TREE
from cgprimer.native.cuda.straight import definitions
from cgprimer.native.cuda.uniform import Uniform
from cgprimer.native.plans.making import plan

_LANES = 64
_EACH = (4, 2, 1)
_KEPT_OFFSETS = 1000
_COMFORTABLE = 3  # blocks that a multiprocessor should hold, so that one works while another waits


def interpreter_functions(names: Sequence[str], layout: Layout, dtype: str) -> tuple[Any, str]:
    """The kernel as a plain function, and its text."""
    text = kernel_text(names, layout)
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
        found = plan(tape, sums=reduction == "sum")
        self.plan = found
        self.reduction = reduction
        self.dtype = np.dtype(dtype)
        self.settings = settings
        self.program: Program = encoded(found, sums=reduction == "sum")
        self.columns = self.program.columns
        self.uniform = Uniform(found.tape, found.uniform, found.size, dtype)
        self.place = dict(outputs(found, self.program))
        self.single = {n: v for n, v in found.outputs.items() if n not in self.place}
        if reduction == "sum":
            self.results = (*self.program.sums, *self.program.shared_sums)
        else:
            self.results = self.program.stored
        self.gather = Gather(self.program, self.dtype.type)
        self._kernels: dict[Layout, Any] = {}
        self._limits: dict[int, int] = {}
        self._asked: set[tuple[int, Layout]] = set()
        self._buffers: dict[tuple[int, str, int], Any] = {}
        self._offsets: dict[tuple[int, tuple[int, ...]], Any] = {}
        self._reduce: Any = None
        self._kept: dict[int, _OnDevice] = {}
        # Compiled at the first call, which knows how many samples there are; but a primitive that
        # has no form on the GPU is refused here.
        kernel_text(self.program.names, self._layout(1, PLAIN_SHARED))

    def bytes_per_sample(self) -> int:
        """Memory on the device that a sample takes, its columns included."""
        kept = 0 if self.reduction == "sum" else len(self.results)
        return max(1, (len(self.columns) + kept) * self.dtype.itemsize)

    def launch(self, piece: Piece, values: Sequence[Any]) -> Callable[[], Array]:
        """Start on a piece; the result waits for it.

        Returns:
            A function that gives the sums, shape (results,), or the values, (results, samples).
        """
        sums, count, device = self.reduction == "sum", len(self.results), piece.device
        with on(device):
            layout, run = self._compiled(piece.samples, device)
            blocks = self._blocks(layout, run, piece.samples)
            kept = self._on_device(device)
            kept.uniforms.copy_to_device(self.gather(values))
            shared = layout.numbers * self.dtype.itemsize if layout.shared else 0
            apart = 1 if layout.shared else blocks * layout.numbers
            scratch = self._buffer(device, "rows", apart)
            partial = self._buffer(device, "sums", blocks * _partials(layout))
            if sums:
                out = self._buffer(device, "out", count)
            else:
                out = toolkit().device_array(max(1, count * piece.samples), self.dtype)
            run[blocks, layout.lanes, 0, shared](
                kept.code, len(self.program.code) - 1, kept.table, kept.uniforms, piece.data,
                self._places(piece), piece.samples, scratch, partial, out,
            )  # fmt: skip
            if sums and count:
                threads = self.settings.threads
                reduce = self._second_stage(threads)
                reduce[count, threads](partial, layout.sums, blocks, layout.lanes, out)

        def collect() -> Array:
            with on(device):
                found = out.copy_to_host()
            return found[:count] if sums else found.reshape(count, piece.samples)

        return collect

    def _buffer(self, device: int, use: str, size: int) -> Any:
        """Device memory that is kept from call to call: asking for it costs more than a launch."""
        key = (device, use, max(1, size))
        if key not in self._buffers:
            for old in [k for k in self._buffers if k[:2] == key[:2]]:
                del self._buffers[old]
            dtype = self.dtype if use == "rows" else np.float64
            self._buffers[key] = toolkit().device_array(max(1, size), dtype)
        return self._buffers[key]

    def _places(self, piece: Piece) -> Any:
        """On the device: where the columns begin."""
        key = (piece.device, piece.offsets)
        if key not in self._offsets:
            if len(self._offsets) > _KEPT_OFFSETS:
                self._offsets.clear()
            self._offsets[key] = toolkit().to_device(np.array(piece.offsets or (0,), np.int64))
        return self._offsets[key]

    def _layout(self, samples: int, limit: int) -> Layout:
        """Several samples a thread where there are enough of them, and rows in shared memory.

        Shared memory answers ten times faster; but with so many rows that only a block or two fit
        onto a multiprocessor, it stays idle while these wait. Then it is for few samples only,
        and with many samples the rows are in device memory, with many blocks at work.

        Args:
            samples: how many there are.
            limit: the most shared memory that a block may have, in bytes.
        """
        program, lanes = self.program, self.settings.lanes or _LANES
        layout = Layout(
            lanes=lanes,
            each=1,
            shared=False,
            rows=program.rows,
            columns=len(program.columns),
            sums=len(program.sums),
            shared_sums=len(program.shared_sums),
            uniforms=program.operands,
        )
        enough, itemsize = 2 * multiprocessors() * lanes, self.dtype.itemsize
        for each in _EACH:
            tried = replace(layout, each=each, shared=True)
            if (each == 1 or samples >= each * enough) and (
                tried.numbers * itemsize * _COMFORTABLE <= limit
            ):
                return tried
        for tried in (replace(layout, shared=True), replace(layout, shared=True, lanes=lanes // 2)):
            size = tried.numbers * itemsize
            if tried.lanes and samples <= multiprocessors() * tried.samples * (limit // size):
                return tried
        return layout

    def _compiled(self, samples: int, device: int) -> tuple[Layout, Any]:
        """The kernel for so many samples, ready on a device."""
        layout = self._layout(samples, self._limits.setdefault(device, shared_memory()))
        try:
            return layout, self._kernel(layout, device)
        except EngineError:  # the driver refuses so much shared memory: what every kernel may have
            self._limits[device] = PLAIN_SHARED
            layout = self._layout(samples, PLAIN_SHARED)
            return layout, self._kernel(layout, device)

    def _kernel(self, layout: Layout, device: int) -> Any:
        if layout not in self._kernels:
            function, _ = interpreter_functions(self.program.names, layout, self.dtype.name)
            signature = interpreter_signature(self.dtype.name, sums=self.reduction == "sum")
            self._kernels[layout] = kernel(function, signature)
        if layout.shared and (device, layout) not in self._asked:
            allow_shared_memory(self._kernels[layout], layout.numbers * self.dtype.itemsize)
            self._asked.add((device, layout))
        return self._kernels[layout]

    def _second_stage(self, threads: int) -> Any:
        if self._reduce is None:
            self._reduce = kernel(reduce_function(threads), reduce_signature())
        return self._reduce

    def _blocks(self, layout: Layout, run: Any, samples: int) -> int:
        """Blocks of a launch: what the samples need, what fits on the GPU and into its memory."""
        width = layout.numbers * self.dtype.itemsize
        most = self.settings.block_limit or resident_blocks(
            run, layout.lanes, width if layout.shared else 0
        )
        each = _partials(layout) * 8 + (0 if layout.shared else width)
        wanted = min(-(-samples // layout.samples), most)
        if wanted * each > 2**26:
            wanted = min(wanted, memory(self.settings) // each)
        return max(1, wanted)

    def _on_device(self, device: int) -> _OnDevice:
        if device not in self._kept:
            cuda, program = toolkit(), self.program
            self._kept[device] = _OnDevice(
                cuda.to_device(program.code.reshape(-1)),
                cuda.to_device(program.table),
                cuda.device_array(max(1, len(program.uniforms)), self.dtype),
            )
        return self._kept[device]


def _partials(layout: Layout) -> int:
    """Sums that a block keeps."""
    return layout.sums * layout.lanes + layout.shared_sums
