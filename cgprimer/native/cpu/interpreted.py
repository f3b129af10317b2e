"""Running a plan on the interpreter: any tape, from one operation to a million."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import cache, partial
from threading import Lock
from typing import Any

import numpy as np

from cgprimer.cache import kept, key_of, package_state
from cgprimer.core.engines import Array, Reduction
from cgprimer.core.primitives import arrays, primitive
from cgprimer.core.tape.tape import Tape
from cgprimer.garbage_collection import collector_paused
from cgprimer.native.arguments import apart, as_columns, as_scalars, result_of, times_samples
from cgprimer.native.cpu import threads
from cgprimer.native.cpu.code import Code, assembled
from cgprimer.native.cpu.fused import addresses, padded
from cgprimer.native.cpu.handlers import CONTEXT, module_text, tile_width
from cgprimer.native.cpu.library import Library, processor
from cgprimer.native.plans.making import plan
from cgprimer.native.programs import fingerprint, shareable

_POINTER, _INT = ctypes.c_void_p, ctypes.c_int64
_CALLBACK = ctypes.CFUNCTYPE(None, _INT, _INT, *[_POINTER] * 5)
_ALIGNMENT = 64
_FAILED = CONTEXT.index("failed")
_WORTH_KEEPING = 1000  # instructions; smaller tapes are encoded faster than a file is found


class Machine:
    """The handlers for one type of numbers, loaded."""

    def __init__(self, dtype: str) -> None:
        chosen = processor()
        self.lanes = chosen.lanes(dtype)
        self.tile = tile_width(chosen.registers)
        text = partial(module_text, dtype=dtype, lanes=self.lanes, registers=chosen.registers)
        key = f"{dtype} {self.lanes} {chosen.registers}"
        self.library = Library("interpreter", key, text)
        self.run = self.library.address("run")
        self.table = self.library.address_of_data("table")
        self.masked = self.library.address_of_data("table_masked")


machine = cache(Machine)


class Interpreted:
    """A tape as code for the interpreter.

    Args:
        tape: what to run.
        reduction: ``none`` or ``sum``.
        dtype: ``float64`` or ``float32``.
    """

    def __init__(self, tape: Tape, *, reduction: Reduction, dtype: str) -> None:
        self.dtype = np.dtype(dtype)
        self.outputs = tuple(tape.outputs)
        self.machine = machine(dtype)
        self.run = self.machine.run
        self.operations = max(1, len(tape))
        with collector_paused():
            self.code = self._kept_code(tape, reduction)
        self.sums = reduction == "sum"
        self.scalars = self.code.scalars
        # Where each output's sum stands: among the vectors of sums, or behind them.
        names = list(self.code.fixed)
        self.fixed = np.array([self.code.fixed[name] for name in names], np.int64)
        count = max(1, self.code.sums)
        places = {name: int(self.code.places[k]) for name, k in self.code.summed.items()}
        places.update({name: count + k for k, name in enumerate(names)})
        self.reads = np.array([places.get(name, 0) for name in self.outputs], np.int64)
        self.failures: list[BaseException] = []
        self.contexts: list[Array] = []  # of this call: each tells whether a function failed
        # Primitives in Python report their failures through the list: one call at a time, then.
        self.alone = Lock() if self.code.functions else nullcontext()
        self.callback = _callback(self.code.functions, self.dtype, self.failures)

    def _kept_code(self, tape: Tape, reduction: Reduction) -> Code:
        def made() -> Code:
            return assembled(
                plan(tape, sums=reduction == "sum"),
                itemsize=self.dtype.itemsize,
                lanes=self.machine.lanes,
                tile=self.machine.tile,
            )

        if len(tape) < _WORTH_KEEPING or not shareable(tape):
            return made()
        layout = f"{reduction} {self.dtype} {self.machine.lanes} {self.machine.tile}"
        key = key_of(package_state(), fingerprint(tape), layout)
        return Code.from_bytes(kept("code", key, lambda: made().to_bytes()))

    def __call__(
        self, columns: Mapping[str, Array], scalars: Mapping[str, Any], samples: int
    ) -> dict[str, Array]:
        """Run the tape; see :class:`cgprimer.core.methods.contract.Execute`."""
        values = as_scalars(scalars, self.code.scalars, self.dtype)
        if self.sums:
            return dict(zip(self.outputs, self.totals(columns, values, samples), strict=True))
        code = self.code
        with self.alone:
            table = self._table(values)
            _, results = self._all(columns, table, samples)
        fixed = [np.full(samples, table[place], self.dtype) for place in code.fixed.values()]
        number = code.results | {name: len(results) + k for k, name in enumerate(code.fixed)}
        return apart([*results, *fixed], {name: number[name] for name in self.outputs})

    def totals(self, columns: Mapping[str, Array], values: Array, samples: int) -> Array:
        """The sums of all outputs; see :class:`cgprimer.core.engines.Summing`."""
        with self.alone:
            table = self._table(values)
            lanes, _ = self._all(columns, table, samples)
        with np.errstate(all="ignore"):
            summed = lanes.sum(axis=0).sum(axis=1)
            given = times_samples(table[self.fixed], samples)
        return np.concatenate([summed, given])[self.reads]

    def _all(
        self, columns: Mapping[str, Array], table: Array, samples: int
    ) -> tuple[Array, list[Array]]:
        """Run over all samples: sums, shape (parts, vectors, lanes), and values per sample."""
        code, lanes = self.code, self.code.unit // self.dtype.itemsize
        given = as_columns(columns, code.columns, self.dtype, samples)
        weights = table[code.weights]
        whole = samples - samples % lanes
        pieces = threads.parts(whole, lanes, self.operations)
        totals = np.zeros((len(pieces) + 1, max(1, code.sums), self.machine.lanes))
        results = [np.empty(samples, self.dtype) for _ in set(code.results.values())]
        self._run(given, results, list(totals), table, weights, pieces)
        if whole < samples:
            last = [padded(column[whole:], lanes) for column in given]
            ends = [np.empty(lanes, self.dtype) for _ in results]
            mask = (np.arange(lanes) < samples - whole).astype(self.dtype)
            self._run(last, ends, [totals[-1]], table, weights, [(0, lanes)], mask)
            for result, end in zip(results, ends, strict=True):
                result[whole:] = end[: samples - whole]
        self.check()
        return totals, results

    def check(self) -> None:
        """Raise what a primitive in Python raised meanwhile, or Ctrl-C that came in its midst."""
        failures, contexts = self.failures[:], self.contexts[:]
        self.failures.clear()
        self.contexts.clear()
        if failures:
            raise failures[0]
        if any(context[_FAILED] for context in contexts):
            raise KeyboardInterrupt

    @property
    def callback_address(self) -> int:
        """Where compiled code calls Python; 0 if it never does."""
        return (ctypes.cast(self.callback, _POINTER).value or 0) if self.callback else 0

    def _table(self, values: Array) -> Array:
        """The uniform table: given numbers, constants, and what is computed from them."""
        code = self.code
        self.failures.clear()  # Ctrl-C may have come before an earlier call looked
        self.contexts.clear()
        table = np.empty(code.table, self.dtype)
        first = len(code.scalars)
        with np.errstate(all="ignore"):  # too large for float32: infinite, as in any conversion
            table[:first] = values
        computed = code.table - len(code.computed)
        table[first:computed] = code.constants
        if len(code.computed):
            rows = aligned((len(code.given) + len(code.computed)) * code.unit)
            numbers = rows.view(self.dtype).reshape(-1, code.unit // self.dtype.itemsize)
            numbers[: len(code.given)] = table[code.given, None]
            # Nothing of the context is read but the side table.
            context = self._context(*[table] * 5, code.side, table)
            threads.run(
                self.run, [self._entry(code.uniform, rows, context, 0, code.unit, code.unit)]
            )
            table[computed:] = numbers[code.computed, 0]
        return table

    def _run(
        self,
        columns: list[Array],
        results: list[Array],
        totals: list[Array],
        table: Array,
        weights: Array,
        pieces: list[tuple[int, int]],
        mask: Array | None = None,
    ) -> None:
        """Ranges of samples, each in a thread with a buffer and totals of its own."""
        code, size = self.code, self.dtype.itemsize
        given, written = addresses(columns), addresses(results)
        kept, calls = [], []
        for total, (begin, end) in zip(totals, pieces, strict=False):
            rows = aligned(code.buffer)
            hidden = total if mask is None else mask
            context = self._context(given, written, total, table, weights, code.side, hidden)
            if len(code.preamble) > 2:
                entry = self._entry(code.preamble, rows, context, 0, code.stride, code.stride)
                threads.run(self.run, [entry])
            kept.append((rows, context))
            calls.append(
                self._entry(
                    code.main, rows, context, begin * size, end * size, code.stride,
                    masked=mask is not None,
                )
            )  # fmt: skip
        threads.run(self.run, calls)

    def _context(self, *shared: Array) -> Array:
        """What the handlers find; ``shared`` in the order of :data:`handlers.CONTEXT`."""
        places = [array.ctypes.data for array in shared]
        context = np.array([*places, 0, self.callback_address, 0, 0], np.int64)
        if self.code.functions:
            self.contexts.append(context)
        return context

    def _entry(
        self,
        operations: Array,
        rows: Array,
        context: Array,
        begin: int,
        end: int,
        block: int,
        *,
        masked: bool = False,
    ) -> tuple[int, ...]:
        """Arguments with which the interpreter is entered."""
        table = self.machine.masked if masked else self.machine.table
        places = operations.ctypes.data, rows.ctypes.data, table, context.ctypes.data
        return (*places, begin, end, block)


def aligned(size: int) -> Array:
    """Bytes that begin where a vector register likes them to."""
    space = np.empty(size + _ALIGNMENT, np.uint8)
    begin = -space.ctypes.data % _ALIGNMENT
    return space[begin : begin + size]


def _callback(names: tuple[str, ...], dtype: Any, failures: list[BaseException]) -> Any:
    """A function that compiled code calls for primitives that only Python knows.

    What the primitive raises cannot pass through compiled code: it is put into ``failures``.
    """
    if not names:
        return None
    functions: list[Callable[..., Array]] = [arrays.function(name) for name in names]
    arities = [primitive(name).arity for name in names]
    real = ctypes.c_double if dtype.itemsize == 8 else ctypes.c_float

    def call(number: int, count: int, reply: int, result: int, *operands: int) -> None:
        try:
            arrays = [
                np.ctypeslib.as_array(ctypes.cast(place, ctypes.POINTER(real)), (count,))
                for place in (result, *operands[: arities[number]])
            ]
            with np.errstate(all="ignore"):
                arrays[0][...] = result_of(names[number], functions[number], arrays[1:], (count,))
        except BaseException as error:
            failures.append(error)
        ctypes.c_int64.from_address(reply).value = 1

    return _CALLBACK(call)
