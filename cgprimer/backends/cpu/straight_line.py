"""Straight-line machine code for small tapes: one loop over the samples, values in registers.

The instructions of the tape become LLVM instructions on vectors, with one sample per lane. Uniform
values are computed before the loop. Each lane accumulates a partial sum: in the precision of the
computation within a tile of samples, and in double precision over the tiles.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from cgprimer.backends.cpu.cpu_executable import Call, CpuExecutable
from cgprimer.backends.cpu.function_emitter import FunctionEmitter
from cgprimer.backends.cpu.llvm_library import CompiledLibrary, get_target_processor
from cgprimer.backends.cpu.primitive_ir import PrimitiveEmitter
from cgprimer.backends.cpu.vector_ir import Ir, splat_constant, vectorize_type_like
from cgprimer.backends.interfaces import Array
from cgprimer.backends.plans.optimization import extract_constant_factors
from cgprimer.backends.program_cache import fingerprint_tape
from cgprimer.core.evaluation.engines import Reduction
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_dependencies import find_varying_values
from cgprimer.core.tape.tape_entries import Leaf
from cgprimer.support.garbage_collection import pause_garbage_collection

TILE = 512  # vectors per tile: a tile is summed before it is added to the total
# Allow fused multiply-add only: other fast-math flags change signs of zero (and thereby
# infinities), or ignore nan.
FLAGS = ("contract",)
_SMALL = 64  # instructions up to which two vectors are used at a time, to keep all units busy


class StraightLineExecutable(CpuExecutable):
    """A short optimized tape of supported primitives, compiled to straight-line code.

    Args:
        tape: the optimized tape.
        reduction: ``none``, or ``sum`` over the samples.
        dtype: ``float64`` or ``float32``.
        batch: number of samples per call, or 0 if unknown; small batches use no vectors.
    """

    def __init__(self, tape: Tape, *, reduction: Reduction, dtype: str, batch: int = 0) -> None:
        self.sums = reduction == "sum"
        factors = dict.fromkeys(tape.outputs, 1.0)
        if self.sums:
            tape, factors = extract_constant_factors(tape)
        self.factors = np.array(list(factors.values()))
        self.tape, self.dtype, self.operations = tape, np.dtype(dtype), max(8, len(tape))
        self.lanes = self.unit = lanes = choose_lane_count(tape, dtype, batch)
        key = f"{fingerprint_tape(tape)} {reduction} {dtype} {lanes}"
        generate = partial(generate_module, tape, sums=self.sums, dtype=dtype, lanes=lanes)
        with pause_garbage_collection():
            self.library = CompiledLibrary("straight-line", key, generate)
        self.function = self.library.get_address("run")
        self.varying, self.uniform_outputs = split_outputs(tape)
        slots = {value: k for k, value in enumerate((*self.varying, *self.uniform_outputs))}
        self.output_slots = np.array([slots[value] for value in tape.outputs.values()], np.int64)
        self.outputs, self.result_count = tuple(tape.outputs), len(self.varying)
        self.columns, self.scalars = tape.of_kind("column"), tape.of_kind("scalar")
        self.table_size = len(self.scalars) + len(self.uniform_outputs)
        self.uniform_slots = np.arange(len(self.scalars), self.table_size)

    def prepare_calls(
        self, columns: Array, results: Array, table: Array, begin: int, end: int
    ) -> tuple[list[Call], Any]:
        """Return the arguments of the single call to ``run`` for a range of samples."""
        addresses = [array.ctypes.data for array in (columns, results, table)]
        return [(*addresses, begin, end, results.shape[1])], None


def choose_lane_count(tape: Tape, dtype: str, batch: int = 0) -> int:
    """Choose the number of samples per vector for a tape."""
    lanes = get_target_processor().count_lanes(dtype)
    if batch:
        return lanes if batch >= lanes else 1
    return 2 * lanes if len(tape) <= _SMALL and lanes > 1 else lanes


def split_outputs(tape: Tape) -> tuple[list[int], list[int]]:
    """Split the outputs of a tape into values that vary with the sample and uniform values."""
    varies, values = find_varying_values(tape), dict.fromkeys(tape.outputs.values())
    return [i for i in values if varies[i]], [i for i in values if not varies[i]]


def generate_module(tape: Tape, *, sums: bool, dtype: str, lanes: int) -> str:
    """Generate the LLVM IR that evaluates a tape for any number of samples."""
    from llvmlite import ir

    emitter = PrimitiveEmitter(ir.Module("straight_line"), dtype, lanes, flags=FLAGS)
    vectors = VectorFunctionEmitter(emitter, tape, sums).function
    _RunFunctionEmitter(vectors, emitter, tape, sums)
    return str(emitter.module)


class TapeFunctionEmitter(FunctionEmitter):
    """Emitter of a function that contains the instructions of a tape."""

    def __init__(self, function: Ir, tape: Tape, emitter: PrimitiveEmitter) -> None:
        super().__init__(function)
        self.tape, self.emitter, self.module = tape, emitter, emitter.module
        self.varies = find_varying_values(tape)

    def emit_leaves(self, **load: Callable[[Leaf], Ir]) -> dict[int, Ir]:
        """Return the LLVM values of the constants, and of leaves with a given load function."""
        load["constant"] = lambda leaf: splat_constant(self.emitter.type, leaf.value)
        leaves = enumerate(self.tape.leaves)
        return {i: load[leaf.kind](leaf) for i, leaf in leaves if leaf.kind in load}

    def emit_instructions(self, values: dict[int, Ir], *, varying: bool) -> None:
        """Emit the per-sample instructions of the tape, or the sample-independent ones."""
        first, emit = len(self.tape.leaves), self.emitter.emit
        for index, (name, operands) in enumerate(self.tape.instructions, first):
            if self.varies[index] == varying:
                values[index] = emit(self.builder, str(name), *[values[o] for o in operands])


class VectorFunctionEmitter(TapeFunctionEmitter):
    """Emitter of the LLVM function ``vectors``, which evaluates a tape for full vectors.

    The arguments of the function are the addresses of the columns; the address of the results (for
    each varying output, either a vector of partial sums in double precision, which is incremented,
    or the values), with ``stride`` elements between outputs; the address of the scalars, behind
    which the uniform outputs are stored; and a range of samples whose length is a multiple of the
    vector width.
    """

    def __init__(self, emitter: PrimitiveEmitter, tape: Tape, sums: bool) -> None:
        from llvmlite import ir

        i64 = ir.IntType(64)
        function_type = ir.FunctionType(ir.VoidType(), [ir.PointerType()] * 3 + [i64] * 3)
        function = ir.Function(emitter.module, function_type, "vectors")
        super().__init__(function, tape, emitter)
        for argument in self.function.args[:3]:
            argument.add_attribute("noalias")
        self.sums, self.lanes, self.itemsize = sums, emitter.width, emitter.format.itemsize
        self.scalar_type, self.vector_type = emitter.format.scalar_type, emitter.type
        self.outputs, self.uniform_outputs = split_outputs(tape)
        self._emit_body()

    def _emit_body(self) -> None:
        """Emit the uniform instructions, followed by a loop over tiles of samples."""
        builder = self.builder
        columns, results, table, begin, end, stride = self.function.args
        column, scalar = count(), count()

        def load_scalar(_: Leaf) -> Ir:
            """Load the next scalar of the table and broadcast it to all lanes."""
            value = self.load_element(table, next(scalar), self.scalar_type)
            return self.broadcast(value, self.lanes)

        values = self.emit_leaves(
            scalar=load_scalar,
            column=lambda _: self.load_element(columns, next(column), self.pointer),
        )
        self.emit_instructions(values, varying=False)
        element_type = self.double if self.sums else self.scalar_type
        offsets = (builder.mul(stride, self.make_i64(k)) for k in range(len(self.outputs)))
        pointers = [self.get_address(results, offset, element_type) for offset in offsets]
        for slot, index in enumerate(self.uniform_outputs, len(self.tape.of_kind("scalar"))):
            value = values[index]
            if self.lanes > 1:
                value = builder.extract_element(value, self.ir.Constant(self.i32, 0))
            self.store_element(value, table, slot)
        sum_type = vectorize_type_like(self.double, self.vector_type)

        def emit_vector(sample: Ir, totals: list[Ir]) -> list[Ir]:
            """Emit the loop body for one vector of samples."""
            return self._emit_samples(sample, totals, values, pointers)

        def emit_tile(start: Ir) -> None:
            """Emit the loop over a tile of samples, and add its sums to the results."""
            limit = builder.add(start, self.make_i64(TILE * self.lanes))
            limit = builder.select(builder.icmp_signed("<", limit, end), limit, end)
            zeros = [self.ir.Constant(self.vector_type, None)] * len(self.outputs)
            totals = self.emit_carried_loop(
                limit, self.lanes, zeros if self.sums else [], emit_vector, begin=start, once=True
            )
            for pointer, total in zip(pointers, totals, strict=False):
                self.add_to_sum(total, pointer, sum_type)

        self.emit_loop(end, TILE * self.lanes, emit_tile, begin=begin)
        builder.ret_void()

    def _emit_samples(
        self, sample: Ir, totals: list[Ir], values: dict[int, Ir], pointers: list[Ir]
    ) -> list[Ir]:
        """Emit the loop body for one vector of samples; return the new partial sums."""
        builder, sample_values = self.builder, dict(values)
        for index, leaf in enumerate(self.tape.leaves):
            if leaf.kind == "column":
                address = self.get_address(values[index], sample, self.scalar_type)
                sample_values[index] = builder.load(
                    address, typ=self.vector_type, align=self.itemsize
                )
        self.emit_instructions(sample_values, varying=True)
        outputs = [sample_values[index] for index in self.outputs]
        if self.sums:
            pairs = zip(totals, outputs, strict=True)
            return [builder.fadd(total, new, flags=FLAGS) for total, new in pairs]
        for pointer, value in zip(pointers, outputs, strict=True):
            address = self.get_address(pointer, sample, self.scalar_type)
            builder.store(value, address, align=self.itemsize)
        return []


class _RunFunctionEmitter(FunctionEmitter):
    """Emitter of the LLVM function ``run``, which evaluates a tape for any number of samples."""

    def __init__(self, vectors: Ir, emitter: PrimitiveEmitter, tape: Tape, sums: bool) -> None:
        from llvmlite import ir

        super().__init__(ir.Function(emitter.module, vectors.ftype, "run"))
        for attribute in ("optnone", "noinline"):  # halves the compile time
            self.function.attributes.add(attribute)
        self.vectors, self.emitter, self.sums = vectors, emitter, sums
        self.itemsize = emitter.format.itemsize
        self.element_type = self.double if sums else emitter.format.scalar_type
        self.result_type = vectorize_type_like(self.double, emitter.type) if sums else emitter.type
        self.column_count = len(tape.of_kind("column"))
        self.output_count = len(split_outputs(tape)[0])
        builder, lanes = self.builder, emitter.width
        *addresses, begin, end, stride = self.function.args
        remainder = builder.srem(builder.sub(end, begin), self.make_i64(lanes))
        self.full_end = builder.sub(end, remainder)
        builder.call(vectors, [*addresses, begin, self.full_end, stride])
        columns, outputs = max(1, self.column_count), max(1, self.output_count)
        self.padded_columns = builder.alloca(emitter.type, size=columns)
        self.padded_addresses = builder.alloca(self.pointer, size=columns)
        self.padded_results = builder.alloca(self.result_type, size=outputs)
        self.mask = self.mask_first_lanes(remainder, lanes)
        if lanes > 1:
            self.emit_loop(remainder, lanes, self._emit_epilogue)  # at most one iteration
        builder.ret_void()

    def _emit_epilogue(self, _: Ir) -> None:
        """Emit the epilogue, which processes the remaining samples as one padded vector."""
        table, width = self.function.args[2], self.make_i64(self.emitter.width)
        zeros = self.ir.Constant(self.result_type, None)
        self.emit_loop(self.column_count, 1, self._pad_column)
        self.emit_loop(
            self.output_count, 1, lambda k: self.store_element(zeros, self.padded_results, k)
        )
        arguments = [self.padded_addresses, self.padded_results, table, self.make_i64(0), width]
        self.builder.call(self.vectors, [*arguments, width])
        self.emit_loop(self.output_count, 1, self._store_result)

    def _pad_column(self, index: Ir) -> None:
        """Copy the last samples of a column to a vector, and fill the unused lanes with ones."""
        vector_type, ones = self.emitter.type, splat_constant(self.emitter.type, 1.0)
        column = self.load_element(self.function.args[0], index, self.pointer)
        source = self.get_address(column, self.full_end, self.emitter.format.scalar_type)
        value = self.load_masked(source, self.mask, otherwise=ones, align=self.itemsize)
        self.store_element(value, self.padded_columns, index)
        address = self.get_address(self.padded_columns, index, vector_type)
        self.store_element(address, self.padded_addresses, index)

    def _store_result(self, index: Ir) -> None:
        """Store the results of the last samples, or add them to the sums."""
        builder, results, stride = self.builder, self.function.args[1], self.function.args[5]
        offset = builder.mul(index, stride)
        if not self.sums:
            offset = builder.add(offset, self.full_end)
        target = self.get_address(results, offset, self.element_type)
        value = self.load_element(self.padded_results, index, self.result_type)
        if self.sums:
            previous = builder.load(target, typ=self.result_type, align=8)
            value = builder.fadd(previous, value)
        self.store_masked(value, target, self.mask, align=self.itemsize)
