"""Training on the processor: batches are gone through in compiled code, thousands at a time."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from cgprimer.core.engines import Array
from cgprimer.core.methods.contract import Given
from cgprimer.native.contract import State, UpdateRule
from cgprimer.native.cpu.epoch_text import EPOCH, Epoch
from cgprimer.native.cpu.executable import Executable, addresses
from cgprimer.native.cpu.library import Library
from cgprimer.native.cpu.single_text import Single, fits
from cgprimer.native.cpu.straight_line import Fused, TapeWriter
from cgprimer.native.programs import fingerprint

Names = Sequence[str]
_EPOCH = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class CpuTrainer:
    """Epochs in compiled code; see :class:`cgprimer.native.contract.Trainer`.

    ``outputs`` of the program are the loss and its derivatives, as :meth:`CpuEngine.trainer` says.
    """

    def __init__(
        self, program: Executable, outputs: Names, wrt: Names, rule: UpdateRule, batch: int
    ) -> None:
        self.program, self.parameters = program, len(wrt)
        place = {name: k for k, name in enumerate(wrt)}
        self.order = np.array([place[name] for name in program.scalars], np.int64)
        place = {name: k for k, name in enumerate(program.outputs)}
        chosen = [place[name] for name in outputs if name]
        self.slots = np.array([k for k, name in enumerate(outputs[1:]) if name], np.int64)
        self.reads, self.factors = program.reads[chosen], program.factors[chosen]
        key = f"{fingerprint(rule.tape)} {rule.columns} {rule.scalars} {rule.after} {rule.summed}"
        if batch == 1 and isinstance(program, Fused) and fits(program, rule, len(wrt)):
            factors = self.factors.tolist()
            key += f" {fingerprint(program.tape)} {outputs} {wrt} {factors}"
            writer: Callable[[], TapeWriter] = partial(
                Single, program.tape, outputs, factors, rule, wrt
            )
        else:
            key += f" {program.dtype}"
            writer = partial(Epoch, rule, str(program.dtype))
        self.library = Library("epoch", key, lambda: str(writer().module))
        self.run = _EPOCH(self.library.address("epoch"))

    def epoch(
        self, columns: Given, order: Array, batch: int, values: Array, state: State, rates: Array
    ) -> tuple[Array, State, Array, int]:
        """Steps over the samples in a given order."""
        program = self.program
        given = [
            np.ascontiguousarray(columns[name][order], program.dtype) for name in program.columns
        ]
        values = np.array(values, float)
        moved = [np.array(part, float) for part in state]
        parts = [part for part in moved if part.ndim]
        shared = np.array([float(part) for part in moved if not part.ndim])
        losses = np.zeros(len(rates))
        lanes = np.zeros((program.count + len(program.fixed), program.lanes))
        table, places = program.table(np.zeros(len(self.order))), addresses(given)
        calls, kept = program.calls(places, lanes, table, 0, 0)
        arrays = {
            "values": values, "order": self.order, "table": table, "calls": np.array(calls),
            "slots": self.slots,
            "lanes": lanes, "fixed": program.fixed, "reads": self.reads, "factors": self.factors,
            "slope": np.zeros(self.parameters), "state": addresses(parts), "shared": shared,
            "rates": np.ascontiguousarray(rates, float), "losses": losses,
        }  # fmt: skip
        fields = {
            "run": program.function, "scalars": len(self.order), "before": len(calls) - 1,
            "count": program.count, "fixed_count": len(program.fixed), "width": program.lanes,
            "parameters": self.parameters, "derivatives": len(self.slots), "batch": batch,
            "samples": len(order),
        }  # fmt: skip
        fields |= {name: array.ctypes.data for name, array in arrays.items()}
        context = np.array([fields[name] for name in EPOCH], np.int64)
        failed = self.run(context.ctypes.data, 0, len(rates))
        program.check()
        del kept
        numbers = iter(shared.tolist())
        after = tuple(part if part.ndim else np.array(next(numbers)) for part in moved)
        done = len(rates) if failed < 0 else failed + 1
        return values, after, losses[:done], failed
