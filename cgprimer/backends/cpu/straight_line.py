"""Straight-line machine code for small tapes: one loop over the samples, values in registers.

The instructions of the tape become LLVM instructions on vectors, with one sample per lane. Uniform
values are computed before the loop. Sums are accumulated lane by lane: in the precision of the
computation over a tile of samples, and in double precision over the tiles.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from cgprimer.backends.cpu.cpu_executable import Call, CpuExecutable
from cgprimer.backends.cpu.function_emitter import FunctionEmitter
from cgprimer.backends.cpu.llvm_library import CompiledLibrary, target_processor
from cgprimer.backends.cpu.primitive_ir import PrimitiveEmitter
from cgprimer.backends.cpu.vector_ir import declare_function, splat_constant
from cgprimer.backends.interfaces import Array
from cgprimer.backends.plans.optimization import extract_constant_factors
from cgprimer.backends.program_cache import compute_fingerprint
from cgprimer.core.evaluation.engines import Reduction
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_dependencies import find_varying_values
from cgprimer.core.tape.tape_entries import Leaf
from cgprimer.support.garbage_collection import pause_garbage_collection

TILE = 512  # vectors per tile: a tile is summed before it is added to the total
# Allow fused multiply-add only: other fast-math flags change signs of zero (and thereby
# infinities), or ignore nan.
FLAGS = ("contract",)
_SMALL = (
    64  # instructions; shorter tapes use two vectors at a time, for instruction-level parallelism
)


class StraightLineExecutable(CpuExecutable):
    """An optimized small tape of supported primitives, as machine code.

    ``batch`` is the number of samples per call, or 0 if unknown; small batches use no vectors.
    """

    def __init__(self, tape: Tape, *, reduction: Reduction, dtype: str, batch: int = 0) -> None:
        self.sums = reduction == "sum"
        factors = dict.fromkeys(tape.outputs, 1.0)
        if self.sums:
            tape, factors = extract_constant_factors(tape)
        self.factors = np.array(list(factors.values()))
        self.tape, self.dtype, self.operations = tape, np.dtype(dtype), max(8, len(tape))
        self.lanes = self.unit = lanes = lane_count(tape, dtype, batch)
        key = f"{compute_fingerprint(tape)} {reduction} {dtype} {lanes}"
        text = partial(module_source, tape, sums=self.sums, dtype=dtype, lanes=lanes)
        with pause_garbage_collection():
            self.library = CompiledLibrary("straight-line", key, text)
        self.function = self.library.address("run")
        self.varying, self.uniform_outputs = split_outputs(tape)
        place = {value: k for k, value in enumerate((*self.varying, *self.uniform_outputs))}
        self.reads = np.array([place[value] for value in tape.outputs.values()], np.int64)
        self.outputs, self.count = tuple(tape.outputs), len(self.varying)
        self.columns, self.scalars = tape.of_kind("column"), tape.of_kind("scalar")
        self.size = len(self.scalars) + len(self.uniform_outputs)
        self.fixed = np.arange(len(self.scalars), self.size)

    def calls(
        self, columns: Array, written: Array, table: Array, begin: int, end: int
    ) -> tuple[list[Call], Any]:
        """Return a single call; there are no preparations."""
        places = [array.ctypes.data for array in (columns, written, table)]
        return [(*places, begin, end, written.shape[1])], None


def lane_count(tape: Tape, dtype: str, batch: int = 0) -> int:
    """Return the number of samples that are computed in parallel in one vector."""
    lanes = target_processor().lanes(dtype)
    if batch:
        return lanes if batch >= lanes else 1
    return 2 * lanes if len(tape) <= _SMALL and lanes > 1 else lanes


def split_outputs(tape: Tape) -> tuple[list[int], list[int]]:
    """Return the distinct values of varying outputs, then those of uniform outputs."""
    varies, values = find_varying_values(tape), dict.fromkeys(tape.outputs.values())
    return [i for i in values if varies[i]], [i for i in values if not varies[i]]


def module_source(tape: Tape, *, sums: bool, dtype: str, lanes: int) -> str:
    """Return the LLVM module of a tape: ``vectors``, and ``run`` for any number of samples."""
    from llvmlite import ir

    emitter = PrimitiveEmitter(ir.Module("straight_line"), dtype, lanes, flags=FLAGS)
    _RunFunctionEmitter(VectorFunctionEmitter(emitter, tape, sums).function, emitter, tape, sums)
    return str(emitter.module)


class TapeFunctionEmitter(FunctionEmitter):
    """Writer of a function that contains the instructions of a tape."""

    def __init__(self, function: Any, tape: Tape, emitter: PrimitiveEmitter) -> None:
        super().__init__(function)
        self.tape, self.emitter, self.module = tape, emitter, emitter.module
        self.varies = find_varying_values(tape)

    def leaves(self, **read: Callable[[Leaf], Any]) -> dict[int, Any]:
        """Return the values of the constants, and of leaf kinds with a given load function."""
        read["constant"] = lambda leaf: splat_constant(self.emitter.type, leaf.value)
        leaves = enumerate(self.tape.leaves)
        return {i: read[leaf.kind](leaf) for i, leaf in leaves if leaf.kind in read}

    def instructions(self, values: dict[int, Any], *, varying: bool) -> None:
        """Write the varying or the uniform instructions, and add their values to ``values``."""
        first, emit = len(self.tape.leaves), self.emitter.emit
        for position, (name, operands) in enumerate(self.tape.instructions):
            if self.varies[first + position] == varying:
                values[first + position] = emit(
                    self.builder, str(name), *[values[o] for o in operands]
                )


class VectorFunctionEmitter(TapeFunctionEmitter):
    """Writer of ``vectors(columns, results, table, begin, end, stride)``.

    Args of the function: addresses of the columns; address of the results (for each varying output,
    either a vector of partial sums in double precision, which is incremented, or the values), with
    ``stride`` elements between outputs; address of the scalars, behind which the uniform outputs
    are
    stored; and a range of samples whose length is a multiple of the vector width.
    """

    def __init__(self, emitter: PrimitiveEmitter, tape: Tape, sums: bool) -> None:
        from llvmlite import ir

        i64 = ir.IntType(64)
        kind = ir.FunctionType(ir.VoidType(), [ir.PointerType()] * 3 + [i64] * 3)
        super().__init__(ir.Function(emitter.module, kind, "vectors"), tape, emitter)
        for argument in self.function.args[:3]:
            argument.add_attribute("noalias")
        self.sums, self.lanes = sums, emitter.width
        self.real, self.vector = emitter.format.scalar_type, emitter.type
        self.size = emitter.format.bits // 8
        self.wide = ir.VectorType(self.double, self.lanes) if self.lanes > 1 else self.double
        self.written, self.fixed = split_outputs(tape)
        self._write()

    def _write(self) -> None:
        builder = self.builder
        columns, results, table, begin, end, stride = self.function.args
        column, scalar = count(), count()
        values = self.leaves(
            scalar=lambda _: self.broadcast(
                self.load_element(table, next(scalar), self.real), self.lanes
            ),
            column=lambda _: self.load_element(columns, next(column), self.pointer),
        )
        self.instructions(values, varying=False)
        kind = self.double if self.sums else self.real
        places = (builder.mul(stride, self.make_i64(k)) for k in range(len(self.written)))
        pointers = [self.get_address(results, place, kind) for place in places]
        for number, index in enumerate(self.fixed, len(self.tape.of_kind("scalar"))):
            lane = values[index]
            if self.lanes > 1:
                lane = builder.extract_element(lane, self.ir.Constant(self.i32, 0))
            self.store_element(lane, table, number)

        def process_tile(start: Any) -> None:
            limit = builder.add(start, self.make_i64(TILE * self.lanes))
            limit = builder.select(builder.icmp_signed("<", limit, end), limit, end)
            zeros = [self.ir.Constant(self.vector, None)] * len(self.written)
            totals = self.emit_carried_loop(
                limit, self.lanes, zeros if self.sums else [],
                lambda sample, state: self._samples(sample, state, values, pointers),
                begin=start, once=True,
            )  # fmt: skip
            for pointer, total in zip(pointers, totals, strict=False):
                more = total if self.size == 8 else builder.fpext(total, self.wide)
                previous = builder.load(pointer, typ=self.wide, align=8)
                builder.store(builder.fadd(previous, more), pointer, align=8)

        self.emit_loop(end, TILE * self.lanes, process_tile, begin=begin)
        builder.ret_void()

    def _samples(
        self, sample: Any, totals: list[Any], values: dict[int, Any], pointers: list[Any]
    ) -> list[Any]:
        """Process one vector of samples and return the new totals."""
        builder, sample_values = self.builder, dict(values)
        for index, leaf in enumerate(self.tape.leaves):
            if leaf.kind == "column":
                place = self.get_address(values[index], sample, self.real)
                sample_values[index] = builder.load(place, typ=self.vector, align=self.size)
        self.instructions(sample_values, varying=True)
        outputs = [sample_values[index] for index in self.written]
        if self.sums:
            pairs = zip(totals, outputs, strict=True)
            return [builder.fadd(total, new, flags=FLAGS) for total, new in pairs]
        for pointer, value in zip(pointers, outputs, strict=True):
            builder.store(value, self.get_address(pointer, sample, self.real), align=self.size)
        return []


class _RunFunctionEmitter(FunctionEmitter):
    """Writer of ``run``: like ``vectors``, for a range of any length, with padded last samples."""

    def __init__(self, vectors: Any, emitter: PrimitiveEmitter, tape: Tape, sums: bool) -> None:
        from llvmlite import ir

        super().__init__(ir.Function(emitter.module, vectors.ftype, "run"))
        for attribute in (
            "optnone",
            "noinline",
        ):  # halves the compile time; `run` is called once per call
            self.function.attributes.add(attribute)
        builder, real, lanes = self.builder, emitter.format.scalar_type, emitter.width
        columns, results, table, begin, end, stride = self.function.args
        width, kind = self.make_i64(lanes), self.double if sums else real
        rest = builder.srem(builder.sub(end, begin), width)
        full_end = builder.sub(end, rest)
        builder.call(vectors, [columns, results, table, begin, full_end, stride])
        column_count, output_count = len(tape.of_kind("column")), len(split_outputs(tape)[0])
        padded = builder.alloca(emitter.type, size=max(1, column_count))
        padded_addresses = builder.alloca(self.pointer, size=max(1, column_count))
        vector = ir.VectorType(kind, lanes)
        ends = builder.alloca(vector, size=max(1, output_count))
        inside, align = (
            self.mask_first_lanes(rest, lanes),
            ir.Constant(self.i32, emitter.format.bits // 8),
        )

        def masked_call(name: str, result: Any, *operands: Any) -> Any:
            kinds = [operand.type for operand in operands]
            letter = f"v{lanes}f{64 if sums and name == 'store' else emitter.format.bits}"
            title = f"llvm.masked.{name}.{letter}.p0"
            return builder.call(
                declare_function(self.function.module, title, result, kinds), operands
            )

        def pad_column(number: Any) -> None:  # unused lanes compute with ordinary numbers
            source = self.get_address(
                self.load_element(columns, number, self.pointer), full_end, real
            )
            ones = splat_constant(emitter.type, 1.0)
            value = masked_call("load", emitter.type, source, align, inside, ones)
            self.store_element(value, padded, number)
            self.store_element(
                self.get_address(padded, number, emitter.type), padded_addresses, number
            )

        def write_result(number: Any) -> None:
            place = builder.mul(number, stride)
            target = self.get_address(
                results, place if sums else builder.add(place, full_end), kind
            )
            value = self.load_element(ends, number, vector)
            if sums:
                value = builder.fadd(builder.load(target, typ=vector, align=8), value)
            masked_call("store", ir.VoidType(), value, target, align, inside)

        def process_rest(_: Any) -> None:
            self.emit_loop(column_count, 1, pad_column)
            self.emit_loop(
                output_count, 1, lambda k: self.store_element(ir.Constant(vector, None), ends, k)
            )
            builder.call(vectors, [padded_addresses, ends, table, self.make_i64(0), width, width])
            self.emit_loop(output_count, 1, write_result)

        if lanes > 1:
            self.emit_loop(rest, lanes, process_rest)  # at most one iteration
        builder.ret_void()
