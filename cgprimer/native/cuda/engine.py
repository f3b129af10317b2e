"""The door to the engine ``cuda``: whether it can be used, and how tapes are compiled for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cgprimer.core.engines import Array, Executable, Reduction, UpdateRule
from cgprimer.core.garbage_collection import collector_paused
from cgprimer.core.tape.tape import Tape
from cgprimer.native.cuda import device
from cgprimer.native.cuda.device import SIMULATED, Settings

if TYPE_CHECKING:
    from cgprimer.native.cuda.epochs import CudaTrainer


class CudaEngine:
    """Tapes as kernels on NVIDIA GPUs.

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
        from cgprimer.native.cuda.about import describe

        return describe()

    def compile(
        self, tape: Tape, *, reduction: Reduction = "none", dtype: str = "float64"
    ) -> Executable:
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
        """Columns on the GPUs, to be given to a compiled tape as often as wanted.

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
        used = device.devices(self.settings)
        used = used if samples >= self.settings.split else used[:1]
        needed = len(columns) * samples * np.dtype(dtype).itemsize // len(used)
        try:
            if needed > device.memory(self.settings) // 2:
                return columns
            return resident(columns, samples, used, dtype)
        except Exception as error:
            if device.is_out_of_memory(error):
                return columns
            raise

    def trainer(
        self,
        tape: Tape,
        *,
        loss: str,
        gradients: Sequence[str],
        parameters: Sequence[str],
        rule: UpdateRule,
        dtype: str = "float64",
        batch: int = 1,
    ) -> CudaTrainer:
        """Epochs of training that run on the GPU; see :class:`epochs.CudaTrainer`.

        ``batch`` is that of each epoch, whatever it is: nothing is compiled for it in advance.

        Raises:
            EngineError: the tape has a scalar that is no parameter, or a primitive that has no
                form on the GPU.
        """
        from cgprimer.native.cuda.epochs import CudaTrainer

        return CudaTrainer(
            tape,
            loss=loss,
            gradients=tuple(gradients),
            parameters=tuple(parameters),
            rule=rule,
            dtype=dtype,
            settings=self.settings,
        )


ENGINE = CudaEngine()
