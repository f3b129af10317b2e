"""LLVM code of the fused kernels of a tape with arrays.

A kernel iterates over the samples and, within a sample, over the elements, one vector at a time.
The result of a reduction over the elements is available after the loop, to a further loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from cgprimer.backends.cpu.function_emitter import FunctionEmitter
from cgprimer.backends.cpu.llvm_library import get_target_processor
from cgprimer.backends.cpu.primitive_ir import PrimitiveEmitter
from cgprimer.backends.cpu.straight_line import FLAGS
from cgprimer.backends.cpu.vector_ir import (
    Ir,
    count_lanes,
    splat_constant,
    vectorize_type_like,
)
from cgprimer.backends.plans.array_plan import ArrayPlan, FusedKernel
from cgprimer.core.language.syntax_tree import operator_name


def generate_kernels(plan: ArrayPlan, dtype: str) -> str:
    """Generate the LLVM IR of a module with one function per fused kernel of a plan.

    The functions are called ``kernel0``, ``kernel1``, ... Their arguments are the addresses of the
    arrays that the kernel reads and writes, and a range of samples. Sums over the samples are in
    double precision, and are incremented.
    """
    from llvmlite import ir

    module, lanes = ir.Module("arrays"), get_target_processor().count_lanes(dtype)
    scalars, vectors, wide_vectors = (
        PrimitiveEmitter(module, dtype, n, flags=FLAGS) for n in (1, lanes, 2 * lanes)
    )
    kernels = [step for step in plan.steps if isinstance(step, FusedKernel)]
    for number, kernel in enumerate(kernels):
        sizes = {plan.sizes[i] for i in (*kernel.levels, *kernel.reads)} - {1}
        # Two vectors at a time, for instruction-level parallelism, if no elements remain.
        wide = lanes > 1 and all(size % (2 * lanes) == 0 for size in sizes)
        emitter = wide_vectors if wide else vectors
        _KernelEmitter(f"kernel{number}", plan, kernel, scalars, emitter)
    return str(module)


class _KernelEmitter(FunctionEmitter):
    """Emitter of the LLVM function of a fused kernel.

    Args:
        name: name of the function.
        plan: the plan that contains the kernel.
        kernel: the kernel.
        scalars: code generator of primitives on scalars.
        vectors: code generator of primitives on vectors.
    """

    def __init__(
        self,
        name: str,
        plan: ArrayPlan,
        kernel: FusedKernel,
        scalars: PrimitiveEmitter,
        vectors: PrimitiveEmitter,
    ) -> None:
        from llvmlite import ir

        i64 = ir.IntType(64)
        function_type = ir.FunctionType(ir.VoidType(), [ir.PointerType(), i64, i64])
        super().__init__(ir.Function(scalars.module, function_type, name))
        self.plan, self.kernel, self.scalars, self.vectors = plan, kernel, scalars, vectors
        self.scalar_type, self.vector_type = scalars.format.scalar_type, vectors.type
        self.sum_type, self.lanes = vectorize_type_like(self.double, vectors.type), vectors.width
        table, begin, end = self.function.args
        self.addresses: dict[int, Ir] = {}
        for number, index in enumerate((*kernel.reads, *kernel.writes)):
            self.addresses[index] = self.load_element(table, number, self.pointer)
        self.uniforms: dict[int, Ir] = {}  # loaded uniform scalars
        for index in kernel.reads:
            if not plan.varies[index] and plan.sizes[index] == 1:
                self.uniforms[index] = self._load_scalar(index, 0)
        if kernel.flat:
            size = self.make_i64(kernel.flat)
            self._emit_flat_loop(self.builder.mul(begin, size), self.builder.mul(end, size))
        else:
            self.emit_loop(end, 1, self._emit_sample, begin=begin)
        self.builder.ret_void()

    # --- one loop over the elements of all samples -----------------------------------------------

    def _emit_flat_loop(self, begin: Ir, end: Ir) -> None:
        """Emit a single loop over the elements of all samples; it can sum over samples."""
        kernel = self.kernel
        sums = [i for i in kernel.levels if self._get_operation(i) == "batch_sum"]
        uniforms = {i: self.broadcast(value, self.lanes) for i, value in self.uniforms.items()}

        def emit_vector(position: Ir, mask: Ir, state: list[Ir]) -> list[Ir]:
            """Emit the loop body for one vector of elements."""
            values, totals = dict(uniforms), dict(zip(sums, state, strict=True))
            for i in kernel.reads:
                if i not in values:
                    values[i] = self._load_vector(self._get_element_address(i, position), mask)
            for i in kernel.levels:
                if i in totals:
                    value = self._replace_inactive_lanes(
                        self._get_operands(i, values, self.vectors)[0], mask, 0.0
                    )
                    totals[i] = self.builder.fadd(totals[i], self._convert_to_double(value))
                    continue
                values[i] = self._emit_instruction(i, values, self.vectors)
                if i in kernel.writes:
                    self._store_vector(values[i], self._get_element_address(i, position), mask)
            return list(totals.values())

        zeros = [self.ir.Constant(self.sum_type, None)] * len(sums)
        for i, total in zip(
            sums, self._emit_vector_loop(begin, end, zeros, emit_vector), strict=True
        ):
            self.add_to_sum(self._reduce_lanes("add", total), self.addresses[i], self.double)

    # --- one sample after the other --------------------------------------------------------------

    def _emit_sample(self, sample: Ir) -> None:
        """Emit the instructions of the fused kernel for one sample."""
        plan, levels = self.plan, self.kernel.levels
        scalars = dict(self.uniforms)
        for i in self.kernel.reads:
            if plan.sizes[i] == 1 and plan.varies[i]:
                scalars[i] = self._load_scalar(i, sample)
        for level in sorted(set(levels.values())):
            loops: dict[int, list[int]] = {}
            for i in (i for i, value_level in levels.items() if value_level == level):
                size = self._get_loop_size(i)
                if size > 1:
                    loops.setdefault(size, []).append(i)
                elif self._get_operation(i) == "batch_sum":
                    (operand,) = self._get_operands(i, scalars, self.scalars)
                    self.add_to_sum(operand, self.addresses[i], self.double)
                else:
                    scalars[i] = self._emit_instruction(i, scalars, self.scalars)
                    if i in self.kernel.writes:
                        self.store_element(scalars[i], self.addresses[i], sample)
            for size, values in loops.items():
                self._emit_element_loop(sample, size, values, scalars)

    def _get_loop_size(self, index: int) -> int:
        """Return the number of elements that an instruction iterates over.

        A reduction iterates over its operand, every other instruction over its result.
        """
        sizes, plan = self.plan.sizes, self.plan
        return sizes[plan.operands(index)[0]] if plan.is_sample_reduction(index) else sizes[index]

    def _emit_element_loop(
        self, sample: Ir, size: int, values: list[int], scalars: dict[int, Ir]
    ) -> None:
        """Emit a loop over the elements of a sample, including reductions over the elements."""
        plan, kernel, builder = self.plan, self.kernel, self.builder
        reductions = [i for i in values if plan.is_sample_reduction(i)]
        operands = dict.fromkeys(
            o for i in values for o in plan.operand_storage(i) if o not in values
        )
        first_element = builder.mul(sample, self.make_i64(size))
        splats = {o: self.broadcast(scalars[o], self.lanes) for o in operands if o in scalars}
        arrays = [o for o in operands if o in self.addresses and o not in splats]

        def compute_address(index: int, offset: Ir) -> Ir:
            """Return the address of an element of the current sample."""
            if plan.varies[index] and self._get_operation(index) != "batch_sum":
                offset = builder.add(first_element, offset)
            return self._get_element_address(index, offset)

        def emit_vector(offset: Ir, mask: Ir, state: list[Ir]) -> list[Ir]:
            """Emit the loop body for one vector of elements."""
            vectors, totals = dict(splats), dict(zip(reductions, state, strict=True))
            vectors |= {o: self._load_vector(compute_address(o, offset), mask) for o in arrays}
            for i in values:
                if i in totals:
                    name, neutral = _REDUCTIONS[self._get_operation(i)]
                    value = self._replace_inactive_lanes(
                        self._get_operands(i, vectors, self.vectors)[0], mask, neutral
                    )
                    totals[i] = self.vectors.emit(builder, name, totals[i], value)
                elif self._get_operation(i) == "batch_sum":
                    increment = self._convert_to_double(
                        self._get_operands(i, vectors, self.vectors)[0]
                    )
                    address = self.get_address(self.addresses[i], offset, self.double)
                    previous = self._load_vector(address, mask, self.sum_type)
                    self._store_vector(builder.fadd(previous, increment), address, mask)
                else:
                    vectors[i] = self._emit_instruction(i, vectors, self.vectors)
                    if i in kernel.writes:
                        self._store_vector(vectors[i], compute_address(i, offset), mask)
            return list(totals.values())

        combinations = [_REDUCTIONS[self._get_operation(i)] for i in reductions]
        start = [splat_constant(self.vector_type, neutral) for _, neutral in combinations]
        ends = self._emit_vector_loop(
            self.make_i64(0), self.make_i64(size), start, emit_vector, size
        )
        for i, (name, _), total in zip(reductions, combinations, ends, strict=True):
            scalars[i] = self._reduce_lanes(name, total)
            if i in kernel.writes:
                self.store_element(scalars[i], self.addresses[i], sample)

    # --- loops and reductions --------------------------------------------------------------------

    def _emit_vector_loop(
        self,
        begin: Ir,
        end: Ir,
        state: list[Ir],
        emit_vector: Callable[[Ir, Ir, list[Ir]], list[Ir]],
        size: int = 0,
    ) -> list[Ir]:
        """Emit a vectorized loop, followed by a masked epilogue for the remaining elements.

        Args:
            begin, end: first element, and the end of the range.
            state: initial loop-carried values.
            emit_vector: emits the body for a position and a mask, which is None in full vectors.
            size: number of elements, or 0 if unknown.
        """
        builder, lanes = self.builder, self.lanes
        remainder = builder.srem(builder.sub(end, begin), self.make_i64(lanes))
        full_end = builder.sub(end, remainder)

        def emit_full_vector(position: Ir, carried: list[Ir]) -> list[Ir]:
            """Emit the loop body without a mask."""
            return emit_vector(position, None, carried)

        def emit_masked_vector(position: Ir, carried: list[Ir]) -> list[Ir]:
            """Emit the loop body with a mask for the remaining elements."""
            return emit_vector(position, mask, carried)

        if not 0 < size < lanes:
            state = self.emit_carried_loop(full_end, lanes, state, emit_full_vector, begin=begin)
        if lanes == 1 or (size and size % lanes == 0):
            return state
        mask = self.mask_first_lanes(remainder, lanes)
        return self.emit_carried_loop(end, lanes, state, emit_masked_vector, begin=full_end)

    def _reduce_lanes(self, name: str, value: Ir) -> Ir:
        """Reduce the lanes of a vector to a scalar with a primitive, by repeated halving."""
        lanes = count_lanes(value.type)
        if not lanes:
            return value
        while lanes > 1:
            lanes //= 2
            mask_type = self.ir.VectorType(self.i32, lanes)
            lower, upper = (
                self.builder.shuffle_vector(value, value, self.ir.Constant(mask_type, list(half)))
                for half in (range(lanes), range(lanes, 2 * lanes))
            )
            value = self.vectors.emit(self.builder, name, lower, upper)
        return self.builder.extract_element(value, self.ir.Constant(self.i32, 0))

    # --- instructions and operands ---------------------------------------------------------------

    def _get_operation(self, index: int) -> str:
        """Return the name of the operation that computes a value, or an empty string for a leaf."""
        return operator_name(self.plan.operation(index)) if index >= self.plan.first else ""

    def _get_operands(
        self, index: int, values: dict[int, Ir], emitter: PrimitiveEmitter
    ) -> list[Ir]:
        """Return the LLVM values of an instruction's operands; broadcast constants to vectors."""
        leaves, operands = self.plan.tape.leaves, []
        for o in self.plan.operand_storage(index):
            constant = o < len(leaves) and leaves[o].kind == "constant"
            operands.append(
                splat_constant(emitter.type, leaves[o].value) if constant else values[o]
            )
        return operands

    def _emit_instruction(self, index: int, values: dict[int, Ir], emitter: PrimitiveEmitter) -> Ir:
        """Emit an elementwise instruction of the tape."""
        operation = self._get_operation(index)
        name = "mul" if operation == "matmul" else operation
        return emitter.emit(self.builder, name, *self._get_operands(index, values, emitter))

    # --- elements --------------------------------------------------------------------------------

    def _get_element_address(self, index: int, position: Ir) -> Ir:
        """Return the address of an element of an array."""
        return self.get_address(self.addresses[index], position, self.scalar_type)

    def _load_scalar(self, index: int, position: Ir | int) -> Ir:
        """Load an element of an array."""
        return self.load_element(self.addresses[index], position, self.scalar_type)

    def _load_vector(self, address: Ir, mask: Ir, vector_type: Ir = None) -> Ir:
        """Load a vector; set the lanes that a mask deactivates to 1."""
        vector_type = vector_type or self.vector_type
        align = self._get_alignment(vector_type)
        if mask is None:
            return self.builder.load(address, typ=vector_type, align=align)
        ones = splat_constant(vector_type, 1.0)
        return self.load_masked(address, mask, otherwise=ones, align=align)

    def _store_vector(self, value: Ir, address: Ir, mask: Ir) -> None:
        """Store a vector, or only the lanes that a mask selects."""
        align = self._get_alignment(value.type)
        if mask is None:
            self.builder.store(value, address, align=align)
        else:
            self.store_masked(value, address, mask, align=align)

    def _get_alignment(self, vector_type: Ir) -> int:
        """Return the alignment of a vector in memory, which equals that of its elements."""
        return 8 if vector_type == self.sum_type else self.scalars.format.itemsize

    def _replace_inactive_lanes(self, value: Ir, mask: Ir, replacement: float) -> Ir:
        """Replace the lanes that a mask deactivates."""
        if mask is None:
            return value
        return self.builder.select(mask, value, splat_constant(value.type, replacement))

    def _convert_to_double(self, value: Ir) -> Ir:
        """Convert the lanes of a vector to double precision."""
        return value if value.type == self.sum_type else self.builder.fpext(value, self.sum_type)


_REDUCTIONS = {"sum": ("add", 0.0), "largest": ("max", -math.inf)}  # primitive, neutral element
