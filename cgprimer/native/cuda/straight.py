"""Small tapes: a kernel of straight-line code, made for the tape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from cgprimer.core.engines import Array, Reduction
from cgprimer.core.tape.tape import Tape
from cgprimer.native.cuda.columns import Piece
from cgprimer.native.cuda.device import (
    Settings,
    device_function,
    kernel,
    resident_blocks,
    toolkit,
)
from cgprimer.native.cuda.generated import functions
from cgprimer.native.cuda.mathematics import namespace
from cgprimer.native.cuda.source import TREE, Body, body, kernel_text, unrolling

MOST_ARGUMENTS = 32  # columns, and as many uniform values: all are arguments of the kernel
MOST_RESULTS = 32  # each is a register or two of every thread


def fits(found: Body, reduction: Reduction, settings: Settings) -> bool:
    """Whether a body is small enough for a kernel of its own."""
    results = MOST_RESULTS if reduction == "sum" else 4 * MOST_RESULTS
    return (
        len(found.lines) <= settings.straight
        and len(found.columns) <= MOST_ARGUMENTS
        and len(found.uniforms) <= MOST_ARGUMENTS
        and len(found.results) <= results
    )


def definitions(text: str, dtype: str, constants: Mapping[str, float]) -> dict[str, Any]:
    """The functions of a generated text, with what numba and the text need put in."""
    real = np.dtype(dtype).type
    found = namespace(dtype)
    found |= {"cuda": toolkit(), "wide": np.float64, "real": real, "device": device_function}
    found["element"] = getattr(import_module("numba").types, dtype)
    found |= {name: real(value) for name, value in constants.items()}
    return functions(text, found)


def straight_functions(
    found: Body, reduction: Reduction, dtype: str, threads: int
) -> tuple[Any, str]:
    """The kernel as a plain function, and its text."""
    unroll = unrolling(found, np.dtype(dtype).itemsize)
    last = kernel_text(found, reduction=reduction, unroll=unroll, threads=threads)
    text = "\n".join(("@device" + TREE, "@device\n" + found.text(), last))
    return definitions(text, dtype, found.constants)["kernel"], text


def straight_signature(found: Body, reduction: Reduction, dtype: str) -> tuple[Any, ...]:
    """Types of the kernel's arguments."""
    from numba import types

    real = getattr(types, dtype)
    out = types.float64 if reduction == "sum" else real
    integers = (types.int64,) * (1 + len(found.columns))
    return (real[::1], out[::1], *integers, *(real,) * len(found.uniforms))


class Straight:
    """A tape compiled to a kernel of its own.

    Args:
        tape: an optimized tape.
        found: its body.
        reduction, dtype: as of an engine's ``compile``.
        settings: how work is laid out.
    """

    def __init__(
        self, tape: Tape, found: Body, reduction: Reduction, dtype: str, settings: Settings
    ) -> None:
        self.body = found
        self.results = found.results
        self.columns = tuple(name for name, _ in found.columns)
        self.reduction = reduction
        self.dtype = np.dtype(dtype)
        self.settings = settings
        self.unroll = unrolling(found, self.dtype.itemsize)
        function, self.text = straight_functions(found, reduction, dtype, settings.threads)
        self.kernel = kernel(function, straight_signature(found, reduction, dtype))
        self._partials: dict[int, Any] = {}
        self._most = 0  # blocks that fit on the GPU at a time, once that is known

    def bytes_per_sample(self) -> int:
        """Memory on the device that a sample takes, its columns included."""
        kept = 0 if self.reduction == "sum" else len(self.results)
        return (len(self.columns) + kept) * self.dtype.itemsize

    def launch(self, piece: Piece, values: Sequence[Any]) -> Callable[[], Array]:
        """Start the kernel on a piece; the result waits for it.

        Returns:
            A function that gives the sums, shape (results,), or the values, (results, samples).
        """
        blocks, count = self._blocks(piece), len(self.results)
        if self.reduction == "sum":
            if blocks not in self._partials:
                self._partials[blocks] = toolkit().device_array(count * blocks, np.float64)
            out = self._partials[blocks]
        else:
            out = toolkit().device_array(count * piece.samples, self.dtype)
        uniforms = [values[v] for v in self.body.uniforms]
        self.kernel[blocks, self.settings.threads](
            piece.data, out, piece.samples, *piece.offsets, *uniforms
        )

        def collect() -> Array:
            found = out.copy_to_host().reshape(count, -1)
            # One number per block, added in the order of the blocks: the same in every run.
            return found.sum(axis=1) if self.reduction == "sum" else found

        return collect

    def _blocks(self, piece: Piece) -> int:
        """Blocks of a launch: what the samples need, at most what the GPU holds at a time."""
        if not self._most:
            self._most = self.settings.block_limit or resident_blocks(
                self.kernel, self.settings.threads
            )
        wanted = -(-piece.samples // (self.settings.threads * self.unroll))
        return max(1, min(wanted, self._most))


def make(tape: Tape, reduction: Reduction, dtype: str, settings: Settings) -> Straight | None:
    """A kernel for the tape; None if it is too large for that."""
    if len(tape) > 4 * max(0, settings.straight):
        return None
    found = body(tape)
    if not fits(found, reduction, settings):
        return None
    return Straight(tape, found, reduction, dtype, settings)
