"""Sums of loss and gradient over a range of samples, for ``epoch`` to call: in one thread.

A small tape is straight-line code. A large one is the interpreter entered from compiled code: what
:class:`cgprimer.native.cpu.interpreted.Interpreted` does in Python around the handlers (the uniform
table, the weights of the matrices, the samples that fill no unit) stands here once more as LLVM
code, since at every step of an epoch Python would take longer than the work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cgprimer.core.engines import Array
from cgprimer.core.tape.tape import Tape
from cgprimer.garbage_collection import collector_paused
from cgprimer.native.cpu.fused import addresses, places_of
from cgprimer.native.cpu.handlers import CONTEXT, UNROLL
from cgprimer.native.cpu.interpreted import Interpreted, aligned
from cgprimer.native.cpu.library import Library, processor
from cgprimer.native.cpu.loop_text import Called, Writer
from cgprimer.native.cpu.operations import Emitter
from cgprimer.native.cpu.straight_line import FLAGS, order_of, write_run
from cgprimer.native.programs import fingerprint

# What a gradient function finds at its context's address, eight bytes each. ``values`` are the
# parameters, as doubles; ``order`` says which of them each scalar of the tape is. ``lanes`` are
# vectors of sums, ``places`` says which of them is whose; ``fixed`` which number of ``fixed_table``
# is the value of an output that no sample changes. ``sums`` takes all of both.
_ADDRESSES = (
    "values", "order", "table", "lanes", "places", "fixed_table", "fixed", "sums", "columns",
)  # fmt: skip
_NUMBERS = ("scalar_count", "vector_count", "place_count", "fixed_count")
_STRAIGHT = ("results",)
_INTERPRETED = (
    "given", "uniform_rows", "computed", "uniform", "index", "weights", "main", "preamble", "rows",
    "padded", "mask", "inner", "run", "handlers", "masked", "given_count", "computed_count",
    "first_computed", "weight_count", "column_count", "stride",
)  # fmt: skip
_WHOLE = ("_count", "first_computed", "stride")  # endings of those that are numbers, no addresses


class _GradientText(Writer):
    """A function ``gradient(context, begin, end)``; what differs is ``prepare`` and ``samples``."""

    def __init__(self, module: Any, dtype: str, lanes: int, more: Sequence[str]) -> None:
        from llvmlite import ir

        i64 = ir.IntType(64)
        kind = ir.FunctionType(ir.VoidType(), [ir.PointerType(), i64, i64])
        super().__init__(ir.Function(module, kind, "gradient"))
        self.real = self.double if dtype == "float64" else ir.FloatType()
        self.size, self.lanes = (8 if dtype == "float64" else 4), lanes
        context, self.begin, self.end = self.function.args
        self.field = {
            name: self.get(context, k, i64 if name.endswith(_WHOLE) else self.pointer)
            for k, name in enumerate((*_ADDRESSES, *_NUMBERS, *more))
        }
        self._scalars()
        self.prepare()
        nothing = ir.Constant(self.double, 0.0)
        count = self.build.mul(self.field["vector_count"], self.number(lanes))
        self.loop(count, 1, lambda k: self.put(nothing, self.field["lanes"], k))
        self.samples()
        self._sums()
        self.build.ret_void()

    def prepare(self) -> None:
        """What is computed before the first sample."""

    def samples(self) -> None:
        """Add all samples to ``lanes``."""
        raise NotImplementedError

    def index(self, name: str, number: Any) -> Any:
        """An entry of a table of integers."""
        return self.get(self.field[name], number, self.i64)

    def _scalars(self) -> None:
        def scalar(number: Any) -> None:
            value = self.get(self.field["values"], self.index("order", number), self.double)
            narrow = value if self.size == 8 else self.build.fptrunc(value, self.real)
            self.put(narrow, self.field["table"], number)

        self.loop(self.field["scalar_count"], 1, scalar)

    def _sums(self) -> None:
        build, field = self.build, self.field

        def accumulator(number: Any) -> None:
            first = build.mul(self.index("places", number), self.number(self.lanes))
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
            value = self.get(field["fixed_table"], self.index("fixed", number), self.real)
            wide = value if self.size == 8 else build.fpext(value, self.double)
            place = build.add(field["place_count"], number)
            self.put(build.fmul(wide, samples), field["sums"], place)

        self.loop(field["fixed_count"], 1, fixed)


class _StraightText(_GradientText):
    def __init__(self, tape: Tape, dtype: str, lanes: int) -> None:
        from llvmlite import ir

        self.module = ir.Module("gradient")
        self.functions = {
            width: write_run(
                Emitter(self.module, dtype, width, flags=FLAGS), f"run_{width}", tape, sums=True
            )
            for width in dict.fromkeys((lanes, 1))
        }
        super().__init__(self.module, dtype, lanes, _STRAIGHT)

    def samples(self) -> None:
        """Whole vectors first; what is left one sample at a time, in the first lanes."""
        build, field = self.build, self.field
        rest = build.srem(build.sub(self.end, self.begin), self.number(self.lanes))
        middle = self.begin if self.lanes == 1 else build.sub(self.end, rest)
        if self.lanes > 1:
            given = [field["columns"], field["results"], field["table"], self.begin, middle]
            build.call(self.functions[self.lanes], given)
        given = [field["columns"], field["results"], field["table"], middle, self.end]
        build.call(self.functions[1], given)


class _InterpretedText(_GradientText):
    def __init__(self, dtype: str, lanes: int) -> None:
        from llvmlite import ir

        self.module = ir.Module("interpreted_gradient")
        self.unit = lanes * UNROLL
        super().__init__(self.module, dtype, lanes, _INTERPRETED)

    def _run(self, code: str, rows: str, handlers: str, begin: Any, end: Any, block: Any) -> None:
        kind = self.ir.FunctionType(self.ir.VoidType(), [self.pointer] * 4 + [self.i64] * 3)
        given = [self.field[name] for name in (code, rows, handlers, "inner")]
        self.build.call(Called(self.field["run"], kind), [*given, begin, end, block])

    def prepare(self) -> None:
        """What is computed from the parameters alone, and the weights of the matrices."""
        build, field, real = self.build, self.field, self.real

        def given(number: Any) -> None:
            value = self.get(field["table"], self.index("given", number), real)
            first = build.mul(number, self.number(self.unit))
            self.loop(
                self.unit, 1,
                lambda k: self.put(value, field["uniform_rows"], build.add(first, k)), once=True,
            )  # fmt: skip

        self.loop(field["given_count"], 1, given)
        unit = self.number(self.unit * self.size)
        self._run("uniform", "uniform_rows", "handlers", self.number(0), unit, unit)

        def computed(number: Any) -> None:
            row = build.mul(self.index("computed", number), self.number(self.unit))
            value = self.get(field["uniform_rows"], row, real)
            self.put(value, field["table"], build.add(field["first_computed"], number))

        self.loop(field["computed_count"], 1, computed)
        self.loop(
            field["weight_count"], 1,
            lambda k: self.put(
                self.get(field["table"], self.index("index", k), real), field["weights"], k
            ),
        )  # fmt: skip

    def samples(self) -> None:
        """Whole units of samples, then those that fill none."""
        build, field = self.build, self.field
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


class Gradient:
    """Sums of loss and gradient over a range of samples.

    Args:
        library: with the function ``gradient``.
        dtype: of the computation.
        columns: names of the tape's columns.
        place_of: where each output's sum stands in ``sums``.
        arrays, numbers: entries of the context; the addresses of the arrays, and plain numbers.

    Attributes:
        function: address for ``epoch``.
        sums: what the function writes.
    """

    def __init__(
        self,
        library: Library,
        dtype: Any,
        columns: Sequence[str],
        place_of: Mapping[str, int],
        arrays: Mapping[str, Array],
        numbers: Mapping[str, int],
    ) -> None:
        self.library, self.function = library, library.address("gradient")
        self.dtype, self.columns, self.place_of = np.dtype(dtype), columns, place_of
        self.sums = np.zeros(max(1, numbers["place_count"] + numbers["fixed_count"]))
        self.arrays = {**arrays, "sums": self.sums}
        self.numbers = numbers

    def context(self, columns: Mapping[str, Array], values: Array) -> tuple[Array, Any]:
        """The context for columns and parameters, and what must live as long as it does."""
        given = [columns[name] for name in self.columns]
        arrays = {**self.arrays, "values": values, "columns": addresses(given)}
        more = self.inner(arrays)
        fields = {name: array.ctypes.data for name, array in arrays.items()} | dict(self.numbers)
        names = (*_ADDRESSES, *_NUMBERS, *more)
        return np.array([fields[name] for name in names], np.int64), (given, arrays)

    def inner(self, arrays: dict[str, Array]) -> Sequence[str]:
        """Add what depends on the arrays; returns the names that end the context."""
        return _STRAIGHT

    def check(self) -> None:
        """Raise what a primitive in Python raised meanwhile: straight-line code calls none."""


class StraightGradient(Gradient):
    """The gradient as straight-line code.

    Args:
        tape: an optimized tape of sums whose scalars are all parameters.
        parameters: names of the parameters, in the order of their values.
        dtype: of the computation.
        batch: samples at a time; for few there are no vectors.
    """

    def __init__(self, tape: Tape, parameters: Sequence[str], dtype: str, batch: int) -> None:
        lanes = processor().lanes(dtype)
        lanes = lanes if batch >= lanes else 1
        with collector_paused():
            library = Library(
                "gradient",
                f"{fingerprint(tape)} {dtype} {lanes}",
                lambda: str(_StraightText(tape, dtype, lanes).module),
            )
        order, scalars = order_of(tape), tape.of_kind("scalar")
        count, fixed_count = len(order.varying), len(order.fixed)
        places = {value: k for k, value in enumerate((*order.varying, *order.fixed))}
        totals, fixed = np.zeros((max(1, count), lanes)), np.zeros(max(1, fixed_count), dtype)
        arrays = {
            "order": places_of(scalars, parameters),
            "table": np.zeros(max(1, len(scalars)), dtype),
            "lanes": totals,
            "places": np.arange(max(1, count)),
            "fixed_table": fixed,
            "fixed": np.arange(max(1, fixed_count)),
            "results": addresses([*totals[:count], fixed]),
        }
        numbers = {
            "scalar_count": len(scalars),
            "vector_count": count,
            "place_count": count,
            "fixed_count": fixed_count,
        }
        place_of = {name: places[value] for name, value in tape.outputs.items()}
        super().__init__(library, dtype, tape.of_kind("column"), place_of, arrays, numbers)


class InterpretedGradient(Gradient):
    """The gradient of a large tape, by the interpreter; arguments as of a straight one."""

    def __init__(self, tape: Tape, parameters: Sequence[str], dtype: str) -> None:
        self.program = program = Interpreted(tape, reduction="sum", dtype=dtype)
        machine, code, real = program.machine, program.code, program.dtype
        library = Library(
            "gradient-interpreted",
            f"{dtype} {machine.lanes}",
            lambda: str(_InterpretedText(dtype, machine.lanes).module),
        )
        names, count = list(code.fixed), len(code.places)
        unit = code.unit // real.itemsize
        table = np.zeros(code.table, real)
        first = len(code.scalars)
        table[first : first + len(code.constants)] = code.constants
        self.padding = [np.zeros(unit, real) for _ in code.columns]
        arrays = {
            "order": places_of(code.scalars, parameters),
            "table": table,
            "lanes": np.zeros(max(1, code.sums) * machine.lanes),
            "places": code.places,
            "fixed_table": table,
            "fixed": np.array([code.fixed[name] for name in names] or [0], np.int64),
            "given": code.given,
            "uniform_rows": aligned(max(1, len(code.given) + len(code.computed)) * code.unit),
            "computed": code.computed,
            "uniform": code.uniform,
            "index": code.weights,
            "weights": np.zeros(max(1, len(code.weights)), real),
            "main": code.main,
            "preamble": code.preamble,
            "rows": aligned(code.buffer),
            "padded": addresses(self.padding),
            "mask": np.zeros(unit, real),
            "side": code.side,
        }
        numbers = {
            "scalar_count": len(code.scalars),
            "vector_count": code.sums,
            "place_count": count,
            "fixed_count": len(names),
            "given_count": len(code.given),
            "computed_count": len(code.computed),
            "first_computed": code.table - len(code.computed),
            "weight_count": len(code.weights),
            "column_count": len(code.columns),
            "stride": code.stride,
            "run": machine.run,
            "handlers": machine.table,
            "masked": machine.masked,
        }
        place_of = {**code.summed, **{name: count + k for k, name in enumerate(names)}}
        super().__init__(library, dtype, code.columns, place_of, arrays, numbers)

    def inner(self, arrays: dict[str, Array]) -> Sequence[str]:
        """The interpreter's own context."""
        fields = {
            "columns": "columns", "results": "columns", "sums": "lanes", "uniform": "table",
            "weights": "weights", "side": "side", "mask": "mask",
        }  # fmt: skip
        places = {name: arrays[array].ctypes.data for name, array in fields.items()}
        places |= {"position": 0, "callback": self.program.callback_address}
        arrays["inner"] = np.array([places.get(name, 0) for name in CONTEXT], np.int64)
        self.program.contexts[:] = [arrays["inner"]]
        return _INTERPRETED

    def check(self) -> None:
        """Raise what a primitive in Python raised meanwhile."""
        self.program.check()
