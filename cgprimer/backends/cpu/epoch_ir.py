"""Whole epochs of training as one compiled function: gradient, update, next batch.

The function ``epoch`` is generated from an optimizer's update tape. It calls the compiled tape
(see :class:`cgprimer.backends.cpu.cpu_executable.CpuExecutable`) by its address, so both are
compiled separately and cached.
"""

from __future__ import annotations

from typing import Any

from cgprimer.backends.cpu.function_emitter import IndirectFunction
from cgprimer.backends.cpu.primitive_ir import PrimitiveEmitter
from cgprimer.backends.cpu.straight_line import TapeFunctionEmitter
from cgprimer.backends.interfaces import UpdateRule
from cgprimer.core.tape.tape_entries import Leaf

# Layout of the context, in words of eight bytes: addresses, then integers. ``values`` are the
# parameters (doubles); ``order`` maps each scalar of the tape to its parameter; ``calls`` has six
# arguments for each call of ``run``. ``lanes`` are partial sums, then the outputs that do not vary
# with the sample; ``reads`` are the indices of loss and derivatives, ``slots`` the parameters of
# the derivatives. ``state`` are addresses of the state's arrays, ``shared`` its scalars.
EPOCH_FIELDS = (
    "values", "order", "table", "run", "calls", "lanes", "fixed", "reads", "factors",
    "slots", "slope", "state", "shared", "rates", "losses",
    "scalars", "before", "count", "fixed_count", "width", "parameters", "derivatives", "batch",
    "samples",
)  # fmt: skip
CALL_ARGUMENTS = 6  # number of arguments of a compiled tape


class EpochEmitter(TapeFunctionEmitter):
    """Writer of a module with ``epoch(context, first, last) -> failed step, or -1``.

    Args:
        rule: how parameters are changed.
        dtype: of the compiled tape.
    """

    def __init__(self, rule: UpdateRule, dtype: str) -> None:
        from llvmlite import ir

        module, i64 = ir.Module("epoch"), ir.IntType(64)
        kind = ir.FunctionType(i64, [ir.PointerType(), i64, i64])
        emitter = PrimitiveEmitter(module, "float64", 1)
        super().__init__(ir.Function(module, kind, "epoch"), rule.tape, emitter)
        self.rule, self.narrow = rule, dtype == "float32"
        self.real = ir.FloatType() if self.narrow else self.double
        context, first, last = self.function.args
        self.field = {
            name: self.load_element(
                context, k, self.pointer if k < EPOCH_FIELDS.index("scalars") else i64
            )
            for k, name in enumerate(EPOCH_FIELDS)
        }
        self.emit_loop(last, 1, self._step, begin=first)
        self.builder.ret(self.make_i64(-1))

    def index(self, name: str, number: Any) -> Any:
        """Load an entry of a table of integers."""
        return self.load_element(self.field[name], number, self.i64)

    def _step(self, step: Any) -> None:
        builder, field = self.builder, self.field
        lanes = field["lanes"]
        begin = builder.mul(step, field["batch"])
        end = builder.add(begin, field["batch"])
        end = builder.select(builder.icmp_signed("<", end, field["samples"]), end, field["samples"])
        size = builder.sitofp(builder.sub(end, begin), self.double)
        zero = self.ir.Constant(self.double, 0.0)
        self._sums(begin, end, size)

        def total(number: Any) -> Any:
            first = builder.mul(self.index("reads", number), field["width"])

            def add_lane(lane: Any, state: list[Any]) -> list[Any]:
                position = builder.add(first, lane)
                return [builder.fadd(state[0], self.load_element(lanes, position, self.double))]

            (total_sum,) = self.emit_carried_loop(field["width"], 1, [zero], add_lane, once=True)
            factor = self.load_element(field["factors"], number, self.double)
            return builder.fmul(total_sum, factor)

        loss = builder.fdiv(total(self.make_i64(0)), size)
        self.store_element(loss, field["losses"], step)

        def store_gradient(number: Any, state: list[Any]) -> list[Any]:
            value = total(builder.add(number, self.make_i64(1)))
            value = value if self.rule.summed else builder.fdiv(value, size)
            self.store_element(value, field["slope"], self.index("slots", number))
            # A product with zero is nan unless the factor is finite.
            return [builder.fadd(state[0], builder.fmul(value, zero))]

        (check,) = self.emit_carried_loop(
            field["derivatives"], 1, [builder.fmul(loss, zero)], store_gradient
        )
        failed, going = (self.function.append_basic_block() for _ in range(2))
        builder.cbranch(builder.fcmp_ordered("==", check, zero), going, failed)
        builder.position_at_end(failed)
        builder.ret(step)
        builder.position_at_end(going)
        self._update(step)

    def _sums(self, begin: Any, end: Any, size: Any) -> None:
        """Run the tape over a batch and store the sums of the outputs, lane by lane."""
        builder, field = self.builder, self.field

        def store_scalar(number: Any) -> None:
            value = self.load_element(field["values"], self.index("order", number), self.double)
            narrow = builder.fptrunc(value, self.real) if self.narrow else value
            self.store_element(narrow, field["table"], number)

        def call_tape(number: Any, *samples: Any) -> None:
            first = builder.mul(number, self.make_i64(CALL_ARGUMENTS))
            arguments = [
                self.index("calls", builder.add(first, self.make_i64(k)))
                for k in range(CALL_ARGUMENTS)
            ]
            arguments[3 : 3 + len(samples)] = samples
            kind = self.ir.FunctionType(self.ir.VoidType(), [self.i64] * CALL_ARGUMENTS)
            builder.call(IndirectFunction(field["run"], kind), arguments)

        def store_fixed(number: Any) -> None:
            value = self.load_element(field["table"], self.index("fixed", number), self.real)
            wide = builder.fpext(value, self.double) if self.narrow else value
            place = builder.mul(builder.add(field["count"], number), field["width"])
            self.store_element(builder.fmul(wide, size), field["lanes"], place)

        self.emit_loop(field["scalars"], 1, store_scalar)
        self.emit_loop(field["before"], 1, call_tape)
        nothing = self.ir.Constant(self.double, 0.0)
        lanes = builder.mul(field["count"], field["width"])
        self.emit_loop(lanes, 1, lambda k: self.store_element(nothing, field["lanes"], k))
        call_tape(field["before"], begin, end)
        self.emit_loop(field["fixed_count"], 1, store_fixed)

    def _update(self, step: Any) -> None:
        """Run the update tape for each parameter; values common to all are computed once."""
        field, tape = self.field, self.tape

        def load_shared(leaf: Leaf) -> Any:
            number = self.rule.scalars.index(leaf.name)
            place = ("rates", step) if number == 0 else ("shared", number - 1)
            return self.load_element(field[place[0]], place[1], self.double)

        values = self.emit_leaves(scalar=load_shared)
        self.emit_instructions(values, varying=False)
        arrays = [field["values"], field["slope"]] + [
            self.load_element(field["state"], k, self.pointer)
            for k in range(len(self.rule.columns) - 2)
        ]
        outputs = [tape.outputs[name] for name in self.rule.after]

        def update_parameter(number: Any) -> None:
            def load_own(leaf: Leaf) -> Any:
                return self.load_element(
                    arrays[self.rule.columns.index(leaf.name)], number, self.double
                )

            parameter_values = values | self.emit_leaves(column=load_own)
            self.emit_instructions(parameter_values, varying=True)
            written = [arrays[0], *arrays[2:]]
            for array, output in zip(written, outputs, strict=False):  # scalars follow
                self.store_element(parameter_values[output], array, number)

        self.emit_loop(field["parameters"], 1, update_parameter)
        for number, output in enumerate(outputs[len(arrays) - 1 :]):
            self.store_element(values[output], field["shared"], number)
