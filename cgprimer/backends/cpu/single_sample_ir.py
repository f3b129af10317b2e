"""Compiled epochs with one sample per step: gradient and update in one loop, in registers.

The general loop (:mod:`.epoch_ir`) calls the compiled tape by its address and keeps sums lane by
lane; for a single sample, this overhead exceeds the work. Here, tape and update rule become one
straight-line function, and parameters and optimizer state are loop-carried values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cgprimer.backends.cpu.epoch_ir import EPOCH_FIELDS
from cgprimer.backends.cpu.primitive_ir import PrimitiveEmitter
from cgprimer.backends.cpu.straight_line import FLAGS, StraightLineExecutable, TapeFunctionEmitter
from cgprimer.backends.interfaces import UpdateRule
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_dependencies import find_varying_values

Names = Sequence[str]
_MAX_OPERATIONS = 3000  # maximum number of operations of a step


def fits_single_sample(program: StraightLineExecutable, rule: UpdateRule, parameters: int) -> bool:
    """Return whether a step is short enough, and has the precision of the parameters."""
    length = len(program.tape) + parameters * (len(rule.tape) + len(rule.columns))
    return length <= _MAX_OPERATIONS and program.dtype.itemsize == 8


class SingleSampleEpochEmitter(TapeFunctionEmitter):
    """Writer of a module with ``epoch(context, first, last) -> failed step, or -1``.

    Args:
        tape: what is computed for a sample.
        outputs: the loss, then the derivative with respect to each parameter, or nothing.
        factors: of the outputs that are there, in this order.
        rule: how parameters are changed.
        wrt: names of the parameters.
    """

    def __init__(
        self, tape: Tape, outputs: Names, factors: list[float], rule: UpdateRule, wrt: Names
    ) -> None:
        from llvmlite import ir

        module, i64 = ir.Module("single"), ir.IntType(64)
        kind = ir.FunctionType(i64, [ir.PointerType(), i64, i64])
        emitter = PrimitiveEmitter(module, "float64", 1, flags=FLAGS)
        super().__init__(ir.Function(module, kind, "epoch"), tape, emitter)
        self.gradient, self.outputs, self.factors = tape, outputs, factors
        self.rule, self.wrt = rule, {name: k for k, name in enumerate(wrt)}
        context, first, last = self.function.args
        self.field = {
            name: self.load_element(context, EPOCH_FIELDS.index(name), self.pointer)
            for name in ("values", "calls", "state", "shared", "rates", "losses")
        }
        table = self.load_element(
            self.field["calls"], 0, self.pointer
        )  # the columns are the first argument
        columns = range(len(tape.of_kind("column")))
        self.columns = [self.load_element(table, k, self.pointer) for k in columns]
        # Loop-carried values: arrays with one element per parameter, then scalars.
        state_arrays = [
            self.load_element(self.field["state"], k, self.pointer)
            for k in range(len(rule.columns) - 2)
        ]
        self.arrays = [self.field["values"], *state_arrays]
        places = [(array, k) for array in self.arrays for k in range(len(wrt))]
        places += [(self.field["shared"], k) for k in range(len(rule.scalars) - 1)]
        begin = [self.load_element(array, k, self.double) for array, k in places]
        self.places = places
        end = self.emit_carried_loop(last, 1, begin, self._step, begin=first)
        self._store(end)
        self.builder.ret(self.make_i64(-1))

    def _store(self, carried: list[Any]) -> None:
        for value, (array, k) in zip(carried, self.places, strict=True):
            self.store_element(value, array, k)

    def _step(self, step: Any, carried: list[Any]) -> list[Any]:
        builder, zero = self.builder, self.ir.Constant(self.double, 0.0)
        results = self._sample(step, carried)
        self.store_element(results[0], self.field["losses"], step)
        # A product with zero is nan unless the factor is finite.
        checks = [builder.fmul(value, zero) for value in results if value is not None]
        while len(checks) > 1:
            pairs = zip(checks[::2], checks[1::2], strict=False)
            checks = [builder.fadd(*pair) for pair in pairs] + checks[len(checks) & ~1 :]
        failed, going = (self.function.append_basic_block() for _ in range(2))
        builder.cbranch(builder.fcmp_ordered("==", checks[0], zero), going, failed)
        builder.position_at_end(failed)
        self._store(carried)
        builder.ret(step)
        builder.position_at_end(going)
        return self._update_parameters(
            step, carried, [zero if g is None else g for g in results[1:]]
        )

    def _sample(self, step: Any, carried: list[Any]) -> list[Any]:
        """Return loss and derivatives; None for a parameter that is not differentiated."""
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
        results: list[Any] = []
        for name in self.outputs:
            value = values[tape.outputs[name]] if name else None
            factor = next(factors) if name else 1.0
            if factor != 1.0:
                value = self.builder.fmul(value, self.ir.Constant(self.double, factor))
            results.append(value)
        return results

    def _update_parameters(self, step: Any, carried: list[Any], gradient: list[Any]) -> list[Any]:
        rule, count = self.rule, len(self.wrt)
        tape = rule.tape
        self.tape, self.varies = tape, find_varying_values(tape)
        single = carried[count * len(self.arrays) :]
        rate = self.load_element(self.field["rates"], step, self.double)
        scalar_values = dict(zip(rule.scalars, (rate, *single), strict=True))
        shared = self.emit_leaves(scalar=lambda leaf: scalar_values[leaf.name])
        self.emit_instructions(shared, varying=False)
        outputs = [tape.outputs[name] for name in rule.after]
        array_outputs, scalar_outputs = outputs[: len(self.arrays)], outputs[len(self.arrays) :]
        after: list[list[Any]] = [[] for _ in self.arrays]
        for k in range(count):
            inputs = [
                carried[k],
                gradient[k],
                *(carried[a * count + k] for a in range(1, len(after))),
            ]
            column_values = dict(zip(rule.columns, inputs, strict=True))
            parameter_values = shared | {
                i: column_values[f.name]
                for i, f in enumerate(tape.leaves)
                if f.name in column_values
            }
            self.emit_instructions(parameter_values, varying=True)
            for part, output in zip(after, array_outputs, strict=True):
                part.append(parameter_values[output])
        return [value for part in after for value in part] + [shared[o] for o in scalar_outputs]
