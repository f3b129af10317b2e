"""A tape on the GPU: samples cut into pieces that fit, results put together in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Any, Protocol

import numpy as np

from cgprimer.core.engines import Array, Reduction
from cgprimer.core.tape.optimization import optimize
from cgprimer.core.tape.tape import Tape
from cgprimer.errors import EngineError
from cgprimer.native.arguments import apart, as_columns, times_samples
from cgprimer.native.cuda import interpreted, straight
from cgprimer.native.cuda.columns import Piece, resident_piece, upload
from cgprimer.native.cuda.device import (
    MEMORY_VARIABLE,
    Settings,
    is_out_of_memory,
    memory,
    quiet,
    simulated,
)
from cgprimer.native.plans.plan import uniform_steps, varying
from cgprimer.native.uniform import UniformValues

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
    """A tape compiled for CUDA; see :class:`cgprimer.core.methods.contract.Execute`.

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
        varies = varying(tape)
        outputs = {n: i for n, i in tape.outputs.items() if varies[i]}
        self.single = {n: i for n, i in tape.outputs.items() if n not in outputs}
        self.order = tuple(tape.outputs)
        self.alone = Lock()  # buffers on the device are kept from call to call
        small = straight.make(tape, reduction, dtype, settings) if outputs else None
        if small is not None or not outputs:
            self.uniform = UniformValues(tape, uniform_steps(tape), tape.size, dtype)
        if small is not None:
            self.work = small
            self.place = {n: small.results.index(i) for n, i in outputs.items()}
        elif outputs:
            large = interpreted.Interpreted(tape, reduction, dtype, settings)
            self.work, self.uniform, self.single = large, large.uniform, large.single
            self.place = large.place

    def __call__(
        self, columns: Mapping[str, Array], scalars: Mapping[str, Any], samples: int
    ) -> dict[str, Array]:
        """Run the tape; columns may be host arrays or those that ``resident`` gave."""
        with self.alone:
            values = self.uniform(scalars)
            try:
                found = self._varying(columns, values, samples) if self.work is not None else None
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                raise EngineError(
                    "the memory of the GPU is used up",
                    hint=f"{MEMORY_VARIABLE} limits the bytes that a call may take",
                ) from error
        rows = [] if found is None else list(found)
        fixed: list[Array]
        if self.reduction == "sum":
            fixed = [np.float64(times_samples(values[v], samples)) for v in self.single.values()]
        else:
            fixed = [np.full(samples, values[v], self.dtype) for v in self.single.values()]
        number = self.place | {name: len(rows) + k for k, name in enumerate(self.single)}
        return apart([*rows, *fixed], {name: number[name] for name in self.order})

    def _varying(self, columns: Mapping[str, Array], values: list[Any], samples: int) -> Array:
        """Sums, shape (results,) in float64, or values, shape (results, samples)."""
        work = self.work
        assert work is not None
        sums = self.reduction == "sum"
        found = (
            np.zeros(len(work.results))
            if sums
            else np.empty((len(work.results), samples), self.dtype)
        )
        waiting: list[tuple[Piece, Callable[[], Array]]] = []

        def collect() -> None:
            for piece, result in waiting:
                if sums:
                    np.add(found, result(), out=found)
                else:
                    found[:, piece.start : piece.stop] = result()
            waiting.clear()

        with quiet(), np.errstate(all="ignore"):
            # A piece travels to the GPU while it works on the one before, in buffers that it keeps.
            for piece in self._pieces(self._given(columns, samples), samples):
                collect()
                waiting.append((piece, work.launch(piece, values)))
            collect()
        return found

    def _given(self, columns: Mapping[str, Array], samples: int) -> list[Array]:
        """The columns that are read, on the device or as arrays that are fit for it."""
        names = self.work.columns if self.work is not None else ()
        there: list[Array] = [columns.get(name) for name in names]
        if resident_piece(there, self.dtype) is not None and all(
            len(column) == samples for column in there
        ):
            return there
        return as_columns(columns, names, self.dtype, samples)

    def _pieces(self, columns: Sequence[Array], samples: int) -> Iterator[Piece]:
        """The samples in pieces that fit into memory."""
        assert self.work is not None
        each, resident = self.work.bytes_per_sample(), resident_piece(columns, self.dtype)
        if resident is not None:
            each -= len(columns) * self.dtype.itemsize
        block = max(1, samples)
        if each * samples > _SMALL or self.settings.memory is not None or simulated():
            block = max(1, min(block, memory(self.settings) // max(1, each)))
        if resident is not None:
            yield from cut(resident, block)
            return
        for start in range(0, samples, block):
            yield upload(columns, start, min(samples, start + block), self.dtype)


def cut(piece: Piece, block: int) -> Iterator[Piece]:
    """A piece as several pieces of at most ``block`` samples.

    >>> [(p.start, p.stop, p.offsets) for p in cut(Piece(0, 5, None, (0, 5)), 2)]
    [(0, 2, (0, 5)), (2, 4, (2, 7)), (4, 5, (4, 9))]
    """
    for start in range(piece.start, piece.stop, block):
        stop = min(piece.stop, start + block)
        moved = start - piece.start
        yield Piece(start, stop, piece.data, tuple(o + moved for o in piece.offsets))
