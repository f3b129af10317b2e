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
from functools import partial

from cgprimer.backends.cpu.function_emitter import FunctionEmitter, IndirectFunction
from cgprimer.backends.cpu.handler_emitter import CONTEXT_FIELDS, HandlerEmitter
from cgprimer.backends.cpu.primitive_ir import SUPPORTED, PrimitiveEmitter
from cgprimer.backends.cpu.straight_line import FLAGS
from cgprimer.backends.cpu.vector_ir import Ir
from cgprimer.backends.plan_encoding import TILE, WORDS
from cgprimer.core.operations import primitives

UNROLL = 4  # vectors per iteration of a handler

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


def _list_operations() -> Iterator[tuple[str, str]]:
    """Yield the name and the operand pattern of each interpreter operation, in opcode order."""
    for name in _SPECIAL:
        yield name, ""
    for name in ("fma", "fms", "fnma"):
        for pattern in _MIXED[name]:
            yield name, pattern
    for row in primitives():
        if row.name in SUPPORTED:  # replaced primitives included, so that opcodes do not change
            for pattern in _MIXED.get(row.name, ("r" * row.arity,)):
                yield row.name, pattern


def number_opcodes() -> dict[tuple[str, str], int]:
    """Return the opcode of each interpreter operation, keyed by name and operand pattern.

    A built-in primitive that is replaced by a custom primitive has no opcode: it becomes a call to
    a Python function.
    """
    replaced = {row.name for row in primitives() if not row.built_in and row.name in SUPPORTED}
    numbered = enumerate(_list_operations())
    return {operation: number for number, operation in numbered if operation[0] not in replaced}


def choose_tile_columns(registers: int) -> int:
    """Choose the number of columns of a register tile for a number of vector registers.

    A tile of an outer product has TILE left factors and one right factor per column; a tile of an
    affine group has TILE outputs and one vector of samples per column.
    """
    return 4 if registers >= 32 else 2


class HandlerModule:
    """The LLVM module of the interpreter: one handler per operation, and ``run``.

    ``run`` processes a range of samples in blocks of ``block`` bytes per row. Masked handlers
    process the last samples, which do not fill a unit.
    """

    def __init__(self, dtype: str, lanes: int, registers: int) -> None:
        from llvmlite import ir

        self.ir, self.lanes = ir, lanes
        self.columns = choose_tile_columns(registers)
        self.module = ir.Module("interpreter")
        self.pointer, self.i32, self.i64 = ir.PointerType(), ir.IntType(32), ir.IntType(64)
        emitter = partial(PrimitiveEmitter, self.module, dtype, flags=FLAGS)
        self.unrolled_emitter = emitter(lanes * UNROLL)
        self.emitter = emitter(lanes, inline=True)
        # With as many vectors as a tile has columns.
        self.tile_emitter = emitter(lanes * self.columns)
        self.scalar_type, self.itemsize = (
            self.emitter.format.scalar_type,
            self.emitter.format.itemsize,
        )
        self.handler_type = ir.FunctionType(
            ir.VoidType(), [self.pointer] * 4 + [self.i64, self.pointer]
        )
        plain, masked = [], []
        for number, (name, pattern) in enumerate(_list_operations()):
            label = f"h{number}_{name}_{pattern}"
            handler = self._emit_handler(label, name, pattern, masked=False)
            plain.append(handler)
            if name in _MASKED:
                handler = self._emit_handler(label + "_masked", name, pattern, masked=True)
            masked.append(handler)
        tables = (
            self._add_dispatch_table("table", plain),
            self._add_dispatch_table("table_masked", masked),
        )
        self._emit_run_function(*tables)

    # --- dispatch --------------------------------------------------------------------------------

    def _add_dispatch_table(self, name: str, handlers: list[Ir]) -> Ir:
        """Add a constant table of handler addresses to the LLVM module."""
        table_type = self.ir.ArrayType(self.pointer, len(handlers))
        table = self.ir.GlobalVariable(self.module, table_type, name)
        table.global_constant = True
        table.initializer = self.ir.Constant(table_type, handlers)
        return table

    def _emit_handler(self, label: str, name: str, pattern: str, *, masked: bool) -> Ir:
        """Emit the handler of an operation, which ends with a jump to the next handler."""
        function = self.ir.Function(self.module, self.handler_type, label)
        function.linkage = "internal"
        for argument in function.args[:4]:
            argument.add_attribute("noalias")
        handler = HandlerEmitter(function, self.emitter)
        if name == "end":
            handler.builder.ret_void()
            return function
        ip, rows, table, context, length, next_handler = function.args
        # Load the address of the handler after the next one before the work of this handler: the
        # target of the jump is then known early.
        second_next = self._load_handler(handler, ip, table, 2)
        if name in _SPECIAL:
            getattr(self, f"_emit_{name}")(handler, masked)
        else:
            self._emit_elementwise(handler, name, pattern)
        handler.builder.call(
            IndirectFunction(next_handler, self.handler_type),
            [handler.get_address(ip, WORDS, self.i32), rows, table, context, length, second_next],
            tail="musttail",
        )
        handler.builder.ret_void()
        return function

    def _load_handler(self, emitter: FunctionEmitter, ip: Ir, table: Ir, distance: int) -> Ir:
        """Load the address of the handler of a following instruction."""
        opcode = emitter.load_element(ip, WORDS * distance, self.i32)
        return emitter.load_element(table, emitter.builder.zext(opcode, self.i64), self.pointer)

    def _emit_run_function(self, plain: Ir, masked: Ir) -> None:
        """Emit the function ``run``, which executes a program on blocks of samples."""
        ir, i64 = self.ir, self.i64
        function_type = ir.FunctionType(ir.VoidType(), [self.pointer] * 3 + [i64] * 3)
        emitter = FunctionEmitter(ir.Function(self.module, function_type, "run"))
        builder, itemsize = emitter.builder, emitter.make_i64(self.itemsize)
        code, rows, context, begin, end, block = emitter.function.args
        begin, end = builder.mul(begin, itemsize), builder.mul(end, itemsize)
        unit = emitter.make_i64(self.itemsize * self.lanes * UNROLL)
        full_end = builder.sub(end, builder.srem(builder.sub(end, begin), unit))
        for table, first, last in ((plain, begin, full_end), (masked, full_end, end)):
            handlers = [self._load_handler(emitter, code, table, k) for k in (0, 1)]

            def emit_block(
                position: Ir, table: Ir = table, last: Ir = last, handlers: list[Ir] = handlers
            ) -> None:
                """Execute the program on one block of samples."""
                emitter.store_element(position, context, CONTEXT_FIELDS.index("position"))
                remaining = builder.sub(last, position)
                is_last = builder.icmp_signed("<", remaining, block)
                length = builder.select(is_last, remaining, block)
                builder.call(
                    IndirectFunction(handlers[0], self.handler_type),
                    [code, rows, table, context, length, handlers[1]],
                )

            emitter.emit_loop(last, block, emit_block, begin=first)
        builder.ret_void()

    # --- loads, stores and elementwise operations ------------------------------------------------

    def _emit_elementwise(self, handler: HandlerEmitter, name: str, pattern: str) -> None:
        """Emit the handler of an elementwise primitive."""
        emitter = self.unrolled_emitter if name in _LIGHT else self.emitter
        operands = [
            handler.load_row_address(2 + i)
            if letter == "r"
            else handler.broadcast(handler.load_uniform(2 + i), emitter.width)
            for i, letter in enumerate(pattern)
        ]
        result = handler.load_row_address(1)

        def compute_vector(offset: Ir) -> Ir:
            """Compute one vector of the primitive's result."""
            values = [
                handler.load_value(operand, offset, emitter.type) if letter == "r" else operand
                for letter, operand in zip(pattern, operands, strict=True)
            ]
            return emitter.emit(handler.builder, name, *values)

        self._fill_row(handler, result, compute_vector, emitter.width)

    def _fill_row(
        self,
        handler: HandlerEmitter,
        target: Ir,
        compute_value: Callable[[Ir], Ir],
        lanes: int = 0,
    ) -> None:
        """Emit a loop that stores computed values to a buffer row.

        Args:
            handler: the handler.
            target: address of the row.
            compute_value: emits the value at an offset.
            lanes: elements per store; by default, those of UNROLL vectors.
        """

        def emit_store(offset: Ir) -> None:
            """Store the value at one offset."""
            handler.store_value(compute_value(offset), target, offset)

        step = self.itemsize * (lanes or self.lanes * UNROLL)
        handler.emit_loop(handler.length, step, emit_store, once=True)

    def _emit_load(self, handler: HandlerEmitter, masked: bool) -> None:
        """Emit the handler that loads samples of a column into a buffer row."""
        columns = handler.load_context_field("columns", self.pointer)
        column = handler.load_element(columns, handler.load_instruction_word(2), self.pointer)
        column = handler.get_address(column, handler.load_context_field("position", self.i64))
        if not masked:
            unrolled_type = self.unrolled_emitter.type
            self._fill_row(
                handler,
                handler.load_row_address(1),
                lambda offset: handler.load_value(column, offset, unrolled_type),
            )
            return
        builder, target = handler.builder, handler.load_row_address(1)

        def load_element(offset: Ir) -> None:
            """Load one element of a column; unused lanes repeat the first element."""
            inside = builder.icmp_signed("<", offset, handler.length)
            source = builder.select(inside, offset, handler.make_i64(0))
            handler.store_value(
                handler.load_value(column, source, self.scalar_type), target, offset
            )

        unit = self.itemsize * self.lanes * UNROLL
        handler.emit_loop(unit, self.itemsize, load_element, once=True)

    def _emit_store(self, handler: HandlerEmitter, masked: bool) -> None:
        """Emit the handler that stores a buffer row to an output array."""
        builder = handler.builder
        offset = builder.mul(
            handler.load_instruction_word(1), handler.load_context_field("stride", self.i64)
        )
        offset = builder.add(offset, handler.load_context_field("position", self.i64))
        target = handler.get_address(handler.load_context_field("results", self.pointer), offset)
        row = handler.load_row_address(2)
        value_type = self.scalar_type if masked else self.unrolled_emitter.type
        self._fill_row(
            handler, target, lambda o: handler.load_value(row, o, value_type), 1 if masked else 0
        )

    def _emit_store_uniform(self, handler: HandlerEmitter, masked: bool) -> None:
        """Emit the handler that stores a scalar result in the table of uniform values."""
        value = handler.load_value(handler.load_row_address(2), 0, self.scalar_type)
        table = handler.load_context_field("uniform", self.pointer)
        handler.store_value(value, table, handler.load_instruction_word(1))

    def _emit_gather_weights(self, handler: HandlerEmitter, masked: bool) -> None:
        """Emit the handler that copies the weights of affine layers into contiguous memory.

        Extended operands: number of weights, destination, sources.
        """
        extended = handler.get_extended_operands(1)
        table = handler.load_context_field("uniform", self.pointer)
        target = handler.get_address(table, handler.load_extended_operand(extended, 1))
        sources = handler.get_address(extended, 8)

        def copy_weight(index: Ir) -> None:
            """Copy one weight to contiguous memory."""
            offset = handler.builder.zext(handler.load_element(sources, index, self.i32), self.i64)
            weight = handler.load_value(table, offset, self.scalar_type)
            handler.store_element(weight, target, index)

        count = handler.load_extended_operand(extended, 0)
        handler.emit_loop(count, 1, copy_weight, once=True)

    def _emit_splat(self, handler: HandlerEmitter, masked: bool) -> None:
        """Emit the handler that fills a buffer row with a scalar."""
        value = handler.broadcast(handler.load_uniform(2), self.lanes * UNROLL)
        self._fill_row(handler, handler.load_row_address(1), lambda _: value)

    def _emit_sincos(self, handler: HandlerEmitter, masked: bool) -> None:
        """Emit the handler that computes the sine and cosine of a buffer row."""
        sine_row, operand_row, cosine_row = (handler.load_row_address(k) for k in (1, 2, 3))

        def emit_vector(offset: Ir) -> None:
            """Compute the sine and cosine of one vector."""
            operand = handler.load_value(operand_row, offset, self.emitter.type)
            sine, cosine = self.emitter.emit_sincos(handler.builder, operand)
            handler.store_value(sine, sine_row, offset)
            handler.store_value(cosine, cosine_row, offset)

        handler.emit_loop(handler.length, self.itemsize * self.lanes, emit_vector, once=True)

    # --- sums over the samples -------------------------------------------------------------------

    def _emit_sum(self, handler: HandlerEmitter, masked: bool) -> None:
        """Emit the handler that adds the elements of a buffer row to a sum."""
        self._emit_sum_of_products(handler, masked, handler.load_row_address(2))

    def _emit_dot(self, handler: HandlerEmitter, masked: bool) -> None:
        """Emit the handler that adds the dot product of two buffer rows to a sum."""
        rows = handler.load_row_address(2), handler.load_row_address(3)
        self._emit_sum_of_products(handler, masked, *rows)

    def _emit_sum_of_products(self, handler: HandlerEmitter, masked: bool, *rows: Ir) -> None:
        """Emit code that adds the elementwise products of buffer rows to a sum."""
        builder = handler.builder

        def emit_vector(offset: Ir, sums: list[Ir]) -> list[Ir]:
            """Add the product of one vector per buffer row to the sum."""
            values = [handler.load_row_vector(row, offset, masked) for row in rows]
            if len(rows) == 1:
                return [builder.fadd(sums[0], *values)]
            return [self.emitter.emit(builder, "fma", *values, sums[0])]

        results = handler.load_context_field("results", self.pointer)
        address = handler.get_address(results, handler.load_instruction_word(1))
        handler.add_to_sums(handler.emit_accumulation_loop(1, emit_vector), address)

    # --- matrix products -------------------------------------------------------------------------

    def _emit_affine(self, handler: HandlerEmitter, masked: bool) -> None:
        """Emit the handler of affine layers: a weight matrix times the inputs, plus biases.

        Extended operands: inputs, tiles of outputs, offset of the weights; input rows, output rows.
        """
        builder, emit = handler.builder, self.tile_emitter.emit
        extended = handler.get_extended_operands(1)
        inputs, tiles = (handler.load_extended_operand(extended, k) for k in (0, 1))
        weights = handler.get_address(
            handler.load_context_field("uniform", self.pointer),
            handler.load_extended_operand(extended, 2),
        )
        first_input = handler.get_address(extended, 12)
        first_output = handler.get_address(first_input, builder.mul(inputs, handler.make_i64(4)))
        lanes, tile_type = self.tile_emitter.width, self.tile_emitter.type
        weights_step = self.itemsize * TILE

        def load_weights(address: Ir) -> Iterator[Ir]:
            """Load a bias or weight for each output of a tile; broadcast each to all lanes."""
            for j in range(TILE):
                weight = handler.load_value(address, self.itemsize * j, self.scalar_type)
                yield handler.broadcast(weight, lanes)

        def emit_samples(offset: Ir) -> None:
            """Emit code that computes all outputs of an affine layer for a vector of samples."""

            def add_input(index: Ir, state: list[Ir]) -> list[Ir]:
                """Add one input times its weights to a tile of outputs."""
                *sums, address = state
                row = handler.get_row_address(handler.load_element(first_input, index, self.i32))
                value = handler.load_value(row, offset, tile_type)
                pairs = zip(load_weights(address), sums, strict=True)
                new_sums = [emit(builder, "fma", weight, value, total) for weight, total in pairs]
                return [*new_sums, handler.get_address(address, weights_step)]

            def emit_tile(_: Ir, state: list[Ir]) -> list[Ir]:
                """Compute a tile of outputs of an affine layer."""
                outputs, address = state
                next_outputs = handler.get_address(outputs, 4 * TILE)
                biases = list(load_weights(address))
                start = handler.get_address(address, weights_step)
                *sums, address = handler.emit_carried_loop(
                    inputs, 1, [*biases, start], add_input, once=True
                )
                for j, total in enumerate(sums):
                    row = handler.get_row_address(handler.load_element(outputs, j, self.i32))
                    handler.store_value(total, row, offset)
                return [next_outputs, address]

            handler.emit_carried_loop(tiles, 1, [first_output, weights], emit_tile, once=True)

        handler.emit_loop(handler.length, self.itemsize * lanes, emit_samples, once=True)

    def _emit_outer(self, handler: HandlerEmitter, masked: bool) -> None:
        """Emit the handler that sums outer products of two vectors over the samples.

        Extended operands: tiles of left and right factors, offset of the sums; rows of both.
        """
        builder, width = handler.builder, self.columns
        extended = handler.get_extended_operands(1)
        left_tiles, right_tiles = (handler.load_extended_operand(extended, k) for k in (0, 1))
        sums = handler.get_address(
            handler.load_context_field("results", self.pointer),
            handler.load_extended_operand(extended, 2),
        )
        first_left = handler.get_address(extended, 12)
        left_bytes = builder.mul(left_tiles, handler.make_i64(4 * TILE))
        first_right = handler.get_address(first_left, left_bytes)
        tile_bytes = TILE * width * self.lanes * 8

        def load_row_addresses(base: Ir, count: int) -> list[Ir]:
            """Load the addresses of consecutive buffer rows."""
            offsets = (handler.load_element(base, k, self.i32) for k in range(count))
            return [handler.get_row_address(offset) for offset in offsets]

        def emit_left_tile(_: Ir, state: list[Ir]) -> list[Ir]:
            """Multiply a tile of left factors by all right factors."""
            left_rows = load_row_addresses(state[0], TILE)

            def emit_tile(_: Ir, inner: list[Ir]) -> list[Ir]:
                """Multiply a tile of left factors by a tile of right factors."""
                right_rows = load_row_addresses(inner[0], width)

                def emit_vectors(offset: Ir, totals: list[Ir]) -> list[Ir]:
                    """Add the products of one vector per factor to the sums."""
                    a = [handler.load_row_vector(row, offset, masked) for row in left_rows]
                    b = [handler.load_row_vector(row, offset, masked) for row in right_rows]
                    return [
                        self.emitter.emit(builder, "fma", a[k // width], b[k % width], total)
                        for k, total in enumerate(totals)
                    ]

                totals = handler.emit_accumulation_loop(TILE * width, emit_vectors)
                handler.add_to_sums(totals, inner[1])
                next_right = handler.get_address(inner[0], 4 * width)
                return [next_right, handler.get_address(inner[1], tile_bytes)]

            _, next_sums = handler.emit_carried_loop(
                right_tiles, 1, [first_right, state[1]], emit_tile, once=True
            )
            return [handler.get_address(state[0], 4 * TILE), next_sums]

        handler.emit_carried_loop(left_tiles, 1, [first_left, sums], emit_left_tile, once=True)

    # --- calls to Python -------------------------------------------------------------------------

    def _emit_call(self, handler: HandlerEmitter, masked: bool) -> None:
        """Emit the handler that calls a Python function.

        Extended operands: index of the function, rows of the result and of three operands.
        """
        builder = handler.builder
        extended = handler.get_extended_operands(1)
        callback_type = self.ir.FunctionType(
            self.ir.VoidType(), [self.i64] * 2 + [self.pointer] * 5
        )
        rows = [
            handler.get_row_address(handler.load_extended_operand(extended, 1 + k))
            for k in range(4)
        ]
        count = builder.udiv(handler.length, handler.make_i64(self.itemsize))
        # The function sets `reply` as its last action: if Ctrl-C interrupts it, `reply` stays 0.
        reply, failed = (handler.get_context_field_address(name) for name in ("reply", "failed"))
        builder.store(handler.make_i64(0), reply)
        builder.call(
            IndirectFunction(handler.load_context_field("callback", self.pointer), callback_type),
            [handler.load_extended_operand(extended, 0), count, reply, *rows],
        )
        no_reply = builder.icmp_signed("==", builder.load(reply, typ=self.i64), handler.make_i64(0))
        previous = builder.load(failed, typ=self.i64)
        builder.store(builder.or_(previous, builder.zext(no_reply, self.i64)), failed)
