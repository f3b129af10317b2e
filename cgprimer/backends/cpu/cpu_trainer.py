"""Training on the CPU: a compiled function processes thousands of batches per call."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from cgprimer.backends.cpu.cpu_executable import CpuExecutable, get_addresses
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
    """Compiled training epochs; see :class:`cgprimer.backends.interfaces.Trainer`.

    Args:
        program: the compiled tape of the loss and its derivatives.
        outputs: names of the loss and of the derivatives, as in :meth:`CpuEngine.trainer`.
        wrt: names of the parameters, in the order of their values.
        rule: the update rule of the optimizer.
        batch: number of samples per training step.
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
        self.output_slots, self.factors = program.output_slots[indices], program.factors[indices]
        rule_hash = fingerprint_tape(rule.tape)
        key = f"{rule_hash} {rule.columns} {rule.scalars} {rule.outputs} {rule.summed}"
        if (
            batch == 1
            and isinstance(program, StraightLineExecutable)
            and supports_single_sample(program, rule, len(wrt))
        ):
            factors = self.factors.tolist()
            key += f" {fingerprint_tape(program.tape)} {outputs} {wrt} {factors}"
            create_emitter: Callable[[], TapeFunctionEmitter] = partial(
                SingleSampleEpochEmitter, program.tape, outputs, factors, rule, wrt
            )
        else:
            key += f" {program.dtype}"
            create_emitter = partial(EpochEmitter, rule, str(program.dtype))
        self.library = CompiledLibrary("epoch", key, lambda: str(create_emitter().module))
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
        state_parts = [part for part in state_arrays if part.ndim]
        state_scalars = np.array([float(part) for part in state_arrays if not part.ndim])
        losses = np.zeros(len(rates))
        lanes = np.zeros((program.result_count + len(program.uniform_slots), program.lanes))
        table = program.build_uniform_table(np.zeros(len(self.order)))
        column_addresses = get_addresses(column_arrays)
        calls, buffers = program.prepare_calls(column_addresses, lanes, table, 0, 0)
        arrays = {
            "values": values,
            "order": self.order,
            "table": table,
            "calls": np.array(calls),
            "lanes": lanes,
            "uniform_slots": program.uniform_slots,
            "output_slots": self.output_slots,
            "factors": self.factors,
            "slots": self.slots,
            "slope": np.zeros(self.parameters),
            "state": get_addresses(state_parts),
            "shared": state_scalars,
            "rates": np.ascontiguousarray(rates, float),
            "losses": losses,
        }
        integers = {"before": len(calls) - 1, "batch": batch, "samples": len(order)}
        context = self._build_context(arrays, integers)
        failed = self.run(context.ctypes.data, 0, len(rates))
        program.raise_failure()
        del buffers  # in use until here
        numbers = iter(state_scalars.tolist())
        after = tuple(part if part.ndim else np.array(next(numbers)) for part in state_arrays)
        completed = len(rates) if failed < 0 else failed + 1
        return UpdateResult(values, after, losses[:completed], failed)

    def _build_context(self, arrays: dict[str, Array], integers: dict[str, int]) -> Array:
        """Build the array of addresses and integers that the compiled function ``epoch`` reads."""
        program = self.program
        fields = {
            **{name: array.ctypes.data for name, array in arrays.items()},
            **integers,
            "run": program.function,
            "scalars": len(self.order),
            "result_count": program.result_count,
            "uniform_count": len(program.uniform_slots),
            "width": program.lanes,
            "parameters": self.parameters,
            "derivatives": len(self.slots),
        }
        return np.array([fields[name] for name in EPOCH_FIELDS], np.int64)
