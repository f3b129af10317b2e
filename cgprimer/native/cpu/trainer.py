"""Training on the processor: batches are gone through in compiled code, thousands at a time."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence

import numpy as np

from cgprimer.core.engines import Array
from cgprimer.native.contract import UpdateRule
from cgprimer.native.cpu.epoch_text import EPOCH, epoch_text
from cgprimer.native.cpu.fused import addresses
from cgprimer.native.cpu.gradients import Gradient
from cgprimer.native.cpu.library import Library
from cgprimer.native.programs import fingerprint

_EPOCH = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class CpuTrainer:
    """Epochs in compiled code; see :class:`cgprimer.core.engines.Trainer`."""

    def __init__(
        self,
        gradient: Gradient,
        *,
        loss: str,
        gradients: Sequence[str],
        rule: UpdateRule,
    ) -> None:
        self.gradient = gradient
        places = [gradient.place_of[name] for name in (loss, *gradients)]
        self.reads = np.array(places, np.int64)
        self.parameters = len(gradients)
        self.library = Library(
            "epoch",
            f"{fingerprint(rule.tape)} {rule.columns} {rule.scalars} {rule.after}",
            lambda: epoch_text(rule.tape, list(rule.columns), list(rule.scalars), list(rule.after)),
        )
        self.run = _EPOCH(self.library.address("epoch"))

    def epoch(
        self,
        columns: Mapping[str, Array],
        order: Array,
        batch: int,
        values: Array,
        state: tuple[Array, ...],
        rates: Array,
    ) -> tuple[Array, tuple[Array, ...], Array, int]:
        """Steps over the samples in a given order."""
        samples = len(order)
        given = {
            name: np.ascontiguousarray(column[order], self.gradient.dtype)
            for name, column in columns.items()
        }
        values = np.array(values, float)
        moved = [np.array(part, float) for part in state]
        arrays = [part for part in moved if part.ndim]
        shared = np.array([float(part) for part in moved if not part.ndim] or [0.0])
        losses = np.zeros(len(rates))
        rates = np.ascontiguousarray(rates, float)
        slope = np.zeros(self.parameters)
        inner, kept = self.gradient.context(given, values)
        table = addresses(arrays)
        fields = {
            "gradient": self.gradient.function,
            "parameters": self.parameters,
            "batch": batch,
            "samples": samples,
        }
        places = {
            "gradient_context": inner, "sums": self.gradient.sums, "reads": self.reads,
            "values": values, "slope": slope, "state": table, "shared": shared, "rates": rates,
            "losses": losses,
        }  # fmt: skip
        fields.update({name: array.ctypes.data for name, array in places.items()})
        context = np.array([fields[name] for name in EPOCH], np.int64)
        failed = self.run(context.ctypes.data, 0, len(rates))
        self.gradient.check()
        del kept
        numbers = iter(shared.tolist())
        after = tuple(part if part.ndim else np.array(next(numbers)) for part in moved)
        done = len(rates) if failed < 0 else failed + 1
        return values, after, losses[:done], failed
