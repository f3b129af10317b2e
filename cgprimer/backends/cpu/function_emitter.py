"""Helpers for writing LLVM functions: addresses, loads and stores, loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class IndirectFunction:
    """A function that is called by its address, for ``IRBuilder.call``."""

    def __init__(self, address: Any, function_type: Any) -> None:
        self.address = address
        self.function_type = function_type
        self.type = address.type

    def get_reference(self) -> str:
        """Return the text of the address, as llvmlite prints it."""
        return str(self.address.get_reference())


class FunctionEmitter:
    """Writer of an LLVM function; ``builder`` is positioned at its end."""

    def __init__(self, function: Any) -> None:
        from llvmlite import ir

        self.ir, self.function = ir, function
        self.pointer, self.i8 = ir.PointerType(), ir.IntType(8)
        self.i32, self.i64, self.double = ir.IntType(32), ir.IntType(64), ir.DoubleType()
        self.builder = ir.IRBuilder(function.append_basic_block("entry"))

    def make_i64(self, value: int) -> Any:
        """Return a 64-bit integer constant."""
        return self.ir.Constant(self.i64, value)

    def get_address(self, base: Any, number: Any, kind: Any = None) -> Any:
        """Return the address of an array element; of a byte, unless a type is given."""
        index = self.make_i64(number) if isinstance(number, int) else number
        return self.builder.gep(base, [index], inbounds=True, source_etype=kind or self.i8)

    def load_element(self, base: Any, number: Any, kind: Any) -> Any:
        """Load an array element."""
        return self.builder.load(self.get_address(base, number, kind), typ=kind)

    def store_element(self, value: Any, base: Any, number: Any) -> None:
        """Store an array element."""
        self.builder.store(value, self.get_address(base, number, value.type))

    def broadcast(self, value: Any, lanes: int) -> Any:
        """Copy a scalar to all lanes."""
        if lanes == 1:
            return value
        ir, kind = self.ir, self.ir.VectorType(value.type, lanes)
        nothing = ir.Constant(kind, ir.Undefined)
        one = self.builder.insert_element(nothing, value, ir.Constant(self.i32, 0))
        zeros = ir.Constant(ir.VectorType(self.i32, lanes), None)
        return self.builder.shuffle_vector(one, nothing, zeros)

    def mask_first_lanes(self, count: Any, lanes: int) -> Any:
        """Return a mask of the first ``count`` lanes."""
        numbers = list(range(lanes)) if lanes > 1 else 0
        kind = self.ir.VectorType(self.i32, lanes) if lanes > 1 else self.i32
        places, limit = self.ir.Constant(kind, numbers), self.builder.trunc(count, self.i32)
        return self.builder.icmp_signed("<", places, self.broadcast(limit, lanes))

    def emit_carried_loop(
        self,
        limit: Any,
        step: Any,
        state: list[Any],
        body: Callable[[Any, list[Any]], list[Any]],
        *,
        begin: Any = None,
        once: bool = False,
    ) -> list[Any]:
        """Write ``for i in range(begin, limit, step): state = body(i, state)``; return the state.

        With ``once``, the loop runs at least once: the first test is omitted.
        """
        builder = self.builder
        begin = self.make_i64(0) if begin is None else begin
        limit = self.make_i64(limit) if isinstance(limit, int) else limit
        before = builder.block
        loop, after = (self.function.append_basic_block() for _ in range(2))
        if once:
            builder.branch(loop)
        else:
            builder.cbranch(builder.icmp_signed("<", begin, limit), loop, after)
        builder.position_at_end(loop)
        position = self.emit_phi((begin, before))
        phis = [self.emit_phi((value, before)) for value in state]
        new_state = body(position, list(phis))
        following = builder.add(position, self.make_i64(step) if isinstance(step, int) else step)
        last = builder.block
        for phi, value in zip([position, *phis], [following, *new_state], strict=True):
            phi.add_incoming(value, last)
        builder.cbranch(builder.icmp_signed("<", following, limit), loop, after)
        builder.position_at_end(after)
        if once:
            return new_state
        ends = zip(state, new_state, strict=True)
        return [self.emit_phi((value, before), (result, last)) for value, result in ends]

    def emit_phi(self, *incoming: tuple[Any, Any]) -> Any:
        """Return a phi node with these incoming (value, block) pairs."""
        phi = self.builder.phi(incoming[0][0].type)
        for value, block in incoming:
            phi.add_incoming(value, block)
        return phi

    def emit_loop(self, limit: Any, step: Any, body: Callable[[Any], None], **more: Any) -> None:
        """Write ``for i in range(0, limit, step): body(i)``."""

        def emit_iteration(position: Any, state: list[Any]) -> list[Any]:
            body(position)
            return state

        self.emit_carried_loop(limit, step, [], emit_iteration, **more)


class HandlerEmitter(FunctionEmitter):
    """Writer of a handler of the interpreter.

    Args:
        module: types and layout that all handlers share.
        function: the LLVM function.
    """

    def __init__(self, module: Any, function: Any) -> None:
        super().__init__(function)
        self.module = module
        self.ip, self.rows, _, self.context_address, self.length, _ = function.args

    # --- places ----------------------------------------------------------------------------------

    def load_instruction_word(self, position: int) -> Any:
        """Load a word of the operation."""
        return self.builder.zext(self.load_element(self.ip, position, self.i32), self.i64)

    def get_row_address(self, offset: Any) -> Any:
        """Return the address of the row at an offset of the buffer."""
        if offset.type == self.i32:
            offset = self.builder.zext(offset, self.i64)
        return self.get_address(self.rows, offset)

    def load_row_address(self, position: int) -> Any:
        """Return the address of the row that a word of the operation refers to."""
        return self.get_row_address(self.load_instruction_word(position))

    def load_context_field(self, name: str, kind: Any) -> Any:
        """Load a field of the context."""
        place = self.get_address(self.context_address, self.module.context.index(name), self.i64)
        return self.builder.load(place, typ=kind)

    def load_uniform(self, position: int) -> Any:
        """Load the uniform scalar that a word of the operation refers to."""
        base = self.load_context_field("uniform", self.pointer)
        return self.builder.load(
            self.get_address(base, self.load_instruction_word(position)),
            typ=self.module.real,
        )

    def get_extended_operands(self, position: int) -> Any:
        """Return the address of the extended operands of the operation."""
        return self.get_address(
            self.load_context_field("side", self.pointer), self.load_instruction_word(position)
        )

    def load_extended_operand(self, side: Any, position: int) -> Any:
        """Load an extended operand."""
        return self.builder.zext(self.load_element(side, position, self.i32), self.i64)

    # --- values ----------------------------------------------------------------------------------

    def load_value(self, base: Any, offset: Any, kind: Any) -> Any:
        """Load a vector or scalar at an offset."""
        return self.builder.load(self.get_address(base, offset), typ=kind, align=self.module.size)

    def store_value(self, value: Any, base: Any, offset: Any) -> None:
        """Store a vector or scalar at an offset."""
        self.builder.store(value, self.get_address(base, offset), align=self.module.size)

    def load_masked_vector(self, row: Any, offset: Any, masked: bool) -> Any:
        """Load a vector of a row, with 0 in the lanes beyond the last sample."""
        value = self.load_value(row, offset, self.module.vector)
        if not masked:
            return value
        left = self.builder.sub(self.length, offset)
        inside = self.mask_first_lanes(
            self.builder.sdiv(left, self.make_i64(self.module.size)), self.module.lanes
        )
        return self.builder.select(inside, value, self.ir.Constant(self.module.vector, None))

    # --- sums ------------------------------------------------------------------------------------

    def emit_accumulation_loop(
        self, count: int, body: Callable[[Any, list[Any]], list[Any]]
    ) -> list[Any]:
        """Sum vectors over the block, starting from zero."""
        zeros = [self.module.ir.Constant(self.module.vector, None)] * count
        step = self.module.size * self.module.lanes
        return self.emit_carried_loop(self.length, step, zeros, body, once=True)

    def add_to_sums(self, place: Any, totals: list[Any]) -> None:
        """Add vectors, lane by lane, to sums in double precision."""
        builder, module = self.builder, self.module
        for number, total in enumerate(totals):
            there = self.get_address(place, self.make_i64(number * module.lanes * 8))
            wide = total if module.size == 8 else builder.fpext(total, module.double)
            previous = builder.load(there, typ=module.double, align=8)
            builder.store(builder.fadd(previous, wide), there, align=8)
