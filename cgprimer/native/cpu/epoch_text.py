"""Whole epochs as machine code: gradient, update, next batch, without a word of Python between.

``epoch`` is made of an optimizer's update tape; it calls a compiled tape (see
:class:`cgprimer.native.cpu.executable.Executable`) by its address, so that each is compiled once.
"""

from __future__ import annotations

from typing import Any

from cgprimer.core.tape.tape import Leaf
from cgprimer.native.contract import UpdateRule
from cgprimer.native.cpu.loop_text import Called
from cgprimer.native.cpu.operations import Emitter
from cgprimer.native.cpu.straight_line import TapeWriter

# What ``epoch`` finds at its context's address, eight bytes each: addresses, then numbers. The
# first line is the tape's: ``values`` are the parameters, as doubles; ``order`` says which of them
# each scalar of the tape is; ``calls`` has six arguments for each call of ``run``. ``lanes`` are
# vectors of sums, then one for each output that no sample changes; ``reads`` says which is the
# loss, then which are derivatives, and ``slots`` by which parameters. ``state`` are addresses of
# the state's arrays, ``shared`` its numbers.
EPOCH = (
    "values", "order", "table", "run", "calls", "lanes", "fixed", "reads", "factors",
    "slots", "slope", "state", "shared", "rates", "losses",
    "scalars", "before", "count", "fixed_count", "width", "parameters", "derivatives", "batch",
    "samples",
)  # fmt: skip
CALL = 6  # arguments of a compiled tape


class Epoch(TapeWriter):
    """A module with ``epoch(context, first, last) -> the step that failed, or -1``.

    Args:
        rule: how parameters are changed.
        dtype: of the compiled tape.
    """

    def __init__(self, rule: UpdateRule, dtype: str) -> None:
        from llvmlite import ir

        module, i64 = ir.Module("epoch"), ir.IntType(64)
        kind = ir.FunctionType(i64, [ir.PointerType(), i64, i64])
        emitter = Emitter(module, "float64", 1)
        super().__init__(ir.Function(module, kind, "epoch"), rule.tape, emitter)
        self.rule, self.narrow = rule, dtype == "float32"
        self.real = ir.FloatType() if self.narrow else self.double
        context, first, last = self.function.args
        self.field = {
            name: self.get(context, k, self.pointer if k < EPOCH.index("scalars") else i64)
            for k, name in enumerate(EPOCH)
        }
        self.loop(last, 1, self._step, begin=first)
        self.build.ret(self.number(-1))

    def index(self, name: str, number: Any) -> Any:
        """An entry of a table of integers."""
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
            (found,) = self.fold(
                field["width"], 1, [zero],
                lambda lane, s: [
                    build.fadd(s[0], self.get(field["lanes"], build.add(first, lane), self.double))
                ],
                once=True,
            )  # fmt: skip
            factor = self.get(field["factors"], number, self.double)
            return build.fmul(found, factor)

        loss = build.fdiv(total(self.number(0)), size)
        self.put(loss, field["losses"], step)

        def slope(number: Any, state: list[Any]) -> list[Any]:
            value = total(build.add(number, self.number(1)))
            value = value if self.rule.summed else build.fdiv(value, size)
            self.put(value, field["slope"], self.index("slots", number))
            # Times zero: nan for whatever is not finite.
            return [build.fadd(state[0], build.fmul(value, zero))]

        (check,) = self.fold(field["derivatives"], 1, [build.fmul(loss, zero)], slope)
        failed, going = (self.function.append_basic_block() for _ in range(2))
        build.cbranch(build.fcmp_ordered("==", check, zero), going, failed)
        build.position_at_end(failed)
        build.ret(step)
        build.position_at_end(going)
        self._update(step)

    def _sums(self, begin: Any, end: Any, size: Any) -> None:
        """Run the tape over a batch: its sums, lane by lane."""
        build, field = self.build, self.field

        def scalar(number: Any) -> None:
            value = self.get(field["values"], self.index("order", number), self.double)
            narrow = build.fptrunc(value, self.real) if self.narrow else value
            self.put(narrow, field["table"], number)

        def call(number: Any, *samples: Any) -> None:
            first = build.mul(number, self.number(CALL))
            given = [self.index("calls", build.add(first, self.number(k))) for k in range(CALL)]
            given[3 : 3 + len(samples)] = samples
            kind = self.ir.FunctionType(self.ir.VoidType(), [self.i64] * CALL)
            build.call(Called(field["run"], kind), given)

        def fixed(number: Any) -> None:
            value = self.get(field["table"], self.index("fixed", number), self.real)
            wide = build.fpext(value, self.double) if self.narrow else value
            place = build.mul(build.add(field["count"], number), field["width"])
            self.put(build.fmul(wide, size), field["lanes"], place)

        self.loop(field["scalars"], 1, scalar)
        self.loop(field["before"], 1, call)
        nothing = self.ir.Constant(self.double, 0.0)
        lanes = build.mul(field["count"], field["width"])
        self.loop(lanes, 1, lambda k: self.put(nothing, field["lanes"], k))
        call(field["before"], begin, end)
        self.loop(field["fixed_count"], 1, fixed)

    def _update(self, step: Any) -> None:
        """The update tape over the parameters; what all of them share is computed once."""
        field, tape = self.field, self.tape

        def shared(leaf: Leaf) -> Any:
            number = self.rule.scalars.index(leaf.name)
            place = ("rates", step) if number == 0 else ("shared", number - 1)
            return self.get(field[place[0]], place[1], self.double)

        values = self.leaves(scalar=shared)
        self.instructions(values, varying=False)
        arrays = [field["values"], field["slope"]] + [
            self.get(field["state"], k, self.pointer) for k in range(len(self.rule.columns) - 2)
        ]
        outputs = [tape.outputs[name] for name in self.rule.after]

        def parameter(number: Any) -> None:
            def own(leaf: Leaf) -> Any:
                return self.get(arrays[self.rule.columns.index(leaf.name)], number, self.double)

            here = values | self.leaves(column=own)
            self.instructions(here, varying=True)
            written = [arrays[0], *arrays[2:]]
            for array, output in zip(written, outputs, strict=False):  # then single numbers
                self.put(here[output], array, number)

        self.loop(field["parameters"], 1, parameter)
        for number, output in enumerate(outputs[len(arrays) - 1 :]):
            self.put(values[output], field["shared"], number)
