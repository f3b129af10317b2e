"""Whole epochs of training as one compiled function: gradient, update, next batch.

The function ``epoch`` is generated from an optimizer's update tape. It calls the compiled tape
(see :class:`cgprimer.backends.cpu.cpu_executable.CpuExecutable`) by its address, so both are
compiled separately and cached.
"""

from __future__ import annotations

from cgprimer.backends.cpu.function_emitter import IndirectFunction
from cgprimer.backends.cpu.primitive_ir import PrimitiveEmitter
from cgprimer.backends.cpu.straight_line import TapeFunctionEmitter
from cgprimer.backends.cpu.vector_ir import Ir
from cgprimer.backends.interfaces import UpdateRule
from cgprimer.core.tape.tape_entries import Leaf

# Layout of the context, in words of eight bytes: addresses, then integers. ``values`` are the
# parameters (doubles); ``order`` maps each scalar of the tape to its parameter; ``calls`` has six
# arguments for each call of ``run``. ``lanes`` are partial sums, then the outputs that do not vary
# with the sample; ``output_slots`` are the indices of loss and derivatives, ``slots`` the
# parameters of the derivatives. ``state`` are addresses of the state's arrays, ``shared`` its
# scalars.
ADDRESS_FIELDS = (
    "values", "order", "table", "run", "calls", "lanes", "uniform_slots", "output_slots",
    "factors", "slots", "slope", "state", "shared", "rates", "losses",
)  # fmt: skip
EPOCH_FIELDS = (
    *ADDRESS_FIELDS, "scalars", "before", "result_count", "uniform_count", "width", "parameters",
    "derivatives", "batch", "samples",
)  # fmt: skip
CALL_ARGUMENTS = 6  # number of arguments of a compiled tape


def declare_epoch_function(module: Ir) -> Ir:
    """Declare the LLVM function ``epoch(context, first, last)``, which runs training steps."""
    from llvmlite import ir

    i64 = ir.IntType(64)
    return ir.Function(module, ir.FunctionType(i64, [ir.PointerType(), i64, i64]), "epoch")


class EpochEmitter(TapeFunctionEmitter):
    """Emitter of the LLVM function ``epoch``, which runs training steps on mini-batches.

    A step is not finite if its loss or a derivative is infinite or nan; ``epoch`` returns the index
    of the first such step, before its update, or -1.

    Args:
        rule: the update rule of the optimizer.
        dtype: dtype of the compiled tape.
    """

    def __init__(self, rule: UpdateRule, dtype: str) -> None:
        from llvmlite import ir

        module = ir.Module("epoch")
        emitter = PrimitiveEmitter(module, "float64", 1)
        super().__init__(declare_epoch_function(module), rule.tape, emitter)
        self.rule, self.is_narrow = rule, dtype == "float32"
        self.scalar_type = ir.FloatType() if self.is_narrow else self.double
        context, first, last = self.function.args
        self.field = {
            name: self.load_element(
                context, k, self.pointer if name in ADDRESS_FIELDS else self.i64
            )
            for k, name in enumerate(EPOCH_FIELDS)
        }
        self.emit_loop(last, 1, self._emit_step, begin=first)
        self.builder.ret(self.make_i64(-1))

    def load_integer(self, field: str, index: Ir) -> Ir:
        """Load an element of an integer array, given the context field with its address."""
        return self.load_element(self.field[field], index, self.i64)

    def _emit_step(self, step: Ir) -> None:
        """Emit one training step: gradient of a mini-batch, check for nan and inf, update."""
        builder, field = self.builder, self.field
        begin = builder.mul(step, field["batch"])
        end = builder.add(begin, field["batch"])
        end = builder.select(builder.icmp_signed("<", end, field["samples"]), end, field["samples"])
        size = builder.sitofp(builder.sub(end, begin), self.double)
        zero = self.ir.Constant(self.double, 0.0)
        self._emit_tape_calls(begin, end, size)
        loss = builder.fdiv(self._emit_sum(self.make_i64(0)), size)
        self.store_element(loss, field["losses"], step)

        def store_derivative(index: Ir, state: list[Ir]) -> list[Ir]:
            """Store the derivative with respect to one parameter, and check it for nan and inf."""
            value = self._emit_sum(builder.add(index, self.make_i64(1)))
            value = value if self.rule.summed else builder.fdiv(value, size)
            self.store_element(value, field["slope"], self.load_integer("slots", index))
            # A product with zero is nan unless the factor is finite.
            return [builder.fadd(state[0], builder.fmul(value, zero))]

        (check,) = self.emit_carried_loop(
            field["derivatives"], 1, [builder.fmul(loss, zero)], store_derivative
        )
        self.emit_return_unless(builder.fcmp_ordered("==", check, zero), step)
        self._emit_update(step)

    def _emit_sum(self, index: Ir) -> Ir:
        """Emit the sum of an output over a mini-batch, from the partial sums of the lanes."""
        builder, field = self.builder, self.field
        first = builder.mul(self.load_integer("output_slots", index), field["width"])

        def add_lane(lane: Ir, state: list[Ir]) -> list[Ir]:
            """Add the partial sum of one lane."""
            partial_sum = self.load_element(field["lanes"], builder.add(first, lane), self.double)
            return [builder.fadd(state[0], partial_sum)]

        zero = self.ir.Constant(self.double, 0.0)
        (total,) = self.emit_carried_loop(field["width"], 1, [zero], add_lane, once=True)
        return builder.fmul(total, self.load_element(field["factors"], index, self.double))

    def _emit_tape_calls(self, begin: Ir, end: Ir, size: Ir) -> None:
        """Emit the calls that sum the loss and its derivatives over a mini-batch."""
        builder, field = self.builder, self.field

        def store_scalar(index: Ir) -> None:
            """Copy one parameter to the table of scalars that the compiled tape reads."""
            parameter = self.load_integer("order", index)
            value = self.load_element(field["values"], parameter, self.double)
            value = builder.fptrunc(value, self.scalar_type) if self.is_narrow else value
            self.store_element(value, field["table"], index)

        def call_tape(index: Ir, *samples: Ir) -> None:
            """Emit a call to the compiled tape."""
            first = builder.mul(index, self.make_i64(CALL_ARGUMENTS))
            arguments = [
                self.load_integer("calls", builder.add(first, self.make_i64(k)))
                for k in range(CALL_ARGUMENTS)
            ]
            arguments[3 : 3 + len(samples)] = samples
            function_type = self.ir.FunctionType(self.ir.VoidType(), [self.i64] * CALL_ARGUMENTS)
            builder.call(IndirectFunction(field["run"], function_type), arguments)

        def store_uniform_output(index: Ir) -> None:
            """Store the batch size times an output that does not vary with the sample."""
            position = self.load_integer("uniform_slots", index)
            value = self.load_element(field["table"], position, self.scalar_type)
            value = builder.fpext(value, self.double) if self.is_narrow else value
            target = builder.mul(builder.add(field["result_count"], index), field["width"])
            self.store_element(builder.fmul(value, size), field["lanes"], target)

        self.emit_loop(field["scalars"], 1, store_scalar)
        self.emit_loop(field["before"], 1, call_tape)
        zero = self.ir.Constant(self.double, 0.0)
        lanes = builder.mul(field["result_count"], field["width"])
        self.emit_loop(lanes, 1, lambda k: self.store_element(zero, field["lanes"], k))
        call_tape(field["before"], begin, end)
        self.emit_loop(field["uniform_count"], 1, store_uniform_output)

    def _emit_update(self, step: Ir) -> None:
        """Emit the update of all parameters by the optimizer's rule."""
        field, tape = self.field, self.tape

        def load_scalar(leaf: Leaf) -> Ir:
            """Load the learning rate of the step, or a scalar of the optimizer's state."""
            number = self.rule.scalars.index(leaf.name)
            array, index = ("rates", step) if number == 0 else ("shared", number - 1)
            return self.load_element(field[array], index, self.double)

        values = self.emit_leaves(scalar=load_scalar)
        self.emit_instructions(values, varying=False)
        arrays = [field["values"], field["slope"]] + [
            self.load_element(field["state"], k, self.pointer)
            for k in range(len(self.rule.columns) - 2)
        ]
        outputs = [tape.outputs[name] for name in self.rule.outputs]

        def update_parameter(index: Ir) -> None:
            """Update one parameter and its optimizer state."""

            def load_column(leaf: Leaf) -> Ir:
                """Load the value, the derivative or the optimizer state of a parameter."""
                array = arrays[self.rule.columns.index(leaf.name)]
                return self.load_element(array, index, self.double)

            parameter_values = values | self.emit_leaves(column=load_column)
            self.emit_instructions(parameter_values, varying=True)
            targets = [arrays[0], *arrays[2:]]
            for array, output in zip(targets, outputs, strict=False):  # scalars follow
                self.store_element(parameter_values[output], array, index)

        self.emit_loop(field["parameters"], 1, update_parameter)
        for number, output in enumerate(outputs[len(arrays) - 1 :]):
            self.store_element(values[output], field["shared"], number)
