"""Emission of LLVM functions: addresses, loads and stores, masks, loops.

Integers are 64 bits wide, addresses are opaque pointers. See the `LLVM language reference
<https://llvm.org/docs/LangRef.html>`_ for the instructions.
"""

from __future__ import annotations

from collections.abc import Callable

from cgprimer.backends.cpu.vector_ir import (
    Ir,
    call_masked_intrinsic,
)


class IndirectFunction:
    """A function pointer in the form that ``IRBuilder.call`` accepts."""

    def __init__(self, address: Ir, function_type: Ir) -> None:
        self.address = address
        self.function_type = function_type
        self.type = address.type

    def get_reference(self) -> str:
        """Return the address as a string of LLVM IR."""
        return str(self.address.get_reference())


class FunctionEmitter:
    """Emitter of the instructions of an LLVM function."""

    def __init__(self, function: Ir) -> None:
        from llvmlite import ir

        self.ir, self.function = ir, function
        self.pointer, self.i8 = ir.PointerType(), ir.IntType(8)
        self.i32, self.i64, self.double = ir.IntType(32), ir.IntType(64), ir.DoubleType()
        self.builder = ir.IRBuilder(function.append_basic_block("entry"))

    def make_i64(self, value: int) -> Ir:
        """Return a 64-bit integer constant."""
        return self.ir.Constant(self.i64, value)

    # --- memory ----------------------------------------------------------------------------------

    def get_address(self, base: Ir, index: Ir | int, element_type: Ir = None) -> Ir:
        """Return the address of an array element; by default, elements are bytes."""
        offset = self.make_i64(index) if isinstance(index, int) else index
        element_type = element_type or self.i8
        return self.builder.gep(base, [offset], inbounds=True, source_etype=element_type)

    def load_element(self, base: Ir, index: Ir | int, element_type: Ir) -> Ir:
        """Load an array element."""
        return self.builder.load(self.get_address(base, index, element_type), typ=element_type)

    def store_element(self, value: Ir, base: Ir, index: Ir | int) -> None:
        """Store a value as an array element."""
        self.builder.store(value, self.get_address(base, index, value.type))

    def load_masked(self, address: Ir, mask: Ir, *, otherwise: Ir, align: int) -> Ir:
        """Load the lanes that a mask selects; take the other lanes from a given vector."""
        operands = [address, self.ir.Constant(self.i32, align), mask, otherwise]
        return call_masked_intrinsic(self.builder, "load", otherwise.type, operands)

    def store_masked(self, value: Ir, address: Ir, mask: Ir, *, align: int) -> None:
        """Store the lanes that a mask selects."""
        operands = [value, address, self.ir.Constant(self.i32, align), mask]
        call_masked_intrinsic(self.builder, "store", value.type, operands)

    def add_to_sum(self, value: Ir, address: Ir, sum_type: Ir) -> None:
        """Add a scalar or vector to the double-precision sum stored at an address."""
        wide = value if value.type == sum_type else self.builder.fpext(value, sum_type)
        previous = self.builder.load(address, typ=sum_type, align=8)
        self.builder.store(self.builder.fadd(previous, wide), address, align=8)

    # --- lanes -----------------------------------------------------------------------------------

    def broadcast(self, value: Ir, lanes: int) -> Ir:
        """Broadcast a scalar to all lanes of a vector."""
        if lanes == 1:
            return value
        ir, vector_type = self.ir, self.ir.VectorType(value.type, lanes)
        undefined = ir.Constant(vector_type, ir.Undefined)
        inserted = self.builder.insert_element(undefined, value, ir.Constant(self.i32, 0))
        zeros = ir.Constant(ir.VectorType(self.i32, lanes), None)
        return self.builder.shuffle_vector(inserted, undefined, zeros)

    def mask_first_lanes(self, count: Ir, lanes: int) -> Ir:
        """Create a mask that selects the first ``count`` lanes of a vector."""
        indices = list(range(lanes)) if lanes > 1 else 0
        index_type = self.ir.VectorType(self.i32, lanes) if lanes > 1 else self.i32
        limit = self.builder.trunc(count, self.i32)
        limits = self.broadcast(limit, lanes)
        return self.builder.icmp_signed("<", self.ir.Constant(index_type, indices), limits)

    # --- control flow ----------------------------------------------------------------------------

    def emit_carried_loop(
        self,
        limit: Ir | int,
        step: Ir | int,
        state: list[Ir],
        emit_body: Callable[[Ir, list[Ir]], list[Ir]],
        *,
        begin: Ir = None,
        once: bool = False,
    ) -> list[Ir]:
        """Emit ``for i in range(begin, limit, step): state = body(i, state)``; return the state.

        The state consists of loop-carried values, which become phi nodes.

        Args:
            limit, step, begin: bounds and increment of the induction variable.
            state: initial loop-carried values.
            emit_body: emits the loop body and returns the new loop-carried values.
            once: the loop runs at least once, so that no comparison precedes it.
        """
        builder = self.builder
        begin = self.make_i64(0) if begin is None else begin
        limit = self.make_i64(limit) if isinstance(limit, int) else limit
        entry = builder.block
        body, after = (self.function.append_basic_block() for _ in range(2))
        if once:
            builder.branch(body)
        else:
            builder.cbranch(builder.icmp_signed("<", begin, limit), body, after)
        builder.position_at_end(body)
        index = self.emit_phi((begin, entry))
        phis = [self.emit_phi((value, entry)) for value in state]
        new_state = emit_body(index, list(phis))
        next_index = builder.add(index, self.make_i64(step) if isinstance(step, int) else step)
        latch = builder.block
        for phi, value in zip([index, *phis], [next_index, *new_state], strict=True):
            phi.add_incoming(value, latch)
        builder.cbranch(builder.icmp_signed("<", next_index, limit), body, after)
        builder.position_at_end(after)
        if once:
            return new_state
        pairs = zip(state, new_state, strict=True)
        return [self.emit_phi((initial, entry), (final, latch)) for initial, final in pairs]

    def emit_phi(self, *incoming: tuple[Ir, Ir]) -> Ir:
        """Emit a phi node with (value, basic block) pairs."""
        phi = self.builder.phi(incoming[0][0].type)
        for value, block in incoming:
            phi.add_incoming(value, block)
        return phi

    def emit_loop(
        self,
        limit: Ir | int,
        step: Ir | int,
        emit_body: Callable[[Ir], None],
        *,
        begin: Ir = None,
        once: bool = False,
    ) -> None:
        """Emit ``for i in range(begin, limit, step): body(i)``; see :meth:`emit_carried_loop`."""

        def emit_iteration(index: Ir, state: list[Ir]) -> list[Ir]:
            """Emit the body of a loop without loop-carried values."""
            emit_body(index)
            return state

        self.emit_carried_loop(limit, step, [], emit_iteration, begin=begin, once=once)

    def emit_return_unless(
        self, condition: Ir, value: Ir, emit_before: Callable[[], None] | None = None
    ) -> None:
        """Emit a conditional return: return a value unless a condition holds."""
        leaving, going = (self.function.append_basic_block() for _ in range(2))
        self.builder.cbranch(condition, going, leaving)
        self.builder.position_at_end(leaving)
        if emit_before:
            emit_before()
        self.builder.ret(value)
        self.builder.position_at_end(going)
