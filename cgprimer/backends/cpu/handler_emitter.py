"""Emission of the interpreter's handlers: instruction words, buffer rows, uniform values, sums."""

from __future__ import annotations

from collections.abc import Callable

from cgprimer.backends.cpu.function_emitter import FunctionEmitter
from cgprimer.backends.cpu.primitive_ir import PrimitiveEmitter
from cgprimer.backends.cpu.vector_ir import Ir, vectorize_type_like

# Layout of the context, in words of eight bytes: addresses, the stride between results in bytes,
# and the position of the block in a column.
CONTEXT_FIELDS = (
    "columns", "results", "stride", "uniform", "side", "callback", "position", "failed", "reply",
)  # fmt: skip


class HandlerEmitter(FunctionEmitter):
    """Emitter of the LLVM function that executes one kind of interpreter operation.

    Args:
        function: the LLVM function, whose arguments are the registers.
        emitter: code generator of primitives, whose vectors fill one processor register.
    """

    def __init__(self, function: Ir, emitter: PrimitiveEmitter) -> None:
        super().__init__(function)
        self.ip, self.rows, _, self.context, self.length, _ = function.args
        self.lanes, self.itemsize = emitter.width, emitter.format.itemsize
        self.scalar_type, self.vector_type = emitter.format.scalar_type, emitter.type
        self.sum_type = vectorize_type_like(self.double, self.vector_type)

    # --- operands of the current instruction -----------------------------------------------------

    def load_instruction_word(self, position: int) -> Ir:
        """Load a 32-bit word of the current interpreter instruction."""
        return self.builder.zext(self.load_element(self.ip, position, self.i32), self.i64)

    def get_row_address(self, offset: Ir) -> Ir:
        """Return the address of a row of the interpreter's buffer, given its byte offset."""
        if offset.type == self.i32:
            offset = self.builder.zext(offset, self.i64)
        return self.get_address(self.rows, offset)

    def load_row_address(self, position: int) -> Ir:
        """Return the address of the buffer row that an instruction word refers to."""
        return self.get_row_address(self.load_instruction_word(position))

    def get_context_field_address(self, name: str) -> Ir:
        """Return the address of a field of the interpreter's context."""
        return self.get_address(self.context, CONTEXT_FIELDS.index(name), self.i64)

    def load_context_field(self, name: str, field_type: Ir) -> Ir:
        """Load a field of the interpreter's context."""
        return self.builder.load(self.get_context_field_address(name), typ=field_type)

    def load_uniform(self, position: int) -> Ir:
        """Load the uniform scalar that an instruction word refers to."""
        table = self.load_context_field("uniform", self.pointer)
        address = self.get_address(table, self.load_instruction_word(position))
        return self.builder.load(address, typ=self.scalar_type)

    def get_extended_operands(self, position: int) -> Ir:
        """Return the address of the additional operands of an interpreter instruction."""
        side_table = self.load_context_field("side", self.pointer)
        return self.get_address(side_table, self.load_instruction_word(position))

    def load_extended_operand(self, extended_operands: Ir, index: int) -> Ir:
        """Load one additional operand of an interpreter instruction."""
        return self.builder.zext(self.load_element(extended_operands, index, self.i32), self.i64)

    # --- values ----------------------------------------------------------------------------------

    def load_value(self, base: Ir, offset: Ir | int, value_type: Ir) -> Ir:
        """Load a vector or scalar at a byte offset."""
        address = self.get_address(base, offset)
        return self.builder.load(address, typ=value_type, align=self.itemsize)

    def store_value(self, value: Ir, base: Ir, offset: Ir | int) -> None:
        """Store a vector or scalar at a byte offset."""
        self.builder.store(value, self.get_address(base, offset), align=self.itemsize)

    def load_row_vector(self, row: Ir, offset: Ir, masked: bool) -> Ir:
        """Load a vector from a buffer row; optionally set lanes beyond the last sample to 0."""
        value = self.load_value(row, offset, self.vector_type)
        if not masked:
            return value
        remaining_bytes = self.builder.sub(self.length, offset)
        remaining = self.builder.sdiv(remaining_bytes, self.make_i64(self.itemsize))
        mask = self.mask_first_lanes(remaining, self.lanes)
        return self.builder.select(mask, value, self.ir.Constant(self.vector_type, None))

    # --- sums ------------------------------------------------------------------------------------

    def emit_accumulation_loop(
        self, count: int, emit_body: Callable[[Ir, list[Ir]], list[Ir]]
    ) -> list[Ir]:
        """Emit a loop over a block of samples that accumulates vectors, starting from zero."""
        zeros = [self.ir.Constant(self.vector_type, None)] * count
        step = self.itemsize * self.lanes
        return self.emit_carried_loop(self.length, step, zeros, emit_body, once=True)

    def add_to_sums(self, totals: list[Ir], address: Ir) -> None:
        """Add vectors lane by lane to double-precision sums in memory."""
        for number, total in enumerate(totals):
            sum_address = self.get_address(address, number * self.lanes * 8)
            self.add_to_sum(total, sum_address, self.sum_type)
