"""Compiled epochs with one sample per step: gradient and update in one loop, in registers.

The general loop (:mod:`.epoch_ir`) calls the compiled tape by its address and keeps sums lane by
lane; for a single sample, this overhead exceeds the work. Here, tape and update rule become one
straight-line function, and parameters and optimizer state are loop-carried values.
"""

from __future__ import annotations

from collections.abc import Sequence

from cgprimer.backends.cpu.epoch_ir import EPOCH_FIELDS, declare_epoch_function
from cgprimer.backends.cpu.primitive_ir import PrimitiveEmitter
from cgprimer.backends.cpu.straight_line import FLAGS, StraightLineExecutable, TapeFunctionEmitter
from cgprimer.backends.cpu.vector_ir import Ir
from cgprimer.backends.interfaces import UpdateRule
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_dependencies import find_varying_values

Names = Sequence[str]
_MAX_OPERATIONS = 3000  # maximum number of operations of a step


def supports_single_sample(
    program: StraightLineExecutable, rule: UpdateRule, parameters: int
) -> bool:
    """Return whether training steps of one sample can be compiled to a single function."""
    length = len(program.tape) + parameters * (len(rule.tape) + len(rule.columns))
    return length <= _MAX_OPERATIONS and program.dtype.itemsize == 8


class SingleSampleEpochEmitter(TapeFunctionEmitter):
    """Emitter of the LLVM function ``epoch`` for training with one sample per step.

    Args:
        tape: tape that computes the loss and its derivatives for a sample.
        outputs: the loss, then the derivative with respect to each parameter, or an empty string.
        factors: constant factors of the outputs whose names are not empty.
        rule: the update rule of the optimizer.
        wrt: names of the parameters.
    """

    def __init__(
        self, tape: Tape, outputs: Names, factors: list[float], rule: UpdateRule, wrt: Names
    ) -> None:
        from llvmlite import ir

        module = ir.Module("single")
        emitter = PrimitiveEmitter(module, "float64", 1, flags=FLAGS)
        super().__init__(declare_epoch_function(module), tape, emitter)
        self.gradient, self.outputs, self.factors = tape, outputs, factors
        self.rule, self.wrt = rule, {name: k for k, name in enumerate(wrt)}
        context, first, last = self.function.args
        self.field = {
            name: self.load_element(context, EPOCH_FIELDS.index(name), self.pointer)
            for name in ("values", "calls", "state", "shared", "rates", "losses")
        }
        # The addresses of the columns are the first argument of the call.
        addresses = self.load_element(self.field["calls"], 0, self.pointer)
        self.columns = [
            self.load_element(addresses, k, self.pointer)
            for k in range(len(tape.of_kind("column")))
        ]
        # Loop-carried values: arrays with one element per parameter, then scalars.
        state_arrays = [
            self.load_element(self.field["state"], k, self.pointer)
            for k in range(len(rule.columns) - 2)
        ]
        self.arrays = [self.field["values"], *state_arrays]
        self.sources = [(array, k) for array in self.arrays for k in range(len(wrt))]
        self.sources += [(self.field["shared"], k) for k in range(len(rule.scalars) - 1)]
        initial = [self.load_element(array, k, self.double) for array, k in self.sources]
        final = self.emit_carried_loop(last, 1, initial, self._emit_step, begin=first)
        self._store_carried(final)
        self.builder.ret(self.make_i64(-1))

    def _store_carried(self, carried: list[Ir]) -> None:
        """Store the loop-carried parameters and optimizer state to memory."""
        for value, (array, k) in zip(carried, self.sources, strict=True):
            self.store_element(value, array, k)

    def _emit_step(self, step: Ir, carried: list[Ir]) -> list[Ir]:
        """Emit one training step, and return the new parameters and optimizer state."""
        builder, zero = self.builder, self.ir.Constant(self.double, 0.0)
        results = self._emit_loss_and_derivatives(step, carried)
        self.store_element(results[0], self.field["losses"], step)
        # A product with zero is nan unless the factor is finite.
        checks = [builder.fmul(value, zero) for value in results if value is not None]
        while len(checks) > 1:
            pairs = zip(checks[::2], checks[1::2], strict=False)
            checks = [builder.fadd(*pair) for pair in pairs] + checks[len(checks) & ~1 :]
        self.emit_return_unless(
            builder.fcmp_ordered("==", checks[0], zero), step, lambda: self._store_carried(carried)
        )
        derivatives = [zero if value is None else value for value in results[1:]]
        return self._emit_update(step, carried, derivatives)

    def _emit_loss_and_derivatives(self, step: Ir, carried: list[Ir]) -> list[Ir]:
        """Emit the tape for one sample; return the loss and its derivatives.

        The derivative with respect to a parameter that is not differentiated is None.
        """
        tape = self.gradient
        self.tape, self.varies = tape, find_varying_values(tape)
        columns = iter(self.columns)
        values = self.emit_leaves(
            scalar=lambda leaf: carried[self.wrt[leaf.name]],
            column=lambda _: self.load_element(next(columns), step, self.double),
        )
        self.emit_instructions(values, varying=False)
        self.emit_instructions(values, varying=True)
        factors = iter(self.factors)
        results: list[Ir] = []
        for name in self.outputs:
            value = values[tape.outputs[name]] if name else None
            factor = next(factors) if name else 1.0
            if factor != 1.0:
                value = self.builder.fmul(value, self.ir.Constant(self.double, factor))
            results.append(value)
        return results

    def _emit_update(self, step: Ir, carried: list[Ir], derivatives: list[Ir]) -> list[Ir]:
        """Emit the update of all parameters; return the new parameters and optimizer state."""
        rule, count = self.rule, len(self.wrt)
        tape = rule.tape
        self.tape, self.varies = tape, find_varying_values(tape)
        state_scalars = carried[count * len(self.arrays) :]
        rate = self.load_element(self.field["rates"], step, self.double)
        scalar_values = dict(zip(rule.scalars, (rate, *state_scalars), strict=True))
        shared = self.emit_leaves(scalar=lambda leaf: scalar_values[leaf.name])
        self.emit_instructions(shared, varying=False)
        outputs = [tape.outputs[name] for name in rule.outputs]
        array_outputs, scalar_outputs = outputs[: len(self.arrays)], outputs[len(self.arrays) :]
        updated: list[list[Ir]] = [[] for _ in self.arrays]
        for k in range(count):
            state = [carried[a * count + k] for a in range(1, len(self.arrays))]
            column_values = dict(
                zip(rule.columns, [carried[k], derivatives[k], *state], strict=True)
            )
            parameter_values = shared | {
                i: column_values[leaf.name]
                for i, leaf in enumerate(tape.leaves)
                if leaf.name in column_values
            }
            self.emit_instructions(parameter_values, varying=True)
            for array, output in zip(updated, array_outputs, strict=True):
                array.append(parameter_values[output])
        return [value for array in updated for value in array] + [shared[o] for o in scalar_outputs]
