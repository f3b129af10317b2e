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
    count_scalar_operations,
)
from cgprimer.core.methods.derivative_program import Execute
from cgprimer.core.tape.tape import Tape
from cgprimer.support.garbage_collection import pause_garbage_collection


class CudaEngine:
    """The engine ``cuda``, which compiles tapes to kernels for NVIDIA GPUs.

    Args:
        settings: launch settings of the kernels; chosen for the machine by default.
    """

    name = "cuda"
    aliases = ("gpu",)  #: names that users may try; error messages suggest `name` instead

    def __init__(self, settings: LaunchSettings | None = None) -> None:
        self._settings = settings

    @property
    def settings(self) -> LaunchSettings:
        """Launch settings of the kernels."""
        if self._settings is not None:
            return self._settings
        return SIMULATED if device.is_simulated() else LaunchSettings()

    def unavailable(self) -> str:
        """Return the reason why CUDA cannot be used on this machine; empty if it can."""
        return device.unavailable()

    def minimum_work(self, tape: Tape) -> float:
        """Return the minimum number of operations for which a GPU is worth the data transfer."""
        if tape.has_arrays and count_scalar_operations(tape)[0] > SCALARIZE_UP_TO:
            return math.inf  # too many scalars, and no kernels for matrices
        return 2_000_000_000

    def describe(self) -> str:
        """Describe the GPUs of this machine: the name and memory size of each."""
        return device.describe_devices()

    def compile(
        self, tape: Tape, *, reduction: Reduction = "none", dtype: str = "float64"
    ) -> Execute:
        """Compile a tape to CUDA kernels.

        Raises:
            EngineError: the tape contains a primitive that is not implemented on the GPU.
        """
        from cgprimer.backends.cuda.cuda_executable import CudaExecutable

        with pause_garbage_collection():
            return CudaExecutable(tape, reduction=reduction, dtype=dtype, settings=self.settings)

    def resident(
        self, columns: Mapping[str, Array], *, dtype: str | None = None
    ) -> Mapping[str, Any]:
        """Copy columns to GPU memory once, for any number of calls to a compiled tape.

        Later changes to the host arrays have no effect on the copies. Columns that need more than
        half of the memory are returned unchanged; a compiled tape then copies them in chunks in
        each call.

        Args:
            columns: name -> array of shape (samples,), all of the same length.
            dtype: dtype of the computation; by default, the dtype of the columns.
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
            if needed > device.compute_memory_limit(self.settings) // 2:
                return columns
            return copy_columns_to_device(columns, samples, dtype)
        except Exception as error:
            if device.is_out_of_memory(error):
                return columns
            raise


ENGINE = CudaEngine()
