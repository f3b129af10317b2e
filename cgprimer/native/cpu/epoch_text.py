"""Whole epochs as machine code: gradient, update, next batch, without a word of Python between.

``epoch`` is made of an optimizer's update tape; it calls a gradient function (see
:mod:`cgprimer.native.cpu.gradients`) by its address, so that each is compiled once.
"""

from __future__ import annotations

from typing import Any

from cgprimer.core.tape.tape import Tape
from cgprimer.native.cpu.loop_text import Called
from cgprimer.native.cpu.operations import Emitter
from cgprimer.native.cpu.straight_line import TapeWriter

# What ``epoch`` finds at its context's address. ``reads``: which sum is the loss, then which the
# gradient of each parameter. ``state``: addresses of the state's arrays; ``shared``: its numbers.
EPOCH = (
    "gradient", "gradient_context", "sums", "reads", "values", "slope", "parameters", "state",
    "shared", "rates", "losses", "batch", "samples",
)  # fmt: skip


def epoch_text(update: Tape, columns: list[str], scalars: list[str], after: list[str]) -> str:
    """A module with ``epoch(context, first, last) -> the step that failed, or -1``.

    Args:
        update: the tape of an update rule.
        columns: its columns: parameter, gradient, then the state's arrays.
        scalars: its scalars: learning rate, then the state's numbers.
        after: its outputs: the parameter, then the state's parts as ``columns`` and ``scalars``
            have them.
    """
    return str(_Epoch(update, columns, scalars, after).module)


class _Epoch(TapeWriter):
    def __init__(
        self, update: Tape, columns: list[str], scalars: list[str], after: list[str]
    ) -> None:
        from llvmlite import ir

        self.module = ir.Module("epoch")
        kind = ir.FunctionType(ir.IntType(64), [ir.PointerType(), ir.IntType(64), ir.IntType(64)])
        function = ir.Function(self.module, kind, "epoch")
        super().__init__(function, update, Emitter(self.module, "float64", 1))
        self.columns, self.scalars, self.after = columns, scalars, after
        context, first, last = self.function.args
        self.field = {
            name: self.get(context, k, self.pointer if k < EPOCH.index("batch") else self.i64)
            for k, name in enumerate(EPOCH)
        }
        self.parameters = self.build.ptrtoint(self.field["parameters"], self.i64)
        self.loop(last, 1, self._step, begin=first)
        self.build.ret(self.number(-1))

    def _step(self, step: Any) -> None:
        build, field = self.build, self.field
        begin = build.mul(step, field["batch"])
        end = build.add(begin, field["batch"])
        end = build.select(build.icmp_signed("<", end, field["samples"]), end, field["samples"])
        kind = self.ir.FunctionType(self.ir.VoidType(), [self.pointer, self.i64, self.i64])
        build.call(Called(field["gradient"], kind), [field["gradient_context"], begin, end])
        size = build.sitofp(build.sub(end, begin), self.double)

        def mean(number: Any) -> Any:
            place = self.get(field["reads"], number, self.i64)
            return build.fdiv(self.get(field["sums"], place, self.double), size)

        loss = mean(0)
        self.put(loss, field["losses"], step)

        def slope(number: Any, state: list[Any]) -> list[Any]:
            value = mean(build.add(number, self.number(1)))
            self.put(value, field["slope"], number)
            # Times zero: nan for whatever is not finite.
            return [build.fadd(state[0], build.fmul(value, zero))]

        zero = self.ir.Constant(self.double, 0.0)
        (check,) = self.fold(self.parameters, 1, [build.fmul(loss, zero)], slope)
        failed, going = (self.function.append_basic_block() for _ in range(2))
        build.cbranch(build.fcmp_ordered("==", check, zero), going, failed)
        build.position_at_end(failed)
        build.ret(step)
        build.position_at_end(going)
        self._update(step)

    def _update(self, step: Any) -> None:
        """The update tape over the parameters; what all of them share is computed once."""
        field, tape = self.field, self.tape
        values: dict[int, Any] = {}
        for index, leaf in enumerate(tape.leaves):
            if leaf.kind == "constant":
                values[index] = self.ir.Constant(self.double, leaf.value)
            elif leaf.kind == "scalar":
                number = self.scalars.index(leaf.name)
                values[index] = (
                    self.get(field["rates"], step, self.double)
                    if number == 0
                    else self.get(field["shared"], number - 1, self.double)
                )
        self.instructions(values, varying=False)
        arrays = [field["values"], field["slope"]] + [
            self.get(field["state"], k, self.pointer) for k in range(len(self.columns) - 2)
        ]
        outputs = [tape.outputs[name] for name in self.after]

        def parameter(number: Any) -> None:
            here = dict(values)
            for index, leaf in enumerate(tape.leaves):
                if leaf.kind == "column":
                    array = arrays[self.columns.index(leaf.name)]
                    here[index] = self.get(array, number, self.double)
            self.instructions(here, varying=True)
            written = [arrays[0], *arrays[2:]]
            moved = [o for o in outputs if self.varies[o]]
            for array, output in zip(written, moved, strict=True):
                self.put(here[output], array, number)

        self.loop(self.parameters, 1, parameter)
        shared = [o for o in outputs if not self.varies[o]]
        for number, output in enumerate(shared):
            self.put(values[output], field["shared"], number)
