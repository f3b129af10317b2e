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


class FunctionWriter:
    """Writer of an LLVM function; ``build`` is positioned at its end."""

    def __init__(self, function: Any) -> None:
        from llvmlite import ir

        self.ir, self.function = ir, function
        self.pointer, self.i8 = ir.PointerType(), ir.IntType(8)
        self.i32, self.i64, self.double = ir.IntType(32), ir.IntType(64), ir.DoubleType()
        self.build = ir.IRBuilder(function.append_basic_block("entry"))

    def number(self, value: int) -> Any:
        """Return a 64-bit integer constant."""
        return self.ir.Constant(self.i64, value)

    def at(self, base: Any, number: Any, kind: Any = None) -> Any:
        """Return the address of an array element; of a byte, unless a type is given."""
        index = self.number(number) if isinstance(number, int) else number
        return self.build.gep(base, [index], inbounds=True, source_etype=kind or self.i8)

    def get(self, base: Any, number: Any, kind: Any) -> Any:
        """Load an array element."""
        return self.build.load(self.at(base, number, kind), typ=kind)

    def put(self, value: Any, base: Any, number: Any) -> None:
        """Store an array element."""
        self.build.store(value, self.at(base, number, value.type))

    def splat(self, value: Any, lanes: int) -> Any:
        """Copy a scalar to all lanes."""
        if lanes == 1:
            return value
        ir, kind = self.ir, self.ir.VectorType(value.type, lanes)
        nothing = ir.Constant(kind, ir.Undefined)
        one = self.build.insert_element(nothing, value, ir.Constant(self.i32, 0))
        zeros = ir.Constant(ir.VectorType(self.i32, lanes), None)
        return self.build.shuffle_vector(one, nothing, zeros)

    def first(self, count: Any, lanes: int) -> Any:
        """Return a mask of the first ``count`` lanes."""
        numbers = list(range(lanes)) if lanes > 1 else 0
        kind = self.ir.VectorType(self.i32, lanes) if lanes > 1 else self.i32
        places, limit = self.ir.Constant(kind, numbers), self.build.trunc(count, self.i32)
        return self.build.icmp_signed("<", places, self.splat(limit, lanes))

    def fold(
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
        build = self.build
        begin = self.number(0) if begin is None else begin
        limit = self.number(limit) if isinstance(limit, int) else limit
        before = build.block
        loop, after = (self.function.append_basic_block() for _ in range(2))
        if once:
            build.branch(loop)
        else:
            build.cbranch(build.icmp_signed("<", begin, limit), loop, after)
        build.position_at_end(loop)
        position = self.phi((begin, before))
        phis = [self.phi((value, before)) for value in state]
        new_state = body(position, list(phis))
        following = build.add(position, self.number(step) if isinstance(step, int) else step)
        last = build.block
        for phi, value in zip([position, *phis], [following, *new_state], strict=True):
            phi.add_incoming(value, last)
        build.cbranch(build.icmp_signed("<", following, limit), loop, after)
        build.position_at_end(after)
        if once:
            return new_state
        ends = zip(state, new_state, strict=True)
        return [self.phi((value, before), (result, last)) for value, result in ends]

    def phi(self, *incoming: tuple[Any, Any]) -> Any:
        """Return a phi node with these incoming (value, block) pairs."""
        phi = self.build.phi(incoming[0][0].type)
        for value, block in incoming:
            phi.add_incoming(value, block)
        return phi

    def loop(self, limit: Any, step: Any, body: Callable[[Any], None], **more: Any) -> None:
        """Write ``for i in range(0, limit, step): body(i)``."""

        def stateless(position: Any, state: list[Any]) -> list[Any]:
            body(position)
            return state

        self.fold(limit, step, [], stateless, **more)


class HandlerWriter(FunctionWriter):
    """Writer of a handler of the interpreter.

    Args:
        kinds: types and layout that all handlers share.
        function: the LLVM function.
    """

    def __init__(self, kinds: Any, function: Any) -> None:
        super().__init__(function)
        self.kinds = kinds
        self.ip, self.rows, _, self.place, self.length, _ = function.args

    # --- places ----------------------------------------------------------------------------------

    def load_word(self, position: int) -> Any:
        """Load a word of the operation."""
        return self.build.zext(self.get(self.ip, position, self.i32), self.i64)

    def row_at(self, offset: Any) -> Any:
        """Return the address of the row at an offset of the buffer."""
        if offset.type == self.i32:
            offset = self.build.zext(offset, self.i64)
        return self.at(self.rows, offset)

    def row(self, position: int) -> Any:
        """Return the address of the row that a word of the operation refers to."""
        return self.row_at(self.load_word(position))

    def context(self, name: str, kind: Any) -> Any:
        """Load a field of the context."""
        place = self.at(self.place, self.kinds.context.index(name), self.i64)
        return self.build.load(place, typ=kind)

    def uniform(self, position: int) -> Any:
        """Load the uniform scalar that a word of the operation refers to."""
        base = self.context("uniform", self.pointer)
        return self.build.load(self.at(base, self.load_word(position)), typ=self.kinds.real)

    def side(self, position: int) -> Any:
        """Return the address of the extended operands of the operation."""
        return self.at(self.context("side", self.pointer), self.load_word(position))

    def side_word(self, side: Any, position: int) -> Any:
        """Load an extended operand."""
        return self.build.zext(self.get(side, position, self.i32), self.i64)

    # --- values ----------------------------------------------------------------------------------

    def load(self, base: Any, offset: Any, kind: Any) -> Any:
        """Load a vector or scalar at an offset."""
        return self.build.load(self.at(base, offset), typ=kind, align=self.kinds.size)

    def store(self, value: Any, base: Any, offset: Any) -> None:
        """Store a vector or scalar at an offset."""
        self.build.store(value, self.at(base, offset), align=self.kinds.size)

    def masked(self, row: Any, offset: Any, masked: bool) -> Any:
        """Load a vector of a row, with 0 in the lanes beyond the last sample."""
        value = self.load(row, offset, self.kinds.vector)
        if not masked:
            return value
        left = self.build.sub(self.length, offset)
        inside = self.first(self.build.sdiv(left, self.number(self.kinds.size)), self.kinds.lanes)
        return self.build.select(inside, value, self.ir.Constant(self.kinds.vector, None))

    # --- sums ------------------------------------------------------------------------------------

    def accumulate(self, count: int, body: Callable[[Any, list[Any]], list[Any]]) -> list[Any]:
        """Sum vectors over the block, starting from zero."""
        zeros = [self.kinds.ir.Constant(self.kinds.vector, None)] * count
        step = self.kinds.size * self.kinds.lanes
        return self.fold(self.length, step, zeros, body, once=True)

    def add_to(self, place: Any, totals: list[Any]) -> None:
        """Add vectors, lane by lane, to sums in double precision."""
        build, kinds = self.build, self.kinds
        for number, total in enumerate(totals):
            there = self.at(place, self.number(number * kinds.lanes * 8))
            wide = total if kinds.size == 8 else build.fpext(total, kinds.double)
            previous = build.load(there, typ=kinds.double, align=8)
            build.store(build.fadd(previous, wide), there, align=8)
