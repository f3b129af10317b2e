"""A tape on the GPUs: samples cut into pieces that fit, results put together in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from threading import Lock
from typing import Any, Protocol

import numpy as np

from cgprimer.core.engines import Array, Reduction
from cgprimer.core.tape.passes import optimize, variance
from cgprimer.core.tape.tape import Tape
from cgprimer.errors import EngineError
from cgprimer.native.arguments import as_columns, times_samples
from cgprimer.native.cuda import interpreted, straight
from cgprimer.native.cuda.columns import Piece, parts, resident_pieces, upload
from cgprimer.native.cuda.device import (
    Settings,
    devices,
    is_out_of_memory,
    memory,
    on,
    quiet,
    simulated,
)
from cgprimer.native.cuda.uniform import Uniform, uniform_steps

_SMALL = 2**26  # bytes; for less than this nobody asks how much memory is free


class Work(Protocol):
    """The part of a tape that varies with the sample, compiled.

    Attributes:
        columns: names of the columns that it reads.
        results: what it computes, one entry per row of what ``launch`` gives.
    """

    columns: tuple[str, ...]
    results: tuple[int, ...]

    def bytes_per_sample(self) -> int:
        """Memory on the device that a sample takes, its columns included."""

    def launch(self, piece: Piece, values: Sequence[Any]) -> Callable[[], Array]:
        """Start on a piece; returns a function that waits for the result."""


class CudaExecutable:
    """A tape compiled for CUDA; see :class:`cgprimer.core.engines.Executable`.

    Args:
        tape: what to run.
        reduction: ``none`` or ``sum``.
        dtype: ``float64`` or ``float32``.
        settings: how work is laid out.

    Raises:
        EngineError: a primitive has no form on the GPU.
    """

    def __init__(self, tape: Tape, *, reduction: Reduction, dtype: str, settings: Settings) -> None:
        if dtype not in ("float64", "float32"):
            raise EngineError(f"the engine 'cuda' computes with float64 or float32, not {dtype}")
        tape = optimize(tape)
        self.reduction = reduction
        self.dtype = np.dtype(dtype)
        self.settings = settings
        self.work: Work | None = None
        self.place: dict[str, int] = {}  # output -> row of the results
        self.single: dict[str, int] = {}  # output -> value that no sample changes
        kinds = variance(tape)
        varying = {n: i for n, i in tape.outputs.items() if kinds[i] == "column"}
        self.single = {n: i for n, i in tape.outputs.items() if n not in varying}
        self.order = tuple(tape.outputs)
        self.alone = Lock()  # buffers on the device are kept from call to call
        small = straight.make(tape, reduction, dtype, settings) if varying else None
        if small is not None or not varying:
            self.uniform = Uniform(tape, uniform_steps(tape), tape.size, dtype)
        if small is not None:
            self.work = small
            self.place = {n: small.results.index(i) for n, i in varying.items()}
        elif varying:
            large = interpreted.Interpreted(tape, reduction, dtype, settings)
            self.work, self.uniform, self.single = large, large.uniform, large.single
            self.place = large.place

    def __call__(
        self, columns: Mapping[str, Array], scalars: Mapping[str, Any], samples: int
    ) -> dict[str, Array]:
        """Run the tape; columns may be host arrays or those that ``resident`` gave."""
        with self.alone:
            values = self.uniform(scalars)
            found = self._varying(columns, values, samples) if self.work is not None else None
        outputs: dict[str, Array] = {}
        given: set[int] = set()
        for name in self.order:
            if name in self.place and found is not None:
                row = self.place[name]  # no two outputs are one array
                outputs[name] = found[row].copy() if row in given else found[row]
                given.add(row)
            elif self.reduction == "sum":
                outputs[name] = np.float64(times_samples(values[self.single[name]], samples))
            else:
                outputs[name] = np.full(samples, values[self.single[name]], self.dtype)
        return outputs

    def _varying(self, columns: Mapping[str, Array], values: list[Any], samples: int) -> Array:
        """Sums, shape (results,) in float64, or values, shape (results, samples)."""
        work = self.work
        assert work is not None
        given = self._given(columns, samples)
        sums = self.reduction == "sum"
        total = np.zeros(len(work.results)) if sums else None
        kept = None if sums else np.empty((len(work.results), samples), self.dtype)
        waiting: deque[tuple[Piece, Callable[[], Array]]] = deque()

        def collect() -> None:
            piece, result = waiting.popleft()
            if total is not None:
                np.add(total, result(), out=total)
            elif kept is not None:
                kept[:, piece.start : piece.stop] = result()

        with quiet(), np.errstate(all="ignore"):
            used = self._devices(samples)
            for piece in self._pieces(given, samples, used):
                left = [piece]
                while left:
                    part = left.pop()
                    # A GPU works on one piece at a time, in buffers that it keeps; others on
                    # theirs meanwhile.
                    while any(busy.device == part.device for busy, _ in waiting):
                        collect()
                    try:
                        waiting.append((part, work.launch(part, values)))
                    except Exception as error:
                        if not is_out_of_memory(error) or part.samples == 1:
                            raise
                        left += reversed(list(cut(part, -(-part.samples // 2))))
            while waiting:
                collect()
        return total if total is not None else kept

    def _given(self, columns: Mapping[str, Array], samples: int) -> list[Array]:
        """The columns that are read, on the device or as arrays that are fit for it."""
        names = self.work.columns if self.work is not None else ()
        there: list[Array] = [columns.get(name) for name in names]
        if resident_pieces(there, self.dtype) is not None and all(
            len(column) == samples for column in there
        ):
            return there
        return as_columns(columns, names, self.dtype, samples)

    def _devices(self, samples: int) -> tuple[int, ...]:
        found = devices(self.settings)
        return found if samples >= self.settings.split else found[:1]

    def _pieces(
        self, columns: Sequence[Array], samples: int, used: Sequence[int]
    ) -> Iterator[Piece]:
        """The samples in pieces that fit into memory, each on its device."""
        assert self.work is not None
        resident = resident_pieces(columns, self.dtype)
        if resident is not None:
            output = self.work.bytes_per_sample() - len(columns) * self.dtype.itemsize
            for whole in resident:
                block = self._block(output, whole.samples, whole.device) if output > 0 else 0
                yield from cut(whole, block or max(1, whole.samples))
            return
        shares = [
            self._uploaded(columns, start, stop, device)
            for device, (start, stop) in zip(used, parts(samples, len(used)), strict=True)
        ]
        for turn in zip_longest(*shares):  # a piece for each GPU, then the next for each
            yield from (piece for piece in turn if piece is not None)

    def _uploaded(
        self, columns: Sequence[Array], begin: int, stop: int, device: int
    ) -> Iterator[Piece]:
        """A device's share of the samples, block by block."""
        assert self.work is not None
        block = self._block(self.work.bytes_per_sample(), stop - begin, device)
        while begin < stop:
            end = min(stop, begin + block)
            try:
                piece = upload(columns, begin, end, self.dtype, device)
            except Exception as error:
                if not is_out_of_memory(error) or block == 1:
                    raise
                block = max(1, block // 2)  # somebody else took the memory: smaller pieces
                continue
            yield piece
            begin = end

    def _block(self, each: int, samples: int, device: int) -> int:
        """The most samples of a piece."""
        if each * samples <= _SMALL and self.settings.memory is None and not simulated():
            return max(1, samples)
        with on(device):
            return max(1, min(max(1, samples), memory(self.settings) // max(1, each)))


def cut(piece: Piece, block: int) -> Iterator[Piece]:
    """A piece as several pieces of at most ``block`` samples.

    >>> [(p.start, p.stop, p.offsets) for p in cut(Piece(0, 0, 5, None, (0, 5)), 2)]
    [(0, 2, (0, 5)), (2, 4, (2, 7)), (4, 5, (4, 9))]
    """
    for start in range(piece.start, piece.stop, block):
        stop = min(piece.stop, start + block)
        moved = start - piece.start
        yield Piece(piece.device, start, stop, piece.data, tuple(o + moved for o in piece.offsets))
