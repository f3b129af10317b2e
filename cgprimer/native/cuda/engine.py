"""The door to the engine ``cuda``: whether it can be used, and how tapes are compiled for it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cgprimer.core.engines import Array, Reduction
from cgprimer.core.methods.contract import Execute
from cgprimer.core.tape.tape import Tape
from cgprimer.garbage_collection import collector_paused
from cgprimer.native.cuda import device
from cgprimer.native.cuda.device import SIMULATED, Settings


class CudaEngine:
    """Tapes as kernels on an NVIDIA GPU.

    Args:
        settings: how work is laid out; chosen for the machine unless given.
    """

    name = "cuda"

    def __init__(self, settings: Settings | None = None) -> None:
        self._settings = settings

    @property
    def settings(self) -> Settings:
        """How work is laid out."""
        if self._settings is not None:
            return self._settings
        return SIMULATED if device.simulated() else Settings()

    def unavailable(self) -> str:
        """Why the engine cannot be used here; empty if it can."""
        return device.unavailable()

    def describe(self) -> str:
        """Names and memory of the GPUs."""
        return device.describe()

    def compile(
        self, tape: Tape, *, reduction: Reduction = "none", dtype: str = "float64"
    ) -> Execute:
        """Prepare a tape for being run many times.

        Raises:
            EngineError: the tape has a primitive without a form on the GPU.
        """
        from cgprimer.native.cuda.executable import CudaExecutable

        with collector_paused():
            return CudaExecutable(tape, reduction=reduction, dtype=dtype, settings=self.settings)

    def resident(
        self, columns: Mapping[str, Array], *, dtype: str | None = None
    ) -> Mapping[str, Array]:
        """Columns on the GPU, to be given to a compiled tape as often as wanted.

        They are copies: later changes of the host's arrays do not reach them. Columns that would
        take more than half of the memory come back as they are; a compiled tape then takes them
        through the GPU piece by piece, in each call.

        Args:
            columns: name to array of shape (samples,), all equally long.
            dtype: type of the numbers, that of the computation; the columns' own unless given.
        """
        from cgprimer.native.cuda.columns import resident

        lengths = {len(column) for column in columns.values()}
        own = {getattr(column, "dtype", None) for column in columns.values()}
        dtype = dtype or ("float32" if own == {np.dtype("float32")} else "float64")
        if len(lengths) != 1:
            return columns
        samples = lengths.pop()
        needed = len(columns) * samples * np.dtype(dtype).itemsize
        try:
            if needed > device.memory(self.settings) // 2:
                return columns
            return resident(columns, samples, dtype)
        except Exception as error:
            if device.is_out_of_memory(error):
                return columns
            raise


ENGINE = CudaEngine()
