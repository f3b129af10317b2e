"""The engine ``cuda``: availability, cost, compilation and columns on the GPU."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from cgprimer.backends.cuda import device
from cgprimer.backends.cuda.device import SIMULATED, LaunchSettings
from cgprimer.backends.interfaces import Array
from cgprimer.core.evaluation.engines import (
    SCALARIZE_UP_TO,
    Reduction,
    scalar_cost,
)
from cgprimer.core.methods.derivative_program import Execute
from cgprimer.core.tape.tape import Tape
from cgprimer.support.garbage_collection import pause_garbage_collection


class CudaEngine:
    """Tapes as kernels on an NVIDIA GPU.

    Args:
        settings: launch settings; by default, those for the machine.
    """

    name = "cuda"
    aliases = ("gpu",)  #: names by which users ask for it in vain; error messages point to `name`

    def __init__(self, settings: LaunchSettings | None = None) -> None:
        self._settings = settings

    @property
    def settings(self) -> LaunchSettings:
        """Launch settings of the kernels."""
        if self._settings is not None:
            return self._settings
        return SIMULATED if device.simulated() else LaunchSettings()

    def unavailable(self) -> str:
        """Return the reason why the engine cannot be used here; empty if it can."""
        return device.unavailable()

    def minimum_work(self, tape: Tape) -> float:
        """Return the work below which a CPU is done before the columns are on the GPU."""
        if tape.has_arrays and scalar_cost(tape)[0] > SCALARIZE_UP_TO:
            return math.inf  # too many scalars, and no kernels for matrices
        return 2_000_000_000

    def describe(self) -> str:
        """Return the names and the memory of the GPUs."""
        return device.describe()

    def compile(
        self, tape: Tape, *, reduction: Reduction = "none", dtype: str = "float64"
    ) -> Execute:
        """Prepare a tape for repeated execution.

        Raises:
            EngineError: the tape contains a primitive that is not implemented on the GPU.
        """
        from cgprimer.backends.cuda.cuda_executable import CudaExecutable

        with pause_garbage_collection():
            return CudaExecutable(tape, reduction=reduction, dtype=dtype, settings=self.settings)

    def resident(
        self, columns: Mapping[str, Array], *, dtype: str | None = None
    ) -> Mapping[str, Any]:
        """Copy columns to the GPU, for any number of calls of a compiled tape.

        Later changes of the host arrays have no effect on the copies. Columns that need more than
        half of
        the memory are returned unchanged; a compiled tape then copies them in chunks in each call.

        Args:
            columns: name -> array of shape (samples,), all of the same length.
            dtype: type of the computation; by default, the type of the columns.
        """
        from cgprimer.backends.cuda.device_columns import copy_columns_to_device

        lengths = {len(column) for column in columns.values()}
        types = {getattr(column, "dtype", None) for column in columns.values()}
        dtype = dtype or ("float32" if types == {np.dtype("float32")} else "float64")
        if len(lengths) != 1:
            return columns
        samples = lengths.pop()
        needed = len(columns) * samples * np.dtype(dtype).itemsize
        try:
            if needed > device.memory_limit(self.settings) // 2:
                return columns
            return copy_columns_to_device(columns, samples, dtype)
        except Exception as error:
            if device.is_out_of_memory(error):
                return columns
            raise


ENGINE = CudaEngine()
