"""Steps of training for large tapes: the interpreter entered from compiled code.

What :class:`cgprimer.native.cpu.interpreted.Interpreted` does in Python around the handlers (the
uniform table, the weights of the matrices, the samples that fill no unit) stands here once more
as LLVM code, for one thread: at every step of an epoch Python would take longer than the work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cgprimer.core.engines import Array
from cgprimer.core.tape.tape import Tape
from cgprimer.native.cpu.code import Code
from cgprimer.native.cpu.fused import addresses, places_of
from cgprimer.native.cpu.handlers import CONTEXT, UNROLL
from cgprimer.native.cpu.interpreted import Interpreted, aligned
from cgprimer.native.cpu.library import Library
from cgprimer.native.cpu.loop_text import Called, Writer

# What the gradient function finds at its context's address, eight bytes each: addresses first.
_ADDRESSES = (
    "values", "order", "table", "given", "uniform_rows", "computed", "uniform", "index", "weights",
    "lanes", "main", "preamble", "rows", "columns", "padded", "mask", "places", "fixed", "sums",
    "inner", "run", "handlers", "masked",
)  # fmt: skip
_NUMBERS = (
    "scalar_count", "given_count", "computed_count", "first_computed", "weight_count",
    "vector_count", "column_count", "place_count", "fixed_count", "stride",
)  # fmt: skip


def gradient_text(*, dtype: str, lanes: int) -> str:
    """A module with ``gradient(context, begin, end)``, whatever the tape."""
    return str(_Gradient(dtype, lanes).module)


class _Gradient(Writer):
    def __init__(self, dtype: str, lanes: int) -> None:
        from llvmlite import ir

        self.module = ir.Module("interpreted_gradient")
        i64 = ir.IntType(64)
        kind = ir.FunctionType(ir.VoidType(), [ir.PointerType(), i64, i64])
        super().__init__(ir.Function(self.module, kind, "gradient"))
        self.real = self.double if dtype == "float64" else ir.FloatType()
        self.size, self.lanes, self.unit = (8 if dtype == "float64" else 4), lanes, lanes * UNROLL
        context, self.begin, self.end = self.function.args
        self.field = {
            name: self.get(context, k, self.pointer if k < len(_ADDRESSES) else i64)
            for k, name in enumerate((*_ADDRESSES, *_NUMBERS))
        }
        self._uniform()
        self._samples()
        self._sums()
        self.build.ret_void()

    def _index(self, name: str, number: Any) -> Any:
        return self.get(self.field[name], number, self.i64)

    def _run(self, code: str, rows: str, handlers: str, begin: Any, end: Any, block: Any) -> None:
        kind = self.ir.FunctionType(self.ir.VoidType(), [self.pointer] * 4 + [self.i64] * 3)
        given = [self.field[name] for name in (code, rows, handlers, "inner")]
        self.build.call(Called(self.field["run"], kind), [*given, begin, end, block])

    def _uniform(self) -> None:
        """Parameters into the uniform table, and what is computed from them alone."""
        build, field, real = self.build, self.field, self.real

        def scalar(number: Any) -> None:
            value = self.get(field["values"], self._index("order", number), self.double)
            self.put(
                value if self.size == 8 else build.fptrunc(value, real), field["table"], number
            )

        self.loop(field["scalar_count"], 1, scalar)

        def given(number: Any) -> None:
            value = self.get(field["table"], self._index("given", number), real)
            first = build.mul(number, self.number(self.unit))
            self.loop(
                self.unit, 1,
                lambda k: self.put(value, field["uniform_rows"], build.add(first, k)), once=True,
            )  # fmt: skip

        self.loop(field["given_count"], 1, given)
        unit = self.number(self.unit * self.size)
        self._run("uniform", "uniform_rows", "handlers", self.number(0), unit, unit)

        def computed(number: Any) -> None:
            row = build.mul(self._index("computed", number), self.number(self.unit))
            value = self.get(field["uniform_rows"], row, real)
            self.put(value, field["table"], build.add(field["first_computed"], number))

        self.loop(field["computed_count"], 1, computed)
        self.loop(
            field["weight_count"], 1,
            lambda k: self.put(
                self.get(field["table"], self._index("index", k), real), field["weights"], k
            ),
        )  # fmt: skip

    def _samples(self) -> None:
        """Whole units of samples, then those that fill none."""
        build, field = self.build, self.field
        nothing = self.ir.Constant(self.double, 0.0)
        count = build.mul(field["vector_count"], self.number(self.lanes))
        self.loop(count, 1, lambda k: self.put(nothing, field["lanes"], k))
        size, stride = self.number(self.size), field["stride"]
        self._run("preamble", "rows", "handlers", self.number(0), stride, stride)
        rest = build.srem(build.sub(self.end, self.begin), self.number(self.unit))
        middle = build.sub(self.end, rest)
        begin, end = build.mul(self.begin, size), build.mul(middle, size)
        self._run("main", "rows", "handlers", begin, end, stride)

        def last(_: Any) -> None:
            def lane(number: Any) -> None:
                real = build.icmp_signed("<", number, rest)
                ones = [self.ir.Constant(self.real, value) for value in (1.0, 0.0)]
                self.put(build.select(real, *ones), field["mask"], number)
                source = build.add(middle, build.select(real, number, self.number(0)))

                def column(which: Any) -> None:
                    given = self.get(field["columns"], which, self.pointer)
                    filled = self.get(field["padded"], which, self.pointer)
                    self.put(self.get(given, source, self.real), filled, number)

                self.loop(field["column_count"], 1, column)

            self.loop(self.unit, 1, lane, once=True)
            place = CONTEXT.index("columns")
            self.put(field["padded"], field["inner"], place)
            whole = self.number(self.unit * self.size)
            self._run("main", "rows", "masked", self.number(0), whole, stride)
            self.put(field["columns"], field["inner"], place)

        self.loop(build.zext(build.icmp_signed(">", rest, self.number(0)), self.i64), 1, last)

    def _sums(self) -> None:
        build, field = self.build, self.field

        def accumulator(number: Any) -> None:
            first = build.mul(self._index("places", number), self.number(self.lanes))
            (total,) = self.fold(
                self.lanes, 1, [self.ir.Constant(self.double, 0.0)],
                lambda lane, s: [
                    build.fadd(s[0], self.get(field["lanes"], build.add(first, lane), self.double))
                ],
                once=True,
            )  # fmt: skip
            self.put(total, field["sums"], number)

        self.loop(field["place_count"], 1, accumulator)
        samples = build.sitofp(build.sub(self.end, self.begin), self.double)

        def fixed(number: Any) -> None:
            value = self.get(field["table"], self._index("fixed", number), self.real)
            wide = value if self.size == 8 else build.fpext(value, self.double)
            place = build.add(field["place_count"], number)
            self.put(build.fmul(wide, samples), field["sums"], place)

        self.loop(field["fixed_count"], 1, fixed)


class InterpretedGradient:
    """Sums of loss and gradient over a range of samples, by the interpreter in one thread.

    The same attributes as :class:`cgprimer.native.cpu.trainer.StraightGradient`.
    """

    def __init__(self, tape: Tape, parameters: Sequence[str], dtype: str) -> None:
        self.program = Interpreted(tape, reduction="sum", dtype=dtype)
        self.dtype, machine, code = self.program.dtype, self.program.machine, self.program.code
        self.library = Library(
            "gradient-interpreted",
            f"{dtype} {machine.lanes}",
            lambda: gradient_text(dtype=dtype, lanes=machine.lanes),
        )
        self.function = self.library.address("gradient")
        self.columns = code.columns
        count = len(code.places)
        names = list(code.fixed)
        self.place_of = {
            **code.summed, **{name: count + k for k, name in enumerate(names)}
        }  # fmt: skip
        self.sums = np.zeros(max(1, count + len(names)))
        self.arrays = self._arrays(code, parameters, [code.fixed[name] for name in names])
        self.numbers = {
            "scalar_count": len(code.scalars),
            "given_count": len(code.given),
            "computed_count": len(code.computed),
            "first_computed": code.table - len(code.computed),
            "weight_count": len(code.weights),
            "vector_count": code.sums,
            "column_count": len(code.columns),
            "place_count": count,
            "fixed_count": len(names),
            "stride": code.stride,
            "run": machine.run,
            "handlers": machine.table,
            "masked": machine.masked,
        }

    def _arrays(self, code: Code, parameters: Sequence[str], fixed: list[int]) -> dict[str, Array]:
        lanes, unit = self.program.machine.lanes, code.unit // self.dtype.itemsize
        table = np.zeros(code.table, self.dtype)
        first = len(code.scalars)
        table[first : first + len(code.constants)] = code.constants
        self.padding = [np.zeros(unit, self.dtype) for _ in code.columns]
        return {
            "order": places_of(code.scalars, parameters),
            "table": table,
            "given": code.given,
            "uniform_rows": aligned(max(1, len(code.given) + len(code.computed)) * code.unit),
            "computed": code.computed,
            "uniform": code.uniform,
            "index": code.weights,
            "weights": np.zeros(max(1, len(code.weights)), self.dtype),
            "lanes": np.zeros(max(1, code.sums) * lanes),
            "main": code.main,
            "preamble": code.preamble,
            "rows": aligned(code.buffer),
            "padded": addresses(self.padding),
            "mask": np.zeros(unit, self.dtype),
            "places": code.places,
            "fixed": np.array(fixed or [0], np.int64),
            "sums": self.sums,
            "side": code.side,
        }

    def context(self, columns: Mapping[str, Array], values: Array) -> tuple[Array, Any]:
        """The context for columns and parameters, and what must live as long as it does."""
        given = [columns[name] for name in self.columns]
        arrays = {**self.arrays, "values": values, "columns": addresses(given)}
        inner_fields = {
            "columns": arrays["columns"], "results": arrays["columns"], "sums": arrays["lanes"],
            "uniform": arrays["table"], "weights": arrays["weights"], "side": arrays["side"],
            "mask": arrays["mask"],
        }  # fmt: skip
        places = {name: array.ctypes.data for name, array in inner_fields.items()}
        places.update(position=0, callback=self.program.callback_address)
        places.update(failed=0, reply=0)
        arrays["inner"] = np.array([places[name] for name in CONTEXT], np.int64)
        self.program.contexts[:] = [arrays["inner"]]
        fields = {name: array.ctypes.data for name, array in arrays.items()} | self.numbers
        context = np.array([fields[name] for name in (*_ADDRESSES, *_NUMBERS)], np.int64)
        return context, (given, arrays)

    def check(self) -> None:
        """Raise what a primitive in Python raised meanwhile."""
        self.program.check()
