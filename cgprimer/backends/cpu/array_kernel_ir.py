"""LLVM code of the fused kernels of a tape with arrays.

A kernel iterates over the samples and, within a sample, over the elements, one vector at a time.
The result of a reduction over the elements is available after the loop, to a further loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from cgprimer.backends.cpu.function_emitter import FunctionEmitter
from cgprimer.backends.cpu.llvm_library import get_target_processor
from cgprimer.backends.cpu.primitive_ir import PrimitiveEmitter
from cgprimer.backends.cpu.straight_line import FLAGS
from cgprimer.backends.cpu.vector_ir import declare_function, splat_constant
from cgprimer.backends.plans.array_plan import ArrayPlan, FusedKernel
from cgprimer.core.language.syntax_tree import operator_name

Ir = Any


def kernels_source(plan: ArrayPlan, dtype: str) -> str:
    """Return a module with a function ``kernel0``, ``kernel1``, ... for each kernel of a plan.

    The arguments of the functions are the addresses of the arrays that the kernel reads and writes,
    and a range of samples. Sums over the samples are in double precision, and are incremented.
    """
    from llvmlite import ir

    module, lanes = ir.Module("arrays"), get_target_processor().count_lanes(dtype)
    one, many, more = (
        PrimitiveEmitter(module, dtype, n, flags=FLAGS) for n in (1, lanes, 2 * lanes)
    )
    kernels = [step for step in plan.steps if isinstance(step, FusedKernel)]
    for number, kernel in enumerate(kernels):
        sizes = {plan.sizes[i] for i in (*kernel.levels, *kernel.reads)} - {1}
        # Two vectors at a time, for instruction-level parallelism, if no elements remain.
        twice = lanes > 1 and all(size % (2 * lanes) == 0 for size in sizes)
        _KernelEmitter(f"kernel{number}", plan, kernel, one, more if twice else many)
    return str(module)


class _KernelEmitter(FunctionEmitter):
    def __init__(
        self,
        title: str,
        plan: ArrayPlan,
        kernel: FusedKernel,
        one: PrimitiveEmitter,
        many: PrimitiveEmitter,
    ) -> None:
        from llvmlite import ir

        i64 = ir.IntType(64)
        kind = ir.FunctionType(ir.VoidType(), [ir.PointerType(), i64, i64])
        super().__init__(ir.Function(one.module, kind, title))
        self.plan, self.kernel, self.one, self.many = plan, kernel, one, many
        self.real, self.vector, self.lanes = one.format.scalar_type, many.type, many.width
        wide = ir.VectorType(self.double, self.lanes) if self.lanes > 1 else self.double
        self.wide = wide
        table, begin, end = self.function.args
        self.addresses: dict[int, Ir] = {}
        for number, index in enumerate((*kernel.reads, *kernel.writes)):
            self.addresses[index] = self.load_element(table, number, self.pointer)
        self.scalars: dict[int, Ir] = {}  # loaded uniform scalars
        for index in kernel.reads:
            if not plan.varies[index] and plan.sizes[index] == 1:
                self.scalars[index] = self.load_element(self.addresses[index], 0, self.real)
        if kernel.flat:
            size = self.make_i64(kernel.flat)
            self._write_flat_loop(self.builder.mul(begin, size), self.builder.mul(end, size))
        else:
            self.emit_loop(end, 1, self._write_sample, begin=begin)
        self.builder.ret_void()

    # --- one loop over the elements of all samples -----------------------------------------------

    def _write_flat_loop(self, begin: Ir, end: Ir) -> None:
        kernel = self.kernel
        sums = [i for i in kernel.levels if self._operation(i) == "batch_sum"]
        uniform_vectors = {
            i: self.broadcast(value, self.lanes) for i, value in self.scalars.items()
        }

        def body(place: Ir, inside: Ir, state: list[Ir]) -> list[Ir]:
            values, totals = dict(uniform_vectors), dict(zip(sums, state, strict=True))
            for i in kernel.reads:
                if i not in values:
                    values[i] = self._load(
                        self.get_address(self.addresses[i], place, self.real), inside
                    )
            for i in kernel.levels:
                if i in totals:
                    value = self._mask(self._operand(i, values, self.many), inside, 0.0)
                    totals[i] = self.builder.fadd(totals[i], self._widen(value, self.wide))
                    continue
                values[i] = self._apply(i, values, self.many)
                if i in kernel.writes:
                    self._store(
                        values[i],
                        self.get_address(self.addresses[i], place, self.real),
                        inside,
                    )
            return list(totals.values())

        zeros = [self.ir.Constant(self.wide, None)] * len(sums)
        for i, total in zip(sums, self._vector_loop(begin, end, zeros, body), strict=True):
            self._add(self._reduce_lanes("add", total), self.addresses[i])

    # --- sample after sample ---------------------------------------------------------------------

    def _write_sample(self, sample: Ir) -> None:
        plan, levels = self.plan, self.kernel.levels
        scalars = dict(self.scalars)
        for i in self.kernel.reads:
            if plan.sizes[i] == 1 and plan.varies[i]:
                scalars[i] = self.load_element(self.addresses[i], sample, self.real)
        for level in sorted(set(levels.values())):
            loops: dict[int, list[int]] = {}
            for i in (i for i, value_level in levels.items() if value_level == level):
                size = self._loop_size(i)
                if size > 1:
                    loops.setdefault(size, []).append(i)
                elif self._operation(i) == "batch_sum":
                    value = self._operand(i, scalars, self.one)
                    self._add(self._widen(value, self.double), self.addresses[i])
                else:
                    scalars[i] = self._apply(i, scalars, self.one)
                    if i in self.kernel.writes:
                        self.store_element(scalars[i], self.addresses[i], sample)
            for size, values in loops.items():
                self._write_element_loop(sample, size, values, scalars)

    def _loop_size(self, index: int) -> int:
        """Return the loop length: for a reduction the size of its operand, else the value's
        size."""
        sizes, plan = self.plan.sizes, self.plan
        return sizes[plan.operands(index)[0]] if plan.is_sample_reduction(index) else sizes[index]

    def _write_element_loop(
        self, sample: Ir, size: int, values: list[int], scalars: dict[int, Ir]
    ) -> None:
        """Write a loop over the elements of a sample; add results of reductions to the scalars."""
        plan, kernel, builder = self.plan, self.kernel, self.builder
        reductions = [i for i in values if plan.is_sample_reduction(i)]
        used = dict.fromkeys(o for i in values for o in plan.operand_storage(i) if o not in values)
        uniform_vectors, base = {}, builder.mul(sample, self.make_i64(size))
        for o in used:
            if o in scalars:
                uniform_vectors[o] = self.broadcast(scalars[o], self.lanes)
        arrays = [o for o in used if o in self.addresses and o not in uniform_vectors]

        def at(index: int, offset: Ir) -> Ir:
            if plan.varies[index] and self._operation(index) != "batch_sum":
                offset = builder.add(base, offset)
            return self.get_address(self.addresses[index], offset, self.real)

        def body(offset: Ir, mask: Ir, state: list[Ir]) -> list[Ir]:
            values_at, totals = dict(uniform_vectors), dict(zip(reductions, state, strict=True))
            values_at |= {o: self._load(at(o, offset), mask) for o in arrays}
            for i in values:
                if i in totals:
                    value = self._operand(i, values_at, self.many)
                    name, neutral = _REDUCTIONS[self._operation(i)]
                    value = self._mask(value, mask, neutral)
                    totals[i] = self.many.emit(builder, name, totals[i], value)
                elif self._operation(i) == "batch_sum":
                    increment = self._widen(self._operand(i, values_at, self.many), self.wide)
                    address = self.get_address(self.addresses[i], offset, self.double)
                    previous = self._load(address, mask, self.double)
                    self._store(builder.fadd(previous, increment), address, mask)
                else:
                    values_at[i] = self._apply(i, values_at, self.many)
                    if i in kernel.writes:
                        self._store(values_at[i], at(i, offset), mask)
            return list(totals.values())

        start = [
            splat_constant(self.vector, _REDUCTIONS[self._operation(i)][1]) for i in reductions
        ]
        ends = self._vector_loop(self.make_i64(0), self.make_i64(size), start, body, size)
        for i, total in zip(reductions, ends, strict=True):
            scalars[i] = self._reduce_lanes(_REDUCTIONS[self._operation(i)][0], total)
            if i in kernel.writes:
                self.store_element(scalars[i], self.addresses[i], sample)

    # --- helpers ---------------------------------------------------------------------------------

    def _vector_loop(
        self, begin: Ir, end: Ir, state: list[Ir], body: Callable[..., list[Ir]], size: int = 0
    ) -> list[Ir]:
        """Write a loop over vectors; a masked vector holds the last elements."""
        builder, step = self.builder, self.make_i64(self.lanes)
        rest = builder.srem(builder.sub(end, begin), step)
        full_end = builder.sub(end, rest)
        if not 0 < size < self.lanes:
            state = self.emit_carried_loop(
                full_end,
                self.lanes,
                state,
                lambda place, carried: body(place, None, carried),
                begin=begin,
            )
        if self.lanes == 1 or (size and size % self.lanes == 0):
            return state
        inside = self.mask_first_lanes(rest, self.lanes)
        return self.emit_carried_loop(
            end,
            self.lanes,
            state,
            lambda place, carried: body(place, inside, carried),
            begin=full_end,
        )

    def _operation(self, index: int) -> str:
        name = self.plan.operation(index) if index >= self.plan.first else ""
        return operator_name(name)

    def _operand(self, index: int, values: dict[int, Ir], emitter: PrimitiveEmitter) -> Ir:
        return self._operands(index, values, emitter)[0]

    def _operands(self, index: int, values: dict[int, Ir], emitter: PrimitiveEmitter) -> list[Ir]:
        leaves, operands = self.plan.tape.leaves, []
        for o in self.plan.operand_storage(index):
            constant = o < len(leaves) and leaves[o].kind == "constant"
            operands.append(
                splat_constant(emitter.type, leaves[o].value) if constant else values[o]
            )
        return operands

    def _apply(self, index: int, values: dict[int, Ir], emitter: PrimitiveEmitter) -> Ir:
        kind = self._operation(index)
        name = "mul" if kind == "matmul" else kind
        return emitter.emit(self.builder, name, *self._operands(index, values, emitter))

    def _widen(self, value: Ir, kind: Ir) -> Ir:
        return value if value.type == kind else self.builder.fpext(value, kind)

    def _mask(self, value: Ir, inside: Ir, otherwise: float) -> Ir:
        """Replace the lanes beyond the last element."""
        if inside is None:
            return value
        return self.builder.select(inside, value, splat_constant(value.type, otherwise))

    def _add(self, value: Ir, place: Ir) -> None:
        self.store_element(
            self.builder.fadd(self.load_element(place, 0, self.double), value), place, 0
        )

    def _reduce_lanes(self, name: str, value: Ir) -> Ir:
        """Reduce all lanes of a vector to a scalar, by repeated halving."""
        count = getattr(value.type, "count", 1)
        while count > 1:
            count //= 2
            lower, upper = (
                self.builder.shuffle_vector(
                    value, value, self.ir.Constant(self.ir.VectorType(self.i32, count), list(part))
                )
                for part in (range(count), range(count, 2 * count))
            )
            value = self.many.emit(self.builder, name, lower, upper)
        return (
            self.builder.extract_element(value, self.ir.Constant(self.i32, 0))
            if (hasattr(value.type, "count"))
            else value
        )

    def _load(self, place: Ir, inside: Ir, element: Ir = None) -> Ir:
        kind = self.vector if element is None else self.wide
        align = 8 if kind == self.wide else self.one.format.bits // 8
        if inside is None:
            return self.builder.load(place, typ=kind, align=align)
        return self._masked_call(
            "load", kind, kind, place, self._alignment(align), inside, splat_constant(kind, 1.0)
        )

    def _store(self, value: Ir, place: Ir, inside: Ir) -> None:
        align = 8 if value.type == self.wide else self.one.format.bits // 8
        if inside is None:
            self.builder.store(value, place, align=align)
        else:
            nothing = self.ir.VoidType()
            self._masked_call(
                "store", nothing, value.type, value, place, self._alignment(align), inside
            )

    def _alignment(self, number: int) -> Ir:
        return self.ir.Constant(self.i32, number)

    def _masked_call(self, name: str, result: Ir, vector: Ir, *operands: Ir) -> Ir:
        letter = f"v{vector.count}f{64 if vector == self.wide else self.one.format.bits}"
        kinds = [operand.type for operand in operands]
        intrinsic = declare_function(
            self.function.module, f"llvm.masked.{name}.{letter}.p0", result, kinds
        )
        return self.builder.call(intrinsic, operands)


_REDUCTIONS = {"sum": ("add", 0.0), "largest": ("max", -math.inf)}
