"""Whole epochs of training as one compiled function: gradient, update, next batch.

The function ``epoch`` is generated from an optimizer's update tape. It calls the compiled tape
(see :class:`cgprimer.backends.cpu.cpu_executable.CpuExecutable`) by its address, so both are
compiled separately and cached.
"""

from __future__ import annotations

from typing import Any

from cgprimer.backends.cpu.ir_writer import IndirectFunction
from cgprimer.backends.cpu.primitive_ir import PrimitiveEmitter
from cgprimer.backends.cpu.straight_line import TapeFunctionWriter
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


class EpochWriter(TapeFunctionWriter):
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
            name: self.get(context, k, self.pointer if k < EPOCH_FIELDS.index("scalars") else i64)
            for k, name in enumerate(EPOCH_FIELDS)
        }
        self.loop(last, 1, self._step, begin=first)
        self.build.ret(self.number(-1))

    def index(self, name: str, number: Any) -> Any:
        """Load an entry of a table of integers."""
        return self.get(self.field[name], number, self.i64)

    def _step(self, step: Any) -> None:
        build, field = self.build, self.field
        begin = build.mul(step, field["batch"])
        end = build.add(begin, field["batch"])
        end = build.select(build.icmp_signed("<", end, field["samples"]), end, field["samples"])
        size = build.sitofp(build.sub(end, begin), self.double)
        zero = self.ir.Constant(self.double, 0.0)
        self._sums(begin, end, size)

        def total(number: Any) -> Any:
            first = build.mul(self.index("reads", number), field["width"])
            (total_sum,) = self.fold(
                field["width"], 1, [zero],
                lambda lane, s: [
                    build.fadd(s[0], self.get(field["lanes"], build.add(first, lane), self.double))
                ],
                once=True,
            )  # fmt: skip
            factor = self.get(field["factors"], number, self.double)
            return build.fmul(total_sum, factor)

        loss = build.fdiv(total(self.number(0)), size)
        self.put(loss, field["losses"], step)

        def store_gradient(number: Any, state: list[Any]) -> list[Any]:
            value = total(build.add(number, self.number(1)))
            value = value if self.rule.summed else build.fdiv(value, size)
            self.put(value, field["slope"], self.index("slots", number))
            # A product with zero is nan unless the factor is finite.
            return [build.fadd(state[0], build.fmul(value, zero))]

        (check,) = self.fold(field["derivatives"], 1, [build.fmul(loss, zero)], store_gradient)
        failed, going = (self.function.append_basic_block() for _ in range(2))
        build.cbranch(build.fcmp_ordered("==", check, zero), going, failed)
        build.position_at_end(failed)
        build.ret(step)
        build.position_at_end(going)
        self._update(step)

    def _sums(self, begin: Any, end: Any, size: Any) -> None:
        """Run the tape over a batch and store the sums of the outputs, lane by lane."""
        build, field = self.build, self.field

        def store_scalar(number: Any) -> None:
            value = self.get(field["values"], self.index("order", number), self.double)
            narrow = build.fptrunc(value, self.real) if self.narrow else value
            self.put(narrow, field["table"], number)

        def call_tape(number: Any, *samples: Any) -> None:
            first = build.mul(number, self.number(CALL_ARGUMENTS))
            arguments = [
                self.index("calls", build.add(first, self.number(k))) for k in range(CALL_ARGUMENTS)
            ]
            arguments[3 : 3 + len(samples)] = samples
            kind = self.ir.FunctionType(self.ir.VoidType(), [self.i64] * CALL_ARGUMENTS)
            build.call(IndirectFunction(field["run"], kind), arguments)

        def store_fixed(number: Any) -> None:
            value = self.get(field["table"], self.index("fixed", number), self.real)
            wide = build.fpext(value, self.double) if self.narrow else value
            place = build.mul(build.add(field["count"], number), field["width"])
            self.put(build.fmul(wide, size), field["lanes"], place)

        self.loop(field["scalars"], 1, store_scalar)
        self.loop(field["before"], 1, call_tape)
        nothing = self.ir.Constant(self.double, 0.0)
        lanes = build.mul(field["count"], field["width"])
        self.loop(lanes, 1, lambda k: self.put(nothing, field["lanes"], k))
        call_tape(field["before"], begin, end)
        self.loop(field["fixed_count"], 1, store_fixed)

    def _update(self, step: Any) -> None:
        """Run the update tape for each parameter; values common to all are computed once."""
        field, tape = self.field, self.tape

        def load_shared(leaf: Leaf) -> Any:
            number = self.rule.scalars.index(leaf.name)
            place = ("rates", step) if number == 0 else ("shared", number - 1)
            return self.get(field[place[0]], place[1], self.double)

        values = self.leaves(scalar=load_shared)
        self.instructions(values, varying=False)
        arrays = [field["values"], field["slope"]] + [
            self.get(field["state"], k, self.pointer) for k in range(len(self.rule.columns) - 2)
        ]
        outputs = [tape.outputs[name] for name in self.rule.after]

        def update_parameter(number: Any) -> None:
            def load_own(leaf: Leaf) -> Any:
                return self.get(arrays[self.rule.columns.index(leaf.name)], number, self.double)

            parameter_values = values | self.leaves(column=load_own)
            self.instructions(parameter_values, varying=True)
            written = [arrays[0], *arrays[2:]]
            for array, output in zip(written, outputs, strict=False):  # scalars follow
                self.put(parameter_values[output], array, number)

        self.loop(field["parameters"], 1, update_parameter)
        for number, output in enumerate(outputs[len(arrays) - 1 :]):
            self.put(values[output], field["shared"], number)
