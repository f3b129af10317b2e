"""Small tapes as straight-line machine code: one loop over the samples, every value in a register.

The tape's instructions become LLVM instructions on vectors, a lane per sample. What does not vary
with the sample is computed before the loop; sums are kept lane by lane, in the precision of the
computation over a tile of samples and in double precision over the tiles.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from cgprimer.core.engines import Array, Reduction
from cgprimer.core.tape.passes import varying
from cgprimer.core.tape.tape import Leaf, Tape
from cgprimer.garbage_collection import collector_paused
from cgprimer.native.cpu.executable import Call, Executable
from cgprimer.native.cpu.lanes import declared, splat
from cgprimer.native.cpu.library import Library, processor
from cgprimer.native.cpu.loop_text import Writer
from cgprimer.native.cpu.operations import Emitter
from cgprimer.native.plans.constant_factors import constant_factors
from cgprimer.native.programs import fingerprint

TILE = 512  # vectors whose sum is taken before it is added to the total
# A product and a sum may become one operation. The other liberties of fast arithmetic would change
# signs of zero (and so infinities), or hide nan.
FLAGS = ("contract",)
_SMALL = 64  # instructions: below, two vectors at a time keep the processor busier than one


class Fused(Executable):
    """A small tape, optimized, of primitives that LLVM can do, as machine code.

    ``batch`` is how many samples it will be run on, or 0: for few there are no vectors.
    """

    def __init__(self, tape: Tape, *, reduction: Reduction, dtype: str, batch: int = 0) -> None:
        self.sums = reduction == "sum"
        factors = dict.fromkeys(tape.outputs, 1.0)
        if self.sums:
            tape, factors = constant_factors(tape)
        self.factors = np.array(list(factors.values()))
        self.tape, self.dtype, self.operations = tape, np.dtype(dtype), max(8, len(tape))
        self.lanes = self.unit = lanes = lanes_for(tape, dtype, batch)
        key = f"{fingerprint(tape)} {reduction} {dtype} {lanes}"
        text = partial(module_text, tape, sums=self.sums, dtype=dtype, lanes=lanes)
        with collector_paused():
            self.library = Library("straight-line", key, text)
        self.function = self.library.address("run")
        self.varying, self.unvarying = order_of(tape)
        place = {value: k for k, value in enumerate((*self.varying, *self.unvarying))}
        self.reads = np.array([place[value] for value in tape.outputs.values()], np.int64)
        self.outputs, self.count = tuple(tape.outputs), len(self.varying)
        self.columns, self.scalars = tape.of_kind("column"), tape.of_kind("scalar")
        self.size = len(self.scalars) + len(self.unvarying)
        self.fixed = np.arange(len(self.scalars), self.size)

    def calls(
        self, columns: Array, written: Array, table: Array, begin: int, end: int
    ) -> tuple[list[Call], Any]:
        """One call: nothing is to be prepared."""
        places = [array.ctypes.data for array in (columns, written, table)]
        return [(*places, begin, end, written.shape[1])], None


def lanes_for(tape: Tape, dtype: str, batch: int = 0) -> int:
    """How many samples are computed side by side."""
    lanes = processor().lanes(dtype)
    if batch:
        return lanes if batch >= lanes else 1
    return 2 * lanes if len(tape) <= _SMALL and lanes > 1 else lanes


def order_of(tape: Tape) -> tuple[list[int], list[int]]:
    """The values that are written, each once: those that vary with the sample, and the others."""
    varies, values = varying(tape), dict.fromkeys(tape.outputs.values())
    return [i for i in values if varies[i]], [i for i in values if not varies[i]]


def module_text(tape: Tape, *, sums: bool, dtype: str, lanes: int) -> str:
    """The LLVM module of a tape: ``vectors``, and ``run`` for any number of samples."""
    from llvmlite import ir

    emitter = Emitter(ir.Module("straight_line"), dtype, lanes, flags=FLAGS)
    _Run(Vectors(emitter, tape, sums).function, emitter, tape, sums)
    return str(emitter.module)


class TapeWriter(Writer):
    """A function in which the instructions of a tape stand."""

    def __init__(self, function: Any, tape: Tape, emitter: Emitter) -> None:
        super().__init__(function)
        self.tape, self.emitter, self.module = tape, emitter, emitter.module
        self.varies = varying(tape)

    def leaves(self, **read: Callable[[Leaf], Any]) -> dict[int, Any]:
        """The constants, and the leaves of those kinds that are told how to read them."""
        read["constant"] = lambda leaf: splat(self.emitter.type, leaf.value)
        known = enumerate(self.tape.leaves)
        return {i: read[leaf.kind](leaf) for i, leaf in known if leaf.kind in read}

    def instructions(self, values: dict[int, Any], *, varying: bool) -> None:
        """Write those that vary with the sample, or those that do not; adds their values."""
        first, apply = len(self.tape.leaves), self.emitter.apply
        for position, (name, operands) in enumerate(self.tape.instructions):
            if self.varies[first + position] == varying:
                values[first + position] = apply(self.build, name, *[values[o] for o in operands])


class Vectors(TapeWriter):
    """A function ``vectors(columns, results, table, begin, end, stride)`` of the emitter's module.

    Its arguments are the columns' addresses; where to write (sums: for each varying output as many
    doubles as the emitter is wide, which are added to; else its values), ``stride`` numbers from
    one output to the next; the scalars, behind which the outputs that do not vary are written; and
    a range of samples, a multiple of that width long.
    """

    def __init__(self, emitter: Emitter, tape: Tape, sums: bool) -> None:
        from llvmlite import ir

        i64 = ir.IntType(64)
        kind = ir.FunctionType(ir.VoidType(), [ir.PointerType()] * 3 + [i64] * 3)
        super().__init__(ir.Function(emitter.module, kind, "vectors"), tape, emitter)
        for argument in self.function.args[:3]:
            argument.add_attribute("noalias")
        self.sums, self.lanes = sums, emitter.width
        self.real, self.vector = emitter.format.scalar, emitter.type
        self.size = emitter.format.bits // 8
        self.wide = ir.VectorType(self.double, self.lanes) if self.lanes > 1 else self.double
        self.written, self.fixed = order_of(tape)
        self._write()

    def _write(self) -> None:
        build = self.build
        columns, results, table, begin, end, stride = self.function.args
        column, scalar = count(), count()
        values = self.leaves(
            scalar=lambda _: self.splat(self.get(table, next(scalar), self.real), self.lanes),
            column=lambda _: self.get(columns, next(column), self.pointer),
        )
        self.instructions(values, varying=False)
        kind = self.double if self.sums else self.real
        places = (build.mul(stride, self.number(k)) for k in range(len(self.written)))
        pointers = [self.at(results, place, kind) for place in places]
        for number, index in enumerate(self.fixed, len(self.tape.of_kind("scalar"))):
            lane = values[index]
            if self.lanes > 1:
                lane = build.extract_element(lane, self.ir.Constant(self.i32, 0))
            self.put(lane, table, number)

        def tile(start: Any) -> None:
            limit = build.add(start, self.number(TILE * self.lanes))
            limit = build.select(build.icmp_signed("<", limit, end), limit, end)
            zeros = [self.ir.Constant(self.vector, None)] * len(self.written)
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
        found = [here[index] for index in self.written]
        if self.sums:
            both = zip(totals, found, strict=True)
            return [build.fadd(total, new, flags=FLAGS) for total, new in both]
        for pointer, value in zip(pointers, found, strict=True):
            build.store(value, self.at(pointer, sample, self.real), align=self.size)
        return []


class _Run(Writer):
    """``run``: as ``vectors``, over a range of any length; its last samples are filled up."""

    def __init__(self, vectors: Any, emitter: Emitter, tape: Tape, sums: bool) -> None:
        from llvmlite import ir

        super().__init__(ir.Function(emitter.module, vectors.ftype, "run"))
        for attribute in ("optnone", "noinline"):  # compiled in half the time; it runs once a call
            self.function.attributes.add(attribute)
        build, real, lanes = self.build, emitter.format.scalar, emitter.width
        columns, results, table, begin, end, stride = self.function.args
        width, kind = self.number(lanes), self.double if sums else real
        rest = build.srem(build.sub(end, begin), width)
        whole = build.sub(end, rest)
        build.call(vectors, [columns, results, table, begin, whole, stride])
        given, written = len(tape.of_kind("column")), len(order_of(tape)[0])
        filled = build.alloca(emitter.type, size=max(1, given))
        places = build.alloca(self.pointer, size=max(1, given))
        vector = ir.VectorType(kind, lanes)
        ends = build.alloca(vector, size=max(1, written))
        inside, align = self.first(rest, lanes), ir.Constant(self.i32, emitter.format.bits // 8)

        def masked(name: str, result: Any, *operands: Any) -> Any:
            kinds = [operand.type for operand in operands]
            letter = f"v{lanes}f{64 if sums and name == 'store' else emitter.format.bits}"
            title = f"llvm.masked.{name}.{letter}.p0"
            return build.call(declared(self.function.module, title, result, kinds), operands)

        def fill(number: Any) -> None:  # unread lanes compute on ordinary numbers
            source = self.at(self.get(columns, number, self.pointer), whole, real)
            ones = splat(emitter.type, 1.0)
            value = masked("load", emitter.type, source, align, inside, ones)
            self.put(value, filled, number)
            self.put(self.at(filled, number, emitter.type), places, number)

        def give(number: Any) -> None:
            place = build.mul(number, stride)
            target = self.at(results, place if sums else build.add(place, whole), kind)
            value = self.get(ends, number, vector)
            if sums:
                value = build.fadd(build.load(target, typ=vector, align=8), value)
            masked("store", ir.VoidType(), value, target, align, inside)

        def last(_: Any) -> None:
            self.loop(given, 1, fill)
            self.loop(written, 1, lambda k: self.put(ir.Constant(vector, None), ends, k))
            build.call(vectors, [places, ends, table, self.number(0), width, width])
            self.loop(written, 1, give)

        if lanes > 1:
            self.loop(rest, lanes, last)  # once at most
        build.ret_void()
