"""The interpreter for large tapes: one handler per operation, each for a block of samples.

The interpreter is compiled once, in LLVM code, independently of the tape. A tape becomes an array
of integers (see :mod:`cgprimer.backends.cpu.interpreter_code`), which takes microseconds per
operation. A handler reads the addresses of its operands from the code, processes the block vector
by vector, and jumps to the handler of the next operation. There is no central loop, whose single
indirect jump the processor would have to predict ("direct threading", Bell 1973, "Threaded code").

The arguments of each handler are the registers of the interpreter: ``ip`` (instruction pointer),
``rows`` (the block's buffer), ``table`` (addresses of the handlers), ``context`` (see
CONTEXT_FIELDS) and ``length`` (bytes of a row that are in use, a multiple of four vectors).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from cgprimer.backends.cpu.function_emitter import FunctionEmitter, HandlerEmitter, IndirectFunction
from cgprimer.backends.cpu.primitive_ir import SUPPORTED, PrimitiveEmitter
from cgprimer.backends.cpu.straight_line import FLAGS
from cgprimer.backends.plan_encoding import TILE, WORDS
from cgprimer.core.operations import primitives

UNROLL = 4  # vectors per iteration of a handler
# Layout of the context, in words of eight bytes: addresses, the stride between results in bytes,
# and the position of the block in a column.
CONTEXT_FIELDS = (
    "columns", "results", "stride", "uniform", "side", "callback", "position", "failed", "reply",
)  # fmt: skip

# Operations with uniform scalars as operands: r for a row, s for a scalar.
_MIXED = {
    **dict.fromkeys(("add", "sub", "mul", "div", "max", "min"), ("rr", "rs", "sr")),
    **dict.fromkeys(("fma", "fms", "fnma"), ("rrr", "rsr", "rrs", "rss")),
    "where": ("rrr", "rrs", "rsr", "rss"),
    "less": ("rr", "rs", "sr"),
    "equal": ("rr", "rs"),
}
_LIGHT = frozenset((
    "add", "sub", "mul", "div", "neg", "copy", "max", "min", "fma", "fms", "fnma", "where", "less",
    "equal", "abs", "sign", "relu", "sqrt", "leaky_relu", "clamp", "heaviside", "step",
    "stop_gradient",
))  # fmt: skip
_SPECIAL = (
    "end", "load", "store", "splat", "store_uniform", "gather_weights", "sum", "dot", "affine",
    "outer", "sincos", "call",
)  # fmt: skip
_MASKED = (
    "load",
    "store",
    "sum",
    "dot",
    "outer",
)  # operations that depend on the number of samples


def _operations() -> Iterator[tuple[str, str]]:
    for name in _SPECIAL:
        yield name, ""
    for name in ("fma", "fms", "fnma"):
        for pattern in _MIXED[name]:
            yield name, pattern
    for row in primitives():
        if row.name in SUPPORTED:  # replaced primitives included, so that opcodes do not change
            for pattern in _MIXED.get(row.name, ("r" * row.arity,)):
                yield row.name, pattern


def opcodes() -> dict[tuple[str, str], int]:
    """Return the opcode of each operation, by its name and the kinds of its operands.

    A built-in primitive that is replaced by a custom one has no opcode: it becomes a Python call.
    """
    foreign = {row.name for row in primitives() if not row.built_in and row.name in SUPPORTED}
    numbered = enumerate(_operations())
    return {operation: number for number, operation in numbered if operation[0] not in foreign}


def tile_columns(registers: int) -> int:
    """Return the number of right factors, or of vectors of samples, in a tile."""
    return 4 if registers >= 32 else 2


class HandlerModule:
    """The LLVM module of the interpreter: ``run(code, rows, context, begin, end, block)``.

    ``run`` processes a range of samples in blocks of ``block`` bytes per row. Masked handlers
    process
    the samples at the end that do not fill a unit.
    """

    def __init__(self, dtype: str, lanes: int, registers: int) -> None:
        from llvmlite import ir

        self.ir, self.lanes, self.dtype = ir, lanes, dtype
        self.size = 8 if dtype == "float64" else 4
        self.columns = tile_columns(registers)
        self.module = ir.Module("interpreter")
        self.real = ir.DoubleType() if dtype == "float64" else ir.FloatType()
        self.pointer, self.i8 = ir.PointerType(), ir.IntType(8)
        self.i32, self.i64, self.context = ir.IntType(32), ir.IntType(64), CONTEXT_FIELDS
        self.vector = self._vector(lanes)
        self.wide = self._vector(lanes * UNROLL)
        self.double = self._vector(lanes, ir.DoubleType())
        self.light = PrimitiveEmitter(self.module, dtype, lanes * UNROLL, flags=FLAGS)
        self.heavy = PrimitiveEmitter(self.module, dtype, lanes, flags=FLAGS, inline=True)
        # With as many vectors as a tile has columns.
        self.light_tile = PrimitiveEmitter(self.module, dtype, lanes * self.columns, flags=FLAGS)
        self.type = ir.FunctionType(ir.VoidType(), [self.pointer] * 4 + [self.i64, self.pointer])
        plain, masked = [], []
        for number, (name, pattern) in enumerate(_operations()):
            label = f"h{number}_{name}_{pattern}"
            handler = self._handler(label, name, pattern, masked=False)
            plain.append(handler)
            if name in _MASKED:
                handler = self._handler(label + "_masked", name, pattern, masked=True)
            masked.append(handler)
        self._driver(self._table("table", plain), self._table("table_masked", masked))

    def _table(self, name: str, handlers: list[Any]) -> Any:
        kind = self.ir.ArrayType(self.pointer, len(handlers))
        table = self.ir.GlobalVariable(self.module, kind, name)
        table.global_constant = True
        table.initializer = self.ir.Constant(kind, handlers)
        return table

    # --- frame of a handler ----------------------------------------------------------------------

    def _vector(self, lanes: int, real: Any = None) -> Any:
        real = real or self.real
        return self.ir.VectorType(real, lanes) if lanes > 1 else real

    def _handler(self, label: str, name: str, pattern: str, *, masked: bool) -> Any:
        function = self.ir.Function(self.module, self.type, label)
        function.linkage = "internal"
        for argument in function.args[:4]:
            argument.add_attribute("noalias")
        frame = HandlerEmitter(self, function)
        if name == "end":
            frame.builder.ret_void()
            return function
        ip, rows, table, context, length, following = function.args
        # Load the address of the handler after the next one before the work of this handler: the
        # target of the jump is then known early.
        after = self._lookup(frame, ip, table, 2)
        if name in _SPECIAL:
            getattr(self, f"_{name}")(frame, masked)
        else:
            self._elementwise(frame, name, pattern)
        frame.builder.call(
            IndirectFunction(following, self.type),
            [frame.get_address(ip, WORDS, self.i32), rows, table, context, length, after],
            tail="musttail",
        )
        frame.builder.ret_void()
        return function

    def _lookup(self, writer: FunctionEmitter, ip: Any, table: Any, operations: int) -> Any:
        """Load the handler of a later operation."""
        opcode = writer.load_element(ip, WORDS * operations, self.i32)
        return writer.load_element(table, writer.builder.zext(opcode, self.i64), self.pointer)

    def _driver(self, plain: Any, masked: Any) -> None:
        ir, i64 = self.ir, self.i64
        kind = ir.FunctionType(ir.VoidType(), [self.pointer] * 3 + [i64] * 3)
        writer = FunctionEmitter(ir.Function(self.module, kind, "run"))
        builder, size = writer.builder, writer.make_i64(self.size)
        code, rows, context, begin, end, block = writer.function.args
        begin, end = builder.mul(begin, size), builder.mul(end, size)
        unit = writer.make_i64(self.size * self.lanes * UNROLL)
        full_end = builder.sub(end, builder.srem(builder.sub(end, begin), unit))
        for table, first, last in ((plain, begin, full_end), (masked, full_end, end)):
            handlers = [self._lookup(writer, code, table, k) for k in (0, 1)]

            def body(
                position: Any, table: Any = table, last: Any = last, h: Any = handlers
            ) -> None:
                writer.store_element(position, context, CONTEXT_FIELDS.index("position"))
                left = builder.sub(last, position)
                length = builder.select(builder.icmp_signed("<", left, block), left, block)
                builder.call(
                    IndirectFunction(h[0], self.type), [code, rows, table, context, length, h[1]]
                )

            writer.emit_loop(last, block, body, begin=first)
        builder.ret_void()

    # --- operations ------------------------------------------------------------------------------

    def _elementwise(self, frame: HandlerEmitter, name: str, pattern: str) -> None:
        light = name in _LIGHT
        kind, lanes = (self.wide, self.lanes * UNROLL) if light else (self.vector, self.lanes)
        emitter = self.light if light else self.heavy
        operands = [
            frame.load_row_address(2 + i)
            if letter == "r"
            else frame.broadcast(frame.load_uniform(2 + i), lanes)
            for i, letter in enumerate(pattern)
        ]
        result = frame.load_row_address(1)
        with_loads = list(zip(pattern, operands, strict=True))

        def body(offset: Any) -> None:
            values = [
                frame.load_value(value, offset, kind) if letter == "r" else value
                for letter, value in with_loads
            ]
            frame.store_value(emitter.emit(frame.builder, name, *values), result, offset)

        frame.emit_loop(frame.length, self.size * lanes, body, once=True)

    def _load(self, frame: HandlerEmitter, masked: bool) -> None:
        columns = frame.load_context_field("columns", self.pointer)
        column = frame.load_element(columns, frame.load_instruction_word(2), self.pointer)
        column = frame.get_address(column, frame.load_context_field("position", self.i64))
        if not masked:
            self._fill(
                frame, frame.load_row_address(1), lambda o: frame.load_value(column, o, self.wide)
            )
            return
        builder, target = frame.builder, frame.load_row_address(1)

        def number(offset: Any) -> None:  # unused lanes compute with ordinary numbers
            inside = builder.icmp_signed("<", offset, frame.length)
            chosen = builder.select(inside, offset, frame.make_i64(0))
            frame.store_value(frame.load_value(column, chosen, self.real), target, offset)

        frame.emit_loop(self.size * self.lanes * UNROLL, self.size, number, once=True)

    def _store(self, frame: HandlerEmitter, masked: bool) -> None:
        place = frame.builder.mul(
            frame.load_instruction_word(1), frame.load_context_field("stride", self.i64)
        )
        place = frame.builder.add(place, frame.load_context_field("position", self.i64))
        target, row = (
            frame.get_address(frame.load_context_field("results", self.pointer), place),
            frame.load_row_address(2),
        )
        kind = self.real if masked else self.wide
        self._fill(frame, target, lambda o: frame.load_value(row, o, kind), 1 if masked else 0)

    def _store_uniform(self, frame: HandlerEmitter, masked: bool) -> None:
        """Write the handler that copies the first element of a row to the uniform table."""
        value = frame.load_value(frame.load_row_address(2), 0, self.real)
        frame.store_value(
            value, frame.load_context_field("uniform", self.pointer), frame.load_instruction_word(1)
        )

    def _gather_weights(self, frame: HandlerEmitter, masked: bool) -> None:
        """Write the handler that gathers the weights of the affine groups.

        Extended operands: number of weights, destination, sources.
        """
        side, table = (
            frame.get_extended_operands(1),
            frame.load_context_field("uniform", self.pointer),
        )
        target, sources = (
            frame.get_address(table, frame.load_extended_operand(side, 1)),
            frame.get_address(side, 8),
        )

        def weight(number: Any) -> None:
            place = frame.builder.zext(frame.load_element(sources, number, self.i32), self.i64)
            frame.store_element(frame.load_value(table, place, self.real), target, number)

        frame.emit_loop(frame.load_extended_operand(side, 0), 1, weight, once=True)

    def _splat(self, frame: HandlerEmitter, masked: bool) -> None:
        value = frame.broadcast(frame.load_uniform(2), self.lanes * UNROLL)
        self._fill(frame, frame.load_row_address(1), lambda _: value)

    def _fill(
        self, frame: HandlerEmitter, target: Any, value_at: Callable[[Any], Any], numbers: int = 0
    ) -> None:
        """Store the value at each offset of a block.

        Args:
            frame: the handler.
            target: address of the row.
            value_at: returns the value at an offset.
            numbers: elements per store; 0 for the default.
        """
        step = self.size * (numbers or self.lanes * UNROLL)
        frame.emit_loop(
            frame.length, step, lambda o: frame.store_value(value_at(o), target, o), once=True
        )

    def _sincos(self, frame: HandlerEmitter, masked: bool) -> None:
        sine, operand, cosine = (
            frame.load_row_address(1),
            frame.load_row_address(2),
            frame.load_row_address(3),
        )

        def body(offset: Any) -> None:
            value = frame.load_value(operand, offset, self.vector)
            s, c = self.heavy.emit_sincos(frame.builder, value)
            frame.store_value(s, sine, offset)
            frame.store_value(c, cosine, offset)

        frame.emit_loop(frame.length, self.size * self.lanes, body, once=True)

    def _sum(self, frame: HandlerEmitter, masked: bool) -> None:
        self._total(frame, masked, frame.load_row_address(2))

    def _dot(self, frame: HandlerEmitter, masked: bool) -> None:
        self._total(frame, masked, frame.load_row_address(2), frame.load_row_address(3))

    def _total(self, frame: HandlerEmitter, masked: bool, *rows: Any) -> None:
        """Add the elementwise product of rows to a sum."""
        builder = frame.builder

        def body(offset: Any, sums: list[Any]) -> list[Any]:
            values = [frame.load_masked_vector(row, offset, masked) for row in rows]
            if len(rows) == 1:
                return [builder.fadd(sums[0], *values)]
            return [self.heavy.emit(builder, "fma", *values, sums[0])]

        place = frame.get_address(
            frame.load_context_field("results", self.pointer), frame.load_instruction_word(1)
        )
        frame.add_to_sums(place, frame.emit_accumulation_loop(1, body))

    def _affine(self, frame: HandlerEmitter, masked: bool) -> None:
        """Write the handler of affine groups.

        Extended operands: inputs, tiles of outputs, offset of the weights; input rows, output rows.
        """
        builder, emit = frame.builder, self.light_tile.emit
        side = frame.get_extended_operands(1)
        inputs, blocks = frame.load_extended_operand(side, 0), frame.load_extended_operand(side, 1)
        weights = frame.get_address(
            frame.load_context_field("uniform", self.pointer), frame.load_extended_operand(side, 2)
        )
        first_input = frame.get_address(side, 12)
        first_output = frame.get_address(first_input, builder.mul(inputs, frame.make_i64(4)))
        lanes = self.lanes * self.columns
        kind, step = self._vector(lanes), self.size * TILE

        def samples(offset: Any) -> None:
            def block(outputs: Any, at_weights: Any) -> Any:
                read = (frame.load_value(at_weights, self.size * j, self.real) for j in range(TILE))
                biases = [frame.broadcast(one, lanes) for one in read]
                start = frame.get_address(at_weights, step)

                def term(number: Any, state: list[Any]) -> list[Any]:
                    *sums, weight = state
                    row = frame.get_row_address(frame.load_element(first_input, number, self.i32))
                    value = frame.load_value(row, offset, kind)
                    new_sums = []
                    for j, total in enumerate(sums):
                        w = frame.load_value(weight, self.size * j, self.real)
                        new_sums.append(
                            emit(builder, "fma", frame.broadcast(w, lanes), value, total)
                        )
                    return [*new_sums, frame.get_address(weight, step)]

                *sums, weight = frame.emit_carried_loop(
                    inputs, 1, [*biases, start], term, once=True
                )
                for j, total in enumerate(sums):
                    frame.store_value(
                        total,
                        frame.get_row_address(frame.load_element(outputs, j, self.i32)),
                        offset,
                    )
                return weight

            def emit_tile(_: Any, state: list[Any]) -> list[Any]:
                """Compute a tile of outputs, and advance to the next tile."""
                outputs, at_weights = state
                return [frame.get_address(outputs, 4 * TILE), block(outputs, at_weights)]

            frame.emit_carried_loop(blocks, 1, [first_output, weights], emit_tile, once=True)

        frame.emit_loop(frame.length, self.size * lanes, samples, once=True)

    def _outer(self, frame: HandlerEmitter, masked: bool) -> None:
        """Write the handler of outer products.

        Extended operands: tiles of left and right factors, offset of the sums; rows of both.
        """
        builder, width = frame.builder, self.columns
        side = frame.get_extended_operands(1)
        lefts, rights = frame.load_extended_operand(side, 0), frame.load_extended_operand(side, 1)
        sums = frame.get_address(
            frame.load_context_field("results", self.pointer), frame.load_extended_operand(side, 2)
        )
        first_left = frame.get_address(side, 12)
        first_right = frame.get_address(first_left, builder.mul(lefts, frame.make_i64(4 * TILE)))
        tile_bytes = TILE * width * self.lanes * 8

        def rows_at(base: Any, count: int) -> list[Any]:
            return [
                frame.get_row_address(frame.load_element(base, k, self.i32)) for k in range(count)
            ]

        def left_block(_: Any, state: list[Any]) -> list[Any]:
            left_rows = rows_at(state[0], TILE)

            def right_block(_: Any, inner: list[Any]) -> list[Any]:
                right_rows = rows_at(inner[0], width)

                def body(offset: Any, totals: list[Any]) -> list[Any]:
                    a = [frame.load_masked_vector(row, offset, masked) for row in left_rows]
                    b = [frame.load_masked_vector(row, offset, masked) for row in right_rows]
                    return [
                        self.heavy.emit(builder, "fma", a[k // width], b[k % width], total)
                        for k, total in enumerate(totals)
                    ]

                frame.add_to_sums(inner[1], frame.emit_accumulation_loop(TILE * width, body))
                return [
                    frame.get_address(inner[0], 4 * width),
                    frame.get_address(inner[1], tile_bytes),
                ]

            _, after = frame.emit_carried_loop(
                rights, 1, [first_right, state[1]], right_block, once=True
            )
            return [frame.get_address(state[0], 4 * TILE), after]

        frame.emit_carried_loop(lefts, 1, [first_left, sums], left_block, once=True)

    def _call(self, frame: HandlerEmitter, masked: bool) -> None:
        """Write the handler that calls a Python function.

        Extended operands: index of the function, rows of the result and of three operands.
        """
        builder = frame.builder
        side = frame.get_extended_operands(1)
        kind = self.ir.FunctionType(self.ir.VoidType(), [self.i64] * 2 + [self.pointer] * 5)
        rows = [frame.get_row_address(frame.load_extended_operand(side, 1 + k)) for k in range(4)]
        count = builder.udiv(frame.length, frame.make_i64(self.size))
        # The function sets `reply` as its last action: if Ctrl-C interrupts it, `reply` stays 0.
        reply, failed = (
            frame.get_address(frame.context_address, CONTEXT_FIELDS.index(name), self.i64)
            for name in ("reply", "failed")
        )
        builder.store(frame.make_i64(0), reply)
        builder.call(
            IndirectFunction(frame.load_context_field("callback", self.pointer), kind),
            [frame.load_extended_operand(side, 0), count, reply, *rows],
        )
        silent = builder.icmp_signed("==", builder.load(reply, typ=self.i64), frame.make_i64(0))
        previous = builder.load(failed, typ=self.i64)
        builder.store(builder.or_(previous, builder.zext(silent, self.i64)), failed)
