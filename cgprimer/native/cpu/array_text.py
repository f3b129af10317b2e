"""The kernels of a tape with arrays as LLVM code.

A kernel goes through the samples; within one, through its elements, a vector at a time. What it
adds up over the elements is known after that loop, and there may be another behind it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from cgprimer.native.cpu.lanes import declared, splat
from cgprimer.native.cpu.library import processor
from cgprimer.native.cpu.loop_text import Writer
from cgprimer.native.cpu.operations import Emitter
from cgprimer.native.cpu.straight_line import FLAGS
from cgprimer.native.plans.array_kernels import ArrayPlan, Kernel

Ir = Any


def kernels_text(plan: ArrayPlan, dtype: str) -> str:
    """A module with a function ``kernel0``, ``kernel1``, ... for each kernel of a plan.

    Its arguments are the addresses of what it reads and writes, and the first sample and the one
    behind the last. Sums over the samples, in double precision, are added to.
    """
    from llvmlite import ir

    module, lanes = ir.Module("arrays"), processor().lanes(dtype)
    one, many, more = (Emitter(module, dtype, n, flags=FLAGS) for n in (1, lanes, 2 * lanes))
    kernels = [step for step in plan.steps if isinstance(step, Kernel)]
    for number, kernel in enumerate(kernels):
        sizes = {plan.sizes[i] for i in (*kernel.values, *kernel.reads)} - {1}
        # Two vectors at a time keep the processor busier, if that leaves nothing over.
        twice = lanes > 1 and all(size % (2 * lanes) == 0 for size in sizes)
        _Kernel(f"kernel{number}", plan, kernel, one, more if twice else many)
    return str(module)


class _Kernel(Writer):
    def __init__(
        self, title: str, plan: ArrayPlan, kernel: Kernel, one: Emitter, many: Emitter
    ) -> None:
        from llvmlite import ir

        i64 = ir.IntType(64)
        kind = ir.FunctionType(ir.VoidType(), [ir.PointerType(), i64, i64])
        super().__init__(ir.Function(one.module, kind, title))
        self.plan, self.kernel, self.one, self.many = plan, kernel, one, many
        self.real, self.vector, self.lanes = one.format.scalar, many.type, many.width
        wide = ir.VectorType(self.double, self.lanes) if self.lanes > 1 else self.double
        self.wide = wide
        table, begin, end = self.function.args
        self.places: dict[int, Ir] = {}
        for number, index in enumerate((*kernel.reads, *kernel.writes)):
            self.places[index] = self.get(table, number, self.pointer)
        self.numbers: dict[int, Ir] = {}  # of one number: those that no sample changes
        for index in kernel.reads:
            if not plan.varies[index] and plan.sizes[index] == 1:
                self.numbers[index] = self.get(self.places[index], 0, self.real)
        if kernel.flat:
            size = self.number(kernel.flat)
            self._flat(self.build.mul(begin, size), self.build.mul(end, size))
        else:
            self.loop(end, 1, self._sample, begin=begin)
        self.build.ret_void()

    # --- one loop over the elements of all samples -----------------------------------------------

    def _flat(self, begin: Ir, end: Ir) -> None:
        kernel = self.kernel
        sums = [i for i in kernel.values if self._kind(i) == "batch_sum"]
        known = {i: self.splat(value, self.lanes) for i, value in self.numbers.items()}

        def body(place: Ir, inside: Ir, state: list[Ir]) -> list[Ir]:
            here, totals = dict(known), dict(zip(sums, state, strict=True))
            for i in kernel.reads:
                if i not in here:
                    here[i] = self._load(self.at(self.places[i], place, self.real), inside)
            for i in kernel.values:
                if i in totals:
                    value = self._kept(self._operand(i, here, self.many), inside, 0.0)
                    totals[i] = self.build.fadd(totals[i], self._wider(value, self.wide))
                    continue
                here[i] = self._applied(i, here, self.many)
                if i in kernel.writes:
                    self._store(here[i], self.at(self.places[i], place, self.real), inside)
            return list(totals.values())

        zeros = [self.ir.Constant(self.wide, None)] * len(sums)
        for i, total in zip(sums, self._through(begin, end, zeros, body), strict=True):
            self._add(self._together("add", total), self.places[i])

    # --- sample after sample ---------------------------------------------------------------------

    def _sample(self, sample: Ir) -> None:
        plan, levels = self.plan, self.kernel.values
        numbers = dict(self.numbers)
        for i in self.kernel.reads:
            if plan.sizes[i] == 1 and plan.varies[i]:
                numbers[i] = self.get(self.places[i], sample, self.real)
        for level in sorted(set(levels.values())):
            loops: dict[int, list[int]] = {}
            for i in (i for i, own in levels.items() if own == level):
                size = self._loop_size(i)
                if size > 1:
                    loops.setdefault(size, []).append(i)
                elif self._kind(i) == "batch_sum":
                    value = self._operand(i, numbers, self.one)
                    self._add(self._wider(value, self.double), self.places[i])
                else:
                    numbers[i] = self._applied(i, numbers, self.one)
                    if i in self.kernel.writes:
                        self.put(numbers[i], self.places[i], sample)
            for size, values in loops.items():
                self._elements(sample, size, values, numbers)

    def _loop_size(self, index: int) -> int:
        """Of a fold the size of what it goes through, of others their own."""
        sizes, plan = self.plan.sizes, self.plan
        return sizes[plan.operands(index)[0]] if plan.folds(index) else sizes[index]

    def _elements(self, sample: Ir, size: int, values: list[int], numbers: dict[int, Ir]) -> None:
        """A loop over the elements of a sample; adds what is known after it to the numbers."""
        plan, kernel, build = self.plan, self.kernel, self.build
        folds = [i for i in values if plan.folds(i)]
        used = dict.fromkeys(o for i in values for o in plan.used(i) if o not in values)
        known, base = {}, build.mul(sample, self.number(size))
        for o in used:
            if o in numbers:
                known[o] = self.splat(numbers[o], self.lanes)
        arrays = [o for o in used if o in self.places and o not in known]

        def at(index: int, place: Ir) -> Ir:
            if plan.varies[index] and self._kind(index) != "batch_sum":
                place = build.add(base, place)
            return self.at(self.places[index], place, self.real)

        def body(place: Ir, inside: Ir, state: list[Ir]) -> list[Ir]:
            here, totals = dict(known), dict(zip(folds, state, strict=True))
            here |= {o: self._load(at(o, place), inside) for o in arrays}
            for i in values:
                if i in totals:
                    value = self._operand(i, here, self.many)
                    name, nothing = _FOLDS[self._kind(i)]
                    value = self._kept(value, inside, nothing)
                    totals[i] = self.many.apply(build, name, totals[i], value)
                elif self._kind(i) == "batch_sum":
                    more = self._wider(self._operand(i, here, self.many), self.wide)
                    there = self.at(self.places[i], place, self.double)
                    before = self._load(there, inside, self.double)
                    self._store(build.fadd(before, more), there, inside)
                else:
                    here[i] = self._applied(i, here, self.many)
                    if i in kernel.writes:
                        self._store(here[i], at(i, place), inside)
            return list(totals.values())

        start = [splat(self.vector, _FOLDS[self._kind(i)][1]) for i in folds]
        ends = self._through(self.number(0), self.number(size), start, body, size)
        for i, total in zip(folds, ends, strict=True):
            numbers[i] = self._together(_FOLDS[self._kind(i)][0], total)
            if i in kernel.writes:
                self.put(numbers[i], self.places[i], sample)

    # --- parts -----------------------------------------------------------------------------------

    def _through(
        self, begin: Ir, end: Ir, state: list[Ir], body: Callable[..., list[Ir]], size: int = 0
    ) -> list[Ir]:
        """A loop, a vector at a time; the last elements in a vector that is not full."""
        build, step = self.build, self.number(self.lanes)
        rest = build.srem(build.sub(end, begin), step)
        whole = build.sub(end, rest)
        if not 0 < size < self.lanes:
            state = self.fold(
                whole, self.lanes, state, lambda place, held: body(place, None, held), begin=begin
            )
        if self.lanes == 1 or (size and size % self.lanes == 0):
            return state
        inside = self.first(rest, self.lanes)
        return self.fold(
            end, self.lanes, state, lambda place, held: body(place, inside, held), begin=whole
        )

    def _kind(self, index: int) -> str:
        name = self.plan.name(index) if index >= self.plan.first else ""
        return getattr(name, "kind", name)

    def _operand(self, index: int, known: dict[int, Ir], emitter: Emitter) -> Ir:
        return self._operands(index, known, emitter)[0]

    def _operands(self, index: int, known: dict[int, Ir], emitter: Emitter) -> list[Ir]:
        leaves, found = self.plan.tape.leaves, []
        for o in self.plan.used(index):
            constant = o < len(leaves) and leaves[o].kind == "constant"
            found.append(splat(emitter.type, leaves[o].value) if constant else known[o])
        return found

    def _applied(self, index: int, known: dict[int, Ir], emitter: Emitter) -> Ir:
        kind = self._kind(index)
        name = "mul" if kind == "matmul" else kind
        return emitter.apply(self.build, name, *self._operands(index, known, emitter))

    def _wider(self, value: Ir, kind: Ir) -> Ir:
        return value if value.type == kind else self.build.fpext(value, kind)

    def _kept(self, value: Ir, inside: Ir, otherwise: float) -> Ir:
        """A vector with another number where there are no elements."""
        if inside is None:
            return value
        return self.build.select(inside, value, splat(value.type, otherwise))

    def _add(self, value: Ir, place: Ir) -> None:
        self.put(self.build.fadd(self.get(place, 0, self.double), value), place, 0)

    def _together(self, name: str, value: Ir) -> Ir:
        """All numbers of a vector as one: half and half, and again."""
        count = getattr(value.type, "count", 1)
        while count > 1:
            count //= 2
            lower, upper = (
                self.build.shuffle_vector(
                    value, value, self.ir.Constant(self.ir.VectorType(self.i32, count), list(part))
                )
                for part in (range(count), range(count, 2 * count))
            )
            value = self.many.apply(self.build, name, lower, upper)
        return (
            self.build.extract_element(value, self.ir.Constant(self.i32, 0))
            if (hasattr(value.type, "count"))
            else value
        )

    def _load(self, place: Ir, inside: Ir, element: Ir = None) -> Ir:
        kind = self.vector if element is None else self.wide
        align = 8 if kind == self.wide else self.one.format.bits // 8
        if inside is None:
            return self.build.load(place, typ=kind, align=align)
        return self._masked("load", kind, kind, place, self._align(align), inside, splat(kind, 1.0))

    def _store(self, value: Ir, place: Ir, inside: Ir) -> None:
        align = 8 if value.type == self.wide else self.one.format.bits // 8
        if inside is None:
            self.build.store(value, place, align=align)
        else:
            nothing = self.ir.VoidType()
            self._masked("store", nothing, value.type, value, place, self._align(align), inside)

    def _align(self, number: int) -> Ir:
        return self.ir.Constant(self.i32, number)

    def _masked(self, name: str, result: Ir, vector: Ir, *operands: Ir) -> Ir:
        letter = f"v{vector.count}f{64 if vector == self.wide else self.one.format.bits}"
        kinds = [operand.type for operand in operands]
        called = declared(self.function.module, f"llvm.masked.{name}.{letter}.p0", result, kinds)
        return self.build.call(called, operands)


_FOLDS = {"sum": ("add", 0.0), "largest": ("max", -math.inf)}
