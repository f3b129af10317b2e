"""Small tapes as straight-line machine code: one loop over the samples, every value in a register.

The tape's instructions become LLVM instructions on vectors, a lane per sample. What does not vary
with the sample is computed before the loop; sums are kept lane by lane, in the precision of the
computation over a tile of samples and in double precision over the tiles.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from cgprimer.core.tape.tape import Tape
from cgprimer.native.cpu.loop_text import Writer
from cgprimer.native.cpu.operations import Emitter
from cgprimer.native.plans.plan import varying

TILE = 512  # vectors whose sum is taken before it is added to the total
# A product and a sum may become one operation. The other liberties of fast arithmetic would change
# signs of zero (and so infinities), or hide nan.
FLAGS = ("contract",)


class Order(NamedTuple):
    """The values that ``run`` writes: those that vary with the sample, and those that do not."""

    varying: tuple[int, ...]
    fixed: tuple[int, ...]


def order_of(tape: Tape) -> Order:
    """Each output's value once, in the order of ``run``."""
    varies = varying(tape)
    values = dict.fromkeys(tape.outputs.values())
    return Order(tuple(i for i in values if varies[i]), tuple(i for i in values if not varies[i]))


def module_text(tape: Tape, *, sums: bool, dtype: str, lanes: int) -> str:
    """The LLVM module of a tape, with one function ``run``: see :func:`write_run`."""
    from llvmlite import ir

    emitter = Emitter(ir.Module("straight_line"), dtype, lanes, flags=FLAGS)
    write_run(emitter, "run", tape, sums=sums)
    return str(emitter.module)


def write_run(emitter: Emitter, name: str, tape: Tape, *, sums: bool) -> Any:
    """A function ``name(columns, results, scalars, begin, end)`` of the emitter's module.

    Its arguments are addresses of the columns, of what is written (sums: for each varying output
    as many doubles as the emitter is wide, which are added to; else the outputs' arrays; last, an
    array for the outputs that do not vary), the scalars, and a range of samples, a multiple of
    that width long.
    """
    return _StraightLine(emitter, name, tape, sums).function


class TapeWriter(Writer):
    """A function in which the instructions of a tape stand.

    Args:
        function: llvmlite's, without blocks.
        tape: whose instructions they are.
        emitter: of the module.
    """

    def __init__(self, function: Any, tape: Tape, emitter: Emitter) -> None:
        super().__init__(function)
        self.tape, self.emitter = tape, emitter
        self.varies = varying(tape)

    def instructions(self, values: dict[int, Any], *, varying: bool) -> None:
        """Write those that vary with the sample, or those that do not; adds their values."""
        first, apply = len(self.tape.leaves), self.emitter.apply
        for position, (name, operands) in enumerate(self.tape.instructions):
            if self.varies[first + position] == varying:
                values[first + position] = apply(self.build, name, *[values[o] for o in operands])


class _StraightLine(TapeWriter):
    def __init__(self, emitter: Emitter, name: str, tape: Tape, sums: bool) -> None:
        from llvmlite import ir

        kinds = [ir.PointerType()] * 3 + [ir.IntType(64)] * 2
        function = ir.Function(emitter.module, ir.FunctionType(ir.VoidType(), kinds), name)
        super().__init__(function, tape, emitter)
        for argument in self.function.args[:3]:
            argument.add_attribute("noalias")
        self.sums, self.lanes = sums, emitter.width
        self.real, self.vector = emitter.format.scalar, emitter.type
        self.size = emitter.format.bits // 8
        self.wide = ir.VectorType(self.double, self.lanes) if self.lanes > 1 else self.double
        self.order = order_of(tape)
        self._write()

    def _write(self) -> None:
        build = self.build
        columns, results, scalars, begin, end = self.function.args
        values: dict[int, Any] = {}
        self._leaves(columns, scalars, values)
        self.instructions(values, varying=False)
        pointers = [self.get(results, i, self.pointer) for i in range(len(self.order.varying) + 1)]
        for number, index in enumerate(self.order.fixed):
            lane = values[index]
            if self.lanes > 1:
                lane = build.extract_element(lane, self.ir.Constant(self.i32, 0))
            self.put(lane, pointers[-1], number)

        def tile(start: Any) -> None:
            limit = build.add(start, self.number(TILE * self.lanes))
            limit = build.select(build.icmp_signed("<", limit, end), limit, end)
            zeros = [self.ir.Constant(self.vector, None)] * len(self.order.varying)
            totals = self.fold(
                limit, self.lanes, zeros if self.sums else [],
                lambda sample, state: self._samples(sample, state, values, pointers),
                begin=start, once=True,
            )  # fmt: skip
            for pointer, total in zip(pointers, totals, strict=False):
                more = total if self.size == 8 else build.fpext(total, self.wide)
                known = build.load(pointer, typ=self.wide, align=8)
                build.store(build.fadd(known, more), pointer, align=8)

        self.loop(end, TILE * self.lanes, tile, begin=begin)
        build.ret_void()

    def _samples(
        self, sample: Any, totals: list[Any], values: dict[int, Any], pointers: list[Any]
    ) -> list[Any]:
        """A vector of samples: the new totals."""
        build, here = self.build, dict(values)
        for index, leaf in enumerate(self.tape.leaves):
            if leaf.kind == "column":
                place = self.at(values[index], sample, self.real)
                here[index] = build.load(place, typ=self.vector, align=self.size)
        self.instructions(here, varying=True)
        found = [here[index] for index in self.order.varying]
        if self.sums:
            return [
                build.fadd(total, new, flags=FLAGS)
                for total, new in zip(totals, found, strict=True)
            ]
        for pointer, value in zip(pointers, found, strict=False):
            build.store(value, self.at(pointer, sample, self.real), align=self.size)
        return []

    def _leaves(self, columns: Any, scalars: Any, values: dict[int, Any]) -> None:
        column = scalar = 0
        for index, leaf in enumerate(self.tape.leaves):
            if leaf.kind == "constant":
                one = self.ir.Constant(self.real, leaf.value)
                values[index] = (
                    one if self.lanes == 1 else self.ir.Constant(self.vector, [one] * self.lanes)
                )
            elif leaf.kind == "scalar":
                values[index] = self.splat(self.get(scalars, scalar, self.real), self.lanes)
                scalar += 1
            else:
                values[index] = self.get(columns, column, self.pointer)
                column += 1
