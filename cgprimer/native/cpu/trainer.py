"""Training on the processor: batches are gone through in compiled code, thousands at a time."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cgprimer.core.engines import Array
from cgprimer.core.garbage_collection import collector_paused
from cgprimer.core.tape.tape import Tape
from cgprimer.native.contract import UpdateRule
from cgprimer.native.cpu.fused import addresses, places_of
from cgprimer.native.cpu.interpreted_training import InterpretedGradient
from cgprimer.native.cpu.library import Library, processor
from cgprimer.native.cpu.straight_line import order_of
from cgprimer.native.cpu.training_text import EPOCH, GRADIENT, epoch_text, gradient_text
from cgprimer.native.fingerprint import identity

_EPOCH = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class StraightGradient:
    """Sums of loss and gradient over a range of samples, as straight-line code in one thread.

    Args:
        tape: an optimized tape of sums whose scalars are all parameters.
        parameters: names of the parameters, in the order of their values.
        dtype: of the computation.
        batch: samples at a time; for one there are no vectors.

    Attributes:
        function, context: addresses for ``epoch``.
        sums: what the function writes; place_of: where each output's sum stands in it.
    """

    def __init__(self, tape: Tape, parameters: Sequence[str], dtype: str, batch: int) -> None:
        lanes = processor().lanes(dtype)
        lanes = lanes if batch >= lanes else 1
        with collector_paused():
            self.library = Library(
                "gradient",
                f"{identity(tape)} {dtype} {lanes}",
                lambda: gradient_text(tape, dtype=dtype, lanes=lanes),
            )
        self.function = self.library.address("gradient")
        order = order_of(tape)
        count = len(order.varying)
        places = {value: k for k, value in enumerate((*order.varying, *order.fixed))}
        self.place_of = {name: places[value] for name, value in tape.outputs.items()}
        self.columns = tape.of_kind("column")
        self.dtype = np.dtype(dtype)
        scalars = tape.of_kind("scalar")
        self.sums = np.zeros(max(1, len(places)))
        totals, single = np.zeros((count, lanes)), np.zeros(count)
        fixed = np.zeros(max(1, len(order.fixed)), dtype)
        self.arrays: dict[str, Array] = {
            "order": places_of(scalars, parameters),
            "sums": self.sums,
            "scalars": np.zeros(max(1, len(scalars)), dtype),
            "results": addresses([*totals, fixed]),
            "totals": totals,
            "single_results": addresses([single[k : k + 1] for k in range(count)] + [fixed]),
            "single_totals": single,
            "fixed": fixed,
        }

    def context(self, columns: Mapping[str, Array], values: Array) -> tuple[Array, Any]:
        """The context for columns and parameters, and what must live as long as it does."""
        given = [columns[name] for name in self.columns]
        arrays = {**self.arrays, "values": values, "columns": addresses(given)}
        return addresses([arrays[name] for name in GRADIENT]), (given, arrays)

    def check(self) -> None:
        """Straight-line code calls nothing that could fail."""


class CpuTrainer:
    """Epochs in compiled code; see :class:`cgprimer.core.engines.Trainer`."""

    def __init__(
        self,
        gradient: StraightGradient | InterpretedGradient,
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
            f"{identity(rule.tape)} {rule.columns} {rule.scalars} {rule.after}",
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
