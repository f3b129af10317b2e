"""Epochs of one sample a step, as machine code: gradient and update in one loop, in registers.

The general loop (:mod:`.epoch_text`) calls the compiled tape by its address and keeps sums lane by
lane: for one sample that is more work than the sample. Here tape and rule are written out into one
function, for each parameter by itself; parameters and state are values that go round the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cgprimer.core.tape.passes import varying
from cgprimer.core.tape.tape import Tape
from cgprimer.native.contract import UpdateRule
from cgprimer.native.cpu.epoch_text import EPOCH
from cgprimer.native.cpu.operations import Emitter
from cgprimer.native.cpu.straight_line import FLAGS, Fused, TapeWriter

Names = Sequence[str]
_MOST = 3000  # operations of a step that are written out


def fits(program: Fused, rule: UpdateRule, parameters: int) -> bool:
    """Whether steps are short enough to be written out, and in the precision of parameters."""
    length = len(program.tape) + parameters * (len(rule.tape) + len(rule.columns))
    return length <= _MOST and program.dtype.itemsize == 8


class Single(TapeWriter):
    """A module with ``epoch(context, first, last) -> the step that failed, or -1``.

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
        emitter = Emitter(module, "float64", 1, flags=FLAGS)
        super().__init__(ir.Function(module, kind, "epoch"), tape, emitter)
        self.gradient, self.outputs, self.factors = tape, outputs, factors
        self.rule, self.wrt = rule, {name: k for k, name in enumerate(wrt)}
        context, first, last = self.function.args
        self.field = {
            name: self.get(context, EPOCH.index(name), self.pointer)
            for name in ("values", "calls", "state", "shared", "rates", "losses")
        }
        table = self.get(self.field["calls"], 0, self.pointer)  # of columns: its first argument
        columns = range(len(tape.of_kind("column")))
        self.columns = [self.get(table, k, self.pointer) for k in columns]
        parts = range(len(rule.columns) - 2)
        # Of what goes round the loop: arrays, a number for each parameter, then single numbers.
        self.arrays = [self.field["values"], *(self.get(self.field["state"], k, self.pointer)
                                               for k in parts)]  # fmt: skip
        places = [(array, k) for array in self.arrays for k in range(len(wrt))]
        places += [(self.field["shared"], k) for k in range(len(rule.scalars) - 1)]
        begin = [self.get(array, k, self.double) for array, k in places]
        self.places = places
        end = self.fold(last, 1, begin, self._step, begin=first)
        self._store(end)
        self.build.ret(self.number(-1))

    def _store(self, held: list[Any]) -> None:
        for value, (array, k) in zip(held, self.places, strict=True):
            self.put(value, array, k)

    def _step(self, step: Any, held: list[Any]) -> list[Any]:
        build, zero = self.build, self.ir.Constant(self.double, 0.0)
        found = self._sample(step, held)
        self.put(found[0], self.field["losses"], step)
        # Times zero: nan for whatever is not finite.
        checks = [build.fmul(value, zero) for value in found if value is not None]
        while len(checks) > 1:
            pairs = zip(checks[::2], checks[1::2], strict=False)
            checks = [build.fadd(*pair) for pair in pairs] + checks[len(checks) & ~1 :]
        failed, going = (self.function.append_basic_block() for _ in range(2))
        build.cbranch(build.fcmp_ordered("==", checks[0], zero), going, failed)
        build.position_at_end(failed)
        self._store(held)
        build.ret(step)
        build.position_at_end(going)
        return self._updated(step, held, [zero if g is None else g for g in found[1:]])

    def _sample(self, step: Any, held: list[Any]) -> list[Any]:
        """Loss and derivatives; None for a parameter that is not differentiated."""
        tape = self.gradient
        self.tape, self.varies = tape, varying(tape)
        columns = iter(self.columns)
        values = self.leaves(
            scalar=lambda leaf: held[self.wrt[leaf.name]],
            column=lambda _: self.get(next(columns), step, self.double),
        )
        self.instructions(values, varying=False)
        self.instructions(values, varying=True)
        factors = iter(self.factors)
        found: list[Any] = []
        for name in self.outputs:
            value = values[tape.outputs[name]] if name else None
            factor = next(factors) if name else 1.0
            if factor != 1.0:
                value = self.build.fmul(value, self.ir.Constant(self.double, factor))
            found.append(value)
        return found

    def _updated(self, step: Any, held: list[Any], gradient: list[Any]) -> list[Any]:
        rule, count = self.rule, len(self.wrt)
        tape = rule.tape
        self.tape, self.varies = tape, varying(tape)
        single = held[count * len(self.arrays) :]
        rate = self.get(self.field["rates"], step, self.double)
        of_all = dict(zip(rule.scalars, (rate, *single), strict=True))
        shared = self.leaves(scalar=lambda leaf: of_all[leaf.name])
        self.instructions(shared, varying=False)
        outputs = [tape.outputs[name] for name in rule.after]
        moved, rest = outputs[: len(self.arrays)], outputs[len(self.arrays) :]
        after: list[list[Any]] = [[] for _ in self.arrays]
        for k in range(count):
            own = [held[k], gradient[k], *(held[a * count + k] for a in range(1, len(after)))]
            known = dict(zip(rule.columns, own, strict=True))
            here = shared | {i: known[f.name] for i, f in enumerate(tape.leaves) if f.name in known}
            self.instructions(here, varying=True)
            for part, output in zip(after, moved, strict=True):
                part.append(here[output])
        return [value for part in after for value in part] + [shared[o] for o in rest]
