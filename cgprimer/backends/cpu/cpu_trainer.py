"""Training on the CPU: a compiled function processes thousands of batches per call."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from cgprimer.backends.cpu.cpu_executable import CpuExecutable, addresses
from cgprimer.backends.cpu.epoch_ir import EPOCH_FIELDS, EpochEmitter
from cgprimer.backends.cpu.llvm_library import CompiledLibrary
from cgprimer.backends.cpu.single_sample_ir import SingleSampleEpochEmitter, supports_single_sample
from cgprimer.backends.cpu.straight_line import StraightLineExecutable, TapeFunctionEmitter
from cgprimer.backends.interfaces import (
    Array,
    SampleBatches,
    State,
    UpdateResult,
    UpdateRule,
)
from cgprimer.backends.program_cache import fingerprint_tape

Names = Sequence[str]
_EPOCH = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class CpuTrainer:
    """Compiled epochs; see :class:`cgprimer.backends.interfaces.Trainer`.

    ``outputs`` of the program are the loss and its derivatives, as :meth:`CpuEngine.trainer` says.
    """

    def __init__(
        self, program: CpuExecutable, outputs: Names, wrt: Names, rule: UpdateRule, batch: int
    ) -> None:
        self.program, self.parameters = program, len(wrt)
        index = {name: k for k, name in enumerate(wrt)}
        self.order = np.array([index[name] for name in program.scalars], np.int64)
        index = {name: k for k, name in enumerate(program.outputs)}
        indices = [index[name] for name in outputs if name]
        self.slots = np.array([k for k, name in enumerate(outputs[1:]) if name], np.int64)
        self.reads, self.factors = program.reads[indices], program.factors[indices]
        rule_hash = fingerprint_tape(rule.tape)
        key = f"{rule_hash} {rule.columns} {rule.scalars} {rule.outputs} {rule.summed}"
        if (
            batch == 1
            and isinstance(program, StraightLineExecutable)
            and supports_single_sample(program, rule, len(wrt))
        ):
            factors = self.factors.tolist()
            key += f" {fingerprint_tape(program.tape)} {outputs} {wrt} {factors}"
            writer: Callable[[], TapeFunctionEmitter] = partial(
                SingleSampleEpochEmitter, program.tape, outputs, factors, rule, wrt
            )
        else:
            key += f" {program.dtype}"
            writer = partial(EpochEmitter, rule, str(program.dtype))
        self.library = CompiledLibrary("epoch", key, lambda: str(writer().module))
        self.run = _EPOCH(self.library.get_address("epoch"))

    def run_updates(
        self, batches: SampleBatches, values: Array, state: State, rates: Array
    ) -> UpdateResult:
        """Update the parameters once per mini-batch, in one call to compiled code."""
        columns, order, batch = batches
        program = self.program
        column_arrays = [
            np.ascontiguousarray(columns[name][order], program.dtype) for name in program.columns
        ]
        values = np.array(values, float)
        state_arrays = [np.array(part, float) for part in state]
        parts = [part for part in state_arrays if part.ndim]
        state_scalars = np.array([float(part) for part in state_arrays if not part.ndim])
        losses = np.zeros(len(rates))
        lanes = np.zeros((program.count + len(program.fixed), program.lanes))
        table, column_addresses = program.table(np.zeros(len(self.order))), addresses(column_arrays)
        calls, alive = program.prepare_calls(column_addresses, lanes, table, 0, 0)
        arrays = {
            "values": values, "order": self.order, "table": table, "calls": np.array(calls),
            "slots": self.slots,
            "lanes": lanes, "fixed": program.fixed, "reads": self.reads, "factors": self.factors,
            "slope": np.zeros(self.parameters), "state": addresses(parts), "shared": state_scalars,
            "rates": np.ascontiguousarray(rates, float), "losses": losses,
        }  # fmt: skip
        fields = {
            "run": program.function, "scalars": len(self.order), "before": len(calls) - 1,
            "count": program.count, "fixed_count": len(program.fixed), "width": program.lanes,
            "parameters": self.parameters, "derivatives": len(self.slots), "batch": batch,
            "samples": len(order),
        }  # fmt: skip
        fields |= {name: array.ctypes.data for name, array in arrays.items()}
        context = np.array([fields[name] for name in EPOCH_FIELDS], np.int64)
        failed = self.run(context.ctypes.data, 0, len(rates))
        program.check()
        del alive
        numbers = iter(state_scalars.tolist())
        after = tuple(part if part.ndim else np.array(next(numbers)) for part in state_arrays)
        completed = len(rates) if failed < 0 else failed + 1
        return UpdateResult(values, after, losses[:completed], failed)
